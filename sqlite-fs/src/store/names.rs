//! Directories: names of inodes, and the operations that create, remove and move them.

use std::collections::HashMap;

use rusqlite::params;

use super::{InoMap, Store, write};
use crate::budget::entry_bytes;
use crate::error::{Fault, FsError, damaged};
use crate::node::{Entry, FileType, Ino, ROOT, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG};
use crate::rows::{self, TARGET_MAX, signed};

/// Maximum number of names of one inode, as on ext4.
const LINKS_MAX: u32 = 65_000;
/// Maximum size of a name, with its indexes and its inode.
const ENTRY_BYTES: u64 = 2048;
/// The permission that the owner needs to look names up in a directory.
pub(crate) const SEARCH: u32 = 0o100;
/// The permission that the owner needs to add, remove and change names in a directory.
const CHANGE: u32 = 0o300;

/// Cached directory data.
#[derive(Default)]
pub(super) struct Names {
    /// `None`: known not to exist.
    entries: InoMap<HashMap<Box<str>, Option<Ino>>>,
    /// The last known place of an inode; for a directory this is its place.
    places: InoMap<(Ino, Box<str>)>,
    count: usize,
}

impl Names {
    fn get(&self, dir: Ino, name: &str) -> Option<Option<Ino>> {
        self.entries.get(&dir)?.get(name).copied()
    }

    fn set(&mut self, dir: Ino, name: &str, ino: Option<Ino>) {
        let entries = self.entries.entry(dir).or_default();
        match entries.get_mut(name) {
            Some(known) => *known = ino,
            None => {
                entries.insert(name.into(), ino);
                self.count += 1;
            }
        }
        if let Some(ino) = ino {
            self.places.insert(ino, (dir, name.into()));
        }
    }

    /// Returns the last known place of an inode.
    pub(super) fn seen(&self, ino: Ino) -> Option<(Ino, &str)> {
        self.places.get(&ino).map(|(dir, name)| (*dir, &**name))
    }

    pub(super) fn forget_place(&mut self, ino: Ino) {
        self.places.remove(&ino);
        if let Some(entries) = self.entries.remove(&ino) {
            self.count -= entries.len();
        }
    }

    /// Clears the cache when it is too large, except for the places of `keep`, which no row contains.
    pub(super) fn trim<'a>(&mut self, most: usize, keep: impl Iterator<Item = &'a Ino>) {
        if self.count > most || self.places.len() > most {
            let kept = keep.filter_map(|ino| Some((*ino, self.places.remove(ino)?))).collect();
            *self = Self { places: kept, ..Self::default() };
        }
    }
}

impl Store {
    /// Returns the inode of a name, if it exists.
    pub(super) fn find(&mut self, dir: Ino, name: &str) -> Result<Option<Ino>, Fault> {
        if let Some(known) = self.names.get(dir, name) {
            return Ok(known);
        }
        self.directory(dir)?;
        if name.len() > self.quota.name {
            return Err(FsError::NameTooLong.into());
        }
        let found = rows::dentry(&self.connection, dir, name)?;
        if let Some(ino) = found {
            self.refuse_second_name(ino, dir, name)?;
        }
        self.trim_names();
        self.names.set(dir, name, found);
        Ok(found)
    }

    /// Rejects a directory that was already seen under another name, because following it could cause a cycle (T-SNAP-02).
    fn refuse_second_name(&mut self, ino: Ino, dir: Ino, name: &str) -> Result<(), Fault> {
        let elsewhere = self.names.places.get(&ino).is_some_and(|(d, n)| (*d, &**n) != (dir, name));
        if ino == ROOT || elsewhere && self.node(ino)?.stat.is_dir() {
            return Err(damaged(format!("directory {ino} has two names, one of them `{}`", name.escape_debug())).into());
        }
        Ok(())
    }

    pub(crate) fn lookup(&mut self, dir: Ino, name: &str) -> Result<(Ino, FileType), Fault> {
        self.permit(dir, SEARCH)?;
        let ino = match name {
            "" => return Err(FsError::NoEntry.into()),
            "." => self.directory(dir)?.stat.ino,
            ".." => self.parent(dir)?,
            _ => match self.find(dir, name)? {
                Some(ino) => ino,
                None => {
                    self.directory(dir)?;
                    return Err(FsError::NoEntry.into());
                }
            },
        };
        Ok((ino, self.node(ino)?.stat.file_type()))
    }

