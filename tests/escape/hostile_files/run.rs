//! Runs one verb on one hostile database, and looks at what it did.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// The limits of a process.
const MEMORY: u64 = 1_200_000_000;
const TIME: Duration = Duration::from_secs(45);
/// Maximum size of its output, and of its files: several times the largest of the databases.
const BYTES: u64 = 512 << 20;

/// A verb and its arguments.
pub struct Verb {
    pub name: &'static str,
    args: &'static [&'static str],
    input: &'static str,
}

const fn verb(name: &'static str, args: &'static [&'static str]) -> Verb {
    Verb { name, args, input: "" }
}

const LOOK: &str =
    "ls -laR / | tail -c 9999; cat /home/user/a/large | wc -c; find / | wc -l; cat /home/user/* /home/user/a/* > /dev/null
    du -s /; stat /home/user/soft; readlink /home/user/soft; grep -r small /home/user | head -c 9999";
const CHANGE: &str = "cd /home/user; rm -rf a; mkdir -p q/w; echo x > q/f; cp -r . /tmp/copy; mv q r; echo more >> notes
    truncate -s 5 hard; mv notes soft; ln -s x y; rmdir r/w";
const PYTHON: &str = "import os
for top, _, files in os.walk('/'):
    for name in files:
        try: print(len(open(os.path.join(top, name), 'rb').read(5000000)))
        except OSError as error: print(error)";
const MCP: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_files","arguments":{"path":"/","depth":20,"hidden":true}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"grep","arguments":{"pattern":"x","path":"/"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":4,"method":"resources/list"}"#,
    "\n",
);

/// Every verb that opens a database.
pub const VERBS: &[Verb] = &[
    verb("bash-look", &["bash", "-c", LOOK]),
    verb("bash-change", &["bash", "-c", CHANGE]),
    verb("bash-session", &["bash", "--session", "s", "-c", "echo $x; x=2"]),
    verb("python", &["python", "-c", PYTHON]),
    verb("ls", &["fs", "ls", "-l", "/home/user"]),
    verb("ls-json", &["--json", "fs", "ls", "/home/user/a"]),
    verb("cat", &["fs", "cat", "/home/user/a/large"]),
    verb("get", &["fs", "get", "/home/user", "out"]),
    verb("get-all", &["fs", "get", "/", "out"]),
    verb("get-file", &["fs", "get", "/home/user/a/large", "out"]),
    verb("get-here", &["fs", "get", "/home/user/notes"]),
    verb("put", &["fs", "put", "in.txt", "/home/user/in.txt"]),
    verb("rm", &["fs", "rm", "-r", "/home/user/a"]),
    verb("mkdir", &["fs", "mkdir", "/home/user/new/deep"]),
    verb("mv", &["fs", "mv", "/home/user/a", "/tmp"]),
    verb("cp", &["fs", "cp", "-r", "/home/user/a", "/copy"]),
    verb("stat", &["fs", "stat", "/home/user/a/large"]),
    verb("find", &["fs", "find", "/"]),
    verb("find-json", &["--json", "fs", "find", "/"]),
    verb("du", &["fs", "du", "/"]),
    verb("tree", &["fs", "tree", "/"]),
    verb("kv-get", &["kv", "get", "key"]),
    verb("kv-set", &["kv", "set", "key", "2"]),
    verb("kv-keys", &["kv", "keys"]),
    verb("kv-delete", &["kv", "delete", "key"]),
    verb("history", &["history"]),
    verb("history-json", &["--json", "history", "--limit", "1000"]),
    verb("history-show", &["history", "show", "1"]),
    verb("log", &["log"]),
    verb("diff", &["diff", "v0"]),
    verb("show", &["show"]),
    verb("blame", &["blame", "/home/user/notes"]),
    verb("changes", &["changes", "v0", "--patch"]),
    verb("apply", &["apply", "out.d", "--path", "/home/user", "--since", "v0"]),
    verb("bisect", &["bisect", "--good", "v0", "--", "test", "-e", "/x"]),
    verb("restore", &["restore", "v0"]),
    verb("replay", &["replay", "x.db"]),
    verb("info", &["info"]),
    verb("info-html", &["info", "--html", "out"]),
    verb("check", &["check"]),
    verb("export", &["export", "out"]),
    verb("export-digest", &["export", "--digest", "out"]),
    verb("fork", &["fork", "out"]),
    verb("import", &["--db", "out", "import", "x.db"]),
    verb("pip", &["pip", "list"]),
    verb("log-all", &["log", "--stat", "--digest"]),
    verb("log-path", &["log", "/home/user/changed"]),
    verb("at-ls", &["--at", "v1", "fs", "ls", "-l", "/home/user"]),
    verb("at-get", &["--at", "HEAD~1", "fs", "get", "/", "out"]),
    verb("at-bash", &["--at", "HEAD~1", "bash", "-c", LOOK]),
    verb("at-kv", &["--at", "HEAD~1", "kv", "get", "key"]),
    verb("undo", &["undo", "2"]),
    verb("prune", &["prune", "--keep-runs", "1"]),
    verb("checkpoint", &["checkpoint", "c"]),
    verb("git-export", &["git", "export", "out.git"]),
    verb("watch", &["watch", "--from", "v0", "--once"]),
    Verb { name: "mcp", args: &["mcp"], input: MCP },
];

