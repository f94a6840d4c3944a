//! Every run that changed something is a version: it can be named, read, compared, restored and forked.

use runtime::{Command, DifferenceKind, Error, Keep, Mount, Sandbox, ValueDifference, ValueKind};
use serde_json::json;

use super::sandbox;

fn text(sandbox: &Sandbox, path: &str) -> String {
    String::from_utf8(sandbox.fs().read(path).unwrap()).unwrap()
}

/// A sandbox whose `/note` contains the text of the last of this many runs.
fn written(times: u32) -> Sandbox {
    let sandbox = sandbox();
    for time in 1..=times {
        sandbox.bash(format!("echo {time} > /note")).unwrap();
    }
    sandbox
}

#[test]
fn a_version_is_read_by_the_number_of_its_run_by_head_and_by_name() {
    let sandbox = written(3);
    sandbox.versions().checkpoint("third", Some("the last one")).unwrap();
    sandbox.bash("echo 4 > /note").unwrap();
    let runs = sandbox.history(10).unwrap();
    let first = runs.iter().find(|run| run.command == "echo 1 > /note").unwrap().id;
    for (reference, expected) in
        [("HEAD", "4\n"), ("HEAD~1", "3\n"), ("HEAD~", "3\n"), ("HEAD~3", "1\n"), ("third", "3\n"), ("third~1", "2\n")]
    {
        assert_eq!(text(&sandbox.at(reference).unwrap(), "/note"), expected, "{reference}");
    }
    assert_eq!(text(&sandbox.at(&first.to_string()).unwrap(), "/note"), "1\n");
    assert_eq!(text(&sandbox.at("@{now}").unwrap(), "/note"), "4\n");
    // A run that changed nothing left the state as it was.
    let looked = sandbox.bash("cat /note").unwrap().run;
    assert_eq!(text(&sandbox.at(&looked.to_string()).unwrap(), "/note"), "4\n");
}

#[test]
fn an_invalid_reference_is_an_error() {
    let sandbox = written(2);
    for (reference, reason) in [
        ("HEAD~99", "not enough earlier versions"),
        ("nobody", "expected a run's number"),
        ("9999", "unknown run"),
        ("@{soon}", "expected a time"),
        ("HEAD~x", "expected a number after `~`"),
        ("HEAD~-1", "expected a number after `~`"),
        ("HEAD~+1", "expected a number after `~`"),
        ("HEAD~4000000000", "not enough earlier versions"),
        ("", "expected a run's number"),
    ] {
        let error = sandbox.at(reference).err().unwrap().to_string();
        assert!(error.contains(reason), "{reference}: {error}");
    }
    sandbox.versions().checkpoint("name", None).unwrap();
    assert!(sandbox.versions().checkpoint("name", None).is_err(), "a name is given once");
    for reserved in ["HEAD", "v3", "a~1", "12", "", " ", " space before", "space after "] {
        assert!(sandbox.versions().checkpoint(reserved, None).is_err(), "{reserved}");
    }
}

