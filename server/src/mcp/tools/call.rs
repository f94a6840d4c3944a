//! A tool call: queued, with progress notifications, and cancelable by the client.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use runtime::actions::{Action, Answer, Context};
use runtime::{Cancel, Error};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::super::sandboxes::Named;
use super::super::{Service, Spending};
use super::{Place, SKILL_PREFIX, for_programs, in_sandboxes, on_skills, snapshots};
use crate::serve::admission::{REST, Turn, Watch};

/// The interval of progress notifications.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long a client may take to read a progress notification before it is skipped.
const PATIENCE: Duration = Duration::from_millis(250);
/// Maximum length of a progress message.
const MESSAGE: usize = 200;

/// Calls an existing tool.
pub(in crate::mcp) async fn call(
    service: &Service,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> CallToolResult {
    let mut arguments = request.arguments.unwrap_or_default();
    let answer = match chosen(service, &mut arguments) {
        Ok(named) => act(service, &request.name, named, Value::Object(arguments), &context).await,
        Err(answer) => answer,
    };
    let (data, images) = without_images(answer.data);
    let content = std::iter::once(ContentBlock::text(answer.text)).chain(images).collect();
    let mut result = if answer.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(data).filter(|data| !data.is_null());
    result
}

// Images are separate content blocks: a model sees them, and their bytes are not sent twice.
fn without_images(mut data: Value) -> (Value, Vec<ContentBlock>) {
    let images = data.get_mut("images").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    let text = |image: &Value, name: &str| image.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let blocks = images.iter().map(|image| ContentBlock::image(text(image, "data"), text(image, "mime")));
    let blocks = blocks.collect();
    (data, blocks)
}

fn chosen(service: &Service, arguments: &mut JsonObject) -> Result<Arc<Named>, Answer> {
    match arguments.remove("sandbox") {
        None | Some(Value::Null) => service.sandboxes().get(None),
        Some(Value::String(name)) => service.sandboxes().get(Some(&name)),
        Some(_) => Err(Answer::error("error: invalid `sandbox`: expected a name")),
    }
}

/// A call with valid arguments.
struct Work {
    run: Box<dyn FnOnce() -> Result<Answer, Error> + Send>,
    takes_turns: bool,
}

impl Work {
    fn new<C: Send + 'static>(action: &Action<C>, place: C, named: Arc<Named>, arguments: Value) -> Result<Self, Error> {
        let prepared = action.prepare(arguments)?;
        let run = move || {
            let done = prepared.run(&place);
            // The sandbox file is removed with its name, but not before the sandbox.
            drop((place, named));
            done
        };
        Ok(Self { run: Box::new(run), takes_turns: action.takes_turns() })
    }
}

/// Kills a command whose request is dropped, because no client waits for it.
struct KillOnDrop(Cancel);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

