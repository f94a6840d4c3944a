//! Several processes have one file open: they take turns, see each other's commits, and none takes another for a stranger.
//!
//! Two handles in one process are as far apart as two processes: each has its own locks, connections and caches.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlite_fs::{CallStatus, Content, Database, Error, Filter, NewCall, Outcome, Rows, VersionKind};

/// The variable with the file that the child process works on.
const CHILD: &str = "SQLITE_FS_SHARING_CHILD";
/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

fn open(path: &Path, wait: Duration) -> Database {
    Database::options().path(path).wait(wait).open().unwrap()
}

fn write(database: &Database, path: &str, text: &str) {
    let transaction = database.begin(None).unwrap();
    transaction.fs().write(path, text).unwrap();
    transaction.commit().unwrap();
}

fn read(database: &Database, path: &str) -> String {
    database.reader().unwrap().fs().read_to_string(path).unwrap()
}

fn count_outside(database: &Database) -> usize {
    let versions = database.reader().unwrap().versions(None, 10_000).unwrap();
    versions.iter().filter(|version| version.kind == VersionKind::Outside).count()
}

fn add_one(database: &Database) {
    let transaction = database.begin(None).unwrap();
    let number: u64 = transaction.fs().read_to_string("/number").unwrap().parse().unwrap();
    transaction.fs().write("/number", (number + 1).to_string()).unwrap();
    transaction.commit().unwrap();
}

/// Not a test: what the child process runs. It begins a call, reports that, and waits to be killed; or it counts.
#[test]
fn child() {
    let Ok(work) = std::env::var(CHILD) else { return };
    let (verb, path) = work.split_once(' ').unwrap();
    let database = open(Path::new(path), LONG);
    match verb {
        "count" => (0..200).for_each(|_| add_one(&database)),
        _ => {
            let transaction = database.begin(None).unwrap();
            let call = NewCall { name: "test", parameters: None, command: "held", parent: None };
            transaction.calls().begin(&call).unwrap();
            transaction.fs().write("/half", "half").unwrap();
            println!("ready");
            std::thread::sleep(LONG);
        }
    }
}

fn start(verb: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{verb} {}", path.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn start_holding(path: &Path) -> Child {
    let mut child = start("hold", path);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("ready")), "the child ended");
    child
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// T-REL-04
#[test]
fn calls_of_two_handles_have_numbers_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (first, second) = (open(&path, LONG), open(&path, LONG));
    let mut numbers = Vec::new();
    for _ in 0..5 {
        for database in [&first, &second] {
            // A call begins before anything else of its transaction does.
            let transaction = database.begin(None).unwrap();
            let call =
                transaction.calls().begin(&NewCall { name: "bash", parameters: None, command: "true", parent: None }).unwrap();
            transaction.calls().finish(call, &Outcome::default()).unwrap();
            transaction.commit().unwrap();
            numbers.push(call);
        }
    }
    assert_eq!(numbers, (1..=10).collect::<Vec<i64>>());
}

/// T-REL-04
#[test]
fn two_handles_see_each_others_commits_and_leave_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (first, second) = (open(&path, LONG), open(&path, LONG));
    for round in 0..20 {
        let text = round.to_string();
        write(&first, "/a", &text);
        assert_eq!(read(&second, "/a"), text);
        write(&second, "/b", &text);
        write(&second, &format!("/c{round}"), &text);
        assert_eq!((read(&first, "/b"), read(&first, &format!("/c{round}"))), (text.clone(), text));
    }
    assert_eq!(count_outside(&first), 0);
    assert_eq!(first.check().unwrap(), []);
    drop(first);
    write(&second, "/a", "alone");
    drop(second);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a.db"], "everything is in the one file after the last close");
    assert_eq!(read(&open(&path, LONG), "/a"), "alone");
}

/// T-REL-04
#[test]
fn nothing_is_lost_when_processes_and_threads_count_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = open(&path, LONG);
    write(&database, "/number", "0");
    let children = [start("count", &path), start("count", &path)];
    let other = open(&path, LONG);
    std::thread::scope(|scope| {
        for database in [&database, &other] {
            scope.spawn(|| (0..200).for_each(|_| add_one(database)));
        }
    });
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(read(&database, "/number"), "800");
    assert_eq!(count_outside(&database), 0);
    assert_eq!(database.check().unwrap(), []);
}

#[test]
fn a_waiting_process_gets_its_turn_from_one_that_never_waits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = open(&path, LONG);
    write(&database, "/number", "0");
    let mut child = start("count", &path);
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < LONG, "the child starves");
        add_one(&database);
    }
    let number: u64 = read(&database, "/number").parse().unwrap();
    assert!(number > 200);
}

