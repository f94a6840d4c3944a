//! Versions of a skill: their files, their differences, the active one, and edits, each of which creates a version.

use ::skills::{File, FileStatus, LineKind, Package, Severity, VersionRow};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::executions::{require_name, require_version};
use super::patterns::{Found, Patterns};
use super::skills::{AVAILABLE, find, keep, reference, refused};
use super::{body, files};
use crate::serve::app::{App, Tenant};
use crate::serve::auth::Caller;
use crate::serve::catalog::Role;
use crate::serve::clock::rfc3339;
use crate::serve::path::Path;
use crate::serve::problem::Problem;

/// Most bytes of all versions together whose findings are listed with them.
const SCANNED_BYTES: u64 = 16 << 20;
/// Versions that are tried for a new one.
const MOST_TRIES: usize = 10_000;

/// The next patch version that does not exist.
pub(super) fn next(tenant: &Tenant, name: &str, version: &str) -> Result<String, Problem> {
    let known: Vec<String> = tenant.skills().catalog().versions(name)?.into_iter().map(|row| row.version).collect();
    let later = std::iter::successors(::skills::next_patch(version), |version| ::skills::next_patch(version));
    let free = later.take(MOST_TRIES).find(|version| !known.contains(version));
    free.ok_or_else(|| Problem::conflict(format!("no version after {version} of `{name}` is free")))
}

#[derive(Deserialize)]
pub(super) struct Chosen {
    path: Option<String>,
}

pub(super) async fn files(
    State(app): State<App>,
    caller: Caller,
    Path((name, version)): Path<(String, String)>,
    query: Result<Query<Chosen>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let chosen = body::query(query)?.path.filter(|path| !path.is_empty());
    app.blocking(move |app| {
        let package = find(app, &caller, &name, &version)?;
        let is_chosen = |file: &&File| chosen.as_deref().is_none_or(|path| path == file.path);
        let entries: Vec<Value> = package
            .files()
            .iter()
            .filter(is_chosen)
            .map(|file| {
                let content = String::from_utf8_lossy(&file.content);
                json!({ "path": file.path, "content": content, "size_bytes": file.content.len() })
            })
            .collect();
        if entries.is_empty() && chosen.is_some() {
            return Err(Problem::not_found_named("file", chosen.as_deref().unwrap_or_default()));
        }
        Ok(Json(Value::Array(entries)))
    })
    .await
}

#[derive(Deserialize)]
struct Edit {
    #[serde(default, deserialize_with = "body::or_default")]
    path: String,
    #[serde(default, deserialize_with = "body::or_default")]
    content: String,
}

#[derive(Deserialize)]
struct Edits {
    files: Option<Vec<Edit>>,
}

// The path of a file of a skill, as a client names it.
fn path_of(edit: &Edit) -> Result<String, Problem> {
    let path = edit.path.strip_prefix("./").unwrap_or(&edit.path);
    match files::is_name(path) {
        true => Ok(path.to_owned()),
        false => Err(Problem::bad_request(format!("invalid file path: {}", runtime::actions::quoted(&edit.path)))),
    }
}

// Stores files as the next version of a skill, and sets it in `SKILL.md`.
fn revise(
    app: &App,
    caller: &Caller,
    name: &str,
    edit: impl FnOnce(&Package) -> Vec<File>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let tenant = app.tenant(&caller.tenant)?;
    let active = tenant.skills().catalog().get(name).map_err(|error| match error {
        ::skills::Error::UnknownSkill(_) => Problem::not_found_named("skill", name),
        error => error.into(),
    })?;
    let version = next(&tenant, name, &active.manifest().version)?;
    let mut files = edit(&active);
    for file in files.iter_mut().filter(|file| file.path == "SKILL.md") {
        file.content = ::skills::with_version(&String::from_utf8_lossy(&file.content), &version).into_bytes();
    }
    let package = Package::from_files(files).map_err(refused)?;
    if package.manifest().name != name {
        return Err(Problem::bad_request(format!("SKILL.md must keep the name `{name}`")));
    }
    keep(app, &tenant, caller, &package)?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "name": name, "version": version, "status": AVAILABLE }))))
}

