//! A process is killed at any moment: acknowledged data is stored, nothing is incomplete, and one call at most is
//! recorded as interrupted.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sqlite_fs::{CallStatus, Database, Durability, Error, Filter, Keep, NewCall, Outcome};

/// Cycles of kill and recovery.
const CYCLES: u32 = 200;
/// Cycles on one file before a fresh one.
const CYCLES_PER_FILE: u32 = 25;
/// The variable with the file that the child writes.
const CHILD: &str = "SQLITE_FS_CRASH_CHILD";

fn open(path: &Path) -> Result<Database, Error> {
    Database::options().path(path).durability(Durability::CrashSafe).open()
}

/// Not a test: what the child processes run. Each command writes its number into two files, a key and the history.
#[test]
fn child() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let database = open(Path::new(&path)).unwrap();
    let reader = database.reader().unwrap();
    let mut number: u64 = reader.get("number").unwrap().map_or(0, |value| value.json.parse().unwrap());
    println!("ready");
    loop {
        number += 1;
        let transaction = database.begin(None).unwrap();
        let command = format!("write {number}");
        let id = transaction.calls().begin(&NewCall { name: "test", parameters: None, command: &command, parent: None }).unwrap();
        transaction.fs().write("/small", number.to_string()).unwrap();
        transaction.fs().write(&format!("/large{}", number % 5), number.to_le_bytes().repeat(20_000)).unwrap();
        transaction.kv().set("number", &number.to_string()).unwrap();
        // Also restores an older version and prunes old ones; the process may die at any moment of this.
        let newest = transaction.version().unwrap();
        if number % 7 == 3 && newest > 3 {
            let old = database.reader_at(newest - 2).unwrap().fs().read("/marked").unwrap();
            transaction.fs().write("/marked", old).unwrap();
        }
        transaction.fs().write("/marked", number.to_string()).unwrap();
        if number % 11 == 5 {
            transaction.prune(&Keep { versions: Some(6), ..Keep::default() }).unwrap();
        }
        transaction.calls().finish(id, &Outcome { result: Some("null"), ..Outcome::default() }).unwrap();
        transaction.commit().unwrap();
        if number % 5 == 2 {
            database.version_digest(newest + 1, None).unwrap();
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "stored {number}").unwrap();
        out.flush().unwrap();
    }
}

fn start(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_until_ready(child: &mut Child) -> BufReader<std::process::ChildStdout> {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready") {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "the child ended");
    }
    out
}

/// The highest acknowledged number; a truncated line does not count.
fn last_stored(text: &str) -> u64 {
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.filter_map(|line| line.trim().strip_prefix("stored ")?.parse().ok()).max().unwrap_or(0)
}

fn verify(path: &Path, acknowledged: u64, cycle: u32) -> u64 {
    let database = open(path).unwrap();
    assert_eq!(database.check().unwrap(), [], "cycle {cycle}");
    let reader = database.reader().unwrap();
    let number: u64 = reader.get("number").unwrap().map_or(0, |value| value.json.parse().unwrap());
    assert!(number >= acknowledged, "cycle {cycle}: {acknowledged} was acknowledged, {number} is there");
    if number > 0 {
        assert_eq!(reader.fs().read_to_string("/small").unwrap(), number.to_string());
        assert_eq!(reader.fs().read(&format!("/large{}", number % 5)).unwrap(), number.to_le_bytes().repeat(20_000));
    }
    verify_versions(&database, number, cycle);
    let calls = reader.calls(&Filter { limit: 60, ..Filter::default() }).unwrap();
    let newest = calls.iter().find(|call| call.status == CallStatus::Success);
    assert_eq!(newest.map(|call| call.run.as_ref().unwrap().command.clone()), (number > 0).then(|| format!("write {number}")));
    if let Some(interrupted) = calls.first().filter(|call| call.status == CallStatus::Interrupted) {
        assert_eq!(interrupted.run.as_ref().unwrap().command, format!("write {}", number + 1), "cycle {cycle}");
    }
    number
}

