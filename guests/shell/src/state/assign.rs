//! Reading and assigning variables: name references, attributes, arrays, and the variables that the shell computes.

use std::collections::BTreeMap;

use super::associative::Associative;
use super::options::SetOption;
use super::variables::{Attributes, Value, Variable};
use crate::shell::{Done, Shell};

/// A subscript, worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subscript {
    /// Of an indexed array; may count from the end.
    Number(i64),
    /// Of an associative one.
    Key(String),
}

/// How many name references may follow one another.
const MAX_REFERENCES: usize = 16;

/// Returns whether a text can be a variable's name.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// Splits `name[subscript]`; `None` when it is not of that form.
#[must_use]
pub fn split_subscript(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('[')?;
    let subscript = rest.strip_suffix(']')?;
    (is_name(name) && !subscript.is_empty()).then_some((name, subscript))
}

impl Shell {
    /// Returns the variable that a name stands for after following name references, and the subscript that one of them gave.
    pub fn resolve(&mut self, name: &str) -> (String, Option<String>) {
        let mut current = name.to_owned();
        for _ in 0..MAX_REFERENCES {
            match self.variables.get(&current) {
                Some(variable) if variable.attributes.has(Attributes::NAMEREF) => match variable.scalar() {
                    Some(target) if !target.is_empty() => {
                        if let Some((base, subscript)) = split_subscript(target) {
                            return (base.to_owned(), Some(subscript.to_owned()));
                        }
                        if target == current {
                            self.complain(format_args!("warning: {current}: circular name reference"));
                            return (current, None);
                        }
                        current = target.to_owned();
                    }
                    _ => return (current, None),
                },
                _ => return (current, None),
            }
        }
        self.complain(format_args!("warning: {name}: circular name reference"));
        (name.to_owned(), None)
    }

    /// Returns whether following a reference leads back to it by way of another.
    fn is_circular(&self, name: &str) -> bool {
        let target = self.variables.get(name).and_then(Variable::scalar);
        target.is_some_and(|target| !target.is_empty() && target != name)
    }

    /// Returns whether a name is a reference to another.
    #[must_use]
    pub fn is_reference(&self, name: &str) -> bool {
        self.variables.get(name).is_some_and(|variable| variable.attributes.has(Attributes::NAMEREF))
    }

    /// Returns the value of a variable as one string.
    pub fn get(&mut self, name: &str) -> Option<String> {
        let variable = self.variables.get(name)?;
        if variable.attributes.any(Attributes::NAMEREF.with(Attributes::DYNAMIC)) {
            return self.get_special(name);
        }
        variable.scalar().map(str::to_owned)
    }

    fn get_special(&mut self, name: &str) -> Option<String> {
        if self.is_reference(name) {
            let (target, subscript) = self.resolve(name);
            if let Some(subscript) = subscript {
                let subscript = self.subscript(&target, &subscript).ok()?;
                return self.get_element(&target, &subscript);
            }
            if target == name {
                return None;
            }
            return self.get(&target);
        }
        match self.computed(name)? {
            Value::Scalar(text) => Some(text),
            Value::Indexed(map) => map.into_iter().find(|(index, _)| *index == 0).map(|(_, text)| text),
            Value::Associative(map) => map.get("0").cloned(),
            Value::Unset => None,
        }
    }

    /// Returns a copy of a variable's value, computed if the shell computes it. The name must be resolved.
    pub fn value(&mut self, name: &str) -> Value {
        match self.variables.get(name) {
            Some(variable) if variable.attributes.has(Attributes::DYNAMIC) => self.computed(name).unwrap_or_default(),
            Some(variable) => variable.value.clone(),
            None => Value::Unset,
        }
    }

    /// Returns one element; index 0 of a scalar is the scalar itself. The name must be resolved.
    pub fn get_element(&mut self, name: &str, subscript: &Subscript) -> Option<String> {
        let computed;
        let variable = self.variables.get(name)?;
        let value = if variable.attributes.has(Attributes::DYNAMIC) {
            computed = self.computed(name)?;
            &computed
        } else {
            &variable.value
        };
        match (value, subscript) {
            (Value::Indexed(map), Subscript::Number(number)) => {
                let index = if *number < 0 { map.last_key_value().map_or(0, |(last, _)| *last + 1) + number } else { *number };
                map.get(&index).cloned()
            }
            (Value::Associative(map), Subscript::Key(key)) => map.get(key).cloned(),
            (Value::Scalar(text), Subscript::Number(0 | -1)) => Some(text.clone()),
            _ => None,
        }
    }

    /// Works out a subscript's text for this variable: a key, or arithmetic.
    pub fn subscript(&mut self, name: &str, text: &str) -> Done<Subscript> {
        if matches!(self.variables.get(name).map(|variable| &variable.value), Some(Value::Associative(_))) {
            return Ok(Subscript::Key(self.expand_subscript_text(text)?));
        }
        let text = self.expand_subscript_text(text)?;
        Ok(Subscript::Number(self.evaluate_or_abandon(&text)?))
    }

