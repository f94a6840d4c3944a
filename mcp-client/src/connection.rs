//! One connection to a server: the handshake, the list of its tools, and calls that can be cancelled.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification, CancelledNotificationParam,
    ClientCapabilities, ClientConfig, ClientNotification, ClientRequest, Implementation, JsonObject, ListToolsRequest,
    PaginatedRequestParams, ServerResult,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceError, serve_client};
use serde_json::Value;

use crate::config::{Server, Way};
use crate::described::TOOLS_MAX;
use crate::program::{self, Program};

/// How long a server may take to start: `npx` fetches its package first.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// How long it may take to list its tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Pages of the list that are read.
const PAGES_MAX: usize = 100;
/// How long a list of tools counts as current.
const LIST_AGE: Duration = Duration::from_secs(60);
/// How often a call looks whether its command is over.
const LOOK: Duration = Duration::from_millis(20);
/// Longest notes that a server has for its users.
const INSTRUCTIONS_MAX: usize = 16 << 10;

/// Our side of the protocol: a server can only announce that its list has changed.
struct Client {
    is_stale: Arc<AtomicBool>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("sandlite", env!("CARGO_PKG_VERSION")))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.is_stale.store(true, Ordering::Release);
    }
}

/// A connection.
pub(crate) struct Connection {
    // No two connections of this process have the same.
    number: u64,
    service: RunningService<RoleClient, Client>,
    is_stale: Arc<AtomicBool>,
    listed: Instant,
    // After the service: the program is ended once its streams are closed.
    program: Option<Program>,
}

/// Why a call has no result.
pub(crate) enum Failure {
    /// The server reported it and is still running.
    Said(String),
    /// The server has ended, or no longer speaks the protocol.
    Gone,
}

/// The description of a server.
pub(crate) struct Listing {
    /// Its tools, as it describes them.
    pub(crate) tools: Vec<Value>,
    /// Notes for its users.
    pub(crate) instructions: Option<String>,
}

impl Connection {
    /// Starts or reaches a server, and reads its list.
    pub(crate) async fn open(server: &Server) -> Result<(Self, Listing), String> {
        let is_stale = Arc::<AtomicBool>::default();
        let client = Client { is_stale: Arc::clone(&is_stale) };
        let too_long = |_| format!("it did not answer within {} seconds", START_TIMEOUT.as_secs());
        let (service, program) = match &server.way {
            Way::Program { command, args, env, directory } => {
                let (program, stdout, stdin) = program::start((command, args), env, directory.as_deref())
                    .map_err(|error| format!("cannot start `{command}`: {error}"))?;
                let started = tokio::time::timeout(START_TIMEOUT, serve_client(client, (stdout, stdin))).await;
                let started = started.map_err(too_long).and_then(|started| started.map_err(|error| error.to_string()));
                (started.map_err(|reason| with_said(&reason, &program))?, Some(program))
            }
            Way::Address { url, headers, authorities } => {
                let http = crate::http::Client::new(url, authorities.as_deref())?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers = checked(headers)?;
                let transport = StreamableHttpClientTransport::with_client(http, config);
                let started = tokio::time::timeout(START_TIMEOUT, serve_client(client, transport)).await;
                (started.map_err(too_long)?.map_err(|error| plain(&error.to_string()).to_owned())?, None)
            }
        };
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let mut connection = Self { number, service, is_stale, listed: Instant::now(), program };
        let listing = connection.list().await.map_err(|reason| match &connection.program {
            Some(program) => with_said(&reason, program),
            None => reason,
        })?;
        Ok((connection, listing))
    }

