//! Whole sandboxes as files: `GET …/export` and `POST /v1/sandboxes/import`.

#![expect(clippy::disallowed_methods, reason = "a snapshot leaves and arrives as a file of the server's own")]

use std::fs::File;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use runtime::{Export, Preset};
use serde::Deserialize;

use super::files::{Download, as_download};
use super::input::{self, Names};
use super::lifecycle::{add, created, in_part, new_row};
use super::opened;
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::catalog::new_id;
use crate::serve::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    history: Option<bool>,
    versions: Option<bool>,
}

/// `GET /v1/sandboxes/{id}/export`.
pub(super) async fn export(State(app): State<App>, caller: Caller, names: Names, uri: Uri) -> Result<Response, Problem> {
    let choice: Choice = input::query(&uri)?;
    let (row, slot) = app.find_sandbox(&caller, names.get("id")).await?;
    let id = row.id.clone();
    let download = Download::begin(&app, &row.tenant)?;
    let (file, length) = app
        .run(&caller.clone(), runtime::Cancel::default(), move |app| {
            let sandbox = slot.open(app, &row, &caller)?;
            let path = app.tenant(&row.tenant)?.directory("outgoing")?.join(format!("{}.db", new_id()));
            let export = Export { history: choice.history.unwrap_or(true), ..Export::default() };
            let exported = match choice.versions {
                Some(true) => sandbox.export_with_versions(&path, export),
                _ => sandbox.export_with(&path, export),
            };
            let exported = exported.map_err(in_part);
            let opened = exported.and_then(|()| Ok(File::open(&path)?));
            // The open file has no name, so it is removed once it was sent.
            opened::remove(&path)?;
            let file = opened?;
            let length = file.metadata()?.len();
            Ok((file, length))
        })
        .await?;
    let body = download.body(file, length);
    let mut response = body.into_response();
    as_download(&mut response, &format!("{id}.db"), "application/vnd.sqlite3");
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    name: Option<String>,
    preset: Option<String>,
    ttl_seconds: Option<u64>,
}

/// `POST /v1/sandboxes/import`.
pub(super) async fn import(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let new: New = input::query(&uri)?;
    let preset = new.preset.unwrap_or_else(|| "normal".to_owned());
    preset.parse::<Preset>().map_err(|_| Problem::bad_request("invalid `preset`: expected strict, normal or permissive"))?;
    let row = new_row(&caller, new.name, preset, new.ttl_seconds)?;
    let snapshot = input::spool(&app, &row.tenant, &headers, body, app.config().body_bytes as u64).await?;
    if snapshot.len() == 0 {
        return Err(Problem::bad_request("the body is empty: send the file of a sandbox"));
    }
    app.run(&caller, runtime::Cancel::default(), move |app| {
        app.require_room(&row.tenant, snapshot.len())?;
        let path = app.tenant(&row.tenant)?.directory("incoming")?.join(format!("{}.db", new_id()));
        let written =
            File::create_new(&path).and_then(|mut file| std::io::copy(&mut snapshot.part(0, snapshot.len()), &mut file));
        let made = written.map_err(Problem::from).and_then(|_| {
            add(app, &row, |database| opened::builder(app, &row)?.database(database).import(&path).open().map_err(refused))
        });
        opened::remove(&path)?;
        made?;
        app.opened().stored.forget(&row.tenant);
        created(app, &row)
    })
    .await
}

// An invalid file is an error of the client that sent it.
fn refused(error: runtime::Error) -> Problem {
    use runtime::ErrorKind as Kind;
    match error.kind() {
        Kind::Foreign | Kind::Invalid | Kind::Internal | Kind::Interrupted => {
            let text = "the file was refused: it is not a sandbox, is damaged, or was made by a newer version";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_snapshot", text)
        }
        _ => error.into(),
    }
}
