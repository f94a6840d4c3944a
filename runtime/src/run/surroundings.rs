//! What a sandbox is opened with and a command is run with alike: variables, a directory to start in, tighter limits.

use presets::Overrides;

use crate::Error;
use crate::tools::prefix;

/// How much of a name an error repeats.
const SHOWN_BYTES: usize = 100;

/// Variables of an environment, each name once.
pub(crate) type Variables = Vec<(String, String)>;

/// The part that [`Builder`](crate::Builder) and [`Command`](crate::Command) have in common.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) env: Variables,
    pub(crate) cwd: Option<String>,
    pub(crate) overrides: Overrides,
}

impl Surroundings {
    /// Refuses variables that a guest would see as others, and a directory that would be cut.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a variable's name is empty or has `=` in it, or if there is a zero byte anywhere.
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

/// Refuses a text that a guest would see cut at its first zero byte.
///
/// # Errors
///
/// Returns [`Error::Invalid`] if there is a zero byte in it.
pub(crate) fn no_zero_byte(what: &str, text: &str) -> Result<(), Error> {
    if text.contains('\0') { Err(Error::Invalid(format!("invalid {what}: it contains a zero byte"))) } else { Ok(()) }
}

/// Sets a variable, in place of one of the same name.
pub(crate) fn set_variable(env: &mut Variables, name: String, value: String) {
    env.retain(|(known, _)| *known != name);
    env.push((name, value));
}

/// The setters of a type whose field `surroundings` is a [`Surroundings`]; each is given the sentence that documents it.
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
