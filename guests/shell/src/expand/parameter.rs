//! Parameter expansion: which parameter, which elements, and where the results go.

use super::{Mode, Segment};
use crate::ast::{Index, Operation, Parameter, ParameterName, Part, QuoteStyle, Word};
use crate::shell::{Done, Flow, Shell};
use crate::state::assign::{Subscript, is_name, split_subscript};
use crate::state::options::SetOption;
use crate::state::variables::{Attributes, Value};

/// The value of a parameter before its operation.
#[derive(Clone, Debug)]
pub(crate) enum Expanded {
    /// It has none.
    Unset,
    /// One string.
    One(String),
    /// The elements of `$@`, `${a[@]}` (or, `joined`, of `$*`, `${a[*]}`).
    Many {
        /// The elements.
        values: Vec<String>,
        /// `*`.
        joined: bool,
    },
}

/// Returns whether a part is `$@` or `${a[@]}`: zero elements make it vanish.
pub(super) fn is_list(part: &Part) -> bool {
    let Part::Parameter(parameter) = part else { return false };
    parameter.name == ParameterName::Special('@')
        || parameter.index == Some(Index::All)
        || parameter.indirect
        || matches!(parameter.operation, Operation::Keys { separate: true } | Operation::Names { separate: true })
}

impl Shell {
    /// Expands `$x` or `${…}` into segments.
    pub(super) fn expand_parameter(&mut self, parameter: &Parameter, mode: Mode, out: &mut Vec<Segment>) -> Done<()> {
        if let (Operation::Get, None, false) = (&parameter.operation, &parameter.index, parameter.indirect)
            && let ParameterName::Variable(name) = &parameter.name
            && !self.is_reference(name)
            && let Some(text) = self.get(name)
        {
            out.push(Segment::Text { text, quoted: mode.quoted, split: mode.split });
            return Ok(());
        }
        match &parameter.operation {
            Operation::Bad(text) => {
                self.complain(format_args!("${{{text}}}: bad substitution"));
                return Err(self.discard());
            }
            Operation::Names { separate } => {
                let values = self.names_with_prefix(parameter);
                if !separate && self.ifs().is_empty() {
                    self.push_expanded(Expanded::One(values.concat()), mode, out);
                    return Ok(());
                }
                self.push_expanded(Expanded::Many { values, joined: !separate }, mode, out);
                return Ok(());
            }
            Operation::Keys { separate } => {
                let values = self.keys_of(parameter)?;
                if !separate && mode.split && !mode.quoted && self.ifs().is_empty() {
                    self.push_expanded(Expanded::One(values.join(" ")), mode, out);
                    return Ok(());
                }
                self.push_expanded(Expanded::Many { values, joined: !separate }, mode, out);
                return Ok(());
            }
            _ => {}
        }
        if let (true, ParameterName::Positional(number), Operation::Get) =
            (parameter.braced && !parameter.indirect, &parameter.name, &parameter.operation)
            && self.positional.len() < *number as usize
        {
            self.refuse_unset(&parameter.name, None, false)?;
        }
        if parameter.indirect {
            return self.expand_indirect(parameter, mode, out);
        }
        self.expand_operation(&parameter.name, parameter.index.as_ref(), &parameter.operation, mode, out)
    }