/// Replaces or adds one file of the active version.
pub(super) async fn put_file(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Problem> {
    caller.require(Role::Publisher)?;
    require_name(&name)?;
    let edit: Edit = body::json(request.into_body(), app.config().skill_bytes).await?;
    let path = path_of(&edit)?;
    app.blocking(move |app| {
        revise(app, &caller, &name, |active| {
            let mut files = active.files().to_vec();
            match files.iter_mut().find(|file| file.path == path) {
                Some(file) => file.content = edit.content.into_bytes(),
                None => files.push(File::new(path, edit.content)),
            }
            files
        })
    })
    .await
}

/// Replaces all files. Those that keep their paths stay programs if they were.
pub(super) async fn put_files(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Problem> {
    caller.require(Role::Publisher)?;
    require_name(&name)?;
    let edits: Edits = body::json(request.into_body(), app.config().skill_bytes).await?;
    let edits = edits.files.filter(|files| !files.is_empty()).ok_or_else(|| Problem::bad_request("files must not be empty"))?;
    let paths: Vec<String> = edits.iter().map(path_of).collect::<Result<_, _>>()?;
    if !paths.iter().any(|path| path == "SKILL.md") {
        return Err(Problem::bad_request("SKILL.md is required"));
    }
    app.blocking(move |app| {
        revise(app, &caller, &name, |active| {
            let is_executable = |path: &str| active.file(path).is_some_and(|file| file.is_executable);
            paths
                .into_iter()
                .zip(edits)
                .map(|(path, edit)| File { is_executable: is_executable(&path), ..File::new(path, edit.content) })
                .collect()
        })
    })
    .await
}

/// The versions, newest first; none of a skill that does not exist.
pub(super) async fn list(State(app): State<App>, caller: Caller, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    require_name(&name)?;
    app.blocking(move |app| {
        let tenant = app.tenant(&caller.tenant)?;
        let catalog = tenant.skills().catalog();
        let rows = match catalog.versions(&name) {
            Err(::skills::Error::UnknownSkill(_)) => Vec::new(),
            rows => rows?,
        };
        let is_scanned = rows.iter().map(|row| row.size_bytes).sum::<u64>() <= SCANNED_BYTES;
        let own = Patterns::of(app, &caller.tenant)?;
        let rows = rows.iter().map(|row| {
            let package = is_scanned.then(|| catalog.get(&format!("{name}@{}", row.version))).transpose()?;
            let found = package.as_ref().map(|package| own.search(package.files())).transpose()?;
            Ok(version(row, package.as_ref(), &found.unwrap_or_default()))
        });
        Ok(Json(rows.collect::<Result<Value, Problem>>()?))
    })
    .await
}

/// A finding, as Skillbox's clients expect it.
#[derive(Serialize)]
struct FindingInfo<'a> {
    severity: &'static str,
    category: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    file_path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    description: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    remediation: &'a str,
}

fn version(row: &VersionRow, package: Option<&Package>, own: &[Found]) -> Value {
    let mut shown = json!({
        "version": row.version, "status": AVAILABLE, "active": row.active, "blocked": false,
        "uploaded_at": rfc3339(row.uploaded_at.saturating_mul(1000)), "digest": row.digest,
    });
    let findings = package.map(|package| ::skills::scan(package.files())).unwrap_or_default();
    if let (false, Some(fields)) = (findings.is_empty() && own.is_empty(), shown.as_object_mut()) {
        let severity = |blocks: bool| if blocks { "BLOCK" } else { "FLAG" };
        let listed = findings.iter().map(|finding| FindingInfo {
            severity: severity(finding.severity == Severity::Error),
            category: finding.category.unwrap_or(finding.code),
            file_path: &finding.file,
            line: finding.line,
            description: &finding.message,
            remediation: &finding.remedy,
        });
        let own_listed = own.iter().map(|found| FindingInfo {
            severity: severity(found.blocks),
            category: &found.category,
            file_path: &found.file,
            line: Some(found.line),
            description: &found.description,
            remediation: "",
        });
        let listed: Vec<FindingInfo<'_>> = listed.chain(own_listed).collect();
        fields.insert("scan_findings".to_owned(), json!(listed));
        fields.insert("scan_summary".to_owned(), json!(format!("{} findings", findings.len() + own.len())));
    }
    shown
}

#[derive(Deserialize)]
pub(super) struct Range {
    from: Option<String>,
    to: Option<String>,
}

/// Returns the differences from the active version if none is named, or from an empty one if the version itself is active.
pub(super) async fn diff(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    query: Result<Query<Range>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let range = body::query(query)?;
    let to = range.to.filter(|to| !to.is_empty()).ok_or_else(|| Problem::bad_request("to version is required"))?;
    let from = range.from.filter(|from| !from.is_empty());
    reference(&name, &to)?;
    from.as_deref().map_or(Ok(()), |from| reference(&name, from).map(drop))?;
    app.blocking(move |app| {
        let new = find(app, &caller, &name, &to).map_err(|problem| match problem.status {
            StatusCode::NOT_FOUND => no_version(&name, &to),
            _ => problem,
        })?;
        let tenant = app.tenant(&caller.tenant)?;
        let catalog = tenant.skills().catalog();
        let from = match from {
            Some(from) => Some(from),
            None => Some(catalog.find(&name)?.version).filter(|active| *active != new.manifest().version),
        };
        let Some(from) = from else {
            let files: Vec<Value> =
                new.files().iter().map(|file| file_diff(&file.path, FileStatus::Added, added(file))).collect();
            return Ok(Json(json!({ "name": name, "from": "", "to": new.manifest().version, "files": files })));
        };
        let diff = catalog.diff(&name, &from, Some(&to)).map_err(|error| match error {
            ::skills::Error::UnknownVersion { .. } => no_version(&name, &from),
            error => error.into(),
        })?;
        let files = diff.files.into_iter().map(|file| {
            let lines = file.lines.into_iter().map(|line| (line.op, line.text)).collect();
            file_diff(&file.path, file.status, lines)
        });
        Ok(Json(json!({ "name": name, "from": diff.from, "to": diff.to, "files": files.collect::<Vec<_>>() })))
    })
    .await
}

fn no_version(name: &str, version: &str) -> Problem {
    Problem::not_found_named("version", &format!("{name}@{version}"))
}

fn added(file: &File) -> Vec<(LineKind, String)> {
    let lines = file.text().map(str::lines).into_iter().flatten();
    lines.map(|line| (LineKind::Add, line.to_owned())).collect()
}

fn file_diff(path: &str, status: FileStatus, lines: Vec<(LineKind, String)>) -> Value {
    let mut shown = json!({ "path": path, "status": status });
    if let (false, Some(fields)) = (lines.is_empty(), shown.as_object_mut()) {
        let lines = lines.into_iter().map(|(kind, text)| {
            let op = match kind {
                LineKind::Add => "+",
                LineKind::Remove => "-",
                LineKind::Context => " ",
            };
            json!({ "op": op, "text": text })
        });
        fields.insert("lines".to_owned(), lines.collect());
    }
    shown
}

#[derive(Deserialize)]
struct Active {
    #[serde(default, deserialize_with = "body::or_default")]
    version: String,
}

pub(super) async fn activate(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    caller.require(Role::Publisher)?;
    require_name(&name)?;
    let Active { version } = body::json(request.into_body(), 1 << 16).await?;
    match version.as_str() {
        "" => return Err(Problem::bad_request("invalid request body: version is required")),
        // `latest` is the active version already.
        "latest" => return Err(no_version(&name, &version)),
        version => require_version(version)?,
    }
    app.blocking(move |app| {
        let activated = app.tenant(&caller.tenant)?.skills().catalog().activate(&name, &version);
        activated.map_err(|error| match error {
            ::skills::Error::UnknownSkill(_) | ::skills::Error::UnknownVersion { .. } => no_version(&name, &version),
            error => error.into(),
        })?;
        Ok(Json(json!({ "name": name, "active": version })))
    })
    .await
}
