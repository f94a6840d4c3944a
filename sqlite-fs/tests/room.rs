//! Disk and memory usage of a transaction while it runs, and what it frees.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use std::path::Path;
use std::time::{Duration, Instant};

use sqlite_fs::{CallStatus, Database, Durability, FsError, NewCall, Outcome, Quota, ROOT, Transaction};

const CHUNK: usize = 64 * 1024;

fn open(dir: &Path, quota: Quota) -> Database {
    Database::options().path(dir.join("a.db")).durability(Durability::CrashSafe).quota(quota).open().unwrap()
}

fn megabytes(dir: &Path, name: &str) -> u64 {
    std::fs::metadata(dir.join(name)).map_or(0, |file| file.len()) >> 20
}

/// The most that the process had in memory so far, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}

fn fill(transaction: &Transaction, ino: u64, bytes: usize) {
    fill_with(transaction, ino, bytes, 7);
}

fn fill_with(transaction: &Transaction, ino: u64, bytes: usize, byte: u8) {
    for at in (0..bytes).step_by(CHUNK) {
        assert_eq!(transaction.write(ino, at as u64, &[byte; CHUNK]), Ok(CHUNK));
    }
}

fn create(transaction: &Transaction, name: &str) -> u64 {
    transaction.create(ROOT, name, 0o644, 0, 0).unwrap()
}

/// Writes 15 MB over and over; between two times `remove` gets rid of them.
fn check_removal(how: &str, mut remove: impl FnMut(&Transaction, u64)) {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota { bytes: 64 << 20, file_size: 16 << 20, ..Quota::default() });
    let transaction = database.begin(None).unwrap();
    let before = peak();
    for _ in 0..40 {
        let ino = transaction.lookup(ROOT, "f").map_or_else(|_| create(&transaction, "f"), |(ino, _)| ino);
        fill(&transaction, ino, 15 << 20);
        remove(&transaction, ino);
        let log = megabytes(dir.path(), "a.db-wal");
        assert!(log < 48, "{how}: {log} MB of log for files of 15 MB");
    }
    transaction.commit().unwrap();
    let memory = peak().saturating_sub(before);
    assert!(memory < 64, "{how}: {memory} MB of memory");
    assert_eq!(database.check().unwrap(), [], "{how}");
    drop(database);
    assert!(megabytes(dir.path(), "a.db") < 48, "{how}");
}

#[test]
fn t_dos_07_files_written_and_removed_take_no_space() {
    check_removal("unlinked", |transaction, _| transaction.unlink(ROOT, "f").unwrap());
    check_removal("truncated", |transaction, ino| transaction.truncate(ino, 0).unwrap());
    check_removal("replaced", |transaction, _| {
        create(transaction, "g");
        transaction.rename(ROOT, "g", ROOT, "f").unwrap();
    });
    check_removal("unlinked while it is open", |transaction, ino| {
        transaction.hold(ino).unwrap();
        transaction.unlink(ROOT, "f").unwrap();
        transaction.release(ino).unwrap();
    });
    check_removal("overwritten", |_, _| {});
    let mut number = 0;
    check_removal("small ones", |transaction, _| {
        number += 1;
        transaction.unlink(ROOT, "f").unwrap();
        for i in 0..200 {
            let name = format!("small{number}-{i}");
            let ino = create(transaction, &name);
            fill(transaction, ino, CHUNK);
            transaction.unlink(ROOT, &name).unwrap();
        }
    });
}

#[test]
fn t_dos_07_a_file_without_a_name_is_charged_while_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota { bytes: 8 << 20, ..Quota::default() });
    let transaction = database.begin(None).unwrap();
    let ino = create(&transaction, "f");
    transaction.hold(ino).unwrap();
    transaction.unlink(ROOT, "f").unwrap();
    fill(&transaction, ino, 8 << 20);
    assert_eq!(transaction.write(ino, 8 << 20, b"x"), Err(FsError::NoSpace));
    transaction.release(ino).unwrap();
    let ino = create(&transaction, "g");
    fill(&transaction, ino, 8 << 20);
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), []);
}

