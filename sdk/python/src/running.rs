//! `sandlite._native.Running`: a command that runs concurrently with Python.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};
use runtime::actions::RunOptions;
use runtime::{Cancel, ChildOutput, ChildStdin, Command, Error, Output, Sandbox, Stream};

use crate::operation::{Done, ran};
use crate::task::{self, SIGNAL_STEP, Stop, Waiting};
use crate::{errors, fork, policy, threads};

/// Maximum size of one piece of output.
const PIECE: usize = 64 << 10;

/// How long the caller waits for a new command to take its turn, which it takes at once unless another one runs.
const TURN: Duration = Duration::from_millis(5);

/// How often it looks.
const TURN_STEP: Duration = Duration::from_micros(20);

/// The numbers of the streams, for Python: 0 means both.
const STDOUT: u8 = 1;
const STDERR: u8 = 2;

/// Whether output was ever processed: before that, no code can be in the middle of it.
static IS_READ: AtomicBool = AtomicBool::new(false);

/// Marks code that processes output of a command, which waits for it when it falls behind: it must not wait for the command.
#[pyclass(frozen, module = "sandlite._native")]
pub(crate) struct OutputScope {
    sandbox: u64,
    is_over: AtomicBool,
}

#[pymethods]
impl OutputScope {
    /// Returns whether the output was processed.
    #[getter]
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Records that the output was processed.
    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// Returns whether this code processes output of a running command of the sandbox.
pub(crate) fn is_reading(py: Python<'_>, sandbox: u64) -> PyResult<bool> {
    static READING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if !IS_READ.load(Ordering::Relaxed) {
        return Ok(false);
    }
    let find = || Ok::<_, PyErr>(py.import("sandlite._process")?.getattr("READING")?.unbind());
    for scope in READING.get_or_try_init(py, find)?.bind(py).call_method0("get")?.try_iter()? {
        let scope = scope?;
        if scope.cast::<OutputScope>().is_ok_and(|scope| scope.get().sandbox == sandbox && !scope.get().is_over()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A running command.
#[pyclass(frozen, module = "sandlite._native")]
pub(crate) struct Running {
    sandbox: u64,
    shared: Arc<Shared>,
    result: PyOnceLock<Py<PyAny>>,
}

/// One output stream, and the number of its bytes that were taken.
struct Source {
    output: ChildOutput,
    taken: AtomicUsize,
}

impl Source {
    fn new(output: ChildOutput) -> Self {
        // What is left of it is a part of the result, which is not stored twice.
        output.leave_rest();
        Self { output, taken: AtomicUsize::new(0) }
    }
}

/// The end of a command.
enum End {
    Ran(Box<Output>),
    Failed(Error),
    /// By an interrupt in a hook.
    Raised(PyErr),
}

struct Shared {
    cancel: Cancel,
    stdout: Source,
    stderr: Source,
    stdin: Mutex<Option<ChildStdin>>,
    end: Mutex<Option<End>>,
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

/// Starts a command on its own thread, in a sandbox with its number.
pub(crate) fn start(
    (sandbox, number): (Sandbox, u64),
    mut command: Command,
    options: RunOptions,
    using: Use,
) -> std::io::Result<Running> {
    let mut stdin = None;
    if using == (Use::Handle { input: true }) {
        let (piped, writer) = command.stdin_pipe();
        (command, stdin) = (piped, Some(writer));
    }
    let shared = Arc::new(Shared {
        cancel: command.cancel(),
        stdout: Source::new(command.output_of(Stream::Stdout)),
        stderr: Source::new(command.output_of(Stream::Stderr)),
        stdin: Mutex::new(stdin),
        end: Mutex::new(None),
        has_ended: AtomicBool::new(false),
        waiting: Mutex::default(),
    });
    if using == Use::Stream {
        shared.outputs(0).for_each(|(_, source)| source.output.follow());
    }
    let finished = Arc::clone(&shared);
    threads::run(move || {
        let ran = options.run(&sandbox, command);
        let end = match policy::interrupt() {
            Some(error) => End::Raised(error),
            None => ran.map_or_else(End::Failed, |output| End::Ran(Box::new(output))),
        };
        // A sandbox that was closed meanwhile is torn down before the end is reported.
        drop(sandbox);
        finished.finish(end);
    })?;
    Ok(Running { sandbox: number, shared, result: PyOnceLock::new() })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Returns whether it has taken its turn.
    fn has_turn(&self) -> bool {
        self.ended() || self.cancel.fuel_spent().is_some()
    }

    fn await_turn(&self) {
        let until = Instant::now() + TURN;
        while !self.has_turn() && Instant::now() < until {
            thread::sleep(TURN_STEP);
        }
    }

    fn finish(&self, end: End) {
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

    fn outputs(&self, which: u8) -> impl Iterator<Item = (u8, &Source)> {
        [(STDOUT, &self.stdout), (STDERR, &self.stderr)].into_iter().filter(move |(number, _)| which == 0 || which == *number)
    }

    /// Returns whether there is output to take, or never will be.
    fn has_output(&self, which: u8) -> bool {
        self.ended() || self.outputs(which).any(|(_, source)| source.output.available().is_some_and(|length| length > 0))
    }

    /// Returns a piece of the result that was not taken; `None` if the result is elsewhere.
    fn rest(&self, number: u8, taken: usize) -> Option<Vec<u8>> {
        match lock(&self.end).as_ref()? {
            End::Ran(output) => Some(piece(if number == STDOUT { &output.stdout } else { &output.stderr }, taken)),
            End::Failed(_) | End::Raised(_) => Some(Vec::new()),
        }
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
        self.outputs(0).for_each(|(_, source)| source.output.register());
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

fn piece(bytes: &[u8], start: usize) -> Vec<u8> {
    let rest = bytes.get(start..).unwrap_or_default();
    rest.get(..PIECE).unwrap_or(rest).to_vec()
}

impl Running {
    /// Waits until it has taken its turn, which a later call of the caller must not overtake. It waits only shortly if another
    /// command runs.
    pub(crate) fn await_turn(&self) {
        self.shared.await_turn();
    }

    /// Returns a piece of the result that was not taken.
    fn rest(&self, py: Python<'_>, number: u8, taken: usize) -> PyResult<Vec<u8>> {
        if let Some(piece) = self.shared.rest(number, taken) {
            return Ok(piece);
        }
        let result = self.result(py)?;
        let name = if number == STDOUT { "stdout_bytes" } else { "stderr_bytes" };
        let Some(whole) = result.bind(py).cast::<PyDict>()?.get_item(name)? else { return Ok(Vec::new()) };
        Ok(piece(whole.cast::<PyBytes>()?.as_bytes(), taken))
    }

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
        // Before its output: what it has not passed on by its end is in the result.
        let has_ended = self.shared.ended();
        for (number, source) in self.shared.outputs(which) {
            // From now on the command waits for its reader.
            source.output.follow();
            let mut bytes = source.output.take(PIECE);
            if bytes.is_empty() && has_ended {
                bytes = self.rest(py, number, source.taken.load(Ordering::Acquire))?;
            }
            if !bytes.is_empty() {
                source.taken.fetch_add(bytes.len(), Ordering::AcqRel);
                return Ok(Some((number, PyBytes::new(py, &bytes).unbind())));
            }
        }
        Ok((!has_ended).then(|| (0, PyBytes::new(py, b"").unbind())))
    }

    /// Returns a mark for code that processes a piece of its output.
    fn output_scope(&self) -> OutputScope {
        IS_READ.store(true, Ordering::Relaxed);
        OutputScope { sandbox: self.sandbox, is_over: AtomicBool::new(false) }
    }

    /// Returns whether it has taken its turn.
    #[getter]
    fn has_turn(&self) -> bool {
        self.shared.has_turn()
    }

    /// Waits until it has taken its turn, unless another command runs.
    fn wait_turn(&self, py: Python<'_>, done: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let shared = Arc::clone(&self.shared);
        let work = move || {
            shared.await_turn();
            Ok(Done::Nothing)
        };
        task::begin(py, Stop::Nothing, Box::new(work), done)
    }

    /// Waits until there is output to take.
    #[pyo3(signature = (which, done=None))]
    fn wait_output(&self, py: Python<'_>, which: u8, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.wait_for(py, done, None, move |shared| shared.has_output(which).then_some(()), |_| Done::Nothing)
    }

    /// Lets the command continue without readers.
    fn ignore_output(&self) {
        self.shared.outputs(0).for_each(|(_, source)| source.output.ignore());
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
            // Not held while Python code runs: another thread would wait for it with the interpreter lock.
            let end = lock(&self.shared.end).take();
            match end {
                Some(End::Ran(output)) => ran(py, *output),
                Some(End::Failed(error)) => {
                    let raised = errors::raise(py, &error);
                    *lock(&self.shared.end) = Some(End::Failed(error));
                    Err(raised)
                }
                Some(End::Raised(error)) => {
                    *lock(&self.shared.end) = Some(End::Raised(error.clone_ref(py)));
                    Err(error)
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
