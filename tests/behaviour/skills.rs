//! A skill is JSON in, JSON out and files: pushed once, found by name, run in a separate sandbox that leaves nothing behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::skills::{Catalog, Error, File, Needs, Package, Pushed, Request, RunResult, Skills, Status};
use runtime::{Preset, Sandbox};

use super::host;

pub(super) fn skills() -> Skills {
    Skills::new(Catalog::in_memory().unwrap(), host(), Preset::Normal.limits())
}

fn head(name: &str, more: &str) -> File {
    File::new("SKILL.md", format!("---\nname: {name}\ndescription: A skill for tests.\n{more}---\n# How\n\nRead this.\n"))
}

pub(super) fn package(name: &str, more: &str, files: &[(&str, &str)]) -> Package {
    let files = files.iter().map(|(path, text)| File::new(*path, *text)).chain([head(name, more)]);
    Package::from_files(files.collect()).unwrap()
}

pub(super) fn push(skills: &Skills, name: &str, more: &str, files: &[(&str, &str)]) -> Pushed {
    skills.push(&package(name, more, files), Needs::default()).unwrap()
}

/// Pushes a skill with one script and runs it.
#[track_caller]
fn run(more: &str, script: (&str, &str), input: &str) -> RunResult {
    let skills = skills();
    push(&skills, "test", more, &[script]);
    skills.run(Request::new("test").input(input)).unwrap()
}

#[test]
fn a_catalog_is_read_in_pages() {
    let skills = skills();
    ["b", "a", "c"].into_iter().for_each(|name| drop(push(&skills, name, "", &[])));
    let page = |after: &str| {
        let (page, total) = skills.catalog().page(after, 2).unwrap();
        (page.into_iter().map(|skill| skill.name).collect::<Vec<_>>().join(" "), total)
    };
    assert_eq!([page(""), page("b"), page("c")], [("a b".to_owned(), 3), ("c".to_owned(), 3), (String::new(), 3)]);
    assert_eq!(skills.catalog().find("b").unwrap().name, "b");
    assert!(matches!(skills.catalog().find("d"), Err(Error::UnknownSkill(_))));
}

#[test]
fn a_catalog_of_a_newer_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(Catalog::open(directory.path()).unwrap());
    let connection = rusqlite::Connection::open(directory.path().join("skills.db")).unwrap();
    connection.pragma_update(None, "user_version", 2).unwrap();
    drop(connection);
    let error = std::error::Error::source(&Catalog::open(directory.path()).err().unwrap()).unwrap().to_string();
    assert!(error.contains("the catalog has format 2, and this program supports 1"), "{error}");
}