    /// Expands a subscript that was found in a text at run time.
    pub(crate) fn expand_subscript_text(&mut self, text: &str) -> Done<String> {
        if !text.contains(['$', '`', '"', '\'', '\\']) {
            return Ok(text.to_owned());
        }
        match crate::syntax::parse_shell_word(text, self.syntax_options()) {
            Ok(word) => self.expand_string(&word),
            Err(_) => Ok(text.to_owned()),
        }
    }

    /// Says that a variable is readonly when it is.
    pub fn refuse_readonly(&mut self, name: &str) -> bool {
        let readonly = self.variables.get(name).is_some_and(|variable| variable.attributes.has(Attributes::READONLY));
        if readonly {
            self.complain(format_args!("{name}: readonly variable"));
        }
        readonly
    }

    /// Assigns one string, following references and obeying attributes. `Err` after saying why not.
    pub fn assign(&mut self, name: &str, value: String, append: bool) -> Done<()> {
        let plain = self.variables.get(name).is_none_or(|variable| {
            variable.attributes.without(Attributes::EXPORT).is_empty()
                && matches!(variable.value, Value::Scalar(_) | Value::Unset)
        });
        if plain {
            let export = self.on(SetOption::AllExport);
            let variable = self.variables.entry(name);
            match (&mut variable.value, append) {
                (Value::Scalar(text), true) => text.push_str(&value),
                (slot, _) => *slot = Value::Scalar(value),
            }
            if export {
                variable.attributes = variable.attributes.with(Attributes::EXPORT);
            }
            self.assigned(name);
            return Ok(());
        }
        if self.is_reference(name) {
            return self.assign_through(name, value, append);
        }
        if self.refuse_readonly(name) {
            return Err(self.discard());
        }
        if self.variables.get(name).is_some_and(|variable| variable.attributes.has(Attributes::DYNAMIC)) {
            self.assign_computed(name, &value);
            return Ok(());
        }
        let subscript = match self.variables.get(name).map(|variable| &variable.value) {
            Some(Value::Indexed(_)) => Some(Subscript::Number(0)),
            Some(Value::Associative(_)) => Some(Subscript::Key("0".to_owned())),
            _ => None,
        };
        if let Some(subscript) = subscript {
            return self.assign_element(name, subscript, value, append);
        }
        let old = if append { self.get(name) } else { None };
        let attributes = self.variables.get(name).map(|variable| variable.attributes).unwrap_or_default();
        let value = self.with_attributes(attributes, old, value)?;
        let export = self.on(SetOption::AllExport);
        let variable = self.variables.entry(name);
        variable.value = Value::Scalar(value);
        if export {
            variable.attributes = variable.attributes.with(Attributes::EXPORT);
        }
        self.assigned(name);
        Ok(())
    }

    fn assign_through(&mut self, name: &str, value: String, append: bool) -> Done<()> {
        let (target, subscript) = self.resolve(name);
        if subscript.is_none() && target == name && self.is_circular(name) {
            return Err(self.discard());
        }
        if let Some(text) = subscript {
            let subscript = self.subscript(&target, &text)?;
            return self.assign_element(&target, subscript, value, append);
        }
        if target != name {
            return self.assign(&target, value, append);
        }
        if self.variables.get(name).and_then(Variable::scalar) == Some(name) {
            // It refers to itself: what is meant is the variable outside of the function.
            self.complain(format_args!("warning: {name}: circular name reference"));
            self.variables.global_entry(name).value = Value::Scalar(value);
            return Ok(());
        }
        // A reference that refers to nothing yet: the value is the name it will refer to.
        if self.refuse_readonly(name) {
            return Err(self.discard());
        }
        if !value.is_empty() && !is_name(&value) && split_subscript(&value).is_none() {
            self.complain(format_args!("`{value}': not a valid identifier"));
            return Err(self.discard());
        }
        self.variables.entry(name).value = Value::Scalar(value);
        Ok(())
    }

    /// Returns a value as changed by the attributes of its variable; `old` is the value it is appended to.
    pub(crate) fn with_attributes(&mut self, attributes: Attributes, old: Option<String>, value: String) -> Done<String> {
        if attributes.has(Attributes::INTEGER) {
            let added = self.evaluate_or_abandon(&value)?;
            let before = match old {
                Some(old) => self.evaluate_or_abandon(&old)?,
                None => 0,
            };
            return Ok(before.wrapping_add(added).to_string());
        }
        let value = match old {
            Some(mut old) => {
                old.push_str(&value);
                old
            }
            None => value,
        };
        Ok(if attributes.has(Attributes::LOWER) {
            value.to_lowercase()
        } else if attributes.has(Attributes::UPPER) {
            value.to_uppercase()
        } else if attributes.has(Attributes::CAPITAL) {
            capitalize(&value)
        } else {
            value
        })
    }