/// Each version that is kept is whole: its number is in two files and a key, one less from version to version.
fn verify_versions(database: &Database, number: u64, cycle: u32) {
    let versions = database.reader().unwrap().versions(None, 30).unwrap();
    for (age, version) in versions.iter().enumerate() {
        let expected = number - age as u64;
        let reader = database.reader_at(version.number).unwrap();
        if expected == 0 {
            assert!(!reader.fs().exists("/small").unwrap(), "cycle {cycle}");
            continue;
        }
        let what = format!("cycle {cycle}, version {}", version.number);
        assert_eq!(reader.fs().read_to_string("/small").unwrap(), expected.to_string(), "{what}");
        assert_eq!(reader.fs().read_to_string("/marked").unwrap(), expected.to_string(), "{what}");
        assert_eq!(reader.get("number").unwrap().unwrap().json, expected.to_string(), "{what}");
        let large = reader.fs().read(&format!("/large{}", expected % 5)).unwrap();
        assert_eq!(large, expected.to_le_bytes().repeat(20_000), "{what}");
    }
}

/// T-REL-01
#[test]
fn nothing_acknowledged_is_lost_when_a_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut highest, mut interrupted) = (0, 0);
    for cycle in 0..CYCLES {
        let path = dir.path().join(format!("crash{}.db", cycle / CYCLES_PER_FILE));
        let mut child = start(&path);
        let mut out = wait_until_ready(&mut child);
        // However busy the machine is, the child gets some commands done.
        let mut text = String::new();
        for _ in 0..cycle % 4 {
            assert_ne!(out.read_line(&mut text).unwrap(), 0, "cycle {cycle}: the child ended");
        }
        // Not a wait for something: the moment of death, spread over a few commands.
        std::thread::sleep(Duration::from_micros(u64::from(cycle * 7919 % 9000)));
        child.kill().unwrap();
        child.wait().unwrap();
        out.read_to_string(&mut text).unwrap();
        let number = verify(&path, last_stored(&text), cycle);
        highest = highest.max(number);
        let reader = open(&path).unwrap().reader().unwrap();
        let newest = reader.calls(&Filter { limit: 1, ..Filter::default() }).unwrap();
        interrupted += u32::from(newest.first().is_some_and(|call| call.status == CallStatus::Interrupted));
    }
    assert!(highest > 20, "the children hardly ran: {highest}");
    assert!(interrupted > CYCLES / 4, "hardly any call was interrupted: {interrupted}");
}

/// T-REL-04
#[test]
fn a_dead_process_holds_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("locked.db");
    let mut child = start(&path);
    let _out = wait_until_ready(&mut child);
    let reading = Database::options().path(&path).read_only().open().unwrap();
    assert!(reading.reader().unwrap().fs().exists("/").unwrap());
    assert!(matches!(reading.begin(None), Err(Error::ReadOnly)));
    child.kill().unwrap();
    child.wait().unwrap();
    drop(reading);
    drop(open(&path).unwrap());
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(left, ["locked.db"], "a clean close leaves one file");
}

/// T-REL-07, T-SNAP-01: foreign files are imported, never used directly.
#[test]
fn a_foreign_or_newer_file_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("foreign.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = open(&path).err().unwrap();
    assert!(matches!(error, Error::Foreign { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("import"));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let path = dir.path().join("newer.db");
    drop(open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version=4").unwrap();
    assert!(matches!(open(&path), Err(Error::TooNew { found: 4, known: 3, .. })));
    let path = dir.path().join("text.db");
    std::fs::write(&path, "not a database, but long enough to be looked at").unwrap();
    assert!(matches!(open(&path), Err(Error::Foreign { reason, .. }) if reason == "it is a text file"));
    // SQLite takes it for an empty file.
    std::fs::write(&path, "x").unwrap();
    assert!(matches!(open(&path), Err(Error::Foreign { reason, .. }) if reason == "it is a text file"));
    assert_eq!(std::fs::read(&path).unwrap(), b"x");
}