#[test]
fn every_way_of_reading_shows_the_version() {
    let sandbox = sandbox();
    sandbox.bash("mkdir /d; echo old > /d/a; ln -s a /d/link").unwrap();
    sandbox.kv().set("step", 1).unwrap();
    sandbox.versions().checkpoint("before", None).unwrap();
    sandbox.bash("rm -r /d; echo new > /b").unwrap();
    sandbox.kv().set("step", 2).unwrap();
    let before = sandbox.at("before").unwrap();
    assert_eq!(text(&before, "/d/link"), "old\n");
    assert!(!before.fs().exists("/b").unwrap());
    assert_eq!(before.kv().get("step").unwrap(), Some(json!(1)));
    assert_eq!(before.bash("cat /d/a; ls /d; test ! -e /b && echo gone").unwrap().stdout, b"old\na\nlink\ngone\n");
    let context = runtime::actions::Context::new(sandbox.clone());
    let act = |name: &str, arguments| runtime::actions::find(name).unwrap().run(&context, arguments);
    assert_eq!(act("read_file", json!({ "path": "/d/a", "at": "before" })).data["content"], "old\n");
    assert!(act("read_file", json!({ "path": "/d/a" })).is_error);
    assert_eq!(act("kv_get", json!({ "key": "step", "at": "before" })).data["value"], 1);
    assert!(act("glob", json!({ "pattern": "/d/*", "at": "before" })).text.contains("/d/a"));
    assert!(act("grep", json!({ "pattern": "old", "path": "/d", "at": "before" })).text.contains("/d/a"));
    assert!(act("read_file", json!({ "path": "/d/a", "at": 3 })).is_error);
    let ran = act("bash", json!({ "command": "cat /d/a; echo lost > /d/a", "at": "before" }));
    assert_eq!((ran.data["stdout"].as_str(), ran.data["run"].as_i64()), (Some("old\n"), Some(0)), "{}", ran.text);
    assert_eq!(act("python", json!({ "code": "print(open('/d/a').read())", "at": "before" })).data["stdout"], "old\n\n");
    assert!(act("bash", json!({ "command": "true", "at": "nobody" })).is_error);
    // Later runs are unknown there.
    let last = sandbox.history(1).unwrap()[0].id;
    for name in ["log", "history"] {
        let (then, now) = (act(name, json!({ "at": "before" })).text, act(name, json!({})).text);
        assert!(!then.contains("rm -r /d") && now.contains("rm -r /d") && then.contains("mkdir /d"), "{name}: {then}");
    }
    assert!(before.history_run(last).unwrap().is_none() && sandbox.history_run(last).unwrap().is_some());
    let directory = tempfile::tempdir().unwrap();
    let (snapshot, compat) = (directory.path().join("a.db"), directory.path().join("b.db"));
    before.export(&snapshot).unwrap();
    before.export_compat(&compat, runtime::Export::default(), runtime::Compat::LocalSandbox).unwrap();
    for path in [snapshot, compat] {
        let copy = Sandbox::builder().host(super::host()).import(&path).open().unwrap();
        assert_eq!((text(&copy, "/d/a").as_str(), copy.fs().exists("/b").unwrap()), ("old\n", false), "{}", path.display());
    }
}

#[test]
fn the_past_cannot_be_changed() {
    let sandbox = written(2);
    let past = sandbox.at("HEAD~1").unwrap();
    assert!(past.fs().write("/note", "other").unwrap_err().to_string().contains("cannot be changed"));
    assert!(past.kv().set("a", 1).is_err());
    let output = past.bash("echo changed > /note; cat /note").unwrap();
    assert_eq!(output.stdout, b"changed\n");
    assert_eq!((text(&past, "/note").as_str(), text(&sandbox, "/note").as_str()), ("1\n", "2\n"));
}

#[test]
fn a_comparison_lists_differences_and_git_applies_its_patch() {
    let sandbox = sandbox();
    sandbox.bash("printf 'a\\nb\\nc\\n' > /kept; echo x > /gone; echo y > /script").unwrap();
    sandbox.versions().checkpoint("before", None).unwrap();
    sandbox
        .bash("printf 'a\\nB\\nc\\n' > /kept; rm /gone; chmod +x /script; echo z > /new; head -c 9 /dev/zero > /binary")
        .unwrap();
    let compared = sandbox.versions().compare("before", "HEAD", &[]).unwrap();
    let found: Vec<_> = compared.differences.iter().map(|one| (one.path.as_str(), one.kind)).collect();
    use DifferenceKind::{Added, Deleted, Mode, Modified};
    assert_eq!(found, [("/binary", Added), ("/gone", Deleted), ("/kept", Modified), ("/new", Added), ("/script", Mode)]);
    let patch = compared.patch();
    assert!(patch.contains("--- a/kept\n+++ b/kept\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"), "{patch}");
    assert!(patch.contains("--- /dev/null\n+++ b/new\n") && patch.contains("old mode 100644\nnew mode 100755\n"), "{patch}");
    assert!(patch.contains("Binary files a/binary and b/binary differ"), "{patch}");
    let only = sandbox.versions().compare("before", "HEAD", &["/new".to_owned()]).unwrap();
    assert_eq!(only.paths().collect::<Vec<_>>(), ["/new"]);
    assert_eq!(sandbox.versions().compare("HEAD", "HEAD", &[]).unwrap().differences, []);
}

