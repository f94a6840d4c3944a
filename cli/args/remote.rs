//! The words before the verb that name a sandbox on a server.

use clap::{Args as ClapArgs, Parser};

use super::{Global, Verb};

/// Use a sandbox on a server, with every verb except those about this machine.
#[derive(Debug, Parser)]
#[command(name = "sandlite", version, max_term_width = 100, subcommand_required = true)]
pub(super) struct RemoteArgs {
    #[command(flatten)]
    pub(super) server: Server,
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// The location of the sandbox.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Server")]
pub(crate) struct Server {
    /// The address of the server: http://HOST:PORT or https://HOST
    #[arg(long = "server", value_name = "URL")]
    pub(crate) url: String,
    /// The API key [default: $SANDLITE_KEY]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Trust only the certificate authorities of this PEM file, for https
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<std::path::PathBuf>,
    /// The name or id of the sandbox, created by its name if it is missing
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) sandbox: String,
}

/// Returns whether the words name a server. It comes first, because a script may have an option of the same name.
pub(super) fn is_named(words: &[std::ffi::OsString]) -> bool {
    let first = words.get(1).and_then(|word| word.to_str());
    first.is_some_and(|word| word == "--server" || word.starts_with("--server="))
}