// The last wall: names are in no quota of bytes, and yet the log of one transaction ends.
#[test]
fn t_dos_07_the_log_of_one_transaction_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota { bytes: 1 << 20, inodes: 100, ..Quota::default() });
    let transaction = database.begin(None).unwrap();
    let files: Vec<u64> = (0..4).map(|i| create(&transaction, &format!("f{i}"))).collect();
    let long = "x".repeat(240);
    let refused = (0..250_000_u32).find_map(|i| transaction.link(files[i as usize % 4], ROOT, &format!("{i:08}{long}")).err());
    assert_eq!(refused, Some(FsError::NoSpace));
    assert!((30..60).contains(&megabytes(dir.path(), "a.db-wal")), "{}", megabytes(dir.path(), "a.db-wal"));
    assert_eq!(transaction.write(files[0], 0, b"x"), Err(FsError::NoSpace));
    assert_eq!(transaction.truncate(files[0], 100_000), Err(FsError::NoSpace));
    assert_eq!(transaction.create(ROOT, "g", 0o644, 0, 0), Err(FsError::NoSpace));
    // The changes can be kept or removed, and the next transaction has a new log.
    transaction.unlink(ROOT, &format!("{:08}{long}", 0)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), []);
    let transaction = database.begin(None).unwrap();
    transaction.write(files[0], 0, b"x").unwrap();
    transaction.commit().unwrap();
}

#[test]
fn t_dos_07_a_file_shrinks_when_most_of_it_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota { past: 0, ..Quota::default() });
    let transaction = database.begin(None).unwrap();
    let keep = create(&transaction, "keep");
    fill(&transaction, keep, 1 << 20);
    let large = create(&transaction, "large");
    fill(&transaction, large, 100 << 20);
    transaction.kv().set("key", "1").unwrap();
    transaction.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.unlink(ROOT, "large").unwrap();
    transaction.commit().unwrap();
    // A transaction that begins now waits until it is done.
    let transaction = database.begin(None).unwrap();
    assert_eq!((megabytes(dir.path(), "a.db"), megabytes(dir.path(), "a.db-wal")), (1, 0));
    assert_eq!(transaction.fs().read("/keep").unwrap(), vec![7; 1 << 20]);
    assert_eq!(transaction.kv().get("key").unwrap().unwrap().json, "1");
    transaction.write(keep, 0, b"changed").unwrap();
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), []);
    drop(database);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a.db"]);
    assert!(open(dir.path(), Quota::default()).reader().unwrap().fs().read("/keep").unwrap().starts_with(b"changed"));
}

#[test]
fn t_dos_07_a_long_log_is_cut_before_the_next_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota::default());
    let reader = database.reader().unwrap();
    let transaction = database.begin(None).unwrap();
    let large = create(&transaction, "large");
    fill(&transaction, large, 300 << 20);
    assert!(megabytes(dir.path(), "a.db-wal") > 250);
    transaction.commit().unwrap();
    drop(database.begin(None).unwrap());
    assert_eq!(megabytes(dir.path(), "a.db-wal"), 0);
    assert_eq!(reader.fs().metadata("/large").unwrap().size, 300 << 20);
    // One that was rolled back is cut, too.
    let transaction = database.begin(None).unwrap();
    let other = create(&transaction, "other");
    fill(&transaction, other, 100 << 20);
    drop(transaction);
    drop(database.begin(None).unwrap());
    assert_eq!(megabytes(dir.path(), "a.db-wal"), 0);
}

#[test]
fn t_dos_07_rolling_back_needs_no_memory_for_the_previous_content() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota::default());
    let transaction = database.begin(None).unwrap();
    let large = create(&transaction, "large");
    fill(&transaction, large, 150 << 20);
    transaction.commit().unwrap();
    let before = peak();
    let transaction = database.begin(None).unwrap();
    fill_with(&transaction, large, 150 << 20, 8);
    transaction.restart().unwrap();
    let memory = peak().saturating_sub(before);
    assert!(memory < 64, "{memory} MB");
    let mut first = [0; 4];
    transaction.read(large, 0, &mut first).unwrap();
    assert_eq!(first, [7; 4]);
}

#[test]
fn t_dos_02_a_long_log_can_stay_for_the_next_open() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota::default());
    let transaction = database.begin(None).unwrap();
    let large = create(&transaction, "large");
    fill(&transaction, large, 300 << 20);
    transaction.leave_log().unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(megabytes(dir.path(), "a.db-wal") >= 300);
    let database = open(dir.path(), Quota::default());
    assert_eq!(database.reader().unwrap().fs().metadata("/large").unwrap().size, 300 << 20);
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/small", b"1").unwrap();
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), []);
    drop(database);
    assert_eq!((megabytes(dir.path(), "a.db") / 100, megabytes(dir.path(), "a.db-wal")), (3, 0));
    // A short one never does.
    let database = open(dir.path(), Quota::default());
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/small", b"2").unwrap();
    transaction.leave_log().unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(!dir.path().join("a.db-wal").exists());
}

fn long_ago() -> Instant {
    Instant::now().checked_sub(Duration::from_secs(1)).unwrap()
}

