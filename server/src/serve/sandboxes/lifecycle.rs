//! Sandboxes come and go: create, list, look at, change, fork and delete them.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use runtime::{Policy, Preset, Sandbox};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::input::{self, Names};
use super::opened::{self, Opened, file};
use super::quota::too_many_sandboxes;
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::catalog::{SandboxRow, Taken, new_id};
use crate::serve::clock::{now, rfc3339};
use crate::serve::problem::Problem;

/// Longest name of a sandbox.
const LONGEST_NAME: usize = 128;
/// Longest time to live: ten years.
const LONGEST_TTL: u64 = 10 * 366 * 86_400;
/// Rows of a page.
const PAGE: usize = 50;
/// Most rows of a page.
const MOST_ROWS: usize = 200;
/// The preset of a sandbox without one.
const NORMAL: &str = "normal";

/// The content of a file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or {\"base64\": …} as the content of a file")]
enum Content {
    Text(String),
    Bytes(Base64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Base64 {
    base64: String,
}

/// The settings of a new sandbox.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
struct Create {
    name: Option<String>,
    preset: Option<String>,
    files: BTreeMap<String, Content>,
    base: Option<String>,
    snapshot: Option<String>,
    policy: Option<String>,
    ttl_seconds: Option<u64>,
}

/// Returns a sandbox as a client sees it.
pub(super) fn describe(app: &App, row: &SandboxRow) -> Result<Value, Problem> {
    Ok(json!({
        "id": row.id,
        "name": row.name,
        "preset": row.preset,
        "created_at": rfc3339(row.created_at),
        "used_at": rfc3339(row.used_at),
        "expires_at": row.expires_at.map(rfc3339),
        "bytes": opened::size(&file(app, &row.tenant, &row.id)?),
    }))
}

/// 201, with where it is.
pub(super) fn created(app: &App, row: &SandboxRow) -> Result<Response, Problem> {
    let mut response = (StatusCode::CREATED, Json(describe(app, row)?)).into_response();
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/sandboxes/{}", row.id)) {
        response.headers_mut().insert(http::header::LOCATION, place);
    }
    Ok(response)
}

pub(super) fn check_name(name: Option<&str>) -> Result<(), Problem> {
    let is_fine = |name: &str| (1..=LONGEST_NAME).contains(&name.len()) && !name.chars().any(char::is_control);
    match name {
        Some(name) if !is_fine(name) => Err(Problem::bad_request("invalid `name`: expected 1 to 128 printable bytes")),
        _ => Ok(()),
    }
}

fn end_of(ttl: Option<u64>) -> Result<Option<i64>, Problem> {
    let Some(seconds) = ttl else { return Ok(None) };
    if !(1..=LONGEST_TTL).contains(&seconds) {
        return Err(Problem::bad_request("invalid `ttl_seconds`: expected 1 second to ten years"));
    }
    Ok(Some(now().saturating_add(i64::try_from(seconds).unwrap_or(0).saturating_mul(1000))))
}

/// Returns a row for a new sandbox of a caller.
pub(super) fn new_row(caller: &Caller, name: Option<String>, preset: String, ttl: Option<u64>) -> Result<SandboxRow, Problem> {
    check_name(name.as_deref())?;
    let at = now();
    let (id, tenant, expires_at) = (new_id(), caller.tenant.clone(), end_of(ttl)?);
    Ok(SandboxRow { id, tenant, name, preset, base: None, created_at: at, used_at: at, expires_at })
}

/// Adds a sandbox whose file `make` makes. Nothing is left of one that cannot be made.
pub(super) fn add(
    app: &App,
    row: &SandboxRow,
    make: impl FnOnce(&std::path::Path) -> Result<Sandbox, Problem>,
) -> Result<(), Problem> {
    app.require_room(&row.tenant, 0)?;
    let path = file(app, &row.tenant, &row.id)?;
    let most = app.allowed(&row.tenant)?.sandboxes;
    // The file before the row: a row without a file would be an empty sandbox, a file without a row is swept.
    let made = make(&path).map(drop).and_then(|()| match app.catalog().add_sandbox(row, most)? {
        Ok(()) => Ok(()),
        Err(Taken::Name) => Err(Problem::conflict("the tenant has a sandbox of this name")),
        Err(Taken::Quota) => Err(too_many_sandboxes(most)),
        Err(Taken::Missing) => Err(Problem::not_found("sandbox")),
    });
    if made.is_err() {
        opened::remove(&path)?;
    }
    made
}

fn decoded(files: BTreeMap<String, Content>) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    let decode = |(path, content): (String, Content)| {
        let path = runtime::absolute(runtime::HOME, &path);
        match content {
            Content::Text(text) => Ok((path, text.into_bytes())),
            Content::Bytes(Base64 { base64 }) => match STANDARD.decode(base64) {
                Ok(bytes) => Ok((path, bytes)),
                Err(_) => Err(Problem::bad_request(format!("invalid base64 of the file `{}`", runtime::actions::quoted(&path)))),
            },
        }
    };
    files.into_iter().map(decode).collect()
}

