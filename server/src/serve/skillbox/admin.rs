//! `/v1/admin`: the requests of Skillbox's back office, as far as they apply here. Skills are available at once, so nothing waits for review.

use axum::Json;
use axum::extract::{Request, State};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body;
use super::patterns::Patterns;
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::catalog::Role;
use crate::serve::clock::{now, rfc3339};
use crate::serve::path::Path;
use crate::serve::problem::Problem;

/// Largest body of these routes.
const MOST_BYTES: usize = 1 << 20;

/// Requires the role, and the token if the server has one.
pub(in crate::serve) fn require(app: &App, caller: &Caller, headers: &HeaderMap) -> Result<(), Problem> {
    caller.require(Role::Admin)?;
    let Some(token) = &app.config().admin_token else { return Ok(()) };
    let shown = headers.get("x-admin-token").map(http::HeaderValue::as_bytes).unwrap_or_default();
    // Digests are compared, so that the duration reveals nothing about the token.
    match blake3::hash(shown) == blake3::hash(token.as_bytes()) {
        true => Ok(()),
        false => Err(Problem::unauthorized("valid admin token required")),
    }
}

pub(super) async fn stats(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Result<Json<Value>, Problem> {
    require(&app, &caller, &headers)?;
    Ok(Json(json!({ "enabled": app.config().scans })))
}

pub(super) async fn patterns(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Result<Json<Value>, Problem> {
    require(&app, &caller, &headers)?;
    app.blocking(move |app| Ok(Json(json!(Patterns::of(app, &caller.tenant)?)))).await
}

/// Replaces the tenant's own patterns; an empty body removes them. The built-in ones stay.
pub(super) async fn set_patterns(State(app): State<App>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    require(&app, &caller, request.headers())?;
    let bytes = body::bytes(request.into_body(), MOST_BYTES).await?;
    let patterns = if bytes.is_empty() { Ok(Patterns::none()) } else { body::parse(&bytes, "patterns") };
    let invalid = |problem: Problem| match problem.status {
        StatusCode::BAD_REQUEST => Problem { code: "invalid_patterns", ..problem },
        _ => problem,
    };
    let patterns: Patterns = patterns.map_err(invalid)?;
    app.blocking(move |app| {
        patterns.store(app, &caller.tenant).map_err(invalid)?;
        Ok(Json(json!(patterns)))
    })
    .await
}

fn config_of(tenant: &str, policy: &str) -> Value {
    json!({
        "tenant_id": tenant, "approval_policy": policy, "tier1_enabled": true, "tier2_enabled": true, "tier3_enabled": false,
        "tier3_model": "", "updated_at": rfc3339(now()),
    })
}

pub(super) async fn config(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Result<Json<Value>, Problem> {
    require(&app, &caller, &headers)?;
    app.blocking(move |app| Ok(Json(config_of(&caller.tenant, &app.catalog().scan_policy(&caller.tenant)?)))).await
}

#[derive(Deserialize)]
struct ScannerConfig {
    approval_policy: Option<String>,
    tier3_enabled: Option<bool>,
}

/// With the policy `auto`, a push with a finding that blocks is refused; with `none`, every skill that is in order is taken.
pub(super) async fn set_config(State(app): State<App>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    require(&app, &caller, request.headers())?;
    let asked: ScannerConfig = body::json(request.into_body(), MOST_BYTES).await?;
    let unsupported = |message: &str| Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "scanner_disabled", message));
    if asked.tier3_enabled == Some(true) {
        return unsupported("there is no scan by a language model");
    }
    match asked.approval_policy.as_deref() {
        None | Some("auto" | "none") => {}
        Some("always") => return unsupported("there is no review: choose the approval_policy `auto` or `none`"),
        Some(_) => return Err(Problem::bad_request("approval_policy must be `auto`, `always` or `none`")),
    }
    app.blocking(move |app| {
        if let Some(policy) = &asked.approval_policy {
            app.catalog().set_scan_policy(&caller.tenant, policy)?;
        }
        Ok(Json(config_of(&caller.tenant, &app.catalog().scan_policy(&caller.tenant)?)))
    })
    .await
}

pub(super) async fn reviews(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Result<Json<Value>, Problem> {
    require(&app, &caller, &headers)?;
    Ok(Json(json!([])))
}

#[derive(Deserialize)]
struct Review {
    action: String,
}

pub(super) async fn review(
    State(app): State<App>,
    caller: Caller,
    Path((_name, _version)): Path<(String, String)>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    require(&app, &caller, request.headers())?;
    let Review { action } = body::json(request.into_body(), MOST_BYTES).await?;
    if !matches!(action.as_str(), "approve" | "decline" | "decline_forever" | "reopen") {
        return Err(Problem::bad_request("`action` must be approve, decline, decline_forever or reopen"));
    }
    Err(Problem::new(StatusCode::NOT_FOUND, "not_found", "skill not found or not in review status"))
}
