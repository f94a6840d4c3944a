//! Access control from Python: policies, views, and functions called before a commit.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use runtime::{Commit, Error, Policy};
use serde_json::json;

use crate::handle::NativeSandbox;
use crate::operation::Done;
use crate::{errors, gate, host_tools};

/// Maximum size of a file passed to a hook.
const CONTENT_BYTES: u64 = 1 << 20;
/// Maximum size of all files of one commit together.
const ALL_BYTES: u64 = 16 << 20;

/// Parses a policy: JSON if it starts with a brace, else a policy file.
pub(crate) fn parse(py: Python<'_>, text: &str) -> PyResult<Policy> {
    let parsed = if text.starts_with('{') {
        serde_json::from_str::<Policy>(text).map_err(|error| Error::Invalid(format!("invalid policy: {error}")))
    } else {
        Policy::parse(text).map_err(Error::from)
    };
    parsed.and_then(|policy| Ok(policy.check()?)).map_err(|error| errors::raise(py, &error))
}

/// Returns the sandbox as seen by a principal with these labels.
#[pyfunction]
pub(crate) fn view(py: Python<'_>, sandbox: &NativeSandbox, principal: &str, labels: Vec<String>) -> PyResult<NativeSandbox> {
    sandbox.with(py, |sandbox| sandbox.view(principal, labels))
}

/// Returns the sandbox with an additional policy.
#[pyfunction]
pub(crate) fn with_policy(py: Python<'_>, sandbox: &NativeSandbox, policy: &str) -> PyResult<NativeSandbox> {
    let policy = parse(py, policy)?;
    sandbox.with(py, |sandbox| sandbox.with_policy(policy))
}

/// Returns the sandbox without any policy.
#[pyfunction]
pub(crate) fn owner(py: Python<'_>, sandbox: &NativeSandbox) -> PyResult<NativeSandbox> {
    sandbox.with(py, runtime::Sandbox::owner)
}

/// Returns the stored policy as JSON.
#[pyfunction]
pub(crate) fn stored_policy(py: Python<'_>, sandbox: &NativeSandbox) -> PyResult<Option<String>> {
    let policy = sandbox.get(py)?.policy().map_err(|error| errors::raise(py, &error))?;
    policy.map(|policy| serde_json::to_string(&policy).map_err(|error| PyValueError::new_err(error.to_string()))).transpose()
}

/// Stores a policy, or removes it.
#[pyfunction]
#[pyo3(signature = (sandbox, policy, done=None))]
pub(crate) fn set_policy(
    py: Python<'_>,
    sandbox: &NativeSandbox,
    policy: Option<&str>,
    done: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let policy = policy.map(|text| parse(py, text)).transpose()?;
    sandbox.change(py, done, move |sandbox| {
        sandbox.set_policy(policy)?;
        Ok(Done::Nothing)
    })
}

/// Marks code that works for a hook, which must not change the sandbox that waits for it.
#[pyclass(frozen, module = "sandlite._native")]
pub(crate) struct HookScope {
    sandbox: u64,
    is_over: AtomicBool,
}

impl HookScope {
    /// Returns whether a sandbox waits for it.
    pub(crate) fn is_of(&self, sandbox: u64) -> bool {
        self.sandbox == sandbox && !self.is_over.load(Ordering::Acquire)
    }
}

/// Calls a Python function before every commit that changes something at a path or below it. It receives the commit as JSON and
/// the contents of the changed files, and returns the reason for a rejection, or nothing.
#[pyfunction]
pub(crate) fn on_commit(py: Python<'_>, sandbox: &NativeSandbox, path: &str, function: Py<PyAny>) -> PyResult<()> {
    host_tools::note_scopes();
    let number = sandbox.number();
    let hook = move |commit: &Commit<'_>| {
        gate::with_python(|py| ask(py, &function, commit, number)).unwrap_or_else(|| Err("the program is exiting".to_owned()))
    };
    sandbox.get(py)?.on_commit(path, hook).map_err(|error| errors::raise(py, &error))
}

thread_local! {
    /// Ctrl-C or `sys.exit()` in a hook, for the operation on this thread whose changes it rejected.
    static INTERRUPT: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Takes the interrupt that a hook raised on this thread.
pub(crate) fn interrupt() -> Option<PyErr> {
    INTERRUPT.take()
}

/// Performs an operation on this thread. An interrupt in one of its hooks is its result.
pub(crate) fn performed(work: impl FnOnce() -> Result<Done, Error>) -> Result<Done, Error> {
    let result = work();
    interrupt().map_or(result, |error| Ok(Done::Raised(error)))
}

fn ask(py: Python<'_>, function: &Py<PyAny>, commit: &Commit<'_>, sandbox: u64) -> Result<(), String> {
    let asked = called(py, function, commit, sandbox).map_err(|error| {
        let said = error.value(py).to_string();
        let said = if said.is_empty() { error.get_type(py).to_string() } else { said };
        // Not a reason to reject the changes, but the end of the program; they are rolled back like rejected ones.
        if error.is_instance_of::<PyKeyboardInterrupt>(py) || error.is_instance_of::<PySystemExit>(py) {
            INTERRUPT.set(Some(error));
        }
        said
    })?;
    asked.map_or(Ok(()), Err)
}

fn called(py: Python<'_>, function: &Py<PyAny>, commit: &Commit<'_>, sandbox: u64) -> PyResult<Option<String>> {
    let changes: Vec<_> = commit
        .changes
        .iter()
        .map(|change| {
            json!({ "path": change.path, "kind": change.kind, "from": change.from, "type": change.file_type, "size": change.size })
        })
        .collect();
    let about = json!({ "run": commit.run, "command": commit.command, "principal": commit.principal, "changes": changes });
    let (contents, mut left) = (PyDict::new(py), ALL_BYTES);
    for change in commit.changes.iter().filter(|change| change.kind != "deleted" && change.file_type == Some("file")) {
        if change.size > CONTENT_BYTES || change.size > left {
            continue;
        }
        if let Ok(bytes) = commit.read(&change.path) {
            left -= change.size;
            contents.set_item(&change.path, PyBytes::new(py, &bytes))?;
        }
    }
    let scope = Py::new(py, HookScope { sandbox, is_over: AtomicBool::new(false) })?;
    let current = host_tools::current(py)?;
    let token = current.call_method1("set", (&scope,))?;
    let answer = function.call1(py, (about.to_string(), contents));
    scope.get().is_over.store(true, Ordering::Release);
    current.call_method1("reset", (token,))?;
    answer?.extract(py)
}
