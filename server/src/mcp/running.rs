//! The running calls, so that a client can cancel them and none outlives the server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use runtime::Cancel;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

/// Maximum number of concurrent calls into sandboxes; more are queued without a thread.
const MOST: usize = 32;

/// The running calls.
pub(super) struct Running {
    permits: Semaphore,
    calls: Mutex<Calls>,
    changed: Notify,
}

#[derive(Default)]
struct Calls {
    last: u64,
    cancels: HashMap<u64, Cancel>,
    /// By HTTP session and request.
    cancel: HashMap<(String, String), CancellationToken>,
}

impl Default for Running {
    fn default() -> Self {
        Self { permits: Semaphore::new(MOST), calls: Mutex::default(), changed: Notify::new() }
    }
}

impl Running {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot for one call.
    pub(super) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.permits.acquire().await.ok()
    }

    /// Counts a command as running for as long as the returned guard lives.
    pub(super) fn command(&self, cancel: Cancel) -> Command<'_> {
        let mut calls = self.calls();
        calls.last += 1;
        let number = calls.last;
        calls.cancels.insert(number, cancel);
        Command { running: self, number }
    }

    /// Makes a request of an HTTP session cancelable for as long as the returned guard lives.
    pub(super) fn request(&self, session: &str, request: &str) -> Request<'_> {
        let (key, token) = ((session.to_owned(), request.to_owned()), CancellationToken::new());
        self.calls().cancel.insert(key.clone(), token.clone());
        Request { running: self, key, token }
    }

    /// Cancels a request of an HTTP session.
    pub(super) fn cancel(&self, session: &str, request: &str) {
        if let Some(token) = self.calls().cancel.get(&(session.to_owned(), request.to_owned())) {
            token.cancel();
        }
    }

    /// Kills every command.
    pub(super) fn kill_all(&self) {
        let cancels: Vec<Cancel> = self.calls().cancels.values().cloned().collect();
        cancels.iter().for_each(Cancel::kill);
    }

    /// Waits until nothing runs.
    pub(super) async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.calls().cancels.is_empty() {
                return;
            }
            changed.await;
        }
    }
}

/// A running command.
pub(super) struct Command<'a> {
    running: &'a Running,
    number: u64,
}

impl Drop for Command<'_> {
    fn drop(&mut self) {
        self.running.calls().cancels.remove(&self.number);
        self.running.changed.notify_waiters();
    }
}

/// A cancelable request.
pub(super) struct Request<'a> {
    running: &'a Running,
    key: (String, String),
    /// Completes on cancellation.
    pub(super) token: CancellationToken,
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.running.calls().cancel.remove(&self.key);
    }
}