#[test]
fn restoring_a_version_leaves_no_difference_and_can_be_undone() {
    let sandbox = sandbox();
    sandbox.bash("mkdir -p /d/e; echo 1 > /d/e/f; ln -s e/f /d/l; mkfifo /d/p; chmod 600 /d/e/f").unwrap();
    sandbox.kv().set("k", "old").unwrap();
    sandbox.session("s").unwrap().bash("x=1").unwrap();
    sandbox.versions().checkpoint("whole", None).unwrap();
    sandbox.bash("rm -r /d; echo file > /d; touch /other").unwrap();
    sandbox.kv().set("k", "new").unwrap();
    sandbox.kv().set("more", 1).unwrap();
    sandbox.session("s").unwrap().bash("x=2").unwrap();
    let done = sandbox.versions().restore("whole", &[]).unwrap();
    assert!(done.paths().any(|path| path == "/other"));
    assert_eq!(sandbox.versions().compare("whole", "HEAD", &[]).unwrap().differences, []);
    assert_eq!((sandbox.kv().get("k").unwrap(), sandbox.kv().get("more").unwrap()), (Some(json!("old")), None));
    assert_eq!(sandbox.session("s").unwrap().bash("echo $x").unwrap().stdout, b"1\n");
    assert_eq!(sandbox.bash("cat /d/l; stat -c %a /d/e/f; test -p /d/p && echo pipe").unwrap().stdout, b"1\n600\npipe\n");
    // The session's last call was a run, too.
    sandbox.versions().undo(2).unwrap();
    assert_eq!((text(&sandbox, "/d").as_str(), sandbox.fs().exists("/other").unwrap()), ("file\n", true));
    sandbox.versions().undo(1).unwrap();
    assert_eq!(text(&sandbox, "/d/e/f"), "1\n");
}

#[test]
fn keys_and_sessions_that_did_not_exist_are_removed_and_others_stay() {
    let sandbox = sandbox();
    sandbox.kv().set("kept", "old").unwrap();
    sandbox.session("s").unwrap().bash("x=1").unwrap();
    sandbox.versions().checkpoint("before", None).unwrap();
    sandbox.session("t").unwrap().bash("y=1").unwrap();
    sandbox.kv().set("later", 1).unwrap();
    sandbox.kv().delete("kept").unwrap();
    sandbox.versions().restore("before", &[]).unwrap();
    assert_eq!(sandbox.session("t").unwrap().bash("echo [$y]").unwrap().stdout, b"[]\n");
    assert_eq!(sandbox.session("s").unwrap().bash("echo $x").unwrap().stdout, b"1\n");
    assert_eq!((sandbox.kv().get("later").unwrap(), sandbox.kv().get("kept").unwrap()), (None, Some(json!("old"))));
}

#[test]
fn single_paths_are_restored_and_the_rest_stays() {
    let sandbox = written(2);
    sandbox.bash("echo new > /other; echo 3 > /note").unwrap();
    sandbox.versions().restore("HEAD~2", &["/note".to_owned()]).unwrap();
    assert_eq!((text(&sandbox, "/note").as_str(), text(&sandbox, "/other").as_str()), ("1\n", "new\n"));
}

#[test]
fn a_fork_at_a_version_is_independent() {
    let sandbox = written(3);
    let fork = sandbox.fork_at("HEAD~2").unwrap();
    assert_eq!(text(&fork, "/note"), "1\n");
    fork.bash("echo fork > /note").unwrap();
    assert_eq!((text(&fork, "/note").as_str(), text(&sandbox, "/note").as_str()), ("fork\n", "3\n"));
}

