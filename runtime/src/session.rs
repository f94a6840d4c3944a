//! Sessions: a shell and a Python interpreter that resume where their last call ended.

mod interpreters;
mod python;
mod shell;

pub(crate) use interpreters::{IDLE, Interpreters};
pub(crate) use python::PYTHON;
pub use python::PythonSession;
pub use shell::Session;
pub(crate) use shell::{SHELL, set_status};
