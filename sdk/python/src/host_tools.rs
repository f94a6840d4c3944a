//! Functions of Python as tools of the sandbox: JSON text in, JSON text out, the interpreter's lock only while they run.

use pyo3::prelude::*;
use runtime::{Tool, ToolContext};
use serde_json::Value;

use crate::{files, gate};

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

/// The call that a function works for.
#[pyclass(frozen, name = "ToolContext", module = "sandlite._native")]
struct CallContext(ToolContext);

#[pymethods]
impl CallContext {
    /// Whether the command that made the call has ended.
    fn __call__(&self) -> bool {
        self.0.is_over()
    }

    /// The command's number in the history.
    #[getter]
    fn run(&self) -> i64 {
        self.0.run()
    }

    /// Looks at the files as the command has them; `None` once it is over.
    fn look(&self, py: Python<'_>, verb: &str, path: &str) -> PyResult<Option<Py<PyAny>>> {
        files::look(py, Some(self.0.files().clone()), verb, path)
    }
}

// What a function raises is told to the guest in the exception's own words, without its trace.
fn call(py: Python<'_>, function: &Py<PyAny>, arguments: &Value, context: &ToolContext) -> Result<Value, String> {
    let answer =
        function.call1(py, (arguments.to_string(), CallContext(context.clone()))).and_then(|answer| answer.extract::<String>(py));
    let text = answer.map_err(|error| {
        let said = error.value(py).to_string();
        if said.is_empty() { error.get_type(py).to_string() } else { said }
    })?;
    serde_json::from_str(&text).map_err(|error| format!("the tool did not answer with JSON: {error}"))
}
