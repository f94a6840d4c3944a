//! Sends spans to the collector, many at a time, on a connection for each batch.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::{Collector, Inner};

/// Spans of one request to the collector.
const BATCH: usize = 512;
/// How long the first span of a batch waits for others.
const LINGER: Duration = Duration::from_millis(500);
/// How long the collector has for a batch.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest answer of the collector that is read.
const LARGEST_ANSWER: usize = 64 << 10;

/// Sends spans until the server ends.
pub(super) async fn run(collector: Collector, mut waiting: mpsc::Receiver<Value>, inner: Arc<Inner>) {
    let mut is_ending = false;
    while !is_ending {
        let mut batch = Vec::new();
        tokio::select! {
            count = waiting.recv_many(&mut batch, BATCH) => is_ending = count == 0,
            () = inner.ending.notified() => is_ending = true,
        }
        if !is_ending && batch.len() < BATCH {
            tokio::select! {
                () = tokio::time::sleep(LINGER) => {}
                () = inner.ending.notified() => is_ending = true,
            }
        }
        if is_ending {
            waiting.close();
        }
        loop {
            while batch.len() < BATCH
                && let Ok(span) = waiting.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                break;
            }
            let count = u64::try_from(batch.len()).unwrap_or(0);
            let accepted = tokio::time::timeout(PATIENCE, send(&collector, std::mem::take(&mut batch))).await;
            let counter = if accepted == Ok(Some(())) { &inner.sent } else { &inner.dropped };
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }
    inner.ended.notify_one();
}

async fn send(collector: &Collector, spans: Vec<Value>) -> Option<()> {
    let service = json!([
        { "key": "service.name", "value": { "stringValue": "sandlite" } },
        { "key": "service.version", "value": { "stringValue": env!("CARGO_PKG_VERSION") } },
    ]);
    let scope = json!({ "scope": { "name": "sandlite" }, "spans": spans });
    let body = json!({ "resourceSpans": [{ "resource": { "attributes": service }, "scopeSpans": [scope] }] }).to_string();
    let stream = TcpStream::connect(&collector.authority).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    let request = Request::post(&collector.path)
        .header(HOST, &collector.authority)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .ok()?;
    let asked = async {
        let answer = sender.send_request(request).await.ok()?;
        let is_accepted = answer.status() == StatusCode::OK;
        // Read to its end, so that the collector does not see a connection that breaks.
        let _ = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await;
        is_accepted.then_some(())
    };
    tokio::pin!(asked);
    tokio::select! {
        accepted = &mut asked => accepted,
        // A connection that has ended may have left the answer.
        _ = connection => asked.await,
    }
}
