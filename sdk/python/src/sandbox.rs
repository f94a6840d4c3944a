//! `sandlite._native.Sandbox`: every operation, at once or with a completion callback; `handle.rs` holds the sandbox.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runtime::actions::{Answer, Context, Effect, Permission, find};
use runtime::{Content, Error, GitImport, HistoryFilter, Limits, Preset, Run, Sandbox, absolute};

use crate::about::{About, next_number};
use crate::commands::{self, OwnParts};
use crate::engine::host;
use crate::handle::NativeSandbox;
use crate::host_tools::ToolParts;
use crate::mcp::McpParts;
use crate::mounts::MountParts;
use crate::operation::{Done, OptionParts, act, command, json, short};
use crate::running::{self, Running, Use};
use crate::task::{self, Stop};
use crate::trees::{self, Form};
use crate::{errors, fork, mcp, policy};

impl NativeSandbox {
    /// Performs an action; its command can be killed, also by Ctrl-C.
    fn perform(
        &self,
        py: Python<'_>,
        name: String,
        arguments: String,
        failed: fn(Error) -> Result<Answer, Error>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let action = find(&name);
        let takes_turns = action.is_none_or(|action| action.effect != Effect::Reads);
        let context = Context::new(if takes_turns { self.get_for_change(py)? } else { self.get(py)? });
        let cancel = context.cancel();
        let runs_command = action.is_some_and(|action| action.permission == Permission::Execute);
        let work = move || Ok(Done::Json(Some(json(&act(&context, &name, &arguments).or_else(failed)?)?)));
        match done {
            Some(done) => task::begin(py, Stop::Command(cancel), Box::new(work), done),
            None if runs_command => task::wait(py, &cancel, Box::new(work)),
            None => py.detach(|| policy::performed(work)).map_err(|error| errors::raise(py, &error))?.into_python(py),
        }
    }
}

