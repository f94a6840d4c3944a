//! The complete list of limits. To add one, add a line here and a line to each preset file.

use std::fmt;

use serde::Deserialize;

use crate::{Amount, ByteSize, Preset, WallTime};

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $field:ident: $kind:ty, $variant:ident;)*) => {
        /// The resources that one command, and everything it starts, may use.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Limits { $($(#[doc = $doc])+ pub $field: $kind,)* }

        /// Limits that a caller wants to tighten.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Overrides { $($(#[doc = $doc])+ pub $field: Option<$kind>,)* }

        /// A custom limits file: a base preset, and limits that differ from it.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Custom { base: Option<String>, $($field: Option<$kind>,)* }

        impl Custom {
            fn limits(self) -> Result<Limits, LimitError> {
                let Some(base) = self.base else {
                    return Limits { $($field: self.$field.ok_or(LimitError::Missing(LimitName::$variant))?,)* }.check();
                };
                let base: Preset = base.parse().map_err(|unknown: crate::UnknownPreset| LimitError::File(unknown.to_string()))?;
                base.limits().replace(&Overrides { $($field: self.$field,)* })
            }
        }

        /// The name of a limit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum LimitName { $($(#[doc = $doc])+ $variant,)* }

        impl LimitName {
            /// Returns the name as spelled in the preset files.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($field),)* }
            }
        }

        impl Limits {
            /// Returns every limit with its value, in the order of the preset files.
            #[must_use]
            pub fn entries(&self) -> Vec<(LimitName, String)> {
                vec![$((LimitName::$variant, self.$field.to_string()),)*]
            }

            /// Returns every limit with its value as a number, in the order of the preset files.
            #[must_use]
            pub fn values(&self) -> Vec<(LimitName, LimitValue)> {
                vec![$((LimitName::$variant, self.$field.into()),)*]
            }

            /// Returns whether no limit exceeds that of `other`.
            #[must_use]
            pub fn within(&self, other: &Self) -> bool {
                true $(&& self.$field <= other.$field)*
            }

            /// Returns the tighter one of each limit of both.
            #[must_use]
            pub fn tighter_of(&self, other: &Self) -> Self {
                Self { $($field: self.$field.min(other.$field),)* }
            }

            /// Returns these limits with some of them lowered.
            ///
            /// # Errors
            ///
            /// Returns [`LimitError::Zero`] if an override is zero, and [`LimitError::Raised`] if it exceeds these limits.
            pub fn tighten(&self, overrides: &Overrides) -> Result<Self, LimitError> {
                Ok(Self { $($field: tighter(LimitName::$variant, self.$field, overrides.$field)?,)* })
            }

            /// Returns these limits with some of them replaced, in either direction. For the owner of a sandbox, never for a
            /// caller.
            ///
            /// # Errors
            ///
            /// Returns [`LimitError::Zero`] if a limit would be zero.
            pub fn replace(&self, overrides: &Overrides) -> Result<Self, LimitError> {
                Self { $($field: overrides.$field.unwrap_or(self.$field),)* }.check()
            }

            /// Returns the limits if none of them is zero.
            ///
            /// # Errors
            ///
            /// Returns [`LimitError::Zero`] if a limit is zero, except for `past`: without a past, no earlier version is kept.
            pub fn check(self) -> Result<Self, LimitError> {
                $(if self.$field.is_zero() && LimitName::$variant != LimitName::Past {
                    return Err(LimitError::Zero(LimitName::$variant));
                })*
                Ok(self)
            }
        }
    };
}

limits! {
    /// Wasm fuel for the whole process tree.
    compute: u64, Compute;
    /// Wall-clock time.
    wall: WallTime, Wall;
    /// Linear memories, pipe buffers, captured output and the files of a sandbox in memory together.
    memory: ByteSize, Memory;
    /// Bytes of stdout and stderr together.
    output: ByteSize, Output;
    /// Bytes of all files of the sandbox.
    disk: ByteSize, Disk;
    /// Bytes of one file.
    file: ByteSize, File;
    /// Files, directories and links in the sandbox.
    inodes: u64, Inodes;
    /// Bytes of the names of all files, directories and links, plus 64 for each.
    names: ByteSize, Names;
    /// Processes running at once.
    processes: u32, Processes;
    /// Processes started in total.
    process_starts: u32, ProcessStarts;
    /// Open descriptors in one process.
    descriptors: u32, Descriptors;
    /// Iterations of one shell loop.
    loop_iterations: u64, LoopIterations;
    /// Simple commands executed by the shell.
    commands: u64, Commands;
    /// Bytes of the command, including arguments and environment.
    command_text: ByteSize, CommandText;
    /// Bytes of one value in the key-value store.
    value: ByteSize, Value;
    /// Bytes of the whole key-value store.
    keys: ByteSize, Keys;
    /// Bytes that all sessions store between calls.
    sessions: ByteSize, Sessions;
    /// Bytes of the history: commands and their output; the oldest output is dropped first.
    history: ByteSize, History;
    /// Bytes of earlier versions of files, keys and sessions; the oldest versions are dropped first.
    past: ByteSize, Past;
}

