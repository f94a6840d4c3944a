//! Mounted host directories as one command sees them: which rows they are at, and the host files it has met.
//!
//! A host file is known by a [`HostId`], which the walk of a path gives out name by name. How many are remembered, and how
//! many descriptors are kept, is bounded: the oldest are forgotten and met again (T-DOS-03, T-DOS-11). What an overlay
//! does with them is in `overlay.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abi::stat::Stat;
use cap_std::fs::{Dir, File};
use sqlite_fs::{FileType, Fs, FsError, ROOT, Rows, Transaction};

use super::Fixed;
use super::directory::{HostDirectory, HostStat};
use crate::defaults::USER;

/// A host directory and where it is to be seen.
#[derive(Clone, Debug)]
pub(crate) struct MountPoint {
    /// The directory.
    pub(crate) directory: Arc<HostDirectory>,
    /// The absolute path in the sandbox: plain names, no slash at the end.
    pub(crate) path: String,
    /// Whether it can be changed, the changes being rows.
    pub(crate) overlay: bool,
}

/// A host file that this command has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostId {
    index: u32,
    generation: u32,
}

/// Host files that are remembered at a time.
const NODES_MAX: usize = 65_536;
/// Descriptors of the host that a command keeps, for directories and for files each.
const DESCRIPTORS_MAX: usize = 8;
/// Deepest host file below its mount point.
const DEPTH_MAX: usize = 256;
/// Device numbers of mounts start here.
const DEVICES: u64 = 16;
/// Inode numbers of host files: made up from their paths.
pub(super) const HOST_INODES: u64 = 1 << 60;

#[derive(Debug)]
struct Known {
    mount: usize,
    parent: Option<HostId>,
    name: Box<str>,
    kind: FileType,
    children: u32,
    holds: u32,
    used: u64,
    /// The row that took its place: a directory that has rows beside it, or a file that was changed.
    upper: Option<u64>,
}

#[derive(Debug, Default)]
struct Table {
    slots: Vec<(u32, Option<Known>)>,
    free: Vec<u32>,
    names: HashMap<(u32, Box<str>), HostId>,
    /// Rows of directories -> the host directory that shows through.
    lower: HashMap<u64, HostId>,
    directories: Vec<(HostId, Arc<Dir>)>,
    files: Vec<(HostId, Arc<File>)>,
    listing: Option<(HostId, Listing)>,
    clock: u64,
}

/// The names of a host directory.
pub(super) type Listing = Arc<Vec<(String, FileType)>>;

/// What an overlay did, for the history.
#[derive(Clone, Debug, Default)]
pub(crate) struct OverlayChanges {
    /// Host files and directories that are rows now.
    pub(crate) copied: HashSet<String>,
    /// Host paths that are hidden now.
    pub(crate) hidden: Vec<String>,
}

/// Paths that are told at most.
const CHANGES_MAX: usize = 10_000;

impl OverlayChanges {
    pub(super) fn note_copied(&mut self, path: String) {
        if self.copied.len() < CHANGES_MAX {
            self.copied.insert(path);
        }
    }

    pub(super) fn note_hidden(&mut self, path: String) {
        if self.hidden.len() < CHANGES_MAX {
            self.hidden.push(path);
        }
    }
}

/// The mounts of one command.
#[derive(Debug)]
pub(super) struct Mounts {
    points: Vec<(MountPoint, u64, HostId)>,
    /// Rows of mount points and of the directories above them: they stay where they are.
    pinned: HashSet<u64>,
    table: Mutex<Table>,
    pub(super) any_hidden: AtomicBool,
    pub(super) changes: Mutex<OverlayChanges>,
    pub(super) copying: Mutex<()>,
}

