//! `sandlite._native.Skills`: a catalog of skills, and the results of their runs.

use std::path::{Path, PathBuf};

use ::skills::actions::Context;
use ::skills::{Catalog, File, Needs, Package, Request, RunResult, Skills};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runtime::actions::{Answer, Permission};
use runtime::{Error, Fetched, Limits, Preset, Sandbox, Sources};
use serde::Deserialize;
use serde_json::Value;

use crate::engine::host;
use crate::operation::{Done, json};
use crate::packages::asked;
use crate::task::{self, Stop};
use crate::{errors, fork};

/// A catalog of skills.
#[pyclass(frozen, name = "Skills", module = "sandlite._native")]
pub(crate) struct NativeSkills(Skills);

/// The result of a run.
#[pyclass(frozen, name = "SkillRun", module = "sandlite._native")]
pub(crate) struct NativeRun(RunResult);

/// The options of a run; the input is JSON text, so that its numbers stay exact.
#[derive(Debug, Deserialize)]
struct Asked {
    input: Option<String>,
    env: Vec<(String, String)>,
    session: Option<String>,
}

// A plain file is a sandbox that contains a catalog.
fn catalog(path: &Path, limits: &Limits) -> Result<Catalog, Error> {
    let is_sandbox = path.is_file() || !path.is_dir() && path.extension().is_some_and(|extension| extension == "db");
    if is_sandbox {
        let sandbox = Sandbox::builder().host(&host()?).custom_limits(limits.clone()).database(path).open()?;
        return Ok(Catalog::inside(sandbox)?);
    }
    Ok(Catalog::open(path)?)
}

impl NativeSkills {
    // Performs a short operation: at once, or with a completion callback.
    fn short(
        &self,
        py: Python<'_>,
        done: Option<Py<PyAny>>,
        work: impl FnOnce(&Skills) -> Result<Done, Error> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        fork::check(py)?;
        let skills = self.0.clone();
        match done {
            Some(done) => task::begin(py, Stop::Nothing, Box::new(move || work(&skills)), done),
            None => py.detach(move || work(&skills)).map_err(|error| errors::raise(py, &error))?.into_python(py),
        }
    }
}

#[pymethods]
impl NativeSkills {
    /// Opens a catalog; in memory without a path.
    #[staticmethod]
    fn open(py: Python<'_>, path: Option<PathBuf>, preset: &str, limits: Option<String>) -> PyResult<Self> {
        fork::check(py)?;
        let opened = py.detach(|| {
            let preset = preset.parse::<Preset>().map_err(|error| Error::Invalid(error.to_string()))?;
            let limits = limits.map_or_else(|| Ok(preset.limits()), |text| Limits::parse_custom(&text))?;
            let catalog = path.map_or_else(|| Ok(Catalog::in_memory()?), |path| catalog(&path, &limits))?;
            Ok(Skills::with_start(catalog, limits, host))
        });
        opened.map(Self).map_err(|error: Error| errors::raise(py, &error))
    }

    /// Performs an action on skills and returns its result as JSON.
    #[pyo3(signature = (name, arguments, done=None))]
    fn call_action(&self, py: Python<'_>, name: String, arguments: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        fork::check(py)?;
        let context = Context::new(self.0.clone());
        let cancel = context.cancel();
        let action = ::skills::actions::find(&name);
        let is_run = action.is_some_and(|action| action.permission == Permission::RunSkills);
        let work = move || {
            let action = action.ok_or_else(|| Error::Invalid(format!("unknown action `{}`", runtime::actions::quoted(&name))))?;
            let arguments: Value = serde_json::from_str(&arguments)
                .map_err(|error| Error::Invalid(format!("the arguments are not JSON: {error}")))?;
            let answer: Answer = action.prepare(arguments)?.run(&context)?;
            Ok(Done::Json(Some(json(&answer)?)))
        };
        match done {
            Some(done) => task::begin(py, Stop::Command(cancel), Box::new(work), done),
            None if is_run => task::wait(py, &cancel, Box::new(work)),
            None => py.detach(work).map_err(|error| errors::raise(py, &error))?.into_python(py),
        }
    }

