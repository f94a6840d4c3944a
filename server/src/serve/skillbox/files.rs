//! `/v1/files`: files with versions, for input of runs and from their output.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};

use super::body::{self, Upload};
use super::store;
use crate::serve::app::{App, Tenant};
use crate::serve::auth::Caller;
use crate::serve::catalog::{FileFilter, FileRow, new_id};
use crate::serve::clock::rfc3339;
use crate::serve::path::Path;
use crate::serve::problem::Problem;
use crate::serve::sandboxes::Download;

/// Rows of a page, and the most that can be asked for.
const PAGE: i64 = 50;
const MOST_ROWS: i64 = 200;
/// Longest name, and longest type.
const NAME_BYTES: usize = 255;
const TYPE_BYTES: usize = 127;

/// A file as Skillbox's clients expect it.
#[derive(Serialize)]
pub(super) struct FileInfo {
    id: String,
    tenant_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<String>,
    name: String,
    content_type: String,
    size_bytes: i64,
    s3_key: String,
    version: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<String>,
    created_at: String,
    updated_at: String,
}

impl From<FileRow> for FileInfo {
    fn from(row: FileRow) -> Self {
        Self {
            s3_key: format!("files/{}", row.id),
            id: row.id,
            tenant_id: row.tenant,
            session_id: row.session,
            execution_id: row.execution,
            name: row.name,
            content_type: row.content_type,
            size_bytes: row.size_bytes,
            version: row.version,
            parent_id: row.parent,
            created_at: rfc3339(row.created_at),
            updated_at: rfc3339(row.updated_at),
        }
    }
}

/// The type of a file by its name: for clients to know, never for browsers to act on.
pub(super) fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).as_deref() {
        Some("json") => "application/json",
        Some("csv") => "text/csv",
        Some("txt" | "log") => "text/plain",
        Some("html" | "htm") => "text/html",
        Some("xml") => "application/xml",
        Some("pdf") => "application/pdf",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("svg") => "image/svg+xml",
        Some("zip") => "application/zip",
        Some("tar") => "application/x-tar",
        Some("gz" | "tgz") => "application/gzip",
        Some("py") => "text/x-python",
        Some("js") => "application/javascript",
        Some("yaml" | "yml") => "application/x-yaml",
        Some("md") => "text/markdown",
        _ => "application/octet-stream",
    }
}

/// Whether a text can be the name of a file: a relative path that stays below (T-NET-07).
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES
        && !name.contains('\\')
        && !name.chars().any(char::is_control)
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn require_name(name: &str) -> Result<(), Problem> {
    match is_name(name) {
        true => Ok(()),
        false => Err(Problem::bad_request(format!("invalid file name `{}`", runtime::actions::quoted(name)))),
    }
}

// The bytes of an upload, stored, with the row that is to name them.
fn stored(app: &App, tenant: &Tenant, upload: &Upload, name: &str) -> Result<FileRow, Problem> {
    store::require_room(app, &tenant.name, upload.bytes.len() as u64)?;
    let is_plain = |text: &&str| {
        !text.is_empty() && text.len() <= TYPE_BYTES && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
    };
    let kind = upload.content_type.as_deref().filter(is_plain).unwrap_or_else(|| content_type(name));
    let id = new_id();
    let size = store::store(tenant, &id, |to| to.write_all(&upload.bytes))?;
    Ok(FileRow::new(id, &tenant.name, name, kind, size))
}

// A form with a file; Skillbox returns 400 for one that is too large.
async fn form(app: &App, request: Request) -> Result<body::Form, Problem> {
    let form = body::form(request, app.config().skill_bytes).await;
    form.map_err(|problem| match problem.status {
        StatusCode::PAYLOAD_TOO_LARGE => Problem { status: StatusCode::BAD_REQUEST, ..problem },
        StatusCode::BAD_REQUEST => body::no_file(),
        _ => problem,
    })
}

