//! The table of imports: every function that a guest can call, with its wasm signature.

use abi::Errno;
use wasmtime::{Caller, Engine, Linker};

use super::call::{enter, enter_again, enter_engine};
use super::paths::{OpenFlags, PathArgument};
use super::{clocks, door, files, paths, poll, processes, startup, tools};
use crate::Error;
use crate::process::{self, Ended, Fault, State};

/// The module name of preview1.
pub(super) const WASI: &str = "wasi_snapshot_preview1";

/// Links every import.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>, Error> {
    let mut linker = Linker::new(engine);
    register(&mut linker).map_err(Error::engine("registering host functions"))?;
    Ok(linker)
}

/// Links every import, and the interface of the scientific Python.
pub(crate) fn scientific_linker(engine: &Engine) -> Result<Linker<State>, Error> {
    let mut linker = linker(engine)?;
    scientific(&mut linker).map_err(Error::engine("registering host functions"))?;
    Ok(linker)
}

// One line per function: its name, its wasm parameters, and the call.
macro_rules! imports {
    ($linker:ident, $module:expr; $($name:literal ($($argument:ident: $kind:ty),*) => |$call:ident| $body:expr;)*) => {
        $($linker.func_wrap($module, $name, |caller: wasmtime::Caller<'_, $crate::process::State>, $($argument: $kind),*| {
            $crate::wasi::call::enter(caller, |$call| $body)
        })?;)*
    };
}
pub(super) use imports;

// The functions of preview1 whose arguments reach our own guests' functions and the exact ones of custom modules unchanged.
macro_rules! common_imports {
    ($linker:ident, $files:ident, $paths:ident) => {
        imports! { $linker, WASI;
            "fd_allocate" (fd: u32, offset: u64, length: u64) => |call| $files::allocate(call, fd, offset, length);
            "fd_fdstat_get" (fd: u32, out: u32) => |call| $files::fdstat(call, fd, out);
            "fd_fdstat_set_flags" (fd: u32, flags: u32) => |call| $files::set_flags(call, fd, flags);
            "fd_filestat_get" (fd: u32, out: u32) => |call| $files::filestat(call, fd, out);
            "fd_filestat_set_size" (fd: u32, size: u64) => |call| $files::set_size(call, fd, size);
            "fd_filestat_set_times" (fd: u32, atime: u64, mtime: u64, flags: u32) => |call| $files::set_times(call, fd, atime, mtime, flags);
            "fd_pread" (fd: u32, buffers: u32, count: u32, offset: u64, out: u32) => |call| $files::read(call, fd, buffers, count, Some(offset), out);
            "fd_pwrite" (fd: u32, buffers: u32, count: u32, offset: u64, out: u32) => |call| $files::write(call, fd, buffers, count, Some(offset), out);
            "fd_read" (fd: u32, buffers: u32, count: u32, out: u32) => |call| $files::read(call, fd, buffers, count, None, out);
            "fd_write" (fd: u32, buffers: u32, count: u32, out: u32) => |call| $files::write(call, fd, buffers, count, None, out);
            "fd_prestat_get" (fd: u32, out: u32) => |call| $files::prestat(call, fd, out);
            "fd_prestat_dir_name" (fd: u32, buffer: u32, length: u32) => |call| $files::prestat_name(call, fd, buffer, length);
            "fd_readdir" (fd: u32, buffer: u32, length: u32, cookie: u64, out: u32) => |call| $files::readdir(call, fd, buffer, length, cookie, out);
            "fd_seek" (fd: u32, offset: i64, whence: u32, out: u32) => |call| $files::seek(call, fd, offset, whence, out);
            "path_create_directory" (fd: u32, pointer: u32, length: u32) => |call| $paths::create_directory(call, path(fd, pointer, length));
            "path_remove_directory" (fd: u32, pointer: u32, length: u32) => |call| $paths::remove_directory(call, path(fd, pointer, length));
            "path_unlink_file" (fd: u32, pointer: u32, length: u32) => |call| $paths::unlink(call, path(fd, pointer, length));
            "path_filestat_get" (fd: u32, lookup: u32, pointer: u32, length: u32, out: u32) => |call| $paths::filestat(call, path(fd, pointer, length), lookup, out);
            "path_filestat_set_times" (fd: u32, lookup: u32, pointer: u32, length: u32, atime: u64, mtime: u64, flags: u32) => |call| $paths::set_times(call, path(fd, pointer, length), lookup, [atime, mtime], flags);
            "path_link" (old_fd: u32, lookup: u32, old: u32, old_length: u32, new_fd: u32, new: u32, new_length: u32) => |call| $paths::link(call, lookup, path(old_fd, old, old_length), path(new_fd, new, new_length));
            "path_rename" (old_fd: u32, old: u32, old_length: u32, new_fd: u32, new: u32, new_length: u32) => |call| $paths::rename(call, path(old_fd, old, old_length), path(new_fd, new, new_length));
            "path_symlink" (target: u32, target_length: u32, fd: u32, pointer: u32, length: u32) => |call| $paths::symlink(call, (target, target_length), path(fd, pointer, length));
            "path_readlink" (fd: u32, pointer: u32, length: u32, buffer: u32, capacity: u32, out: u32) => |call| $paths::readlink(call, path(fd, pointer, length), buffer, capacity, out);
        }
    };
}
pub(super) use common_imports;

