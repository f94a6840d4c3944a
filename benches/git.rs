//! Versions of whole sandboxes: beside git on the same content, beside a sandbox that keeps none, and restored in large trees.
//!
//! `cargo bench --bench git -- [export] [commands] [echo] [restore]`. The bars: an export of 1 000 runs and 10 000 files in at
//! most 3x the time of `git fast-import` of the same commits; 200 commands in at most a twentieth of the time that they take with
//! `git add -A` and `git commit` after each, in a file that takes no more of the disk than the `.git` that git makes of them; a warm `echo` in at most
//! 1.15x the time that it takes in a sandbox that keeps no version; restoring one file in a large sandbox in at most twice the
//! time that it takes in a small one.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runtime::{Content, GitExport, GitForm, Host, Preset, Sandbox};

const FILES: usize = 10_000;
const RUNS: usize = 1_000;
const COMMANDS: usize = 200;
/// Number of rounds, of which the median is reported.
const ROUNDS: usize = 3;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let host = Host::builder().build().expect("the engine starts");
    if is_wanted("export") {
        export(&host);
    }
    if is_wanted("commands") {
        commands(&host);
    }
    if is_wanted("echo") {
        echo(&host);
    }
    if is_wanted("restore") {
        restore(&host);
    }
}

/// Returns whether a figure is within its bar, as words.
fn judge(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

fn git(directory: &Path, arguments: &[&str], input: Option<&Path>, output: Option<&Path>) {
    let mut command = Command::new("git");
    command.current_dir(directory).args(arguments).env("HOME", directory).env("GIT_CONFIG_NOSYSTEM", "1").stderr(Stdio::null());
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a");
    }
    command.stdin(input.map_or_else(Stdio::null, |path| File::open(path).expect("the stream is there").into()));
    command.stdout(output.map_or_else(Stdio::null, |path| File::create(path).expect("there is room").into()));
    assert!(command.status().expect("git is installed").success(), "git {arguments:?}");
}

fn middle(mut work: impl FnMut(usize) -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS).map(&mut work).collect();
    times.sort();
    times[ROUNDS / 2]
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn bytes_below(path: &Path) -> u64 {
    let entries = fs::read_dir(path).expect("it is a directory").map(|entry| entry.expect("it can be read"));
    entries
        .map(|entry| if entry.path().is_dir() { bytes_below(&entry.path()) } else { entry.metadata().map_or(0, |m| m.len()) })
        .sum()
}

/// Returns the space that the files below a directory take on the disk.
fn taken_below(path: &Path) -> u64 {
    let entries = fs::read_dir(path).expect("it is a directory").map(|entry| entry.expect("it can be read"));
    entries
        .map(|entry| match entry.path().is_dir() {
            true => taken_below(&entry.path()),
            false => entry.metadata().map_or(0, |metadata| metadata.blocks() * 512),
        })
        .sum()
}

fn file(number: usize, run: usize) -> (String, Vec<u8>) {
    let lines: String = (0..30)
        .map(|line| format!("file {number}, line {line}, written by run {}\n", if line == 15 { run } else { 0 }))
        .collect();
    (format!("/src/dir{}/file{number}.txt", number % 100), lines.into_bytes())
}

