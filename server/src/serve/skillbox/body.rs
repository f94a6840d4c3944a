//! Bodies of requests, read up to a maximum size as bytes, JSON or a form; and of responses, as JSON with unchanged numbers.

use std::time::Duration;

use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest as _, Multipart, Query, Request};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::serve::problem::Problem;

/// How long a client may take for the next piece of a body.
const PIECE_TIME: Duration = Duration::from_secs(30);
/// Bytes of a form besides its file.
const FORM_BYTES: usize = 64 << 10;
/// Longest text of a form.
const TEXT_BYTES: usize = 4 << 10;

/// A body that is larger than its route takes.
fn too_large(most: usize) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", format!("the body has more than {most} bytes"))
}

fn too_slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body took too long")
}

/// Reads a whole body.
pub(super) async fn bytes(body: Body, most: usize) -> Result<Bytes, Problem> {
    bytes_within(body, most, PIECE_TIME).await
}

// Each piece has its own time limit: a large body may take long, one that stops may not (T-NET-04).
async fn bytes_within(body: Body, most: usize, time: Duration) -> Result<Bytes, Problem> {
    let mut body = Limited::new(body, most);
    let mut whole = BytesMut::new();
    loop {
        match tokio::time::timeout(time, body.frame()).await {
            Err(_) => return Err(too_slow()),
            Ok(None) => return Ok(whole.freeze()),
            Ok(Some(Err(error))) if error.is::<LengthLimitError>() => return Err(too_large(most)),
            Ok(Some(Err(error))) => return Err(Problem::bad_request(format!("the body cannot be read: {error}"))),
            Ok(Some(Ok(frame))) => whole.extend_from_slice(&frame.into_data().unwrap_or_default()),
        }
    }
}

// The same body, which ends with an error when a piece takes too long.
fn patient(body: Body, time: Duration) -> Body {
    Body::from_stream(futures_util::stream::unfold(body, move |mut body| async move {
        let piece = match tokio::time::timeout(time, body.frame()).await {
            Err(_) => Err(axum::Error::new(std::io::Error::from(std::io::ErrorKind::TimedOut))),
            Ok(None) => return None,
            Ok(Some(frame)) => frame.map(|frame| frame.into_data().unwrap_or_default()),
        };
        Some((piece, body))
    }))
}

/// Reads a body as JSON regardless of its `Content-Type`, which some clients of Skillbox omit.
pub(super) async fn json<T: DeserializeOwned>(body: Body, most: usize) -> Result<T, Problem> {
    parse(&bytes(body, most).await?, "request body")
}

/// Parses a JSON object that a client sent; `what` is its name in errors.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, Problem> {
    // Otherwise a list would be taken for the members in their order.
    if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        return Err(Problem::bad_request(format!("invalid {what}: expected an object")));
    }
    serde_json::from_slice(bytes).map_err(|error| Problem::bad_request(format!("invalid {what}: {error}")))
}

/// Reads a member of which `null` is the default, as Skillbox's server does; for `deserialize_with`.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a number of a query; anything else is `None`, as in Skillbox.
pub(super) fn number(text: Option<&str>) -> Option<i64> {
    text.and_then(|text| text.parse().ok())
}

/// The parameters of a query.
pub(super) fn query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Problem> {
    query.map(|Query(query)| query).map_err(|rejection| Problem::invalid_query(&rejection))
}

/// A file that was sent in a form.
pub(super) struct Upload {
    /// The name that the client gave it; may be anything.
    pub(super) name: String,
    pub(super) content_type: Option<String>,
    pub(super) bytes: Bytes,
}

/// A form: its field `file`, and its texts.
#[derive(Default)]
pub(super) struct Form {
    pub(super) file: Option<Upload>,
    texts: Vec<(String, String)>,
}

impl Form {
    /// The text of a field; `None` if it is missing or empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.texts.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
        found.filter(|text| !text.is_empty())
    }

    /// The file.
    pub(super) fn file(&mut self) -> Result<Upload, Problem> {
        self.file.take().ok_or_else(no_file)
    }
}

/// A form without a file.
pub(super) fn no_file() -> Problem {
    Problem::bad_request("missing 'file' field in multipart form")
}

/// Reads a form; `most` is the largest size of its file in bytes.
pub(super) async fn form(request: Request, most: usize) -> Result<Form, Problem> {
    let (parts, body) = request.into_parts();
    let body = patient(body, PIECE_TIME);
    let limited = Request::from_parts(parts, Body::new(Limited::new(body, most.saturating_add(FORM_BYTES))));
    let multipart = Multipart::from_request(limited, &()).await;
    let mut multipart = multipart.map_err(|_| Problem::bad_request("the body must be multipart/form-data with a boundary"))?;
    let failed = |error: MultipartError| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(most),
        _ => Problem::bad_request(format!("invalid form: {}", error.body_text())),
    };
    let mut form = Form::default();
    while let Some(field) = multipart.next_field().await.map_err(failed)? {
        if field.name() == Some("file") {
            let (name, content_type) =
                (field.file_name().unwrap_or_default().to_owned(), field.content_type().map(str::to_owned));
            let bytes = field.bytes().await.map_err(failed)?;
            if bytes.len() > most {
                return Err(too_large(most));
            }
            form.file = Some(Upload { name, content_type, bytes });
        } else if let Some(text) = text(field).await.map_err(failed)? {
            form.texts.push(text);
        }
    }
    Ok(form)
}

