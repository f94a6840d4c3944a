//! `POST /v1/sandboxes/{id}/actions/{action}`: every action of the tables, awaited, streamed, or as a job.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use runtime::actions::{Action, Answer, Context, Permission, Prepared};
use runtime::{Cancel, Error, ErrorKind};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use super::input::{self, Names};
use super::opened::{Noted, Slot};
use super::stream;
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::catalog::SandboxRow;
use crate::serve::problem::Problem;
use crate::serve::traces::carried;

/// Set on an answer that is a negative result.
pub(in crate::serve) const FAILED: HeaderName = HeaderName::from_static("action-failed");
/// Actions that change something and store nothing.
const FREEING: [&str; 7] =
    ["delete_file", "kv_delete", "prune_versions", "compact", "acknowledge_events", "activate_skill", "delete_skill"];

/// An action of one of the tables.
#[derive(Clone, Copy)]
pub(crate) enum Known {
    OfSandbox(&'static Action<Context>),
    OfSkills(&'static Action<skills::actions::Context>),
}

macro_rules! of_both {
    ($known:expr, $action:ident => $value:expr) => {
        match $known {
            Known::OfSandbox($action) => $value,
            Known::OfSkills($action) => $value,
        }
    };
}

impl Known {
    pub(crate) fn name(self) -> &'static str {
        of_both!(self, action => action.name)
    }

    pub(crate) fn description(self) -> &'static str {
        of_both!(self, action => action.description)
    }

    pub(crate) fn title(self) -> &'static str {
        of_both!(self, action => action.title)
    }

    pub(crate) fn permission(self) -> Permission {
        of_both!(self, action => action.permission)
    }

    pub(crate) fn input(self) -> Value {
        of_both!(self, action => (action.input)())
    }

    pub(crate) fn output(self) -> Value {
        of_both!(self, action => (action.output)())
    }

    /// Returns whether it may need disk space. Actions that free space must work for a tenant without any.
    pub(crate) fn may_store(self) -> bool {
        // A skill runs in a sandbox of its own, and its files can be kept in this one or in a session.
        (self.takes_turns() || self.permission() == Permission::RunSkills) && !self.frees()
    }

    /// Returns whether it changes something and stores nothing.
    pub(crate) fn frees(self) -> bool {
        FREEING.contains(&self.name())
    }

    /// Returns whether it changes something, and waits for its turn in the sandbox.
    pub(crate) fn takes_turns(self) -> bool {
        of_both!(self, action => action.takes_turns())
    }

    /// Returns whether it runs programs.
    pub(crate) fn runs(self) -> bool {
        matches!(self.permission(), Permission::Execute | Permission::RunSkills)
    }

    fn prepare(self, arguments: Value) -> Result<Work, Error> {
        Ok(match self {
            Self::OfSandbox(action) => Work::InSandbox(action.prepare(arguments)?),
            Self::OfSkills(action) => Work::OnSkills(action.prepare(arguments)?),
        })
    }
}

/// Returns the actions that HTTP offers: all but those on directories of the server's machine.
pub(crate) fn offered() -> impl Iterator<Item = Known> {
    let in_sandboxes = runtime::actions::actions().iter().map(Known::OfSandbox);
    let all = in_sandboxes.chain(skills::actions::actions().iter().map(Known::OfSkills));
    all.filter(|known| known.permission() != Permission::HostFiles)
}

enum Work {
    InSandbox(Prepared<Context>),
    OnSkills(Prepared<skills::actions::Context>),
}

/// An action that is ready to run: everything that can be rejected beforehand was checked.
struct Task {
    known: Known,
    work: Work,
    row: SandboxRow,
    slot: Arc<Slot>,
    caller: Caller,
    cancel: Cancel,
    // Given back when the work has ended, not when the request has.
    _turn: Option<OwnedMutexGuard<()>>,
    _noted: Noted,
}

impl Task {
    fn run(self, app: &App, on_output: Option<stream::Listener>) -> Result<Answer, Problem> {
        let sandbox = self.slot.open(app, &self.row, &self.caller)?;
        let cancel = self.cancel.clone();
        let done = match self.work {
            Work::InSandbox(prepared) => {
                let context = Context::new(sandbox).cancelled_by(self.cancel);
                let context = match on_output {
                    Some(listener) => context.on_output(move |stream, bytes| listener.send(stream, bytes)),
                    None => context,
                };
                prepared.run(&context)
            }
            Work::OnSkills(prepared) => {
                let skills = app.tenant(&self.row.tenant)?.skills().clone();
                prepared.run(&skills::actions::Context::new(skills).beside(sandbox).cancelled_by(self.cancel))
            }
        };
        if self.known.takes_turns() {
            self.slot.touch();
        }
        let done = answered(done);
        if self.known.runs() {
            let ran = done.as_ref().ok().map(|answer| &answer.data);
            let fuel = measure(app, self.known.name(), ran, cancel.fuel_used());
            app.catalog().spend(&self.row.tenant, fuel)?;
        }
        done
    }
}

