//! `wasi:filesystem` on open files: a component's descriptor is a descriptor of the process, so its limit and `/proc/self/fd` are
//! those of every program. Access is decided by the view.

use std::collections::VecDeque;
use std::sync::Arc;

use abi::Errno;
use sqlite_fs::{FileType, VolumeMut as _};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType, WasmList, WasmStr};

use super::streams::{Failure, Input, Output};
use super::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, MetadataHash, NewTimestamp, OpenFlags,
    PathFlags,
};
use super::{Call, drop_resource, enter, functions, paths, plain};
use crate::process::descriptor::{HeldNode, Object, OpenFile, ROOT_DESCRIPTOR};
use crate::process::{self, Fault, State};
use crate::wasi::foreign::rights;
use crate::wasi::memory::MAX_IO_BYTES;
use crate::wasi::{files, metadata};

/// `types.descriptor`: its number is that of the process's descriptor.
pub(super) struct Descriptor;

/// `types.directory-entry-stream`.
pub(super) struct Entries {
    directory: Arc<OpenFile>,
    // Read from the directory, and not yet by the component.
    next: VecDeque<DirectoryEntry>,
    cookie: u64,
}

// The result of a function of the interface.
fn coded<T>(result: Result<T, Errno>) -> wasmtime::Result<Result<T, ErrorCode>> {
    Ok(result.map_err(ErrorCode::from))
}

pub(super) fn register(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance("wasi:filesystem/types@0.2.0")?;
    types.resource("descriptor", ResourceType::host::<Descriptor>(), close)?;
    types.resource("directory-entry-stream", ResourceType::host::<Entries>(), drop_resource::<Entries>)?;
    functions! { types, plain;
        "filesystem-error-code" (error: Resource<Failure>) => |call| Ok(Some(ErrorCode::from(call.get(&error)?.0)));
        "[method]descriptor.is-same-object" (one: Resource<Descriptor>, other: Resource<Descriptor>) => |call| Ok(MetadataHash::from(stat(call, &one)?) == MetadataHash::from(stat(call, &other)?));
    }
    functions! { types, coded;
        "[method]descriptor.read-via-stream" (file: Resource<Descriptor>, offset: u64) => |call| read_stream(call, &file, offset);
        "[method]descriptor.write-via-stream" (file: Resource<Descriptor>, offset: u64) => |call| write_stream(call, &file, offset);
        "[method]descriptor.append-via-stream" (file: Resource<Descriptor>) => |call| append_stream(call, &file);
        "[method]descriptor.advise" (file: Resource<Descriptor>, _offset: u64, _length: u64, _advice: Advice) => |call| sync(call, &file);
        "[method]descriptor.sync-data" (file: Resource<Descriptor>) => |call| sync(call, &file);
        "[method]descriptor.sync" (file: Resource<Descriptor>) => |call| sync(call, &file);
        "[method]descriptor.get-flags" (file: Resource<Descriptor>) => |call| flags(call, &file);
        "[method]descriptor.get-type" (file: Resource<Descriptor>) => |call| Ok(DescriptorType::new(stat(call, &file)?.kind()));
        "[method]descriptor.set-size" (file: Resource<Descriptor>, size: u64) => |call| set_size(call, &file, size);
        "[method]descriptor.set-times" (file: Resource<Descriptor>, accessed: NewTimestamp, modified: NewTimestamp) => |call| set_times(call, &file, accessed, modified);
        "[method]descriptor.read" (file: Resource<Descriptor>, length: u64, offset: u64) => |call| read(call, &file, length, offset);
        "[method]descriptor.write" (file: Resource<Descriptor>, bytes: WasmList<u8>, offset: u64) => |call| write(call, &file, &bytes, offset);
        "[method]descriptor.stat" (file: Resource<Descriptor>) => |call| Ok(DescriptorStat::from(stat(call, &file)?));
        "[method]descriptor.metadata-hash" (file: Resource<Descriptor>) => |call| Ok(MetadataHash::from(stat(call, &file)?));
        "[method]descriptor.read-directory" (file: Resource<Descriptor>) => |call| entries(call, &file);
        "[method]directory-entry-stream.read-directory-entry" (entries: Resource<Entries>) => |call| next_entry(call, &entries);
    }
    functions! { types, coded;
        "[method]descriptor.create-directory-at" (at: Resource<Descriptor>, path: WasmStr) => |call| paths::create_directory(call, &at, &path);
        "[method]descriptor.stat-at" (at: Resource<Descriptor>, flags: PathFlags, path: WasmStr) => |call| Ok(DescriptorStat::from(paths::stat(call, &at, flags, &path)?));
        "[method]descriptor.metadata-hash-at" (at: Resource<Descriptor>, flags: PathFlags, path: WasmStr) => |call| Ok(MetadataHash::from(paths::stat(call, &at, flags, &path)?));
        "[method]descriptor.set-times-at" (at: Resource<Descriptor>, flags: PathFlags, path: WasmStr, accessed: NewTimestamp, modified: NewTimestamp) => |call| paths::set_times(call, &at, flags, &path, [accessed, modified]);
        "[method]descriptor.link-at" (at: Resource<Descriptor>, flags: PathFlags, old: WasmStr, to: Resource<Descriptor>, new: WasmStr) => |call| paths::link(call, (&at, flags, &old), (&to, &new));
        "[method]descriptor.open-at" (at: Resource<Descriptor>, follow: PathFlags, path: WasmStr, open: OpenFlags, flags: DescriptorFlags) => |call| paths::open(call, &at, &path, (follow, open, flags));
        "[method]descriptor.readlink-at" (at: Resource<Descriptor>, path: WasmStr) => |call| paths::readlink(call, &at, &path);
        "[method]descriptor.remove-directory-at" (at: Resource<Descriptor>, path: WasmStr) => |call| paths::remove_directory(call, &at, &path);
        "[method]descriptor.rename-at" (at: Resource<Descriptor>, old: WasmStr, to: Resource<Descriptor>, new: WasmStr) => |call| paths::rename(call, (&at, &old), (&to, &new));
        "[method]descriptor.symlink-at" (at: Resource<Descriptor>, target: WasmStr, path: WasmStr) => |call| paths::symlink(call, &at, &target, &path);
        "[method]descriptor.unlink-file-at" (at: Resource<Descriptor>, path: WasmStr) => |call| paths::unlink(call, &at, &path);
    }
    let mut preopens = linker.instance("wasi:filesystem/preopens@0.2.0")?;
    functions! { preopens, plain;
        "get-directories" () => |call| preopened(call);
    }
    Ok(())
}

