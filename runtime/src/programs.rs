//! Programs that a sandbox has besides those of every sandbox: modules of its owner, commands of the embedding program, commands of the
//! host. Each is a file of `/usr/local/bin`, and there is none unless the owner asked for it.
//!
//! Knows nothing of how a program is found and started; `process/program.rs` and `process/run.rs` do.

pub(crate) mod bridge;
mod command;
mod function;
pub(crate) mod module;

use std::fmt;

use crate::Error;
use crate::host::Prepared;

pub use command::{CommandCall, CommandInput, CommandOutput};
pub(crate) use function::{Function, Work};

/// The directory that they are in.
pub(crate) const DIRECTORY: &str = "/usr/local/bin";

/// Longest name of a program.
const MAX_NAME_BYTES: usize = 64;

/// The programs of one sandbox.
#[derive(Clone, Default)]
pub(crate) struct Programs(Vec<(String, Prepared)>);

impl Programs {
    /// Adds one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if its name cannot be that of a program, or is taken.
    pub(crate) fn add(&mut self, name: &str, prepared: Prepared) -> Result<(), Error> {
        check_name(name)?;
        if self.0.iter().any(|(known, _)| known == name) {
            return Err(Error::Invalid(format!("duplicate program `{name}`")));
        }
        self.0.push((name.to_owned(), prepared));
        Ok(())
    }

    /// Adds a function, in place of one of the same name.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if its name cannot be that of a program, or is a module's.
    pub(crate) fn put_command(&mut self, name: &str, prepared: Prepared) -> Result<(), Error> {
        self.0.retain(|(known, other)| known != name || other.module().is_some());
        self.add(name, prepared)
    }

    /// Their names, in the order of their numbers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The number of the one with this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(known, _)| known == name)
    }

    /// One by its number: its name, and what it is.
    pub(crate) fn get(&self, number: usize) -> Option<(&str, &Prepared)> {
        self.0.get(number).map(|(name, prepared)| (name.as_str(), prepared))
    }
}

/// Checks the name of a program: it is one word of a command line, and a file's name.
///
/// # Errors
///
/// Returns [`Error::Invalid`] if it cannot be one.
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
