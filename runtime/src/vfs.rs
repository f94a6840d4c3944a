//! The files a command sees: the sandbox's rows, the fixed world around them (`/bin`, `/dev`, `/proc`, …), and what is
//! mounted.
//!
//! The only namespace is made of [`Node`]s; no host path is ever built from guest text (T-ISO-02). Writing anywhere but
//! into rows is refused here, below all operations. Knows nothing of descriptors or guest memory.

mod directory;
mod errno;
mod fixed;
mod library;
mod mounts;
mod overlay;
mod rows;
mod tree;

use std::sync::{Arc, Mutex, PoisonError};

use abi::Errno;
use abi::stat::Stat;
use sqlite_fs::path::{self, Last, Resolved, Tree};
use sqlite_fs::{FileType, FsError, ROOT, Transaction};

pub(crate) use directory::{HostDirectory, Refused};
pub(crate) use errno::to_fs;
pub(crate) use fixed::{Device, Fixed, FixedId, Part, ProcFile, Thing, descriptor_entries};
pub(crate) use library::library_stat;
use mounts::Mounts;
pub(crate) use mounts::{HostId, MountPoint, OverlayChanges, mount_path};
pub use tree::TreeCopy;
pub(crate) use tree::{export_tree, import_tree};

/// A file, a directory, a link or a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// An inode of the database.
    Row(u64),
    /// Part of the fixed world.
    Fixed(FixedId),
    /// A file of a mounted host directory.
    Host(HostId),
    /// One of the calling process's descriptors, seen through `/dev/fd`.
    Descriptor(u32),
}

/// The root directory.
pub(crate) const ROOT_NODE: Node = Node::Row(ROOT);

/// The root directory under its other name: its rows alone, without the fixed world. No row has this number.
const ALIAS_NODE: Node = Node::Row(u64::MAX);

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryEntry {
    /// The name.
    pub(crate) name: String,
    /// The inode number.
    pub(crate) ino: u64,
    /// `S_IF…` bits.
    pub(crate) kind: u32,
    /// Where to go on after it.
    pub(crate) cookie: u64,
}

/// One command's view of the files.
pub(crate) struct Vfs {
    rows: Transaction,
    fixed: &'static Fixed,
    owner: Owner,
    /// `None` when nothing is mounted, which then costs nothing.
    mounts: Option<Box<Mounts>>,
    /// Another name under which the root directory is seen in itself.
    alias: Option<Arc<str>>,
    /// Held from looking where a file ends to writing there: nothing of two that append at once is lost.
    appending: Mutex<()>,
}

/// Whom new files belong to.
#[derive(Clone, Copy, Debug)]
struct Owner {
    uid: u32,
    gid: u32,
}

/// The sandbox's one user.
pub(crate) const USER_ID: u32 = 1000;

/// Inode numbers of the fixed world start here, far from any row.
const FIXED_INODES: u64 = 1 << 62;
/// Inode numbers of `/dev/fd` entries.
const DESCRIPTOR_INODES: u64 = 1 << 61;

impl Vfs {
    /// The files as one transaction sees them.
    pub(crate) fn new(rows: Transaction) -> Self {
        Self {
            rows,
            fixed: Fixed::world(),
            owner: Owner { uid: USER_ID, gid: USER_ID },
            mounts: None,
            alias: None,
            appending: Mutex::new(()),
        }
    }

    /// The same, with host directories mounted.
    pub(crate) fn with_mounts(rows: Transaction, points: &[MountPoint]) -> Result<Self, FsError> {
        let mounts = if points.is_empty() { None } else { Some(Box::new(Mounts::new(points, &rows)?)) };
        Ok(Self { mounts, ..Self::new(rows) })
    }

    /// The same, with another world around the rows.
    pub(crate) fn with_world(self, fixed: &'static Fixed) -> Self {
        Self { fixed, ..self }
    }

    /// The same, with the root directory seen in itself under another name.
    pub(crate) fn with_alias(self, alias: Option<Arc<str>>) -> Self {
        Self { alias, ..self }
    }

    /// The same as guests see it: the user's permission bits count.
    pub(crate) fn for_guests(self) -> Result<Self, sqlite_fs::Error> {
        self.rows.obey_modes(true)?;
        Ok(self)
    }

    /// The lines of `/proc/mounts`.
    pub(crate) fn mount_lines(&self) -> String {
        let mounted = self.mounts.as_ref().map(|mounts| mounts.lines()).unwrap_or_default();
        format!("sandlite / sandlite rw,relatime 0 0\n{mounted}")
    }

    /// What overlays did so far.
    pub(crate) fn overlay_changes(&self) -> OverlayChanges {
        let changes = self.mounts.as_ref().map(|mounts| mounts.changes.lock().unwrap_or_else(PoisonError::into_inner).clone());
        changes.unwrap_or_default()
    }

    /// The command's transaction.
    pub(crate) fn transaction(&self) -> &Transaction {
        &self.rows
    }

    /// Gives the transaction back when the command is over.
    pub(crate) fn into_transaction(self) -> Transaction {
        // From here on it is the host's. A transaction that is gone refuses everything anyway.
        let _ = self.rows.obey_modes(false);
        self.rows
    }

    /// Walks a path from `base`.
    pub(crate) fn resolve(&self, base: Node, path: &str, last: Last) -> Result<Resolved<Node>, Errno> {
        path::resolve(self, ROOT_NODE, base, path, last).map_err(errno::from_fs)
    }