pub(super) async fn upload(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<FileInfo>), Problem> {
    let mut form = form(&app, request).await?;
    let upload = form.file()?;
    let name = form.text("name").unwrap_or(&upload.name).to_owned();
    if name.is_empty() {
        return Err(Problem::bad_request("file name is required"));
    }
    require_name(&name)?;
    let row = app.blocking(move |app| {
        let row = stored(app, &*app.tenant(&caller.tenant)?, &upload, &name)?;
        app.catalog().add_files(std::slice::from_ref(&row))?;
        Ok(row)
    });
    Ok((StatusCode::CREATED, Json(row.await?.into())))
}

/// A new version under a new id; the old one stays.
pub(super) async fn update(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<FileInfo>, Problem> {
    let old = find(&app, &caller, id.clone()).await?;
    let upload = form(&app, request).await?.file()?;
    let row = app.blocking(move |app| {
        let tenant = app.tenant(&caller.tenant)?;
        let new = stored(app, &tenant, &upload, &old.name)?;
        let bytes = new.id.clone();
        let added = app.catalog().add_version(&caller.tenant, &id, new)?;
        added.ok_or_else(|| {
            store::remove(&tenant, &[bytes]);
            Problem::not_found("file")
        })
    });
    Ok(Json(row.await?.into()))
}

#[derive(Deserialize)]
pub(super) struct Listing {
    limit: Option<String>,
    offset: Option<String>,
    session_id: Option<String>,
    execution_id: Option<String>,
}

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Result<Query<Listing>, QueryRejection>,
) -> Result<Json<Vec<FileInfo>>, Problem> {
    let query = body::query(query)?;
    let named = |text: Option<String>| text.filter(|text| !text.is_empty());
    let filter = FileFilter {
        session: named(query.session_id),
        execution: named(query.execution_id),
        limit: body::number(query.limit.as_deref()).filter(|limit| *limit > 0).unwrap_or(PAGE).min(MOST_ROWS),
        offset: body::number(query.offset.as_deref()).unwrap_or(0).max(0),
    };
    let rows = app.blocking(move |app| Ok(app.catalog().files(&caller.tenant, &filter)?)).await?;
    Ok(Json(rows.into_iter().map(FileInfo::from).collect()))
}

async fn find(app: &App, caller: &Caller, id: String) -> Result<FileRow, Problem> {
    let tenant = caller.tenant.clone();
    app.blocking(move |app| app.catalog().file(&tenant, &id)?.ok_or_else(|| Problem::not_found("file"))).await
}

pub(super) async fn show(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Json<FileInfo>, Problem> {
    Ok(Json(find(&app, &caller, id).await?.into()))
}

pub(super) async fn versions(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<FileInfo>>, Problem> {
    let rows = app.blocking(move |app| Ok(app.catalog().file_versions(&caller.tenant, &id)?)).await?;
    if rows.is_empty() {
        return Err(Problem::not_found("file"));
    }
    Ok(Json(rows.into_iter().map(FileInfo::from).collect()))
}

pub(super) async fn download(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Response, Problem> {
    let row = find(&app, &caller, id).await?;
    hand_out(&app, row).await
}

/// An answer with the bytes of a file.
pub(super) async fn hand_out(app: &App, row: FileRow) -> Result<Response, Problem> {
    let (tenant, id) = (row.tenant.clone(), row.id.clone());
    let counted = Download::begin(app, &tenant)?;
    let file = app.blocking(move |app| store::open(&*app.tenant(&tenant)?, &id)).await?;
    let bytes = counted.body(file, u64::try_from(row.size_bytes).unwrap_or(0));
    let mut response = body::download(&row.name, bytes);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(row.size_bytes));
    Ok(response)
}

pub(super) async fn remove(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    app.blocking(move |app| match app.catalog().remove_file(&caller.tenant, &id)? {
        true => {
            store::remove(&*app.tenant(&caller.tenant)?, &[id]);
            Ok(StatusCode::NO_CONTENT)
        }
        false => Err(Problem::not_found("file")),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_stays_below() {
        for name in ["a.txt", "nested/deep.txt", "über uns.html", "..a"] {
            assert!(require_name(name).is_ok(), "{name}");
        }
        for name in ["", "/etc/passwd", "../a", "a/../b", "a//b", "a\\b", "a\nb", "./a", &"x".repeat(256)] {
            assert!(require_name(name).is_err(), "{name}");
        }
    }
}
