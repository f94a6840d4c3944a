//! A tree that is lent to a host command: copied into a private directory, and changes are copied back.
//!
//! The resulting directory is untrusted (T-BRG-02). It is examined after all processes of the command have ended, from an open
//! directory and name by name; no link is followed, and only files, directories and links are copied. Everything is measured
//! before the first change is made.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, MetadataExt};
use presets::Limits;
use sqlite_fs::path::Tree as _;
use sqlite_fs::{FileType, FsError, Step, Transaction, Volume as _};

use super::View;
use super::directory::{HostDirectory, component, read_at};
use super::source::path_in;
use super::tree::{Target, unread, visit_onto};
use crate::Error;

/// Number of bytes copied at once.
const PIECE: usize = 256 << 10;

/// Maximum number of listed skipped names, and of listed errors.
const SKIPPED_MAX: usize = 100;

/// The message for a tree that is lent or returned.
const TOO_LARGE: &str = "the tree is larger than the sandbox allows";

/// The lent tree.
pub(crate) struct Lent {
    guest: String,
    nodes: BTreeMap<String, Seen>,
}

/// The result of copying changes back.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    /// Written files, directories and links.
    pub(crate) written: u64,
    /// Removed paths.
    pub(crate) removed: u64,
    /// Skipped paths: devices, pipes, sockets, names that are not UTF-8.
    pub(crate) skipped: Vec<String>,
    /// The errors of changes that the view does not allow: each of the others is made.
    pub(crate) refused: Vec<String>,
}

