//! Listing of variables and functions.

use crate::expand::describe;
use crate::quote;
use crate::shell::{Done, Shell};
use crate::state::variables::{Attributes, Value};

/// Computed variables that bash lists only once they were used.
const UNLISTED: &[&str] = &[
    "BASHPID",
    "BASH_ARGV0",
    "BASH_COMMAND",
    "BASH_SUBSHELL",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "FUNCNAME",
    "LINENO",
    "PIPESTATUS",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
];

/// Computed variables that are arrays.
const INDEXED: &[&str] = &["BASH_ARGC", "BASH_ARGV", "BASH_LINENO", "BASH_SOURCE", "DIRSTACK", "GROUPS"];
const ASSOCIATIVE: &[&str] = &["BASH_ALIASES", "BASH_CMDS"];

/// The form of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// `declare -x name="value"`.
    Declare,
    /// `name=value`.
    Set,
    /// `export name="value"`.
    Export,
    /// `readonly name="value"`.
    Readonly,
}

impl Shell {
    /// Lists the variables with these attributes.
    pub(super) fn print_declarations(&mut self, wanted: Attributes, indexed: bool, associative: bool, shown: Shown) -> Done {
        let mut names: Vec<String> = self
            .variables
            .iter()
            .filter(|(name, variable)| {
                variable.attributes.has(wanted)
                    && !(variable.attributes.has(Attributes::DYNAMIC) && UNLISTED.contains(&name.as_str()))
                    && (!indexed || matches!(variable.value, Value::Indexed(_)) || INDEXED.contains(&name.as_str()))
                    && (!associative || matches!(variable.value, Value::Associative(_)) || ASSOCIATIVE.contains(&name.as_str()))
            })
            .map(|(name, _)| name.clone())
            .collect();
        if indexed && wanted.is_empty() {
            names.push("FUNCNAME".to_owned());
        }
        names.sort();
        for name in names {
            match name.as_str() {
                // These are filled when they are used.
                "DIRSTACK" | "GROUPS" if indexed => self.write(&format!("declare -a {name}=()\n")),
                "FUNCNAME" if !self.frames.iter().any(|frame| frame.function) => self.write("declare -a FUNCNAME\n"),
                _ => self.print_variable(&name, shown),
            }
        }
        if shown == Shown::Set {
            self.print_functions();
        }
        Ok(0)
    }

    /// Lists all functions.
    pub(super) fn print_functions(&mut self) {
        let mut names: Vec<String> = self.functions.keys().cloned().collect();
        names.sort();
        for name in names {
            self.print_function(&name);
        }
    }

    /// Lists one function as its definition.
    pub(super) fn print_function(&mut self, name: &str) {
        if let Some(entry) = self.functions.get(name) {
            let text = crate::print::function(&entry.function);
            self.write(&format!("{text}\n"));
        }
    }

    /// Lists one variable.
    pub(super) fn print_variable(&mut self, name: &str, shown: Shown) {
        let Some(variable) = self.variables.get(name).cloned() else { return };
        let value = if variable.attributes.has(Attributes::DYNAMIC) {
            match self.computed(name) {
                Some(value) => value,
                None => return,
            }
        } else {
            variable.value.clone()
        };
        let text = match shown {
            Shown::Declare => describe(name, &variable, &value),
            Shown::Set => {
                if matches!(value, Value::Unset) || variable.attributes.has(Attributes::UNASSIGNED) {
                    return;
                }
                match &value {
                    Value::Scalar(text) => format!("{name}={}", quote::listed(text)),
                    other => format!("{name}={}", crate::expand::quote_assignment(other)),
                }
            }
            Shown::Export | Shown::Readonly => {
                let word = if shown == Shown::Export { "export" } else { "readonly" };
                match &value {
                    Value::Scalar(text) => format!("{word} {name}={}", quote::declared(text)),
                    _ => format!("{word} {name}"),
                }
            }
        };
        self.write(&format!("{text}\n"));
    }
}
