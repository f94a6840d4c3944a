//! Connections of clients: one loop for `sandlite mcp --http` and `sandlite serve`, with all its limits (T-NET-04, T-NET-08).
//!
//! Does not look at requests: each is passed to one shared router, with the [`Place`] of its connection as an extension.

mod patient;
mod places;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tower::Service as _;

use crate::Error;
use patient::Patient;
pub(crate) use places::{Place, Places};
pub(crate) use tls::Tls;

/// Maximum size of the request line and headers, in bytes.
const HEADER_BYTES: usize = 64 << 10;
/// Delay after an invalid key, which slows down guessing without affecting other clients. Skillbox's programs allow 50 ms.
pub(crate) const REFUSAL_TIME: Duration = Duration::from_millis(20);
/// Delay after a failed `accept`: most likely out of descriptors, and other connections have to end first.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

/// Timeouts for clients.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// To send the key, from the start of the connection; includes the TLS handshake.
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

/// A socket that accepts connections, and the limits for them.
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    places: Places,
    times: Times,
    tls: Option<Tls>,
}

impl Listener {
    /// Binds an address; port 0 takes a free one.
    pub(crate) async fn bind(address: SocketAddr, places: Places, times: Times, tls: Option<Tls>) -> Result<Self, Error> {
        let failed = |source| Error::Listen { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address, places, times, tls })
    }

    /// Returns the address with the port that was taken.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves connections forever.
    pub(crate) async fn serve(self, router: Router) {
        loop {
            let Ok((stream, address)) = self.socket.accept().await else {
                tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
                continue;
            };
            let _ = stream.set_nodelay(true);
            let place = Arc::new(self.places.enter(address.ip()));
            tokio::spawn(connection(stream, router.clone(), place, self.times, self.tls.clone()));
        }
    }
}

async fn connection(stream: TcpStream, router: Router, place: Arc<Place>, times: Times, tls: Option<Tls>) {
    let stream = Patient::new(stream, times.write);
    let served = async {
        match tls {
            None => requests(stream, router, &place, times).await,
            Some(tls) => {
                if let Some(stream) = tls.accept(stream).await {
                    requests(stream, router, &place, times).await;
                }
            }
        }
    };
    let unknown_for_too_long = async {
        tokio::time::sleep(times.key).await;
        if place.is_known() {
            std::future::pending().await
        }
    };
    tokio::select! {
        () = served => {}
        () = place.evicted() => {}
        () = unknown_for_too_long => {}
    }
}

async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router, place: &Arc<Place>, times: Times) {
    let answer = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(place));
        router.clone().call(request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.idle)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), answer);
    // A connection that breaks is its client's loss alone.
    let _ = connection.await;
}

/// Starts the threads of a server.
pub(crate) fn threads() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(Error::Threads)
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
