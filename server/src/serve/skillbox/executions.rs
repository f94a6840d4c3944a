//! `/v1/executions`: runs of skills, awaited or in the background, with their results.

use std::collections::BTreeMap;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use ::skills::{Error, Request as Run};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use runtime::Cancel;
use serde::Deserialize;

use super::body::{self, Object, json_response};
use super::live::Running;
use super::{INTERRUPTED, artifacts, sessions, store};
use crate::serve::app::{App, Tenant};
use crate::serve::auth::Caller;
use crate::serve::catalog::{Execution, ExecutionFilter, Finished, NewExecution, new_id};
use crate::serve::clock::rfc3339;
use crate::serve::path::Path;
use crate::serve::problem::Problem;
use crate::serve::traces::carried;

/// Rows of a page, and the most that can be asked for.
const PAGE: i64 = 50;
const MOST_ROWS: i64 = 200;
/// The error of an execution that was cancelled before its turn; `skills` has the same for one that runs.
const CANCELLED: &str = "execution was cancelled";
/// Most input files of a run.
const MOST_FILES: usize = 1000;

/// The request of a client; the input is copied as text, so that its numbers stay as written.
#[derive(Deserialize)]
struct Asked {
    skill: Option<String>,
    version: Option<String>,
    env: Option<BTreeMap<String, Option<String>>>,
    input_files: Option<Vec<String>>,
    session_id: Option<String>,
    #[serde(default, rename = "async", deserialize_with = "body::or_default")]
    is_async: bool,
}

/// A run that can begin.
struct Order {
    tenant: Arc<Tenant>,
    new: NewExecution,
    env: BTreeMap<String, String>,
    input_files: Vec<String>,
}

pub(super) async fn create(State(app): State<App>, caller: Caller, request: Request) -> Result<Response, Problem> {
    let base = artifacts::base_url(&app, request.headers());
    let bytes = body::bytes(request.into_body(), app.config().body_bytes).await?;
    let asked: Asked = body::parse(&bytes, "JSON body")?;
    let is_async = asked.is_async;
    let tenant = caller.tenant.clone();
    let order = app.blocking(move |app| Order::new(app, &tenant, asked, &bytes)).await?;
    if is_async {
        // A separate task: a recorded execution begins, even if its client disconnects meanwhile.
        let begun = tokio::spawn(carried(begin(app, order))).await;
        return begun.unwrap_or_else(|_| {
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the request was aborted"))
        });
    }
    let cancel = Cancel::default();
    let (id, ended) = app
        .run(&caller, cancel.clone(), move |app| {
            app.catalog().begin_execution(&order.tenant.name, &order.new)?;
            let running = app.skillbox().live.begin(&order.tenant.name, &order.new.id, cancel);
            Ok(order.perform(app, &running))
        })
        .await?;
    Ok(json_response(StatusCode::OK, run_result(&app, &base, &id, &ended)))
}

