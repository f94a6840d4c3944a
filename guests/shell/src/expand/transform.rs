//! `${x@Q}` and its kin, and how values are written so that they can be read back.

use super::parameter::Expanded;
use crate::ast::{Index, ParameterName};
use crate::quote;
use crate::shell::{Done, Shell};
use crate::state::variables::{Attributes, Value, Variable};
use crate::syntax;

/// Returns the letters of a variable's attributes as `declare -p` writes them, without the dash.
#[must_use]
pub fn attribute_letters(variable: &Variable) -> String {
    let mut letters = String::new();
    match variable.value {
        Value::Indexed(_) => letters.push('a'),
        Value::Associative(_) => letters.push('A'),
        _ => {}
    }
    for (bit, letter) in [
        (Attributes::INTEGER, 'i'),
        (Attributes::NAMEREF, 'n'),
        (Attributes::READONLY, 'r'),
        (Attributes::TRACE, 't'),
        (Attributes::EXPORT, 'x'),
        (Attributes::CAPITAL, 'c'),
        (Attributes::LOWER, 'l'),
        (Attributes::UPPER, 'u'),
    ] {
        if variable.attributes.has(bit) {
            letters.push(letter);
        }
    }
    letters
}

/// Returns a value as the right-hand side of an assignment in `declare -p`.
#[must_use]
pub fn quote_assignment(value: &Value) -> String {
    match value {
        Value::Unset => String::new(),
        Value::Scalar(text) => quote::declared(text),
        Value::Indexed(map) => {
            let items: Vec<String> = map.iter().map(|(index, text)| format!("[{index}]={}", quote::declared(text))).collect();
            format!("({})", items.join(" "))
        }
        Value::Associative(map) => {
            let mut text = String::from("(");
            for (key, value) in map.iter() {
                text.push_str(&format!("[{}]={} ", quote::key(key), quote::declared(value)));
            }
            text.push(')');
            text
        }
    }
}

/// Returns `declare -ax name=(…)`.
#[must_use]
pub fn describe(name: &str, variable: &Variable, value: &Value) -> String {
    let shown = Variable { value: value.clone(), ..variable.clone() };
    let letters = attribute_letters(&shown);
    let letters = if letters.is_empty() { "-".to_owned() } else { letters };
    if !shown.is_set() {
        return format!("declare -{letters} {name}");
    }
    format!("declare -{letters} {name}={}", quote_assignment(value))
}

impl Shell {
    pub(super) fn transform(&mut self, name: &ParameterName, index: Option<&Index>, letter: char) -> Done<Expanded> {
        if !"UuLQEPAKak".contains(letter) {
            let shown = self.shown_name(name, index);
            self.complain(format_args!("${{{shown}@{letter}}}: bad substitution"));
            return Err(self.discard());
        }
        if let (Some(Index::Element(_)), 'a' | 'A') = (index, letter) {
            // bash looks twice, and reports an error twice.
            self.parameter_value(name, index)?;
        }
        let value = self.parameter_value(name, index)?;
        if let (Expanded::Unset, 'a') = (&value, letter)
            && self.shown_name(name, index) != "@"
            && !matches!(name, ParameterName::Variable(name) if self.variables.get(name).is_some())
        {
            self.refuse_unset(name, index, false)?;
        }
        match letter {
            'a' => return Ok(self.transform_attributes(name, index, &value)),
            'A' => return self.transform_assignment(name, index, value),
            'K' | 'k' => {
                if let Some(expanded) = self.transform_pairs(name, index, letter == 'K') {
                    return Ok(expanded);
                }
            }
            _ => {}
        }
        if let Expanded::Unset = value {
            self.refuse_unset(name, index, false)?;
            return Ok(Expanded::Unset);
        }
        let mut failed = None;
        let mut change = |text: String| match letter {
            'U' => text.to_uppercase(),
            'L' => text.to_lowercase(),
            'u' => {
                let mut chars = text.chars();
                chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
            }
            'Q' | 'K' | 'k' => quote::single_or_ansi_c(&text),
            'E' => syntax::decode_ansi_c(&text),
            'P' => match self.expand_prompt(&text) {
                Ok(text) => text,
                Err(flow) => {
                    failed = Some(flow);
                    String::new()
                }
            },
            _ => text,
        };
        let expanded = match value {
            Expanded::Unset => Expanded::Unset,
            Expanded::One(text) => Expanded::One(change(text)),
            Expanded::Many { values, joined } => Expanded::Many { values: values.into_iter().map(change).collect(), joined },
        };
        failed.map_or(Ok(expanded), Err)
    }

