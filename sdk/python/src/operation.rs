//! What an operation gives back, and the tools by name.

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use runtime::{Error, Output, Sandbox, agent};

use crate::sandbox::NativeSandbox;

/// The end of an operation, before it is Python's.
pub(crate) enum Done {
    Nothing,
    Flag(bool),
    Number(i64),
    Bytes(Vec<u8>),
    /// JSON text.
    Json(Option<String>),
    Ran(Box<Output>),
    Opened(Box<Sandbox>),
}

impl Done {
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Nothing => Ok(py.None()),
            Self::Flag(flag) => flag.into_py_any(py),
            Self::Number(number) => number.into_py_any(py),
            Self::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any().unbind()),
            Self::Json(text) => text.into_py_any(py),
            Self::Ran(output) => ran(py, &output),
            Self::Opened(sandbox) => Ok(Py::new(py, NativeSandbox::new(*sandbox))?.into_any()),
        }
    }
}

fn ran(py: Python<'_>, output: &Output) -> PyResult<Py<PyAny>> {
    let result = PyDict::new(py);
    result.set_item("exit_code", output.status.code())?;
    result.set_item("stdout_bytes", PyBytes::new(py, &output.stdout))?;
    result.set_item("stderr_bytes", PyBytes::new(py, &output.stderr))?;
    result.set_item("truncated", output.stdout_truncated || output.stderr_truncated)?;
    result.set_item("duration", output.usage.wall.as_secs_f64())?;
    result.set_item("run", output.run)?;
    let usage = PyDict::new(py);
    usage.set_item("fuel", output.usage.fuel)?;
    usage.set_item("memory_peak", output.usage.memory_peak)?;
    usage.set_item("output", output.usage.output)?;
    usage.set_item("commands", output.usage.commands)?;
    usage.set_item("processes", output.usage.processes)?;
    usage.set_item("bytes_read", output.usage.bytes_read)?;
    usage.set_item("bytes_written", output.usage.bytes_written)?;
    result.set_item("usage", usage)?;
    if let Some(reached) = output.status.limit() {
        let limit = PyDict::new(py);
        limit.set_item("name", reached.limit.as_str())?;
        limit.set_item("value", &reached.value)?;
        limit.set_item("used", &reached.used)?;
        limit.set_item("hint", reached.hint())?;
        limit.set_item("message", reached.to_string())?;
        result.set_item("limit", limit)?;
    } else {
        result.set_item("limit", py.None())?;
    }
    Ok(result.into_any().unbind())
}

/// How a tool's answer is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As data.
    Json,
    /// As a model reads it.
    Text,
}

/// Calls a file tool by its name, with its request as JSON.
pub(crate) fn tool(sandbox: &Sandbox, name: &str, request: &str, form: Form) -> Result<Done, Error> {
    let tools = sandbox.agent();
    let answer = match name {
        "read_file" => ask(request, form, |request| tools.read(&request), agent::ReadWindow::render),
        "write_file" => ask(request, form, |request| tools.write(&request), agent::Written::render),
        "edit_file" => ask(request, form, |request| tools.edit(&request), agent::Edited::render),
        "list_files" => ask(request, form, |request| tools.list(&request), agent::Listed::render),
        "glob" => ask(request, form, |request| tools.glob(&request), agent::Found::render),
        "grep" => ask(request, form, |request| tools.grep(&request), agent::Grepped::render),
        "delete_file" => ask(request, form, |request| tools.delete(&request), agent::Deleted::render),
        "move_file" => ask(request, form, |request| tools.rename(&request), agent::Moved::render),
        _ => Err(Error::Invalid(format!("there is no tool `{name}`"))),
    };
    answer.map(|answer| Done::Json(Some(answer)))
}

fn ask<I, O>(
    request: &str,
    form: Form,
    call: impl FnOnce(I) -> Result<O, Error>,
    render: impl FnOnce(&O) -> String,
) -> Result<String, Error>
where
    I: serde::de::DeserializeOwned,
    O: serde::Serialize,
{
    let request = serde_json::from_str(request).map_err(|error| Error::Invalid(format!("the arguments do not fit: {error}")))?;
    let answer = call(request)?;
    if form == Form::Text { Ok(render(&answer)) } else { json(&answer) }
}

/// A value as JSON text.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Invalid(format!("not JSON: {error}")))
}