fn register(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    start_and_time(linker)?;
    descriptors(linker)?;
    common_imports!(linker, files, paths);
    sockets(linker)?;
    python(linker)?;
    own(linker)
}

/// Links functions that are independent of files.
pub(super) fn start_and_time(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    imports! { linker, WASI;
        "args_sizes_get" (count: u32, bytes: u32) => |call| startup::sizes(call, startup::args, count, bytes);
        "args_get" (pointers: u32, buffer: u32) => |call| startup::strings(call, startup::args, pointers, buffer);
        "environ_sizes_get" (count: u32, bytes: u32) => |call| startup::sizes(call, startup::environ, count, bytes);
        "environ_get" (pointers: u32, buffer: u32) => |call| startup::strings(call, startup::environ, pointers, buffer);
        "clock_res_get" (clock: u32, out: u32) => |call| clocks::resolution(call, clock, out);
        "clock_time_get" (clock: u32, _precision: u64, out: u32) => |call| clocks::time(call, clock, out);
        "random_get" (buffer: u32, length: u32) => |call| clocks::random(call, buffer, length);
        "poll_oneoff" (subscriptions: u32, events: u32, count: u32, out: u32) => |call| poll::poll(call, subscriptions, events, count, out);
        "sched_yield" () => |call| clocks::yield_now(call);
        "proc_raise" (signal: u32) => |call| processes::kill(call, call.state.process.pid.cast_signed(), signal);
    }
    linker.func_wrap(WASI, "proc_exit", |_: Caller<'_, State>, code: u32| -> wasmtime::Result<()> {
        Err(match startup::exit(code) {
            Fault::End(ended) => ended.into(),
            Fault::Errno(_) => Ended::HostPanic.into(),
        })
    })?;
    Ok(())
}

fn descriptors(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    imports! { linker, WASI;
        "fd_advise" (fd: u32, _offset: u64, _length: u64, _advice: u32) => |call| files::sync(call, fd);
        "fd_close" (fd: u32) => |call| files::close(call, fd);
        "fd_datasync" (fd: u32) => |call| files::sync(call, fd);
        "fd_sync" (fd: u32) => |call| files::sync(call, fd);
        "fd_fdstat_set_rights" (fd: u32, _base: u64, _inheriting: u64) => |call| files::file(call, fd).map(drop).map_err(Fault::from);
        "fd_renumber" (fd: u32, to: u32) => |call| files::renumber(call, fd, to);
        "fd_tell" (fd: u32, out: u32) => |call| files::seek(call, fd, 0, 1, out);
        "path_open" (fd: u32, lookup: u32, pointer: u32, length: u32, open: u32, rights: u64, _inheriting: u64, flags: u32, out: u32) => |call| paths::open(call, path(fd, pointer, length), OpenFlags { lookup, open, rights, fd: flags }, out);
    }
    Ok(())
}

/// Decodes a path argument.
pub(super) fn path(fd: u32, pointer: u32, length: u32) -> PathArgument {
    PathArgument { fd, pointer, length }
}

