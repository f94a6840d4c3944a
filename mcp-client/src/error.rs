//! Errors for the embedding program if an MCP server cannot be used. A tool that fails is not one of them: the guest gets an exception.

/// Why MCP servers cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is invalid.
    #[error("invalid MCP configuration: {0}")]
    Invalid(String),
    /// A server cannot be started or reached, or does not speak the protocol.
    #[error("cannot use the MCP server `{name}`: {reason}")]
    Server {
        /// The server's name in the configuration.
        name: String,
        /// Why not, with the end of what the program wrote to standard error.
        reason: String,
    },
    /// The sandbox refused.
    #[error(transparent)]
    Sandbox(#[from] runtime::Error),
}

impl Error {
    /// Returns a hint.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Invalid(_) => Some(
                "a server is `{\"command\": …, \"args\": […], \"env\": {…}}` or `{\"url\": \"https://…\", \"headers\": {…}}`",
            ),
            Self::Server { .. } => Some("run the server's command, or request its address, by hand: it must speak the protocol"),
            Self::Sandbox(_) => None,
        }
    }
}

impl From<Error> for runtime::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Sandbox(error) => error,
            other => Self::Invalid(other.to_string()),
        }
    }
}