fn export(host: &Host) {
    let directory = tempfile::tempdir().expect("there is a place for files");
    let at = |name: String| directory.path().join(name);
    let database = at("a.db".to_owned());
    let sandbox = Sandbox::builder().host(host).preset(Preset::Permissive).database(&database).open().expect("it opens");
    let write = |numbers: &mut dyn Iterator<Item = usize>, run: usize| {
        let files = numbers.map(|number| file(number, run)).map(|(path, bytes)| (path, Content::from(bytes))).collect();
        sandbox.fs().write_all(files).expect("they fit");
    };
    write(&mut (0..FILES), 0);
    for run in 1..RUNS {
        write(&mut (0..5).map(|n| (run * 7919 + n * 1013) % FILES), run);
    }
    let ours = middle(|round| {
        let to = at(format!("ours{round}.git"));
        timed(|| {
            drop(
                sandbox
                    .versions()
                    .git_export(&to, &GitExport { path: "/src".to_owned(), form: GitForm::Bare, checkpoints: false })
                    .expect("it is written"),
            )
        })
    });
    let stream = at("stream".to_owned());
    git(&at("ours0.git".to_owned()), &["fast-export", "--all"], None, Some(&stream));
    let theirs = middle(|round| {
        let to = at(format!("theirs{round}.git"));
        fs::create_dir(&to).expect("there is room");
        git(&to, &["init", "-q", "--bare"], None, None);
        timed(|| git(&to, &["fast-import", "--quiet"], Some(&stream), None))
    });
    println!(
        "export of {RUNS} runs and {FILES} files: {ours:?}; git fast-import of the same: {theirs:?}; {:.2}x (bar 3x: {})",
        ratio(ours, theirs),
        judge(ratio(ours, theirs) < 3.0)
    );
    let (ours, theirs) = (bytes_below(&at("ours0.git".to_owned())), bytes_below(&at("theirs0.git".to_owned())));
    println!("  bytes: {ours}, {theirs} by git");
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn commands(host: &Host) {
    let directory = tempfile::tempdir().expect("there is a place for files");
    let scripts: Vec<String> = (0..COMMANDS)
        .map(|n| {
            format!("mkdir -p d{}; seq {} {} > d{}/f{n}; echo {n} >> log; sed -i s/7/seven/ d0/f0", n % 10, n, n + 300, n % 10)
        })
        .collect();
    let mut sizes = ((0, 0), (0, 0));
    let ours = middle(|round| {
        let path = directory.path().join(format!("{round}.db"));
        let sandbox = Sandbox::builder().host(host).database(&path).open().expect("it opens");
        let took = timed(|| scripts.iter().for_each(|script| drop(sandbox.bash(script).expect("it runs"))));
        sandbox.compact().expect("it is compacted");
        drop(sandbox);
        sizes.0 = fs::metadata(&path).map_or((0, 0), |metadata| (metadata.len(), metadata.blocks() * 512));
        took
    });
    let theirs = middle(|round| {
        let path = directory.path().join(format!("git{round}"));
        fs::create_dir(&path).expect("there is room");
        git(&path, &["init", "-q"], None, None);
        git(&path, &["config", "gc.auto", "0"], None, None);
        let took = timed(|| {
            for script in &scripts {
                Command::new("bash").args(["-c", script]).current_dir(&path).status().expect("bash is installed");
                git(&path, &["add", "-A"], None, None);
                git(&path, &["commit", "-q", "-m", script], None, None);
            }
        });
        sizes.1 = (bytes_below(&path.join(".git")), taken_below(&path.join(".git")));
        took
    });
    println!(
        "{COMMANDS} commands: {ours:?}; with bash and a git commit after each: {theirs:?}; {:.1}x faster (bar 20x: {})",
        ratio(theirs, ours),
        judge(ratio(theirs, ours) >= 20.0)
    );
    let ((ours, ours_on_disk), (theirs, theirs_on_disk)) = sizes;
    println!(
        "  on disk: {ours_on_disk} bytes of the .db, {theirs_on_disk} of .git (bar no larger: {})",
        judge(ours_on_disk <= theirs_on_disk)
    );
    println!("  lengths of the files: {ours} bytes, {theirs} of .git, which is compressed and shares equal files");
}

/// Runs two functions alternately, and returns the median of both.
fn alternately(rounds: usize, mut one: impl FnMut(), mut other: impl FnMut()) -> (Duration, Duration) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        a.push(timed(&mut one));
        b.push(timed(&mut other));
    }
    a.sort();
    b.sort();
    (a[rounds / 2], b[rounds / 2])
}

fn echo(host: &Host) {
    let directory = tempfile::tempdir().expect("there is a place for files");
    let open = |name: &str, past: u64| {
        let mut limits = Preset::Normal.limits();
        limits.past = runtime::ByteSize(past);
        let builder = Sandbox::builder().host(host).custom_limits(limits).database(directory.path().join(name));
        builder.open().expect("it opens")
    };
    let (with, without) = (open("with.db", 512 << 20), open("without.db", 0));
    for (name, script) in [("echo", "echo hi"), ("echo to a file", "echo hi > note"), ("append", "echo hi >> log")] {
        let run = |sandbox: &Sandbox| drop(sandbox.bash(script).expect("it runs"));
        let (a, b) = alternately(1000, || run(&with), || run(&without));
        println!(
            "warm {name}: {a:?} with versions, {b:?} without; {:.2}x (bar 1.15x: {})",
            ratio(a, b),
            judge(ratio(a, b) <= 1.15)
        );
    }
    let kept = [&with, &without].map(|sandbox| sandbox.versions().log(None, None, Some(1)).expect("it is read").len());
    assert_eq!(kept, [1, 0], "a sandbox without a budget for the past stores no version");
}

/// The time of `undo` and `restore` of one file in a sandbox with many files and keys, compared with one with few.
fn restore(host: &Host) {
    let open = |files: usize| {
        let sandbox = Sandbox::builder().host(host).preset(Preset::Permissive).open().expect("it opens");
        let written = (0..files).map(|number| file(number, 0)).map(|(path, bytes)| (path, Content::from(bytes))).collect();
        sandbox.fs().write_all(written).expect("they fit");
        for number in 0..files {
            sandbox.kv().set(&format!("key{number}"), number).expect("it fits");
        }
        sandbox.fs().write("/note", "one").expect("it fits");
        sandbox
    };
    let (large, small) = (open(FILES), open(10));
    let change = |sandbox: &Sandbox| {
        sandbox.fs().write("/note", "two").expect("it fits");
        sandbox.kv().set("key1", "two").expect("it fits");
    };
    let measure = |name: &str, back: &dyn Fn(&Sandbox)| {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            for (sandbox, times) in [(&large, &mut a), (&small, &mut b)] {
                change(sandbox);
                times.push(timed(|| back(sandbox)));
            }
        }
        a.sort();
        b.sort();
        let (a, b) = (a[25], b[25]);
        println!(
            "{name} of one file and one key: {a:?} beside {FILES} others, {b:?} beside 10; {:.2}x (bar 2x: {})",
            ratio(a, b),
            judge(ratio(a, b) <= 2.0)
        );
    };
    measure("undo", &|sandbox| drop(sandbox.versions().undo(2).expect("it is undone")));
    measure("restore", &|sandbox| drop(sandbox.versions().restore("HEAD~2", &[]).expect("it is restored")));
}
