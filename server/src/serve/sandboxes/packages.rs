//! `/v1/sandboxes/{id}/packages` and `…/sessions`: the Python packages of a sandbox, and the shells that continue.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use runtime::{ErrorKind, Packages};
use serde_json::{Value, json};
use std::io::Read as _;

use super::input::{self, Names};
use super::opened::change;
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::problem::Problem;

/// `GET /v1/sandboxes/{id}/packages`.
pub(super) async fn list(State(app): State<App>, caller: Caller, names: Names) -> Result<Json<Value>, Problem> {
    app.blocking(move |app| {
        let (row, slot) = app.opened().find(app, &caller, names.get("id"))?;
        Ok(Json(json!({ "packages": slot.open(app, &row, &caller)?.packages().list()? })))
    })
    .await
}

/// `PUT /v1/sandboxes/{id}/packages/{package}`: the name is that of the wheel's file, which its content must match.
pub(super) async fn install(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (row, slot) = app.find_sandbox(&caller, names.get("id")).await?;
    let most = Packages::WHEEL_MAX.0.min(app.config().body_bytes as u64);
    let wheel = input::spool(&app, &row.tenant, &headers, body, most).await?;
    change(&app, caller, (row, slot), Some(wheel.len()), move |sandbox| {
        let mut bytes = Vec::new();
        wheel.part(0, wheel.len()).read_to_end(&mut bytes)?;
        let installed = sandbox.packages().install_files(&[(names.get("package"), bytes)]);
        let installed = installed.map_err(|(_, error)| match error.kind() {
            // An invalid wheel is an error of the client.
            ErrorKind::Invalid => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_package", error.to_string()),
            _ => error.into(),
        })?;
        Ok((StatusCode::CREATED, Json(json!({ "installed": installed }))).into_response())
    })
    .await
}

/// `DELETE /v1/sandboxes/{id}/packages/{package}`.
pub(super) async fn uninstall(State(app): State<App>, caller: Caller, names: Names) -> Result<StatusCode, Problem> {
    let (row, slot) = app.find_sandbox(&caller, names.get("id")).await?;
    let turn = slot.turn().await?;
    app.blocking(move |app| {
        let _turn = turn;
        let removed = slot.open(app, &row, &caller)?.packages().uninstall(names.get("package"))?;
        slot.touch();
        if removed { Ok(StatusCode::NO_CONTENT) } else { Err(Problem::not_found("package")) }
    })
    .await
}

/// `GET /v1/sandboxes/{id}/sessions`.
pub(super) async fn sessions(State(app): State<App>, caller: Caller, names: Names) -> Result<Json<Value>, Problem> {
    app.blocking(move |app| {
        let (row, slot) = app.opened().find(app, &caller, names.get("id"))?;
        Ok(Json(json!({ "sessions": slot.open(app, &row, &caller)?.sessions()? })))
    })
    .await
}

/// `DELETE /v1/sandboxes/{id}/sessions/{session}`.
pub(super) async fn end_session(State(app): State<App>, caller: Caller, names: Names) -> Result<StatusCode, Problem> {
    let (row, slot) = app.find_sandbox(&caller, names.get("id")).await?;
    let turn = slot.turn().await?;
    app.blocking(move |app| {
        let _turn = turn;
        let sandbox = slot.open(app, &row, &caller)?;
        let removed = sandbox.session(names.get("session"))?.remove()?;
        slot.touch();
        if removed { Ok(StatusCode::NO_CONTENT) } else { Err(Problem::not_found("session")) }
    })
    .await
}
