//! The arguments of `sandlite fs`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db fs put ./src /work      copy a directory in
  sandlite --db agent.db fs get /work/out.csv    copy a file out
  sandlite --db agent.db fs find --name '*.py'   list the Python files
  sandlite --db agent.db fs cat notes.txt        print /home/user/notes.txt

Paths that do not begin with / are below /home/user, where commands start.")]
pub(crate) struct Files {
    #[command(subcommand)]
    pub(crate) verb: FilesVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FilesVerb {
    /// List a directory
    Ls {
        /// Show type, permissions, size and time of each entry
        #[arg(short)]
        long: bool,
        /// The directory [default: /home/user]
        #[arg(default_value = ".", hide_default_value = true)]
        path: String,
    },
    /// Print files
    Cat {
        /// The files
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<String>,
    },
    /// Copy a file or directory from this machine into the sandbox
    Put {
        /// The file or directory on this machine; - reads standard input
        host: PathBuf,
        /// Destination in the sandbox; copied into it if it is an existing directory [default: the same name]
        guest: Option<String>,
    },
    /// Copy a file or directory from the sandbox to this machine
    Get {
        /// The file or directory in the sandbox
        guest: String,
        /// Destination on this machine; - writes to standard output [default: the same name in the current directory]
        host: Option<PathBuf>,
    },
    /// Remove files
    Rm {
        /// Also remove directories and their contents
        #[arg(short)]
        recursive: bool,
        /// The files to remove
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<String>,
    },
    /// Create directories, including missing parents
    Mkdir {
        /// The directories
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<String>,
    },
    /// Rename a file or directory
    Mv {
        /// The old name
        from: String,
        /// The new name; moved into it if it is an existing directory
        to: String,
    },
    /// Copy a file, or a directory with -r
    Cp {
        /// Also copy directories and their contents
        #[arg(short)]
        recursive: bool,
        /// The file or directory to copy
        from: String,
        /// Destination; copied into it if it is an existing directory
        to: String,
    },
    /// Show the metadata of a file
    Stat {
        /// The file
        path: String,
    },
    /// List all paths below a directory
    Find(Find),
    /// Count the bytes and files below a directory
    Du {
        /// The directory
        #[arg(default_value = "/")]
        path: String,
    },
    /// Draw the tree below a directory
    Tree {
        /// The directory [default: /home/user]
        #[arg(default_value = ".", hide_default_value = true)]
        path: String,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Find {
    /// The directory to start in [default: /home/user]
    #[arg(default_value = ".", hide_default_value = true)]
    pub(crate) path: String,
    /// List only names that match this pattern: * any text, ? one character
    #[arg(long, value_name = "PATTERN")]
    pub(crate) name: Option<String>,
    /// List only entries of this type
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
