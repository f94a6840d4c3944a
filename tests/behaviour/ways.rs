//! There are many ways to a sandbox's files and one view: a command, the library, the tools of an agent and copies to the host see
//! the same tree, and refuse the same changes.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use runtime::actions::{Context, Effect, Permission, actions};
use runtime::agent::{Edit, EditFile, ListFiles, ReadFile, WriteFile};
use runtime::{Builder, Command, Error, ExitStatus, FsError, Mount, Sandbox};
use serde_json::{Value, json};

use super::host;

/// Where the host's side of the two mounts is.
struct Lower {
    directory: tempfile::TempDir,
}

impl Lower {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, content) in [("a.txt", "lower a\n"), ("sub/b.txt", "lower b\n"), ("gone.txt", "lower gone\n")] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        std::os::unix::fs::symlink("sub/b.txt", directory.path().join("link")).unwrap();
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Everything that a view is made of: fixed world, rows, links, a pipe, a mount for reading, an overlay, the root's other name.
    fn sandbox(&self) -> Sandbox {
        let sandbox = builder()
            .mount(Mount::read_only(self.path(), "/ro"))
            .mount(Mount::overlay(self.path(), "/over"))
            .root_alias("data")
            .cwd("/data/work")
            .file("/work/notes", "rows\n")
            .open()
            .unwrap();
        let made = sandbox
            .bash(
                "ln -s notes link; ln -s nowhere dangling; ln -s /etc/passwd users; mkfifo pipe; mkdir -p deep/er; echo x > deep/er/x
                 echo upper > /over/a.txt; rm /over/gone.txt; echo new > /over/sub/new.txt",
            )
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&made.stderr), "");
        sandbox
    }
}

fn builder() -> Builder {
    Sandbox::builder().host(host())
}

/// Files of every part of the view. What a guest reads from them is what everybody reads.
const FILES: [&str; 15] = [
    "/etc/passwd",
    "/etc/hosts",
    "/usr/share/doc/python3/copyright",
    "/proc/version",
    "/work/notes",
    "/work/link",
    "/work/users",
    "/data/work/notes",
    "/data/work/deep/er/x",
    "/ro/a.txt",
    "/ro/link",
    "/ro/gone.txt",
    "/over/a.txt",
    "/over/sub/b.txt",
    "/over/sub/new.txt",
];

const ABSENT: [&str; 5] = ["/work/nothing", "/work/dangling", "/over/gone.txt", "/ro/new.txt", "/etc/shadow"];

const DIRECTORIES: [&str; 14] = [
    "/",
    "/etc",
    "/bin",
    "/usr",
    "/usr/local",
    "/proc",
    "/work",
    "/work/deep",
    "/data",
    "/data/work",
    "/ro",
    "/ro/sub",
    "/over",
    "/over/sub",
];

#[test]
fn every_way_in_reads_the_same_bytes() {
    let lower = Lower::new();
    let sandbox = lower.sandbox();
    for path in FILES {
        let expected = sandbox.bash(format!("cat {path}")).unwrap();
        assert!(expected.status.success() && !expected.stdout.is_empty(), "{path}");
        let expected = expected.stdout;
        assert_eq!(sandbox.fs().read(path).unwrap(), expected, "fs().read {path}");
        let mut copy = Vec::new();
        assert_eq!(sandbox.fs().read_to(path, &mut copy).unwrap(), expected.len() as u64, "fs().read_to {path}");
        assert_eq!(copy, expected, "fs().read_to {path}");
        assert_eq!(sandbox.fs().metadata(path).unwrap().size, expected.len() as u64, "fs().metadata {path}");
        assert!(sandbox.fs().exists(path).unwrap(), "fs().exists {path}");
        sandbox.fs().copy(path, "/work/copy").unwrap();
        assert_eq!(sandbox.bash("cat /work/copy").unwrap().stdout, expected, "fs().copy {path}");
        let window = sandbox.agent().read(&ReadFile { path: path.to_owned(), ..ReadFile::default() }).unwrap();
        assert_eq!(window.size, expected.len() as u64, "agent().read {path}");
        let first = String::from_utf8_lossy(&expected).lines().next().unwrap().to_owned();
        assert!(window.content.starts_with(&first), "agent().read {path}: {:?}", window.content);
        assert_eq!(window.version, sandbox.fs().version(path).unwrap(), "{path}");
    }
    for path in ABSENT {
        assert!(!sandbox.bash(format!("cat {path}")).unwrap().status.success(), "{path}");
        assert_eq!(sandbox.fs().read(path).unwrap_err().fs_error(), Some(FsError::NoEntry), "fs().read {path}");
        assert!(!sandbox.fs().exists(path).unwrap(), "fs().exists {path}");
        let read = sandbox.agent().read(&ReadFile { path: path.to_owned(), ..ReadFile::default() });
        assert_eq!(read.unwrap_err().fs_error(), Some(FsError::NoEntry), "agent().read {path}");
        assert_eq!(sandbox.fs().version(path).unwrap(), "none", "{path}");
    }
}

