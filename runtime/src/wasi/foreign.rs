//! Exact preview1 for custom modules: rights, preopened directories, paths that stay below the directory they start in.
//!
//! Our own guests use the functions next to this folder, which have one root at descriptor 3 and no rights. A custom module gets
//! these instead, and nothing of `guests/abi`.

mod files;
pub(super) mod paths;
pub(crate) mod rights;

use abi::Errno;
use wasmtime::{Engine, Linker, Module};

use super::paths::OpenFlags;
use super::register::{WASI, common_imports, imports, path, start_and_time};
use crate::Error;
use crate::process::{Fault, State};

/// Maximum number of names listed in an error.
const MISSING_SHOWN: usize = 8;

/// `notsock`, which our own guests do not use.
const NOT_SOCKET: u16 = 57;

/// Every function of preview1.
pub(super) const PREVIEW1: [&str; 46] = [
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_advise",
    "fd_allocate",
    "fd_close",
    "fd_datasync",
    "fd_fdstat_get",
    "fd_fdstat_set_flags",
    "fd_fdstat_set_rights",
    "fd_filestat_get",
    "fd_filestat_set_size",
    "fd_filestat_set_times",
    "fd_pread",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_pwrite",
    "fd_read",
    "fd_readdir",
    "fd_renumber",
    "fd_seek",
    "fd_sync",
    "fd_tell",
    "fd_write",
    "path_create_directory",
    "path_filestat_get",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_readlink",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
    "poll_oneoff",
    "proc_exit",
    "proc_raise",
    "random_get",
    "sched_yield",
    "sock_accept",
    "sock_recv",
    "sock_send",
    "sock_shutdown",
];

/// Links only preview1.
pub(crate) fn foreign_linker(engine: &Engine) -> Result<Linker<State>, Error> {
    let mut linker = Linker::new(engine);
    register(&mut linker).map_err(Error::engine("registering host functions"))?;
    Ok(linker)
}

/// Checks that a module is a preview1 command.
///
/// # Errors
///
/// Returns the missing exports, or the imports that are not part of preview1.
pub(crate) fn check(module: &Module) -> Result<(), String> {
    let is_known = |import: &wasmtime::ImportType<'_>| import.module() == WASI && PREVIEW1.contains(&import.name());
    let unknown: Vec<String> = module
        .imports()
        .filter(|import| !is_known(import))
        .map(|import| format!("`{}.{}`", import.module(), import.name()))
        .collect();
    if !unknown.is_empty() {
        return Err(format!("unknown imports {}: only `{WASI}` is provided", listed(unknown)));
    }
    match (module.get_export("_start"), module.get_export("memory")) {
        (Some(start), _) if start.func().is_none() => Err("its export `_start` is not a function".to_owned()),
        (None, _) => Err("missing export `_start`: it is a library, not a command".to_owned()),
        (_, None) => Err("missing export `memory`".to_owned()),
        (_, Some(memory)) if memory.memory().is_none() => Err("its export `memory` is not a memory".to_owned()),
        _ => Ok(()),
    }
}

/// Returns the first of some names, and the number of the others.
pub(super) fn listed(names: Vec<String>) -> String {
    let more = names.len().saturating_sub(MISSING_SHOWN);
    let listed = names.into_iter().take(MISSING_SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{listed} and {more} more") } else { listed }
}

fn register(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    start_and_time(linker)?;
    descriptors(linker)?;
    common_imports!(linker, files, paths);
    sockets(linker)
}

fn descriptors(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    imports! { linker, WASI;
        "fd_advise" (fd: u32, _offset: u64, _length: u64, advice: u32) => |call| files::advise(call, fd, advice);
        "fd_close" (fd: u32) => |call| call.state.descriptors.close(fd).map_err(Fault::from);
        "fd_datasync" (fd: u32) => |call| files::sync(call, fd, rights::FD_DATASYNC);
        "fd_sync" (fd: u32) => |call| files::sync(call, fd, rights::FD_SYNC);
        "fd_fdstat_set_rights" (fd: u32, base: u64, inheriting: u64) => |call| files::set_rights(call, fd, base, inheriting);
        "fd_renumber" (fd: u32, to: u32) => |call| call.state.descriptors.renumber(fd, to).map_err(Fault::from);
        "fd_tell" (fd: u32, out: u32) => |call| files::tell(call, fd, out);
        "path_open" (fd: u32, lookup: u32, pointer: u32, length: u32, open: u32, rights: u64, inheriting: u64, flags: u32, out: u32) => |call| paths::open(call, path(fd, pointer, length), OpenFlags { lookup, open, rights, fd: flags }, inheriting, out);
    }
    Ok(())
}

// There is no network, and no descriptor is a socket (T-ISO-05).
fn sockets(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    imports! { linker, WASI;
        "sock_accept" (fd: u32, _flags: u32, _out: u32) => |call| no_socket(call, fd);
        "sock_recv" (fd: u32, _data: u32, _count: u32, _flags: u32, _out: u32, _out_flags: u32) => |call| no_socket(call, fd);
        "sock_send" (fd: u32, _data: u32, _count: u32, _flags: u32, _out: u32) => |call| no_socket(call, fd);
        "sock_shutdown" (fd: u32, _how: u32) => |call| no_socket(call, fd);
    }
    Ok(())
}

fn no_socket(call: &super::call::Call<'_>, fd: u32) -> Result<(), Fault> {
    call.state.descriptors.get(fd)?;
    Err(Errno::from_raw(NOT_SOCKET).unwrap_or(Errno::NOTSUP).into())
}

#[cfg(test)]
mod tests {
    use super::super::register::tests::PREVIEW1 as SIGNATURES;
    use super::*;
    use crate::host::Host;

    #[test]
    fn every_function_of_preview1_is_linked() {
        let known: Vec<&str> = SIGNATURES.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, PREVIEW1);
        let host = Host::builder().build().unwrap();
        let linker = foreign_linker(host.engine()).unwrap();
        let mut imports = String::new();
        for (name, parameters) in SIGNATURES {
            let kinds: String = parameters.chars().map(|kind| if kind == 'l' { " i64" } else { " i32" }).collect();
            let result = if name == "proc_exit" { "" } else { "(result i32)" };
            imports.push_str(&format!("(import \"{WASI}\" \"{name}\" (func (param{kinds}) {result}))"));
        }
        let text = format!("(module {imports} (memory (export \"memory\") 1) (func (export \"_start\")))");
        let module = Module::new(host.engine(), wat::parse_str(text).unwrap()).unwrap();
        assert_eq!(check(&module), Ok(()));
        assert!(linker.instantiate_pre(&module).is_ok());
    }
}
