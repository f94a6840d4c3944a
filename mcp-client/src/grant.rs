//! Servers that a sandbox has: what is granted and pinned, the host tools, and the files that show them.

use std::sync::Arc;

use runtime::{Mount, ProvidedNode, Provider, Sandbox, Tool, ToolContext};
use serde_json::Value;

use crate::config::Server;
use crate::described::{Described, Pins, State, granted, pins};
use crate::error::Error;
use crate::live::{Live, Now, runtime};
use crate::module::{COMMAND, PACKAGE, awaited_module, module, skill};

/// The directory of modules, which is in the path of every Python of a sandbox.
const MODULES: &str = "/home/user/.local/lib/python3.14/site-packages/servers";
/// The directory of skills.
const SKILLS: &str = "/servers";
/// The path of the command.
const PROGRAM: &str = "/home/user/.local/bin/mcp";
/// The key of a server's notes among its pins: no tool has an empty name.
const NOTES: &str = "";

/// Decides about a call: the tool's name, its arguments, and the call. An error is what the guest reads.
pub type Approve = Arc<dyn Fn(&str, &Value, &ToolContext) -> Result<(), String> + Send + Sync>;

/// Servers that are connected. Dropping the last handle ends their programs.
#[derive(Clone)]
pub struct Servers(Arc<[Arc<Live>]>);

/// Servers as one sandbox has them.
#[derive(Clone)]
pub struct Granted(Arc<[Held]>);

struct Held {
    live: Arc<Live>,
    tools: Vec<Described>,
    instructions: Option<String>,
}

/// A server of a sandbox, for its owner.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// Its name in the configuration.
    pub name: String,
    /// The name of its Python module.
    pub module: String,
    /// Its tools.
    pub tools: Vec<ToolReport>,
}

/// A tool of a server, for the owner of the sandbox.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ToolReport {
    /// Its name on the server.
    pub name: String,
    /// Its name as a host tool, in approvals and in the history.
    pub tool: String,
    /// Its name in the Python module.
    pub function: String,
    /// The digest of its description.
    pub digest: String,
    /// Why it is off.
    pub off: Option<String>,
}

