//! `/v1/sandboxes/{id}/tree/{path}`: a directory as a tar archive, out and in.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufWriter;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use runtime::{Cancel, Content, ErrorKind, FileType, Sandbox};
use serde::Deserialize;
use serde_json::json;

use super::files::{Download, as_download, look, path_of};
use super::input::{self, Names, Spooled};
use super::opened::change;
use super::tar::{self, Entry, Kind};
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    at: Option<String>,
}

/// `GET /v1/sandboxes/{id}/tree/{path}`.
pub(super) async fn pack(State(app): State<App>, caller: Caller, names: Names, uri: Uri) -> Result<Response, Problem> {
    let query: At = input::query(&uri)?;
    let path = path_of(&names);
    let (row, slot) = app.find_sandbox(&caller, names.get("id")).await?;
    let download = Download::begin(&app, &row.tenant)?;
    let top = path.clone();
    let (file, length) = app
        .run(&caller.clone(), Cancel::default(), move |app| {
            let sandbox = look(app, &caller, &row, &slot, query.at.as_deref())?;
            let mut out = BufWriter::new(tempfile::tempfile_in(app.tenant(&row.tenant)?.directory("outgoing")?)?);
            write(&sandbox, &top, &mut out)?;
            let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        })
        .await?;
    let mut response = download.body(file, length).into_response();
    as_download(&mut response, &format!("{}.tar", path.rsplit('/').next().unwrap_or_default()), "application/x-tar");
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

// Named pipes and devices have no content to pack.
fn write(sandbox: &Sandbox, top: &str, out: &mut impl std::io::Write) -> Result<(), Problem> {
    let files = sandbox.fs();
    if !files.metadata(top)?.is_dir() {
        return Err(Problem::bad_request("this is not a directory: GET /v1/sandboxes/{id}/files/{path} returns a file"));
    }
    let above = top.trim_end_matches('/');
    for found in files.walk(top)? {
        let Some(path) = found.path.strip_prefix(above).map(|path| path.trim_start_matches('/')).filter(|path| !path.is_empty())
        else {
            continue;
        };
        let stat = found.stat;
        let kind = match stat.file_type() {
            FileType::Directory => Kind::Directory,
            FileType::File => Kind::File { offset: 0, size: stat.size },
            FileType::Symlink => Kind::Link(files.read_link(&found.path)?),
            _ => continue,
        };
        let entry = Entry { path: path.to_owned(), kind, mode: stat.mode & 0o7777, modified: stat.mtime };
        tar::write_header(out, &entry)?;
        if let Kind::File { size, .. } = entry.kind {
            let written = files.read_to(&found.path, &mut *out)?;
            if written != size {
                return Err(Problem::conflict("a file changed while the tree was packed: try again"));
            }
            tar::pad(out, size)?;
        }
    }
    tar::finish(out)?;
    Ok(out.flush()?)
}

/// `PUT /v1/sandboxes/{id}/tree/{path}`.
pub(super) async fn unpack(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let path = path_of(&names);
    let (row, slot) = app.find_sandbox(&caller, names.get("id")).await?;
    let archive = input::spool(&app, &row.tenant, &headers, body, app.config().body_bytes as u64).await?;
    let done = change(&app, caller, (row, slot), Some(archive.len()), move |sandbox| {
        let entries = tar::entries(archive.len(), |at, length| archive.part(at, length)).map_err(Problem::bad_request)?;
        let count = entries.len();
        read(sandbox, &path, entries, &archive)?;
        Ok(count)
    });
    let count = done.await?;
    Ok((StatusCode::OK, axum::Json(json!({ "entries": count }))).into_response())
}

// What could not be written is refused before anything is, and files are written in one transaction before all else: an archive that
// does not fit leaves nothing behind.
fn read(sandbox: &Sandbox, top: &str, entries: Vec<Entry>, archive: &Spooled) -> Result<(), Problem> {
    let (mut files, mut directories, mut links, mut programs) = (Vec::new(), Vec::new(), BTreeMap::new(), Vec::new());
    let above = top.trim_end_matches('/');
    for entry in entries {
        let path = format!("{above}/{}", entry.path);
        match entry.kind {
            Kind::File { offset, size } => {
                if entry.mode & 0o111 != 0 {
                    programs.push((path.clone(), entry.mode));
                }
                files.push((path, Content::new(archive.part(offset, size)).announced(size)));
            }
            Kind::Directory => directories.push(path),
            // Of two the last counts, as with files.
            Kind::Link(target) => drop(links.insert(path, target)),
        }
    }
    directories.push(if above.is_empty() { "/".to_owned() } else { above.to_owned() });
    let fs = sandbox.fs();
    let written: BTreeSet<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    let replaced = checked(sandbox, &written, &directories, &links)?;
    if !files.is_empty() {
        fs.write_all(files)?;
    }
    fs.create_dirs(&directories)?;
    if !replaced.is_empty() {
        fs.remove_all(&replaced)?;
    }
    for (path, target) in links {
        fs.symlink(&target, &path)?;
    }
    for (path, mode) in programs {
        fs.set_permissions(&path, mode)?;
    }
    Ok(())
}

// Rejects entries that cannot be written, and returns the names that links of the archive replace.
fn checked(
    sandbox: &Sandbox,
    files: &BTreeSet<&str>,
    directories: &[String],
    links: &BTreeMap<String, String>,
) -> Result<Vec<String>, Problem> {
    let names: BTreeSet<&str> = files.iter().copied().chain(directories.iter().map(String::as_str)).collect();
    let mut replaced = Vec::new();
    for path in links.keys() {
        let below = format!("{path}/");
        if names.contains(path.as_str()) || names.range(below.as_str()..).next().is_some_and(|name| name.starts_with(&below)) {
            return Err(twice(path));
        }
        match existing(sandbox, path)? {
            None => {}
            Some(FileType::Directory) => return Err(taken(path, "a directory")),
            Some(_) => replaced.push(path.clone()),
        }
    }
    for path in directories {
        if files.contains(path.as_str()) {
            return Err(twice(path));
        }
        if matches!(existing(sandbox, path)?, Some(kind) if !matches!(kind, FileType::Directory | FileType::Symlink)) {
            return Err(taken(path, "not a directory"));
        }
    }
    Ok(replaced)
}

// The existing node of this name.
fn existing(sandbox: &Sandbox, path: &str) -> Result<Option<FileType>, Problem> {
    match sandbox.fs().symlink_metadata(path) {
        Ok(stat) => Ok(Some(stat.file_type())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn twice(path: &str) -> Problem {
    let path = runtime::actions::quoted(path);
    Problem::bad_request(format!("the archive was refused: `{path}` is in it as two different kinds"))
}

fn taken(path: &str, what: &str) -> Problem {
    Problem::conflict(format!("cannot unpack `{}`: it exists and is {what}", runtime::actions::quoted(path)))
}
