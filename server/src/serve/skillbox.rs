//! Skillbox's `/v1`: executions, skills, files, sessions and the sandbox of a session, as its own clients expect them.
//!
//! The reading order is that of a first use: [`skills`] (push), [`executions`] (run), [`artifacts`] and [`files`] (fetch what it left),
//! [`sessions`] and [`shell`] (keep working). Rows are the catalog's, bytes are in [`store`]; what is only true while the server runs is in
//! [`State`].

mod admin;
mod artifacts;
mod body;
mod events;
mod executions;
mod files;
mod live;
mod patterns;
mod pieces;
mod retention;
mod sessions;
mod shell;
mod shells;
mod skills;
mod store;
mod versions;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, post, put};

use super::Error;
use super::app::App;

pub(super) use admin::require as require_admin;

/// Why an execution that was running when the server ended has no result.
const INTERRUPTED: &str = "interrupted: the server was stopped";

/// The state of a running server: executions under way, and the open sandboxes of sessions.
#[derive(Default)]
pub(crate) struct State {
    live: live::Live,
    shells: shells::Shells,
}

/// Routes that need a key.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/executions", post(executions::create).get(executions::list))
        .route("/executions/{id}", get(executions::show).delete(executions::cancel))
        .route("/executions/{id}/logs", get(executions::logs))
        .route("/executions/{id}/events", get(events::events))
        .route("/skills", post(skills::push).get(skills::list))
        .route("/skills/from-fields", post(skills::from_fields))
        .route("/skills/validate", post(skills::validate))
        .route("/skills/{name}", delete(skills::remove_all))
        .route("/skills/{name}/files", put(versions::put_file))
        .route("/skills/{name}/files-batch", put(versions::put_files))
        .route("/skills/{name}/versions", get(versions::list))
        .route("/skills/{name}/diff", get(versions::diff))
        .route("/skills/{name}/active", put(versions::activate))
        .route("/skills/{name}/{version}", get(skills::show).delete(skills::remove))
        .route("/skills/{name}/{version}/files", get(versions::files))
        .route("/files", post(files::upload).get(files::list))
        .route("/files/{id}", get(files::show).put(files::update).delete(files::remove))
        .route("/files/{id}/download", get(files::download))
        .route("/files/{id}/versions", get(files::versions))
        .route("/sessions/{session}", delete(sessions::remove))
        .route("/sessions/{session}/files", get(sessions::list))
        .route("/sessions/{session}/files/{*name}", get(sessions::download).delete(sessions::remove_file))
        .route("/sandbox/execute", post(shell::execute))
        .route("/sandbox/read-file", post(shell::read_file))
        .route("/sandbox/write-file", post(shell::write_file))
        .route("/sandbox/list-dir", post(shell::list_dir))
        .route("/sandbox/upload-file", post(shell::upload_file))
        .route("/sandbox/download-file", post(shell::download_file))
        .route("/sandbox/upload-skill", post(shell::upload_skill))
        .route("/sandbox/sync", post(shell::sync))
        .route("/sandbox/{session}", delete(shell::destroy))
        .route("/admin/scanner/stats", get(admin::stats))
        .route("/admin/scanner/patterns", get(admin::patterns).put(admin::set_patterns))
        .route("/admin/scanner/config", get(admin::config).put(admin::set_config))
        .route("/admin/skills/review", get(admin::reviews))
        .route("/admin/skills/{name}/{version}/review", put(admin::review))
        // Each route has its own limit for the size of its body.
        .layer(DefaultBodyLimit::disable())
}

/// Routes that need none: artifacts by their signed addresses.
pub(super) fn open_routes() -> Router<App> {
    Router::new().route(artifacts::ROUTE, get(artifacts::download))
}

/// Periodically removes old results, and stores and closes the sandboxes of idle sessions.
pub(super) async fn expire(app: App) {
    for round in 1u64.. {
        tokio::time::sleep(app.config().sweep).await;
        // A failed round is tried again.
        let idle = app.blocking(|app| {
            shells::expire(app);
            Ok(())
        });
        let _ = idle.await;
        let _ = app.blocking(move |app| retention::sweep(app, round)).await;
    }
}

impl App {
    /// Marks executions that were under way when the server ended as interrupted, and removes expired results.
    pub(super) fn recover(&self) -> Result<(), Error> {
        self.catalog().interrupt_executions(INTERRUPTED)?;
        // The other tenants are served even if the directory of one cannot be read.
        let _ = retention::sweep(self, 0);
        Ok(())
    }
}