    /// Returns the place of an inode, cached or searched.
    pub(super) fn place(&mut self, ino: Ino) -> Result<Option<(Ino, String)>, Fault> {
        if let Some((dir, name)) = self.names.places.get(&ino) {
            return Ok(Some((*dir, name.to_string())));
        }
        let found = self.interrupter.reading(|| rows::place(&self.connection, ino))?;
        if let Some((dir, name)) = &found {
            self.names.places.insert(ino, (*dir, name.as_str().into()));
        }
        Ok(found)
    }

    pub(crate) fn parent(&mut self, dir: Ino) -> Result<Ino, Fault> {
        if dir == ROOT {
            return Ok(ROOT);
        }
        self.directory(dir)?;
        if let Some((parent, _)) = self.names.places.get(&dir) {
            return Ok(*parent);
        }
        Ok(self.place(dir)?.ok_or(FsError::NoEntry)?.0)
    }

    /// Returns the number of parents.
    fn depth(&mut self, mut dir: Ino) -> Result<u32, Fault> {
        let mut depth = 0;
        while dir != ROOT {
            dir = self.parent(dir)?;
            depth += 1;
            if depth > crate::Quota::DEPTH_MAX + 1 {
                break;
            }
        }
        Ok(depth)
    }

    /// Checks whether a new name may be added to a directory.
    fn check_new(&mut self, dir: Ino, name: &str) -> Result<(), Fault> {
        if name.is_empty() {
            return Err(FsError::NoEntry.into());
        }
        if name == "." || name == ".." {
            return Err(FsError::Exists.into());
        }
        if name.contains(['/', '\0']) {
            return Err(FsError::Invalid.into());
        }
        if self.directory(dir)?.stat.nlink == 0 {
            return Err(FsError::NoEntry.into());
        }
        match self.find(dir, name)? {
            Some(_) => Err(FsError::Exists.into()),
            None => {
                self.hold_memory(ENTRY_BYTES)?;
                self.room_in_log()
            }
        }
    }

    /// Returns the number of the next entry. Numbers are not reused.
    fn next_entry(&mut self) -> Result<i64, Fault> {
        match self.next_entry {
            Some(id) => Ok(id),
            None => Ok(rows::next_entry(&self.connection)?.max(self.past.head(&self.connection)?.entries)),
        }
    }

    /// Returns the next number of an entry, if one was assigned.
    pub(crate) fn next_entry_if_known(&self) -> Option<i64> {
        self.next_entry
    }

    fn add_entry(&mut self, dir: Ino, name: &str, ino: Ino, link_change: i32) -> Result<(), Fault> {
        self.journal.name(dir, name, None);
        let id = self.next_entry()?;
        write::add_name(&self.connection, &self.past, id, (dir, name), ino)?;
        self.next_entry = Some(id + 1);
        self.change_names(entry_bytes(name), 0)?;
        self.names.set(dir, name, Some(ino));
        self.touch_directory(dir, link_change)
    }

    fn remove_entry(&mut self, dir: Ino, name: &str, ino: Ino, link_change: i32) -> Result<(), Fault> {
        self.journal.name(dir, name, Some(ino));
        write::remove_name(&self.connection, &self.past, dir, name)?;
        self.change_names(0, entry_bytes(name))?;
        self.names.set(dir, name, None);
        // A file may have another name. A directory has none: while it is held, `..` leads to its former parent.
        let here = self.names.places.get(&ino).is_some_and(|(d, n)| *d == dir && **n == *name);
        if here && !self.node(ino)?.stat.is_dir() {
            self.names.places.remove(&ino);
        }
        self.touch_directory(dir, link_change)
    }

    pub(crate) fn create(&mut self, dir: Ino, name: &str, mode: u32, uid: u32, gid: u32) -> Result<Ino, Fault> {
        self.create_as(S_IFREG, dir, name, mode, (uid, gid))
    }

    pub(crate) fn mkfifo(&mut self, dir: Ino, name: &str, mode: u32, uid: u32, gid: u32) -> Result<Ino, Fault> {
        self.create_as(S_IFIFO, dir, name, mode, (uid, gid))
    }

    fn create_as(&mut self, kind: u32, dir: Ino, name: &str, mode: u32, (uid, gid): (u32, u32)) -> Result<Ino, Fault> {
        self.check_new(dir, name)?;
        self.permit(dir, CHANGE)?;
        self.check_names(entry_bytes(name), 0)?;
        let ino = self.allocate(kind | (mode & 0o7777), 1, uid, gid, 0)?;
        self.add_entry(dir, name, ino, 0)?;
        Ok(ino)
    }

