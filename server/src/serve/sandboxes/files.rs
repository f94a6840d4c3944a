//! `/v1/sandboxes/{id}/files/{path}`: a file's bytes, with entity tags and ranges. What is in a sandbox is never shown as a page of ours
//! (T-NET-07).

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_MATCH,
    IF_NONE_MATCH, IF_RANGE, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use runtime::{ErrorKind, Sandbox};
use serde::Deserialize;

use super::input::{self, Names};
use super::opened::{Slot, change};
use crate::http::only;
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::catalog::SandboxRow;
use crate::serve::problem::Problem;
use crate::serve::shares::Share;

/// A larger file is sent piece by piece.
const WHOLE: u64 = 1 << 20;
/// Bytes of a piece.
const PIECE: u64 = 256 << 10;
/// The version of a file that does not exist.
const NONE: &str = "none";
/// How often a write without a condition is tried when others write the same file.
const TRIES: usize = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    at: Option<String>,
}

/// Returns the path in the sandbox that a request names.
pub(super) fn path_of(names: &Names) -> String {
    format!("/{}", names.get("path").trim_start_matches('/'))
}

/// Returns the sandbox of a request at a version.
pub(super) fn look(app: &App, caller: &Caller, row: &SandboxRow, slot: &Slot, at: Option<&str>) -> Result<Sandbox, Problem> {
    let sandbox = slot.open(app, row, caller)?;
    Ok(match at {
        Some(at) => sandbox.at(at)?,
        None => sandbox,
    })
}

fn tag(version: &str) -> String {
    format!("\"{version}\"")
}

/// Returns whether a list of entity tags has this one; weak ones are compared by their text.
fn lists(tags: &str, version: &str) -> bool {
    tags.split(',').map(|tag| tag.trim().trim_start_matches("W/")).any(|tag| tag == "*" || tag.trim_matches('"') == version)
}

/// Returns the bytes that a `Range` selects: `Ok(None)` is all of them, `Err` means that none of them exist.
fn range(asked: &str, size: u64) -> Result<Option<(u64, u64)>, ()> {
    let Some(spec) = asked.strip_prefix("bytes=").filter(|spec| !spec.contains(',')) else { return Ok(None) };
    let Some((first, last)) = spec.trim().split_once('-') else { return Ok(None) };
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().unwrap_or(u64::MAX));
    let (Some(from), Some(to)) = (number(first), number(last)) else { return Ok(None) };
    match (first.is_empty(), last.is_empty()) {
        (true, true) => Ok(None),
        (true, false) if to == 0 || size == 0 => Err(()),
        (true, false) => Ok(Some((size.saturating_sub(to), size))),
        (false, _) if from >= size => Err(()),
        (false, true) => Ok(Some((from, size))),
        (false, false) if to < from => Ok(None),
        (false, false) => Ok(Some((from, size.min(to.saturating_add(1))))),
    }
}

