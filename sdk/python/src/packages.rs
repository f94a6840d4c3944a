//! Packages by name: Python runs pip with its own interpreter.

use pyo3::prelude::*;
use runtime::{Error, Fetched, Sources, requirements};

use crate::gate;
use crate::handle::NativeSandbox;
use crate::operation::{Done, json};

/// Installs packages and returns the result as JSON. `texts` are requirements files with their directories; `pip` receives the
/// arguments of a download and returns the wheels by file name, or pip's standard error; `read` returns the text of a file by its
/// directory and name.
#[pyfunction]
#[pyo3(signature = (sandbox, names, texts, wheels, sources, pip, read, done=None))]
#[expect(clippy::too_many_arguments, reason = "Python gives names to each of them")]
pub(crate) fn install_packages(
    py: Python<'_>,
    sandbox: &NativeSandbox,
    names: Vec<String>,
    texts: Vec<(String, String)>,
    wheels: Vec<(String, Vec<u8>)>,
    sources: (bool, Vec<String>, bool),
    pip: Py<PyAny>,
    read: Py<PyAny>,
    done: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (no_deps, find_links, offline) = sources;
    let sources = Sources { no_deps, find_links, offline };
    sandbox.change(py, done, move |sandbox| {
        let mut names = names;
        for (directory, text) in texts {
            let mut beside = |name: &str| asked(|py| read.call1(py, (directory.as_str(), name))?.extract::<String>(py));
            names.extend(requirements(&text, &mut beside)?);
        }
        let fetch = |arguments: &[String]| {
            let arguments = arguments.to_vec();
            let answer = asked(|py| pip.call1(py, (arguments,))?.extract::<(Vec<(String, Vec<u8>)>, Option<String>)>(py))?;
            Ok(match answer {
                (_, Some(stderr)) => Fetched::Err(stderr),
                (wheels, None) => Ok(wheels),
            })
        };
        let done = sandbox.packages().install_named(&names, wheels, &sources, fetch)?;
        Ok(Done::Json(Some(json(&done)?)))
    })
}

/// Returns the installed packages, as JSON.
#[pyfunction]
#[pyo3(signature = (sandbox, done=None))]
pub(crate) fn packages(py: Python<'_>, sandbox: &NativeSandbox, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    sandbox.look(py, done, |sandbox| Ok(Done::Json(Some(json(&sandbox.packages().list()?)?))))
}

/// Returns the result of a Python function, or the text of its exception.
pub(crate) fn asked<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, Error> {
    let answer = gate::with_python(|py| work(py).map_err(|error| error.value(py).to_string()));
    answer.unwrap_or_else(|| Err("the program is exiting".to_owned())).map_err(Error::Invalid)
}
