//! The native half of the Python package: each method of [`Sandbox`](sandbox::NativeSandbox) is one operation, done at once without
//! the interpreter lock, or begun on a thread of its own with a function to call at the end.
//!
//! What a person sees (types, results, exceptions) is Python, in `python/sandlite`.

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::cast_possible_truncation,
        clippy::missing_errors_doc
    )
)]

mod errors;
mod files;
mod gate;
mod host_tools;
mod operation;
mod packages;
mod sandbox;
mod task;
mod threads;

use pyo3::prelude::*;

/// `sandlite._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<sandbox::NativeSandbox>()?;
    module.add_class::<task::Task>()?;
    module.add_function(wrap_pyfunction!(files::file_call, module)?)?;
    module.add_function(wrap_pyfunction!(files::seed, module)?)?;
    module.add_function(wrap_pyfunction!(gate::shut_gate, module)?)?;
    module.add_function(wrap_pyfunction!(operation::actions, module)?)?;
    module.add_function(wrap_pyfunction!(packages::install_packages, module)?)?;
    module.add_function(wrap_pyfunction!(packages::packages, module)?)?;
    module.add_function(wrap_pyfunction!(sandbox::set_shipped, module)?)?;
    module.add_function(wrap_pyfunction!(sandbox::compile_guests, module)?)?;
    Ok(())
}