// The last part of a path as the name of a download: letters that mean nothing in a header.
fn disposition(path: &str) -> HeaderValue {
    let name = path.rsplit('/').next().unwrap_or_default();
    let plain: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' })
        .take(100)
        .collect();
    let value = format!("attachment; filename=\"{}\"", if plain.is_empty() { "file" } else { &plain });
    HeaderValue::from_str(&value).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

/// Marks a response as something that is kept, not shown.
pub(super) fn as_download(response: &mut Response, path: &str, content_type: &'static str) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_DISPOSITION, disposition(path));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
}

/// The metadata that a client receives before a file's bytes.
struct Described {
    version: String,
    size: u64,
    /// The content, if it is small.
    content: Option<Vec<u8>>,
}

fn described(sandbox: &Sandbox, path: &str) -> Result<Described, Problem> {
    let stat = sandbox.fs().metadata(path)?;
    if stat.is_dir() {
        return Err(Problem::bad_request("this is a directory: GET /v1/sandboxes/{id}/tree/{path} returns it as tar"));
    }
    if !stat.is_file() {
        return Err(Problem::bad_request("this is not a file"));
    }
    if stat.size <= WHOLE {
        let (content, version) = sandbox.fs().read_versioned(path)?;
        return Ok(Described { version, size: content.len() as u64, content: Some(content) });
    }
    // The version first: content that is newer than its tag is refused later, content that is older would be lost.
    let version = sandbox.fs().version(path)?;
    Ok(Described { version, size: sandbox.fs().metadata(path)?.size, content: None })
}

/// `GET /v1/sandboxes/{id}/files/{path}`.
pub(super) async fn read(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query: Look = input::query(&uri)?;
    let (row, slot) = app.find_sandbox(&caller, names.get("id")).await?;
    let path = path_of(&names);
    let file = path.clone();
    let tenant = row.tenant.clone();
    let (sandbox, found) = app
        .blocking(move |app| {
            let sandbox = look(app, &caller, &row, &slot, query.at.as_deref())?;
            let found = described(&sandbox, &file)?;
            Ok((sandbox, found))
        })
        .await?;
    let asked = only(&headers, &RANGE)
        .filter(|_| headers.get(IF_RANGE).is_none_or(|tag| lists(tag.to_str().unwrap_or(""), &found.version)));
    let part = asked.map_or(Ok(None), |asked| range(asked, found.size));
    let etag = HeaderValue::from_str(&tag(&found.version)).map_err(|_| Problem::bad_request("this file has no version"))?;
    if headers.contains_key(IF_MATCH) && !expected(&headers)?.allows(&found.version) {
        return Err(differs());
    }
    if only(&headers, &IF_NONE_MATCH).is_some_and(|tags| lists(tags, &found.version)) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, etag)]).into_response());
    }
    let Ok(part) = part else {
        let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", "the file has no such bytes");
        let mut response = problem.into_response();
        if let Ok(range) = HeaderValue::from_str(&format!("bytes */{}", found.size)) {
            response.headers_mut().insert(CONTENT_RANGE, range);
        }
        return Ok(response);
    };
    let (from, to) = part.unwrap_or((0, found.size));
    let body = match found.content {
        _ if method == Method::HEAD => Body::empty(),
        Some(content) => {
            let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
            Body::from(Bytes::from(content).slice(at(from)..at(to)))
        }
        None => {
            let download = Download::begin(&app, &tenant)?;
            let file = path.clone();
            let taken = app.blocking(move |app| taken_out(app, &tenant, &sandbox, &file, (from, to))).await?;
            download.body(taken, to - from)
        }
    };
    let mut response = body.into_response();
    as_download(&mut response, &path, "application/octet-stream");
    let headers = response.headers_mut();
    headers.insert(ETAG, etag);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(to - from));
    if part.is_some() {
        if let Ok(range) = HeaderValue::from_str(&format!("bytes {from}-{}/{}", to - 1, found.size)) {
            headers.insert(CONTENT_RANGE, range);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// A sink that keeps a part of the written bytes.
struct Window<'a> {
    skip: u64,
    left: u64,
    file: &'a File,
}

impl Write for Window<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        self.skip -= skipped as u64;
        let rest = bytes.get(skipped..).unwrap_or_default();
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(rest.len());
        self.file.write_all(rest.get(..wanted).unwrap_or_default())?;
        self.left -= wanted as u64;
        // Enough: the writer stops here.
        if self.left == 0 { Err(std::io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// A part of a large file, in a file without a name: reading the sandbox must not wait for the client.
fn taken_out(app: &App, tenant: &str, sandbox: &Sandbox, path: &str, (from, to): (u64, u64)) -> Result<File, Problem> {
    let file = tempfile::tempfile_in(app.tenant(tenant)?.directory("outgoing")?)?;
    let mut window = Window { skip: from, left: to - from, file: &file };
    let done = sandbox.fs().read_to(path, &mut window);
    match done {
        _ if window.left == 0 => Ok(file),
        Err(error) => Err(error.into()),
        Ok(_) => Err(Problem::conflict("the file became shorter while it was read: try again")),
    }
}

/// A file that is being sent, counted until it was.
pub(crate) struct Download {
    app: App,
    _share: Share,
}

impl Download {
    /// Counts one more; their number per tenant is limited (T-NET-08).
    pub(crate) fn begin(app: &App, tenant: &str) -> Result<Self, Problem> {
        let share = app.opened().downloads.take(tenant);
        let share = share.ok_or_else(|| Problem::limited("too many downloads of this tenant at a time", 1))?;
        Ok(Self { app: app.clone(), _share: share })
    }

    /// Returns the first bytes of a file as a body. No thread waits for the client.
    pub(crate) fn body(self, file: File, length: u64) -> Body {
        let start = (self, Arc::new(file), 0u64);
        let stream = futures_util::stream::unfold(start, move |(download, file, at)| async move {
            if at >= length {
                return None;
            }
            let (source, size) = (Arc::clone(&file), PIECE.min(length - at));
            let piece = download.app.blocking(move |_| {
                let mut piece = vec![0; usize::try_from(size).unwrap_or(0)];
                source.read_exact_at(&mut piece, at)?;
                Ok(Bytes::from(piece))
            });
            // The headers were sent: the client can only see that the body is incomplete.
            match piece.await {
                Ok(piece) => Some((Ok(piece), (download, file, at + size))),
                Err(problem) => Some((Err(std::io::Error::other(problem.message)), (download, file, length))),
            }
        });
        Body::from_stream(stream)
    }
}

/// The condition of a request on the existing file.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Anything,
    Something,
    Nothing,
    OneOf(Vec<String>),
    NoneOf(Vec<String>),
}

impl Expected {
    /// Whether a file of this version is as expected.
    fn allows(&self, version: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::Something => version != NONE,
            Self::Nothing => version == NONE,
            Self::OneOf(versions) => versions.iter().any(|known| known == version),
            Self::NoneOf(versions) => !versions.iter().any(|known| known == version),
        }
    }
}

fn expected(headers: &HeaderMap) -> Result<Expected, Problem> {
    let listed = |name: HeaderName| {
        let tags = only(headers, &name).and_then(tags);
        tags.ok_or_else(|| Problem::bad_request(format!("invalid `{name}`: expected `*` or entity tags such as \"abc\"")))
    };
    match (headers.get(IF_MATCH), headers.get(IF_NONE_MATCH)) {
        (None, None) => Ok(Expected::Anything),
        (Some(_), Some(_)) => Err(Problem::bad_request("choose `If-Match` or `If-None-Match`")),
        (None, Some(tag)) if tag == "*" => Ok(Expected::Nothing),
        (Some(tag), None) if tag == "*" => Ok(Expected::Something),
        // A weak tag does not promise the same bytes, which `If-Match` requires.
        (Some(_), None) => {
            Ok(Expected::OneOf(listed(IF_MATCH)?.into_iter().filter(|(is_weak, _)| !is_weak).map(|(_, tag)| tag).collect()))
        }
        (None, Some(_)) => Ok(Expected::NoneOf(listed(IF_NONE_MATCH)?.into_iter().map(|(_, tag)| tag).collect())),
    }
}

// The entity tags of a list, and whether each is weak.
fn tags(list: &str) -> Option<Vec<(bool, String)>> {
    let mut tags = Vec::new();
    let mut rest = list.trim();
    while !rest.is_empty() {
        let (is_weak, tag) = rest.strip_prefix("W/").map_or((false, rest), |tag| (true, tag));
        let (tag, after) = tag.strip_prefix('"')?.split_once('"')?;
        tags.push((is_weak, tag.to_owned()));
        rest = after.trim_start();
        rest = if rest.is_empty() { rest } else { rest.strip_prefix(',')?.trim_start() };
    }
    (!tags.is_empty()).then_some(tags)
}

fn precondition(error: runtime::Error) -> Problem {
    match error.kind() {
        ErrorKind::Stale => differs(),
        _ => error.into(),
    }
}

fn differs() -> Problem {
    Problem::new(
        StatusCode::PRECONDITION_FAILED,
        "precondition_failed",
        "the file is not the one that was read: read it again and repeat",
    )
}

/// `PUT /v1/sandboxes/{id}/files/{path}`.
pub(super) async fn write(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let expected = expected(&headers)?;
    let path = path_of(&names);
    let (row, slot) = app.find_sandbox(&caller, names.get("id")).await?;
    let content = input::spool(&app, &row.tenant, &headers, body, app.config().body_bytes as u64).await?;
    let written = change(&app, caller, (row, slot), Some(content.len()), move |sandbox| {
        let files = sandbox.fs();
        let mut tries = 0;
        let written = loop {
            tries += 1;
            let before = files.version(&path)?;
            if !expected.allows(&before) {
                return Err(differs());
            }
            let whole = runtime::Content::new(content.part(0, content.len())).announced(content.len());
            match sandbox.fs().if_version(&path, before.as_str()).write_from(&path, whole) {
                Err(error) if error.kind() == ErrorKind::Stale && tries < TRIES && matches!(expected, Expected::Anything) => {}
                done => break done.map(|_| before == NONE),
            }
        };
        let is_new = written.map_err(precondition)?;
        // Other writers wait for their turn: these are the written bytes.
        Ok((is_new, files.version(&path)?))
    });
    let (is_new, version) = written.await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    Ok((status, [(ETAG, tag(&version))]).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Removal {
    #[serde(default)]
    recursive: bool,
}

/// `DELETE /v1/sandboxes/{id}/files/{path}`.
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    uri: Uri,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let removal: Removal = input::query(&uri)?;
    let expected = expected(&headers)?;
    let path = path_of(&names);
    let found = app.find_sandbox(&caller, names.get("id")).await?;
    change(&app, caller, found, None, move |sandbox| {
        let mut files = sandbox.fs();
        let is_directory = files.symlink_metadata(&path)?.is_dir();
        if expected != Expected::Anything {
            let before = files.version(&path)?;
            if !expected.allows(&before) {
                return Err(differs());
            }
            files = files.if_version(&path, before);
        }
        match (is_directory, removal.recursive) {
            (false, _) => files.remove_file(&path),
            (true, false) => files.remove_dir(&path),
            (true, true) => files.remove_dir_all(&path),
        }
        .map_err(precondition)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_file() {
        let check = |asked: &str, expected| assert_eq!(range(asked, 10), expected, "{asked}");
        check("bytes=0-3", Ok(Some((0, 4))));
        check("bytes=4-", Ok(Some((4, 10))));
        check("bytes=-3", Ok(Some((7, 10))));
        check("bytes=-30", Ok(Some((0, 10))));
        check("bytes=8-99999999999999999999999", Ok(Some((8, 10))));
        check("bytes=10-", Err(()));
        check("bytes=-0", Err(()));
        check("bytes=5-2", Ok(None));
        check("bytes=0-1,4-5", Ok(None));
        check("lines=1-2", Ok(None));
        check("bytes=a-b", Ok(None));
        assert_eq!(range("bytes=0-", 0), Err(()));
    }

    #[test]
    fn a_condition_is_a_list_of_entity_tags_and_a_weak_one_matches_no_content() {
        let check = |name: &'static str, value: &'static str, allowed: &[&str], refused: &[&str]| {
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
            let expected = expected(&headers).unwrap();
            assert!(allowed.iter().all(|version| expected.allows(version)), "{value}");
            assert!(!refused.iter().any(|version| expected.allows(version)), "{value}");
        };
        check("if-match", "\"a\"", &["a"], &["b", NONE]);
        check("if-match", "\"x\" , \"a\",\"y,z\"", &["a", "x", "y,z"], &["b", "y"]);
        check("if-match", "W/\"a\"", &[], &["a", NONE]);
        check("if-match", "*", &["a"], &[NONE]);
        check("if-none-match", "*", &[NONE], &["a"]);
        check("if-none-match", "W/\"a\", \"b\"", &["c", NONE], &["a", "b"]);
        for wrong in ["a", "", "\"a", "\"a\" \"b\"", "*, \"a\""] {
            let headers = HeaderMap::from_iter([(IF_MATCH, HeaderValue::from_static(wrong))]);
            assert_eq!(expected(&headers).unwrap_err().status.as_u16(), 400, "{wrong}");
        }
    }

    // T-NET-07.
    #[test]
    fn a_name_cannot_leave_its_header() {
        let name = |path: &str| disposition(path).to_str().unwrap_or_default().to_owned();
        assert_eq!(name("/a/report.pdf"), "attachment; filename=\"report.pdf\"");
        assert_eq!(name("/a/x\"; y=\r\nSet-Cookie: z"), "attachment; filename=\"x___y___Set-Cookie__z\"");
        assert_eq!(name("/"), "attachment; filename=\"file\"");
    }
}
