//! The guarantees of a transaction.

mod changes;
mod in_memory;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::{
    CallStatus, ChangeKind, Clock, Database, Error, FileType, Filter, FsError, NewCall, Outcome, Quota, ROOT, Transaction,
};

fn memory() -> Database {
    Database::options().open().unwrap()
}

fn file(transaction: &Transaction, name: &str, bytes: &[u8]) -> u64 {
    let ino = transaction.create(ROOT, name, 0o644, 0, 0).unwrap();
    assert_eq!(transaction.write(ino, 0, bytes), Ok(bytes.len()));
    ino
}

fn content(transaction: &Transaction, ino: u64) -> Vec<u8> {
    let mut bytes = vec![0xAA; transaction.stat(ino).unwrap().size as usize + 10];
    let read = transaction.read(ino, 0, &mut bytes).unwrap();
    bytes.truncate(read);
    bytes
}

struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

#[test]
fn readers_see_only_committed_data() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/a", b"one").unwrap();
    let reader = database.reader().unwrap();
    assert!(!reader.fs().exists("/a").unwrap());
    transaction.commit().unwrap();
    assert_eq!(reader.fs().read("/a").unwrap(), b"one");
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/a", vec![7; 3 << 20]).unwrap();
    transaction.fs().write("/b", vec![7; 30 << 20]).unwrap();
    assert_eq!(reader.fs().read("/a").unwrap(), b"one");
    assert!(!reader.fs().exists("/b").unwrap());
    drop(transaction);
    assert_eq!(reader.fs().read("/a").unwrap(), b"one");
}

#[test]
fn a_reader_of_a_file_sees_only_committed_data() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::options().path(dir.path().join("a.db")).open().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/a", vec![7; 20 << 20]).unwrap();
    let reader = database.reader().unwrap();
    assert!(!reader.fs().exists("/a").unwrap());
    transaction.commit().unwrap();
    assert_eq!(reader.fs().read("/a").unwrap(), vec![7; 20 << 20]);
}

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    transaction.fs().create_dir_all("/x/y").unwrap();
    transaction.fs().write("/x/y/z", b"1").unwrap();
    transaction.kv().set("k", "1").unwrap();
    drop(transaction);
    let transaction = database.begin(None).unwrap();
    assert_eq!(transaction.readdir(ROOT, 0, 10), Ok(vec![]));
    assert_eq!(transaction.kv().get("k").unwrap(), None);
    assert_eq!(transaction.used().unwrap().inodes, 1);
}

#[test]
fn a_second_transaction_waits_until_its_deadline() {
    let database = memory();
    let first = database.begin(None).unwrap();
    let soon = std::time::Instant::now() + std::time::Duration::from_millis(20);
    assert!(matches!(database.begin(Some(soon)), Err(Error::Busy)));
    drop(first);
    assert!(database.begin(Some(soon)).is_ok());
}

#[test]
fn bytes_written_across_chunks_are_read_back() {
    let transaction = memory().begin(None).unwrap();
    let bytes: Vec<u8> = (0..300_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let ino = file(&transaction, "a", &bytes);
    assert_eq!(content(&transaction, ino), bytes);
    let mut part = [0; 1000];
    assert_eq!(transaction.read(ino, 65_000, &mut part), Ok(1000));
    assert_eq!(part[..], bytes[65_000..66_000]);
}

#[test]
fn one_byte_appended_ten_thousand_times_is_kept() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    let ino = file(&transaction, "a", b"");
    for i in 0..10_000u32 {
        assert_eq!(transaction.append(ino, &[(i % 256) as u8]), Ok(u64::from(i) + 1));
    }
    transaction.commit().unwrap();
    let bytes = database.reader().unwrap().fs().read("/a").unwrap();
    assert!(bytes.len() == 10_000 && bytes[9_999] == (9_999 % 256) as u8);
}