impl Servers {
    /// Starts the programs and connects to the addresses, all at once.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Server`] if one of them cannot be started or reached, or does not speak the protocol.
    pub fn connect(servers: Vec<Server>) -> Result<Self, Error> {
        let runtime = runtime()?;
        let opened = runtime.block_on(async {
            let tasks: Vec<_> = servers.into_iter().map(|server| tokio::spawn(Live::open(server))).collect();
            let mut opened = Vec::new();
            for task in tasks {
                let broken = |error: tokio::task::JoinError| Error::Server { name: "one".to_owned(), reason: error.to_string() };
                opened.push(task.await.map_err(broken)??);
            }
            Ok::<_, Error>(opened)
        })?;
        Ok(Self(opened.into()))
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Grants the servers to a sandbox. The first descriptions of a server are pinned with the sandbox; a tool that differs later is disabled.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Sandbox`] if the pins cannot be read or stored.
    pub fn grant(&self, sandbox: &Sandbox) -> Result<Granted, Error> {
        let held = self.0.iter().map(|live| {
            let name = &live.server.name;
            let now = live.now();
            let pinned = match stored(sandbox, name)? {
                Some(pinned) => pinned,
                None => {
                    let pinned = pins_of(&now);
                    store(sandbox, name, &pinned)?;
                    pinned
                }
            };
            let Now { tools, instructions, .. } = now;
            let instructions = instructions.filter(|text| pinned.get(NOTES).is_some_and(|digest| *digest == digest_of(text)));
            Ok(Held { live: Arc::clone(live), tools: granted(tools, &pinned), instructions })
        });
        Ok(Granted(held.collect::<Result<Vec<_>, Error>>()?.into()))
    }

    /// Pins the current descriptions of a server in place of the previous ones. [`grant`](Self::grant) and [`attach`](Self::attach) then grant it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if there is no such server, [`Error::Server`] if it cannot be asked, [`Error::Sandbox`] if the sandbox refuses.
    pub fn confirm(&self, sandbox: &Sandbox, name: &str) -> Result<(), Error> {
        let Some(live) = self.0.iter().find(|live| live.server.name == name) else {
            return Err(Error::Invalid(format!("unknown server `{name}`")));
        };
        let looked = runtime()?.block_on(live.look(true));
        looked.map_err(|reason| Error::Server { name: name.to_owned(), reason })?;
        store(sandbox, name, &pins_of(&live.now()))
    }

    /// Returns the same sandbox with the tools, the modules and the command of these servers.
    ///
    /// # Errors
    ///
    /// As [`grant`](Self::grant), and [`Error::Sandbox`] if something else is mounted in the place of the modules.
    pub fn attach(&self, sandbox: &Sandbox) -> Result<Sandbox, Error> {
        Ok(self.grant(sandbox)?.attach(sandbox)?)
    }

    /// Ends the programs and waits for them. A later call starts them again.
    pub fn close(&self) {
        let Ok(runtime) = runtime() else { return };
        runtime.block_on(async {
            for live in self.0.iter() {
                live.close().await;
            }
        });
    }
}

impl Granted {
    /// Returns the host tools. `approve` decides about each call first.
    #[must_use]
    pub fn tools(&self, approve: Option<&Approve>) -> Vec<Tool> {
        let all = self.0.iter().flat_map(|held| held.tools.iter().map(|tool| (&held.live, tool)));
        all.map(|(live, tool)| host_tool(live, tool, approve.cloned())).collect()
    }

    /// Returns the same sandbox with the tools, and with the files that [`show`](Self::show) adds.
    ///
    /// # Errors
    ///
    /// Returns [`runtime::Error::Invalid`] if the sandbox has a tool of the same name, [`runtime::Error::Mount`] if something else is mounted
    /// in the place of the modules.
    pub fn attach(&self, sandbox: &Sandbox) -> Result<Sandbox, runtime::Error> {
        let tools = sandbox.tools().cloned().chain(self.tools(None)).collect();
        self.show(&sandbox.with_tools(tools)?)
    }

    /// Returns the same sandbox with the modules, the skills and the command.
    ///
    /// # Errors
    ///
    /// Returns [`runtime::Error::Mount`] if something else is mounted in their place.
    pub fn show(&self, sandbox: &Sandbox) -> Result<Sandbox, runtime::Error> {
        let (modules, skills) = (self.modules(), self.skills());
        sandbox
            .with_mount(Mount::dynamic(MODULES, Provider::directory(move |_| Ok(modules.clone()))))?
            .with_mount(Mount::dynamic(SKILLS, Provider::directory(move |_| Ok(skills.clone()))))?
            .with_mount(Mount::dynamic(PROGRAM, Provider::program(COMMAND)))
    }

    /// Returns the same sandbox without the files that [`show`](Self::show) added.
    ///
    /// # Errors
    ///
    /// Returns [`runtime::Error::Invalid`] if a place cannot be that of a mount.
    pub fn hide(sandbox: &Sandbox) -> Result<Sandbox, runtime::Error> {
        [MODULES, SKILLS, PROGRAM]
            .into_iter()
            .try_fold(sandbox.clone(), |sandbox, place| Ok(sandbox.without_mount(place)?.unwrap_or(sandbox)))
    }

    /// Returns the servers, for the owner.
    #[must_use]
    pub fn report(&self) -> Vec<Report> {
        let tool = |tool: &Described| ToolReport {
            name: tool.name.clone(),
            tool: tool.tool.clone(),
            function: tool.function.clone(),
            digest: tool.digest.clone(),
            off: tool.refusal(),
        };
        let report = |held: &Held| Report {
            name: held.live.server.name.clone(),
            module: held.live.server.module.clone(),
            tools: held.tools.iter().map(tool).collect(),
        };
        self.0.iter().map(report).collect()
    }

    /// Returns the files for SkillFS's layout, by their paths below `src/servers`.
    #[must_use]
    pub fn awaited_files(&self) -> Vec<(String, String)> {
        let files = self.0.iter().flat_map(|Held { live, tools, instructions }| {
            let Server { name, module, .. } = &live.server;
            [
                (format!("{module}/__init__.py"), awaited_module(module, tools)),
                (format!("{module}/SKILL.md"), skill(name, module, "src.servers", instructions.as_deref(), tools)),
            ]
        });
        files.collect()
    }

    fn modules(&self) -> ProvidedNode {
        let of = |held: &Held| {
            let text = module(&held.live.server.name, &held.tools);
            (held.live.server.module.clone(), ProvidedNode::directory([("__init__.py", ProvidedNode::file(text))]))
        };
        let package = ("__init__.py".to_owned(), ProvidedNode::file(PACKAGE));
        ProvidedNode::directory(self.0.iter().map(of).chain([package]))
    }

    fn skills(&self) -> ProvidedNode {
        let of = |Held { live, tools, instructions }: &Held| {
            let text = skill(&live.server.name, &live.server.module, "servers", instructions.as_deref(), tools);
            (live.server.name.clone(), ProvidedNode::directory([("SKILL.md", ProvidedNode::file(text))]))
        };
        ProvidedNode::directory(self.0.iter().map(of))
    }
}

fn host_tool(live: &Arc<Live>, tool: &Described, approve: Option<Approve>) -> Tool {
    let (live, described) = (Arc::clone(live), tool.clone());
    Tool::with_context(tool.tool.clone(), tool.description.clone(), &tool.schema, move |arguments, context| {
        if let Some(refusal) = described.refusal() {
            return Err(refusal);
        }
        if let Some(approve) = &approve {
            approve(&described.tool, &arguments, context)?;
        }
        live.call(&described, arguments, || context.is_over())
    })
}

fn digest_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn pins_of(now: &Now) -> Pins {
    // A tool that cannot be used is not granted: once it can, that is a change.
    let usable: Vec<Described> = now.tools.iter().filter(|tool| tool.state == State::On).cloned().collect();
    let mut pinned = pins(&usable);
    pinned.extend(now.instructions.as_deref().map(|text| (NOTES.to_owned(), digest_of(text))));
    pinned
}

fn setting(name: &str) -> String {
    format!("mcp:{name}")
}

fn stored(sandbox: &Sandbox, name: &str) -> Result<Option<Pins>, Error> {
    let Some(text) = sandbox.granted(&setting(name))? else { return Ok(None) };
    // Damaged pins grant nothing.
    Ok(Some(serde_json::from_str(&text).unwrap_or_default()))
}

fn store(sandbox: &Sandbox, name: &str, pinned: &Pins) -> Result<(), Error> {
    let text = serde_json::to_string(pinned).map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(sandbox.set_granted(&setting(name), Some(&text))?)
}
