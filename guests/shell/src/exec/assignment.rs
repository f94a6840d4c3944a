//! Assignments: scalars, elements, whole arrays; and those that hold for one command only.

use std::collections::BTreeMap;

use crate::ast::{ArrayElement, AssignedValue, Assignment, Part};
use crate::shell::{Done, Shell};
use crate::state::assign::{Subscript, make_array};
use crate::state::associative::Associative;
use crate::state::options::SetOption;
use crate::state::variables::{Attributes, Value};

impl Shell {
    /// Does an assignment that stands alone.
    pub(crate) fn perform_assignment(&mut self, assignment: &Assignment) -> Done<()> {
        let AssignedValue::Scalar(word) = &assignment.value else {
            let AssignedValue::Array(elements) = &assignment.value else { return Ok(()) };
            if assignment.index.is_some() {
                self.complain(format_args!("{}: cannot assign list to array member", shown_target(assignment)));
                return Err(self.discard());
            }
            if self.on(SetOption::XTrace) {
                let text = crate::shown::assignment(assignment);
                self.trace_text(&text)?;
            }
            return self.assign_array(&assignment.name, elements, assignment.append);
        };
        match &assignment.index {
            None => {
                let value = self.expand_assigned(word)?;
                if self.on(SetOption::XTrace) {
                    self.trace_assignment(&assignment.name, assignment.append, &value)?;
                }
                self.assign(&assignment.name, value, assignment.append)
            }
            Some(index) => {
                let (name, inner) = self.resolve(&assignment.name);
                if let Some(inner) = inner {
                    self.complain(format_args!("`{name}[{inner}]': not a valid identifier"));
                    return Err(self.discard());
                }
                let value = self.expand_assigned(word)?;
                let subscript = self.checked_subscript(&name, index)?;
                if self.on(SetOption::XTrace) {
                    let shown = format!("{}[{}]", assignment.name, crate::print::word(index));
                    self.trace_assignment(&shown, assignment.append, &value)?;
                }
                self.assign_element(&name, subscript, value, assignment.append)
            }
        }
    }

    /// Returns whether a negative subscript counts back beyond the first element.
    pub(crate) fn is_before_start(&self, name: &str, subscript: &Subscript) -> bool {
        matches!(*subscript, Subscript::Number(number) if number < 0 && self.array_end(name) + number < 0)
    }

    fn checked_subscript(&mut self, name: &str, index: &crate::ast::Word) -> Done<Subscript> {
        if index.parts.is_empty() {
            self.complain(format_args!("{name}[]: bad array subscript"));
            return Err(self.discard());
        }
        let whole = matches!(index.parts.as_slice(), [Part::Literal(text)] if matches!(text.as_str(), "*" | "@"));
        if whole && !matches!(self.variables.get(name).map(|variable| &variable.value), Some(Value::Associative(_))) {
            self.complain(format_args!("{name}[{}]: bad array subscript", crate::print::word(index)));
            return Err(self.discard());
        }
        let subscript = self.expand_subscript(name, index)?;
        if self.is_before_start(name, &subscript) {
            self.complain(format_args!("{name}[{}]: bad array subscript", crate::print::word(index)));
            return Err(self.discard());
        }
        if subscript == Subscript::Key(String::new()) {
            self.complain(format_args!("{name}[{}]: bad array subscript", crate::print::word(index)));
            return Err(self.discard());
        }
        Ok(subscript)
    }

    /// `name=( … )` and `name+=( … )`.
    pub(crate) fn assign_array(&mut self, name: &str, elements: &[ArrayElement], append: bool) -> Done<()> {
        let reference = self.is_reference(name);
        let (name, inner) = self.resolve(name);
        if let Some(inner) = inner {
            self.complain(format_args!("`{name}[{inner}]': not a valid identifier"));
            return Err(self.discard());
        }
        if self.refuse_readonly(&name) {
            return Err(self.discard());
        }
        if reference && self.is_reference(&name) {
            self.complain(format_args!("warning: {name}: removing nameref attribute"));
            let variable = self.variables.entry(&name);
            variable.attributes = variable.attributes.without(Attributes::NAMEREF);
        }
        let associative = matches!(self.variables.get(&name).map(|variable| &variable.value), Some(Value::Associative(_)));
        if associative { self.assign_associative(&name, elements, append) } else { self.assign_indexed(&name, elements, append) }
    }