#[test]
fn the_log_lists_changing_runs_and_those_of_a_path() {
    let sandbox = sandbox();
    sandbox.bash("echo 1 > /a").unwrap();
    sandbox.bash("cat /a").unwrap();
    sandbox.run(Command::bash("mkdir -p /d/e; echo 2 > /d/e/b")).unwrap();
    sandbox.fs().write("/a", "3").unwrap();
    let commands = |path: Option<&str>| -> Vec<String> {
        let logged = sandbox.versions().log(path, None, None).unwrap();
        logged.iter().filter_map(|one| Some(one.run.as_ref()?.command.clone())).collect()
    };
    assert_eq!(commands(None), ["write_file /a", "mkdir -p /d/e; echo 2 > /d/e/b", "echo 1 > /a"]);
    assert_eq!(commands(Some("/a")), ["write_file /a", "echo 1 > /a"]);
    assert_eq!(commands(Some("/d")), ["mkdir -p /d/e; echo 2 > /d/e/b"]);
    assert_eq!(commands(Some("/d/e/b/c")), [] as [String; 0]);
    // A directory that moves takes its files with it.
    sandbox.bash("mv /d /moved").unwrap();
    sandbox.bash("mv /moved/e /d").unwrap();
    assert_eq!(commands(Some("/moved/e/b")), ["mv /moved/e /d", "mv /d /moved"]);
    assert_eq!(commands(Some("/d/b")), ["mv /moved/e /d"]);
}

#[test]
fn equal_trees_have_equal_digests_and_check_verifies_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let open = || Sandbox::builder().host(super::host()).database(&path).open().unwrap();
    let log = |sandbox: &Sandbox, digest: bool| -> Vec<Option<String>> {
        let action = runtime::actions::find("log").unwrap();
        let request = action.prepare(serde_json::json!({ "digest": digest })).unwrap();
        let answer = request.run(&runtime::actions::Context::new(sandbox.clone())).unwrap();
        let versions = answer.data["versions"].as_array().unwrap().clone();
        versions.iter().map(|version| version["digest"].as_str().map(str::to_owned)).collect()
    };
    let sandbox = open();
    sandbox.bash("mkdir /d; echo one > /d/note").unwrap();
    sandbox.bash("rm /d/note; echo two > /d/note; chmod 700 /d").unwrap();
    sandbox.versions().undo(1).unwrap();
    assert!(log(&sandbox, false).iter().all(Option::is_none));
    let digests = log(&sandbox, true);
    assert!(digests[0] == digests[2] && digests[0] != digests[1] && digests[0].is_some(), "{digests:?}");
    assert_eq!(log(&sandbox, false), digests);
    let other = self::sandbox();
    other.bash("echo one > /x; mkdir /d; mv /x /d/note").unwrap();
    assert_eq!(Some(other.versions().digest("HEAD").unwrap()), digests[0]);
    assert_eq!(sandbox.check().unwrap(), []);
    drop(sandbox);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("UPDATE sandlite_version SET digest=zeroblob(32) WHERE id=2").unwrap();
    drop(connection);
    let violations: Vec<String> = open().check().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(violations, ["digest: version 2"]);
}

#[test]
fn a_version_is_that_of_the_run_that_changed_something_whatever_was_read_before() {
    let tool = runtime::Tool::new("now", "The time.", "{}", |_| Ok("noon".into()));
    let sandbox = Sandbox::builder().host(super::host()).tool(tool).open().unwrap();
    sandbox.fs().write("/a", "1").unwrap();
    // Rows of calls that only read wait for the next transaction.
    sandbox.fs().read("/a").unwrap();
    let run = sandbox.bash("now > /a").unwrap().run;
    sandbox.fs().read("/a").unwrap();
    sandbox.fs().write("/b", "2").unwrap();
    let logged = sandbox.versions().log(None, None, Some(2)).unwrap();
    let seen: Vec<_> = logged.iter().map(|one| one.run.as_ref().unwrap().command.as_str()).collect();
    assert_eq!((seen, logged[1].version.call), (vec!["write_file /b", "now > /a"], Some(run)));
}

