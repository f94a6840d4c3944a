//! Preview1's `path_*` with rights. If a command was given directories, a path stays below the one it starts in: neither `..` nor
//! a link leads out of it.

use std::sync::Arc;

use abi::Errno;
use sqlite_fs::path::{self, Last, Resolved, Tree};
use sqlite_fs::{FileType, FsError, Transaction, Volume as _, VolumeMut as _};

use super::super::call::Call;
use super::super::paths::{OpenFlags, PathArgument, last};
use super::super::{files, metadata, types};
use super::files::sync_flags;
use super::rights::{self, need};
use crate::defaults::USER;
use crate::process::descriptor::{Grant, Object};
use crate::process::{self, Fault, Roots, State};
use crate::vfs::{Node, ROOT_NODE, View};

/// A decoded path argument: its start directory, and its text.
pub(in crate::wasi) struct Given {
    base: Node,
    text: String,
}

impl Given {
    fn read(call: &Call<'_>, argument: PathArgument, right: u64) -> Result<Self, Errno> {
        files::file(call, argument.fd)?.directory()?;
        need(call, argument.fd, right)?;
        let text = call.memory.path(argument.pointer, argument.length)?;
        Self::new(call.state, argument.fd, text)
    }

    /// Creates a path that starts at a descriptor.
    pub(in crate::wasi) fn new(state: &State, fd: u32, text: String) -> Result<Self, Errno> {
        let node = state.descriptors.get(fd)?.directory()?;
        let base = if begins_anywhere(state, fd, node) { begin(state, &text) } else { node };
        Ok(Self { base, text })
    }

    /// Walks to its end.
    pub(in crate::wasi) fn resolve(&self, state: &State, last: Last) -> Result<Resolved<Node>, FsError> {
        let view = &state.job.view;
        match state.job.roots {
            Roots::Whole => view.resolve(self.base, &self.text, last),
            Roots::Only(_) if self.text.starts_with('/') => Err(FsError::NotPermitted),
            Roots::Only(_) => path::resolve(&Below { view, top: self.base }, self.base, self.base, &self.text, last),
        }
    }

    /// Returns the node at its end.
    pub(in crate::wasi) fn find(&self, state: &State, last: Last) -> Result<(Node, FileType), FsError> {
        self.resolve(state, last)?.existing()
    }
}

// Whether a descriptor is the root directory that a program of a sandbox has from its start.
fn begins_anywhere(state: &State, fd: u32, node: Node) -> bool {
    let is_preopen = state.descriptors.grant(fd).is_ok_and(|grant| grant.preopen.is_some());
    is_preopen && node == ROOT_NODE && matches!(state.job.roots, Roots::Whole)
}

// WASI's libc treats `/a/b` and `a/b` alike, and has no current directory. So the existing files decide: a path whose first
// component exists in the current directory starts there, else one whose first component exists in the root starts there, else it
// is a new name in the current directory.
fn begin(state: &State, text: &str) -> Node {
    let view = &state.job.view;
    let first = text.split('/').next().unwrap_or_default();
    let current = std::str::from_utf8(&state.cwd).ok().and_then(|cwd| view.find(ROOT_NODE, cwd, Last::Follow).ok());
    match current {
        Some((current, FileType::Directory)) if !text.starts_with('/') => {
            let is_in = |directory| view.lookup(directory, first).is_ok();
            let begins_here = matches!(first, "" | "." | "..") || is_in(current) || !is_in(ROOT_NODE);
            if begins_here { current } else { ROOT_NODE }
        }
        _ => ROOT_NODE,
    }
}

/// The tree below a directory, from which nothing leads out.
struct Below<'a> {
    view: &'a Arc<View<Transaction>>,
    top: Node,
}

impl Tree for Below<'_> {
    type Node = Node;

    fn lookup(&self, dir: Node, name: &str) -> Result<(Node, FileType), FsError> {
        self.view.lookup(dir, name)
    }

    fn parent(&self, dir: Node) -> Result<Node, FsError> {
        if dir == self.top { Err(FsError::NotPermitted) } else { self.view.parent(dir) }
    }

    fn readlink(&self, link: Node) -> Result<String, FsError> {
        let target = self.view.readlink(link)?;
        if target.starts_with('/') { Err(FsError::NotPermitted) } else { Ok(target) }
    }

    fn search(&self, dir: Node) -> Result<(), FsError> {
        self.view.search(dir)
    }
}

/// `path_open`.
pub(super) fn open(
    call: &mut Call<'_>,
    argument: PathArgument,
    flags: OpenFlags,
    inheriting: u64,
    out: u32,
) -> Result<(), Fault> {
    let mut right = rights::PATH_OPEN;
    if flags.open & types::OPEN_CREATE != 0 {
        right |= rights::PATH_CREATE_FILE;
    }
    if flags.open & types::OPEN_TRUNCATE != 0 {
        right |= rights::PATH_FILESTAT_SET_SIZE;
    }
    let given = Given::read(call, argument, right)?;
    let sync_flags = sync_flags(flags.fd)?;
    let allowed = call.state.descriptors.grant(argument.fd)?.inheriting;
    let granted = flags.rights & allowed;
    let mut how = OpenFlags { rights: granted, ..flags }.decode();
    how.write |= granted & (rights::FD_ALLOCATE | rights::FD_FILESTAT_SET_SIZE) != 0 && granted & rights::FD_WRITE != 0;
    let found = given.resolve(call.state, how.last())?;
    let file = process::open_found(call.state, &found, how)?;
    let possible = if matches!(file.object, Object::Directory(_)) { rights::DIRECTORY } else { rights::FILE };
    let grant = Grant { base: granted & possible, inheriting: inheriting & allowed, sync_flags, preopen: None };
    if how.nonblocking {
        file.set_flags(file.append(), true);
    }
    let fd = call.state.descriptors.insert(file, 0, false)?;
    *call.state.descriptors.grant_mut(fd)? = grant;
    if let Err(errno) = call.memory.write_u32(out, fd) {
        let _ = call.state.descriptors.close(fd);
        return Err(errno.into());
    }
    Ok(())
}

