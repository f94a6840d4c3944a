//! The way of our own threads into the interpreter, which is shut before the interpreter ends: a thread that asks for the lock
//! after that is ended by Python in the middle of its work, and takes the process with it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

/// How long the end waits for functions of the program that are called as tools.
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

/// Whoever is inside; leaving is telling it.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        gate().inside -= 1;
        LEFT.notify_all();
    }
}

/// Does something with the interpreter, on a thread that is not Python's; `None` when it is at its end.
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

/// Shuts the way in, and waits for those who are inside.
#[pyfunction]
pub(crate) fn shut_gate(py: Python<'_>) {
    py.detach(|| {
        let mut gate = gate();
        gate.shut = true;
        let _ = LEFT.wait_timeout_while(gate, PATIENCE, |gate| gate.inside > 0);
    });
}
