//! Commits can be rejected, and committed changes are reported in order, to each consumer at least once. A writer that
//! has not seen the newest content changes nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use runtime::actions::{Context, actions};
use runtime::{Cancel, Command, Content, Error, Event, Keep, Policy, Preset, Sandbox, Side};
use serde_json::json;

use super::{host, sandbox};

#[test]
fn a_hook_receives_changes_and_can_reject_them() {
    let sandbox = sandbox();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    sandbox
        .on_commit("/src", move |commit| {
            let content = commit.read("/src/a").map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            let changes: Vec<String> = commit.changes.iter().map(|change| format!("{} {}", change.kind, change.path)).collect();
            noted.lock().unwrap().push((commit.command.to_owned(), changes));
            if content.contains("bad") { Err("no bad words".to_owned()) } else { Ok(()) }
        })
        .unwrap();
    assert!(sandbox.bash("mkdir /src; echo good > /src/a; echo x > /other").unwrap().status.success());
    sandbox.bash("echo y > /other; ls /src").unwrap();
    let refused = sandbox.bash("echo bad > /src/a; echo z > /other; echo done").unwrap();
    assert_eq!((refused.status.code(), refused.refused.as_deref()), (1, Some("no bad words")));
    assert_eq!(refused.stdout, b"done\n");
    assert!(String::from_utf8_lossy(&refused.stderr).ends_with("sandlite: changes rejected by a hook: no bad words\n"));
    assert_eq!(sandbox.bash("cat /src/a /other").unwrap().stdout, b"good\ny\n", "all of it was rolled back");
    let row = sandbox.history_run(refused.run).unwrap().unwrap();
    assert_eq!((row.error.as_deref(), row.exit_code, row.changes), (Some("no bad words"), Some(1), None));
    // A call of the library, too.
    let error = sandbox.fs().write("/src/a", "bad").unwrap_err();
    assert!(matches!(&error, Error::Refused(message) if message == "no bad words"), "{error}");
    assert_eq!(sandbox.fs().read("/src/a").unwrap(), b"good\n");
    assert_eq!(sandbox.history(2).unwrap()[1].error.as_deref(), Some("no bad words"));
    sandbox.fs().rename("/src/a", "/moved").unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(
        seen[0],
        (
            "mkdir /src; echo good > /src/a; echo x > /other".to_owned(),
            vec!["created /src".to_owned(), "created /src/a".to_owned()]
        )
    );
    assert_eq!(seen.last().unwrap().1, ["renamed /moved"]);
    assert_eq!(seen.len(), 4);
}

// T-BRG-04: a hook that breaks down lets nothing through, and a session stays where it was.
#[test]
fn a_hook_that_panics_rejects_the_commit() {
    let sandbox = sandbox();
    let session = sandbox.session("s").unwrap();
    session.bash("x=1").unwrap();
    sandbox
        .on_commit("/", |commit| if commit.principal == Some("ann") { Err("not ann".to_owned()) } else { panic!("broken") })
        .unwrap();
    let output = session.bash("x=2; echo 1 > /f").unwrap();
    assert_eq!(output.refused.as_deref(), Some("the hook panicked"));
    assert_eq!(session.bash("echo $x; ls /f").unwrap().stdout, b"1\n");
    assert_eq!(sandbox.view("ann", [""; 0]).unwrap().bash("echo 1 > /f").unwrap().refused.as_deref(), Some("not ann"));
    for path in ["relative", "", "/a/../f", "/f\0"] {
        assert!(sandbox.on_commit(path, |_| Ok(())).is_err(), "{path:?}");
    }
    let sandbox = super::sandbox();
    sandbox.on_commit("//a/./f/", |_| Err("closed".to_owned())).unwrap();
    assert_eq!(sandbox.bash("mkdir /a; echo 1 > /a/f").unwrap().refused.as_deref(), Some("closed"));
}

