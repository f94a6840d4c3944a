//! A run's output as server-sent events, through a bounded channel: a reader that does not read is cut, the sandbox is not (T-NET-08).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use runtime::{Cancel, Stream};
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Events that wait for the reader.
const WAITING: usize = 256;
/// How long a run waits for a reader in all before the reader is cut.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a run that waits looks for room.
const LOOK: Duration = Duration::from_millis(2);
/// How often something is sent to a client that hears nothing else.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long the last event may take.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Largest piece of output in one event.
const PIECE: usize = 32 << 10;

/// One event in the format of server-sent events.
pub(super) fn event(name: &str, id: Option<i64>, data: &Value) -> Bytes {
    // JSON has no line breaks outside of strings, and escapes those inside.
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    format!("event: {name}\n{id}data: {data}\n\n").into()
}

/// The reader's end. Dropping it kills the run.
pub(super) struct Events {
    pieces: Receiver<Bytes>,
    cancel: KillOnDrop,
}

struct KillOnDrop(Cancel);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// The run's end.
#[derive(Clone)]
pub(super) struct Listener {
    sender: Sender<Bytes>,
    cancel: Cancel,
    is_cut: Arc<AtomicBool>,
}

/// Returns a channel for the events of a run that `cancel` ends.
pub(super) fn channel(cancel: Cancel) -> (Events, Listener) {
    let (sender, pieces) = mpsc::channel(WAITING);
    let listener = Listener { sender, cancel: cancel.clone(), is_cut: Arc::default() };
    (Events { pieces, cancel: KillOnDrop(cancel) }, listener)
}

impl Listener {
    /// Passes on a piece of output. Waits a little for a slow reader, then cuts it and ends its run.
    pub(super) fn send(&self, stream: Stream, bytes: &[u8]) {
        let name = match stream {
            Stream::Stdout => "stdout",
            _ => "stderr",
        };
        for piece in bytes.chunks(PIECE) {
            let data = match std::str::from_utf8(piece) {
                Ok(text) => json!({ "text": text }),
                Err(_) => json!({ "base64": STANDARD.encode(piece) }),
            };
            self.push(event(name, None, &data));
        }
    }

    fn push(&self, mut event: Bytes) {
        let mut since: Option<Instant> = None;
        loop {
            if self.is_cut.load(Ordering::Relaxed) {
                return;
            }
            event = match self.sender.try_send(event) {
                Ok(()) => return,
                Err(TrySendError::Closed(_)) => return self.cut(),
                Err(TrySendError::Full(event)) => event,
            };
            if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return self.cut();
            }
            std::thread::park_timeout(LOOK);
        }
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        self.cancel.kill();
    }

    /// Sends the last event.
    pub(super) async fn end(self, name: &str, data: &Value) {
        if !self.is_cut.load(Ordering::Relaxed) {
            let _ = tokio::time::timeout(LAST_WORDS, self.sender.send(event(name, None, data))).await;
        }
    }
}

impl IntoResponse for Events {
    fn into_response(self) -> Response {
        response(self.pieces, self.cancel)
    }
}

/// Returns a response with events as they come; `held` lives as long as a client reads.
pub(super) fn response<T: Send + 'static>(pieces: Receiver<Bytes>, held: T) -> Response {
    let stream = futures_util::stream::unfold((pieces, held), |(mut pieces, held)| async move {
        let piece = match tokio::time::timeout(HEARTBEAT, pieces.recv()).await {
            Ok(Some(piece)) => piece,
            Ok(None) => return None,
            Err(_) => Bytes::from_static(b": still there\n\n"),
        };
        Some((Ok::<_, Infallible>(piece), (pieces, held)))
    });
    let mut response = Body::from_stream(stream).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-NET-08.
    #[test]
    fn a_reader_that_does_not_read_is_cut_and_its_run_is_killed() {
        let cancel = Cancel::default();
        let (events, listener) = channel(cancel.clone());
        (0..WAITING).for_each(|_| listener.send(Stream::Stdout, b"x"));
        assert!(!cancel.is_killed());
        listener.send(Stream::Stdout, b"one too many");
        assert!(cancel.is_killed());
        // Further output costs nothing.
        let began = Instant::now();
        (0..1000).for_each(|_| listener.send(Stream::Stderr, b"y"));
        assert!(began.elapsed() < PATIENCE);
        drop(events);
    }

    // T-NET-08.
    #[test]
    fn a_reader_that_is_a_little_late_is_waited_for() {
        let cancel = Cancel::default();
        let (mut events, listener) = channel(cancel.clone());
        (0..WAITING).for_each(|_| listener.send(Stream::Stdout, b"x"));
        let late = std::thread::spawn(move || {
            std::thread::park_timeout(Duration::from_millis(100));
            (events.pieces.blocking_recv(), events)
        });
        listener.send(Stream::Stdout, b"one more");
        let (first, _events) = late.join().unwrap();
        assert!(first.is_some() && !cancel.is_killed());
    }

    #[test]
    fn an_event_is_one_line_of_data_whatever_it_has() {
        let event = event("stdout", Some(7), &json!({ "text": "a\n\nevent: b\r\n" }));
        assert_eq!(&*event, b"event: stdout\nid: 7\ndata: {\"text\":\"a\\n\\nevent: b\\r\\n\"}\n\n");
    }
}
