//! Whole trees between a host directory and the sandbox: copies, made by the embedding program and by nobody else.
//!
//! Neither direction ever follows a symbolic link on the host. Going out, nothing is overwritten, and a link that could
//! lead out of the copy is left behind (A7: what is planted must not act).

use std::fs::FileTimes;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use abi::stat::{S_IFDIR, S_IFLNK, S_IFREG};
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, File, OpenOptions, OpenOptionsExt};
use sqlite_fs::path::{Bounds, Last};
use sqlite_fs::{FileType, FsError, Transaction};

use super::directory::{HostDirectory, component, read_at};
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
/// The permissions of directories that are made on the host.
const DIRECTORY_MODE: u32 = 0o755;
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
        for (name, kind) in host.list_all(&from, &path).map_err(failed(&path))? {
            let child = below(&path, &name);
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
            let ino = match kind {
                FileType::Directory => {
                    let ino = directory_in(rows, into, &name, stat.mode).map_err(failed(&child))?;
                    copy.directories += 1;
                    left.push((child.clone(), ino));
                    ino
                }
                FileType::Symlink => {
                    let target = host.read_link(&from, &name).map_err(failed(&child))?;
                    make_room(rows, into, &name).map_err(failed(&child))?;
                    copy.symlinks += 1;
                    rows.symlink(into, &name, &target, USER_ID, USER_ID).map_err(failed(&child))?
                }
                // A directory of the host shows no pipes.
                FileType::Fifo => continue,
                FileType::File => {
                    make_room(rows, into, &name).map_err(failed(&child))?;
                    let file = host.open_file(&from, &name).map_err(failed(&child))?;
                    let ino = rows.create(into, &name, stat.mode, USER_ID, USER_ID).map_err(failed(&child))?;
                    copy.bytes += fill(rows, ino, &file).map_err(failed(&child))?;
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

fn fill(rows: &Transaction, ino: u64, file: &File) -> Result<u64, FsError> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        let read = read_at(file, offset, &mut buffer)?;
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
                let failed = |source| target.failed(&child, source);
                // Names are checked when they are read from the database, and `cap-std` follows none that leads out of the target.
                // One that is a path gets neither there nor anywhere else in the target, wherever it comes from.
                let name = component(&entry.name).map_err(|_| unread(&child, abi::Errno::INVAL))?;
                match stat.kind() {
                    S_IFDIR => {
                        make_directory(&into, name).map_err(failed)?;
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
                        into.symlink(&link, name).map_err(failed)?;
                        copy.symlinks += 1;
                    }
                    S_IFREG => {
                        let mut options = OpenOptions::new();
                        options.write(true).create_new(true).follow(FollowSymlinks::No).mode(stat.mode & 0o777);
                        let mut file = into.open_with(name, &options).map_err(failed)?;
                        copy.bytes += empty_into(vfs, node, &mut file, |errno| unread(&child, errno), failed)?;
                        copy.files += 1;
                        let times = FileTimes::new().set_accessed(time(stat.atime)).set_modified(time(stat.mtime));
                        file.into_std().set_times(times).map_err(failed)?;
                    }
                    _ => copy.skip(child),
                }
            }
        }
    }
    Ok(copy)
}

fn time(nanos: i64) -> SystemTime {
    let since_1970 = Duration::from_nanos(nanos.unsigned_abs());
    if nanos < 0 { SystemTime::UNIX_EPOCH - since_1970 } else { SystemTime::UNIX_EPOCH + since_1970 }
}

fn empty_into(
    vfs: &Vfs,
    node: Node,
    file: &mut File,
    unread: impl Fn(abi::Errno) -> Error,
    failed: impl Fn(io::Error) -> Error,
) -> Result<u64, Error> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        let read = vfs.read(node, offset, &mut buffer).map_err(&unread)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(offset);
        }
        file.write_all(bytes).map_err(&failed)?;
        offset += read as u64;
    }
}

// A directory that is there already is used; a link to one is not.
fn make_directory(dir: &Dir, name: &str) -> io::Result<()> {
    match dir.create_dir_with(name, DirBuilder::new().mode(DIRECTORY_MODE)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.symlink_metadata(name)?.is_dir() => Ok(()),
        result => result,
    }
}

/// Where a tree goes.
struct Target<'a> {
    root: Dir,
    path: &'a Path,
}

impl<'a> Target<'a> {
    // The path is the embedder's own word: its links are followed.
    fn open(path: &'a Path) -> Result<Self, Error> {
        let open = || {
            match std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), DIRECTORY_MODE).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            Dir::open_ambient_dir(path, ambient_authority())
        };
        Ok(Self { root: open().map_err(|source| Error::HostFile { path: path.to_owned(), source })?, path })
    }

    fn failed(&self, relative: &str, source: io::Error) -> Error {
        Error::HostFile { path: self.path.join(relative), source }
    }

    // No step follows a link.
    fn descend(&self, relative: &str) -> Result<Dir, Error> {
        let names = relative.split('/').filter(|name| !name.is_empty());
        let walk = || names.into_iter().try_fold(self.root.try_clone()?, |at, name| at.open_dir_nofollow(name));
        walk().map_err(|source| self.failed(relative, source))
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
    use super::stays_inside;

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
