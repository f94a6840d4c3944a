//! `--mcp-servers`: the tools of MCP servers for the programs of a sandbox.

use runtime::Sandbox;

use crate::args::RunOptions;
use crate::printer::Printer;

/// Connects the servers of a run, if any are configured.
#[derive(Default)]
pub(crate) struct Running {
    #[cfg(feature = "mcp")]
    servers: Option<mcp_client::Servers>,
}

impl Running {
    /// Ends their programs.
    pub(crate) fn close(&self) {
        #[cfg(feature = "mcp")]
        if let Some(servers) = &self.servers {
            servers.close();
        }
    }
}

/// Returns the sandbox with the servers that the options name.
#[cfg(feature = "mcp")]
pub(crate) fn attach(sandbox: Sandbox, options: &RunOptions, printer: &Printer) -> anyhow::Result<(Sandbox, Running)> {
    attach_file(sandbox, options.mcp_servers.as_deref(), &options.mcp_confirm, printer)
}

/// Returns the sandbox with the servers that a file names.
#[cfg(feature = "mcp")]
pub(crate) fn attach_file(
    sandbox: Sandbox,
    file: Option<&std::path::Path>,
    confirmed: &[String],
    printer: &Printer,
) -> anyhow::Result<(Sandbox, Running)> {
    let Some(file) = file else { return Ok((sandbox, Running::default())) };
    let attached = with_file(&sandbox, file, confirmed, printer);
    let (sandbox, servers) =
        attached.map_err(|error| match error.downcast_ref::<mcp_client::Error>().and_then(mcp_client::Error::hint) {
            Some(hint) => crate::printer::Hinted::error(error.to_string(), hint),
            None => error,
        })?;
    Ok((sandbox, Running { servers: Some(servers) }))
}

/// Returns the sandbox without any: this program has no client.
#[cfg(not(feature = "mcp"))]
pub(crate) fn attach(sandbox: Sandbox, _: &RunOptions, _: &Printer) -> anyhow::Result<(Sandbox, Running)> {
    Ok((sandbox, Running::default()))
}

#[cfg(feature = "mcp")]
fn with_file(
    sandbox: &Sandbox,
    file: &std::path::Path,
    confirmed: &[String],
    printer: &Printer,
) -> anyhow::Result<(Sandbox, mcp_client::Servers)> {
    use anyhow::Context as _;
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let servers = mcp_client::Servers::connect(mcp_client::Server::parse_all(&text)?)?;
    for name in confirmed {
        servers.confirm(sandbox, name)?;
    }
    let granted = servers.grant(sandbox)?;
    for server in granted.report() {
        for tool in server.tools.iter().filter_map(|tool| Some((&tool.tool, tool.off.as_ref()?))) {
            printer.note(format_args!("MCP tool `{}` is {}", tool.0, tool.1));
        }
    }
    Ok((granted.attach(sandbox)?, servers))
}
