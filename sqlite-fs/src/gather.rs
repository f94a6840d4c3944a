//! SQLite's own file layer, with buffered writes to the write-ahead log.
//!
//! SQLite writes every page of a transaction to the log in two small pieces at odd offsets, which costs the kernel more than the
//! bytes themselves. Here they are buffered until there is a contiguous stretch, until the transaction commits or until they are
//! read. Buffering is invisible to others: other connections read a frame only after the commit frame behind it is written, and
//! from then on nothing is buffered. A database that is only being filled (`gather=1` in its URI) is written the same way: no
//! other connection uses it yet, and its one commit is synced.

#![expect(unsafe_code, reason = "SQLite's file layer is a table of C functions")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

use rusqlite::Connection;
use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

use crate::clock;
use crate::gauge::{FRAME_HEADER, Gauge};

/// The name under which connections request this layer.
const NAME: &CStr = c"sqlite-fs";
/// The longest stretch: SQLite's own layer accepts no more at once (it supports pages of at most 64 KiB).
const STRETCH: usize = (1 << 17) - 1;
/// Maximum number of unsynced bytes of the log if commits are synced, so that little is left for the commit.
const SYNC_BYTES: u64 = 8 << 20;

/// The underlying layer, which is the process's default when the first database is opened.
struct Layer(*mut sqlite3_vfs);

// SAFETY: SQLite's file layers are registered for the life of the process and used from any thread.
unsafe impl Send for Layer {}
// SAFETY: the same.
unsafe impl Sync for Layer {}

static BENEATH: OnceLock<Option<Layer>> = OnceLock::new();

/// Buffered bytes of the log.
#[derive(Default)]
struct Waiting {
    at: u64,
    bytes: Vec<u8>,
    /// A commit frame has started: nothing is buffered until the next ordinary one.
    committing: bool,
    /// The file is a database, which has no frames.
    is_database: bool,
    gauge: Arc<Gauge>,
}

impl Waiting {
    fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// Returns whether a piece continues or changes the buffer, and fits in it.
    fn takes(&self, at: u64, len: usize) -> bool {
        !self.bytes.is_empty()
            && (self.at..=self.end()).contains(&at)
            && at.saturating_add(len as u64) - self.at <= STRETCH as u64
    }

    fn put(&mut self, at: u64, piece: &[u8]) {
        if self.bytes.is_empty() {
            self.at = at;
        }
        let start = usize::try_from(at - self.at).unwrap_or(0);
        let overlap = (self.bytes.len() - start).min(piece.len());
        let (inside, beyond) = piece.split_at(overlap);
        if let Some(old) = self.bytes.get_mut(start..start + overlap) {
            old.copy_from_slice(inside);
        }
        self.bytes.extend_from_slice(beyond);
    }

    /// Returns the range of the buffer that a read covers.
    fn holds(&self, at: u64, len: usize) -> Holds {
        let end = at.saturating_add(len as u64);
        if self.bytes.is_empty() || end <= self.at || at >= self.end() {
            Holds::Nothing
        } else if at >= self.at && end <= self.end() {
            Holds::All(usize::try_from(at - self.at).unwrap_or(0))
        } else {
            Holds::Part
        }
    }
}

enum Holds {
    Nothing,
    Part,
    All(usize),
}

/// Returns whether a piece is a frame header and, if so, whether it commits: it then contains the size of the database.
pub(crate) fn commits(piece: &[u8]) -> Option<bool> {
    (piece.len() == FRAME_HEADER).then(|| piece.get(4..8).is_some_and(|size| size != [0; 4]))
}

/// An open log: SQLite's header, the buffer, and the file of the underlying layer right after it.
#[repr(C)]
struct Log {
    base: sqlite3_file,
    waiting: *mut Waiting,
    real: *mut sqlite3_file,
}

/// Returns the name for [`Connection::open_with_flags_and_vfs`](rusqlite::Connection::open_with_flags_and_vfs); `None` if SQLite
/// rejects the layer, in which case its own is used.
pub(crate) fn layer() -> Option<&'static CStr> {
    BENEATH.get_or_init(register).as_ref().map(|_| NAME)
}

/// Returns a file's URI that selects this layer.
pub(crate) fn in_layer(uri: String) -> String {
    match layer() {
        Some(name) => format!("{uri}&vfs={}", name.to_string_lossy()),
        None => uri,
    }
}

/// Returns the gauge of this connection's log; `None` if it has none or uses another layer.
pub(crate) fn gauge(connection: &Connection) -> Option<Arc<Gauge>> {
    let mut file: *mut sqlite3_file = std::ptr::null_mut();
    // SAFETY: SQLite fills in a pointer to a file that lives as long as the connection's log. It is one of ours only if it has
    // our methods, and then `open` filled `waiting` in. The connection is not used while we borrow it.
    unsafe {
        let code = ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_JOURNAL_POINTER,
            (&raw mut file).cast(),
        );
        if code != ffi::SQLITE_OK || file.is_null() || !std::ptr::eq((*file).pMethods, &METHODS) {
            return None;
        }
        Some(Arc::clone(&parts(file).0.gauge))
    }
}