    fn expand_indirect(&mut self, parameter: &Parameter, mode: Mode, out: &mut Vec<Segment>) -> Done<()> {
        if let (ParameterName::Variable(name), None) = (&parameter.name, &parameter.index)
            && self.is_reference(name)
        {
            let name = name.clone();
            let target = self.variables.get(&name).and_then(|variable| variable.scalar()).unwrap_or_default().to_owned();
            if matches!(parameter.operation, Operation::Get) {
                out.push(Segment::Text { text: target, quoted: mode.quoted, split: mode.split });
                return Ok(());
            }
        }
        let shown = self.shown_name(&parameter.name, None);
        let target = match self.parameter_value(&parameter.name, parameter.index.as_ref())? {
            Expanded::One(text) => text,
            Expanded::Many { values, joined } => {
                let joint = if joined { self.ifs_joint() } else { " ".to_owned() };
                if values.is_empty() {
                    if parameter.index.is_some() {
                        let shown = self.shown_name(&parameter.name, parameter.index.as_ref());
                        self.complain(format_args!("{shown}: invalid indirect expansion"));
                        return Err(self.discard());
                    }
                    return self.expand_nothing(&parameter.operation, mode, out);
                }
                values.join(&joint)
            }
            Expanded::Unset => {
                let known = match &parameter.name {
                    ParameterName::Variable(name) => parameter.index.is_none() && self.variables.get(name).is_some(),
                    _ => true,
                };
                if known {
                    return self.expand_nothing(&parameter.operation, mode, out);
                }
                let shown = self.shown_name(&parameter.name, parameter.index.as_ref());
                self.complain(format_args!("{shown}: invalid indirect expansion"));
                return Err(self.discard());
            }
        };
        let Some((name, index)) = self.parse_target(&target) else {
            self.complain(format_args!("{target}: invalid variable name"));
            return Err(self.discard());
        };
        if matches!(parameter.operation, Operation::Get)
            && self.on(SetOption::NoUnset)
            && matches!(self.parameter_value(&name, index.as_ref())?, Expanded::Unset)
        {
            return Err(self.fatal(format_args!("!{shown}: unbound variable")));
        }
        self.expand_operation(&name, index.as_ref(), &parameter.operation, mode, out)
    }

    /// Performs an operation on an unset parameter.
    fn expand_nothing(&mut self, operation: &Operation, mode: Mode, out: &mut Vec<Segment>) -> Done<()> {
        match operation {
            Operation::Default { .. } | Operation::Alternative { .. } => {
                let nothing = ParameterName::Special(' ');
                self.expand_operation(&nothing, None, operation, mode, out)
            }
            _ => {
                self.push_expanded(Expanded::Unset, mode, out);
                Ok(())
            }
        }
    }

    /// Returns the value of a parameter, before any operation.
    pub(super) fn parameter_value(&mut self, name: &ParameterName, index: Option<&Index>) -> Done<Expanded> {
        match name {
            ParameterName::Positional(number) => {
                let at = (*number as usize).wrapping_sub(1);
                Ok(self.positional.get(at).map_or(Expanded::Unset, |text| Expanded::One(text.clone())))
            }
            ParameterName::Special(c) => Ok(self.special_value(*c)),
            ParameterName::Variable(name) => match index {
                None => self.variable_value(name),
                Some(index) => self.indexed_value(name, index),
            },
        }
    }

    fn special_value(&mut self, c: char) -> Expanded {
        match c {
            '@' | '*' => Expanded::Many { values: self.positional.clone(), joined: c == '*' },
            '#' => Expanded::One(self.positional.len().to_string()),
            '?' => Expanded::One(self.status.to_string()),
            '-' => Expanded::One(self.dash()),
            '$' => Expanded::One(self.pid.to_string()),
            '!' => self.last_background.map_or(Expanded::Unset, |pid| Expanded::One(pid.to_string())),
            '0' => Expanded::One(self.name.clone()),
            _ => Expanded::Unset,
        }
    }

    fn variable_value(&mut self, name: &str) -> Done<Expanded> {
        if self.is_reference(name) {
            let (target, subscript) = self.resolve(name);
            if let Some(text) = subscript {
                let Some(index) = self.index_of(&text) else { return Ok(Expanded::Unset) };
                return self.indexed_value(&target, &index);
            }
            return Ok(if target == name { Expanded::Unset } else { self.get(&target).map_or(Expanded::Unset, Expanded::One) });
        }
        if name == "_" {
            return Ok(Expanded::One(self.last_argument.clone()));
        }
        Ok(self.get(name).map_or(Expanded::Unset, Expanded::One))
    }

