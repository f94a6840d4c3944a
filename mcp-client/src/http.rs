//! The HTTP of the protocol's streamable transport: one request per connection, with TLS (`tls.rs`) for `https://` addresses.
//!
//! Follows no redirect, so that keys are sent only to the address that the owner configured. Opens no stream of its own, so that
//! a server sends only responses.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, BodyStream, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use sse_stream::{Sse, SseStream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::program::MESSAGE_MAX;
use crate::tls::Tls;

const SESSION: &str = "mcp-session-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of an error page is quoted.
const QUOTED: usize = 300;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HttpError(String);

type Failure = StreamableHttpError<HttpError>;

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

fn failed(reason: impl std::fmt::Display) -> Failure {
    StreamableHttpError::Client(HttpError(reason.to_string()))
}

/// Checks an address before any connection to it is made, and returns whether it needs TLS.
pub(crate) fn check(url: &str) -> Result<bool, String> {
    place(url).map(|place| place.is_encrypted)
}

/// The parts of an address.
#[derive(Debug)]
struct Place {
    uri: Uri,
    host: String,
    port: u16,
    is_encrypted: bool,
}

fn place(url: &str) -> Result<Place, String> {
    let uri: Uri = url.parse().map_err(|error| format!("invalid address `{url}`: {error}"))?;
    let is_encrypted = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(format!("invalid address `{url}`: it must begin with `https://` or `http://`")),
    };
    let host = uri.host().map(|host| host.trim_start_matches('[').trim_end_matches(']')).unwrap_or_default();
    if host.is_empty() {
        return Err(format!("invalid address `{url}`: it has no host"));
    }
    let host = host.to_owned();
    let port = uri.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
    Ok(Place { uri, host, port, is_encrypted })
}

/// A client for the address of a server.
#[derive(Clone)]
pub(crate) struct Client {
    tls: Option<Tls>,
}

impl Client {
    /// Returns a client for an address; `authorities` replace the certificates that this machine trusts.
    pub(crate) fn new(url: &str, authorities: Option<&Path>) -> Result<Self, String> {
        let tls = if place(url)?.is_encrypted { Some(Tls::new(authorities)?) } else { None };
        Ok(Self { tls })
    }

    /// Connects, with TLS if the address needs it.
    async fn connect(&self, place: &Place) -> Result<Box<dyn Stream>, String> {
        let stream = TcpStream::connect((place.host.as_str(), place.port)).await.map_err(|error| error.to_string())?;
        match &self.tls {
            Some(tls) => Ok(Box::new(tls.connect(&place.host, stream).await?)),
            // A client is made for one address; another one must not be reached without what protects the first.
            None if place.is_encrypted => Err("the address needs TLS".to_owned()),
            None => Ok(Box::new(stream)),
        }
    }

    async fn send(
        &self,
        (method, url): (Method, &str),
        session: Option<&str>,
        key: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, Failure> {
        let place = place(url).map_err(failed)?;
        let uri = &place.uri;
        let target = uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let mut request =
            Request::builder().method(method).uri(target).header(HOST, authority.rsplit('@').next().unwrap_or_default());
        request = request.header(CONTENT_TYPE, JSON).header(ACCEPT, format!("{JSON}, {EVENTS}"));
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        if let Some(key) = key {
            request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(failed)?;
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, self.connect(&place)).await;
        let stream = connecting.map_err(|_| failed("the connection takes too long"))?.map_err(failed)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        // Ends with the response, which also reports its errors.
        tokio::spawn(async move { drop(connection.await) });
        sender.send_request(request).await.map_err(failed)
    }
}

impl StreamableHttpClient for Client {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = serde_json::to_vec(&message)?;
        let response = self.send((Method::POST, &uri), session_id.as_deref(), auth_header, custom_headers, body).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (session, kind) = (header(SESSION), header(CONTENT_TYPE.as_str()).unwrap_or_default());
        let body = Limited::new(response.into_body(), MESSAGE_MAX);
        if status.is_success() && kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(body), session));
        }
        let bytes = body.collect().await.map_err(failed)?.to_bytes();
        if status.is_redirection() {
            let reason = format!("HTTP {status}: redirects are not followed; use the final address as `url`");
            return Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(reason)));
        }
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&bytes).chars().take(QUOTED).collect();
            return Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}: {said}"))));
        }
        if bytes.is_empty() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let message: ServerJsonRpcMessage = serde_json::from_slice(&bytes)?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.send((Method::DELETE, &uri), Some(&session_id), auth_header, custom_headers, Vec::new()).await.map(|_| ())
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        _: Option<Arc<str>>,
        _: Option<String>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

// All events of one response together are no longer than a message may be.
fn events(body: Limited<Incoming>) -> BoxStream<'static, Result<Sse, SseError>> {
    let pieces = BodyStream::new(body).filter_map(|frame| async {
        match frame {
            Ok(frame) => frame.into_data().ok().map(Ok),
            Err(error) => Some(Err(std::io::Error::other(error.to_string()))),
        }
    });
    SseStream::from_bytes_stream(pieces).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host() {
        let found = |url: &str| place(url).map(|place| (place.host, place.port, place.is_encrypted));
        assert_eq!(found("http://127.0.0.1:8808/mcp"), Ok(("127.0.0.1".to_owned(), 8808, false)));
        assert_eq!(found("http://example.com"), Ok(("example.com".to_owned(), 80, false)));
        assert_eq!(found("https://example.com/mcp"), Ok(("example.com".to_owned(), 443, true)));
        assert_eq!(found("https://[::1]:8443"), Ok(("::1".to_owned(), 8443, true)));
        for url in ["", "/mcp", "file:///etc/passwd", "127.0.0.1:80", "https://", "https:///mcp", "HTTPSX://a"] {
            assert!(found(url).is_err(), "{url}");
        }
    }
}
