//! The words of `sandlite fs`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db fs put ./src /work      a whole directory goes in
  sandlite --db agent.db fs get /work/out.csv    a file comes out
  sandlite --db agent.db fs find --name '*.py'   what there is
  sandlite --db agent.db fs cat notes.txt        /home/user/notes.txt

Paths that do not begin with / are below /home/user, where commands start.")]
pub(crate) struct Files {
    #[command(subcommand)]
    pub(crate) verb: FilesVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FilesVerb {
    /// List a directory
    Ls {
        /// Type, permissions, size and time of each
        #[arg(short)]
        long: bool,
        /// The directory
        #[arg(default_value = ".", hide_default_value = true)]
        path: String,
    },
    /// Print files
    Cat {
        /// The files
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<String>,
    },
    /// Copy a file or a whole directory of this machine into the sandbox
    Put {
        /// The file or directory of this machine; - for standard input
        host: PathBuf,
        /// Its name in the sandbox; an existing directory takes it inside [default: the same name]
        guest: Option<String>,
    },
    /// Copy a file or a whole directory of the sandbox to this machine
    Get {
        /// The file or directory of the sandbox
        guest: String,
        /// Its name on this machine; - for standard output [default: the same name, here]
        host: Option<PathBuf>,
    },
    /// Remove files
    Rm {
        /// Directories too, with all below them
        #[arg(short)]
        recursive: bool,
        /// What to remove
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<String>,
    },
    /// Create directories, and those above them
    Mkdir {
        /// The directories
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<String>,
    },
    /// Rename a file or directory
    Mv {
        /// The old name
        from: String,
        /// The new name; an existing directory takes it inside
        to: String,
    },
    /// Copy a file, or a directory with -r
    Cp {
        /// Directories too, with all below them
        #[arg(short)]
        recursive: bool,
        /// What to copy
        from: String,
        /// Where to; an existing directory takes it inside
        to: String,
    },
    /// Show what a file is
    Stat {
        /// The file
        path: String,
    },
    /// List all paths below a directory
    Find(Find),
    /// How many bytes and files are below a directory
    Du {
        /// The directory
        #[arg(default_value = "/", hide_default_value = true)]
        path: String,
    },
    /// Draw the tree below a directory
    Tree {
        /// The directory
        #[arg(default_value = ".", hide_default_value = true)]
        path: String,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Find {
    /// Where to begin
    #[arg(default_value = ".", hide_default_value = true)]
    pub(crate) path: String,
    /// Only names like this: * any text, ? one character
    #[arg(long, value_name = "PATTERN")]
    pub(crate) name: Option<String>,
    /// Only this kind
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Regular files
    File,
    /// Directories
    Dir,
    /// Symbolic links
    Link,
}
