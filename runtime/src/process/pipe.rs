//! Pipes: a bounded buffer between two processes.
//!
//! Knows nothing about descriptor numbers; `descriptor.rs` holds the ends. A pipe is closed by dropping its last end.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::job::MemoryCharge;
use super::wait::Waiters;

/// Capacity of a pipe: Linux's value, so that programs see the expected back-pressure.
pub(crate) const CAPACITY: usize = 64 << 10;

#[derive(Debug)]
struct Pipe {
    // Released when the last end is dropped.
    _charge: Option<MemoryCharge>,
    state: Mutex<PipeState>,
    readers: Waiters,
    writers: Waiters,
}

#[derive(Debug)]
struct PipeState {
    buffer: VecDeque<u8>,
    readers: usize,
    writers: usize,
    // How often each end was opened: an open of a named pipe waits for the other end, which may be closed again already.
    read_opens: u64,
    write_opens: u64,
    /// Whether a reader found nothing, and nothing was written since.
    is_wanted: bool,
    on_demand: Option<OnDemand>,
    /// Whether a person types the input.
    is_terminal: bool,
}

impl PipeState {
    /// Creates an empty pipe with this many of each end.
    fn opened(ends: usize) -> Self {
        let opens = ends as u64;
        Self {
            buffer: VecDeque::new(),
            readers: ends,
            writers: ends,
            read_opens: opens,
            write_opens: opens,
            is_wanted: false,
            on_demand: None,
            is_terminal: false,
        }
    }
}

/// A callback that fills a pipe on demand.
#[derive(Clone)]
struct OnDemand(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDemand")
    }
}

/// The reading end. Dropping it makes writers fail.
#[derive(Debug)]
pub(crate) struct PipeReader(Arc<Pipe>);

/// The writing end. Dropping it lets readers see the end.
#[derive(Debug)]
pub(crate) struct PipeWriter(Arc<Pipe>);

/// Creates a pipe. Its buffer is charged to the process that requested it; a pipe of the embedding program is not charged.
pub(crate) fn pipe(charge: Option<MemoryCharge>) -> (PipeReader, PipeWriter) {
    let pipe = Arc::new(Pipe {
        _charge: charge,
        state: Mutex::new(PipeState::opened(1)),
        readers: Waiters::default(),
        writers: Waiters::default(),
    });
    (PipeReader(Arc::clone(&pipe)), PipeWriter(pipe))
}

/// The named pipes that a command's processes have open, by inode.
#[derive(Debug, Default)]
pub(crate) struct Fifos(Mutex<HashMap<u64, Weak<Pipe>>>);

impl Fifos {
    /// Returns the pipe of an inode, without ends if it is not open; `charge` pays for a new one.
    pub(crate) fn get(&self, ino: u64, charge: impl FnOnce() -> Option<MemoryCharge>) -> Option<Fifo> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = open.get(&ino).and_then(Weak::upgrade) {
            return Some(Fifo(pipe));
        }
        open.retain(|_, pipe| pipe.strong_count() > 0);
        let pipe = Arc::new(Pipe {
            _charge: Some(charge()?),
            state: Mutex::new(PipeState::opened(0)),
            readers: Waiters::default(),
            writers: Waiters::default(),
        });
        open.insert(ino, Arc::downgrade(&pipe));
        Some(Fifo(pipe))
    }
}

/// A named pipe being opened.
#[derive(Debug)]
pub(crate) struct Fifo(Arc<Pipe>);

impl Fifo {
    /// Opens the reading end; pass the number to [`writer_came`](Self::writer_came).
    pub(crate) fn reader(&self) -> (PipeReader, u64) {
        let mut state = self.0.lock();
        state.readers += 1;
        state.read_opens += 1;
        let before = if state.writers > 0 { 0 } else { state.write_opens };
        drop(state);
        self.0.writers.wake();
        (PipeReader(Arc::clone(&self.0)), before)
    }

    /// Opens the writing end; pass the number to [`reader_came`](Self::reader_came).
    pub(crate) fn writer(&self) -> (PipeWriter, u64) {
        let mut state = self.0.lock();
        state.writers += 1;
        state.write_opens += 1;
        let before = if state.readers > 0 { 0 } else { state.read_opens };
        drop(state);
        self.0.readers.wake();
        (PipeWriter(Arc::clone(&self.0)), before)
    }

    /// Returns whether the other end is open, or was opened since; registers the calling thread for the change.
    pub(crate) fn writer_came(&self, before: u64) -> bool {
        self.0.readers.register();
        let state = self.0.lock();
        state.writers > 0 || state.write_opens > before
    }

