//! A recorded run can be run again by anybody, and gives the same exit code, output and files; if not, the difference is shown.

use runtime::{Command, Error, Mount, Overrides, Preset, Sandbox, Tool};
use serde_json::json;

use super::{host, sandbox};

fn record(sandbox: &Sandbox, script: &str) -> runtime::Output {
    sandbox.run(Command::bash(script).record()).unwrap()
}

#[test]
fn a_recorded_run_repeats_exactly() {
    let sandbox = Sandbox::builder().host(host()).env("WHO", "me").cwd("/tmp").open().unwrap();
    sandbox.fs().write("/tmp/input", "given\n").unwrap();
    record(&sandbox, "echo $RANDOM $WHO > number; date +%s%N >> number; cat number input; head -c 8 /dev/urandom | od");
    // Not recorded: taken over as it is.
    sandbox.bash("echo between > between; rm input").unwrap();
    sandbox.kv().set("key", 1).unwrap();
    sandbox
        .run(
            Command::bash("cat; echo $1 $X; cat between; exit 4").arg("zero").arg("one").env("X", "x").stdin(*b"in\xff").record(),
        )
        .unwrap();
    sandbox
        .run(Command::python("import random, time; print(random.random(), time.time()); open('/tmp/p', 'w').write('p')").record())
        .unwrap();
    sandbox.session("s").unwrap().run(Command::bash("x=1; cd /").record()).unwrap();
    sandbox.session("s").unwrap().run(Command::bash("echo $x; pwd").record()).unwrap();
    sandbox.run(Command::bash("rm -r /tmp/*; false").rollback_on_failure().record()).unwrap();
    let replayed = sandbox.versions().replay(None).unwrap();
    assert_eq!((replayed.difference, replayed.runs), (None, 6));
    assert!(replayed.given >= 2, "{}", replayed.given);
    assert_eq!(replayed.notes, [] as [String; 0]);
    // The original is left as it was.
    assert_eq!(sandbox.history(1).unwrap()[0].command, "rm -r /tmp/*; false");
}

#[test]
fn a_clock_is_that_of_the_recording() {
    let sandbox = sandbox();
    let seconds = |output: runtime::Output| String::from_utf8(output.stdout).unwrap().trim().parse::<u64>().unwrap();
    let first = seconds(record(&sandbox, "date +%s"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(now - first < 100, "{first} is not now");
    // With an explicit seed, each run is the same.
    let seeded = || sandbox.run(Command::bash("date +%s%N; echo $RANDOM").deterministic(7).record()).unwrap().stdout;
    assert_eq!(seeded(), seeded());
    assert_eq!(sandbox.versions().replay(None).unwrap().difference, None);
}

#[test]
fn results_of_host_tools_come_from_the_recording() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let schema = r#"{"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}"#;
    let price = Tool::new("price", "Returns a price.", schema, |arguments| {
        let calls = CALLS.fetch_add(1, Ordering::SeqCst);
        if arguments["of"] == "air" {
            Err("not for sale".to_owned())
        } else {
            Ok(json!({ "price": 10 + calls, "long": "x".repeat(20_000) }))
        }
    });
    let sandbox = Sandbox::builder().host(host()).tool(price).open().unwrap();
    let output = record(&sandbox, "price --of tea | wc -c; price --of tea > /tea; price --of air; price");
    let calls = CALLS.load(Ordering::SeqCst);
    assert_eq!(calls, 3, "{output:?}");
    let replayed = sandbox.versions().replay(None).unwrap();
    assert_eq!((replayed.difference, CALLS.load(Ordering::SeqCst)), (None, calls));
    // Also by somebody who does not have the tool.
    let stranger = sandbox.with_tools(Vec::new()).unwrap();
    assert_eq!(stranger.versions().replay(None).unwrap().difference, None);
}

/// Changes the record of what the last run printed or left, as somebody who hides something would.
fn forge(path: &std::path::Path, statement: &str) {
    let done = std::process::Command::new("python3")
        .args(["-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"])
        .arg(path)
        .arg(statement)
        .status()
        .unwrap();
    assert!(done.success());
}

#[test]
fn a_forged_record_is_a_difference_that_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let check = |statement: &str, what: &str, recorded: &str, replayed: &str| {
        let path = directory.path().join(format!("{what}.db"));
        let sandbox = Sandbox::builder().host(host()).database(&path).open().unwrap();
        record(&sandbox, "echo fine > /note; echo printed; echo complaint >&2; exit 3");
        drop(sandbox);
        forge(&path, statement);
        let sandbox = Sandbox::builder().host(host()).database(&path).read_only().open().unwrap();
        let difference = sandbox.versions().replay(None).unwrap().difference.expect(what);
        assert_eq!(difference.what, what);
        assert!(difference.recorded.contains(recorded) && difference.replayed.contains(replayed), "{difference:?}");
    };
    check("UPDATE sandlite_run SET exit_code=0 WHERE exit_code=3", "exit_code", "0", "3");
    check("UPDATE sandlite_run SET stdout=CAST('forged' AS BLOB) WHERE exit_code=3", "stdout", "forged", "printed");
    check("UPDATE sandlite_run SET stderr=CAST('forged' AS BLOB) WHERE exit_code=3", "stderr", "forged", "complaint");
    check("UPDATE tool_calls SET parameters=replace(parameters, 'echo fine', 'echo evil')", "files", "/note", "+evil");
}

