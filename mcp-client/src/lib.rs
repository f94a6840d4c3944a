//! MCP servers for the programs of a sandbox.
//!
//! The host runs the client: it starts a server's program or connects to its address, lists the tools, and makes each of them a host tool of the
//! sandbox. So arguments are checked against the schema, each call is a row of the history, and a call ends with its command. Inside, a
//! server is a Python module (`from servers.NAME import TOOL`), a `SKILL.md` in `/servers/NAME` and the command `mcp NAME TOOL JSON`.
//!
//! The description of a server is hostile data. It is bounded, it is never source text, and it is pinned when the server is granted: a tool
//! whose description or schema differs later is off until the owner confirms it.
//!
//! A crate of its own, because a client needs an async runtime and the Python package needs no server. Knows nothing of terminals.
//!
//! ```no_run
//! use runtime::Sandbox;
//! use sandlite_mcp_client::{Server, Servers};
//!
//! let configured = Server::parse_all(r#"{"mcpServers": {"files": {"command": "mcp-files", "args": ["/srv"]}}}"#)?;
//! let servers = Servers::connect(configured)?;
//! let sandbox = servers.attach(&Sandbox::builder().database("agent.db").open()?)?;
//! sandbox.bash(r#"mcp files list_directory '{"path": "/srv"}'"#)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::cast_possible_truncation,
        clippy::missing_errors_doc
    )
)]

mod answer;
mod config;
mod connection;
mod described;
mod error;
mod grant;
mod http;
mod live;
mod module;
mod program;
mod tls;

pub use config::Server;
pub use error::Error;
pub use grant::{Approve, Granted, Report, Servers, ToolReport};
