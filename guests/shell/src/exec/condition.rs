//! `[[ … ]]`.

use std::rc::Rc;

use posix_regex::{Regex, Span, Syntax};

use crate::ast::{TestExpression, Word};
use crate::builtins::{Comparison, file_test, files_compare};
use crate::bytes;
use crate::shell::{Done, Flow, Shell};
use crate::state::options::{SetOption, ShoptOption};

impl Shell {
    pub(super) fn run_test(&mut self, test: &TestExpression) -> Done {
        Ok(match self.evaluate_test(test)? {
            Some(true) => 0,
            Some(false) => 1,
            None => 2,
        })
    }

    /// Evaluates an expression; returns `None` after reporting that it is invalid.
    fn evaluate_test(&mut self, test: &TestExpression) -> Done<Option<bool>> {
        match test {
            TestExpression::Word(word) => {
                let text = self.expand_string(word)?;
                self.trace_test(format_args!("-n {}", shown(&text)))?;
                Ok(Some(!text.is_empty()))
            }
            TestExpression::Unary(operator, word) => self.evaluate_unary(operator, word),
            TestExpression::Binary(operator, left, right) => self.evaluate_binary(operator, left, right),
            TestExpression::Not(inner) => Ok(self.evaluate_test(inner)?.map(|value| !value)),
            TestExpression::And(left, right) => match self.evaluate_test(left)? {
                Some(true) => self.evaluate_test(right),
                other => Ok(other),
            },
            TestExpression::Or(left, right) => match self.evaluate_test(left)? {
                Some(false) => self.evaluate_test(right),
                other => Ok(other),
            },
            TestExpression::Group(inner) => self.evaluate_test(inner),
        }
    }

    fn trace_test(&mut self, text: std::fmt::Arguments<'_>) -> Done<()> {
        if self.on(SetOption::XTrace) {
            self.trace_text(&format!("[[ {text} ]]"))?;
        }
        Ok(())
    }

    fn evaluate_unary(&mut self, operator: &str, word: &Word) -> Done<Option<bool>> {
        let text = self.expand_string(word)?;
        self.trace_test(format_args!("{operator} {}", shown(&text)))?;
        Ok(Some(match operator {
            "-z" => text.is_empty(),
            "-n" => !text.is_empty(),
            "-v" => self.is_variable_set(&text)?,
            "-R" => self.is_reference(&text),
            "-o" => SetOption::named(&text).is_some_and(|option| self.on(option)),
            _ => {
                self.output.flush();
                file_test(operator, &text)
            }
        }))
    }

    fn evaluate_binary(&mut self, operator: &str, left: &Word, right: &Word) -> Done<Option<bool>> {
        let left_text = self.expand_string(left)?;
        match operator {
            "=" | "==" | "!=" => {
                let pattern = self.expand_pattern(right)?;
                self.trace_test(format_args!("{} {operator} {}", shown(&left_text), shown(&pattern)))?;
                let matches = self.matches_pattern(&pattern, true, &left_text);
                Ok(Some(matches == (operator != "!=")))
            }
            "=~" => self.match_regex(&left_text, right),
            "<" | ">" => {
                let right_text = self.expand_string(right)?;
                self.trace_test(format_args!("{} {operator} {}", shown(&left_text), shown(&right_text)))?;
                Ok(Some(if operator == "<" { left_text < right_text } else { left_text > right_text }))
            }
            "-nt" | "-ot" | "-ef" => {
                let right_text = self.expand_string(right)?;
                self.output.flush();
                Ok(Some(files_compare(operator, &left_text, &right_text)))
            }
            _ => {
                let right_text = self.expand_string(right)?;
                self.trace_test(format_args!("{} {operator} {}", shown(&left_text), shown(&right_text)))?;
                let mut numbers = [0; 2];
                for (at, text) in [&left_text, &right_text].into_iter().enumerate() {
                    match self.try_evaluate(text) {
                        Ok(value) => numbers[at] = value,
                        Err(error) => {
                            return match self.refuse_arithmetic(&error, "[[: ") {
                                Flow::Discard(_) => Ok(Some(false)),
                                flow => Err(flow),
                            };
                        }
                    }
                }
                Ok(Comparison::named(operator).map(|comparison| comparison.holds(numbers[0], numbers[1])))
            }
        }
    }

    fn match_regex(&mut self, text: &str, right: &Word) -> Done<Option<bool>> {
        let source = self.expand_regex(right)?;
        self.trace_test(format_args!("{} =~ {}", shown(text), source))?;
        let Some(regex) = self.regex(&source) else { return Ok(None) };
        let text = bytes::encode(text);
        let mut groups = Vec::new();
        let matched = regex.captures_at(&text, 0, &mut groups);
        let shown =
            |span: Option<Span>| span.and_then(|(start, end)| text.get(start..end)).map(bytes::decode).unwrap_or_default();
        self.set_array("BASH_REMATCH", groups.into_iter().map(shown));
        Ok(Some(matched))
    }

    fn regex(&mut self, source: &str) -> Option<Rc<Regex>> {
        /// Forgotten all at once when this many are known.
        const KEPT: usize = 64;
        let ignore_case = self.shopt(ShoptOption::NoCaseMatch);
        let key = format!("{}{source}", if ignore_case { 'i' } else { 'c' });
        if let Some(known) = self.regexes.get(&key) {
            return Some(Rc::clone(known));
        }
        let syntax = Syntax { extended: true, strict_repeat: true, library: true, ignore_case, ..Syntax::default() };
        let regex = Regex::new(&bytes::encode(source), syntax).ok()?;
        if self.regexes.len() >= KEPT {
            self.regexes.clear();
        }
        let regex = Rc::new(regex);
        self.regexes.insert(key, Rc::clone(&regex));
        Some(regex)
    }
}

fn shown(text: &str) -> String {
    if text.is_empty() { "''".to_owned() } else { text.to_owned() }
}
