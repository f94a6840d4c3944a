//! Mounted sources as seen by one command: their rows, and the files it has met.
//!
//! Such a file is identified by a [`HostId`], which path resolution assigns name by name. The number of remembered files is
//! limited: the oldest are forgotten and met again (T-DOS-03). The results of all sources are checked here. The handling of files
//! in overlays is in `overlay.rs`.

mod table;

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use abi::stat::Stat;
use sqlite_fs::{FileType, Fs, FsError, ROOT, Rows, Transaction};

use self::table::{Known, Table};
use super::Fixed;
use super::directory::component;
use super::source::{Complaints, NAMES_MAX, Patience, Source, SourceContext, SourceFiles, SourceStat};
use crate::defaults::USER;

/// A source and its mount point.
#[derive(Clone, Debug)]
pub(crate) struct MountPoint {
    /// The source.
    pub(crate) source: Arc<dyn Source>,
    /// The absolute path in the sandbox: plain names, without a trailing slash. The root directory is the empty path.
    pub(crate) path: String,
    /// Whether it is an overlay, whose changes are rows.
    pub(crate) overlay: bool,
}

/// A file of a source that this command has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostId {
    index: u32,
    generation: u32,
}

/// Longest name, as in rows.
const NAME_MAX: usize = 255;
/// Longest target of a symbolic link, as in rows.
const TARGET_MAX: usize = 4095;
/// Deepest file below its mount point.
const DEPTH_MAX: usize = 256;
/// The first device number of mounts.
const DEVICES: u64 = 16;
/// Inode numbers of files of sources, derived from their paths.
pub(super) const HOST_INODES: u64 = 1 << 60;

/// The names of a directory.
pub(super) type Listing = Arc<Vec<(String, FileType)>>;

/// The changes of an overlay, for the history.
#[derive(Clone, Debug, Default)]
pub(crate) struct OverlayChanges {
    /// Host files and directories that were copied to rows.
    pub(crate) copied: HashSet<String>,
    /// Host paths that are hidden now.
    pub(crate) hidden: Vec<String>,
    /// Whether there are more hidden paths.
    pub(crate) is_incomplete: bool,
}

/// Maximum number of reported paths.
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
        } else {
            self.is_incomplete = true;
        }
    }
}

/// A mount of one command.
struct Mounted {
    point: MountPoint,
    row: u64,
    root: HostId,
    context: SourceContext,
    /// Opened on first use.
    files: OnceLock<Result<Box<dyn SourceFiles>, FsError>>,
}

/// The mounts of one command.
pub(super) struct Mounts {
    points: Vec<Mounted>,
    /// Rows of mount points and their parents, which must not be moved.
    pinned: HashSet<u64>,
    table: Mutex<Table>,
    pub(super) any_hidden: AtomicBool,
    pub(super) changes: Mutex<OverlayChanges>,
    pub(super) copying: Mutex<()>,
    complaints: Complaints,
}

