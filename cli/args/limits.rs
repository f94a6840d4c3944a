//! `--preset`: a preset by name, or a file with custom limits.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anyhow::Context as _;
use runtime::{Builder, ByteSize, LimitName, Limits, Preset};

use crate::input;

/// Maximum size of a limits file.
const LARGEST: ByteSize = ByteSize(64 << 10);

/// The limits for commands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Chosen {
    /// A built-in preset.
    Preset(Preset),
    /// Limits from a file, which may exceed those of every preset.
    File { name: String, limits: Box<Limits> },
}

impl Chosen {
    /// Returns every limit.
    pub(crate) fn limits(&self) -> Limits {
        match self {
            Self::Preset(preset) => preset.limits(),
            Self::File { limits, .. } => (**limits).clone(),
        }
    }

    /// Applies these limits to the sandbox.
    pub(crate) fn give(&self, builder: Builder) -> Builder {
        match self {
            Self::Preset(preset) => builder.preset(*preset),
            Self::File { limits, .. } => builder.custom_limits((**limits).clone()),
        }
    }

    /// Returns every limit with its value and reason, as written in the file.
    pub(crate) fn source(&self) -> String {
        match self {
            Self::Preset(preset) => preset.source().trim_end().to_owned(),
            Self::File { limits, .. } => {
                let line = |(name, value): (LimitName, String)| format!("{:<17} = {value}", name.as_str());
                limits.entries().into_iter().map(line).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preset(preset) => preset.fmt(f),
            Self::File { name, .. } => f.write_str(name),
        }
    }
}

impl FromStr for Chosen {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if !text.contains('/') && !text.ends_with(".toml") {
            let preset =
                text.parse::<Preset>().map_err(|unknown| anyhow::anyhow!("{unknown}, or a file such as `./mine.toml`"))?;
            return Ok(Self::Preset(preset));
        }
        let shown = format!("`{text}`");
        let content = input::bounded(input::regular_file(Path::new(text)).map_err(flat)?, LARGEST, &shown).map_err(flat)?;
        let content = String::from_utf8(content).with_context(|| format!("{shown} is not UTF-8")).map_err(flat)?;
        Ok(Self::File { name: text.to_owned(), limits: Box::new(Limits::parse_custom(&content)?) })
    }
}

// An error of an option is one line.
fn flat(error: anyhow::Error) -> anyhow::Error {
    anyhow::anyhow!("{error:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_preset_and_a_path_is_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        std::fs::write(&path, "base = \"strict\"\nwall = \"2 h\"\n").unwrap();
        let chosen: Chosen = path.to_str().unwrap().parse().unwrap();
        assert_eq!(chosen.limits().wall.to_string(), "7200 s");
        assert!(chosen.source().contains("wall              = 7200 s\n"), "{}", chosen.source());
        assert_eq!("Strict".parse::<Chosen>().unwrap(), Chosen::Preset(Preset::Strict));
        let refused = |text: &str| text.parse::<Chosen>().unwrap_err().to_string();
        assert!(refused("lax").ends_with("`permissive`, or a file such as `./mine.toml`"));
        assert_eq!(refused("missing.toml"), "cannot read `missing.toml`: No such file or directory (os error 2)");
    }
}
