//! Mounts in the tree: how host files show among rows, and how, in an overlay, they become rows when they are changed.
//!
//! An overlay's upper side is the rows at its mount point, its lower side the host directory. A row hides the path below it; a
//! directory on both sides shows the names of both; a removed lower name is recorded as a whiteout. Host files are never written,
//! and a host directory is never moved (EXDEV, as in Linux's overlayfs: `mv` then copies).

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use abi::stat::S_IFDIR;
use sqlite_fs::path::{Resolved, Tree};
use sqlite_fs::{Entry, FileType, FsError, Owner, ROOT, Rows, Transaction, Volume};

use super::mounts::{HostId, Mounts};
use super::policy::Operation;
use super::view::{FIXED_COOKIES, View};
use super::{ALIAS_NODE, Node, ROOT_NODE};
use crate::defaults::USER;

/// Cookies of host names in a directory that also has rows: beyond those of rows.
const HOST_COOKIES: u64 = 1 << 60;

/// Number of bytes copied at once when a host file becomes a row.
const COPY_BYTES: usize = 256 << 10;

impl<R: Rows> View<R> {
    /// Returns the mounts, which exist if a host file is met.
    pub(super) fn mounts(&self) -> Result<&Mounts, FsError> {
        self.mounts.as_deref().ok_or(FsError::NoEntry)
    }

    /// Returns the current node: a changed host file is a row.
    pub(super) fn current(&self, node: Node) -> Node {
        match (node, &self.mounts) {
            (ALIAS_NODE, _) => ROOT_NODE,
            (Node::Host(id), Some(mounts)) => mounts.upper_of(id).map_or(node, Node::Row),
            _ => node,
        }
    }

    /// Returns the host directory that is visible through a row.
    pub(super) fn lower_of(&self, ino: u64) -> Option<HostId> {
        self.mounts.as_ref()?.lower_of(ino)
    }

    /// Looks up a name in a directory of rows, if there are mounts.
    pub(super) fn lookup_mounted(
        &self,
        mounts: &Mounts,
        dir: u64,
        name: &str,
        found: Result<(u64, FileType), FsError>,
    ) -> Result<(Node, FileType), FsError> {
        let (ino, kind) = match (found, mounts.lower_of(dir)) {
            (Ok(found), _) => found,
            (Err(FsError::NoEntry), Some(lower)) => return self.lookup_lower(lower, name),
            (Err(error), _) => return Err(error),
        };
        if let Some((root, kind)) = mounts.read_only_at(ino) {
            return Ok((Node::Host(root), kind));
        }
        if kind == FileType::Directory
            && mounts.lower_of(ino).is_none()
            && let Some(lower) = mounts.lower_of(dir)
            && let Ok((Node::Host(below), FileType::Directory)) = self.lookup_lower(lower, name)
        {
            mounts.set_upper(below, ino)?;
        }
        Ok((Node::Row(ino), kind))
    }

    /// Looks up a name in a host directory, unless it is hidden.
    pub(super) fn lookup_lower(&self, dir: HostId, name: &str) -> Result<(Node, FileType), FsError> {
        let mounts = self.mounts.as_deref().ok_or(FsError::NoEntry)?;
        if mounts.kind(dir)? != FileType::Directory {
            return Err(FsError::NotDirectory);
        }
        self.may_search(dir)?;
        if self.is_hidden(mounts, dir, name)? {
            return Err(FsError::NoEntry);
        }
        let (id, kind) = mounts.lookup(dir, name)?;
        Ok((Node::Host(id), kind))
    }

    fn is_hidden(&self, mounts: &Mounts, dir: HostId, name: &str) -> Result<bool, FsError> {
        if !mounts.any_hidden.load(Ordering::Acquire) || !mounts.point(dir)?.overlay {
            return Ok(false);
        }
        self.rows.hides(&format!("{}/{name}", mounts.path(dir)?))
    }

    /// Returns the content of a file that a source generates for each open; `None` for other files.
    pub(crate) fn generate(&self, node: Node) -> Result<Option<Arc<[u8]>>, FsError> {
        match self.current(node) {
            Node::Host(id) => self.mounts()?.generate(id),
            _ => Ok(None),
        }
    }

    /// Returns whether a node is an unchanged file of a source.
    pub(crate) fn is_lower(&self, node: Node) -> bool {
        matches!(self.current(node), Node::Host(_))
    }

    /// Returns the parent directory of a host file.
    pub(super) fn parent_of_host(&self, id: HostId) -> Result<Node, FsError> {
        let mounts = self.mounts.as_deref().ok_or(FsError::NoEntry)?;
        match mounts.place(id)? {
            Some((parent, _)) => Ok(self.current(Node::Host(parent))),
            None => self.rows.parent(mounts.point_row(id)?).map(Node::Row),
        }
    }

