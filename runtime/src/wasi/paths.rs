//! Preview1's `path_*`: everything that begins with a directory and a name.

use std::sync::Arc;

use abi::Errno;
use abi::stat::{S_IFDIR, S_IFIFO};
use sqlite_fs::path::{Last, Tree};
use sqlite_fs::{Volume, VolumeMut};

use super::call::Call;
use super::files::directory;
use super::metadata;
use super::types;
use crate::process::descriptor::{HeldNode, Object, OpenFile};
use crate::process::pipe::CAPACITY;
use crate::process::wait::block;
use crate::process::{Fault, MemoryCharge, Pid, State};
use crate::vfs::{Node, ProcFile, Thing, USER};

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

fn last(lookup_flags: u32) -> Last {
    if lookup_flags & types::LOOKUP_FOLLOW != 0 { Last::Follow } else { Last::NoFollow }
}

/// How a file is to be opened.
#[derive(Clone, Copy)]
pub(super) struct OpenFlags {
    pub(super) lookup: u32,
    pub(super) open: u32,
    pub(super) rights: u64,
    pub(super) fd: u32,
}

/// `path_open`.
pub(super) fn open(call: &mut Call<'_>, path: PathArgument, flags: OpenFlags, out: u32) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    let file = open_file(call, base, &text, flags)?;
    let fd = call.state.descriptors.insert(file, 0, false)?;
    if let Err(errno) = call.memory.write_u32(out, fd) {
        let _ = call.state.descriptors.close(fd);
        return Err(errno.into());
    }
    Ok(())
}

fn open_file(call: &Call<'_>, base: Node, text: &str, flags: OpenFlags) -> Result<Arc<OpenFile>, Fault> {
    let view = &call.state.tree.view;
    let create = flags.open & types::OPEN_CREATE != 0;
    let exclusive = flags.open & types::OPEN_EXCLUSIVE != 0;
    let readable = flags.rights & types::RIGHT_READ != 0;
    let writable = flags.rights & types::RIGHT_WRITE != 0;
    let append = flags.fd & types::FD_APPEND != 0;

    // O_CREAT|O_EXCL is about the name itself: it does not follow a link there.
    let follow = if create && exclusive { Last::Entry } else { last(flags.lookup) };
    let found = view.resolve(base, text, follow)?;
    let Some((node, _)) = found.node else {
        if !create {
            return Err(Errno::NOENT.into());
        }
        if flags.open & types::OPEN_DIRECTORY != 0 {
            return Err(Errno::INVAL.into());
        }
        if found.slash {
            return Err(Errno::ISDIR.into());
        }
        let node = view.create(&found, found.for_new()?, 0o666 & !call.state.umask, USER)?;
        return Ok(OpenFile::new(Object::File(HeldNode::new(view, node)), readable, writable, append));
    };
    if create && exclusive {
        return Err(Errno::EXIST.into());
    }
    if let Node::Descriptor(fd) = node {
        return call.state.descriptors.get(fd).map(Arc::clone).map_err(|_| Errno::NOENT.into());
    }
    let stat = view.attributes(node)?;
    let is_directory = stat.kind() == S_IFDIR;
    if is_directory && (writable || create) {
        return Err(Errno::ISDIR.into());
    }
    if !is_directory && flags.open & types::OPEN_DIRECTORY != 0 {
        return Err(Errno::NOTDIR.into());
    }
    if stat.kind() == abi::stat::S_IFLNK {
        return Err(Errno::LOOP.into());
    }
    permit(stat.mode, readable, writable || flags.open & types::OPEN_TRUNCATE != 0)?;
    if let (Node::Row(ino), S_IFIFO) = (node, stat.kind()) {
        return open_fifo(call, ino, readable, writable, flags.fd & types::FD_NONBLOCK != 0);
    }
    let object = match view.thing(node) {
        _ if is_directory => Object::Directory(HeldNode::new(view, node)),
        Some(Thing::Standard(fd)) => return call.state.descriptors.get(*fd).map(Arc::clone).map_err(|_| Errno::NOENT.into()),
        Some(Thing::Terminal) => return Err(Errno::NXIO.into()),
        Some(Thing::Device(device)) => Object::Device(*device),
        Some(_) if writable => return Err(Errno::ROFS.into()),
        Some(Thing::Text(text)) => Object::Bytes(text.as_bytes().into()),
        Some(Thing::Program(..) | Thing::Library(_) | Thing::Installed(_)) => Object::File(HeldNode::new(view, node)),
        Some(Thing::Process(file)) => Object::Bytes(proc_file(call, *file).into()),
        Some(_) => Object::Bytes(Arc::default()),
        None => {
            if flags.open & types::OPEN_TRUNCATE != 0 && stat.size > 0 {
                view.truncate(node, 0)?;
            }
            Object::File(HeldNode::new(view, node))
        }
    };
    Ok(OpenFile::new(object, readable, writable, append))
}

