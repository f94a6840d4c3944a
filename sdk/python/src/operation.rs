//! The results of operations, and the actions by name.

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runtime::actions::{Action, Answer, Context, Ran, RunOptions, find, quoted};
use runtime::{Command, Error, JsonSchema, Output, Sandbox};
use serde_json::{Value, json};

use crate::about::About;
use crate::errors;
use crate::sandbox::NativeSandbox;
use crate::task::{self, Stop};

/// The result of an operation, before it is converted for Python.
pub(crate) enum Done {
    Nothing,
    Flag(bool),
    Size(u64),
    Bytes(Vec<u8>),
    /// JSON text.
    Json(Option<String>),
    /// JSON text of rows, and the two streams of each.
    Rows(String, Vec<(Vec<u8>, Vec<u8>)>),
    Ran(Box<Output>),
    Opened(Box<(Sandbox, About)>),
    SkillRun(Box<::skills::RunResult>),
}

impl Done {
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Nothing => Ok(py.None()),
            Self::Flag(flag) => flag.into_py_any(py),
            Self::Size(bytes) => bytes.into_py_any(py),
            Self::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any().unbind()),
            Self::Json(text) => text.into_py_any(py),
            Self::Ran(output) => ran(py, *output),
            Self::SkillRun(result) => crate::skills::ran(py, *result),
            Self::Rows(rows, outputs) => {
                let outputs = outputs.iter().map(|(stdout, stderr)| (PyBytes::new(py, stdout), PyBytes::new(py, stderr)));
                (rows, outputs.collect::<Vec<_>>()).into_py_any(py)
            }
            Self::Opened(opened) => {
                let (sandbox, about) = *opened;
                Ok(Py::new(py, NativeSandbox::new(sandbox, about))?.into_any())
            }
        }
    }
}

/// Returns the problem of a JSON schema, or of a value that it describes; both are JSON texts.
#[pyfunction]
#[pyo3(signature = (schema, value))]
pub(crate) fn schema_complaint(schema: &str, value: Option<&str>) -> Option<String> {
    let parse = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| format!("not JSON ({error})"));
    let check = || {
        let schema = JsonSchema::parse(&parse(schema)?)?;
        value.map_or(Ok(()), |value| schema.check(&parse(value)?))
    };
    check().err()
}

/// Converts the result of a command: the streams as bytes, the rest as JSON.
pub(crate) fn ran(py: Python<'_>, mut output: Output) -> PyResult<Py<PyAny>> {
    let (stdout, stderr) = (std::mem::take(&mut output.stdout), std::mem::take(&mut output.stderr));
    let rest = json(&Ran::new(&output, false)).map_err(|error| errors::raise(py, &error))?;
    (PyBytes::new(py, &stdout), PyBytes::new(py, &stderr), rest).into_py_any(py)
}

/// Returns every action, as JSON.
#[pyfunction]
pub(crate) fn actions() -> String {
    rows(runtime::actions::actions())
}

/// Returns a table of actions, as JSON.
pub(crate) fn rows<C: 'static>(actions: &[Action<C>]) -> String {
    let rows = actions.iter().map(|action| {
        json!({
            "name": action.name,
            "title": action.title,
            "description": action.description,
            "effect": action.effect,
            "permission": action.permission,
            "audience": action.audience,
            "input_schema": (action.input)(),
            "output_schema": (action.output)(),
        })
    });
    Value::from_iter(rows).to_string()
}

/// Checks the arguments of an action and performs it.
pub(crate) fn act(context: &Context, name: &str, arguments: &str) -> Result<Answer, Error> {
    let action = find(name).ok_or_else(|| Error::Invalid(format!("unknown action `{}`", quoted(name))))?;
    let arguments =
        serde_json::from_str(arguments).map_err(|error| Error::Invalid(format!("the arguments are not JSON: {error}")))?;
    action.prepare(arguments)?.run(context)
}

/// Formats a value as JSON text.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Invalid(format!("not JSON: {error}")))
}

/// Converts a command and its options from Python.
pub(crate) fn command(
    py: Python<'_>,
    kind: &str,
    text: String,
    options: &str,
    stdin: Option<Vec<u8>>,
    echo: bool,
) -> PyResult<(Command, RunOptions)> {
    let options: RunOptions =
        serde_json::from_str(options).map_err(|error| errors::raise(py, &Error::Invalid(format!("invalid options: {error}"))))?;
    let mut command = if kind == "python" { Command::python(text) } else { Command::bash(text) };
    if let Some(bytes) = stdin {
        command = command.stdin(bytes);
    }
    Ok((if echo { command.echo() } else { command }, options))
}

/// Performs an operation that takes no turn: at once, or with a completion callback.
pub(crate) fn short(
    py: Python<'_>,
    done: Option<Py<PyAny>>,
    sandbox: Sandbox,
    work: impl FnOnce(&Sandbox) -> Result<Done, Error> + Send + 'static,
) -> PyResult<Py<PyAny>> {
    match done {
        Some(done) => task::begin(py, Stop::Nothing, Box::new(move || work(&sandbox)), done),
        None => py.detach(move || work(&sandbox)).map_err(|error| errors::raise(py, &error))?.into_python(py),
    }
}