/// `path_filestat_get`.
pub(super) fn filestat(call: &mut Call<'_>, argument: PathArgument, lookup: u32, out: u32) -> Result<(), Fault> {
    let given = Given::read(call, argument, rights::PATH_FILESTAT_GET)?;
    let (node, _) = given.find(call.state, last(lookup))?;
    let stat = metadata::of_node(call.state, node)?;
    Ok(call.memory.write(out, &types::filestat(&stat))?)
}

/// `path_filestat_set_times`.
pub(super) fn set_times(
    call: &mut Call<'_>,
    argument: PathArgument,
    lookup: u32,
    times: [u64; 2],
    flags: u32,
) -> Result<(), Fault> {
    let given = Given::read(call, argument, rights::PATH_FILESTAT_SET_TIMES)?;
    let (node, _) = given.find(call.state, last(lookup))?;
    metadata::set_times(call.state, node, times[0], times[1], flags)
}

/// `path_create_directory`.
pub(super) fn create_directory(call: &mut Call<'_>, argument: PathArgument) -> Result<(), Fault> {
    let at = Given::read(call, argument, rights::PATH_CREATE_DIRECTORY)?.resolve(call.state, Last::Entry)?;
    call.state.job.view.mkdir(&at, at.for_mkdir()?, 0o777 & !call.state.umask, USER)?;
    Ok(())
}

/// `path_remove_directory`.
pub(super) fn remove_directory(call: &mut Call<'_>, argument: PathArgument) -> Result<(), Fault> {
    let at = Given::read(call, argument, rights::PATH_REMOVE_DIRECTORY)?.resolve(call.state, Last::Entry)?;
    Ok(call.state.job.view.rmdir(&at, at.for_rmdir()?)?)
}

/// `path_unlink_file`.
pub(super) fn unlink(call: &mut Call<'_>, argument: PathArgument) -> Result<(), Fault> {
    let at = Given::read(call, argument, rights::PATH_UNLINK_FILE)?.resolve(call.state, Last::Entry)?;
    Ok(call.state.job.view.unlink(&at, at.for_unlink()?)?)
}

/// `path_rename`.
pub(super) fn rename(call: &mut Call<'_>, old: PathArgument, new: PathArgument) -> Result<(), Fault> {
    let from = Given::read(call, old, rights::PATH_RENAME_SOURCE)?.resolve(call.state, Last::Entry)?;
    let to = Given::read(call, new, rights::PATH_RENAME_TARGET)?.resolve(call.state, Last::Entry)?;
    let (old_name, new_name) = from.for_rename(&to)?;
    Ok(call.state.job.view.rename(&from, old_name, &to, new_name)?)
}

/// `path_link`.
pub(super) fn link(call: &mut Call<'_>, lookup: u32, old: PathArgument, new: PathArgument) -> Result<(), Fault> {
    let from = Given::read(call, old, rights::PATH_LINK_SOURCE)?.resolve(call.state, last(lookup))?;
    from.existing()?;
    let at = Given::read(call, new, rights::PATH_LINK_TARGET)?.resolve(call.state, Last::Entry)?;
    Ok(call.state.job.view.link(&from, &at, at.for_new()?)?)
}

/// `path_symlink`: if a command was given directories, links to absolute paths are rejected because they would lead out.
pub(super) fn symlink(call: &mut Call<'_>, target: (u32, u32), argument: PathArgument) -> Result<(), Fault> {
    let target = call.memory.path(target.0, target.1)?;
    let given = Given::read(call, argument, rights::PATH_SYMLINK)?;
    if target.is_empty() {
        return Err(Errno::NOENT.into());
    }
    if target.starts_with('/') && matches!(call.state.job.roots, Roots::Only(_)) {
        return Err(Errno::PERM.into());
    }
    let at = given.resolve(call.state, Last::Entry)?;
    call.state.job.view.symlink(&at, at.for_new()?, &target, USER)?;
    Ok(())
}

/// `path_readlink`: truncated at the end of the buffer.
pub(super) fn readlink(call: &mut Call<'_>, argument: PathArgument, buffer: u32, length: u32, out: u32) -> Result<(), Fault> {
    let given = Given::read(call, argument, rights::PATH_READLINK)?;
    let (node, _) = given.find(call.state, Last::NoFollow)?;
    let target = call.state.job.view.readlink(node)?;
    let kept = target.as_bytes().get(..length as usize).unwrap_or(target.as_bytes());
    call.memory.write(buffer, kept)?;
    Ok(call.memory.write_u32(out, u32::try_from(kept.len()).unwrap_or(0))?)
}
