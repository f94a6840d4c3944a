//! Sandlite for other programs: the Model Context Protocol over standard input and output or over HTTP, and REST for many tenants.
//!
//! The only crate with an async runtime and with JSON on the wire. Sandboxes are synchronous: every call into one runs on its own
//! thread, so a slow command or client does not block others.
//!
//! ```no_run
//! use sandlite_server::{Service, Settings, serve_stdio};
//! use runtime::{Host, Preset, Sandbox};
//!
//! let host = Host::builder().build()?;
//! let sandbox = Sandbox::builder().host(&host).database("agent.db").open()?;
//! serve_stdio(Service::new(sandbox, Settings::new(host, Preset::Normal.limits()))?)?;
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
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files of their own"))]

mod error;
mod http;
mod listener;
mod load;
mod mcp;
mod message;
mod serve;

pub use error::Error;
pub use http::{Key, Listen, serve_http};
pub use listener::Times;
pub use mcp::{Service, Settings, serve_stdio};
pub use serve::{
    Collector, Config, KeyRow, Keys, Log, NewKey, Quota, Reports, Role, SETTINGS, Setting, TenantRow, Tenants, serve,
};
