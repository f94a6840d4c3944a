//! The common settings of sandboxes and commands: variables, a working directory, lower limits.

use presets::Overrides;

use crate::Error;
use crate::tools::prefix;

/// Maximum length of a name quoted in an error.
const SHOWN_BYTES: usize = 100;

/// Environment variables with unique names.
pub(crate) type Variables = Vec<(String, String)>;

/// The common part of [`Builder`](crate::Builder) and [`Command`](crate::Command).
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) env: Variables,
    pub(crate) cwd: Option<String>,
    pub(crate) overrides: Overrides,
}

impl Surroundings {
    /// Rejects variables that a guest would see differently, and a directory that would be truncated.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a variable's name is empty or contains `=`, or if there is a zero byte.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (name, value) in &self.env {
            let reason = match () {
                () if name.is_empty() => "its name is empty",
                () if name.contains('=') => "its name contains `=`",
                () if name.contains('\0') || value.contains('\0') => "it contains a zero byte",
                () => continue,
            };
            return Err(Error::Invalid(format!("invalid environment variable `{}`: {reason}", prefix(name, SHOWN_BYTES))));
        }
        no_zero_byte("directory", self.cwd.as_deref().unwrap_or_default())
    }
}

/// Rejects a text that a guest would see truncated at its first zero byte.
///
/// # Errors
///
/// Returns [`Error::Invalid`] if it contains a zero byte.
pub(crate) fn no_zero_byte(what: &str, text: &str) -> Result<(), Error> {
    if text.contains('\0') { Err(Error::Invalid(format!("invalid {what}: it contains a zero byte"))) } else { Ok(()) }
}

/// Sets a variable, replacing one with the same name.
pub(crate) fn set_variable(env: &mut Variables, name: String, value: String) {
    env.retain(|(known, _)| *known != name);
    env.push((name, value));
}

/// Defines the setters of a type whose field `surroundings` is a [`Surroundings`]; each receives its documentation.
macro_rules! surroundings {
    ($(#[$limits:meta])* limits, $(#[$env:meta])* env, $(#[$cwd:meta])* cwd) => {
        $(#[$limits])*
        #[must_use]
        pub fn limits(mut self, overrides: presets::Overrides) -> Self {
            self.surroundings.overrides = overrides;
            self
        }

        $(#[$env])*
        #[must_use]
        pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            $crate::run::set_variable(&mut self.surroundings.env, name.into(), value.into());
            self
        }

        $(#[$cwd])*
        #[must_use]
        pub fn cwd(mut self, directory: impl Into<String>) -> Self {
            self.surroundings.cwd = Some(directory.into());
            self
        }
    };
}
pub(crate) use surroundings;