// T-BRG-04: no detour changes what a hook guards without asking it.
#[test]
fn a_hook_is_asked_whatever_way_a_guest_takes() {
    let detours = [
        ("a directory above it is moved away", "mv /src /old"),
        ("another one takes its place", "mv /src /old; mv /evil /src"),
        ("a new one takes its place", "mkdir /new; ln -s /evil/x /new/x; mv /src /old; mv /new /src"),
        ("it is removed while its directory is elsewhere", "mv /src /away; rm /away/x; mv /away /src"),
        ("it is replaced while its directory is elsewhere", "mv /src /away; rm /away/x; ln -s /evil/x /away/x; mv /away /src"),
        ("it is written through another name", "echo evil > /free/second"),
        ("it is written through a new name", "ln /src/x /free/third; echo evil > /free/third"),
        ("its mode is changed through another name", "chmod 4777 /free/second"),
        ("it is written through the root's other name", "echo evil > /data/src/x"),
        ("it is written through a link", "ln -s /src/x /free/link; echo evil > /free/link"),
        ("much is changed first", "mkdir /many; cd /many; touch {1..9000} {a,b,c}{1..900}; echo evil > /src/x"),
    ];
    for (name, script) in detours {
        let sandbox = Sandbox::builder().host(host()).root_alias("data").open().unwrap();
        let made = sandbox.bash("mkdir /src /evil /free; echo good > /src/x; echo evil > /evil/x; ln /src/x /free/second");
        assert!(made.unwrap().status.success());
        sandbox.on_commit("/src/x", |_| Err("closed".to_owned())).unwrap();
        let output = sandbox.bash(script).unwrap();
        assert_eq!(output.refused.as_deref(), Some("closed"), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(sandbox.fs().read("/src/x").unwrap(), b"good\n", "{name}");
    }
    // It is not notified of unrelated changes.
    let sandbox = sandbox();
    sandbox.bash("mkdir /src; echo good > /src/x").unwrap();
    sandbox.on_commit("/src/y", |_| Err("closed".to_owned())).unwrap();
    assert!(sandbox.bash("mv /src /old; mv /old /src; mv /src /old; mkdir /src; echo z > /src/z").unwrap().status.success());
}

#[test]
fn changes_that_cannot_be_listed_are_rejected_if_there_is_a_hook() {
    let sandbox = Sandbox::builder().host(host()).preset(Preset::Permissive).open().unwrap();
    sandbox.on_commit("/src", |_| Ok(())).unwrap();
    let files = (0..100_001).map(|number| (format!("/many/{number}"), Content::from(Vec::new())));
    let error = sandbox.fs().write_all(files.collect()).unwrap_err();
    assert!(matches!(&error, Error::Refused(message) if message.starts_with("too many changes for a hook")), "{error}");
    assert!(!sandbox.fs().exists("/many").unwrap());
}

// T-BRG-04: the files of a newer source are new content, which no hook has approved.
#[test]
fn an_update_is_shown_to_hooks_and_events() {
    let directory = tempfile::tempdir().unwrap();
    let (file, own) = (directory.path().join("base.db"), directory.path().join("own.db"));
    let open = || Sandbox::builder().host(host());
    let in_base = |script: &str| assert!(open().database(&file).open().unwrap().bash(script).unwrap().status.success());
    in_base("mkdir -p /src/d /out; cd /src; echo 1 > a; echo 1 > b; echo 1 > gone; echo 1 > d/deep");
    let sandbox = open().database(&own).base(&file).open().unwrap();
    assert!(sandbox.bash("echo mine > /src/a; rm /src/b; mkdir /src/own").unwrap().status.success());
    in_base("cd /src; echo bad > a; echo 2 > b; rm gone; echo 2 > d/deep; echo new > new; chmod 700 /out");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    sandbox
        .on_commit("/src", move |commit| {
            let content = |path: &str| commit.read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
            let line = |change: &runtime::FileChange| {
                format!("{} {} {}", change.kind, change.path, content(&change.path).unwrap_or_default())
            };
            *noted.lock().unwrap() = commit.changes.iter().map(line).collect::<Vec<String>>();
            if content("/src/a").is_ok_and(|text| text == "bad") { Err("no bad words".to_owned()) } else { Ok(()) }
        })
        .unwrap();
    let start = sandbox.events_after(None, None).unwrap().version;
    let refused = sandbox.update("/", None, Some(Side::Theirs)).unwrap_err();
    assert!(matches!(&refused, Error::Refused(message) if message == "no bad words"), "{refused}");
    let theirs =
        ["modified /src/a bad", "created /src/b 2", "modified /src/d/deep 2", "deleted /src/gone ", "created /src/new new"];
    assert_eq!(*seen.lock().unwrap(), theirs);
    assert_eq!(sandbox.bash("cd /src; cat a d/deep; ls").unwrap().stdout, b"mine\n1\na\nd\ngone\nown\n");
    assert_eq!(lines(&sandbox.events_after(Some(start), None).unwrap().events), [""; 0]);
    sandbox.update("/", None, Some(Side::Ours)).unwrap();
    assert_eq!(*seen.lock().unwrap(), theirs[2..]);
    let events = sandbox.events_after(Some(start), None).unwrap();
    assert_eq!(lines(&events.events), ["attributes /out", "modified /src/d/deep", "deleted /src/gone", "created /src/new"]);
    assert!(events.events.iter().all(|event| event.run.is_some() && event.hash.is_none()));
    assert_eq!(lines(&sandbox.events_after(Some(start), Some("/src/d")).unwrap().events), ["modified /src/d/deep"]);
    // A removed file of the source is an event, too, and a changed one existed before.
    assert!(sandbox.bash("rm /src/new; echo 3 > /src/d/deep").unwrap().status.success());
    let later = sandbox.events_after(Some(events.version), None).unwrap();
    assert_eq!(lines(&later.events), ["modified /src/d/deep", "deleted /src/new"]);
}

#[test]
fn a_file_with_several_names_changes_under_each_of_them() {
    let sandbox = sandbox();
    sandbox.bash("mkdir /o /src; echo a > /o/f; ln /o/f /src/hard").unwrap();
    let start = sandbox.events_after(None, None).unwrap().version;
    let run = sandbox.bash("echo b >> /o/f").unwrap().run;
    assert_eq!(lines(&sandbox.events_after(Some(start), None).unwrap().events), ["modified /o/f", "modified /src/hard"]);
    assert_eq!(lines(&sandbox.events_after(Some(start), Some("/src")).unwrap().events), ["modified /src/hard"]);
    let log = sandbox.versions().log(Some("/src/hard"), None, Some(1)).unwrap();
    assert_eq!(log[0].version.call, Some(run));
}

fn lines(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .map(|event| {
            format!("{} {}{}", event.kind, event.from.as_ref().map(|from| format!("{from} -> ")).unwrap_or_default(), event.path)
        })
        .collect()
}

#[test]
fn events_of_a_path_include_the_moves_of_its_directory() {
    let sandbox = sandbox();
    sandbox.bash("mkdir -p /src/deep /other; echo a > /src/deep/f; echo b > /other/f").unwrap();
    let start = sandbox.events_after(None, None).unwrap().version;
    sandbox.bash("mv /src /old").unwrap();
    sandbox.bash("mv /other /elsewhere").unwrap();
    sandbox.bash("mv /old /src").unwrap();
    let seen = |path| lines(&sandbox.events_after(Some(start), Some(path)).unwrap().events);
    let moves = [
        "renamed /src -> /old",
        "renamed /src/deep -> /old/deep",
        "renamed /src/deep/f -> /old/deep/f",
        "renamed /old -> /src",
        "renamed /old/deep -> /src/deep",
        "renamed /old/deep/f -> /src/deep/f",
    ];
    assert_eq!((seen("/src/deep/f"), seen("/src")), (moves.map(str::to_owned).into(), moves.map(str::to_owned).into()));
    assert_eq!(seen("/src/none"), [""; 0]);
}

// T-POL-03, T-POL-07.
#[test]
fn a_view_sees_moves_across_the_border_of_hidden_paths_and_no_other_name_of_a_hidden_file() {
    let policy = Policy::parse("[[rule]]\npath = \"/secret\"\nlabel = \"secret\"").unwrap();
    let sandbox = Sandbox::builder().host(host()).policy(policy).open().unwrap();
    let owner = sandbox.owner().unwrap();
    owner.bash("mkdir /secret /open; echo a > /secret/f; echo b > /secret/g; ln /secret/g /open/g; echo c > /open/h").unwrap();
    let start = owner.events_after(None, None).unwrap().version;
    owner.bash("mv /secret/f /open/f; echo d >> /secret/g; mv /open/h /secret/h").unwrap();
    let seen = |labels: &[&str]| {
        let view = sandbox.view("ann", labels.iter().copied()).unwrap();
        let mut events = lines(&view.events_after(Some(start), None).unwrap().events);
        events.sort_unstable();
        events
    };
    assert_eq!(seen(&[]), ["created /open/f", "deleted /open/h"]);
    let all = ["modified /open/g", "modified /secret/g", "renamed /open/h -> /secret/h", "renamed /secret/f -> /open/f"];
    assert_eq!(seen(&["secret"]), all);
}

#[test]
fn events_come_in_order_from_any_version() {
    let sandbox = sandbox();
    let start = sandbox.events_after(None, None).unwrap().version;
    let run = sandbox.bash("mkdir /d; echo one > /d/a").unwrap().run;
    sandbox.fs().write("/d/a", "two").unwrap();
    sandbox.bash("mv /d/a /d/b; rm -f /none; chmod 600 /d").unwrap();
    sandbox.fs().remove_file("/d/b").unwrap();
    let page = sandbox.events_after(Some(start), None).unwrap();
    assert_eq!(
        lines(&page.events),
        ["created /d", "created /d/a", "modified /d/a", "attributes /d", "renamed /d/a -> /d/b", "deleted /d/b"]
    );
    assert_eq!((page.events[0].run, page.more), (Some(run), false));
    assert!(page.events.windows(2).all(|pair| pair[0].version <= pair[1].version));
    let hashes: Vec<_> = page.events.iter().map(|event| event.hash.is_some()).collect();
    assert_eq!(hashes, [false, true, true, false, true, false]);
    assert_ne!(page.events[1].hash, page.events[2].hash);
    assert_eq!(page.events[2].hash, page.events[4].hash, "a name is not the content");
    // From the middle, below a path, and nothing new.
    let middle = sandbox.events_after(Some(page.events[2].version), Some("/d/b")).unwrap();
    assert_eq!(lines(&middle.events), ["renamed /d/a -> /d/b", "deleted /d/b"]);
    assert!(sandbox.events_after(Some(page.version), None).unwrap().events.is_empty());
    // Dropped versions are reported as lost.
    sandbox.versions().prune(&Keep { versions: Some(1), ..Keep::default() }).unwrap();
    let late = sandbox.events_after(Some(start), None).unwrap();
    assert_eq!(late.events.first().map(|event| event.kind.as_str()), Some("lost"));
    assert_eq!(late.version, page.version);
}

#[test]
fn a_page_of_events_is_bounded_and_the_next_one_continues() {
    let sandbox = sandbox();
    let mut after = Some(sandbox.events_after(None, None).unwrap().version);
    for number in 0..250 {
        sandbox.fs().write(&format!("/f{number}"), "x").unwrap();
    }
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = sandbox.events_after(after, None).unwrap();
        (after, pages) = (Some(page.version), pages + 1);
        found.extend(page.events.into_iter().map(|event| event.path));
        if !page.more {
            break;
        }
    }
    assert_eq!(found, (0..250).map(|number| format!("/f{number}")).collect::<Vec<_>>());
    assert!(pages >= 3);
}

