//! Processes created by `os.fork()`: they have the memory of this one but none of its threads, so nothing can be used there.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::errors;

/// The process that owns the threads; 0 before there are any.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Records that this process has threads from now on.
pub(crate) fn claim() {
    let _ = OWNER.compare_exchange(0, process::id(), Ordering::AcqRel, Ordering::Acquire);
}

/// Returns whether this is a copy of the process that has the threads.
pub(crate) fn is_copy() -> bool {
    let owner = OWNER.load(Ordering::Acquire);
    owner != 0 && owner != process::id()
}

/// Rejects at once an operation that would wait forever.
pub(crate) fn check(py: Python<'_>) -> PyResult<()> {
    if is_copy() { Err(errors::forked(py)) } else { Ok(()) }
}
