//! A sandbox: one database, one policy. Commands enter here and come back as an [`Output`].

pub mod agent;
mod builder;
mod child;
mod command;
mod content;
mod files;
mod interpreters;
mod kv;
mod mount;
mod output;
mod packages;
#[cfg(test)]
mod probes;
mod session;
mod snapshot;
mod surroundings;

use std::sync::Arc;
use std::time::Duration;

use abi::WaitStatus;
use abi::spawn::Request;
use presets::{ByteSize, LimitName, Limits};
use sqlite_fs::{Database, FsError, Reader, Transaction};

use crate::clock::{self, GuestClock};
use crate::history::{self, HistoryFilter, LibraryCall, Ongoing, Recorder, Run, TURN};
use crate::host::{Host, Prepared};
use crate::limits::Meter;
use crate::process::descriptor::{Descriptors, Object, OpenFile};
use crate::process::{self, Capture, Fault, KeptState, Outside, Reaping, Start, Tree};
use crate::random::Random;
use crate::tools::{Tool, Tools};
use crate::vfs::{Device, Scope, View};
use crate::{Error, LimitReached};

pub use builder::{Builder, HOME, Python};
pub use child::{Child, ChildOutput, ChildStdin, Killer};
use command::Stdin;
pub use command::{Command, Stream};
pub use files::{Content, FilePage, Files, Found};
use interpreters::Interpreters;
pub use kv::{Kv, KvEntry};
pub use mount::Mount;
pub use output::{ExitStatus, Output};
pub use packages::{Package, Packages};
pub use session::PythonSession;
pub use session::shell::Session;
pub use snapshot::Summary;
use surroundings::{Variables, no_zero_byte, set_variable};

/// One database, and what may be done in it.
///
/// ```no_run
/// let sandbox = sandlite_runtime::Sandbox::builder().open()?; // in memory
/// assert_eq!(sandbox.bash("echo $((6 * 7))")?.stdout, b"42\n");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct Sandbox {
    host: Host,
    database: Database,
    recorder: Recorder,
    power_safe: bool,
    scope: Scope,
    limits: Limits,
    env: Variables,
    cwd: String,
    tools: Arc<Tools>,
    interpreters: Arc<Interpreters>,
    reaping: Arc<Reaping>,
    python: Python,
    import_notes: Arc<[String]>,
}

type Program = (Prepared, Start);

/// How Python is told to print the value of a last expression (`guests/python/lib/_sandlite_main.py`).
const ECHO: &str = "--sandlite-echo";

/// How long after the deadline a commit is still waited for (SECURITY.md, promise 2): rolling back and recording that take the
/// rest of the slack.
const COMMIT_SLACK: Duration = Duration::from_millis(20);

/// How often a command that waits for its turn looks whether it is still wanted.
const TURN_STEP: Duration = Duration::from_millis(20);

/// The file creation mask a command starts with.
const UMASK: u32 = 0o022;

/// When deterministic runs take place: 2001-09-09 01:46:40 UTC, a moment everybody recognises.
const DETERMINISTIC_START: Duration = Duration::from_secs(1_000_000_000);

impl Sandbox {
    /// Settings to start from.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Runs a bash command line.
    ///
    /// # Errors
    ///
    /// Only for the host's own trouble: a command that fails is an [`Output`].
    pub fn bash(&self, script: impl Into<String>) -> Result<Output, Error> {
        self.run(Command::bash(script))
    }

    /// Runs Python code.
    ///
    /// # Errors
    ///
    /// Only for the host's own trouble: code that raises is an [`Output`].
    pub fn python(&self, code: impl Into<String>) -> Result<Output, Error> {
        self.run(Command::python(code))
    }

    /// Runs a command: its file changes and its history row are one transaction.
    ///
    /// # Errors
    ///
    /// Only for the host's own trouble: a command that fails, traps or meets a limit is an [`Output`].
    pub fn run(&self, command: Command) -> Result<Output, Error> {
        // Compiling a guest for the first time takes seconds: not of the command's own.
        self.host.prepared(self.guest_of(command.guest))?;
        let mut command = command;
        if command.echo && command.name == "python" && command.args.get(1).is_some_and(|option| option == "-c") {
            ECHO.clone_into(&mut command.args[1]);
        }
        self.run_as(command, process::find_program)
    }