// There is no network, which is reported to a guest (T-ISO-05).
fn sockets(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    imports! { linker, WASI;
        "sock_accept" (_fd: u32, _flags: u32, _out: u32) => |_call| Err(Errno::NOTSUP.into());
        "sock_recv" (_fd: u32, _data: u32, _count: u32, _flags: u32, _out: u32, _out_flags: u32) => |_call| Err(Errno::NOTSUP.into());
        "sock_send" (_fd: u32, _data: u32, _count: u32, _flags: u32, _out: u32) => |_call| Err(Errno::NOTSUP.into());
        "sock_shutdown" (_fd: u32, _how: u32) => |_call| Err(Errno::NOTSUP.into());
    }
    Ok(())
}

// The imports of CPython's module besides preview1.
fn python(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "bashkit",
        "http_request",
        |caller: Caller<'_, State>, request: u32, length: u32, timeout: i64, out: u32| {
            let mut code = 0;
            let errno = enter(caller, |call| {
                code = door::request(call, request, length, timeout, out)?;
                Ok(())
            })?;
            // Above all codes of the guest, which then raises its own error.
            Ok(if errno == 0 { code } else { 1_000 + errno })
        },
    )?;
    imports! { linker, "bashkit";
        "http_take" (buffer: u32, length: u32) => |call| door::take(call, buffer, length);
    }
    Ok(())
}

// The imports of the scientific Python's module besides preview1: bytes in, bytes out, in memory allocated by the guest.
fn scientific(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap_async(
        "host",
        "call",
        |mut caller: Caller<'_, State>, (request, length, pointer_out, length_out): (u32, u32, u32, u32)| {
            Box::new(async move {
                let errno = enter_again(&mut caller, |call| door::ask(call, request, length))?;
                let answer = std::mem::take(&mut caller.data_mut().answer);
                let size = u32::try_from(answer.len()).unwrap_or(u32::MAX);
                let alloc = caller.get_export("host_alloc").and_then(wasmtime::Extern::into_func);
                let (0, Some(alloc)) = (errno, alloc) else { return Ok(REFUSED) };
                let place = alloc.typed::<u32, u32>(&caller)?.call_async(&mut caller, size).await?;
                let errno = enter_again(&mut caller, |call| {
                    call.memory.write(place, &answer)?;
                    call.memory.write_u32(pointer_out, place)?;
                    Ok(call.memory.write_u32(length_out, size)?)
                })?;
                Ok(if errno == 0 && place != 0 { 0 } else { REFUSED })
            })
        },
    )?;
    Ok(())
}

/// The result of the scientific Python's interface if a request cannot be processed at all.
const REFUSED: i32 = -2;

