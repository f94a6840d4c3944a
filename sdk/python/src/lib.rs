//! The native half of the Python package: each method of `NativeSandbox` is one operation, performed at once
//! without the interpreter lock, or started on its own thread with a completion callback.
//!
//! The public types, results and exceptions are in Python, in `python/sandlite`.

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

mod about;
mod bytes;
mod commands;
mod engine;
mod errors;
mod files;
mod fork;
mod gate;
mod handle;
mod host_tools;
mod mcp;
mod mounts;
mod operation;
mod packages;
mod policy;
mod running;
mod sandbox;
mod skills;
mod task;
mod threads;
mod trees;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command `sandlite`, whose first word is its name, and returns its exit code.
#[pyfunction]
fn cli(py: Python<'_>, words: Vec<OsString>) -> u8 {
    if let Some(directory) = engine::shipped() {
        sandlite_cli::set_shipped(directory.to_owned());
    }
    py.detach(|| sandlite_cli::run(words))
}

/// `sandlite._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PIP_PROGRAM", runtime::PIP_PROGRAM)?;
    module.add_class::<handle::NativeSandbox>()?;
    module.add_class::<host_tools::ToolScope>()?;
    module.add_class::<commands::CommandScope>()?;
    module.add_function(wrap_pyfunction!(commands::add_command, module)?)?;
    module.add_function(wrap_pyfunction!(mcp::confirm_mcp, module)?)?;
    module.add_function(wrap_pyfunction!(mcp::connect_mcp, module)?)?;
    module.add_function(wrap_pyfunction!(mcp::mcp_awaited_files, module)?)?;
    module.add_function(wrap_pyfunction!(mcp::mcp_servers, module)?)?;
    module.add_class::<running::OutputScope>()?;
    module.add_class::<running::Running>()?;
    module.add_class::<skills::NativeSkills>()?;
    module.add_class::<skills::NativeRun>()?;
    module.add_class::<task::Task>()?;
    module.add_function(wrap_pyfunction!(files::file_call, module)?)?;
    module.add_function(wrap_pyfunction!(files::seed, module)?)?;
    module.add_function(wrap_pyfunction!(gate::shut_gate, module)?)?;
    module.add_function(wrap_pyfunction!(mounts::mount_function, module)?)?;
    module.add_function(wrap_pyfunction!(mounts::unmount, module)?)?;
    module.add_function(wrap_pyfunction!(operation::actions, module)?)?;
    module.add_function(wrap_pyfunction!(operation::schema_complaint, module)?)?;
    module.add_function(wrap_pyfunction!(packages::install_packages, module)?)?;
    module.add_function(wrap_pyfunction!(packages::packages, module)?)?;
    module.add_function(wrap_pyfunction!(skills::front_matter, module)?)?;
    module.add_function(wrap_pyfunction!(skills::lint_skill, module)?)?;
    module.add_function(wrap_pyfunction!(skills::skill_actions, module)?)?;
    module.add_class::<policy::HookScope>()?;
    module.add_function(wrap_pyfunction!(policy::view, module)?)?;
    module.add_function(wrap_pyfunction!(policy::with_policy, module)?)?;
    module.add_function(wrap_pyfunction!(policy::owner, module)?)?;
    module.add_function(wrap_pyfunction!(policy::stored_policy, module)?)?;
    module.add_function(wrap_pyfunction!(policy::set_policy, module)?)?;
    module.add_function(wrap_pyfunction!(policy::on_commit, module)?)?;
    module.add_function(wrap_pyfunction!(cli, module)?)?;
    module.add_function(wrap_pyfunction!(engine::set_shipped, module)?)?;
    module.add_function(wrap_pyfunction!(engine::compile_guests, module)?)?;
    Ok(())
}
