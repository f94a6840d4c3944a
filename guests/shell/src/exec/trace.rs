//! `set -x`.

use super::Item;
use crate::ast::{AssignedValue, Assignment};
use crate::quote;
use crate::shell::{Done, Shell};
use crate::state::options::SetOption;

impl Shell {
    /// Writes one line of trace.
    pub(crate) fn trace_text(&mut self, text: &str) -> Done<()> {
        let text_of_prompt = self.get("PS4").unwrap_or_default();
        // The prompt's own commands are not traced.
        let (status, substitution) = (self.status, self.substitution_status);
        self.options.set(SetOption::XTrace, false);
        let prompt = self.expand_prompt(&text_of_prompt);
        self.options.set(SetOption::XTrace, true);
        (self.status, self.substitution_status) = (status, substitution);
        let prompt = match prompt {
            Err(crate::shell::Flow::Discard(_)) => self.decode_prompt(&text_of_prompt),
            other => other?,
        };
        let repeated: String = match prompt.chars().next() {
            Some(first) => first.to_string().repeat(self.trace_depth()),
            None => String::new(),
        };
        let line = format!("{repeated}{prompt}{text}\n");
        match self.get("BASH_XTRACEFD").and_then(|text| text.parse::<u32>().ok()).filter(|fd| sys::is_open(*fd)) {
            Some(fd) => {
                self.output.flush();
                let _ = sys::write_all(fd, &crate::bytes::encode(&line));
            }
            None => self.write_error(&line),
        }
        Ok(())
    }

    fn trace_depth(&self) -> usize {
        self.trace_level as usize
    }

    pub(super) fn trace_command(&mut self, assignments: &[Assignment], args: &[String]) -> Done<()> {
        for assignment in assignments {
            if let AssignedValue::Scalar(word) = &assignment.value {
                let value = self.expand_assigned(word)?;
                self.trace_assignment(&assignment.name, assignment.append, &value)?;
            }
        }
        let words: Vec<_> = args.iter().map(|arg| quote::traced(arg)).collect();
        self.trace_text(&words.join(" "))
    }

    pub(super) fn trace_assignment(&mut self, name: &str, append: bool, value: &str) -> Done<()> {
        let operator = if append { "+=" } else { "=" };
        let value = if value.is_empty() { String::new() } else { quote::traced(value).into_owned() };
        self.trace_text(&format!("{name}{operator}{value}"))
    }

    /// Returns `name=('value' …)`, expanded, as declaring builtins trace it.
    fn traced_array(&mut self, assignment: &Assignment) -> Done<String> {
        let AssignedValue::Array(elements) = &assignment.value else { return Ok(crate::shown::assignment(assignment)) };
        let mut shown = Vec::with_capacity(elements.len());
        for element in elements {
            match &element.index {
                Some(index) => {
                    let (index, value) = (self.expand_string(index)?, self.expand_assigned(&element.value)?);
                    let operator = if element.append { "+=" } else { "=" };
                    shown.push(format!("[{}]{operator}{}", quote::single(&index), quote::single(&value)));
                }
                None => {
                    let mut values = Vec::new();
                    self.expand_word(&element.value, &mut values)?;
                    shown.extend(values.iter().map(|value| quote::single(value)));
                }
            }
        }
        let operator = if assignment.append { "+=" } else { "=" };
        Ok(format!("{}{operator}({})", assignment.name, shown.join(" ")))
    }

    pub(super) fn trace_items(&mut self, name: &str, items: &[Item<'_>]) -> Done<()> {
        let mut words = Vec::with_capacity(items.len());
        let mut after = Vec::new();
        for item in items {
            words.push(match item {
                Item::Text(text) => quote::traced(text).into_owned(),
                Item::Value(assignment, value) => {
                    let operator = if assignment.append { "+=" } else { "=" };
                    if matches!(name, "export" | "readonly") {
                        after.push((assignment.name.clone(), assignment.append, value.clone()));
                    }
                    match &assignment.index {
                        None => quote::traced(&format!("{}{operator}{value}", assignment.name)).into_owned(),
                        Some(index) => {
                            format!("{}[{}]{operator}{}", assignment.name, crate::print::word(index), quote::traced(value))
                        }
                    }
                }
                Item::Assignment(assignment) => {
                    let text = self.traced_array(assignment)?;
                    self.trace_text(&text)?;
                    assignment.name.clone()
                }
            });
        }
        self.trace_text(&words.join(" "))?;
        for (name, append, value) in after {
            self.trace_assignment(&name, append, &value)?;
        }
        Ok(())
    }
}
