//! `sandlite._native.Sandbox`: every operation, at once or with a function to call at its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runtime::actions::{Answer, Context, Permission, RunOptions, find};
use runtime::{Command, Compat, Error, Export, HistoryFilter, Host, Mount, Preset, Sandbox};

use crate::host_tools::{self, ToolParts};
use crate::operation::{Done, act, json};
use crate::{errors, task};

/// Where the compiled guests of this package are, once it is known.
static SHIPPED: OnceLock<PathBuf> = OnceLock::new();

/// Tells where the compiled guests of this package are.
#[pyfunction]
pub(crate) fn set_shipped(directory: PathBuf) {
    // Said at the first import; the same at every later one.
    let _ = SHIPPED.set(directory);
}

/// Compiles the guests into a directory, for the package that is being built.
#[pyfunction]
pub(crate) fn compile_guests(py: Python<'_>, directory: PathBuf) -> PyResult<Vec<PathBuf>> {
    py.detach(|| Host::compile_guests(directory)).map_err(|error| errors::raise(py, &error))
}

/// One engine and one set of compiled guests for the whole process.
fn host() -> Result<Host, Error> {
    static HOST: OnceLock<Host> = OnceLock::new();
    static OPENING: Mutex<()> = Mutex::new(());
    let _turn = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(host) = HOST.get() {
        return Ok(host.clone());
    }
    let mut builder = Host::builder();
    if let Some(directory) = SHIPPED.get() {
        builder = builder.shipped(directory);
    }
    let host = builder.build()?;
    Ok(HOST.get_or_init(|| host).clone())
}

/// An open sandbox, or one that is closed.
#[pyclass(frozen, name = "Sandbox", module = "sandlite._native")]
pub(crate) struct NativeSandbox(Mutex<Option<Sandbox>>);

/// A directory of this machine: where it is, where it is seen, whether it can be changed there, whether it may be a sensitive one.
type MountParts = (PathBuf, String, bool, bool);

impl NativeSandbox {
    pub(crate) fn new(sandbox: Sandbox) -> Self {
        Self(Mutex::new(Some(sandbox)))
    }

    fn get(&self, py: Python<'_>) -> PyResult<Sandbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(|| errors::closed(py))
    }

    /// Does something short: here and now, or with a function to call at the end.
    pub(crate) fn act(
        &self,
        py: Python<'_>,
        done: Option<Py<PyAny>>,
        work: impl FnOnce(&Sandbox) -> Result<Done, Error> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        let sandbox = self.get(py)?;
        match done {
            Some(done) => task::begin(py, None, Box::new(move || work(&sandbox)), done),
            None => py.detach(move || work(&sandbox)).map_err(|error| errors::raise(py, &error))?.into_python(py),
        }
    }
}

impl NativeSandbox {
    /// Performs an action; its command can be killed, by Ctrl-C too.
    fn perform(
        &self,
        py: Python<'_>,
        name: String,
        arguments: String,
        failed: fn(Error) -> Result<Answer, Error>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let context = Context::new(self.get(py)?);
        let cancel = context.cancel();
        let runs_command = find(&name).is_some_and(|action| action.permission == Permission::Execute);
        let work = move || Ok(Done::Json(Some(json(&act(&context, &name, &arguments).or_else(failed)?)?)));
        match done {
            Some(done) => task::begin(py, Some(cancel), Box::new(work), done),
            None if runs_command => task::wait(py, &cancel, Box::new(work)),
            None => py.detach(work).map_err(|error| errors::raise(py, &error))?.into_python(py),
        }
    }
}

