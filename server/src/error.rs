//! Why a server could not start or go on.

use std::path::PathBuf;

/// A server's own trouble; what goes wrong inside a tool is that tool's answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The async runtime could not be started.
    #[error("cannot start the server's threads")]
    Threads(#[source] std::io::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on `{address}`")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Others than this machine could reach the server, and nobody said under which name.
    #[error("`{0}` can be reached from other machines: say under which host names with `--allow-host`")]
    NotLoopback(std::net::SocketAddr),
    /// The key file cannot be read or written.
    #[error("cannot use the key file `{}`", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The key file is open to others, or its key is too short.
    #[error("the key file `{}` is refused: {reason}", path.display())]
    WeakKey {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
    /// The machine gave no random bytes.
    #[error("no random bytes for a key")]
    Random,
    /// There is no tool of a name that was chosen.
    #[error("unknown tool `{name}`: choose from {known}")]
    UnknownTool {
        /// The name.
        name: String,
        /// Every name, separated by commas.
        known: String,
    },
    /// The data directory of a server cannot be used.
    #[error("cannot use the data directory `{}`", path.display())]
    Data {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The catalog of a server cannot be used.
    #[error("cannot use the server's catalog")]
    Catalog(#[from] rusqlite::Error),
    /// The protocol could not be begun.
    #[error("the client did not begin as the protocol says: {0}")]
    Protocol(String),
}
