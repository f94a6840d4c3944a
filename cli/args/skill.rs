//! The arguments of `skill`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use skills::Template;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite skill new word-counter                             create a working skill
  sandlite skill lint word-counter --security                 check it, list every finding
  sandlite skill push word-counter                            store it in the catalog
  sandlite skill run word-counter --input '{\"text\": \"a b\"}'   run it on this input
  sandlite skill add git:../skills//pdf@v2                    store skills of a repository")]
pub(crate) struct Skill {
    /// Directory of the catalog, or a sandbox file that contains one [default: $SANDLITE_SKILLS, else the user's own]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) skills: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) verb: SkillVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillVerb {
    /// Store a version of a skill in the catalog
    Push(SkillPush),
    /// Push the skills of a git repository on this machine
    Add(SkillAdd),
    /// List skills
    List {
        /// List only skills whose name or description contains TEXT
        #[arg(value_name = "TEXT")]
        search: Option<String>,
    },
    /// Show a skill
    Show {
        /// NAME, or NAME@VERSION
        #[arg(value_name = "SKILL")]
        name: String,
        /// Print only its instructions
        #[arg(long)]
        instructions: bool,
    },
    /// List a skill's files, or print one
    Files {
        /// NAME, or NAME@VERSION
        #[arg(value_name = "SKILL")]
        name: String,
        /// The path of a file to print
        path: Option<String>,
    },
    /// Compare two versions of a skill; exits with 1 if they differ
    Diff {
        /// NAME@VERSION
        #[arg(value_name = "SKILL")]
        from: String,
        /// VERSION, or NAME@VERSION [default: the active version]
        #[arg(value_name = "VERSION")]
        to: Option<String>,
    },
    /// List the versions of a skill, newest first
    Versions {
        /// Name of the skill
        name: String,
    },
    /// Make a version the default of its skill
    Activate {
        /// NAME@VERSION
        #[arg(value_name = "SKILL")]
        name: String,
    },
    /// Delete a version, or a skill with all its versions
    Delete {
        /// NAME, or NAME@VERSION
        #[arg(value_name = "SKILL")]
        name: String,
    },
    /// Write a skill as a zip file
    Package {
        /// The skill's directory
        #[arg(value_name = "DIR")]
        path: PathBuf,
        /// The file to write [default: NAME-VERSION.zip]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Create a working skill to start from
    New {
        /// Name of the skill and of its directory
        name: String,
        /// Language of the script
        #[arg(long, value_enum, default_value_t = NewLanguage::Python, value_name = "LANG")]
        lang: NewLanguage,
    },
    /// Print the problems of a skill; exits with 1 if it would be rejected
    Lint {
        /// A directory, a zip file or a SKILL.md
        #[arg(value_name = "DIR")]
        path: PathBuf,
        /// Also scan for prompt injection, hidden text, secrets, suspicious addresses and similar problems
        #[arg(long)]
        security: bool,
    },
    /// Run a skill: JSON in, JSON out
    Run(SkillRun),
}

/// The language of a new skill's script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NewLanguage {
    Python,
    Bash,
    None,
}

impl From<NewLanguage> for Template {
    fn from(language: NewLanguage) -> Self {
        match language {
            NewLanguage::Python => Self::Python,
            NewLanguage::Bash => Self::Bash,
            NewLanguage::None => Self::Instructions,
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SkillPush {
    /// A directory, a zip file or a SKILL.md
    #[arg(value_name = "DIR|ZIP")]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) options: PushOptions,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SkillAdd {
    /// git:PATH[//DIR][@REF]: a repository on this machine, a directory in it, and a commit, tag or branch
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) options: PushOptions,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PushOptions {
    /// Replace the content of an existing version
    #[arg(long)]
    pub(crate) replace: bool,
    /// Also look in DIR for the wheels in its requirements.txt
    #[arg(long, value_name = "DIR")]
    pub(crate) find_links: Vec<PathBuf>,
    /// Use only wheels from the directories given with --find-links
    #[arg(long)]
    pub(crate) offline: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SkillRun {
    /// NAME, or NAME@VERSION
    #[arg(value_name = "SKILL")]
    pub(crate) name: String,
    /// The input: JSON text, @FILE, or - for standard input [default: {}]
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// Copy a file from this machine to /sandbox/input/NAME
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,
    /// Set an environment variable for the skill
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::run::variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Continue with the files left by earlier runs of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Copy the output files to DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) download: Option<PathBuf>,
}
