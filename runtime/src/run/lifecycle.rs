//! The steps of a run: admitted, given its turn, executed, recorded, stored. Its files and its row are one transaction.

use std::sync::Arc;
use std::time::Duration;

use abi::spawn::Request;
use abi::{Signal, WaitStatus};
use presets::{ByteSize, LimitName, Limits};
use sqlite_fs::path::Last;
use sqlite_fs::{FileType, FsError, FsPath, Transaction, Volume as _};

use super::command::Stdin;
use super::surroundings::no_zero_byte;
use super::{Command, ExitStatus, Output, Program, Recording};
use crate::clock::{self, GuestClock};
use crate::defaults::UMASK;
use crate::history::{self, TURN};
use crate::host::Prepared;
use crate::limits::Meter;
use crate::process::descriptor::{Descriptors, Object, OpenFile};
use crate::process::{self, Capture, Fault, Job, KeptState, Outside, Start};
use crate::random::Random;
use crate::sandbox::{Sandbox, absolute};
use crate::session;
use crate::vfs::{Device, ROOT_NODE, View};
use crate::{Error, LimitReached};

/// How long after the deadline a commit may still take (SECURITY.md, guarantee 2): rolling back and recording that take the rest
/// of the slack.
pub(super) const COMMIT_SLACK: Duration = Duration::from_millis(20);

/// How often a command that waits for its turn checks whether it was cancelled.
const TURN_STEP: Duration = Duration::from_millis(20);

/// The variable that contains the working directory.
const PWD: &str = "PWD";

/// The time of deterministic runs: 2001-09-09 01:46:40 UTC, a well-known value.
pub(super) const DETERMINISTIC_START: Duration = Duration::from_secs(1_000_000_000);

/// A command that has ended, whose changes and row are not stored yet.
struct Ended {
    meter: Meter,
    view: View<Transaction>,
    output: Output,
}

impl Sandbox {
    /// Runs a command: its file changes and its history row are one transaction.
    ///
    /// # Errors
    ///
    /// Returns an error only if the host fails; a command that fails, traps or reaches a limit is an [`Output`].
    pub fn run(&self, command: Command) -> Result<Output, Error> {
        // Compiling a guest for the first time takes seconds, which do not count as the command's time.
        if let Some(guest) = command.program.guest() {
            self.host.prepared(self.guest_of(guest))?;
        }
        self.run_as(command, process::find_program)
    }

    /// Runs Python code in a guest that accepts it as a text, and returns its memory at the end.
    pub(crate) fn run_for_memory(&self, command: Command, prepared: &Prepared) -> Result<(Output, Vec<u8>), Error> {
        let text = command.text.clone();
        let mut memory = Vec::new();
        let output = self.run_with(command, |job, request, descriptors| {
            let start = Start { args: request.args.clone(), env: request.env.clone(), cwd: request.cwd.clone() };
            process::start_for_memory(job, (prepared.clone(), start), descriptors, UMASK, &text, &mut memory)
        })?;
        Ok((output, memory))
    }

    // `find` locates the program: in the sandbox's own files, or in a test.
    pub(super) fn run_as(
        &self,
        command: Command,
        find: impl FnOnce(&Job, &Request) -> Result<(Prepared, Start), Fault>,
    ) -> Result<Output, Error> {
        self.run_with(command, |job, request, descriptors| {
            find(job, request).and_then(|program| process::start_first(job, program, descriptors, UMASK))
        })
    }