#[pymethods]
impl NativeSandbox {
    /// Opens a sandbox.
    #[staticmethod]
    #[pyo3(signature = (db, files, snapshot, cwd, preset, env, mounts, tools, root_alias, python, done=None))]
    #[expect(clippy::too_many_arguments, reason = "Python gives names to each of them")]
    fn open(
        py: Python<'_>,
        db: Option<PathBuf>,
        files: Vec<(String, Vec<u8>)>,
        snapshot: Option<PathBuf>,
        cwd: String,
        preset: &str,
        env: BTreeMap<String, String>,
        mounts: Vec<MountParts>,
        tools: Vec<ToolParts>,
        root_alias: Option<String>,
        python: &str,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let preset: Preset = preset
            .parse()
            .map_err(|error| errors::raise(py, &Error::Invalid(format!("{error}: use strict, normal or permissive"))))?;
        let python = match python {
            "core" => runtime::Python::Core,
            "sci" => runtime::Python::Scientific,
            other => return Err(errors::raise(py, &Error::Invalid(format!("there is no Python `{other}`: use core or sci")))),
        };
        let work = move || {
            let mut builder = Sandbox::builder().host(&host()?).preset(preset).python(python);
            if let Some(path) = db {
                builder = builder.database(path);
            }
            if let Some(path) = snapshot {
                builder = builder.import(path);
            }
            if let Some(name) = root_alias {
                // LocalSandbox's layout, and its shell's way with files.
                builder = builder.root_alias(name).creates_parents();
            }
            for (path, content) in files {
                builder = builder.file(absolute(&cwd, &path), content);
            }
            for (name, value) in env {
                builder = builder.env(name, value);
            }
            for (host, guest, overlay, allow_sensitive) in mounts {
                let mount = if overlay { Mount::overlay(host, guest) } else { Mount::read_only(host, guest) };
                builder = builder.mount(if allow_sensitive { mount.allow_sensitive() } else { mount });
            }
            for tool in tools {
                builder = builder.tool(host_tools::tool(tool));
            }
            Ok(Done::Opened(Box::new(builder.cwd(cwd).open()?)))
        };
        match done {
            Some(done) => task::begin(py, None, Box::new(work), done),
            None => py.detach(work).map_err(|error| errors::raise(py, &error))?.into_python(py),
        }
    }

    /// Runs bash or Python; `options` is a [`RunOptions`] as JSON.
    #[pyo3(signature = (kind, text, options, stdin, done=None))]
    fn run(
        &self,
        py: Python<'_>,
        kind: &str,
        text: String,
        options: &str,
        stdin: Option<Vec<u8>>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let sandbox = self.get(py)?;
        let options: RunOptions = serde_json::from_str(options)
            .map_err(|error| errors::raise(py, &Error::Invalid(format!("the options do not fit: {error}"))))?;
        let mut command = if kind == "python" { Command::python(text) } else { Command::bash(text) };
        if let Some(bytes) = stdin {
            command = command.stdin(bytes);
        }
        let cancel = command.cancel();
        let work = Box::new(move || Ok(Done::Ran(Box::new(options.run(&sandbox, command)?))));
        match done {
            Some(done) => task::begin(py, Some(cancel), work, done),
            None => task::wait(py, &cancel, work),
        }
    }

    /// Performs an action; its answer as JSON. What goes wrong is an exception.
    #[pyo3(signature = (name, arguments, done=None))]
    fn perform_action(&self, py: Python<'_>, name: String, arguments: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.perform(py, name, arguments, Err, done)
    }

    /// Performs an action as a model does; its answer as JSON. What goes wrong is an answer.
    #[pyo3(signature = (name, arguments, done=None))]
    fn call_action(&self, py: Python<'_>, name: String, arguments: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.perform(py, name, arguments, |error| Ok(error.into()), done)
    }

    /// The names of the shell's sessions, as JSON.
    #[pyo3(signature = (done=None))]
    fn sessions(&self, py: Python<'_>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, |sandbox| Ok(Done::Json(Some(json(&sandbox.sessions()?)?))))
    }

