//! File contents: chunks in memory, written back as whole rows.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasherDefault;

use super::{InoHasher, InoMap, Store, in_time, write};
use crate::error::{Fault, FsError};
use crate::node::Ino;
use crate::rows;

/// Overhead of an entry besides its bytes.
const ENTRY_BYTES: usize = 128;
/// Number of bytes removed or filled between two checks of the interrupt, in whole chunks.
const STEP_BYTES: u64 = 8 << 20;
/// Maximum size of holes without rows, which bounds the work of a commit.
pub(super) const HOLES_MAX: u64 = 4 << 20;
/// Maximum size of chunks without rows, likewise.
const DIRTY_MAX: usize = 4 << 20;

struct Chunk {
    data: Vec<u8>,
    dirty: bool,
    /// Whether its row is known to be its prefix, because bytes were only appended.
    is_longer: bool,
    /// Bytes of its row, if known.
    stored: usize,
}

impl Chunk {
    /// Returns its memory usage.
    fn cost(&self) -> usize {
        self.data.capacity() + ENTRY_BYTES
    }
}

type ChunkMap = HashMap<u64, Chunk, BuildHasherDefault<InoHasher>>;

/// Chunks by file and number.
#[derive(Default)]
pub(super) struct Chunks {
    files: InoMap<ChunkMap>,
    /// Files with chunks that differ from their rows.
    changed: BTreeSet<Ino>,
    bytes: usize,
    /// The part of that which differs from its rows.
    dirty: usize,
    /// The chunk of the last partial read.
    looked_into: Option<(Ino, u64)>,
}

impl Chunks {
    fn get(&self, ino: Ino, index: u64) -> Option<&Chunk> {
        self.files.get(&ino)?.get(&index)
    }

    /// Returns a chunk to be changed: it will be written back.
    fn changing(&mut self, ino: Ino, index: u64) -> Option<&mut Chunk> {
        let chunk = self.files.get_mut(&ino)?.get_mut(&index)?;
        if !std::mem::replace(&mut chunk.dirty, true) {
            self.changed.insert(ino);
            self.dirty += chunk.cost();
        }
        Some(chunk)
    }

    /// Records that a changed chunk uses more memory.
    fn grew(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.dirty += bytes;
    }

    pub(super) fn dirty_bytes(&self) -> u64 {
        self.dirty as u64
    }

    /// Caches a chunk; `is_stored` if it equals its row.
    fn insert(&mut self, ino: Ino, index: u64, data: Vec<u8>, is_stored: bool) {
        let stored = data.len();
        let chunk = Chunk { data, dirty: false, is_longer: is_stored, stored };
        self.bytes += chunk.cost();
        if let Some(old) = self.files.entry(ino).or_default().insert(index, chunk) {
            self.bytes -= old.cost();
            self.dirty = self.dirty.saturating_sub(if old.dirty { old.cost() } else { 0 });
        }
    }

    pub(super) fn forget(&mut self, ino: Ino) {
        self.retain(ino, |_| false);
    }

    fn retain(&mut self, ino: Ino, mut keep: impl FnMut(u64) -> bool) {
        let Some(chunks) = self.files.get_mut(&ino) else { return };
        chunks.retain(|&index, chunk| {
            let kept = keep(index);
            if !kept {
                self.bytes -= chunk.cost();
                self.dirty = self.dirty.saturating_sub(if chunk.dirty { chunk.cost() } else { 0 });
            }
            kept
        });
        if chunks.is_empty() {
            self.files.remove(&ino);
            self.changed.remove(&ino);
        }
    }
}

/// The part of a request that falls into one chunk.
struct Part {
    index: u64,
    start: usize,
    len: usize,
}

impl Store {
    fn part(&self, offset: u64, left: usize) -> Part {
        let chunk = self.chunk_bytes as u64;
        let start = usize::try_from(offset % chunk).unwrap_or(0);
        Part { index: offset / chunk, start, len: left.min(self.chunk_bytes - start) }
    }