    /// The node at a path, which must exist.
    pub(crate) fn find(&self, base: Node, path: &str, last: Last) -> Result<Node, Errno> {
        let resolved = self.resolve(base, path, last)?;
        let (node, _) = resolved.existing().map_err(errno::from_fs)?;
        Ok(node)
    }

    /// The metadata of a node. A descriptor has none here: its process knows.
    pub(crate) fn stat(&self, node: Node) -> Result<Stat, Errno> {
        match self.current(node) {
            Node::Row(ino) => self.rows.stat(ino).map(rows::stat).map_err(errno::from_fs),
            Node::Fixed(id) => Ok(self.fixed.stat(id)),
            Node::Host(id) => self.mounts()?.stat(id).map_err(errno::from_fs),
            Node::Descriptor(_) => Err(Errno::NOENT),
        }
    }

    /// What a node of the fixed world is; `None` for rows.
    pub(crate) fn thing(&self, node: Node) -> Option<&'static Thing> {
        match node {
            Node::Fixed(id) => Some(self.fixed.thing(id)),
            _ => None,
        }
    }

    /// The target of a symbolic link.
    pub(crate) fn readlink(&self, node: Node) -> Result<String, Errno> {
        Tree::readlink(self, node).map_err(errno::from_fs)
    }

    /// Up to `limit` names of a directory after `cookie`.
    pub(crate) fn readdir(&self, node: Node, cookie: u64, limit: usize) -> Result<Vec<DirectoryEntry>, Errno> {
        match self.current(node) {
            Node::Row(ino) if node == ALIAS_NODE => rows::names(&self.rows, ino, cookie, limit),
            Node::Row(ino) => match self.lower_of(ino) {
                None => rows::readdir(&self.rows, self.fixed, ino, cookie, limit),
                Some(lower) => self.readdir_merged(Some(ino), lower, cookie, limit),
            },
            Node::Fixed(id) => self.fixed.readdir(id, cookie, limit),
            Node::Host(id) => self.readdir_merged(None, id, cookie, limit),
            Node::Descriptor(_) => Err(Errno::NOTDIR),
        }
    }

    /// Keeps an unlinked file readable while it is open.
    pub(crate) fn hold(&self, node: Node) {
        let row = match (node, &self.mounts) {
            (Node::Row(ino), _) => Some(ino),
            (Node::Host(id), Some(mounts)) => mounts.hold(id),
            _ => None,
        };
        if let Some(ino) = row {
            let _ = self.rows.hold(ino);
        }
    }

    /// The end of a [`hold`](Self::hold).
    pub(crate) fn release(&self, node: Node) {
        let row = match (node, &self.mounts) {
            (Node::Row(ino), _) => Some(ino),
            (Node::Host(id), Some(mounts)) => mounts.release(id),
            _ => None,
        };
        if let Some(ino) = row {
            let _ = self.rows.release(ino);
        }
    }
}

impl Tree for Vfs {
    type Node = Node;

    fn lookup(&self, dir: Node, name: &str) -> Result<(Node, FileType), FsError> {
        match self.current(dir) {
            Node::Row(ino) if dir == ALIAS_NODE => self.rows.lookup(ino, name).map(|(ino, kind)| (Node::Row(ino), kind)),
            Node::Row(ino) => {
                if ino == ROOT
                    && let Some(found) = self.fixed.lookup(Fixed::ROOT, name)
                {
                    return Ok(found);
                }
                if ino == ROOT && self.alias.as_deref() == Some(name) {
                    return Ok((ALIAS_NODE, FileType::Directory));
                }
                let found = self.rows.lookup(ino, name);
                match &self.mounts {
                    None => found.map(|(ino, kind)| (Node::Row(ino), kind)),
                    Some(mounts) => self.lookup_mounted(mounts, ino, name, found),
                }
            }
            Node::Fixed(id) => self.fixed.lookup(id, name).ok_or(FsError::NoEntry),
            Node::Host(id) => self.lookup_lower(id, name),
            Node::Descriptor(_) => Err(FsError::NotDirectory),
        }
    }

    fn parent(&self, dir: Node) -> Result<Node, FsError> {
        match self.current(dir) {
            Node::Row(ino) => self.rows.parent(ino).map(Node::Row),
            Node::Fixed(id) => Ok(self.fixed.parent(id).map_or(ROOT_NODE, Node::Fixed)),
            Node::Host(id) => self.parent_of_host(id),
            Node::Descriptor(_) => Err(FsError::NotDirectory),
        }
    }

    fn readlink(&self, link: Node) -> Result<String, FsError> {
        match self.current(link) {
            Node::Row(ino) => self.rows.readlink(ino),
            Node::Fixed(id) => match self.fixed.thing(id) {
                Thing::Link(target) => Ok((*target).to_owned()),
                _ => Err(FsError::Invalid),
            },
            Node::Host(id) => self.mounts.as_ref().ok_or(FsError::NoEntry)?.read_link(id),
            Node::Descriptor(_) => Err(FsError::Invalid),
        }
    }

    fn search(&self, dir: Node) -> Result<(), FsError> {
        match self.current(dir) {
            Node::Row(ino) => Tree::search(&self.rows, ino),
            // The fixed world is open to all, and what a host directory allows its own system says.
            Node::Fixed(_) | Node::Host(_) | Node::Descriptor(_) => Ok(()),
        }
    }
}
