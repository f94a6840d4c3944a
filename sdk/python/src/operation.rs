//! The results of operations, and the actions by name.

use std::collections::BTreeMap;
use std::time::Duration;

use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use runtime::actions::{Action, Answer, Context, Limit, Ran, RunOptions, find, quoted};
use runtime::{Command, Error, JsonSchema, Output, Sandbox};
use serde_json::{Value, json};

use crate::about::About;
use crate::handle::NativeSandbox;
use crate::task::{self, Stop};
use crate::{bytes, errors, policy};

/// The result of an operation, before it is converted for Python.
pub(crate) enum Done {
    Nothing,
    Flag(bool),
    Size(u64),
    Bytes(Vec<u8>),
    /// JSON text.
    Json(Option<String>),
    /// JSON text of rows of the history, and beside it the JSON text of each one's changes and its streams.
    Rows(String, Vec<(Option<String>, Vec<u8>, Vec<u8>)>),
    Ran(Box<Output>),
    Opened(Box<(Sandbox, About)>),
    SkillRun(Box<::skills::RunResult>),
    /// An exception that is raised instead of returning a result.
    Raised(PyErr),
}

impl Done {
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Nothing => Ok(py.None()),
            Self::Flag(flag) => flag.into_py_any(py),
            Self::Size(bytes) => bytes.into_py_any(py),
            Self::Bytes(bytes) => Ok(bytes::moved(py, bytes)?.into_any().unbind()),
            Self::Json(text) => text.into_py_any(py),
            Self::Ran(output) => ran(py, *output),
            Self::Raised(error) => Err(error),
            Self::SkillRun(result) => crate::skills::ran(py, *result),
            Self::Rows(rows, beside) => {
                let beside = beside.into_iter().map(|(changes, stdout, stderr)| {
                    Ok::<_, PyErr>((changes, bytes::moved(py, stdout)?, bytes::moved(py, stderr)?))
                });
                (rows, beside.collect::<Result<Vec<_>, _>>()?).into_py_any(py)
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

/// Converts the result of a command: the fields of Python's `Result`, in which `value` is JSON and images are base64.
pub(crate) fn ran(py: Python<'_>, mut output: Output) -> PyResult<Py<PyAny>> {
    let (stdout, stderr) = (std::mem::take(&mut output.stdout), std::mem::take(&mut output.stderr));
    let Ran { exit_code, truncated, limit, usage, run, restarted, notes, value, text, images, .. } = Ran::new(&output, false);
    let used = PyDict::new(py);
    for (name, amount) in [
        (intern!(py, "fuel"), usage.fuel),
        (intern!(py, "memory_peak"), usage.memory_peak),
        (intern!(py, "output"), usage.output),
        (intern!(py, "commands"), usage.commands),
        (intern!(py, "processes"), usage.processes),
        (intern!(py, "bytes_read"), usage.bytes_read),
        (intern!(py, "bytes_written"), usage.bytes_written),
    ] {
        used.set_item(name, amount)?;
    }
    let fields = PyDict::new(py);
    fields.set_item(intern!(py, "exit_code"), exit_code)?;
    fields.set_item(intern!(py, "stdout_bytes"), bytes::moved(py, stdout)?)?;
    fields.set_item(intern!(py, "stderr_bytes"), bytes::moved(py, stderr)?)?;
    fields.set_item(intern!(py, "truncated"), truncated)?;
    fields.set_item(intern!(py, "duration"), usage.wall.as_secs_f64())?;
    fields.set_item(intern!(py, "run"), run)?;
    fields.set_item(intern!(py, "usage"), used)?;
    fields.set_item(intern!(py, "limit"), limit.map(|limit| limit_fields(py, limit)).transpose()?)?;
    fields.set_item(intern!(py, "restarted"), restarted)?;
    fields.set_item(intern!(py, "notes"), PyTuple::new(py, notes)?)?;
    fields.set_item(intern!(py, "value"), value.map(|value| value.to_string()))?;
    fields.set_item(intern!(py, "text"), text)?;
    fields.set_item(intern!(py, "images"), PyTuple::new(py, images.into_iter().map(|image| (image.mime, image.data)))?)?;
    fields.into_py_any(py)
}

fn limit_fields(py: Python<'_>, limit: Limit) -> PyResult<Bound<'_, PyDict>> {
    let fields = PyDict::new(py);
    let Limit { name, value, used, hint, message, rolled_back } = limit;
    for (key, text) in [("name", name), ("value", value), ("used", used), ("hint", hint), ("message", message)] {
        fields.set_item(key, text)?;
    }
    fields.set_item("rolled_back", rolled_back)?;
    Ok(fields)
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

/// The options of a command: session, directory, environment, timeout in seconds, rollback on failure, seed, recording.
pub(crate) type OptionParts =
    (Option<String>, Option<String>, Option<BTreeMap<String, String>>, Option<f64>, bool, Option<u64>, bool);

/// Longer than any limit, in seconds.
const LONGEST: f64 = 1e9;

/// Converts a command and its options from Python.
pub(crate) fn command(
    kind: &str,
    text: String,
    options: OptionParts,
    stdin: Option<Vec<u8>>,
    echo: bool,
) -> PyResult<(Command, RunOptions)> {
    let (session, cwd, env, timeout, rollback_on_failure, seed, record) = options;
    let timeout_ms = timeout.map(milliseconds).transpose()?;
    let env = env.unwrap_or_default();
    let options = RunOptions { cwd, env, stdin: None, timeout_ms, rollback_on_failure, session, seed, record };
    let mut command = if kind == "python" { Command::python(text) } else { Command::bash(text) };
    if let Some(bytes) = stdin {
        command = command.stdin(bytes);
    }
    Ok((if echo { command.echo() } else { command }, options))
}

fn milliseconds(seconds: f64) -> PyResult<u64> {
    let time = Duration::try_from_secs_f64(seconds.clamp(0.0, LONGEST));
    let time = time.map_err(|_| PyValueError::new_err(format!("invalid timeout: {seconds} is not a number of seconds")))?;
    Ok(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
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
        None => {
            py.detach(move || policy::performed(|| work(&sandbox))).map_err(|error| errors::raise(py, &error))?.into_python(py)
        }
    }
}
