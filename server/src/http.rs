//! HTTP on this machine: access control and request limits.
//!
//! Every request passes [`Guard`](guard::Guard) before any of it is parsed, and is then handled by the protocol's service. The
//! only state between requests is a session ID, which lets a client cancel its own requests (T-NET-01 to T-NET-04, T-NET-08).

mod body;
mod guard;
mod key;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::Error;
use crate::listener::{Listener, Place, Places, REFUSAL_TIME, Times, stop_requested, threads};
use crate::mcp::Service;
use crate::message::{LARGEST, Shape};
use guard::Guard;
pub(crate) use guard::{Hosts, only};
pub use key::Key;
pub(crate) use key::random_hex;
use sessions::Sessions;

/// The only tenant.
const OWNER: &str = "";
/// The header with the session ID.
pub(crate) const SESSION_HEADER: &str = "mcp-session-id";

/// The address to listen on, and the clients to accept.
#[derive(Clone, Debug)]
pub struct Listen {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// The key that clients must send, also on this machine.
    pub key: Key,
    /// Host names of the server besides this machine's own.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call the server, such as `https://example.com`; defaults to none.
    pub origins: Vec<String>,
    /// Timeouts for clients; for tests.
    #[doc(hidden)]
    pub times: Times,
}

type Answer = Response<Body>;
type Protocol = StreamableHttpService<Service, NeverSessionManager>;

struct Server {
    guard: Guard,
    sessions: Sessions,
    times: Times,
    service: Service,
    protocol: Protocol,
}

/// Serves clients over HTTP until the process is terminated. Calls `ready` with the address once the server is listening.
///
/// # Errors
///
/// Returns an error if the address is not available, or if it is reachable from other machines and no host name is allowed.
pub fn serve_http(service: Service, listen: Listen, ready: impl FnOnce(SocketAddr)) -> Result<(), Error> {
    if !listen.address.ip().is_loopback() && listen.hosts.is_empty() {
        return Err(Error::NotLoopback(listen.address));
    }
    let threads = threads()?;
    let result = threads.block_on(async {
        let listener = Listener::bind(listen.address, Places::default(), listen.times, None).await?;
        ready(listener.address());
        let server = Arc::new(Server::new(service.clone(), listen));
        // One route for every path: the guard checks paths last, after the key.
        let router = Router::new().fallback(answer).with_state(server);
        tokio::select! {
            () = listener.serve(router) => {}
            () = stop_requested() => {}
        }
        service.stop().await;
        Ok(())
    });
    threads.shutdown_background();
    result
}

async fn answer(State(server): State<Arc<Server>>, Extension(place): Extension<Arc<Place>>, request: Request<Body>) -> Answer {
    server.answer(request, &place).await
}

impl Server {
    fn new(service: Service, listen: Listen) -> Self {
        let guard = Guard::new(&listen);
        // The guard has already checked all this; the protocol's own checks are a second line of defense. Its sessions are
        // disabled because ours are sufficient.
        let mut config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_allowed_hosts(guard.hosts())
            .with_allowed_origins(listen.origins.iter().cloned())
            .with_max_request_body_bytes(LARGEST)
            .enforce_origin_validation();
        config.sse_retry = None;
        let answering = service.clone();
        let protocol = StreamableHttpService::new(move || Ok(answering.clone()), Arc::default(), config);
        Self { guard, sessions: Sessions::default(), times: listen.times, service, protocol }
    }

    async fn answer(&self, request: Request<Body>, place: &Place) -> Answer {
        let mut answer = match self.admit(request, place).await {
            Ok(answer) => answer,
            Err(refusal) => {
                if refusal.status == StatusCode::UNAUTHORIZED {
                    tokio::time::sleep(REFUSAL_TIME).await;
                }
                let mut answer = refusal.into_answer();
                // Bytes after a rejected request cannot be interpreted.
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                answer
            }
        };
        let headers = answer.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        answer
    }

    async fn admit(&self, request: Request<Body>, place: &Place) -> Result<Answer, Refusal> {
        self.guard.check(&request)?;
        if !place.admit(OWNER) {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many connections"));
        }
        let session = sessions::named_in(request.headers())?;
        if let Some(session) = &session {
            self.sessions.touch(session)?;
        }
        match *request.method() {
            Method::POST => self.post(request, session).await,
            Method::DELETE => {
                let session = session.ok_or(Refusal::new(StatusCode::BAD_REQUEST, "missing session ID"))?;
                self.sessions.end(&session);
                Ok(plain(StatusCode::OK, ""))
            }
            _ => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "only POST and DELETE")),
        }
    }

    async fn post(&self, request: Request<Body>, session: Option<String>) -> Result<Answer, Refusal> {
        let busy = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many concurrent requests");
        let (mut parts, incoming) = request.into_parts();
        let length = guard::only(&parts.headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let reading = self.service.load().take(length.unwrap_or(LARGEST).min(LARGEST)).ok_or_else(busy)?;
        let bytes = body::read(&parts.headers, incoming, self.times.body).await?;
        let shape = Shape::of(&bytes);
        let message = body::Message::parse(&shape, &bytes)?;
        drop(reading);
        // Counted for as long as the request's context lives, which may be longer than this call because responses can be
        // streams.
        parts.extensions.insert(self.service.load().take(shape.weight()).ok_or_else(busy)?);
        if let (Some(session), Some(cancelled)) = (&session, message.cancelled_request()) {
            self.service.cancel(session, &cancelled);
        }
        // Reserved before the protocol sees the request, and issued only if it was an initialize request (T-NET-03).
        let begun = if message.is_initialize() { Some(self.sessions.reserve()?) } else { None };
        let mut answer = self.protocol.handle(Request::from_parts(parts, Full::new(bytes))).await.map(Body::new);
        if let Some(begun) = begun {
            let is_begun;
            (answer, is_begun) = succeeded(answer).await;
            if is_begun && let Ok(value) = HeaderValue::from_str(begun.id()) {
                answer.headers_mut().insert(SESSION_HEADER, value);
                begun.keep();
            }
        }
        Ok(answer)
    }
}

// Whether a response has the result of its request. The protocol returns status 200 for a failed one, too.
async fn succeeded(answer: Answer) -> (Answer, bool) {
    let (parts, body) = answer.into_parts();
    let Ok(body) = Limited::new(body, LARGEST).collect().await.map(Collected::to_bytes) else {
        return (plain(StatusCode::INTERNAL_SERVER_ERROR, "the response cannot be read"), false);
    };
    let message: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_result = parts.status == StatusCode::OK && message["result"].is_object();
    (Response::from_parts(parts, Body::from(body)), is_result)
}

/// A rejected request.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    text: &'static str,
}

impl Refusal {
    fn new(status: StatusCode, text: &'static str) -> Self {
        Self { status, text }
    }

    fn into_answer(self) -> Answer {
        let mut answer = plain(self.status, self.text);
        if self.status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
