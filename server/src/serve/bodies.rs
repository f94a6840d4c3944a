//! Bodies of requests in memory: each tenant has a bounded number of bytes at a time, whatever it sends (T-NET-04).

use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::Method;

use super::app::App;
use super::auth::Caller;
use super::idempotency;
use super::problem::Problem;
use super::sandboxes::IN_MEMORY;
use crate::message::LARGEST;

/// Counts the largest body that a request may have until it has its response. One with a declared length counts for no more than that.
pub(super) async fn counted(State(app): State<App>, caller: Caller, request: Request, next: Next) -> Result<Response, Problem> {
    let length = request.body().size_hint().upper().and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
    let held = app.opened().bodies.take_many(&caller.tenant, length.min(largest(&app, &request)));
    let _held = held.ok_or_else(|| Problem::limited("too many large requests of this tenant at a time", 1))?;
    Ok(next.run(request).await)
}

// Uploads into sandboxes wait in files. Below `/v1` the prefix is cut off before a layer sees the path.
fn largest(app: &App, request: &Request) -> usize {
    let path = request.uri().path();
    let is_upload = path.starts_with("/sandboxes/") && (*request.method() == Method::PUT || path == "/sandboxes/import");
    match path {
        _ if request.headers().contains_key(idempotency::KEY) => idempotency::LARGEST_REQUEST,
        _ if is_upload => IN_MEMORY,
        path if path.starts_with("/sandboxes") || path.starts_with("/mcp") => LARGEST,
        _ => app.config().body_bytes.max(app.config().skill_bytes),
    }
}
