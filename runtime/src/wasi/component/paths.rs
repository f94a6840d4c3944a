//! `wasi:filesystem` on paths: the same walk as for modules. If a command was given directories, a path stays below the one it
//! starts in.

use abi::Errno;
use abi::stat::Stat;
use sqlite_fs::VolumeMut as _;
use sqlite_fs::path::{Last, Tree as _};
use wasmtime::component::{Resource, WasmStr};

use super::Call;
use super::descriptors::{Descriptor, insert};
use super::types::{DescriptorFlags, NewTimestamp, OpenFlags, PathFlags};
use crate::defaults::USER;
use crate::process::{self, Fault, Opening, Roots};
use crate::wasi::foreign::paths::Given;
use crate::wasi::memory::MAX_PATH_BYTES;
use crate::wasi::metadata;

fn text(call: &Call<'_>, text: &WasmStr) -> Result<String, Errno> {
    let text = text.to_str(&call.store).map_err(|_| Errno::ILSEQ)?;
    match text.len() {
        length if length > MAX_PATH_BYTES as usize => Err(Errno::NAMETOOLONG),
        _ if text.contains('\0') => Err(Errno::INVAL),
        _ => Ok(text.into_owned()),
    }
}

fn given(call: &Call<'_>, at: &Resource<Descriptor>, path: &WasmStr) -> Result<Given, Errno> {
    let path = text(call, path)?;
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    Given::new(call.state(), at.rep(), path)
}

fn last(flags: PathFlags) -> Last {
    if flags.contains(PathFlags::SYMLINK_FOLLOW) { Last::Follow } else { Last::NoFollow }
}

/// `open-at`.
pub(super) fn open(
    call: &mut Call<'_>,
    at: &Resource<Descriptor>,
    path: &WasmStr,
    (follow, open, flags): (PathFlags, OpenFlags, DescriptorFlags),
) -> Result<Resource<Descriptor>, Fault> {
    call.may_wait();
    let given = given(call, at, path)?;
    let how = Opening {
        follow: follow.contains(PathFlags::SYMLINK_FOLLOW),
        create: open.contains(OpenFlags::CREATE),
        exclusive: open.contains(OpenFlags::EXCLUSIVE),
        directory: open.contains(OpenFlags::DIRECTORY),
        truncate: open.contains(OpenFlags::TRUNCATE),
        read: flags.contains(DescriptorFlags::READ),
        write: flags.contains(DescriptorFlags::WRITE),
        append: false,
        nonblocking: false,
    };
    let found = given.resolve(call.state(), how.last())?;
    let file = match process::open_found(call.state(), &found, how) {
        // The interface has no word for a file that may only grow until it is written.
        Err(Fault::Errno(Errno::PERM)) if how.write && !how.truncate => {
            process::open_found(call.state(), &found, Opening { append: true, ..how })
        }
        file => file,
    };
    insert(call, file?)
}

/// `stat-at`, `metadata-hash-at`.
pub(super) fn stat(call: &Call<'_>, at: &Resource<Descriptor>, flags: PathFlags, path: &WasmStr) -> Result<Stat, Fault> {
    let (node, _) = given(call, at, path)?.find(call.state(), last(flags))?;
    metadata::of_node(call.state(), node)
}

/// `set-times-at`.
pub(super) fn set_times(
    call: &Call<'_>,
    at: &Resource<Descriptor>,
    flags: PathFlags,
    path: &WasmStr,
    [accessed, modified]: [NewTimestamp; 2],
) -> Result<(), Fault> {
    let (node, _) = given(call, at, path)?.find(call.state(), last(flags))?;
    let job = &call.state().job;
    let now = job.clock.realtime();
    Ok(job.view.set_times(node, accessed.nanos(now)?, modified.nanos(now)?)?)
}

/// `create-directory-at`.
pub(super) fn create_directory(call: &Call<'_>, at: &Resource<Descriptor>, path: &WasmStr) -> Result<(), Fault> {
    let at = given(call, at, path)?.resolve(call.state(), Last::Entry)?;
    call.state().job.view.mkdir(&at, at.for_mkdir()?, 0o777 & !call.state().umask, USER)?;
    Ok(())
}

/// `remove-directory-at`.
pub(super) fn remove_directory(call: &Call<'_>, at: &Resource<Descriptor>, path: &WasmStr) -> Result<(), Fault> {
    let at = given(call, at, path)?.resolve(call.state(), Last::Entry)?;
    Ok(call.state().job.view.rmdir(&at, at.for_rmdir()?)?)
}

/// `unlink-file-at`.
pub(super) fn unlink(call: &Call<'_>, at: &Resource<Descriptor>, path: &WasmStr) -> Result<(), Fault> {
    let at = given(call, at, path)?.resolve(call.state(), Last::Entry)?;
    Ok(call.state().job.view.unlink(&at, at.for_unlink()?)?)
}

/// `rename-at`.
pub(super) fn rename(
    call: &Call<'_>,
    (at, old): (&Resource<Descriptor>, &WasmStr),
    (to, new): (&Resource<Descriptor>, &WasmStr),
) -> Result<(), Fault> {
    let from = given(call, at, old)?.resolve(call.state(), Last::Entry)?;
    let to = given(call, to, new)?.resolve(call.state(), Last::Entry)?;
    let (old_name, new_name) = from.for_rename(&to)?;
    Ok(call.state().job.view.rename(&from, old_name, &to, new_name)?)
}

/// `link-at`.
pub(super) fn link(
    call: &Call<'_>,
    (at, flags, old): (&Resource<Descriptor>, PathFlags, &WasmStr),
    (to, new): (&Resource<Descriptor>, &WasmStr),
) -> Result<(), Fault> {
    let from = given(call, at, old)?.resolve(call.state(), last(flags))?;
    from.existing()?;
    let at = given(call, to, new)?.resolve(call.state(), Last::Entry)?;
    Ok(call.state().job.view.link(&from, &at, at.for_new()?)?)
}

/// `symlink-at`: if a command was given directories, links to absolute paths are rejected because they would lead out.
pub(super) fn symlink(call: &Call<'_>, at: &Resource<Descriptor>, target: &WasmStr, path: &WasmStr) -> Result<(), Fault> {
    let target = text(call, target)?;
    if target.is_empty() {
        return Err(Errno::NOENT.into());
    }
    if target.starts_with('/') && matches!(call.state().job.roots, Roots::Only(_)) {
        return Err(Errno::PERM.into());
    }
    let at = given(call, at, path)?.resolve(call.state(), Last::Entry)?;
    call.state().job.view.symlink(&at, at.for_new()?, &target, USER)?;
    Ok(())
}

/// `readlink-at`.
pub(super) fn readlink(call: &Call<'_>, at: &Resource<Descriptor>, path: &WasmStr) -> Result<String, Fault> {
    let (node, _) = given(call, at, path)?.find(call.state(), Last::NoFollow)?;
    Ok(call.state().job.view.readlink(node)?)
}
