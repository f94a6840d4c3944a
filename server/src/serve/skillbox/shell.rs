//! `/v1/sandbox`: the sandbox of a session, for commands and files. It is in a file of the tenant's directory, so that nothing is lost when the
//! server ends; its files become those of the session when it is synced, destroyed, or not used for a while.

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use runtime::{Cancel, Command, Content, Overrides, Sandbox, WallTime};
use serde::Deserialize;
use serde_json::{Value, json};

use super::shells::{ROOT, destroy as destroy_now, open, sync as sync_now};
use super::{body, sessions};
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::path::Path;
use crate::serve::problem::Problem;

/// Largest body of these routes.
const MOST_BYTES: usize = 10 << 20;
/// Largest file that is read.
const MOST_READ: u64 = 100 << 20;
/// Most entries of a listing.
const MOST_ENTRIES: usize = 10_000;
/// The time of a command that names none.
const DEFAULT_TIME: u64 = 30_000;
/// Levels of a listing that names none.
const DEFAULT_DEPTH: usize = 2;

fn session_of(headers: &HeaderMap) -> Result<String, Problem> {
    let name = headers.get("x-session-id").and_then(|name| std::str::from_utf8(name.as_bytes()).ok()).unwrap_or_default();
    if name.is_empty() {
        return Err(Problem::bad_request("X-Session-ID header is required"));
    }
    sessions::require_name(name)?;
    Ok(name.to_owned())
}

// A path below the session's directory, without `.` and `..`.
fn inside(path: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let clean = format!("/{}", parts.join("/"));
    let is_inside = path.starts_with('/') && (clean == ROOT || clean.starts_with(&format!("{ROOT}/"))) && !path.contains('\0');
    match is_inside {
        true => Ok(clean),
        false => {
            let path = runtime::actions::quoted(path);
            Err(format!("invalid sandbox path: must start with {ROOT} and not contain '..': {path:?}"))
        }
    }
}

// The texts begin as those of Skillbox.
fn refused(code: &'static str, reason: impl std::fmt::Display) -> Problem {
    let failed = match code {
        "read_error" => "failed to read file",
        "write_error" => "failed to write file",
        "list_error" => "failed to list directory",
        _ => "failed to upload file to sandbox",
    };
    Problem::new(StatusCode::BAD_REQUEST, code, format!("{failed}: {reason}"))
}

// The text of the server's own faults names its files.
fn failed(code: &'static str, error: runtime::Error) -> Problem {
    use runtime::ErrorKind;
    match error.kind() {
        ErrorKind::Internal | ErrorKind::Busy | ErrorKind::Foreign => error.into(),
        _ => refused(code, error),
    }
}

#[derive(Deserialize)]
struct Execute {
    #[serde(default, deserialize_with = "body::or_default")]
    command: String,
    workdir: Option<String>,
    timeout_ms: Option<i64>,
}

pub(super) async fn execute(State(app): State<App>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    let session = session_of(request.headers())?;
    let asked: Execute = body::json(request.into_body(), MOST_BYTES).await?;
    if asked.command.is_empty() {
        return Err(Problem::bad_request("command is required"));
    }
    let workdir = asked.workdir.filter(|workdir| !workdir.is_empty()).unwrap_or_else(|| ROOT.to_owned());
    let workdir = inside(&workdir).map_err(|reason| Problem::bad_request(format!("invalid workdir: {reason}")))?;
    let time = asked.timeout_ms.and_then(|time| u64::try_from(time).ok()).filter(|time| *time > 0).unwrap_or(DEFAULT_TIME);
    let (cancel, tenant) = (Cancel::default(), caller.tenant.clone());
    let output = app.run(&caller, cancel.clone(), move |app| {
        app.require_fuel(&tenant)?;
        app.require_room(&tenant, 0)?;
        let sandbox = open(app, &*app.tenant(&tenant)?, &session)?;
        sandbox.note(&cancel);
        let wall = Duration::from_millis(time).min(sandbox.limits().wall.0);
        let limits = Overrides { wall: Some(WallTime(wall)), ..Overrides::default() };
        let command = Command::bash(asked.command).cwd(workdir).cancelled_by(cancel.clone()).limits(limits);
        let output = sandbox.run(command);
        let fuel = output.as_ref().map_or(0, |output| output.usage.fuel).max(cancel.fuel_used());
        if output.is_ok() || fuel > 0 {
            // Before anything else: a command whose changes cannot be stored has used its fuel.
            app.catalog().spend(&tenant, fuel)?;
        }
        let output = output.map_err(|error| match Problem::from(error) {
            problem if problem.status == StatusCode::BAD_REQUEST => problem,
            problem => Problem { code: "execution_error", ..problem },
        })?;
        app.metrics().run("session", output.status.name(), fuel);
        if let Some(reached) = output.status.limit() {
            app.metrics().limit(reached.limit.as_str());
        }
        Ok(output)
    });
    let output = output.await?;
    let mut stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if let Some(reached) = output.status.limit() {
        stderr.push_str(&format!("{reached}\n"));
    }
    Ok(Json(json!({
        "stdout": String::from_utf8_lossy(&output.stdout), "stderr": stderr, "exit_code": output.status.code(),
    })))
}

