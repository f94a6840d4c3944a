//! The three named presets, each a TOML file in this crate.

use std::fmt;
use std::str::FromStr;

use crate::Limits;

/// A named set of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Preset {
    /// For one short step of a completely untrusted agent.
    Strict,
    /// The default.
    #[default]
    Normal,
    /// For long work that you started yourself.
    Permissive,
}

impl Preset {
    /// All presets, strictest first.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Normal, Self::Permissive];

    /// Returns the name as spelled on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Normal => "normal",
            Self::Permissive => "permissive",
        }
    }

    /// Returns the text of the preset file, including comments.
    #[must_use]
    pub fn source(self) -> &'static str {
        match self {
            Self::Strict => include_str!("../strict.toml"),
            Self::Normal => include_str!("../normal.toml"),
            Self::Permissive => include_str!("../permissive.toml"),
        }
    }

    /// Returns the limits.
    ///
    /// # Panics
    ///
    /// Never: the files are part of the crate, and a test reads each of them.
    #[must_use]
    pub fn limits(self) -> Limits {
        #[expect(clippy::expect_used, reason = "the files are compiled in and a test reads each of them")]
        Limits::parse(self.source()).expect("the preset files are valid")
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown preset name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown preset `{0}`: choose `strict`, `normal` or `permissive`")]
pub struct UnknownPreset(String);

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        Self::ALL
            .into_iter()
            .find(|preset| preset.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownPreset(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_preset_is_within_the_next() {
        let [strict, normal, permissive] = Preset::ALL.map(Preset::limits);
        assert!(strict.within(&normal) && normal.within(&permissive));
        assert!(!normal.within(&strict) && !permissive.within(&normal));
    }

    #[test]
    fn names_are_read_in_any_case() {
        assert_eq!("STRICT".parse(), Ok(Preset::Strict));
        assert_eq!("lax".parse::<Preset>(), Err(UnknownPreset("lax".to_owned())));
    }
}
