//! A call of a host command: a tree is lent, the command runs in its jail with the process's standard streams, and changes are
//! copied back.

use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use abi::Signal;
use serde_json::{Value, json};
use sqlite_fs::path::Last;
use sqlite_fs::{FileType, FsPath, Volume as _};

use super::Bridge;
use super::jail::{Jail, Prisoner, owner};
use crate::Error;
use crate::clock::{self, Moment};
use crate::process::descriptor::OpenFile;
use crate::process::wait::{Interruption, Waiters, block};
use crate::process::{Ended, Fault, State};
use crate::vfs::{Lent, ROOT_NODE, bytes_below};

/// Number of bytes moved at once.
const PIECE: usize = 64 << 10;
/// Maximum number of queued pieces of output.
const WAITING: usize = 8;
/// How often the command is checked.
const TICK: Duration = Duration::from_millis(20);
/// Number of checks between two measurements of its writes.
const TICKS_PER_MEASUREMENT: u32 = 25;

/// Exit statuses, as in shells and `env`.
const FAILED: u8 = 125;
const NOT_GRANTED: u8 = 126;

/// Paths that the jail provides itself.
const TAKEN: [&str; 10] = ["/usr", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc", "/dev", "/etc"];

/// The request.
struct Asked {
    program: String,
    args: Vec<String>,
    tree: String,
    cwd: String,
}

/// Runs a call as a process; returns its outcome and the data to record.
pub(in crate::programs) fn run(state: &State, bridge: &Bridge, program: Option<&str>) -> (Ended, Value) {
    let begun = clock::now();
    match perform(state, bridge, program) {
        Ok((ended, mut result)) => {
            let spent = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            result["durationMs"] = spent.into();
            (ended, result)
        }
        Err(Stop::Process(ended)) => (ended, json!({})),
        Err(Stop::Complaint(status, complaint)) => {
            let name = program.unwrap_or(super::HOST);
            let _ = say(state, &format!("{name}: {complaint}\n"));
            (Ended::Exit(status), json!({ "error": complaint }))
        }
    }
}

/// The reason a call does not complete.
enum Stop {
    Process(Ended),
    Complaint(u8, String),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::End(ended) => Self::Process(ended),
            Fault::Errno(errno) => Self::Complaint(FAILED, errno.message().to_owned()),
        }
    }
}

fn complaint(text: impl ToString) -> Stop {
    Stop::Complaint(FAILED, text.to_string())
}

// An error of a copy, without the place of the copy on this machine (T-ISO-08).
fn uncopied(error: Error) -> Stop {
    match error {
        Error::HostFile { source, .. } => complaint(format!("cannot copy the tree: {source}")),
        error => complaint(error),
    }
}

fn perform(state: &State, bridge: &Bridge, program: Option<&str>) -> Result<(Ended, Value), Stop> {
    if state.job.turns.is_some() {
        return Err(complaint("cannot run a host command in a deterministic run"));
    }
    let words: Vec<String> = state.args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let asked = asked(state, program, &words)?;
    // T-POL-06: `host git` is `git`.
    let granted = bridge.program(&asked.program).filter(|_| state.job.view.may_start(&asked.program));
    let Some(path) = granted else {
        return Err(Stop::Complaint(NOT_GRANTED, format!("the host command `{}` is not granted", asked.program)));
    };
    let limits = state.job.meter.limits();
    let directory = tempfile::Builder::new().prefix("sandlite-lent-").tempdir();
    let directory = directory.map_err(|error| complaint(format!("cannot create a directory for the tree: {}", error.kind())))?;
    if let Some(owner) = owner() {
        chown(directory.path(), Some(owner), Some(owner)).map_err(complaint)?;
    }
    let tree = directory.path().join("tree");
    let lent = Lent::lend(&state.job.view, (&asked.tree, &tree), limits, owner(), &|| state.check_alive().is_err());
    state.check_alive().map_err(Stop::Process)?;
    let lent = lent.map_err(uncopied)?;
    let env: Vec<String> = state.env.iter().map(|variable| String::from_utf8_lossy(variable).into_owned()).collect();
    let left = state.job.meter.deadline().saturating_duration_since(clock::now());
    let mut jail = bridge
        .jail
        .start(&Prisoner {
            program: path,
            args: &asked.args,
            env: &env,
            tree: &tree,
            place: &asked.tree,
            cwd: &asked.cwd,
            limits,
            seconds: left.as_secs(),
        })
        .map_err(complaint)?;
    let status = attend(state, &mut jail, &tree)?;
    if !jail.end() {
        return Err(complaint("the host command does not exit: its changes are discarded"));
    }
    let returned = lent.take_back(&state.job.view, &tree, limits).map_err(uncopied)?;
    for path in &returned.skipped {
        say(state, &format!("{}: skipped `{path}`: not a file, directory or link\n", asked.program))?;
    }
    for refused in &returned.refused {
        say(state, &format!("{}: {refused}\n", asked.program))?;
    }
    let changes = json!({
        "written": returned.written,
        "removed": returned.removed,
        "skipped": returned.skipped.len(),
        "refused": returned.refused.len(),
    });
    let ended = match meaning(status) {
        Ended::Exit(0) if !returned.refused.is_empty() => Ended::Exit(FAILED),
        ended => ended,
    };
    Ok((ended, json!({ "tree": asked.tree, "changes": changes })))
}