#[test]
fn a_hole_reads_as_zeros_and_is_stored_dense() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    let ino = file(&transaction, "a", b"abc");
    transaction.write(ino, 200_000, b"xyz").unwrap();
    let mut expected = b"abc".to_vec();
    expected.resize(200_000, 0);
    expected.extend_from_slice(b"xyz");
    assert_eq!(content(&transaction, ino), expected);
    transaction.commit().unwrap();
    assert_eq!(database.reader().unwrap().fs().read("/a").unwrap(), expected);
    let reader = database.reader().unwrap();
    let lengths: Vec<i64> = reader
        .rows(|connection| {
            let mut statement = connection.prepare("SELECT length(data) FROM fs_data ORDER BY chunk_index")?;
            let lengths = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            Ok(lengths)
        })
        .unwrap();
    assert_eq!(lengths, [65_536, 65_536, 65_536, 3395]);
}

#[test]
fn truncate_cuts_and_fills() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    let ino = file(&transaction, "a", &[1; 200_000]);
    transaction.truncate(ino, 70_000).unwrap();
    transaction.truncate(ino, 140_000).unwrap();
    let mut expected = vec![1; 70_000];
    expected.resize(140_000, 0);
    assert_eq!(content(&transaction, ino), expected);
    transaction.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    assert_eq!(transaction.fs().read("/a").unwrap(), expected);
    assert_eq!(transaction.used().unwrap().bytes, 140_000);
    transaction.truncate(ino, 0).unwrap();
    assert_eq!(transaction.used().unwrap().bytes, 0);
}

#[test]
fn an_open_node_without_a_name_has_no_links() {
    let database = memory();
    let check = |expected: u32, remove: &dyn Fn(&Transaction) -> u64| {
        let transaction = database.begin(None).unwrap();
        let ino = remove(&transaction);
        assert_eq!(transaction.stat(ino).unwrap().nlink, expected);
        // The same once everything else is in rows.
        let _savepoint = transaction.savepoint().unwrap();
        assert_eq!(transaction.stat(ino).unwrap().nlink, expected);
    };
    let held = |transaction: &Transaction, name: &str| {
        let ino = file(transaction, name, b"x");
        transaction.hold(ino).unwrap();
        ino
    };
    check(0, &|transaction| {
        let ino = held(transaction, "a");
        transaction.unlink(ROOT, "a").unwrap();
        ino
    });
    check(1, &|transaction| {
        let ino = held(transaction, "a");
        transaction.link(ino, ROOT, "b").unwrap();
        transaction.unlink(ROOT, "a").unwrap();
        ino
    });
    check(0, &|transaction| {
        let ino = held(transaction, "a");
        file(transaction, "b", b"y");
        transaction.rename(ROOT, "b", ROOT, "a").unwrap();
        ino
    });
    check(0, &|transaction| {
        let ino = transaction.mkdir(ROOT, "d", 0o755, 0, 0).unwrap();
        transaction.hold(ino).unwrap();
        transaction.rmdir(ROOT, "d").unwrap();
        ino
    });
}

#[test]
fn an_unlinked_file_lives_until_its_last_release() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    let ino = file(&transaction, "a", &[5; 100_000]);
    transaction.hold(ino).unwrap();
    transaction.unlink(ROOT, "a").unwrap();
    assert_eq!(transaction.lookup(ROOT, "a"), Err(FsError::NoEntry));
    transaction.write(ino, 0, b"still").unwrap();
    assert_eq!(&content(&transaction, ino)[..5], b"still");
    assert_eq!(transaction.stat(ino).unwrap().nlink, 0);
    assert_eq!(transaction.used().unwrap().bytes, 100_000);
    transaction.release(ino).unwrap();
    assert_eq!(transaction.stat(ino), Err(FsError::NoEntry));
    assert_eq!(transaction.used().unwrap().bytes, 0);
}

#[test]
fn a_held_file_is_in_no_table_after_commit() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    let ino = file(&transaction, "a", &[5; 100_000]);
    transaction.hold(ino).unwrap();
    transaction.unlink(ROOT, "a").unwrap();
    transaction.write(ino, 150_000, b"x").unwrap();
    transaction.commit().unwrap();
    let count: i64 = database
        .reader()
        .unwrap()
        .rows(|c| Ok(c.query_row("SELECT (SELECT count(*) FROM fs_data)+(SELECT count(*) FROM fs_inode)", [], |r| r.get(0))?))
        .unwrap();
    assert_eq!(count, 1);
}

