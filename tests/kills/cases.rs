//! The verbs, what they work on, and how their effect is recognized: all of it, or nothing.

use std::fs;
use std::path::Path;

use runtime::{Command, GitExport, GitForm, GitImport, Host, Sandbox};
use serde_json::{Value, json};

/// Files of a tree, each of some kilobytes.
const FILES: usize = 60;
/// Calls of one MCP client.
const CALLS: usize = 25;

/// A verb to end in the middle.
pub struct Case {
    pub name: &'static str,
    /// Its words.
    pub args: &'static [&'static str],
    /// The sandbox to look at afterwards.
    pub database: &'static str,
    /// Lines that it prints when everything is acknowledged.
    pub answers: usize,
    /// The file or directory that it makes.
    pub makes: Option<&'static str>,
    /// Ctrl-C ends the command that runs, and what the command has done until then is kept.
    pub signals_stop_it: bool,
    /// Returns whether its effect exists; fails if only a part of it does.
    pub effect: fn(&Path, &Sandbox, &[String], &str) -> bool,
}

impl Case {
    /// Its standard input.
    pub fn stdin(&self) -> String {
        if self.name == "mcp" { calls() } else { String::new() }
    }

    /// A verb that makes `swept.html`.
    pub fn page(database: &'static str) -> Self {
        let args: &'static [&'static str] = match database {
            "new.db" => &["--json", "--db", "new.db", "info", "--html", "swept.html"],
            _ => &["--json", "--db", "a.db", "info", "--html", "swept.html"],
        };
        Self { name: "page", args, database, answers: 1, makes: None, signals_stop_it: false, effect: |_, _, _, _| true }
    }
}

macro_rules! case {
    ($name:literal, [$($arg:literal),*], $effect:expr $(, $field:ident: $value:expr)*) => {
        Case {
            $($field: $value,)*
            ..Case {
                name: $name,
                args: &["--json", "--db", "a.db", $($arg),*],
                database: "a.db",
                answers: 1,
                makes: None,
                signals_stop_it: false,
                effect: $effect,
            }
        }
    };
}

