//! The memory that SQLite reserves for each connection: more than a sandbox needs that waits, when there are thousands of them.

#![expect(unsafe_code, reason = "rusqlite has no functions for these settings")]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Once;

use rusqlite::{Connection, ffi};

/// Size and number of the places for small allocations of a connection; by default there are 40.
const PLACE_BYTES: c_int = 1200;
const PLACES: c_int = 12;

/// Makes connections allocate pages one by one, instead of twenty in advance. Must be called before the first connection; in a
/// program that has used SQLite before, the default stays.
pub(crate) fn reserve_no_pages() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (none, zero): (*mut c_void, c_int) = (ptr::null_mut(), 0);
        // SAFETY: the arguments are those of this setting; SQLite refuses it once it is initialized.
        let _ = unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_PAGECACHE, none, zero, zero) };
    });
}

/// Reserves fewer small allocations than by default: a connection that needs more allocates them. Without success the default stays.
pub(crate) fn reserve_little(connection: &Connection) {
    let none: *mut c_void = ptr::null_mut();
    // SAFETY: the handle is open, the arguments are those of this setting, and without a buffer SQLite allocates its own.
    let _ = unsafe { ffi::sqlite3_db_config(connection.handle(), ffi::SQLITE_DBCONFIG_LOOKASIDE, none, PLACE_BYTES, PLACES) };
}
