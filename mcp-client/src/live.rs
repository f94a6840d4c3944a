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
        let call = match &*self.connection.lock().await {
            Some(connection) => connection.call(&tool.name, arguments, self.server.timeout, is_over),
            None => return Err(format!("the MCP server `{name}` is gone")),
        };
        match call.await {
            Ok(result) => answer::value(&result),
            Err(Failure::Said(reason)) => Err(reason),
            Err(Failure::Gone) => {
                *self.connection.lock().await = None;
                Err(format!("the MCP server `{name}` ended during the call; the next call starts it again"))
            }
        }
    }
}
