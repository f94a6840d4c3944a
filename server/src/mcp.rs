//! The Model Context Protocol: the requests of a client and the responses of a sandbox.

mod pipe;
mod prompt;
mod resources;
mod running;
mod sandboxes;
mod scratch;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use runtime::actions::quoted;
use runtime::{Host, Limits, Sandbox};
use skills::Skills;
use skills::actions::ToolSpec;

use crate::Error;
use crate::load::Load;
use pipe::Pipe;
use running::Running;
use sandboxes::Sandboxes;

/// How long running commands have to exit after the client disconnects.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The settings of a service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The host on which forks and imported snapshots run.
    pub host: Host,
    /// The limits of commands in imported snapshots.
    pub limits: Limits,
    /// The directory of snapshots; without one they are deleted when the server exits.
    pub snapshots: Option<PathBuf>,
    /// The names of the tools to offer; `None` offers all.
    pub tools: Option<Vec<String>>,
    /// The skills to offer, if any.
    pub skills: Option<Skills>,
    /// Whether to also offer each skill as a separate tool.
    pub skill_tools: bool,
}

impl Settings {
    /// Creates settings with all tools, and with snapshots that are deleted when the server exits.
    #[must_use]
    pub fn new(host: Host, limits: Limits) -> Self {
        Self { host, limits, snapshots: None, tools: None, skills: None, skill_tools: false }
    }
}

/// Called with the fuel of a call when it has ended, also if its client has disconnected. An extension of the request.
#[derive(Clone)]
pub(crate) struct Spending(pub(crate) Arc<dyn Fn(u64) + Send + Sync>);

/// One sandbox, its forks, and the tools for them. Clones share the service.
#[derive(Clone)]
pub struct Service(Arc<Inner>);

struct Inner {
    sandboxes: Sandboxes,
    skills: Option<Skills>,
    skill_tools: bool,
    tools: Vec<Tool>,
    running: Running,
    load: Load,
}

impl Service {
    /// Creates a service for a sandbox.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownTool`] if the settings name a tool that does not exist.
    pub fn new(sandbox: Sandbox, settings: Settings) -> Result<Self, Error> {
        let tools = tools::chosen(settings.tools.as_deref(), settings.skills.is_some())?;
        let (skills, skill_tools) = (settings.skills.clone(), settings.skill_tools);
        let sandboxes = Sandboxes::new(sandbox, settings);
        Ok(Self(Arc::new(Inner { sandboxes, skills, skill_tools, tools, running: Running::default(), load: Load::default() })))
    }

    fn sandboxes(&self) -> &Sandboxes {
        &self.0.sandboxes
    }

    fn tools(&self) -> &[Tool] {
        &self.0.tools
    }

    fn skills(&self) -> Option<&Skills> {
        self.0.skills.as_ref()
    }

    /// Returns the skills that are separate tools.
    fn skill_tools(&self) -> Vec<ToolSpec> {
        let skills = self.skills().filter(|_| self.0.skill_tools);
        skills.and_then(|skills| skills::actions::tools(skills, tools::SKILL_PREFIX, None).ok()).unwrap_or_default()
    }

    fn running(&self) -> &Running {
        &self.0.running
    }

    /// Returns the load limits.
    pub(crate) fn load(&self) -> &Load {
        &self.0.load
    }

    /// Cancels a request of an HTTP session, as requested by the client's `notifications/cancelled`.
    pub(crate) fn cancel(&self, session: &str, request: &str) {
        self.0.running.cancel(session, request);
    }

    /// Waits until nothing is running.
    pub(crate) async fn idle(&self) {
        self.0.running.idle().await;
    }

    /// Cancels everything that is running and waits briefly for its history rows.
    pub(crate) async fn stop(&self) {
        self.0.running.kill_all();
        let _ = tokio::time::timeout(LAST_WORDS, self.0.running.idle()).await;
        self.0.sandboxes.close();
    }
}

impl ServerHandler for Service {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        let name = Implementation::new("sandlite", env!("CARGO_PKG_VERSION")).with_title("Sandlite");
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(prompt::instructions(self))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let known = self.0.tools.iter().find(|tool| tool.name == name).cloned();
        known.or_else(|| tools::of_skill(self, name))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let service = self.clone();
        let listed = tokio::task::spawn_blocking(move || tools::listed(&service)).await;
        Ok(ListToolsResult::with_all_items(listed.unwrap_or_else(|_| self.0.tools.clone())))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.get_tool(&request.name).is_none() {
            return Err(ErrorData::invalid_params(format!("unknown tool `{}`", quoted(&request.name)), None));
        }
        Ok(tools::call(self, request, context).await.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(self, request.and_then(|request| request.cursor)).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self, &request.uri).await.map(Into::into)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompt::list())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompt::get(&request.name, self).map(Into::into)
    }
}

/// Serves one client over standard input and output, until it closes them.
///
/// # Errors
///
/// Returns an error if threads cannot be started, or if the client does not speak the protocol.
pub fn serve_stdio(service: Service) -> Result<(), Error> {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(Error::Threads)?;
    let result = threads.block_on(async {
        let pipe = Pipe::new(tokio::io::stdin(), tokio::io::stdout(), service.load().clone());
        let served = match service.clone().serve(pipe).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| Error::Protocol(error.to_string())),
            // A client that disconnects silently is not an error.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(Error::Protocol(error.to_string())),
        };
        service.stop().await;
        served
    });
    // A thread may be blocked on standard input forever.
    threads.shutdown_background();
    result
}
