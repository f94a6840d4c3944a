//! The arguments for access control: `--policy`, `--view`, `policy` and `watch`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use clap::{Args as ClapArgs, Subcommand};
use runtime::{ByteSize, Policy};

use crate::input;

/// Maximum size of a policy file.
const LARGEST: ByteSize = ByteSize(256 << 10);

/// A policy read from a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GivenPolicy(pub(crate) Policy);

impl FromStr for GivenPolicy {
    type Err = anyhow::Error;

    fn from_str(path: &str) -> anyhow::Result<Self> {
        let shown = format!("`{path}`");
        let read = || -> anyhow::Result<String> {
            let bytes = input::bounded(input::regular_file(Path::new(path))?, LARGEST, &shown)?;
            String::from_utf8(bytes).with_context(|| format!("{shown} is not UTF-8"))
        };
        // An error of an option is one line.
        Ok(Self(Policy::parse(&read().map_err(|error| anyhow::anyhow!("{error:#}"))?)?))
    }
}

/// A principal and its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) principal: String,
    pub(crate) labels: Vec<String>,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.principal)?;
        if self.labels.is_empty() { Ok(()) } else { write!(f, ":{}", self.labels.join(",")) }
    }
}

impl FromStr for View {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (principal, labels) = text.split_once(':').unwrap_or((text, ""));
        if principal.is_empty() {
            return Err("missing principal name");
        }
        let labels = labels.split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect();
        Ok(Self { principal: principal.to_owned(), labels })
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db policy set rules.toml   apply the rules to all later commands and tools
  sandlite --db agent.db policy show             print the rules as a policy file
  sandlite --db agent.db policy clear            remove the rules")]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Print the stored policy
    Show {
        /// Use this sandbox file instead of --db
        database: Option<PathBuf>,
    },
    /// Store a policy, replacing the previous one
    Set {
        /// The policy file
        #[arg(value_name = "POLICY")]
        file: GivenPolicy,
        /// Use this sandbox file instead of --db
        database: Option<PathBuf>,
    },
    /// Remove the stored policy
    Clear {
        /// Use this sandbox file instead of --db
        database: Option<PathBuf>,
    },
}

impl PolicyVerb {
    /// Returns the sandbox file named after the verb, if any.
    pub(crate) fn database(&self) -> Option<&PathBuf> {
        match self {
            Self::Show { database } | Self::Set { database, .. } | Self::Clear { database } => database.as_ref(),
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db watch                        print each later change, until Ctrl-C
  sandlite --db agent.db watch /src --json            print one JSON object per line
  sandlite --db agent.db watch --from HEAD~3 --once   print those of the last three versions")]
pub(crate) struct Watch {
    /// Print only changes of this path and below it
    pub(crate) path: Option<String>,
    /// Start after this version instead of the newest; 0 starts with the oldest
    #[arg(long, value_name = "VERSION")]
    pub(crate) from: Option<String>,
    /// Resume where this consumer stopped, and store its position
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub(crate) consumer: Option<String>,
    /// Exit after printing the existing changes
    #[arg(long)]
    pub(crate) once: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_a_name_and_labels() {
        let view = |text: &str| text.parse::<View>().map(|view| (view.principal, view.labels));
        assert_eq!(view("ann"), Ok(("ann".to_owned(), Vec::new())));
        assert_eq!(view("ann:a,b"), Ok(("ann".to_owned(), vec!["a".to_owned(), "b".to_owned()])));
        assert_eq!(view("ann:"), Ok(("ann".to_owned(), Vec::new())));
        assert_eq!("ann:a,,b".parse::<View>().unwrap().to_string(), "ann:a,b");
        assert!(view("").is_err() && view(":a").is_err());
    }
}
