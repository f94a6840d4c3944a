//! Converts the library's errors to Python's: `sandlite.errors` has the classes and the function that selects one.

use std::io::ErrorKind;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use runtime::{Error, FsError};

/// Returns the exception for an error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let text = error.causes().join(": ");
    let (errno, path) = match error {
        // A file on this machine.
        Error::HostFile { path, source } => (number(source), Some(path.display().to_string())),
        error => (error.fs_error().map(FsError::errno), error.path().map(str::to_owned)),
    };
    // A file on this machine that the library creates, such as a fork.
    let errno = errno.or_else(|| (error.kind() == runtime::ErrorKind::Exists).then(|| FsError::Exists.errno()));
    let path = path.filter(|_| errno.is_some() || matches!(error, Error::Stale { .. }));
    let kind = match error {
        Error::Stale { .. } => "changed",
        Error::Conflicts { .. } => "conflict",
        Error::Refused(_) => "refused",
        Error::Invalid(_) | Error::Git(_) | Error::CommandTooLong { .. } | Error::Limit(_) | Error::Policy(_) => "invalid",
        error if error.is_busy() => "busy",
        _ => "other",
    };
    made(py, kind, &text, error.hint(), errno, path)
}

fn number(error: &std::io::Error) -> Option<i32> {
    let of_kind = || match error.kind() {
        ErrorKind::NotFound => Some(FsError::NoEntry.errno()),
        ErrorKind::AlreadyExists => Some(FsError::Exists.errno()),
        _ => None,
    };
    error.raw_os_error().or_else(of_kind)
}

/// Returns the exception of a closed sandbox.
pub(crate) fn closed(py: Python<'_>) -> PyErr {
    made(py, "closed", "the sandbox is closed", None, None, None)
}

/// Returns the exception of a tool that changes the sandbox that waits for it.
pub(crate) fn busy(py: Python<'_>) -> PyErr {
    let text = "cannot change the sandbox inside a tool that one of its commands has called: the command holds its turn";
    let hint = "return the data to the command, or make the change after the command; reading works and returns the state before the command";
    made(py, "busy", text, Some(hint.to_owned()), None, None)
}

/// Returns the exception of code that changes the sandbox while it processes output of a running command.
pub(crate) fn busy_reading(py: Python<'_>) -> PyErr {
    let text = "cannot change the sandbox while processing the output of its running command: the command waits for its reader";
    let hint = "collect the output and make the change after the command, or close the stream first; reading works and returns the state before the command";
    made(py, "busy", text, Some(hint.to_owned()), None, None)
}

/// Returns the exception of a process created by `os.fork()`.
pub(crate) fn forked(py: Python<'_>) -> PyErr {
    let text = "cannot use Sandlite in a process created by os.fork(): the engine's threads exist only in the parent";
    let hint = "use the start method \"spawn\" or \"forkserver\" (multiprocessing.set_start_method), or fork before the first sandbox is opened";
    made(py, "other", text, Some(hint.to_owned()), None, None)
}

fn made(py: Python<'_>, kind: &str, text: &str, hint: Option<String>, errno: Option<i32>, path: Option<String>) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || Ok::<_, PyErr>(py.import("sandlite.errors")?.getattr("_make")?.unbind());
    let exception = MAKE.get_or_try_init(py, find).and_then(|make| make.bind(py).call1((kind, text, hint, errno, path)));
    exception.map_or_else(|error| error, PyErr::from_value)
}