impl Mounts {
    /// Finds the mount points; a missing one is skipped.
    pub(super) fn new<R: Rows>(points: &[MountPoint], patience: &Patience, rows: &R) -> Result<Self, FsError> {
        let mut mounts = Self {
            points: Vec::new(),
            pinned: HashSet::new(),
            table: Mutex::default(),
            any_hidden: AtomicBool::new(rows.hides_any()?),
            changes: Mutex::default(),
            copying: Mutex::default(),
            complaints: Complaints::default(),
        };
        for point in points {
            let kind = point.source.root();
            let Some(path) = rows_to(rows, &point.path, kind)? else { continue };
            let ino = path.last().copied().unwrap_or(ROOT);
            mounts.pinned.extend(path);
            let mount = mounts.points.len();
            let upper = point.overlay.then_some(ino);
            let root = mounts.table().add(Known::root(mount, kind, upper))?;
            if point.overlay {
                mounts.table().lower.insert(ino, root);
            }
            let context = SourceContext::new(patience, &point.path, &mounts.complaints);
            mounts.points.push(Mounted { point: point.clone(), row: ino, root, context, files: OnceLock::new() });
        }
        Ok(mounts)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a row must not be moved.
    pub(super) fn is_pinned(&self, ino: u64) -> bool {
        self.pinned.contains(&ino)
    }

    /// Returns the error messages of sources.
    pub(super) fn complaints(&self) -> Vec<(String, String)> {
        self.complaints.all()
    }

    /// Returns the root of a read-only source that replaces a row.
    pub(super) fn read_only_at(&self, ino: u64) -> Option<(HostId, FileType)> {
        let mounted = self.points.iter().find(|mounted| mounted.row == ino && !mounted.point.overlay)?;
        Some((mounted.root, mounted.point.source.root()))
    }

    /// Returns the number of the mount with this row as its mount point.
    pub(super) fn mount_at(&self, ino: u64) -> Option<usize> {
        self.points.iter().position(|mounted| mounted.row == ino)
    }

    /// Returns the lines of `/proc/mounts`.
    pub(super) fn lines(&self) -> String {
        let line = |point: &MountPoint| {
            let (kind, access) = if point.overlay { ("overlay", "rw") } else { (point.source.kind(), "ro") };
            let path = if point.path.is_empty() { "/" } else { &point.path };
            let path = path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('\n', "\\012");
            format!("{kind} {path} {kind} {access},relatime 0 0\n")
        };
        self.points.iter().map(|mounted| line(&mounted.point)).collect()
    }

    /// Returns the source directory that is visible through a row.
    pub(super) fn lower_of(&self, ino: u64) -> Option<HostId> {
        self.table().lower.get(&ino).copied()
    }

    /// Returns the row that replaced a file.
    pub(super) fn upper_of(&self, id: HostId) -> Option<u64> {
        self.table().get(id).ok()?.upper
    }

    /// Records that a row replaced a file, and moves its holds to it.
    pub(super) fn set_upper(&self, id: HostId, ino: u64) -> Result<u32, FsError> {
        let mut table = self.table();
        let known = table.get_mut(id)?;
        known.upper = Some(ino);
        let (kind, holds) = (known.kind, known.holds);
        if kind == FileType::Directory {
            // Never forgotten, because the row leads to it.
            known.holds += 1;
            table.lower.insert(ino, id);
        }
        Ok(holds)
    }

    /// Returns the mount of a file.
    pub(super) fn mount_of(&self, id: HostId) -> Result<usize, FsError> {
        Ok(self.table().get(id)?.mount)
    }

    /// Returns the mount point of a file.
    pub(super) fn point(&self, id: HostId) -> Result<&MountPoint, FsError> {
        let mount = self.mount_of(id)?;
        self.points.get(mount).map(|mounted| &mounted.point).ok_or(FsError::NoEntry)
    }

    // The files of the source that a file is of.
    fn files(&self, id: HostId) -> Result<&dyn SourceFiles, FsError> {
        let mounted = self.points.get(self.mount_of(id)?).ok_or(FsError::NoEntry)?;
        let open = || Arc::clone(&mounted.point.source).open(mounted.context.clone());
        mounted.files.get_or_init(open).as_deref().map_err(|error| *error)
    }

    /// Returns the row of a file's mount point.
    pub(super) fn point_row(&self, id: HostId) -> Result<u64, FsError> {
        let mount = self.mount_of(id)?;
        self.points.get(mount).map(|mounted| mounted.row).ok_or(FsError::NoEntry)
    }

    /// Returns the parent directory, unless it is the mount's root, and the name in it.
    pub(super) fn place(&self, id: HostId) -> Result<Option<(HostId, Box<str>)>, FsError> {
        let table = self.table();
        let known = table.get(id)?;
        Ok(known.parent.map(|parent| (parent, known.name.clone())))
    }

    /// Returns the type of a file.
    pub(super) fn kind(&self, id: HostId) -> Result<FileType, FsError> {
        Ok(self.table().get(id)?.kind)
    }

    /// Returns the path below the mount point, without slashes at the ends.
    pub(super) fn relative(&self, id: HostId) -> Result<Arc<str>, FsError> {
        self.table().path(id)
    }

    /// Returns the path in the sandbox.
    pub(super) fn path(&self, id: HostId) -> Result<String, FsError> {
        let relative = self.relative(id)?;
        let mount = &self.point(id)?.path;
        Ok(if relative.is_empty() { mount.clone() } else { format!("{mount}/{relative}") })
    }

    /// Keeps a file while it is open; returns the row that replaced it, if any.
    pub(super) fn hold(&self, id: HostId) -> Option<u64> {
        let mut table = self.table();
        let known = table.get_mut(id).ok()?;
        known.holds = known.holds.saturating_add(1);
        known.upper.filter(|_| known.kind != FileType::Directory)
    }

    /// Ends a [`hold`](Self::hold).
    pub(super) fn release(&self, id: HostId) -> Option<u64> {
        let mut table = self.table();
        let known = table.get_mut(id).ok()?;
        known.holds = known.holds.saturating_sub(1);
        known.upper.filter(|_| known.kind != FileType::Directory)
    }

    /// Looks a name up in a directory of a source; the caller handles names hidden by an overlay.
    pub(super) fn lookup(&self, dir: HostId, name: &str) -> Result<(HostId, FileType), FsError> {
        let name = component(name)?;
        if name.len() > NAME_MAX {
            return Err(FsError::NameTooLong);
        }
        let path = self.table().path_in(dir, name)?;
        let kind = shown(self.files(dir)?.stat(&path)?.kind)?;
        let id = self.table().meet(dir, name, kind)?;
        Ok((id, kind))
    }

    /// Returns whether a guest may search a directory of a source.
    pub(super) fn may_search(&self, dir: HostId) -> Result<(), FsError> {
        let files = self.files(dir)?;
        let is_denied = files.binds_guests() && files.stat(&self.relative(dir)?)?.mode & 0o100 == 0;
        if is_denied { Err(FsError::Access) } else { Ok(()) }
    }

    /// Returns the metadata of a file as shown in the sandbox: number, owner and links are synthetic.
    pub(super) fn stat(&self, id: HostId) -> Result<Stat, FsError> {
        let SourceStat { kind, mode, size, atime, mtime, ctime } = self.files(id)?.stat(&self.relative(id)?)?;
        let kind = shown(kind)?;
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

    /// Returns a number for a file: the same for the same path.
    pub(super) fn inode(&self, id: HostId) -> Result<u64, FsError> {
        if let Some(number) = self.table().get(id)?.inode {
            return Ok(number);
        }
        let number = self.inode_of(&self.path(id)?);
        self.table().get_mut(id)?.inode = Some(number);
        Ok(number)
    }

    /// Same as above, for a path.
    pub(super) fn inode_of(&self, path: &str) -> u64 {
        let hash = blake3::hash(path.as_bytes());
        let number = hash.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes);
        HOST_INODES | (number & (HOST_INODES - 1))
    }

    /// Returns the target of a link.
    pub(super) fn read_link(&self, id: HostId) -> Result<String, FsError> {
        let target = self.files(id)?.read_link(&self.relative(id)?)?;
        let is_target = (1..=TARGET_MAX).contains(&target.len()) && !target.contains('\0');
        if is_target { Ok(target) } else { Err(FsError::Io) }
    }

    /// Returns the content of a file that is generated for each open; `None` for other files.
    pub(super) fn generate(&self, id: HostId) -> Result<Option<Arc<[u8]>>, FsError> {
        match self.kind(id)? {
            FileType::File => self.files(id)?.generate(&self.relative(id)?),
            _ => Ok(None),
        }
    }

    // The same, as this view read it first.
    fn generated(&self, id: HostId) -> Result<Option<Arc<[u8]>>, FsError> {
        let kept = self.table().generated.iter().find(|(known, _)| *known == id).map(|(_, bytes)| Arc::clone(bytes));
        match kept {
            Some(bytes) => Ok(Some(bytes)),
            None => Ok(self.generate(id)?.inspect(|bytes| self.table().keep_generated(id, bytes))),
        }
    }

    /// Returns the size of a file that is about to be read.
    pub(super) fn size(&self, id: HostId) -> Result<u64, FsError> {
        match self.generated(id)? {
            Some(bytes) => Ok(bytes.len() as u64),
            None => Ok(self.stat(id)?.size),
        }
    }

    /// Reads from a file. A generated file keeps its first content, until another one replaces it.
    pub(super) fn read(&self, id: HostId, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        if self.kind(id)? == FileType::Directory {
            return Err(FsError::IsDirectory);
        }
        match self.generated(id)? {
            Some(bytes) => Ok(copy_from(&bytes, offset, buffer)),
            None => Ok(self.files(id)?.read(&self.relative(id)?, offset, buffer)?.min(buffer.len())),
        }
    }

    /// Returns the names of a directory; read again when a reader starts over.
    pub(super) fn listing(&self, dir: HostId, from_start: bool) -> Result<Listing, FsError> {
        if !from_start
            && let Some((id, listing)) = &self.table().listing
            && *id == dir
        {
            return Ok(Arc::clone(listing));
        }
        let mut names = self.files(dir)?.list(&self.relative(dir)?)?;
        if names.len() > NAMES_MAX {
            return Err(FsError::NoSpace);
        }
        if names.iter().any(|(name, _)| component(name).is_err() || name.len() > NAME_MAX) {
            return Err(FsError::Io);
        }
        names.retain(|(_, kind)| shown(*kind).is_ok());
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        names.dedup_by(|a, b| a.0 == b.0);
        let listing = Arc::new(names);
        self.table().listing = Some((dir, Arc::clone(&listing)));
        Ok(listing)
    }
}

/// Copies from an offset.
fn copy_from(bytes: &[u8], offset: u64, buffer: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
    let length = rest.len().min(buffer.len());
    if let (Some(to), Some(from)) = (buffer.get_mut(..length), rest.get(..length)) {
        to.copy_from_slice(from);
    }
    length
}

// A mount shows files, directories and links. Pipes and devices could be used to escape.
fn shown(kind: FileType) -> Result<FileType, FsError> {
    match kind {
        FileType::File | FileType::Directory | FileType::Symlink => Ok(kind),
        FileType::Fifo | FileType::Device => Err(FsError::NoEntry),
    }
}

// The rows on a path, none of them a link, and the last of this type; `None` if it does not exist.
fn rows_to<R: Rows>(rows: &R, path: &str, last: FileType) -> Result<Option<Vec<u64>>, FsError> {
    let mut found = Vec::new();
    let mut names = path.split('/').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        let wanted = if names.peek().is_some() { FileType::Directory } else { last };
        match rows.lookup(found.last().copied().unwrap_or(ROOT), name) {
            Ok((ino, kind)) if kind == wanted => found.push(ino),
            Ok((_, FileType::Directory)) => return Err(FsError::IsDirectory),
            Ok(_) if wanted == FileType::File => return Err(FsError::Exists),
            Ok(_) => return Err(FsError::NotDirectory),
            Err(FsError::NoEntry) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(found))
}

/// Returns whether a path can be a mount point, without links on the way.
pub(crate) fn is_mount_point<R: Rows>(point: &MountPoint, rows: &R) -> Result<bool, FsError> {
    Ok(rows_to(rows, &point.path, point.source.root())?.is_some())
}

/// Creates missing mount points.
pub(super) fn make_mount_points(points: &[MountPoint], rows: &Transaction) -> Result<(), FsError> {
    for point in points {
        if rows_to(rows, &point.path, point.source.root())?.is_none() {
            let fs = Fs::new(rows).owner(USER);
            let made = match point.source.root() {
                FileType::File => {
                    let parent = point.path.rsplit_once('/').map_or("", |(parent, _)| parent);
                    let made = if parent.is_empty() { Ok(()) } else { fs.create_dir_all(parent) };
                    made.and_then(|()| fs.write(&point.path, b""))
                }
                _ => fs.create_dir_all(&point.path),
            };
            made.map_err(|error| error.fs_error().unwrap_or(FsError::Io))?;
        }
    }
    Ok(())
}

/// Normalizes a mount point, or returns the reason it is invalid.
pub(crate) fn mount_path(path: &str) -> Result<String, &'static str> {
    if !path.starts_with('/') {
        return Err("not an absolute path");
    }
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    if names.iter().any(|name| matches!(*name, "." | "..") || name.contains('\0') || name.len() > 255) {
        return Err("it contains an invalid directory name");
    }
    match names.first() {
        None => Err("the root directory belongs to the sandbox"),
        Some(first) if Fixed::world().lookup(Fixed::ROOT, first).is_some() => Err("it is reserved for programs and devices"),
        Some(_) => Ok(format!("/{}", names.join("/"))),
    }
}
