//! Just enough of WASI for CPython to import modules at build time: a few files to read, a clock that stands still, and
//! somewhere to print complaints.

use std::collections::BTreeMap;

use wasmi::{Caller, Extern, ExternType, Func, Linker, Memory, Module, Store, Val};

const WASI: &str = "wasi_snapshot_preview1";

// Errors, by WASI's numbers.
const BAD_FD: i32 = 8;
const FAULT: i32 = 21;
const NO_ENTRY: i32 = 44;
const NOT_SUPPORTED: i32 = 52;

// File types.
const CHARACTER_DEVICE: u8 = 2;
const DIRECTORY: u8 = 3;
const REGULAR: u8 = 4;

/// The descriptor of the root directory; files get numbers above it.
const ROOT: i32 = 3;

/// When the interpreter believes it is: the same for every build.
const NOW: u64 = 1_000_000_000_000_000_000;

/// What the interpreter sees.
pub(super) struct World {
    args: Vec<String>,
    files: BTreeMap<String, Vec<u8>>,
    open: BTreeMap<i32, (String, usize)>,
    /// What it printed.
    pub(super) printed: Vec<u8>,
}

impl World {
    /// A world without files.
    pub(super) fn new(args: Vec<String>) -> Self {
        Self { args, files: BTreeMap::new(), open: BTreeMap::new(), printed: Vec::new() }
    }

    /// Adds a file.
    pub(super) fn add(&mut self, path: &str, content: &[u8]) {
        self.files.insert(path.trim_start_matches('/').to_owned(), content.to_vec());
    }

    // Type and size of what is at a path.
    fn stat(&self, path: &str) -> Option<(u8, usize)> {
        let path = path.trim_matches('/');
        if let Some(content) = self.files.get(path) {
            return Some((REGULAR, content.len()));
        }
        let below = format!("{path}/");
        let is_directory = path.is_empty() || path == "." || self.files.keys().any(|name| name.starts_with(&below));
        is_directory.then_some((DIRECTORY, 0))
    }

    fn stat_fd(&self, fd: i32) -> Option<(u8, usize)> {
        match fd {
            0..=2 => Some((CHARACTER_DEVICE, 0)),
            ROOT => Some((DIRECTORY, 0)),
            _ => self.stat(&self.open.get(&fd)?.0),
        }
    }

    fn open(&mut self, path: &str) -> Option<i32> {
        self.stat(path)?;
        let fd = (ROOT + 1..).find(|fd| !self.open.contains_key(fd))?;
        self.open.insert(fd, (path.trim_matches('/').to_owned(), 0));
        Some(fd)
    }
}

// One call: the interpreter's memory and its world.
struct Call<'a> {
    memory: &'a mut [u8],
    world: &'a mut World,
}

impl Call<'_> {
    fn get(&self, at: i32, length: i32) -> Result<&[u8], i32> {
        let start = at as u32 as usize;
        self.memory.get(start..start + length as u32 as usize).ok_or(FAULT)
    }

    fn put(&mut self, at: i32, bytes: &[u8]) -> Result<(), i32> {
        let start = at as u32 as usize;
        self.memory.get_mut(start..start + bytes.len()).ok_or(FAULT)?.copy_from_slice(bytes);
        Ok(())
    }

    fn number(&self, at: i32) -> Result<i32, i32> {
        Ok(i32::from_le_bytes(self.get(at, 4)?.try_into().map_err(|_| FAULT)?))
    }

    fn text(&self, at: i32, length: i32) -> Result<String, i32> {
        String::from_utf8(self.get(at, length)?.to_vec()).map_err(|_| NO_ENTRY)
    }

    // The buffers of a scattered read or write.
    fn buffers(&self, at: i32, count: i32) -> Result<Vec<(i32, i32)>, i32> {
        (0..count).map(|index| Ok((self.number(at + 8 * index)?, self.number(at + 8 * index + 4)?))).collect()
    }

    fn strings(&mut self, strings: &[String], pointers: i32, mut at: i32) -> Result<(), i32> {
        for (index, string) in (0..).zip(strings) {
            self.put(pointers + 4 * index, &at.to_le_bytes())?;
            self.put(at, string.as_bytes())?;
            self.put(at + string.len() as i32, &[0])?;
            at += string.len() as i32 + 1;
        }
        Ok(())
    }

    fn filestat(&mut self, out: i32, (kind, size): (u8, usize)) -> Result<(), i32> {
        let mut stat = [0; 64];
        stat[16] = kind;
        stat[24] = 1;
        stat[32..40].copy_from_slice(&(size as u64).to_le_bytes());
        self.put(out, &stat)
    }

    fn read(&mut self, fd: i32, buffers: i32, count: i32, out: i32) -> Result<(), i32> {
        let mut total = 0;
        for (at, length) in self.buffers(buffers, count)? {
            let Some((path, position)) = self.world.open.get_mut(&fd) else { return Err(BAD_FD) };
            let content = self.world.files.get(path).ok_or(BAD_FD)?;
            let rest = content.get(*position..).unwrap_or_default();
            let piece = rest[..rest.len().min(length as u32 as usize)].to_vec();
            *position += piece.len();
            total += piece.len() as i32;
            self.put(at, &piece)?;
        }
        self.put(out, &total.to_le_bytes())
    }

    fn write(&mut self, buffers: i32, count: i32, out: i32) -> Result<(), i32> {
        let mut total = 0;
        for (at, length) in self.buffers(buffers, count)? {
            let piece = self.get(at, length)?.to_vec();
            total += length;
            self.world.printed.extend_from_slice(&piece);
        }
        self.put(out, &total.to_le_bytes())
    }

    fn seek(&mut self, fd: i32, offset: i64, whence: i32, out: i32) -> Result<(), i32> {
        let (_, size) = self.world.stat_fd(fd).ok_or(BAD_FD)?;
        let (_, position) = self.world.open.get_mut(&fd).ok_or(29)?;
        let base = [0, *position, size].get(whence as usize).copied().ok_or(28)?;
        *position = base.checked_add_signed(offset as isize).ok_or(28)?;
        let position = *position as u64;
        self.put(out, &position.to_le_bytes())
    }
}

