//! Copying changes of a tree back to the host directory that it was copied from.
//!
//! Only files that changed since the tree was marked are touched. No step follows a symbolic link on the host, and a link that
//! could lead out of the directory is skipped.

use std::collections::BTreeMap;
use std::fs::FileTimes;
use std::io;
use std::path::Path;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use sqlite_fs::path::Last;
use sqlite_fs::{FileType, FsError, Rows, Stat, Volume as _};

use super::directory::component;
use super::tree::{Target, empty_into, make_directory, stays_inside, time, unread};
use super::{ROOT_NODE, TreeCopy, View};
use crate::Error;

/// The recorded state of a tree of the sandbox; see [`Sandbox::mark_tree`](crate::Sandbox::mark_tree).
#[derive(Clone, Debug)]
pub struct TreeMark {
    guest: String,
    nodes: BTreeMap<String, Stat>,
}

impl TreeMark {
    /// Marks a tree.
    pub(crate) fn new<R: Rows>(view: &View<R>, guest: &str) -> Result<Self, Error> {
        Ok(Self { guest: guest.to_owned(), nodes: nodes(view, guest)? })
    }

    /// Returns the marked directory.
    pub(crate) fn guest(&self) -> &str {
        &self.guest
    }
}

// Everything below a directory, by its path from there.
fn nodes<R: Rows>(view: &View<R>, guest: &str) -> Result<BTreeMap<String, Stat>, Error> {
    let walked = view.fs().walk(guest)?;
    let below = |path: &str| path.strip_prefix(guest.trim_end_matches('/')).map(|rest| rest.trim_start_matches('/').to_owned());
    Ok(walked.into_iter().filter_map(|(path, stat)| Some((below(&path)?, stat))).filter(|(path, _)| !path.is_empty()).collect())
}

// Every change of a node sets its ctime, and every name that leads to another node has another number.
fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.ino, one.mode, one.size, one.mtime, one.ctime) == (other.ino, other.mode, other.size, other.mtime, other.ctime)
}

/// Copies the changes since the mark to a host directory.
pub(crate) fn bring_back<R: Rows>(view: &View<R>, mark: &TreeMark, host: &Path) -> Result<TreeCopy, Error> {
    let now = nodes(view, &mark.guest)?;
    let target = Target::open(host)?;
    let mut copy = TreeCopy::default();
    // Deepest first: the content of a directory is removed before it.
    for (path, stat) in mark.nodes.iter().rev() {
        let stays = now.get(path).is_some_and(|new| new.file_type() == stat.file_type());
        if !stays {
            remove(&target, path, stat.file_type())?;
        }
    }
    for (path, stat) in &now {
        let old = mark.nodes.get(path);
        let is_directory = stat.file_type() == FileType::Directory;
        if old.is_some_and(|old| is_same(old, stat) || is_directory && old.file_type() == FileType::Directory) {
            continue;
        }
        write(view, mark, (path, stat), &target, &mut copy)?;
    }
    Ok(copy)
}

fn split(path: &str) -> Result<(&str, &str), FsError> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    Ok((directory, component(name)?))
}

// A path that was removed meanwhile needs no removal.
fn remove(target: &Target<'_>, path: &str, kind: FileType) -> Result<(), Error> {
    let (directory, name) = split(path).map_err(|error| unread(path, error))?;
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let removed = match target.descend(directory) {
        Err(Error::HostFile { source, .. }) if gone(&source) => return Ok(()),
        directory => match (directory?, kind) {
            (directory, FileType::Directory) => directory.remove_dir(name),
            (directory, _) => directory.remove_file(name),
        },
    };
    match removed {
        Err(error) if !gone(&error) => Err(target.failed(path, error)),
        _ => Ok(()),
    }
}

fn write<R: Rows>(
    view: &View<R>,
    mark: &TreeMark,
    (path, stat): (&str, &Stat),
    target: &Target<'_>,
    copy: &mut TreeCopy,
) -> Result<(), Error> {
    let in_sandbox = format!("{}/{path}", mark.guest.trim_end_matches('/'));
    let (directory, name) = split(path).map_err(|error| unread(&in_sandbox, error))?;
    let (node, _) = view.find(ROOT_NODE, &in_sandbox, Last::NoFollow).map_err(|error| unread(&in_sandbox, error))?;
    let into = target.descend(directory)?;
    let failed = |source| target.failed(path, source);
    match stat.file_type() {
        FileType::Directory => {
            make_directory(&into, name).map_err(failed)?;
            copy.directories += 1;
        }
        FileType::Symlink => {
            let link = view.fs().read_link(&in_sandbox)?;
            if stays_inside(&link, path.matches('/').count()) {
                replace(&into, name).map_err(failed)?;
                into.symlink(&link, name).map_err(failed)?;
                copy.symlinks += 1;
            } else {
                copy.skip(path.to_owned());
            }
        }
        FileType::File => {
            // Another name of the old file keeps its content.
            replace(&into, name).map_err(failed)?;
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).follow(FollowSymlinks::No).mode(stat.mode & 0o777);
            let mut file = into.open_with(name, &options).map_err(failed)?;
            copy.bytes += empty_into(view, node, &mut file, |error| unread(&in_sandbox, error), failed)?;
            copy.files += 1;
            let times = FileTimes::new().set_accessed(time(stat.atime)).set_modified(time(stat.mtime));
            file.into_std().set_times(times).map_err(failed)?;
        }
        FileType::Fifo | FileType::Device => copy.skip(path.to_owned()),
    }
    Ok(())
}

// A conflicting file or link is removed; a directory is not.
fn replace(dir: &Dir, name: &str) -> io::Result<()> {
    match dir.remove_file_or_symlink(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
