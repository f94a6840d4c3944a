//! The response to a request that was not done: a status, a stable code, and a sentence.
//!
//! The body is Skillbox's: `{"error": code, "message": text, "details"?: any}`. The causes of a fault of the server name its files and tables:
//! they are written to the log under an id, and the response has only the id.

use std::sync::{Arc, OnceLock};

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::response::{IntoResponse, Response};
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::Log;
use super::catalog::new_id;
use super::clock::{now, rfc3339};

/// Writes one line of the log.
type Line = Arc<dyn Fn(&str) + Send + Sync>;

/// Where faults are written, set once by the server of this process.
static FAULTS: OnceLock<(Log, Line)> = OnceLock::new();

/// Writes faults to a log from now on, even if requests are not logged. The first caller in a process counts.
pub(super) fn log_faults(form: Log, line: Line) {
    let _ = FAULTS.set((form, line));
}

/// The id of the fault that a response reports, for the line of its request in the log.
#[derive(Clone, Debug)]
pub(super) struct FaultId(pub(super) String);

/// A request that was not done.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// The stable code.
    pub(crate) code: &'static str,
    /// The sentence for a person.
    pub(crate) message: String,
    /// Further fields for programs.
    pub(crate) details: Option<Value>,
    /// Seconds after which to try again.
    pub(crate) retry_after: Option<u64>,
    /// The id of a fault of the server in its log.
    pub(crate) fault: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: None, retry_after: None, fault: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// A request without a key; this text and those of other reasons are Skillbox's.
    pub(crate) fn no_key() -> Self {
        Self::unauthorized("missing Authorization header")
    }

    /// A key that is unknown, revoked or expired.
    pub(crate) fn invalid_key() -> Self {
        Self::unauthorized("invalid or revoked API key")
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// Something that does not exist, or belongs to another tenant: the same answer for both (T-NET-05).
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("{what} not found"))
    }

    /// The same for something that the client named: `file not found: a.txt`.
    pub(crate) fn not_found_named(what: &str, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("{what} not found: {}", runtime::actions::quoted(name)))
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// A quota or a queue that is full; `seconds` is when it may have room.
    pub(crate) fn limited(message: impl Into<String>, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "limit_exceeded", message) }
    }

    /// A fault of the server: its causes go to the log under an id, and the response has the id.
    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        let (id, causes) = (new_id(), runtime::causes(error).join(": "));
        if let Some((form, line)) = FAULTS.get() {
            match form {
                Log::Json => line(&json!({ "at": rfc3339(now()), "fault": id, "error": causes }).to_string()),
                Log::Text | Log::Off => line(&format!("fault {id}: {causes}")),
            }
        }
        let message = format!("internal error: the server's log has the details under `{id}`");
        let problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message);
        Self { fault: Some(id), ..problem }
    }

    pub(crate) fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Parameters of a query that are missing or wrong.
    pub(crate) fn invalid_query(rejection: &QueryRejection) -> Self {
        let text = rejection.body_text();
        Self::bad_request(format!(
            "invalid query: {}",
            text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text)
        ))
    }

    /// Its body as JSON.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({ "error": self.code, "message": self.message });
        if let (Some(details), Some(fields)) = (&self.details, body.as_object_mut()) {
            fields.insert("details".to_owned(), details.clone());
        }
        body
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.body())).into_response();
        if let Some(id) = self.fault {
            response.extensions_mut().insert(FaultId(id));
        }
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Self::internal(&error)
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::internal(&error)
    }
}

impl From<skills::Error> for Problem {
    fn from(error: skills::Error) -> Self {
        let error = match error {
            skills::Error::Runtime(error) => return error.into(),
            error => error,
        };
        let code = error.code();
        let status = match code {
            "invalid_skill" | "bad_request" => StatusCode::BAD_REQUEST,
            "security_scan_failed" => StatusCode::UNPROCESSABLE_ENTITY,
            "too_large" => StatusCode::PAYLOAD_TOO_LARGE,
            "not_found" => StatusCode::NOT_FOUND,
            "conflict" => StatusCode::CONFLICT,
            _ => return Self::internal(&error),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<runtime::Error> for Problem {
    fn from(error: runtime::Error) -> Self {
        use runtime::ErrorKind;
        let message = match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        };
        match error.kind() {
            ErrorKind::NotFound => Self::new(StatusCode::NOT_FOUND, "not_found", message),
            ErrorKind::Exists | ErrorKind::Stale | ErrorKind::Conflict => Self::conflict(message),
            ErrorKind::Denied => Self::forbidden(message),
            ErrorKind::TooLarge => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message),
            ErrorKind::Full => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "limit_reached", message),
            ErrorKind::Interrupted => Self::new(StatusCode::CONFLICT, "cancelled", "the request was cancelled"),
            ErrorKind::Invalid => Self::bad_request(message),
            // A directory that cannot be removed, such as the root.
            ErrorKind::Busy if !error.is_busy() => Self::conflict(message),
            // The text of these names files of the server.
            ErrorKind::Busy => Self {
                retry_after: Some(1),
                ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "the sandbox is busy: another command did not end in time")
            },
            ErrorKind::Foreign => {
                let text = "the sandbox cannot be read: its file is damaged or was made by a newer version";
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "damaged", text)
            }
            _ => Self::internal(&error),
        }
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "the body is too large")
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "the body must be application/json")
            }
            _ => {
                let text = rejection.body_text();
                let prefixes =
                    ["Failed to deserialize the JSON body into the target type: ", "Failed to parse the request body as JSON: "];
                let text = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(&text);
                Self::bad_request(format!("invalid body: {text}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_causes_of_a_fault_are_not_in_its_response() {
        let error = std::io::Error::other("cannot open /srv/data/tenants/secret.db");
        let (first, second) = (Problem::from(error), Problem::from(rusqlite::Error::InvalidPath("/srv/data/catalog.db".into())));
        for problem in [&first, &second] {
            let body = problem.body().to_string();
            assert!(!body.contains("/srv") && body.contains(problem.fault.as_deref().unwrap()), "{body}");
        }
        assert_ne!(first.fault, second.fault);
        let response = first.into_response();
        assert!(response.extensions().get::<FaultId>().is_some());
    }
}
