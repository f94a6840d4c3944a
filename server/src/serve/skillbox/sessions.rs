//! `/v1/sessions`: the files that runs of one session share, by name.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::json;

use super::files::{self, FileInfo};
use super::{shells, store};
use crate::serve::app::{App, Tenant};
use crate::serve::auth::Caller;
use crate::serve::catalog::{FileRow, new_id};
use crate::serve::path::Path;
use crate::serve::problem::Problem;

/// Longest name of a session.
const NAME_BYTES: usize = 255;
/// The delay after which a client without room may retry, in seconds.
const LATER: u64 = 60;

/// Refuses a text that cannot be the name of a session. No path is made from it.
pub(super) fn require_name(name: &str) -> Result<(), Problem> {
    if (1..=NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Problem::bad_request("invalid session: expected 1 to 255 bytes without control characters"))
}

/// Rejects a new session if the tenant has the maximum number of sessions.
pub(super) fn require_place(app: &App, tenant: &str, session: &str) -> Result<(), Problem> {
    let most = app.allowed(tenant)?.sandboxes;
    if app.catalog().has_session(tenant, session)? {
        return Ok(());
    }
    let used = u64::try_from(app.catalog().count_sessions(tenant)?).unwrap_or(0);
    if used < most {
        return Ok(());
    }
    let message = format!("the tenant has {used} sessions: delete those that are not needed");
    let details = json!({ "quota": "sessions", "used": used, "limit": most, "retry_after_seconds": LATER });
    Err(Problem::limited(message, LATER).with_details(details))
}

/// Begins to use a session; returns its files.
pub(super) fn begin(app: &App, tenant: &Tenant, session: &str) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    require_place(app, &tenant.name, session)?;
    app.catalog().use_session(&tenant.name, session)?;
    let rows = app.catalog().session_files(&tenant.name, session)?;
    let (size, most) = (rows.iter().map(|row| row.size_bytes).fold(0, i64::saturating_add), app.config().limits.disk.0);
    // They are in memory until a sandbox has them, which has no room for more.
    if u64::try_from(size).unwrap_or(0) > most {
        let message =
            format!("the files of the session have {size} bytes, and {most} are allowed: delete those that are not needed");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
    }
    rows.into_iter().map(|row| Ok((row.name, store::read(tenant, &row.id)?))).collect()
}

/// Keeps files in a session, in place of those of the same names. Of two with one name the last counts.
pub(super) fn keep(app: &App, tenant: &Tenant, session: &str, files: Vec<(String, Vec<u8>)>) -> Result<(), Problem> {
    app.catalog().use_session(&tenant.name, session)?;
    store::require_room(app, &tenant.name, files.iter().map(|(_, content)| content.len() as u64).sum())?;
    let mut rows = Vec::with_capacity(files.len());
    // A name that a script chose may be invalid elsewhere.
    for (name, content) in files.into_iter().filter(|(name, _)| files::is_name(name)) {
        let id = new_id();
        let size = store::store(tenant, &id, |to| to.write_all(&content))?;
        rows.push(FileRow::new(id, &tenant.name, &name, files::content_type(&name), size));
    }
    let replaced = app.catalog().keep_in_session(&tenant.name, session, &rows)?;
    store::remove(tenant, &replaced);
    Ok(())
}

/// The files of a session; none if the session does not exist yet.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(session): Path<String>,
) -> Result<Json<Vec<FileInfo>>, Problem> {
    require_name(&session)?;
    let rows = app.blocking(move |app| Ok(app.catalog().session_files(&caller.tenant, &session)?)).await?;
    Ok(Json(rows.into_iter().map(FileInfo::from).collect()))
}

fn find(app: &App, tenant: &str, session: &str, name: &str) -> Result<FileRow, Problem> {
    require(app, tenant, session)?;
    let found = app.catalog().session_files(tenant, session)?.into_iter().find(|row| row.name == name);
    found.ok_or_else(|| Problem::not_found_named("file", name))
}

fn require(app: &App, tenant: &str, session: &str) -> Result<(), Problem> {
    require_name(session)?;
    match app.catalog().has_session(tenant, session)? {
        true => Ok(()),
        false => Err(Problem::not_found("session")),
    }
}

pub(super) async fn download(
    State(app): State<App>,
    caller: Caller,
    Path((session, name)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let row = app.blocking(move |app| find(app, &caller.tenant, &session, &name)).await?;
    files::hand_out(&app, row).await
}

pub(super) async fn remove_file(
    State(app): State<App>,
    caller: Caller,
    Path((session, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    app.blocking(move |app| {
        let row = find(app, &caller.tenant, &session, &name)?;
        app.catalog().remove_file(&caller.tenant, &row.id)?;
        store::remove(&*app.tenant(&caller.tenant)?, &[row.id]);
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Removes a session with its files and its sandbox.
pub(super) async fn remove(State(app): State<App>, caller: Caller, Path(session): Path<String>) -> Result<StatusCode, Problem> {
    app.blocking(move |app| {
        require(app, &caller.tenant, &session)?;
        let tenant = app.tenant(&caller.tenant)?;
        shells::discard(app, &tenant, &session)?;
        let ids = app.catalog().remove_session(&caller.tenant, &session)?.ok_or_else(|| Problem::not_found("session"))?;
        store::remove(&tenant, &ids);
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}