    /// Reads the current list of tools, bypassing the cache of the library.
    pub(crate) async fn list(&mut self) -> Result<Listing, String> {
        self.is_stale.store(false, Ordering::Release);
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
            let request = ListToolsRequest { params, ..ListToolsRequest::default() };
            let options = PeerRequestOptions::with_timeout(LIST_TIMEOUT);
            let asked = self.service.peer().send_cancellable_request(ClientRequest::ListToolsRequest(request), options).await;
            let answer = match asked {
                Ok(asked) => asked.await_response().await,
                Err(error) => Err(error),
            };
            let ServerResult::ListToolsResult(page) = answer.map_err(|error| format!("cannot list its tools: {error}"))? else {
                return Err("cannot list its tools: unexpected answer".to_owned());
            };
            for tool in page.tools {
                tools.push(serde_json::to_value(tool).map_err(|error| error.to_string())?);
            }
            if tools.len() > TOOLS_MAX {
                return Err(format!("it has more than {TOOLS_MAX} tools"));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                self.listed = Instant::now();
                let said = self.service.peer().peer_info().and_then(|info| info.instructions.clone());
                let instructions = said.filter(|text| text.len() <= INSTRUCTIONS_MAX);
                return Ok(Listing { tools, instructions });
            }
        }
        Err(format!("the list of its tools has more than {PAGES_MAX} pages"))
    }

    /// Closes the connection and waits until the program has ended.
    pub(crate) async fn close(self) {
        let Self { service, program, .. } = self;
        drop(tokio::time::timeout(LIST_TIMEOUT, service.cancel()).await);
        if let Some(program) = program {
            program.close().await;
        }
    }

    /// Returns what distinguishes it from the others of this process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether it can be used no more.
    pub(crate) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// Returns whether the list must be read again before the next call.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Acquire) || self.listed.elapsed() > LIST_AGE
    }

    /// Calls a tool; other calls do not wait for it.
    pub(crate) fn call<O: Fn() -> bool + Send>(
        &self,
        tool: &str,
        arguments: JsonObject,
        timeout: Duration,
        is_over: O,
    ) -> impl Future<Output = Result<CallToolResult, Failure>> + Send + use<O> {
        let peer = self.service.peer().clone();
        let request = CallToolRequest::new(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments));
        async move {
            let options = PeerRequestOptions::with_timeout(timeout);
            let asked = peer.send_cancellable_request(ClientRequest::CallToolRequest(request), options).await.map_err(why)?;
            let id = asked.id.clone();
            let mut answer = std::pin::pin!(asked.await_response());
            loop {
                tokio::select! {
                    answer = &mut answer => return complete(answer.map_err(why)?),
                    () = tokio::time::sleep(LOOK) => {}
                }
                if is_over() {
                    let cancelled = CancelledNotificationParam::new(Some(id), Some("the command has ended".to_owned()));
                    let cancelled = ClientNotification::CancelledNotification(CancelledNotification::new(cancelled));
                    // The receiver has been dropped, so the failure cannot be reported.
                    drop(peer.send_notification(cancelled).await);
                    return Err(Failure::Said("the command has ended".to_owned()));
                }
            }
        }
    }
}

fn complete(answer: ServerResult) -> Result<CallToolResult, Failure> {
    match answer {
        ServerResult::CallToolResult(result) => Ok(result),
        ServerResult::InputRequiredResult(_) => {
            Err(Failure::Said("the server asks for input, which a sandbox does not give".to_owned()))
        }
        _ => Err(Failure::Said("the server's answer is not the result of a tool".to_owned())),
    }
}

fn why(error: ServiceError) -> Failure {
    match error {
        ServiceError::McpError(error) => Failure::Said(error.message.to_string()),
        ServiceError::Timeout { timeout } => {
            Failure::Said(format!("the server did not answer within {} seconds", timeout.as_secs_f64()))
        }
        _ => Failure::Gone,
    }
}

// The reason without the library's words around it, which name its own types.
fn plain(error: &str) -> &str {
    let reason = error.split_once("] error: ").map_or(error, |(_, reason)| reason);
    let reason = reason.strip_prefix("Client error: ").unwrap_or(reason);
    reason.strip_suffix(", when send initialize request").unwrap_or(reason)
}

fn with_said(reason: &str, program: &Program) -> String {
    let said = program.said();
    if said.is_empty() { reason.to_owned() } else { format!("{reason}; its error output: {said}") }
}

fn checked(headers: &std::collections::BTreeMap<String, String>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let read = headers.iter().map(|(name, value)| {
        let key: HeaderName = name.parse().map_err(|_| format!("invalid header name `{name}`"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| format!("invalid value of the header `{name}`"))?;
        value.set_sensitive(true);
        Ok((key, value))
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-BRG-02: a server receives requests and sends none.
    #[test]
    fn a_server_is_offered_nothing() {
        let client = Client { is_stale: Arc::default() };
        assert_eq!(serde_json::to_value(client.get_info().capabilities).unwrap(), serde_json::json!({}));
    }

    #[test]
    fn a_reason_names_no_type_of_the_library() {
        let error =
            "Send message error Transport [a::B<c::D>] error: Client error: connection error, when send initialize request";
        assert_eq!(plain(error), "connection error");
        assert_eq!(plain("connection closed: initialize response"), "connection closed: initialize response");
    }

    #[test]
    fn headers_are_checked_before_anything_is_sent() {
        let headers = |name: &str, value: &str| checked(&[(name.to_owned(), value.to_owned())].into());
        assert!(headers("X-Key", "s3cret").is_ok_and(|headers| !format!("{headers:?}").contains("s3cret")));
        assert!(headers("X Key", "a").is_err_and(|error| error.contains("`X Key`")));
        assert!(headers("X-Key", "a\nb: c").is_err_and(|error| error.contains("`X-Key`") && !error.contains("b: c")));
    }
}
