//! Descriptors: the numbers of a process's open files, and the open files themselves.
//!
//! `dup` and `fork` share an [`OpenFile`] and with it the position, as in POSIX. Descriptor 3 is special: WASI's libc uses it for
//! the root directory in every `path_*` call, so opens never return it; a script may still assign it with `dup2`.

mod io;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use abi::Errno;
use sqlite_fs::Transaction;

pub(crate) use io::{Whence, wait_ready};

use super::pipe::{PipeReader, PipeWriter};
use super::{Capture, MemoryCharge};
use crate::vfs::{Device, Node, View};

/// The descriptor of the root directory in path calls.
pub(crate) const ROOT_DESCRIPTOR: u32 = 3;

/// An open file, shared by all its descriptors.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// The open object.
    pub(crate) object: Object,
    /// Whether it is readable.
    pub(crate) readable: bool,
    /// Whether it is writable.
    pub(crate) writable: bool,
    append: AtomicBool,
    nonblocking: AtomicBool,
    position: Mutex<u64>,
}

/// The objects that a descriptor can refer to.
#[derive(Debug)]
pub(crate) enum Object {
    /// A regular file.
    File(HeldNode),
    /// A directory.
    Directory(HeldNode),
    /// Content generated when the file was opened (`/proc`).
    Bytes(Arc<[u8]>),
    /// A file of a source, with content generated when it was opened.
    Generated(HeldNode, Generated),
    /// The reading end of a pipe.
    Reader(PipeReader),
    /// The writing end of a pipe.
    Writer(PipeWriter),
    /// A named pipe, opened for both.
    Both(PipeReader, PipeWriter),
    /// A device.
    Device(Device),
    /// The command's own stdout or stderr.
    Capture(Arc<Capture>),
}

/// Generated content, charged to the command while it is open.
#[derive(Debug)]
pub(crate) struct Generated {
    /// The content.
    pub(crate) bytes: Arc<[u8]>,
    _charge: MemoryCharge,
}

impl Generated {
    /// Charges content.
    pub(crate) fn new(bytes: Arc<[u8]>, charge: MemoryCharge) -> Self {
        Self { bytes, _charge: charge }
    }
}

/// A node that stays readable while it is open, unlinked or not.
pub(crate) struct HeldNode {
    view: Arc<View<Transaction>>,
    /// The node.
    pub(crate) node: Node,
}

impl HeldNode {
    /// Holds a node.
    pub(crate) fn new(view: &Arc<View<Transaction>>, node: Node) -> Self {
        view.hold(node);
        Self { view: Arc::clone(view), node }
    }
}

impl Drop for HeldNode {
    fn drop(&mut self) {
        self.view.release(self.node);
    }
}

impl fmt::Debug for HeldNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.node)
    }
}

impl OpenFile {
    /// Opens an object.
    pub(crate) fn new(object: Object, readable: bool, writable: bool, append: bool) -> Arc<Self> {
        Arc::new(Self {
            object,
            readable,
            writable,
            append: AtomicBool::new(append),
            nonblocking: AtomicBool::new(false),
            position: Mutex::new(0),
        })
    }

    /// Returns whether writes go to the end.
    pub(crate) fn append(&self) -> bool {
        self.append.load(Ordering::Relaxed)
    }

    /// Returns whether a call that would block fails instead.
    pub(crate) fn nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed)
    }

    /// Sets both.
    pub(crate) fn set_flags(&self, append: bool, nonblocking: bool) {
        self.append.store(append, Ordering::Relaxed);
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
    }

    /// Returns the node of a directory.
    pub(crate) fn directory(&self) -> Result<Node, Errno> {
        match &self.object {
            Object::Directory(held) => Ok(held.node),
            _ => Err(Errno::NOTDIR),
        }
    }
}

#[derive(Clone, Debug)]
struct Slot {
    file: Arc<OpenFile>,
    close_on_exec: bool,
    grant: Grant,
}

/// The rights of a custom module on a descriptor, in preview1 terms. Our own guests do not use them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grant {
    /// Rights to the open file itself.
    pub(crate) base: u64,
    /// Rights of files opened through it.
    pub(crate) inheriting: u64,
    /// Flags that have no effect here and are reported back: every write is part of the command's transaction.
    pub(crate) sync_flags: u16,
    /// The name of a preopened directory.
    pub(crate) preopen: Option<Arc<str>>,
}

impl Slot {
    fn new(file: Arc<OpenFile>, close_on_exec: bool) -> Self {
        Self { file, close_on_exec, grant: Grant::default() }
    }
}

/// A process's descriptors.
#[derive(Clone, Debug)]
pub(crate) struct Descriptors {
    slots: Vec<Option<Slot>>,
    limit: u32,
}

impl Descriptors {
    /// Creates a table with only stdin, stdout and stderr.
    pub(crate) fn new(stdio: [Arc<OpenFile>; 3], limit: u32) -> Self {
        let slots = stdio.into_iter().map(|file| Some(Slot::new(file, false))).collect();
        Self { slots, limit }
    }