    /// The directory a session is in, as JSON.
    #[pyo3(signature = (name, done=None))]
    fn session_directory(&self, py: Python<'_>, name: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| {
            let directory = sandbox.session(name)?.directory()?.unwrap_or_else(|| sandbox.current_dir().to_owned());
            Ok(Done::Json(Some(json(&directory)?)))
        })
    }

    /// Forgets a session, its shell and its Python.
    #[pyo3(signature = (name, done=None))]
    fn end_session(&self, py: Python<'_>, name: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| {
            let live = sandbox.end_python(&name);
            Ok(Done::Flag(sandbox.session(name)?.remove()? || live))
        })
    }

    /// Whether a session has a live Python.
    fn is_python_live(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(self.get(py)?.is_python_live(name))
    }

    /// The same sandbox with other tools.
    fn with_tools(&self, py: Python<'_>, tools: Vec<ToolParts>) -> PyResult<Self> {
        let tools = tools.into_iter().map(host_tools::tool).collect();
        self.get(py)?.with_tools(tools).map(Self::new).map_err(|error| errors::raise(py, &error))
    }

    /// The bytes of a file.
    #[pyo3(signature = (path, done=None))]
    fn read_bytes(&self, py: Python<'_>, path: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| Ok(Done::Bytes(sandbox.fs().read(&absolute(sandbox.current_dir(), &path))?)))
    }

    /// Writes a whole file.
    #[pyo3(signature = (path, content, done=None))]
    fn write_bytes(
        &self,
        py: Python<'_>,
        path: String,
        content: &Bound<'_, PyBytes>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let content = content.as_bytes().to_vec();
        self.act(py, done, move |sandbox| {
            sandbox.fs().write(&absolute(sandbox.current_dir(), &path), content)?;
            Ok(Done::Nothing)
        })
    }

    /// Whether a path leads somewhere.
    #[pyo3(signature = (path, done=None))]
    fn exists(&self, py: Python<'_>, path: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| Ok(Done::Flag(sandbox.fs().exists(&absolute(sandbox.current_dir(), &path))?)))
    }

    /// The names in a directory, as JSON; `unless_empty` is not among them while nothing is in it.
    #[pyo3(signature = (path, unless_empty, done=None))]
    fn list_names(
        &self,
        py: Python<'_>,
        path: String,
        unless_empty: Option<String>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| {
            let entries = sandbox.fs().list(&absolute(sandbox.current_dir(), &path))?;
            let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
            if let Some(name) = unless_empty
                && sandbox.fs().list(&absolute(&path, &name)).is_ok_and(|entries| entries.is_empty())
            {
                names.retain(|known| *known != name);
            }
            Ok(Done::Json(Some(json(&names)?)))
        })
    }

    /// Removes a file, and nothing but a file.
    #[pyo3(signature = (path, done=None))]
    fn remove_file(&self, py: Python<'_>, path: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| {
            sandbox.fs().remove_file(&absolute(sandbox.current_dir(), &path))?;
            Ok(Done::Nothing)
        })
    }

    /// The value of a key, as JSON.
    #[pyo3(signature = (key, done=None))]
    fn kv_get(&self, py: Python<'_>, key: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| Ok(Done::Json(sandbox.kv().get(&key)?.map(|value| value.to_string()))))
    }

    /// The keys that begin with a prefix, as JSON.
    #[pyo3(signature = (prefix, done=None))]
    fn kv_keys(&self, py: Python<'_>, prefix: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| Ok(Done::Json(Some(json(&sandbox.kv().keys(&prefix)?)?))))
    }

    /// Rows of the history, as JSON.
    #[pyo3(signature = (limit, since, before, name, grep, done=None))]
    #[expect(clippy::too_many_arguments, reason = "Python gives names to each of them")]
    fn history(
        &self,
        py: Python<'_>,
        limit: usize,
        since: Option<i64>,
        before: Option<i64>,
        name: Option<String>,
        grep: Option<String>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let filter = HistoryFilter { limit, since, before, name, grep, ..HistoryFilter::default() };
        self.act(py, done, move |sandbox| Ok(Done::Json(Some(json(&sandbox.history_with(&filter)?)?))))
    }

    /// A snapshot's bytes.
    #[pyo3(signature = (compat, done=None))]
    fn export_snapshot(&self, py: Python<'_>, compat: Option<String>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| {
            let trouble = |error: std::io::Error| Error::Invalid(format!("no temporary file for the snapshot: {error}"));
            let directory = tempfile::tempdir().map_err(trouble)?;
            let path = directory.path().join("snapshot.db");
            export(sandbox, &path, compat.as_deref())?;
            Ok(Done::Bytes(std::fs::read(&path).map_err(trouble)?))
        })
    }

    /// A compact copy in a new file.
    #[pyo3(signature = (path, compat, done=None))]
    fn export_to(&self, py: Python<'_>, path: PathBuf, compat: Option<String>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| {
            export(sandbox, &path, compat.as_deref())?;
            Ok(Done::Nothing)
        })
    }

    /// A second sandbox that goes on from here.
    #[pyo3(signature = (path, done=None))]
    fn fork(&self, py: Python<'_>, path: Option<PathBuf>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.act(py, done, move |sandbox| {
            let fork = match path {
                Some(path) => sandbox.fork_to(path)?,
                None => sandbox.fork()?,
            };
            Ok(Done::Opened(Box::new(fork)))
        })
    }

    /// The directory commands start in.
    #[getter]
    fn cwd(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.get(py)?.current_dir().to_owned())
    }

    /// What of a snapshot was left out or changed.
    #[getter]
    fn import_notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.get(py)?.import_notes().to_vec())
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Closes it; what runs goes on to its end.
    fn close(&self, py: Python<'_>) {
        let sandbox = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(move || drop(sandbox));
    }
}

fn export(sandbox: &Sandbox, path: &std::path::Path, compat: Option<&str>) -> Result<(), Error> {
    match compat {
        None => sandbox.export(path),
        Some("localsandbox") => sandbox.export_compat(path, Export::default(), Compat::LocalSandbox),
        Some(other) => Err(Error::Invalid(format!("nothing is known of `{other}`: `localsandbox` is a layout"))),
    }
}

fn absolute(directory: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", directory.trim_end_matches('/')) }
}
