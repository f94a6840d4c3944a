//! Arithmetic expansion: the shell's variables for the evaluator, and expressions understood only once.

use std::fmt::Write;
use std::rc::Rc;

use crate::arith::{self, ArithError, Expression};
use crate::ast::{Part, Word};
use crate::shell::{Done, Flow, Shell};
use crate::state::assign::Subscript;
use crate::state::hash::NameMap;
use crate::state::options::SetOption;
use crate::state::variables::{Attributes, Value};

/// Forgotten all at once when it holds this many: expressions made at run time are often all different.
const KEPT: usize = 512;

/// Expressions by their text, and room for a computed value.
#[derive(Debug, Default)]
pub struct ArithmeticCache {
    known: NameMap<Rc<Expression>>,
    scratch: String,
}

impl Shell {
    /// Returns the value of an expression with expansions in it.
    pub(crate) fn evaluate_word(&mut self, word: &Word) -> Done<i64> {
        let result = self.try_evaluate_word(word)?;
        result.map_err(|error| self.refuse_arithmetic(&error, ""))
    }

    /// Returns the value of an expression, or its error for the caller to word.
    pub(crate) fn try_evaluate_word(&mut self, word: &Word) -> Done<Result<i64, ArithError>> {
        if let [Part::Literal(text) | Part::Quoted(text, _)] = word.parts.as_slice() {
            return Ok(self.try_evaluate(text));
        }
        let text = self.expand_quoted(word)?;
        Ok(self.try_evaluate(&text))
    }

    /// Returns the value of an expression's text.
    pub(crate) fn evaluate(&mut self, text: &str) -> Done<i64> {
        self.try_evaluate(text).map_err(|error| self.refuse_arithmetic(&error, ""))
    }

    /// Same as [`Shell::evaluate`], for subscripts and integer variables: after an error, bash goes back to reading commands.
    pub(crate) fn evaluate_or_abandon(&mut self, text: &str) -> Done<i64> {
        self.evaluate(text).map_err(|flow| if let Flow::Discard(_) = flow { self.abandon() } else { flow })
    }

    /// Returns the value of an expression's text, or its error.
    pub(crate) fn try_evaluate(&mut self, text: &str) -> Result<i64, ArithError> {
        if let Some(value) = arith::parse_integer(text) {
            return Ok(value);
        }
        if let Some(known) = self.arithmetic.known.get(text) {
            return Rc::clone(known).eval(self);
        }
        let expression = Rc::new(Expression::parse(text)?);
        if self.arithmetic.known.len() >= KEPT {
            self.arithmetic.known.clear();
        }
        self.arithmetic.known.insert(text.to_owned(), Rc::clone(&expression));
        expression.eval(self)
    }

    /// Says what is wrong, and how the command stops.
    pub(crate) fn refuse_arithmetic(&mut self, error: &ArithError, prefix: &str) -> Flow {
        if error.from_variables && error.message.ends_with("unbound variable") {
            return self.fatal(&error.message);
        }
        // An error in a variable is reported without the command's name.
        let prefix = if error.from_variables { "" } else { prefix };
        if !error.message.is_empty() {
            self.complain(format_args!("{prefix}{}", error.message));
        }
        Flow::Discard(1)
    }

    fn scratch_element(&mut self, name: &str, subscript: &Subscript) -> Result<Option<&str>, String> {
        let (name, _) = self.resolve(name);
        if self.is_before_start(&name, subscript) {
            self.complain(format_args!("{name}: bad array subscript"));
            return Ok(None);
        }
        match self.get_element(&name, subscript) {
            Some(text) => {
                self.arithmetic.scratch = text;
                Ok(Some(&self.arithmetic.scratch))
            }
            None if self.on(SetOption::NoUnset) && self.variables.get(&name).is_none() => {
                Err(format!("{name}: unbound variable"))
            }
            None if self.on(SetOption::NoUnset) => {
                let shown = match subscript {
                    Subscript::Number(number) => number.to_string(),
                    Subscript::Key(key) => key.clone(),
                };
                Err(format!("{name}[{shown}]: unbound variable"))
            }
            None => Ok(None),
        }
    }

    fn store_element(&mut self, name: &str, subscript: Subscript, value: i64) -> Result<(), String> {
        let (name, _) = self.resolve(name);
        if self.variables.get(&name).is_some_and(|variable| variable.attributes.has(Attributes::READONLY)) {
            return Err(format!("{name}: readonly variable"));
        }
        if let Subscript::Number(number) = subscript
            && self.is_before_start(&name, &subscript)
        {
            self.complain(format_args!("{name}[{number}]: bad array subscript"));
            return Ok(());
        }
        self.assign_element(&name, subscript, value.to_string(), false).map_err(|_| String::new())
    }
}

impl arith::Variables for Shell {
    fn get(&mut self, name: &str) -> Result<Option<&str>, String> {
        let special = match self.variables.get(name) {
            None => false,
            Some(variable) => variable.attributes.any(Attributes::NAMEREF.with(Attributes::DYNAMIC)),
        };
        if special {
            return match Shell::get(self, name) {
                Some(text) => {
                    self.arithmetic.scratch = text;
                    Ok(Some(&self.arithmetic.scratch))
                }
                None => Ok(None),
            };
        }
        if self.on(SetOption::NoUnset) && self.variables.get(name).and_then(|variable| variable.scalar()).is_none() {
            return Err(format!("{name}: unbound variable"));
        }
        Ok(self.variables.get(name).and_then(|variable| variable.scalar()))
    }

    fn set(&mut self, name: &str, value: i64) -> Result<(), String> {
        if let Some(variable) = self.variables.get_mut(name)
            && variable.attributes.without(Attributes::EXPORT).without(Attributes::INTEGER).is_empty()
            && let Value::Scalar(text) = &mut variable.value
            && name != "OPTIND"
        {
            text.clear();
            let _ = write!(text, "{value}");
            return Ok(());
        }
        let (target, _) = self.resolve(name);
        if self.variables.get(&target).is_some_and(|variable| variable.attributes.has(Attributes::READONLY)) {
            return Err(format!("{target}: readonly variable"));
        }
        self.assign(name, value.to_string(), false).map_err(|_| String::new())
    }

    fn is_associative(&mut self, name: &str) -> bool {
        let (name, _) = self.resolve(name);
        matches!(self.variables.get(&name).map(|variable| &variable.value), Some(Value::Associative(_)))
    }

    fn expand(&mut self, subscript: &str) -> Result<String, String> {
        self.expand_subscript_text(subscript).map_err(|_| String::new())
    }

    fn get_index(&mut self, name: &str, index: i64) -> Result<Option<&str>, String> {
        self.scratch_element(name, &Subscript::Number(index))
    }

    fn set_index(&mut self, name: &str, index: i64, value: i64) -> Result<(), String> {
        self.store_element(name, Subscript::Number(index), value)
    }

    fn get_key(&mut self, name: &str, key: &str) -> Result<Option<&str>, String> {
        self.scratch_element(name, &Subscript::Key(key.to_owned()))
    }

    fn set_key(&mut self, name: &str, key: &str, value: i64) -> Result<(), String> {
        self.store_element(name, Subscript::Key(key.to_owned()), value)
    }
}