#[test]
fn rename_replaces_and_refuses_loops() {
    let transaction = memory().begin(None).unwrap();
    let fs = transaction.fs();
    fs.create_dir_all("/a/b/c").unwrap();
    let fails = |from: &str, to: &str| fs.rename(from, to).unwrap_err().fs_error().unwrap();
    assert_eq!(fails("/a", "/a/b/x"), FsError::Invalid);
    assert_eq!(fails("/a/b", "/a"), FsError::NotEmpty);
    assert_eq!(fails("/nope", "/x"), FsError::NoEntry);
    fs.write("/f", b"f").unwrap();
    assert_eq!(fails("/f", "/a"), FsError::IsDirectory);
    assert_eq!(fails("/a", "/f"), FsError::NotDirectory);
    fs.create_dir("/empty").unwrap();
    fs.rename("/a", "/empty").unwrap();
    assert!(fs.exists("/empty/b/c").unwrap() && !fs.exists("/a").unwrap());
    let b = fs.metadata("/empty/b").unwrap().ino;
    fs.rename("/empty/b", "/b").unwrap();
    assert_eq!(transaction.parent(b), Ok(ROOT));
    assert_eq!(fs.metadata("/").unwrap().nlink, 4);
}

#[test]
fn a_savepoint_brings_back_files_and_held_ones() {
    let transaction = memory().begin(None).unwrap();
    let ino = file(&transaction, "a", b"before");
    let held = file(&transaction, "held", b"held");
    transaction.hold(held).unwrap();
    transaction.unlink(ROOT, "held").unwrap();
    let savepoint = transaction.savepoint().unwrap();
    transaction.write(ino, 0, b"after!").unwrap();
    transaction.release(held).unwrap();
    transaction.create(ROOT, "b", 0, 0, 0).unwrap();
    transaction.rollback_to(&savepoint).unwrap();
    assert_eq!(content(&transaction, ino), b"before");
    assert_eq!(content(&transaction, held), b"held");
    assert_eq!(transaction.lookup(ROOT, "b"), Err(FsError::NoEntry));
}

#[test]
fn readdir_resumes_where_it_stopped() {
    let transaction = memory().begin(None).unwrap();
    for i in 0..25 {
        transaction.create(ROOT, &format!("f{i}"), 0o644, 0, 0).unwrap();
    }
    let mut names = Vec::new();
    let mut cookie = 0;
    loop {
        let step = transaction.readdir(ROOT, cookie, 10).unwrap();
        let Some(last) = step.last() else { break };
        cookie = last.cookie;
        // Listed entries are removed; new ones are seen at most once.
        transaction.unlink(ROOT, &step[0].name).unwrap();
        names.extend(step.into_iter().map(|entry| entry.name));
    }
    assert_eq!(names, (0..25).map(|i| format!("f{i}")).collect::<Vec<_>>());
}

#[test]
fn readdir_scans_a_range() {
    let database = memory();
    let plan: String = database
        .reader()
        .unwrap()
        .rows(|c| {
            Ok(c.query_row(
                "EXPLAIN QUERY PLAN SELECT id, name FROM fs_dentry WHERE parent_ino=1 AND id>5 ORDER BY id LIMIT 10",
                [],
                |row| row.get(3),
            )?)
        })
        .unwrap();
    assert!(plan.contains("idx_fs_dentry_parent (parent_ino=? AND rowid>?)"), "{plan}");
}

#[test]
fn the_quota_rejects_exactly_the_excess() {
    let quota = Quota { bytes: 100, file_size: 60, inodes: 4, name: 10, depth: 2, ..Quota::default() };
    let transaction = Database::options().quota(quota).open().unwrap().begin(None).unwrap();
    let a = file(&transaction, "a", &[1; 60]);
    assert_eq!(transaction.append(a, b"x"), Err(FsError::FileTooBig));
    assert_eq!(transaction.truncate(a, 61), Err(FsError::FileTooBig));
    let b = transaction.create(ROOT, "b", 0, 0, 0).unwrap();
    assert_eq!(transaction.write(b, 0, &[2; 50]), Ok(40));
    assert_eq!(transaction.append(b, b"x"), Err(FsError::NoSpace));
    assert_eq!(transaction.truncate(b, 41), Err(FsError::NoSpace));
    let used = transaction.used().unwrap();
    assert_eq!((used.bytes, used.inodes), (100, 3));
    let d = transaction.mkdir(ROOT, "0123456789", 0, 0, 0).unwrap();
    assert_eq!(transaction.create(d, "x", 0, 0, 0), Err(FsError::NoSpace));
    assert_eq!(transaction.create(d, "0123456789x", 0, 0, 0), Err(FsError::NameTooLong));
    transaction.unlink(ROOT, "a").unwrap();
    let e = transaction.mkdir(d, "e", 0, 0, 0).unwrap();
    transaction.unlink(ROOT, "b").unwrap();
    assert_eq!(transaction.mkdir(e, "f", 0, 0, 0), Err(FsError::NameTooLong));
}