#[test]
fn a_script_finds_skillboxs_contract() {
    let script = r#"
import json, os, sys
names = ["SANDBOX_INPUT", "SANDBOX_OUTPUT", "SANDBOX_FILES_DIR", "SANDBOX_INPUT_DIR", "SANDBOX_SESSION_DIR", "SKILL_INSTRUCTIONS", "HOME"]
out = {name: os.environ[name] for name in names}
out["cwd"] = os.getcwd()
out["same"] = open("/sandbox/input.json").read() == os.environ["SANDBOX_INPUT"]
out["path"] = sys.path[0]
out["pid"] = os.getpid() > 0
out["uid"] = os.getuid()
out["there"] = [os.path.isdir(name) for name in ("/sandbox/input", "/sandbox/out/files", "/sandbox/session", "/sandbox/out/session", "/tmp", "/root")]
json.dump(out, open(os.environ["SANDBOX_OUTPUT"], "w"))
"#;
    let result = run("", ("scripts/main.py", script), r#"{"a": 1}"#);
    assert_eq!((result.status, result.error.as_deref()), (Status::Success, None), "{result:?}");
    let out: serde_json::Value = serde_json::from_str(&result.output.unwrap()).unwrap();
    let expected = serde_json::json!({
        "SANDBOX_INPUT": r#"{"a": 1}"#,
        "SANDBOX_OUTPUT": "/sandbox/out/output.json",
        "SANDBOX_FILES_DIR": "/sandbox/out/files/",
        "SANDBOX_INPUT_DIR": "/sandbox/input/",
        "SANDBOX_SESSION_DIR": "/sandbox/session/",
        "SKILL_INSTRUCTIONS": "# How\n\nRead this.",
        "HOME": "/tmp",
        "cwd": "/sandbox",
        "same": true,
        "path": "/sandbox/scripts/scripts",
        "pid": true,
        "uid": out["uid"],
        "there": [true, true, true, true, true, true],
    });
    assert_eq!(out, expected);
}

#[test]
fn input_is_an_empty_object_if_it_is_left_out() {
    let skills = skills();
    push(&skills, "test", "", &[("main.sh", r#"printf '["%s"]' "$SANDBOX_INPUT" > out/output.json; cat input.json"#)]);
    let result = skills.run(Request::new("test")).unwrap();
    assert_eq!((result.output.as_deref(), result.logs.as_str()), (Some(r#"["{}"]"#), "{}"));
}

#[test]
fn the_skill_itself_cannot_be_changed_by_its_script() {
    let script = "echo x > scripts/main.sh; rm -f scripts/data; chmod 777 scripts/data; mkdir scripts/new; mv scripts other; \
        ln scripts/data scripts/link; cat scripts/data; echo '{}' > out/output.json";
    let skills = skills();
    push(&skills, "test", "", &[("main.sh", script), ("data", "kept")]);
    for _ in 0..2 {
        let result = skills.run(Request::new("test")).unwrap();
        assert!(result.logs.starts_with("kept\n") && result.logs.contains("Read-only file system"), "{}", result.logs);
        assert_eq!(result.status, Status::Success);
    }
}

#[test]
fn output_keeps_its_numbers_and_loses_its_white_space() {
    let script = "printf '{ \"big\": 123456789012345678901234567890,\\n \"x\": 1.50 }' > out/output.json";
    let result = run("", ("run.sh", script), "{}");
    assert_eq!(result.output.as_deref(), Some(r#"{"big":123456789012345678901234567890,"x":1.50}"#));
    assert!(result.to_json().contains(r#""output":{"big":123456789012345678901234567890,"x":1.50}"#), "{result:?}");
    assert!(result.duration_ms > 0 && result.usage.is_some() && result.id.len() == 36, "{result:?}");
}

#[test]
fn json_input_and_output_follow_the_grammar() {
    let input = r#"{"name":"\ud800","large":1e999}"#;
    let result = run("", ("main.sh", "cp input.json out/output.json"), input);
    assert_eq!((result.output.as_deref(), result.error.as_deref()), (Some(input), None));
    let schema = "input_schema:\n  type: object\n";
    let result = run(schema, ("main.sh", "true"), input);
    assert_eq!(result.error.as_deref(), Some("invalid input: unexpected end of hex escape at line 1 column 16"));
}

#[test]
fn output_that_is_not_json_is_an_error_with_its_position() {
    let result = run("", ("main.sh", "printf '{\\n  \"a\": oops}' > out/output.json"), "{}");
    assert_eq!(result.status, Status::Failed);
    assert_eq!(result.error.as_deref(), Some("output.json is not JSON: expected value at line 2 column 8"));
    let none = run("", ("main.sh", "true"), "{}");
    assert_eq!((none.status, none.output, none.error), (Status::Success, None, None));
}

#[test]
fn output_is_read_after_any_number_of_files_and_must_be_a_file() {
    let many = "for n in {1..501}; do echo $n > out/files/a$n; done; for n in {1..501}; do echo $n > out/files/b$n; done; echo [1] > out/output.json";
    let result = run("", ("main.sh", many), "{}");
    assert_eq!((result.output.as_deref(), result.files.len()), (Some("[1]"), 1000), "{:?}", result.error);
    assert_eq!(result.notes, ["more than 1000 files; 2 are not listed"]);
    for script in ["mkdir out/output.json", "echo 1 > /tmp/x; ln -s /tmp/x out/output.json"] {
        let result = run("", ("main.sh", script), "{}");
        assert_eq!((result.status, result.error.as_deref()), (Status::Failed, Some("output.json is not a regular file")));
    }
}

#[test]
fn logs_and_input_that_are_too_long_are_noted() {
    let result = run("", ("main.sh", "head -c 1100000 /dev/zero | tr '\\0' a; echo ${#SANDBOX_INPUT} > /dev/stderr"), "{}");
    assert_eq!(
        (result.logs.len(), result.notes.as_slice()),
        (1 << 20, ["the logs are cut after 1048576 bytes".to_owned()].as_slice())
    );
    let input = format!("\"{}\"", "x".repeat(1 << 20));
    let result = run("", ("main.sh", "echo ${SANDBOX_INPUT-none}; wc -c < input.json"), &input);
    assert_eq!(result.logs, "none\n1048578\n");
    assert!(result.notes[0].starts_with("the input has 1048578 bytes, too many for SANDBOX_INPUT"), "{:?}", result.notes);
}

#[test]
fn a_script_that_fails_keeps_its_logs_and_its_output() {
    let result = run("", ("main.sh", "echo out; echo err >&2; echo '[1]' > out/output.json; exit 3"), "{}");
    assert_eq!(result.status, Status::Failed);
    assert_eq!(result.error.as_deref(), Some("command exited with code 3"));
    assert_eq!((result.logs.as_str(), result.output.as_deref()), ("out\n\nerr\n", Some("[1]")));
}

#[test]
fn a_timeout_is_written_as_go_writes_it() {
    let result = run("timeout: 300ms\n", ("main.sh", "echo begun; sleep 20"), "{}");
    assert_eq!(result.status, Status::Timeout);
    assert_eq!(result.error.as_deref(), Some("execution timed out after 300ms"));
    assert_eq!(result.logs, "begun\n");
}

#[test]
fn the_limits_of_a_skill_are_tightened_by_the_preset() {
    let skills = Skills::new(Catalog::in_memory().unwrap(), host(), Preset::Strict.limits());
    push(
        &skills,
        "test",
        "timeout: 10m\nresources:\n  memory: 900Mi\n",
        &[("main.py", "x = bytearray(400 << 20)\nprint('much')")],
    );
    let began = Instant::now();
    let result = skills.run(Request::new("test")).unwrap();
    assert_eq!(result.status, Status::Failed, "{result:?}");
    assert!(!result.logs.contains("much"), "strict allows 256 MB");
    push(&skills, "endless", "timeout: 10m\n", &[("main.sh", "sleep 100")]);
    let result = skills.run(Request::new("endless")).unwrap();
    assert_eq!(result.error.as_deref(), Some("execution timed out after 5s"), "strict allows 5 s");
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn blocked_variables_are_refused_and_others_are_set() {
    let skills = skills();
    push(&skills, "test", "", &[("main.sh", "echo \"$MODE\"; echo ran > out/files/ran")]);
    for name in [
        "PATH",
        "HOME",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "NODE_PATH",
        "NODE_OPTIONS",
        "SANDBOX_X",
        "sandbox_x",
        "Skill_y",
    ] {
        let result = skills.run(Request::new("test").env(name, "x")).unwrap();
        assert_eq!(result.status, Status::Failed);
        assert_eq!(result.error, Some(format!("env var {name:?} is not allowed")));
        assert!(result.files.is_empty() && result.usage.is_none(), "nothing ran");
    }
    for name in ["MODE", "path", "PATHS"] {
        assert_eq!(skills.run(Request::new("test").env(name, "x")).unwrap().status, Status::Success, "{name}");
    }
    assert_eq!(skills.run(Request::new("test").env("MODE", "fast")).unwrap().logs, "fast\n");
    for (name, value, reason) in [
        ("", "x", "its name is empty"),
        ("A=B", "x", "its name contains `=`"),
        ("a\0b", "x", "its name contains a zero byte"),
        ("MODE", "a\0b", "its value contains a zero byte"),
    ] {
        let result = skills.run(Request::new("test").env(name, value)).unwrap();
        assert_eq!((result.status, result.error), (Status::Failed, Some(format!("env var {name:?} cannot be set: {reason}"))));
    }
}

#[test]
fn files_are_copied_in_and_out_with_size_and_checksum() {
    let script =
        "sort input/names.txt > out/files/sorted.txt; mkdir out/files/d; printf abc > out/files/d/abc; ln -s /etc out/files/link";
    let skills = skills();
    push(&skills, "test", "", &[("main.sh", script)]);
    let result = skills.run(Request::new("test").file("names.txt", "b\na\n")).unwrap();
    let files: Vec<_> = result.files.iter().map(|file| (file.path.as_str(), file.size, &file.sha256[..8])).collect();
    assert_eq!(files, [("d/abc", 3, "ba7816bf"), ("sorted.txt", 4, "911169dd")]);
    assert_eq!(result.read("sorted.txt").unwrap(), b"a\nb\n");
    assert!(result.read("../output.json").is_err() && result.read("missing").is_err());
    let directory = tempfile::tempdir().unwrap();
    result.save(&directory.path().join("out")).unwrap();
    assert_eq!(std::fs::read(directory.path().join("out/d/abc")).unwrap(), b"abc");
    for name in ["../x", "/x", "a\0b", "d/", ""] {
        let refused = skills.run(Request::new("test").file(name, "x")).unwrap();
        assert!(refused.error.unwrap().starts_with("invalid file name"), "{name:?}");
    }
}

#[test]
fn schemas_of_input_and_output_are_checked_with_the_path() {
    let more = "input_schema:\n  type: object\n  required: [items]\n  properties:\n    items:\n      type: array\n      items: {type: integer}\n\
        output_schema: '{\"type\": \"object\", \"required\": [\"sum\"]}'\n";
    let script = ("main.sh", "jq '{sum: (.items | add)} | if .sum == 0 then {} else . end' input.json > out/output.json");
    assert_eq!(run(more, script, r#"{"items": [1, 2]}"#).output.as_deref(), Some(r#"{"sum":3}"#));
    let check = |input: &str, expected: &str| {
        let result = run(more, script, input);
        assert_eq!((result.status, result.error.as_deref()), (Status::Failed, Some(expected)), "{input}");
    };
    check(r#"{"items": [1, "2"]}"#, "invalid input: `items[1]` must be of type integer, not string");
    check("[]", "invalid input: the input must be of type object, not array");
    check("{}", "invalid input: `items` is missing");
    check("{", "invalid input: not JSON: EOF while parsing an object at line 1 column 1");
    check(r#"{"items": [0]}"#, "invalid output: `sum` is missing");
}

#[test]
fn a_skill_without_a_script_runs_the_code_it_is_given() {
    let skills = skills();
    push(&skills, "library", "", &[("core/shapes.py", "def area(a, b):\n    return a * b\n")]);
    let run = |input: serde_json::Value| skills.run(Request::new("library").input(input.to_string())).unwrap();
    let code = "from core.shapes import area\nprint(area(6, 7))";
    assert_eq!(run(serde_json::json!({ "code": code })).logs, "42\n");
    assert_eq!(run(serde_json::json!({ "input": format!("Try this:\n```python\n{code}\n```\n") })).logs, "42\n");
    let none = run(serde_json::json!({ "input": "please" }));
    assert_eq!((none.status, none.logs.as_str()), (Status::Success, "No Python code found in the input\n"));
    assert_eq!(run(serde_json::json!({ "code": "1/0" })).status, Status::Failed);
    push(&skills, "words", "mode: cognitive\n", &[]);
    let refused = skills.run(Request::new("words")).unwrap();
    assert!(refused.error.unwrap().contains("mode cognitive"));
    let noted = push(&skills, "script", "lang: node\nimage: node:20-slim\n", &[("main.js", "1")]);
    assert_eq!(noted.notes.len(), 2, "{noted:?}");
    let refused = skills.run(Request::new("script")).unwrap();
    assert_eq!(refused.error.as_deref(), Some("lang node cannot run: no JavaScript guest is installed"));
}

#[test]
fn a_session_keeps_the_files_of_its_runs() {
    let directory = tempfile::tempdir().unwrap();
    let skills = Skills::new(Catalog::open(directory.path()).unwrap(), host(), Preset::Normal.limits());
    push(&skills, "put", "", &[("main.sh", "echo one > out/session/note; echo two > out/files/report")]);
    push(&skills, "get", "", &[("main.sh", "cat session/note input/report; ls out/files input scripts; touch out/files/more")]);
    skills.run(Request::new("put").session("s1")).unwrap();
    let result = skills.run(Request::new("get").session("s1")).unwrap();
    assert_eq!(result.logs, "one\ntwo\ninput:\nnote\nreport\n\nout/files:\n\nscripts:\nSKILL.md\nmain.sh\n", "{result:?}");
    assert_eq!(result.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["more"]);
    let other = skills.run(Request::new("get").session("s2")).unwrap();
    assert!(other.logs.contains("No such file"), "sessions know nothing of each other");
    assert!(skills.run(Request::new("get").session("../s1")).is_err());
    assert!(!skills.run(Request::new("get")).unwrap().logs.contains("two"));
}

#[test]
fn pushing_the_same_again_changes_nothing_and_other_content_is_refused_or_replaces() {
    let skills = skills();
    let first = push(&skills, "test", "version: 1.0.0\n", &[("main.sh", "echo 1")]);
    assert!(!first.unchanged && first.active);
    let again = push(&skills, "test", "version: 1.0.0\n", &[("main.sh", "echo 1")]);
    assert!(again.unchanged && again.digest == first.digest);
    let other = package("test", "version: 1.0.0\n", &[("main.sh", "echo 2")]);
    assert!(matches!(skills.push(&other, Needs::default()), Err(Error::Conflict { digest, .. }) if digest == first.digest));
    assert_eq!(skills.run(Request::new("test")).unwrap().logs, "1\n");
    skills.push(&other, Needs { replace: true, ..Needs::default() }).unwrap();
    assert_eq!(skills.run(Request::new("test")).unwrap().logs, "2\n", "the prepared sandbox is that of the content");
    let versions = skills.catalog().versions("test").unwrap();
    assert_eq!(versions[0].replaced, [first.digest], "the old digest stays in the history");
}

#[test]
fn latest_is_the_active_version() {
    let skills = skills();
    for version in ["1.9.0", "1.10.0", "2.0.0-beta", "1.2.0"] {
        push(&skills, "test", &format!("version: {version}\n"), &[("main.sh", &format!("echo {version}"))]);
    }
    let catalog = skills.catalog();
    let versions: Vec<_> = catalog.versions("test").unwrap().into_iter().map(|row| (row.version, row.active)).collect();
    let expected = [("2.0.0-beta", true), ("1.10.0", false), ("1.9.0", false), ("1.2.0", false)];
    assert_eq!(versions, expected.map(|(version, active)| (version.to_owned(), active)));
    let logs = |reference: &str| skills.run(Request::new(reference)).unwrap().logs;
    assert_eq!((logs("test").as_str(), logs("test@1.9.0").as_str()), ("2.0.0-beta\n", "1.9.0\n"));
    catalog.activate("test", "1.9.0").unwrap();
    assert_eq!((logs("test").as_str(), logs("test@latest").as_str()), ("1.9.0\n", "1.9.0\n"));
    assert_eq!(catalog.delete("test@1.9.0").unwrap(), ["1.9.0"]);
    assert_eq!(logs("test"), "2.0.0-beta\n", "the newest that is left");
    assert!(matches!(catalog.delete("test@1.9.0"), Err(Error::UnknownVersion { .. })));
    assert_eq!(catalog.delete("test").unwrap(), ["1.2.0", "1.10.0", "2.0.0-beta"]);
    assert!(matches!(skills.run(Request::new("test")), Err(Error::UnknownSkill(_))));
    for reference in ["../x", "test@../x", "", "a b"] {
        assert!(matches!(skills.run(Request::new(reference)), Err(Error::Argument(_))), "{reference}");
    }
}

#[test]
fn latest_is_one_version_also_when_it_is_deleted_or_activated() {
    let sandbox = Sandbox::builder().host(host()).open().unwrap();
    for catalog in [Catalog::in_memory().unwrap(), Catalog::inside(sandbox.clone()).unwrap()] {
        for version in ["1.0.0", "1.1.0", "2.0.0"] {
            catalog.push(&package("test", &format!("version: {version}\n"), &[]), false, None).unwrap();
        }
        catalog.activate("test", "1.1.0").unwrap();
        assert_eq!(catalog.activate("test", "latest").unwrap(), "1.1.0");
        assert!(matches!(catalog.delete("test@"), Err(Error::Argument(_))), "an empty version is not all of them");
    }
    let again = Catalog::inside(sandbox).unwrap();
    assert_eq!(again.find("test").unwrap().version, "1.1.0", "the file in the sandbox names a version");
    assert_eq!(again.delete("test@latest").unwrap(), ["1.1.0"]);
    assert_eq!(again.versions("test").unwrap().len(), 2);
}

#[test]
fn versions_are_compared_by_files_and_lines() {
    let skills = skills();
    push(&skills, "test", "version: 1.0.0\n", &[("main.sh", "echo 1\necho same\n"), ("old", "x")]);
    push(&skills, "test", "version: 1.1.0\n", &[("main.sh", "echo 2\necho same\n"), ("new", "y")]);
    let diff = skills.catalog().diff("test", "1.0.0", None).unwrap();
    let files = serde_json::to_value(&diff.files).unwrap();
    assert_eq!(
        files[1],
        serde_json::json!({ "path": "main.sh", "status": "modified", "lines": [
        { "op": "remove", "text": "echo 1" }, { "op": "add", "text": "echo 2" }, { "op": "context", "text": "echo same" },
    ] })
    );
    assert_eq!((&files[2]["status"], &files[3]["status"]), (&"added".into(), &"removed".into()));
    assert!(diff.patch().contains("--- a/main.sh\n+++ b/main.sh\n-echo 1\n+echo 2\n echo same\n"), "{}", diff.patch());
}

// T-SKL-05: what was pushed is what runs, and a catalog that somebody changed is not used.
#[test]
fn a_catalog_that_was_changed_is_not_run() {
    let directory = tempfile::tempdir().unwrap();
    let skills = Skills::new(Catalog::open(directory.path()).unwrap(), host(), Preset::Normal.limits());
    push(&skills, "test", "", &[("main.sh", "echo good")]);
    let database = rusqlite::Connection::open(directory.path().join("skills.db")).unwrap();
    database.execute("UPDATE skill_file SET content = CAST('echo bad' AS BLOB) WHERE path = 'main.sh'", []).unwrap();
    let error = skills.run(Request::new("test")).unwrap_err().to_string();
    assert!(error.contains("was modified"), "{error}");
}

#[test]
fn a_push_that_is_interrupted_leaves_the_catalog_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(directory.path()).unwrap();
    catalog.push(&package("test", "version: 1.0.0\n", &[("main.sh", "echo 1")]), false, None).unwrap();
    // The last statement of a push fails: nothing of what came before it is there.
    let database = rusqlite::Connection::open(directory.path().join("skills.db")).unwrap();
    database
        .execute_batch("CREATE TRIGGER stop BEFORE UPDATE ON skill BEGIN SELECT RAISE(ABORT, 'pulled the plug'); END")
        .unwrap();
    let newer = package("test", "version: 2.0.0\n", &[("main.sh", "echo 2")]);
    assert!(catalog.push(&newer, false, None).is_err());
    assert_eq!(catalog.versions("test").unwrap().len(), 1);
    assert_eq!(catalog.list().unwrap()[0].version, "1.0.0");
    let files: i64 = database.query_row("SELECT count(*) FROM skill_file", [], |row| row.get(0)).unwrap();
    assert_eq!(files, 2);
    database.execute_batch("DROP TRIGGER stop").unwrap();
    catalog.push(&newer, false, None).unwrap();
    assert_eq!(catalog.list().unwrap()[0].version, "2.0.0");
}

#[test]
fn tenants_cannot_see_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|tenant| Catalog::open(directory.path()).unwrap().of_tenant(tenant));
    one.push(&package("test", "", &[("main.sh", "echo 1")]), false, None).unwrap();
    assert!(two.list().unwrap().is_empty() && !two.contains("test").unwrap() && two.get("test").is_err());
    two.push(&package("test", "", &[("main.sh", "echo 2")]), false, None).unwrap();
    two.delete("test").unwrap();
    assert!(one.contains("test").unwrap());
}

#[test]
fn sessions_and_shown_skills_of_tenants_are_separate() {
    let directory = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "../two"].map(|tenant| {
        let catalog = Catalog::open(directory.path()).unwrap().of_tenant(tenant);
        Skills::new(catalog, host(), Preset::Normal.limits())
    });
    for skills in [&one, &two] {
        push(skills, "test", "", &[("main.sh", "ls session; echo secret > out/session/note")]);
    }
    push(&one, "own", "", &[]);
    let logs = |skills: &Skills| skills.run(Request::new("test").session("s")).unwrap().logs;
    assert_eq!([logs(&one), logs(&one), logs(&two)], ["", "note\n", ""]);
    let shown = |skills: &Skills| std::fs::read_dir(skills.directory().unwrap()).unwrap().count();
    assert_eq!([shown(&one), shown(&two), shown(&one)], [2, 1, 2]);
    assert!(two.directory().unwrap().canonicalize().unwrap().starts_with(directory.path().canonicalize().unwrap()));
}

#[test]
fn a_thousand_runs_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let skills = Skills::new(Catalog::open(directory.path()).unwrap(), host(), Preset::Normal.limits());
    push(&skills, "test", "", &[("main.sh", "echo x > out/files/x; echo {} > out/output.json; echo y > /tmp/y; ls /tmp")]);
    let first = skills.run(Request::new("test")).unwrap();
    let before = (files_below(directory.path()), threads());
    for _ in 0..1000 {
        let result = skills.run(Request::new("test")).unwrap();
        assert_eq!((result.status, &result.logs, result.files.len()), (Status::Success, &first.logs, 1));
    }
    let after = (files_below(directory.path()), threads());
    assert_eq!(before.0, after.0);
    assert!(after.1 <= before.1 + 8, "threads: {} before, {} after", before.1, after.1);
}

fn files_below(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn ten_thousand_skills_are_listed_quickly_and_do_not_slow_runs() {
    let directory = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(directory.path()).unwrap();
    catalog.push(&package("test", "", &[("main.sh", "echo 1")]), false, None).unwrap();
    let mut database = rusqlite::Connection::open(directory.path().join("skills.db")).unwrap();
    let transaction = database.transaction().unwrap();
    for number in 0..10_000 {
        let sql = "INSERT INTO skill (tenant, name, version, active, description, lang, mode, has_script, digest, size, pushed)
                   VALUES ('', ?1, '1.0.0', 1, ?2, 'python', 'executable', 1, 'sha256:0', 100, 0)";
        transaction.execute(sql, rusqlite::params![format!("skill-{number}"), "A description. ".repeat(10)]).unwrap();
    }
    transaction.commit().unwrap();
    let fastest = (0..5).map(|_| {
        let began = Instant::now();
        assert_eq!(catalog.list().unwrap().len(), 10_001);
        began.elapsed()
    });
    let fastest = fastest.min().unwrap();
    assert!(fastest < Duration::from_millis(50), "{fastest:?}");
    let skills = Skills::new(catalog, host(), Preset::Normal.limits());
    assert_eq!(skills.run(Request::new("test")).unwrap().logs, "1\n");
}

#[test]
fn runs_beside_each_other_do_not_meet() {
    let skills = Arc::new(skills());
    push(&skills, "test", "", &[("main.sh", "cp input.json /tmp/mine; sleep 0.05; jq -c . /tmp/mine > out/output.json")]);
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let skills = Arc::clone(&skills);
            std::thread::spawn(move || skills.run(Request::new("test").input(number.to_string())).unwrap().output)
        })
        .collect();
    let outputs: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect();
    assert_eq!(outputs, (0..8).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn requirements_select_the_python_and_unavailable_ones_are_rejected_at_push() {
    let skills = skills();
    let comment = push(&skills, "comment", "", &[("main.py", "print(1)"), ("requirements.txt", "# nothing\n")]);
    assert_eq!(comment.notes, Vec::<String>::new());
    assert_eq!(skills.run(Request::new("comment")).unwrap().logs, "1\n");
    let is_installed = host().guests().iter().any(|guest| guest.name == "python-sci" && guest.installed);
    let files = [("main.py", "import numpy\nprint(numpy.arange(4).sum())"), ("requirements.txt", "numpy>=2\n")];
    let scientific = push(&skills, "scientific", "", &files);
    if is_installed {
        assert_eq!(skills.run(Request::new("scientific")).unwrap().logs, "6\n");
    } else {
        assert!(scientific.notes[0].contains("sandlite guests add python-sci"), "{scientific:?}");
        let error = skills.run(Request::new("scientific")).unwrap_err();
        assert!(error.hint().unwrap().contains("guests add python-sci"), "{error}");
    }
    let needy = package("needy", "", &[("main.py", ""), ("requirements.txt", "six==1.17.0\n")]);
    assert!(matches!(skills.push(&needy, Needs::default()), Err(Error::Requirements { .. })), "there is no pip");
    let mut asked = Vec::new();
    let mut pip = |words: &[String]| {
        asked.push(words.join(" "));
        Ok(Err("ERROR: No matching distribution found for six==1.17.0".to_owned()))
    };
    let refused = skills.push(&needy, Needs { pip: Some(&mut pip), ..Needs::default() }).unwrap_err();
    assert!(refused.to_string().contains("`six==1.17.0`"), "{refused}");
    assert!(asked[0].contains("six==1.17.0"), "{asked:?}");
    assert!(!skills.catalog().contains("needy").unwrap());
}
