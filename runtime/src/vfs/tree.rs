//! Copies of whole trees between a host directory and the sandbox, made only by the embedding program.
//!
//! Neither direction ever follows a symbolic link on the host. An export overwrites nothing, and a link that could lead out of
//! the copy is skipped (A7: planted files must not act).

use std::fs::FileTimes;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, File, OpenOptions, OpenOptionsExt};
use sqlite_fs::path::{Last, Tree};
use sqlite_fs::{FileType, FsError, Rows, Step, Transaction, Visited, Volume, VolumeMut};

use super::directory::{HostDirectory, component, read_at};
use super::source::path_in;
use super::{Node, ROOT_NODE, View};
use crate::Error;
use crate::defaults::USER;

/// The result of copying a tree; see [`Sandbox::import_tree`](crate::Sandbox::import_tree).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeCopy {
    /// Regular files.
    pub files: u64,
    /// Directories below the top.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Total size of the files, in bytes.
    pub bytes: u64,
    /// Skipped paths, relative to the top: devices, pipes, sockets, names that are not UTF-8, files with keys; in an export also
    /// links that lead out of the tree.
    pub skipped: Vec<String>,
}

/// Number of bytes copied at once.
const COPY_BYTES: usize = 256 << 10;
/// The permissions of directories created on the host.
const DIRECTORY_MODE: u32 = 0o755;
/// Maximum number of listed skipped paths.
const SKIPPED_MAX: usize = 1_000;

impl TreeCopy {
    pub(super) fn skip(&mut self, path: String) {
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.push(path);
        }
    }
}

/// Copies the content of a host directory to an existing directory of the sandbox.
pub(crate) fn import_tree(host: &HostDirectory, view: &View<Transaction>, guest: &str) -> Result<TreeCopy, Error> {
    let failed = |path: &str| {
        let path = format!("{}/{path}", guest.trim_end_matches('/'));
        move |source| Error::from(sqlite_fs::Error::Fs { operation: "import", path, source })
    };
    let (top, _) = view.find(ROOT_NODE, guest, Last::Follow).map_err(failed(""))?;
    let mut copy = TreeCopy::default();
    let mut left = vec![(String::new(), top)];
    while let Some((path, into)) = left.pop() {
        let from = host.descend(&path).map_err(failed(&path))?;
        for (name, kind) in host.list_all(&from, &path).map_err(failed(&path))? {
            let child = path_in(&path, &name);
            let Some(kind) = kind else {
                copy.skip(child);
                continue;
            };
            let stat = match host.stat(&from, &name) {
                Ok(stat) => stat,
                Err(FsError::NoEntry) => {
                    copy.skip(child);
                    continue;
                }
                Err(error) => return Err(failed(&child)(error)),
            };
            let node = bring(host, (&from, &name, kind, stat.mode), view, into, &mut copy).map_err(failed(&child))?;
            view.set_times(node, Some(stat.atime), Some(stat.mtime)).map_err(failed(&child))?;
            if kind == FileType::Directory {
                left.push((child, node));
            }
        }
    }
    Ok(copy)
}

// An existing directory is used. A file or link is replaced, a directory is not.
fn bring(
    host: &HostDirectory,
    (from, name, kind, mode): (&Dir, &str, FileType, u32),
    view: &View<Transaction>,
    into: Node,
    copy: &mut TreeCopy,
) -> Result<Node, FsError> {
    let mut at = view.resolve(into, name, Last::Entry)?;
    match (kind, at.node) {
        (FileType::Directory, Some((node, FileType::Directory))) => {
            copy.directories += 1;
            return Ok(node);
        }
        (FileType::Directory, Some(_)) => return Err(FsError::Exists),
        (_, Some((_, FileType::Directory))) => return Err(FsError::IsDirectory),
        (_, Some(_)) => {
            view.unlink(&at, name)?;
            at = view.resolve(into, name, Last::Entry)?;
        }
        (_, None) => {}
    }
    let new = at.for_new()?;
    match kind {
        FileType::Directory => {
            copy.directories += 1;
            view.mkdir(&at, new, mode, USER)
        }
        FileType::Symlink => {
            copy.symlinks += 1;
            view.symlink(&at, new, &host.read_link(from, name)?, USER)
        }
        FileType::File => {
            let file = host.open_file(from, name)?;
            let node = view.create(&at, new, mode, USER)?;
            copy.bytes += fill(view, node, &file)?;
            copy.files += 1;
            Ok(node)
        }
        // A directory of the host shows neither.
        FileType::Fifo | FileType::Device => Err(FsError::Invalid),
    }
}

