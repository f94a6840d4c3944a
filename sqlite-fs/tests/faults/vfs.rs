//! A disk that fails on demand: SQLite's own file layer behind a counter, and a record of what a power cut would leave.
//!
//! It becomes the process's default file layer, so the library under test opens its files as always.

#![expect(unsafe_code, reason = "SQLite's file layer is a table of C functions")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

/// Calls that still succeed; negative: all of them.
static LEFT: AtomicI64 = AtomicI64::new(-1);
/// The result of the failing calls.
static CODE: AtomicI64 = AtomicI64::new(0);
/// Calls so far.
static CALLS: AtomicU64 = AtomicU64::new(0);
/// The real file layer.
static REAL: AtomicPtr<sqlite3_vfs> = AtomicPtr::new(std::ptr::null_mut());
/// The content of each file after its last sync; `None` once the power is cut.
static DURABLE: Mutex<Option<BTreeMap<String, Vec<u8>>>> = Mutex::new(None);
/// The call at which the power is cut.
static CUT_AT: AtomicU64 = AtomicU64::new(u64::MAX);
static AFTER_CUT: Mutex<Option<BTreeMap<String, Vec<u8>>>> = Mutex::new(None);

/// A file of ours: SQLite's header, then the real file right behind.
#[repr(C)]
struct File {
    base: sqlite3_file,
    name: *const c_char,
    real: *mut sqlite3_file,
}

/// Makes this the default file layer of the process.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the default file layer lives as long as the process; ours is leaked and so does too.
        unsafe {
            let real = ffi::sqlite3_vfs_find(std::ptr::null());
            REAL.store(real, Ordering::SeqCst);
            let mut shim = *real;
            shim.iVersion = 2;
            shim.szOsFile = (size_of::<File>() as c_int) + (*real).szOsFile;
            shim.zName = c"faults".as_ptr();
            shim.pNext = std::ptr::null_mut();
            shim.xOpen = Some(open);
            shim.xDelete = Some(delete);
            assert_eq!(ffi::sqlite3_vfs_register(Box::leak(Box::new(shim)), 1), ffi::SQLITE_OK);
        }
    });
}

/// From now on `calls` calls succeed, then all fail with `code`.
pub fn fail_after(calls: i64, code: c_int) {
    CODE.store(i64::from(code), Ordering::SeqCst);
    LEFT.store(calls, Ordering::SeqCst);
}

/// Repairs the disk. Returns whether it had failed.
pub fn heal() -> bool {
    LEFT.swap(-1, Ordering::SeqCst) == 0
}

/// Starts to record synced data; the power fails at call number `cut_at` from now.
pub fn record(cut_at: u64) {
    *DURABLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(BTreeMap::new());
    *AFTER_CUT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    CUT_AT.store(CALLS.load(Ordering::SeqCst) + cut_at, Ordering::SeqCst);
}

