//! Questions about the past: what a run did, who wrote a line, which run broke it.

use runtime::actions::{self, Context};
use runtime::{Error, Keep, Sandbox, Verdict};
use serde_json::json;

use super::sandbox;

fn act(sandbox: &Sandbox, name: &str, arguments: serde_json::Value) -> actions::Answer {
    actions::find(name).unwrap().run(&Context::new(sandbox.clone()), arguments)
}

#[test]
fn a_run_is_shown_with_its_output_and_changes() {
    let sandbox = sandbox();
    sandbox.bash("echo one > /note").unwrap();
    let second = sandbox.bash("echo two > /note; echo out; echo err >&2; exit 3").unwrap().run;
    let third = sandbox.bash("cat /note").unwrap().run;
    sandbox.versions().checkpoint("named", None).unwrap();
    for reference in [second.to_string(), "HEAD".to_owned(), "named".to_owned(), "@{now}".to_owned()] {
        let shown = sandbox.versions().show(&reference).unwrap();
        let run = shown.run.unwrap();
        assert_eq!((run.id, run.exit_code, &*run.stdout, &*run.stderr), (second, Some(3), &b"out\n"[..], &b"err\n"[..]));
        let changes = shown.changes.unwrap();
        assert!(changes.patch().contains("-one\n+two\n"), "{reference}: {}", changes.patch());
        assert_eq!(shown.version.unwrap().labels, ["named"]);
    }
    let shown = sandbox.versions().show(&third.to_string()).unwrap();
    assert!(shown.version.is_none() && shown.changes.is_none());
    assert_eq!(shown.run.unwrap().stdout, b"two\n");
    let answer = act(&sandbox, "show", json!({ "run": "HEAD" }));
    for part in ["exit 3", "[stdout]\nout", "[stderr]\nerr", "M /note", "+two"] {
        assert!(answer.text.contains(part), "{part}: {}", answer.text);
    }
    assert_eq!(answer.data["changes"]["total"], 1);
    for (reference, reason) in [("999", "unknown run"), ("nobody", "invalid version"), ("@{soon}", "expected a time")] {
        let error = sandbox.versions().show(reference).err().unwrap().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_run_reports_that_its_version_was_pruned() {
    let sandbox = sandbox();
    let first = sandbox.bash("echo 1 > /note").unwrap().run;
    for time in 2..6 {
        sandbox.bash(format!("echo {time} > /note")).unwrap();
    }
    sandbox.versions().prune(&Keep { versions: Some(2), ..Keep::default() }).unwrap();
    let shown = sandbox.versions().show(&first.to_string()).unwrap();
    assert!(shown.run.is_some() && shown.version.is_none() && shown.changes.is_none());
    let text = act(&sandbox, "show", serde_json::json!({ "run": first.to_string() })).text;
    assert!(text.ends_with("the version was pruned; changed paths:\ncreated /note"), "{text}");
    let error = sandbox.at(&first.to_string()).err().unwrap().to_string();
    assert!(error.contains("its version was pruned"), "{error}");
}

#[test]
fn each_line_has_the_run_that_wrote_it() {
    let sandbox = sandbox();
    let mut runs = Vec::new();
    for command in [
        "printf 'a\\nb\\nc\\n' > /list",
        "touch /other",
        "sed -i s/b/B/ /list",
        "printf 'z\\n' | cat - /list > /new; mv /new /list; echo unrelated > /other",
        "printf 'end' >> /list",
    ] {
        runs.push(sandbox.bash(command).unwrap().run);
    }
    let blame = sandbox.versions().blame("/list").unwrap();
    let seen: Vec<(&str, Option<i64>)> =
        blame.lines.iter().map(|(text, author)| (text.as_str(), blame.authors[*author].version.call)).collect();
    let [first, _, second, moved, last] = runs[..] else { panic!() };
    // The move brought another file here, and the lines that are the same are those of before.
    assert_eq!(seen, [("z", Some(moved)), ("a", Some(first)), ("B", Some(second)), ("c", Some(first)), ("end", Some(last))]);
    let before = sandbox.at("HEAD~1").unwrap();
    assert_eq!(before.versions().blame("/list").unwrap().lines.len(), 4);
    let answer = act(&sandbox, "blame", json!({ "path": "/list", "offset": 2, "limit": 2 }));
    assert_eq!(answer.data["total"], 5);
    assert_eq!(answer.data["lines"][0]["text"], "a");
    assert_eq!(answer.data["lines"].as_array().unwrap().len(), 2);
    assert!(answer.text.contains(" (sed -i s/b/B/ /list) 3: B"), "{}", answer.text);
    sandbox.bash("head -c 9 /dev/zero > /binary; mkdir /d").unwrap();
    for (path, reason) in [("/binary", "binary file"), ("/d", "not a regular file"), ("/missing", "no such file")] {
        let error = sandbox.versions().blame(path).err().unwrap().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn lines_that_are_older_than_all_versions_belong_to_the_oldest() {
    let sandbox = sandbox();
    for line in 1..6 {
        sandbox.bash(format!("echo {line} >> /list")).unwrap();
    }
    sandbox.versions().prune(&Keep { versions: Some(3), ..Keep::default() }).unwrap();
    let blame = sandbox.versions().blame("/list").unwrap();
    let authors: Vec<_> = blame.lines.iter().map(|(_, author)| blame.authors[*author].version.number).collect();
    let oldest = *authors.iter().min().unwrap();
    assert_eq!(authors.iter().filter(|author| **author == oldest).count(), 3, "{authors:?}");
}

/// A sandbox with this many versions, of which one breaks something.
fn broken(versions: u32, at: u32) -> Sandbox {
    let sandbox = sandbox();
    sandbox.bash("echo fine > /state").unwrap();
    sandbox.versions().checkpoint("good", None).unwrap();
    for number in 1..=versions {
        let text = if number == at { "echo broken > /state".to_owned() } else { format!("echo {number} > /count") };
        sandbox.bash(text).unwrap();
    }
    sandbox
}

#[test]
fn the_run_that_broke_something_is_found_in_few_steps() {
    let sandbox = broken(40, 17);
    let before = sandbox.history(1).unwrap().remove(0).id;
    let found = sandbox.versions().bisect("good", None, "echo trace >> /state; grep -q fine /state").unwrap();
    assert_eq!(found.first_bad.run.unwrap().command, "echo broken > /state");
    assert!(found.changes.unwrap().patch().contains("-fine\n+broken\n"));
    assert!(found.steps.len() <= 8, "{}", found.steps.len());
    assert_eq!(found.suspects, []);
    // Nothing of it is left.
    assert_eq!(sandbox.history(1).unwrap().remove(0).id, before);
    assert_eq!(sandbox.fs().read("/state").unwrap(), b"broken\n");
    let answer = act(&sandbox, "bisect", json!({ "good": "good", "command": "grep -q fine /state" }));
    assert!(answer.text.contains("is the first bad one") && answer.text.contains("+broken"), "{}", answer.text);
}

#[test]
fn versions_that_cannot_be_tried_are_skipped() {
    let sandbox = broken(9, 5);
    let found =
        sandbox.versions().bisect("good", None, "test \"$(cat /count 2>&1)\" = 4 && exit 125; grep -q fine /state").unwrap();
    // The version of the break has the count of the one before it.
    assert!(found.steps.iter().any(|step| step.verdict == Verdict::Skip));
    let numbers: Vec<i64> = found.suspects.iter().map(|version| version.number).collect();
    assert_eq!(numbers.len(), 2, "{numbers:?}");
    assert!(numbers.iter().all(|number| *number < found.first_bad.version.number));
}

#[test]
fn a_bisection_that_cannot_succeed_reports_the_reason() {
    let sandbox = broken(3, 2);
    let check = |good: &str, bad: Option<&str>, command: &str, reason: &str| {
        let error = sandbox.versions().bisect(good, bad, command).err().unwrap();
        assert!(matches!(error, Error::Invalid(_)) && error.to_string().contains(reason), "{error}");
    };
    check("good", None, "false", "exits with 1 at the good version");
    check("good", None, "true", "exits with 0 at the bad version");
    check("HEAD", Some("good"), "true", "must be older");
    check("nobody", None, "true", "invalid version `nobody`");
    check("good", None, "kill -9 $$", "was stopped");
    check("good", None, "while :; do :; done", "was stopped");
}
