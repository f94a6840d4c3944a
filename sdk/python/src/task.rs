//! Something that runs: it can be killed, and says when it is over.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;
use runtime::{Cancel, Error};

use crate::operation::Done;
use crate::{errors, files, gate, threads};

/// How often a waiting main thread looks whether the user wants to interrupt it.
const SIGNAL_STEP: Duration = Duration::from_millis(20);

/// A running operation.
#[pyclass(frozen, module = "sandlite._native")]
pub(crate) struct Task {
    cancel: Option<Cancel>,
}

#[pymethods]
impl Task {
    /// Ends a command; other operations are short and end by themselves.
    fn kill(&self) {
        if let Some(cancel) = &self.cancel {
            cancel.kill();
        }
    }

    /// Looks at the files as the running command has them; `None` when it does not run.
    fn look(&self, py: Python<'_>, verb: &str, path: &str) -> PyResult<Option<Py<PyAny>>> {
        files::look(py, self.cancel.as_ref().and_then(Cancel::files), verb, path)
    }
}

type Work = Box<dyn FnOnce() -> Result<Done, Error> + Send>;

/// Begins an operation and returns at once; `done` is called at its end with its result and its exception, one of them `None`.
pub(crate) fn begin(py: Python<'_>, cancel: Option<Cancel>, work: Work, done: Py<PyAny>) -> PyResult<Py<PyAny>> {
    threads::run(move || {
        let result = work();
        // At the interpreter's end nobody is left to tell.
        let _ = gate::with_python(|py| {
            let (value, error) = match result.map_err(|error| errors::raise(py, &error)).and_then(|done| done.into_python(py)) {
                Ok(value) => (value, py.None()),
                Err(error) => (py.None(), error.into_value(py).into_any()),
            };
            // The loop that waits may be closed by now: then nobody is left to tell.
            let _ = done.call1(py, (value, error));
        });
    })?;
    Ok(Py::new(py, Task { cancel })?.into_any())
}

/// Runs a command to its end, without the interpreter lock; Ctrl-C kills it.
pub(crate) fn wait(py: Python<'_>, cancel: &Cancel, work: Work) -> PyResult<Py<PyAny>> {
    let (sender, mut receiver) = mpsc::sync_channel(1);
    threads::run(move || drop(sender.send(work())))?;
    let mut interrupted = None;
    loop {
        let waiting = &mut receiver;
        match py.detach(move || waiting.recv_timeout(SIGNAL_STEP)) {
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
                let broken = Error::Invalid("the command broke off; nothing was changed".to_owned());
                return Err(errors::raise(py, &broken));
            }
        }
    }
}