    /// Returns the open file of a number.
    pub(crate) fn get(&self, fd: u32) -> Result<&Arc<OpenFile>, Errno> {
        self.slot(fd).map(|slot| &slot.file).ok_or(Errno::BADF)
    }

    fn slot(&self, fd: u32) -> Option<&Slot> {
        self.slots.get(fd as usize)?.as_ref()
    }

    /// Assigns an open file to the lowest free number that is at least `minimum` and not 3.
    pub(crate) fn insert(&mut self, file: Arc<OpenFile>, minimum: u32, close_on_exec: bool) -> Result<u32, Errno> {
        let free = (minimum..self.limit).find(|&fd| fd != ROOT_DESCRIPTOR && self.slot(fd).is_none()).ok_or(Errno::MFILE)?;
        self.put(free, Some(Slot::new(file, close_on_exec)));
        Ok(free)
    }

    /// Makes `to` a duplicate of `fd`.
    pub(crate) fn duplicate_to(&mut self, fd: u32, to: u32) -> Result<(), Errno> {
        let file = Arc::clone(self.get(fd)?);
        if to >= self.limit {
            return Err(Errno::BADF);
        }
        if fd != to {
            self.put(to, Some(Slot::new(file, false)));
        }
        Ok(())
    }

    /// Closes a number.
    pub(crate) fn close(&mut self, fd: u32) -> Result<(), Errno> {
        self.get(fd)?;
        self.put(fd, None);
        Ok(())
    }

    /// Sets whether it is closed on exec.
    pub(crate) fn set_close_on_exec(&mut self, fd: u32, on: bool) -> Result<(), Errno> {
        let slot = self.slots.get_mut(fd as usize).and_then(Option::as_mut).ok_or(Errno::BADF)?;
        slot.close_on_exec = on;
        Ok(())
    }

    /// Closes the descriptors that a new program does not get.
    pub(crate) fn close_for_exec(&mut self) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|slot| slot.close_on_exec) {
                *slot = None;
            }
        }
    }

    /// Returns the rights of the process on a descriptor.
    pub(crate) fn grant(&self, fd: u32) -> Result<&Grant, Errno> {
        self.slot(fd).map(|slot| &slot.grant).ok_or(Errno::BADF)
    }

    /// Returns the same, mutably.
    pub(crate) fn grant_mut(&mut self, fd: u32) -> Result<&mut Grant, Errno> {
        let slot = self.slots.get_mut(fd as usize).and_then(Option::as_mut);
        slot.map(|slot| &mut slot.grant).ok_or(Errno::BADF)
    }

    /// Assigns an open file to a number, replacing the previous one.
    pub(crate) fn set(&mut self, fd: u32, file: Arc<OpenFile>, grant: Grant) -> Result<(), Errno> {
        if fd >= self.limit {
            return Err(Errno::MFILE);
        }
        self.put(fd, Some(Slot { grant, ..Slot::new(file, false) }));
        Ok(())
    }

    /// Moves `fd` to `to`, which must be open, and closes `fd`.
    pub(crate) fn renumber(&mut self, fd: u32, to: u32) -> Result<(), Errno> {
        self.get(to)?;
        let slot = self.slot(fd).cloned().ok_or(Errno::BADF)?;
        self.put(fd, None);
        self.put(to, Some(slot));
        Ok(())
    }

    /// Returns the numbers in use, in order.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        (0u32..).zip(&self.slots).filter(|(_, slot)| slot.is_some()).map(|(fd, _)| fd).collect()
    }

    fn put(&mut self, fd: u32, slot: Option<Slot>) {
        let index = fd as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, None);
        }
        self.slots[index] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn null() -> Arc<OpenFile> {
        OpenFile::new(Object::Device(Device::Null), true, true, false)
    }

    fn table() -> Descriptors {
        Descriptors::new([null(), null(), null()], 8)
    }

    // T-DOS-11.
    #[test]
    fn the_lowest_free_number_is_taken_and_three_is_never_handed_out() {
        let mut table = table();
        assert_eq!(table.insert(null(), 0, false), Ok(4));
        table.close(1).unwrap();
        assert_eq!(table.insert(null(), 0, false), Ok(1));
        assert_eq!(table.insert(null(), 6, false), Ok(6));
        assert_eq!([5, 7].map(|_| table.insert(null(), 0, false)), [Ok(5), Ok(7)]);
        assert_eq!(table.insert(null(), 0, false), Err(Errno::MFILE));
    }

    #[test]
    fn wild_numbers_are_refused() {
        let mut table = table();
        assert_eq!(table.close(u32::MAX), Err(Errno::BADF));
        assert_eq!(table.duplicate_to(0, u32::MAX), Err(Errno::BADF));
        assert_eq!(table.duplicate_to(u32::MAX, 0), Err(Errno::BADF));
        assert_eq!(table.insert(null(), u32::MAX, false), Err(Errno::MFILE));
    }

    #[test]
    fn a_new_program_does_not_inherit_close_on_exec_descriptors() {
        let mut table = table();
        let fd = table.insert(null(), 0, true).unwrap();
        table.duplicate_to(fd, 3).unwrap();
        table.close_for_exec();
        assert_eq!(table.numbers(), [0, 1, 2, 3]);
    }
}
