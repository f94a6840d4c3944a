//! A database that is replaced or removed while it is open: no commit is acknowledged that would be lost.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use std::path::{Path, PathBuf};

use sqlite_fs::{Database, Durability, Error, Export};

fn open(path: &Path) -> Database {
    Database::options().path(path).durability(Durability::CrashSafe).open().unwrap()
}

fn write(database: &Database, text: &str) -> Result<(), Error> {
    let transaction = database.begin(None)?;
    transaction.fs().write("/text", text)?;
    transaction.commit()
}

fn read(database: &Database) -> Result<String, Error> {
    database.reader()?.fs().read_to_string("/text")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Does something to the files of an open database; its next commit and its next reader must fail.
#[track_caller]
fn check(harm: impl FnOnce(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("place");
    std::fs::create_dir(&directory).unwrap();
    let path = directory.join("a.db");
    let other = open(&directory.join("other.db"));
    write(&other, "other").unwrap();
    drop(other);
    let database = open(&path);
    write(&database, "before").unwrap();
    harm(&path);
    let error = write(&database, "after").unwrap_err();
    assert!(matches!(error, Error::Moved { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("`{}` was replaced or removed while it was open", path.display()));
    assert!(error.hint().unwrap().contains("put it back"));
    let error = read(&database).unwrap_err();
    assert!(matches!(error, Error::Moved { .. }), "{error:?}");
    let error = database.export(&dir.path().join("snapshot.db"), Export::default()).unwrap_err();
    assert!(matches!(error, Error::Moved { .. }), "{error:?}");
}

/// T-REL-01
#[test]
fn a_removed_file_is_noticed() {
    check(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn a_replaced_file_is_noticed() {
    check(|path| std::fs::rename(path.with_file_name("other.db"), path).unwrap());
}

#[test]
fn a_renamed_file_is_noticed() {
    check(|path| std::fs::rename(path, path.with_file_name("elsewhere.db")).unwrap());
}

#[test]
fn a_renamed_directory_is_noticed() {
    check(|path| {
        let directory = path.parent().unwrap();
        std::fs::rename(directory, directory.with_file_name("elsewhere")).unwrap();
    });
}

#[test]
fn a_removed_log_is_noticed() {
    check(|path| std::fs::remove_file(beside(path, "-wal")).unwrap());
}

#[test]
fn a_replaced_log_is_noticed() {
    check(|path| {
        let copy = path.with_file_name("copy");
        std::fs::copy(beside(path, "-wal"), &copy).unwrap();
        std::fs::rename(copy, beside(path, "-wal")).unwrap();
    });
}

#[test]
fn a_restored_file_is_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, aside) = (dir.path().join("a.db"), dir.path().join("aside.db"));
    let database = open(&path);
    write(&database, "before").unwrap();
    std::fs::rename(&path, &aside).unwrap();
    write(&database, "lost").unwrap_err();
    std::fs::rename(&aside, &path).unwrap();
    assert_eq!(read(&database).unwrap(), "before");
    write(&database, "after").unwrap();
    drop(database);
    assert_eq!(read(&open(&path)).unwrap(), "after");
}

#[test]
fn closing_keeps_commits_made_before_the_log_was_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = open(&path);
    write(&database, "before").unwrap();
    std::fs::remove_file(beside(&path, "-wal")).unwrap();
    write(&database, "after").unwrap_err();
    drop(database);
    assert_eq!(read(&open(&path)).unwrap(), "before");
}

/// T-SNAP-04: its log would be read as part of the new file.
#[test]
fn a_replaced_database_takes_its_log_away() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("a.db"), dir.path().join("other.db"));
    write(&open(&other), "other").unwrap();
    let database = open(&path);
    write(&database, "before").unwrap();
    std::fs::rename(&other, &path).unwrap();
    write(&database, "after").unwrap_err();
    drop(database);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let database = open(&path);
    assert_eq!(database.check().unwrap(), []);
    assert_eq!(read(&database).unwrap(), "other");
}

#[test]
fn a_renamed_database_keeps_its_commits() {
    let dir = tempfile::tempdir().unwrap();
    let (path, renamed) = (dir.path().join("a.db"), dir.path().join("renamed.db"));
    let database = open(&path);
    write(&database, "before").unwrap();
    std::fs::rename(&path, &renamed).unwrap();
    write(&database, "after").unwrap_err();
    drop(database);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!(read(&open(&renamed)).unwrap(), "before");
}

#[test]
fn an_older_reader_continues_with_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("a.db"), dir.path().join("other.db"));
    write(&open(&other), "other").unwrap();
    let database = open(&path);
    write(&database, "before").unwrap();
    let reader = database.reader().unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(reader.fs().read_to_string("/text").unwrap(), "before");
}