fn register() -> Option<Layer> {
    // SAFETY: a null name requests the default layer, which lives as long as the process; ours is leaked and therefore does too.
    unsafe {
        let real = ffi::sqlite3_vfs_find(std::ptr::null());
        if real.is_null() {
            return None;
        }
        let mut layer = *real;
        layer.szOsFile = layer.szOsFile.checked_add(c_int::try_from(size_of::<Log>()).ok()?)?;
        layer.zName = NAME.as_ptr();
        layer.pNext = std::ptr::null_mut();
        layer.xOpen = Some(open);
        (ffi::sqlite3_vfs_register(Box::leak(Box::new(layer)), 0) == ffi::SQLITE_OK).then_some(Layer(real))
    }
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite allocated `szOsFile` bytes: room for ours and then for the real layer's. A file that is not a log is the
    // real layer's alone.
    unsafe {
        (*file).pMethods = std::ptr::null();
        let Some(Some(Layer(real))) = BENEATH.get() else { return ffi::SQLITE_CANTOPEN };
        let Some(open) = (**real).xOpen else { return ffi::SQLITE_CANTOPEN };
        let is_database = flags & ffi::SQLITE_OPEN_MAIN_DB != 0 && ffi::sqlite3_uri_boolean(name, c"gather".as_ptr(), 0) != 0;
        if flags & ffi::SQLITE_OPEN_WAL == 0 && !is_database {
            return open(*real, name, file, flags, out);
        }
        let log = file.cast::<Log>();
        (*log).real = log.add(1).cast();
        let code = open(*real, name, (*log).real, flags, out);
        if code == ffi::SQLITE_OK {
            (*log).waiting = Box::into_raw(Box::new(Waiting { is_database, ..Waiting::default() }));
            (*log).base.pMethods = &METHODS;
        }
        code
    }
}

/// Calls a method of the real file.
macro_rules! beneath {
    ($real:expr, $method:ident ( $($argument:expr),* )) => {{
        let real = $real;
        match (*(*real).pMethods).$method {
            Some(method) => method(real $(, $argument)*),
            None => ffi::SQLITE_IOERR,
        }
    }};
}

/// Returns the buffer and the real file.
///
/// # Safety
/// `file` is an open log, and its `Waiting` is not borrowed elsewhere.
unsafe fn parts<'a>(file: *mut sqlite3_file) -> (&'a mut Waiting, *mut sqlite3_file) {
    // SAFETY: `open` filled both in, only `close` frees the first, and SQLite uses one file from one thread at a time.
    unsafe { (&mut *(*file.cast::<Log>()).waiting, (*file.cast::<Log>()).real) }
}

/// Writes the buffer. If that fails the buffer is dropped, and SQLite rolls the transaction back.
///
/// # Safety
/// `real` is an open file.
unsafe fn flush(waiting: &mut Waiting, real: *mut sqlite3_file) -> c_int {
    if waiting.bytes.is_empty() {
        return ffi::SQLITE_OK;
    }
    let len = c_int::try_from(waiting.bytes.len()).unwrap_or(0);
    let begun = (waiting.bytes.len() >= STRETCH / 2).then(clock::instant);
    // SAFETY: the buffer has this many bytes.
    let code = unsafe { beneath!(real, xWrite(waiting.bytes.as_ptr().cast(), len, waiting.at.cast_signed())) };
    if let Some(begun) = begun {
        waiting.gauge.wrote(waiting.bytes.len(), begun.elapsed());
    }
    waiting.bytes.clear();
    code
}

unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, len: c_int, at: sqlite3_int64) -> c_int {
    // SAFETY: SQLite passes `len` readable bytes and an open file.
    unsafe {
        let piece = std::slice::from_raw_parts(from.cast::<u8>(), usize::try_from(len).unwrap_or(0));
        let (waiting, real) = parts(file);
        if waiting.gauge.is_late() {
            return ffi::SQLITE_IOERR_WRITE;
        }
        if let Some(commits) = commits(piece).filter(|_| !waiting.is_database) {
            waiting.committing = commits;
        }
        if !waiting.is_database {
            waiting.gauge.writes(at.cast_unsigned(), piece.len());
        }
        if !waiting.takes(at.cast_unsigned(), piece.len()) {
            let code = flush(waiting, real);
            if code != ffi::SQLITE_OK {
                return code;
            }
        }
        waiting.put(at.cast_unsigned(), piece);
        if waiting.gauge.unsynced() > SYNC_BYTES && !waiting.committing {
            let code = flush(waiting, real);
            waiting.gauge.synced();
            return if code == ffi::SQLITE_OK {
                beneath!(real, xSync(ffi::SQLITE_SYNC_NORMAL | ffi::SQLITE_SYNC_DATAONLY))
            } else {
                code
            };
        }
        if waiting.committing { flush(waiting, real) } else { ffi::SQLITE_OK }
    }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, to: *mut c_void, len: c_int, at: sqlite3_int64) -> c_int {
    // SAFETY: SQLite passes room for `len` bytes, which are copied from inside the buffer, and an open file.
    unsafe {
        let (waiting, real) = parts(file);
        if waiting.gauge.is_late() {
            return ffi::SQLITE_IOERR_READ;
        }
        let wanted = usize::try_from(len).unwrap_or(0);
        match waiting.holds(at.cast_unsigned(), wanted) {
            Holds::All(start) => {
                to.cast::<u8>().copy_from_nonoverlapping(waiting.bytes.as_ptr().add(start), wanted);
                return ffi::SQLITE_OK;
            }
            Holds::Part => {
                let code = flush(waiting, real);
                if code != ffi::SQLITE_OK {
                    return code;
                }
            }
            Holds::Nothing => {}
        }
        beneath!(real, xRead(to, len, at))
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once and does not use it afterwards. Buffered bytes were never committed: a commit either
    // wrote them or synced the file.
    unsafe {
        drop(Box::from_raw((*file.cast::<Log>()).waiting));
        beneath!((*file.cast::<Log>()).real, xClose())
    }
}

/// A method that needs the file with the buffer written.
macro_rules! after_flush {
    ($name:ident, $method:ident, $($argument:ident: $type:ty),*) => {
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) -> c_int {
            // SAFETY: SQLite calls methods only on open files, with its own arguments.
            unsafe {
                let (waiting, real) = parts(file);
                let code = flush(waiting, real);
                if code == ffi::SQLITE_OK { beneath!(real, $method($($argument),*)) } else { code }
            }
        }
    };
}

/// A method that does not depend on the file's bytes.
macro_rules! pass_on {
    ($name:ident, $method:ident, $($argument:ident: $type:ty),*) => {
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) -> c_int {
            // SAFETY: `open` filled `real` in, and SQLite calls methods only on open files.
            unsafe { beneath!(parts(file).1, $method($($argument),*)) }
        }
    };
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as for the methods below.
    unsafe {
        let gauge = &parts(file).0.gauge;
        if gauge.is_late() {
            return ffi::SQLITE_IOERR_FSYNC;
        }
        gauge.synced();
        sync_all(file, flags)
    }
}

after_flush!(truncate, xTruncate, size: sqlite3_int64);
after_flush!(sync_all, xSync, flags: c_int);
after_flush!(size, xFileSize, out: *mut sqlite3_int64);
pass_on!(lock, xLock, level: c_int);
pass_on!(unlock, xUnlock, level: c_int);
pass_on!(reserved, xCheckReservedLock, out: *mut c_int);
pass_on!(control, xFileControl, op: c_int, argument: *mut c_void);
pass_on!(sector, xSectorSize,);
pass_on!(device, xDeviceCharacteristics,);

/// Shared memory and mapping are used for databases that others have open, never for a log.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes pieces at offsets and checks the buffer.
    fn check(pieces: &[(u64, &[u8])], at: u64, bytes: &[u8]) {
        let mut waiting = Waiting::default();
        for &(offset, piece) in pieces {
            assert!(waiting.bytes.is_empty() || waiting.takes(offset, piece.len()), "{offset}");
            waiting.put(offset, piece);
        }
        assert_eq!((waiting.at, waiting.bytes.as_slice()), (at, bytes));
    }

    #[test]
    fn pieces_become_one_stretch() {
        check(&[(32, b"ab"), (34, b"cd")], 32, b"abcd");
        check(&[(32, b"abcd"), (33, b"X")], 32, b"aXcd");
        check(&[(32, b"abcd"), (34, b"XYZ")], 32, b"abXYZ");
    }

    #[test]
    fn a_distant_piece_starts_a_new_range() {
        let mut waiting = Waiting::default();
        waiting.put(32, b"ab");
        assert!(!waiting.takes(31, 1));
        assert!(waiting.takes(34, STRETCH - 2));
        assert!(!waiting.takes(34, STRETCH - 1));
        assert!(!waiting.takes(35, 1));
    }

    #[test]
    fn reads_find_buffered_writes() {
        let mut waiting = Waiting::default();
        waiting.put(10, b"abcdef");
        assert!(matches!(waiting.holds(12, 3), Holds::All(2)));
        assert!(matches!(waiting.holds(8, 3), Holds::Part));
        assert!(matches!(waiting.holds(14, 3), Holds::Part));
        assert!(matches!(waiting.holds(16, 3), Holds::Nothing));
        assert!(matches!(waiting.holds(0, 10), Holds::Nothing));
    }

    #[test]
    fn a_commit_frame_is_marked_in_its_header() {
        let mut header = [0; FRAME_HEADER];
        assert_eq!(commits(&header), Some(false));
        header[7] = 3;
        assert_eq!(commits(&header), Some(true));
        assert_eq!(commits(&[1; 32]), None);
    }
}
