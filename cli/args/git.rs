//! The arguments of `sandlite git`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db git export ./work --path /src   create a repository of /src
  sandlite --db agent.db git export agent.bundle         create one file for `git clone`
  sandlite --db agent.db git import ~/project            import its commits as versions")]
pub(crate) struct Git {
    #[command(subcommand)]
    pub(crate) verb: GitVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GitVerb {
    /// Write the versions as commits of a new git repository or bundle
    Export(GitExport),
    /// Import the commits of a git repository or bundle as versions
    Import(GitImport),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Each version that changed files becomes a commit. Its message is the command, with the trailers Exit-Status and Sandlite-Run. \
Checkpoints become tags. The same sandbox always produces the same hashes, so a later export can be fetched into a clone of an earlier one. \
Git has no empty directories and no named pipes, keeps only the executable bit of permissions, and refuses names such as .git. \
The command lists what it leaves out.")]
pub(crate) struct GitExport {
    /// The directory to create, with files and .git; NAME.git creates a bare repository, NAME.bundle a bundle
    #[arg(value_name = "DIR|FILE.bundle")]
    pub(crate) to: PathBuf,
    /// The directory that becomes the root of the repository
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(crate) path: String,
    /// Write a bare repository without a working tree
    #[arg(long)]
    pub(crate) bare: bool,
    /// Make one commit for each checkpoint, with its message, instead of one for each version
    #[arg(long)]
    pub(crate) checkpoints: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Imports the first-parent history, oldest commit first. Author, date and message are stored in the history, and tags become checkpoints. \
Everything is checked before anything is changed: a damaged repository, submodules, SHA-256 names, alternates and files that \
would be overwritten are errors. If the process is killed, the commits imported by then remain: restore the directory to the \
checkpoint before-git-import-HASH, which a complete import removes.")]
pub(crate) struct GitImport {
    /// The repository or bundle
    #[arg(value_name = "DIR|FILE.bundle")]
    pub(crate) from: PathBuf,
    /// The branch, tag or commit whose history to import [default: HEAD]
    #[arg(long = "ref", value_name = "REF")]
    pub(crate) reference: Option<String>,
    /// The directory to import the files into [default: the home directory]
    #[arg(long, value_name = "PATH", default_value = ".", hide_default_value = true)]
    pub(crate) into: String,
    /// Import only the newest N commits
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) depth: Option<u64>,
}
