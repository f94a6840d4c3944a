//! Mounts from Python, and Python functions that generate files and directories of the sandbox.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use runtime::{Error, Mount, NodeContext, ProvidedNode, Provider};

use crate::handle::NativeSandbox;
use crate::operation::Done;
use crate::{gate, host_tools};

/// A mount in command-line syntax, or a directory on this machine: its path, the mount point, whether it is an overlay, and
/// whether it may be sensitive.
#[derive(FromPyObject)]
pub(crate) enum MountParts {
    Words(String),
    Parts((PathBuf, String, bool, bool)),
}

impl MountParts {
    pub(crate) fn mount(self) -> Result<Mount, Error> {
        match self {
            Self::Words(text) => Mount::parse(&text).map_err(|error| Error::Invalid(format!("invalid mount `{text}`: {error}"))),
            Self::Parts((host, guest, overlay, allow_sensitive)) => {
                let mount = if overlay { Mount::overlay(host, guest) } else { Mount::read_only(host, guest) };
                Ok(if allow_sensitive { mount.allow_sensitive() } else { mount })
            }
        }
    }
}

/// Mounts a Python function from now on.
#[pyfunction]
#[pyo3(signature = (sandbox, path, function, is_directory, overlay, done=None))]
pub(crate) fn mount_function(
    py: Python<'_>,
    sandbox: Py<NativeSandbox>,
    path: String,
    function: Py<PyAny>,
    is_directory: bool,
    overlay: bool,
    done: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let mount = Mount::dynamic(path, provider(function, is_directory, sandbox.get().number()));
    let mount = if overlay { mount.writable() } else { mount };
    let place = sandbox.clone_ref(py);
    sandbox.get().change(py, done, move |_| {
        place.get().remake(|sandbox, about| Ok(Some((sandbox.with_mount(mount)?, about.clone()))))?;
        Ok(Done::Nothing)
    })
}

/// Removes a mount; returns false if there is none at the path.
#[pyfunction]
#[pyo3(signature = (sandbox, path, done=None))]
pub(crate) fn unmount(py: Python<'_>, sandbox: Py<NativeSandbox>, path: String, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    let place = sandbox.clone_ref(py);
    sandbox.get().change(py, done, move |_| {
        let is_removed =
            place.get().remake(|sandbox, about| Ok(sandbox.without_mount(&path)?.map(|made| (made, about.clone()))))?;
        Ok(Done::Flag(is_removed))
    })
}

/// Maximum depth of a converted directory; the library rejects shallower ones with a reason.
const DEPTH_MAX: usize = 100;

/// Creates a file or directory that a Python function generates for the sandbox with this number. The function is called with the
/// path and its call. A file is `bytes`; a directory is a `dict` of files, directories, and pairs of a flag for directories and a
/// function.
pub(crate) fn provider(function: Py<PyAny>, is_directory: bool, sandbox: u64) -> Provider {
    host_tools::note_functions();
    let generate = move |context: &NodeContext| {
        gate::with_python(|py| {
            let returned = host_tools::called(py, &function, (context.path(),), sandbox, context.call());
            returned.and_then(|node| convert(node.bind(py), sandbox, DEPTH_MAX)).map_err(|error| complaint(py, &error))
        })
        .unwrap_or_else(|| Err("the program is exiting".to_owned()))
    };
    if is_directory { Provider::directory(generate) } else { Provider::file_node(generate) }
}

fn convert(node: &Bound<'_, PyAny>, sandbox: u64, depth: usize) -> PyResult<ProvidedNode> {
    if let Ok(bytes) = node.cast::<PyBytes>() {
        return Ok(ProvidedNode::file(bytes.as_bytes()));
    }
    if let Ok(pair) = node.cast::<PyTuple>() {
        let (is_directory, function): (bool, Py<PyAny>) = pair.extract()?;
        return Ok(ProvidedNode::later(provider(function, is_directory, sandbox)));
    }
    let below =
        depth.checked_sub(1).ok_or_else(|| pyo3::exceptions::PyValueError::new_err("directories are nested too deeply"))?;
    let entries = node.cast::<PyDict>()?;
    let converted = entries.iter().map(|(name, node)| Ok((name.extract::<String>()?, convert(&node, sandbox, below)?)));
    Ok(ProvidedNode::directory(converted.collect::<PyResult<Vec<_>>>()?))
}

// The class and the text of an exception, without the traceback.
fn complaint(py: Python<'_>, error: &PyErr) -> String {
    let class = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    let said = error.value(py).to_string();
    if said.is_empty() { class } else { format!("{class}: {said}") }
}
