//! Assignments: scalars, elements, whole arrays; and those that hold for one command only.

use std::collections::BTreeMap;

use crate::ast::{ArrayElement, AssignedValue, Assignment};
use crate::shell::{Done, Flow, Shell};
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
                return Err(Flow::Discard(1));
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
                let (name, _) = self.resolve(&assignment.name);
                let subscript = self.checked_subscript(&name, index)?;
                let value = self.expand_assigned(word)?;
                if self.on(SetOption::XTrace) {
                    let shown = format!("{}[{}]", assignment.name, crate::print::word(index));
                    self.trace_assignment(&shown, assignment.append, &value)?;
                }
                self.assign_element(&name, subscript, value, assignment.append)
            }
        }
    }

    fn checked_subscript(&mut self, name: &str, index: &crate::ast::Word) -> Done<Subscript> {
        if index.parts.is_empty() {
            self.complain(format_args!("{name}[]: bad array subscript"));
            return Err(Flow::Discard(1));
        }
        let subscript = self.expand_subscript(name, index)?;
        if subscript == Subscript::Key(String::new()) {
            self.complain(format_args!("{name}[{}]: bad array subscript", crate::print::word(index)));
            return Err(Flow::Discard(1));
        }
        Ok(subscript)
    }

    /// `name=( … )` and `name+=( … )`.
    pub(crate) fn assign_array(&mut self, name: &str, elements: &[ArrayElement], append: bool) -> Done<()> {
        let (name, _) = self.resolve(name);
        if self.refuse_readonly(&name) {
            return Err(Flow::Discard(1));
        }
        let associative = matches!(self.variables.get(&name).map(|variable| &variable.value), Some(Value::Associative(_)));
        if associative { self.assign_associative(&name, elements, append) } else { self.assign_indexed(&name, elements, append) }
    }

    fn assign_indexed(&mut self, name: &str, elements: &[ArrayElement], append: bool) -> Done<()> {
        let mut map: BTreeMap<i64, String> = BTreeMap::new();
        let attributes = self.variables.get(name).map(|variable| variable.attributes).unwrap_or_default();
        if append {
            self.ensure_array(name, false);
            if let Value::Indexed(old) = self.value(name) {
                map = old;
            }
        }
        let mut next = map.last_key_value().map_or(0, |(last, _)| last + 1);
        let plain = attributes.without(Attributes::EXPORT).without(Attributes::UNASSIGNED).is_empty();
        for element in elements {
            match &element.index {
                Some(index) => {
                    let mut at = self.evaluate_word(index)?;
                    if at < 0 {
                        at += map.last_key_value().map_or(0, |(last, _)| last + 1);
                        if at < 0 {
                            self.complain(format_args!(
                                "[{}]={}: bad array subscript",
                                crate::print::word(index),
                                crate::print::word(&element.value)
                            ));
                            continue;
                        }
                    }
                    let value = self.expand_assigned(&element.value)?;
                    let value = self.element_value(plain, attributes, map.get(&at).cloned(), value, element.append)?;
                    map.insert(at, value);
                    next = at + 1;
                }
                None => {
                    let mut values = Vec::new();
                    self.expand_word(&element.value, &mut values)?;
                    for value in values {
                        let value = self.element_value(plain, attributes, None, value, false)?;
                        map.insert(next, value);
                        next += 1;
                    }
                }
            }
        }
        let export = self.on(SetOption::AllExport);
        let variable = self.variables.entry(name);
        variable.value = Value::Indexed(map);
        variable.attributes = variable.attributes.without(Attributes::UNASSIGNED);
        if export {
            variable.attributes = variable.attributes.with(Attributes::EXPORT);
        }
        self.assigned(name);
        Ok(())
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
        let mut map = match (append, self.value(name)) {
            (true, Value::Associative(map)) => map,
            _ => Associative::default(),
        };
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
                let value = self.expand_assigned(&element.value)?;
                let value = self.element_value(plain, attributes, map.get(&key).cloned(), value, element.append)?;
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
            let AssignedValue::Scalar(word) = &assignment.value else { continue };
            if assignment.index.is_some() {
                continue;
            }
            let value = self.expand_assigned(word)?;
            let (name, _) = self.resolve(&assignment.name);
            if self.refuse_readonly(&name) {
                // bash says so and runs the command all the same.
                continue;
            }
            let old = self.variables.get(&name).cloned().unwrap_or_default();
            let old_text = self.get(&name);
            let attributes = old.attributes.without(Attributes::DYNAMIC).without(Attributes::UNASSIGNED);
            let value = self.with_attributes(attributes, if assignment.append { old_text } else { None }, value)?;
            let variable = self.variables.newest_entry(&name);
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
