//! Runs of skills: warm beside the same script in a sandbox of its own, beside a container with the machine's Python, in a catalog
//! of 10 000 skills, and a thousand times.
//!
//! `cargo bench --bench skills -- [warm] [catalog] [thousand]`. The bars: a warm call takes at most 1 ms (bash) and 4 ms (Python)
//! beyond the script's own time; a call is at least 10x faster than bubblewrap with the machine's Python, Skillbox's floor; 10 000
//! skills are listed in 50 ms and a call takes as long as beside one; 1 000 runs leave no file, descriptor or thread behind.

use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use runtime::{Command, Host, Preset, Sandbox};
use skills::{Catalog, File, Needs, Package, Request, Skills};

const BASH: &str = "echo '{}' > out/output.json";
const PYTHON: &str = "import json, os\njson.dump({}, open(os.environ['SANDBOX_OUTPUT'], 'w'))";
/// The machine's own Python: a shim that selects a version would add its own start-up.
const NATIVE: &str = "/usr/bin/python3";
const ROUNDS: usize = 10;
/// Calls of one kind in a row: after a foreign process the first ones find cold caches, and are not warm.
const IN_A_ROW: usize = 20;
const SKILLS: usize = 10_000;
/// Set in a process with its own directory for temporary files.
const OWN: &str = "SANDLITE_BENCH_OWN";

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let host = Host::builder().build().expect("the engine starts");
    if is_wanted("warm") {
        warm(&host);
    }
    if is_wanted("catalog") {
        catalog(&host);
    }
    if is_wanted("thousand") {
        thousand(&host);
    }
}