#[test]
fn every_way_in_lists_the_same_names() {
    let lower = Lower::new();
    let sandbox = lower.sandbox();
    for path in DIRECTORIES {
        let listed = sandbox.bash(format!("ls -A1 {path}/")).unwrap();
        let mut expected: Vec<String> = String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect();
        expected.sort();
        let names: Vec<String> = sandbox.fs().list(path).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, expected, "fs().list {path}");
        let request = ListFiles { path: Some(path.to_owned()), hidden: true, ..ListFiles::default() };
        let entries = sandbox.agent().list(&request).unwrap().entries;
        let names: Vec<String> = entries.iter().map(|entry| entry.path.rsplit('/').next().unwrap().to_owned()).collect();
        assert_eq!(names, expected, "agent().list {path}");
    }
}

#[test]
fn every_interface_returns_the_same_file() {
    let lower = Lower::new();
    let sandbox = lower.sandbox();
    for path in FILES.iter().chain(&DIRECTORIES).chain(&["/work/pipe", "/work/dangling", "/work/link", "/ro/link"]) {
        let said = sandbox.bash(format!("stat -c '%f %i %s %u' {path}")).unwrap();
        let stat = sandbox.fs().symlink_metadata(path).unwrap();
        let expected = format!("{:x} {} {} {}\n", stat.mode, stat.ino, stat.size, stat.uid);
        assert_eq!(String::from_utf8(said.stdout).unwrap(), expected, "{path}");
    }
}

#[test]
fn every_interface_rejects_changes_outside_the_sandbox() {
    let lower = Lower::new();
    let sandbox = lower.sandbox();
    for path in ["/etc/hosts", "/etc/new", "/usr/bin/tool", "/ro/a.txt", "/ro/new.txt"] {
        assert!(!sandbox.bash(format!("echo mine > {path}")).unwrap().status.success(), "{path}");
        let refused =
            |error: runtime::Error, way: &str| assert_eq!(error.fs_error(), Some(FsError::ReadOnly), "{way} {path}: {error}");
        refused(sandbox.fs().write(path, "mine").unwrap_err(), "fs().write");
        refused(sandbox.fs().append(path, "mine").unwrap_err(), "fs().append");
        refused(sandbox.fs().copy("/work/notes", path).unwrap_err(), "fs().copy");
        refused(sandbox.fs().write_from(path, b"mine".to_vec()).unwrap_err(), "fs().write_from");
        refused(sandbox.agent().write(&WriteFile::text(path, "mine")).unwrap_err(), "agent().write");
    }
    for path in ["/etc/hosts", "/usr/bin/tool"] {
        let error = builder().file(path, "mine").open().err().unwrap();
        assert_eq!(error.fs_error(), Some(FsError::ReadOnly), "seed {path}: {error}");
    }
    let error = sandbox.import_tree(lower.path(), "/etc").unwrap_err();
    assert_eq!(error.fs_error(), Some(FsError::ReadOnly), "{error}");
    assert_eq!(std::fs::read(lower.path().join("a.txt")).unwrap(), b"lower a\n");
}

#[test]
fn a_copy_on_the_host_equals_a_walk() {
    let lower = Lower::new();
    let sandbox = lower.sandbox();
    let target = tempfile::tempdir().unwrap();
    for directory in ["/over", "/ro", "/work", "/data/work"] {
        let copied = target.path().join(directory.replace('/', "_"));
        sandbox.export_tree(directory, &copied).unwrap();
        let mut found = BTreeMap::new();
        for file in sandbox.fs().walk(directory).unwrap().into_iter().filter(|found| found.stat.is_file()) {
            let relative = file.path[directory.len() + 1..].to_owned();
            found.insert(relative.clone(), std::fs::read(copied.join(relative)).unwrap());
        }
        let listed = sandbox.bash(format!("cd {directory}; find . -type f | sort | cut -c3-")).unwrap();
        let names: Vec<String> = String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(found.keys().cloned().collect::<Vec<_>>(), names, "{directory}");
        for (name, content) in found {
            assert_eq!(sandbox.fs().read(&format!("{directory}/{name}")).unwrap(), content, "{directory}/{name}");
        }
    }
    assert!(
        sandbox.fs().walk("/").unwrap().iter().all(|found| !found.path.starts_with("/etc") && !found.path.starts_with("/usr"))
    );
}