impl Returned {
    // Counts a change, or notes that it is not allowed; other errors end the call.
    fn note(&mut self, made: Result<(), Error>, count: impl FnOnce(&mut Self)) -> Result<(), Error> {
        match made {
            Ok(()) => count(self),
            Err(error) if error.fs_error().is_some_and(is_refusal) => {
                if self.refused.len() < SKIPPED_MAX {
                    self.refused.push(error.causes().join(": "));
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

// Also what is below a path that was refused, or is in the way of one.
fn is_refusal(error: FsError) -> bool {
    use FsError::{Access, CrossDevice, Exists, IsDirectory, NoEntry, NotDirectory, NotEmpty, NotPermitted, ReadOnly};
    let in_the_way = matches!(error, Exists | IsDirectory | NoEntry | NotDirectory | NotEmpty);
    in_the_way || matches!(error, Access | CrossDevice | NotPermitted | ReadOnly)
}

/// The host's attributes of a file. Every change sets its ctime, which a program cannot forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    kind: FileType,
    mode: u32,
    size: u64,
    mtime: i64,
    ctime: i64,
    inode: u64,
}

impl Lent {
    /// Copies the content of a directory of the sandbox to a new host directory, for another owner if one is named. A mounted
    /// directory can be larger than any sandbox, so everything is measured before it is copied.
    pub(crate) fn lend(
        view: &View<Transaction>,
        (guest, host): (&str, &Path),
        limits: &Limits,
        owner: Option<u32>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let (mut bytes, mut count) = (0u64, 0u64);
        let target = Target::open(host)?;
        give(&target.descend("")?, ".", owner).map_err(|source| target.failed("", source))?;
        visit_onto(view, guest, &target, |found, place| {
            let failed = |source| place.failed(source);
            let size = if found.kind == FileType::File { view.stat(found.node).map_or(0, |stat| stat.size) } else { 0 };
            (bytes, count) = (bytes.saturating_add(size), count + 1);
            if size > limits.file.0 || bytes > limits.disk.0 || count > limits.inodes {
                return Err(damaged(TOO_LARGE));
            }
            if is_over() {
                return Err(sqlite_fs::Error::Interrupted.into());
            }
            match found.kind {
                FileType::Directory => {
                    place.dir.create_dir_with(place.name, DirBuilder::new().mode(0o700)).map_err(failed)?;
                }
                // Nothing outside the tree exists for a link to lead to: see `programs/bridge/jail.rs`.
                FileType::Symlink => {
                    let link = view.readlink(found.node).map_err(|error| unread(found.path, error))?;
                    place.dir.symlink_contents(&link, place.name).map_err(failed)?;
                }
                FileType::File => {
                    // The size of a generated file is unknown until it is read.
                    bytes = bytes.saturating_add(place.fill(view, found)?.saturating_sub(size));
                }
                FileType::Fifo | FileType::Device => return Ok(Step::Enter),
            }
            give(place.dir, place.name, owner).map_err(failed)?;
            Ok(Step::Enter)
        })?;
        let (nodes, _) = look(&open(host)?, limits)?;
        Ok(Self { guest: guest.to_owned(), nodes })
    }

    /// Copies the changes back, as part of the run.
    pub(crate) fn take_back(&self, view: &View<Transaction>, host: &Path, limits: &Limits) -> Result<Returned, Error> {
        let host = open(host)?;
        let (now, skipped) = look(&host, limits)?;
        let mut returned = Returned { skipped, ..Returned::default() };
        let at = |path: &str| format!("{}/{path}", self.guest.trim_end_matches('/'));
        for (path, seen) in self.nodes.iter().rev() {
            if now.get(path).is_none_or(|new| new.kind != seen.kind) {
                returned.note(remove(view, &at(path), seen.kind), |returned| returned.removed += 1)?;
            }
        }
        for (path, seen) in &now {
            let old = self.nodes.get(path).filter(|old| old.kind == seen.kind);
            let is_same = old.is_some_and(|old| old == seen || seen.kind == FileType::Directory);
            if !is_same {
                returned.note(put(view, &host, path, &at(path), *seen), |returned| returned.written += 1)?;
            }
        }
        Ok(returned)
    }
}

/// Returns the number of bytes below a host directory, counted only until it exceeds `most`.
pub(crate) fn bytes_below(host: &Path, most: u64, files: u64) -> u64 {
    let Ok(host) = open(host) else { return 0 };
    let (mut left, mut bytes, mut count) = (vec![String::new()], 0u64, 0u64);
    while let Some(directory) = left.pop() {
        let Ok(dir) = host.descend(&directory) else { continue };
        for (name, kind) in host.list_all(&dir, &directory).unwrap_or_default() {
            count += 1;
            if bytes > most || count > files {
                return u64::MAX;
            }
            match kind {
                Some(FileType::Directory) => left.push(path_in(&directory, &name)),
                Some(FileType::File) => bytes += dir.symlink_metadata(&name).map_or(0, |metadata| metadata.len()),
                _ => {}
            }
        }
    }
    bytes
}

// The directory is our own, whatever its name.
fn open(host: &Path) -> Result<HostDirectory, Error> {
    HostDirectory::open(host, true).map_err(|_| damaged("cannot open the lent directory"))
}

fn damaged(what: &str) -> Error {
    Error::Invalid(what.to_owned())
}

fn give(dir: &Dir, name: &str, owner: Option<u32>) -> io::Result<()> {
    let Some(owner) = owner else { return Ok(()) };
    let (user, group) = (rustix::fs::Uid::from_raw(owner), rustix::fs::Gid::from_raw(owner));
    Ok(rustix::fs::chownat(dir, name, Some(user), Some(group), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?)
}

// Grants us read access to paths that the command has closed. All its processes have ended, so the name is still what it was: not
// a link.
fn unlock(dir: &Dir, name: &str, seen: &Seen) -> io::Result<()> {
    let needed = if seen.kind == FileType::Directory { 0o700 } else { 0o400 };
    if seen.kind == FileType::Symlink || seen.mode & needed == needed {
        return Ok(());
    }
    let mode = rustix::fs::Mode::from_raw_mode(seen.mode | needed);
    Ok(rustix::fs::chmodat(dir, name, mode, rustix::fs::AtFlags::empty())?)
}

// Everything in the directory, and what is neither a file nor a directory nor a link.
fn look(host: &HostDirectory, limits: &Limits) -> Result<(BTreeMap<String, Seen>, Vec<String>), Error> {
    let (mut nodes, mut skipped, mut bytes) = (BTreeMap::new(), Vec::new(), 0u64);
    let mut left = vec![String::new()];
    while let Some(directory) = left.pop() {
        let failed = |source: FsError| unread(&directory, source);
        let dir = host.descend(&directory).map_err(failed)?;
        for (name, kind) in host.list_all(&dir, &directory).map_err(failed)? {
            let path = path_in(&directory, &name);
            let seen = kind.and_then(|kind| seen(&dir, &name, kind));
            let Some(seen) = seen else {
                if skipped.len() < SKIPPED_MAX {
                    skipped.push(path);
                }
                continue;
            };
            unlock(&dir, &name, &seen).map_err(|_| unread(&path, FsError::Access))?;
            if seen.kind == FileType::Directory {
                left.push(path.clone());
            }
            if seen.kind == FileType::File {
                bytes = bytes.saturating_add(seen.size);
            }
            if seen.size > limits.file.0 || bytes > limits.disk.0 || nodes.len() as u64 >= limits.inodes {
                return Err(damaged(TOO_LARGE));
            }
            nodes.insert(path, seen);
        }
    }
    Ok((nodes, skipped))
}

fn seen(dir: &Dir, name: &str, kind: FileType) -> Option<Seen> {
    let metadata = dir.symlink_metadata(component(name).ok()?).ok()?;
    let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Some(Seen {
        kind,
        // Without the set-user-ID and set-group-ID bits.
        mode: metadata.mode() & 0o777,
        size: if kind == FileType::File { metadata.len() } else { 0 },
        mtime: nanos(metadata.mtime(), metadata.mtime_nsec()),
        ctime: nanos(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    })
}

// Changes that a program of the sandbox has made to the tree meanwhile remain.
fn remove(view: &View<Transaction>, path: &str, kind: FileType) -> Result<(), Error> {
    let removed = match kind {
        FileType::Directory => view.fs().remove_dir(path),
        _ => view.fs().remove_file(path),
    };
    match removed {
        Err(error) if matches!(error.fs_error(), Some(FsError::NoEntry | FsError::NotEmpty | FsError::NotDirectory)) => Ok(()),
        removed => Ok(removed?),
    }
}

fn put(view: &View<Transaction>, host: &HostDirectory, path: &str, at: &str, seen: Seen) -> Result<(), Error> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let failed = |source: FsError| unread(at, source);
    let (fs, dir) = (view.fs(), host.descend(directory).map_err(failed)?);
    let there = fs.symlink_metadata(at).ok().map(|stat| stat.file_type());
    match seen.kind {
        FileType::Directory => match there {
            Some(FileType::Directory) => {}
            _ => fs.create_dir(at)?,
        },
        FileType::Symlink => {
            if there.is_some() {
                fs.remove_file(at)?;
            }
            fs.symlink(&host.read_link(&dir, name).map_err(failed)?, at)?;
        }
        _ => {
            // A link in its place would be followed when writing.
            if there.is_some_and(|there| there != FileType::File) {
                fs.remove_file(at)?;
            }
            let file = host.open_file(&dir, name).map_err(failed)?;
            let (node, _) = fs.create(at)?;
            let mut offset = 0;
            let mut buffer = vec![0; PIECE];
            // No further than it was measured.
            while offset < seen.size {
                let wanted = usize::try_from(seen.size - offset).unwrap_or(PIECE).min(PIECE);
                let read = read_at(&file, offset, buffer.get_mut(..wanted).unwrap_or_default()).map_err(failed)?;
                if read == 0 {
                    break;
                }
                fs.write_at(node, offset, buffer.get(..read).unwrap_or_default()).map_err(failed)?;
                offset += read as u64;
            }
            fs.truncate(at, offset)?;
            fs.set_permissions(at, seen.mode)?;
            fs.set_times(at, None, Some(seen.mtime))?;
        }
    }
    Ok(())
}