impl Mounts {
    /// Finds the mount points; one that is not there is left out.
    pub(super) fn new<R: Rows>(points: &[MountPoint], rows: &R) -> Result<Self, FsError> {
        let mut mounts = Self {
            points: Vec::new(),
            pinned: HashSet::new(),
            table: Mutex::default(),
            any_hidden: AtomicBool::new(rows.hides_any()?),
            changes: Mutex::default(),
            copying: Mutex::default(),
        };
        for point in points {
            let Some(path) = rows_to(rows, &point.path)? else { continue };
            let ino = path.last().copied().unwrap_or(ROOT);
            mounts.pinned.extend(path);
            let mount = mounts.points.len();
            let upper = point.overlay.then_some(ino);
            let root = mounts.table().add(Known {
                mount,
                parent: None,
                name: "".into(),
                kind: FileType::Directory,
                children: 0,
                holds: 1,
                used: 0,
                upper,
            })?;
            if point.overlay {
                mounts.table().lower.insert(ino, root);
            }
            mounts.points.push((point.clone(), ino, root));
        }
        Ok(mounts)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a row must stay where it is.
    pub(super) fn is_pinned(&self, ino: u64) -> bool {
        self.pinned.contains(&ino)
    }

    /// The host directory that stands in a row's place: a mount point that is for reading only.
    pub(super) fn read_only_at(&self, ino: u64) -> Option<HostId> {
        self.points.iter().find(|(point, at, _)| *at == ino && !point.overlay).map(|(_, _, root)| *root)
    }

    /// The number of the mount whose mount point is this row.
    pub(super) fn mount_at(&self, ino: u64) -> Option<usize> {
        self.points.iter().position(|(_, at, _)| *at == ino)
    }

    /// The lines of `/proc/mounts`.
    pub(super) fn lines(&self) -> String {
        let line = |point: &MountPoint| {
            let (kind, access) = if point.overlay { ("overlay", "rw") } else { ("host", "ro") };
            let path = point.path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('\n', "\\012");
            format!("{kind} {path} {kind} {access},relatime 0 0\n")
        };
        self.points.iter().map(|(point, _, _)| line(point)).collect()
    }

    /// The host directory that shows through a row.
    pub(super) fn lower_of(&self, ino: u64) -> Option<HostId> {
        self.table().lower.get(&ino).copied()
    }

    /// The row that took a host file's place.
    pub(super) fn upper_of(&self, id: HostId) -> Option<u64> {
        self.table().get(id).ok()?.upper
    }

    /// Notes that a row took a host file's place, with the holds that go over to it.
    pub(super) fn set_upper(&self, id: HostId, ino: u64) -> Result<u32, FsError> {
        let mut table = self.table();
        let known = table.get_mut(id)?;
        known.upper = Some(ino);
        let (kind, holds) = (known.kind, known.holds);
        if kind == FileType::Directory {
            // Kept for good: the row leads to it.
            known.holds += 1;
            table.lower.insert(ino, id);
        }
        Ok(holds)
    }

    /// The mount a host file is in.
    pub(super) fn mount_of(&self, id: HostId) -> Result<usize, FsError> {
        Ok(self.table().get(id)?.mount)
    }

    /// The mount point of a host file.
    pub(super) fn point(&self, id: HostId) -> Result<&MountPoint, FsError> {
        let mount = self.mount_of(id)?;
        self.points.get(mount).map(|(point, _, _)| point).ok_or(FsError::NoEntry)
    }

    /// The row of the mount point of a host file.
    pub(super) fn point_row(&self, id: HostId) -> Result<u64, FsError> {
        let mount = self.mount_of(id)?;
        self.points.get(mount).map(|(_, ino, _)| *ino).ok_or(FsError::NoEntry)
    }

    /// The directory above, unless it is the mount's own, and the name in it.
    pub(super) fn place(&self, id: HostId) -> Result<Option<(HostId, Box<str>)>, FsError> {
        let table = self.table();
        let known = table.get(id)?;
        Ok(known.parent.map(|parent| (parent, known.name.clone())))
    }

    /// What a host file is.
    pub(super) fn kind(&self, id: HostId) -> Result<FileType, FsError> {
        Ok(self.table().get(id)?.kind)
    }

    /// The path below the mount point, without a slash at either end.
    pub(super) fn relative(&self, id: HostId) -> Result<String, FsError> {
        let table = self.table();
        let mut names = Vec::new();
        let mut known = table.get(id)?;
        while let Some(parent) = known.parent {
            names.push(&*known.name);
            known = table.get(parent)?;
            if names.len() > DEPTH_MAX {
                return Err(FsError::NameTooLong);
            }
        }
        names.reverse();
        Ok(names.join("/"))
    }

    /// The path in the sandbox.
    pub(super) fn path(&self, id: HostId) -> Result<String, FsError> {
        let relative = self.relative(id)?;
        let mount = &self.point(id)?.path;
        Ok(if relative.is_empty() { mount.clone() } else { format!("{mount}/{relative}") })
    }

    /// Keeps a host file known while it is open; answers the row that took its place, if one did.
    pub(super) fn hold(&self, id: HostId) -> Option<u64> {
        let mut table = self.table();
        let known = table.get_mut(id).ok()?;
        known.holds = known.holds.saturating_add(1);
        known.upper.filter(|_| known.kind != FileType::Directory)
    }

    /// The end of a [`hold`](Self::hold).
    pub(super) fn release(&self, id: HostId) -> Option<u64> {
        let mut table = self.table();
        let known = table.get_mut(id).ok()?;
        known.holds = known.holds.saturating_sub(1);
        known.upper.filter(|_| known.kind != FileType::Directory)
    }

    fn directory_of(&self, id: HostId) -> Result<Arc<HostDirectory>, FsError> {
        Ok(Arc::clone(&self.point(id)?.directory))
    }

    /// Looks a name up in a host directory; what an overlay hides is the caller's to know.
    pub(super) fn lookup(&self, dir: HostId, name: &str) -> Result<(HostId, FileType), FsError> {
        let host = self.directory_of(dir)?;
        if host.hides(&self.relative(dir)?, name) {
            return Err(FsError::NoEntry);
        }
        let stat = self.in_directory(dir, |host, dir| host.stat(dir, name))?;
        let id = self.table().meet(dir, name, stat.kind)?;
        Ok((id, stat.kind))
    }

    // Runs something in a host directory, through a descriptor that is kept for the next time.
    fn in_directory<T>(&self, dir: HostId, work: impl FnOnce(&HostDirectory, &Dir) -> Result<T, FsError>) -> Result<T, FsError> {
        let host = self.directory_of(dir)?;
        let mut below = Vec::new();
        let mut at = dir;
        let mut found: Option<Arc<Dir>> = None;
        loop {
            let known = self.table().kept_directory(at);
            if known.is_some() {
                found = known;
                break;
            }
            let Some((parent, name)) = self.place(at)? else { break };
            below.push((at, name));
            at = parent;
            if below.len() > DEPTH_MAX {
                return Err(FsError::NameTooLong);
            }
        }
        for (id, name) in below.into_iter().rev() {
            let parent = found.as_deref().unwrap_or(host.root());
            let entered = Arc::new(host.enter(parent, &name)?);
            self.table().keep_directory(id, &entered);
            found = Some(entered);
        }
        work(&host, found.as_deref().unwrap_or(host.root()))
    }

    fn host_stat(&self, id: HostId) -> Result<HostStat, FsError> {
        match self.place(id)? {
            Some((parent, name)) => self.in_directory(parent, |host, dir| host.stat(dir, &name)),
            None => self.directory_of(id)?.stat_root(),
        }
    }

    /// The metadata of a host file, as the sandbox shows it: number, owner and links are made up.
    pub(super) fn stat(&self, id: HostId) -> Result<Stat, FsError> {
        let HostStat { kind, mode, size, atime, mtime, ctime } = self.host_stat(id)?;
        Ok(Stat {
            dev: DEVICES + self.mount_of(id)? as u64,
            ino: self.inode(id)?,
            mode: kind.bits() | if kind == FileType::Symlink { 0o777 } else { mode },
            nlink: 1,
            uid: USER.uid,
            gid: USER.gid,
            rdev: 0,
            size,
            atime,
            mtime,
            ctime,
        })
    }

    /// A number for a host file: the same for the same path.
    pub(super) fn inode(&self, id: HostId) -> Result<u64, FsError> {
        Ok(self.inode_of(&self.path(id)?))
    }

    /// The same for a name in a host directory.
    pub(super) fn inode_of(&self, path: &str) -> u64 {
        let hash = blake3::hash(path.as_bytes());
        let number = hash.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes);
        HOST_INODES | (number & (HOST_INODES - 1))
    }