/// T-REL-04
#[test]
fn waiting_for_a_turn_ends_after_the_timeout_and_names_the_holder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = open(&path, Duration::from_millis(50));
    let child = start_holding(&path);
    assert!(matches!(database.begin(Some(Instant::now())), Err(Error::Busy)));
    let error = database.begin(None).err().unwrap();
    assert_eq!(error.to_string(), format!("`{}` is in use by process {}", path.display(), child.id()));
    assert!(database.reader().unwrap().fs().exists("/").unwrap(), "reading waits for nobody");
    end(child);
    write(&database, "/a", "after");
}

#[test]
fn an_attempt_that_did_not_wait_does_not_shorten_a_later_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let wait = Duration::from_millis(200);
    let (database, other) = (open(&path, wait), open(&path, LONG));
    let held = other.begin(None).unwrap();
    assert!(matches!(database.begin(Some(Instant::now())), Err(Error::Busy)));
    std::thread::sleep(wait * 2);
    let began = Instant::now();
    assert!(matches!(database.begin(None), Err(Error::Locked { .. })));
    assert!(began.elapsed() >= wait, "{:?}", began.elapsed());
    drop(held);
    write(&database, "/a", "after");
}

#[test]
fn short_waits_that_follow_each_other_are_one_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let wait = Duration::from_millis(100);
    let (database, other) = (open(&path, wait), open(&path, LONG));
    let _held = other.begin(None).unwrap();
    let began = Instant::now();
    let error = loop {
        match database.begin(Some(Instant::now() + Duration::from_millis(10))) {
            Err(Error::Busy) => assert!(began.elapsed() < LONG, "it waits forever"),
            ended => break ended.err().unwrap(),
        }
    };
    assert!(matches!(error, Error::Locked { .. }) && began.elapsed() >= wait, "{error}");
}

/// T-REL-01, T-REL-04
#[test]
fn the_call_of_a_process_that_dies_is_recorded_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = open(&path, LONG);
    write(&database, "/a", "before");
    end(start_holding(&path));
    write(&database, "/a", "after");
    let reader = database.reader().unwrap();
    let calls = reader.calls(&Filter { limit: 10, ..Filter::default() }).unwrap();
    let told: Vec<_> = calls.iter().map(|call| (call.run.as_ref().unwrap().command.as_str(), call.status)).collect();
    assert_eq!(told, [("held", CallStatus::Interrupted)]);
    assert!(!reader.fs().exists("/half").unwrap());
    assert_eq!(count_outside(&database), 0);
}

#[test]
fn cached_facts_of_a_file_are_dropped_when_another_process_changes_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (first, second) = (open(&path, LONG), open(&path, LONG));
    let write = |database: &Database, text: &str| {
        let transaction = database.begin(None).unwrap();
        transaction.fs().write("/a", text).unwrap();
        // Neither size nor times show the change.
        transaction.fs().set_times("/a", Some(0), Some(0)).unwrap();
        transaction.commit().unwrap();
    };
    write(&first, "one");
    let known = Content { etag: "one".to_owned(), newlines: 0, has_crlf: false, is_terminated: true };
    let reader = first.reader().unwrap();
    let stat = reader.fs().metadata("/a").unwrap();
    reader.keep_content(&stat, known.clone());
    assert_eq!(first.reader().unwrap().content(&stat), Some(known));
    write(&second, "two");
    assert_eq!(first.reader().unwrap().content(&stat), None);
}

/// T-REL-04
#[test]
fn commits_of_other_handles_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (first, second) = (open(&path, LONG), open(&path, LONG));
    write(&first, "/a", "one");
    let start = first.visits();
    assert!(start.is_some());
    write(&first, "/a", "two");
    assert_eq!((read(&first, "/a").as_str(), first.visits()), ("two", start), "its own are not");
    write(&second, "/a", "three");
    assert_eq!(read(&first, "/a"), "three");
    let noticed = first.visits();
    assert_ne!(noticed, start, "by a reader");
    write(&second, "/a", "four");
    write(&first, "/b", "one");
    assert_ne!(first.visits(), noticed, "by a transaction");
    let watcher = Database::options().path(&path).read_only().open().unwrap();
    assert_eq!(watcher.visits(), None);
}

/// T-REL-04
#[test]
fn a_program_that_knows_no_turns_is_still_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (first, second) = (open(&path, LONG), open(&path, LONG));
    write(&first, "/a", "one");
    write(&second, "/b", "one");
    write(&first, "/a", "two");
    let stranger = rusqlite::Connection::open(&path).unwrap();
    let change = || stranger.execute("UPDATE fs_inode SET atime = atime + 1 WHERE ino = 1", []).unwrap();
    change();
    write(&second, "/b", "two");
    assert_eq!(count_outside(&second), 1, "after a commit of the other process");
    write(&first, "/a", "three");
    assert_eq!(count_outside(&first), 1, "it is noticed once");
    // The log restarts, first without and then with a foreign commit in between.
    second.compact(None).unwrap();
    write(&first, "/a", "four");
    assert_eq!(count_outside(&first), 1);
    first.compact(None).unwrap();
    change();
    write(&second, "/b", "three");
    assert_eq!(count_outside(&second), 2);
}

