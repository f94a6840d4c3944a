//! Inodes: read once, changed in memory, written back.

use super::{CHANGED_NODES, Store, in_time, write};
use crate::error::{Fault, FsError};
use crate::node::{FileType, Ino, S_IFMT, Stat};
use crate::rows;

/// Access times older than this are updated on read, as by Linux with `relatime`.
const RELATIME_NANOS: i64 = 24 * 3600 * 1_000_000_000;

/// Maximum size of files whose rows one statement removes, so that none runs long.
const DOOMED_BYTES: u64 = 8 << 20;
/// Maximum number of erased files whose rows are not removed yet, and their size: unreachable rows take space that is not charged
/// to anyone (T-DOS-07).
const DOOMED_MAX: usize = 1024;
const DOOMED_BYTES_MAX: u64 = 4 << 20;

/// An inode in memory.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(super) stat: Stat,
    /// Whether it has a row.
    pub(super) stored: bool,
    /// Whether it may have rows in `fs_data`.
    pub(super) has_data: bool,
    /// The transaction whose list of changes contains it.
    pub(super) noted: u64,
    /// The transaction that saved its row.
    pub(super) saved: u64,
}

impl Store {
    /// Returns the inode, from memory or its row.
    pub(super) fn node(&mut self, ino: Ino) -> Result<&mut Node, Fault> {
        if self.orphans.contains_key(&ino) {
            return self.orphans.get_mut(&ino).ok_or(FsError::NoEntry.into());
        }
        if !self.nodes.contains_key(&ino) {
            if self.doomed.contains_key(&ino) {
                return Err(FsError::NoEntry.into());
            }
            let stat = rows::inode(&self.connection, ino)?.ok_or(FsError::NoEntry)?;
            if !self.sparse.contains_key(&ino) {
                rows::check_size(&self.connection, &stat)?;
            }
            self.trim()?;
            let node = Node { stat, stored: true, has_data: stat.size > 0, noted: 0, saved: 0 };
            self.nodes.insert(ino, node);
        }
        self.nodes.get_mut(&ino).ok_or(FsError::NoEntry.into())
    }

    /// Returns the inode to be changed: it will be written back.
    pub(super) fn node_to_change(&mut self, ino: Ino) -> Result<&mut Node, Fault> {
        if self.changed_nodes.len() > CHANGED_NODES {
            self.flush_nodes()?;
        }
        self.node(ino)?;
        // An inode without names has no row.
        match self.orphans.contains_key(&ino) {
            true => self.node(ino),
            false => {
                self.changed_nodes.insert(ino);
                self.nodes.get_mut(&ino).ok_or(FsError::NoEntry.into())
            }
        }
    }

    /// Returns the inode, which must be a directory that still has a name.
    pub(super) fn directory(&mut self, ino: Ino) -> Result<&mut Node, Fault> {
        let node = self.node(ino)?;
        if !node.stat.is_dir() {
            return Err(FsError::NotDirectory.into());
        }
        Ok(node)
    }

    /// Returns the inode, which must be a regular file.
    pub(super) fn file(&mut self, ino: Ino) -> Result<&mut Node, Fault> {
        let node = self.node(ino)?;
        match node.stat.file_type() {
            FileType::File => Ok(node),
            FileType::Directory => Err(FsError::IsDirectory.into()),
            FileType::Symlink | FileType::Fifo | FileType::Device => Err(FsError::Invalid.into()),
        }
    }

    pub(crate) fn stat(&mut self, ino: Ino) -> Result<Stat, Fault> {
        Ok(self.node(ino)?.stat)
    }

    /// Returns the next number. Also called before an inode is removed, so that its number is not reused in this transaction.
    fn next_ino(&mut self) -> Result<Ino, Fault> {
        if let Some(ino) = self.next_ino {
            return Ok(ino);
        }
        let ino = rows::next_ino(&self.connection)?.max(self.past.head(&self.connection)?.mark);
        self.next_ino = Some(ino);
        Ok(ino)
    }

    /// Returns the next number, if known.
    pub(crate) fn next_ino_if_known(&self) -> Option<Ino> {
        self.next_ino
    }

