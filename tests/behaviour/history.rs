//! Everything that ran is a row, and a guest cannot alter it.

use runtime::HistoryFilter;

use super::{host, sandbox, strict};

#[test]
fn a_run_keeps_its_text_output_usage_and_changes() {
    let sandbox = sandbox();
    let output = sandbox.bash("echo out; echo err >&2; echo x > /new; exit 4").unwrap();
    let run = sandbox.history_run(output.run).unwrap().unwrap();
    assert_eq!(run.command, "echo out; echo err >&2; echo x > /new; exit 4");
    assert_eq!((run.exit_code, run.stdout.as_slice(), run.stderr.as_slice()), (Some(4), &b"out\n"[..], &b"err\n"[..]));
    assert_eq!(run.changes.unwrap()[0]["path"], "/new");
    assert!(run.usage.unwrap()["fuel"].as_u64().unwrap() > 1_000);
}

#[test]
fn the_newest_run_comes_first() {
    let sandbox = sandbox();
    for script in ["true", "false", "exit 9"] {
        sandbox.bash(script).unwrap();
    }
    let codes: Vec<_> = sandbox.history(2).unwrap().iter().map(|run| run.exit_code).collect();
    assert_eq!(codes, [Some(9), Some(1)]);
}

#[test]
fn a_command_that_reached_a_limit_is_recorded_with_it() {
    let sandbox = strict();
    sandbox.bash("while true; do :; done").unwrap();
    let run = &sandbox.history(1).unwrap()[0];
    assert_eq!(run.limit.as_deref(), Some("too many iterations (100) in one loop"));
}

// LocalSandbox's names and parameters, so that what reads its history reads ours.
#[test]
fn calls_of_the_library_are_rows_too() {
    let sandbox = sandbox();
    sandbox.fs().write("/notes", "hello").unwrap();
    sandbox.fs().read("/notes").unwrap();
    sandbox.fs().read("/missing").unwrap_err();
    sandbox.fs().remove_file("/notes").unwrap();
    sandbox.kv().set("step", 1).unwrap();
    let rows = sandbox.history(10).unwrap();
    let seen: Vec<_> = rows.iter().rev().map(|run| (run.command.as_str(), run.status)).collect();
    assert_eq!(
        seen,
        [
            ("write_file /notes", "success"),
            ("read_file /notes", "success"),
            ("read_file /missing", "error"),
            ("delete_file /notes", "success"),
            ("kv_set step", "success"),
        ]
    );
    let write = rows.last().unwrap();
    assert_eq!(write.parameters, Some(serde_json::json!({ "path": "/notes", "contentLength": 5 })));
    assert_eq!(write.result, Some(serde_json::json!({ "success": true })));
    let change = &write.changes.as_ref().unwrap()[0];
    assert_eq!((&change["path"], &change["kind"], &change["size"]), (&"/notes".into(), &"created".into(), &5.into()));
    assert_eq!(rows[2].error.as_deref(), Some("cannot read `/missing`: no such file or directory"));
}

#[test]
fn a_read_is_recorded_even_when_nothing_follows_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let open = || runtime::Sandbox::builder().host(host()).database(&path).open().unwrap();
    open().fs().exists("/tmp").unwrap();
    let last = open().history(1).unwrap().remove(0);
    assert_eq!((last.command.as_str(), last.result), ("exists /tmp", Some(serde_json::json!({ "exists": true }))));
}

#[test]
fn the_value_of_a_key_is_not_in_the_history() {
    let sandbox = sandbox();
    sandbox.kv().set("token", "very-secret").unwrap();
    sandbox.kv().get("token").unwrap();
    assert!(!format!("{:?}", sandbox.history(10).unwrap()).contains("very-secret"));
}

#[test]
fn the_history_can_be_searched_and_paged() {
    let sandbox = sandbox();
    for script in ["echo apple", "echo pear", "echo Apple pie"] {
        sandbox.bash(script).unwrap();
    }
    let rows = |filter: HistoryFilter| -> Vec<String> {
        sandbox.history_with(&filter).unwrap().into_iter().map(|run| run.command).collect()
    };
    let all = sandbox.history(10).unwrap();
    assert_eq!(rows(HistoryFilter { grep: Some("apple".into()), ..HistoryFilter::default() }), ["echo apple"]);
    assert_eq!(rows(HistoryFilter { since: Some(all[1].started), ..HistoryFilter::default() }).len(), 2);
    assert_eq!(rows(HistoryFilter { before: Some(all[1].id), ..HistoryFilter::default() }), ["echo apple"]);
    assert_eq!(rows(HistoryFilter { name: Some("kv_set".into()), ..HistoryFilter::default() }), [""; 0]);
    let with_output = sandbox.history_with(&HistoryFilter { limit: 1, output: true, ..HistoryFilter::default() }).unwrap();
    assert_eq!(with_output[0].stdout, b"Apple pie\n");
}