/// Counts a run and returns its fuel; `ran` is the data of one that was not refused, and `fuel` that of all commands that it has run.
pub(crate) fn measure(app: &App, kind: &'static str, ran: Option<&Value>, fuel: u64) -> u64 {
    let fuel = ran.and_then(|data| data["usage"]["fuel"].as_u64()).unwrap_or(0).max(fuel);
    let status = ran.map_or("refused", |data| if data["exit_code"].as_u64() == Some(0) { "success" } else { "failed" });
    app.metrics().run(kind, status, fuel);
    if let Some(limit) = ran.and_then(|data| data["limit"]["name"].as_str()) {
        app.metrics().limit(limit);
    }
    fuel
}

// A command that fails or meets a limit is data; an action that was not done is a problem.
fn answered(done: Result<Answer, Error>) -> Result<Answer, Problem> {
    match done {
        Ok(answer) if answer.is_error && answer.data.is_null() => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "action_failed", answer.text.trim_start_matches("error: ")))
        }
        Ok(answer) => Ok(answer),
        Err(error) => {
            let kind = error.kind();
            let problem = Problem::from(error);
            Err(match kind {
                ErrorKind::NotFound | ErrorKind::Stale | ErrorKind::Conflict | ErrorKind::Busy | ErrorKind::Internal => problem,
                _ => Problem { code: "action_failed", ..problem },
            })
        }
    }
}

fn prefers_async(headers: &HeaderMap) -> bool {
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split([',', ';'])).any(|word| word.trim().eq_ignore_ascii_case("respond-async"))
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split([',', ';'])).any(|word| word.trim().eq_ignore_ascii_case(kind))
}

/// Returns whether a client wants a stream of events.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

// Whether a client wants the text that models and people read, instead of the data.
fn wants_text(headers: &HeaderMap) -> bool {
    accepts(headers, "text/plain") && !accepts(headers, "application/json")
}

// The header is what `is_error` is for models: a negative result, such as a replay that differs.
fn response(answer: Answer, is_text: bool) -> Response {
    let mut response = if is_text { answer.text.into_response() } else { Json(answer.data).into_response() };
    if answer.is_error {
        response.headers_mut().insert(FAILED, HeaderValue::from_static("true"));
    }
    response
}

/// `POST /v1/sandboxes/{id}/actions/{action}`.
pub(super) async fn act(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (row, slot) = app.find_sandbox(&caller, names.get("id")).await?;
    let known = offered().find(|known| known.name() == names.get("action")).ok_or_else(|| Problem::not_found("action"))?;
    caller.require_permission(known.permission())?;
    let arguments: Value = input::json(&app, &headers, body).await?;
    if !arguments.is_object() {
        return Err(Problem::bad_request("invalid body: expected an object with the action's arguments"));
    }
    let work = known.prepare(arguments).map_err(|error| Problem::bad_request(error.to_string()))?;
    if known.runs() {
        let tenant = row.tenant.clone();
        app.look_up(move |app| app.require_fuel(&tenant)).await?;
    }
    if known.may_store() {
        let tenant = row.tenant.clone();
        app.require_known_room(&tenant).await?;
    }
    let cancel = Cancel::default();
    let noted = slot.note(&cancel);
    let begin = |turn| Task {
        known,
        work,
        row,
        caller: caller.clone(),
        cancel: cancel.clone(),
        _turn: turn,
        _noted: noted,
        slot: Arc::clone(&slot),
    };
    if prefers_async(&headers) {
        let job = app.opened().jobs.begin(&caller, names.get("id"), known.name(), cancel.clone())?;
        let (app, doing, slot) = (app.clone(), Arc::clone(&job), Arc::clone(&slot));
        let task = begin(None);
        tokio::spawn(carried(async move {
            doing.end(in_turn(&app, &slot, task, None).await.map(|answer| answer.data));
        }));
        return Ok(job.accepted());
    }
    if wants_events(&headers) {
        let (events, listener) = stream::channel(cancel.clone());
        let (app, slot, task) = (app.clone(), Arc::clone(&slot), begin(None));
        let heard = listener.clone();
        tokio::spawn(carried(async move {
            let done = in_turn(&app, &slot, task, Some(listener)).await;
            match done {
                Ok(answer) => heard.end("result", &answer.data).await,
                Err(problem) => heard.end("error", &problem.body()).await,
            }
        }));
        return Ok(events.into_response());
    }
    let turn = if known.takes_turns() { Some(slot.turn().await?) } else { None };
    let task = begin(turn);
    let answer = app.run(&caller, cancel, move |app| task.run(app, None)).await?;
    Ok(response(answer, wants_text(&headers)))
}

// For those whose request has ended: the run waits for its turn, or for its cancel.
async fn in_turn(app: &App, slot: &Slot, mut task: Task, listener: Option<stream::Listener>) -> Result<Answer, Problem> {
    if task.known.takes_turns() {
        task._turn = Some(slot.turn().await?);
    }
    if task.cancel.is_killed() {
        return Err(Problem::new(StatusCode::CONFLICT, "cancelled", "the run was cancelled before it began"));
    }
    let (tenant, cancel) = (task.row.tenant.clone(), task.cancel.clone());
    app.run_detached(&tenant, cancel, move |app| task.run(app, listener)).await
}