/// The value of a limit as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitValue {
    /// A count.
    Count(u64),
    /// Bytes.
    Bytes(u64),
    /// Wall-clock time.
    Milliseconds(u64),
}

impl From<u64> for LimitValue {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for LimitValue {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<ByteSize> for LimitValue {
    fn from(size: ByteSize) -> Self {
        Self::Bytes(size.0)
    }
}

impl From<WallTime> for LimitValue {
    fn from(time: WallTime) -> Self {
        Self::Milliseconds(u64::try_from(time.0.as_millis()).unwrap_or(u64::MAX))
    }
}

/// The reason limits are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// A limit is zero.
    #[error("limit `{0}` is 0: expected at least 1 (0 does not mean unlimited)")]
    Zero(LimitName),
    /// A caller requested more than the preset allows.
    #[error("limit `{name}` can only be tightened: {asked} exceeds the {allowed} of the preset")]
    Raised {
        /// The limit.
        name: LimitName,
        /// The requested value.
        asked: String,
        /// The value of the preset.
        allowed: String,
    },
    /// The text of a preset file is invalid.
    #[error("invalid preset file: {0}")]
    File(String),
    /// A file without a base must set every limit.
    #[error("missing limit `{0}`: set it, or set a base preset (`base = \"normal\"`)")]
    Missing(LimitName),
}

impl Limits {
    /// Parses a preset file.
    ///
    /// # Errors
    ///
    /// Returns [`LimitError`] if a limit is missing, unknown, zero, negative or too large.
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        toml::from_str::<Self>(text).map_err(|error| LimitError::File(error.to_string()))?.check()
    }

    /// Parses a custom limits file: the limits of a preset file, and optionally `base`, the preset that provides all other
    /// limits. An owner may also set limits that exceed those of every preset.
    ///
    /// ```
    /// use sandlite_presets::{Limits, Preset};
    ///
    /// let limits = Limits::parse_custom("base = \"normal\"\nmemory = \"4 GB\"")?;
    /// assert_eq!((limits.memory.0, limits.wall), (4 << 30, Preset::Normal.limits().wall));
    /// # Ok::<(), sandlite_presets::LimitError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`LimitError`] if a limit is unknown, zero, negative or too large, if `base` is not a preset, or if there is
    /// no base and a limit is missing.
    pub fn parse_custom(text: &str) -> Result<Self, LimitError> {
        toml::from_str::<Custom>(text).map_err(|error| LimitError::File(error.to_string()))?.limits()
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

    // L01–L06, T-DOS-15: an argument can lower a limit but never raise it.
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

    #[test]
    fn an_owner_can_set_any_limit() {
        let limits = Limits::parse_custom("base = \"permissive\"\nwall = \"9 h\"\ncommands = 1").unwrap();
        assert_eq!((limits.wall.to_string(), limits.commands), ("32400 s".to_owned(), 1));
        assert_eq!(limits.memory, Preset::Permissive.limits().memory);
        assert_eq!(Limits::parse_custom(Preset::Strict.source()), Ok(Preset::Strict.limits()));
        assert!(limits.tighten(&Overrides { commands: Some(2), ..Overrides::default() }).is_err());
    }

    #[test]
    fn an_owners_file_is_read_strictly() {
        let refused = |text: &str| Limits::parse_custom(text).unwrap_err().to_string();
        let unknown = refused("base = \"normal\"\nmemmory = \"1 GB\"");
        assert!(unknown.contains("unknown field `memmory`") && unknown.contains("`base`, `compute`, `wall`"), "{unknown}");
        assert!(refused("base = \"lax\"").contains("choose `strict`, `normal` or `permissive`"));
        assert_eq!(
            refused("base = \"normal\"\nwall = \"0 s\""),
            "limit `wall` is 0: expected at least 1 (0 does not mean unlimited)"
        );
        assert_eq!(refused("compute = 5"), "missing limit `wall`: set it, or set a base preset (`base = \"normal\"`)");
        assert!(refused("base = \"normal\"\nwall = 5").contains("expected a string"));
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
    fn an_invalid_file_is_rejected() {
        check_refused("commands  ", "commands = 0", "limit `commands` is 0");
        check_refused("commands  ", "commands = -1", "invalid value");
        check_refused("commands  ", "", "missing field `commands`");
        check_refused("commands  ", "comands = 5", "unknown field `comands`");
        check_refused("memory  ", "memory = \"0 MB\"", "limit `memory` is 0");
        let without = crate::Limits { past: crate::ByteSize(0), ..Preset::Strict.limits() };
        assert_eq!(without.clone().check(), Ok(without));
        check_refused("memory  ", "memory = \"99999999999 GB\"", "too large");
    }
}