#[test]
fn a_forged_state_of_a_session_is_a_difference() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let sandbox = Sandbox::builder().host(host()).database(&path).open().unwrap();
    sandbox.kv().set("given", 1).unwrap();
    sandbox.session("s").unwrap().run(Command::bash("x=1; f() { echo $RANDOM; }; cd /tmp").record()).unwrap();
    drop(sandbox);
    let replay = || {
        let sandbox = Sandbox::builder().host(host()).database(&path).read_only().open().unwrap();
        sandbox.versions().replay(None).unwrap()
    };
    assert_eq!((replay().difference, replay().notes), (None, Vec::new()));
    forge(&path, "UPDATE sandlite_session SET state=x'00'");
    let difference = replay().difference.unwrap();
    assert_eq!((difference.what, difference.recorded.as_str()), ("values", "M session s"));
}

#[test]
fn a_replay_starts_at_the_given_version() {
    let sandbox = sandbox();
    for number in 1..=4 {
        record(&sandbox, &format!("echo {number} >> /list; cat /list"));
    }
    assert_eq!(sandbox.versions().replay(Some("HEAD~1")).unwrap().runs, 1);
    assert_eq!(sandbox.versions().replay(Some("HEAD~3")).unwrap().runs, 3);
    assert_eq!(sandbox.versions().replay(None).unwrap().runs, 4);
    assert!(matches!(sandbox.versions().replay(Some("nobody")), Err(Error::Invalid(_))));
    let error = super::sandbox().versions().replay(None).unwrap_err().to_string();
    assert!(error.contains("there are no recorded runs"), "{error}");
}

#[test]
fn a_recording_has_no_more_than_the_limits_of_its_replay() {
    let path = tempfile::tempdir().unwrap();
    let path = path.path().join("hostile.db");
    let sandbox = Sandbox::builder().host(host()).preset(Preset::Permissive).database(&path).open().unwrap();
    sandbox.run(Command::bash("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; echo $i").record()).unwrap();
    drop(sandbox);
    let sandbox = Sandbox::builder().host(host()).preset(Preset::Strict).database(&path).read_only().open().unwrap();
    let replayed = sandbox.versions().replay(None).unwrap();
    assert_eq!(replayed.difference.unwrap().what, "exit_code");
    assert!(replayed.notes[0].contains("less restrictive limits"), "{:?}", replayed.notes);
    // Tighter ones hold again.
    let sandbox = super::sandbox();
    let few = Overrides { commands: Some(3), ..Overrides::default() };
    let output = sandbox.run(Command::bash("for i in 1 2 3 4 5 6; do echo $i; done").limits(few).record()).unwrap();
    assert!(output.status.limit().is_some());
    assert_eq!(sandbox.versions().replay(None).unwrap().difference, None);
}

#[test]
fn a_run_that_cannot_be_recorded_is_rejected_before_it_starts() {
    let directory = tempfile::tempdir().unwrap();
    let mounted = Sandbox::builder().host(host()).mount(Mount::read_only(directory.path(), "/m")).open().unwrap();
    let refused = |outcome: Result<runtime::Output, Error>, reason: &str| {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("cannot record the run") && error.contains(reason), "{error}");
    };
    refused(mounted.run(Command::bash("true").record()), "mounted");
    let sandbox = sandbox();
    let (command, _stdin) = Command::bash("cat").record().stdin_pipe();
    refused(sandbox.run(command), "standard input");
    refused(sandbox.session("s").unwrap().run(Command::python("x = 1").record()), "only in memory");
    refused(sandbox.run(Command::bash("cat").stdin(vec![0; 9 << 20]).record()), "8 MB");
    assert!(sandbox.history(10).unwrap().iter().all(|run| run.name != "bash" && run.name != "python"));
}