pub static CASES: &[Case] = &[
    case!("bash", ["bash", "-c", "mkdir /new; for i in {0..59}; do printf %04000d $i > /new/$i; done"], |_, sandbox, _, what| {
        tree(sandbox, "/new", what)
    }, signals_stop_it: true),
    case!("python", ["python", "-c", "import os\nos.mkdir('/new')\nfor i in range(60): open(f'/new/{i}', 'w').write('%04000d' % i)"],
        |_, sandbox, _, what| tree(sandbox, "/new", what), signals_stop_it: true),
    case!("session", ["bash", "--session", "s", "-c", "cd /tmp; x=5; echo $x > /new"], |_, sandbox, _, what| {
        let done = sandbox.fs().exists("/new").unwrap();
        let session = sandbox.session("s").unwrap().run(Command::bash("echo $PWD $x")).unwrap();
        let expected = if done { "/tmp 5\n" } else { "/home/user\n" };
        assert_eq!(String::from_utf8(session.stdout).unwrap(), expected, "{what}");
        done
    }, signals_stop_it: true),
    case!("bash --file", ["bash", "--file", "large:/new", "-c", "true"], |_, sandbox, _, what| file(sandbox, what)),
    case!("fs put", ["fs", "put", "large", "/new"], |_, sandbox, _, what| file(sandbox, what)),
    case!("fs put DIRECTORY", ["fs", "put", "tree", "/new"], |_, sandbox, _, what| tree(sandbox, "/new", what)),
    case!("fs cp -r", ["fs", "cp", "-r", "/tree", "/new"], |_, sandbox, _, what| {
        assert!(tree(sandbox, "/tree", what));
        tree(sandbox, "/new", what)
    }),
    case!("fs mv", ["fs", "mv", "/tree", "/new"], |_, sandbox, _, what| {
        let done = tree(sandbox, "/new", what);
        assert_eq!(tree(sandbox, "/tree", what), !done, "{what}");
        done
    }),
    case!("fs rm -r", ["fs", "rm", "-r", "/tree", "/other", "/large"], |_, sandbox, _, what| {
        let left = ["/tree", "/other", "/large"].map(|path| sandbox.fs().exists(path).unwrap());
        assert!(left == [true; 3] || left == [false; 3], "{what}: {left:?}");
        !left[0] || !tree(sandbox, "/tree", what)
    }),
    case!("fs mkdir", ["fs", "mkdir", "/new/a", "/new/b", "/c/d/e"], |_, sandbox, _, what| {
        let there = ["/new/a", "/new/b", "/c/d/e"].map(|path| sandbox.fs().exists(path).unwrap());
        assert!(there == [true; 3] || there == [false; 3], "{what}: {there:?}");
        there[0]
    }),
    case!("kv set", ["kv", "set", "new", "{\"a\": [1, 2, 3]}"], |_, sandbox, _, what| {
        let value = sandbox.kv().get("new").unwrap();
        assert!(value.is_none() || value == Some(json!({ "a": [1, 2, 3] })), "{what}: {value:?}");
        value.is_some()
    }),
    case!("kv set in a new database", [], |_, sandbox, _, _| sandbox.kv().get("new").unwrap().is_some(),
        args: &["--json", "--db", "new.db", "kv", "set", "new", "1"], database: "new.db"),
    case!("kv delete", ["kv", "delete", "one", "two", "three"], |_, sandbox, _, what| {
        let left = sandbox.kv().keys("").unwrap().len();
        assert!(left == 0 || left == 3, "{what}: {left} keys");
        left == 0
    }),
    case!(
        "pip install",
        ["pip", "install", "./kills-1.0-py3-none-any.whl", "./more-1.0-py3-none-any.whl"],
        |_, sandbox, _, what| {
            let site = "/home/user/.local/lib/python3.14/site-packages";
            let packages = sandbox.packages().list().unwrap().len();
            let files = sandbox.fs().walk(site).map_or(0, |found| found.len());
            assert!(
                (packages, files) == (0, 0) || (packages, files) == (2, 2 * (2 * FILES + 9) + 1),
                "{what}: {packages} {files}"
            );
            packages == 2
        }
    ),
    case!("export", ["export", "new.db"], |directory, sandbox, _, what| copy(directory, sandbox, what), makes: Some("new.db")),
    case!("fork", ["fork", "new.db"], |directory, sandbox, _, what| copy(directory, sandbox, what), makes: Some("new.db")),
    case!("import", [], |_, sandbox, _, what| {
        assert!(tree(sandbox, "/tree", what));
        assert_eq!(sandbox.kv().keys("").unwrap().len(), 3, "{what}");
        true
    }, args: &["--json", "--db", "new.db", "import", "snapshot.db"], database: "new.db", makes: Some("new.db")),
    case!("fs get", ["fs", "get", "/large", "new"], |directory, _, _, what| {
        let Ok(content) = fs::read(directory.join("new")) else { return false };
        assert!(content == large(), "{what}: {} bytes", content.len());
        true
    }, makes: Some("new")),
    case!("fs get DIRECTORY", ["fs", "get", "/tree", "new"], |directory, _, _, what| {
        let Ok(entries) = fs::read_dir(directory.join("new")) else { return false };
        assert_eq!(entries.count(), FILES, "{what}");
        true
    }, makes: Some("new")),
    case!("info --html", ["info", "--html", "new"], |directory, _, _, what| {
        let Ok(page) = fs::read_to_string(directory.join("new")) else { return false };
        assert!(page.trim_end().ends_with("</html>"), "{what}");
        true
    }, makes: Some("new")),
    case!("checkpoint", ["checkpoint", "named", "-m", "why"], |_, sandbox, _, what| {
        let found = sandbox.versions().checkpoints().unwrap();
        assert!(found.iter().any(|label| label.name == "start"), "{what}");
        let Some(named) = found.iter().find(|label| label.name == "named") else { return false };
        assert_eq!(named.message.as_deref(), Some("why"), "{what}");
        assert_eq!(sandbox.at("named").unwrap().kv().keys("").unwrap().len(), 3, "{what}");
        true
    }),
    case!("undo", ["undo", "4"], |_, sandbox, _, what| went_back(sandbox, &["/other"], what)),
    case!("restore", ["restore", "start"], |_, sandbox, _, what| went_back(sandbox, &["/other", "/large"], what)),
    case!("prune", ["prune", "--keep-runs", "2"], |_, sandbox, _, what| {
        let versions = sandbox.versions().log(None, None, Some(100)).unwrap().len();
        assert!(versions == 2 || versions > 5, "{what}: {versions} versions");
        assert_eq!(sandbox.at("HEAD~1").unwrap().kv().keys("").unwrap().len(), 2, "{what}");
        versions == 2
    }),
    case!("git export", ["git", "export", "--path", "/tree", "new"], |directory, sandbox, _, what| {
        let path = directory.join("new");
        if !path.exists() {
            return false;
        }
        let copy = Sandbox::builder().host(sandbox.host()).open().unwrap();
        let options = GitImport { reference: None, into: "/tree".to_owned(), depth: None };
        copy.versions().git_import(&path, &options).unwrap();
        tree(&copy, "/tree", what)
    }, makes: Some("new")),
    case!("git import", ["git", "import", "commits.bundle", "--into", "/repo"], |_, sandbox, _, what| {
        let labels = sandbox.versions().checkpoints().unwrap();
        let Some(start) = labels.iter().find(|label| label.name.starts_with("before-git-import-")) else {
            return tree(sandbox, "/repo", what);
        };
        if sandbox.fs().exists("/repo").unwrap() {
            sandbox.versions().restore(&start.name, &["/repo".to_owned()]).unwrap();
        }
        assert!(!sandbox.fs().exists("/repo").unwrap(), "{what}");
        assert!(sandbox.versions().remove_checkpoint(&start.name).unwrap(), "{what}");
        false
    }),
    case!("mcp", ["mcp"], |_, sandbox, answers, what| {
        let acknowledged = answers.iter().filter_map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            answer["id"].as_u64().filter(|id| *id > 0 && answer["result"]["isError"] == false)
        });
        for id in acknowledged {
            let content = sandbox.fs().read(&format!("/new/{id}")).unwrap_or_else(|error| panic!("{what}: {id}: {error}"));
            assert_eq!(content, id.to_string().repeat(500).as_bytes(), "{what}");
        }
        answers.len() == CALLS + 1
    }, answers: CALLS + 1),
];

