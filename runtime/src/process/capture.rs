//! Captured output: where a command's stdout and stderr end up.
//!
//! What does not fit the output limit is not kept; the command ends and its caller is told (T-DOS-06).

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Called with each piece of output as it comes.
pub(crate) type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// A stream's output so far.
pub(crate) struct Capture(Mutex<Kept>);

struct Kept {
    bytes: Vec<u8>,
    truncated: bool,
    sink: Option<Sink>,
}

impl Capture {
    /// An empty capture that also tells `sink`.
    pub(crate) fn new(sink: Option<Sink>) -> Self {
        Self(Mutex::new(Kept { bytes: Vec::new(), truncated: false, sink }))
    }

    /// Keeps the first `keep` of `bytes`; the caller has charged them.
    pub(crate) fn push(&self, bytes: &[u8], keep: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let head = bytes.get(..keep).unwrap_or(bytes);
        kept.truncated |= head.len() < bytes.len();
        kept.bytes.extend_from_slice(head);
        if let Some(sink) = &mut kept.sink {
            sink(head);
        }
    }

    /// Takes what was kept, and whether something was not.
    pub(crate) fn take(&self) -> (Vec<u8>, bool) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut kept.bytes), kept.truncated)
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capture")
    }
}