/// Opens a pipe with a name; waits until somebody has opened its other end, as POSIX has it.
fn open_fifo(call: &Call<'_>, ino: u64, readable: bool, writable: bool, nonblocking: bool) -> Result<Arc<OpenFile>, Fault> {
    let (tree, process) = (&call.state.tree, &call.state.process);
    let fifo = tree.fifos.get(ino, || MemoryCharge::take(tree, CAPACITY)).ok_or(Errno::NOMEM)?;
    let object = match (readable, writable) {
        (true, true) => Object::Both(fifo.reader().0, fifo.writer().0),
        (false, true) => {
            let (writer, before) = fifo.writer();
            if nonblocking && !fifo.reader_came(u64::MAX) {
                return Err(Errno::NXIO.into());
            }
            block(tree, process, None, || fifo.reader_came(before).then_some(()))?;
            Object::Writer(writer)
        }
        _ => {
            let (reader, before) = fifo.reader();
            if !nonblocking {
                block(tree, process, None, || fifo.writer_came(before).then_some(()))?;
            }
            Object::Reader(reader)
        }
    };
    let file = OpenFile::new(object, readable, writable, false);
    file.set_flags(false, nonblocking);
    Ok(file)
}

// The sandbox's user owns everything in it: the owner's bits decide.
fn permit(mode: u32, read: bool, write: bool) -> Result<(), Errno> {
    if (read && mode & 0o400 == 0) || (write && mode & 0o200 == 0) { Err(Errno::ACCES) } else { Ok(()) }
}

fn proc_file(call: &Call<'_>, file: ProcFile) -> Vec<u8> {
    let state = &*call.state;
    let meter = &state.tree.meter;
    match file {
        ProcFile::Cmdline => zero_terminated(abi::program::meant(&state.args).1),
        ProcFile::Environ => zero_terminated(&state.env),
        ProcFile::Comm => format!("{}\n", command_name(state)).into_bytes(),
        ProcFile::Stat => {
            let (pid, parent, group) = ids(state);
            let (name, zeros) = (command_name(state), " 0".repeat(44));
            format!("{pid} ({name}) R {parent} {group} {group} 0 -1{zeros}\n").into_bytes()
        }
        ProcFile::Status => {
            let (pid, parent, _) = ids(state);
            let (name, umask) = (command_name(state), state.umask);
            let peak = meter.usage().memory_peak / 1024;
            format!(
                "Name:\t{name}\nUmask:\t{umask:04o}\nState:\tR (running)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{parent}\nTracerPid:\t0\n\
                 Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nVmPeak:\t{peak:8} kB\nThreads:\t1\n"
            )
            .into_bytes()
        }
        ProcFile::Mounts => state.tree.view.mount_lines().into_bytes(),
        ProcFile::Meminfo => {
            let total = meter.limits().memory.0 / 1024;
            let free = total.saturating_sub(meter.usage().memory_peak / 1024);
            format!("MemTotal:       {total} kB\nMemFree:        {free} kB\nMemAvailable:   {free} kB\n").into_bytes()
        }
        ProcFile::Uptime => {
            let seconds = state.tree.clock.monotonic() / 10_000_000;
            format!("{}.{:02} 0.00\n", seconds / 100, seconds % 100).into_bytes()
        }
    }
}

