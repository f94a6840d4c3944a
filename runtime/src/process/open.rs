//! Opening: from a path to an open file of a process: a row, a device, a named pipe or a file of `/proc`.

use std::sync::Arc;

use abi::Errno;
use abi::stat::{S_IFDIR, S_IFIFO, S_IFLNK};
use sqlite_fs::path::{Last, Resolved};
use sqlite_fs::{FsError, Volume as _, VolumeMut as _};

use super::descriptor::{Generated, HeldNode, Object, OpenFile};
use super::pipe::CAPACITY;
use super::wait::block;
use super::{Fault, MemoryCharge, State, proc_files};
use crate::defaults::USER;
use crate::vfs::{Node, Thing};

/// The options of `open(2)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// Follow a link at the end of the path.
    pub(crate) follow: bool,
    /// Create the file if it does not exist.
    pub(crate) create: bool,
    /// Fail if the file exists.
    pub(crate) exclusive: bool,
    /// Fail unless it is a directory.
    pub(crate) directory: bool,
    /// Truncate it.
    pub(crate) truncate: bool,
    /// For reading.
    pub(crate) read: bool,
    /// For writing.
    pub(crate) write: bool,
    /// Every write goes to the end.
    pub(crate) append: bool,
    /// Do not wait for the other end of a named pipe.
    pub(crate) nonblocking: bool,
}

impl Opening {
    /// Returns how to resolve the path: `O_CREAT|O_EXCL` applies to the name itself and does not follow a link.
    pub(crate) fn last(&self) -> Last {
        match self.follow {
            _ if self.create && self.exclusive => Last::Entry,
            true => Last::Follow,
            false => Last::NoFollow,
        }
    }
}

/// Opens a file by its path.
pub(crate) fn open(state: &State, base: Node, path: &str, how: Opening) -> Result<Arc<OpenFile>, Fault> {
    let (view, last) = (&state.job.view, how.last());
    let found = match view.resolve(base, path, last) {
        Err(FsError::NoEntry) if how.create && creates_parents(state) => {
            create_parents(state, base, path)?;
            view.resolve(base, path, last)?
        }
        found => found?,
    };
    open_found(state, &found, how)
}

/// Opens the result of a walk with [`Opening::last`].
pub(crate) fn open_found(state: &State, found: &Resolved<Node>, how: Opening) -> Result<Arc<OpenFile>, Fault> {
    let view = &state.job.view;
    let Some((node, _)) = found.node else {
        if !how.create {
            return Err(Errno::NOENT.into());
        }
        if how.directory {
            return Err(Errno::INVAL.into());
        }
        if found.slash {
            return Err(Errno::ISDIR.into());
        }
        let node = view.create(found, found.for_new()?, 0o666 & !state.umask, USER)?;
        return Ok(OpenFile::new(Object::File(HeldNode::new(view, node)), how.read, how.write, how.append));
    };
    if how.create && how.exclusive {
        return Err(Errno::EXIST.into());
    }
    open_node(state, node, how)
}

// LocalSandbox's shell creates the parent directories of redirections, and so do two of its programs.
fn creates_parents(state: &State) -> bool {
    let program = state.args.first().and_then(|name| name.rsplit(|&byte| byte == b'/').next());
    state.job.view.creates_parents() && matches!(program, Some(b"bash" | b"sh" | b"touch" | b"tee"))
}

fn create_parents(state: &State, base: Node, path: &str) -> Result<(), Fault> {
    for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
        match state.job.view.mkdir_at(base, &path[..at], 0o777 & !state.umask, USER) {
            Ok(_) | Err(FsError::Exists) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn open_node(state: &State, node: Node, how: Opening) -> Result<Arc<OpenFile>, Fault> {
    let descriptor = |fd| state.descriptors.get(fd).map(Arc::clone).map_err(|_| Fault::from(Errno::NOENT));
    let view = &state.job.view;
    if let Node::Descriptor(fd) = node {
        return descriptor(fd);
    }
    let stat = view.attributes(node)?;
    let is_directory = stat.kind() == S_IFDIR;
    if is_directory && (how.write || how.create) {
        return Err(Errno::ISDIR.into());
    }
    if !is_directory && how.directory {
        return Err(Errno::NOTDIR.into());
    }
    if stat.kind() == S_IFLNK {
        return Err(Errno::LOOP.into());
    }
    let grow = how.append && !(how.truncate && stat.size > 0);
    view.may_open(node, stat.mode, how.read, how.write || how.truncate, grow)?;
    if let (Node::Row(ino), S_IFIFO) = (node, stat.kind()) {
        return open_fifo(state, ino, how);
    }
    let object = match view.thing(node) {
        _ if is_directory => Object::Directory(HeldNode::new(view, node)),
        Some(Thing::Standard(fd)) => return descriptor(*fd),
        Some(Thing::Terminal) => return Err(Errno::NXIO.into()),
        Some(Thing::Device(device)) => Object::Device(*device),
        Some(_) if how.write => return Err(Errno::ROFS.into()),
        Some(Thing::Text(text)) => Object::Bytes(text.as_bytes().into()),
        Some(Thing::Program(..) | Thing::Library(_) | Thing::Installed(_) | Thing::Own) => {
            Object::File(HeldNode::new(view, node))
        }
        Some(Thing::Process(file)) => Object::Bytes(proc_files::content(state, *file).into()),
        Some(_) => Object::Bytes(Arc::default()),
        None if !how.write && !how.truncate => match view.generate(node)? {
            // Generated for this descriptor only.
            Some(bytes) => {
                let charge = MemoryCharge::take(&state.job, bytes.len()).ok_or(Errno::NOMEM)?;
                Object::Generated(HeldNode::new(view, node), Generated::new(bytes, charge))
            }
            None => Object::File(HeldNode::new(view, node)),
        },
        None => {
            // The size of generated content is not known.
            if how.truncate && (stat.size > 0 || view.is_lower(node)) {
                view.truncate(node, 0)?;
            }
            Object::File(HeldNode::new(view, node))
        }
    };
    Ok(OpenFile::new(object, how.read, how.write, how.append))
}

// Waits until the other end is opened, as in POSIX.
fn open_fifo(state: &State, ino: u64, how: Opening) -> Result<Arc<OpenFile>, Fault> {
    let (job, process) = (&state.job, &state.process);
    let fifo = job.fifos.get(ino, || MemoryCharge::take(job, CAPACITY)).ok_or(Errno::NOMEM)?;
    let object = match (how.read, how.write) {
        (true, true) => Object::Both(fifo.reader().0, fifo.writer().0),
        (false, true) => {
            let (writer, before) = fifo.writer();
            if how.nonblocking && !fifo.reader_came(u64::MAX) {
                return Err(Errno::NXIO.into());
            }
            block(job, process, None, || fifo.reader_came(before).then_some(()))?;
            Object::Writer(writer)
        }
        _ => {
            let (reader, before) = fifo.reader();
            if !how.nonblocking {
                block(job, process, None, || fifo.writer_came(before).then_some(()))?;
            }
            Object::Reader(reader)
        }
    };
    let file = OpenFile::new(object, how.read, how.write, false);
    file.set_flags(false, how.nonblocking);
    Ok(file)
}