    /// Runs a command whose first process is run to its end by `start`.
    pub(crate) fn run_with(
        &self,
        mut command: Command,
        start: impl FnOnce(&Arc<Job>, &Request, Descriptors) -> Result<WaitStatus, Fault>,
    ) -> Result<Output, Error> {
        if self.at.is_some() {
            return self.fork()?.run_with(command, start);
        }
        command.surroundings.cwd = command.surroundings.cwd.take().map(|directory| settled(&self.cwd, &directory));
        let limits = self.admit(&command)?;
        let recording = if command.is_recorded { Some(Recording::of(self, &mut command, &limits)?) } else { None };
        let mut request = self.request(&command);
        check_length(&request, &limits)?;
        // The memory of the last command counts until it is freed.
        self.reaping.wait();
        let transaction = self.turn(&command)?;
        // Its time starts with its turn.
        let meter = Meter::new(limits);
        self.recorder.write_waiting(&transaction)?;
        let (name, cwd) = (command.program.name(), self.cwd_of(&command));
        let marks = (self.scope.binding.mark(), recording.as_ref());
        let run = history::begin_command(&transaction, name, &command.text, cwd, marks)?;
        let session = command.session.as_ref().map(|name| self.resume(&transaction, name, &command, &mut request)).transpose()?;
        let restarted = self.begin_python(&transaction, &command)?;

        let outside = Outside {
            tools: Arc::clone(&self.tools),
            run,
            is_recorded: command.is_recorded,
            session: session.clone(),
            reaping: Arc::clone(&self.reaping),
            roots: command.roots.clone(),
        };
        let mut ended = self.execute(&mut command, &request, meter, transaction, outside, start)?;
        (ended.output.run, ended.output.restarted) = (run, restarted);
        if command.rollback_on_failure && !ended.output.status.success() {
            ended.view.transaction().restart()?;
            ended.view = self.begin_again(ended.view.into_transaction(), &command)?;
        } else if let Some(message) = self.recorder.ask_hooks(&ended.view, Some(run), &command.text, None)? {
            ended.view.transaction().restart()?;
            ended.view = self.begin_again(ended.view.into_transaction(), &command)?;
            refuse(&mut ended.output, message);
        } else if let (Some(name), Some(session)) = (&command.session, session) {
            keep_session(&mut ended, name, session)?;
        }
        self.store(ended, &command)
    }

    // Checks that can be made before a command runs.
    fn admit(&self, command: &Command) -> Result<Limits, Error> {
        self.refuse_in_the_past()?;
        command.surroundings.check()?;
        command.args.iter().chain([&command.text]).try_for_each(|text| no_zero_byte("command", text))?;
        Ok(self.limits.tighten(&command.surroundings.overrides)?)
    }

    // Waits for the running command; a command that is killed meanwhile gives up.
    fn turn(&self, command: &Command) -> Result<Transaction, Error> {
        let until = clock::now() + TURN;
        loop {
            let now = clock::now();
            match self.database.begin(Some(until.min(now + TURN_STEP))) {
                Err(sqlite_fs::Error::Busy) if now < until && !command.cancel.is_killed() => {}
                begun => return Ok(begun?),
            }
        }
    }