#[test]
fn runs_with_the_same_seed_and_length_are_distinguished() {
    let sandbox = sandbox();
    for text in ["one", "two"] {
        sandbox.run(Command::bash(format!("echo {text} > /note")).deterministic(7)).unwrap();
    }
    assert_eq!(sandbox.versions().compare("HEAD~1", "HEAD", &[]).unwrap().paths().collect::<Vec<_>>(), ["/note"]);
    sandbox.versions().undo(1).unwrap();
    assert_eq!(text(&sandbox, "/note"), "one\n");
}

#[test]
fn pruning_removes_versions_and_keeps_the_others_unchanged() {
    let sandbox = written(6);
    let pruned = sandbox.versions().prune(&Keep { versions: Some(3), ..Keep::default() }).unwrap();
    assert!(pruned.versions > 0, "{pruned:?}");
    assert_eq!(text(&sandbox.at("HEAD~1").unwrap(), "/note"), "5\n");
    assert!(matches!(sandbox.at("HEAD~5"), Err(Error::Invalid(_))));
    assert_eq!(sandbox.check().unwrap(), []);
}

#[test]
fn an_overlay_is_compared_and_brought_back_too() {
    let host = tempfile::tempdir().unwrap();
    std::fs::write(host.path().join("f"), "host\n").unwrap();
    let sandbox = Sandbox::builder().host(super::host()).mount(Mount::overlay(host.path(), "/m")).open().unwrap();
    sandbox.bash("echo one > /m/own").unwrap();
    sandbox.versions().checkpoint("before", None).unwrap();
    sandbox.bash("echo changed > /m/f; rm /m/own").unwrap();
    let compared = sandbox.versions().compare("before", "HEAD", &[]).unwrap();
    assert_eq!(compared.paths().collect::<Vec<_>>(), ["/m/f", "/m/own"]);
    sandbox.versions().restore("before", &[]).unwrap();
    assert_eq!((text(&sandbox, "/m/f").as_str(), text(&sandbox, "/m/own").as_str()), ("host\n", "one\n"));
}

#[test]
fn a_directory_that_became_a_link_is_compared_and_restored_as_it_was() {
    let sandbox = sandbox();
    sandbox.bash("mkdir /d; echo one > /d/x").unwrap();
    sandbox.bash("mv /d /e; ln -s e /d").unwrap();
    let compared = sandbox.versions().compare("HEAD~1", "HEAD", &[]).unwrap();
    assert_eq!(compared.paths().collect::<Vec<_>>(), ["/d", "/d/x", "/e", "/e/x"]);
    assert!(compared.patch().contains("deleted file mode 100644\n--- a/d/x\n"), "{}", compared.patch());
    let error = sandbox.versions().restore("HEAD~1", &["/d/x".to_owned()]).err().unwrap().to_string();
    assert!(error.contains("/d/x"), "{error}");
    sandbox.versions().undo(1).unwrap();
    assert_eq!(text(&sandbox, "/d/x"), "one\n");
    assert!(sandbox.versions().compare("HEAD~2", "HEAD", &[]).unwrap().differences.is_empty());
    assert_eq!(sandbox.versions().digest("HEAD").unwrap(), sandbox.versions().digest("HEAD~2").unwrap());
}

#[test]
fn names_of_one_file_are_restored_as_they_were() {
    let sandbox = sandbox();
    sandbox.bash("echo 1 > /a; echo 2 > /b; echo 3 > /c; ln /c /d").unwrap();
    sandbox.bash("ln -f /a /b; echo 2 > /a; rm /c /d").unwrap();
    sandbox.versions().undo(1).unwrap();
    let files = || ["/a", "/b", "/c", "/d"].map(|path| text(&sandbox, path));
    assert_eq!(files(), ["1\n", "2\n", "3\n", "3\n"]);
    sandbox.bash("echo 4 > /c").unwrap();
    assert_eq!(files(), ["1\n", "2\n", "4\n", "4\n"]);
}