    /// Creates an inode without a name.
    pub(super) fn allocate(&mut self, mode: u32, nlink: u32, uid: u32, gid: u32, size: u64) -> Result<Ino, Fault> {
        let usage = self.usage()?;
        if usage.inodes >= self.quota.inodes {
            return Err(FsError::NoSpace.into());
        }
        self.room_in_log()?;
        let ino = self.next_ino()?;
        self.trim()?;
        self.next_ino = Some(ino + 1);
        self.usage = Some(crate::Usage { inodes: usage.inodes + 1, ..usage });
        let now = self.now();
        let stat = Stat { ino, mode, nlink, uid, gid, rdev: 0, size, atime: now, mtime: now, ctime: now };
        let node = Node { stat, stored: false, has_data: false, noted: self.number, saved: 0 };
        self.nodes.insert(ino, node);
        self.changed_nodes.insert(ino);
        Ok(ino)
    }

    pub(crate) fn chmod(&mut self, ino: Ino, mode: u32) -> Result<(), Fault> {
        self.change_attributes(ino, |stat| stat.mode = (stat.mode & S_IFMT) | (mode & 0o7777))
    }

    pub(crate) fn chown(&mut self, ino: Ino, uid: Option<u32>, gid: Option<u32>) -> Result<(), Fault> {
        self.change_attributes(ino, |stat| {
            stat.uid = uid.unwrap_or(stat.uid);
            stat.gid = gid.unwrap_or(stat.gid);
        })
    }

    pub(crate) fn set_times(&mut self, ino: Ino, atime: Option<i64>, mtime: Option<i64>) -> Result<(), Fault> {
        self.change_attributes(ino, |stat| {
            stat.atime = atime.unwrap_or(stat.atime);
            stat.mtime = mtime.unwrap_or(stat.mtime);
        })
    }

    /// Sets the attributes that an inode had elsewhere.
    pub(crate) fn set_stat(&mut self, stat: Stat) -> Result<(), Fault> {
        if stat.nlink > 1 {
            self.journal.linked();
        }
        self.node_to_change(stat.ino)?.stat = stat;
        Ok(())
    }

    fn change_attributes(&mut self, ino: Ino, change: impl FnOnce(&mut Stat)) -> Result<(), Fault> {
        let now = self.now();
        let node = self.node_to_change(ino)?;
        change(&mut node.stat);
        node.stat.ctime = now;
        self.journal.attributes(ino);
        Ok(())
    }

    /// Updates a directory after its content changed.
    pub(super) fn touch_directory(&mut self, dir: Ino, link_change: i32) -> Result<(), Fault> {
        let now = self.now();
        let node = self.node_to_change(dir)?;
        node.stat.mtime = now;
        node.stat.ctime = now;
        node.stat.nlink = node.stat.nlink.saturating_add_signed(link_change);
        Ok(())
    }

    /// Updates the access time in memory; it is written when the inode is written for another reason.
    pub(super) fn accessed(&mut self, ino: Ino) -> Result<(), Fault> {
        let stat = &self.node(ino)?.stat;
        let (atime, newest) = (stat.atime, stat.mtime.max(stat.ctime));
        let now = self.now();
        if atime <= newest || now.saturating_sub(atime) > RELATIME_NANOS {
            self.node(ino)?.stat.atime = now;
        }
        Ok(())
    }

    /// Removes one link; an inode without names and holders is erased.
    pub(super) fn drop_link(&mut self, ino: Ino) -> Result<(), Fault> {
        self.next_ino()?;
        let now = self.now();
        let node = self.node_to_change(ino)?;
        node.stat.nlink = if node.stat.is_dir() { 0 } else { node.stat.nlink.saturating_sub(1) };
        node.stat.ctime = now;
        if node.stat.nlink > 0 {
            return Ok(());
        }
        let Some(node) = self.nodes.remove(&ino) else { return Ok(()) };
        self.changed_nodes.remove(&ino);
        if self.holds.contains_key(&ino) {
            if node.stored {
                write::remove_inode(&self.connection, &self.past, ino)?;
            }
            self.orphan_bytes += node.stat.size;
            self.orphans.insert(ino, Node { stored: false, ..node });
            Ok(())
        } else {
            self.erase(&node);
            self.trim_doomed()
        }
    }

    /// Erases an inode without names; its rows are removed by the next flush, many at a time.
    fn erase(&mut self, node: &Node) {
        let ino = node.stat.ino;
        self.chunks.forget(ino);
        self.sparse.remove(&ino);
        self.names.forget_place(ino);
        if node.stored || node.has_data || node.stat.file_type() == FileType::Symlink {
            self.doomed.insert(ino, node.stat.size);
            self.doomed_bytes += node.stat.size;
        }
        if let Some(usage) = &mut self.usage {
            usage.inodes = usage.inodes.saturating_sub(1);
            if node.stat.is_file() {
                usage.bytes = usage.bytes.saturating_sub(node.stat.size);
            }
        }
        if node.stat.file_type() == FileType::Symlink {
            self.target_is_gone(node.stat.size);
        }
    }