// The same as `with_sandbox` for an operation that stores this many bytes.
async fn with_room<T: Send + 'static>(
    app: &App,
    caller: Caller,
    session: String,
    bytes: usize,
    work: impl FnOnce(&Sandbox) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    app.blocking(move |app| {
        app.require_room(&caller.tenant, bytes as u64)?;
        let sandbox = open(app, &*app.tenant(&caller.tenant)?, &session)?;
        work(&sandbox)
    })
    .await
}

// Does something short with the sandbox of a request's session.
async fn with_sandbox<T: Send + 'static>(
    app: &App,
    caller: Caller,
    session: String,
    work: impl FnOnce(&Sandbox) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    app.blocking(move |app| {
        let sandbox = open(app, &*app.tenant(&caller.tenant)?, &session)?;
        work(&sandbox)
    })
    .await
}

#[derive(Deserialize)]
struct Named {
    #[serde(default, deserialize_with = "body::or_default")]
    path: String,
}

// The bytes of the file that a request names.
async fn read(app: &App, caller: Caller, request: Request) -> Result<(String, Vec<u8>), Problem> {
    let session = session_of(request.headers())?;
    let Named { path } = body::json(request.into_body(), MOST_BYTES).await?;
    if path.is_empty() {
        return Err(Problem::bad_request("path is required"));
    }
    with_sandbox(app, caller, session, move |sandbox| {
        let path = inside(&path).map_err(|reason| refused("read_error", reason))?;
        let failed = |error: runtime::Error| failed("read_error", error);
        let size = sandbox.fs().metadata(&path).map_err(failed)?.size;
        if size > MOST_READ {
            return Err(refused("read_error", format!("`{path}` has {size} bytes, and {MOST_READ} are allowed")));
        }
        let bytes = sandbox.fs().read(&path).map_err(failed)?;
        Ok((path, bytes))
    })
    .await
}

pub(super) async fn read_file(State(app): State<App>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    let (_, bytes) = read(&app, caller, request).await?;
    Ok(Json(json!({ "content": String::from_utf8_lossy(&bytes), "size": bytes.len() })))
}

pub(super) async fn download_file(State(app): State<App>, caller: Caller, request: Request) -> Result<Response, Problem> {
    let (path, bytes) = read(&app, caller, request).await?;
    Ok(body::download(&path, bytes))
}

#[derive(Deserialize)]
struct Write {
    #[serde(default, deserialize_with = "body::or_default")]
    path: String,
    #[serde(default, deserialize_with = "body::or_default")]
    content: String,
    #[serde(default, deserialize_with = "body::or_default")]
    append: bool,
}

fn write(sandbox: &Sandbox, path: &str, content: &[u8], append: bool) -> Result<(), runtime::Error> {
    if let Some((above, _)) = path.rsplit_once('/') {
        sandbox.fs().create_dir_all(above)?;
    }
    match append {
        true => sandbox.fs().append(path, content),
        false => sandbox.fs().write(path, content),
    }
}

pub(super) async fn write_file(State(app): State<App>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    let session = session_of(request.headers())?;
    let Write { path, content, append } = body::json(request.into_body(), MOST_BYTES).await?;
    if path.is_empty() {
        return Err(Problem::bad_request("path is required"));
    }
    with_room(&app, caller, session, content.len(), move |sandbox| {
        let path = inside(&path).map_err(|reason| refused("write_error", reason))?;
        write(sandbox, &path, content.as_bytes(), append).map_err(|error| failed("write_error", error))?;
        Ok(Json(json!({ "status": "ok" })))
    })
    .await
}

pub(super) async fn upload_file(State(app): State<App>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    let session = session_of(request.headers())?;
    let mut form = body::form(request, MOST_BYTES).await?;
    let path = form.text("path").ok_or_else(|| Problem::bad_request("path form field is required"))?;
    let path = inside(path).map_err(|reason| Problem::bad_request(format!("invalid path: {reason}")))?;
    let upload = form.file().map_err(|_| Problem::bad_request("file form field is required"))?;
    with_room(&app, caller, session, upload.bytes.len(), move |sandbox| {
        write(sandbox, &path, &upload.bytes, false).map_err(|error| failed("upload_error", error))?;
        Ok(Json(json!({ "status": "ok", "path": path, "size": upload.bytes.len() })))
    })
    .await
}

