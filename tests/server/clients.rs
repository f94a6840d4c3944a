//! The clients in Python, Go and JavaScript: one list of tests, `tests/clients/list.json`, through each of them against a real server.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::http::Server;
use super::skipped::skip;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns whether a program of this machine runs, and reports the test as skipped if not.
pub(super) fn has(program: &str, version: &str) -> bool {
    let found = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        skip(&format!("`{program}` is not installed"));
    }
    is_there
}

/// An example skill as a zip file in a directory.
pub(super) fn packed(skill: &str, directory: &Path) -> PathBuf {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
    command.args(["skill", "package"]).arg(root().join("examples/skills").join(skill)).current_dir(directory);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    directory.join(format!("{skill}-1.0.0.zip"))
}

// Runs the whole list; every test of it has to be reported, so that a driver that stops early does not count.
fn check(driver: &mut Command, after: &[&str]) {
    let list = root().join("tests/clients/list.json");
    let tests: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&list).unwrap()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&[]);
    driver
        .arg(&list)
        .arg(format!("http://{}", server.address))
        .arg(&server.key)
        .arg(packed("multi-file-output", directory.path()));
    let output = driver.args(after).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let passed: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("passed ")).collect();
    assert_eq!(passed, tests.iter().map(|test| test["test"].as_str().unwrap()).collect::<Vec<_>>(), "{out}\n{err}");
}

#[test]
fn the_python_client_passes_the_list() {
    if has("python3", "--version") {
        check(Command::new("python3").arg(root().join("tests/clients/client.py")), &[]);
    }
}

#[test]
fn the_python_client_for_asyncio_passes_the_list() {
    if has("python3", "--version") {
        check(Command::new("python3").arg(root().join("tests/clients/client.py")), &["async"]);
    }
}

#[test]
fn the_javascript_client_passes_the_list() {
    if has("node", "--version") {
        check(Command::new("node").arg(root().join("tests/clients/client.mjs")), &[]);
    }
}

#[test]
fn the_go_client_passes_the_list() {
    if has("go", "version") {
        let mut go = Command::new("go");
        // No network in tests: the module and its client need nothing else.
        go.current_dir(root().join("tests/clients/go")).env("GOFLAGS", "-mod=mod").env("GOPROXY", "off");
        check(go.args(["run", "."]), &[]);
    }
}

/// Runs the program; returns its exit code, standard output and standard error.
type Run<'a> = dyn Fn(&[&str]) -> (i32, String, String) + 'a;

