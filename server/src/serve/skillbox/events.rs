//! `/v1/executions/{id}/events`: the output of a run while it runs, then its result, as server-sent events.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use serde_json::json;

use super::live::Reader;
use super::{artifacts, executions};
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::path::Path;
use crate::serve::problem::Problem;
use crate::serve::shares::Share;

/// How often a comment is sent when there is nothing else.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the key is looked up while a run prints nothing.
const LOOK: Duration = Duration::from_secs(1);

/// The next event.
enum Next {
    /// Output of the run, as it is printed.
    Printed(Reader),
    /// The remaining output of a run that has ended.
    Logs(String),
    /// Its result.
    Result,
    /// Nothing.
    End,
}

struct Source {
    app: App,
    caller: Caller,
    base: String,
    id: String,
    next: Next,
    /// When something was sent last.
    sent: Instant,
    _share: Share,
}

pub(super) async fn events(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let base = artifacts::base_url(&app, &headers);
    // Before the row is read: one that has ended by then has a result.
    let running = app.skillbox().live.find(&caller.tenant, &id);
    let row = executions::find(&app, &caller, id.clone()).await?;
    let next = running.map_or_else(|| Next::Logs(row.ended.logs), |running| Next::Printed(running.reader()));
    let share = app.opened().streams.take(&caller.tenant);
    let share = share.ok_or_else(|| Problem::limited("too many streams of events at a time", 5))?;
    let source = Source { app, caller, base, id, next, sent: Instant::now(), _share: share };
    let stream = futures_util::stream::unfold(source, |mut source| async move {
        let event = source.event().await?;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(event)), source))
    });
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

impl Source {
    async fn event(&mut self) -> Option<String> {
        loop {
            match &mut self.next {
                Next::Printed(reader) => {
                    let printed = tokio::time::timeout(LOOK, reader.next()).await;
                    if let Err(problem) = self.caller.require_valid_key(&self.app).await {
                        self.next = Next::End;
                        return Some(error(&problem));
                    }
                    let event = match printed {
                        Ok(Some(text)) => log(&text),
                        Ok(None) => {
                            self.next = Next::Result;
                            continue;
                        }
                        Err(_) if self.sent.elapsed() >= HEARTBEAT => ": \n\n".to_owned(),
                        Err(_) => continue,
                    };
                    self.sent = Instant::now();
                    return Some(event);
                }
                Next::Logs(text) => {
                    let text = std::mem::take(text);
                    self.next = Next::Result;
                    if !text.is_empty() {
                        return Some(log(&text));
                    }
                }
                Next::Result => {
                    self.next = Next::End;
                    let row = executions::find(&self.app, &self.caller, self.id.clone()).await;
                    return Some(match row {
                        Ok(row) => format!("event: result\ndata: {}\n\n", executions::execution(&self.app, &self.base, &row)),
                        Err(problem) => error(&problem),
                    });
                }
                Next::End => return None,
            }
        }
    }
}

fn error(problem: &Problem) -> String {
    format!("event: error\ndata: {}\n\n", problem.body())
}

fn log(text: &str) -> String {
    format!("event: log\ndata: {}\n\n", json!({ "text": text }))
}
