//! Everything that changes files: only rows can be changed, so every operation here begins by asking for one (which, in an
//! overlay, a host file becomes).

use std::sync::PoisonError;

use abi::Errno;
use abi::stat::Stat;
use sqlite_fs::path::{Last, Resolved};
use sqlite_fs::{FileType, ROOT, Transaction};

use super::{DirectoryEntry, Fixed, Node, Vfs, errno};

/// Device number of the database's files: any constant that is not the fixed world's.
const ROWS_DEVICE: u64 = 1;

/// What a directory says its size is, as on ext4: programs take 0 for "empty".
const DIRECTORY_SIZE: u64 = 4096;

/// A row's metadata in the guest's words.
pub(super) fn stat(row: sqlite_fs::Stat) -> Stat {
    Stat {
        dev: ROWS_DEVICE,
        ino: row.ino,
        mode: row.mode,
        nlink: row.nlink.max(1),
        uid: row.uid,
        gid: row.gid,
        rdev: row.rdev,
        size: if row.is_dir() { DIRECTORY_SIZE } else { row.size },
        atime: row.atime,
        mtime: row.mtime,
        ctime: row.ctime,
    }
}

// The root directory also shows the fixed world's names: first those, under cookies no row can have, then the rows that
// they do not hide.
const FIXED_COOKIES: u64 = 1 << 62;

/// Names of a directory made of rows, and nothing else.
pub(super) fn names(rows: &Transaction, dir: u64, cookie: u64, limit: usize) -> Result<Vec<DirectoryEntry>, Errno> {
    let listed = rows.readdir(dir, cookie, limit).map_err(errno::from_fs)?;
    let named = |entry: sqlite_fs::Entry| DirectoryEntry {
        name: entry.name,
        ino: entry.ino,
        kind: entry.kind.bits(),
        cookie: entry.cookie,
    };
    Ok(listed.into_iter().map(named).collect())
}

/// Names of a directory made of rows.
pub(super) fn readdir(
    rows: &Transaction,
    fixed: &Fixed,
    dir: u64,
    cookie: u64,
    limit: usize,
) -> Result<Vec<DirectoryEntry>, Errno> {
    let mut entries = Vec::new();
    let mut after = cookie;
    if dir == ROOT && (cookie == 0 || cookie > FIXED_COOKIES) {
        let mut seen = fixed.readdir(Fixed::ROOT, cookie.saturating_sub(FIXED_COOKIES), limit)?;
        seen.iter_mut().for_each(|entry| entry.cookie += FIXED_COOKIES);
        entries = seen;
        after = 0;
    }
    let listed = names(rows, dir, after, limit.saturating_sub(entries.len()))?;
    entries.extend(listed.into_iter().filter(|entry| dir != ROOT || fixed.lookup(Fixed::ROOT, &entry.name).is_none()));
    Ok(entries)
}

impl Vfs {
    /// Reads from a regular file.
    pub(crate) fn read(&self, node: Node, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        match self.current(node) {
            Node::Row(ino) => self.rows.read(ino, offset, buffer).map_err(errno::from_fs),
            Node::Fixed(id) => Ok(self.fixed.read(id, offset, buffer)),
            Node::Host(id) => self.mounts()?.read(id, offset, buffer).map_err(errno::from_fs),
            Node::Descriptor(_) => Ok(0),
        }
    }

    /// Writes to a regular file.
    pub(crate) fn write(&self, node: Node, offset: u64, bytes: &[u8]) -> Result<usize, Errno> {
        self.rows.write(self.row(node)?, offset, bytes).map_err(errno::from_fs)
    }

    /// Writes at the end of a regular file; answers where that was, and how much was written.
    pub(crate) fn append(&self, node: Node, bytes: &[u8]) -> Result<(u64, usize), Errno> {
        let _turn = self.appending.lock().unwrap_or_else(PoisonError::into_inner);
        let end = self.stat(node)?.size;
        Ok((end, self.write(node, end, bytes)?))
    }

    /// Sets the size of a regular file.
    pub(crate) fn truncate(&self, node: Node, size: u64) -> Result<(), Errno> {
        self.rows.truncate(self.row_of_size(node, size)?, size).map_err(errno::from_fs)
    }

    /// Creates a regular file where a path led to nothing.
    pub(crate) fn create(&self, at: &Resolved<Node>, mode: u32) -> Result<Node, Errno> {
        if at.slash {
            return Err(Errno::ISDIR);
        }
        let name = at.for_new().map_err(errno::from_fs)?;
        let parent = self.row(at.parent)?;
        self.rows.create(parent, name, mode, self.owner.uid, self.owner.gid).map(Node::Row).map_err(errno::from_fs)
    }

    /// Creates a directory.
    pub(crate) fn mkdir(&self, base: Node, path: &str, mode: u32) -> Result<(), Errno> {
        let at = self.resolve(base, path, Last::Entry)?;
        let name = at.for_mkdir().map_err(errno::from_fs)?;
        let parent = self.row(at.parent)?;
        self.rows.mkdir(parent, name, mode, self.owner.uid, self.owner.gid).map(drop).map_err(errno::from_fs)
    }