// Starts a background run.
async fn begin(app: App, order: Order) -> Result<Response, Problem> {
    let (id, tenant, new) = (order.new.id.clone(), order.tenant.name.clone(), order.new.clone());
    let row = tenant.clone();
    app.blocking(move |app| Ok(app.catalog().begin_execution(&row, &new)?)).await?;
    let cancel = Cancel::default();
    let running = app.skillbox().live.begin(&tenant, &id, cancel.clone());
    let (own, name) = (app.clone(), tenant.clone());
    let mut work = Box::pin(async move { own.run_detached(&name, cancel, move |app| Ok(order.perform(app, &running))).await });
    // A full queue is an error at once; nothing was started.
    let mut first = Some(work.as_mut());
    let polled =
        std::future::poll_fn(|context| Poll::Ready(first.take().map(|mut work: Pin<&mut _>| work.as_mut().poll(context))));
    let polled = polled.await;
    match polled {
        Some(Poll::Ready(Err(problem))) => {
            app.skillbox().live.end(&id);
            let forgotten = id.clone();
            app.blocking(move |app| Ok(app.catalog().forget_execution(&tenant, &forgotten)?)).await?;
            return Err(problem);
        }
        Some(Poll::Ready(Ok(_))) => {}
        Some(Poll::Pending) | None => {
            let (app, id) = (app.clone(), id.clone());
            tokio::spawn(async move {
                if let Err(problem) = work.await {
                    let finish = app.blocking(move |app| {
                        app.catalog().finish_execution(&tenant, &id, &failed(problem.message))?;
                        app.skillbox().live.end(&id);
                        Ok(())
                    });
                    // The next start marks it as interrupted.
                    let _ = finish.await;
                }
            });
        }
    }
    let body = Object::new().with("execution_id", &id).with("status", &"running").finish();
    let mut response = json_response(StatusCode::ACCEPTED, body);
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/executions/{id}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

impl Order {
    // Checks the requested version; `latest` is the active one.
    fn new(app: &App, tenant: &str, asked: Asked, body: &[u8]) -> Result<Self, Problem> {
        let skill = asked.skill.filter(|skill| !skill.is_empty()).ok_or_else(|| Problem::bad_request("'skill' is required"))?;
        require_name(&skill)?;
        let version = asked.version.filter(|version| !matches!(version.as_str(), "" | "latest"));
        version.as_deref().map_or(Ok(()), require_version)?;
        app.require_fuel(tenant)?;
        app.require_room(tenant, body.len() as u64)?;
        let tenant = app.tenant(tenant)?;
        let version = match version {
            Some(version) => version,
            None => match tenant.skills().catalog().find(&skill) {
                Ok(found) => found.version,
                Err(Error::UnknownSkill(_)) => return Err(no_skill(&skill, "latest")),
                Err(error) => return Err(error.into()),
            },
        };
        let session = asked.session_id.filter(|session| !session.is_empty());
        if let Some(session) = &session {
            sessions::require_name(session)?;
            sessions::require_place(app, &tenant.name, session)?;
        }
        let input_files = asked.input_files.unwrap_or_default();
        if input_files.len() > MOST_FILES {
            return Err(Problem::bad_request(format!("`input_files` has more than {MOST_FILES} files")));
        }
        let text = std::str::from_utf8(body).map_err(|_| Problem::bad_request("the body is not UTF-8"))?;
        let input = body::raw_member(text, "input").filter(|input| *input != "null").map(str::to_owned);
        let new = NewExecution { id: new_id(), skill, version, session, input };
        let env = asked.env.unwrap_or_default().into_iter().map(|(name, value)| (name, value.unwrap_or_default())).collect();
        Ok(Self { tenant, new, env, input_files })
    }

    // Runs the skill and finishes its row, whatever its result.
    fn perform(self, app: &App, running: &Arc<Running>) -> (String, Finished) {
        running.begin();
        let (id, tenant) = (self.new.id.clone(), Arc::clone(&self.tenant));
        let mut finish = Finish { app, tenant: &tenant.name, id: &id, ended: None };
        let mut ended = self.run(app, running).unwrap_or_else(|problem| failed(problem.message));
        if ended.error.as_deref() == Some(CANCELLED) && app.require_running().is_err() {
            ended.error = Some(INTERRUPTED.to_owned());
        }
        finish.ended = Some(ended.clone());
        drop(finish);
        (id, ended)
    }

    fn run(self, app: &App, running: &Arc<Running>) -> Result<Finished, Problem> {
        let Self { tenant, new, env, input_files } = self;
        let mut run = Run::new(format!("{}@{}", new.skill, new.version)).cancelled_by(running.cancel.clone());
        let printed = Arc::clone(running);
        run = run.on_output(move |bytes| printed.print(bytes));
        run = new.input.iter().fold(run, |run, input| run.input(input.as_str()));
        run = env.into_iter().fold(run, |run, (name, value)| run.env(name, value));
        let (mut size, most) = (0u64, app.config().limits.disk);
        for id in input_files {
            let Some(row) = app.catalog().file(&tenant.name, &id)? else {
                return Ok(failed(format!("input file {:?} not found", runtime::actions::quoted(&id))));
            };
            // They are in memory until the run has them, which has no room for more.
            size = size.saturating_add(u64::try_from(row.size_bytes).unwrap_or(u64::MAX));
            if size > most.0 {
                return Ok(failed(format!("the input files are larger than {most}")));
            }
            run = run.file(row.name, store::read(&tenant, &row.id)?);
        }
        if let Some(session) = &new.session {
            for (name, content) in sessions::begin(app, &tenant, session)? {
                run = run.kept(name, content);
            }
        }
        let ran = tenant.skills().run(run);
        let known = ran.as_ref().ok().and_then(|result| result.usage.as_ref()).map_or(0, |usage| usage.fuel);
        let fuel = known.max(running.cancel.fuel_used());
        if ran.is_ok() || fuel > 0 {
            // Before anything else: a run whose results cannot be read has used its fuel.
            app.catalog().spend(&tenant.name, fuel)?;
        }
        let result = match ran {
            Ok(result) => result,
            Err(error @ (Error::UnknownSkill(_) | Error::UnknownVersion { .. })) => {
                return Ok(failed(format!("loading skill: {error}")));
            }
            Err(error) => return Err(error.into()),
        };
        app.metrics().run("skill", result.status.as_str(), fuel);
        if let Some(limit) = result.limit {
            app.metrics().limit(limit.as_str());
        }
        let files = artifacts::keep(app, &tenant, &new.id, &result)?;
        if let Some(session) = &new.session {
            sessions::keep(app, &tenant, session, result.left()?)?;
        }
        Ok(Finished {
            status: result.status.as_str().to_owned(),
            output: result.output,
            logs: result.logs,
            error: result.error,
            files,
            duration_ms: i64::try_from(result.duration_ms).unwrap_or(i64::MAX),
        })
    }
}

/// An execution whose row is completed when this is dropped: as failed, unless another status was set.
struct Finish<'a> {
    app: &'a App,
    tenant: &'a str,
    id: &'a str,
    ended: Option<Finished>,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        let ended = self.ended.take().unwrap_or_else(|| failed("the run was aborted"));
        // If the catalog cannot be written, the next start marks it as interrupted.
        let _ = self.app.catalog().finish_execution(self.tenant, self.id, &ended);
        self.app.skillbox().live.end(self.id);
    }
}