    /// Returns the length of a chunk of a file of `size` bytes.
    fn chunk_len(&self, size: u64, index: u64) -> usize {
        let from = index.saturating_mul(self.chunk_bytes as u64);
        usize::try_from(size.saturating_sub(from)).unwrap_or(usize::MAX).min(self.chunk_bytes)
    }

    /// Rejects a chunk whose row is shorter than its file requires, unless it is a hole of this transaction.
    fn expect_stored(&self, ino: Ino, index: u64, stored: usize, expected: usize) -> Result<(), Fault> {
        if stored >= expected || self.sparse.get(&ino).is_some_and(|first| index >= *first) {
            return Ok(());
        }
        Err(rows::short_chunk(ino, index).into())
    }

    /// Loads a chunk into memory; the missing row of a hole is empty.
    fn load(&mut self, ino: Ino, index: u64) -> Result<(), Fault> {
        if self.chunks.get(ino, index).is_some() {
            return Ok(());
        }
        let node = self.file(ino)?;
        let (has_data, size) = (node.has_data, node.stat.size);
        let data = if has_data { rows::chunk(&self.connection, ino, index, self.chunk_bytes, <[u8]>::to_vec)? } else { None };
        // A hole gets its row at commit, whatever is cached here.
        let is_stored = data.is_some();
        let data = data.unwrap_or_default();
        self.expect_stored(ino, index, data.len(), self.chunk_len(size, index))?;
        self.make_room()?;
        self.chunks.insert(ino, index, data, is_stored);
        Ok(())
    }

    fn make_room(&mut self) -> Result<(), Fault> {
        if self.chunks.dirty > DIRTY_MAX {
            self.flush_chunks()?;
        }
        if self.chunks.bytes > self.cache_bytes {
            self.flush_chunks()?;
            self.chunks = Chunks::default();
        }
        Ok(())
    }

