//! Request bodies: limited in size, time and depth before they are parsed (T-NET-04).

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::Refusal;
use super::guard::only;
use crate::message::{LARGEST, Shape};

/// Reads a JSON body.
pub(super) async fn read(headers: &HeaderMap, incoming: Body, time: Duration) -> Result<Bytes, Refusal> {
    let kind = only(headers, &CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    // Web pages can send any other type without a preflight request.
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json"));
    }
    match tokio::time::timeout(time, Limited::new(incoming, LARGEST).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"))
        }
        Ok(Err(_)) => Err(Refusal::new(StatusCode::BAD_REQUEST, "the body is incomplete")),
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout while reading the body")),
    }
}

/// The parts of a message that are read before the protocol's service receives it.
#[derive(Debug)]
pub(super) struct Message {
    method: String,
    cancelled: Option<String>,
}

impl Message {
    /// Scans one message.
    pub(super) fn parse(shape: &Shape, bytes: &[u8]) -> Result<Self, Refusal> {
        if let Some(fault) = shape.fault() {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, fault.as_str()));
        }
        // Validates every byte without building anything.
        serde_json::from_slice::<IgnoredAny>(bytes).map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "the body is not JSON"))?;
        let method = shape.method().unwrap_or_default();
        let cancelled = if method == "notifications/cancelled" { cancelled(bytes) } else { None };
        Ok(Self { method, cancelled })
    }

    /// Returns whether the message is an initialize request.
    pub(super) fn is_initialize(&self) -> bool {
        self.method == "initialize"
    }

    /// Returns the request that the client cancels.
    pub(super) fn cancelled_request(&self) -> Option<String> {
        self.cancelled.clone()
    }
}

fn cancelled(bytes: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(bytes).ok()?;
    match &message["params"]["requestId"] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, Refusal> {
        Message::parse(&Shape::of(text.as_bytes()), text.as_bytes())
    }

    // T-NET-04.
    #[test]
    fn batches_and_deep_bodies_are_refused_before_they_are_parsed() {
        let refused = |text: &str| parse(text).map_or_else(|refusal| refusal.status.as_u16(), |_| 200);
        assert_eq!(refused("{\"method\":\"ping\"}"), 200);
        assert_eq!(refused(&"[".repeat(1_000_000)), 400);
        assert_eq!(refused("{"), 400);
        assert_eq!(refused(&format!("{{\"a\":{}", "[".repeat(100))), 400);
    }

    #[test]
    fn a_cancelled_request_is_found_by_number_and_by_text() {
        let cancelled = |id: &str| {
            let text = format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
            parse(&text).unwrap().cancelled_request()
        };
        assert_eq!(cancelled("7").as_deref(), Some("7"));
        assert_eq!(cancelled("\"a\"").as_deref(), Some("a"));
        assert_eq!(cancelled("{}"), None);
    }

    // T-NET-01: a page can send other types without asking first, and the library's own check is only the second.
    // T-NET-04: bodies that are too large, or stop.
    #[tokio::test]
    async fn only_json_of_a_bounded_size_that_comes_in_time_is_read() {
        let short = Duration::from_millis(20);
        let read = |kind: &'static str, body: Body| async move {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, http::HeaderValue::from_static(kind))]);
            read(&headers, body, short).await.map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
        };
        assert_eq!(read("application/json; charset=utf-8", Body::from("{}")).await, 200);
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""] {
            assert_eq!(read(kind, Body::from("{}")).await, 415, "{kind}");
        }
        assert_eq!(read("application/json", Body::from(vec![b' '; LARGEST + 1])).await, 413);
        let stopped = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        assert_eq!(read("application/json", Body::from_stream(stopped)).await, 408);
    }
}