#[test]
fn a_consumer_resumes_where_it_stopped_without_creating_a_version() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Sandbox::builder().host(host()).database(directory.path().join("a.db")).open().unwrap();
    let sandbox = open();
    sandbox.fs().write("/a", "1").unwrap();
    let (runs, newest) = (sandbox.history(100).unwrap().len(), sandbox.events_after(None, None).unwrap().version);
    assert_eq!(sandbox.cursor("index").unwrap(), None);
    sandbox.acknowledge("index", Some(newest)).unwrap();
    assert_eq!(sandbox.cursor("index").unwrap(), Some(newest));
    assert_eq!((sandbox.history(100).unwrap().len(), sandbox.events_after(None, None).unwrap().version), (runs, newest));
    drop(sandbox);
    let sandbox = open();
    sandbox.fs().write("/b", "2").unwrap();
    let page = sandbox.events_after(sandbox.cursor("index").unwrap(), None).unwrap();
    assert_eq!(lines(&page.events), ["created /b"]);
    // A consumer that was killed before it acknowledged them gets them again.
    assert_eq!(lines(&sandbox.events_after(sandbox.cursor("index").unwrap(), None).unwrap().events), ["created /b"]);
    assert_eq!(sandbox.view("ann", [""; 0]).unwrap().cursor("index").unwrap(), None, "a view has its own consumers");
    assert!(sandbox.acknowledge("", None).is_err() && sandbox.acknowledge("a\nb", None).is_err());
    sandbox.acknowledge("index", None).unwrap();
    assert_eq!(sandbox.cursor("index").unwrap(), None);
    assert!(sandbox.check().unwrap().is_empty());
}

