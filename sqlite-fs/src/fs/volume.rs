//! The operations that a tree of files must support for operations on paths.

use std::hash::Hash;

use crate::error::FsError;
use crate::node::{Entry, FileType, Ino, ROOT, Stat};
use crate::path::{self, Bounds, Last, Resolved, Tree};
use crate::transaction::Transaction;

/// A tree of files that can be read.
pub trait Volume: Tree<Node: Eq + Hash> {
    /// Returns the root directory.
    fn root(&self) -> Self::Node;

    /// Returns the attributes of a node.
    fn stat(&self, node: Self::Node) -> Result<Stat, FsError>;

    /// Returns the size of a file that is about to be read. A tree that generates contents cannot return it earlier.
    fn size(&self, file: Self::Node) -> Result<u64, FsError> {
        Ok(self.stat(file)?.size)
    }

    /// Reads from `offset`.
    fn read(&self, file: Self::Node, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError>;

    /// Returns at most `limit` entries after `cookie`.
    fn readdir(&self, dir: Self::Node, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError>;

    /// Returns the node of a directory entry. A tree whose entries are its nodes need not look the name up.
    fn child(&self, dir: Self::Node, entry: &Entry) -> Result<Self::Node, FsError> {
        Ok(self.lookup(dir, &entry.name)?.0)
    }

    /// Returns whether `readdir` can return fewer entries than its limit with more to follow, as if several trees are joined.
    fn is_joined(&self, _dir: Self::Node) -> bool {
        false
    }

    /// Returns whether walks that start above a node skip it.
    fn is_left_out(&self, _node: Self::Node) -> bool {
        false
    }

    /// Returns whether a node belongs to a tree that is joined to this one, so that its errors do not concern the rest.
    fn is_foreign(&self, _node: Self::Node) -> bool {
        false
    }

    /// Enters a directory during a walk that must terminate, at this depth below its start.
    fn enter(&self, bounds: &mut Bounds<Self::Node>, dir: Self::Node, depth: usize) -> Result<(), FsError> {
        bounds.enter(dir, depth)
    }

    /// Runs several operations on one state.
    fn at_once<T>(&self, work: impl FnOnce() -> Result<T, FsError>) -> Result<T, FsError>
    where
        Self: Sized,
    {
        work()
    }

    /// Walks a path from `base`, or from the root if it is absolute.
    fn resolve(&self, base: Self::Node, path: &str, last: Last) -> Result<Resolved<Self::Node>, FsError> {
        path::resolve(self, self.root(), base, path, last)
    }

    /// Returns the node at a path, which must exist, and its type.
    fn find(&self, base: Self::Node, path: &str, last: Last) -> Result<(Self::Node, FileType), FsError> {
        self.resolve(base, path, last)?.existing()
    }
}

/// The owner of new files; defaults to root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// A tree of files that can be changed. Operations on names take the place found by a walk, and the name in it.
pub trait VolumeMut: Volume {
    /// Creates a regular file.
    fn create(&self, at: &Resolved<Self::Node>, name: &str, mode: u32, owner: Owner) -> Result<Self::Node, FsError>;

    /// Creates a directory.
    fn mkdir(&self, at: &Resolved<Self::Node>, name: &str, mode: u32, owner: Owner) -> Result<Self::Node, FsError>;

    /// Creates a named pipe.
    fn mkfifo(&self, at: &Resolved<Self::Node>, name: &str, mode: u32, owner: Owner) -> Result<Self::Node, FsError>;

    /// Creates a symbolic link.
    fn symlink(&self, at: &Resolved<Self::Node>, name: &str, target: &str, owner: Owner) -> Result<Self::Node, FsError>;

    /// Creates another name for the node at `from`.
    fn link(&self, from: &Resolved<Self::Node>, at: &Resolved<Self::Node>, name: &str) -> Result<(), FsError>;

    /// Removes a name that is not a directory.
    fn unlink(&self, at: &Resolved<Self::Node>, name: &str) -> Result<(), FsError>;

    /// Removes an empty directory.
    fn rmdir(&self, at: &Resolved<Self::Node>, name: &str) -> Result<(), FsError>;

    /// Renames, replacing an existing node.
    fn rename(
        &self,
        from: &Resolved<Self::Node>,
        old_name: &str,
        to: &Resolved<Self::Node>,
        new_name: &str,
    ) -> Result<(), FsError>;

    /// Writes at an offset and returns the number of bytes written.
    fn write(&self, file: Self::Node, offset: u64, bytes: &[u8]) -> Result<usize, FsError>;

    /// Sets the size.
    fn truncate(&self, file: Self::Node, size: u64) -> Result<(), FsError>;

    /// Sets the permissions: the lower twelve bits of a mode.
    fn chmod(&self, node: Self::Node, mode: u32) -> Result<(), FsError>;

    /// Sets owner and group; `None` leaves one unchanged.
    fn chown(&self, node: Self::Node, uid: Option<u32>, gid: Option<u32>) -> Result<(), FsError>;

    /// Sets the times in nanoseconds since 1970; `None` leaves one unchanged.
    fn set_times(&self, node: Self::Node, atime: Option<i64>, mtime: Option<i64>) -> Result<(), FsError>;

    /// Checks the permission bits of the owner.
    fn permit(&self, node: Self::Node, bits: u32) -> Result<(), FsError>;

    /// Creates a directory at a path.
    fn mkdir_at(&self, base: Self::Node, path: &str, mode: u32, owner: Owner) -> Result<Self::Node, FsError> {
        let at = self.resolve(base, path, Last::Entry)?;
        self.mkdir(&at, at.for_mkdir()?, mode, owner)
    }

    /// Creates a named pipe at a path.
    fn mkfifo_at(&self, base: Self::Node, path: &str, mode: u32, owner: Owner) -> Result<Self::Node, FsError> {
        let at = self.resolve(base, path, Last::Entry)?;
        self.mkfifo(&at, at.for_new()?, mode, owner)
    }

    /// Creates a symbolic link at a path.
    fn symlink_at(&self, target: &str, base: Self::Node, path: &str, owner: Owner) -> Result<(), FsError> {
        // Linux checks the target before it walks the path.
        if target.is_empty() {
            return Err(FsError::NoEntry);
        }
        let at = self.resolve(base, path, Last::Entry)?;
        self.symlink(&at, at.for_new()?, target, owner).map(drop)
    }

    /// Creates another name at a path for the node at another path.
    fn link_at(&self, old_base: Self::Node, old: &str, last: Last, new_base: Self::Node, new: &str) -> Result<(), FsError> {
        let from = self.resolve(old_base, old, last)?;
        from.existing()?;
        let at = self.resolve(new_base, new, Last::Entry)?;
        self.link(&from, &at, at.for_new()?)
    }

    /// Removes a name that is not a directory.
    fn unlink_at(&self, base: Self::Node, path: &str) -> Result<(), FsError> {
        let at = self.resolve(base, path, Last::Entry)?;
        self.unlink(&at, at.for_unlink()?)
    }

    /// Removes an empty directory.
    fn rmdir_at(&self, base: Self::Node, path: &str) -> Result<(), FsError> {
        let at = self.resolve(base, path, Last::Entry)?;
        self.rmdir(&at, at.for_rmdir()?)
    }

    /// Renames from a path to a path.
    fn rename_at(&self, old_base: Self::Node, old: &str, new_base: Self::Node, new: &str) -> Result<(), FsError> {
        let from = self.resolve(old_base, old, Last::Entry)?;
        let to = self.resolve(new_base, new, Last::Entry)?;
        let (old_name, new_name) = from.for_rename(&to)?;
        self.rename(&from, old_name, &to, new_name)
    }
}

impl Volume for Transaction {
    fn root(&self) -> Ino {
        ROOT
    }

    fn stat(&self, ino: Ino) -> Result<Stat, FsError> {
        Self::stat(self, ino)
    }

    fn read(&self, ino: Ino, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        Self::read(self, ino, offset, buffer)
    }

    fn readdir(&self, dir: Ino, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError> {
        Self::readdir(self, dir, cookie, limit)
    }

    fn child(&self, _: Ino, entry: &Entry) -> Result<Ino, FsError> {
        Ok(entry.ino)
    }
}

impl VolumeMut for Transaction {
    fn create(&self, at: &Resolved<Ino>, name: &str, mode: u32, Owner { uid, gid }: Owner) -> Result<Ino, FsError> {
        Self::create(self, at.parent, name, mode, uid, gid)
    }

    fn mkdir(&self, at: &Resolved<Ino>, name: &str, mode: u32, Owner { uid, gid }: Owner) -> Result<Ino, FsError> {
        Self::mkdir(self, at.parent, name, mode, uid, gid)
    }

    fn mkfifo(&self, at: &Resolved<Ino>, name: &str, mode: u32, Owner { uid, gid }: Owner) -> Result<Ino, FsError> {
        Self::mkfifo(self, at.parent, name, mode, uid, gid)
    }

    fn symlink(&self, at: &Resolved<Ino>, name: &str, target: &str, Owner { uid, gid }: Owner) -> Result<Ino, FsError> {
        Self::symlink(self, at.parent, name, target, uid, gid)
    }

    fn link(&self, from: &Resolved<Ino>, at: &Resolved<Ino>, name: &str) -> Result<(), FsError> {
        Self::link(self, from.existing()?.0, at.parent, name)
    }

    fn unlink(&self, at: &Resolved<Ino>, name: &str) -> Result<(), FsError> {
        Self::unlink(self, at.parent, name)
    }

    fn rmdir(&self, at: &Resolved<Ino>, name: &str) -> Result<(), FsError> {
        Self::rmdir(self, at.parent, name)
    }

    fn rename(&self, from: &Resolved<Ino>, old_name: &str, to: &Resolved<Ino>, new_name: &str) -> Result<(), FsError> {
        Self::rename(self, from.parent, old_name, to.parent, new_name)
    }

    fn write(&self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, FsError> {
        Self::write(self, ino, offset, bytes)
    }

    fn truncate(&self, ino: Ino, size: u64) -> Result<(), FsError> {
        Self::truncate(self, ino, size)
    }

    fn chmod(&self, ino: Ino, mode: u32) -> Result<(), FsError> {
        Self::chmod(self, ino, mode)
    }

    fn chown(&self, ino: Ino, uid: Option<u32>, gid: Option<u32>) -> Result<(), FsError> {
        Self::chown(self, ino, uid, gid)
    }

    fn set_times(&self, ino: Ino, atime: Option<i64>, mtime: Option<i64>) -> Result<(), FsError> {
        Self::set_times(self, ino, atime, mtime)
    }

    fn permit(&self, ino: Ino, bits: u32) -> Result<(), FsError> {
        Self::permit(self, ino, bits)
    }
}