/// Requests of a client: each answer acknowledges a file.
fn calls() -> String {
    let client = json!({ "name": "kills", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let mut text = format!("{}\n", json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }));
    text.push_str(&format!("{}\n", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })));
    for id in 1..=CALLS {
        let arguments = json!({ "path": format!("/new/{id}"), "content": id.to_string().repeat(500) });
        let params = json!({ "name": "write_file", "arguments": arguments });
        text.push_str(&format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })));
    }
    text
}

fn large() -> Vec<u8> {
    (0..1_000_000u32).map(|number| (number % 251) as u8).collect()
}

fn content(number: usize) -> String {
    format!("{number:04000}")
}

/// Returns whether a tree exists, with its whole content.
fn tree(sandbox: &Sandbox, path: &str, what: &str) -> bool {
    if !sandbox.fs().exists(path).unwrap() {
        return false;
    }
    assert_eq!(sandbox.fs().list(path).unwrap().len(), FILES, "{what}: {path}");
    for number in 0..FILES {
        assert_eq!(sandbox.fs().read(&format!("{path}/{number}")).unwrap(), content(number).as_bytes(), "{what}: {path}");
    }
    true
}

/// Returns whether the large file exists.
fn file(sandbox: &Sandbox, what: &str) -> bool {
    if !sandbox.fs().exists("/new").unwrap() {
        return false;
    }
    assert!(sandbox.fs().read("/new").unwrap() == large(), "{what}: it is not whole");
    true
}

