//! Background runs: started with `Prefer: respond-async`, and queried later. They end with the server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, StatusCode, Uri};
use runtime::Cancel;
use serde::Deserialize;
use serde_json::{Value, json};

use super::input::{self, Names};
use super::opened::Opened;
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::catalog::new_id;
use crate::serve::clock::{now, rfc3339};
use crate::serve::problem::Problem;

/// Jobs of one tenant that are kept, ended ones included.
const MOST: usize = 1000;
/// Jobs of one tenant that have not ended.
const MOST_RUNNING: usize = 256;
/// Rows of a page, and most of them.
const PAGE: usize = 50;
const MOST_ROWS: usize = 200;
/// How long the result of a job is kept, in milliseconds.
const KEPT: i64 = 3_600_000;

/// Every job.
#[derive(Default)]
pub(super) struct Jobs(Mutex<BTreeMap<u64, Arc<Job>>>);

/// One job.
pub(super) struct Job {
    id: String,
    tenant: String,
    view: Option<String>,
    sandbox: String,
    action: String,
    created_at: i64,
    cancel: Cancel,
    ended: Mutex<Option<Ended>>,
}

struct Ended {
    at: i64,
    was_cancelled: bool,
    result: Result<Value, Value>,
}

impl Jobs {
    fn table(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Job>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a job.
    pub(super) fn begin(&self, caller: &Caller, sandbox: &str, action: &str, cancel: Cancel) -> Result<Arc<Job>, Problem> {
        self.forget_old();
        let mut table = self.table();
        let own: Vec<(u64, bool)> = table
            .iter()
            .filter(|(_, job)| job.tenant == caller.tenant)
            .map(|(number, job)| (*number, job.is_running()))
            .collect();
        if own.iter().filter(|(_, is_running)| *is_running).count() >= MOST_RUNNING {
            return Err(Problem::limited("too many jobs of this tenant are running", 1));
        }
        if own.len() >= MOST
            && let Some((first, _)) = own.iter().find(|(_, is_running)| !is_running)
        {
            table.remove(first);
        }
        let job = Arc::new(Job {
            id: new_id(),
            tenant: caller.tenant.clone(),
            view: caller.view.clone(),
            sandbox: sandbox.to_owned(),
            action: action.to_owned(),
            created_at: now(),
            cancel,
            ended: Mutex::default(),
        });
        let number = table.last_key_value().map_or(0, |(last, _)| last + 1);
        table.insert(number, Arc::clone(&job));
        Ok(job)
    }

    fn find(&self, caller: &Caller, names: &Names) -> Result<Arc<Job>, Problem> {
        let (sandbox, id) = (names.get("id"), names.get("job"));
        let found = self.table().values().find(|job| job.id == id && job.sandbox == sandbox && job.is_of(caller)).cloned();
        found.ok_or_else(|| Problem::not_found("job"))
    }

    /// Returns jobs of a sandbox, newest first, after the one that a cursor names; and the cursor of the next page. The cursor is an id, for the
    /// numbers of jobs are those of all tenants.
    fn page(&self, caller: &Caller, sandbox: &str, page: &Page) -> Result<Value, Problem> {
        let limit = page.limit.unwrap_or(PAGE);
        if !(1..=MOST_ROWS).contains(&limit) {
            return Err(Problem::bad_request("invalid `limit`: expected 1 to 200"));
        }
        let table = self.table();
        let mut jobs = table.values().rev().filter(|job| job.sandbox == sandbox && job.is_of(caller));
        if let Some(cursor) = &page.cursor
            && !jobs.any(|job| job.id == *cursor)
        {
            return Err(Problem::bad_request("invalid `cursor`: use `next_cursor` of the page before"));
        }
        let items: Vec<&Arc<Job>> = jobs.by_ref().take(limit).collect();
        let next = items.last().filter(|_| jobs.next().is_some()).map(|job| job.id.as_str());
        let shown: Vec<Value> = items.iter().map(|job| job.describe()).collect();
        Ok(json!({ "items": shown, "next_cursor": next }))
    }

    /// Forgets jobs that ended long ago.
    pub(super) fn forget_old(&self) {
        let oldest = now() - KEPT;
        self.table().retain(|_, job| !job.ended_before(oldest));
    }

    /// Forgets the jobs of a sandbox.
    pub(super) fn forget(&self, sandbox: &str) {
        self.table().retain(|_, job| job.sandbox != sandbox);
    }
}

impl Job {
    fn ended(&self) -> MutexGuard<'_, Option<Ended>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_running(&self) -> bool {
        self.ended().is_none()
    }

    fn ended_before(&self, at: i64) -> bool {
        self.ended().as_ref().is_some_and(|ended| ended.at < at)
    }

    // The result of a view is visible only to that view.
    fn is_of(&self, caller: &Caller) -> bool {
        self.tenant == caller.tenant && self.view == caller.view
    }