    fn transform_attributes(&mut self, name: &ParameterName, index: Option<&Index>, value: &Expanded) -> Expanded {
        let ParameterName::Variable(name) = name else {
            return match value {
                Expanded::Many { values, joined } => {
                    Expanded::Many { values: values.iter().map(|_| String::new()).collect(), joined: *joined }
                }
                _ => Expanded::One(String::new()),
            };
        };
        let (name, _) = self.resolve(name);
        let letters = self.variables.get(&name).map(attribute_letters).unwrap_or_default();
        match (value, index) {
            (Expanded::Many { values, joined }, _) => {
                Expanded::Many { values: values.iter().map(|_| letters.clone()).collect(), joined: *joined }
            }
            _ => Expanded::One(letters),
        }
    }

    fn transform_assignment(&mut self, name: &ParameterName, index: Option<&Index>, value: Expanded) -> Done<Expanded> {
        let ParameterName::Variable(text) = name else {
            return Ok(match value {
                Expanded::Many { values, .. } => {
                    let quoted: Vec<String> = values.iter().map(|value| quote::single_or_ansi_c(value)).collect();
                    Expanded::One(format!("set -- {}", quoted.join(" ")))
                }
                _ => Expanded::Unset,
            });
        };
        let (name, _) = self.resolve(text);
        let Some(variable) = self.variables.get(&name).cloned() else { return Ok(Expanded::Unset) };
        let value_now = self.value(&name);
        let whole = matches!(index, Some(Index::All | Index::Joined));
        if variable.is_array() && whole {
            let text = describe(&name, &variable, &value_now);
            let values: Vec<String> = text.splitn(3, ' ').map(str::to_owned).collect();
            return Ok(Expanded::Many { values, joined: index == Some(&Index::Joined) });
        }
        let letters = attribute_letters(&variable);
        let text = match value {
            Expanded::One(text) => text,
            Expanded::Many { values, .. } => values.join(" "),
            Expanded::Unset if letters.is_empty() => return Ok(Expanded::Unset),
            Expanded::Unset => return Ok(Expanded::One(format!("declare -{letters} {name}"))),
        };
        Ok(Expanded::One(if letters.is_empty() {
            format!("{name}={}", quote::single_or_ansi_c(&text))
        } else {
            format!("declare -{letters} {name}={}", quote::single_or_ansi_c(&text))
        }))
    }

    /// `@K` and `@k` of a whole array; `None` for anything else, which is then quoted like `@Q`.
    fn transform_pairs(&mut self, name: &ParameterName, index: Option<&Index>, as_one: bool) -> Option<Expanded> {
        let ParameterName::Variable(name) = name else { return None };
        let Some(Index::All | Index::Joined) = index else { return None };
        let (name, _) = self.resolve(name);
        let pairs: Vec<(String, String)> = match self.value(&name) {
            Value::Indexed(map) => map.into_iter().map(|(index, value)| (index.to_string(), value)).collect(),
            Value::Associative(map) => map.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            _ => return None,
        };
        let joined = index == Some(&Index::Joined);
        if as_one {
            let texts: Vec<String> =
                pairs.iter().map(|(key, value)| format!("{} {}", quote::key(key), quote::declared(value))).collect();
            let mut text = texts.join(" ");
            if matches!(self.variables.get(&name).map(|variable| &variable.value), Some(Value::Associative(_))) {
                text.push(' ');
            }
            return Some(Expanded::One(text));
        }
        Some(Expanded::Many { values: pairs.into_iter().flat_map(|(key, value)| [key, value]).collect(), joined })
    }
}