    /// The target of a host link.
    pub(super) fn read_link(&self, id: HostId) -> Result<String, FsError> {
        let Some((parent, name)) = self.place(id)? else { return Err(FsError::Invalid) };
        self.in_directory(parent, |host, dir| host.read_link(dir, &name))
    }

    /// Reads from a host file.
    pub(super) fn read(&self, id: HostId, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        let kept = self.table().kept_file(id);
        let file = match kept {
            Some(file) => file,
            None => {
                let Some((parent, name)) = self.place(id)? else { return Err(FsError::IsDirectory) };
                let file = Arc::new(self.in_directory(parent, |host, dir| host.open_file(dir, &name))?);
                self.table().keep_file(id, &file);
                file
            }
        };
        super::directory::read_at(&file, offset, buffer)
    }

    /// The names of a host directory; read again when a reader starts over.
    pub(super) fn listing(&self, dir: HostId, from_start: bool) -> Result<Listing, FsError> {
        if !from_start
            && let Some((id, listing)) = &self.table().listing
            && *id == dir
        {
            return Ok(Arc::clone(listing));
        }
        let relative = self.relative(dir)?;
        let listing = Arc::new(self.in_directory(dir, |host, dir| host.list(dir, &relative))?);
        self.table().listing = Some((dir, Arc::clone(&listing)));
        Ok(listing)
    }
}