/// `POST /v1/sandboxes`.
pub(super) async fn create(State(app): State<App>, caller: Caller, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let create: Create = input::json(&app, &headers, body).await?;
    if create.base.is_some() && create.snapshot.is_some() {
        return Err(Problem::bad_request("choose `base` or `snapshot`: a sandbox lies over one or is a copy of one"));
    }
    app.blocking(move |app| {
        let policy = create.policy.as_deref().map(Policy::parse).transpose();
        let policy = policy.map_err(|error| Problem::bad_request(format!("invalid `policy`: {error}")))?;
        let files = decoded(create.files)?;
        let preset = create.preset.unwrap_or_else(|| NORMAL.to_owned());
        preset.parse::<Preset>().map_err(|_| Problem::bad_request("invalid `preset`: expected strict, normal or permissive"))?;
        let mut row = new_row(&caller, create.name, preset, create.ttl_seconds)?;
        let fill = |sandbox: &Sandbox| -> Result<(), Problem> {
            if !files.is_empty() {
                sandbox.fs().seed(&files)?;
            }
            if let Some(policy) = policy {
                // The first policy only: one that exists binds every later caller.
                if sandbox.policy()?.is_some() {
                    return Err(Problem::conflict("the policy of the other sandbox counts: leave `policy` out"));
                }
                sandbox.set_policy(Some(policy))?;
            }
            Ok(())
        };
        match (create.base, create.snapshot) {
            (_, Some(of)) => {
                let (other, slot) = app.opened().find(app, &caller, &of)?;
                row.base.clone_from(&other.base);
                app.require_room(&row.tenant, opened::size(&file(app, &other.tenant, &other.id)?))?;
                let source = slot.open(app, &other, &caller)?;
                add(app, &row, |path| copy(app, &row, &source, path, fill))?;
            }
            (Some(of), None) => {
                let (other, slot) = app.opened().find(app, &caller, &of)?;
                if other.base.is_some() {
                    return Err(Problem::bad_request("invalid `base`: that sandbox lies over another itself; use `snapshot`"));
                }
                let source = slot.open(app, &other, &caller)?;
                row.base = Some(other.id.clone());
                let base = file(app, &row.tenant, &other.id)?;
                add(app, &row, |path| {
                    let sandbox = opened::builder(app, &row)?.database(path).base(base).open()?;
                    // Paths that are hidden in the base stay hidden.
                    sandbox.set_policy_of(&source)?;
                    fill(&sandbox)?;
                    Ok(sandbox)
                })?;
            }
            (None, None) => add(app, &row, |path| {
                let sandbox = opened::builder(app, &row)?.database(path).open()?;
                fill(&sandbox)?;
                Ok(sandbox)
            })?,
        }
        created(app, &row)
    })
    .await
}

/// Rejects operations on the whole sandbox for a view that does not see all of it.
pub(super) fn in_part(error: runtime::Error) -> Problem {
    match error.kind() {
        runtime::ErrorKind::Invalid => Problem::forbidden(error.to_string()),
        _ => error.into(),
    }
}

// As for exports and copies: a key with a view decides over what it sees, not over the whole sandbox (T-POL-08).
fn require_whole(caller: &Caller, what: &str) -> Result<(), Problem> {
    if caller.view.is_some() {
        return Err(Problem::forbidden(format!("cannot {what}: this view does not include the whole sandbox")));
    }
    Ok(())
}

/// Returns a tenant's sandbox of a name, made if it is missing. Makes files: only on a thread that may wait.
pub(crate) fn named(app: &App, caller: &Caller, name: &str) -> Result<SandboxRow, Problem> {
    let find = || app.catalog().sandboxes(&caller.tenant, Some(name), (i64::MIN, ""), 1).map(|rows| rows.into_iter().next());
    if let Some(row) = find()? {
        return Ok(row);
    }
    let row = new_row(caller, Some(name.to_owned()), NORMAL.to_owned(), None)?;
    match add(app, &row, |path| Ok(opened::builder(app, &row)?.database(path).open()?)) {
        Ok(()) => Ok(row),
        // Somebody else was faster.
        Err(problem) => find()?.ok_or(problem),
    }
}

// A copy with the limits of its own row: the content of the source must fit them.
fn copy(
    app: &App,
    row: &SandboxRow,
    source: &Sandbox,
    path: &std::path::Path,
    fill: impl FnOnce(&Sandbox) -> Result<(), Problem>,
) -> Result<Sandbox, Problem> {
    drop(source.fork_to(path).map_err(in_part)?);
    app.stored_more(&row.tenant);
    let mut builder = opened::builder(app, row)?.database(path);
    if let Some(base) = &row.base {
        builder = builder.base(file(app, &row.tenant, base)?);
    }
    let sandbox = builder.open()?;
    fill(&sandbox)?;
    Ok(sandbox)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: Option<usize>,
    cursor: Option<String>,
    name: Option<String>,
}