// The options of `skill push` and `run` do what they do without a server, or are refused.
fn check_skills(directory: &Path, run: &Run<'_>) {
    let head = "---\nname: copy\ndescription: Copies its input.\ntimeout: 1s\n---\nGive anything.\n";
    let skill = directory.join("copy");
    std::fs::create_dir(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), head).unwrap();
    std::fs::write(skill.join("main.sh"), "cat input.json > out/output.json\n").unwrap();
    let pushed = run(&["skill", "push", "copy"]);
    assert_eq!((pushed.0, pushed.1.as_str()), (0, "pushed copy@1.0.0\n"), "{}", pushed.2);
    for option in [&["--offline"][..], &["--find-links", "."]] {
        let refused = run(&[&["skill", "push", "copy"], option].concat());
        assert!(refused.0 == 125 && refused.2.contains(&format!("`{}` does not work on a server", option[0])), "{refused:?}");
    }
    let ran = run(&["skill", "run", "copy", "--input", r#"{"n": 123456789012345678901234567890, "x": 1.50}"#]);
    assert_eq!((ran.0, ran.1.as_str()), (0, "{\"n\":123456789012345678901234567890,\"x\":1.50}\n"), "{}", ran.2);
    let ran = run(&["--json", "skill", "run", "copy", "--input", "[123456789012345678901234567890]"]);
    assert!(ran.0 == 0 && ran.1.contains(r#""output":[123456789012345678901234567890]"#), "{ran:?}");
    assert_eq!(run(&["skill", "run", "copy", "--input", "[1]}, {"]).0, 125);
    // Other content needs `--replace`.
    std::fs::write(skill.join("main.sh"), "sleep 60\n").unwrap();
    let refused = run(&["skill", "push", "copy"]);
    assert!(refused.0 == 1 && refused.2.contains("raise `version` in SKILL.md"), "{refused:?}");
    assert_eq!(run(&["skill", "push", "copy", "--replace"]).0, 0);
    let late = run(&["skill", "run", "copy"]);
    assert!(late.0 == 124 && late.2.contains("execution timed out after 1s"), "{late:?}");
}

#[test]
fn the_command_line_uses_a_sandbox_of_a_server() {
    let (server, directory) = (Server::start(&[]), tempfile::tempdir().unwrap());
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
        command.args(["--server", &format!("http://{}", server.address)]).args(words);
        let output = command.env("SANDLITE_KEY", &server.key).env_remove("SANDLITE_DB").current_dir(&directory).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let check = |words: &[&str], code: i32, out: &str| {
        let (found, stdout, stderr) = run(words);
        assert_eq!((found, stdout.as_str()), (code, out), "{words:?}: {stderr}");
    };
    check(&["bash", "-c", "echo hi > note.txt; echo said; exit 3"], 3, "said\n");
    assert_eq!(run(&["bash", "-c", "echo wrong >&2"]).2, "wrong\n");
    check(&["bash", "-c", "echo $0 $1", "zero", "it's"], 0, "zero it's\n");
    check(&["python", "-c", "print(6 * 7)"], 0, "42\n");
    check(&["fs", "cat", "note.txt"], 0, "hi\n");
    check(&["fs", "cat", "missing"], 1, "");
    check(&["--sandbox", "other", "fs", "cat", "note.txt"], 1, "");
    check(&["kv", "set", "plan", "{\"a\": 1}"], 0, "");
    check(&["kv", "get", "plan"], 0, "{\"a\":1}\n");
    check(&["kv", "get", "nothing"], 1, "");
    // A past version, with every verb that can show one and with no other.
    assert!(run(&["checkpoint", "before"]).1.starts_with("checkpoint before "));
    check(&["kv", "set", "plan", "2"], 0, "");
    check(&["kv", "set", "late", "3"], 0, "");
    check(&["bash", "-c", "echo changed > note.txt"], 0, "");
    check(&["--at", "before", "kv", "get", "plan"], 0, "{\"a\":1}\n");
    check(&["--at", "before", "kv", "keys"], 0, "plan\n");
    check(&["--at", "before", "fs", "cat", "note.txt"], 0, "hi\n");
    check(&["--at", "before", "bash", "-c", "cat note.txt; echo lost > note.txt"], 0, "hi\n");
    check(&["--at", "before", "python", "-c", "print(open('note.txt').read(), end='')"], 0, "hi\n");
    check(&["--at", "nobody", "kv", "get", "plan"], 125, "");
    for words in [&["kv", "set", "plan", "4"][..], &["diff", "before"], &["fs", "rm", "note.txt"], &["skill", "list"]] {
        assert!(
            run(&[&["--at", "before"], words].concat()).2.contains("`--at` does not work with this verb on a server"),
            "{words:?}"
        );
    }
    assert!(!run(&["--at", "before", "log"]).1.contains("changed > note.txt"));
    check(&["fs", "cat", "note.txt"], 0, "changed\n");
    check(&["kv", "get", "plan"], 0, "2\n");
    std::fs::create_dir_all(directory.path().join("tree/deep")).unwrap();
    std::fs::write(directory.path().join("tree/deep/file"), [0, 255]).unwrap();
    check(&["fs", "put", "tree", "/tree"], 0, "put tree -> /tree (1 file, 1 directory, 0 links, 2 B)\n");
    check(&["fs", "find", "/tree", "--kind", "file"], 0, "/tree/deep/file\n");
    check(&["fs", "get", "/tree", "back"], 0, "got /tree -> back (1 file, 1 directory, 0 links, 2 B)\n");
    assert_eq!(std::fs::read(directory.path().join("back/deep/file")).unwrap(), [0, 255]);
    assert!(run(&["checkpoint", "good"]).1.contains("good"));
    check(&["fs", "rm", "-r", "/tree"], 0, "");
    check(&["diff", "good", "--name-only"], 1, "D /tree\nD /tree/deep\nD /tree/deep/file\n");
    let (code, out, _) = run(&["restore", "good"]);
    assert!(code == 0 && out.contains("/tree/deep/file"), "{out}");
    check(&["fs", "du", "/tree"], 0, "       2 B  /tree  (1 file, 2 directories)\n");
    let skill = root().join("examples/skills/word-counter");
    check(&["skill", "push", skill.to_str().unwrap()], 0, "pushed word-counter@1.0.0\n");
    let (code, output, _) = run(&["skill", "run", "word-counter", "--input", r#"{"text": "a b a"}"#]);
    assert!(code == 0 && output.contains(r#""total_words":3"#), "{output}");
    check_skills(directory.path(), &run);
    check(&["bash", "--mount", ".:/src", "-c", "ls"], 125, "");
    // What no single action writes: a program, a link, an empty directory, a long name.
    let (whole, long) = (directory.path().join("whole"), "n".repeat(120));
    std::fs::create_dir_all(whole.join("empty")).unwrap();
    std::fs::write(whole.join(&long), "long\n").unwrap();
    std::fs::write(whole.join("run"), "echo ran\n").unwrap();
    std::fs::set_permissions(whole.join("run"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("run", whole.join("link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", whole.join("out")).unwrap();
    let (code, _, note) = run(&["fs", "put", "whole", "/whole"]);
    assert!(code == 0 && note.contains("omitted `whole/out`"), "{note}");
    let command = "cd /whole; bash ./link; test -x run && echo program; ls; cat nnn*";
    check(&["bash", "-c", command], 0, &format!("ran\nprogram\nempty\nlink\n{long}\nrun\nlong\n"));
    let (code, _, note) = run(&["fs", "get", "/whole", "again"]);
    assert_eq!(code, 0, "{note}");
    let again = directory.path().join("again");
    assert_eq!(std::fs::read_link(again.join("link")).unwrap().to_str(), Some("run"));
    assert_eq!(std::fs::metadata(again.join("run")).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(again.join("empty").is_dir());
    // As on a file: into a directory, over a file, and not beside a directory that is missing.
    check(&["fs", "mkdir", "/into/deep"], 0, "");
    check(&["fs", "put", "tree/deep/file", "/into"], 0, "put tree/deep/file -> /into/file (2 B)\n");
    check(&["fs", "mv", "note.txt", "/into"], 0, "");
    check(&["fs", "mv", "/into/note.txt", "/into/file"], 0, "");
    check(&["fs", "cp", "/into/file", "/into/deep/"], 0, "");
    check(&["fs", "cp", "/into/file", "/missing/"], 1, "");
    check(&["fs", "find", "/into", "--kind", "file"], 0, "/into/deep/file\n/into/file\n");
    check(&["fs", "cat", "/into/deep/file"], 0, "changed\n");
}

#[test]
fn what_is_piped_to_a_command_on_a_server_is_its_standard_input() {
    let (server, directory) = (Server::start(&[]), tempfile::tempdir().unwrap());
    let url = format!("http://{}", server.address);
    let run = |words: &[&str], stdin: Stdio, piped: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
        command.args(["--server", url.as_str()]).args(words).env("SANDLITE_KEY", &server.key).current_dir(&directory);
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(piped).unwrap();
        }
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let cat = ["bash", "-c", "cat; echo end"];
    assert_eq!(run(&cat, Stdio::piped(), "grüße\n".as_bytes()).1, "grüße\nend\n");
    assert_eq!(run(&["python", "-c", "print(input() * 2)"], Stdio::piped(), b"ab\n").1, "abab\n");
    std::fs::write(directory.path().join("words"), "from a file\n").unwrap();
    let words = std::fs::File::open(directory.path().join("words")).unwrap();
    assert_eq!(run(&cat, words.into(), b"").1, "from a file\nend\n");
    assert_eq!(run(&cat, Stdio::null(), b"").1, "end\n");
    assert_eq!(run(&["bash", "--stdin", "words", "-c", "cat"], Stdio::piped(), b"not this").1, "from a file\n");
    assert_eq!(run(&["bash"], Stdio::piped(), b"echo a script").1, "a script\n");
    let (code, out, error) = run(&cat, Stdio::piped(), b"\xff");
    assert!(code == 125 && out.is_empty() && error.contains("standard input"), "{code} {out} {error}");
}

// Every verb on a sandbox of a server, compared with the same verb on a local file that has the same runs.
#[test]
fn a_verb_prints_the_same_on_a_server_as_on_a_file() {
    let (server, directory) = (Server::start(&[]), tempfile::tempdir().unwrap());
    let run = |first: &[&str], words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
        command.args(first).args(words).env("SANDLITE_KEY", &server.key).env_remove("SANDLITE_DB").current_dir(&directory);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let url = format!("http://{}", server.address);
    let (there, here) = (["--server", url.as_str()], ["--db", "here.db"]);
    for command in ["echo one > a; echo 1 > b", "echo two > a", "echo three >> a; rm b"] {
        for place in [&there[..], &here[..]] {
            assert_eq!(run(place, &["bash", "-c", command]).0, 0);
        }
    }
    std::fs::create_dir(directory.path().join("target")).unwrap();
    let (code, out, error) = run(&there, &["apply", "target", "--path", "/home/user"]);
    assert_eq!(code, 0, "{out}{error}");
    assert_eq!(std::fs::read_to_string(directory.path().join("target/a")).unwrap(), "two\nthree\n");
    assert_eq!(run(&there, &["git", "export", "repository"]).0, 0);
    assert!(directory.path().join("repository/.git").is_dir());
    // Times and durations differ.
    let plain = |text: &str| {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        for at in 1..words.len() {
            if ["ms", "µs", "s"].contains(&words[at]) {
                (words[at - 1], words[at]) = ("", "SPAN");
            }
        }
        let words = words.iter().map(|word| match word.starts_with(|first: char| first.is_ascii_digit()) && word.len() > 3 {
            true => "TIME",
            false => word,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    std::fs::create_dir_all(directory.path().join("tree/deep")).unwrap();
    std::fs::write(directory.path().join("tree/deep/program"), "echo ran\n").unwrap();
    std::fs::set_permissions(directory.path().join("tree/deep/program"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("deep/program", directory.path().join("tree/link")).unwrap();
    for words in [
        &["history"][..],
        &["history", "--limit", "2"],
        &["history", "--grep", "nothing like this"],
        &["history", "show", "1"],
        &["history", "show", "99"],
        &["log"],
        &["log", "--stat", "a"],
        &["show", "2"],
        &["blame", "a"],
        &["bisect", "--good", "1", "--", "grep -q one a"],
        &["changes", "--name-only"],
        &["diff", "1"],
        &["checkpoint", "now", "-m", "text"],
        &["checkpoints"],
        &["undo", "--dry-run"],
        &["undo"],
        &["restore", "1", "a"],
        &["prune", "--keep-runs", "2"],
        &["info"],
        &["policy", "show"],
        &["fs", "du"],
        &["fs", "find"],
        &["fs", "tree"],
        &["changes", "--patch"],
        &["pip", "list"],
        &["fs", "ls"],
        &["fs", "ls", "-l"],
        &["fs", "ls", "a"],
        &["fs", "ls", "-l", "a"],
        &["fs", "ls", "none"],
        &["fs", "stat", "none"],
        &["fs", "put", "tree", "/existing"],
        &["fs", "put", "tree", "/existing"],
        &["fs", "put", "tree/deep/program", "/existing"],
        &["fs", "put", "tree/deep/program", "new/"],
        &["fs", "put", "-", "/nothing"],
        &["fs", "put", "-"],
        &["fs", "put", "none"],
        &["fs", "find", "/existing"],
        &["fs", "ls", "-l", "/existing/tree"],
        &["fs", "ls", "-l", "/existing/tree/deep"],
        &["fs", "mv", "/nothing", "/existing"],
        &["fs", "mv", "/nothing", "/existing"],
        &["fs", "cp", "/existing", "/copy"],
        &["fs", "rm", "/existing"],
        &["fs", "rm", "-r", "/nowhere"],
        &["fs", "get", "/none"],
        &["kv", "get", "none"],
        &["kv", "delete", "none"],
    ] {
        let (remote, local) = (run(&there, words), run(&here, words));
        let without_path = |text: &str| text.lines().filter(|line| !line.starts_with("sandbox")).collect::<Vec<_>>().join("\n");
        if words == ["info"] {
            assert_eq!((remote.0, remote.1.contains("history")), (0, true), "{remote:?}");
            continue;
        }
        let (a, b) = (plain(&without_path(&remote.1)), plain(&without_path(&local.1)));
        assert_eq!((remote.0, a), (local.0, b), "{words:?}: {} {}", remote.2, local.2);
    }
    let (code, out, error) = run(&there, &["history", "--since", "1h", "--limit", "2"]);
    assert!(code == 0 && out.lines().count() == 3, "{out}{error}");
    let (code, out, error) = run(&there, &["compact"]);
    assert!(code == 0 && out.contains("B -> "), "{out}{error}");
    // Modes and links come with a directory, and nothing is overwritten.
    for (place, to) in [(&there[..], "from-there"), (&here[..], "from-here")] {
        let (code, out, error) = run(place, &["fs", "get", "/existing/tree", to]);
        assert_eq!((code, out), (0, format!("got /existing/tree -> {to} (1 file, 1 directory, 1 link, 9 B)\n")), "{error}");
        let got = directory.path().join(to);
        assert_eq!(std::fs::metadata(got.join("deep/program")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(std::fs::read_link(got.join("link")).unwrap().to_str(), Some("deep/program"));
        assert_eq!(run(place, &["fs", "get", "/existing/tree/deep", to]).0, 1);
        let stat = run(place, &["fs", "stat", "/existing/tree/deep/program"]).1;
        for line in ["path      /existing/tree/deep/program", "type      file", "size      9 (9 B)", "mode      0755 -rwxr-xr-x"]
        {
            assert!(stat.lines().any(|found| found == line), "{stat}");
        }
    }
    assert_eq!(run(&there, &["history", "--since", "2099-01-01"]).0, 1);
    // Whole sandboxes.
    let (code, _, error) = run(&there, &["export", "copy.db", "--digest"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(run(&["--db", "copy.db"], &["fs", "cat", "a"]).1, run(&there, &["fs", "cat", "a"]).1);
    assert_eq!(run(&[&there[..], &["--sandbox", "second"]].concat(), &["import", "copy.db"]).0, 0);
    assert_eq!(run(&[&there[..], &["--sandbox", "second"]].concat(), &["fs", "cat", "a"]).1, "one\n");
    assert_eq!(run(&there, &["fork", "third"]).0, 0);
    assert_eq!(run(&[&there[..], &["--sandbox", "third"]].concat(), &["fs", "cat", "a"]).1, "one\n");
    let (code, out, error) = run(&there, &["watch", "--from", "1", "--once"]);
    assert!(code == 0 && out.contains("/home/user/a"), "{out}{error}");
    // Keys of the tenant.
    let made = run(&there, &["keys", "create", "--role", "consumer", "--name", "guest"]);
    assert!(made.0 == 0 && made.1.starts_with("sk-"), "{made:?}");
    let listed = run(&there, &["keys", "list"]).1;
    let row = listed.lines().find(|line| line.contains("guest")).unwrap();
    assert_eq!(run(&there, &["keys", "revoke", row.split(' ').next().unwrap()]).0, 0);
    assert!(run(&there, &["keys", "list"]).1.contains("revoked"));
    // Skills, with files in and out.
    let skill = root().join("examples/skills/log-report");
    assert_eq!(run(&there, &["skill", "push", skill.to_str().unwrap()]).0, 0);
    std::fs::write(directory.path().join("x.log"), "1 ERROR late\n").unwrap();
    let ran = run(&there, &["skill", "run", "log-report", "--file", "x.log", "--download", "out"]);
    assert_eq!(
        (ran.0, std::fs::read_to_string(directory.path().join("out/errors.log")).unwrap().as_str()),
        (0, "1 ERROR late\n"),
        "{ran:?}"
    );
    assert!(run(&there, &["skill", "files", "log-report"]).1.contains("SKILL.md"));
    assert!(run(&there, &["skill", "versions", "log-report"]).1.starts_with("1.0.0 (active)"));
    assert_eq!(run(&there, &["skill", "activate", "log-report@1.0.0"]).0, 0);
    assert_eq!(run(&there, &["skill", "diff", "log-report@1.0.0", "1.0.0"]).0, 0);
    assert_eq!(run(&there, &["skill", "lint", skill.to_str().unwrap()]).0, 0);
    assert_eq!(run(&there, &["skill", "delete", "log-report"]).0, 0);
    assert_eq!(run(&there, &["skill", "show", "log-report"]).0, 1);
    for words in [&["doctor"][..], &["replay", "copy.db"], &["git", "import", "repository"]] {
        let refused = run(&there, words);
        assert!(refused.0 == 125 && refused.2.contains("hint: "), "{words:?}: {refused:?}");
    }
}
