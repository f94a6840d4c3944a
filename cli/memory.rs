//! Memory allocation of this program.
#![expect(unsafe_code, reason = "the C library's allocator is configured through a foreign function")]

/// Allocation step. An engine and a database need about this much.
#[cfg(target_env = "gnu")]
const STEP: libc::c_int = 1 << 20;

/// Allocates memory in steps of a megabyte. The C library grows a thread's heap page by page, each time with a system call that
/// blocks the other threads: forty times while the engine starts.
pub(crate) fn take_in_large_steps() {
    // SAFETY: sets a parameter of the allocator before other threads exist.
    #[cfg(target_env = "gnu")]
    let _ = unsafe { libc::mallopt(libc::M_TOP_PAD, STEP) };
}

/// Returns freed memory to the system. The C library keeps what lies between parts that are in use: after a thousand sandboxes have freed
/// their caches, more than half of it.
pub(crate) fn give_back() {
    // SAFETY: only touches memory that the allocator has marked as free, under its own locks.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    let _ = unsafe { libc::malloc_trim(0) };
}