    pub(crate) fn mkdir(&mut self, dir: Ino, name: &str, mode: u32, uid: u32, gid: u32) -> Result<Ino, Fault> {
        self.check_new(dir, name)?;
        self.permit(dir, CHANGE)?;
        if self.depth(dir)? >= self.quota.depth {
            return Err(FsError::NameTooLong.into());
        }
        self.check_names(entry_bytes(name), 0)?;
        let ino = self.allocate(S_IFDIR | (mode & 0o7777), 2, uid, gid, 0)?;
        self.add_entry(dir, name, ino, 1)?;
        Ok(ino)
    }

    pub(crate) fn symlink(&mut self, dir: Ino, name: &str, target: &str, uid: u32, gid: u32) -> Result<Ino, Fault> {
        if target.is_empty() {
            return Err(FsError::NoEntry.into());
        }
        if target.len() > TARGET_MAX {
            return Err(FsError::NameTooLong.into());
        }
        if target.contains('\0') {
            return Err(FsError::Invalid.into());
        }
        self.check_new(dir, name)?;
        self.permit(dir, CHANGE)?;
        self.check_names(entry_bytes(name).saturating_add(target.len() as u64), 0)?;
        let ino = self.allocate(S_IFLNK | 0o777, 1, uid, gid, target.len() as u64)?;
        write::add_target(&self.connection, &self.past, ino, target)?;
        self.change_names(target.len() as u64, 0)?;
        self.add_entry(dir, name, ino, 0)?;
        Ok(ino)
    }

    pub(crate) fn readlink(&mut self, ino: Ino) -> Result<String, Fault> {
        if self.node(ino)?.stat.file_type() != FileType::Symlink {
            return Err(FsError::Invalid.into());
        }
        Ok(rows::target(&self.connection, ino)?.ok_or(FsError::Io)?)
    }

    pub(crate) fn link(&mut self, ino: Ino, dir: Ino, name: &str) -> Result<(), Fault> {
        self.check_new(dir, name)?;
        self.permit(dir, CHANGE)?;
        let now = self.now();
        let node = self.node(ino)?;
        if node.stat.is_dir() {
            return Err(FsError::NotPermitted.into());
        }
        if node.stat.nlink == 0 {
            return Err(FsError::NoEntry.into());
        }
        if node.stat.nlink >= LINKS_MAX {
            return Err(FsError::TooManyLinks.into());
        }
        self.check_names(entry_bytes(name), 0)?;
        self.journal.linked();
        let node = self.node_to_change(ino)?;
        node.stat.nlink += 1;
        node.stat.ctime = now;
        self.add_entry(dir, name, ino, 0)
    }

    pub(crate) fn unlink(&mut self, dir: Ino, name: &str) -> Result<(), Fault> {
        let (ino, kind) = self.lookup(dir, name)?;
        self.permit(dir, CHANGE)?;
        if kind == FileType::Directory {
            return Err(FsError::IsDirectory.into());
        }
        self.empty_before_removal(ino)?;
        self.remove_entry(dir, name, ino, 0)?;
        self.drop_link(ino)
    }

    pub(crate) fn rmdir(&mut self, dir: Ino, name: &str) -> Result<(), Fault> {
        match name {
            "." => return Err(FsError::Invalid.into()),
            ".." => return Err(FsError::NotEmpty.into()),
            _ => {}
        }
        let (ino, kind) = self.lookup(dir, name)?;
        self.permit(dir, CHANGE)?;
        if kind != FileType::Directory {
            return Err(FsError::NotDirectory.into());
        }
        if rows::has_entries(&self.connection, ino)? {
            return Err(FsError::NotEmpty.into());
        }
        self.remove_entry(dir, name, ino, -1)?;
        self.drop_link(ino)
    }

    /// Returns whether `dir` is `top` or below it.
    fn is_below(&mut self, mut dir: Ino, top: Ino) -> Result<bool, Fault> {
        for _ in 0..=crate::Quota::DEPTH_MAX + 1 {
            if dir == top {
                return Ok(true);
            }
            if dir == ROOT {
                return Ok(false);
            }
            dir = self.parent(dir)?;
        }
        Ok(true)
    }