    /// Assigns one element, making an array of what is not one.
    pub fn assign_element(&mut self, name: &str, subscript: Subscript, value: String, append: bool) -> Done<()> {
        if self.is_reference(name) {
            let (target, inner) = self.resolve(name);
            if let Some(inner) = inner {
                self.complain(format_args!("`{target}[{inner}]': not a valid identifier"));
                return Err(self.discard());
            }
            if target != name {
                return self.assign_element(&target, subscript, value, append);
            }
        }
        if self.refuse_readonly(name) {
            return Err(self.discard());
        }
        let attributes = self.variables.get(name).map(|variable| variable.attributes).unwrap_or_default();
        let (old, value) = if append { (self.get_element(name, &subscript), value) } else { (None, value) };
        let value = if attributes.is_empty() && old.is_none() { value } else { self.with_attributes(attributes, old, value)? };
        self.ensure_array(name, false);
        let variable = self.variables.entry(name);
        variable.attributes = variable.attributes.without(Attributes::UNASSIGNED);
        match (&mut variable.value, subscript) {
            (Value::Indexed(map), Subscript::Number(number)) => {
                let index = if number < 0 { map.last_key_value().map_or(0, |(last, _)| *last + 1) + number } else { number };
                if index < 0 {
                    self.complain(format_args!("{name}[{number}]: bad array subscript"));
                    return Err(self.discard());
                }
                map.insert(index, value);
            }
            (Value::Indexed(map), Subscript::Key(_)) => {
                map.insert(0, value);
            }
            (Value::Associative(map), Subscript::Key(key)) => map.insert(key, value),
            (Value::Associative(map), Subscript::Number(number)) => map.insert(number.to_string(), value),
            _ => {}
        }
        if self.on(SetOption::AllExport) {
            let variable = self.variables.entry(name);
            variable.attributes = variable.attributes.with(Attributes::EXPORT);
        }
        Ok(())
    }

    /// Makes an array of a variable, keeping a scalar as element 0. An existing array of either kind stays.
    pub fn ensure_array(&mut self, name: &str, associative: bool) {
        make_array(self.variables.entry(name), associative);
    }

    /// Performs the effects of an assignment to certain names.
    pub fn assigned(&mut self, name: &str) {
        match name {
            "PATH" => self.hashed.clear(),
            "OPTIND" => self.getopts_at = 0,
            "POSIXLY_CORRECT" => self.options.set(SetOption::Posix, true),
            "HISTSIZE" => self.limit_history(),
            "HISTFILESIZE" => self.limit_history_file(),
            _ => {}
        }
    }

    /// Unsets a variable; `false` after saying that it is readonly.
    pub fn unset_variable(&mut self, name: &str) -> bool {
        if self.variables.get(name).is_some_and(|variable| variable.attributes.has(Attributes::READONLY)) {
            return false;
        }
        self.variables.unset(name);
        match name {
            "PATH" => self.hashed.clear(),
            "OPTIND" => self.getopts_at = 0,
            "POSIXLY_CORRECT" => self.options.set(SetOption::Posix, false),
            _ => {}
        }
        true
    }

    /// Unsets one element of an array.
    pub fn unset_element(&mut self, name: &str, subscript: &Subscript) -> Done<bool> {
        let Some(variable) = self.variables.get_mut(name) else { return Ok(true) };
        match (&mut variable.value, subscript) {
            (Value::Indexed(map), Subscript::Number(number)) => {
                let index = if *number < 0 { map.last_key_value().map_or(0, |(last, _)| *last + 1) + number } else { *number };
                if index < 0 {
                    return Ok(false);
                }
                map.remove(&index);
            }
            (Value::Associative(map), Subscript::Key(key)) => map.remove(key),
            (Value::Scalar(_), Subscript::Number(0)) => {
                self.variables.unset(name);
            }
            _ => {}
        }
        Ok(true)
    }

    /// Sets a variable that the shell keeps for scripts, whatever its attributes.
    pub fn set_plain(&mut self, name: &str, value: impl Into<String>) {
        let variable = self.variables.entry(name);
        variable.value = Value::Scalar(value.into());
    }

    /// Sets an indexed array that the shell keeps for scripts.
    pub fn set_array(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        let map: BTreeMap<i64, String> = (0..).zip(values).collect();
        let variable = self.variables.entry(name);
        variable.attributes = variable.attributes.without(Attributes::UNASSIGNED);
        variable.value = Value::Indexed(map);
    }
}

/// Makes an array of a variable, keeping a scalar as element 0. An existing array of either kind stays.
pub fn make_array(variable: &mut Variable, associative: bool) {
    let old = match &mut variable.value {
        Value::Indexed(_) | Value::Associative(_) => return,
        Value::Scalar(text) => Some(std::mem::take(text)),
        Value::Unset => None,
    };
    variable.value = if associative {
        let mut map = Associative::default();
        if let Some(old) = old {
            map.insert("0".to_owned(), old);
        }
        Value::Associative(map)
    } else {
        Value::Indexed(old.into_iter().map(|text| (0, text)).collect())
    };
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars.as_str().to_lowercase().chars()).collect(),
        None => String::new(),
    }
}