    /// Returns whether the other end is open, or was opened since; registers the calling thread for the change.
    pub(crate) fn reader_came(&self, before: u64) -> bool {
        self.0.writers.register();
        let state = self.0.lock();
        state.readers > 0 || state.read_opens > before
    }
}

/// There is no reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The on-demand callback runs first.
    fn lock_for_reading(&self) -> MutexGuard<'_, PipeState> {
        let mut state = self.lock();
        if !state.buffer.is_empty() || state.writers == 0 {
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
    /// Reads available bytes, up to the buffer's length: `None` if there are none yet, `Some(0)` at the end.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut state = self.0.lock_for_reading();
        if state.buffer.is_empty() {
            return (state.writers == 0).then_some(0);
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

    /// Returns the number of readable bytes; `None` if there are none and a writer exists.
    pub(crate) fn available(&self) -> Option<usize> {
        let state = self.0.lock_for_reading();
        (!state.buffer.is_empty() || state.writers == 0).then_some(state.buffer.len())
    }

    /// Registers the calling thread for the next change.
    pub(crate) fn register(&self) {
        self.0.readers.register();
    }

    /// Sets a callback invoked whenever a reader finds nothing, on the reader's thread: it may write, and must not block.
    pub(crate) fn on_demand(&self, ask: impl Fn() + Send + Sync + 'static) {
        self.0.lock().on_demand = Some(OnDemand(Arc::new(ask)));
    }

    /// Makes the pipe appear as a terminal.
    pub(crate) fn make_terminal(&self) {
        self.0.lock().is_terminal = true;
    }

    /// Returns whether the pipe appears as a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.0.lock().is_terminal
    }
}

impl PipeWriter {
    /// Writes what fits: `None` if the pipe is full.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> Option<Result<usize, Broken>> {
        let mut state = self.0.lock();
        if state.readers == 0 {
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

    /// Returns the number of writable bytes; `None` if the pipe is full and a reader exists.
    pub(crate) fn available(&self) -> Option<usize> {
        let state = self.0.lock();
        let room = CAPACITY.saturating_sub(state.buffer.len());
        (room > 0 || state.readers == 0).then_some(room)
    }

    /// Registers the calling thread for the next change.
    pub(crate) fn register(&self) {
        self.0.writers.register();
    }

    /// Returns whether a reader has found nothing since the last write.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.lock().is_wanted
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.readers -= 1;
        // May hold the other end of this pipe.
        let mut on_demand = None;
        if state.readers == 0 {
            state.buffer = VecDeque::new();
            on_demand = state.on_demand.take();
        }
        drop(state);
        drop(on_demand);
        self.0.writers.wake();
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.0.lock().writers -= 1;
        self.0.readers.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_receives_the_written_bytes_and_then_end_of_file() {
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
    fn a_full_pipe_accepts_what_fits_and_then_nothing() {
        let (reader, writer) = pipe(None);
        assert_eq!(writer.try_write(&vec![7; CAPACITY + 1]), Some(Ok(CAPACITY)));
        assert_eq!(writer.try_write(b"x"), None);
        assert_eq!(reader.try_read(&mut [0; 10]), Some(10));
        assert_eq!(writer.try_write(&[1; 20]), Some(Ok(10)));
    }

    #[test]
    fn a_pipe_can_be_filled_on_demand() {
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
    fn a_named_pipe_has_many_ends_and_remembers_each_open() {
        let fifo = Fifos::default();
        assert!(fifo.get(7, || None).is_none());
        let pipe = Fifo(Arc::clone(&pipe(None).0.0));
        assert!(!pipe.writer_came(1));
        let (reader, before) = pipe.reader();
        assert!(!pipe.writer_came(before));
        let (one, _) = pipe.writer();
        let (two, _) = pipe.writer();
        assert_eq!(one.try_write(b"a"), Some(Ok(1)));
        drop(one);
        assert_eq!(reader.try_read(&mut [0; 8]), Some(1));
        assert_eq!(reader.try_read(&mut [0; 8]), None);
        drop(two);
        assert_eq!(reader.try_read(&mut [0; 8]), Some(0));
        assert!(pipe.writer_came(before));
    }

    #[test]
    fn a_writer_without_a_reader_gets_an_error() {
        let (reader, writer) = pipe(None);
        drop(reader);
        assert_eq!(writer.try_write(b"x"), Some(Err(Broken)));
    }
}
