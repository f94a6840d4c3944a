//! How this program allocates memory.
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