    fn execute(
        &self,
        command: &mut Command,
        request: &Request,
        meter: Meter,
        transaction: Transaction,
        outside: Outside,
        start: impl FnOnce(&Arc<Job>, &Request, Descriptors) -> Result<WaitStatus, Fault>,
    ) -> Result<Ended, Error> {
        let (clock, random) = match command.seed {
            Some(seed) => (GuestClock::fixed(command.clock.unwrap_or(DETERMINISTIC_START)), Random::seeded(seed)),
            None => (GuestClock::machine(), Random::Machine),
        };
        if let Some(clock) = clock.for_files() {
            transaction.set_clock(Some(clock))?;
        }
        let (descriptors_limit, run) = (meter.limits().descriptors, outside.run);
        let view =
            View::of_run(transaction, &self.scope.of_run(&command.cancel)).map_err(sqlite_fs::Error::from)?.for_guests()?;
        if let Some(directory) = &command.surroundings.cwd
            && let Err(error) = check_directory(&view, directory)
        {
            return Err(not_started(view, run, error));
        }
        let job = Job::new(self.host.clone(), meter, Arc::new(view), clock, random, outside);
        job.charge_files_in_memory()?;
        let (stdout, stderr) = (Arc::clone(command.stdout.capture()), Arc::clone(command.stderr.capture()));
        let stdio = [stdin(std::mem::take(&mut command.stdin)), writes_to(&stdout), writes_to(&stderr)];
        command.cancel.attach(&job, &self.database);
        let ticking = self.host.tick(command.cancel.clone());
        let started = start(&job, request, Descriptors::new(stdio, descriptors_limit));
        job.finish();
        let shown = job.take_shown();
        drop(ticking);
        command.cancel.detach();
        let (meter, view) = Job::take_apart(job)?;
        if command.seed.is_some() {
            view.transaction().set_clock(None)?;
        }
        let status = match (meter.reached(), started) {
            (Some(reached), _) => ExitStatus::Limit(reached.clone()),
            (None, Ok(status)) => status.into(),
            // Killed before it started.
            (None, Err(_)) if command.cancel.is_killed() => WaitStatus::Signaled(Signal::KILL).into(),
            (None, Err(_)) => {
                let name = match (command.program, command.args.first()) {
                    (Program::Own, Some(name)) => name,
                    (program, _) => program.name(),
                };
                let reason = if view.may_start(name) { "" } else { ": the policy does not allow it" };
                return Err(not_started(view, run, Error::Invalid(format!("cannot start `{name}`{reason}"))));
            }
        };
        for (path, reason) in view.complaints() {
            let line = format!("sandlite: {path}: {reason}\n");
            stderr.push(line.as_bytes(), line.len());
        }
        let ((stdout, stdout_truncated), (stderr, stderr_truncated)) = (stdout.take(), stderr.take());
        let usage = meter.usage();
        let output = Output {
            status,
            stdout,
            stderr,
            stdout_truncated,
            stderr_truncated,
            usage,
            run: 0,
            shown,
            restarted: false,
            refused: None,
            notes: Vec::new(),
        };
        Ok(Ended { meter, view, output })
    }

    // Records the outcome and commits; changes that cannot be stored in time are rolled back, and that is recorded.
    fn store(&self, Ended { meter, view, mut output }: Ended, command: &Command) -> Result<Output, Error> {
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
            let view = self.begin_again(transaction, command)?;
            uninterrupted(|| history::finish_command(&self.recorder, &self.scope, &view, &output))?;
            view.transaction().leave_log()?;
            view.into_transaction().commit()?;
        }
        Ok(output)
    }

    // Restores the writes made before the command started, after all its changes are rolled back. (A savepoint would keep every
    // changed page in memory.)
    fn begin_again(&self, transaction: Transaction, command: &Command) -> Result<View<Transaction>, Error> {
        uninterrupted(|| self.begin_python(&transaction, command))?;
        Ok(View::of_run(transaction, &self.scope).map_err(sqlite_fs::Error::from)?)
    }

    // The initial state of the session's shell. A shell that continues has its own environment, and only the variables of this
    // command are new.
    fn resume(
        &self,
        transaction: &Transaction,
        name: &str,
        command: &Command,
        request: &mut Request,
    ) -> Result<Arc<KeptState>, Error> {
        let mut last = transaction.sessions().get(name, session::SHELL)?;
        if last.is_some() {
            let new: Vec<_> =
                command.surroundings.env.iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect();
            request.env.retain(|variable| new.contains(variable) || variable.starts_with(b"PWD="));
        }
        match (command.last_status, &mut last, request.args.get_mut(2)) {
            (Some(status), Some(state), _) => session::set_status(state, status),
            // A shell without state has no options with which a failing command could end it.
            (Some(status), None, Some(script)) if command.program == Program::BashScript => {
                script.splice(..0, format!("(exit {status}); ").into_bytes());
            }
            _ => {}
        }
        Ok(Arc::new(KeptState::new(last.as_deref(), command.surroundings.cwd.is_some(), self.limits.value.0)))
    }

    // Records that a session has a Python, if the command starts one, and returns whether it had one before.
    fn begin_python(&self, transaction: &Transaction, command: &Command) -> Result<bool, Error> {
        let Some(name) = &command.new_python_of else { return Ok(false) };
        let had_one = transaction.sessions().get(name, session::PYTHON)?.is_some();
        if !had_one {
            transaction.sessions().set(name, session::PYTHON, &[])?;
        }
        Ok(had_one)
    }

    fn cwd_of<'a>(&'a self, command: &'a Command) -> &'a str {
        command.surroundings.cwd.as_deref().unwrap_or(&self.cwd)
    }

    fn request(&self, command: &Command) -> Request {
        let (cwd, own) = (self.cwd_of(command), &command.surroundings.env);
        let inherited = self.env.iter().map(pair).filter(|(name, _)| *name != PWD).chain([(PWD, cwd)]);
        let inherited = inherited.filter(|(name, _)| !command.has_only_own_env && own.iter().all(|(known, _)| known != name));
        let env = inherited.chain(own.iter().map(pair));
        Request {
            path: command.program.path(&command.args).into_bytes(),
            cwd: cwd.as_bytes().to_vec(),
            args: command.program.args(&command.text, &command.args),
            env: env.map(|(name, value)| [name.as_bytes(), b"=".as_slice(), value.as_bytes()].concat()).collect(),
            ..Request::default()
        }
    }
}