#[test]
fn a_database_for_reading_notices_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    write(&open(&path), "before").unwrap();
    let looking = Database::options().path(&path).read_only().open().unwrap();
    assert_eq!(read(&looking).unwrap(), "before");
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(read(&looking), Err(Error::Moved { .. })));
}

#[test]
fn a_look_leaves_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    write(&open(&path), "text").unwrap();
    let looking = Database::options().path(&path).read_only().open().unwrap();
    assert_eq!(read(&looking).unwrap(), "text");
    drop(looking);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_reader_that_closes_after_the_writer_leaves_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = open(&path);
    write(&database, "before").unwrap();
    let look = || Database::options().path(&path).read_only().open().unwrap();
    let (looking, other) = (look(), look());
    assert_eq!((read(&looking).unwrap(), read(&other).unwrap()), ("before".to_owned(), "before".to_owned()));
    write(&database, "after").unwrap();
    drop(database);
    drop(looking);
    assert_eq!(read(&other).unwrap(), "after");
    drop(other);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!(read(&open(&path)).unwrap(), "after");
}

/// T-REL-01: the call of a process that died is recorded by the next writer, and the log of another program is not ours to remove.
#[test]
fn reading_does_not_touch_what_a_process_that_died_has_left() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("a.db"), dir.path().join("copy.db"));
    let database = open(&path);
    write(&database, "text").unwrap();
    for left in [&["-wal"][..], &["-wal", "-running"]] {
        let _ = std::fs::remove_file(beside(&copy, "-shm"));
        for suffix in ["", "-wal", "-running"] {
            std::fs::copy(beside(&path, suffix), beside(&copy, suffix)).unwrap();
            if !suffix.is_empty() && !left.contains(&suffix) {
                std::fs::remove_file(beside(&copy, suffix)).unwrap();
            }
        }
        let bytes = |suffix: &str| std::fs::read(beside(&copy, suffix)).ok();
        let before = ["", "-wal", "-running"].map(bytes);
        let looking = Database::options().path(&copy).read_only().open().unwrap();
        assert_eq!(read(&looking).unwrap(), "text");
        drop(looking);
        assert!(["", "-wal", "-running"].map(bytes) == before, "{left:?}");
    }
}

#[test]
fn reading_does_not_touch_the_log_of_a_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = open(&path);
    let looking = || drop(Database::options().path(&path).read_only().open().unwrap().reader().unwrap());
    looking();
    write(&database, "text").unwrap();
    looking();
    write(&database, "more").unwrap();
    drop(database);
    assert_eq!(read(&open(&path)).unwrap(), "more");
}

/// T-REL-04: the moved database must not take the files of the one that has its name now.
#[test]
fn closing_a_moved_database_does_not_touch_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let (directory, aside) = (dir.path().join("place"), dir.path().join("aside"));
    std::fs::create_dir(&directory).unwrap();
    let path = directory.join("a.db");
    let old = open(&path);
    write(&old, "old").unwrap();
    std::fs::rename(&directory, &aside).unwrap();
    std::fs::create_dir(&directory).unwrap();
    let new = open(&path);
    write(&new, "new").unwrap();
    drop(old);
    assert!(beside(&path, "-wal").exists() && beside(&path, "-running").exists());
    write(&new, "newer").unwrap();
    drop(new);
    assert_eq!(read(&open(&path)).unwrap(), "newer");
    assert_eq!(read(&open(&aside.join("a.db"))).unwrap(), "old");
}

/// T-SNAP-04: a log of an earlier database of that name would be read as part of the new one.
#[test]
fn a_new_file_ignores_leftovers_of_an_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let (path, kept) = (dir.path().join("a.db"), dir.path().join("kept"));
    let database = open(&path);
    write(&database, "stale").unwrap();
    std::fs::copy(beside(&path, "-wal"), &kept).unwrap();
    drop(database);
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&kept, beside(&path, "-wal")).unwrap();
    let source = Database::options().open().unwrap();
    write(&source, "fresh").unwrap();
    source.export(&path, Export::default()).unwrap();
    assert_eq!(read(&open(&path)).unwrap(), "fresh");
}

#[test]
fn a_name_that_a_living_process_uses_is_not_given_to_a_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = open(&path);
    write(&database, "text").unwrap();
    std::fs::remove_file(&path).unwrap();
    let source = Database::options().open().unwrap();
    let error = source.export(&path, Export::default()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error:?}");
    assert!(!path.exists());
}
