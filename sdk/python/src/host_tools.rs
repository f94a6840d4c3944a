//! Functions of Python as tools of the sandbox: JSON text in, JSON text out, the interpreter's lock only while they run.

use pyo3::prelude::*;
use runtime::{Tool, ToolContext};
use serde_json::Value;

use crate::gate;

/// Name, description, schema, and a function from JSON text to JSON text.
pub(crate) type ToolParts = (String, String, String, Py<PyAny>);

/// A tool that calls a function of Python.
pub(crate) fn tool((name, description, schema, function): ToolParts) -> Tool {
    Tool::with_context(name, description, schema, move |arguments, context| {
        // Nobody waits for a tool once the interpreter is at its end.
        gate::with_python(|py| call(py, &function, &arguments, context))
            .unwrap_or_else(|| Err("the program is at its end".to_owned()))
    })
}

/// Whether the command that made a call has ended, as a function of Python.
#[pyclass(frozen)]
struct IsOver(ToolContext);

#[pymethods]
impl IsOver {
    fn __call__(&self) -> bool {
        self.0.is_over()
    }
}

// What a function raises is told to the guest in the exception's own words, without its trace.
fn call(py: Python<'_>, function: &Py<PyAny>, arguments: &Value, context: &ToolContext) -> Result<Value, String> {
    let answer =
        function.call1(py, (arguments.to_string(), IsOver(context.clone()))).and_then(|answer| answer.extract::<String>(py));
    let text = answer.map_err(|error| {
        let said = error.value(py).to_string();
        if said.is_empty() { error.get_type(py).to_string() } else { said }
    })?;
    serde_json::from_str(&text).map_err(|error| format!("the tool did not answer with JSON: {error}"))
}