#[test]
fn the_mode_of_a_pipe_is_restored() {
    let sandbox = sandbox();
    sandbox.bash("mkfifo /pipe; chmod 600 /pipe; echo x > /file").unwrap();
    sandbox.bash("chmod 644 /pipe; chmod 755 /file").unwrap();
    sandbox.versions().undo(1).unwrap();
    assert_eq!(sandbox.bash("stat -c '%a %F' /pipe /file").unwrap().stdout, b"600 fifo\n644 regular file\n");
}

#[test]
fn an_undo_during_a_run_undoes_that_run() {
    let (called, is_called) = std::sync::mpsc::channel();
    let (release, is_released) = std::sync::mpsc::channel::<()>();
    let channels = std::sync::Mutex::new((called, is_released));
    let gate = runtime::Tool::new("gate", "Waits.", "{}", move |_| {
        let channels = channels.lock().unwrap();
        channels.0.send(()).unwrap();
        channels.1.recv().unwrap();
        Ok(json!(null))
    });
    let sandbox = Sandbox::builder().host(super::host()).tool(gate).open().unwrap();
    sandbox.bash("echo one > /note").unwrap();
    sandbox.bash("echo two > /note").unwrap();
    let (started, is_started) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sandbox.bash("echo three > /note; gate").unwrap());
        is_called.recv().unwrap();
        let undo = scope.spawn(|| {
            started.send(()).unwrap();
            sandbox.versions().undo(1).unwrap();
        });
        is_started.recv().unwrap();
        // Enough for an undo that chose its version now, which would be one too early.
        (0..10_000).for_each(|_| std::thread::yield_now());
        release.send(()).unwrap();
        undo.join().unwrap();
    });
    assert_eq!(text(&sandbox, "/note"), "two\n");
}

#[test]
fn keys_and_sessions_that_differ_are_listed() {
    let sandbox = sandbox();
    sandbox.kv().set("kept", 1).unwrap();
    sandbox.kv().set("changed", 1).unwrap();
    sandbox.kv().set("removed", 1).unwrap();
    sandbox.versions().checkpoint("before", None).unwrap();
    sandbox.kv().set("changed", 2).unwrap();
    sandbox.kv().set("changed again", 1).unwrap();
    sandbox.kv().delete("changed again").unwrap();
    sandbox.kv().delete("removed").unwrap();
    sandbox.kv().set("new", 1).unwrap();
    sandbox.session("s").unwrap().bash("x=1").unwrap();
    let listed = |values: &[ValueDifference]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
    let compared = sandbox.versions().compare("before", "HEAD", &[]).unwrap();
    assert_eq!(listed(&compared.values), ["M key changed", "A key new", "D key removed", "A session s"]);
    assert!(!compared.is_empty() && compared.differences.is_empty());
    assert_eq!(compared.values[3].value, ValueKind::Session);
    let back = sandbox.versions().compare("HEAD", "before", &[]).unwrap();
    assert_eq!(listed(&back.values), ["M key changed", "D key new", "A key removed", "D session s"]);
    let only = sandbox.versions().compare("before", "HEAD", &["/tmp".to_owned()]).unwrap();
    assert!(only.is_empty());
    let shown = sandbox.versions().show("HEAD~1").unwrap().changes.unwrap();
    assert_eq!(listed(&shown.values), ["A key new"]);
    let context = runtime::actions::Context::new(sandbox.clone());
    let act = |name: &str, arguments| runtime::actions::find(name).unwrap().run(&context, arguments).text;
    let dry = act("restore", json!({ "version": "before", "dry_run": true }));
    assert_eq!(dry, "M key changed\nD key new\nA key removed\nD session s");
    assert_eq!(act("restore", json!({ "version": "before" })), dry);
    assert_eq!(act("diff", json!({ "from": "before" })), "no differences");
    assert!(act("undo", json!({ "runs": 0 })).contains("expected 1 or more"));
    assert_eq!(act("undo", json!({})), "M key changed\nA key new\nD key removed\nA session s");
}