    pub(crate) fn read(&mut self, ino: Ino, mut offset: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let size = self.file(ino)?.stat.size;
        let total = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..total).filter(|rest| !rest.is_empty()) {
            let part = self.part(offset, rest.len());
            let Some(out) = rest.get_mut(..part.len) else { break };
            let whole = part.start == 0 && part.len == self.chunk_len(size, part.index);
            if whole && self.chunks.get(ino, part.index).is_none() {
                // A chunk that was read completely is rarely read again, so it is not cached. Looked up again for each chunk,
                // because making room for another one may have written this one back.
                let stored = if self.file(ino)?.has_data { rows::part(&self.connection, ino, part.index, 0, out)? } else { None };
                self.expect_stored(ino, part.index, stored.unwrap_or(0), out.len())?;
                if stored.is_none() {
                    out.fill(0);
                }
                self.breathe()?;
            } else if self.is_only_a_look(ino, size, &part) {
                self.chunks.looked_into = Some((ino, part.index));
                let stored = rows::part(&self.connection, ino, part.index, part.start, out)?;
                self.expect_stored(ino, part.index, stored.unwrap_or(0), out.len())?;
                if stored.is_none() {
                    out.fill(0);
                }
            } else {
                self.load(ino, part.index)?;
                let data = self.chunks.get(ino, part.index).map_or(&[][..], |chunk| &chunk.data);
                rows::copy(data, part.start, out);
            }
            done += part.len;
            offset += part.len as u64;
        }
        if total > 0 {
            self.accessed(ino)?;
        }
        Ok(total)
    }

    /// Returns whether a small part of a large file is read at a random position: fetching the whole chunk would cost more than
    /// it can save. At the start of a chunk, or in the same one as before, more reads are likely.
    fn is_only_a_look(&mut self, ino: Ino, size: u64, part: &Part) -> bool {
        size > self.chunk_bytes as u64
            && part.start > 0
            && part.len <= self.chunk_bytes / 4
            && self.chunks.looked_into != Some((ino, part.index))
            && self.chunks.get(ino, part.index).is_none()
            && self.file(ino).is_ok_and(|node| node.has_data)
    }

    /// Returns how far a file may grow towards `end`, and the limit that stops it.
    fn charge(&mut self, ino: Ino, end: u64) -> Result<(u64, FsError), Fault> {
        let size = self.file(ino)?.stat.size;
        if end <= size {
            return Ok((end, FsError::NoSpace));
        }
        if let Err(error) = self.hold_memory(end - size) {
            return Ok((size, error));
        }
        let by_file = self.quota.file_size.max(size);
        let by_disk = size.saturating_add(self.quota.bytes.saturating_sub(self.usage()?.bytes));
        let stop = if by_file <= by_disk { FsError::FileTooBig } else { FsError::NoSpace };
        Ok((end.min(by_file).min(by_disk), stop))
    }

    /// Sets a new size in memory and in the usage.
    fn resize(&mut self, ino: Ino, size: u64) -> Result<(), Fault> {
        let now = self.now();
        self.usage()?;
        self.file(ino)?;
        let node = self.node_to_change(ino)?;
        let old = std::mem::replace(&mut node.stat.size, size);
        node.stat.mtime = now;
        node.stat.ctime = now;
        if let Some(usage) = &mut self.usage {
            usage.bytes = usage.bytes.saturating_sub(old).saturating_add(size);
        }
        if self.orphans.contains_key(&ino) {
            self.orphan_bytes = self.orphan_bytes.saturating_sub(old).saturating_add(size);
        }
        Ok(())
    }

    /// Extends the file with zeros, step by step: an interrupt leaves it at the size reached.
    fn grow(&mut self, ino: Ino, size: u64) -> Result<(), Fault> {
        let mut from = self.file(ino)?.stat.size;
        while size - from > STEP_BYTES {
            from += STEP_BYTES;
            self.grow_by_step(ino, from)?;
            self.breathe()?;
        }
        self.grow_by_step(ino, size)
    }

    /// Extends only in memory: whole chunks of zeros get their rows at commit, or when there are many.
    fn grow_by_step(&mut self, ino: Ino, size: u64) -> Result<(), Fault> {
        let old = self.file(ino)?.stat.size;
        let tail = old / self.chunk_bytes as u64;
        if old % self.chunk_bytes as u64 != 0 {
            self.load(ino, tail)?;
            let len = self.chunk_len(size, tail);
            if let Some(chunk) = self.chunks.changing(ino, tail) {
                let before = chunk.data.capacity();
                chunk.data.resize(len, 0);
                let grown = chunk_growth(before, self.chunks.get(ino, tail));
                self.chunks.grew(grown);
            }
        }
        let first_whole = old.div_ceil(self.chunk_bytes as u64);
        if size > first_whole * self.chunk_bytes as u64 {
            let first = self.sparse.entry(ino).or_insert(first_whole);
            *first = (*first).min(first_whole);
            self.hole_bytes += size - old;
        }
        self.resize(ino, size)?;
        if self.hole_bytes > HOLES_MAX { self.fill_holes() } else { Ok(()) }
    }

    pub(crate) fn write(&mut self, ino: Ino, mut offset: u64, bytes: &[u8]) -> Result<usize, Fault> {
        self.file(ino)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        self.room_in_log()?;
        let wanted = offset.checked_add(bytes.len() as u64).ok_or(FsError::FileTooBig)?;
        let (end, stop) = self.charge(ino, wanted)?;
        let size = self.file(ino)?.stat.size;
        if end <= offset {
            return Err(stop.into());
        }
        if offset > size {
            self.grow(ino, offset)?;
        }
        let total = usize::try_from(end - offset).unwrap_or(usize::MAX).min(bytes.len());
        let mut done = 0;
        while let Some(rest) = bytes.get(done..total).filter(|rest| !rest.is_empty()) {
            let part = self.part(offset, rest.len());
            let Some(input) = rest.get(..part.len) else { break };
            match self.write_part(ino, &part, input) {
                Ok(()) => {}
                // Bytes already written count, as with a signal on Linux.
                Err(Fault::Fs(FsError::Interrupted)) if done > 0 => break,
                Err(fault) => return Err(fault),
            }
            done += part.len;
            offset += part.len as u64;
        }
        let size = self.file(ino)?.stat.size.max(offset);
        self.resize(ino, size)?;
        self.note_content(ino)?;
        Ok(done)
    }

    fn write_part(&mut self, ino: Ino, part: &Part, input: &[u8]) -> Result<(), Fault> {
        let size = self.file(ino)?.stat.size;
        if part.len == self.chunk_bytes && self.chunks.get(ino, part.index).is_none() {
            // A complete chunk is written directly to its row.
            self.breathe()?;
            write::put_chunk(&self.connection, &self.past, (ino, part.index), input, false)?;
            self.file(ino)?.has_data = true;
            return Ok(());
        }
        let logical = self.chunk_len(size, part.index);
        if part.start == 0 && part.len >= logical && self.chunks.get(ino, part.index).is_none() {
            self.make_room()?;
            self.chunks.insert(ino, part.index, Vec::new(), false);
        } else {
            self.load(ino, part.index)?;
        }
        let Some(chunk) = self.chunks.changing(ino, part.index) else { return Err(FsError::Io.into()) };
        let before = chunk.data.capacity();
        let end = part.start + part.len;
        chunk.is_longer &= part.start >= chunk.stored;
        if chunk.data.len() < logical {
            // A hole: from now on its row will be read.
            chunk.data.resize(logical, 0);
        }
        if part.start == chunk.data.len() {
            chunk.data.extend_from_slice(input);
        } else {
            if chunk.data.len() < end {
                chunk.data.resize(end, 0);
            }
            if let Some(out) = chunk.data.get_mut(part.start..end) {
                out.copy_from_slice(input);
            }
        }
        let grown = chunk_growth(before, self.chunks.get(ino, part.index));
        self.chunks.grew(grown);
        Ok(())
    }

    pub(crate) fn append(&mut self, ino: Ino, bytes: &[u8]) -> Result<u64, Fault> {
        let size = self.file(ino)?.stat.size;
        let written = self.write(ino, size, bytes)?;
        Ok(size + written as u64)
    }

    pub(crate) fn truncate(&mut self, ino: Ino, size: u64) -> Result<(), Fault> {
        let old = self.file(ino)?.stat.size;
        if size > old {
            if size > self.quota.file_size {
                return Err(FsError::FileTooBig.into());
            }
            self.room_in_log()?;
            let (end, stop) = self.charge(ino, size)?;
            if end < size {
                return Err(stop.into());
            }
            self.grow(ino, size)?;
        } else {
            self.shrink(ino, size, old)?;
        }
        self.note_content(ino)
    }

    /// Truncates step by step: an interrupt leaves the file at the size reached.
    fn shrink(&mut self, ino: Ino, size: u64, old: u64) -> Result<(), Fault> {
        let mut from = old;
        while self.file(ino)?.has_data && from - size > STEP_BYTES {
            let to = size.max((from - STEP_BYTES).next_multiple_of(self.chunk_bytes as u64));
            self.cut(ino, to, from)?;
            from = to;
            self.breathe()?;
        }
        self.cut(ino, size, from)
    }

    /// Removes the bytes of a large file before its last name, while it can still be interrupted.
    pub(super) fn empty_before_removal(&mut self, ino: Ino) -> Result<(), Fault> {
        let held = self.holds.contains_key(&ino);
        let node = self.node(ino)?;
        let (size, nlink) = (node.stat.size, node.stat.nlink);
        if !node.stat.is_file() || nlink > 1 || held || !node.has_data || size <= STEP_BYTES {
            return Ok(());
        }
        self.note_content(ino)?;
        self.shrink(ino, 0, size)
    }

    fn cut(&mut self, ino: Ino, size: u64, old: u64) -> Result<(), Fault> {
        let has_data = self.file(ino)?.has_data;
        let keep = size.div_ceil(self.chunk_bytes as u64);
        if size < old {
            self.chunks.retain(ino, |index| index < keep);
            if has_data && keep < old.div_ceil(self.chunk_bytes as u64) {
                self.delete_chunks(ino, keep)?;
                self.freed_bytes = self.freed_bytes.saturating_add(old - size);
            }
            let tail = size / self.chunk_bytes as u64;
            let len = self.chunk_len(size, tail);
            if len > 0 {
                self.load(ino, tail)?;
                if let Some(chunk) = self.chunks.changing(ino, tail) {
                    // A missing row is a hole, represented by zeros.
                    let before = chunk.data.capacity();
                    chunk.is_longer &= len >= chunk.stored;
                    chunk.data.resize(len, 0);
                    let grown = chunk_growth(before, self.chunks.get(ino, tail));
                    self.chunks.grew(grown);
                }
            }
            if size == 0 {
                self.file(ino)?.has_data = false;
                self.sparse.remove(&ino);
            }
        }
        self.resize(ino, size)
    }

    /// Removes the rows of a file from chunk `first` on.
    pub(super) fn delete_chunks(&mut self, ino: Ino, first: u64) -> Result<(), Fault> {
        Ok(write::remove_chunks(&self.connection, &self.past, ino, first)?)
    }

    pub(super) fn flush_chunks(&mut self) -> Result<(), Fault> {
        // A file leaves the list when all of it is written, so that an interrupted flush can resume.
        while let Some(&ino) = self.chunks.changed.first() {
            in_time(self.until)?;
            let Some(chunks) = self.chunks.files.get_mut(&ino) else {
                self.chunks.changed.remove(&ino);
                continue;
            };
            let mut dirty: Vec<(u64, &mut Chunk)> =
                chunks.iter_mut().filter(|(_, chunk)| chunk.dirty).map(|(&index, chunk)| (index, chunk)).collect();
            dirty.sort_unstable_by_key(|(index, _)| *index);
            for (index, chunk) in dirty {
                write::put_chunk(&self.connection, &self.past, (ino, index), &chunk.data, chunk.is_longer)?;
                chunk.dirty = false;
                (chunk.is_longer, chunk.stored) = (true, chunk.data.len());
                self.chunks.dirty = self.chunks.dirty.saturating_sub(chunk.cost());
                if let Some(node) = self.nodes.get_mut(&ino).or_else(|| self.orphans.get_mut(&ino)) {
                    node.has_data = true;
                }
            }
            self.chunks.changed.remove(&ino);
        }
        Ok(())
    }

    /// Creates a row for every chunk, because other readers of the format treat a missing one as the end.
    pub(super) fn fill_holes(&mut self) -> Result<(), Fault> {
        let mut sparse: Vec<(Ino, u64)> = self.sparse.drain().collect();
        self.hole_bytes = 0;
        sparse.sort_unstable();
        for (ino, first) in sparse {
            let node = self.file(ino)?;
            node.has_data = true;
            let size = node.stat.size;
            let chunks = (first..size.div_ceil(self.chunk_bytes as u64)).map(|index| (index, self.chunk_len(size, index)));
            write::add_zeros(&self.connection, &self.past, ino, chunks)?;
        }
        Ok(())
    }
}

/// Returns the memory that a chunk took since `before`.
fn chunk_growth(before: usize, chunk: Option<&Chunk>) -> usize {
    chunk.map_or(0, |chunk| chunk.data.capacity().saturating_sub(before))
}
