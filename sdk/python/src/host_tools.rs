//! Python functions as tools of the sandbox: JSON text in, JSON text out; the interpreter lock is held only while they run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use runtime::{Tool, ToolContext, ToolPause};
use serde_json::Value;

use crate::policy::HookScope;
use crate::{files, gate};

/// Name, description, schema, and a function from JSON text to JSON text.
pub(crate) type ToolParts = (String, String, String, Py<PyAny>);

/// Whether there was ever a tool: without one, no code can be inside a call.
static ANY: AtomicBool = AtomicBool::new(false);

/// Creates a tool that calls a Python function, for the sandbox with this number.
pub(crate) fn tool(py: Python<'_>, (name, description, schema, function): &ToolParts, sandbox: u64) -> Tool {
    note_functions();
    let function = function.clone_ref(py);
    Tool::with_context(name.clone(), description.clone(), schema.clone(), move |arguments, context| {
        // The result is not needed once the interpreter is shutting down.
        gate::with_python(|py| call(py, &function, &arguments, sandbox, context))
            .unwrap_or_else(|| Err("the program is exiting".to_owned()))
    })
}

/// Returns whether this code works for a tool that a command of the sandbox has called: on the tool's thread, or in a task that
/// it awaits.
pub(crate) fn is_inside(py: Python<'_>, sandbox: u64) -> PyResult<bool> {
    if !ANY.load(Ordering::Relaxed) {
        return Ok(false);
    }
    let scope = current(py)?.call_method0("get")?;
    if scope.cast::<HookScope>().is_ok_and(|scope| scope.get().is_of(sandbox)) {
        return Ok(true);
    }
    Ok(scope.cast::<ToolScope>().is_ok_and(|scope| scope.get().sandbox == sandbox && !scope.get().context.is_over()))
}

/// Records that code may work for a call from now on.
pub(crate) fn note_scopes() {
    ANY.store(true, Ordering::Relaxed);
}

/// Returns the context variable with the current call.
pub(crate) fn current(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || Ok::<_, PyErr>(py.import("sandlite._approval")?.getattr("CURRENT")?.unbind());
    Ok(CURRENT.get_or_try_init(py, find)?.bind(py))
}

/// A tool call. Calling it returns whether the calling command has ended.
#[pyclass(frozen, module = "sandlite._native")]
pub(crate) struct ToolScope {
    sandbox: u64,
    context: ToolContext,
    pause: Mutex<Option<ToolPause>>,
}

#[pymethods]
impl ToolScope {
    fn __call__(&self) -> bool {
        self.context.is_over()
    }

    /// Pauses the command's clock, for at most this long.
    fn pause(&self, seconds: f64) -> PyResult<()> {
        let longest = Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))?;
        *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.context.pause(longest));
        Ok(())
    }

    /// Resumes the command's clock.
    fn resume(&self) {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Returns the command's number in the history.
    #[getter]
    fn run(&self) -> i64 {
        self.context.run()
    }

    /// Reads the files as the command sees them; `None` after it has ended.
    fn look(&self, py: Python<'_>, verb: &str, path: &str) -> PyResult<Option<Py<PyAny>>> {
        files::look(py, Some(self.context.files().clone()), verb, path)
    }
}

fn call(py: Python<'_>, function: &Py<PyAny>, arguments: &Value, sandbox: u64, context: &ToolContext) -> Result<Value, String> {
    let answer = called(py, function, (&arguments.to_string(),), sandbox, context);
    let text = answer.and_then(|answer| answer.extract::<String>(py)).map_err(|error| {
        // The guest reads the text of the exception, without the traceback.
        let said = error.value(py).to_string();
        if said.is_empty() { error.get_type(py).to_string() } else { said }
    })?;
    serde_json::from_str(&text).map_err(|error| format!("the tool did not return JSON: {error}"))
}

/// Records that Python functions can be called while a command runs.
pub(crate) fn note_functions() {
    ANY.store(true, Ordering::Relaxed);
}

/// Calls a function with one argument and its call.
pub(crate) fn called(
    py: Python<'_>,
    function: &Py<PyAny>,
    (argument,): (&str,),
    sandbox: u64,
    context: &ToolContext,
) -> PyResult<Py<PyAny>> {
    within(py, sandbox, context, |scope| function.call1(py, (argument, scope)))
}

/// Calls a function for a call of the sandbox, marking its code as inside.
pub(crate) fn within(
    py: Python<'_>,
    sandbox: u64,
    context: &ToolContext,
    function: impl FnOnce(&Py<ToolScope>) -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    note_functions();
    let scope = Py::new(py, ToolScope { sandbox, context: context.clone(), pause: Mutex::new(None) })?;
    let current = current(py)?;
    let token = current.call_method1("set", (&scope,))?;
    let answer = function(&scope);
    scope.get().resume();
    current.call_method1("reset", (token,))?;
    answer
}