    // The guest that a command's program is in: which Python is meant, the sandbox decides.
    fn guest_of(&self, guest: &'static guests::Guest) -> &'static guests::Guest {
        if self.python == Python::Scientific && guest.name == guests::PYTHON.name { &guests::PYTHON_SCI } else { guest }
    }

    /// Runs a command of Python code in a guest that takes it as a text, and gives what its memory is when it returns.
    pub(crate) fn run_for_memory(&self, command: Command, prepared: &Prepared) -> Result<(Output, Vec<u8>), Error> {
        let text = command.text.clone();
        let mut memory = Vec::new();
        let output = self.run_with(command, |tree, request, descriptors| {
            let start = Start { args: request.args.clone(), env: request.env.clone(), cwd: request.cwd.clone() };
            process::start_for_memory(tree, (prepared.clone(), start), descriptors, UMASK, &text, &mut memory)
        })?;
        Ok((output, memory))
    }

    // `find` is where the program comes from: the sandbox's own files, or a test.
    fn run_as(&self, command: Command, find: impl FnOnce(&Tree, &Request) -> Result<Program, Fault>) -> Result<Output, Error> {
        self.run_with(command, |tree, request, descriptors| {
            find(tree, request).and_then(|program| process::start_first(tree, program, descriptors, UMASK))
        })
    }

    // `start` runs the first process to its end.
    fn run_with(
        &self,
        mut command: Command,
        start: impl FnOnce(&Arc<Tree>, &Request, Descriptors) -> Result<WaitStatus, Fault>,
    ) -> Result<Output, Error> {
        command.surroundings.check()?;
        command.args.iter().chain([&command.text]).try_for_each(|text| no_zero_byte("command", text))?;
        let limits = self.limits.tighten(&command.surroundings.overrides)?;
        let mut request = self.request(&command);
        check_length(&request, &limits)?;
        // What the last command held counts until it is gone.
        self.reaping.wait();
        // Its time begins with its turn.
        let transaction = self.turn(&command)?;
        let meter = Meter::new(limits);
        self.recorder.write_waiting(&transaction)?;
        let id = history::begin_command(&transaction, command.name, &command.text, self.cwd(&command))?;
        let session = command.session.as_ref().map(|name| self.resume(&transaction, name, &command, &mut request)).transpose()?;
        let restarted = self.begin_python(&transaction, &command)?;

        let outside =
            Outside { tools: Arc::clone(&self.tools), run: id, session: session.clone(), reaping: Arc::clone(&self.reaping) };
        let (meter, mut view, mut output) = self.execute(&mut command, &request, meter, transaction, outside, start)?;
        let rolled_back = command.rollback_on_failure && !output.status.success();
        if rolled_back {
            view.transaction().restart()?;
            view = self.begin_again(view.into_transaction(), &command)?;
        }
        // A call that was stopped or taken back leaves its session where it was.
        if let (Some(name), Some(state)) = (&command.session, session.and_then(|session| Arc::into_inner(session)?.into_left()))
            && !rolled_back
            && output.status.limit().is_none()
        {
            match uninterrupted(|| Ok(view.transaction().sessions().set(name, session::shell::SHELL, &state)?)) {
                // What the command did is kept; its session stays where it was, and the status says why.
                Err(Error::Database(sqlite_fs::Error::Quota { allowed, needed, .. })) => {
                    let (value, used) = (ByteSize(allowed).to_string(), ByteSize(needed).to_string());
                    output.status =
                        ExitStatus::Limit(LimitReached { limit: LimitName::Sessions, value, used, rolled_back: false });
                }
                set => set?,
            }
        }
        output.run = id;
        output.restarted = restarted;
        uninterrupted(|| history::finish_command(&self.recorder, &self.scope, &view, &output))?;
        if output.is_overdue() {
            view.transaction().leave_log()?;
        }
        if self.database.settling().is_zero() {
            // It takes no longer than rolling back would.
            view.into_transaction().commit()?;
            return Ok(output);
        }
        if let Some(transaction) = view.into_transaction().commit_by(meter.end() + COMMIT_SLACK)? {
            output.status = ExitStatus::Limit(meter.too_late_to_store());
            let view = self.begin_again(transaction, &command)?;
            uninterrupted(|| history::finish_command(&self.recorder, &self.scope, &view, &output))?;
            view.transaction().leave_log()?;
            view.into_transaction().commit()?;
        }
        Ok(output)
    }

    // Waits for the command that runs; one that is killed meanwhile gives up.
    fn turn(&self, command: &Command) -> Result<Transaction, Error> {
        let until = clock::now() + TURN;
        loop {
            let now = clock::now();
            match self.database.begin(Some(until.min(now + TURN_STEP))) {
                Err(sqlite_fs::Error::Busy) if now < until && !command.is_killed() => {}
                begun => return Ok(begun?),
            }
        }
    }

    // What a command wrote before it began, once all that it did is taken back. (A savepoint would remember every page that
    // changes, in memory.)
    fn begin_again(&self, transaction: Transaction, command: &Command) -> Result<View<Transaction>, Error> {
        uninterrupted(|| self.begin_python(&transaction, command))?;
        Ok(View::of_run(transaction, &self.scope).map_err(sqlite_fs::Error::from)?)
    }

    fn execute(
        &self,
        command: &mut Command,
        request: &Request,
        meter: Meter,
        transaction: Transaction,
        outside: Outside,
        start: impl FnOnce(&Arc<Tree>, &Request, Descriptors) -> Result<WaitStatus, Fault>,
    ) -> Result<(Meter, View<Transaction>, Output), Error> {
        let (clock, random) = match command.seed {
            Some(seed) => (GuestClock::fixed(DETERMINISTIC_START), Random::seeded(seed)),
            None => (GuestClock::machine(), Random::Machine),
        };
        if let Some(clock) = clock.for_files() {
            transaction.set_clock(Some(clock))?;
        }
        let descriptors_limit = meter.limits().descriptors;
        let view = View::of_run(transaction, &self.scope).map_err(sqlite_fs::Error::from)?.for_guests()?;
        let tree = Tree::new(self.host.clone(), meter, Arc::new(view), clock, random, outside);
        tree.charge_files_in_memory()?;
        let (stdout, stderr) = (Arc::new(Capture::new(command.stdout.take())), Arc::new(Capture::new(command.stderr.take())));
        command.killer.attach(&tree);
        let (watched, killer, kill_when) = (Arc::downgrade(&tree), command.killer.clone(), command.kill_when.take());
        let database = self.database.clone();
        let left = move || {
            if kill_when.as_ref().is_some_and(|is_wanted| is_wanted()) {
                killer.kill();
            }
            let Some(tree) = watched.upgrade() else { return Duration::MAX };
            tree.meter.reserve(database.settling());
            tree.meter.left().unwrap_or(Duration::MAX)
        };
        let ticking = self.host.tick(left, self.database.interrupter());
        let stdio = [stdin(std::mem::take(&mut command.stdin)), writes_to(&stdout), writes_to(&stderr)];
        let started = start(&tree, request, Descriptors::new(stdio, descriptors_limit));
        tree.finish();
        drop(ticking);
        command.killer.detach();
        let (meter, view) = Tree::take_apart(tree)?;
        if command.seed.is_some() {
            view.transaction().set_clock(None)?;
        }
        let status = match (meter.reached(), started) {
            (Some(reached), _) => ExitStatus::Limit(reached.clone()),
            (None, Ok(status)) => status.into(),
            (None, Err(_)) => return Err(Error::Invalid(format!("`{}` cannot be started", command.name))),
        };
        let ((stdout, stdout_truncated), (stderr, stderr_truncated)) = (stdout.take(), stderr.take());
        let usage = meter.usage();
        let output = Output { status, stdout, stderr, stdout_truncated, stderr_truncated, usage, run: 0, restarted: false };
        Ok((meter, view, output))
    }

    /// The last committed state of the files: waits for nobody.
    fn now(&self) -> Result<View<Reader>, Error> {
        self.recorder.now(&self.scope)
    }

    /// Changes something in one transaction with its row of the history.
    fn change<T>(&self, call: LibraryCall, work: impl FnOnce(&Ongoing<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.recorder.change(&self.scope, call, work)
    }

    /// The same for a call whose answer is worth recording.
    fn change_answering<T>(
        &self,
        call: LibraryCall,
        work: impl FnOnce(&Ongoing<'_>) -> Result<(T, serde_json::Value), Error>,
    ) -> Result<T, Error> {
        self.recorder.change_answering(&self.scope, call, work)
    }

    /// The engine behind it, which other sandboxes can share.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The sandbox's files, as seen from outside.
    #[must_use]
    pub fn fs(&self) -> Files<'_> {
        Files::new(self)
    }

    /// The sandbox's key-value store.
    #[must_use]
    pub fn kv(&self) -> Kv<'_> {
        Kv::new(self)
    }

    /// The last `limit` rows of the history, newest first, without their output.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn history(&self, limit: usize) -> Result<Vec<Run>, Error> {
        self.history_with(&HistoryFilter { limit, ..HistoryFilter::default() })
    }