    pub(crate) fn rename(&mut self, old_dir: Ino, old: &str, new_dir: Ino, new: &str) -> Result<(), Fault> {
        if [old, new].iter().any(|name| matches!(*name, "." | "..")) {
            return Err(FsError::Busy.into());
        }
        let (ino, kind) = self.lookup(old_dir, old)?;
        let target = match self.check_new(new_dir, new) {
            Ok(()) => None,
            Err(Fault::Fs(FsError::Exists)) => self.find(new_dir, new)?,
            Err(fault) => return Err(fault),
        };
        let is_dir = kind == FileType::Directory;
        if is_dir && self.is_below(new_dir, ino)? {
            return Err(FsError::Invalid.into());
        }
        if target == Some(ino) {
            return Ok(());
        }
        let target_is_dir = target.map(|target| Ok::<_, Fault>(self.node(target)?.stat.is_dir())).transpose()?;
        if let (Some(target), Some(true)) = (target, target_is_dir)
            && self.is_below(old_dir, target)?
        {
            return Err(FsError::NotEmpty.into());
        }
        self.permit(old_dir, CHANGE)?;
        self.permit(new_dir, CHANGE)?;
        match (is_dir, target_is_dir) {
            (true, Some(false)) => return Err(FsError::NotDirectory.into()),
            (false, Some(true)) => return Err(FsError::IsDirectory.into()),
            _ => {}
        }
        if is_dir && old_dir != new_dir {
            // Its `..` changes.
            self.permit(ino, 0o200)?;
        }
        if let (Some(target), Some(true)) = (target, target_is_dir)
            && rows::has_entries(&self.connection, target)?
        {
            return Err(FsError::NotEmpty.into());
        }
        if is_dir && old_dir != new_dir {
            self.check_depth_of_move(ino, old_dir, new_dir)?;
        }
        let replaced = if target.is_some() { entry_bytes(new) } else { 0 };
        self.check_names(entry_bytes(new), entry_bytes(old).saturating_add(replaced))?;
        if let Some(target) = target {
            self.empty_before_removal(target)?;
            self.remove_entry(new_dir, new, target, if is_dir { -1 } else { 0 })?;
            self.drop_link(target)?;
        }
        self.journal.name(old_dir, old, Some(ino));
        self.journal.name(new_dir, new, None);
        write::move_name(&self.connection, &self.past, (old_dir, old), (new_dir, new))?;
        self.change_names(entry_bytes(new), entry_bytes(old))?;
        self.names.set(old_dir, old, None);
        self.names.set(new_dir, new, Some(ino));
        self.touch_directory(old_dir, if is_dir { -1 } else { 0 })?;
        self.touch_directory(new_dir, if is_dir { 1 } else { 0 })?;
        let now = self.now();
        self.node_to_change(ino)?.stat.ctime = now;
        Ok(())
    }

    /// Checks that a moved tree does not exceed the maximum depth.
    fn check_depth_of_move(&mut self, ino: Ino, old_dir: Ino, new_dir: Ino) -> Result<(), Fault> {
        let depth = self.depth(new_dir)?;
        if depth <= self.depth(old_dir)? {
            return Ok(());
        }
        let room = i64::from(self.quota.depth) - i64::from(depth);
        self.flush_nodes()?;
        let connection = &self.connection;
        let deeper = self.interrupter.reading(|| {
            connection
                .prepare_cached(
                    "WITH RECURSIVE below(ino, height) AS (SELECT ?1, 1 UNION
                       SELECT d.ino, height+1 FROM below JOIN fs_dentry d ON d.parent_ino=below.ino
                       JOIN fs_inode i ON i.ino=d.ino AND (i.mode & 61440)=16384 WHERE height<=?2)
                     SELECT 1 FROM below WHERE height>?2 LIMIT 1",
                )?
                .exists(params![signed(ino), room])
        })?;
        if deeper { Err(FsError::NameTooLong.into()) } else { Ok(()) }
    }

    pub(crate) fn readdir(&mut self, dir: Ino, cookie: u64, limit: usize) -> Result<Vec<Entry>, Fault> {
        self.directory(dir)?;
        self.accessed(dir)?;
        // Data that is not written back yet is in memory.
        let kind_of = |ino| self.nodes.get(&ino).map_or(FileType::File, |node| node.stat.file_type());
        Ok(rows::entries(&self.connection, dir, cookie, limit, kind_of)?)
    }
}