    /// Returns the names of a host directory, after those of the rows at the same place.
    pub(super) fn readdir_merged(
        &self,
        upper: Option<u64>,
        lower: HostId,
        cookie: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, FsError> {
        let mounts = self.mounts()?;
        // Names of the fixed world, which the root shows first, have larger cookies still.
        let after = if cookie < FIXED_COOKIES { cookie.saturating_sub(HOST_COOKIES) } else { 0 };
        let mut entries = match upper {
            Some(ino) if after == 0 => self.readdir_rows(ino, cookie, limit)?,
            _ => Vec::new(),
        };
        if entries.len() >= limit {
            return Ok(entries);
        }
        let listing = mounts.listing(lower, after == 0)?;
        let directory = mounts.path(lower)?;
        let names = (1u64..).zip(listing.iter()).skip(usize::try_from(after).unwrap_or(usize::MAX));
        for (number, (name, kind)) in names {
            if entries.len() >= limit {
                break;
            }
            let is_above = upper.is_some_and(|ino| self.is_fixed_name(ino, name) || self.rows.lookup(ino, name).is_ok());
            if is_above || self.is_hidden(mounts, lower, name)? {
                continue;
            }
            let ino = mounts.inode_of(&format!("{directory}/{name}"));
            entries.push(Entry { name: name.clone(), ino, kind: *kind, cookie: HOST_COOKIES + number });
        }
        Ok(entries)
    }
}

impl View<Transaction> {
    fn hide(&self, mounts: &Mounts, dir: HostId, name: &str) -> Result<(), FsError> {
        let path = format!("{}/{name}", mounts.path(dir)?);
        self.rows.hide(&path)?;
        mounts.any_hidden.store(true, Ordering::Release);
        mounts.changes.lock().unwrap_or_else(PoisonError::into_inner).note_hidden(path);
        Ok(())
    }

    /// Returns the row of a node that is about to change.
    pub(super) fn row(&self, node: Node) -> Result<u64, FsError> {
        self.row_of_size(node, u64::MAX)
    }

    /// Same, if no more than this many bytes of it will be needed.
    pub(super) fn row_of_size(&self, node: Node, size: u64) -> Result<u64, FsError> {
        let node = self.current(node);
        self.decide(node, Operation::Change)?;
        match node {
            Node::Row(ino) => Ok(ino),
            Node::Host(id) => self.copy_up(id, size),
            Node::Fixed(_) | Node::Descriptor(_) => Err(FsError::ReadOnly),
        }
    }

    // Makes a host file a row, and the directories above it.
    fn copy_up(&self, id: HostId, size: u64) -> Result<u64, FsError> {
        let mounts = self.mounts()?;
        // One at a time; otherwise two processes could create two rows of one file.
        let _turn = mounts.copying.lock().unwrap_or_else(PoisonError::into_inner);
        let mut above = vec![id];
        let mut parent = loop {
            let top = above.last().copied().unwrap_or(id);
            if let Some(ino) = mounts.upper_of(top) {
                above.pop();
                break ino;
            }
            let (parent, _) = mounts.place(top)?.ok_or(FsError::ReadOnly)?;
            above.push(parent);
        };
        for id in above.into_iter().rev() {
            parent = self.copy_one(mounts, id, parent, size)?;
        }
        Ok(parent)
    }

    fn copy_one(&self, mounts: &Mounts, id: HostId, parent: u64, size: u64) -> Result<u64, FsError> {
        let Some((_, name)) = mounts.place(id)? else { return Err(FsError::ReadOnly) };
        let stat = mounts.stat(id)?;
        let Owner { uid, gid } = USER;
        let ino = match mounts.kind(id)? {
            FileType::Directory => self.rows.mkdir(parent, &name, stat.mode & 0o777, uid, gid)?,
            FileType::Symlink => self.rows.symlink(parent, &name, &mounts.read_link(id)?, uid, gid)?,
            // A mount shows neither.
            FileType::Fifo | FileType::Device => return Err(FsError::NoEntry),
            FileType::File => {
                let ino = self.rows.create(parent, &name, stat.mode & 0o777, uid, gid)?;
                if let Err(error) = self.copy_content(mounts, id, ino, size) {
                    // An incomplete file must not hide the whole one.
                    let _ = self.rows.unlink(parent, &name);
                    return Err(error);
                }
                ino
            }
        };
        self.rows.set_times(ino, Some(stat.atime), Some(stat.mtime))?;
        for _ in 0..mounts.set_upper(id, ino)? {
            if stat.kind() != S_IFDIR {
                self.rows.hold(ino)?;
            }
        }
        mounts.changes.lock().unwrap_or_else(PoisonError::into_inner).note_copied(mounts.path(id)?);
        Ok(ino)
    }

