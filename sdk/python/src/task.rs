//! A running operation, which can be stopped and reports its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use pyo3::prelude::*;
use runtime::{Cancel, Error};

use crate::operation::Done;
use crate::{errors, files, gate, policy, threads};

/// How often a waiting main thread checks for an interrupt by the user.
pub(crate) const SIGNAL_STEP: Duration = Duration::from_millis(20);

/// How long a waiting thread stays awake: a short command has ended by then.
const AWAKE: Duration = Duration::from_micros(200);

/// How an operation is ended early.
#[derive(Clone)]
pub(crate) enum Stop {
    /// Not at all: it is short and ends by itself.
    Nothing,
    /// By killing its command.
    Command(Cancel),
    /// By no longer waiting.
    Waiting(Arc<Waiting>),
}

/// A wait that can be abandoned.
#[derive(Default)]
pub(crate) struct Waiting {
    given_up: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Waiting {
    /// Registers the calling thread as the waiting one.
    pub(crate) fn begin(&self) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }
}

/// A running operation.
#[pyclass(frozen, module = "sandlite._native")]
pub(crate) struct Task(Stop);

#[pymethods]
impl Task {
    /// Ends it early, if possible.
    fn kill(&self) {
        match &self.0 {
            Stop::Nothing => {}
            Stop::Command(cancel) => cancel.kill(),
            Stop::Waiting(waiting) => waiting.give_up(),
        }
    }

    /// Reads the files as the running command sees them; `None` if it is not running.
    fn look(&self, py: Python<'_>, verb: &str, path: &str) -> PyResult<Option<Py<PyAny>>> {
        let running = match &self.0 {
            Stop::Command(cancel) => cancel.files(),
            Stop::Nothing | Stop::Waiting(_) => None,
        };
        files::look(py, running, verb, path)
    }
}

pub(crate) type Work = Box<dyn FnOnce() -> Result<Done, Error> + Send>;

/// Starts an operation and returns at once; `done` is called at its end with its result and its exception, one of them `None`.
pub(crate) fn begin(py: Python<'_>, stop: Stop, work: Work, done: Py<PyAny>) -> PyResult<Py<PyAny>> {
    threads::run(move || {
        let result = policy::performed(work);
        // When the interpreter exits, there is no callback to call.
        let _ = gate::with_python(|py| {
            let (value, error) = match result.map_err(|error| errors::raise(py, &error)).and_then(|done| done.into_python(py)) {
                Ok(value) => (value, py.None()),
                Err(error) => (py.None(), error.into_value(py).into_any()),
            };
            // The waiting loop may be closed by now.
            let _ = done.call1(py, (value, error));
        });
    })?;
    Ok(Py::new(py, Task(stop))?.into_any())
}

/// Reports the end of an operation that has nothing to do.
pub(crate) fn ended(py: Python<'_>, done: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    done.call1(py, (py.None(), py.None()))?;
    Ok(Py::new(py, Task(Stop::Nothing))?.into_any())
}

/// Runs a command to completion, without the interpreter lock; Ctrl-C kills it.
pub(crate) fn wait(py: Python<'_>, cancel: &Cancel, work: Work) -> PyResult<Py<PyAny>> {
    let (sender, mut receiver) = mpsc::sync_channel(1);
    threads::run(move || drop(sender.send(policy::performed(work))))?;
    let (mut interrupted, mut awake) = (None, AWAKE);
    loop {
        let (waiting, first) = (&mut receiver, std::mem::take(&mut awake));
        match py.detach(move || threads::receive_awake(waiting, first).map_or_else(|| waiting.recv_timeout(SIGNAL_STEP), Ok)) {
            Ok(result) => {
                return match interrupted {
                    Some(error) => Err(error),
                    None => result.map_err(|error| errors::raise(py, &error))?.into_python(py),
                };
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals() {
                    cancel.kill();
                    interrupted = Some(error);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let broken = Error::Invalid("the command was aborted; no changes were made".to_owned());
                return Err(errors::raise(py, &broken));
            }
        }
    }
}
