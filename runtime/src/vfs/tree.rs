//! Whole trees between a host directory and the sandbox: copies, made by the embedding program and by nobody else.
//!
//! Neither direction ever follows a symbolic link on the host. Going out, nothing is overwritten, and a link that could
//! lead out of the copy is left behind (A7: what is planted must not act).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use abi::stat::{S_IFDIR, S_IFLNK, S_IFREG};
use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps};
use sqlite_fs::path::{Bounds, Last};
use sqlite_fs::{FileType, FsError, Transaction};

use super::directory::{HostDirectory, read_at};
use super::{Node, ROOT_NODE, USER_ID, Vfs, errno};
use crate::Error;

/// What a copy of a tree brought; see [`Sandbox::import_tree`](crate::Sandbox::import_tree).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeCopy {
    /// Regular files.
    pub files: u64,
    /// Directories below the top.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Paths below the top that were left behind: devices, pipes, sockets, names that are no UTF-8, files with keys; on the
    /// way out, links that lead out of the tree.
    pub skipped: Vec<String>,
}

/// Copied at a time.
const COPY_BYTES: usize = 256 << 10;
/// Skipped paths that are named.
const SKIPPED_MAX: usize = 1_000;
/// Names read at a time.
const NAMES_PER_STEP: usize = 1_024;

impl TreeCopy {
    fn skip(&mut self, path: String) {
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.push(path);
        }
    }
}

fn below(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// Copies what is in a host directory into a directory of the sandbox, which exists.
pub(crate) fn import_tree(host: &HostDirectory, rows: &Transaction, guest: &str) -> Result<TreeCopy, Error> {
    let failed = |path: &str| {
        let path = format!("{}/{path}", guest.trim_end_matches('/'));
        move |source| Error::from(sqlite_fs::Error::Fs { operation: "import", path, source })
    };
    let top = rows.fs().metadata(guest)?.ino;
    let mut copy = TreeCopy::default();
    let mut left = vec![(String::new(), top)];
    while let Some((path, into)) = left.pop() {
        let from = host.descend(&path).map_err(failed(&path))?;
        for (name, kind) in host.list_all(from.as_fd(), &path).map_err(failed(&path))? {
            let child = below(&path, &name);
            let Some(kind) = kind else {
                copy.skip(child);
                continue;
            };
            let stat = match host.stat(from.as_fd(), &name) {
                Ok(stat) => stat,
                Err(FsError::NoEntry) => {
                    copy.skip(child);
                    continue;
                }
                Err(error) => return Err(failed(&child)(error)),
            };
            let ino = match kind {
                FileType::Directory => {
                    let ino = directory_in(rows, into, &name, stat.mode).map_err(failed(&child))?;
                    copy.directories += 1;
                    left.push((child.clone(), ino));
                    ino
                }
                FileType::Symlink => {
                    let target = host.read_link(from.as_fd(), &name).map_err(failed(&child))?;
                    make_room(rows, into, &name).map_err(failed(&child))?;
                    copy.symlinks += 1;
                    rows.symlink(into, &name, &target, USER_ID, USER_ID).map_err(failed(&child))?
                }
                // A directory of the host shows no pipes.
                FileType::Fifo => continue,
                FileType::File => {
                    make_room(rows, into, &name).map_err(failed(&child))?;
                    let fd = host.open_file(from.as_fd(), &name).map_err(failed(&child))?;
                    let ino = rows.create(into, &name, stat.mode, USER_ID, USER_ID).map_err(failed(&child))?;
                    copy.bytes += fill(rows, ino, fd.as_fd()).map_err(failed(&child))?;
                    copy.files += 1;
                    ino
                }
            };
            rows.set_times(ino, Some(stat.atime), Some(stat.mtime)).map_err(failed(&child))?;
        }
    }
    Ok(copy)
}

fn directory_in(rows: &Transaction, dir: u64, name: &str, mode: u32) -> Result<u64, FsError> {
    match rows.lookup(dir, name) {
        Ok((ino, FileType::Directory)) => Ok(ino),
        Ok(_) => Err(FsError::Exists),
        Err(FsError::NoEntry) => rows.mkdir(dir, name, mode, USER_ID, USER_ID),
        Err(error) => Err(error),
    }
}

// A file or link that is there is replaced; a directory is not.
fn make_room(rows: &Transaction, dir: u64, name: &str) -> Result<(), FsError> {
    match rows.lookup(dir, name) {
        Ok((_, FileType::Directory)) => Err(FsError::IsDirectory),
        Ok(_) => rows.unlink(dir, name),
        Err(FsError::NoEntry) => Ok(()),
        Err(error) => Err(error),
    }
}

fn fill(rows: &Transaction, ino: u64, fd: BorrowedFd<'_>) -> Result<u64, FsError> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        let read = read_at(fd, offset, &mut buffer)?;
        let mut bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(offset);
        }
        while !bytes.is_empty() {
            let written = rows.write(ino, offset, bytes)?;
            offset += written as u64;
            bytes = bytes.get(written..).unwrap_or_default();
        }
    }
}

