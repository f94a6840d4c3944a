//! All operations that change files: only rows can be changed, so every operation here first gets a row (in an overlay, a host
//! file is first copied to one).

use std::sync::PoisonError;

use sqlite_fs::path::Resolved;
use sqlite_fs::{FileType, FsError, Owner, Transaction, Volume, VolumeMut};

use super::policy::Operation;
use super::view::View;
use super::{ALIAS_NODE, Node};

impl View<Transaction> {
    /// Appends to a regular file; returns the offset, and the number of bytes written.
    pub(crate) fn append(&self, node: Node, bytes: &[u8]) -> Result<(u64, usize), FsError> {
        self.allow(node, Operation::Grow)?;
        let _turn = self.appending.lock().unwrap_or_else(PoisonError::into_inner);
        let end = self.size(node)?;
        Ok((end, self.rows.write(self.row(node)?, end, bytes)?))
    }

    // Writes to an append-only file: only at its end, without bytes of other writers in between.
    fn write_at_end(&self, node: Node, offset: u64, bytes: &[u8]) -> Result<usize, FsError> {
        let _turn = self.appending.lock().unwrap_or_else(PoisonError::into_inner);
        if offset != self.size(node)? {
            return Err(FsError::NotPermitted);
        }
        self.rows.write(self.row(node)?, offset, bytes)
    }

    // A program that creates a file sets its mode and times, so those of an append-only file can be set while it is empty.
    fn allow_attributes(&self, node: Node) -> Result<(), FsError> {
        match self.allow(node, Operation::Change) {
            Err(FsError::NotPermitted) if self.stat(node).is_ok_and(|stat| stat.is_file() && stat.size == 0) => Ok(()),
            allowed => allowed,
        }
    }

    fn allow_removal(&self, at: &Resolved<Node>) -> Result<(), FsError> {
        at.node.map_or(Ok(()), |(node, _)| self.allow(node, Operation::Displace))
    }

    /// Returns the parent of an existing entry that is itself a row: `/bin` has a row parent but is not a row.
    pub(super) fn row_entry(&self, at: &Resolved<Node>) -> Result<u64, FsError> {
        if let Some((node, _)) = at.node {
            self.decide(node, Operation::Displace)?;
        }
        self.row(at.parent)
    }
}

impl VolumeMut for View<Transaction> {
    fn create(&self, at: &Resolved<Node>, name: &str, mode: u32, Owner { uid, gid }: Owner) -> Result<Node, FsError> {
        self.allow_new(at, name)?;
        self.created(at, name, FileType::File, self.rows.create(self.row(at.parent)?, name, mode, uid, gid))
    }

    fn mkdir(&self, at: &Resolved<Node>, name: &str, mode: u32, Owner { uid, gid }: Owner) -> Result<Node, FsError> {
        self.allow_new(at, name)?;
        self.created(at, name, FileType::Directory, self.rows.mkdir(self.row(at.parent)?, name, mode, uid, gid))
    }

    fn mkfifo(&self, at: &Resolved<Node>, name: &str, mode: u32, Owner { uid, gid }: Owner) -> Result<Node, FsError> {
        self.allow_new(at, name)?;
        self.created(at, name, FileType::Fifo, self.rows.mkfifo(self.row(at.parent)?, name, mode, uid, gid))
    }

    fn symlink(&self, at: &Resolved<Node>, name: &str, target: &str, Owner { uid, gid }: Owner) -> Result<Node, FsError> {
        self.allow_new(at, name)?;
        self.created(at, name, FileType::Symlink, self.rows.symlink(self.row(at.parent)?, name, target, uid, gid))
    }

    fn link(&self, from: &Resolved<Node>, at: &Resolved<Node>, name: &str) -> Result<(), FsError> {
        let (source, _) = from.existing()?;
        if matches!(source, Node::Fixed(_) | Node::Descriptor(_)) || !self.same_mount(from.parent, at.parent)? {
            return Err(FsError::CrossDevice);
        }
        self.allow_link(source, at, name)?;
        let (source, parent) = (self.row(source)?, self.row(at.parent)?);
        let linked = self.rows.link(source, parent, name);
        linked.map_err(|error| if error == FsError::Exists && self.hides() { FsError::Access } else { error })
    }

    fn unlink(&self, at: &Resolved<Node>, name: &str) -> Result<(), FsError> {
        if at.node.is_some_and(|(node, kind)| kind == FileType::Directory && !self.is_only_rows(node)) {
            return Err(FsError::IsDirectory);
        }
        self.allow_removal(at)?;
        self.erase(at, name, |parent| self.rows.unlink(parent, name))
    }

    fn rmdir(&self, at: &Resolved<Node>, name: &str) -> Result<(), FsError> {
        if at.node.is_some_and(|(node, kind)| kind != FileType::Directory && !self.is_only_rows(node)) {
            return Err(FsError::NotDirectory);
        }
        self.allow_removal(at)?;
        if let Some((node, FileType::Directory)) = at.node {
            self.allow_emptied(node)?;
        }
        self.erase(at, name, |parent| self.rows.rmdir(parent, name))
    }

    fn rename(&self, from: &Resolved<Node>, old_name: &str, to: &Resolved<Node>, new_name: &str) -> Result<(), FsError> {
        if matches!(to.node, Some((ALIAS_NODE | Node::Fixed(_) | Node::Descriptor(_), _))) {
            return Err(FsError::Busy);
        }
        self.allow_rename((from, old_name), (to, new_name))?;
        if self.mounts.is_some() {
            return self.rename_mounted(from, old_name, to, new_name);
        }
        self.rows.rename(self.row_entry(from)?, old_name, self.row(to.parent)?, new_name)
    }

    fn write(&self, file: Node, offset: u64, bytes: &[u8]) -> Result<usize, FsError> {
        match self.allow(file, Operation::Change) {
            Err(FsError::NotPermitted) => self.write_at_end(file, offset, bytes),
            allowed => {
                allowed?;
                self.rows.write(self.row(file)?, offset, bytes)
            }
        }
    }

    fn truncate(&self, file: Node, size: u64) -> Result<(), FsError> {
        match self.allow(file, Operation::Change) {
            // An append-only file may be truncated while it is empty, as programs that write a new file do.
            Err(FsError::NotPermitted) if self.stat(file)?.size == size => return Ok(()),
            allowed => allowed?,
        }
        self.rows.truncate(self.row_of_size(file, size)?, size)
    }

    fn chmod(&self, node: Node, mode: u32) -> Result<(), FsError> {
        match self.allow_attributes(node) {
            // A program that copies a file sets the mode that it already has.
            Err(FsError::NotPermitted) if self.stat(node)?.mode & 0o7777 == mode & 0o7777 => return Ok(()),
            allowed => allowed?,
        }
        self.rows.chmod(self.row(node)?, mode & 0o7777)
    }

    fn chown(&self, node: Node, uid: Option<u32>, gid: Option<u32>) -> Result<(), FsError> {
        self.allow_attributes(node)?;
        self.rows.chown(self.row(node)?, uid, gid)
    }

    fn set_times(&self, node: Node, atime: Option<i64>, mtime: Option<i64>) -> Result<(), FsError> {
        self.allow_attributes(node)?;
        self.rows.set_times(self.row(node)?, atime, mtime)
    }

    // A node that is not a row yet becomes one with its visible permissions.
    fn permit(&self, node: Node, bits: u32) -> Result<(), FsError> {
        if bits & 0o200 != 0 {
            self.allow(node, Operation::Grow)?;
        }
        match self.current(node) {
            Node::Row(ino) => self.rows.permit(ino, bits),
            _ => Ok(()),
        }
    }
}
