//! The data of a sandbox that Python needs besides the sandbox itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use runtime::Tool;

use crate::commands::CommandParts;
use crate::gate;
use crate::host_tools::{self, ToolParts};
use crate::mcp::Mcp;

/// The data of a sandbox that Python needs besides the sandbox itself.
#[derive(Clone)]
pub(crate) struct About {
    /// Its number in this process, shared with the tools that work for it.
    pub(crate) number: u64,
    /// Its file; `None` in memory.
    pub(crate) path: Option<PathBuf>,
    /// The name of its preset.
    pub(crate) preset: String,
    /// Whether it was opened read-only, or shows a past version.
    pub(crate) is_read_only: bool,
    /// The Python functions that its commands may call.
    pub(crate) tools: Arc<[ToolParts]>,
    /// The Python functions that are commands.
    pub(crate) commands: Arc<[CommandParts]>,
    /// Its MCP servers.
    pub(crate) mcp: Option<Mcp>,
}

impl About {
    /// Returns the data of a fork in this file.
    pub(crate) fn of_fork(&self, path: Option<PathBuf>) -> Self {
        Self { number: next_number(), path, is_read_only: false, ..self.clone() }
    }

    /// Returns the data of another handle of the same sandbox.
    pub(crate) fn of_view(&self) -> Self {
        Self { mcp: self.mcp.clone().map(Mcp::shared), ..self.clone() }
    }

    /// Returns the data of a handle that shows a past version.
    pub(crate) fn of_past(&self) -> Self {
        Self { number: next_number(), is_read_only: true, ..self.of_view() }
    }

    /// Returns the commands; none once the interpreter is shutting down.
    pub(crate) fn commands(&self) -> Vec<CommandParts> {
        if self.commands.is_empty() {
            return Vec::new();
        }
        let made = |py: Python<'_>| self.commands.iter().map(|(name, function)| (name.clone(), function.clone_ref(py))).collect();
        gate::with_python(made).unwrap_or_default()
    }

    /// Returns whether there are tools.
    pub(crate) fn has_tools(&self) -> bool {
        !self.tools.is_empty() || self.mcp.is_some()
    }

    /// Returns the tools, those of MCP servers too; none of Python's once the interpreter is at its end.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let mut tools = self.own_tools();
        tools.extend(self.mcp.iter().flat_map(|mcp| mcp.tools(self.number)));
        tools
    }

    fn own_tools(&self) -> Vec<Tool> {
        if self.tools.is_empty() {
            return Vec::new();
        }
        let made = |py: Python<'_>| self.tools.iter().map(|parts| host_tools::tool(py, parts, self.number)).collect();
        gate::with_python(made).unwrap_or_default()
    }
}

/// Returns a number that is unique in this process.
pub(crate) fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