/// Returns the open file of a descriptor.
pub(super) fn open_file(call: &Call<'_>, file: &Resource<Descriptor>) -> Result<Arc<OpenFile>, Errno> {
    call.state().descriptors.get(file.rep()).map(Arc::clone)
}

/// Gives the component a descriptor.
pub(super) fn insert(call: &mut Call<'_>, file: Arc<OpenFile>) -> Result<Resource<Descriptor>, Fault> {
    // A closed standard stream stays closed.
    Ok(Resource::new_own(call.store.data_mut().descriptors.insert(file, ROOT_DESCRIPTOR, true)?))
}

fn close(store: StoreContextMut<'_, State>, number: u32) -> wasmtime::Result<()> {
    plain(enter(store, |call| Ok(call.store.data_mut().descriptors.close(number)?))?)
}

// Each call opens the directories anew: a component may drop what it gets.
fn preopened(call: &mut Call<'_>) -> Result<Vec<(Resource<Descriptor>, String)>, Fault> {
    let mut own = Vec::new();
    for (name, directory) in process::directories(call.state())? {
        let descriptor = insert(call, directory)?;
        *call.store.data_mut().descriptors.grant_mut(descriptor.rep())? = rights::preopened(&name);
        own.push((descriptor, name));
    }
    Ok(own)
}

fn stat(call: &Call<'_>, file: &Resource<Descriptor>) -> Result<abi::stat::Stat, Fault> {
    let file = open_file(call, file)?;
    metadata::of_file(call.state(), &file)
}

// Only the command's transaction is made durable.
fn sync(call: &Call<'_>, file: &Resource<Descriptor>) -> Result<(), Fault> {
    Ok(open_file(call, file).map(drop)?)
}

fn flags(call: &Call<'_>, file: &Resource<Descriptor>) -> Result<DescriptorFlags, Fault> {
    let file = open_file(call, file)?;
    let mut flags = DescriptorFlags::empty();
    if file.readable {
        flags |= DescriptorFlags::READ;
    }
    if file.writable {
        flags |= DescriptorFlags::WRITE;
    }
    if file.directory().is_ok() {
        flags |= DescriptorFlags::MUTATE_DIRECTORY;
    }
    Ok(flags)
}

