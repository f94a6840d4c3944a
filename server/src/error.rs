//! Errors that prevent a server from starting or continuing.

use std::path::PathBuf;

/// An error of the server itself; an error inside a tool is the result of that tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The async runtime could not be started.
    #[error("cannot start the server's threads")]
    Threads(#[source] std::io::Error),
    /// The address is not available.
    #[error("cannot listen on `{address}`")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The server would be reachable from other machines, and no host name was allowed.
    #[error("`{0}` is reachable from other machines: name the allowed host names with `--allow-host`")]
    NotLoopback(std::net::SocketAddr),
    /// The key file cannot be read or written.
    #[error("cannot use the key file `{}`", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Others can read the key file, or its key is too short.
    #[error("cannot use the key file `{}`: {reason}", path.display())]
    WeakKey {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// The system returned no random bytes.
    #[error("cannot get random bytes for a key")]
    Random,
    /// A selected tool does not exist.
    #[error("unknown tool `{name}`: choose from {known}")]
    UnknownTool {
        /// The name.
        name: String,
        /// Every name, separated by commas.
        known: String,
    },
    /// A certificate or its key cannot be used.
    #[error("cannot use `{}` for TLS: {reason}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Only one of the certificate and its key is named.
    #[error("cannot use {0}: TLS needs both")]
    HalfTls(&'static str),
    /// Settings contradict each other.
    #[error("invalid settings: {0}")]
    Setting(String),
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
    /// The protocol handshake failed.
    #[error("the client did not start with a valid handshake: {0}")]
    Protocol(String),
}