// `git …` works on the current directory, `host [-p PATH] git …` also on another.
fn asked(state: &State, program: Option<&str>, words: &[String]) -> Result<Asked, Stop> {
    let usage = || complaint("usage: host [-p PATH] COMMAND [ARG]…");
    let cwd = String::from_utf8_lossy(&state.cwd).into_owned();
    let mut rest = words.iter().skip(1).cloned().peekable();
    let mut tree = None;
    let program = match program {
        Some(program) => program.to_owned(),
        None => {
            if rest.next_if(|word| word == "-p").is_some() {
                tree = Some(rest.next().ok_or_else(usage)?);
            }
            rest.next_if(|word| word == "--");
            rest.next().filter(|word| !word.starts_with('-')).ok_or_else(usage)?
        }
    };
    // In the jail the path is created, not walked.
    let start = FsPath::root().join(&cwd).map_err(complaint)?;
    let wanted = tree.map_or(Ok(start.clone()), |tree| start.join(&tree)).map_err(complaint)?;
    let tree = match state.job.view.find(ROOT_NODE, &wanted, Last::Follow) {
        Ok((_, FileType::Directory)) => wanted.to_string(),
        Ok(_) => return Err(complaint(format!("`{wanted}` is not a directory"))),
        Err(error) => return Err(complaint(format!("cannot lend `{wanted}`: {error}"))),
    };
    let is_taken = |taken: &str| tree == taken || tree.starts_with(&format!("{taken}/"));
    if tree == "/" || tree == "/tmp" || TAKEN.iter().any(|taken| is_taken(taken)) {
        return Err(complaint(format!("cannot lend `{tree}`: name a directory below it with `host -p PATH`")));
    }
    let is_inside = cwd == tree || cwd.starts_with(&format!("{tree}/"));
    let cwd = if is_inside { cwd } else { tree.clone() };
    Ok(Asked { program, args: rest.collect(), tree, cwd })
}

/// Events while a command runs.
enum Next {
    Output(u32, Vec<u8>),
    End,
    Input,
}

// Moves bytes between the process's streams and the command's until the command has ended.
fn attend(state: &State, jail: &mut Jail, tree: &Path) -> Result<ExitStatus, Stop> {
    let (job, process) = (&state.job, &state.process);
    let waiters = Arc::new(Waiters::default());
    let (events, received) = sync_channel(WAITING);
    let child = jail.child();
    let outputs: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ];
    for (fd, stream) in (1..).zip(outputs) {
        let stream = stream.ok_or_else(|| complaint("the host command has no output stream"))?;
        pump(fd, stream, events.clone(), Arc::clone(&waiters))?;
    }
    drop(events);
    let stdin = state.descriptors.get(0).ok().filter(|file| file.readable).map(Arc::clone);
    let mut input = match (stdin, child.stdin.take()) {
        (Some(file), Some(stream)) => Some(Input::new(file, stream, Arc::clone(&waiters))?),
        _ => None,
    };
    let (mut open, mut ticks) = (2, 0);
    let largest = job.meter.limits().disk.0;
    loop {
        let tick = Moment::Machine(clock::now() + TICK);
        let next = block(job, process, Some(tick), || {
            waiters.register();
            ready(&received, input.as_ref())
        });
        match next {
            Ok(Some(Next::Output(fd, bytes))) => write(state, fd, &bytes)?,
            Ok(Some(Next::End)) => open -= 1,
            Ok(Some(Next::Input)) => {
                if !input.as_ref().is_some_and(|input| input.feed(state)) {
                    input = None;
                }
            }
            Ok(None) => {
                ticks += 1;
                if ticks % TICKS_PER_MEASUREMENT == 0 && bytes_below(tree, largest, job.meter.limits().inodes) > largest {
                    return Err(complaint("the host command wrote more than the sandbox allows: its changes are discarded"));
                }
            }
            Err(Interruption::Signal) => {
                process.take_caught();
            }
            Err(Interruption::End) => return Err(Stop::Process(Ended::Killed)),
        }
        if open == 0
            && let Some(status) = jail.child().try_wait().map_err(complaint)?
        {
            return Ok(status);
        }
    }
}