/// Returns whether the copy of the sandbox exists; the sandbox itself is unchanged.
fn copy(directory: &Path, sandbox: &Sandbox, what: &str) -> bool {
    assert!(tree(sandbox, "/tree", what));
    let path = directory.join("new.db");
    if !path.exists() {
        return false;
    }
    let copy = Sandbox::builder().host(sandbox.host()).database(path).open().unwrap();
    assert_eq!(copy.check().unwrap(), [], "{what}");
    assert!(tree(&copy, "/tree", what), "{what}");
    assert_eq!(copy.kv().keys("").unwrap().len(), 3, "{what}");
    true
}

/// Whether these files and all keys are gone again; either way, what was there before is a version.
fn went_back(sandbox: &Sandbox, files: &[&str], what: &str) -> bool {
    assert!(tree(sandbox, "/tree", what));
    let keys = sandbox.kv().keys("").unwrap().len();
    assert!(keys == 0 || keys == 3, "{what}: {keys} keys");
    let done = keys == 0;
    let left: Vec<bool> = files.iter().map(|path| sandbox.fs().exists(path).unwrap()).collect();
    assert!(left.iter().all(|is_left| *is_left != done), "{what}: {left:?}");
    let before = if done { sandbox.at("HEAD~1").unwrap() } else { sandbox.clone() };
    assert_eq!(before.kv().keys("").unwrap().len(), 3, "{what}");
    assert!(files.iter().all(|path| before.fs().exists(path).unwrap()), "{what}");
    done
}

/// Builds a wheel inside the sandbox.
const WHEEL: &str = r##"
import base64, hashlib, zipfile
files = {f"{name}/file{i}.py": b"x = 1\n" * 300 for i in range(60)}
files[f"{name}/__init__.py"] = b""
files[f"{name}-1.0.dist-info/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()
files[f"{name}-1.0.dist-info/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
def line(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(data)}\n"
record = "".join(line(*file) for file in files.items()) + f"{name}-1.0.dist-info/RECORD,,\n"
with zipfile.ZipFile("/w.whl", "w") as archive:
    for path, data in files.items():
        archive.writestr(path, data)
    archive.writestr(f"{name}-1.0.dist-info/RECORD", record)
"##;

/// The initial state of every round.
pub struct Template {
    directory: tempfile::TempDir,
}

impl Template {
    pub fn make(host: &Host) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("large"), large()).unwrap();
        fs::create_dir(path("tree")).unwrap();
        for number in 0..FILES {
            fs::write(path("tree").join(number.to_string()), content(number)).unwrap();
        }
        for name in ["kills", "more"] {
            let sandbox = Sandbox::builder().host(host).open().unwrap();
            let output = sandbox.python(format!("name = '{name}'\n{WHEEL}")).unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            fs::write(path(&format!("{name}-1.0-py3-none-any.whl")), sandbox.fs().read("/w.whl").unwrap()).unwrap();
        }
        let sandbox = Sandbox::builder().host(host).open().unwrap();
        sandbox.fs().create_dir_all("/repo").unwrap();
        for number in 0..FILES {
            sandbox.fs().write(&format!("/repo/{number}"), content(number)).unwrap();
        }
        let options = GitExport { path: "/repo".to_owned(), form: GitForm::Bundle, checkpoints: false };
        sandbox.versions().git_export(&path("commits.bundle"), &options).unwrap();
        let sandbox = Sandbox::builder().host(host).database(path("a.db")).open().unwrap();
        sandbox.import_tree(path("tree"), "/tree").unwrap();
        sandbox.versions().checkpoint("start", None).unwrap();
        sandbox.fs().write("/large", large()).unwrap();
        sandbox.fs().write("/other", "other").unwrap();
        for key in ["one", "two", "three"] {
            sandbox.kv().set(key, key).unwrap();
        }
        sandbox.export(path("snapshot.db")).unwrap();
        drop(sandbox);
        Self { directory }
    }

    /// Copies everything into a fresh directory.
    pub fn lay_out(&self, directory: &Path) {
        for entry in fs::read_dir(self.directory.path()).unwrap() {
            let entry = entry.unwrap();
            let target = directory.join(entry.file_name());
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), target).unwrap();
                continue;
            }
            fs::create_dir(&target).unwrap();
            for file in fs::read_dir(entry.path()).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), target.join(file.file_name())).unwrap();
            }
        }
    }
}
