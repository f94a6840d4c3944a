//! AgentFS's own SDKs open what is made here, read it and write into it; what they make is taken in here.
//!
//! They come from npm and PyPI, so this runs only with `SANDLITE_INTEROP=1` (and `node`, `npm` and `python3`); they are
//! installed once below Cargo's target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use sqlite_fs::{CallStatus, Database, Filter, Import, NewCall, Outcome};

const VERSION: &str = "0.6.4";

fn wanted() -> bool {
    std::env::var_os("SANDLITE_INTEROP").is_some_and(|value| value == "1")
}

fn home(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agentfs-{name}-{VERSION}"));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {} {text}", String::from_utf8_lossy(&output.stdout));
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(name)
}

fn typescript(what: &str, file: &Path) {
    let home = home("npm");
    if !home.join("node_modules/agentfs-sdk").exists() {
        std::fs::write(home.join("package.json"), "{}").unwrap();
        run(Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", &format!("agentfs-sdk@{VERSION}")])
            .current_dir(&home));
    }
    run(Command::new("node").arg(script("agentfs.mjs")).args([what.as_ref(), file.as_os_str()]).current_dir(&home));
}

fn python(what: &str, file: &Path) {
    let home = home("pypi");
    let interpreter = home.join("bin/python");
    if !home.join("ready").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&home));
        run(Command::new(&interpreter).args(["-m", "pip", "install", "-q", &format!("agentfs-sdk=={VERSION}")]));
        std::fs::write(home.join("ready"), "").unwrap();
    }
    run(Command::new(&interpreter).arg(script("agentfs_sdk_at_work.py")).args([what.as_ref(), file.as_os_str()]));
}

/// Ours first: an SDK reads it and writes into it, and it is still ours.
fn they_use_ours(sdk: fn(&str, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ours.db");
    let database = Database::options().path(&path).open().unwrap();
    let transaction = database.begin(None).unwrap();
    let fs = transaction.fs();
    fs.create_dir("/dir").unwrap();
    fs.write("/dir/large", b"ours".repeat(50_000)).unwrap();
    fs.write("/dir/small", b"small").unwrap();
    fs.hard_link("/dir/small", "/hard").unwrap();
    fs.symlink("dir/large", "/link").unwrap();
    fs.write("/gone", b"x").unwrap();
    fs.write("/old", b"y").unwrap();
    transaction.kv().set("key", "{\"n\":1}").unwrap();
    let id =
        transaction.calls().begin(&NewCall { name: "bash", parameters: Some("{\"command\":\"ls\"}"), command: "ls" }).unwrap();
    transaction.calls().finish(id, &Outcome { result: Some("{\"exitCode\":0}"), ..Outcome::default() }).unwrap();
    transaction.commit().unwrap();
    drop(database);

    sdk("use", &path);

    let database = Database::options().path(&path).open().unwrap();
    assert_eq!(database.check().unwrap(), []);
    let transaction = database.begin(None).unwrap();
    let fs = transaction.fs();
    assert_eq!(fs.read("/dir/new").unwrap(), b"sdk-".repeat(37_500));
    assert_eq!(fs.read("/dir/small").unwrap(), b"rewritten");
    assert!(!fs.exists("/gone").unwrap());
    assert_eq!(fs.read("/renamed").unwrap(), b"y");
    assert_eq!(transaction.kv().get("from-sdk").unwrap().unwrap().json, "\"text\"");
    assert_eq!(transaction.calls().list(&Filter::default()).unwrap()[0].name, "later");
    fs.write("/dir/again", b"ours again").unwrap();
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), []);
}

/// Theirs first: its rows come in, whatever is still in its write-ahead log included.
fn we_take_in_theirs(sdk: fn(&str, &Path), has_link: bool) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("theirs.db");
    sdk("make", &path);
    let own = Import { write_ahead_log: true, ..Import::default() };
    let (database, imported) = Database::import(&path, Database::options(), &own).unwrap();
    assert_eq!(imported.notes, Vec::<String>::new());
    assert_eq!(database.check().unwrap(), []);
    let reader = database.reader().unwrap();
    assert_eq!(reader.fs().read("/dir/large").unwrap(), b"sdk-".repeat(37_500));
    assert_eq!(reader.fs().read_to_string("/text.txt").unwrap(), "hello from the sdk");
    if has_link {
        assert_eq!(reader.fs().read_to_string("/link").unwrap(), "hello from the sdk");
    }
    assert_eq!(reader.get("answer").unwrap().unwrap().json.replace(' ', ""), "{\"n\":42}");
    let calls = reader.calls(&Filter::default()).unwrap();
    assert_eq!(
        calls.iter().map(|call| (call.name.as_str(), call.status)).collect::<Vec<_>>(),
        [("broken", CallStatus::Error), ("search", CallStatus::Success)]
    );
    assert_eq!(calls[0].error.as_deref(), Some("it failed"));
}

#[test]
fn the_typescript_sdk_uses_our_files_and_we_take_in_its() {
    if wanted() {
        they_use_ours(typescript);
        we_take_in_theirs(typescript, true);
    }
}

#[test]
fn the_python_sdk_uses_our_files_and_we_take_in_its() {
    if wanted() {
        they_use_ours(python);
        we_take_in_theirs(python, false);
    }
}