impl Table {
    fn get(&self, id: HostId) -> Result<&Known, FsError> {
        match self.slots.get(id.index as usize) {
            Some((generation, Some(known))) if *generation == id.generation => Ok(known),
            _ => Err(FsError::NoEntry),
        }
    }

    fn get_mut(&mut self, id: HostId) -> Result<&mut Known, FsError> {
        match self.slots.get_mut(id.index as usize) {
            Some((generation, Some(known))) if *generation == id.generation => Ok(known),
            _ => Err(FsError::NoEntry),
        }
    }

    /// The id of a name, new or known.
    fn meet(&mut self, dir: HostId, name: &str, kind: FileType) -> Result<HostId, FsError> {
        self.clock += 1;
        let used = self.clock;
        let key = (dir.index, Box::from(name));
        if let Some(&id) = self.names.get(&key)
            && let Ok(known) = self.get_mut(id)
        {
            if known.kind == kind || known.upper.is_some() {
                known.used = used;
                return Ok(id);
            }
            // The host has put something else there.
            known.kind = kind;
            known.used = used;
            self.files.retain(|(kept, _)| *kept != id);
            self.directories.retain(|(kept, _)| *kept != id);
            return Ok(id);
        }
        let mount = self.get(dir)?.mount;
        let id =
            self.add(Known { mount, parent: Some(dir), name: name.into(), kind, children: 0, holds: 0, used, upper: None })?;
        self.get_mut(dir)?.children += 1;
        self.names.insert(key, id);
        Ok(id)
    }

