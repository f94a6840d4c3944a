//! Actions: one table of what can be done, for every interface.

use std::sync::{Arc, Mutex};

use runtime::actions::{Answer, Context, find};
use runtime::{Sandbox, Stream};
use serde_json::{Value, json};

use super::{sandbox, strict};

fn act(sandbox: &Sandbox, name: &str, arguments: Value) -> Answer {
    find(name).unwrap().run(&Context::new(sandbox.clone()), arguments)
}

#[track_caller]
fn check_text(sandbox: &Sandbox, name: &str, arguments: Value, expected: &str) {
    assert_eq!(act(sandbox, name, arguments.clone()).text, expected, "{name} {arguments}");
}

#[test]
fn a_copy_into_a_directory_is_placed_inside_and_directories_need_recursive() {
    let sandbox = sandbox();
    sandbox.bash("mkdir -p /t/d /into; echo x > /t/d/f; chmod 640 /t/d/f; ln -s d/f /t/l").unwrap();
    check_text(&sandbox, "copy_files", json!({ "from": "/t/d/f", "to": "/g" }), "copied /t/d/f to /g");
    check_text(&sandbox, "copy_files", json!({ "from": "/t/d/f", "to": "/into" }), "copied /t/d/f to /into/f");
    check_text(&sandbox, "copy_files", json!({ "from": "/t", "to": "/into/", "recursive": true }), "copied /t to /into/t");
    check_text(&sandbox, "copy_files", json!({ "from": "/t", "to": "/u" }), "error: cannot copy `/t`: is a directory");
    check_text(
        &sandbox,
        "copy_files",
        json!({ "from": "/no", "to": "/u" }),
        "error: cannot copy `/no`: no such file or directory",
    );
    let itself = json!({ "from": "/t", "to": "/t/inside", "recursive": true });
    check_text(&sandbox, "copy_files", itself, "error: cannot copy `/t` into itself");
    let seen = sandbox.bash("stat -c '%a %n' /into/t/d/f; readlink /into/t/l; ls /").unwrap();
    assert!(seen.stdout.starts_with(b"640 /into/t/d/f\nd/f\n"), "{seen:?}");
    assert!(!sandbox.fs().exists("/u").unwrap());
}

#[test]
fn a_copy_expects_the_version_of_the_file_that_it_replaces() {
    let sandbox = sandbox();
    let fs = sandbox.fs();
    fs.write("/new", "new").unwrap();
    fs.write("/into/new", "old").unwrap();
    let copy = |to: &str, version: &str| {
        act(&sandbox, "copy_files", json!({ "from": "/new", "to": to, "expected_version": version })).text
    };
    let old = fs.version("/into/new").unwrap();
    for to in ["/into", "/into/", "/into/new"] {
        let refused = copy(to, "none");
        assert!(refused.starts_with("error: `/into/new` has version "), "{to}: {refused}");
    }
    assert_eq!(fs.read("/into/new").unwrap(), b"old");
    assert_eq!(copy("/into", &old), "copied /new to /into/new");
    assert_eq!(fs.read("/into/new").unwrap(), b"new");
    assert!(copy("/into/", &old).starts_with("error: "));
    fs.create_dir_all("/empty").unwrap();
    assert_eq!(copy("/empty", "none"), "copied /new to /empty/new");
}

#[test]
fn a_copy_of_a_parent_directory_stays_in_the_destination() {
    let sandbox = sandbox();
    sandbox.bash("mkdir -p /t/d /into; echo x > /t/f").unwrap();
    let parent = json!({ "from": "/t/d/..", "to": "/into", "recursive": true });
    check_text(&sandbox, "copy_files", parent, "copied /t/d/.. to /into");
    assert!(sandbox.fs().exists("/into/f").unwrap() && !sandbox.fs().exists("/f").unwrap());
    sandbox.fs().write("/into/g", "y").unwrap();
    let root = json!({ "from": "/into/g", "to": "/into/.." });
    check_text(&sandbox, "copy_files", root, "copied /into/g to /into/../g");
    let root = json!({ "from": "/into/f", "to": "//." });
    check_text(&sandbox, "copy_files", root, "copied /into/f to /f");
}

#[test]
fn a_slash_after_a_copied_directory_changes_nothing() {
    let sandbox = sandbox();
    let fs = sandbox.fs();
    fs.write("/a/b/c", "text").unwrap();
    fs.copy_dir_all("/a/", "/d").unwrap();
    assert_eq!(fs.read("/d/b/c").unwrap(), b"text");
    fs.create_dir_all("/e").unwrap();
    assert_eq!(fs.copy_into("/a/", "/e", true).unwrap(), "/e/a");
    assert_eq!(fs.read("/e/a/b/c").unwrap(), b"text");
}

#[test]
fn a_copy_that_does_not_fit_copies_nothing() {
    let sandbox = strict();
    sandbox.fs().create_dir_all("/t").unwrap();
    for name in 0..3 {
        sandbox.fs().write(&format!("/t/{name}"), vec![b'x'; 15 << 20]).unwrap();
    }
    let answer = act(&sandbox, "copy_files", json!({ "from": "/t", "to": "/u", "recursive": true }));
    assert!(answer.is_error && !sandbox.fs().exists("/u").unwrap(), "{}", answer.text);
}

