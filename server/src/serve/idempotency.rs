//! `Idempotency-Key`: a request that is sent twice is performed once, and both responses have the same bytes.
//!
//! The request is completed even if its client disconnects: the client sends it again and gets the same response. A key belongs to its tenant
//! and its API key. Answers that hold a new API key are not kept: nothing of a key is stored but its digest.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::json;

use super::app::App;
use super::auth::Caller;
use super::catalog::{Begun, KeptAnswer};
use super::problem::Problem;
use super::sandboxes::{FAILED, bytes, offered};
use super::traces::carried;
use crate::http::only;

pub(super) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Longest key.
const LONGEST: usize = 255;
/// Largest body of a request with a key: it is compared as a whole.
pub(super) const LARGEST_REQUEST: usize = 16 << 20;
/// Largest answer that is kept.
const LARGEST_ANSWER: usize = 1 << 20;
/// Headers that are part of the identity of a request.
const DECISIVE: [HeaderName; 6] =
    [CONTENT_TYPE, ACCEPT, IF_MATCH, IF_NONE_MATCH, HeaderName::from_static("prefer"), HeaderName::from_static("x-session-id")];
/// Headers of a response that are stored.
const KEPT: [HeaderName; 4] = [CONTENT_TYPE, ETAG, LOCATION, FAILED];

/// Passes a request on, unless its response is stored.
pub(super) async fn once(State(app): State<App>, request: Request, next: Next) -> Response {
    let changes = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    // Below `/v1` the prefix is cut off before a layer sees the path.
    let makes_key = *request.method() == Method::POST && request.uri().path().trim_start_matches("/v1").starts_with("/keys");
    if !request.headers().contains_key(&KEY) || !changes || makes_key {
        return next.run(request).await;
    }
    guarded(&app, request, next).await.unwrap_or_else(Problem::into_response)
}

/// A request in progress; dropped without a response, it counts as never begun.
struct UnderWay {
    app: App,
    tenant: String,
    key: String,
    is_ended: bool,
}

impl UnderWay {
    async fn end(mut self, answer: Option<KeptAnswer>) -> Result<(), Problem> {
        self.is_ended = true;
        let (tenant, key) = (self.tenant.clone(), self.key.clone());
        self.app.blocking(move |app| Ok(app.catalog().end_request(&tenant, &key, answer.as_ref())?)).await
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        let (app, tenant, key) = (self.app.clone(), std::mem::take(&mut self.tenant), std::mem::take(&mut self.key));
        tokio::task::spawn_blocking(move || app.catalog().end_request(&tenant, &key, None));
    }
}

async fn guarded(app: &App, request: Request, next: Next) -> Result<Response, Problem> {
    let caller = request.extensions().get::<Caller>().cloned().ok_or_else(Problem::no_key)?;
    let is_fine = |key: &&str| (1..=LONGEST).contains(&key.len()) && key.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let key = only(request.headers(), &KEY).filter(is_fine).map(str::to_owned);
    let key = key.ok_or_else(|| Problem::bad_request("invalid `Idempotency-Key`: expected 1 to 255 printable characters"))?;
    let (parts, body) = request.into_parts();
    let body = bytes(&parts.headers, body, LARGEST_REQUEST).await?;
    let print = {
        let mut hasher = blake3::Hasher::new();
        let header = |name: &HeaderName| parts.headers.get(name).map_or(&b""[..], HeaderValue::as_bytes);
        let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
        let chosen = DECISIVE.each_ref().map(header);
        for part in
            [caller.key.as_bytes(), parts.method.as_str().as_bytes(), target.as_bytes()].iter().chain(&chosen).chain([&&body[..]])
        {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().as_bytes().to_vec()
    };
    let request = Request::from_parts(parts, Body::from(body));
    // A separate task, which does not end with the connection.
    let task = tokio::spawn(carried(completed(app.clone(), caller.tenant, key, print, request, next)));
    task.await
        .unwrap_or_else(|_| Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the request was aborted")))
}

// Whether a request makes room.
fn frees(request: &Request) -> bool {
    let action = request.uri().path().rsplit_once("/actions/").map(|(_, action)| action);
    *request.method() == Method::DELETE
        || action.is_some_and(|action| offered().any(|known| known.name() == action && known.frees()))
}

// Performs a request that is new, and stores its response.
async fn completed(
    app: App,
    tenant: String,
    key: String,
    print: Vec<u8>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (owner, named) = (tenant.clone(), key.clone());
    let begun = app.blocking(move |app| Ok(app.catalog().begin_request(&owner, &named, &print, app.opened().started)?)).await?;
    match begun {
        Begun::New => {}
        Begun::UnderWay => {
            let text = "a request with this `Idempotency-Key` is under way";
            return Err(Problem { retry_after: Some(1), ..Problem::new(StatusCode::CONFLICT, "idempotency_in_progress", text) });
        }
        Begun::Mismatch => {
            let text = "this `Idempotency-Key` was used for another request: choose a new one";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch", text));
        }
        Begun::Answered(kept) => return Ok(replayed(kept)),
    }
    let under_way = UnderWay { app, tenant, key, is_ended: false };
    // The response is stored. Requests that free room work without any, and their responses are short.
    if !frees(&request) {
        under_way.app.require_known_room(&under_way.tenant).await?;
    }
    let response = next.run(request).await;
    let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    // A response that asks to retry later is not final.
    let is_later = matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    if response.status().is_server_error() || is_later || is_stream {
        under_way.end(None).await?;
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let (body, whole) = collected(body).await?;
    let Some(whole) = whole else {
        under_way.end(None).await?;
        return Ok(Response::from_parts(parts, body));
    };
    let headers: Vec<(String, String)> = KEPT
        .iter()
        .filter_map(|name| Some((name.as_str().to_owned(), parts.headers.get(name)?.to_str().ok()?.to_owned())))
        .collect();
    let kept = KeptAnswer { status: parts.status.as_u16(), headers: json!(headers).to_string(), body: whole.to_vec() };
    under_way.end(Some(kept)).await?;
    Ok(Response::from_parts(parts, body))
}

// The body again, and its bytes if they are few enough to be kept.
async fn collected(mut body: Body) -> Result<(Body, Option<Bytes>), Problem> {
    let mut pieces: Vec<Bytes> = Vec::new();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::internal(&error))?;
        let Ok(piece) = frame.into_data() else { continue };
        size += piece.len();
        pieces.push(piece);
        if size > LARGEST_ANSWER {
            let first = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, axum::Error>));
            let rest = futures_util::StreamExt::chain(first, body.into_data_stream());
            return Ok((Body::from_stream(rest), None));
        }
    }
    let whole = Bytes::from(pieces.concat());
    Ok((Body::from(whole.clone()), Some(whole)))
}

fn replayed(kept: KeptAnswer) -> Response {
    let mut response = Response::new(Body::from(kept.body));
    *response.status_mut() = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    let headers: Vec<(String, String)> = serde_json::from_str(&kept.headers).unwrap_or_default();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}
