//! A disk that fills up, fails at any call, or loses power: committed data stays, failures are reported, and the
//! database works again when the disk does.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

mod faults {
    pub mod vfs;
}

use std::path::Path;

use faults::vfs;
use rusqlite::ffi;
use sqlite_fs::{Database, Durability, Error, Export, FsError, Import, NewCall, Outcome};

/// Files of one command: enough that its log is written in many stretches, with a checkpoint now and then.
const MANY: u32 = 40;
const FEW: u32 = 6;

/// One command that touches everything, with more than the caches hold; returns the first error.
fn command(database: &Database, number: u64, files: u32) -> Result<(), Error> {
    let transaction = database.begin(None)?;
    let call = NewCall { name: "test", parameters: None, command: "write", parent: None };
    let id = transaction.calls().begin(&call)?;
    let fs = transaction.fs();
    fs.write("/number", number.to_string())?;
    fs.create_dir_all(&format!("/d{}/e", number % 3))?;
    for i in 0..files {
        fs.write(&format!("/d{}/e/f{i}", number % 3), number.to_le_bytes().repeat(9000))?;
    }
    fs.rename(&format!("/d{}/e/f0", number % 3), "/moved")?;
    fs.remove_dir_all(&format!("/d{}", number % 3))?;
    transaction.kv().set("number", &number.to_string())?;
    transaction.calls().finish(id, &Outcome { stdout: &[b'x'; 5000], ..Outcome::default() })?;
    transaction.commit()
}

fn number(database: &Database) -> u64 {
    let reader = database.reader().unwrap();
    let by_key: u64 = reader.get("number").unwrap().map_or(0, |value| value.json.parse().unwrap());
    if by_key > 0 {
        assert_eq!(reader.fs().read_to_string("/number").unwrap(), by_key.to_string());
        assert_eq!(reader.fs().read("/moved").unwrap(), by_key.to_le_bytes().repeat(9000));
    }
    by_key
}

fn open(path: &Path) -> Database {
    // A small cache, so that rows are written in the middle of the command too.
    Database::options().path(path).durability(Durability::PowerSafe).cache(60_000).open().unwrap()
}

/// Errors at every call in turn, until a command gets through without meeting one.
fn errors_everywhere(code: i32, is_expected: impl Fn(&Error) -> bool) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let mut database = open(&path);
    command(&database, 1, MANY).unwrap();
    let (mut stored, mut failures) = (1, 0);
    for calls in 0.. {
        vfs::fail_after(calls, code);
        let result = command(&database, stored + 1, MANY);
        let failed = vfs::heal();
        match result {
            Ok(()) => {
                stored += 1;
                if !failed {
                    break;
                }
            }
            Err(error) => {
                assert!(is_expected(&error), "call {calls}: {error:?}");
                failures += 1;
            }
        }
        // An error while the commit is made durable leaves it open whether it is stored; never half of it is.
        let now = number(&database);
        assert!(now == stored || now == stored + 1, "call {calls}: {now} after {stored}");
        stored = now;
        if calls % 16 == 0 {
            drop(database);
            database = open(&path);
            assert_eq!(database.check().unwrap(), [], "call {calls}");
            assert_eq!(number(&database), stored, "call {calls}: reopened");
        }
        // The disk is well again: so is the database.
        command(&database, stored + 1, MANY).unwrap_or_else(|error| panic!("call {calls}: {error:?}"));
        stored += 1;
    }
    drop(database);
    let database = open(&path);
    assert_eq!(database.check().unwrap(), []);
    assert_eq!(number(&database), stored);
    failures
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A snapshot, a fork and an import that meet an error at any call leave nothing behind, and succeed when repeated.
fn files_are_whole_or_absent(code: i32) {
    let dir = tempfile::tempdir().unwrap();
    let database = open(&dir.path().join("a.db"));
    command(&database, 1, FEW).unwrap();
    let place = dir.path().join("new");
    std::fs::create_dir(&place).unwrap();
    let snapshot = dir.path().join("snapshot.db");
    database.export(&snapshot, Export::default()).unwrap();
    let target = place.join("b.db");
    let options = || Database::options().path(&target).durability(Durability::PowerSafe);
    let make: [&dyn Fn() -> Result<(), Error>; 3] =
        [&|| database.export(&target, Export::default()), &|| database.fork(options()).map(drop), &|| {
            Database::import(&snapshot, options(), &Import::default()).map(drop)
        }];
    for make in make {
        let mut failures = 0;
        for calls in 0.. {
            vfs::fail_after(calls, code);
            let result = make();
            let failed = vfs::heal();
            if result.is_err() {
                failures += 1;
                assert_eq!(names(&place), [""; 0], "call {calls}: {result:?}");
                continue;
            }
            let made = open(&target);
            assert_eq!(made.check().unwrap(), [], "call {calls}");
            assert_eq!(number(&made), 1, "call {calls}");
            drop(made);
            assert_eq!(names(&place), ["b.db"], "call {calls}");
            std::fs::remove_file(&target).unwrap();
            if !failed {
                break;
            }
        }
        assert!(failures > 5, "{failures}");
    }
}

/// The state after a commit on a disk that loses all unsynced data when the power fails at any call.
fn power_cuts() {
    let dir = tempfile::tempdir().unwrap();
    for cut in (1..260).step_by(3) {
        let path = dir.path().join(format!("power{cut}.db"));
        vfs::record(cut);
        let database = open(&path);
        let mut acknowledged = 0;
        for number in 1..12 {
            command(&database, number, FEW).unwrap();
            if !vfs::is_cut() {
                acknowledged = number;
            }
        }
        drop(database);
        let Some(image) = vfs::after_cut() else { continue };
        let after = dir.path().join(format!("after{cut}"));
        std::fs::create_dir(&after).unwrap();
        for (name, bytes) in image {
            let name = Path::new(&name).file_name().unwrap();
            // The index of the log is rebuilt; it was never promised.
            if !name.to_string_lossy().ends_with("-shm") {
                std::fs::write(after.join(name), bytes).unwrap();
            }
        }
        let database = open(&after.join(path.file_name().unwrap()));
        let found = number(&database);
        assert!(found >= acknowledged, "cut at {cut}: {acknowledged} was acknowledged, {found} is there");
        assert_eq!(database.check().unwrap(), [], "cut at {cut}");
    }
}

/// T-REL-02, T-REL-03. One test, because the disk is one for the whole process.
#[test]
fn a_bad_disk_loses_nothing_that_was_acknowledged() {
    vfs::install();
    let full = |error: &Error| {
        matches!(error, Error::DiskFull(_) | Error::RolledBack(_))
            || matches!(error.fs_error(), Some(FsError::NoSpace | FsError::Io))
            || matches!(error, Error::DiskFailed(_) | Error::CannotOpen(_))
    };
    assert!(errors_everywhere(ffi::SQLITE_FULL, full) > 20);
    let broken = |error: &Error| {
        matches!(error, Error::DiskFailed(_) | Error::CannotOpen(_) | Error::RolledBack(_))
            || error.fs_error() == Some(FsError::Io)
    };
    assert!(errors_everywhere(ffi::SQLITE_IOERR_WRITE, broken) > 20);
    files_are_whole_or_absent(ffi::SQLITE_FULL);
    files_are_whole_or_absent(ffi::SQLITE_IOERR_WRITE);
    power_cuts();
}