#[test]
fn a_dry_run_reports_the_errors_of_the_real_one() {
    let sandbox = written(2);
    let context = runtime::actions::Context::new(sandbox.clone());
    let restore = |path: &str, dry_run: bool| {
        let arguments = json!({ "version": "HEAD~1", "paths": [path], "dry_run": dry_run });
        runtime::actions::find("restore").unwrap().run(&context, arguments)
    };
    let (dry, real) = (restore("/nothing", true), restore("/nothing", false));
    assert!(dry.is_error && dry.text.contains("/nothing"), "{}", dry.text);
    assert_eq!(dry.text, real.text);
    assert_eq!((restore("/note", true).text.as_str(), text(&sandbox, "/note").as_str()), ("M /note", "2\n"));
}

#[test]
fn the_newest_version_of_a_past_sandbox_is_the_one_it_shows() {
    let sandbox = written(4);
    let past = sandbox.at("HEAD~1").unwrap();
    assert_eq!(text(&past.at("HEAD").unwrap(), "/note"), "3\n");
    assert_eq!(text(&past.at("HEAD~1").unwrap(), "/note"), "2\n");
    assert_eq!(text(&past.at("@{now}").unwrap(), "/note"), "3\n");
    sandbox.versions().checkpoint("end", None).unwrap();
    assert!(past.versions().checkpoints().unwrap().is_empty());
    let error = past.at("end").err().unwrap().to_string();
    assert!(error.contains("later than the version shown"), "{error}");
    let shown = past.versions().show("HEAD").unwrap();
    assert_eq!(
        (shown.run.unwrap().command.as_str(), shown.version),
        ("echo 3 > /note", Some(past.versions().resolve("HEAD").unwrap()))
    );
    assert!(past.versions().show("end").is_err());
    assert_eq!(past.events_after(None, None).unwrap().version, past.version_shown().unwrap());
    assert!(past.versions().compare("HEAD~1", "HEAD", &[]).unwrap().patch().contains("-2\n+3\n"));
}

#[test]
fn changes_of_another_program_while_the_sandbox_is_open_can_be_undone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let sandbox = Sandbox::builder().host(super::host()).database(&path).open().unwrap();
    sandbox.bash("echo one > /note; echo kept > /other").unwrap();
    sandbox.bash("echo two > /other").unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute("UPDATE fs_data SET data=CAST('OUT' || char(10) AS BLOB) WHERE data=CAST('one' || char(10) AS BLOB)", [])
        .unwrap();
    drop(other);
    // Data that it overwrote is unknown; everything else is restored.
    sandbox.versions().restore("HEAD~1", &["/other".to_owned()]).unwrap();
    assert_eq!((text(&sandbox, "/other").as_str(), text(&sandbox, "/note").as_str()), ("kept\n", "OUT\n"));
}

#[test]
fn keys_that_another_program_may_have_changed_are_reported_as_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let open = || Sandbox::builder().host(super::host()).database(&path).open().unwrap();
    let sandbox = open();
    sandbox.kv().set("key", 1).unwrap();
    sandbox.fs().write("/note", "one").unwrap();
    sandbox.versions().checkpoint("before", None).unwrap();
    // With it, what another program did not change is known.
    sandbox.versions().digest("HEAD").unwrap();
    drop(sandbox);
    let other = rusqlite::Connection::open(&path).unwrap();
    // AgentFS's SDKs add the index when they open a file.
    let visit = "CREATE INDEX idx_kv_store_created_at ON kv_store(created_at); UPDATE kv_store SET value='2'";
    other.execute_batch(visit).unwrap();
    drop(other);
    let sandbox = open();
    sandbox.fs().write("/note", "two").unwrap();
    let compared = sandbox.versions().compare("before", "HEAD", &[]).unwrap();
    assert_eq!((compared.paths().collect::<Vec<_>>(), compared.values_unknown), (vec!["/note"], true));
    let context = runtime::actions::Context::new(sandbox.clone());
    let act = |name: &str, arguments| runtime::actions::find(name).unwrap().run(&context, arguments);
    let diff = act("diff", json!({ "from": "before", "to": "HEAD~1", "names_only": true }));
    assert_eq!((diff.text.as_str(), &diff.data["values_unknown"]), ("? keys: another program wrote to the file", &json!(true)));
    let [dry, real] = [true, false].map(|dry| act("restore", json!({ "version": "before", "dry_run": dry })));
    assert!(dry.is_error && dry.text.contains("cannot restore the keys of version `before`"), "{}", dry.text);
    assert_eq!(dry.text, real.text);
    sandbox.versions().restore("before", &["/".to_owned()]).unwrap();
    assert_eq!((text(&sandbox, "/note").as_str(), sandbox.kv().get("key").unwrap()), ("one", Some(json!(2))));
    assert!(!sandbox.versions().compare("HEAD~1", "HEAD", &[]).unwrap().values_unknown);
}

