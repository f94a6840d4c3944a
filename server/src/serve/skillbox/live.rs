//! Executions under way: their output so far, and their cancellation.
//!
//! Readers follow at their own pace: each has a place in one bounded text, and none can hold up the run.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtime::Cancel;
use tokio::sync::watch;

/// Most bytes of output that are kept for readers: as many as logs have.
const MOST_BYTES: usize = 1 << 20;

/// The executions under way, by id.
#[derive(Default)]
pub(super) struct Live(Mutex<HashMap<String, Arc<Running>>>);

/// An execution under way.
pub(super) struct Running {
    tenant: String,
    pub(super) cancel: Cancel,
    has_begun: AtomicBool,
    printed: Mutex<Vec<u8>>,
    changed: watch::Sender<usize>,
}

impl Live {
    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<Running>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an execution, until [`end`](Self::end).
    pub(super) fn begin(&self, tenant: &str, id: &str, cancel: Cancel) -> Arc<Running> {
        let (changed, _) = watch::channel(0);
        let running = Arc::new(Running {
            tenant: tenant.to_owned(),
            cancel,
            has_begun: AtomicBool::new(false),
            printed: Mutex::default(),
            changed,
        });
        self.table().insert(id.to_owned(), Arc::clone(&running));
        running
    }

    /// Ends an execution whose row is finished: its readers look there.
    pub(super) fn end(&self, id: &str) {
        if let Some(running) = self.table().remove(id) {
            running.changed.send_modify(|length| *length = usize::MAX);
        }
    }

    /// Returns a tenant's execution.
    pub(super) fn find(&self, tenant: &str, id: &str) -> Option<Arc<Running>> {
        self.table().get(id).filter(|running| running.tenant == tenant).map(Arc::clone)
    }
}

impl Running {
    /// Notes that its turn has come.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Returns whether it still waits for its turn.
    pub(super) fn is_waiting(&self) -> bool {
        !self.has_begun.load(Ordering::Relaxed)
    }

    /// Adds output.
    pub(super) fn print(&self, bytes: &[u8]) {
        let length = {
            let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
            let room = MOST_BYTES.saturating_sub(printed.len()).min(bytes.len());
            printed.extend_from_slice(bytes.get(..room).unwrap_or_default());
            printed.len()
        };
        self.changed.send_if_modified(|known| {
            let is_new = *known < length;
            *known = length.max(*known);
            is_new
        });
    }

    /// Returns a reader that begins at the beginning.
    pub(super) fn reader(self: Arc<Self>) -> Reader {
        let changed = self.changed.subscribe();
        Reader { running: self, changed, at: 0 }
    }
}

/// Reads the output of an execution.
pub(super) struct Reader {
    running: Arc<Running>,
    changed: watch::Receiver<usize>,
    at: usize,
}

impl Reader {
    /// Waits for more text; `None` when the execution has ended and all was read.
    pub(super) async fn next(&mut self) -> Option<String> {
        loop {
            let has_ended = *self.changed.borrow_and_update() == usize::MAX;
            if let Some(text) = self.take(has_ended) {
                return Some(text);
            }
            if has_ended || self.changed.changed().await.is_err() {
                return None;
            }
        }
    }

    // The new text, without an incomplete character at its end.
    fn take(&mut self, has_ended: bool) -> Option<String> {
        let printed = self.running.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let new = printed.get(self.at..).unwrap_or_default();
        let whole = match std::str::from_utf8(new) {
            Err(error) if error.error_len().is_none() && !has_ended => error.valid_up_to(),
            _ => new.len(),
        };
        let text = String::from_utf8_lossy(new.get(..whole)?).into_owned();
        self.at += whole;
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_sees_everything_in_order_and_then_the_end() {
        let live = Live::default();
        let running = live.begin("a", "1", Cancel::default());
        assert!(live.find("b", "1").is_none());
        let mut early = live.find("a", "1").unwrap().reader();
        running.print("gr\u{fc}n".as_bytes().get(..3).unwrap());
        assert_eq!(early.next().await.as_deref(), Some("gr"));
        running.print(&"gr\u{fc}n".as_bytes()[3..]);
        let mut late = live.find("a", "1").unwrap().reader();
        live.end("1");
        assert!(live.find("a", "1").is_none());
        assert_eq!((early.next().await.as_deref(), early.next().await), (Some("\u{fc}n"), None));
        assert_eq!((late.next().await.as_deref(), late.next().await), (Some("gr\u{fc}n"), None));
    }

    #[tokio::test]
    async fn printed_output_is_bounded() {
        let live = Live::default();
        let running = live.begin("a", "1", Cancel::default());
        (0..3).for_each(|_| running.print(&vec![b'x'; MOST_BYTES / 2 + 1]));
        let mut reader = running.reader();
        assert_eq!(reader.next().await.map(|text| text.len()), Some(MOST_BYTES));
    }
}
