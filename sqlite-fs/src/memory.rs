//! A database in memory: its pages as blocks, stored once, with the last committed state for any number of readers.
//!
//! The single writer's pages are kept next to the committed ones until its transaction ends, and then replace them without being
//! copied. A reader keeps the blocks that were committed when it started. So neither waits for the other, SQLite's cache stays
//! small (it spills into the uncommitted pages), and a large commit costs as much as a small one.
//!
//! Knows nothing about SQLite; `memory/layer.rs` connects it to SQLite.

pub(crate) mod layer;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::store::InoHasher;

/// Size of a block: a page of the databases that `build.rs` creates, so that SQLite writes whole blocks.
const BLOCK_BYTES: usize = 4096;

type Block = [u8; BLOCK_BYTES];

/// Distance of the numbers of states: odd, so that all numbers come once, and large.
const FAR: u32 = 0x9E37_79B9;

/// Minimum number of free pages for compaction: 16 MiB, and a quarter of the database.
const WORTH_PAGES: u32 = 4096;

/// The memory limit of a database, as set by the owner of its transaction.
pub trait MemoryBudget: Send + Sync {
    /// Requests that the database may hold `bytes` in total; on refusal it keeps its previous size.
    fn hold(&self, bytes: u64) -> bool;
}

/// A fresh database created by `build.rs`: copying its pages is much faster than creating tables.
static FRESH: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fresh.db"));

/// Returns an unwritten block, shared by all databases.
fn zeros() -> Arc<Block> {
    static ZEROS: OnceLock<Arc<Block>> = OnceLock::new();
    Arc::clone(ZEROS.get_or_init(|| Arc::new([0; BLOCK_BYTES])))
}

/// One state of a database.
#[derive(Clone, Default)]
struct State {
    blocks: Vec<Arc<Block>>,
    /// The last block may be only partly used.
    bytes: usize,
}

impl State {
    fn of(image: &[u8]) -> Self {
        let block = |bytes: &[u8]| {
            let mut block = [0; BLOCK_BYTES];
            crate::rows::copy(bytes, 0, &mut block);
            Arc::new(block)
        };
        Self { blocks: image.chunks(BLOCK_BYTES).map(block).collect(), bytes: image.len() }
    }
}

impl State {
    // Sets the number by which SQLite notices that its cached pages are not of this state. Each commit increments it, so it must be far
    // from those of other states.
    fn mark(&mut self) {
        static NUMBER: AtomicU32 = AtomicU32::new(FAR);
        let number = NUMBER.fetch_add(FAR, Ordering::Relaxed).to_be_bytes();
        let Some(header) = self.blocks.first_mut().map(Arc::make_mut) else { return };
        // The offsets in SQLite's header of the number, and of the one for which the length in the header is valid.
        let is_valid = header.get(24..28) == header.get(92..96);
        for at in [24, 92].into_iter().take(if is_valid { 2 } else { 1 }) {
            if let Some(place) = header.get_mut(at..at + 4) {
                place.copy_from_slice(&number);
            }
        }
    }
}

/// A database in memory, which lives as long as it is referenced.
pub(crate) struct Memory {
    committed: Mutex<Arc<State>>,
    committed_blocks: AtomicUsize,
    /// The uncommitted changes of a running transaction.
    waiting_blocks: AtomicUsize,
}

impl Memory {
    /// Creates a fresh database: its blocks are shared with all others until they change.
    pub(crate) fn fresh() -> Arc<Self> {
        static IMAGE: OnceLock<Arc<State>> = OnceLock::new();
        Arc::new(Self::new(Arc::clone(IMAGE.get_or_init(|| Arc::new(State::of(FRESH))))))
    }

    /// Creates an empty database for SQLite to fill.
    pub(crate) fn empty() -> Arc<Self> {
        Arc::new(Self::new(Arc::default()))
    }