fn own(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    imports! { linker, abi::MODULE;
        "spawn" (request: u32, length: u32, out: u32) => |call| processes::spawn(call, request, length, out);
        "exec" (request: u32, length: u32) => |call| processes::exec(call, request, length);
        "wait" (pid: i32, flags: u32, out: u32) => |call| processes::wait(call, pid, flags, out);
        "kill" (pid: i32, signal: u32) => |call| processes::kill(call, pid, signal);
        "signal_action" (signal: u32, disposition: u32, old: u32) => |call| processes::signal_action(call, signal, disposition, old);
        "signals_take" (out: u32) => |call| processes::signals_take(call, out);
        "signals_ignored" (out: u32) => |call| processes::signals_ignored(call, out);
        "process_ids" (out: u32) => |call| processes::process_ids(call, out);
        "set_group" (pid: u32, group: u32) => |call| processes::set_group(call, pid, group);
        "pipe" (out: u32) => |call| processes::make_pipe(call, out);
        "dup" (fd: u32, minimum: u32, close_on_exec: u32, out: u32) => |call| processes::dup(call, fd, minimum, close_on_exec, out);
        "dup2" (fd: u32, to: u32) => |call| call.state.descriptors.duplicate_to(fd, to).map_err(Fault::from);
        "set_close_on_exec" (fd: u32, on: u32) => |call| call.state.descriptors.set_close_on_exec(fd, on != 0).map_err(Fault::from);
        "cwd" (buffer: u32, capacity: u32, out: u32) => |call| processes::cwd(call, buffer, capacity, out);
        "session_load" (buffer: u32, capacity: u32, out: u32) => |call| processes::session_load(call, buffer, capacity, out);
        "session_save" (state: u32, length: u32) => |call| processes::session_save(call, state, length);
        "umask" (mask: u32, old: u32) => |call| processes::umask(call, mask, old);
        "stat" (pointer: u32, length: u32, follow: u32, out: u32) => |call| processes::stat(call, (pointer, length), follow, out);
        "fstat" (fd: u32, out: u32) => |call| processes::fstat(call, fd, out);
        "chmod" (pointer: u32, length: u32, follow: u32, mode: u32) => |call| processes::chmod(call, (pointer, length), follow, mode);
        "mkfifo" (pointer: u32, length: u32, mode: u32) => |call| processes::mkfifo(call, (pointer, length), mode);
        "chown" (pointer: u32, length: u32, follow: u32, uid: u32, gid: u32) => |call| processes::chown(call, (pointer, length), follow, uid, gid);
        "tools" (as_json: u32, out: u32) => |call| tools::list(call, as_json, out);
        "tool" (name: u32, name_length: u32, arguments: u32, arguments_length: u32, out: u32) => |call| tools::tool(call, (name, name_length), (arguments, arguments_length), out);
        "answer" (buffer: u32, length: u32) => |call| tools::answer(call, buffer, length);
        "count" (counter: u32, amount: u32) => |call| processes::count(call, counter, amount);
    }
    linker.func_wrap(abi::MODULE, "fork", |mut caller: Caller<'_, State>, closure: u32, out: u32| {
        match enter_engine(&mut caller, |caller| process::fork(caller, closure))? {
            Ok(pid) => enter(caller, |call| Ok(call.memory.write_u32(out, pid)?)),
            Err(errno) => Ok(errno),
        }
    })?;
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::host::Host;

    /// All of `wasi_snapshot_preview1`: a letter for each parameter, `i` for 32 and `l` for 64 bits. All except `proc_exit`
    /// return an errno.
    pub(crate) const PREVIEW1: [(&str, &str); 46] = [
        ("args_get", "ii"),
        ("args_sizes_get", "ii"),
        ("clock_res_get", "ii"),
        ("clock_time_get", "ili"),
        ("environ_get", "ii"),
        ("environ_sizes_get", "ii"),
        ("fd_advise", "illi"),
        ("fd_allocate", "ill"),
        ("fd_close", "i"),
        ("fd_datasync", "i"),
        ("fd_fdstat_get", "ii"),
        ("fd_fdstat_set_flags", "ii"),
        ("fd_fdstat_set_rights", "ill"),
        ("fd_filestat_get", "ii"),
        ("fd_filestat_set_size", "il"),
        ("fd_filestat_set_times", "illi"),
        ("fd_pread", "iiili"),
        ("fd_prestat_dir_name", "iii"),
        ("fd_prestat_get", "ii"),
        ("fd_pwrite", "iiili"),
        ("fd_read", "iiii"),
        ("fd_readdir", "iiili"),
        ("fd_renumber", "ii"),
        ("fd_seek", "ilii"),
        ("fd_sync", "i"),
        ("fd_tell", "ii"),
        ("fd_write", "iiii"),
        ("path_create_directory", "iii"),
        ("path_filestat_get", "iiiii"),
        ("path_filestat_set_times", "iiiilli"),
        ("path_link", "iiiiiii"),
        ("path_open", "iiiiillii"),
        ("path_readlink", "iiiiii"),
        ("path_remove_directory", "iii"),
        ("path_rename", "iiiiii"),
        ("path_symlink", "iiiii"),
        ("path_unlink_file", "iii"),
        ("poll_oneoff", "iiii"),
        ("proc_exit", "i"),
        ("proc_raise", "i"),
        ("random_get", "ii"),
        ("sched_yield", ""),
        ("sock_accept", "iii"),
        ("sock_recv", "iiiiii"),
        ("sock_send", "iiiii"),
        ("sock_shutdown", "ii"),
    ];

    #[test]
    fn a_guest_finds_every_function_of_preview1() {
        let imports: String = PREVIEW1
            .iter()
            .map(|(name, parameters)| {
                let kinds: String = parameters.chars().map(|kind| if kind == 'l' { " i64" } else { " i32" }).collect();
                let result = if *name == "proc_exit" { "" } else { "(result i32)" };
                format!("(import \"{WASI}\" \"{name}\" (func (param{kinds}) {result}))")
            })
            .collect();
        let host = Host::builder().build().unwrap();
        host.prepared_from_text(&format!("(module {imports} (memory (export \"memory\") 1))"));
    }
}
