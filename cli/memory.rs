//! How this program takes memory from the system.
#![expect(unsafe_code, reason = "the C library's allocator is told through a foreign function")]

/// What is taken at once. An engine and a database need about as much.
#[cfg(target_env = "gnu")]
const STEP: libc::c_int = 1 << 20;

/// Takes memory by the megabyte. The C library grows a thread's heap page by page, each time with a system call that makes
/// the other threads wait: forty of them while the engine starts.
pub(crate) fn take_in_large_steps() {
    // SAFETY: sets a number of the allocator's, before there are other threads.
    #[cfg(target_env = "gnu")]
    let _ = unsafe { libc::mallopt(libc::M_TOP_PAD, STEP) };
}
