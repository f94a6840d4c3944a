//! `sandlite._native.Running`: a command that runs concurrently with Python.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use runtime::actions::RunOptions;
use runtime::{Cancel, ChildOutput, ChildStdin, Command, Error, Output, Sandbox, Stream};

use crate::operation::{Done, ran};
use crate::task::{self, SIGNAL_STEP, Stop, Waiting};
use crate::{errors, fork, threads};

/// Maximum size of one piece of output.
const PIECE: usize = 64 << 10;

/// How long the caller waits for a new command to take its turn, which it takes at once unless another one runs.
const TURN: Duration = Duration::from_millis(5);

/// How often it looks.
const TURN_STEP: Duration = Duration::from_micros(20);

/// The numbers of the streams, for Python: 0 means both.
const STDOUT: u8 = 1;
const STDERR: u8 = 2;

/// A running command.
#[pyclass(frozen, module = "sandlite._native")]
pub(crate) struct Running {
    shared: Arc<Shared>,
    result: PyOnceLock<Py<PyAny>>,
}

struct Shared {
    cancel: Cancel,
    stdout: ChildOutput,
    stderr: ChildOutput,
    stdin: Mutex<Option<ChildStdin>>,
    end: Mutex<Option<Result<Output, Error>>>,
    has_ended: AtomicBool,
    waiting: Mutex<Vec<Thread>>,
}

/// How a running command is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Its output is read from the start.
    Stream,
    /// It may be written to and read from.
    Handle {
        /// Its standard input stays open.
        input: bool,
    },
}

/// Starts a command on its own thread.
pub(crate) fn start(sandbox: Sandbox, mut command: Command, options: RunOptions, using: Use) -> std::io::Result<Running> {
    let mut stdin = None;
    if using == (Use::Handle { input: true }) {
        let (piped, writer) = command.stdin_pipe();
        (command, stdin) = (piped, Some(writer));
    }
    let shared = Arc::new(Shared {
        cancel: command.cancel(),
        stdout: command.output_of(Stream::Stdout),
        stderr: command.output_of(Stream::Stderr),
        stdin: Mutex::new(stdin),
        end: Mutex::new(None),
        has_ended: AtomicBool::new(false),
        waiting: Mutex::default(),
    });
    if using == Use::Stream {
        shared.outputs(0).for_each(|(_, output)| output.follow());
    }
    let finished = Arc::clone(&shared);
    threads::run(move || {
        let end = options.run(&sandbox, command);
        // A sandbox that was closed meanwhile is torn down before the end is reported.
        drop(sandbox);
        finished.finish(end);
    })?;
    // A later call of the caller must not overtake the command.
    let until = Instant::now() + TURN;
    while !shared.ended() && shared.cancel.fuel_spent().is_none() && Instant::now() < until {
        thread::sleep(TURN_STEP);
    }
    Ok(Running { shared, result: PyOnceLock::new() })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn finish(&self, end: Result<Output, Error>) {
        *lock(&self.end) = Some(end);
        self.has_ended.store(true, Ordering::Release);
        self.close_stdin();
    }

    fn close_stdin(&self) {
        drop(lock(&self.stdin).take());
        lock(&self.waiting).drain(..).for_each(|thread| thread.unpark());
    }

    fn ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    fn outputs(&self, which: u8) -> impl Iterator<Item = (u8, &ChildOutput)> {
        [(STDOUT, &self.stdout), (STDERR, &self.stderr)].into_iter().filter(move |(number, _)| which == 0 || which == *number)
    }

    /// Returns whether there is output to take, or never will be.
    fn has_output(&self, which: u8) -> bool {
        let mut has_all_ended = true;
        for (_, output) in self.outputs(which) {
            match output.available() {
                Some(0) => {}
                Some(_) => return true,
                None => has_all_ended = false,
            }
        }
        has_all_ended
    }

    /// Writes what fits; returns whether all of it is written, and whether the command no longer reads.
    fn try_send(&self, rest: &mut &[u8]) -> Option<bool> {
        let mut stdin = lock(&self.stdin);
        let Some(stdin) = &mut *stdin else { return Some(false) };
        while !rest.is_empty() {
            match stdin.try_write(rest)? {
                Ok(length) => *rest = rest.get(length..).unwrap_or_default(),
                Err(_) => return Some(false),
            }
        }
        Some(true)
    }

    /// Registers the calling thread for the next event.
    fn register(&self) {
        self.outputs(0).for_each(|(_, output)| output.register());
        if let Some(stdin) = &*lock(&self.stdin) {
            stdin.register();
        }
        let current = thread::current();
        let mut waiting = lock(&self.waiting);
        if waiting.iter().all(|thread| thread.id() != current.id()) {
            waiting.push(current);
        }
    }

    /// Waits for a result on one of our threads, until it is available, the timeout passes, or it is no longer needed.
    fn wait<T>(&self, waiting: &Waiting, until: Option<Instant>, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        waiting.begin();
        loop {
            self.register();
            let answer = ready();
            if answer.is_some() || waiting.is_given_up() {
                return answer;
            }
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return None,
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
        }
    }

    /// Waits on a Python thread, which signals can interrupt.
    fn wait_here<T: Send>(
        &self,
        py: Python<'_>,
        until: Option<Instant>,
        mut ready: impl FnMut() -> Option<T> + Send,
    ) -> PyResult<Option<T>> {
        loop {
            let ready = &mut ready;
            let answer = py.detach(move || {
                self.register();
                ready().or_else(|| {
                    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                    thread::park_timeout(left.map_or(SIGNAL_STEP, |left| left.min(SIGNAL_STEP)));
                    ready()
                })
            });
            if answer.is_some() || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(answer);
            }
            py.check_signals()?;
        }
    }
}