fn memory(caller: &Caller<'_, World>) -> Option<Memory> {
    caller.get_export("memory").and_then(Extern::into_memory)
}

fn answer(mut caller: Caller<'_, World>, body: impl FnOnce(&mut Call<'_>) -> Result<(), i32>) -> i32 {
    let Some(memory) = memory(&caller) else { return FAULT };
    let (memory, world) = memory.data_and_store_mut(&mut caller);
    body(&mut Call { memory, world }).err().unwrap_or(0)
}

// One line a function: its name, its parameters, and the call.
macro_rules! functions {
    ($linker:ident; $($name:literal ($($argument:ident: $kind:ty),*) => |$call:ident| $body:expr;)*) => {{
        $($linker.func_wrap(WASI, $name, |caller: Caller<'_, World>, $($argument: $kind),*| -> i32 {
            answer(caller, |$call| $body)
        })?;)*
        [$($name),*]
    }};
}

/// Defines every import of the module: those that importing needs, and a refusal for the others.
pub(super) fn define(
    linker: &mut Linker<World>,
    store: &mut Store<World>,
    module: &Module,
) -> Result<(), Box<dyn std::error::Error>> {
    let defined = functions! { linker;
        "args_sizes_get" (count: i32, bytes: i32) => |call| {
            let (number, total) = (call.world.args.len() as i32, call.world.args.iter().map(|arg| arg.len() as i32 + 1).sum::<i32>());
            call.put(count, &number.to_le_bytes()).and_then(|()| call.put(bytes, &total.to_le_bytes()))
        };
        "args_get" (pointers: i32, buffer: i32) => |call| { let args = call.world.args.clone(); call.strings(&args, pointers, buffer) };
        "environ_sizes_get" (count: i32, bytes: i32) => |call| call.put(count, &[0; 4]).and_then(|()| call.put(bytes, &[0; 4]));
        "environ_get" (_pointers: i32, _buffer: i32) => |_call| Ok(());
        "clock_time_get" (_clock: i32, _precision: i64, out: i32) => |call| call.put(out, &NOW.to_le_bytes());
        "random_get" (buffer: i32, length: i32) => |call| call.put(buffer, &vec![7; length as u32 as usize]);
        "fd_close" (fd: i32) => |call| call.world.open.remove(&fd).map(drop).ok_or(BAD_FD);
        "fd_fdstat_get" (fd: i32, out: i32) => |call| {
            let (kind, _) = call.world.stat_fd(fd).ok_or(BAD_FD)?;
            let mut stat = [0xff; 24];
            stat[..8].copy_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
            call.put(out, &stat)
        };
        "fd_filestat_get" (fd: i32, out: i32) => |call| { let stat = call.world.stat_fd(fd).ok_or(BAD_FD)?; call.filestat(out, stat) };
        "path_filestat_get" (_fd: i32, _flags: i32, path: i32, length: i32, out: i32) => |call| {
            let stat = call.world.stat(&call.text(path, length)?).ok_or(NO_ENTRY)?;
            call.filestat(out, stat)
        };
        "path_open" (_fd: i32, _lookup: i32, path: i32, length: i32, _open: i32, _rights: i64, _inheriting: i64, _flags: i32, out: i32) => |call| {
            let path = call.text(path, length)?;
            let fd = call.world.open(&path).ok_or(NO_ENTRY)?;
            call.put(out, &fd.to_le_bytes())
        };
        "fd_read" (fd: i32, buffers: i32, count: i32, out: i32) => |call| call.read(fd, buffers, count, out);
        "fd_write" (_fd: i32, buffers: i32, count: i32, out: i32) => |call| call.write(buffers, count, out);
        "fd_seek" (fd: i32, offset: i64, whence: i32, out: i32) => |call| call.seek(fd, offset, whence, out);
        "fd_tell" (fd: i32, out: i32) => |call| call.seek(fd, 0, 1, out);
    };
    for import in module.imports() {
        let (from, name) = (import.module(), import.name());
        if defined.contains(&name) {
            continue;
        }
        let ExternType::Func(shape) = import.ty().clone() else { return Err(format!("`{name}` is not a function").into()) };
        let refuse = Func::new(&mut *store, shape, |_, _, results| {
            results.iter_mut().for_each(|result| *result = Val::I32(NOT_SUPPORTED));
            Ok(())
        });
        linker.define(from, name, refuse)?;
    }
    Ok(())
}
