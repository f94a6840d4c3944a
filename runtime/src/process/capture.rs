//! Captured output: the destination of a command's stdout and stderr, and how its caller reads them while it runs.
//!
//! Output beyond the limit is discarded; the command ends and its caller is notified (T-DOS-06).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::wait::Waiters;

/// Callback invoked with each piece of output.
pub(crate) type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// Number of unread bytes after which the command waits for its reader: the capacity of a pipe.
const WINDOW: usize = super::pipe::CAPACITY;

/// A stream's output so far.
#[derive(Default)]
pub(crate) struct Capture {
    kept: Mutex<Kept>,
    readers: Waiters,
    writers: Waiters,
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    truncated: bool,
    sink: Option<Sink>,
    reader: Option<Reader>,
    is_closed: bool,
}

/// A reader that may read while the command runs.
#[derive(Clone, Copy, Default)]
struct Reader {
    position: usize,
    /// Whether the command waits for it.
    is_following: bool,
    /// Whether what it has not read by the end belongs to the result alone.
    leaves_rest: bool,
}

impl Kept {
    fn unread(&self) -> usize {
        self.reader.map_or(0, |reader| self.bytes.len().saturating_sub(reader.position))
    }
}

impl Capture {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the first `keep` of `bytes`; the caller has charged them.
    pub(crate) fn push(&self, bytes: &[u8], keep: usize) {
        let mut kept = self.lock();
        let head = bytes.get(..keep).unwrap_or(bytes);
        kept.truncated |= head.len() < bytes.len();
        kept.bytes.extend_from_slice(head);
        if let Some(sink) = &mut kept.sink {
            sink(head);
        }
        let is_read = kept.reader.is_some();
        drop(kept);
        if is_read {
            self.readers.wake();
        }
    }

    /// Returns whether a reader that the command waits for has fallen behind, and registers the calling thread for the change.
    pub(crate) fn is_behind(&self) -> bool {
        let is_behind = || {
            let kept = self.lock();
            kept.reader.is_some_and(|reader| reader.is_following) && kept.unread() > WINDOW
        };
        is_behind() && {
            self.writers.register();
            is_behind()
        }
    }

    /// Takes the output, and whether some was discarded. A reader keeps its unread part, unless it leaves that to the result.
    pub(crate) fn take(&self) -> (Vec<u8>, bool) {
        let mut kept = self.lock();
        let bytes = std::mem::take(&mut kept.bytes);
        if let Some(reader) = &mut kept.reader {
            let start = std::mem::take(&mut reader.position);
            if !reader.leaves_rest {
                kept.bytes = bytes.get(start..).unwrap_or_default().to_vec();
            }
        }
        (bytes, kept.truncated)
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capture")
    }
}

/// The command's end of a capture. Dropping it ends the output.
#[derive(Debug, Default)]
pub(crate) struct CaptureWriter(Arc<Capture>);

impl CaptureWriter {
    /// Returns the end that processes write to.
    pub(crate) fn capture(&self) -> &Arc<Capture> {
        &self.0
    }

    /// Also passes each piece to a callback.
    pub(crate) fn set_sink(&self, sink: Sink) {
        self.0.lock().sink = Some(sink);
    }

    /// Returns the other end.
    pub(crate) fn reader(&self) -> CaptureReader {
        self.0.lock().reader = Some(Reader::default());
        CaptureReader(Arc::clone(&self.0))
    }
}

impl Drop for CaptureWriter {
    fn drop(&mut self) {
        let mut kept = self.0.lock();
        kept.is_closed = true;
        // The callback may hold a thread that waits for this end.
        let sink = kept.sink.take();
        drop(kept);
        drop(sink);
        self.0.readers.wake();
    }
}

/// The caller's end of a capture.
#[derive(Debug)]
pub(crate) struct CaptureReader(Arc<Capture>);

impl CaptureReader {
    /// Returns the number of readable bytes: 0 at the end, `None` if there are none yet.
    pub(crate) fn available(&self) -> Option<usize> {
        let kept = self.0.lock();
        let unread = kept.unread();
        (unread > 0 || kept.is_closed).then_some(unread)
    }

    /// Passes available bytes, up to `most`, to `read`.
    pub(crate) fn read<T>(&self, most: usize, read: impl FnOnce(&[u8]) -> T) -> T {
        let mut kept = self.0.lock();
        let start = kept.reader.map_or(0, |reader| reader.position);
        let end = start.saturating_add(most).min(kept.bytes.len());
        let answer = read(kept.bytes.get(start..end).unwrap_or_default());
        if let Some(reader) = &mut kept.reader {
            reader.position = end;
        }
        drop(kept);
        self.0.writers.wake();
        answer
    }

    /// Sets whether the command waits for this reader when it falls behind.
    pub(crate) fn follow(&self, is_following: bool) {
        if let Some(reader) = &mut self.0.lock().reader {
            reader.is_following = is_following;
        }
        self.0.writers.wake();
    }

    /// Leaves what is unread at the end to the result, which is then not stored twice.
    pub(crate) fn leave_rest(&self) {
        if let Some(reader) = &mut self.0.lock().reader {
            reader.leaves_rest = true;
        }
    }

    /// Registers the calling thread for the next change.
    pub(crate) fn register(&self) {
        self.0.readers.register();
    }
}

impl Drop for CaptureReader {
    fn drop(&mut self) {
        self.0.lock().reader = None;
        self.0.writers.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_everything_once_and_then_the_end() {
        let writer = CaptureWriter::default();
        let reader = writer.reader();
        assert_eq!(reader.available(), None);
        writer.capture().push(b"abcdef", 4);
        assert_eq!((reader.available(), reader.read(3, <[u8]>::to_vec)), (Some(4), b"abc".to_vec()));
        assert_eq!(writer.capture().take(), (b"abcd".to_vec(), true));
        assert_eq!((reader.available(), reader.read(9, <[u8]>::to_vec)), (Some(1), b"d".to_vec()));
        assert_eq!(reader.available(), None);
        drop(writer);
        assert_eq!(reader.available(), Some(0));
    }

    #[test]
    fn unread_output_can_be_left_to_the_result() {
        let writer = CaptureWriter::default();
        let reader = writer.reader();
        reader.leave_rest();
        writer.capture().push(b"abcdef", 6);
        assert_eq!(reader.read(2, <[u8]>::to_vec), b"ab".to_vec());
        assert_eq!(writer.capture().take(), (b"abcdef".to_vec(), false));
        assert_eq!((reader.available(), reader.read(9, <[u8]>::to_vec)), (None, Vec::new()));
        drop(writer);
        assert_eq!(reader.available(), Some(0));
    }

    #[test]
    fn the_command_waits_only_for_a_reader_that_follows() {
        let writer = CaptureWriter::default();
        let reader = writer.reader();
        writer.capture().push(&[0; WINDOW + 1], usize::MAX);
        assert!(!writer.capture().is_behind());
        reader.follow(true);
        assert!(writer.capture().is_behind());
        reader.read(1, |_| ());
        assert!(!writer.capture().is_behind());
        writer.capture().push(&[0; 2], usize::MAX);
        assert!(writer.capture().is_behind());
        drop(reader);
        assert!(!writer.capture().is_behind());
    }
}
