//! Additional programs of a sandbox: custom modules, commands of the embedding program, host commands. Each is a file in
//! `/usr/local/bin`, and exists only if the owner added it.
//!
//! Knows nothing about how a program is found and started; `process/program.rs` and `process/run.rs` do that.

pub(crate) mod bridge;
mod command;
mod function;
pub(crate) mod module;

use std::fmt;

use crate::Error;
use crate::host::Prepared;

pub use command::{CommandCall, CommandInput, CommandOutput};
pub(crate) use function::{Function, Work};

/// The directory of these programs.
pub(crate) const DIRECTORY: &str = "/usr/local/bin";

/// Maximum length of a program's name.
const MAX_NAME_BYTES: usize = 64;

/// The programs of one sandbox.
#[derive(Clone, Default)]
pub(crate) struct Programs(Vec<(String, Prepared)>);

impl Programs {
    /// Adds a program.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if its name is invalid or already used.
    pub(crate) fn add(&mut self, name: &str, prepared: Prepared) -> Result<(), Error> {
        check_name(name)?;
        if self.0.iter().any(|(known, _)| known == name) {
            return Err(Error::Invalid(format!("duplicate program `{name}`")));
        }
        self.0.push((name.to_owned(), prepared));
        Ok(())
    }

    /// Adds a function, replacing one with the same name.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if its name is invalid or belongs to a module.
    pub(crate) fn put_command(&mut self, name: &str, prepared: Prepared) -> Result<(), Error> {
        self.0.retain(|(known, other)| known != name || !other.is_function());
        self.add(name, prepared)
    }

    /// Returns their names, in the order of their numbers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the number of the program with this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(known, _)| known == name)
    }

    /// Returns the name and the kind of a program by its number.
    pub(crate) fn get(&self, number: usize) -> Option<(&str, &Prepared)> {
        self.0.get(number).map(|(name, prepared)| (name.as_str(), prepared))
    }
}

/// Checks the name of a program, which is one word of a command line and a file name.
///
/// # Errors
///
/// Returns [`Error::Invalid`] if it is invalid.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+');
    let is_valid = (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_letter) && !name.starts_with(['-', '.']);
    if is_valid {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "invalid program name `{}`: expected 1–{MAX_NAME_BYTES} letters, digits, `_`, `-`, `.` or `+`",
        crate::tools::prefix(name, MAX_NAME_BYTES)
    )))
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word_and_no_path() {
        for name in ["rg", "php8.3", "g++", "a_b-c"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "-x", ".x", "..", "a/b", "a b", "a\n", "é", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