#[test]
fn a_cancelled_action_does_not_wait_for_a_running_command() {
    let sandbox = sandbox();
    let mut running = sandbox.spawn(Command::bash("echo begun; sleep 20")).unwrap();
    std::io::Read::read_exact(&mut running.stdout.take().unwrap(), &mut [0; 6]).unwrap();
    let cancel = Cancel::default();
    cancel.kill();
    let context = Context::new(sandbox.clone()).cancelled_by(cancel);
    let began = std::time::Instant::now();
    for (name, arguments) in [
        ("acknowledge_events", json!({ "consumer": "index", "version": 0 })),
        ("write_file", json!({ "path": "/late", "content": "x" })),
    ] {
        let answer = runtime::actions::find(name).unwrap().run(&context, arguments);
        assert!(answer.is_error, "{name}: {}", answer.text);
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(15), "it waited for the command");
    running.kill();
    running.wait().unwrap();
    assert!(!sandbox.fs().exists("/late").unwrap());
    assert_eq!(sandbox.cursor("index").unwrap(), None);
}

#[test]
fn waiting_ends_with_the_next_version() {
    let sandbox = sandbox();
    let newest = sandbox.events_after(None, None).unwrap().version;
    let (writer, cancel) = (sandbox.clone(), Cancel::default());
    assert!(!sandbox.wait_for_version(newest, std::time::Duration::from_millis(1), &cancel).unwrap());
    let thread = std::thread::spawn(move || writer.fs().write("/late", "x"));
    assert!(sandbox.wait_for_version(newest, std::time::Duration::from_secs(60), &cancel).unwrap());
    thread.join().unwrap().unwrap();
    assert_eq!(lines(&sandbox.events_after(Some(newest), None).unwrap().events), ["created /late"]);
}