/// The same database as a base, under another sandbox: one of these for every lie.
pub const BASES: &[Verb] = &[
    verb("base-look", &["--db", "out", "bash", "--base", "x.db", "-c", LOOK]),
    verb("base-change", &["--db", "out", "bash", "--base", "x.db", "-c", CHANGE]),
    verb("base-mount", &["--db", "out", "python", "--mount", "db:x.db:/m", "-c", PYTHON]),
];

/// A violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    Memory,
    Time,
    Flood,
    Escape,
    Crash,
}

impl Bad {
    pub const ALL: [Self; 5] = [Self::Memory, Self::Time, Self::Flood, Self::Escape, Self::Crash];
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "too much memory",
            Self::Time => "too long",
            Self::Flood => "too many bytes printed or written",
            Self::Escape => "something outside was changed",
            Self::Crash => "crashed",
        })
    }
}

/// The result of a case.
pub struct Seen {
    pub bad: Option<Bad>,
    pub success: bool,
    pub memory: u64,
    pub took: Duration,
    /// The beginning of its complaints.
    pub said: String,
}

/// Runs a verb in a copy of a directory.
pub fn case(made: &Path, verb: &Verb) -> Seen {
    let case = tempfile::tempdir().unwrap();
    let top = case.path();
    let (work, canary) = (top.join("work"), top.join("canary"));
    for directory in ["canary", "canary/.ssh", "temporary"] {
        fs::create_dir(top.join(directory)).unwrap();
    }
    fs::write(canary.join(".bashrc"), "precious").unwrap();
    fs::write(canary.join(".ssh/key"), "secret").unwrap();
    // Links, pipes and holes stay what they are.
    let copied = Command::new("cp").args(["-a", "--sparse=auto"]).arg(made).arg(&work).status().unwrap();
    assert!(copied.success());
    fs::write(work.join("in.txt"), "input").unwrap();
    fs::create_dir(work.join("out.d")).unwrap();
    fs::write(top.join("input"), verb.input).unwrap();
    let before = (tree(&canary), stored(top));

    let started = Instant::now();
    let mut child = start(top, &work, verb);
    let (bad, memory, status) = watch(&mut child, top, started, before.1);
    let took = started.elapsed();
    let said = fs::read(top.join("stderr")).unwrap_or_default();
    let said = String::from_utf8_lossy(said.get(..400).unwrap_or(&said)).replace('\n', " ");
    let crashed =
        status.is_some_and(|status| status.signal().is_some() || status.code() == Some(101)) || said.contains("panicked");
    let outside = tree(&canary) != before.0 || has_strangers(top, &work) || Path::new("/tmp/sandlite-hostile-planted").exists();
    let flooded = stored(top).saturating_sub(before.1) > BYTES;
    let bad = match () {
        () if outside => Some(Bad::Escape),
        () if bad.is_some() => bad,
        () if flooded => Some(Bad::Flood),
        () if crashed => Some(Bad::Crash),
        () => None,
    };
    Seen { bad, success: status.is_some_and(|status| status.success()), memory, took, said }
}

fn start(top: &Path, work: &Path, verb: &Verb) -> Child {
    let mut command = Command::new(super::program());
    if !verb.args.contains(&"--db") {
        command.args(["--db", "x.db"]);
    }
    let cache = std::env::var_os("SANDLITE_CACHE").map(PathBuf::from).unwrap_or_else(|| {
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        base.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache")).join("sandlite")
    });
    command
        .args(verb.args)
        .current_dir(work)
        .env_clear()
        .envs([("HOME", top.join("canary")), ("TMPDIR", top.join("temporary")), ("SANDLITE_CACHE", cache)])
        .stdin(File::open(top.join("input")).unwrap())
        .stdout(File::create(top.join("stdout")).unwrap())
        .stderr(File::create(top.join("stderr")).unwrap());
    command.spawn().unwrap()
}

// Waits for the end, and ends what takes too much.
fn watch(child: &mut Child, top: &Path, started: Instant, before: u64) -> (Option<Bad>, u64, Option<ExitStatus>) {
    let mut memory = 0;
    let mut looks = 0u32;
    loop {
        memory = memory.max(peak(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            return (None, memory, Some(status));
        }
        looks += 1;
        let flooded = looks.is_multiple_of(64) && stored(top).saturating_sub(before) > BYTES;
        let bad = match () {
            () if memory > MEMORY => Some(Bad::Memory),
            () if started.elapsed() > TIME => Some(Bad::Time),
            () if flooded => Some(Bad::Flood),
            () => None,
        };
        if bad.is_some() {
            child.kill().unwrap();
            child.wait().unwrap();
            return (bad, memory, None);
        }
        // The end of a process is looked for, not slept through: most take some milliseconds.
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The most memory that a process has had so far.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}

/// Bytes that a directory takes on the disk.
fn stored(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => stored(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    });
    bytes.sum()
}

/// Everything below a directory: paths with their content, or what they are.
fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(tree(&entry.path()));
        }
        let content = if kind.is_file() { fs::read(entry.path()).unwrap() } else { format!("{kind:?}").into_bytes() };
        found.insert(entry.path(), content);
    }
    found
}

// Whether there is a file that no verb creates.
fn has_strangers(top: &Path, work: &Path) -> bool {
    let is_known = |name: &str| {
        ["x.db", "out", "in.txt", "notes"].iter().any(|known| name.starts_with(known)) || name.starts_with(".sqlite-fs-import")
    };
    let names = |directory: &Path| {
        fs::read_dir(directory).unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned())
    };
    let known = ["canary", "work", "temporary", "input", "stdout", "stderr"];
    names(top).any(|name| !known.contains(&name.as_str())) || names(work).any(|name| !is_known(&name))
}
