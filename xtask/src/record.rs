//! `cargo xtask record`: records the results of the machine's real bash for each case of `tests/bash`.
//!
//! `--check` compares instead of writing; `--shell PROGRAM` compares another shell with the recordings.
//! Knows how to run one case; the text format is `tests/bash/format.rs`.

#[path = "../../tests/bash/format.rs"]
#[expect(dead_code, reason = "the replay uses what the recorder does not")]
mod format;

use format::{Case, Entry, Recording, Topic};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The directory of every case, both when recording and in the sandbox: a path that may appear in output.
const DIRECTORY: &str = "/tmp/x";

/// A case that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The complete environment of a case.
const ENVIRONMENT: [(&str, &str); 8] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", "/home/user"),
    ("USER", "user"),
    ("LC_ALL", "C.UTF-8"),
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
    ("TERM", "dumb"),
    ("PWD", DIRECTORY),
];

/// Records the corpus, or with `--check` compares it: `record [--check] [--shell PROGRAM] [TOPIC…]`.
///
/// # Errors
/// Returns an error if a file cannot be read, has an invalid format, or a checked case differs.
pub fn run(args: &[String]) -> Result<()> {
    let wish = Wish::parse(args)?;
    let root = corpus();
    let _turn = take_turn()?;
    let mut tally = Tally::default();
    for path in topics(&root)? {
        let name = path.strip_prefix(&root)?.with_extension("").display().to_string();
        if !wish.wants(&name) {
            continue;
        }
        let topic = format::parse(&fs::read_to_string(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;
        tally.topics += 1;
        tally.cases += topic.cases.len();
        if wish.check {
            tally.differing += check(&wish, &name, &topic)?;
        } else {
            let recorded = record(&wish, &topic)?;
            let text = format::render(&recorded);
            if text != fs::read_to_string(&path)? {
                fs::write(&path, text)?;
                tally.rewritten += 1;
            }
        }
    }
    tally.report(wish.check)
}

struct Wish {
    check: bool,
    quiet: bool,
    shell: PathBuf,
    topics: Vec<String>,
}

impl Wish {
    fn parse(args: &[String]) -> Result<Self> {
        let mut wish = Self { check: false, quiet: false, shell: PathBuf::from("/bin/bash"), topics: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--check" => wish.check = true,
                "--quiet" => wish.quiet = true,
                "--shell" => {
                    let program = args.next().ok_or("missing program after `--shell`")?;
                    wish.shell = PathBuf::from(program);
                    wish.check = true;
                }
                option if option.starts_with('-') => return Err(format!("unknown option `{option}`").into()),
                topic => wish.topics.push(topic.to_string()),
            }
        }
        Ok(wish)
    }

    fn wants(&self, name: &str) -> bool {
        self.topics.is_empty() || self.topics.iter().any(|topic| name.contains(topic.as_str()))
    }
}

#[derive(Default)]
struct Tally {
    topics: usize,
    cases: usize,
    rewritten: usize,
    differing: usize,
}

impl Tally {
    fn report(&self, checked: bool) -> Result<()> {
        let Self { topics, cases, .. } = self;
        if !checked {
            println!("{cases} cases in {topics} topics recorded, {} files changed", self.rewritten);
            return Ok(());
        }
        println!("{} of {cases} cases in {topics} topics as recorded", cases - self.differing);
        if self.differing > 0 {
            return Err(format!("{} cases differ from their recording", self.differing).into());
        }
        Ok(())
    }
}

/// Returns the folder of the corpus, from the crate if Cargo built us, else from the current directory.
fn corpus() -> PathBuf {
    match option_env!("CARGO_MANIFEST_DIR") {
        Some(xtask) => Path::new(xtask).join("../tests/bash"),
        None => PathBuf::from("tests/bash"),
    }
}

fn topics(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension() == Some(OsStr::new("cases")) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// One directory serves all cases, so one recorder runs at a time. A wrong umask would be recorded silently.
fn take_turn() -> Result<fs::File> {
    let lock = fs::File::create(format!("{DIRECTORY}.lock"))?;
    lock.lock()?;
    empty_directory()?;
    let probe = Path::new(DIRECTORY).join("probe");
    fs::write(&probe, "")?;
    if fs::metadata(&probe)?.permissions().mode() & 0o777 != 0o644 {
        return Err("the corpus is recorded with `umask 022`: set it and retry".into());
    }
    Ok(lock)
}

fn record(wish: &Wish, topic: &Topic) -> Result<Topic> {
    let mut topic = topic.clone();
    for case in &mut topic.cases {
        if case.by_hand.is_none() {
            case.recorded = Some(perform(&wish.shell, case)?);
        }
    }
    Ok(topic)
}

/// Returns how many cases of the topic differ from their recording, and prints them.
fn check(wish: &Wish, name: &str, topic: &Topic) -> Result<usize> {
    let mut differing = 0;
    for case in &topic.cases {
        let other_shell = wish.shell != Path::new("/bin/bash");
        if case.by_hand.is_some() && !other_shell {
            continue;
        }
        let seen = perform(&wish.shell, case);
        if let (Ok(seen), Some(recorded)) = (&seen, &case.recorded)
            && seen == recorded
        {
            continue;
        }
        differing += 1;
        if wish.quiet {
            println!("{name}: {}", case.name);
            continue;
        }
        println!("{name}:{}: {}", case.line, case.name);
        match (&seen, &case.recorded) {
            (Err(error), _) => println!("  {error}"),
            (_, None) => println!("  not recorded yet"),
            (Ok(seen), Some(recorded)) => print_difference(recorded, seen),
        }
    }
    Ok(differing)
}

/// Prints the two recordings without their common prefix and suffix.
fn print_difference(recorded: &Recording, seen: &Recording) {
    let (recorded, seen) = (recorded.shown(), seen.shown());
    let (recorded, seen): (Vec<&str>, Vec<&str>) = (recorded.lines().collect(), seen.lines().collect());
    let alike = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let head = alike(&mut recorded.iter().zip(&seen));
    let tail = alike(&mut recorded.iter().rev().zip(seen.iter().rev()));
    let tail = tail.min(recorded.len().min(seen.len()) - head);
    for (mark, lines) in [('-', &recorded), ('+', &seen)] {
        for line in &lines[head..lines.len() - tail] {
            println!("  {mark} {line}");
        }
    }
}

/// Runs one case in a fresh directory.
fn perform(shell: &Path, case: &Case) -> Result<Recording> {
    empty_directory()?;
    for (path, bytes) in &case.files {
        let path = format::unescape(path).ok_or("invalid escape in a file name")?;
        let path = Path::new(DIRECTORY).join(OsStr::from_bytes(&path));
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(path, bytes)?;
    }
    let child = Command::new(shell)
        .arg0("bash")
        .arg("-c")
        .arg(&case.script)
        .current_dir(DIRECTORY)
        .env_clear()
        .envs(ENVIRONMENT)
        .stdin(if case.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let group = child.id();
    let Some((stdout, stderr, status)) = outcome(child, case.stdin.clone()) else {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status();
        return Err(format!("`{}` is still running after {TIMEOUT:?}", case.name).into());
    };
    let mut after = BTreeMap::new();
    collect(Path::new(DIRECTORY), &mut after)?;
    Ok(Recording::of(case, &stdout, &stderr, status, &after))
}

/// Returns the output and status of the child; `None` if it, or a child of its own that holds its output, exceeds the timeout.
fn outcome(mut child: Child, input: Option<Vec<u8>>) -> Option<(Vec<u8>, Vec<u8>, i32)> {
    let deadline = Instant::now() + TIMEOUT;
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        // A script that does not read its input breaks the pipe, which is valid.
        std::thread::spawn(move || drop(pipe.write_all(&input)));
    }
    let (stdout, stderr) = (drain(child.stdout.take()?), drain(child.stderr.take()?));
    let stdout = stdout.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
    let stderr = stderr.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
    loop {
        if let Some(status) = child.try_wait().ok()? {
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal))?;
            return Some((stdout, stderr, code));
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = send.send(bytes);
    });
    receive
}

fn empty_directory() -> Result<()> {
    if Path::new(DIRECTORY).exists() {
        fs::remove_dir_all(DIRECTORY)?;
    }
    Ok(fs::create_dir(DIRECTORY)?)
}

/// Returns every file, link and empty directory below `folder`, by its path relative to the case's directory.
fn collect(folder: &Path, after: &mut BTreeMap<Vec<u8>, Entry>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.strip_prefix(DIRECTORY)?.as_os_str().as_bytes().to_vec();
        let kind = fs::symlink_metadata(&path)?.file_type();
        if kind.is_symlink() {
            after.insert(name, Entry::Link(fs::read_link(&path)?.into_os_string().into_vec()));
        } else if kind.is_file() {
            after.insert(name, Entry::File(fs::read(&path)?));
        } else if kind.is_dir() {
            if fs::read_dir(&path)?.next().is_none() {
                after.insert(name, Entry::Directory);
            } else {
                collect(&path, after)?;
            }
        }
    }
    Ok(())
}