// T-POL-07.
#[test]
fn events_of_hidden_paths_are_not_listed() {
    let sandbox = sandbox();
    let start = sandbox.events_after(None, None).unwrap().version;
    sandbox.bash("mkdir /s; echo k > /s/key; echo o > /open; mv /s/key /s/other").unwrap();
    let policy = Policy::parse("[[rule]]\npath = \"/s\"\naccess = \"hidden\"").unwrap();
    let bound = sandbox.with_policy(policy).unwrap();
    assert_eq!(lines(&bound.events_after(Some(start), None).unwrap().events), ["created /open"]);
}

#[test]
fn of_a_hundred_writers_one_wins_each_round() {
    const WRITERS: usize = 100;
    let sandbox = sandbox();
    sandbox.fs().write("/counter", "0").unwrap();
    for round in 0..3 {
        let version = sandbox.fs().version("/counter").unwrap();
        let (won, barrier) = (AtomicUsize::new(0), Barrier::new(WRITERS));
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (sandbox, version, won, barrier) = (&sandbox, &version, &won, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    match sandbox.fs().write_if_version("/counter", version, format!("{round} {writer}")) {
                        Ok(_) => drop(won.fetch_add(1, Ordering::SeqCst)),
                        Err(Error::Stale { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                });
            }
        });
        assert_eq!(won.into_inner(), 1);
    }
}