fn fill(view: &View<Transaction>, node: Node, file: &File) -> Result<u64, FsError> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        let read = read_at(file, offset, &mut buffer)?;
        if read == 0 {
            return Ok(offset);
        }
        view.fs().write_at(node, offset, buffer.get(..read).unwrap_or_default())?;
        offset += read as u64;
    }
}

/// Copies the content of a directory of the sandbox to a host directory, which is created if missing. The fixed world is in every
/// sandbox and omitted, and so are names that `is_refused` accepts.
pub(crate) fn export_tree<R: Rows>(
    view: &View<R>,
    guest: &str,
    host: &Path,
    is_refused: &dyn Fn(&str) -> bool,
) -> Result<TreeCopy, Error> {
    let top = view.find(ROOT_NODE, guest, Last::Follow);
    if !matches!(top, Ok((_, FileType::Directory))) {
        return Err(unread(guest, top.err().unwrap_or(FsError::NotDirectory)));
    }
    let target = Target::open(host)?;
    let mut copy = TreeCopy::default();
    visit_onto(view, guest, &target, |found, place| {
        let failed = |source| place.failed(source);
        if is_refused(place.name) {
            copy.skip(place.relative.to_owned());
            return Ok(Step::Skip);
        }
        match found.kind {
            FileType::Directory => {
                make_directory(place.dir, place.name).map_err(failed)?;
                copy.directories += 1;
            }
            FileType::Symlink => {
                let link = view.readlink(found.node).map_err(|error| unread(found.path, error))?;
                if stays_inside(&link, place.relative.matches('/').count()) {
                    place.dir.symlink(&link, place.name).map_err(failed)?;
                    copy.symlinks += 1;
                } else {
                    copy.skip(place.relative.to_owned());
                }
            }
            FileType::File => {
                copy.bytes += place.fill(view, found)?;
                copy.files += 1;
            }
            FileType::Fifo | FileType::Device => copy.skip(place.relative.to_owned()),
        }
        Ok(Step::Enter)
    })?;
    Ok(copy)
}

/// The place on the host for an entry of the sandbox.
pub(super) struct HostPlace<'a> {
    target: &'a Target<'a>,
    /// The path below the target.
    pub(super) relative: &'a str,
    /// The directory.
    pub(super) dir: &'a Dir,
    /// The name in it.
    pub(super) name: &'a str,
}

impl HostPlace<'_> {
    pub(super) fn failed(&self, source: io::Error) -> Error {
        self.target.failed(self.relative, source)
    }

    /// Copies a file with its permissions and times, and returns its size.
    pub(super) fn fill<R: Rows>(&self, view: &View<R>, found: &Visited<'_, Node>) -> Result<u64, Error> {
        let (unread, failed) = (|error| unread(found.path, error), |source| self.failed(source));
        let stat = view.stat(found.node).map_err(unread)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No).mode(stat.mode & 0o777);
        let mut file = self.dir.open_with(self.name, &options).map_err(failed)?;
        let bytes = empty_into(view, found.node, &mut file, unread, failed)?;
        let times = FileTimes::new().set_accessed(time(stat.atime)).set_modified(time(stat.mtime));
        file.into_std().set_times(times).map_err(failed)?;
        Ok(bytes)
    }
}

