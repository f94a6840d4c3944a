//! Programs that Python adds to a sandbox: modules, and Python functions as commands.

use std::io::{Read as _, Write as _};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyBrokenPipeError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runtime::{Builder, CommandCall, CommandInput, Error, Sandbox};

use crate::about::About;
use crate::handle::NativeSandbox;
use crate::{errors, files, gate, host_tools};

/// A name, and a function that receives the call and returns the exit status.
pub(crate) type CommandParts = (String, Py<PyAny>);

/// Modules by name; one without bytes is an installed one.
type Modules = Vec<(String, Option<Vec<u8>>)>;

/// Modules, commands, and host programs.
pub(crate) type OwnParts = (Modules, Vec<CommandParts>, Vec<String>);

/// Adds these programs to the sandbox.
pub(crate) fn give(builder: Builder, (modules, hosts): (Modules, Vec<String>), about: &About) -> Builder {
    let mut builder = builder.allow_host(hosts);
    for (name, module) in modules {
        builder = match module {
            Some(bytes) => builder.program(name, bytes),
            None => builder.installed_program(name),
        };
    }
    for (name, function) in about.commands() {
        let number = about.number;
        builder = builder.command(name, move |call| run(&function, call, number));
    }
    builder
}

/// Gives a fork the commands of its origin: they work for the fork.
pub(crate) fn in_fork(fork: Sandbox, about: &About) -> Result<Sandbox, Error> {
    let number = about.number;
    about
        .commands()
        .into_iter()
        .try_fold(fork, |fork, (name, function)| fork.with_command(&name, move |call| run(&function, call, number)))
}

/// Adds a command to the sandbox, for all commands started from now on.
#[pyfunction]
pub(crate) fn add_command(py: Python<'_>, sandbox: &NativeSandbox, name: String, function: Py<PyAny>) -> PyResult<()> {
    sandbox.remake_now(py, |sandbox, about| {
        let mut commands: Vec<CommandParts> = about.commands();
        commands.retain(|(known, _)| *known != name);
        commands.push((name.clone(), function.clone_ref(py)));
        let (number, called) = (about.number, function.clone_ref(py));
        let with = sandbox.with_command(&name, move |call| run(&called, call, number))?;
        Ok((with, About { commands: commands.into(), ..about.clone() }))
    })
}

fn run(function: &Py<PyAny>, call: &CommandCall, sandbox: u64) -> Result<u8, String> {
    let scope = CommandScope { stdin: Mutex::new(call.stdin()), call: call.clone() };
    let work = |py: Python<'_>| {
        let scope = Py::new(py, scope).map_err(|error| error.to_string())?;
        let status = host_tools::within(py, sandbox, call.context(), |_| function.call1(py, (&scope,)));
        // The guest reads the text of the exception, without the traceback.
        status.and_then(|status| status.extract(py)).map_err(|error: PyErr| {
            let said = error.value(py).to_string();
            if said.is_empty() { error.get_type(py).to_string() } else { said }
        })
    };
    gate::with_python(work).unwrap_or_else(|| Err("the program is exiting".to_owned()))
}

/// One call of a command.
#[pyclass(frozen, module = "sandlite._native")]
pub(crate) struct CommandScope {
    call: CommandCall,
    stdin: Mutex<CommandInput>,
}

#[pymethods]
impl CommandScope {
    #[getter]
    fn args(&self) -> Vec<String> {
        self.call.args().to_vec()
    }

    #[getter]
    fn env(&self) -> Vec<(String, String)> {
        self.call.env().to_vec()
    }

    #[getter]
    fn cwd(&self) -> &str {
        self.call.cwd()
    }

    #[getter]
    fn run(&self) -> i64 {
        self.call.run()
    }

    fn path(&self, path: &str) -> String {
        self.call.path(path)
    }

    fn is_over(&self) -> bool {
        self.call.is_over()
    }

    /// Reads at most this many bytes of standard input; none at its end.
    fn read<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        let read = || {
            let mut bytes = vec![0; most.min(1 << 16)];
            let length = self.stdin.lock().unwrap_or_else(PoisonError::into_inner).read(&mut bytes)?;
            bytes.truncate(length);
            Ok(bytes)
        };
        py.detach(read).map(|bytes| PyBytes::new(py, &bytes)).map_err(|error| raise(&error))
    }

    /// Writes to standard output (1) or standard error (2).
    fn write(&self, py: Python<'_>, stream: u8, bytes: Vec<u8>) -> PyResult<()> {
        let mut output = match stream {
            1 => self.call.stdout(),
            2 => self.call.stderr(),
            _ => return Err(PyValueError::new_err("unknown stream")),
        };
        py.detach(|| output.write_all(&bytes)).map_err(|error| raise(&error))
    }

    /// Reads the files as the command sees them; `None` after it has ended.
    fn look(&self, py: Python<'_>, verb: &str, path: &str) -> PyResult<Option<Py<PyAny>>> {
        files::look(py, Some(self.call.files().clone()), verb, path)
    }

    /// Changes a file as part of the command.
    fn change(&self, py: Python<'_>, verb: &str, path: &str, bytes: Vec<u8>) -> PyResult<()> {
        let files = self.call.files();
        let changed = py.detach(|| match verb {
            "write" => files.write(path, bytes),
            "append" => files.append(path, bytes),
            "make_directory" => files.create_dir_all(path),
            "remove" => files.remove(path),
            _ => Err(Error::Invalid(format!("unknown change `{verb}`"))),
        });
        changed.map_err(|error| errors::raise(py, &error))
    }
}

fn raise(error: &std::io::Error) -> PyErr {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => PyBrokenPipeError::new_err("the command has ended"),
        _ => PyOSError::new_err(error.to_string()),
    }
}
