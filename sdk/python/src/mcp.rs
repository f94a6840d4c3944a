//! MCP servers that Python gives a sandbox.

use std::sync::Arc;

use mcp_client::{Approve, Granted, Server, Servers};
use pyo3::prelude::*;
use runtime::{Error, Sandbox, Tool};
use serde_json::json;

use crate::about::About;
use crate::handle::NativeSandbox;
use crate::operation::{self, Done};
use crate::{errors, gate, host_tools};

/// The configuration as JSON, and a function that decides about a call: it is given JSON text and the call.
pub(crate) type McpParts = (String, Option<Py<PyAny>>);

/// The servers of a sandbox.
#[derive(Clone)]
pub(crate) struct Mcp {
    servers: Servers,
    granted: Granted,
    gate: Option<Arc<Py<PyAny>>>,
    /// Whether they belong to another handle, which ends their programs.
    is_shared: bool,
}

/// Servers that are connected, before there is a sandbox.
pub(crate) struct Connected {
    servers: Servers,
    gate: Option<Py<PyAny>>,
}

/// Connects to the servers, before anything is opened.
pub(crate) fn connect(parts: Option<McpParts>, is_read_only: bool) -> Result<Option<Connected>, Error> {
    let Some((text, gate)) = parts else { return Ok(None) };
    if is_read_only {
        return Err(Error::Invalid("a sandbox that is opened for reading runs nothing, so it has no MCP servers".to_owned()));
    }
    Ok(Some(Connected { servers: Servers::connect(Server::parse_all(&text)?)?, gate }))
}

/// Returns the sandbox with its servers.
pub(crate) fn attach(sandbox: Sandbox, mut about: About, connected: Option<Connected>) -> Result<(Sandbox, About), Error> {
    let Some(Connected { servers, gate }) = connected else { return Ok((sandbox, about)) };
    let granted = servers.grant(&sandbox)?;
    about.mcp = Some(Mcp { servers, granted, gate: gate.map(Arc::new), is_shared: false });
    shown(&sandbox, about)
}

// The sandbox with the tools of its servers, and their modules.
fn shown(sandbox: &Sandbox, about: About) -> Result<(Sandbox, About), Error> {
    let Some(mcp) = &about.mcp else { return Ok((sandbox.clone(), about)) };
    let sandbox = mcp.granted.show(&Granted::hide(sandbox)?.with_tools(about.tools())?)?;
    Ok((sandbox, about))
}

/// Closes a sandbox, and ends the programs of its servers unless they belong to another handle. Forks that have the same ones
/// start them again.
pub(crate) fn close(sandbox: Option<Sandbox>, about: &About) {
    if let (Some(_), Some(mcp)) = (&sandbox, &about.mcp)
        && !mcp.is_shared
    {
        mcp.servers.close();
    }
}

impl Mcp {
    /// Returns the same servers for another handle of the sandbox.
    pub(crate) fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Returns the tools, for the sandbox of this number.
    pub(crate) fn tools(&self, number: u64) -> Vec<Tool> {
        let approve = self.gate.as_ref().map(|function| {
            host_tools::note_functions();
            let function = Arc::clone(function);
            let approve: Approve = Arc::new(move |name, arguments, context| {
                let asked = json!({ "name": name, "arguments": arguments }).to_string();
                let ask = |py: Python<'_>| {
                    let answer = host_tools::called(py, &function, (&asked,), number, context);
                    answer.map(drop).map_err(|error| error.value(py).to_string())
                };
                gate::with_python(ask).unwrap_or_else(|| Err("the program is at its end".to_owned()))?;
                // A person may have taken longer than the command's deadline: the call is then not started.
                if context.is_over() { Err("the command has ended".to_owned()) } else { Ok(()) }
            });
            approve
        });
        self.granted.tools(approve.as_ref())
    }
}

/// Returns the servers of a sandbox, as JSON.
#[pyfunction]
pub(crate) fn mcp_servers(py: Python<'_>, sandbox: &NativeSandbox) -> PyResult<String> {
    let reports = sandbox.about().mcp.as_ref().map(|mcp| mcp.granted.report()).unwrap_or_default();
    operation::json(&reports).map_err(|error| errors::raise(py, &error))
}

/// Modules in SkillFS's layout: paths below `src/servers`, and texts.
#[pyfunction]
pub(crate) fn mcp_awaited_files(sandbox: &NativeSandbox) -> Vec<(String, String)> {
    sandbox.about().mcp.as_ref().map(|mcp| mcp.granted.awaited_files()).unwrap_or_default()
}

/// Gives the sandbox MCP servers, for all commands started from now on.
#[pyfunction]
#[pyo3(signature = (sandbox, parts, done=None))]
pub(crate) fn connect_mcp(
    py: Python<'_>,
    sandbox: Py<NativeSandbox>,
    parts: McpParts,
    done: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let place = sandbox.clone_ref(py);
    sandbox.get().change(py, done, move |_| {
        place.get().remake(|sandbox, about| {
            if about.mcp.is_some() {
                return Err(Error::Invalid("the sandbox has MCP servers already: give all of them at once".to_owned()));
            }
            let connected = connect(Some(parts), about.is_read_only)?;
            attach(sandbox.clone(), about.clone(), connected).map(Some)
        })?;
        Ok(Done::Nothing)
    })
}

/// Pins the server's current descriptions.
#[pyfunction]
#[pyo3(signature = (sandbox, name, done=None))]
pub(crate) fn confirm_mcp(
    py: Python<'_>,
    sandbox: Py<NativeSandbox>,
    name: String,
    done: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let place = sandbox.clone_ref(py);
    sandbox.get().change(py, done, move |_| {
        place.get().remake(|sandbox, about| {
            let mut about = about.clone();
            let Some(mcp) = &mut about.mcp else { return Err(Error::Invalid("the sandbox has no MCP servers".to_owned())) };
            mcp.servers.confirm(sandbox, &name)?;
            mcp.granted = mcp.servers.grant(sandbox)?;
            shown(sandbox, about).map(Some)
        })?;
        Ok(Done::Nothing)
    })
}