#[test]
fn a_transaction_lists_its_changes_by_path() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    for name in ["/kept", "/edited", "/gone", "/old", "/mode"] {
        transaction.fs().write(name, b"1").unwrap();
    }
    transaction.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    let fs = transaction.fs();
    fs.append("/edited", b"22").unwrap();
    fs.remove_file("/gone").unwrap();
    fs.rename("/old", "/new").unwrap();
    fs.set_permissions("/mode", 0o600).unwrap();
    fs.create_dir("/dir").unwrap();
    fs.write("/dir/made", b"333").unwrap();
    fs.write("/temporary", b"").unwrap();
    fs.remove_file("/temporary").unwrap();
    let changes: Vec<_> =
        transaction.changes().unwrap().0.into_iter().map(|change| (change.path, change.kind, change.size)).collect();
    let expected = [
        ("/dir", ChangeKind::Created, 0),
        ("/dir/made", ChangeKind::Created, 3),
        ("/edited", ChangeKind::Modified, 3),
        ("/gone", ChangeKind::Deleted, 0),
        ("/mode", ChangeKind::Attributes, 1),
        ("/new", ChangeKind::Renamed { from: "/old".to_owned() }, 1),
    ];
    assert_eq!(changes, expected.map(|(path, kind, size)| (path.to_owned(), kind, size)));
}

#[test]
fn keys_have_versions_and_times() {
    let clock = Arc::new(Ticks(AtomicI64::new(5_000_000_000)));
    let database = Database::options().clock(clock).open().unwrap();
    let transaction = database.begin(None).unwrap();
    let kv = transaction.kv();
    assert_eq!(kv.set("a:1", "\"x\"").unwrap(), 1);
    assert_eq!(kv.compare_and_set("a:1", 1, "2").unwrap(), 2);
    assert!(matches!(kv.compare_and_set("a:1", 1, "3"), Err(Error::Conflict { found: 2, .. })));
    assert!(matches!(kv.compare_and_set("a:1", 0, "3"), Err(Error::Conflict { .. })));
    assert!(matches!(kv.set("b", "no json"), Err(Error::Invalid { .. })));
    kv.set("a:%", "1").unwrap();
    kv.set("b", "{}").unwrap();
    assert_eq!(kv.keys("a:").unwrap(), ["a:%", "a:1"]);
    let value = kv.get("a:1").unwrap().unwrap();
    assert_eq!((value.json.as_str(), value.created, value.version), ("2", 5, 2));
    assert!(kv.delete("b").unwrap() && !kv.delete("b").unwrap());
}

#[test]
fn keys_are_listed_in_bounded_pages() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    for key in ["a", "b:1", "b:22", "b:333", "b:4444", "c"] {
        transaction.kv().set(key, "1").unwrap();
    }
    transaction.commit().unwrap();
    let reader = database.reader().unwrap();
    let page = |after: Option<&str>, most: usize, bytes: usize| {
        let page = reader.keys_after("b:", after, most, bytes).unwrap();
        (page.keys, page.more)
    };
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    assert_eq!(page(None, 2, 100), (keys(&["b:1", "b:22"]), true));
    assert_eq!(page(Some("b:22"), 2, 100), (keys(&["b:333", "b:4444"]), false));
    assert_eq!(page(None, 9, 8), (keys(&["b:1", "b:22"]), true), "eight bytes hold two keys");
    assert_eq!(page(None, 9, 1), (keys(&["b:1"]), true), "one key always comes");
    assert_eq!(page(Some("a"), 9, 100).0.len(), 4, "a cursor before the prefix skips nothing");
    assert_eq!(page(Some("b:4444"), 9, 100), (keys(&[]), false));
}