    /// Creates a pipe with a name.
    pub(crate) fn mkfifo(&self, base: Node, path: &str, mode: u32) -> Result<(), Errno> {
        let at = self.resolve(base, path, Last::Entry)?;
        let name = at.for_new().map_err(errno::from_fs)?;
        let parent = self.row(at.parent)?;
        self.rows.mkfifo(parent, name, mode, self.owner.uid, self.owner.gid).map(drop).map_err(errno::from_fs)
    }

    /// Creates a symbolic link.
    pub(crate) fn symlink(&self, target: &str, base: Node, path: &str) -> Result<(), Errno> {
        let at = self.resolve(base, path, Last::Entry)?;
        let name = at.for_new().map_err(errno::from_fs)?;
        let parent = self.row(at.parent)?;
        self.rows.symlink(parent, name, target, self.owner.uid, self.owner.gid).map(drop).map_err(errno::from_fs)
    }

    /// Gives a file a second name.
    pub(crate) fn link(&self, old_base: Node, old: &str, follow: bool, new_base: Node, new: &str) -> Result<(), Errno> {
        let last = if follow { Last::Follow } else { Last::NoFollow };
        let from = self.resolve(old_base, old, last)?;
        let (source, _) = from.existing().map_err(errno::from_fs)?;
        let at = self.resolve(new_base, new, Last::Entry)?;
        let name = at.for_new().map_err(errno::from_fs)?;
        if matches!(source, Node::Fixed(_) | Node::Descriptor(_)) || !self.same_mount(from.parent, at.parent)? {
            return Err(Errno::XDEV);
        }
        let (source, parent) = (self.row(source)?, self.row(at.parent)?);
        self.rows.link(source, parent, name).map_err(errno::from_fs)
    }

    /// Removes a name that is not a directory's.
    pub(crate) fn unlink(&self, base: Node, path: &str) -> Result<(), Errno> {
        let at = self.resolve(base, path, Last::Entry)?;
        let name = at.for_unlink().map_err(errno::from_fs)?;
        if at.node.is_some_and(|(node, kind)| kind == FileType::Directory && !self.is_only_rows(node)) {
            return Err(Errno::ISDIR);
        }
        self.erase(&at, name, |parent| self.rows.unlink(parent, name))
    }

    /// Removes an empty directory.
    pub(crate) fn rmdir(&self, base: Node, path: &str) -> Result<(), Errno> {
        let at = self.resolve(base, path, Last::Entry)?;
        let name = at.for_rmdir().map_err(errno::from_fs)?;
        if at.node.is_some_and(|(node, kind)| kind != FileType::Directory && !self.is_only_rows(node)) {
            return Err(Errno::NOTDIR);
        }
        self.erase(&at, name, |parent| self.rows.rmdir(parent, name))
    }

    /// Renames, replacing what is there.
    pub(crate) fn rename(&self, old_base: Node, old: &str, new_base: Node, new: &str) -> Result<(), Errno> {
        let from = self.resolve(old_base, old, Last::Entry)?;
        let to = self.resolve(new_base, new, Last::Entry)?;
        let (old_name, new_name) = from.for_rename(&to).map_err(errno::from_fs)?;
        if matches!(to.node, Some((Node::Fixed(_) | Node::Descriptor(_), _))) {
            return Err(Errno::BUSY);
        }
        if self.mounts.is_some() {
            return self.rename_mounted(&from, old_name, &to, new_name);
        }
        self.rows.rename(self.row_entry(&from)?, old_name, self.row(to.parent)?, new_name).map_err(errno::from_fs)
    }

    /// Sets the permissions.
    pub(crate) fn chmod(&self, node: Node, mode: u32) -> Result<(), Errno> {
        self.rows.chmod(self.row(node)?, mode & 0o7777).map_err(errno::from_fs)
    }

    /// Sets owner and group; `u32::MAX` leaves one as it is.
    pub(crate) fn chown(&self, node: Node, uid: u32, gid: u32) -> Result<(), Errno> {
        let ino = self.row(node)?;
        let given = |id: u32| (id != u32::MAX).then_some(id);
        self.rows.chown(ino, given(uid), given(gid)).map_err(errno::from_fs)
    }

    /// Sets the times, in nanoseconds since 1970.
    pub(crate) fn set_times(&self, node: Node, atime: Option<i64>, mtime: Option<i64>) -> Result<(), Errno> {
        self.rows.set_times(self.row(node)?, atime, mtime).map_err(errno::from_fs)
    }

    /// The parent of an existing entry that is itself a row: `/bin` has a row parent but is not a row.
    pub(super) fn row_entry(&self, at: &Resolved<Node>) -> Result<u64, Errno> {
        match at.node {
            Some((Node::Row(_), _)) | None => self.row(at.parent),
            Some(_) => Err(Errno::ROFS),
        }
    }
}