// As the kernel keeps it: the program's last name, cut at 15 bytes.
fn command_name(state: &State) -> String {
    let path = abi::program::meant(&state.args).1.first().map_or(&b"?"[..], Vec::as_slice);
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(name.get(..15).unwrap_or(name)).into_owned()
}

fn ids(state: &State) -> (Pid, Pid, Pid) {
    let table = state.tree.table();
    (state.process.pid, table.parent(state.process.pid), table.group(state.process.pid))
}

fn zero_terminated(strings: &[Vec<u8>]) -> Vec<u8> {
    strings.iter().flat_map(|string| string.iter().copied().chain([0])).collect()
}

/// `path_filestat_get`.
pub(super) fn filestat(call: &mut Call<'_>, path: PathArgument, lookup: u32, out: u32) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    let (node, _) = call.state.tree.view.find(base, &text, last(lookup))?;
    let stat = metadata::of_node(call, node)?;
    Ok(call.memory.write(out, &types::filestat(&stat))?)
}

/// `path_filestat_set_times`.
pub(super) fn set_times(call: &mut Call<'_>, path: PathArgument, lookup: u32, times: [u64; 2], flags: u32) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    let (node, _) = call.state.tree.view.find(base, &text, last(lookup))?;
    metadata::set_times(call, node, times[0], times[1], flags)
}

/// `path_create_directory`.
pub(super) fn create_directory(call: &mut Call<'_>, path: PathArgument) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    call.state.tree.view.mkdir_at(base, &text, 0o777 & !call.state.umask, USER)?;
    Ok(())
}

/// `path_remove_directory`.
pub(super) fn remove_directory(call: &mut Call<'_>, path: PathArgument) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    Ok(call.state.tree.view.rmdir_at(base, &text)?)
}

/// `path_unlink_file`.
pub(super) fn unlink(call: &mut Call<'_>, path: PathArgument) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    Ok(call.state.tree.view.unlink_at(base, &text)?)
}

/// `path_rename`.
pub(super) fn rename(call: &mut Call<'_>, old: PathArgument, new: PathArgument) -> Result<(), Fault> {
    let (old_base, old_text) = old.read(call)?;
    let (new_base, new_text) = new.read(call)?;
    Ok(call.state.tree.view.rename_at(old_base, &old_text, new_base, &new_text)?)
}

/// `path_link`.
pub(super) fn link(call: &mut Call<'_>, lookup: u32, old: PathArgument, new: PathArgument) -> Result<(), Fault> {
    let (old_base, old_text) = old.read(call)?;
    let (new_base, new_text) = new.read(call)?;
    Ok(call.state.tree.view.link_at(old_base, &old_text, last(lookup), new_base, &new_text)?)
}

/// `path_symlink`.
pub(super) fn symlink(call: &mut Call<'_>, target: (u32, u32), path: PathArgument) -> Result<(), Fault> {
    let target = call.memory.path(target.0, target.1)?;
    let (base, text) = path.read(call)?;
    Ok(call.state.tree.view.symlink_at(&target, base, &text, USER)?)
}

/// `path_readlink`: cut where the buffer ends.
pub(super) fn readlink(call: &mut Call<'_>, path: PathArgument, buffer: u32, length: u32, out: u32) -> Result<(), Fault> {
    let (base, text) = path.read(call)?;
    let (node, _) = call.state.tree.view.find(base, &text, Last::NoFollow)?;
    let target = call.state.tree.view.readlink(node)?;
    let kept = target.as_bytes().get(..length as usize).unwrap_or(target.as_bytes());
    call.memory.write(buffer, kept)?;
    Ok(call.memory.write_u32(out, u32::try_from(kept.len()).unwrap_or(0))?)
}
