//! The engine of this process, and the compiled guests that came with the package.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use runtime::{Error, Host};

use crate::{errors, fork};

/// Where the compiled guests of this package are, once it is known.
static SHIPPED: OnceLock<PathBuf> = OnceLock::new();

/// Tells where the compiled guests of this package are.
#[pyfunction]
pub(crate) fn set_shipped(directory: PathBuf) {
    // Said at the first import; the same at every later one.
    let _ = SHIPPED.set(directory);
}

/// Where the compiled guests of this package are.
pub(crate) fn shipped() -> Option<&'static Path> {
    SHIPPED.get().map(PathBuf::as_path)
}

/// Compiles the guests into a directory, for the package that is being built.
#[pyfunction]
pub(crate) fn compile_guests(py: Python<'_>, directory: PathBuf) -> PyResult<Vec<PathBuf>> {
    py.detach(|| Host::compile_guests(directory)).map_err(|error| errors::raise(py, &error))
}

/// One engine and one set of compiled guests for the whole process.
pub(crate) fn host() -> Result<Host, Error> {
    static HOST: OnceLock<Host> = OnceLock::new();
    static OPENING: Mutex<()> = Mutex::new(());
    let _turn = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(host) = HOST.get() {
        return Ok(host.clone());
    }
    let mut builder = Host::builder();
    if let Some(directory) = SHIPPED.get() {
        builder = builder.shipped(directory);
    }
    fork::claim();
    let host = builder.build()?;
    Ok(HOST.get_or_init(|| host).clone())
}