#[test]
fn changes_start_after_the_versions_that_no_run_created() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let open = || Sandbox::builder().host(super::host()).database(&path).open().unwrap();
    let sandbox = open();
    for number in 0..30 {
        sandbox.fs().write(&format!("/{number}"), "x").unwrap();
    }
    drop(sandbox);
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("UPDATE sandlite_version SET call=NULL WHERE id<=(SELECT max(id)-3 FROM sandlite_version)").unwrap();
    drop(other);
    let changes = open().versions().changes(None, &[]).unwrap();
    assert_eq!(changes.paths().collect::<Vec<_>>(), ["/27", "/28", "/29"]);
}

#[test]
fn a_mode_that_git_does_not_know_is_a_remark_in_a_patch() {
    let sandbox = sandbox();
    sandbox.bash("echo x > /note; echo y > /other").unwrap();
    sandbox.bash("chmod 600 /note; echo z > /other").unwrap();
    let compared = sandbox.versions().compare("HEAD~1", "HEAD", &[]).unwrap();
    assert!(compared.patch().starts_with("# the mode of note changed from 644 to 600\ndiff --git a/other b/other\n"));
    let mut patch = Vec::new();
    compared.write_patch("/", &mut patch).unwrap();
    assert!(patch.starts_with(b"diff --git a/other b/other\n"), "{}", String::from_utf8_lossy(&patch));
}

#[test]
fn the_log_of_a_path_finds_its_changes_however_many_versions_are_newer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let open = || Sandbox::builder().host(super::host()).database(&path).open().unwrap();
    let sandbox = open();
    sandbox.bash("echo 1 > /old").unwrap();
    sandbox.bash("echo 1 > /new").unwrap();
    drop(sandbox);
    // As if the last run had been repeated.
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<100500) INSERT INTO";
    let last = "(SELECT call FROM sandlite_version ORDER BY id DESC LIMIT 1)";
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch(&format!(
            "BEGIN;
             {numbers} tool_calls (id, name, parameters, status, started_at, completed_at, duration_ms)
               SELECT id+i, name, parameters, status, started_at, completed_at, duration_ms FROM tool_calls, n WHERE id={last};
             {numbers} sandlite_run (id, command, stdout_truncated, stderr_truncated, interrupted, exit_code, changes, started_ns,
               completed_ns, stdout, stderr)
               SELECT id+i, command, 0, 0, 0, 0, changes, started_ns, completed_ns, x'', x'' FROM sandlite_run, n WHERE id={last};
             {numbers} sandlite_version (id, time_ns, call, mark, entries, total, outside, inodes)
               SELECT id+i, time_ns, call+i, mark, entries, total, outside, x'' FROM sandlite_version, n
               WHERE id=(SELECT max(id) FROM sandlite_version);
             COMMIT"
        ))
        .unwrap();
    drop(other);
    let logged = open().versions().log(Some("/old"), None, Some(1)).unwrap();
    assert_eq!(logged.iter().map(|one| one.run.as_ref().unwrap().command.as_str()).collect::<Vec<_>>(), ["echo 1 > /old"]);
}
