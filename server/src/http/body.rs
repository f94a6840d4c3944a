//! Bodies: bounded in size, time and depth before anything is made of them (T-NET-04).

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde_json::Value;

use super::Refusal;
use super::guard::only;

/// Largest body: a file of a few megabytes in base64.
pub(super) const LARGEST: usize = 16 << 20;
/// Deepest nesting of arrays and objects.
const DEEPEST: usize = 64;
/// How long a body may take to arrive.
const TIME: Duration = Duration::from_secs(30);

/// Reads a body of JSON.
pub(super) async fn read(headers: &HeaderMap, incoming: Incoming) -> Result<Bytes, Refusal> {
    let kind = only(headers, &CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    // Anything else is what a page can send without asking first.
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json"));
    }
    match tokio::time::timeout(TIME, Limited::new(incoming, LARGEST).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"))
        }
        Ok(Err(_)) => Err(Refusal::new(StatusCode::BAD_REQUEST, "the body broke off")),
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}

/// The little that is looked at before the protocol's own service sees a message.
#[derive(Debug)]
pub(super) struct Message {
    method: String,
    cancelled: Option<String>,
}

impl Message {
    /// Reads one message; batches are none.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        check_shape(bytes)?;
        let message: Value =
            serde_json::from_slice(bytes).map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "the body is not JSON"))?;
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let request = &message["params"]["requestId"];
        let cancelled = match request {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        Ok(Self { cancelled: cancelled.filter(|_| method == "notifications/cancelled"), method })
    }

    /// Whether a client begins.
    pub(super) fn is_initialize(&self) -> bool {
        self.method == "initialize"
    }

    /// The request that the client no longer wants.
    pub(super) fn cancelled_request(&self) -> Option<String> {
        self.cancelled.clone()
    }
}

// One pass over the bytes, before a parser builds anything from them.
fn check_shape(bytes: &[u8]) -> Result<(), Refusal> {
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "batches are not taken: send one message at a time"));
    }
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for &byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "the body is nested too deeply"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> &'static str {
        Message::parse(text.as_bytes()).map_or_else(|refusal| refusal.text, |_| "")
    }

    // T-NET-04.
    #[test]
    fn batches_and_deep_bodies_are_refused_before_they_are_parsed() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(refused(&nested(63)), "");
        assert_eq!(refused(&nested(64)), "the body is nested too deeply");
        assert_eq!(refused(&"[".repeat(1_000_000)), "batches are not taken: send one message at a time");
        assert_eq!(refused(" \n[{}]"), "batches are not taken: send one message at a time");
        assert_eq!(refused(&format!("{{\"a\":\"\\\"{}\"}}", "[".repeat(99))), "", "brackets in a string do not nest");
        assert_eq!(refused("{"), "the body is not JSON");
    }

    #[test]
    fn a_cancelled_request_is_found_by_number_and_by_text() {
        let cancelled = |id: &str| {
            let text = format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
            Message::parse(text.as_bytes()).unwrap().cancelled_request()
        };
        assert_eq!(cancelled("7").as_deref(), Some("7"));
        assert_eq!(cancelled("\"a\"").as_deref(), Some("a"));
        assert_eq!(cancelled("{}"), None);
    }
}