/// Visits everything below a directory of the sandbox except the fixed world, with its place in a directory of the host.
pub(super) fn visit_onto<R: Rows>(
    view: &View<R>,
    guest: &str,
    target: &Target<'_>,
    mut visit: impl FnMut(&Visited<'_, Node>, &HostPlace<'_>) -> Result<Step, Error>,
) -> Result<(), Error> {
    let mut into = (String::new(), target.descend("")?);
    view.fs().visit::<Error>(guest, |found| {
        if found.is_left_out {
            return Ok(Step::Skip);
        }
        let relative = found.path.get(guest.trim_end_matches('/').len() + 1..).unwrap_or_default();
        let (directory, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        // Names are checked when they are read from the database, and `cap-std` follows none that leads out of the target. A name
        // that is a path cannot reach anything, wherever it comes from.
        let name = component(name).map_err(|error| unread(found.path, error))?;
        if into.0 != directory {
            into = (directory.to_owned(), target.descend(directory)?);
        }
        visit(found, &HostPlace { target, relative, dir: &into.1, name })
    })
}

pub(super) fn unread(path: &str, source: FsError) -> Error {
    sqlite_fs::Error::Fs { operation: "export", path: path.to_owned(), source }.into()
}

pub(super) fn time(nanos: i64) -> SystemTime {
    let since_1970 = Duration::from_nanos(nanos.unsigned_abs());
    if nanos < 0 { SystemTime::UNIX_EPOCH - since_1970 } else { SystemTime::UNIX_EPOCH + since_1970 }
}

pub(super) fn empty_into<R: Rows>(
    view: &View<R>,
    node: Node,
    file: &mut File,
    unread: impl Fn(FsError) -> Error,
    failed: impl Fn(io::Error) -> Error,
) -> Result<u64, Error> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        let read = view.read(node, offset, &mut buffer).map_err(&unread)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(offset);
        }
        file.write_all(bytes).map_err(&failed)?;
        offset += read as u64;
    }
}

// An existing directory is used; a link to one is not.
pub(super) fn make_directory(dir: &Dir, name: &str) -> io::Result<()> {
    match dir.create_dir_with(name, DirBuilder::new().mode(DIRECTORY_MODE)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.symlink_metadata(name)?.is_dir() => Ok(()),
        result => result,
    }
}

/// The destination of a tree.
pub(super) struct Target<'a> {
    root: Dir,
    path: &'a Path,
}

impl<'a> Target<'a> {
    // The path comes from the embedder, so its links are followed.
    pub(super) fn open(path: &'a Path) -> Result<Self, Error> {
        let open = || {
            match std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), DIRECTORY_MODE).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            Dir::open_ambient_dir(path, ambient_authority())
        };
        Ok(Self { root: open().map_err(|source| Error::HostFile { path: path.to_owned(), source })?, path })
    }

    pub(super) fn failed(&self, relative: &str, source: io::Error) -> Error {
        Error::HostFile { path: self.path.join(relative), source }
    }

    // No step follows a link.
    pub(super) fn descend(&self, relative: &str) -> Result<Dir, Error> {
        let names = relative.split('/').filter(|name| !name.is_empty());
        let walk = || names.into_iter().try_fold(self.root.try_clone()?, |at, name| at.open_dir_nofollow(name));
        walk().map_err(|source| self.failed(relative, source))
    }
}

/// Returns whether a link in a directory at this depth leads to something in the tree, whatever else is a link there: it may go
/// up first, not beyond the top, and then only down.
pub(crate) fn stays_inside(target: &str, depth: usize) -> bool {
    if target.starts_with('/') || target.is_empty() {
        return false;
    }
    let mut names = target.split('/').filter(|name| !matches!(*name, "" | ".")).peekable();
    let mut up = 0;
    while names.next_if(|name| *name == "..").is_some() {
        up += 1;
    }
    up <= depth && names.all(|name| name != "..")
}

#[cfg(test)]
mod tests {
    use super::stays_inside;

    fn check(target: &str, depth: usize, inside: bool) {
        assert_eq!(stays_inside(target, depth), inside, "{target} at depth {depth}");
    }

    #[test]
    fn a_link_leads_up_first_and_then_only_down() {
        check("file", 0, true);
        check("./a/b", 0, true);
        check("../a", 1, true);
        check("../../a", 2, true);
        check("..", 0, false);
        check("../a", 0, false);
        check("/etc/passwd", 5, false);
        // `a/d` may be a link itself, so its parent can be anywhere.
        check("a/d/../../x", 3, false);
        check("", 1, false);
    }
}
