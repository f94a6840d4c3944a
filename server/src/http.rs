//! HTTP on this machine: access control and request limits.
//!
//! Every request passes [`Guard`](guard::Guard) before any of it is parsed, and is then handled by the protocol's service. The
//! only state between requests is a session ID, which lets a client cancel its own requests (T-NET-01 to T-NET-04, T-NET-08).

mod body;
mod guard;
mod key;
mod patient;
mod places;
mod sessions;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};

use crate::Error;
use crate::mcp::Service;
use crate::message::{LARGEST, Shape};
use guard::Guard;
pub(crate) use guard::{Hosts, only};
pub use key::Key;
pub(crate) use key::random_hex;
pub(crate) use patient::Patient;
pub(crate) use places::{Place, Places};
use sessions::Sessions;

/// The header with the session ID.
pub(crate) const SESSION_HEADER: &str = "mcp-session-id";

/// Maximum size of the request line and headers, in bytes.
const HEADER_BYTES: usize = 64 << 10;
/// Delay after an invalid key, which slows down guessing without affecting other clients.
const REFUSAL_TIME: Duration = Duration::from_millis(200);

/// Timeouts for clients.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// To send the key, from the start of the connection.
    pub key: Duration,
    /// To start and send the headers of a further request.
    pub idle: Duration,
    /// To send a body.
    pub body: Duration,
    /// To accept more of a response.
    pub write: Duration,
}

impl Default for Times {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { key: seconds(5), idle: seconds(60), body: seconds(30), write: seconds(10) }
    }
}

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

type Answer = Response<BoxBody<Bytes, Infallible>>;
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
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(Error::Threads)?;
    let result = threads.block_on(async {
        let failed = |source| Error::Listen { address: listen.address, source };
        let listener = TcpListener::bind(listen.address).await.map_err(failed)?;
        ready(listener.local_addr().map_err(failed)?);
        let server = Arc::new(Server::new(service.clone(), listen));
        tokio::select! {
            () = accept(listener, server) => {}
            () = told_to_end() => {}
        }
        service.stop().await;
        Ok(())
    });
    threads.shutdown_background();
    result
}

/// Waits until the process receives a signal to end.
pub(crate) async fn told_to_end() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}

async fn accept(listener: TcpListener, server: Arc<Server>) {
    let places = Places::default();
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            // Most likely out of descriptors: other connections have to end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let place = Arc::new(places.enter(address.ip()));
        tokio::spawn(serve(stream, Arc::clone(&server), place));
    }
}

async fn serve(stream: TcpStream, server: Arc<Server>, place: Arc<Place>) {
    let times = server.times;
    let answering = Arc::clone(&place);
    let answer = service_fn(move |request| {
        let (server, place) = (Arc::clone(&server), Arc::clone(&answering));
        async move { Ok::<_, Infallible>(server.answer(request, &place).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.idle)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(Patient::new(stream, times.write)), answer);
    let unknown_for_too_long = async {
        tokio::time::sleep(times.key).await;
        if place.is_known() {
            std::future::pending().await
        }
    };
    tokio::select! {
        _ = connection => {}
        () = place.evicted() => {}
        () = unknown_for_too_long => {}
    }
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

    async fn answer(&self, request: Request<Incoming>, place: &Place) -> Answer {
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

    async fn admit(&self, request: Request<Incoming>, place: &Place) -> Result<Answer, Refusal> {
        self.guard.check(&request)?;
        if !place.admit() {
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

    async fn post(&self, request: Request<Incoming>, session: Option<String>) -> Result<Answer, Refusal> {
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
        let mut answer = self.protocol.handle(Request::from_parts(parts, Full::new(bytes))).await;
        if let Some(begun) = begun
            && answer.status().is_success()
            && let Ok(value) = HeaderValue::from_str(begun.id())
        {
            answer.headers_mut().insert(SESSION_HEADER, value);
            begun.keep();
        }
        Ok(answer)
    }
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
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