/// Copies what a directory of the sandbox shows into a host directory, made if it is missing.
pub(crate) fn export_tree(vfs: &Vfs, guest: &str, host: &Path) -> Result<TreeCopy, Error> {
    let unread = |path: &str, errno: abi::Errno| {
        let path = format!("{}/{path}", guest.trim_end_matches('/'));
        Error::Invalid(format!("cannot export `{path}`: {}", errno.message()))
    };
    let top = vfs.find(ROOT_NODE, guest, Last::Follow).map_err(|errno| unread("", errno))?;
    if vfs.stat(top).map_err(|errno| unread("", errno))?.kind() != S_IFDIR {
        return Err(unread("", abi::Errno::NOTDIR));
    }
    let target = Target::open(host)?;
    let mut copy = TreeCopy::default();
    let mut bounds = Bounds::default();
    let mut left = vec![(String::new(), top, 0)];
    while let Some((path, directory, depth)) = left.pop() {
        vfs.enter(&mut bounds, directory, depth).map_err(|errno| unread(&path, errno))?;
        let into = target.descend(&path)?;
        let mut cookie = 0;
        loop {
            let entries = vfs.readdir(directory, cookie, NAMES_PER_STEP).map_err(|errno| unread(&path, errno))?;
            let Some(last) = entries.last() else { break };
            cookie = last.cookie;
            for entry in &entries {
                let child = below(&path, &entry.name);
                let found = vfs.resolve(directory, &entry.name, Last::NoFollow).map_err(|errno| unread(&child, errno))?;
                let node = match found.node {
                    // The fixed world is in every sandbox.
                    Some((Node::Fixed(_) | Node::Descriptor(_), _)) | None => continue,
                    Some((node, _)) => node,
                };
                let stat = vfs.stat(node).map_err(|errno| unread(&child, errno))?;
                let failed = |source: rustix::io::Errno| target.failed(&child, source);
                if !is_one_name(&entry.name) {
                    return Err(unread(&child, abi::Errno::INVAL));
                }
                match stat.kind() {
                    S_IFDIR => {
                        make_directory(into.as_fd(), &entry.name).map_err(failed)?;
                        copy.directories += 1;
                        bounds.keep(&child).map_err(|error| unread(&child, errno::from_fs(error)))?;
                        left.push((child, node, depth + 1));
                    }
                    S_IFLNK => {
                        let link = vfs.readlink(node).map_err(|errno| unread(&child, errno))?;
                        if !stays_inside(&link, child.matches('/').count()) {
                            copy.skip(child);
                            continue;
                        }
                        rustix::fs::symlinkat(&*link, &into, &*entry.name).map_err(failed)?;
                        copy.symlinks += 1;
                    }
                    S_IFREG => {
                        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                        let mode = Mode::from_raw_mode(stat.mode & 0o777);
                        let file = rustix::fs::openat(&into, &*entry.name, flags, mode).map_err(failed)?;
                        copy.bytes += empty_into(vfs, node, &file, |errno| unread(&child, errno), failed)?;
                        copy.files += 1;
                        let times = Timestamps { last_access: timespec(stat.atime), last_modification: timespec(stat.mtime) };
                        rustix::fs::futimens(&file, &times).map_err(failed)?;
                    }
                    _ => copy.skip(child),
                }
            }
        }
    }
    Ok(copy)
}