    fn add(&mut self, known: Known) -> Result<HostId, FsError> {
        if self.slots.len() - self.free.len() >= NODES_MAX {
            self.forget_oldest();
        }
        if let Some(index) = self.free.pop() {
            let Some(slot) = self.slots.get_mut(index as usize) else { return Err(FsError::Io) };
            slot.0 = slot.0.wrapping_add(1);
            slot.1 = Some(known);
            return Ok(HostId { index, generation: slot.0 });
        }
        if self.slots.len() >= NODES_MAX {
            return Err(FsError::NoSpace);
        }
        self.slots.push((0, Some(known)));
        Ok(HostId { index: u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX), generation: 0 })
    }

    // Forgets the older half of what is neither open nor on the way to something that is known.
    fn forget_oldest(&mut self) {
        let newest = self.clock.saturating_sub(NODES_MAX as u64 / 2);
        // Leaves first: each round frees directories for the next.
        for _ in 0..DEPTH_MAX {
            let mut forgotten = Vec::new();
            for (index, (_, slot)) in self.slots.iter().enumerate() {
                if let Some(known) = slot
                    && known.children == 0
                    && known.holds == 0
                    && known.used < newest
                    && known.parent.is_some()
                {
                    forgotten.push(index);
                }
            }
            if forgotten.is_empty() {
                return;
            }
            for index in forgotten {
                let Some(known) = self.slots.get_mut(index).and_then(|slot| slot.1.take()) else { continue };
                if let Some(parent) = known.parent {
                    self.names.remove(&(parent.index, known.name));
                    if let Ok(parent) = self.get_mut(parent) {
                        parent.children = parent.children.saturating_sub(1);
                    }
                }
                self.free.push(u32::try_from(index).unwrap_or(u32::MAX));
            }
        }
    }

    fn kept_directory(&mut self, id: HostId) -> Option<Arc<Dir>> {
        kept(&mut self.directories, id)
    }

    fn keep_directory(&mut self, id: HostId, directory: &Arc<Dir>) {
        keep(&mut self.directories, id, directory);
    }

    fn kept_file(&mut self, id: HostId) -> Option<Arc<File>> {
        kept(&mut self.files, id)
    }

    fn keep_file(&mut self, id: HostId, file: &Arc<File>) {
        keep(&mut self.files, id, file);
    }
}

// The last used is at the end.
fn kept<T>(list: &mut Vec<(HostId, Arc<T>)>, id: HostId) -> Option<Arc<T>> {
    let at = list.iter().position(|(known, _)| *known == id)?;
    let entry = list.remove(at);
    let open = Arc::clone(&entry.1);
    list.push(entry);
    Some(open)
}

fn keep<T>(list: &mut Vec<(HostId, Arc<T>)>, id: HostId, open: &Arc<T>) {
    if list.len() >= DESCRIPTORS_MAX {
        list.remove(0);
    }
    list.push((id, Arc::clone(open)));
}

// The rows of the directories that a path leads through, none of them a link; `None` if it leads nowhere.
fn rows_to<R: Rows>(rows: &R, path: &str) -> Result<Option<Vec<u64>>, FsError> {
    let mut found = Vec::new();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        match rows.lookup(found.last().copied().unwrap_or(ROOT), name) {
            Ok((ino, FileType::Directory)) => found.push(ino),
            Ok(_) => return Err(FsError::NotDirectory),
            Err(FsError::NoEntry) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(found))
}

/// Whether there is a directory at a path that no link leads to.
pub(crate) fn is_mount_point<R: Rows>(path: &str, rows: &R) -> Result<bool, FsError> {
    Ok(rows_to(rows, path)?.is_some())
}

/// Makes the directories that mounts are at, where there are none.
pub(super) fn make_mount_points(points: &[MountPoint], rows: &Transaction) -> Result<(), FsError> {
    for point in points {
        if rows_to(rows, &point.path)?.is_none() {
            Fs::new(rows).owner(USER).create_dir_all(&point.path).map_err(|error| error.fs_error().unwrap_or(FsError::Io))?;
        }
    }
    Ok(())
}

/// A guest path as a mount point has it, or why it cannot be one.
pub(crate) fn mount_path(path: &str) -> Result<String, &'static str> {
    if !path.starts_with('/') {
        return Err("it is not absolute");
    }
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    if names.iter().any(|name| matches!(*name, "." | "..") || name.contains('\0') || name.len() > 255) {
        return Err("it has a name that cannot be a directory's");
    }
    match names.first() {
        None => Err("the root directory is the sandbox's own"),
        Some(first) if Fixed::world().lookup(Fixed::ROOT, first).is_some() => Err("programs and devices are there"),
        Some(_) => Ok(format!("/{}", names.join("/"))),
    }
}