#[derive(Deserialize)]
struct List {
    #[serde(default, deserialize_with = "body::or_default")]
    path: String,
    max_depth: Option<i64>,
}

pub(super) async fn list_dir(State(app): State<App>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    let session = session_of(request.headers())?;
    let List { path, max_depth } = body::json(request.into_body(), MOST_BYTES).await?;
    if path.is_empty() {
        return Err(Problem::bad_request("path is required"));
    }
    let depth = max_depth.and_then(|depth| usize::try_from(depth).ok()).filter(|depth| *depth > 0).unwrap_or(DEFAULT_DEPTH);
    with_sandbox(&app, caller, session, move |sandbox| {
        let path = inside(&path).map_err(|reason| refused("list_error", reason))?;
        let found = sandbox.fs().walk(&path).map_err(|error| failed("list_error", error))?;
        let level = |name: &str| name.strip_prefix(path.as_str()).map_or(0, |below| below.matches('/').count());
        let entries = found.iter().filter(|found| (1..=depth).contains(&level(&found.path))).take(MOST_ENTRIES);
        let entries: Vec<Value> = entries
            .map(|found| {
                let size = if found.stat.is_dir() { 0 } else { found.stat.size };
                json!({ "path": found.path, "is_dir": found.stat.is_dir(), "size": size })
            })
            .collect();
        Ok(Json(json!({ "entries": entries })))
    })
    .await
}

#[derive(Deserialize)]
struct UploadSkill {
    #[serde(default, deserialize_with = "body::or_default")]
    skill: String,
    version: Option<String>,
}

pub(super) async fn upload_skill(State(app): State<App>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    let session = session_of(request.headers())?;
    let UploadSkill { skill, version } = body::json(request.into_body(), MOST_BYTES).await?;
    if skill.is_empty() {
        return Err(Problem::bad_request("skill is required"));
    }
    super::executions::require_name(&skill)?;
    app.blocking(move |app| {
        let tenant = app.tenant(&caller.tenant)?;
        let version = version.filter(|version| !version.is_empty()).unwrap_or_else(|| "latest".to_owned());
        let package = super::skills::find(app, &caller, &skill, &version).map_err(|problem| match problem.status {
            StatusCode::NOT_FOUND => Problem { code: "skill_not_found", ..problem },
            _ => problem,
        })?;
        app.require_room(&tenant.name, package.files().iter().map(|file| file.content.len() as u64).sum())?;
        let sandbox = open(app, &tenant, &session)?;
        let place = |path: &str| format!("{ROOT}/skills/{skill}/{path}");
        let mut above: Vec<String> =
            package.files().iter().filter_map(|file| Some(place(&file.path).rsplit_once('/')?.0.to_owned())).collect();
        above.sort();
        above.dedup();
        sandbox.fs().create_dirs(&above)?;
        let files = package.files().iter().map(|file| (place(&file.path), Content::from(file.content.clone())));
        sandbox.fs().write_all(files.collect())?;
        for file in package.files().iter().filter(|file| file.is_executable) {
            sandbox.fs().set_permissions(&place(&file.path), 0o755)?;
        }
        let names: Vec<&str> = package.files().iter().map(|file| file.path.as_str()).collect();
        Ok(Json(json!({ "files": names })))
    })
    .await
}

pub(super) async fn sync(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Result<Json<Value>, Problem> {
    let session = session_of(&headers)?;
    app.blocking(move |app| {
        let tenant = app.tenant(&caller.tenant)?;
        let sandbox = open(app, &tenant, &session)?;
        sync_now(app, &tenant, &session, &sandbox)?;
        Ok(Json(json!({ "status": "ok" })))
    })
    .await
}

/// Syncs the sandbox of a session and removes it; the files of the session stay.
pub(super) async fn destroy(State(app): State<App>, caller: Caller, Path(session): Path<String>) -> Result<StatusCode, Problem> {
    sessions::require_name(&session)?;
    app.blocking(move |app| match destroy_now(app, &*app.tenant(&caller.tenant)?, &session)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::new(StatusCode::NOT_FOUND, "not_found", "sandbox not found or already destroyed")),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_the_session() {
        for (path, expected) in [
            ("/sandbox/session", ROOT),
            ("/sandbox/session/./a//b", "/sandbox/session/a/b"),
            ("/sandbox/session/a/../b", "/sandbox/session/b"),
            ("/x/../sandbox/session/a", "/sandbox/session/a"),
        ] {
            assert_eq!(inside(path).as_deref(), Ok(expected));
        }
        for path in [
            "",
            "a",
            "/",
            "/etc/passwd",
            "/sandbox/session/../x",
            "/sandbox/sessions/a",
            "sandbox/session/a",
            "/sandbox/session/\0",
        ] {
            assert!(inside(path).is_err(), "{path}");
        }
    }
}