fn ready(received: &Receiver<Next>, input: Option<&Input>) -> Option<Next> {
    match received.try_recv() {
        Ok(next) => return Some(next),
        Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
    }
    input.filter(|input| input.is_ready()).map(|_| Next::Input)
}

fn pump(fd: u32, mut stream: Box<dyn Read + Send>, events: SyncSender<Next>, waiters: Arc<Waiters>) -> Result<(), Stop> {
    let work = move || {
        let mut buffer = vec![0; PIECE];
        loop {
            let next = match stream.read(&mut buffer) {
                Ok(0) => Next::End,
                Ok(length) => Next::Output(fd, buffer.get(..length).unwrap_or_default().to_vec()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => Next::End,
            };
            let is_end = matches!(next, Next::End);
            // After the process has ended, this is discarded.
            if events.send(next).is_err() || is_end {
                return waiters.wake();
            }
            waiters.wake();
        }
    };
    thread::Builder::new().name("sandlite bridge".to_owned()).spawn(work).map(drop).map_err(complaint)
}

/// The command's standard input: a thread writes what the process reads.
struct Input {
    file: Arc<OpenFile>,
    sender: SyncSender<Vec<u8>>,
    is_busy: Arc<AtomicBool>,
}

impl Input {
    fn new(file: Arc<OpenFile>, mut stream: impl Write + Send + 'static, waiters: Arc<Waiters>) -> Result<Self, Stop> {
        let (sender, pieces) = sync_channel::<Vec<u8>>(1);
        let is_busy = Arc::new(AtomicBool::new(false));
        let busy = Arc::clone(&is_busy);
        let work = move || {
            for piece in pieces {
                if stream.write_all(&piece).is_err() {
                    return waiters.wake();
                }
                busy.store(false, Ordering::Release);
                waiters.wake();
            }
        };
        thread::Builder::new().name("sandlite bridge".to_owned()).spawn(work).map_err(complaint)?;
        Ok(Self { file, sender, is_busy })
    }

    fn is_ready(&self) -> bool {
        if self.is_busy.load(Ordering::Acquire) {
            return false;
        }
        self.file.register();
        self.file.ready(false).is_some()
    }

    // Passes a piece on; returns false at the end, or if the command no longer reads.
    fn feed(&self, state: &State) -> bool {
        let mut piece = vec![0; PIECE];
        let length = self.file.read(&state.job, &state.process, &mut piece).unwrap_or(0);
        piece.truncate(length);
        self.is_busy.store(true, Ordering::Release);
        length > 0 && self.sender.send(piece).is_ok()
    }
}

fn write(state: &State, fd: u32, mut bytes: &[u8]) -> Result<(), Stop> {
    let file = Arc::clone(state.descriptors.get(fd).map_err(Fault::from)?);
    while !bytes.is_empty() {
        let written = file.write(&state.job, &state.process, bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

fn say(state: &State, text: &str) -> Result<(), Stop> {
    match write(state, 2, text.as_bytes()) {
        // Without a standard error the message is dropped.
        Err(Stop::Complaint(..)) => Ok(()),
        said => said,
    }
}

// Bubblewrap reports a signal as shells do.
fn meaning(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exit(u8::try_from(code & 0xff).unwrap_or(FAILED)),
        (None, Some(signal)) => Ended::Signal(u32::try_from(signal).ok().and_then(Signal::from_raw).unwrap_or(Signal::KILL)),
        (None, None) => Ended::Exit(FAILED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-ISO-08.
    #[test]
    fn a_failed_copy_does_not_name_its_place_on_this_machine() {
        let error = Error::HostFile { path: "/host/place".into(), source: std::io::ErrorKind::StorageFull.into() };
        assert!(matches!(uncopied(error), Stop::Complaint(_, said) if said.contains("copy the tree") && !said.contains("/host")));
    }
}