    /// Stores its outcome.
    pub(super) fn end(&self, done: Result<Value, Problem>) {
        let result = done.map_err(|problem| problem.body());
        *self.ended() = Some(Ended { at: now(), was_cancelled: self.cancel.is_killed(), result });
    }

    fn describe(&self) -> Value {
        let mut described = json!({
            "job": self.id, "action": self.action, "status": "running", "created_at": rfc3339(self.created_at), "finished_at": null,
        });
        if let (Some(ended), Some(fields)) = (&*self.ended(), described.as_object_mut()) {
            let (status, name, value) = match &ended.result {
                Ok(result) => ("done", "result", result),
                Err(error) => ("failed", "error", error),
            };
            fields.insert("status".to_owned(), json!(if ended.was_cancelled { "cancelled" } else { status }));
            fields.insert("finished_at".to_owned(), json!(rfc3339(ended.at)));
            fields.insert(name.to_owned(), value.clone());
        }
        described
    }

    /// 202, with where to look.
    pub(super) fn accepted(&self) -> Response {
        let body = json!({ "job": self.id, "status": "running" });
        let mut response = (StatusCode::ACCEPTED, Json(body)).into_response();
        if let Ok(place) = HeaderValue::from_str(&format!("/v1/sandboxes/{}/jobs/{}", self.sandbox, self.id)) {
            response.headers_mut().insert(http::header::LOCATION, place);
        }
        response.headers_mut().insert("preference-applied", HeaderValue::from_static("respond-async"));
        response
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: Option<usize>,
    cursor: Option<String>,
}

/// `GET /v1/sandboxes/{id}/jobs`.
pub(super) async fn list(State(app): State<App>, caller: Caller, names: Names, uri: Uri) -> Result<Json<Value>, Problem> {
    let page: Page = input::query(&uri)?;
    let asking = caller.clone();
    let row = app.look_up(move |app| Opened::row(app, &asking, names.get("id"))).await?;
    Ok(Json(app.opened().jobs.page(&caller, &row.id, &page)?))
}

/// `GET /v1/sandboxes/{id}/jobs/{job}`.
pub(super) async fn show(State(app): State<App>, caller: Caller, names: Names) -> Result<Json<Value>, Problem> {
    Ok(Json(app.opened().jobs.find(&caller, &names)?.describe()))
}

/// `DELETE /v1/sandboxes/{id}/jobs/{job}`.
pub(super) async fn cancel(State(app): State<App>, caller: Caller, names: Names) -> Result<StatusCode, Problem> {
    app.opened().jobs.find(&caller, &names)?.cancel.kill();
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::catalog::Role;

    fn caller(tenant: &str) -> Caller {
        Caller { tenant: tenant.to_owned(), role: Role::Consumer, key: "k".to_owned(), view: None }
    }

    // T-NET-08.
    #[test]
    fn a_tenant_has_few_jobs_under_way_and_each_has_its_own() {
        let jobs = Jobs::default();
        let begin = |tenant: &str| jobs.begin(&caller(tenant), "s", "bash", Cancel::default());
        for _ in 0..MOST_RUNNING {
            begin("a").unwrap();
        }
        let refused = begin("a").err().unwrap();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (429, Some(1)));
        assert!(begin("b").is_ok());
    }

    #[test]
    fn jobs_are_listed_in_pages_of_their_sandbox_and_tenant() {
        let jobs = Jobs::default();
        let begin = |tenant: &str, sandbox: &str| jobs.begin(&caller(tenant), sandbox, "bash", Cancel::default()).unwrap();
        let own: Vec<String> = (0..5)
            .map(|_| {
                begin("b", "s");
                begin("a", "other");
                begin("a", "s").id.clone()
            })
            .collect();
        let list = |cursor: Option<&str>| {
            let page = Page { limit: Some(2), cursor: cursor.map(str::to_owned) };
            jobs.page(&caller("a"), "s", &page).unwrap()
        };
        let (mut seen, mut page) = (Vec::new(), list(None));
        loop {
            seen.extend(page["items"].as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap().to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            page = list(Some(next));
        }
        seen.reverse();
        assert_eq!(seen, own);
        let theirs = begin("b", "s").id.clone();
        for (limit, cursor) in [(0, None), (201, None), (2, Some(theirs)), (2, Some("none".to_owned()))] {
            let refused = jobs.page(&caller("a"), "s", &Page { limit: Some(limit), cursor }).unwrap_err();
            assert_eq!(refused.status.as_u16(), 400);
        }
    }

    #[test]
    fn a_job_is_forgotten_an_hour_after_its_end() {
        let jobs = Jobs::default();
        let (old, new) =
            (jobs.begin(&caller("a"), "s", "bash", Cancel::default()), jobs.begin(&caller("a"), "s", "bash", Cancel::default()));
        for (job, at) in [(old.unwrap(), now() - KEPT - 1), (new.unwrap(), now())] {
            *job.ended() = Some(Ended { at, was_cancelled: false, result: Ok(Value::Null) });
        }
        jobs.forget_old();
        assert_eq!(jobs.table().len(), 1);
    }
}