/// Whether the power has failed.
pub fn is_cut() -> bool {
    AFTER_CUT.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// The content of the disk after the cut, by path.
pub fn after_cut() -> Option<BTreeMap<String, Vec<u8>>> {
    CUT_AT.store(u64::MAX, Ordering::SeqCst);
    AFTER_CUT.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Counts a call that changes the disk; `Err` if it is to fail.
fn count() -> Result<(), c_int> {
    if CALLS.fetch_add(1, Ordering::SeqCst) + 1 == CUT_AT.load(Ordering::SeqCst) {
        let image = DURABLE.lock().unwrap_or_else(PoisonError::into_inner).take();
        *AFTER_CUT.lock().unwrap_or_else(PoisonError::into_inner) = image;
    }
    let left = LEFT.load(Ordering::SeqCst);
    if left == 0 {
        return Err(CODE.load(Ordering::SeqCst) as c_int);
    }
    if left > 0 {
        LEFT.store(left - 1, Ordering::SeqCst);
    }
    Ok(())
}

fn synced(name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: SQLite keeps the name of an open file as long as the file.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    if let Some(durable) = DURABLE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        durable.insert(name.clone(), std::fs::read(&name).unwrap_or_default());
    }
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let file = file.cast::<File>();
    // SAFETY: SQLite allocated `szOsFile` bytes: ours, then the real layer's.
    unsafe {
        (*file).base.pMethods = std::ptr::null();
        if let Err(_code) = count() {
            return ffi::SQLITE_CANTOPEN;
        }
        (*file).name = name;
        (*file).real = file.add(1).cast();
        let real = REAL.load(Ordering::SeqCst);
        let Some(open) = (*real).xOpen else { return ffi::SQLITE_CANTOPEN };
        let code = open(real, name, (*file).real, flags, out);
        if code == ffi::SQLITE_OK {
            (*file).base.pMethods = &METHODS;
        }
        code
    }
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    if let Err(_code) = count() {
        return ffi::SQLITE_IOERR_DELETE;
    }
    if sync != 0 && !name.is_null() {
        // SAFETY: SQLite's own string. Without the sync of the directory the file may be back after a power cut.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        if let Some(durable) = DURABLE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            durable.remove(name.as_ref());
        }
    }
    let real = REAL.load(Ordering::SeqCst);
    // SAFETY: forwards SQLite's own arguments.
    unsafe { (*real).xDelete.map_or(ffi::SQLITE_IOERR_DELETE, |delete| delete(real, name, sync)) }
}

/// Forwards a call to the real file.
macro_rules! forward {
    ($file:expr, $method:ident ( $($argument:expr),* )) => {{
        // SAFETY: `open` filled `real` in, and SQLite calls methods only on open files.
        unsafe {
            let real = (*$file.cast::<File>()).real;
            match (*(*real).pMethods).$method {
                Some(method) => method(real $(, $argument)*),
                None => return ffi::SQLITE_IOERR,
            }
        }
    }};
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    forward!(file, xClose())
}
unsafe extern "C" fn read(file: *mut sqlite3_file, to: *mut c_void, len: c_int, at: sqlite3_int64) -> c_int {
    forward!(file, xRead(to, len, at))
}
unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, len: c_int, at: sqlite3_int64) -> c_int {
    if let Err(code) = count() {
        return code;
    }
    forward!(file, xWrite(from, len, at))
}
unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    if let Err(_code) = count() {
        return ffi::SQLITE_IOERR_TRUNCATE;
    }
    forward!(file, xTruncate(size))
}
unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    if let Err(_code) = count() {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    // SAFETY: as in `forward!`.
    synced(unsafe { (*file.cast::<File>()).name });
    let _ = flags;
    // The real sync proves nothing here and is slow.
    ffi::SQLITE_OK
}
unsafe extern "C" fn size(file: *mut sqlite3_file, out: *mut sqlite3_int64) -> c_int {
    forward!(file, xFileSize(out))
}
unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    forward!(file, xLock(level))
}
unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    forward!(file, xUnlock(level))
}
unsafe extern "C" fn reserved(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    forward!(file, xCheckReservedLock(out))
}
unsafe extern "C" fn control(file: *mut sqlite3_file, op: c_int, argument: *mut c_void) -> c_int {
    forward!(file, xFileControl(op, argument))
}
unsafe extern "C" fn sector(file: *mut sqlite3_file) -> c_int {
    forward!(file, xSectorSize())
}
unsafe extern "C" fn device(_: *mut sqlite3_file) -> c_int {
    // Promise nothing about the device.
    0
}
unsafe extern "C" fn shm_map(file: *mut sqlite3_file, page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void) -> c_int {
    if let Err(_code) = count() {
        return ffi::SQLITE_IOERR_SHMMAP;
    }
    forward!(file, xShmMap(page, size, extend, out))
}
unsafe extern "C" fn shm_lock(file: *mut sqlite3_file, at: c_int, count: c_int, flags: c_int) -> c_int {
    forward!(file, xShmLock(at, count, flags))
}
unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: as in `forward!`.
    unsafe {
        let real = (*file.cast::<File>()).real;
        if let Some(barrier) = (*(*real).pMethods).xShmBarrier {
            barrier(real);
        }
    }
}
unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    forward!(file, xShmUnmap(delete))
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
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
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};
