//! Skillbox's `/v1`: executions, skills, files, sessions and the sandbox of a session, as its own clients expect them.

use axum::Router;

use super::Error;
use super::app::App;

/// Routes that need a key.
pub(super) fn routes() -> Router<App> {
    Router::new()
}

/// Routes that need none: artifacts by their signed addresses.
pub(super) fn open_routes() -> Router<App> {
    Router::new()
}

impl App {
    /// Marks what was under way when the server ended as interrupted.
    pub(super) fn recover(&self) -> Result<(), Error> {
        Ok(())
    }
}
