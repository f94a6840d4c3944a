//! Metadata: what an open file or a path says about itself, and changing it.

use abi::Errno;
use abi::stat::{S_IFCHR, S_IFIFO, S_IFREG, Stat};

use super::call::Call;
use super::types;
use crate::process::Fault;
use crate::process::descriptor::{Object, OpenFile};
use crate::vfs::Node;

/// The metadata of an open file.
pub(super) fn of_file(call: &Call<'_>, file: &OpenFile) -> Result<Stat, Errno> {
    let made_up = |mode, size| Stat { ino: 1, mode, nlink: 1, size, uid: 1000, gid: 1000, ..Stat::default() };
    match &file.object {
        Object::File(held) | Object::Directory(held) => call.state.tree.vfs.stat(held.node),
        Object::Bytes(bytes) => Ok(made_up(S_IFREG | 0o444, bytes.len() as u64)),
        Object::Device(_) => Ok(made_up(S_IFCHR | 0o666, 0)),
        Object::Reader(_) | Object::Writer(_) | Object::Both(..) | Object::Capture(_) => Ok(made_up(S_IFIFO | 0o600, 0)),
    }
}

/// The metadata of a node, which may be one of the caller's descriptors.
pub(super) fn of_node(call: &Call<'_>, node: Node) -> Result<Stat, Errno> {
    match node {
        Node::Descriptor(fd) => of_file(call, call.state.descriptors.get(fd).map_err(|_| Errno::NOENT)?),
        node => call.state.tree.vfs.stat(node),
    }
}

/// Sets times as `fstflags` say.
pub(super) fn set_times(call: &mut Call<'_>, node: Node, atime: u64, mtime: u64, flags: u32) -> Result<(), Fault> {
    let now = call.state.tree.clock.realtime();
    let chosen = |given: u64, set: u32, set_now: u32| match (flags & set != 0, flags & set_now != 0) {
        (true, true) => Err(Errno::INVAL),
        (true, false) => i64::try_from(given).map(Some).map_err(|_| Errno::INVAL),
        (false, true) => Ok(Some(i64::try_from(now).unwrap_or(i64::MAX))),
        (false, false) => Ok(None),
    };
    let atime = chosen(atime, types::SET_ATIME, types::SET_ATIME_NOW)?;
    let mtime = chosen(mtime, types::SET_MTIME, types::SET_MTIME_NOW)?;
    Ok(call.state.tree.vfs.set_times(node, atime, mtime)?)
}