fn judge(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn package(name: &str, entry: &str, script: &str) -> Package {
    let head = format!("---\nname: {name}\ndescription: A skill that does something useful with its input.\n---\n");
    Package::from_files(vec![File::new("SKILL.md", head), File::new(entry, script)]).expect("the skill is valid")
}

fn skills(catalog: Catalog, host: &Host) -> Skills {
    let skills = Skills::new(catalog, host, Preset::Normal.limits());
    for (name, entry, script) in [("bash", "main.sh", BASH), ("python", "main.py", PYTHON)] {
        skills.push(&package(name, entry, script), Needs::default()).expect("it is stored");
    }
    skills
}

fn call(skills: &Skills, name: &str) {
    let result = skills.run(Request::new(name).input(r#"{"a": 1}"#)).expect("it runs");
    assert_eq!(result.output.as_deref(), Some("{}"), "{result:?}");
}

/// The same script without the contract: no input, no output file, no fork.
fn alone(host: &Host) -> Sandbox {
    let builder = Sandbox::builder().host(host).cwd("/sandbox").env("SANDBOX_OUTPUT", "/sandbox/out/output.json");
    builder.file("/sandbox/out/x", "").file("/sandbox/main.sh", BASH).file("/sandbox/main.py", PYTHON).open().expect("it opens")
}

/// A container around the machine's Python, with the same script.
fn contained(directory: &Path) -> Option<Process> {
    std::fs::write(directory.join("main.py"), PYTHON).expect("there is room");
    let mut process = Process::new("bwrap");
    process.args(["--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc", "--bind"]);
    process.arg(directory).args(["/tmp/work", "--unshare-all", "--die-with-parent", "--chdir", "/tmp/work"]);
    process.args(["--setenv", "SANDBOX_OUTPUT", "/tmp/work/output.json", NATIVE, "/tmp/work/main.py"]);
    process.stdout(Stdio::null()).stderr(Stdio::null());
    process.status().is_ok_and(|status| status.success()).then_some(process)
}

fn warm(host: &Host) {
    let skills = skills(Catalog::in_memory().expect("there is memory"), host);
    let base = alone(host);
    let directory = tempfile::tempdir().expect("there is a place for files");
    let mut container = contained(directory.path());
    for (name, bar) in [("bash", 1.0), ("python", 4.0)] {
        let command = || match name {
            "bash" => Command::bash_with(["/sandbox/main.sh"]),
            _ => Command::python_with(["/sandbox/main.py"]),
        };
        (0..20).for_each(|_| call(&skills, name));
        let (mut calls, mut scripts, mut floor) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            calls.extend((0..IN_A_ROW).map(|_| timed(|| call(&skills, name))));
            scripts.extend((0..IN_A_ROW).map(|_| timed(|| drop(base.run(command()).expect("it runs")))));
            if let Some(container) = &mut container {
                floor.extend((0..IN_A_ROW).map(|_| timed(|| assert!(container.status().expect("bwrap is installed").success()))));
            }
        }
        let (call, script) = (millis(median(calls)), millis(median(scripts)));
        let beyond = call - script;
        println!(
            "{name}: a warm call {call:.2} ms, its script alone {script:.2} ms, beyond it {beyond:.2} ms (bar {bar} ms: {})",
            judge(beyond <= bar)
        );
        match floor.is_empty() {
            true => println!("  bubblewrap with {NATIVE} does not work here: not measured"),
            false => {
                let floor = millis(median(floor));
                let ratio = floor / call;
                println!("  bubblewrap with {NATIVE}: {floor:.2} ms; {ratio:.1}x faster (bar 10x: {})", judge(ratio >= 10.0));
            }
        }
    }
}

fn catalog(host: &Host) {
    let directory = tempfile::tempdir().expect("there is a place for files");
    let open = |name: &str| Catalog::open(&directory.path().join(name)).expect("it opens");
    let (few, many) = (skills(open("few"), host), skills(open("many"), host));
    let filling = timed(|| {
        for number in 0..SKILLS {
            let package = package(&format!("skill-{number}"), "main.sh", BASH);
            many.catalog().push(&package, false, None).expect("it is stored");
        }
    });
    let listing =
        median((0..20).map(|_| timed(|| assert_eq!(many.catalog().list().expect("it is read").len(), SKILLS + 2))).collect());
    // As a program that has just started does it.
    let opening = median((0..20).map(|_| timed(|| drop(open("many").list().expect("it is read")))).collect());
    println!(
        "{SKILLS} skills, pushed in {filling:.1?}: listed in {:.1} ms, with opening the catalog {:.1} ms (bar 50 ms: {})",
        millis(listing),
        millis(opening),
        judge(millis(opening) < 50.0)
    );
    for name in ["bash", "python"] {
        (0..20).for_each(|_| [&few, &many].into_iter().for_each(|skills| call(skills, name)));
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS * IN_A_ROW {
            a.push(timed(|| call(&many, name)));
            b.push(timed(|| call(&few, name)));
        }
        let (a, b) = (millis(median(a)), millis(median(b)));
        println!("  a warm call of `{name}`: {a:.2} ms, beside one other {b:.2} ms (bar 1.1x: {})", judge(a / b <= 1.1));
    }
}

/// Counts what this process holds: descriptors, threads, and files in the catalog and the directory for temporary files.
fn held(directory: &Path) -> (usize, usize, usize) {
    let entries = |path: &Path| std::fs::read_dir(path).map_or(0, Iterator::count);
    let files = entries(directory) + entries(&std::env::temp_dir());
    (entries(Path::new("/proc/self/fd")), entries(Path::new("/proc/self/task")), files)
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn thousand(host: &Host) {
    // Other programs use the machine's directory for temporary files at the same time, so a second process has its own.
    if std::env::var_os(OWN).is_none() {
        let directory = tempfile::tempdir().expect("there is a place for files");
        let mut process = Process::new(std::env::current_exe().expect("this program has a path"));
        process.arg("thousand").env("TMPDIR", directory.path()).env(OWN, "1");
        assert!(process.status().expect("this program starts").success());
        return;
    }
    let directory = tempfile::tempdir().expect("there is a place for files");
    let skills = skills(Catalog::open(&directory.path().join("catalog")).expect("it opens"), host);
    let place = directory.path().join("catalog");
    for _ in 0..50 {
        ["bash", "python"].into_iter().for_each(|name| call(&skills, name));
    }
    let (before, memory) = (held(&place), resident());
    let took = timed(|| {
        for _ in 0..500 {
            ["bash", "python"].into_iter().for_each(|name| call(&skills, name));
        }
    });
    let after = held(&place);
    println!(
        "1 000 runs in {took:.1?}: descriptors, threads and files {before:?} before, {after:?} after (bar the same: {}); memory {} \
         then {} KB",
        judge(after <= before),
        memory,
        resident()
    );
}