// A field that is a short text.
async fn text(field: Field<'_>) -> Result<Option<(String, String)>, MultipartError> {
    let Some(name) = field.name().map(str::to_owned) else { return Ok(None) };
    let bytes = field.bytes().await?;
    let text = String::from_utf8(bytes.to_vec()).ok().filter(|text| text.len() <= TEXT_BYTES);
    Ok(text.map(|text| (name, text)))
}

/// Returns the text of a member of a JSON object that was parsed before: numbers stay as they were written. The last one counts.
pub(super) fn raw_member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    let (mut start, mut key, mut found) = (0, None, None);
    for (at, byte) in json.bytes().enumerate() {
        if in_text {
            in_text = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' | b'[' => {
                depth += 1;
                start = if depth == 1 { at + 1 } else { start };
            }
            b':' if depth == 1 => {
                key = json.get(start..at);
                start = at + 1;
            }
            b',' | b'}' if depth == 1 => {
                let is_it = |key: &str| serde_json::from_str::<String>(key.trim()).is_ok_and(|key| key == name);
                if key.take().is_some_and(is_it) {
                    found = json.get(start..at).map(str::trim);
                }
                start = at + 1;
                depth -= usize::from(byte == b'}');
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

/// A JSON object that is written member by member.
pub(super) struct Object(String);

impl Object {
    pub(super) fn new() -> Self {
        Self("{".to_owned())
    }

    /// Adds a member whose value is JSON text already.
    pub(super) fn raw(mut self, name: &str, json: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&format!("\"{name}\":{json}"));
        self
    }

    /// Adds a member.
    pub(super) fn with(self, name: &str, value: &impl Serialize) -> Self {
        let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        self.raw(name, &json)
    }

    /// Adds a member if there is a value.
    pub(super) fn with_some(self, name: &str, value: Option<&impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// An answer of JSON text.
pub(super) fn json_response(status: StatusCode, json: String) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], json).into_response()
}

/// An answer that hands out a file: never shown as a page, under a name that is only a name (T-NET-07).
pub(super) fn download(name: &str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    if let Ok(value) = HeaderValue::from_str(&disposition(name)) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    response
}

// The last part of a name: plain characters for old clients, and all of it percent-encoded (RFC 6266).
fn disposition(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._- ".contains(letter);
    let plain: String = last.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).take(200).collect();
    let plain = if plain.trim_matches(['.', ' ']).is_empty() { "file".to_owned() } else { plain };
    let encoded: String = last
        .chars()
        .filter(|letter| !letter.is_control())
        .take(200)
        .flat_map(|letter| letter.to_string().into_bytes())
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-NET-04.
    #[tokio::test]
    async fn a_body_that_is_too_large_or_stops_is_rejected() {
        let short = Duration::from_millis(20);
        let pieces = |texts: &'static [&'static str]| {
            Body::from_stream(futures_util::stream::iter(texts.iter().map(|text| Ok::<_, std::io::Error>(Bytes::from(*text)))))
        };
        assert_eq!(bytes_within(pieces(&["abc", "de"]), 5, short).await.unwrap(), "abcde");
        assert_eq!(bytes_within(pieces(&["abc", "def"]), 5, short).await.unwrap_err().status.as_u16(), 413);
        let stopped = || Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(bytes_within(stopped(), 5, short).await.unwrap_err().status.as_u16(), 408);
        assert!(patient(stopped(), short).collect().await.is_err());
        assert_eq!(patient(pieces(&["abc", "de"]), short).collect().await.unwrap().to_bytes(), "abcde");
    }

    #[test]
    fn a_member_is_found_as_it_was_written() {
        let check = |json: &str, expected: Option<&str>| assert_eq!(raw_member(json, "input"), expected, "{json}");
        check(r#"{"skill":"x","input":{"n": 123456789012345678901234567890, "t": "a,}\"b"},"env":{}}"#, {
            Some(r#"{"n": 123456789012345678901234567890, "t": "a,}\"b"}"#)
        });
        check(r#"{"other":{"input":1},"list":["input",{"input":2}]}"#, None);
        check(r#"{ "\u0069nput" : 1.50 }"#, Some("1.50"));
        check(r#"{"input":1,"input":[2]}"#, Some("[2]"));
        check(r#"{"a\\":"\\","input":null}"#, Some("null"));
        check("[]", None);
    }

    #[test]
    fn an_object_is_compact_and_keeps_its_fields() {
        let object = Object::new().with("a", &"x\"y").raw("b", "1.50").with_some("c", None::<&u8>).with("d", &None::<u8>);
        assert_eq!(object.finish(), r#"{"a":"x\"y","b":1.50,"d":null}"#);
        assert_eq!(Object::new().finish(), "{}");
    }

    #[test]
    fn a_name_in_a_header_is_only_a_name() {
        let check = |name: &str, expected: &str| assert_eq!(disposition(name), format!("attachment; {expected}"));
        check("nested/report.txt", "filename=\"report.txt\"; filename*=UTF-8''report.txt");
        check("a\"\r\nX-Evil: 1.html", "filename=\"a___X-Evil_ 1.html\"; filename*=UTF-8''a%22X-Evil%3A%201.html");
        check("../..", "filename=\"file\"; filename*=UTF-8''..");
        check("übung.txt", "filename=\"_bung.txt\"; filename*=UTF-8''%C3%BCbung.txt");
    }
}