#[test]
fn every_writing_action_takes_the_version_that_its_caller_has_seen() {
    for (name, arguments) in [
        ("write_file", json!({ "path": "/f", "content": "x" })),
        ("append_file", json!({ "path": "/f", "content": "x" })),
        ("write_files", json!({ "files": [{ "path": "/f", "content": "x" }, { "path": "/new", "content": "x" }] })),
        ("edit_file", json!({ "path": "/f", "edits": [{ "old": "one", "new": "two" }] })),
        ("delete_file", json!({ "path": "/f" })),
        ("move_file", json!({ "from": "/f", "to": "/g" })),
        ("copy_files", json!({ "from": "/other", "to": "/f" })),
    ] {
        let sandbox = sandbox();
        sandbox.fs().write("/f", "one").unwrap();
        sandbox.fs().write("/other", "other").unwrap();
        let old = sandbox.fs().version("/f").unwrap();
        sandbox.fs().write("/f", "one, changed").unwrap();
        let action = actions().iter().find(|action| action.name == name).unwrap();
        let act = |version: &str| {
            let mut arguments = arguments.clone();
            // Of many files, each has its own.
            match arguments.get_mut("files") {
                Some(files) => files[0]["expected_version"] = version.into(),
                None => arguments["expected_version"] = version.into(),
            }
            action.run(&Context::new(sandbox.clone()), arguments)
        };
        let answer = act(&old);
        assert!(answer.is_error && answer.text.contains("changed since it was read"), "{name}: {}", answer.text);
        assert_eq!(sandbox.fs().read("/f").unwrap(), b"one, changed", "{name}");
        let answer = act(&sandbox.fs().version("/f").unwrap());
        assert!(!answer.is_error, "{name}: {}", answer.text);
    }
    let sandbox = sandbox();
    assert!(sandbox.fs().if_version("/new", "none").append("/new", "x").is_ok());
    assert!(sandbox.fs().if_version("/new", "none").append("/new", "x").is_err());
    let version = sandbox.fs().version("/new").unwrap();
    sandbox.fs().if_version("/new", &version).rename("/new", "/newer").unwrap();
    assert!(sandbox.fs().if_version("/new", &version).remove_file("/newer").is_err());
}

#[test]
fn the_actions_about_events_are_the_same() {
    let sandbox = sandbox();
    let start = sandbox.events_after(None, None).unwrap().version;
    sandbox.run(Command::bash("echo 1 > /a; mkdir /d; echo 2 > /d/b")).unwrap();
    let act = |name: &str, arguments| {
        let action = actions().iter().find(|action| action.name == name).unwrap();
        action.run(&Context::new(sandbox.clone()), arguments)
    };
    let answer = act("events", json!({ "after": start, "path": "/d", "wait": 1 }));
    assert_eq!(
        answer.text.lines().map(|line| line.split_once(' ').unwrap().1).collect::<Vec<_>>(),
        ["created /d", "created /d/b"]
    );
    let stored = act("acknowledge_events", json!({ "consumer": "c", "version": start + 1 }));
    assert!(!stored.is_error, "{}", stored.text);
    assert_eq!(act("events", json!({ "consumer": "c" })).text, "no events");
}