    /// Runs a skill and returns its result as JSON, and its files.
    #[pyo3(signature = (name, options, files, done=None))]
    fn run(
        &self,
        py: Python<'_>,
        name: String,
        options: &str,
        files: Vec<(String, Vec<u8>)>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        fork::check(py)?;
        let asked: Asked = serde_json::from_str(options)
            .map_err(|error| errors::raise(py, &Error::Invalid(format!("invalid options: {error}"))))?;
        let cancel = runtime::Cancel::default();
        let mut request = Request::new(name).cancelled_by(cancel.clone());
        if let Some(input) = asked.input {
            request = request.input(input);
        }
        for (name, content) in files {
            request = request.file(name, content);
        }
        for (name, value) in asked.env {
            request = request.env(name, value);
        }
        if let Some(session) = asked.session {
            request = request.session(session);
        }
        let skills = self.0.clone();
        let work = Box::new(move || Ok(Done::SkillRun(Box::new(skills.run(request)?))));
        match done {
            Some(done) => task::begin(py, Stop::Command(cancel), work, done),
            None => task::wait(py, &cancel, work),
        }
    }

    /// Stores a skill from a path on this machine or from files, and returns the result as JSON.
    #[pyo3(signature = (path, files, replace, sources, pip, done=None))]
    #[expect(clippy::too_many_arguments, reason = "Python gives names to each of them")]
    fn push(
        &self,
        py: Python<'_>,
        path: Option<PathBuf>,
        files: Vec<(String, Vec<u8>)>,
        replace: bool,
        sources: (Vec<String>, bool),
        pip: Py<PyAny>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.short(py, done, move |skills| {
            let package = match path {
                Some(path) => Package::from_path(&path)?,
                None => Package::from_files(files.into_iter().map(|(path, content)| File::new(path, content)).collect())?,
            };
            let mut fetch = |arguments: &[String]| {
                let arguments = arguments.to_vec();
                let answer = asked(|py| pip.call1(py, (arguments,))?.extract::<(Vec<(String, Vec<u8>)>, Option<String>)>(py))?;
                Ok(match answer {
                    (_, Some(stderr)) => Fetched::Err(stderr),
                    (wheels, None) => Ok(wheels),
                })
            };
            let (find_links, offline) = sources;
            let sources = Sources { no_deps: false, find_links, offline };
            let pushed = skills.push(&package, Needs { replace, sources, pip: Some(&mut fetch) })?;
            Ok(Done::Json(Some(json(&pushed)?)))
        })
    }

    /// Returns the skills that can be run as tools, or those with these names, as JSON.
    fn tools(&self, py: Python<'_>, prefix: String, names: Option<Vec<String>>) -> PyResult<Py<PyAny>> {
        self.short(py, None, move |skills| {
            let tools = ::skills::actions::tools(skills, &prefix, names.as_deref())?;
            Ok(Done::Json(Some(json(&tools)?)))
        })
    }

    /// Returns the directory on this machine with the active version of each skill.
    fn directory(&self, py: Python<'_>) -> PyResult<PathBuf> {
        let directory = py.detach(|| self.0.directory().map_err(Error::from));
        directory.map_err(|error| errors::raise(py, &error))
    }
}

#[pymethods]
impl NativeRun {
    /// Returns the bytes of a file.
    fn read(&self, py: Python<'_>, path: &str) -> PyResult<Py<PyAny>> {
        let bytes = py.detach(|| self.0.read(path).map_err(Error::from)).map_err(|error| errors::raise(py, &error))?;
        Ok(PyBytes::new(py, &bytes).into_any().unbind())
    }

    /// Copies the files to a directory on this machine.
    fn save(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(&directory).map_err(Error::from)).map_err(|error| errors::raise(py, &error))
    }
}

/// Converts a result for Python: JSON, and its files.
pub(crate) fn ran(py: Python<'_>, result: RunResult) -> PyResult<Py<PyAny>> {
    (result.to_json(), Py::new(py, NativeRun(result))?).into_py_any(py)
}

/// Returns the problems of a skill, as JSON.
#[pyfunction]
pub(crate) fn lint_skill(py: Python<'_>, path: PathBuf, security: bool) -> PyResult<String> {
    let found = py.detach(|| json(&::skills::lint(&path, security)?));
    found.map_err(|error: Error| errors::raise(py, &error))
}

/// Returns the front matter of a `SKILL.md`, as JSON.
#[pyfunction]
pub(crate) fn front_matter(py: Python<'_>, text: &str) -> PyResult<String> {
    let read = ::skills::read_front_matter(text).map_err(Error::from).and_then(|fields| json(&fields));
    read.map_err(|error| errors::raise(py, &error))
}

/// Returns every action on skills, as JSON.
#[pyfunction]
pub(crate) fn skill_actions() -> String {
    crate::operation::rows(::skills::actions::actions())
}