#[test]
fn a_call_is_recorded_with_its_output() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    let id =
        transaction.calls().begin(&NewCall { name: "bash", parameters: Some("{}"), command: "echo hi", parent: None }).unwrap();
    let outcome = Outcome { result: Some("{\"exitCode\":0}"), stdout: b"hi\n\xff", exit_code: Some(0), ..Default::default() };
    transaction.calls().finish(id, &outcome).unwrap();
    transaction.commit().unwrap();
    let reader = database.reader().unwrap();
    let call = reader.call(id).unwrap().unwrap();
    assert_eq!((call.status, call.name.as_str()), (CallStatus::Success, "bash"));
    assert_eq!(call.run.unwrap().stdout, b"hi\n\xff");
    assert_eq!(reader.calls(&Filter::default()).unwrap().len(), 1);
}

#[test]
fn a_dropped_call_is_recorded_as_interrupted() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/a", b"1").unwrap();
    transaction.calls().begin(&NewCall { name: "bash", parameters: None, command: "sleep 9", parent: None }).unwrap();
    drop(transaction);
    let reader = database.reader().unwrap();
    let calls = reader.calls(&Filter::default()).unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].status, calls[0].run.as_ref().unwrap().command.as_str()), (CallStatus::Interrupted, "sleep 9"));
    assert!(!reader.fs().exists("/a").unwrap());
}

#[test]
fn an_interrupt_ends_one_operation_and_no_more() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/a", b"1").unwrap();
    database.interrupter().interrupt();
    assert_eq!(transaction.lookup(ROOT, "a"), Err(FsError::Interrupted));
    assert!(transaction.lookup(ROOT, "a").is_ok());
    database.interrupter().interrupt();
    transaction.commit().unwrap();
    assert!(database.reader().unwrap().fs().exists("/a").unwrap());
}

#[test]
fn symbolic_links_are_followed_forty_times() {
    let transaction = memory().begin(None).unwrap();
    let fs = transaction.fs();
    fs.write("/end", b"!").unwrap();
    fs.symlink("end", "/l1").unwrap();
    for i in 2..=41 {
        fs.symlink(&format!("l{}", i - 1), &format!("/l{i}")).unwrap();
    }
    assert_eq!(fs.read("/l40").unwrap(), b"!");
    assert_eq!(fs.read("/l41").unwrap_err().fs_error(), Some(FsError::Loop));
    fs.symlink("new/../made", "/dangling").unwrap();
    fs.create_dir("/new").unwrap();
    fs.write("/dangling", b"x").unwrap();
    assert_eq!(fs.read("/made").unwrap(), b"x");
    assert_eq!(fs.symlink_metadata("/dangling").unwrap().file_type(), FileType::Symlink);
}

#[test]
fn a_tree_is_removed_whole() {
    let transaction = memory().begin(None).unwrap();
    let fs = transaction.fs();
    for i in 0..30 {
        fs.create_dir_all(&format!("/t/{}/{}/x", i % 3, i)).unwrap();
        fs.write(&format!("/t/{}/{}/x/f", i % 3, i), b"1").unwrap();
    }
    fs.remove_dir_all("/t").unwrap();
    assert_eq!(transaction.used().unwrap().inodes, 1);
    assert_eq!(fs.metadata("/").unwrap().nlink, 2);
}

/// A clock that interrupts the database at a given call, as the runtime's tick would.
struct Impatient(std::sync::Mutex<(u32, Option<crate::Interrupter>)>);

impl Impatient {
    fn new() -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self(std::sync::Mutex::new((0, None))))
    }

    fn interrupt_after(&self, calls: u32, interrupter: crate::Interrupter) {
        *self.0.lock().unwrap() = (calls, Some(interrupter));
    }
}

impl crate::Clock for Impatient {
    fn now(&self) -> i64 {
        let mut state = self.0.lock().unwrap();
        state.0 = state.0.saturating_sub(1);
        if state.0 == 0
            && let Some(interrupter) = state.1.take()
        {
            interrupter.interrupt();
        }
        0
    }
}