    fn new(state: Arc<State>) -> Self {
        let blocks = AtomicUsize::new(state.blocks.len());
        Self { committed: Mutex::new(state), committed_blocks: blocks, waiting_blocks: AtomicUsize::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Arc<State>> {
        self.committed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its memory usage, including a running transaction's changes.
    pub(crate) fn resident(&self) -> u64 {
        let blocks = self.committed_blocks.load(Ordering::Relaxed) + self.waiting_blocks.load(Ordering::Relaxed);
        blocks as u64 * BLOCK_BYTES as u64
    }

    /// Returns whether it has enough free pages for compaction.
    pub(crate) fn has_much_free(&self) -> bool {
        let state = Arc::clone(&self.lock());
        let number = |at: usize| {
            let bytes = state.blocks.first().and_then(|header| header.get(at..at + 4));
            bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
        };
        // The offsets of the number of pages and of free pages in SQLite's header.
        let (pages, free) = (number(28), number(36));
        free >= WORTH_PAGES && free >= pages / 4
    }

    /// Replaces the content by that of another database, whose blocks are shared until they change. SQLite notices at its next lock.
    pub(crate) fn replace_by(&self, other: &Self) {
        let mut state = State::clone(&other.lock());
        state.mark();
        self.committed_blocks.store(state.blocks.len(), Ordering::Relaxed);
        *self.lock() = Arc::new(state);
    }
}

/// Blocks that a transaction has written but not yet committed.
#[derive(Default)]
struct Waiting {
    blocks: HashMap<usize, Arc<Block>, BuildHasherDefault<InoHasher>>,
    /// The length of the database including them.
    bytes: usize,
    /// The number of valid committed blocks; those beyond were truncated.
    kept: usize,
}

/// One connection's access to a database.
pub(crate) struct Handle {
    memory: Arc<Memory>,
    writes: bool,
    /// The state that this connection sees, from its first lock to its last.
    state: Option<Arc<State>>,
    waiting: Option<Waiting>,
}

impl Handle {
    pub(crate) fn new(memory: Arc<Memory>, writes: bool) -> Self {
        Self { memory, writes, state: None, waiting: None }
    }

    /// Fixes the state that this connection sees to the committed one.
    pub(crate) fn begin(&mut self) {
        if self.state.is_none() {
            self.state = Some(Arc::clone(&self.memory.lock()));
        }
    }

    /// Ends a transaction, whether committed or rolled back, and publishes its blocks. `goes_on`: the connection is still
    /// reading.
    pub(crate) fn end(&mut self, goes_on: bool) {
        if let Some(waiting) = self.waiting.take() {
            self.state = None;
            self.publish(waiting);
        }
        self.state = goes_on.then(|| self.state.take().unwrap_or_else(|| Arc::clone(&self.memory.lock())));
    }

    fn publish(&self, waiting: Waiting) {
        let mut committed = self.memory.lock();
        // Copies the list of blocks, not the blocks, and only while a reader uses it.
        let state = Arc::make_mut(&mut committed);
        let length = waiting.bytes.div_ceil(BLOCK_BYTES);
        state.blocks.truncate(waiting.kept);
        state.blocks.resize_with(length, zeros);
        for (index, block) in waiting.blocks {
            if let Some(place) = state.blocks.get_mut(index) {
                *place = block;
            }
        }
        state.bytes = waiting.bytes;
        self.memory.committed_blocks.store(length, Ordering::Relaxed);
        self.memory.waiting_blocks.store(0, Ordering::Relaxed);
    }

    /// Returns the length of the database as this connection sees it.
    pub(crate) fn bytes(&self) -> usize {
        match (&self.waiting, &self.state) {
            (Some(waiting), _) => waiting.bytes,
            (None, Some(state)) => state.bytes,
            (None, None) => self.memory.lock().bytes,
        }
    }

    /// Returns a block as this connection sees it; `None` if it was never written.
    fn block<'a>(&'a self, state: &'a State, index: usize) -> Option<&'a Block> {
        let Some(waiting) = &self.waiting else { return state.blocks.get(index).map(|block| &**block) };
        let committed = || state.blocks.get(index).filter(|_| index < waiting.kept);
        waiting.blocks.get(&index).or_else(committed).map(|block| &**block)
    }

    /// Reads from `at` on; bytes beyond the end are zeros. Returns whether all of it existed.
    pub(crate) fn read(&self, mut at: usize, out: &mut [u8]) -> bool {
        let state = match &self.state {
            Some(state) => Arc::clone(state),
            None => Arc::clone(&self.memory.lock()),
        };
        let there = self.bytes().saturating_sub(at).min(out.len());
        let (mut rest, tail) = out.split_at_mut(there);
        tail.fill(0);
        while !rest.is_empty() {
            let (index, start) = (at / BLOCK_BYTES, at % BLOCK_BYTES);
            let (piece, beyond) = rest.split_at_mut(rest.len().min(BLOCK_BYTES - start));
            match self.block(&state, index).and_then(|block| block.get(start..start + piece.len())) {
                Some(block) => piece.copy_from_slice(block),
                None => piece.fill(0),
            }
            at += piece.len();
            rest = beyond;
        }
        tail.is_empty()
    }

    /// Starts a change, unless one has started.
    fn change(&mut self) -> (&State, &mut Waiting) {
        let state: &State = self.state.get_or_insert_with(|| Arc::clone(&self.memory.lock()));
        let begun = || Waiting { bytes: state.bytes, kept: state.blocks.len(), ..Waiting::default() };
        (state, self.waiting.get_or_insert_with(begun))
    }

    /// Writes at `at`; fails for a read-only connection.
    pub(crate) fn write(&mut self, mut at: usize, input: &[u8]) -> bool {
        let Some(end) = at.checked_add(input.len()).filter(|_| self.writes) else { return false };
        let (state, waiting) = self.change();
        waiting.bytes = waiting.bytes.max(end);
        let (mut rest, mut new) = (input, 0);
        while !rest.is_empty() {
            let (index, start) = (at / BLOCK_BYTES, at % BLOCK_BYTES);
            let (piece, beyond) = rest.split_at(rest.len().min(BLOCK_BYTES - start));
            let block = match waiting.blocks.entry(index) {
                Entry::Occupied(block) => block.into_mut(),
                Entry::Vacant(vacant) => {
                    let before = state.blocks.get(index).filter(|_| index < waiting.kept);
                    // An existing block is also in SQLite's journal until the transaction ends.
                    new += 1 + usize::from(before.is_some());
                    let copied = before.filter(|_| piece.len() < BLOCK_BYTES).map_or([0; BLOCK_BYTES], |block| **block);
                    vacant.insert(Arc::new(copied))
                }
            };
            if let Some(out) = Arc::make_mut(block).get_mut(start..start + piece.len()) {
                out.copy_from_slice(piece);
            }
            at += piece.len();
            rest = beyond;
        }
        self.memory.waiting_blocks.fetch_add(new, Ordering::Relaxed);
        true
    }

    /// Sets the length; fails for a read-only connection.
    pub(crate) fn truncate(&mut self, bytes: usize) -> bool {
        if !self.writes {
            return false;
        }
        let cut = bytes.next_multiple_of(BLOCK_BYTES);
        if cut > bytes && self.bytes() > bytes && !self.write(bytes, &vec![0; cut - bytes]) {
            return false;
        }
        let (_, waiting) = self.change();
        waiting.bytes = bytes;
        waiting.kept = waiting.kept.min(cut / BLOCK_BYTES);
        let before = waiting.blocks.len();
        waiting.blocks.retain(|index, _| *index < cut / BLOCK_BYTES);
        let dropped = before - waiting.blocks.len();
        self.memory.waiting_blocks.fetch_sub(dropped, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(image: &[u8]) -> Arc<Memory> {
        Arc::new(Memory::new(Arc::new(State::of(image))))
    }

    fn content(handle: &Handle) -> Vec<u8> {
        let mut bytes = vec![0; handle.bytes()];
        assert!(handle.read(0, &mut bytes));
        bytes
    }

    #[test]
    fn a_reader_keeps_the_state_in_which_it_began() {
        let memory = memory(b"old");
        let (mut writer, mut reader) = (Handle::new(Arc::clone(&memory), true), Handle::new(memory, false));
        reader.begin();
        writer.begin();
        assert!(writer.write(1, b"NEW"));
        assert_eq!((content(&writer), content(&reader)), (b"oNEW".to_vec(), b"old".to_vec()));
        writer.end(false);
        assert_eq!(content(&reader), b"old");
        reader.end(false);
        reader.begin();
        assert_eq!(content(&reader), b"oNEW");
    }

    #[test]
    fn writes_cross_blocks_and_leave_the_rest_of_a_block_alone() {
        let memory = memory(&[1; 3 * BLOCK_BYTES]);
        let mut writer = Handle::new(memory, true);
        assert!(writer.write(BLOCK_BYTES - 2, &[2; 4]));
        let mut expected = vec![1; 3 * BLOCK_BYTES];
        expected[BLOCK_BYTES - 2..BLOCK_BYTES + 2].fill(2);
        assert_eq!(content(&writer), expected);
        writer.end(false);
        assert_eq!(content(&writer), expected);
    }

    #[test]
    fn gaps_and_bytes_beyond_the_end_are_zeros() {
        let mut writer = Handle::new(memory(b"ab"), true);
        assert!(writer.write(2 * BLOCK_BYTES, b"c"));
        let mut out = [9; 4];
        assert!(!writer.read(2 * BLOCK_BYTES - 1, &mut out));
        assert_eq!(out, [0, b'c', 0, 0]);
        writer.end(false);
        assert!(writer.truncate(1));
        assert!(writer.write(3, b"d"));
        assert_eq!(content(&writer), b"a\0\0d");
        writer.end(false);
        assert_eq!(content(&writer), b"a\0\0d");
    }

    #[test]
    fn a_commit_allocates_no_block() {
        let memory = memory(b"ab");
        let mut writer = Handle::new(Arc::clone(&memory), true);
        assert!(writer.write(2 * BLOCK_BYTES, b"c"));
        let written = writer.waiting.as_ref().map(|waiting| Arc::as_ptr(&waiting.blocks[&2])).unwrap();
        writer.end(false);
        let state = Arc::clone(&memory.lock());
        assert!(Arc::ptr_eq(&state.blocks[1], &zeros()));
        assert_eq!(Arc::as_ptr(&state.blocks[2]), written);
    }

    #[test]
    fn blocks_are_held_once_after_a_commit() {
        let memory = memory(&[1; BLOCK_BYTES]);
        let mut writer = Handle::new(Arc::clone(&memory), true);
        for index in 0..100 {
            assert!(writer.write(index * BLOCK_BYTES, &[2; BLOCK_BYTES]));
        }
        // The first one existed, so the journal contains it too.
        assert_eq!(memory.resident(), 102 * BLOCK_BYTES as u64);
        writer.end(false);
        assert_eq!(memory.resident(), 100 * BLOCK_BYTES as u64);
    }

    #[test]
    fn a_copy_shares_blocks_until_they_change_and_has_a_separate_number() {
        let image = [[1; BLOCK_BYTES], [2; BLOCK_BYTES]].concat();
        let (first, second) = (memory(&image), Arc::new(Memory::new(Arc::default())));
        second.replace_by(&first);
        let blocks = |memory: &Memory| memory.lock().blocks.clone();
        assert!(Arc::ptr_eq(&blocks(&first)[1], &blocks(&second)[1]));
        let number = |memory: &Memory| [24, 92].map(|at| blocks(memory)[0][at..at + 4].to_vec());
        assert_eq!(number(&first), [[1; 4], [1; 4]]);
        assert_eq!(number(&second)[0], number(&second)[1]);
        let mut writer = Handle::new(Arc::clone(&second), true);
        assert!(writer.write(BLOCK_BYTES, b"new"));
        writer.end(false);
        assert_eq!(content(&Handle::new(first, false)), image);
        let third = Memory::new(Arc::default());
        third.replace_by(&second);
        assert_ne!(number(&second), number(&third));
    }

    #[test]
    fn a_connection_that_reads_cannot_write() {
        let mut reader = Handle::new(memory(b"ab"), false);
        assert!(!reader.write(0, b"x") && !reader.truncate(0));
        assert_eq!(content(&reader), b"ab");
    }
}