#[test]
fn every_kind_of_change_is_recorded() {
    let sandbox = sandbox();
    sandbox.bash("cd /tmp; echo a > old; echo b > gone; echo c > same; echo d > mode").unwrap();
    sandbox.bash("cd /tmp; mv old new; rm gone; echo more >> same; chmod 700 mode; mkdir dir").unwrap();
    let run = sandbox.history(1).unwrap().remove(0);
    let changes = run.changes.unwrap();
    let seen: Vec<_> = changes.as_array().unwrap().iter().map(|c| format!("{} {} {}", c["kind"], c["path"], c["size"])).collect();
    assert_eq!(
        seen,
        [
            r#""created" "/tmp/dir" 0"#,
            r#""deleted" "/tmp/gone" 0"#,
            r#""attributes" "/tmp/mode" 2"#,
            r#""renamed" "/tmp/new" 2"#,
            r#""modified" "/tmp/same" 7"#,
        ]
    );
}

// The process is killed, not asked: nothing of it runs any more when the note is read.
#[test]
fn a_command_whose_process_was_killed_is_interrupted() {
    use std::io::Read;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let script = "echo kept > /tmp/never; echo started; sleep 1000";
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_sandlite"))
        .arg("--db")
        .arg(&path)
        .args(["bash", "-c", script])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut started = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut started).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let sandbox = runtime::Sandbox::builder().host(host()).database(&path).open().unwrap();
    let run = sandbox.history(1).unwrap().remove(0);
    assert_eq!((run.status, run.command.as_str(), run.exit_code), ("interrupted", script, None));
    assert!(!sandbox.fs().exists("/tmp/never").unwrap(), "a command is kept whole or not at all");
    assert_eq!(sandbox.check().unwrap(), []);
    assert_eq!(sandbox.bash("echo on").unwrap().stdout, b"on\n");
}

#[test]
fn a_guest_cannot_alter_the_history() {
    let sandbox = sandbox();
    let first = sandbox.bash("echo one").unwrap();
    let before = sandbox.history_run(first.run).unwrap();
    sandbox.bash("find / -name '*.db*'; history -c; : > ~/.bash_history; rm -rf / 2>/dev/null").unwrap();
    assert_eq!(sandbox.history_run(first.run).unwrap(), before);
}

#[test]
fn a_run_that_changes_a_small_text_keeps_the_difference() {
    let sandbox = sandbox();
    sandbox.bash("printf 'one\\ntwo\\nthree\\n' > /note; head -c 100000 /dev/zero > /large; printf '\\0' > /binary").unwrap();
    let run = sandbox.bash("sed -i s/two/2/ /note; echo more >> /large; echo more >> /binary").unwrap().run;
    let changes = sandbox.history_run(run).unwrap().unwrap().changes.unwrap();
    let diff = |path: &str| changes.as_array().unwrap().iter().find(|change| change["path"] == path).unwrap()["diff"].clone();
    assert_eq!(diff("/note"), "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    assert!(diff("/large").is_null() && diff("/binary").is_null());
    let run = sandbox.bash("rm /note").unwrap().run;
    let changes = sandbox.history_run(run).unwrap().unwrap().changes.unwrap();
    assert_eq!(changes[0]["diff"], "@@ -1,3 +0,0 @@\n-one\n-2\n-three\n");
}

// T-DOS-02: texts without common lines take all the time of a diff, so not every file of a run is compared.
#[test]
fn t_dos_02_a_run_compares_only_so_much() {
    let sandbox = sandbox();
    let text = |word: &str| (0..3000).map(|line| format!("{word}{line}\n")).collect::<String>();
    (0..10).for_each(|number| sandbox.fs().write(&format!("/a{number}"), text("x")).unwrap());
    sandbox.fs().write("/b", "one\ntwo\n").unwrap();
    let change = "for f in /a*; do sed -i s/x/y/ $f; done; sed -i s/two/2/ /b";
    let changes = sandbox.history_run(sandbox.bash(change).unwrap().run).unwrap().unwrap().changes.unwrap();
    let last = changes.as_array().unwrap().iter().find(|change| change["path"] == "/b").unwrap();
    assert!(last["kind"] == "modified" && last["diff"].is_null(), "{last}");
}