/// `GET /v1/sandboxes`.
pub(super) async fn list(State(app): State<App>, caller: Caller, uri: Uri) -> Result<Json<Value>, Problem> {
    let page: Page = input::query(&uri)?;
    let limit = page.limit.unwrap_or(PAGE);
    if !(1..=MOST_ROWS).contains(&limit) {
        return Err(Problem::bad_request("invalid `limit`: expected 1 to 200"));
    }
    let after = match page.cursor.as_deref() {
        None => (i64::MIN, String::new()),
        Some(cursor) => {
            let parsed = cursor.split_once('.').and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
            parsed.ok_or_else(|| Problem::bad_request("invalid `cursor`: use `next_cursor` of the page before"))?
        }
    };
    app.blocking(move |app| {
        let mut rows = app.catalog().sandboxes(&caller.tenant, page.name.as_deref(), (after.0, &after.1), limit + 1)?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|row| format!("{}.{}", row.created_at, row.id));
        let items = rows.iter().map(|row| describe(app, row)).collect::<Result<Vec<_>, _>>()?;
        Ok(Json(json!({ "items": items, "next_cursor": next })))
    })
    .await
}

/// `GET /v1/sandboxes/{id}`.
pub(super) async fn show(State(app): State<App>, caller: Caller, names: Names) -> Result<Json<Value>, Problem> {
    app.blocking(move |app| {
        let row = Opened::row(app, &caller, names.get("id"))?;
        Ok(Json(describe(app, &row)?))
    })
    .await
}

/// The requested changes: an absent field is unchanged, `null` clears it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
struct Change {
    #[serde(deserialize_with = "present")]
    name: Option<Option<String>>,
    #[serde(deserialize_with = "present")]
    ttl_seconds: Option<Option<u64>>,
}

fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// `PATCH /v1/sandboxes/{id}`.
pub(super) async fn change(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let change: Change = input::json(&app, &headers, body).await?;
    check_name(change.name.as_ref().and_then(Option::as_deref))?;
    let expires_at = change.ttl_seconds.map(end_of).transpose()?;
    app.blocking(move |app| {
        let row = Opened::row(app, &caller, names.get("id"))?;
        require_whole(&caller, "change the sandbox")?;
        let name = change.name.as_ref().map(Option::as_deref);
        match app.catalog().change_sandbox(&row.tenant, &row.id, name, expires_at)? {
            Ok(()) => {}
            Err(Taken::Name) => return Err(Problem::conflict("the tenant has a sandbox of this name")),
            Err(_) => return Err(Problem::not_found("sandbox")),
        }
        let row = Opened::row(app, &caller, &row.id)?;
        Ok(Json(describe(app, &row)?))
    })
    .await
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
struct Fork {
    name: Option<String>,
    at: Option<String>,
    ttl_seconds: Option<u64>,
}

/// `POST /v1/sandboxes/{id}/fork`.
pub(super) async fn fork(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let fork: Fork = input::json(&app, &headers, body).await?;
    app.blocking(move |app| {
        let (of, slot) = app.opened().find(app, &caller, names.get("id"))?;
        let mut row = new_row(&caller, fork.name, of.preset.clone(), fork.ttl_seconds)?;
        row.base.clone_from(&of.base);
        app.require_room(&row.tenant, opened::size(&file(app, &of.tenant, &of.id)?))?;
        let mut source = slot.open(app, &of, &caller)?;
        if let Some(at) = &fork.at {
            source = source.at(at)?;
        }
        add(app, &row, |path| copy(app, &row, &source, path, |_| Ok(())))?;
        created(app, &row)
    })
    .await
}

/// `DELETE /v1/sandboxes/{id}`.
pub(super) async fn delete(State(app): State<App>, caller: Caller, names: Names) -> Result<StatusCode, Problem> {
    let asking = caller.clone();
    let row = app.blocking(move |app| Opened::row(app, &asking, names.get("id"))).await?;
    require_whole(&caller, "delete the sandbox")?;
    if !remove(&app, row).await? {
        return Err(Problem::not_found("sandbox"));
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a sandbox: its row, its runs, its files. Returns `false` if it was already removed.
pub(super) async fn remove(app: &App, row: SandboxRow) -> Result<bool, Problem> {
    let (tenant, id) = (row.tenant.clone(), row.id.clone());
    let (above, was_there) = app.blocking(move |app| Ok(app.catalog().remove_sandbox(&tenant, &id)?)).await?;
    if above > 0 {
        return Err(Problem::conflict(format!("{above} sandboxes lie over this one: delete them first")));
    }
    if !was_there {
        return Ok(false);
    }
    // From here on to the end, whether the client waits or not.
    let app = app.clone();
    let task = tokio::spawn(async move {
        app.opened().forget(&row.id).await;
        app.opened().jobs.forget(&row.id);
        app.opened().stored.forget(&row.tenant);
        app.blocking(move |app| Ok(opened::remove(&file(app, &row.tenant, &row.id)?)?)).await
    });
    task.await.unwrap_or_else(|_| Err(Problem::conflict("the sandbox was not removed whole: try again")))?;
    Ok(true)
}
