//! Reading and changing the metadata of an open file or a path.

use abi::Errno;
use abi::stat::{S_IFCHR, S_IFIFO, S_IFREG, Stat};

use sqlite_fs::VolumeMut;

use super::types;
use crate::defaults::USER;
use crate::process::descriptor::{Object, OpenFile};
use crate::process::{Fault, State};
use crate::vfs::Node;

/// Returns the metadata of an open file.
pub(super) fn of_file(state: &State, file: &OpenFile) -> Result<Stat, Fault> {
    let made_up = |mode, size| Stat { ino: 1, mode, nlink: 1, size, uid: USER.uid, gid: USER.gid, ..Stat::default() };
    match &file.object {
        Object::File(held) | Object::Directory(held) => Ok(state.job.view.attributes(held.node)?),
        Object::Generated(held, generated) => {
            Ok(Stat { size: generated.bytes.len() as u64, ..state.job.view.attributes(held.node)? })
        }
        Object::Bytes(bytes) => Ok(made_up(S_IFREG | 0o444, bytes.len() as u64)),
        Object::Device(_) => Ok(made_up(S_IFCHR | 0o666, 0)),
        Object::Reader(reader) if reader.is_terminal() => Ok(made_up(S_IFCHR | 0o620, 0)),
        Object::Reader(_) | Object::Writer(_) | Object::Both(..) | Object::Capture(_) => Ok(made_up(S_IFIFO | 0o600, 0)),
    }
}

/// Returns the metadata of a node, which may be one of the caller's descriptors.
pub(super) fn of_node(state: &State, node: Node) -> Result<Stat, Fault> {
    match node {
        Node::Descriptor(fd) => of_file(state, state.descriptors.get(fd).map_err(|_| Errno::NOENT)?),
        node => Ok(state.job.view.attributes(node)?),
    }
}

/// Sets times according to `fstflags`.
pub(super) fn set_times(state: &State, node: Node, atime: u64, mtime: u64, flags: u32) -> Result<(), Fault> {
    let now = state.job.clock.realtime();
    let chosen = |given: u64, set: u32, set_now: u32| match (flags & set != 0, flags & set_now != 0) {
        (true, true) => Err(Errno::INVAL),
        (true, false) => i64::try_from(given).map(Some).map_err(|_| Errno::INVAL),
        (false, true) => Ok(Some(i64::try_from(now).unwrap_or(i64::MAX))),
        (false, false) => Ok(None),
    };
    let atime = chosen(atime, types::SET_ATIME, types::SET_ATIME_NOW)?;
    let mtime = chosen(mtime, types::SET_MTIME, types::SET_MTIME_NOW)?;
    Ok(state.job.view.set_times(node, atime, mtime)?)
}

/// Sets owner and group; `u32::MAX` leaves one unchanged.
pub(super) fn chown(state: &State, node: Node, uid: u32, gid: u32) -> Result<(), Fault> {
    let given = |id: u32| (id != u32::MAX).then_some(id);
    Ok(state.job.view.chown(node, given(uid), given(gid))?)
}