async fn act(service: &Service, name: &str, named: Arc<Named>, arguments: Value, context: &RequestContext<RoleServer>) -> Answer {
    let mut progress = Progress::new(context);
    let (sender, mut lines) = mpsc::channel(8);
    let mut place = Context::new(named.sandbox.clone());
    if !service.tools().iter().any(|tool| tool.name == "history") {
        place = place.without_history();
    }
    if progress.token.is_some() {
        place = place.on_output(move |_, bytes| drop(sender.try_send(last_line(bytes))));
    } else {
        drop(sender);
    }
    let mut cancel = KillOnDrop(place.cancel());
    let held = Arc::clone(&named);
    let own = snapshots::ACTIONS.iter().find(|own| own.name == name);
    let work = match (in_sandboxes().chain(for_programs()).find(|action| action.name == name), own, service.skills()) {
        (Some(action), ..) => Work::new(action, place, held, arguments),
        (None, Some(own), _) => Work::new(own, Place { service: service.clone(), named: Arc::clone(&named) }, held, arguments),
        (None, None, Some(skills)) => {
            let place = skills::actions::Context::new(skills.clone()).beside(named.sandbox.clone());
            cancel = KillOnDrop(place.cancel());
            let (name, arguments) = of_skill(service, name, arguments);
            match on_skills().find(|action| action.name == name) {
                Some(action) => Work::new(action, place, held, arguments),
                None => Err(Error::Invalid(format!("unknown tool `{name}`"))),
            }
        }
        (None, None, None) => Err(Error::Invalid(format!("unknown tool `{name}`"))),
    };
    let work = match work {
        Ok(work) => work,
        Err(error) => return error.into(),
    };

    let from_session = session_of(context).map(|session| service.running().request(&session, &context.id.to_string()));
    let told = from_session.as_ref().map_or_else(CancellationToken::new, |request| request.token.clone());
    let _turn = if work.takes_turns {
        tokio::select! {
            turn = named.turn.lock() => Some(turn),
            () = cancelled(context, &told) => return Answer::error("cancelled before it started"),
        }
    } else {
        None
    };
    let _slot = service.running().place().await;
    let _running = service.running().command(cancel.0.clone());
    let (run, spent, spending) = (work.run, cancel.0.clone(), spending_of(context));
    let mut task = tokio::task::spawn_blocking(move || {
        let done = run();
        if let Some(Spending(spend)) = spending {
            spend(spent.fuel_used());
        }
        done
    });
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat.tick().await;
    let mut watch = turn_of(context).map(|turn| Watch::new(turn, cancel.0.clone()));
    let mut rest = tokio::time::interval(REST);
    let mut stopped = false;
    let done = loop {
        tokio::select! {
            done = &mut task => break done,
            _ = rest.tick(), if watch.is_some() => watch.iter_mut().for_each(Watch::look),
            () = cancelled(context, &told), if !stopped => {
                stopped = true;
                cancel.0.kill();
            }
            Some(line) = lines.recv() => progress.line(line).await,
            _ = heartbeat.tick() => progress.tell().await,
        }
    };
    // The last output may still be queued here; the response comes after it.
    while let Ok(line) = lines.try_recv() {
        progress.line(line).await;
    }
    match done {
        Ok(done) => done.unwrap_or_else(Answer::from),
        Err(_) => Answer::error("error: the call was aborted; no changes were made"),
    }
}

// A skill's tool runs that skill.
fn of_skill(service: &Service, name: &str, mut arguments: Value) -> (String, Value) {
    let known = if name.starts_with(SKILL_PREFIX) { service.skill_tools() } else { Vec::new() };
    match known.into_iter().find(|spec| spec.name == name) {
        None => (name.to_owned(), arguments),
        Some(spec) => {
            let input = if spec.is_input { arguments } else { arguments.get_mut("input").map(Value::take).unwrap_or_default() };
            ("run_skill".to_owned(), serde_json::json!({ "name": spec.skill, "input": input }))
        }
    }
}

async fn cancelled(context: &RequestContext<RoleServer>, told: &CancellationToken) {
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = told.cancelled() => {}
    }
}

// HTTP requests have headers; requests over standard input do not.
fn session_of(context: &RequestContext<RoleServer>) -> Option<String> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    Some(parts.headers.get(crate::http::SESSION_HEADER)?.to_str().ok()?.to_owned())
}

// The tenant's turn, if this is a call of `sandlite serve`.
fn turn_of(context: &RequestContext<RoleServer>) -> Option<&Arc<Turn>> {
    context.extensions.get::<http::request::Parts>()?.extensions.get()
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.trim_end().rsplit('\n').next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(MESSAGE).collect()
}

// The function that counts the fuel of the call, if there is one.
fn spending_of(context: &RequestContext<RoleServer>) -> Option<Spending> {
    context.extensions.get::<http::request::Parts>()?.extensions.get().cloned()
}

/// Sends progress notifications to a client that requested them.
struct Progress<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    started: Instant,
    told: Option<Instant>,
    count: f64,
    last: String,
}

impl<'a> Progress<'a> {
    fn new(context: &'a RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self { context, token, started: Instant::now(), told: None, count: 0.0, last: String::new() }
    }

    async fn line(&mut self, line: String) {
        self.last = line;
        if self.told.is_none_or(|told| told.elapsed() >= HEARTBEAT) {
            self.tell().await;
        }
    }

    async fn tell(&mut self) {
        let Some(token) = self.token.clone() else { return };
        self.count += 1.0;
        self.told = Some(Instant::now());
        let seconds = self.started.elapsed().as_secs();
        let message =
            if self.last.is_empty() { format!("running for {seconds} s") } else { format!("{seconds} s: {}", self.last) };
        let progress = ProgressNotificationParam::new(token, self.count).with_message(message);
        // A client that does not read loses notifications, not its command.
        let _ = tokio::time::timeout(PATIENCE, self.context.peer.notify_progress(progress)).await;
    }
}