#[pymethods]
impl NativeSandbox {
    /// Opens a sandbox.
    #[staticmethod]
    #[pyo3(signature = (db, files, snapshot, cwd, preset, env, mounts, tools, root_alias, python, done=None, read_only=false, wait=None, limits=None, own=None, base=None, policy=None, mcp=None))]
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
        read_only: bool,
        wait: Option<f64>,
        limits: Option<String>,
        own: Option<OwnParts>,
        base: Option<PathBuf>,
        policy: Option<String>,
        mcp: Option<McpParts>,
    ) -> PyResult<Py<PyAny>> {
        fork::check(py)?;
        let policy = policy.map(|text| policy::parse(py, &text)).transpose()?;
        let (modules, commands, hosts) = own.unwrap_or_default();
        let limits = limits.map(|text| Limits::parse_custom(&text)).transpose();
        let limits = limits.map_err(|error| errors::raise(py, &error.into()))?;
        let wait = wait.map(Duration::try_from_secs_f64).transpose().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let about = About {
            number: next_number(),
            path: db.clone(),
            preset: preset.to_owned(),
            is_read_only: read_only,
            tools: tools.into(),
            commands: commands.into(),
            mcp: None,
        };
        let preset = preset.parse::<Preset>().map_err(|error| errors::raise(py, &Error::Invalid(error.to_string())))?;
        let python = match python {
            "core" => runtime::Python::Core,
            "sci" => runtime::Python::Scientific,
            other => return Err(errors::raise(py, &Error::Invalid(format!("unknown Python `{other}`: expected core or sci")))),
        };
        let work = move || {
            let connected = mcp::connect(mcp, read_only)?;
            let mut builder = Sandbox::builder().host(&host()?).preset(preset).python(python);
            if let Some(limits) = limits {
                builder = builder.custom_limits(limits);
            }
            if let Some(policy) = policy {
                builder = builder.policy(policy);
            }
            if let Some(path) = db {
                if read_only && let Err(source) = path.metadata() {
                    return Err(Error::HostFile { path, source });
                }
                builder = builder.database(path);
            }
            if let Some(path) = snapshot {
                builder = builder.import(path);
            }
            if let Some(name) = root_alias {
                // LocalSandbox's layout, and its shell's treatment of files.
                builder = builder.root_alias(name).creates_parents();
            }
            for (path, content) in files {
                builder = builder.file(absolute(&cwd, &path), content);
            }
            for (name, value) in env {
                builder = builder.env(name, value);
            }
            if let Some(base) = base {
                builder = builder.base(base);
            }
            for mount in mounts {
                builder = builder.mount(mount.mount()?);
            }
            for tool in about.tools() {
                builder = builder.tool(tool);
            }
            builder = commands::give(builder, (modules, hosts), &about);
            if read_only {
                builder = builder.read_only();
            }
            if let Some(wait) = wait {
                builder = builder.wait(wait);
            }
            Ok(Done::Opened(Box::new(mcp::attach(builder.cwd(cwd).open()?, about, connected)?)))
        };
        match done {
            Some(done) => task::begin(py, Stop::Nothing, Box::new(work), done),
            None => py.detach(work).map_err(|error| errors::raise(py, &error))?.into_python(py),
        }
    }

    /// Runs bash or Python.
    #[pyo3(signature = (kind, text, options, stdin, done=None, echo=false))]
    #[expect(clippy::too_many_arguments, reason = "Python gives names to each of them")]
    fn run(
        &self,
        py: Python<'_>,
        kind: &str,
        text: String,
        options: OptionParts,
        stdin: Option<Vec<u8>>,
        done: Option<Py<PyAny>>,
        echo: bool,
    ) -> PyResult<Py<PyAny>> {
        let sandbox = self.get_for_change(py)?;
        let (command, options) = command(kind, text, options, stdin, echo)?;
        let cancel = command.cancel();
        let work = Box::new(move || Ok(Done::Ran(Box::new(options.run(&sandbox, command)?))));
        match done {
            Some(done) => task::begin(py, Stop::Command(cancel), work, done),
            None => task::wait(py, &cancel, work),
        }
    }

    /// Starts bash or Python and returns at once, for streaming, or as a handle whose standard input stays open if none is given.
    /// `waits` blocks until it has its turn, unless another command runs.
    #[pyo3(signature = (kind, text, options, stdin, stream, echo=false, waits=true))]
    #[expect(clippy::too_many_arguments, reason = "Python gives names to each of them")]
    fn start(
        &self,
        py: Python<'_>,
        kind: &str,
        text: String,
        options: OptionParts,
        stdin: Option<Vec<u8>>,
        stream: bool,
        echo: bool,
        waits: bool,
    ) -> PyResult<Running> {
        let sandbox = self.get_for_change(py)?;
        let using = if stream { Use::Stream } else { Use::Handle { input: stdin.is_none() } };
        let (command, options) = command(kind, text, options, stdin, echo)?;
        let running = running::start((sandbox, self.number()), command, options, using)?;
        if waits {
            py.detach(|| running.await_turn());
        }
        Ok(running)
    }

    /// Performs an action and returns its result as JSON. An error becomes an exception.
    #[pyo3(signature = (name, arguments, done=None))]
    fn perform_action(&self, py: Python<'_>, name: String, arguments: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.perform(py, name, arguments, Err, done)
    }

    /// Performs an action as a model does and returns its result as JSON. An error becomes a result.
    #[pyo3(signature = (name, arguments, done=None))]
    fn call_action(&self, py: Python<'_>, name: String, arguments: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.perform(py, name, arguments, |error| Ok(error.into()), done)
    }

    /// Returns the names of the shell's sessions, as JSON.
    #[pyo3(signature = (done=None))]
    fn sessions(&self, py: Python<'_>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, |sandbox| Ok(Done::Json(Some(json(&sandbox.sessions()?)?))))
    }

    /// Returns the directory of a session, as JSON.
    #[pyo3(signature = (name, done=None))]
    fn session_directory(&self, py: Python<'_>, name: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| {
            let directory = sandbox.session(name)?.directory()?.unwrap_or_else(|| sandbox.current_dir().to_owned());
            Ok(Done::Json(Some(json(&directory)?)))
        })
    }

    /// Removes a session, its shell and its Python.
    #[pyo3(signature = (name, done=None))]
    fn end_session(&self, py: Python<'_>, name: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.change(py, done, move |sandbox| {
            let live = sandbox.end_python(&name);
            Ok(Done::Flag(sandbox.session(name)?.remove()? || live))
        })
    }

    /// Returns whether a session has a live Python.
    fn is_python_live(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(self.get(py)?.is_python_live(name))
    }

    /// Raises inside a tool that a running command of the sandbox has called: a turn would never come.
    fn check_turn(&self, py: Python<'_>) -> PyResult<()> {
        self.get_for_change(py).map(drop)
    }

    /// Returns the same sandbox with other tools.
    fn with_tools(&self, py: Python<'_>, tools: Vec<ToolParts>) -> PyResult<Self> {
        let (sandbox, about) = self.both(py)?;
        let about = About { tools: tools.into(), ..about.of_view() };
        let sandbox = sandbox.with_tools(about.tools()).map_err(|error| errors::raise(py, &error))?;
        Ok(Self::new(sandbox, about))
    }

    /// Returns the bytes of a file.
    #[pyo3(signature = (path, done=None))]
    fn read_bytes(&self, py: Python<'_>, path: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| Ok(Done::Bytes(sandbox.fs().read(&sandbox.resolve(&path))?)))
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
        self.change(py, done, move |sandbox| {
            sandbox.fs().write(&sandbox.resolve(&path), content)?;
            Ok(Done::Nothing)
        })
    }

    /// Appends to a file.
    #[pyo3(signature = (path, content, done=None))]
    fn append_bytes(
        &self,
        py: Python<'_>,
        path: String,
        content: &Bound<'_, PyBytes>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let content = content.as_bytes().to_vec();
        self.change(py, done, move |sandbox| {
            sandbox.fs().append(&sandbox.resolve(&path), content)?;
            Ok(Done::Nothing)
        })
    }

    /// Writes many files, all or none.
    #[pyo3(signature = (files, done=None))]
    fn write_all(&self, py: Python<'_>, files: Vec<(String, Vec<u8>)>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.change(py, done, move |sandbox| {
            let files = files.into_iter().map(|(path, bytes)| (sandbox.resolve(&path), Content::from(bytes)));
            sandbox.fs().write_all(files.collect())?;
            Ok(Done::Nothing)
        })
    }

    /// Returns everything below a path, as JSON.
    #[pyo3(signature = (path, done=None))]
    fn walk(&self, py: Python<'_>, path: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| trees::walk(sandbox, &sandbox.resolve(&path)))
    }

    /// Copies a file from this machine.
    #[pyo3(signature = (host, path, done=None))]
    fn upload(&self, py: Python<'_>, host: PathBuf, path: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.change(py, done, move |sandbox| trees::upload(sandbox, &host, &sandbox.resolve(&path)))
    }

    /// Copies a file to this machine.
    #[pyo3(signature = (path, host, overwrite, done=None))]
    fn download(
        &self,
        py: Python<'_>,
        path: String,
        host: PathBuf,
        overwrite: bool,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| trees::download(sandbox, &sandbox.resolve(&path), &host, overwrite))
    }

    /// Copies a directory from this machine and returns the result as JSON.
    #[pyo3(signature = (host, path, done=None))]
    fn upload_dir(&self, py: Python<'_>, host: PathBuf, path: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.change(py, done, move |sandbox| trees::copied(&sandbox.import_tree(host, &sandbox.resolve(&path))?))
    }

    /// Copies a directory to this machine and returns the result as JSON.
    #[pyo3(signature = (path, host, done=None))]
    fn download_dir(&self, py: Python<'_>, path: String, host: PathBuf, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| trees::copied(&sandbox.export_tree(&sandbox.resolve(&path), host)?))
    }

    /// Returns a summary of the sandbox, as JSON.
    #[pyo3(signature = (done=None))]
    fn info(&self, py: Python<'_>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let preset = self.about().preset.clone();
        self.look(py, done, move |sandbox| trees::info(sandbox, &preset))
    }

    /// Returns whether a path exists.
    #[pyo3(signature = (path, done=None))]
    fn exists(&self, py: Python<'_>, path: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| Ok(Done::Flag(sandbox.fs().exists(&sandbox.resolve(&path))?)))
    }

    /// Returns the names in a directory, as JSON.
    #[pyo3(signature = (path, done=None))]
    fn list_names(&self, py: Python<'_>, path: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| {
            let entries = sandbox.fs().list(&sandbox.resolve(&path))?;
            let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
            Ok(Done::Json(Some(json(&names)?)))
        })
    }

    /// Returns the value of a key, as JSON.
    #[pyo3(signature = (key, done=None))]
    fn kv_get(&self, py: Python<'_>, key: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| Ok(Done::Json(sandbox.kv().get(&key)?.map(|value| value.to_string()))))
    }

    /// Returns the keys with a prefix, as JSON.
    #[pyo3(signature = (prefix, done=None))]
    fn kv_keys(&self, py: Python<'_>, prefix: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| Ok(Done::Json(Some(json(&sandbox.kv().keys(&prefix)?)?))))
    }

    /// Returns the keys with a prefix and their values, as JSON.
    #[pyo3(signature = (prefix, done=None))]
    fn kv_items(&self, py: Python<'_>, prefix: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| Ok(Done::Json(Some(json(&sandbox.kv().items(&prefix)?)?))))
    }

    /// Returns rows of the history as JSON, and beside it the changes and the output of each.
    #[pyo3(signature = (limit, since, before, name, grep, done=None, output=false))]
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
        output: bool,
    ) -> PyResult<Py<PyAny>> {
        let filter = HistoryFilter { limit, since, before, name, grep, output };
        self.look(py, done, move |sandbox| {
            let mut rows = sandbox.history_with(&filter)?;
            let take = |row: &mut Run| {
                let changes = row.changes.take().map(|changes| changes.text().to_owned());
                (changes, std::mem::take(&mut row.stdout), std::mem::take(&mut row.stderr))
            };
            let beside = rows.iter_mut().map(take).collect();
            Ok(Done::Rows(json(&rows)?, beside))
        })
    }

    /// Returns the bytes of a snapshot.
    #[pyo3(signature = (compat, done=None))]
    fn export_snapshot(&self, py: Python<'_>, compat: Option<String>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| trees::snapshot(sandbox, compat.as_deref()))
    }

    /// Writes a compact copy to a new file.
    #[pyo3(signature = (path, compat, done=None))]
    fn export_to(&self, py: Python<'_>, path: PathBuf, compat: Option<String>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| {
            trees::export(sandbox, &path, compat.as_deref())?;
            Ok(Done::Nothing)
        })
    }

    /// Returns the versions as a git repository or bundle; what was written, as JSON.
    #[pyo3(signature = (to, path, how, done=None))]
    fn git_export(&self, py: Python<'_>, to: PathBuf, path: String, how: Form, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.look(py, done, move |sandbox| trees::git_export(sandbox, &to, sandbox.resolve(&path), how))
    }

    /// Imports the commits of a git repository or bundle as versions and returns the result as JSON.
    #[pyo3(signature = (source, reference, into, depth, done=None))]
    fn git_import(
        &self,
        py: Python<'_>,
        source: PathBuf,
        reference: Option<String>,
        into: String,
        depth: Option<u64>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.change(py, done, move |sandbox| {
            let options = GitImport { reference, into: sandbox.resolve(&into), depth };
            trees::git_import(sandbox, &source, &options)
        })
    }

    /// Returns a second sandbox that continues from here, or from a version.
    #[pyo3(signature = (path, at, done=None))]
    fn fork(&self, py: Python<'_>, path: Option<PathBuf>, at: Option<String>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let (sandbox, about) = self.both(py)?;
        let about = about.of_fork(path.clone());
        short(py, done, sandbox, move |sandbox| {
            let past = at.map(|version| sandbox.at(&version)).transpose()?;
            let original = past.as_ref().unwrap_or(sandbox);
            let fork = match path {
                Some(path) => original.fork_to(path)?,
                None => original.fork()?,
            };
            // Its tools work for it, not for this one.
            let fork = if !about.has_tools() { fork } else { fork.with_tools(about.tools())? };
            Ok(Done::Opened(Box::new((commands::in_fork(fork, &about)?, about))))
        })
    }

    /// Returns the sandbox as it was at a version, for reading.
    #[pyo3(signature = (version, done=None))]
    fn at(&self, py: Python<'_>, version: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let (sandbox, about) = self.both(py)?;
        let about = about.of_past();
        short(py, done, sandbox, move |sandbox| Ok(Done::Opened(Box::new((sandbox.at(&version)?, about)))))
    }

    /// Returns its file; `None` in memory.
    #[getter]
    fn path(&self) -> Option<String> {
        self.about().path.as_ref().map(|path| path.to_string_lossy().into_owned())
    }

    /// Returns the name of its preset.
    #[getter]
    fn preset(&self) -> String {
        self.about().preset.clone()
    }

    /// Returns the limits of a command, by name.
    #[getter]
    fn limits(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, String)>> {
        Ok(self.get(py)?.limits().entries().into_iter().map(|(name, value)| (name.as_str(), value)).collect())
    }

    /// Returns whether it was opened read-only, or shows a past version.
    #[getter]
    fn read_only(&self) -> bool {
        self.about().is_read_only
    }

    /// Returns a short description.
    #[getter]
    fn label(&self) -> String {
        let about = self.about();
        let place = about.path.as_ref().map_or_else(|| "in memory".to_owned(), |path| format!("'{}'", path.display()));
        let mode = if about.is_read_only { " read-only" } else { "" };
        let state = if self.closed() { " closed" } else { "" };
        format!("{place} preset={}{mode}{state}", about.preset)
    }

    /// Returns the directory in which commands start.
    #[getter]
    fn cwd(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.get(py)?.current_dir().to_owned())
    }

    /// Returns the omitted and changed parts of a snapshot.
    #[getter]
    fn import_notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.get(py)?.import_notes().to_vec())
    }

    /// Returns whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed()
    }

    /// Closes it; a running command continues to its end.
    #[pyo3(signature = (done=None))]
    fn close(&self, py: Python<'_>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let (sandbox, about) = self.take();
        if fork::is_copy() {
            std::mem::forget(sandbox);
            return done.map_or_else(|| Ok(py.None()), |done| task::ended(py, &done));
        }
        let work = move || -> Result<Done, Error> {
            mcp::close(sandbox, &about);
            Ok(Done::Nothing)
        };
        match done {
            Some(done) => task::begin(py, Stop::Nothing, Box::new(work), done),
            None => py.detach(work).map_err(|error| errors::raise(py, &error))?.into_python(py),
        }
    }
}
