//! The input of a request: names in its path, its query, its body. Everything is bounded, and every rejection is a [`Problem`] (T-NET-04).

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Query};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::http::only;
use crate::message::{Fault, LARGEST, Shape};
use crate::serve::app::App;
use crate::serve::problem::Problem;

/// How long a client may take to send the next piece of a body.
const PIECE_TIME: Duration = Duration::from_secs(30);
/// How long a client may take to send a body of JSON.
const BODY_TIME: Duration = Duration::from_secs(60);
/// A larger upload waits in a file.
pub(crate) const IN_MEMORY: usize = 1 << 20;

/// The names in a path.
#[derive(Debug)]
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    /// Returns the value of a name; empty if the route does not have it.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Names {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<HashMap<String, String>>::from_request_parts(parts, state).await {
            Ok(Path(names)) => Ok(Self(names)),
            Err(_) => Err(Problem::bad_request("invalid path: expected UTF-8")),
        }
    }
}

/// Returns the values of a query.
pub(crate) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let parsed = Query::try_from_uri(uri);
    parsed.map(|Query(values)| values).map_err(|rejection| Problem::invalid_query(&rejection))
}

fn too_large() -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "the body is too large")
}

fn too_slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body took too long")
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    only(headers, &CONTENT_LENGTH)?.parse().ok()
}

/// Reads a small body.
pub(crate) async fn bytes(headers: &HeaderMap, body: Body, most: usize) -> Result<Bytes, Problem> {
    if announced(headers).is_some_and(|length| length > most as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIME, Limited::new(body, most).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::bad_request("the body ended early")),
        Err(_) => Err(too_slow()),
    }
}

/// Reads a body of JSON. A web page can send other content types without a preflight request (T-NET-01).
pub(crate) async fn json<T: DeserializeOwned>(app: &App, headers: &HeaderMap, body: Body) -> Result<T, Problem> {
    let bytes = bytes(headers, body, LARGEST.min(app.config().body_bytes)).await?;
    let kind = only(headers, &CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if bytes.is_empty() && kind.is_empty() {
        return serde_json::from_str("{}").map_err(|error| invalid(&error));
    }
    if !essence.eq_ignore_ascii_case("application/json") {
        let text = "the body must be application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", text));
    }
    match Shape::of(&bytes).fault() {
        None => {}
        // A list; the text of this fault is about messages of a protocol.
        Some(Fault::Batch) => return Err(Problem::bad_request("invalid body: expected an object")),
        Some(fault) => return Err(Problem::bad_request(fault.as_str())),
    }
    serde_json::from_slice(&bytes).map_err(|error| invalid(&error))
}

fn invalid(error: &serde_json::Error) -> Problem {
    Problem::bad_request(runtime::actions::shortened(format!("invalid body: {error}"), 500))
}

/// A complete body: in memory, or in an unnamed file.
#[derive(Clone, Debug)]
pub(crate) enum Spooled {
    Memory(Bytes),
    File(Arc<File>, u64),
}

impl Spooled {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(_, length) => *length,
        }
    }

    /// A part of it.
    pub(crate) fn part(&self, offset: u64, length: u64) -> Part {
        let end = offset.saturating_add(length).min(self.len());
        Part { of: self.clone(), offset: offset.min(end), end }
    }
}

/// A part of a body, to be read.
#[derive(Debug)]
pub(crate) struct Part {
    of: Spooled,
    offset: u64,
    end: u64,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.end - self.offset).unwrap_or(usize::MAX));
        let Some(room) = buffer.get_mut(..most).filter(|room| !room.is_empty()) else { return Ok(0) };
        let count = match &self.of {
            Spooled::File(file, _) => file.read_at(room, self.offset)?,
            Spooled::Memory(bytes) => {
                let from = usize::try_from(self.offset).unwrap_or(usize::MAX);
                let part = bytes.get(from..from + most).unwrap_or_default();
                room.copy_from_slice(part);
                part.len()
            }
        };
        self.offset += count as u64;
        Ok(count)
    }
}

/// Reads a body of any allowed size; a large one is stored in a file of the tenant instead of memory.
pub(crate) async fn spool(app: &App, tenant: &str, headers: &HeaderMap, body: Body, most: u64) -> Result<Spooled, Problem> {
    let length = announced(headers);
    if length.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    if length.is_some_and(|length| length <= IN_MEMORY as u64) {
        return Ok(Spooled::Memory(bytes(headers, body, usize::try_from(most).unwrap_or(IN_MEMORY).min(IN_MEMORY)).await?));
    }
    // A thread waits for the client (T-NET-08).
    let share = app.opened().uploads.take(tenant);
    let _share = share.ok_or_else(|| Problem::limited("too many uploads of this tenant at a time", 1))?;
    let (sender, mut pieces) = mpsc::channel::<Bytes>(4);
    let name = tenant.to_owned();
    let writing = app.blocking(move |app| {
        let mut file = tempfile::tempfile_in(app.tenant(&name)?.directory("incoming")?)?;
        let mut length = 0;
        while let Some(piece) = pieces.blocking_recv() {
            length += piece.len() as u64;
            file.write_all(&piece)?;
        }
        Ok((file, length))
    });
    let reading = async move {
        let (mut body, mut length) = (body, 0u64);
        loop {
            let frame = match tokio::time::timeout(PIECE_TIME, body.frame()).await {
                Err(_) => return Err(too_slow()),
                Ok(None) => return Ok(()),
                Ok(Some(Err(_))) => return Err(Problem::bad_request("the body ended early")),
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(piece) = frame.into_data() else { continue };
            length += piece.len() as u64;
            if length > most {
                return Err(too_large());
            }
            // The other side ends early only with an error of its own.
            if sender.send(piece).await.is_err() {
                return Ok(());
            }
        }
    };
    let (written, read) = futures_util::future::join(writing, reading).await;
    read?;
    let (file, length) = written?;
    Ok(Spooled::File(Arc::new(file), length))
}
