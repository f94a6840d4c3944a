//! The imports of `guests/abi`: processes, pipes, signals, full metadata.

use std::sync::Arc;

use abi::spawn::Request;
use abi::{Counter, Disposition, Errno, Signal, WAIT_NO_HANG};
use sqlite_fs::path::Last;
use sqlite_fs::{Volume, VolumeMut};

use super::call::Call;
use super::{files, metadata};
use crate::defaults::USER;
use crate::process::descriptor::{Object, OpenFile};
use crate::process::pipe::{CAPACITY, pipe};
use crate::process::{self, FIRST, Fault, KeptState, MemoryCharge, WaitFor};
use crate::vfs::{Node, ROOT_NODE};

/// Maximum size of an encoded request; the preset's limit on command text is checked inside it.
const MAX_REQUEST_BYTES: u32 = 8 << 20;

fn request(call: &mut Call<'_>, pointer: u32, length: u32) -> Result<Request, Errno> {
    call.charge_bytes(length as usize);
    let bytes = call.memory.copy(pointer, length, MAX_REQUEST_BYTES)?;
    Request::decode(&bytes).ok_or(Errno::INVAL)
}

/// `spawn`.
pub(super) fn spawn(call: &mut Call<'_>, pointer: u32, length: u32, out: u32) -> Result<(), Fault> {
    let request = request(call, pointer, length)?;
    call.memory.bytes(out, 4)?;
    let pid = process::start(call.state, &request)?;
    Ok(call.memory.write_u32(out, pid)?)
}

/// `exec`: checked here, so that a program that cannot be run is an errno; performed after this instance has ended.
pub(super) fn exec(call: &mut Call<'_>, pointer: u32, length: u32) -> Result<(), Fault> {
    let request = request(call, pointer, length)?;
    Err(process::exec(&call.state.job, request)?.into())
}

/// Returns the children selected by the number of `wait`.
pub(super) fn which_children(call: &Call<'_>, pid: i32) -> WaitFor {
    match pid {
        1.. => WaitFor::Child(pid.unsigned_abs()),
        -1 => WaitFor::Any,
        0 => WaitFor::Group(call.state.job.table().group(call.state.process.pid)),
        _ => WaitFor::Group(pid.unsigned_abs()),
    }
}

/// `wait`.
pub(super) fn wait(call: &mut Call<'_>, pid: i32, flags: u32, out: u32) -> Result<(), Fault> {
    call.may_wait();
    call.memory.bytes(out, 8)?;
    let which = which_children(call, pid);
    let waited = call.state.job.wait_for(&call.state.process, which, flags & WAIT_NO_HANG == 0)?;
    let (pid, status) = waited.map_or((0, 0), |waited| (waited.pid, waited.status.to_raw()));
    call.memory.write_u32(out, pid)?;
    Ok(call.memory.write_u32(out.checked_add(4).ok_or(Errno::FAULT)?, status)?)
}

/// `kill`.
pub(super) fn kill(call: &mut Call<'_>, pid: i32, signal: u32) -> Result<(), Fault> {
    let signal = match signal {
        0 => None,
        raw => Some(Signal::from_raw(raw).ok_or(Errno::INVAL)?),
    };
    call.state.job.table().signal(call.state.process.pid, pid, signal)?;
    // A computing process checks at the next tick; make it happen now.
    call.state.job.host.interrupt();
    Ok(())
}

/// `signal_action`.
pub(super) fn signal_action(call: &mut Call<'_>, signal: u32, disposition: u32, out: u32) -> Result<(), Fault> {
    let old = set_action(call, signal, disposition)?;
    Ok(call.memory.write_u32(out, old)?)
}

