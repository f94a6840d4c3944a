//! Routes for the operator: health, metrics, keys, the audit log.

use axum::Json;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get};
use axum::{Router, extract::rejection::JsonRejection};
use futures_util::FutureExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use runtime::Sandbox;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::auth::{self, Caller};
use super::catalog::{AuditRow, KeyRow, NewKey, Role};
use super::path::Path;
use super::problem::Problem;
use super::sandboxes::{check_view, query};
use crate::listener::REFUSAL_TIME;

/// Rows of a page of the audit log, and most of them.
const PAGE: usize = 100;
const MOST_ROWS: usize = 1000;
/// The delay after which an admin with the maximum number of keys may retry, in seconds.
const LATER: u64 = 3600;
/// Longest name of a tenant or a key.
const LONGEST_NAME: usize = 128;

/// Routes that need no key.
pub(super) fn open_routes() -> Router<App> {
    Router::new().route("/health", get(health)).route("/ready", get(ready)).route("/metrics", get(metrics))
}

/// Routes of admins.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/keys", get(list_keys).post(create_key))
        .route("/keys/{id}", delete(revoke_key))
        .route("/audit", get(audit))
        .route("/whoami", get(who_am_i))
}

async fn health() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

// Skillbox's programs look for a check of this name.
async fn ready(State(app): State<App>) -> Response {
    match app.blocking(|app| Ok(app.catalog().check()?)).await {
        Ok(()) => Json(json!({ "status": "ready", "checks": { "postgres": "ok" } })).into_response(),
        Err(problem) => {
            let body = json!({ "status": "not_ready", "checks": { "postgres": problem.message } });
            (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
        }
    }
}

async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    if let Some(token) = &app.config().metrics_token {
        let shown = auth::shown_key(&headers)?;
        // Digests are compared, so that the duration reveals nothing about the token.
        if blake3::hash(shown.as_bytes()) != blake3::hash(token.as_bytes()) {
            tokio::time::sleep(REFUSAL_TIME).await;
            return Err(Problem::unauthorized("invalid token of /metrics"));
        }
    }
    let (running, waiting) = app.admission().counts();
    // `/ready` reports a catalog that cannot be read.
    let sandboxes = app.blocking(|app| Ok(app.catalog().count_all_sandboxes()?)).await.unwrap_or(0);
    let gauges = [
        ("sandlite_running", "Runs under way", running as u64),
        ("sandlite_waiting", "Requests that wait for their turn", waiting as u64),
        ("sandlite_open_sandboxes", "Sandboxes held open", app.opened().len() as u64),
        ("sandlite_sandboxes", "Sandboxes of all tenants", sandboxes),
        ("sandlite_stored_bytes", "Bytes in the data directory, counted every minute", app.stored_bytes()),
    ];
    let (sent, dropped) = app.traces().counts().unzip();
    let spans = [
        ("sandlite_spans_sent_total", "Spans that the collector of traces accepted", sent.unwrap_or(0)),
        ("sandlite_spans_dropped_total", "Spans that were dropped", dropped.unwrap_or(0)),
    ];
    let counters: &[_] = if sent.is_some() { &spans[..] } else { &[] };
    let mut response = app.metrics().render(&gauges, counters).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4"));
    Ok(response)
}

async fn who_am_i(caller: Caller) -> Json<Value> {
    Json(json!({ "tenant": caller.tenant, "role": caller.role, "key": caller.key, "view": caller.view }))
}

async fn list_keys(State(app): State<App>, caller: Caller) -> Result<Json<Vec<KeyRow>>, Problem> {
    caller.require(Role::Admin)?;
    app.blocking(move |app| Ok(Json(app.catalog().list_keys(Some(&caller.tenant))?))).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateKey {
    role: String,
    #[serde(default)]
    name: String,
    view: Option<String>,
    /// How long it counts, such as `24h`.
    expires: Option<String>,
}

async fn create_key(
    State(app): State<App>,
    caller: Caller,
    body: Result<Json<CreateKey>, JsonRejection>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    caller.require(Role::Admin)?;
    let Json(body) = body?;
    let role: Role = body.role.parse().map_err(Problem::bad_request)?;
    let lifetime = body.expires.as_deref().map(|text| {
        skills::parse_duration(text).ok_or_else(|| Problem::bad_request("invalid `expires`: expected a time such as 24h"))
    });
    let lifetime = lifetime.transpose()?;
    if body.name.len() > LONGEST_NAME {
        return Err(Problem::bad_request("invalid `name`: at most 128 bytes"));
    }
    let view = match (caller.view, body.view) {
        (Some(own), Some(asked)) if own != asked => {
            // Otherwise the key would see paths that are hidden from its creator (T-POL-08).
            return Err(Problem::forbidden(format!(
                "this key has the view `{own}`, so its keys have no other: leave `view` out"
            )));
        }
        (own, asked) => asked.or(own),
    };
    let new = NewKey { tenant: caller.tenant, role, view, name: body.name, lifetime, is_service: false };
    let made = app.blocking(move |app| {
        if let Some(view) = &new.view {
            let checked = check_view(Sandbox::builder().host(app.host()), view);
            checked.map_err(|error| Problem::bad_request(format!("invalid `view`: {error}")))?;
        }
        let (used, most) = (app.catalog().count_keys(&new.tenant)?, app.allowed(&new.tenant)?.keys);
        if used >= most {
            let details = json!({ "quota": "keys", "used": used, "limit": most, "retry_after_seconds": LATER });
            return Err(Problem::limited(format!("the tenant has {used} keys"), LATER).with_details(details));
        }
        Ok(app.catalog().create_key(&new, None)?)
    });
    let (key, id) = made.await?;
    Ok((StatusCode::CREATED, Json(json!({ "id": id, "key": key }))))
}

async fn revoke_key(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    caller.require(Role::Admin)?;
    app.blocking(move |app| match app.catalog().revoke_key(Some(&caller.tenant), &id)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found("key")),
    })
    .await
}

#[derive(Deserialize)]
struct Page {
    before: Option<i64>,
    limit: Option<usize>,
}

async fn audit(State(app): State<App>, caller: Caller, uri: Uri) -> Result<Json<Vec<AuditRow>>, Problem> {
    caller.require(Role::Admin)?;
    let page: Page = query(&uri)?;
    let (before, limit) = (page.before.unwrap_or(i64::MAX), page.limit.unwrap_or(PAGE));
    if !(1..=MOST_ROWS).contains(&limit) {
        return Err(Problem::bad_request("invalid `limit`: expected 1 to 1000"));
    }
    app.blocking(move |app| Ok(Json(app.catalog().audit_rows(&caller.tenant, before, limit)?))).await
}

/// Turns a panic in a route into a response instead of closing the connection.
pub(super) async fn no_panic(request: Request, next: Next) -> Response {
    let answered = std::panic::AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answered.unwrap_or_else(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the request was aborted").into_response()
    })
}