impl Running {
    /// Waits for a result: here, or on one of our threads with a completion callback.
    fn wait_for<T: Send + 'static>(
        &self,
        py: Python<'_>,
        done: Option<Py<PyAny>>,
        until: Option<Instant>,
        mut ready: impl FnMut(&Shared) -> Option<T> + Send + 'static,
        then: fn(Option<T>) -> Done,
    ) -> PyResult<Py<PyAny>> {
        fork::check(py)?;
        let shared = Arc::clone(&self.shared);
        match done {
            Some(done) => {
                let waiting = Arc::new(Waiting::default());
                let stop = Stop::Waiting(Arc::clone(&waiting));
                let work = move || Ok(then(shared.wait(&waiting, until, || ready(&shared))));
                task::begin(py, stop, Box::new(work), done)
            }
            None => then(shared.wait_here(py, until, || ready(&shared))?).into_python(py),
        }
    }
}

#[pymethods]
impl Running {
    /// Returns whether it is still running.
    #[getter]
    fn running(&self) -> bool {
        !self.shared.ended()
    }

    /// Takes available output: the stream's number and bytes, 0 if there is none yet, `None` at the end.
    fn take_output(&self, py: Python<'_>, which: u8) -> PyResult<Option<(u8, Py<PyBytes>)>> {
        fork::check(py)?;
        let mut has_all_ended = true;
        for (number, output) in self.shared.outputs(which) {
            // From now on the command waits for its reader.
            output.follow();
            match output.available() {
                Some(0) => {}
                Some(_) => return Ok(Some((number, PyBytes::new(py, &output.take(PIECE)).unbind()))),
                None => has_all_ended = false,
            }
        }
        Ok((!has_all_ended).then(|| (0, PyBytes::new(py, b"").unbind())))
    }

    /// Waits until there is output to take.
    #[pyo3(signature = (which, done=None))]
    fn wait_output(&self, py: Python<'_>, which: u8, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.wait_for(py, done, None, move |shared| shared.has_output(which).then_some(()), |_| Done::Nothing)
    }

    /// Lets the command continue without readers.
    fn ignore_output(&self) {
        self.shared.outputs(0).for_each(|(_, output)| output.ignore());
    }

    /// Writes to its standard input; returns whether all of it was written.
    #[pyo3(signature = (data, done=None))]
    fn send(&self, py: Python<'_>, data: &Bound<'_, PyBytes>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let (data, mut sent) = (data.as_bytes().to_vec(), 0);
        let ready = move |shared: &Shared| {
            let mut rest = data.get(sent..).unwrap_or_default();
            let answer = shared.try_send(&mut rest);
            sent = data.len() - rest.len();
            answer
        };
        self.wait_for(py, done, None, ready, |sent| Done::Flag(sent.unwrap_or(false)))
    }

    /// Closes its standard input.
    fn close_stdin(&self, py: Python<'_>) -> PyResult<()> {
        fork::check(py)?;
        self.shared.close_stdin();
        Ok(())
    }

    /// Waits for its end, for at most this many seconds; returns whether it has ended.
    #[pyo3(signature = (timeout, done=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let until = match timeout {
            None => None,
            Some(seconds) => {
                let time =
                    Duration::try_from_secs_f64(seconds.max(0.0)).map_err(|error| PyValueError::new_err(error.to_string()))?;
                Instant::now().checked_add(time)
            }
        };
        self.wait_for(py, done, until, |shared| shared.ended().then_some(()), |ended| Done::Flag(ended.is_some()))
    }

    /// Returns the result after it has ended, like `Sandbox.run`.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        fork::check(py)?;
        let read = || {
            let mut end = lock(&self.shared.end);
            match end.take() {
                Some(Ok(output)) => ran(py, output),
                Some(Err(error)) => {
                    let raised = errors::raise(py, &error);
                    *end = Some(Err(error));
                    Err(raised)
                }
                None => Err(PyValueError::new_err("the command has not ended")),
            }
        };
        self.result.get_or_try_init(py, read)?.clone_ref(py).into_py_any(py)
    }

    /// Kills the command.
    fn kill(&self) {
        if !fork::is_copy() {
            self.shared.cancel.kill();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if fork::is_copy() {
            // Its locks may be held by threads that do not exist here.
            std::mem::forget(Arc::clone(&self.shared));
        } else {
            // Reading and writing are no longer possible.
            self.ignore_output();
            self.shared.close_stdin();
        }
    }
}
