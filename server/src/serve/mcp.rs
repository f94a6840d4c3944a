//! `POST /mcp`: the Model Context Protocol on one of the tenant's sandboxes, with the same keys, turns and quotas as every route.

use std::sync::{Arc, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use runtime::actions::Audience;
use serde_json::Value;

use super::app::App;
use super::auth::{self, Caller};
use super::bodies;
use super::problem::Problem;
use super::sandboxes::{Known, bytes, measure, named, offered};
use crate::http::only;
use crate::mcp::{Service, Settings, Spending};
use crate::message::{LARGEST, Shape};

/// The sandbox of a client that names none.
const MAIN: &str = "main";
/// Views of one sandbox that have a service of their own at a time.
const MOST_VIEWS: usize = 16;
/// Largest answer.
const LARGEST_ANSWER: usize = 64 << 20;

/// Returns the route; it needs a key as those below `/v1` do.
pub(super) fn routes(app: &App) -> Router<App> {
    Router::new()
        .route("/mcp", post(serve))
        .layer(axum::extract::DefaultBodyLimit::disable())
        .layer(from_fn_with_state(app.clone(), bodies::counted))
        .layer(from_fn_with_state(app.clone(), auth::require))
}

// Without those that make sandboxes: here they have ids, quotas and routes of their own.
fn tools() -> Vec<String> {
    let in_sandboxes = runtime::actions::actions().iter().filter(|action| action.audience == Audience::Models);
    let on_skills = skills::actions::actions().iter().filter(|action| action.audience == Audience::Models);
    in_sandboxes.map(|action| action.name.to_owned()).chain(on_skills.map(|action| action.name.to_owned())).collect()
}

async fn serve(State(app): State<App>, caller: Caller, request: Request<Body>) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let bytes = read(&parts.headers, body).await?;
    let shape = Shape::of(&bytes);
    if let Some(fault) = shape.fault() {
        return Err(Problem::bad_request(fault.as_str()));
    }
    let calls = shape.method().as_deref() == Some("tools/call");
    let called = if calls { action_of(&bytes) } else { None };
    if calls {
        app.require_running()?;
        if called.is_some_and(Known::runs) {
            let tenant = caller.tenant.clone();
            app.look_up(move |app| app.require_fuel(&tenant)).await?;
        }
        if called.is_some_and(Known::may_store) {
            app.require_known_room(&caller.tenant).await?;
        }
    }
    let id = parts.headers.get("x-sandbox-id").map(|id| id.to_str().unwrap_or("").to_owned());
    let asking = caller.clone();
    let (service, slot) = app
        .blocking(move |app| {
            let id = match id {
                Some(id) => id,
                None => named(app, &asking, MAIN)?.id,
            };
            let (row, slot) = app.opened().find(app, &asking, &id)?;
            let mut services = slot.services.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(service) = services.get(&asking.view) {
                return Ok((service.clone(), Arc::clone(&slot)));
            }
            // A service keeps little state of a view, and recreates it when needed.
            if services.len() >= MOST_VIEWS {
                services.clear();
            }
            let sandbox = slot.open(app, &row, &asking)?;
            let limits = sandbox.limits().clone();
            let mut settings = Settings::new(app.host().clone(), limits);
            settings.tools = Some(tools());
            settings.skills = Some(app.tenant(&asking.tenant)?.skills().clone());
            let service = Service::new(sandbox, settings).map_err(|error| Problem::internal(&error))?;
            services.insert(asking.view.clone(), service.clone());
            drop(services);
            Ok((service, slot))
        })
        .await?;
    let busy = || Problem::limited("too many requests of this tenant are waiting", 1);
    if called.is_some_and(Known::takes_turns) {
        // The turn of the sandbox, taken before the tenant's turn: the other routes do the same, and return the version that they wrote.
        parts.extensions.insert(Arc::new(slot.turn().await?));
    }
    if calls {
        // Given back when the call has ended, which may be after this request.
        parts.extensions.insert(Arc::new(app.admission().turn(&caller.tenant).await.map_err(|_| busy())?));
    }
    if called.is_some_and(Known::runs) {
        let (app, tenant) = (app.clone(), caller.tenant);
        parts.extensions.insert(Spending(Arc::new(move |fuel| {
            // The request may have ended, so a failure cannot be reported to it.
            let _ = app.catalog().spend(&tenant, fuel);
        })));
    }
    parts.extensions.insert(service.load().take(shape.weight()).ok_or_else(busy)?);
    parts.extensions.insert(Arc::clone(&slot));
    let answer = protocol(service).handle(Request::from_parts(parts, Full::new(bytes))).await;
    let (parts, body) = answer.into_parts();
    let body = http_body_util::Limited::new(body, LARGEST_ANSWER).collect().await;
    let body = body.map_err(|error| Problem::internal(&*error))?.to_bytes();
    if let Some(known) = called {
        if known.takes_turns() {
            slot.touch();
        }
        if known.runs() {
            let mut message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let data = message.pointer_mut("/result/structuredContent").map(Value::take).unwrap_or_default();
            measure(&app, known.name(), data.is_object().then_some(&data), 0);
        }
    }
    // The protocol's own refusals are plain text.
    let is_json = parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if parts.status.is_client_error() && !is_json {
        return Err(Problem::new(parts.status, "protocol", String::from_utf8_lossy(&body).into_owned()));
    }
    Ok(Response::from_parts(parts, Body::from(body)).into_response())
}

// The action that a call names.
fn action_of(message: &[u8]) -> Option<Known> {
    let message: Value = serde_json::from_slice(message).unwrap_or_default();
    let name = message["params"]["name"].as_str()?;
    offered().find(|known| known.name() == name)
}

async fn read(headers: &HeaderMap, body: Body) -> Result<bytes::Bytes, Problem> {
    let kind = only(headers, &CONTENT_TYPE).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        let text = "the body must be application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", text));
    }
    bytes(headers, body, LARGEST).await
}

// Host names and origins were checked at the door; a second list here would have to be kept equal to it (T-NET-01, T-NET-02).
fn protocol(service: Service) -> StreamableHttpService<Service, NeverSessionManager> {
    let mut config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(LARGEST);
    config.sse_retry = None;
    StreamableHttpService::new(move || Ok(service.clone()), Arc::default(), config)
}
