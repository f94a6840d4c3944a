//! Preview1's `path_*`: all functions on a directory and a name. This file decodes; `process/open.rs` opens.

use abi::Errno;
use sqlite_fs::path::{Last, Tree};
use sqlite_fs::{Volume, VolumeMut};

use super::call::Call;
use super::files::directory;
use super::metadata;
use super::types;
use crate::defaults::USER;
use crate::process::{self, Fault, Opening};
use crate::vfs::Node;

/// A path argument: where it starts, and its text.
#[derive(Clone, Copy)]
pub(super) struct PathArgument {
    pub(super) fd: u32,
    pub(super) pointer: u32,
    pub(super) length: u32,
}

impl PathArgument {
    fn read(self, call: &Call<'_>) -> Result<(Node, String), Errno> {
        Ok((directory(call, self.fd)?, call.memory.path(self.pointer, self.length)?))
    }
}

/// Returns how to treat a link at the end of a path.
pub(super) fn last(lookup_flags: u32) -> Last {
    if lookup_flags & types::LOOKUP_FOLLOW != 0 { Last::Follow } else { Last::NoFollow }
}

/// The options for opening a file.
#[derive(Clone, Copy)]
pub(super) struct OpenFlags {
    pub(super) lookup: u32,
    pub(super) open: u32,
    pub(super) rights: u64,
    pub(super) fd: u32,
}

impl OpenFlags {
    pub(super) fn decode(self) -> Opening {
        Opening {
            follow: self.lookup & types::LOOKUP_FOLLOW != 0,
            create: self.open & types::OPEN_CREATE != 0,
            exclusive: self.open & types::OPEN_EXCLUSIVE != 0,
            directory: self.open & types::OPEN_DIRECTORY != 0,
            truncate: self.open & types::OPEN_TRUNCATE != 0,
            read: self.rights & types::RIGHT_READ != 0,
            write: self.rights & types::RIGHT_WRITE != 0,
            append: self.fd & types::FD_APPEND != 0,
            nonblocking: self.fd & types::FD_NONBLOCK != 0,
        }
    }
}

/// `path_open`.
pub(super) fn open(call: &mut Call<'_>, path: PathArgument, flags: OpenFlags, out: u32) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    let file = process::open(call.state, base, &text, flags.decode())?;
    let fd = call.state.descriptors.insert(file, 0, false)?;
    if let Err(errno) = call.memory.write_u32(out, fd) {
        let _ = call.state.descriptors.close(fd);
        return Err(errno.into());
    }
    Ok(())
}

/// `path_filestat_get`.
pub(super) fn filestat(call: &mut Call<'_>, path: PathArgument, lookup: u32, out: u32) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    let (node, _) = call.state.job.view.find(base, &text, last(lookup))?;
    let stat = metadata::of_node(call.state, node)?;
    Ok(call.memory.write(out, &types::filestat(&stat))?)
}

/// `path_filestat_set_times`.
pub(super) fn set_times(call: &mut Call<'_>, path: PathArgument, lookup: u32, times: [u64; 2], flags: u32) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    let (node, _) = call.state.job.view.find(base, &text, last(lookup))?;
    metadata::set_times(call.state, node, times[0], times[1], flags)
}

/// `path_create_directory`.
pub(super) fn create_directory(call: &mut Call<'_>, path: PathArgument) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    call.state.job.view.mkdir_at(base, &text, 0o777 & !call.state.umask, USER)?;
    Ok(())
}

/// `path_remove_directory`.
pub(super) fn remove_directory(call: &mut Call<'_>, path: PathArgument) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    Ok(call.state.job.view.rmdir_at(base, &text)?)
}

/// `path_unlink_file`.
pub(super) fn unlink(call: &mut Call<'_>, path: PathArgument) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    Ok(call.state.job.view.unlink_at(base, &text)?)
}

/// `path_rename`.
pub(super) fn rename(call: &mut Call<'_>, old: PathArgument, new: PathArgument) -> Result<(), Fault> {
    let (old_base, old_text) = old.read(call)?;
    let (new_base, new_text) = new.read(call)?;
    Ok(call.state.job.view.rename_at(old_base, &old_text, new_base, &new_text)?)
}

/// `path_link`.
pub(super) fn link(call: &mut Call<'_>, lookup: u32, old: PathArgument, new: PathArgument) -> Result<(), Fault> {
    let (old_base, old_text) = old.read(call)?;
    let (new_base, new_text) = new.read(call)?;
    Ok(call.state.job.view.link_at(old_base, &old_text, last(lookup), new_base, &new_text)?)
}

/// `path_symlink`.
pub(super) fn symlink(call: &mut Call<'_>, target: (u32, u32), path: PathArgument) -> Result<(), Fault> {
    let target = call.memory.path(target.0, target.1)?;
    let (base, text) = path.read(call)?;
    Ok(call.state.job.view.symlink_at(&target, base, &text, USER)?)
}

/// `path_readlink`: truncated at the end of the buffer.
pub(super) fn readlink(call: &mut Call<'_>, path: PathArgument, buffer: u32, length: u32, out: u32) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    let (node, _) = call.state.job.view.find(base, &text, Last::NoFollow)?;
    let target = call.state.job.view.readlink(node)?;
    let kept = target.as_bytes().get(..length as usize).unwrap_or(target.as_bytes());
    call.memory.write(buffer, kept)?;
    Ok(call.memory.write_u32(out, u32::try_from(kept.len()).unwrap_or(0))?)
}