/// Sets the action of a signal and returns the previous one.
pub(super) fn set_action(call: &mut Call<'_>, signal: u32, disposition: u32) -> Result<u32, Errno> {
    let signal = Signal::from_raw(signal).filter(|signal| ![Signal::KILL, Signal::STOP].contains(signal));
    let disposition = Disposition::from_raw(disposition).ok_or(Errno::INVAL)?;
    Ok(call.state.process.set_disposition(signal.ok_or(Errno::INVAL)?, disposition) as u32)
}

/// `signals_take`.
pub(super) fn signals_take(call: &mut Call<'_>, out: u32) -> Result<(), Fault> {
    let mask = call.state.process.take_caught();
    Ok(call.memory.write_u64(out, mask)?)
}

/// `signals_ignored`.
pub(super) fn signals_ignored(call: &mut Call<'_>, out: u32) -> Result<(), Fault> {
    let mask = call.state.process.ignored();
    Ok(call.memory.write_u64(out, mask)?)
}

/// `process_ids`.
pub(super) fn process_ids(call: &mut Call<'_>, out: u32) -> Result<(), Fault> {
    let pid = call.state.process.pid;
    let (parent, group) = {
        let table = call.state.job.table();
        (table.parent(pid), table.group(pid))
    };
    let mut bytes = [0; 12];
    for (slot, id) in bytes.as_chunks_mut::<4>().0.iter_mut().zip([pid, parent, group]) {
        *slot = id.to_le_bytes();
    }
    Ok(call.memory.write(out, &bytes)?)
}

/// `set_group`.
pub(super) fn set_group(call: &mut Call<'_>, pid: u32, group: u32) -> Result<(), Fault> {
    Ok(call.state.job.table().set_group(call.state.process.pid, pid, group)?)
}

/// `pipe`.
pub(super) fn make_pipe(call: &mut Call<'_>, out: u32) -> Result<(), Fault> {
    call.memory.bytes(out, 8)?;
    let (reading, writing) = new_pipe(call, false)?;
    call.memory.write_u32(out, reading)?;
    Ok(call.memory.write_u32(out.checked_add(4).ok_or(Errno::FAULT)?, writing)?)
}

/// Creates both ends of a pipe, or neither.
pub(super) fn new_pipe(call: &mut Call<'_>, close_on_exec: bool) -> Result<(u32, u32), Errno> {
    let charge = MemoryCharge::take(&call.state.job, CAPACITY).ok_or(Errno::NOMEM)?;
    let (reader, writer) = pipe(Some(charge));
    let descriptors = &mut call.state.descriptors;
    let reading = descriptors.insert(OpenFile::new(Object::Reader(reader), true, false, false), 0, close_on_exec)?;
    match descriptors.insert(OpenFile::new(Object::Writer(writer), false, true, false), 0, close_on_exec) {
        Ok(writing) => Ok((reading, writing)),
        Err(errno) => {
            descriptors.close(reading)?;
            Err(errno)
        }
    }
}

/// `dup`.
pub(super) fn dup(call: &mut Call<'_>, fd: u32, minimum: u32, close_on_exec: u32, out: u32) -> Result<(), Fault> {
    let file = files::file(call, fd)?;
    let new = call.state.descriptors.insert(file, minimum, close_on_exec != 0)?;
    Ok(call.memory.write_u32(out, new)?)
}

/// `cwd`.
pub(super) fn cwd(call: &mut Call<'_>, buffer: u32, capacity: u32, out: u32) -> Result<(), Fault> {
    let length = u32::try_from(call.state.cwd.len()).map_err(|_| Errno::OVERFLOW)?;
    if length > capacity {
        return Err(Errno::RANGE.into());
    }
    call.memory.write(buffer, &call.state.cwd)?;
    Ok(call.memory.write_u32(out, length)?)
}

/// `session_load`: returns the length of the state, and the state itself if it fits.
pub(super) fn session_load(call: &mut Call<'_>, buffer: u32, capacity: u32, out: u32) -> Result<(), Fault> {
    let session = session(call)?;
    let given = session.given().ok_or(Errno::NOENT)?;
    let length = u32::try_from(given.len()).map_err(|_| Errno::OVERFLOW)?;
    if length <= capacity {
        call.charge_bytes(given.len());
        call.memory.write(buffer, given)?;
    }
    Ok(call.memory.write_u32(out, length)?)
}

