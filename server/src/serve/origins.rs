//! Pages of other origins that the settings list: browsers ask before they send a request, and show a page only responses that name its origin
//! (T-NET-01). Without such a setting no response has these headers.

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::http::only;

/// Methods of requests that a page may send.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// Headers of requests that a page may send.
const SENT: &str = "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Last-Event-ID, \
                    Mcp-Protocol-Version, Prefer, Range, Traceparent, X-Admin-Token, X-Request-ID, X-Sandbox-ID, X-Session-ID, X-Tenant-ID";
/// Headers of responses that a page may read.
const SHOWN: &str = "Accept-Ranges, Action-Failed, Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Location, \
                     Preference-Applied, Retry-After, X-Request-ID";
/// How long a browser remembers what it may send, in seconds.
const REMEMBERED: &str = "600";

/// Returns the origin of a request, if it is one of these.
pub(super) fn listed(headers: &HeaderMap, allowed: &[String]) -> Option<HeaderValue> {
    let origin = only(headers, &ORIGIN)?;
    allowed.iter().find(|known| *known == origin).and_then(|known| HeaderValue::from_str(known).ok())
}

/// Returns the response to a preflight request, which has no key; `None` for every other request.
pub(super) fn preflight(request: &Request) -> Option<Response> {
    if *request.method() != Method::OPTIONS || !request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let headers =
        [(ACCESS_CONTROL_ALLOW_METHODS, METHODS), (ACCESS_CONTROL_ALLOW_HEADERS, SENT), (ACCESS_CONTROL_MAX_AGE, REMEMBERED)];
    Some((StatusCode::NO_CONTENT, headers).into_response())
}

/// Lets pages of an origin read a response.
pub(super) fn show(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(SHOWN));
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_listed_as_a_whole() {
        let allowed = ["https://app.example".to_owned()];
        let is_listed = |origins: &[&'static str]| {
            let headers: HeaderMap = origins.iter().map(|origin| (ORIGIN, HeaderValue::from_static(origin))).collect();
            listed(&headers, &allowed).is_some()
        };
        assert!(is_listed(&["https://app.example"]));
        for other in ["https://app.example.evil", "https://app.exampl", "HTTPS://APP.EXAMPLE", "null", "*"] {
            assert!(!is_listed(&[other]), "{other}");
        }
        assert!(!is_listed(&[]));
    }
}