    fn indexed_value(&mut self, name: &str, index: &Index) -> Done<Expanded> {
        let (name, inner) = if self.is_reference(name) { self.resolve(name) } else { (name.to_owned(), None) };
        if inner.is_some() {
            // A subscript of a reference that has one itself is about nothing.
            return Ok(match index {
                Index::All | Index::Joined => Expanded::Many { values: Vec::new(), joined: *index == Index::Joined },
                Index::Element(_) => Expanded::Unset,
            });
        }
        match index {
            Index::All | Index::Joined => {
                let values = match self.value(&name) {
                    Value::Indexed(map) => map.into_values().collect(),
                    Value::Associative(map) => map.iter().map(|(_, value)| value.clone()).collect(),
                    Value::Scalar(text) => vec![text],
                    Value::Unset => Vec::new(),
                };
                Ok(Expanded::Many { values, joined: *index == Index::Joined })
            }
            Index::Element(word) => {
                let subscript = self.expand_subscript(&name, word)?;
                if let Subscript::Number(number) = subscript
                    && number < 0
                    && self.get_element(&name, &subscript).is_none()
                {
                    let count = match self.value(&name) {
                        Value::Indexed(map) => map.last_key_value().map_or(0, |(last, _)| last + 1),
                        _ => 0,
                    };
                    if count + number < 0 {
                        self.complain(format_args!("{name}: bad array subscript"));
                        if self.on(SetOption::ErrExit) {
                            return Err(self.discard());
                        }
                    }
                }
                Ok(self.get_element(&name, &subscript).map_or(Expanded::Unset, Expanded::One))
            }
        }
    }

    /// Works out a subscript: a key of an associative array, arithmetic otherwise.
    pub(crate) fn expand_subscript(&mut self, name: &str, word: &Word) -> Done<Subscript> {
        if matches!(self.variables.get(name).map(|variable| &variable.value), Some(Value::Associative(_)))
            || matches!(name, "BASH_ALIASES" | "BASH_CMDS")
        {
            return Ok(Subscript::Key(self.expand_string(word)?));
        }
        Ok(Subscript::Number(self.evaluate_subscript(word)?))
    }

    /// Returns the number of an indexed array's subscript, in which single quotes are not special.
    pub(crate) fn evaluate_subscript(&mut self, word: &Word) -> Done<i64> {
        let quoted = |part: &Part| matches!(part, Part::Quoted(_, QuoteStyle::Single | QuoteStyle::AnsiC));
        let abandon = |shell: &Self, flow| if let Flow::Discard(_) = flow { shell.abandon() } else { flow };
        if !word.parts.iter().any(quoted) {
            return self.evaluate_word(word).map_err(|flow| abandon(self, flow));
        }
        let parts = word.parts.iter().map(|part| match part {
            Part::Quoted(text, QuoteStyle::Single | QuoteStyle::AnsiC) => Part::Literal(format!("'{text}'")),
            other => other.clone(),
        });
        self.evaluate_word(&Word { parts: parts.collect() }).map_err(|flow| abandon(self, flow))
    }

    fn names_with_prefix(&mut self, parameter: &Parameter) -> Vec<String> {
        let ParameterName::Variable(prefix) = &parameter.name else { return Vec::new() };
        let mut names: Vec<String> = self
            .variables
            .iter()
            .filter(|(name, variable)| {
                name.starts_with(prefix.as_str()) && (variable.is_set() || variable.attributes.has(Attributes::DYNAMIC))
            })
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        names
    }

    fn keys_of(&mut self, parameter: &Parameter) -> Done<Vec<String>> {
        let ParameterName::Variable(name) = &parameter.name else { return Ok(Vec::new()) };
        let (name, _) = self.resolve(name);
        Ok(match self.value(&name) {
            Value::Indexed(map) => map.keys().map(i64::to_string).collect(),
            Value::Associative(map) => map.iter().map(|(key, _)| key.clone()).collect(),
            Value::Scalar(_) => vec!["0".to_owned()],
            Value::Unset => Vec::new(),
        })
    }

