//! Every verb that changes or makes something is killed at a random moment: everything it had acknowledged is there, trees
//! and files are whole or absent, nothing is left behind after the next use, and the verb works when it is repeated.
//!
//! 300 kills in CI; `cargo xtask attack kills` for more (`SANDLITE_KILLS`, and `SANDLITE_KILLS_SEED` to repeat a run).

mod cases;
mod push;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cases::{CASES, Case, Template};
use runtime::{Host, Sandbox};

/// Kills without a wish of the caller.
const KILLS: u64 = 300;
/// Killed at the same time: children sleep and sync as much as they compute.
const WORKERS: u64 = 4;
/// How the names of unfinished files start.
const UNFINISHED: &str = ".sandlite-new-";

/// Numbers that repeat with their seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }
}

/// How a child is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Kill,
    Interrupt,
    Terminate,
}

impl Signal {
    fn send(self, child: &mut Child) {
        let number = match self {
            Self::Kill => rustix::process::Signal::KILL,
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Terminate => rustix::process::Signal::TERM,
        };
        let pid = rustix::process::Pid::from_child(child);
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, number);
    }
}

/// Whole lines that a child printed: what it acknowledged.
fn lines(text: &str) -> Vec<String> {
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
}

fn start(case: &Case, directory: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
    command.current_dir(directory).args(case.args).stdout(Stdio::piped()).stdin(Stdio::piped());
    // Nobody reads what it complains about.
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    // A child that is killed early closes its end.
    let _ = child.stdin.as_mut().unwrap().write_all(case.stdin().as_bytes());
    child
}

/// Runs a verb to its end and returns what it printed.
fn run(case: &Case, directory: &Path) -> Vec<String> {
    let mut child = start(case, directory);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    for _ in 0..case.answers {
        out.read_line(&mut text).unwrap();
    }
    drop(child.stdin.take());
    out.read_to_string(&mut text).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{}: {status}: {text}", case.name);
    lines(&text)
}

/// Starts a verb, ends it after a while and returns what it had printed.
fn run_and_end(case: &Case, directory: &Path, signal: Signal, after: Duration) -> Vec<String> {
    let mut child = start(case, directory);
    let mut out = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        text
    });
    // Not a wait for something: the moment of death.
    thread::sleep(after);
    signal.send(&mut child);
    drop(child.stdin.take());
    child.wait().unwrap();
    lines(&reader.join().unwrap())
}

fn names(directory: &Path) -> BTreeSet<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

struct Suite {
    host: Host,
    template: Template,
}

impl Suite {
    fn open(&self, path: &Path) -> Sandbox {
        Sandbox::builder().host(&self.host).database(path).open().unwrap()
    }

    /// Opens and closes the sandbox of a case as anybody would; returns whether the effect is there.
    fn look(&self, case: &Case, directory: &Path, answers: &[String], what: &str) -> bool {
        let database = directory.join(case.database);
        if !database.exists() {
            assert_ne!(case.database, "a.db", "{what}: the database is gone");
            return false;
        }
        let sandbox = self.open(&database);
        assert_eq!(sandbox.check().unwrap(), [], "{what}");
        (case.effect)(directory, &sandbox, answers, what)
    }

    /// One verb, ended in the middle.
    fn round(&self, case: &Case, directory: &Path, signal: Signal, after: Duration, what: &str) {
        self.template.lay_out(directory);
        let before = names(directory);
        let answers = run_and_end(case, directory, signal, after);
        let is_partial_fine = signal != Signal::Kill && case.signals_stop_it;
        if is_partial_fine {
            let sandbox = self.open(&directory.join(case.database));
            assert_eq!(sandbox.check().unwrap(), [], "{what}");
            return;
        }
        let done = self.look(case, directory, &answers, what);
        assert!(done || answers.len() < case.answers, "{what}: acknowledged and not there: {answers:?}");
        let mut expected = before.clone();
        expected.extend(case.makes.filter(|_| done).map(str::to_owned));
        // A database that a verb creates on its way may be there before its effect is; `look` has opened it.
        expected
            .extend(Some(case.database).filter(|name| case.makes.is_none() && directory.join(name).exists()).map(str::to_owned));
        let mut found = names(directory);
        if case.makes.is_some() {
            found.retain(|name| !name.starts_with(UNFINISHED));
        }
        // The database did not exist yet, so no process could open it and remove its lock.
        if !directory.join(case.database).exists() {
            found.remove(&format!("{}-running", case.database));
        }
        assert_eq!(found, expected, "{what}: left behind");
        // Once more, to the end; or something else that makes a file there.
        if done {
            let page = directory.join("swept.html");
            run(&Case::page(case.database), directory);
            fs::remove_file(page).unwrap();
        } else {
            let answers = run(case, directory);
            assert!(self.look(case, directory, &answers, what), "{what}: repeated");
            expected.extend([case.makes.unwrap_or(case.database).to_owned()]);
            if case.makes.is_none() {
                run(&Case::page(case.database), directory);
                fs::remove_file(directory.join("swept.html")).unwrap();
            }
        }
        assert_eq!(names(directory), expected, "{what}: left behind after the next use");
    }
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// T-REL-01
#[test]
fn killed_verbs_are_done_or_undone_and_leave_nothing() {
    let kills = from_environment("SANDLITE_KILLS").unwrap_or(KILLS);
    let seed = from_environment("SANDLITE_KILLS_SEED").unwrap_or(0x5EED);
    let host = Host::builder().build().unwrap();
    let suite = Suite { template: Template::make(&host), host };
    // The duration of each without a kill.
    let times: Vec<Duration> = CASES
        .iter()
        .map(|case| {
            let directory = tempfile::tempdir().unwrap();
            suite.template.lay_out(directory.path());
            let began = Instant::now();
            let answers = run(case, directory.path());
            let took = began.elapsed();
            assert_eq!(answers.len(), case.answers, "{}: {answers:?}", case.name);
            assert!(suite.look(case, directory.path(), &answers, case.name), "{}: it did nothing", case.name);
            took
        })
        .collect();
    let (next, undone) = (AtomicU64::new(0), Mutex::new(vec![0u64; CASES.len()]));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= kills {
                        return;
                    }
                    let index = usize::try_from(number).unwrap() % CASES.len();
                    let (case, time) = (&CASES[index], times[index]);
                    let mut random = Random((seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1);
                    random.next();
                    let signal = match random.below(6) {
                        0 => Signal::Interrupt,
                        1 => Signal::Terminate,
                        _ => Signal::Kill,
                    };
                    // A little beyond its end: the very last steps are as interesting as the first.
                    let after = Duration::from_nanos(random.below(u64::try_from(time.as_nanos()).unwrap() * 5 / 4));
                    let directory = tempfile::tempdir().unwrap();
                    let what = format!("{} ({number}), {signal:?} after {after:?}", case.name);
                    suite.round(case, directory.path(), signal, after, &what);
                    undone.lock().unwrap_or_else(PoisonError::into_inner)[index] += 1;
                }
            });
        }
    });
    let rounds: u64 = undone.lock().unwrap_or_else(PoisonError::into_inner).iter().sum();
    assert_eq!(rounds, kills);
    println!("{kills} kills, 0 lost, 0 left behind");
}
