//! The file layer through which SQLite reaches databases in memory: a table of C functions over [`Handle`].
//!
//! Locks only mark phases here. The first one fixes the state that a connection sees; releasing the writer's lock publishes its
//! changes. `database.rs` ensures that there is one writer.

#![expect(unsafe_code, reason = "SQLite's file layer is a table of C functions")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

use super::{Handle, Memory};

/// The name under which connections request this layer.
const NAME: &CStr = c"sqlite-fs-memory";

/// The open databases, by name.
static NAMED: Mutex<Option<HashMap<String, Weak<Memory>>>> = Mutex::new(None);

fn named() -> MutexGuard<'static, Option<HashMap<String, Weak<Memory>>>> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A database in memory with its own name.
pub(crate) struct Named {
    pub(crate) memory: Arc<Memory>,
    name: String,
}

impl Named {
    /// Registers a database; `None` if SQLite rejects the layer.
    pub(crate) fn new(memory: Arc<Memory>) -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        if !REGISTERED.get_or_init(register) {
            return None;
        }
        let name = format!("/{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        named().get_or_insert_default().insert(name.clone(), Arc::downgrade(&memory));
        Some(Self { memory, name })
    }

    /// Returns the URI for the one writing connection.
    pub(crate) fn uri_for_writing(&self) -> String {
        format!("{}&writes=1", self.uri_for_reading())
    }

    /// Returns the URI for all other connections.
    pub(crate) fn uri_for_reading(&self) -> String {
        format!("file:{}?vfs={}", self.name, NAME.to_string_lossy())
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Some(named) = named().as_mut() {
            named.remove(&self.name);
        }
    }
}

/// An open database: SQLite's header, followed by ours.
#[repr(C)]
struct File {
    base: sqlite3_file,
    handle: *mut Handle,
}

fn register() -> bool {
    // SAFETY: a null name requests the default layer, whose clock and random numbers ours uses; both live as long as the process.
    unsafe {
        let default = ffi::sqlite3_vfs_find(std::ptr::null());
        let Ok(size) = c_int::try_from(size_of::<File>()) else { return false };
        if default.is_null() {
            return false;
        }
        let mut layer = *default;
        layer.szOsFile = size;
        layer.zName = NAME.as_ptr();
        layer.pNext = std::ptr::null_mut();
        layer.xOpen = Some(open);
        layer.xDelete = Some(delete);
        layer.xAccess = Some(access);
        layer.xFullPathname = Some(full_path);
        ffi::sqlite3_vfs_register(Box::leak(Box::new(layer)), 0) == ffi::SQLITE_OK
    }
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite allocated `szOsFile` bytes, and `name` is null or ends with a NUL.
    unsafe {
        (*file).pMethods = std::ptr::null();
        // Temporary files are in SQLite's own memory.
        if name.is_null() || flags & (ffi::SQLITE_OPEN_MAIN_DB | ffi::SQLITE_OPEN_MAIN_JOURNAL) == 0 {
            return ffi::SQLITE_CANTOPEN;
        }
        let (memory, writes) = if flags & ffi::SQLITE_OPEN_MAIN_DB == 0 {
            // Only a compact copy in progress has a journal here, and no other connection reads it.
            (Some(Memory::empty()), true)
        } else {
            let Ok(text) = CStr::from_ptr(name).to_str() else { return ffi::SQLITE_CANTOPEN };
            let memory = named().as_ref().and_then(|named| named.get(text)).and_then(Weak::upgrade);
            (memory, ffi::sqlite3_uri_boolean(name, c"writes".as_ptr(), 0) != 0)
        };
        let Some(memory) = memory else { return ffi::SQLITE_CANTOPEN };
        let file = file.cast::<File>();
        (*file).handle = Box::into_raw(Box::new(Handle::new(memory, writes)));
        (*file).base.pMethods = &METHODS;
        if !out.is_null() {
            *out = flags;
        }
        ffi::SQLITE_OK
    }
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, _: *const c_char, _: c_int) -> c_int {
    ffi::SQLITE_OK
}

