//! From the library's errors to Python's: `sandlite.errors` has the classes, and one function that picks the right one.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use runtime::{Error, FsError};

/// The exception for an error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let text = error.causes().join(": ");
    let errno = error.fs_error().map(FsError::errno);
    let path = error.path().filter(|_| errno.is_some() || matches!(error, Error::Stale { .. })).map(str::to_owned);
    let kind = match error {
        Error::Stale { .. } => "changed",
        Error::Invalid(_) | Error::CommandTooLong { .. } | Error::Limit(_) => "invalid",
        _ => "other",
    };
    made(py, kind, &text, error.hint(), errno, path).unwrap_or_else(|error| error)
}

/// The exception of a sandbox that is closed.
pub(crate) fn closed(py: Python<'_>) -> PyErr {
    made(py, "closed", "the sandbox is closed", None, None, None).unwrap_or_else(|error| error)
}

fn made(
    py: Python<'_>,
    kind: &str,
    text: &str,
    hint: Option<String>,
    errno: Option<i32>,
    path: Option<String>,
) -> PyResult<PyErr> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = MAKE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("sandlite.errors")?.getattr("_make")?.unbind()))?;
    let exception = make.bind(py).call1((kind, text, hint, errno, path))?;
    Ok(PyErr::from_value(exception))
}