#[test]
fn trees_are_found_counted_and_drawn() {
    let sandbox = sandbox();
    sandbox.bash("mkdir -p /t/d; echo x > /t/d/a.py; ln /t/d/a.py /t/b.txt; ln -s d /t/l").unwrap();
    check_text(&sandbox, "find_files", json!({ "path": "/t", "name": "*.{py,txt}" }), "/t/b.txt\n/t/d/a.py");
    check_text(&sandbox, "find_files", json!({ "path": "/t", "kind": "symlink" }), "/t/l");
    check_text(&sandbox, "find_files", json!({ "path": "/t", "name": "z*" }), "no files match");
    check_text(
        &sandbox,
        "find_files",
        json!({ "name": "[" }),
        "error: invalid pattern `[`: unclosed character class; missing ']'",
    );
    check_text(&sandbox, "disk_usage", json!({ "path": "/t" }), "/t: 2 bytes, 1 file, 2 directories");
    check_text(&sandbox, "tree", json!({ "path": "/t" }), "/t\n├── b.txt\n├── d\n│   └── a.py\n└── l\n\n1 directory, 3 files");
    check_text(&sandbox, "tree", json!({ "path": "/no" }), "error: cannot walk `/no`: no such file or directory");
}

// T-DOS-03
#[test]
fn a_large_tree_is_truncated() {
    let sandbox = sandbox();
    sandbox.bash("mkdir /many; cd /many; seq 2000 | split -l1 -a4 - n").unwrap();
    for name in ["find_files", "tree"] {
        let answer = act(&sandbox, name, json!({ "path": "/many" }));
        assert_eq!((&answer.data["truncated"], answer.data["found"].as_array().unwrap().len()), (&json!(true), 1000));
        assert!(answer.text.ends_with("\n[only the first 1000 entries: search a subdirectory]") && !answer.is_error);
    }
}

#[test]
fn a_command_is_followed_and_ended_from_outside() {
    let context = Context::new(sandbox());
    let (cancel, seen) = (context.cancel(), Arc::new(Mutex::new(String::new())));
    let listening = Arc::clone(&seen);
    let context = context.on_output(move |stream, bytes| {
        assert_eq!(stream, Stream::Stdout);
        listening.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        cancel.kill();
    });
    let answer = find("bash").unwrap().run(&context, json!({ "command": "echo started; sleep 1000" }));
    assert!(answer.is_error && answer.data["cancelled"] == true, "{answer:?}");
    assert!(answer.text.starts_with("started\n") && answer.text.ends_with("[cancelled: this is the output until then]"));
    assert_eq!(*seen.lock().unwrap(), "started\n");
}

#[test]
fn options_are_the_same_for_bash_and_python() {
    let sandbox = sandbox();
    sandbox.fs().create_dir_all("/home/user/sub").unwrap();
    let options = json!({ "cwd": "sub", "env": { "X": "x" }, "stdin": "in", "seed": 7, "rollback_on_failure": true });
    let with = |name: &str, text: &str| {
        let mut arguments = options.clone();
        arguments[name] = text.into();
        arguments
    };
    check_text(&sandbox, "bash", with("command", "pwd; cat; echo $X"), "/home/user/sub\ninx");
    let code = "import os, sys; print(os.getcwd(), sys.stdin.read(), os.environ['X'])";
    check_text(&sandbox, "python", with("code", code), "/home/user/sub in x");
    check_text(&sandbox, "python", json!({ "code": "6 * 7", "echo": true }), "42");
    let typo = "error: invalid arguments: unknown field `tiemout_ms`";
    assert!(act(&sandbox, "bash", json!({ "command": "true", "tiemout_ms": 1 })).text.starts_with(typo));
}

#[test]
fn a_new_python_of_an_old_session_is_reported() {
    let sandbox = sandbox();
    let python = |code: &str| act(&sandbox, "python", json!({ "code": code, "session": "s" }));
    assert_eq!(python("x = 1").data["restarted"], false);
    assert!(sandbox.end_python("s"));
    let answer = python("print('new')");
    assert_eq!(answer.data["restarted"], true);
    assert_eq!(answer.text, "new\n[the session has a new Python interpreter: state of earlier calls is lost]");
}

#[test]
fn a_timeout_above_the_limit_is_reduced_with_a_note() {
    let sandbox = sandbox();
    let asked = |timeout: u64| json!({ "command": "echo done", "timeout_ms": timeout });
    let reduced = "done\n[the timeout of 60 s was reduced to 30 s, the limit of this sandbox]";
    check_text(&sandbox, "bash", asked(60_000), reduced);
    check_text(&sandbox, "bash", asked(u64::MAX), &reduced.replace("60 s", "18446744073709551615 ms"));
    check_text(&sandbox, "bash", asked(0), "done\n[the timeout of 0 s was ignored: the limit of this sandbox is 30 s]");
    check_text(&sandbox, "bash", asked(30_000), "done");
    let answer = act(&sandbox, "python", json!({ "code": "print(1)", "timeout_ms": 60_000 }));
    assert_eq!((answer.is_error, answer.data["notes"].as_array().map(Vec::len)), (false, Some(1)));
}