    fn copy_content(&self, mounts: &Mounts, id: HostId, ino: u64, size: u64) -> Result<(), FsError> {
        let mut buffer = vec![0; COPY_BYTES];
        let mut offset = 0;
        while offset < size {
            let read = mounts.read(id, offset, &mut buffer)?;
            let mut bytes = buffer.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                return Ok(());
            }
            while !bytes.is_empty() {
                let written = self.rows.write(ino, offset, bytes)?;
                offset += written as u64;
                bytes = bytes.get(written..).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Returns whether nothing of the host is visible through a node: rows determine the allowed operations, after permissions.
    pub(super) fn is_only_rows(&self, node: Node) -> bool {
        match self.current(node) {
            Node::Row(ino) => self.mounts.as_deref().is_none_or(|mounts| mounts.lower_of(ino).is_none()),
            _ => false,
        }
    }

    /// Removes an entry: the row, if it is one, and anything that would become visible.
    pub(super) fn erase(
        &self,
        at: &Resolved<Node>,
        name: &str,
        remove_row: impl FnOnce(u64) -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let Some(mounts) = self.mounts.as_deref() else {
            return remove_row(self.row_entry(at)?);
        };
        let Some((node, kind)) = at.node else { return Err(at.missing) };
        let parent = self.current(at.parent);
        self.decide(node, Operation::Displace)?;
        if kind == FileType::Directory && !self.is_only_rows(node) && !self.readdir(node, 0, 1)?.is_empty() {
            return Err(FsError::NotEmpty);
        }
        match self.current(node) {
            Node::Row(_) => {
                let Node::Row(dir) = parent else { return Err(FsError::ReadOnly) };
                remove_row(dir)?;
            }
            Node::Host(_) => {}
            _ => return Err(FsError::ReadOnly),
        }
        self.cover(mounts, parent, name)
    }

    // Hides a name of a host directory, if it exists.
    fn cover(&self, mounts: &Mounts, dir: Node, name: &str) -> Result<(), FsError> {
        let lower = match dir {
            Node::Row(ino) => mounts.lower_of(ino),
            Node::Host(id) => Some(id),
            _ => None,
        };
        match lower {
            Some(lower) if self.lookup_lower(lower, name).is_ok() => self.hide(mounts, lower, name),
            _ => Ok(()),
        }
    }

    /// Returns whether two directories are in the same mount, or both in none.
    pub(super) fn same_mount(&self, one: Node, other: Node) -> Result<bool, FsError> {
        let Some(mounts) = self.mounts.as_deref() else { return Ok(true) };
        let of = |dir: Node| -> Result<Option<usize>, FsError> {
            let mut ino = match self.current(dir) {
                Node::Host(id) => return mounts.mount_of(id).map(Some),
                Node::Row(ino) => ino,
                _ => return Ok(None),
            };
            loop {
                if let Some(mount) = mounts.mount_at(ino) {
                    return Ok(Some(mount));
                }
                if ino == ROOT {
                    return Ok(None);
                }
                ino = self.rows.parent(ino)?;
            }
        };
        Ok(of(one)? == of(other)?)
    }

    fn is_at_or_above(&self, node: Node, mut directory: Node) -> Result<bool, FsError> {
        let node = self.current(node);
        loop {
            directory = self.current(directory);
            if directory == node || directory == ROOT_NODE {
                return Ok(directory == node);
            }
            directory = self.parent(directory)?;
        }
    }

    /// Renames when something is mounted somewhere.
    pub(super) fn rename_mounted(
        &self,
        from: &Resolved<Node>,
        old_name: &str,
        to: &Resolved<Node>,
        new_name: &str,
    ) -> Result<(), FsError> {
        let mounts = self.mounts()?;
        let (node, kind) = from.existing()?;
        self.decide(node, Operation::Displace)?;
        // In Linux's order: nothing can be moved into itself, and nothing can replace a parent directory of its own.
        if kind == FileType::Directory && self.is_at_or_above(node, to.parent)? {
            return Err(FsError::Invalid);
        }
        if let Some((target, target_kind)) = to.node {
            self.decide(target, Operation::Displace)?;
            if target_kind == FileType::Directory && self.is_at_or_above(target, from.parent)? {
                return Err(FsError::NotEmpty);
            }
            match (kind, target_kind) {
                (FileType::Directory, FileType::Directory) if self.current(target) == self.current(node) => return Ok(()),
                (FileType::Directory, FileType::Directory) if !self.readdir(target, 0, 1)?.is_empty() => {
                    return Err(FsError::NotEmpty);
                }
                (FileType::Directory, FileType::Directory) => {}
                (FileType::Directory, _) => return Err(FsError::NotDirectory),
                (_, FileType::Directory) => return Err(FsError::IsDirectory),
                _ => {}
            }
        }
        if !self.same_mount(from.parent, to.parent)? {
            return Err(FsError::CrossDevice);
        }
        let shows_through = match self.current(node) {
            Node::Row(ino) => mounts.lower_of(ino).is_some(),
            _ => true,
        };
        if kind == FileType::Directory && shows_through {
            return Err(FsError::CrossDevice);
        }
        self.row(node)?;
        let (old_parent, new_parent) = (self.row(from.parent)?, self.row(to.parent)?);
        self.rows.rename(old_parent, old_name, new_parent, new_name)?;
        if (old_parent, old_name) != (new_parent, new_name) {
            self.cover(mounts, Node::Row(old_parent), old_name)?;
        }
        // A moved directory keeps its content: nothing below it becomes visible through it.
        if kind == FileType::Directory {
            self.cover(mounts, Node::Row(new_parent), new_name)?;
        }
        Ok(())
    }
}
