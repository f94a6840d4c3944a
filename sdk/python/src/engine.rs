//! The engine of this process, and the compiled guests shipped with the package.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use runtime::{Error, Host};

use crate::{errors, fork};

/// The directory of the package's compiled guests, once known.
static SHIPPED: OnceLock<PathBuf> = OnceLock::new();

/// Sets the directory of the package's compiled guests.
#[pyfunction]
pub(crate) fn set_shipped(directory: PathBuf) {
    // Set at the first import; later imports set the same.
    let _ = SHIPPED.set(directory);
}

/// Returns the directory of the package's compiled guests.
pub(crate) fn shipped() -> Option<&'static Path> {
    SHIPPED.get().map(PathBuf::as_path)
}

/// Compiles the guests to a directory, when the package is built.
#[pyfunction]
pub(crate) fn compile_guests(py: Python<'_>, directory: PathBuf) -> PyResult<Vec<PathBuf>> {
    py.detach(|| Host::compile_guests(directory)).map_err(|error| errors::raise(py, &error))
}

/// Returns the engine of the whole process.
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
