//! The entrance of our own threads to the interpreter, which is closed before the interpreter exits: Python terminates a thread
//! that requests the lock after that, and the process with it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

/// How long shutdown waits for functions that are called as tools.
const PATIENCE: Duration = Duration::from_secs(5);

struct Gate {
    shut: bool,
    inside: usize,
}

static GATE: Mutex<Gate> = Mutex::new(Gate { shut: false, inside: 0 });
static LEFT: Condvar = Condvar::new();

fn gate() -> MutexGuard<'static, Gate> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread inside; dropping it reports that it has left.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        gate().inside -= 1;
        LEFT.notify_all();
    }
}

/// Runs `work` with the interpreter, on a thread that is not Python's; `None` if the interpreter is shutting down.
pub(crate) fn with_python<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _inside = {
        let mut gate = gate();
        if gate.shut {
            return None;
        }
        gate.inside += 1;
        Inside
    };
    Python::try_attach(work)
}

/// Closes the entrance, and waits for the threads inside.
#[pyfunction]
pub(crate) fn shut_gate(py: Python<'_>) {
    py.detach(|| {
        let mut gate = gate();
        gate.shut = true;
        let _ = LEFT.wait_timeout_while(gate, PATIENCE, |gate| gate.inside > 0);
    });
}