    /// The rows of the history that a filter lets through, newest first.
    ///
    /// ```
    /// use sandlite_runtime::HistoryFilter;
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.fs().write("/plan", "think")?;
    /// sandbox.kv().set("step", 1)?;
    /// let found = sandbox.history_with(&HistoryFilter { grep: Some("plan".to_owned()), ..HistoryFilter::default() })?;
    /// assert_eq!(found[0].name, "write_file");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn history_with(&self, filter: &HistoryFilter) -> Result<Vec<Run>, Error> {
        self.recorder.settle();
        history::list(&self.database, filter)
    }

    /// One run with its output.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn history_run(&self, run: i64) -> Result<Option<Run>, Error> {
        self.recorder.settle();
        history::get(&self.database, run)
    }

    /// The first `most` bytes of a run's standard output and of its standard error, each with its whole length: for a list
    /// that shows only the beginning, however long they are.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn history_output(&self, run: i64, most: usize) -> Result<[(Vec<u8>, u64); 2], Error> {
        Ok(self.database.reader()?.output(run, most)?)
    }

    /// The tools that programs in this sandbox may call.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter()
    }

    /// The same sandbox with other tools: programs that are run through it can call these, and no others.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let add = sandlite_runtime::Tool::new("now", "The time.", "{}", |_| Ok("noon".into()));
    /// let with = sandbox.with_tools(vec![add])?;
    /// assert_eq!((with.tools().count(), sandbox.tools().count()), (1, 0));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When a tool makes no sense.
    pub fn with_tools(&self, tools: Vec<Tool>) -> Result<Self, Error> {
        Ok(Self { tools: Arc::new(Tools::new(tools)?), ..self.clone() })
    }

    /// What a command may use here.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The directory commands start in, unless they say otherwise.
    #[must_use]
    pub fn current_dir(&self) -> &str {
        &self.cwd
    }

    // What the session's shell is to begin with. A shell that goes on has its own environment, and only what came with
    // this command is new.
    fn resume(
        &self,
        transaction: &Transaction,
        name: &str,
        command: &Command,
        request: &mut Request,
    ) -> Result<Arc<KeptState>, Error> {
        let last = transaction.sessions().get(name, session::shell::SHELL)?;
        if last.is_some() {
            let new: Vec<_> =
                command.surroundings.env.iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect();
            request.env.retain(|variable| new.contains(variable) || variable.starts_with(b"PWD="));
        }
        Ok(Arc::new(KeptState::new(last.as_deref(), command.surroundings.cwd.is_some(), self.limits.value.0)))
    }

    // Notes that a session has a Python, if the command begins one, and says whether it had one before.
    fn begin_python(&self, transaction: &Transaction, command: &Command) -> Result<bool, Error> {
        let Some(name) = &command.new_python_of else { return Ok(false) };
        let had_one = transaction.sessions().get(name, session::PYTHON)?.is_some();
        if !had_one {
            transaction.sessions().set(name, session::PYTHON, &[])?;
        }
        Ok(had_one)
    }

    fn cwd<'a>(&'a self, command: &'a Command) -> &'a str {
        command.surroundings.cwd.as_deref().unwrap_or(&self.cwd)
    }

    fn request(&self, command: &Command) -> Request {
        let cwd = self.cwd(command);
        let mut env = self.env.clone();
        set_variable(&mut env, "PWD".to_owned(), cwd.to_owned());
        for (name, value) in &command.surroundings.env {
            set_variable(&mut env, name.clone(), value.clone());
        }
        Request {
            path: command.program.clone().into_bytes(),
            cwd: cwd.as_bytes().to_vec(),
            args: command.args.iter().map(|arg| arg.clone().into_bytes()).collect(),
            env: env.into_iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect(),
            ..Request::default()
        }
    }
}

// The deadline may have interrupted the database just before its last operation ended: the interruption then meets the
// next one, which is ours and is done again.
fn uninterrupted<T>(mut operation: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    match operation() {
        Err(Error::Database(sqlite_fs::Error::Interrupted | sqlite_fs::Error::Node(FsError::Interrupted))) => operation(),
        result => result,
    }
}

fn check_length(request: &Request, limits: &Limits) -> Result<(), Error> {
    let used = request.args.iter().chain(&request.env).map(Vec::len).sum::<usize>() as u64;
    let allowed = limits.command_text.0;
    if used > allowed { Err(Error::CommandTooLong { used, allowed }) } else { Ok(()) }
}

fn stdin(stdin: Stdin) -> Arc<OpenFile> {
    let object = match stdin {
        Stdin::Empty => Object::Device(Device::Null),
        Stdin::Bytes(bytes) => Object::Bytes(bytes.into()),
        Stdin::Pipe(reader) => Object::Reader(reader),
    };
    OpenFile::new(object, true, false, false)
}

fn writes_to(capture: &Arc<Capture>) -> Arc<OpenFile> {
    OpenFile::new(Object::Capture(Arc::clone(capture)), false, true, false)
}