    /// Adds values to the segments as quoting and context demand.
    pub(super) fn push_expanded(&mut self, expanded: Expanded, mode: Mode, out: &mut Vec<Segment>) {
        let push = |out: &mut Vec<Segment>, text: String| {
            out.push(Segment::Text { text, quoted: mode.quoted, split: mode.split });
        };
        match expanded {
            Expanded::Unset => push(out, String::new()),
            Expanded::One(text) => push(out, text),
            Expanded::Many { values, joined } if joined && (mode.quoted || !mode.split) => {
                let joint = self.ifs_joint();
                push(out, values.join(&joint));
            }
            Expanded::Many { values, .. } if !mode.split => push(out, values.join(" ")),
            Expanded::Many { values, .. } => {
                // Unquoted elements are joined and split again, which shows where IFS begins with a visible character.
                if !mode.quoted {
                    let joint = self.ifs_joint();
                    if !joint.is_empty() && !matches!(joint.as_str(), " " | "\t" | "\n") {
                        push(out, values.join(&joint));
                        return;
                    }
                }
                for (at, value) in values.into_iter().enumerate() {
                    if at > 0 {
                        out.push(Segment::Break);
                    }
                    push(out, value);
                }
            }
        }
    }

    /// Returns the name of a parameter as messages show it.
    pub(super) fn shown_name(&mut self, name: &ParameterName, index: Option<&Index>) -> String {
        let base = match name {
            ParameterName::Variable(name) => name.clone(),
            ParameterName::Positional(number) => number.to_string(),
            ParameterName::Special(c) => c.to_string(),
        };
        match index {
            None => base,
            Some(Index::All) => format!("{base}[@]"),
            Some(Index::Joined) => format!("{base}[*]"),
            Some(Index::Element(word)) => {
                let text: String = crate::print::word(word);
                format!("{base}[{text}]")
            }
        }
    }

    /// Reports the error of `set -u`, if it applies to an unset parameter.
    pub(super) fn refuse_unset(&mut self, name: &ParameterName, index: Option<&Index>, plain: bool) -> Done<()> {
        if !self.on(SetOption::NoUnset) || matches!(name, ParameterName::Special('@' | '*')) {
            return Ok(());
        }
        let shown = match name {
            ParameterName::Positional(number) if plain => format!("${number}"),
            ParameterName::Positional(number) => number.to_string(),
            ParameterName::Special(c) => format!("${c}"),
            ParameterName::Variable(_) => self.shown_name(name, index),
        };
        Err(self.fatal(format_args!("{shown}: unbound variable")))
    }

    /// Returns the value of `$-`.
    pub(crate) fn dash(&self) -> String {
        let mut letters = self.options.letters();
        if self.interactive {
            letters.push('i');
        }
        letters.push_str(match self.origin {
            crate::shell::Origin::CommandString => "c",
            crate::shell::Origin::Stdin => "s",
            crate::shell::Origin::Script => "",
        });
        letters
    }
}

impl Shell {
    /// Returns the subscript in a name reference's text; `None` when its quotes do not match.
    fn index_of(&self, text: &str) -> Option<Index> {
        match text {
            "@" => Some(Index::All),
            "*" => Some(Index::Joined),
            _ => crate::syntax::parse_shell_word(text, self.syntax_options()).ok().map(Index::Element),
        }
    }

    /// Returns what an indirect expansion's value names.
    fn parse_target(&self, text: &str) -> Option<(ParameterName, Option<Index>)> {
        match split_subscript(text) {
            Some((name, subscript)) => Some((ParameterName::Variable(name.to_owned()), Some(self.index_of(subscript)?))),
            None => plain_target(text),
        }
    }
}

fn plain_target(text: &str) -> Option<(ParameterName, Option<Index>)> {
    if is_name(text) {
        return Some((ParameterName::Variable(text.to_owned()), None));
    }
    if let Ok(number) = text.parse::<u32>() {
        return Some(match number {
            0 => (ParameterName::Special('0'), None),
            number => (ParameterName::Positional(number), None),
        });
    }
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c @ ('@' | '*' | '#' | '?' | '-' | '$' | '!')), None) => Some((ParameterName::Special(c), None)),
        _ => None,
    }
}
