//! AgentFS's own SDKs open our files, read them and write to them; files of these SDKs are imported.
//!
//! They come from npm and PyPI, so this runs only with `SANDLITE_INTEROP=1` (and `node`, `npm` and `python3`); they are
//! installed once below Cargo's target directory.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use std::path::{Path, PathBuf};
use std::process::Command;

use sqlite_fs::{CallStatus, Compat, Database, Export, Filter, Import, NewCall, Outcome};

const VERSION: &str = "0.6.4";
/// The SDK of LocalSandbox 0.3, which creates the older layout.
const OLD_VERSION: &str = "0.5.3";

#[path = "../../tests/support/skipped.rs"]
mod skipped;

fn wanted() -> bool {
    let is_wanted = std::env::var_os("SANDLITE_INTEROP").is_some_and(|value| value == "1");
    if !is_wanted {
        skipped::skip("set SANDLITE_INTEROP=1 to fetch AgentFS's SDKs and try them");
    }
    is_wanted
}

fn home(name: &str, version: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agentfs-{name}-{version}"));
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
    typescript_of(VERSION, what, file);
}

fn typescript_of(version: &str, what: &str, file: &Path) {
    let home = home("npm", version);
    if !home.join("node_modules/agentfs-sdk").exists() {
        std::fs::write(home.join("package.json"), "{}").unwrap();
        run(Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", &format!("agentfs-sdk@{version}")])
            .current_dir(&home));
    }
    run(Command::new("node").arg(script("agentfs.mjs")).args([what.as_ref(), file.as_os_str()]).current_dir(&home));
}

fn python(what: &str, file: &Path) {
    let home = home("pypi", VERSION);
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
    fs.create_dir_all("/hollow/inner").unwrap();
    fs.create_dir_all("/full/sub/deep").unwrap();
    fs.write("/full/sub/deep/f", b"z").unwrap();
    fs.create_dir("/full/stays").unwrap();
    transaction.kv().set("key", "{\"n\":1}").unwrap();
    transaction.kv().set("doomed", "1").unwrap();
    let id = transaction
        .calls()
        .begin(&NewCall { name: "bash", parameters: Some("{\"command\":\"ls\"}"), command: "ls", parent: None })
        .unwrap();
    transaction.calls().finish(id, &Outcome { result: Some("{\"exitCode\":0}"), ..Outcome::default() }).unwrap();
    let id = transaction.calls().begin(&NewCall { name: "python", parameters: None, command: "x", parent: None }).unwrap();
    transaction.calls().finish(id, &Outcome { error: Some("NameError"), ..Outcome::default() }).unwrap();
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
    assert_eq!(
        fs.list("/").unwrap().iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(),
        ["dir", "hard", "link", "moved", "renamed"]
    );
    assert_eq!(fs.list("/moved").unwrap().iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["new", "stays"]);
    // A directory that an SDK changed still takes part in everything here.
    fs.remove_dir_all("/moved").unwrap();
    assert_eq!(transaction.kv().keys("").unwrap(), ["from-sdk", "key"]);
    assert_eq!(transaction.kv().get("from-sdk").unwrap().unwrap().json, "\"text\"");
    assert_eq!(transaction.kv().get("key").unwrap().unwrap().json.replace(' ', ""), "{\"n\":2}");
    let calls = transaction.calls().list(&Filter::default()).unwrap();
    let mut names: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.status)).collect();
    names.sort_unstable_by_key(|(name, _)| *name);
    assert_eq!(
        names,
        [
            ("bash", CallStatus::Success),
            ("later", CallStatus::Success),
            ("python", CallStatus::Error),
            ("unfinished", CallStatus::Error)
        ]
    );
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
    assert_eq!(reader.get("list").unwrap().unwrap().json.replace(' ', ""), "[1,\"two\",null]");
    assert_eq!(reader.keys("").unwrap(), ["answer", "list"]);
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

/// LocalSandbox's own SDK: it reads and changes an export in its layout, and what it leaves or makes comes back.
#[test]
fn the_older_typescript_sdk_uses_our_compatible_export() {
    if !wanted() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let database = Database::options().open().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().create_dir("/dir").unwrap();
    transaction.fs().write("/dir/large", b"ours".repeat(50_000)).unwrap();
    transaction.fs().symlink("dir/large", "/link").unwrap();
    transaction.kv().set("key", "{\"n\":1}").unwrap();
    let id = transaction.calls().begin(&NewCall { name: "bash", parameters: Some("{}"), command: "ls", parent: None }).unwrap();
    transaction.calls().finish(id, &Outcome { result: Some("{}"), ..Outcome::default() }).unwrap();
    transaction.commit().unwrap();
    let path = dir.path().join("old.db");
    database.export_compat(&path, Export::default(), Compat::LocalSandbox).unwrap();

    typescript_of(OLD_VERSION, "old", &path);

    let own = Import { write_ahead_log: true, ..Import::default() };
    let (database, imported) = Database::import(&path, Database::options(), &own).unwrap();
    assert_eq!(imported.notes, Vec::<String>::new());
    assert_eq!(database.check().unwrap(), []);
    let reader = database.reader().unwrap();
    assert_eq!(reader.fs().read("/dir/new").unwrap(), b"sdk-".repeat(37_500));
    assert_eq!(reader.fs().read_link("/alias").unwrap(), "dir/new");
    assert!(!reader.fs().exists("/link").unwrap());
    assert_eq!(reader.keys("").unwrap(), ["from-sdk", "key"]);
    let calls = reader.calls(&Filter::default()).unwrap();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().any(|call| call.started == 1_700_000_000_000_000_000), "milliseconds became seconds: {calls:?}");
    // The older one makes its own layout too.
    we_take_in_theirs(|what, file| typescript_of(OLD_VERSION, what, file), false);
}
