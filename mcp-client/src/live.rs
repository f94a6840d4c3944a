//! A connection to a server, opened when needed and again if it is lost, with the digests of its current tools.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::answer;
use crate::config::Server;
use crate::connection::{Connection, Failure, Listing};
use crate::described::{Described, Pins, describe, pins};
use crate::error::Error;

/// Returns the threads that speak to servers, started with the first of them.
pub(crate) fn runtime() -> Result<&'static Runtime, Error> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let start = || {
        Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("sandlite mcp")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
    };
    RUNTIME.get_or_init(start).as_ref().map_err(|reason| Error::Server { name: "all".to_owned(), reason: reason.clone() })
}

/// A server of the configuration, and its connection.
pub(crate) struct Live {
    pub(crate) server: Server,
    connection: tokio::sync::Mutex<Option<Connection>>,
    now: Mutex<Now>,
}

/// The current description of a server.
#[derive(Clone, Default)]
pub(crate) struct Now {
    pub(crate) tools: Vec<Described>,
    pub(crate) instructions: Option<String>,
    digests: Pins,
}

impl Live {
    /// Connects to a server.
    pub(crate) async fn open(server: Server) -> Result<Arc<Self>, Error> {
        let live = Self { server, connection: tokio::sync::Mutex::default(), now: Mutex::default() };
        live.look(false).await.map_err(|reason| Error::Server { name: live.server.name.clone(), reason })?;
        Ok(Arc::new(live))
    }

    /// Returns the last description received.
    pub(crate) fn now(&self) -> Now {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects to the server if needed, and reads its list if ours is old; `anew` reads it in any case.
    pub(crate) async fn look(&self, anew: bool) -> Result<(), String> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_mut().filter(|connection| !connection.is_closed()) {
            if !anew && !connection.is_stale() {
                return Ok(());
            }
            match connection.list().await {
                Ok(listing) => {
                    self.keep(listing);
                    return Ok(());
                }
                Err(reason) if !connection.is_closed() => return Err(reason),
                Err(_) => {}
            }
        }
        // The old program is ended before there is another.
        *slot = None;
        let (connection, listing) = Connection::open(&self.server).await?;
        *slot = Some(connection);
        self.keep(listing);
        Ok(())
    }

    fn keep(&self, listing: Listing) {
        let tools = describe(&self.server.name, &listing.tools, self.server.only.as_deref());
        let digests = pins(&tools);
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Now { tools, instructions: listing.instructions, digests };
    }

    /// Ends the connection, and the program with all that it started.
    pub(crate) async fn close(&self) {
        let connection = self.connection.lock().await.take();
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    /// Calls a tool that was granted with this digest.
    pub(crate) fn call(&self, tool: &Described, arguments: Value, is_over: impl Fn() -> bool + Send) -> Result<Value, String> {
        let runtime = runtime().map_err(|error| error.to_string())?;
        runtime.block_on(self.answer(tool, arguments, is_over))
    }

    async fn answer(&self, tool: &Described, arguments: Value, is_over: impl Fn() -> bool + Send) -> Result<Value, String> {
        let name = &self.server.name;
        let Value::Object(arguments) = arguments else { return Err("the arguments are not a JSON object".to_owned()) };
        self.look(false).await.map_err(|_| format!("the MCP server `{name}` cannot be reached"))?;
        // T-BRG-03: the server still describes the tool as it did when it was granted.
        match self.now().digests.get(&tool.name) {
            Some(digest) if *digest == tool.digest => {}
            Some(_) => {
                return Err(format!(
                    "`{}` is off: the server has changed its description or schema since it was granted",
                    tool.tool
                ));
            }
            None => return Err(format!("the MCP server `{name}` does not have the tool `{}` any more", tool.name)),
        }
        let (number, call) = match &*self.connection.lock().await {
            Some(connection) => (connection.number(), connection.call(&tool.name, arguments, self.server.timeout, is_over)),
            None => return Err(format!("the MCP server `{name}` is gone")),
        };
        match call.await {
            Ok(result) => answer::value(&result),
            Err(Failure::Said(reason)) => Err(reason),
            Err(Failure::Gone) => {
                // Another call may have opened the server again, which must not be ended.
                drop(self.connection.lock().await.take_if(|connection| connection.number() == number));
                Err(format!("the MCP server `{name}` ended during the call; the next call starts it again"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    // A server in `sh` whose tool waits, ends the program, or returns the number of its process.
    const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) answer "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/list"'*) answer "$id" '{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}' ;;
        *'"wait"'*) ;;
        *'"end"'*) exit ;;
        *'"tools/call"'*) answer "$id" '{"content":[{"type":"text","text":"process '$$'"}]}' ;;
    esac
done
"#;

    fn wait_until(is_done: impl Fn() -> bool) {
        for _ in 0..2000 {
            if is_done() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        panic!("nothing happened in 20 seconds");
    }

    #[test]
    fn a_call_on_a_lost_connection_does_not_end_the_next_one() {
        let text = json!({ "there": { "command": "sh", "args": ["-c", SERVER] } }).to_string();
        let server = Server::parse_all(&text).unwrap().remove(0);
        let live = runtime().unwrap().block_on(Live::open(server)).unwrap();
        let tool = live.now().tools.remove(0);
        let (is_waiting, is_held) = (AtomicBool::new(false), AtomicBool::new(true));
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| {
                live.call(&tool, json!({ "do": "wait" }), || {
                    is_waiting.store(true, Ordering::SeqCst);
                    wait_until(|| !is_held.load(Ordering::SeqCst));
                    false
                })
            });
            wait_until(|| is_waiting.load(Ordering::SeqCst));
            let ended = live.call(&tool, json!({ "do": "end" }), || false);
            assert!(ended.as_ref().is_err_and(|reason| reason.contains("ended during the call")), "{ended:?}");
            let opened = live.call(&tool, json!({}), || false);
            is_held.store(false, Ordering::SeqCst);
            let lost = slow.join().unwrap();
            assert!(lost.as_ref().is_err_and(|reason| reason.contains("ended during the call")), "{lost:?}");
            assert!(opened.as_ref().is_ok_and(|process| process.to_string().contains("process ")), "{opened:?}");
            assert_eq!(live.call(&tool, json!({}), || false), opened);
        });
        runtime().unwrap().block_on(live.close());
    }
}
