//! What a sandbox is opened with and a command is run with alike: variables, a directory to start in, tighter limits.

use presets::Overrides;

/// Variables of an environment, each name once.
pub(super) type Variables = Vec<(String, String)>;

/// The part that [`Builder`](super::Builder) and [`Command`](super::Command) have in common.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    pub(super) env: Variables,
    pub(super) cwd: Option<String>,
    pub(super) overrides: Overrides,
}

/// Sets a variable, in place of one of the same name.
pub(super) fn set_variable(env: &mut Variables, name: String, value: String) {
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
            super::surroundings::set_variable(&mut self.surroundings.env, name.into(), value.into());
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
pub(super) use surroundings;