fn failed(error: impl Into<String>) -> Finished {
    Finished { status: "failed".to_owned(), error: Some(error.into()), duration_ms: 1, ..Finished::default() }
}

/// Refuses a text that cannot be the name of a skill.
pub(super) fn require_name(name: &str) -> Result<(), Problem> {
    match ::skills::is_name(name) {
        true => Ok(()),
        false if name.is_empty() => Err(Problem::bad_request("name is required")),
        false => Err(Problem::bad_request(format!("name {:?} contains invalid characters", runtime::actions::quoted(name)))),
    }
}

/// Refuses a text that cannot be a version.
pub(super) fn require_version(version: &str) -> Result<(), Problem> {
    match ::skills::is_version(version) {
        true => Ok(()),
        false => {
            let version = runtime::actions::quoted(version);
            Err(Problem::bad_request(format!("version {version:?} must be semver (MAJOR.MINOR.PATCH)")))
        }
    }
}

/// A skill or a version of one that does not exist.
pub(super) fn no_skill(name: &str, version: &str) -> Problem {
    Problem::not_found_named("skill", &format!("{name}@{version}"))
}

// The result of a run, as Skillbox's clients expect it.
fn run_result(app: &App, base: &str, id: &str, ended: &Finished) -> String {
    results(Object::new().with("execution_id", &id).with("status", &ended.status), app, base, id, ended).finish()
}