fn read_stream(call: &mut Call<'_>, file: &Resource<Descriptor>, offset: u64) -> Result<Resource<Input>, Fault> {
    let file = open_file(call, file)?;
    match &file.object {
        Object::Directory(_) => Err(Errno::ISDIR.into()),
        _ if !file.readable => Err(Errno::BADF.into()),
        // They have no offsets.
        Object::Reader(_) | Object::Both(..) => call.push(Input::new(file)),
        _ => call.push(Input::at(file, offset)),
    }
}

fn write_stream(call: &mut Call<'_>, file: &Resource<Descriptor>, offset: u64) -> Result<Resource<Output>, Fault> {
    let file = open_file(call, file)?;
    match &file.object {
        Object::Directory(_) => Err(Errno::ISDIR.into()),
        _ if !file.writable => Err(Errno::BADF.into()),
        // A file that only grows is written at its end.
        Object::File(_) if !file.append() => call.push(Output::at(file, offset)),
        _ => call.push(Output::new(file)),
    }
}

fn append_stream(call: &mut Call<'_>, file: &Resource<Descriptor>) -> Result<Resource<Output>, Fault> {
    let file = open_file(call, file)?;
    match &file.object {
        Object::Directory(_) => Err(Errno::ISDIR.into()),
        _ if !file.writable => Err(Errno::BADF.into()),
        Object::File(held) => {
            let held = HeldNode::new(&call.state().job.view, held.node);
            call.push(Output::new(OpenFile::new(Object::File(held), false, true, true)))
        }
        _ => call.push(Output::new(file)),
    }
}

fn set_size(call: &Call<'_>, file: &Resource<Descriptor>, size: u64) -> Result<(), Fault> {
    let file = open_file(call, file)?;
    match &file.object {
        Object::File(held) if file.writable => Ok(call.state().job.view.truncate(held.node, size)?),
        Object::File(_) => Err(Errno::BADF.into()),
        Object::Directory(_) => Err(Errno::ISDIR.into()),
        _ => Err(Errno::INVAL.into()),
    }
}

fn set_times(call: &Call<'_>, file: &Resource<Descriptor>, accessed: NewTimestamp, modified: NewTimestamp) -> Result<(), Fault> {
    let file = open_file(call, file)?;
    let (Object::File(held) | Object::Directory(held) | Object::Generated(held, ..)) = &file.object else {
        return Err(Errno::INVAL.into());
    };
    let job = &call.state().job;
    let now = job.clock.realtime();
    Ok(job.view.set_times(held.node, accessed.nanos(now)?, modified.nanos(now)?)?)
}

fn read(call: &mut Call<'_>, file: &Resource<Descriptor>, length: u64, offset: u64) -> Result<(Vec<u8>, bool), Fault> {
    let file = open_file(call, file)?;
    let length = u32::try_from(length).unwrap_or(MAX_IO_BYTES).min(MAX_IO_BYTES);
    let mut bytes = vec![0; length as usize];
    let read = file.read_at(&call.state().job, offset, &mut bytes)?;
    bytes.truncate(read);
    call.charge_bytes(read);
    Ok((bytes, length > 0 && read == 0))
}

fn write(call: &mut Call<'_>, file: &Resource<Descriptor>, bytes: &WasmList<u8>, offset: u64) -> Result<u64, Fault> {
    let file = open_file(call, file)?;
    let bytes = bytes.as_le_slice(&call.store);
    let piece = bytes.get(..MAX_IO_BYTES as usize).unwrap_or(bytes);
    let written = file.write_at(&call.state().job, offset, piece)?;
    call.charge_bytes(written);
    Ok(written as u64)
}

fn entries(call: &mut Call<'_>, file: &Resource<Descriptor>) -> Result<Resource<Entries>, Fault> {
    let directory = open_file(call, file)?;
    directory.directory()?;
    call.push(Entries { directory, next: VecDeque::new(), cookie: 0 })
}

fn next_entry(call: &mut Call<'_>, entries: &Resource<Entries>) -> Result<Option<DirectoryEntry>, Fault> {
    let Entries { directory, next, cookie } = call.get(entries)?;
    if next.is_empty() {
        let (node, cookie) = (directory.directory()?, *cookie);
        let read = files::children(call.state(), node, cookie)?;
        call.charge_bytes(read.iter().map(|entry| entry.name.len()).sum());
        let kind = |kind: FileType| DescriptorType::new(kind.bits());
        let entries = call.get_mut(entries)?;
        entries.cookie = read.last().map_or(cookie, |entry| entry.cookie);
        entries.next = read.into_iter().map(|entry| DirectoryEntry { kind: kind(entry.kind), name: entry.name }).collect();
    }
    Ok(call.get_mut(entries)?.next.pop_front())
}
