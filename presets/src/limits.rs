//! The closed list of limits. Adding one is adding a line here and a line to each preset file.

use std::fmt;

use serde::Deserialize;

use crate::{Amount, ByteSize, WallTime};

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $field:ident: $kind:ty, $variant:ident;)*) => {
        /// What one command, and everything it starts, may use.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Limits { $($(#[doc = $doc])+ pub $field: $kind,)* }

        /// Limits that a caller wants tighter than its preset.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Overrides { $($(#[doc = $doc])+ pub $field: Option<$kind>,)* }

        /// The name of a limit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum LimitName { $($(#[doc = $doc])+ $variant,)* }

        impl LimitName {
            /// The name as the preset files spell it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($field),)* }
            }
        }

        impl Limits {
            /// Every limit with its value, in the order of the preset files.
            #[must_use]
            pub fn entries(&self) -> Vec<(LimitName, String)> {
                vec![$((LimitName::$variant, self.$field.to_string()),)*]
            }

            /// Whether every limit is at most what `other` allows.
            #[must_use]
            pub fn within(&self, other: &Self) -> bool {
                true $(&& self.$field <= other.$field)*
            }

            /// These limits with some of them lowered.
            ///
            /// # Errors
            ///
            /// When an override is zero or above what these limits allow.
            pub fn tighten(&self, overrides: &Overrides) -> Result<Self, LimitError> {
                Ok(Self { $($field: tighter(LimitName::$variant, self.$field, overrides.$field)?,)* })
            }

            fn check(self) -> Result<Self, LimitError> {
                $(if self.$field.is_zero() { return Err(LimitError::Zero(LimitName::$variant)); })*
                Ok(self)
            }
        }
    };
}

limits! {
    /// Wasm fuel for the whole process tree.
    compute: u64, Compute;
    /// Wall clock.
    wall: WallTime, Wall;
    /// Linear memories, pipe buffers, captured output and the files of a sandbox in memory together.
    memory: ByteSize, Memory;
    /// Bytes of stdout and stderr together.
    output: ByteSize, Output;
    /// Bytes of all files of the sandbox.
    disk: ByteSize, Disk;
    /// Bytes of one file.
    file: ByteSize, File;
    /// Files, directories and links of the sandbox.
    inodes: u64, Inodes;
    /// Bytes of the names of all files, directories and links, with 64 for each.
    names: ByteSize, Names;
    /// Processes alive at once.
    processes: u32, Processes;
    /// Processes started in all.
    process_starts: u32, ProcessStarts;
    /// Descriptors open in one process.
    descriptors: u32, Descriptors;
    /// Rounds of one shell loop.
    loop_iterations: u64, LoopIterations;
    /// Simple commands the shell executes.
    commands: u64, Commands;
    /// Bytes of the command itself, with arguments and environment.
    command_text: ByteSize, CommandText;
    /// Bytes of one value of the key-value store.
    value: ByteSize, Value;
    /// Bytes of the whole key-value store.
    keys: ByteSize, Keys;
    /// Bytes that all sessions keep between calls.
    sessions: ByteSize, Sessions;
    /// Bytes of the history: commands and their output; the oldest output is dropped first.
    history: ByteSize, History;
    /// Bytes of earlier versions of files, keys and sessions; the oldest versions are dropped first.
    past: ByteSize, Past;
}

/// Why limits are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// A limit is zero.
    #[error("limit `{0}` is 0: give at least 1 (0 does not mean unlimited)")]
    Zero(LimitName),
    /// A caller asked for more than the preset.
    #[error("limit `{name}` can only be tightened: {asked} is more than the {allowed} of the preset")]
    Raised {
        /// Which limit.
        name: LimitName,
        /// What the caller asked for.
        asked: String,
        /// What the preset allows.
        allowed: String,
    },
    /// The file is no preset.
    #[error("not a preset file: {0}")]
    File(String),
}

impl Limits {
    /// Reads the text of a preset file.
    ///
    /// # Errors
    ///
    /// When a limit is missing, unknown, zero, negative or too large.
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        toml::from_str::<Self>(text).map_err(|error| LimitError::File(error.to_string()))?.check()
    }
}

fn tighter<A: Amount>(name: LimitName, allowed: A, asked: Option<A>) -> Result<A, LimitError> {
    match asked {
        None => Ok(allowed),
        Some(asked) if asked.is_zero() => Err(LimitError::Zero(name)),
        Some(asked) if asked > allowed => {
            Err(LimitError::Raised { name, asked: asked.to_string(), allowed: allowed.to_string() })
        }
        Some(asked) => Ok(asked),
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preset;

    // L01–L06, T-DOS-15: an argument can lower a limit and never lift it.
    #[test]
    fn a_caller_can_tighten_but_never_raise_or_switch_off() {
        let limits = Preset::Normal.limits();
        let with = |overrides: Overrides| limits.tighten(&overrides);
        assert_eq!(with(Overrides { commands: Some(5_000), ..Overrides::default() }), Ok(limits.clone()));
        assert_eq!(with(Overrides { commands: Some(0), ..Overrides::default() }), Err(LimitError::Zero(LimitName::Commands)));
        assert_eq!(
            with(Overrides { commands: Some(5_001), ..Overrides::default() }),
            Err(LimitError::Raised { name: LimitName::Commands, asked: "5001".to_owned(), allowed: "5000".to_owned() }),
        );
    }

    fn check_refused(line: &str, with: &str, because: &str) {
        let text = Preset::Strict.source();
        let start = text.find(line).unwrap();
        let end = start + text[start..].find('\n').unwrap();
        let changed = format!("{}{with}{}", &text[..start], &text[end..]);
        let error = Limits::parse(&changed).unwrap_err().to_string();
        assert!(error.contains(because), "{error}");
    }

    #[test]
    fn a_file_with_nonsense_is_refused() {
        check_refused("commands  ", "commands = 0", "limit `commands` is 0");
        check_refused("commands  ", "commands = -1", "invalid value");
        check_refused("commands  ", "", "missing field `commands`");
        check_refused("commands  ", "comands = 5", "unknown field `comands`");
        check_refused("memory  ", "memory = \"0 MB\"", "limit `memory` is 0");
        check_refused("memory  ", "memory = \"99999999999 GB\"", "too large");
    }
}