fn pair((name, value): &(String, String)) -> (&str, &str) {
    (name, value)
}

// Records why a command did not start, and returns that. Nothing else of it is stored.
fn not_started(view: View<Transaction>, run: i64, error: Error) -> Error {
    let transaction = view.into_transaction();
    // If this fails, the command is recorded as interrupted.
    let recorded = transaction.set_clock(None).and_then(|()| transaction.restart());
    let recorded = recorded.and_then(|()| history::finish_refused(&transaction, run, &error.to_string()));
    let _ = recorded.and_then(|()| transaction.commit());
    error
}

// The command ends with the message of the hook that rejected its changes.
fn refuse(output: &mut Output, message: String) {
    output.stderr.extend_from_slice(format!("sandlite: changes rejected by a hook: {message}\n").as_bytes());
    if output.status.success() {
        output.status = ExitStatus::Exited(1);
    }
    output.refused = Some(message);
}

// Stores the shell's state for the session's next call; a call that was stopped leaves its session unchanged.
fn keep_session(ended: &mut Ended, name: &str, session: Arc<KeptState>) -> Result<(), Error> {
    let left = Arc::into_inner(session).and_then(KeptState::into_left);
    let Some(state) = left.filter(|_| ended.output.status.limit().is_none()) else { return Ok(()) };
    match uninterrupted(|| Ok(ended.view.transaction().sessions().set(name, session::SHELL, &state)?)) {
        // The command's changes are kept; its session is unchanged, and the status has the reason.
        Err(Error::Database(sqlite_fs::Error::Quota { allowed, needed, .. })) => {
            let (value, used) = (ByteSize(allowed).to_string(), ByteSize(needed).to_string());
            let reached = LimitReached { limit: LimitName::Sessions, value, used, rolled_back: false };
            ended.output.status = ExitStatus::Limit(reached);
            Ok(())
        }
        set => set,
    }
}

// The deadline may have interrupted the database just before its last operation ended; the interruption then affects the next
// one, which is ours and is retried.
fn uninterrupted<T>(mut operation: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    match operation() {
        Err(Error::Database(sqlite_fs::Error::Interrupted | sqlite_fs::Error::Node(FsError::Interrupted))) => operation(),
        result => result,
    }
}

// The directory as `cd` shows it. A text that is not a valid path stays as it is, and is rejected later.
fn settled(start: &str, directory: &str) -> String {
    let path = FsPath::root().join(&absolute(start, directory)).ok().filter(|_| !directory.is_empty());
    path.map_or_else(|| directory.to_owned(), |path| path.to_string())
}

// A requested directory must exist; the sandbox's default may have been removed by a command, which then starts in `/`.
fn check_directory(view: &View<Transaction>, path: &str) -> Result<(), Error> {
    let refused = |reason: &dyn std::fmt::Display| Error::Invalid(format!("invalid working directory `{path}`: {reason}"));
    match view.find(ROOT_NODE, path, Last::Follow) {
        Ok((_, FileType::Directory)) => Ok(()),
        Ok(_) => Err(refused(&FsError::NotDirectory)),
        Err(error) => Err(refused(&error)),
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