/// T-REL-04
#[test]
fn a_turn_without_a_commit_keeps_the_stamp_of_the_last_commit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (first, second, third) = (open(&path, LONG), open(&path, LONG), open(&path, LONG));
    write(&third, "/c", "one");
    write(&first, "/a", "one");
    write(&second, "/b", "one");
    // The reader notices the commit of the second handle, of which the log of the first one knows nothing.
    assert_eq!(read(&first, "/b"), "one");
    let transaction = first.begin(None).unwrap();
    transaction.fs().write("/a", "never").unwrap();
    drop(transaction);
    write(&third, "/c", "two");
    assert_eq!(count_outside(&third), 0);
    // The same after the log has started again.
    second.compact(None).unwrap();
    for round in 0..3 {
        write(&second, "/b", &round.to_string());
    }
    drop(first.begin(None).unwrap());
    write(&third, "/c", "three");
    assert_eq!(count_outside(&third), 0);
}

/// T-REL-04: frames that were never committed are not the work of another program.
#[test]
fn a_large_transaction_that_is_rolled_back_is_not_a_change_by_another_program() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let small = || Database::options().path(&path).wait(LONG).cache(1 << 20).open().unwrap();
    let (first, second) = (small(), small());
    let roll_back = |database: &Database| {
        let length = || std::fs::metadata(dir.path().join("a.db-wal")).unwrap().len();
        let transaction = database.begin(None).unwrap();
        for file in 0..24 {
            transaction.fs().write(&format!("/large{file}"), vec![7; 1 << 20]).unwrap();
        }
        drop(transaction);
        // A later one overwrites the frames of the one before.
        assert!(length() > 8 << 20, "nothing was written to the log");
    };
    write(&second, "/b", "one");
    write(&first, "/a", "one");
    roll_back(&first);
    write(&second, "/b", "two");
    assert_eq!(count_outside(&second), 0);
    // The log starts again with frames that are not committed.
    second.compact(None).unwrap();
    write(&first, "/a", "two");
    write(&second, "/b", "three");
    write(&first, "/a", "three");
    let checkpoint = rusqlite::Connection::open(&path).unwrap();
    checkpoint.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(())).unwrap();
    roll_back(&first);
    write(&second, "/b", "four");
    assert_eq!(count_outside(&second), 0);
}

/// T-REL-04: only a holder of the turn that emptied the log may record that it is empty.
#[test]
fn a_turn_without_a_commit_does_not_hide_a_program_that_empties_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (first, second) = (open(&path, LONG), open(&path, LONG));
    write(&first, "/a", "one");
    write(&second, "/b", "one");
    let stranger = rusqlite::Connection::open(&path).unwrap();
    let change = || stranger.execute("UPDATE fs_inode SET atime = atime + 1 WHERE ino = 1", []).unwrap();
    change();
    let busy: i64 = stranger.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
    drop(first.begin(None).unwrap());
    write(&second, "/b", "two");
    assert_eq!(count_outside(&second), 1);
    // A compaction copies the changes, and must not make them ours.
    change();
    second.compact(None).unwrap();
    write(&second, "/b", "three");
    assert_eq!(count_outside(&second), 2);
}

#[test]
fn cached_facts_are_dropped_after_a_change_between_two_compactions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (first, second) = (open(&path, LONG), open(&path, LONG));
    write(&second, "/a", "one");
    second.compact(None).unwrap();
    let known = Content { etag: "one".to_owned(), newlines: 0, has_crlf: false, is_terminated: true };
    let reader = first.reader().unwrap();
    let stat = reader.fs().metadata("/a").unwrap();
    reader.keep_content(&stat, known.clone());
    drop(reader);
    assert_eq!(first.reader().unwrap().content(&stat), Some(known));
    write(&second, "/a", "two");
    second.compact(None).unwrap();
    assert_eq!(first.reader().unwrap().content(&stat), None);
}

#[cfg(unix)]
#[test]
fn a_waiting_process_announces_itself_again_and_removes_no_other_announcement() {
    use std::os::unix::fs::FileExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (holder, waiting) = (open(&path, LONG), open(&path, LONG));
    let _held = holder.begin(None).unwrap();
    // The process that waits for the turn, in the header of the lock file.
    let lock = std::fs::OpenOptions::new().read(true).write(true).open(dir.path().join("a.db-running")).unwrap();
    let announce = |pid: u32| lock.write_all_at(&pid.to_le_bytes(), 32).unwrap();
    let announced = || {
        let mut pid = [0; 4];
        lock.read_exact_at(&mut pid, 32).unwrap();
        u32::from_le_bytes(pid)
    };
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| waiting.begin(Some(Instant::now() + Duration::from_secs(2))).err());
        let comes = || {
            while announced() != std::process::id() {
                assert!(!wait.is_finished(), "not announced");
            }
        };
        comes();
        announce(0);
        comes();
        announce(1);
        assert!(matches!(wait.join().unwrap(), Some(Error::Busy)));
    });
    assert_eq!(announced(), 1);
}