    /// Keeps the number of erased inodes within its limits. An interrupt only postpones the rest: the file itself is erased.
    fn trim_doomed(&mut self) -> Result<(), Fault> {
        if self.doomed.len() <= DOOMED_MAX && self.doomed_bytes <= DOOMED_BYTES_MAX {
            return Ok(());
        }
        match self.flush_doomed() {
            Err(Fault::Fs(FsError::Interrupted)) => Ok(()),
            result => result,
        }
    }

    /// Removes the rows of erased inodes in runs, because the inodes of a removed tree mostly have consecutive numbers. Each
    /// leaves the list when it is removed, so that an interrupted flush can resume.
    pub(crate) fn flush_doomed(&mut self) -> Result<(), Fault> {
        while let Some((&first, &size)) = self.doomed.first_key_value() {
            if size > DOOMED_BYTES {
                self.shorten_doomed(first, size)?;
            } else {
                self.remove_doomed(first)?;
            }
            self.breathe()?;
        }
        Ok(())
    }

    /// Removes the last rows of a large file.
    fn shorten_doomed(&mut self, ino: Ino, size: u64) -> Result<(), Fault> {
        let chunk = self.chunk_bytes() as u64;
        // The size in a forged file may be anything: bytes without rows need no removal.
        let held = rows::chunk_end(&self.connection, ino)?.saturating_mul(chunk).min(size);
        let keep = held.saturating_sub(DOOMED_BYTES).div_ceil(chunk);
        self.delete_chunks(ino, keep)?;
        let rest = (keep * chunk).min(size - 1);
        self.doomed.insert(ino, rest);
        self.no_longer_doomed(size - rest);
        Ok(())
    }

    /// Removes the first run.
    fn remove_doomed(&mut self, first: Ino) -> Result<(), Fault> {
        let (mut last, mut bytes) = (first, 0u64);
        for (&ino, &size) in self.doomed.range(first..) {
            if (ino != first && ino != last + 1) || bytes.saturating_add(size) > DOOMED_BYTES {
                break;
            }
            last = ino;
            bytes = bytes.saturating_add(size);
        }
        write::remove_range(&self.connection, &self.past, first, last)?;
        while self.doomed.first_key_value().is_some_and(|(&ino, _)| ino <= last) {
            self.doomed.pop_first();
        }
        self.no_longer_doomed(bytes);
        Ok(())
    }

    fn no_longer_doomed(&mut self, bytes: u64) {
        self.doomed_bytes = self.doomed_bytes.saturating_sub(bytes);
        self.freed_bytes = self.freed_bytes.saturating_add(bytes);
    }

    pub(crate) fn hold(&mut self, ino: Ino) -> Result<(), Fault> {
        self.node(ino)?;
        *self.holds.entry(ino).or_insert(0) += 1;
        Ok(())
    }

    pub(crate) fn release(&mut self, ino: Ino) -> Result<(), Fault> {
        let Some(count) = self.holds.get_mut(&ino) else { return Ok(()) };
        *count -= 1;
        if *count > 0 {
            return Ok(());
        }
        self.holds.remove(&ino);
        if let Some(node) = self.orphans.remove(&ino) {
            self.orphan_bytes = self.orphan_bytes.saturating_sub(node.stat.size);
            self.erase(&node);
            self.trim_doomed()?;
        }
        Ok(())
    }

    pub(super) fn drop_orphans(&mut self) {
        self.orphan_bytes = 0;
        for node in std::mem::take(&mut self.orphans).values() {
            self.erase(node);
        }
    }

    pub(super) fn flush_nodes(&mut self) -> Result<(), Fault> {
        if self.changed_nodes.is_empty() {
            return Ok(());
        }
        let mut rows = write::Inodes::new(&self.connection)?;
        // Each leaves the list when it is written, so that an interrupted flush can resume.
        let mut written = 0_u32;
        while let Some(&ino) = self.changed_nodes.first() {
            written += 1;
            if written.is_multiple_of(256) {
                in_time(self.until)?;
            }
            let Some(node) = self.nodes.get_mut(&ino) else {
                self.changed_nodes.remove(&ino);
                continue;
            };
            if node.stored {
                let is_saved = node.saved == self.number;
                rows.update(&self.past, &node.stat, self.names.seen(ino), is_saved)?;
                node.saved = self.number;
            } else {
                rows.insert(&self.past, &node.stat)?;
            }
            node.stored = true;
            self.changed_nodes.remove(&ino);
        }
        Ok(())
    }
}
