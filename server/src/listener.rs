//! Connections of clients: one loop for `sandlite mcp --http` and `sandlite serve`, with all its limits (T-NET-04, T-NET-08).
//!
//! Does not look at requests: each is passed to one shared router, with the [`Place`] of its connection as an extension.

mod patient;
mod places;
mod tls;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
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
/// How long a client that was refused may go on sending before its connection is closed, and how long it may pause.
const LAST_BYTES: Duration = Duration::from_secs(30);
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// How often to check whether all connections have ended.
const LOOK: Duration = Duration::from_millis(10);

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
    connections: Connections,
}

/// The open connections. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Connections {
    ending: CancellationToken,
    /// One reference per connection, one of the listener and one of each caller.
    open: Arc<()>,
}

impl Connections {
    /// Closes each connection when its response was sent, and waits for them for a limited time. The listener has ended before.
    pub(crate) async fn finish(&self, time: Duration) {
        self.ending.cancel();
        let ended = async {
            while Arc::strong_count(&self.open) > 1 {
                tokio::time::sleep(LOOK).await;
            }
        };
        let _ = tokio::time::timeout(time, ended).await;
    }
}

impl Listener {
    /// Binds an address; port 0 takes a free one.
    pub(crate) async fn bind(address: SocketAddr, places: Places, times: Times, tls: Option<Tls>) -> Result<Self, Error> {
        let failed = |source| Error::Listen { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address, places, times, tls, connections: Connections::default() })
    }

    /// Returns the address with the port that was taken.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the connections that it serves.
    pub(crate) fn connections(&self) -> Connections {
        self.connections.clone()
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
            tokio::spawn(connection(stream, router.clone(), place, self.times, self.tls.clone(), self.connections.clone()));
        }
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    place: Arc<Place>,
    times: Times,
    tls: Option<Tls>,
    connections: Connections,
) {
    let stream = Patient::new(stream, times.write);
    let served = async {
        match tls {
            None => requests(stream, router, &place, times, &connections.ending).await,
            Some(tls) => {
                if let Some(stream) = tls.accept(stream).await {
                    requests(stream, router, &place, times, &connections.ending).await;
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

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    place: &Arc<Place>,
    times: Times,
    ending: &CancellationToken,
) {
    let answer = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(place));
        Box::pin(router.clone().call(request))
    });
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.idle)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), answer);
    let served = tokio::select! {
        served = poll_fn(|context| connection.poll_without_shutdown(context)) => served,
        () = ending.cancelled() => {
            std::pin::Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|context| connection.poll_without_shutdown(context)).await
        }
    };
    // A connection that breaks is its client's loss alone.
    if served.is_err() {
        return;
    }
    let mut stream = connection.into_parts().io.into_inner();
    if stream.shutdown().await.is_ok() {
        tokio::select! {
            () = read_rest(stream) => {}
            () = tokio::time::sleep(LAST_BYTES) => {}
            () = ending.cancelled() => {}
        }
    }
}

// Reads what a client still sends, such as the rest of a body that was refused: if bytes are left unread, the system resets the
// connection, and the client loses the response.
async fn read_rest(mut stream: impl AsyncRead + Unpin) {
    let mut unread = vec![0; 16 << 10];
    while let Ok(Ok(1..)) = tokio::time::timeout(LAST_PAUSE, stream.read(&mut unread)).await {}
}

/// Starts the threads of a server.
pub(crate) fn threads() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(Error::Threads)
}

/// Waits until the process receives a signal to end.
pub(crate) async fn stop_requested() {
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