/// Reports that no files exist next to a database in memory.
unsafe extern "C" fn access(_: *mut sqlite3_vfs, _: *const c_char, _: c_int, out: *mut c_int) -> c_int {
    // SAFETY: `out` is a valid pointer for the result.
    unsafe { *out = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_path(_: *mut sqlite3_vfs, name: *const c_char, room: c_int, out: *mut c_char) -> c_int {
    // SAFETY: `name` ends with a NUL, and SQLite has `room` bytes at `out`.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if usize::try_from(room).unwrap_or(0) < bytes.len() {
            return ffi::SQLITE_CANTOPEN;
        }
        out.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len());
    }
    ffi::SQLITE_OK
}

/// # Safety
/// `file` is open, and its handle is not borrowed elsewhere.
unsafe fn handle<'a>(file: *mut sqlite3_file) -> &'a mut Handle {
    // SAFETY: `open` filled it in, only `close` frees it, and SQLite uses one file from one thread at a time.
    unsafe { &mut *(*file.cast::<File>()).handle }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once and does not use it afterwards.
    drop(unsafe { Box::from_raw((*file.cast::<File>()).handle) });
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(file: *mut sqlite3_file, to: *mut c_void, len: c_int, at: sqlite3_int64) -> c_int {
    let (Ok(at), Ok(len)) = (usize::try_from(at), usize::try_from(len)) else { return ffi::SQLITE_IOERR_READ };
    // SAFETY: SQLite passes room for `len` bytes and an open file.
    let whole = unsafe { handle(file).read(at, std::slice::from_raw_parts_mut(to.cast::<u8>(), len)) };
    if whole { ffi::SQLITE_OK } else { ffi::SQLITE_IOERR_SHORT_READ }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, len: c_int, at: sqlite3_int64) -> c_int {
    let (Ok(at), Ok(len)) = (usize::try_from(at), usize::try_from(len)) else { return ffi::SQLITE_IOERR_WRITE };
    // SAFETY: SQLite passes `len` readable bytes and an open file.
    let written = unsafe { handle(file).write(at, std::slice::from_raw_parts(from.cast::<u8>(), len)) };
    if written { ffi::SQLITE_OK } else { ffi::SQLITE_READONLY }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    let Ok(size) = usize::try_from(size) else { return ffi::SQLITE_IOERR_TRUNCATE };
    // SAFETY: SQLite calls methods only on open files.
    if unsafe { handle(file).truncate(size) } { ffi::SQLITE_OK } else { ffi::SQLITE_READONLY }
}

unsafe extern "C" fn sync(_: *mut sqlite3_file, _: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn size(file: *mut sqlite3_file, out: *mut sqlite3_int64) -> c_int {
    // SAFETY: SQLite calls methods only on open files, and `out` is a valid pointer for the result.
    unsafe { *out = sqlite3_int64::try_from(handle(file).bytes()).unwrap_or(sqlite3_int64::MAX) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, _: c_int) -> c_int {
    // SAFETY: SQLite calls methods only on open files.
    unsafe { handle(file).begin() };
    ffi::SQLITE_OK
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite calls methods only on open files.
    unsafe { handle(file).end(level != ffi::SQLITE_LOCK_NONE) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn reserved(_: *mut sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: `out` is a valid pointer for the result.
    unsafe { *out = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn control(_: *mut sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector(_: *mut sqlite3_file) -> c_int {
    c_int::try_from(super::BLOCK_BYTES).unwrap_or(0)
}

unsafe extern "C" fn device(_: *mut sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_ATOMIC
        | ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
        | ffi::SQLITE_IOCAP_SAFE_APPEND
        | ffi::SQLITE_IOCAP_SEQUENTIAL
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector),
    xDeviceCharacteristics: Some(device),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};