const LARGE: u64 = 100 << 20;

/// Interrupts the removal or creation of a large file; the remaining state is intact.
fn interrupted(work: impl Fn(&Transaction, u64) -> Result<(), FsError>) -> u64 {
    let clock = Impatient::new();
    let database = Database::options().clock(std::sync::Arc::<Impatient>::clone(&clock)).open().unwrap();
    let transaction = database.begin(None).unwrap();
    let ino = transaction.create(ROOT, "large", 0o644, 0, 0).unwrap();
    transaction.truncate(ino, LARGE).unwrap();
    transaction.write(ino, 0, b"begin").unwrap();
    clock.interrupt_after(4, database.interrupter());
    assert_eq!(work(&transaction, ino), Err(FsError::Interrupted));
    let size = transaction.stat(ino).unwrap().size;
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), []);
    assert_eq!(database.reader().unwrap().fs().metadata("/large").unwrap().size, size);
    assert_eq!(database.reader().unwrap().used().unwrap().bytes, size);
    size
}

/// T-DOS-14
#[test]
fn the_removal_of_a_large_file_is_interruptible() {
    let left = interrupted(|transaction, _| transaction.unlink(ROOT, "large"));
    assert!((1..LARGE).contains(&left), "{left}");
    let left = interrupted(|transaction, ino| transaction.truncate(ino, 10));
    assert!((11..LARGE).contains(&left), "{left}");
    let left = interrupted(|transaction, _| {
        transaction.create(ROOT, "small", 0o644, 0, 0)?;
        transaction.rename(ROOT, "small", ROOT, "large")
    });
    assert!((1..LARGE).contains(&left), "{left}");
}

/// T-DOS-14
#[test]
fn the_filling_of_a_large_hole_is_interruptible() {
    let left = interrupted(|transaction, ino| transaction.truncate(ino, 10 * LARGE));
    assert!((LARGE + 1..10 * LARGE).contains(&left), "{left}");
}

#[test]
fn a_hole_that_was_cut_and_grown_again_is_filled_from_its_new_start() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    let ino = file(&transaction, "a", b"x");
    transaction.truncate(ino, 1 << 20).unwrap();
    transaction.write(ino, 900_000, b"y").unwrap();
    transaction.truncate(ino, 100).unwrap();
    transaction.truncate(ino, 2 << 20).unwrap();
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), []);
}

/// T-DOS-07
#[test]
fn behind_the_quota_is_a_wall_of_pages() {
    let quota = crate::Quota { bytes: 1 << 20, inodes: 100, ..crate::Quota::default() };
    let quota = crate::Quota { names: 2 << 20, keys: 3 << 20, sessions: 4 << 20, history: 5 << 20, past: 7 << 20, ..quota };
    let wall = crate::schema::page_ceiling(&quota, 16 << 10);
    assert_eq!(wall, ((2 << 20) + (6 << 20) + (24 << 20) + (14 << 20) + 100 * 512 + (16 << 20)) / (16 << 10));
    let everything = crate::Quota { bytes: u64::MAX, ..quota };
    assert_eq!(crate::schema::page_ceiling(&everything, 16 << 10), 0xFFFF_FFFE);
    let database = Database::options().quota(quota).open().unwrap();
    let transaction = database.begin(None).unwrap();
    let pragma = |name: &str| {
        transaction
            .with(|store| Ok(store.connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0))?))
            .unwrap()
            .unsigned_abs()
    };
    assert_eq!(pragma("max_page_count"), crate::schema::page_ceiling(&quota, pragma("page_size")));
    // At the page limit, writing fails and committed data remains.
    let pages = pragma("page_count");
    pragma(&format!("max_page_count={}", pages + 2));
    let ino = transaction.create(ROOT, "a", 0o644, 0, 0).unwrap();
    let written = transaction.write(ino, 0, &[1; 200_000]).and_then(|_| transaction.write(ino, 200_000, &[1; 200_000]));
    assert_eq!(written, Err(FsError::NoSpace));
    drop(transaction);
    assert_eq!(database.check().unwrap(), []);
}
