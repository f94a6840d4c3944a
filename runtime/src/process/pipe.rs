//! Pipes: a bounded buffer between two processes.
//!
//! Knows nothing of descriptor numbers; `descriptor.rs` holds the ends. A pipe is closed by dropping its last end.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tree::MemoryCharge;
use super::wait::Waiters;

/// What a pipe holds at most: Linux's own figure, so that programs meet the back-pressure they know.
pub(crate) const CAPACITY: usize = 64 << 10;

#[derive(Debug)]
struct Pipe {
    // Given back when the last end is gone.
    _charge: Option<MemoryCharge>,
    state: Mutex<PipeState>,
    readers: Waiters,
    writers: Waiters,
}

#[derive(Debug)]
struct PipeState {
    buffer: VecDeque<u8>,
    has_reader: bool,
    has_writer: bool,
    /// A reader found nothing, and nothing was written since.
    is_wanted: bool,
    on_demand: Option<OnDemand>,
}

/// Whoever fills a pipe only when it is asked for.
#[derive(Clone)]
struct OnDemand(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDemand")
    }
}

/// The end that reads. Dropping it makes writers fail.
#[derive(Debug)]
pub(crate) struct PipeReader(Arc<Pipe>);

/// The end that writes. Dropping it lets readers see the end.
#[derive(Debug)]
pub(crate) struct PipeWriter(Arc<Pipe>);

/// A new pipe. Its buffer is paid for by whoever asked for it; a pipe of the embedding program's is not a guest's to pay.
pub(crate) fn pipe(charge: Option<MemoryCharge>) -> (PipeReader, PipeWriter) {
    let pipe = Arc::new(Pipe {
        _charge: charge,
        state: Mutex::new(PipeState {
            buffer: VecDeque::new(),
            has_reader: true,
            has_writer: true,
            is_wanted: false,
            on_demand: None,
        }),
        readers: Waiters::default(),
        writers: Waiters::default(),
    });
    (PipeReader(Arc::clone(&pipe)), PipeWriter(pipe))
}

/// Nobody reads any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Whoever fills the pipe on demand has had his chance first.
    fn lock_for_reading(&self) -> MutexGuard<'_, PipeState> {
        let mut state = self.lock();
        if !state.buffer.is_empty() || !state.has_writer {
            return state;
        }
        state.is_wanted = true;
        let Some(OnDemand(ask)) = state.on_demand.clone() else { return state };
        drop(state);
        ask();
        self.lock()
    }
}

impl PipeReader {
    /// Takes what is there, up to the buffer's length: `None` when there is nothing yet, `Some(0)` at the end.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut state = self.0.lock_for_reading();
        if state.buffer.is_empty() {
            return (!state.has_writer).then_some(0);
        }
        let length = buffer.len().min(state.buffer.len());
        let (front, back) = state.buffer.as_slices();
        let from_front = length.min(front.len());
        buffer[..from_front].copy_from_slice(&front[..from_front]);
        buffer[from_front..length].copy_from_slice(&back[..length - from_front]);
        state.buffer.drain(..length);
        drop(state);
        self.0.writers.wake();
        Some(length)
    }

    /// Bytes that can be read now; `None` when nothing can and a writer is still there.
    pub(crate) fn available(&self) -> Option<usize> {
        let state = self.0.lock_for_reading();
        (!state.buffer.is_empty() || !state.has_writer).then_some(state.buffer.len())
    }

    /// Registers the calling thread for the next change.
    pub(crate) fn register(&self) {
        self.0.readers.register();
    }

    /// Is called whenever a reader finds nothing, by the reader itself: it may write, and must not wait.
    pub(crate) fn on_demand(&self, ask: impl Fn() + Send + Sync + 'static) {
        self.0.lock().on_demand = Some(OnDemand(Arc::new(ask)));
    }
}

impl PipeWriter {
    /// Puts what fits: `None` when the pipe is full.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> Option<Result<usize, Broken>> {
        let mut state = self.0.lock();
        if !state.has_reader {
            return Some(Err(Broken));
        }
        let length = bytes.len().min(CAPACITY.saturating_sub(state.buffer.len()));
        if length == 0 && !bytes.is_empty() {
            return None;
        }
        state.buffer.extend(&bytes[..length]);
        state.is_wanted = false;
        drop(state);
        self.0.readers.wake();
        Some(Ok(length))
    }

    /// Bytes that can be written now; `None` when the pipe is full and a reader is still there.
    pub(crate) fn available(&self) -> Option<usize> {
        let state = self.0.lock();
        let room = CAPACITY.saturating_sub(state.buffer.len());
        (room > 0 || !state.has_reader).then_some(room)
    }

    /// Registers the calling thread for the next change.
    pub(crate) fn register(&self) {
        self.0.writers.register();
    }

    /// Whether a reader has found nothing since the last write.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.lock().is_wanted
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_reader = false;
        state.buffer = VecDeque::new();
        // May hold the other end of this very pipe.
        let on_demand = state.on_demand.take();
        drop(state);
        drop(on_demand);
        self.0.writers.wake();
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.0.lock().has_writer = false;
        self.0.readers.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_what_was_written_and_then_the_end() {
        let (reader, writer) = pipe(None);
        let mut buffer = [0; 8];
        assert_eq!(reader.try_read(&mut buffer), None);
        assert_eq!(writer.try_write(b"hello"), Some(Ok(5)));
        assert_eq!(reader.try_read(&mut buffer[..3]), Some(3));
        drop(writer);
        assert_eq!(reader.try_read(&mut buffer), Some(2));
        assert_eq!(reader.try_read(&mut buffer), Some(0));
    }

    #[test]
    fn a_full_pipe_takes_what_fits_and_then_nothing() {
        let (reader, writer) = pipe(None);
        assert_eq!(writer.try_write(&vec![7; CAPACITY + 1]), Some(Ok(CAPACITY)));
        assert_eq!(writer.try_write(b"x"), None);
        assert_eq!(reader.try_read(&mut [0; 10]), Some(10));
        assert_eq!(writer.try_write(&[1; 20]), Some(Ok(10)));
    }

    #[test]
    fn a_pipe_can_be_filled_when_it_is_asked() {
        let (reader, writer) = pipe(None);
        assert!(!writer.is_wanted());
        let writer = Arc::new(Mutex::new(Some(writer)));
        let fill = Arc::clone(&writer);
        reader.on_demand(move || {
            let writer = fill.lock().unwrap().take();
            if let Some(writer) = writer {
                assert!(writer.is_wanted());
                assert_eq!(writer.try_write(b"on demand"), Some(Ok(9)));
                assert!(!writer.is_wanted());
            }
        });
        let mut buffer = [0; 16];
        assert_eq!(reader.try_read(&mut buffer), Some(9));
        assert_eq!(reader.try_read(&mut buffer), Some(0));
        assert!(writer.lock().unwrap().is_none());
    }

    #[test]
    fn a_writer_without_reader_is_told() {
        let (reader, writer) = pipe(None);
        drop(reader);
        assert_eq!(writer.try_write(b"x"), Some(Err(Broken)));
    }
}
