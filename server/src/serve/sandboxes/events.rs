//! `GET /v1/sandboxes/{id}/events`: what each version changed, as a page or as a stream that continues.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
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

/// How often it is looked for versions that nobody has announced.
const LOOK: Duration = Duration::from_secs(1);
/// Events that wait for the reader.
const WAITING: usize = 256;
/// How long a reader may take to make room for one more: then it is cut, and comes back where it was (T-NET-08).
const PATIENCE: Duration = Duration::from_secs(10);
/// Streams at a time.
const MOST: usize = 1024;

static STREAMS: AtomicUsize = AtomicUsize::new(0);

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        STREAMS.fetch_sub(1, Ordering::Relaxed);
    }
}

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
    let (row, slot) = app.opened().find(app, caller, id)?;
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
    // A client that comes back says what it has seen.
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let after = seen.or(query.after);
    let first = page(&app, &caller, &id, after, query.path.clone()).await?;
    if !wants_events(&headers) {
        return Ok(Json(first).into_response());
    }
    let before = STREAMS.fetch_add(1, Ordering::Relaxed);
    let counted = Counted;
    if before >= MOST {
        return Err(Problem::limited("too many streams of events", 5));
    }
    let (_, slot) = app.opened().find(&app, &caller, &id)?;
    let mut changes = slot.changes();
    drop(slot);
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let mut page = first;
        loop {
            for event in events(&page) {
                match tokio::time::timeout(PATIENCE, sender.send(event)).await {
                    Ok(Ok(())) => {}
                    _ => return,
                }
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
            page = match self::page(&app, &caller, &id, Some(page.version), query.path.clone()).await {
                Ok(page) => page,
                Err(problem) => {
                    let _ = sender.try_send(stream::event("error", None, &problem.body()));
                    return;
                }
            };
        }
    });
    Ok(stream::response(receiver, counted))
}

// The id stands with the last event of its version: who comes back in between sees all of that version again.
fn events(page: &runtime::EventPage) -> Vec<bytes::Bytes> {
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