#[test]
fn a_diff_compares_an_overlay_before_and_after() {
    let lower = Lower::new();
    let sandbox = builder().mount(Mount::overlay(lower.path(), "/over")).open().unwrap();
    sandbox.bash("echo more >> /over/sub/b.txt").unwrap();
    let run = &sandbox.history(1).unwrap()[0];
    let change = &run.changes.as_ref().unwrap()[0];
    assert_eq!((&change["path"], &change["kind"]), (&"/over/sub/b.txt".into(), &"modified".into()));
    assert!(change["diff"].as_str().unwrap().contains("\n lower b\n+more\n"), "{change}");
}

// A relative path of a tool starts where commands start, under the root's other name too.
#[test]
fn a_relative_path_means_the_same_to_commands_and_tools() {
    let sandbox = builder().root_alias("data").cwd("/data/work").file("/work/notes", "here").open().unwrap();
    assert_eq!(sandbox.bash("cat notes").unwrap().stdout, b"here");
    let window = sandbox.agent().read(&ReadFile { path: "notes".to_owned(), ..ReadFile::default() }).unwrap();
    assert_eq!(window.content, "here");
    sandbox.agent().write(&WriteFile::text("made", "by a tool")).unwrap();
    assert_eq!(sandbox.bash("cat made /work/made").unwrap().stdout, b"by a toolby a tool");
}

#[test]
fn every_change_has_a_row_in_the_history() {
    let lower = Lower::new();
    let directory = tempfile::tempdir().unwrap();
    let open = |builder: Builder| builder.database(directory.path().join("a.db")).open().unwrap();
    let names = |sandbox: &Sandbox| -> Vec<String> {
        let runs = sandbox.history(100).unwrap().into_iter().rev();
        runs.filter(|run| run.name != "bash").map(|run| run.name).collect()
    };
    let sandbox = open(builder());
    assert_eq!(names(&sandbox), [""; 0], "a new sandbox begins with its directories");
    sandbox.session("main").unwrap().bash("x=1").unwrap();
    assert!(sandbox.session("main").unwrap().remove().unwrap());
    drop(sandbox);
    let sandbox = open(builder().mount(Mount::overlay(lower.path(), "/over")).cwd("/elsewhere").file("/seed", "s"));
    assert_eq!(names(&sandbox), ["delete_session", "create_directories", "seed"]);
    drop(sandbox);
    let sandbox = open(builder().mount(Mount::overlay(lower.path(), "/over")).cwd("/elsewhere"));
    assert_eq!(names(&sandbox).len(), 3, "nothing new, no row");
}

fn arguments(action: &str) -> Value {
    match action {
        "read_file" | "file_info" => json!({ "path": "/work/notes" }),
        "glob" | "grep" => json!({ "pattern": "*", "path": "/work", "literal": true }),
        "kv_get" => json!({ "key": "step" }),
        "diff" => json!({ "from": "HEAD~1" }),
        "blame" => json!({ "path": "/work/notes" }),
        _ => json!({}),
    }
}