// Names are checked when they are read from the database. One that is a path would be a way out of the target all the same,
// so none gets to the host, wherever it comes from.
fn is_one_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

fn timespec(nanos: i64) -> Timespec {
    Timespec { tv_sec: nanos.div_euclid(1_000_000_000), tv_nsec: nanos.rem_euclid(1_000_000_000) }
}

fn empty_into(
    vfs: &Vfs,
    node: Node,
    file: &OwnedFd,
    unread: impl Fn(abi::Errno) -> Error,
    failed: impl Fn(rustix::io::Errno) -> Error,
) -> Result<u64, Error> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        let read = vfs.read(node, offset, &mut buffer).map_err(&unread)?;
        let mut bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(offset);
        }
        while !bytes.is_empty() {
            let written = match rustix::io::write(file, bytes) {
                Err(rustix::io::Errno::INTR) => 0,
                result => result.map_err(&failed)?,
            };
            offset += written as u64;
            bytes = bytes.get(written..).unwrap_or_default();
        }
    }
}

// A directory that is there already is used; a link to one is not.
fn make_directory(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
    match rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o755)) {
        Err(rustix::io::Errno::EXIST) => {
            let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let is_directory = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
            if is_directory { Ok(()) } else { Err(rustix::io::Errno::EXIST) }
        }
        result => result,
    }
}

/// Where a tree goes.
struct Target<'a> {
    root: OwnedFd,
    path: &'a Path,
}

impl<'a> Target<'a> {
    const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    // The path is the embedder's own word: its links are followed.
    fn open(path: &'a Path) -> Result<Self, Error> {
        let failed = |source: rustix::io::Errno| Error::HostFile { path: path.to_owned(), source: source.into() };
        match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let root = rustix::fs::open(path, Self::DIRECTORY, Mode::empty()).map_err(failed)?;
        Ok(Self { root, path })
    }

    fn failed(&self, relative: &str, source: rustix::io::Errno) -> Error {
        Error::HostFile { path: self.path.join(relative), source: source.into() }
    }

    fn descend(&self, relative: &str) -> Result<OwnedFd, Error> {
        let flags = Self::DIRECTORY | OFlags::NOFOLLOW;
        let failed = |source| self.failed(relative, source);
        let mut at = rustix::fs::openat(&self.root, ".", flags, Mode::empty()).map_err(failed)?;
        for name in relative.split('/').filter(|name| !name.is_empty()) {
            at = rustix::fs::openat(&at, name, flags, Mode::empty()).map_err(failed)?;
        }
        Ok(at)
    }
}

// Whether a link in a directory so many levels below the top leads to something in the tree, whatever else is a link
// there: it may go up first, not beyond the top, and then only down.
fn stays_inside(target: &str, depth: usize) -> bool {
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
    use super::{is_one_name, stays_inside};

    #[test]
    fn a_name_that_is_a_path_never_reaches_the_host() {
        assert!(is_one_name("notes.txt") && is_one_name("...") && is_one_name(" "));
        for name in ["", ".", "..", "../x", "a/b", "/etc/passwd", "a/", "x\0y"] {
            assert!(!is_one_name(name), "{name:?}");
        }
    }

    fn check(target: &str, depth: usize, inside: bool) {
        assert_eq!(stays_inside(target, depth), inside, "{target} at depth {depth}");
    }

    #[test]
    fn a_link_goes_up_first_and_then_only_down() {
        check("file", 0, true);
        check("./a/b", 0, true);
        check("../a", 1, true);
        check("../../a", 2, true);
        check("..", 0, false);
        check("../a", 0, false);
        check("/etc/passwd", 5, false);
        // `a/d` may be a link itself: what is above it is anywhere.
        check("a/d/../../x", 3, false);
        check("", 1, false);
    }
}