    /// Assigns values, all expanded before the first is assigned; subscripts are evaluated one by one as they are used.
    fn assign_indexed(&mut self, name: &str, elements: &[ArrayElement], append: bool) -> Done<()> {
        enum Ready<'a> {
            At(&'a ArrayElement, &'a crate::ast::Word, String),
            Next(String),
        }
        let mut ready = Vec::with_capacity(elements.len());
        for element in elements {
            let mut values = Vec::new();
            match &element.index {
                Some(index) if !crate::brace::may_expand(&element.value) || !self.on(SetOption::BraceExpand) => {
                    ready.push(Ready::At(element, index, self.expand_assigned(&element.value)?));
                }
                // With braces in its value it is a word like any other.
                Some(index) => {
                    let operator = if element.append { "]+=" } else { "]=" };
                    let mut word = crate::ast::Word { parts: vec![crate::ast::Part::Literal("[".to_owned())] };
                    word.parts.extend(index.parts.iter().cloned());
                    word.parts.push(crate::ast::Part::Literal(operator.to_owned()));
                    word.parts.extend(element.value.parts.iter().cloned());
                    self.expand_word(&word, &mut values)?;
                }
                None => self.expand_word(&element.value, &mut values)?,
            }
            ready.extend(values.into_iter().map(Ready::Next));
        }
        let attributes = self.variables.get(name).map(|variable| variable.attributes).unwrap_or_default();
        let plain = attributes.without(Attributes::EXPORT).without(Attributes::UNASSIGNED).is_empty();
        if append {
            self.ensure_array(name, false);
        } else {
            self.variables.entry(name).value = Value::Indexed(BTreeMap::new());
        }
        let export = self.on(SetOption::AllExport);
        let variable = self.variables.entry(name);
        variable.attributes = variable.attributes.without(Attributes::UNASSIGNED);
        if export {
            variable.attributes = variable.attributes.with(Attributes::EXPORT);
        }
        let mut next = self.array_end(name);
        for item in ready {
            match item {
                Ready::At(element, index, value) => {
                    let shown = match index.parts.as_slice() {
                        [] => Some(("", "bad array subscript")),
                        [Part::Literal(text)] if text == "*" => Some(("*", "cannot assign to non-numeric index")),
                        [Part::Literal(text)] if text == "@" => Some(("@", "cannot assign to non-numeric index")),
                        _ => None,
                    };
                    if let Some((index, wrong)) = shown {
                        self.complain(format_args!("[{index}]={}: {wrong}", crate::print::word(&element.value)));
                        continue;
                    }
                    let mut at = self.evaluate_subscript(index)?;
                    if at < 0 {
                        at += self.array_end(name);
                        if at < 0 {
                            let (index, value) = (crate::print::word(index), crate::print::word(&element.value));
                            self.complain(format_args!("[{index}]={value}: bad array subscript"));
                            continue;
                        }
                    }
                    let old = if element.append { self.get_element(name, &Subscript::Number(at)) } else { None };
                    let value = self.element_value(plain, attributes, old, value, element.append)?;
                    self.put_element(name, at, value);
                    next = at + 1;
                }
                Ready::Next(value) => {
                    let value = self.element_value(plain, attributes, None, value, false)?;
                    self.put_element(name, next, value);
                    next += 1;
                }
            }
        }
        self.assigned(name);
        Ok(())
    }

    fn array_end(&self, name: &str) -> i64 {
        match self.variables.get(name).map(|variable| &variable.value) {
            Some(Value::Indexed(map)) => map.last_key_value().map_or(0, |(last, _)| last + 1),
            _ => 0,
        }
    }

    fn put_element(&mut self, name: &str, at: i64, value: String) {
        if let Value::Indexed(map) = &mut self.variables.entry(name).value {
            map.insert(at, value);
        }
    }

    fn element_value(
        &mut self,
        plain: bool,
        attributes: Attributes,
        old: Option<String>,
        value: String,
        append: bool,
    ) -> Done<String> {
        let old = if append { old } else { None };
        match (plain, old) {
            (true, None) => Ok(value),
            (_, old) => self.with_attributes(attributes, old, value),
        }
    }

    fn assign_associative(&mut self, name: &str, elements: &[ArrayElement], append: bool) -> Done<()> {
        let attributes = self.variables.get(name).map(|variable| variable.attributes).unwrap_or_default();
        let plain = attributes.without(Attributes::EXPORT).without(Attributes::UNASSIGNED).is_empty();
        let old = match self.value(name) {
            Value::Associative(map) => map,
            _ => Associative::default(),
        };
        let mut map = if append { old.clone() } else { Associative::default() };
        let with_keys = elements.iter().any(|element| element.index.is_some());
        if with_keys {
            for element in elements {
                let Some(index) = &element.index else {
                    let shown = self.expand_string(&element.value)?;
                    self.complain(format_args!("{name}: {shown}: must use subscript when assigning associative array"));
                    continue;
                };
                let key = self.expand_string(index)?;
                if key.is_empty() {
                    self.complain(format_args!(
                        "[{}]={}: bad array subscript",
                        crate::print::word(index),
                        crate::print::word(&element.value)
                    ));
                    continue;
                }
                // Tildes stand for themselves here, and what is appended to is the value from before.
                let value = self.expand_untilded(&element.value)?;
                let before = if append { map.get(&key) } else { old.get(&key) }.cloned();
                let value = self.element_value(plain, attributes, before, value, element.append)?;
                map.insert(key, value);
            }
        } else {
            // `m=(key value key value)`.
            let mut texts = Vec::new();
            for element in elements {
                self.expand_word(&element.value, &mut texts)?;
            }
            let mut texts = texts.into_iter();
            while let Some(key) = texts.next() {
                map.insert(key, texts.next().unwrap_or_default());
            }
        }
        let variable = self.variables.entry(name);
        variable.value = Value::Associative(map);
        variable.attributes = variable.attributes.without(Attributes::UNASSIGNED);
        Ok(())
    }

    /// `A=1 command`: exported, in the newest scope.
    pub(super) fn assign_temporary(&mut self, assignments: &[Assignment]) -> Done<()> {
        for assignment in assignments {
            if assignment.index.is_some() {
                continue;
            }
            let value = match &assignment.value {
                AssignedValue::Scalar(word) => self.expand_assigned(word)?,
                // There are no arrays in the environment: its text goes there.
                list @ AssignedValue::Array(_) => crate::shown::assigned(list),
            };
            let (name, _) = self.resolve(&assignment.name);
            if self.refuse_readonly(&name) {
                // bash reports it and still runs the command.
                continue;
            }
            let old = self.variables.get(&name).cloned().unwrap_or_default();
            let old_text = self.get(&name);
            let attributes = old.attributes.without(Attributes::DYNAMIC).without(Attributes::UNASSIGNED);
            let value = self.with_attributes(attributes, if assignment.append { old_text } else { None }, value)?;
            let variable = self.variables.newest_entry(&name);
            variable.temporary = true;
            variable.attributes = attributes.with(Attributes::EXPORT);
            variable.value = Value::Scalar(value);
            self.assigned(&name);
        }
        Ok(())
    }

    /// Makes an array of the right kind for `declare -a` and `-A`.
    pub(crate) fn declare_array(&mut self, name: &str, associative: bool) {
        let variable = self.variables.entry(name);
        if matches!(variable.value, Value::Unset) {
            variable.attributes = variable.attributes.with(Attributes::UNASSIGNED);
        }
        make_array(variable, associative);
    }
}

fn shown_target(assignment: &Assignment) -> String {
    match &assignment.index {
        Some(index) => format!("{}[{}]", assignment.name, crate::print::word(index)),
        None => assignment.name.clone(),
    }
}
