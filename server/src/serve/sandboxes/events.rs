//! `GET /v1/sandboxes/{id}/events`: the changes of each version, as a page or as a continuing stream.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, Uri};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::actions::wants_events;
use super::input::{self, Names};
use super::stream;
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::problem::Problem;

/// How often to look for versions that were not announced.
const LOOK: Duration = Duration::from_secs(1);
/// Events that wait for the reader.
const WAITING: usize = 256;
/// How long a reader may take to make room for one more: then it is cut, and comes back where it was (T-NET-08).
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    after: Option<i64>,
    path: Option<String>,
}

async fn page(
    app: &App,
    caller: &Caller,
    id: &str,
    after: Option<i64>,
    path: Option<String>,
) -> Result<runtime::EventPage, Problem> {
    let (row, slot) = app.find_sandbox(caller, id).await?;
    let caller = caller.clone();
    app.blocking(move |app| {
        let sandbox = slot.open(app, &row, &caller)?;
        Ok(sandbox.events_after(after, path.as_deref())?)
    })
    .await
}

/// `GET /v1/sandboxes/{id}/events`.
pub(super) async fn follow(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query: After = input::query(&uri)?;
    let id = names.get("id").to_owned();
    // A client that reconnects sends the last event that it has seen.
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let after = seen.or(query.after);
    let first = page(&app, &caller, &id, after, query.path.clone()).await?;
    if !wants_events(&headers) {
        return Ok(Json(first).into_response());
    }
    let share = app.opened().streams.take(&caller.tenant);
    let share = share.ok_or_else(|| Problem::limited("too many streams of events at a time", 5))?;
    let (_, slot) = app.find_sandbox(&caller, &id).await?;
    let mut changes = slot.changes();
    drop(slot);
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let mut page = first;
        loop {
            if !pass_on(&sender, events(&page), PATIENCE).await {
                return;
            }
            if !page.more {
                // A sandbox that was closed announces nothing more: then it is looked at now and then.
                let _ = tokio::time::timeout(LOOK, async {
                    tokio::select! {
                        changed = changes.changed() => if changed.is_err() { std::future::pending::<()>().await },
                        () = sender.closed() => {}
                    }
                })
                .await;
            }
            if sender.is_closed() {
                return;
            }
            let may_continue = match app.require_running() {
                Ok(()) => caller.require_valid_key(&app).await,
                Err(problem) => Err(problem),
            };
            let next = match may_continue {
                Ok(()) => self::page(&app, &caller, &id, Some(page.version), query.path.clone()).await,
                Err(problem) => Err(problem),
            };
            page = match next {
                Ok(page) => page,
                Err(problem) => {
                    let _ = sender.try_send(stream::event("error", None, &problem.body()));
                    return;
                }
            };
        }
    });
    Ok(stream::response(receiver, share))
}

// Sends events to a reader; `false` if it is gone, or takes longer than `patience` to make room for one.
async fn pass_on(sender: &mpsc::Sender<Bytes>, events: Vec<Bytes>, patience: Duration) -> bool {
    for event in events {
        match tokio::time::timeout(patience, sender.send(event)).await {
            Ok(Ok(())) => {}
            _ => return false,
        }
    }
    true
}

// Only the last event of a version has the id: a client that reconnects earlier receives all of that version again.
fn events(page: &runtime::EventPage) -> Vec<Bytes> {
    let next = page.events.iter().skip(1).map(|event| Some(event.version)).chain([None]);
    let pairs = page.events.iter().zip(next);
    pairs
        .map(|(event, next)| {
            let id = (next != Some(event.version)).then_some(event.version);
            let data: Value = serde_json::to_value(event).unwrap_or_else(|_| json!({}));
            stream::event("change", id, &data)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-NET-08.
    #[tokio::test]
    async fn a_reader_that_is_late_is_waited_for_and_one_that_does_not_read_is_cut() {
        let (sender, mut receiver) = mpsc::channel(1);
        let two = || vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        let late = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            (receiver.recv().await, receiver.recv().await)
        };
        let (passed, read) = futures_util::future::join(pass_on(&sender, two(), Duration::from_secs(60)), late).await;
        assert!(passed && read.1.is_some_and(|last| last == "b"));
        let cut = tokio::time::timeout(Duration::from_secs(60), pass_on(&sender, two(), Duration::from_millis(20))).await;
        assert_eq!(cut, Ok(false));
        drop(receiver);
        assert!(!pass_on(&sender, two(), Duration::from_secs(60)).await);
    }
}