/// Begins a call and changes much; `settled` means that only the commit itself is left.
fn check_late(settled: bool) {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota::default());
    let first = database.begin(None).unwrap();
    first.fs().write("/before", b"1").unwrap();
    first.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    let call = NewCall { name: "bash", parameters: None, command: "write", parent: None };
    let id = transaction.calls().begin(&call).unwrap();
    transaction.fs().write("/before", b"2").unwrap();
    let large = create(&transaction, "large");
    fill(&transaction, large, 20 << 20);
    transaction.calls().finish(id, &Outcome { stdout: b"done", ..Outcome::default() }).unwrap();
    if settled {
        transaction.savepoint().unwrap();
    }
    let transaction = transaction.commit_by(long_ago()).unwrap().expect("it is too late");
    assert_eq!(database.reader().unwrap().fs().read("/before").unwrap(), b"1");
    assert_eq!(transaction.fs().read("/before").unwrap(), b"1");
    assert!(!transaction.fs().exists("/large").unwrap());
    transaction.calls().finish(id, &Outcome { stdout: b"too late", ..Outcome::default() }).unwrap();
    transaction.commit().unwrap();
    let call = database.reader().unwrap().call(id).unwrap().unwrap();
    assert_eq!((call.status, call.run.unwrap().stdout), (CallStatus::Success, b"too late".to_vec()));
    assert_eq!(database.check().unwrap(), []);
    drop(database);
    let database = open(dir.path(), Quota::default());
    assert_eq!((database.check().unwrap(), database.reader().unwrap().fs().read("/before").unwrap()), (vec![], b"1".to_vec()));
}

#[test]
fn t_dos_02_a_commit_that_is_late_takes_everything_back_but_its_call() {
    check_late(false);
    check_late(true);
}

#[test]
fn a_commit_that_is_in_time_is_a_commit() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota::default());
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/a", b"1").unwrap();
    assert!(transaction.commit_by(Instant::now() + Duration::from_secs(600)).unwrap().is_none());
    assert_eq!(database.reader().unwrap().fs().read("/a").unwrap(), b"1");
}

#[test]
fn t_dos_02_changes_are_listed_until_the_deadline() {
    let database = Database::options().open().unwrap();
    let transaction = database.begin(None).unwrap();
    for i in 0..1_000 {
        create(&transaction, &format!("f{i:04}"));
    }
    let (listed, is_complete) = transaction.changes_by(long_ago()).unwrap();
    assert!(!is_complete && (1..100).contains(&listed.len()), "{}", listed.len());
    let (listed, is_complete) = transaction.changes_by(Instant::now() + Duration::from_secs(600)).unwrap();
    assert_eq!((listed.len(), is_complete), (1_000, true));
}

// T-DOS-14: the remaining work of the commit is known beforehand, from any thread.
#[test]
fn t_dos_14_the_time_a_commit_takes_is_estimated() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota::default());
    let transaction = database.begin(None).unwrap();
    assert_eq!(database.settling(), Duration::ZERO);
    let ino = create(&transaction, "f");
    fill(&transaction, ino, 64 << 20);
    fill_with(&transaction, ino, 64 << 20, 8);
    let rewritten = database.settling();
    assert!(rewritten > Duration::from_millis(30), "pages that were written twice are read again: {rewritten:?}");
    transaction.hold(ino).unwrap();
    transaction.unlink(ROOT, "f").unwrap();
    assert!(database.settling() > rewritten + Duration::from_millis(100), "rows without a name are removed");
    transaction.release(ino).unwrap();
    transaction.restart().unwrap();
    assert_eq!(database.settling(), Duration::ZERO);
}

#[test]
fn compacting_returns_free_pages_whatever_their_number() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), Quota { bytes: 256 << 20, file_size: 256 << 20, past: 0, ..Quota::default() });
    let transaction = database.begin(None).unwrap();
    for (name, bytes) in [("gone", 96 << 20), ("kept", 64 << 20)] {
        let ino = create(&transaction, name);
        fill(&transaction, ino, bytes);
    }
    transaction.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.unlink(ROOT, "gone").unwrap();
    transaction.commit().unwrap();
    let compacted = database.compact(None).unwrap();
    assert!(compacted.before > 150 << 20 && compacted.after < 80 << 20, "{compacted:?}");
    assert_eq!((megabytes(dir.path(), "a.db-wal"), database.check().unwrap()), (0, vec![]));
    let transaction = database.begin(None).unwrap();
    assert!(matches!(database.compact(Some(Instant::now())), Err(sqlite_fs::Error::Busy)));
    drop(transaction);
    assert_eq!(database.compact(None).unwrap().after, compacted.after);
    drop(database);
    let beside: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["a.db"]);
}