/// `session_save`.
pub(super) fn session_save(call: &mut Call<'_>, pointer: u32, length: u32) -> Result<(), Fault> {
    let session = session(call)?;
    let limit = session.check(length)?;
    // Held until the command ends.
    if !call.state.job.meter.take_memory(u64::from(length)) {
        return Err(Errno::NOMEM.into());
    }
    call.charge_bytes(length as usize);
    session.leave(call.memory.copy(pointer, length, limit)?);
    Ok(())
}

fn session(call: &Call<'_>) -> Result<Arc<KeptState>, Errno> {
    call.state.job.session.clone().filter(|_| call.state.process.pid == FIRST).ok_or(Errno::NOENT)
}

/// `umask`.
pub(super) fn umask(call: &mut Call<'_>, mask: u32, out: u32) -> Result<(), Fault> {
    let old = std::mem::replace(&mut call.state.umask, mask & 0o777);
    Ok(call.memory.write_u32(out, old)?)
}

fn node(call: &Call<'_>, path: (u32, u32), follow: u32) -> Result<Node, Fault> {
    node_at(call, &call.memory.path(path.0, path.1)?, follow)
}

/// Returns the node at an absolute path.
pub(super) fn node_at(call: &Call<'_>, path: &str, follow: u32) -> Result<Node, Fault> {
    let last = if follow != 0 { Last::Follow } else { Last::NoFollow };
    Ok(call.state.job.view.find(ROOT_NODE, path, last)?.0)
}

/// `stat`.
pub(super) fn stat(call: &mut Call<'_>, path: (u32, u32), follow: u32, out: u32) -> Result<(), Fault> {
    let node = node(call, path, follow)?;
    let stat = metadata::of_node(call.state, node)?;
    Ok(call.memory.write(out, &stat.encode())?)
}

/// `fstat`.
pub(super) fn fstat(call: &mut Call<'_>, fd: u32, out: u32) -> Result<(), Fault> {
    let stat = files::stat(call, fd)?;
    Ok(call.memory.write(out, &stat.encode())?)
}

/// `mkfifo`.
pub(super) fn mkfifo(call: &mut Call<'_>, (pointer, length): (u32, u32), mode: u32) -> Result<(), Fault> {
    let path = call.memory.path(pointer, length)?;
    call.state.job.view.mkfifo_at(ROOT_NODE, &path, mode & !call.state.umask, USER)?;
    Ok(())
}

/// `chmod`.
pub(super) fn chmod(call: &mut Call<'_>, path: (u32, u32), follow: u32, mode: u32) -> Result<(), Fault> {
    let node = node(call, path, follow)?;
    Ok(call.state.job.view.chmod(node, mode)?)
}

/// `chown`.
pub(super) fn chown(call: &mut Call<'_>, path: (u32, u32), follow: u32, uid: u32, gid: u32) -> Result<(), Fault> {
    let node = node(call, path, follow)?;
    metadata::chown(call.state, node, uid, gid)
}

/// `count`: a process that reaches the limit is notified once, so that its buffered output is not lost, and ended the next time.
pub(super) fn count(call: &mut Call<'_>, counter: u32, amount: u32) -> Result<(), Fault> {
    let meter = &call.state.job.meter;
    let within = match Counter::from_raw(counter).ok_or(Errno::INVAL)? {
        Counter::Loops => meter.check_loop(u64::from(amount)),
        Counter::Commands => meter.count_commands(u64::from(amount)),
    };
    match within {
        Ok(()) => Ok(()),
        Err(_) if !std::mem::replace(&mut call.state.told_of_limit, true) => Err(Errno::CANCELED.into()),
        Err(reached) => Err(reached.into()),
    }
}