// In memory and in a file, with something mounted and without.
#[test]
fn reading_never_waits_and_returns_the_committed_state() {
    let (lower, directory) = (Lower::new(), tempfile::tempdir().unwrap());
    let mounted = || builder().mount(Mount::overlay(lower.path(), "/over"));
    let builders = [
        builder(),
        mounted(),
        builder().database(directory.path().join("a.db")),
        mounted().database(directory.path().join("b.db")),
    ];
    for builder in builders {
        let sandbox = builder.cwd("/work").file("/work/notes", "committed\n").open().unwrap();
        sandbox.kv().set("step", 1).unwrap();
        sandbox.session("main").unwrap().bash("cd /work").unwrap();
        let mut running = sandbox.spawn(Command::bash("echo changed > /work/notes; echo ready; sleep 100")).unwrap();
        let mut ready = [0; 6];
        running.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        for action in actions().iter().filter(|action| action.effect == Effect::Reads) {
            assert!(!action.takes_turns(), "{}", action.name);
            // Those that run programs do so in copies.
            if action.permission == Permission::Execute {
                continue;
            }
            let mut arguments = arguments(action.name);
            if action.name == "glob" {
                arguments.as_object_mut().unwrap().remove("literal");
            }
            let answer = action.run(&Context::new(sandbox.clone()), arguments);
            assert!(!answer.is_error, "{}: {}", action.name, answer.text);
        }
        assert_eq!(sandbox.fs().read("/work/notes").unwrap(), b"committed\n");
        assert!(sandbox.fs().page(None).unwrap().files.iter().any(|(path, size)| path == "/work/notes" && *size == 10));
        let copy = tempfile::tempdir().unwrap();
        sandbox.export_tree("/work", copy.path()).unwrap();
        assert_eq!(std::fs::read(copy.path().join("notes")).unwrap(), b"committed\n");
        assert_eq!(sandbox.session("main").unwrap().directory().unwrap().as_deref(), Some("/work"));
        assert_eq!(sandbox.packages().list().unwrap(), []);
        assert_eq!(sandbox.sessions().unwrap(), ["main"]);
        assert!(sandbox.info().unwrap().files >= 1);
        running.kill();
        // Had something waited, then until the command met its limit.
        assert!(matches!(running.wait().unwrap().status, ExitStatus::Signaled(_)));
    }
}

#[test]
fn ten_lines_of_a_large_file_are_not_the_whole_file() {
    let sandbox = super::sandbox();
    sandbox.bash("seq 400000 > /tmp/large").unwrap();
    let read = |offset: u64| {
        let request = ReadFile { path: "/tmp/large".to_owned(), offset: Some(offset), limit: Some(10), ..ReadFile::default() };
        sandbox.agent().read(&request).unwrap()
    };
    let first = read(1);
    assert_eq!((first.total_lines, first.version), (Some(400_000), sandbox.fs().version("/tmp/large").unwrap()));
    let again = read(5);
    assert_eq!((again.content.lines().next(), again.total_lines), (Some("5"), Some(400_000)));
    // Cached data is not used once the file is another one.
    sandbox.bash("echo end >> /tmp/large").unwrap();
    let after = read(1);
    assert_eq!(after.total_lines, Some(400_001));
    assert_ne!(after.version, again.version);
    assert_eq!(after.version, sandbox.fs().version("/tmp/large").unwrap());
}

#[test]
fn a_window_of_a_very_large_file_has_a_version_without_the_rest_being_read() {
    let sandbox = super::sandbox();
    sandbox.bash("seq 1000000 > /tmp/large").unwrap();
    let read = |offset: u64| {
        let request = ReadFile { path: "/tmp/large".to_owned(), offset: Some(offset), limit: Some(3), ..ReadFile::default() };
        sandbox.agent().read(&request).unwrap()
    };
    let window = read(2);
    assert_eq!((window.content.as_str(), window.total_lines, window.truncated), ("2\n3\n4\n", None, true));
    assert_eq!(window.notes, ["more lines: continue with offset=5"]);
    assert_eq!(read(999_999).version, window.version);
    let edit = |expected: &str| {
        let edits = vec![Edit { old: "\n500000\n".into(), new: "\nhalf\n".into(), replace_all: false }];
        sandbox.agent().edit(&EditFile { path: "/tmp/large".into(), edits, expected_version: Some(expected.to_owned()) })
    };
    // Another content of the same length, and the version is another.
    sandbox.bash("printf x | dd of=/tmp/large bs=1 seek=100 conv=notrunc 2>/dev/null").unwrap();
    assert!(matches!(edit(&window.version), Err(Error::Stale { .. })));
    assert!(edit(&read(1).version).is_ok());
    // Once somebody has read all of it, its version is that of its content.
    let whole = sandbox.fs().version("/tmp/large").unwrap();
    assert_eq!((read(1).version, read(1).total_lines), (whole, Some(1_000_000)));
    // A repeating clock does not identify a file's content.
    sandbox.run(Command::bash("seq 1000000 > /tmp/large").deterministic(1)).unwrap();
    assert_eq!(read(1).total_lines, Some(1_000_000));
}