fn results(object: Object, app: &App, base: &str, id: &str, ended: &Finished) -> Object {
    let object = match &ended.output {
        Some(output) => object.raw("output", output),
        None => object,
    };
    let has_files = !ended.files.is_empty();
    object
        .with_some("files_url", has_files.then(|| artifacts::url(app, base, id)).as_ref())
        .with_some("files_list", has_files.then_some(&ended.files))
        .with_some("logs", (!ended.logs.is_empty()).then_some(&ended.logs))
        .with("duration_ms", &ended.duration_ms)
        .with("error", &ended.error)
}

/// An execution, as Skillbox's clients expect it.
pub(super) fn execution(app: &App, base: &str, row: &Execution) -> String {
    let object = Object::new()
        .with("execution_id", &row.id)
        .with("skill_name", &row.skill)
        .with("skill_version", &row.version)
        .with("tenant_id", &row.tenant)
        .with("status", &row.ended.status);
    let object = match &row.input {
        Some(input) => object.raw("input", input),
        None => object,
    };
    results(object, app, base, &row.id, &row.ended)
        .with("created_at", &rfc3339(row.created_at))
        .with_some("finished_at", row.finished_at.map(rfc3339).as_ref())
        .finish()
}

/// A tenant's execution.
pub(super) async fn find(app: &App, caller: &Caller, id: String) -> Result<Execution, Problem> {
    let tenant = caller.tenant.clone();
    app.blocking(move |app| app.catalog().execution(&tenant, &id)?.ok_or_else(|| Problem::not_found("execution"))).await
}

pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let row = find(&app, &caller, id).await?;
    Ok(json_response(StatusCode::OK, execution(&app, &artifacts::base_url(&app, &headers), &row)))
}

pub(super) async fn logs(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Response, Problem> {
    let row = find(&app, &caller, id).await?;
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))], row.ended.logs).into_response())
}

/// Cancels a run in progress; its row records the cancellation.
pub(super) async fn cancel(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    if let Some(running) = app.skillbox().live.find(&caller.tenant, &id) {
        running.cancel.kill();
        if running.is_waiting() {
            // Its turn may come late. Then it ends at once, and its row stays as it is.
            let finish = app.blocking(move |app| {
                app.catalog().finish_execution(&caller.tenant, &id, &failed(CANCELLED))?;
                app.skillbox().live.end(&id);
                Ok(())
            });
            finish.await?;
        }
        return Ok(StatusCode::NO_CONTENT);
    }
    let row = find(&app, &caller, id).await?;
    let message = format!("the execution has ended: its status is {}", row.ended.status);
    Err(Problem::new(StatusCode::CONFLICT, "invalid_status", message))
}

#[derive(Deserialize)]
pub(super) struct Listing {
    limit: Option<i64>,
    cursor: Option<String>,
    skill: Option<String>,
    status: Option<String>,
}

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Result<Query<Listing>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = body::query(query)?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MOST_ROWS).contains(&limit) {
        return Err(Problem::bad_request("invalid `limit`: expected 1 to 200"));
    }
    let after = query.cursor.as_deref().map(|cursor| {
        let (at, id) = cursor.split_once('.')?;
        Some((at.parse().ok()?, id.to_owned()))
    });
    let after = match after {
        Some(None) => return Err(Problem::bad_request("invalid `cursor`: use `next_cursor` of the page before")),
        Some(after) => after,
        None => None,
    };
    // One more than requested: if it exists, there is a next page.
    let filter = ExecutionFilter { skill: query.skill, status: query.status, after, limit: limit + 1 };
    let mut rows = app.blocking(move |app| Ok(app.catalog().executions(&caller.tenant, &filter)?)).await?;
    let has_more = i64::try_from(rows.len()).unwrap_or(i64::MAX) > limit;
    if has_more {
        rows.pop();
    }
    let next = rows.last().filter(|_| has_more).map(|last| format!("{}.{}", last.created_at, last.id));
    let base = artifacts::base_url(&app, &headers);
    let items: Vec<String> = rows.iter().map(|row| execution(&app, &base, row)).collect();
    let page = Object::new().raw("items", &format!("[{}]", items.join(","))).with("next_cursor", &next);
    Ok(json_response(StatusCode::OK, page.finish()))
}
