//! Everything in the file has a budget, whatever fills it, over any number of transactions and opens (T-DOS-07, T-REL-06).

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use std::path::Path;

use sqlite_fs::{
    Database, Durability, Error, Filter, FsError, Import, NewCall, Options, Outcome, Quota, ROOT, Run, Transaction, Usage,
};

const MB: u64 = 1 << 20;

/// Small budgets for everything.
const TIGHT: Quota = Quota {
    bytes: 4 * MB,
    file_size: 2 * MB,
    inodes: 1_000,
    name: Quota::NAME_MAX,
    depth: Quota::DEPTH_MAX,
    names: MB,
    keys: MB,
    sessions: MB,
    history: 8 * MB,
    past: MB,
};

fn options(path: Option<&Path>, quota: Quota) -> Options {
    let options = Database::options().durability(Durability::CrashSafe).quota(quota);
    match path {
        Some(path) => options.path(path),
        None => options,
    }
}

fn memory(quota: Quota) -> Database {
    options(None, quota).open().unwrap()
}

fn call(transaction: &Transaction, command: &str, stdout: &[u8]) -> i64 {
    let id = transaction.calls().begin(&NewCall { name: "bash", parameters: Some("{}"), command, parent: None }).unwrap();
    transaction.calls().finish(id, &Outcome { result: Some("{}"), stdout, exit_code: Some(0), ..Outcome::default() }).unwrap();
    id
}

fn record(database: &Database, command: &str, stdout: &[u8]) -> i64 {
    let transaction = database.begin(None).unwrap();
    let id = call(&transaction, command, stdout);
    transaction.commit().unwrap();
    id
}

fn used(database: &Database) -> Usage {
    database.reader().unwrap().used().unwrap()
}

/// The same, counted from the rows: a fork has no sums.
fn counted(database: &Database) -> Usage {
    used(&database.fork(Database::options()).unwrap())
}

fn run(database: &Database, id: i64) -> Run {
    database.reader().unwrap().call(id).unwrap().unwrap().run.unwrap()
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn t_dos_07_the_oldest_output_of_a_full_history_goes_first_and_its_call_stays() {
    for dir in [None, Some(tempfile::tempdir().unwrap())] {
        let path = dir.as_ref().map(|dir| dir.path().join("a.db"));
        let database = options(path.as_deref(), TIGHT).open().unwrap();
        let ids: Vec<i64> = (0..100).map(|n| record(&database, &format!("command {n}"), &vec![b'x'; MB as usize])).collect();
        assert!(used(&database).history <= TIGHT.history, "{:?}", used(&database));
        assert_eq!(used(&database), counted(&database));
        let (first, last) = (run(&database, ids[0]), run(&database, ids[99]));
        assert_eq!(
            (first.command.as_str(), first.stdout.len(), first.pruned, first.stdout_truncated),
            ("command 0", 0, true, true)
        );
        assert_eq!((last.stdout.len() as u64, last.pruned, last.stdout_truncated), (MB, false, false));
        let calls = database.reader().unwrap().calls(&Filter { limit: 1000, ..Filter::default() }).unwrap();
        let pruned = calls.iter().filter(|call| call.run.as_ref().unwrap().pruned).count();
        assert_eq!((calls.len(), pruned > 90 && pruned < 95), (100, true), "{pruned}");
        assert_eq!(database.check().unwrap(), []);
        drop(database);
        if let Some(path) = path {
            assert!(size(&path) < 12 * MB, "{}", size(&path));
        }
    }
}

#[test]
fn t_dos_07_the_oldest_calls_go_when_calls_alone_fill_the_history() {
    let database = memory(Quota { history: 200_000, ..TIGHT });
    let ids: Vec<i64> = (0..1_000).map(|n| record(&database, &format!("command {n}"), b"printed")).collect();
    assert!(used(&database).history <= 200_000);
    assert_eq!(used(&database), counted(&database));
    let calls = database.reader().unwrap().calls(&Filter { limit: 10_000, ..Filter::default() }).unwrap();
    assert!((400..800).contains(&calls.len()), "{}", calls.len());
    assert_eq!(calls[0].id, ids[999]);
    // A great many old calls do not cost the last ones their output.
    assert_eq!(run(&database, ids[999]).stdout, b"printed");
    assert_eq!(run(&database, ids[900]).stdout, b"printed");
    assert_eq!(database.check().unwrap(), []);
}

#[test]
fn a_call_larger_than_the_whole_budget_is_truncated_with_a_note() {
    let database = memory(Quota { history: 100_000, ..TIGHT });
    let before = record(&database, "before", b"x");
    let id = record(&database, "flood", &vec![b'y'; 3 << 20]);
    let flood = run(&database, id);
    assert!(flood.stdout_truncated && (80_000..100_000).contains(&flood.stdout.len()), "{}", flood.stdout.len());
    assert!(used(&database).history <= 100_000);
    // With a budget for nothing at all the last call is still there, cut to the bone.
    let tiny = memory(Quota { history: 1, ..TIGHT });
    let transaction = tiny.begin(None).unwrap();
    let long = "z".repeat(100_000);
    for _ in 0..3 {
        call(&transaction, &long, long.as_bytes());
    }
    transaction.commit().unwrap();
    let calls = tiny.reader().unwrap().calls(&Filter { output: true, ..Filter::default() }).unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].run.as_ref().unwrap().command.len(), 256);
    assert_eq!(used(&tiny), counted(&tiny));
    let _ = before;
}

#[test]
fn a_command_is_pruned_although_it_is_recorded_after_the_calls_it_made() {
    let database = memory(Quota { history: 1_000_000, ..TIGHT });
    let transaction = database.begin(None).unwrap();
    let outer = transaction.calls().begin(&NewCall { name: "bash", parameters: None, command: "outer", parent: None }).unwrap();
    for _ in 0..5 {
        call(&transaction, "inner", &[b'i'; 300_000]);
    }
    transaction.calls().finish(outer, &Outcome { stdout: &[b'o'; 300_000], ..Outcome::default() }).unwrap();
    transaction.commit().unwrap();
    for _ in 0..6 {
        record(&database, "later", &[b'l'; 300_000]);
    }
    assert!(run(&database, outer).pruned);
    assert_eq!(used(&database), counted(&database));
}

#[test]
fn t_dos_07_hard_links_and_targets_count_by_their_names() {
    let database = memory(TIGHT);
    let transaction = database.begin(None).unwrap();
    let file = transaction.create(ROOT, "f", 0o644, 0, 0).unwrap();
    let made = (0..65_000u32).take_while(|n| transaction.link(file, ROOT, &format!("{n:0>255}")).is_ok()).count() as u64;
    assert_eq!(made, (MB - 65) / (64 + 255));
    transaction.create(ROOT, &"y".repeat(100), 0o644, 0, 0).unwrap();
    let full = Err(FsError::NoSpace);
    assert_eq!(transaction.create(ROOT, &"x".repeat(255), 0o644, 0, 0), full);
    assert_eq!(transaction.mkdir(ROOT, &"x".repeat(255), 0o755, 0, 0), full);
    assert_eq!(transaction.mkfifo(ROOT, &"x".repeat(255), 0o644, 0, 0), full);
    assert_eq!(transaction.symlink(ROOT, "s", &"t".repeat(4000), 0, 0), full);
    assert_eq!(transaction.rename(ROOT, "f", ROOT, &"x".repeat(255)), Err(FsError::NoSpace));
    assert_eq!(transaction.hide(&format!("/{}", "x".repeat(255))), Err(FsError::NoSpace));
    // A full budget does not keep anything from going.
    for n in 0..100 {
        transaction.unlink(ROOT, &format!("{n:0>255}")).unwrap();
    }
    transaction.symlink(ROOT, "s", &"t".repeat(4000), 0, 0).unwrap();
    transaction.rename(ROOT, "f", ROOT, &"x".repeat(255)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(used(&database), counted(&database));
    let transaction = database.begin(None).unwrap();
    let before = transaction.used().unwrap().names;
    transaction.unlink(ROOT, "s").unwrap();
    assert_eq!(transaction.used().unwrap().names, before - 4000 - 65);
    transaction.hide("/w/d/f").unwrap();
    transaction.hide("/w/d").unwrap();
    transaction.commit().unwrap();
    assert_eq!(used(&database), counted(&database));
}

#[test]
fn t_dos_07_keys_have_a_length_and_a_budget() {
    let database = memory(Quota { sessions: 0, ..TIGHT });
    let transaction = database.begin(None).unwrap();
    let kv = transaction.kv();
    let (longest, longer) = ("k".repeat(Quota::KEY_MAX), "k".repeat(Quota::KEY_MAX + 1));
    kv.set(&longest, "1").unwrap();
    let error = kv.set(&longer, "1").unwrap_err().to_string();
    assert_eq!(error, "invalid key: the key has 1025 bytes; the maximum is 1024");
    let value = format!("\"{}\"", "v".repeat(100_000));
    let made = (0..100).take_while(|n| kv.set(&format!("key{n}"), &value).is_ok()).count();
    assert_eq!(made, 10);
    let error = kv.compare_and_set("more", 0, &value).unwrap_err();
    assert!(matches!(error, Error::Quota { limit: "keys", allowed: MB, .. }), "{error:?}");
    assert_eq!(error.to_string(), "limit `keys` reached: 1 MB allowed, 1.1 MB needed");
    assert!(error.hint().unwrap().contains("delete keys"));
    // Smaller values and deletions are accepted.
    kv.set("key0", "0").unwrap();
    assert!(kv.delete("key1").unwrap() && !kv.delete("key1").unwrap());
    kv.set("more", &value).unwrap();
    transaction.commit().unwrap();
    assert_eq!(used(&database), counted(&database));
}

#[test]
fn t_dos_07_sessions_have_a_budget() {
    let database = memory(Quota { keys: 0, ..TIGHT });
    let transaction = database.begin(None).unwrap();
    let sessions = transaction.sessions();
    let state = vec![7; 200_000];
    let made = (0..100).take_while(|n| sessions.set(&format!("session{n}"), "shell", &state).is_ok()).count();
    assert_eq!(made, 5);
    let error = sessions.set("more", "shell", &state).unwrap_err();
    assert!(matches!(error, Error::Quota { limit: "sessions", .. }), "{error:?}");
    sessions.set("session0", "shell", &state).unwrap();
    assert!(sessions.remove("session1").unwrap() && !sessions.remove("session1").unwrap());
    sessions.set("more", "shell", &state).unwrap();
    transaction.commit().unwrap();
    assert_eq!(used(&database), counted(&database));
}

#[test]
fn sums_follow_savepoints_and_rollbacks() {
    // The data saved for the version grows when rows are written back, not with each operation.
    let besides = |usage: sqlite_fs::Usage| sqlite_fs::Usage { past: 0, ..usage };
    let database = memory(TIGHT);
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/kept", b"x").unwrap();
    transaction.kv().set("kept", "1").unwrap();
    let before = besides(transaction.used().unwrap());
    let savepoint = transaction.savepoint().unwrap();
    transaction.fs().write("/gone", b"x").unwrap();
    transaction.kv().set("gone", "1").unwrap();
    transaction.sessions().set("gone", "shell", b"x").unwrap();
    call(&transaction, "gone", b"x");
    assert_ne!(besides(transaction.used().unwrap()), before);
    transaction.rollback_to(&savepoint).unwrap();
    assert_eq!(besides(transaction.used().unwrap()), before);
    transaction.commit().unwrap();
    assert_eq!((besides(used(&database)), besides(counted(&database))), (before, before));
    let transaction = database.begin(None).unwrap();
    transaction.fs().remove_file("/kept").unwrap();
    transaction.kv().delete("kept").unwrap();
    drop(transaction);
    assert_eq!(besides(database.begin(None).unwrap().used().unwrap()), before);
}

#[test]
fn sums_are_the_same_over_many_opens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    for n in 0..150 {
        let database = options(Some(&path), TIGHT).open().unwrap();
        let transaction = database.begin(None).unwrap();
        transaction.fs().write(&format!("/file{n}"), b"x").unwrap();
        if n % 3 == 2 {
            transaction.fs().remove_file(&format!("/file{}", n - 1)).unwrap();
        }
        transaction.kv().set(&format!("key{n}"), "1").unwrap();
        call(&transaction, "touch", &vec![b'x'; 1000 * n]);
        transaction.commit().unwrap();
        assert_eq!(used(&database), counted(&database), "open {n}");
    }
}

/// Another program is detected by the indexes of AgentFS's SDKs if it wrote between two opens, and by SQLite while the file is open.
#[test]
fn sums_are_counted_again_after_another_program_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let foreign = |statements: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(statements).unwrap();
    let insert = "INSERT INTO kv_store (key, value) VALUES ('theirs'||(SELECT count(*) FROM kv_store), '1');
                  INSERT INTO tool_calls (name, status, started_at) VALUES ('theirs', 'success', 1);";
    let database = options(Some(&path), TIGHT).open().unwrap();
    record(&database, "ours", b"x");
    let transaction = database.begin(None).unwrap();
    transaction.kv().set("ours", "1").unwrap();
    transaction.commit().unwrap();
    foreign(insert);
    let transaction = database.begin(None).unwrap();
    transaction.kv().set("ours too", "1").unwrap();
    transaction.commit().unwrap();
    assert_eq!(used(&database), counted(&database));
    drop(database);
    foreign(&format!("CREATE INDEX idx_kv_store_created_at ON kv_store(created_at); {insert}"));
    let database = options(Some(&path), TIGHT).open().unwrap();
    assert_eq!(used(&database), counted(&database));
}

#[test]
fn a_file_without_budgets_is_upgraded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let generous = Quota { history: 1 << 30, ..TIGHT };
    let database = options(Some(&path), generous).open().unwrap();
    for _ in 0..40 {
        record(&database, "old", &vec![b'x'; MB as usize]);
    }
    let before = used(&database);
    drop(database);
    rusqlite::Connection::open(&path).unwrap().execute_batch("DROP TABLE sandlite_usage").unwrap();
    // A read-only database does not need the table.
    let looking = options(Some(&path), TIGHT).read_only().open().unwrap();
    assert_eq!(used(&looking), before);
    drop(looking);
    let bytes = size(&path);
    let database = options(Some(&path), TIGHT).open().unwrap();
    let id = record(&database, "new", &vec![b'y'; MB as usize]);
    assert_eq!(run(&database, id).stdout.len() as u64, MB);
    assert!(used(&database).history <= TIGHT.history, "{:?}", used(&database));
    assert_eq!(used(&database), counted(&database));
    drop(database);
    assert!(size(&path) <= bytes + MB, "{} {bytes}", size(&path));
}

/// T-DOS-07: the wall behind the budgets does not move with the number of opens.
#[test]
fn t_dos_07_a_file_above_its_ceiling_does_not_grow_however_often_it_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let wide = Quota { bytes: 1 << 30, file_size: 1 << 30, history: 1 << 30, ..TIGHT };
    let database = options(Some(&path), wide).open().unwrap();
    let transaction = database.begin(None).unwrap();
    for n in 0..120 {
        transaction.fs().write(&format!("/file{n}"), vec![1; MB as usize]).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    let bytes = size(&path);
    // The budget of the history alone would let the file grow by 40 MB more.
    let tight = Quota { history: 40 * MB, ..TIGHT };
    let mut grown = Vec::new();
    for n in 0..60 {
        let database = options(Some(&path), tight).open().unwrap();
        // Files are above their quota, the history has room in its own: the file is accepted within its limits.
        let id = record(&database, &format!("open {n}"), &vec![b'x'; MB as usize]);
        assert!(run(&database, id).command.starts_with("open"), "{n}");
        drop(database);
        grown.push(size(&path).saturating_sub(bytes));
    }
    assert!((10 * MB..=16 * MB).contains(&grown[59]), "{grown:?}");
    // Deleting works, and makes room.
    let database = options(Some(&path), tight).open().unwrap();
    let transaction = database.begin(None).unwrap();
    for n in 0..120 {
        transaction.fs().remove_file(&format!("/file{n}")).unwrap();
    }
    call(&transaction, "rm", &vec![b'z'; MB as usize]);
    transaction.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/new", vec![1; MB as usize]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), []);
    drop(database);
    assert!(size(&path).saturating_sub(bytes) <= 16 * MB);
}

#[test]
fn an_import_keeps_the_newest_history_and_rejects_the_excess() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let wide = Quota { names: 1 << 30, keys: 1 << 30, sessions: 1 << 30, history: 1 << 30, ..TIGHT };
    let database = memory(wide);
    for n in 0..30 {
        record(&database, &format!("command {n}"), &vec![b'x'; MB as usize]);
    }
    database.export(&path, sqlite_fs::Export::default()).unwrap();
    let (imported, notes) = Database::import(&path, options(None, TIGHT), &Import::default()).unwrap();
    assert_eq!(notes.notes, ["limit `history`: 0 old calls and the output of 23 more were omitted"]);
    assert!(used(&imported).history <= TIGHT.history);
    assert_eq!(used(&imported), counted(&imported));
    assert_eq!((run(&imported, 1).pruned, run(&imported, 23).pruned, run(&imported, 24).pruned), (true, true, false));
    // Pruned output stays pruned on its way through another file.
    let again = dir.path().join("b.db");
    imported.export(&again, sqlite_fs::Export::default()).unwrap();
    let (twice, _) = Database::import(&again, options(None, TIGHT), &Import::default()).unwrap();
    assert!(run(&twice, 1).pruned && run(&twice, 24).stdout.len() as u64 == MB);
    let digest = Some(database.digest(sqlite_fs::Export::default()).unwrap());
    let import = Import { digest, ..Import::default() };
    let error = Database::import(&path, options(None, TIGHT), &import).err().unwrap().to_string();
    assert_eq!(error, "the file was rejected: quota: history exceeds 8388608 bytes");
    Database::import(&path, options(None, wide), &import).unwrap();

    let few = memory(Quota { history: 200_000, ..wide });
    for n in 0..100 {
        record(&few, &format!("command {n}"), b"printed");
    }
    let path = dir.path().join("few.db");
    few.export(&path, sqlite_fs::Export::default()).unwrap();
    let (imported, _) = Database::import(&path, options(None, Quota { history: 20_000, ..TIGHT }), &Import::default()).unwrap();
    let calls = imported.reader().unwrap().calls(&Filter { limit: 1000, ..Filter::default() }).unwrap();
    assert!((40..80).contains(&calls.len()) && calls[0].id == 100, "{}", calls.len());
    assert!(used(&imported).history <= 20_000);
    assert_eq!(imported.check().unwrap(), []);

    type Fill = fn(&Transaction);
    let fills: [(&str, Fill); 4] = [
        ("keys", |t| {
            let value = format!("\"{}\"", "v".repeat(100_000));
            (0..20).for_each(|n| assert_eq!(t.kv().set(&format!("k{n}"), &value).unwrap(), 1));
        }),
        ("sessions", |t| (0..20).for_each(|n| t.sessions().set(&format!("s{n}"), "shell", &[1; 100_000]).unwrap())),
        ("names", |t| (0..500).for_each(|n| t.fs().symlink(&"t".repeat(4000), &format!("/{n}")).unwrap())),
        ("names", |t| {
            let ino = t.create(ROOT, "f", 0o644, 0, 0).unwrap();
            (0..5000).for_each(|n| t.link(ino, ROOT, &format!("{n:0>255}")).unwrap());
        }),
    ];
    for (number, (limit, fill)) in fills.into_iter().enumerate() {
        let database = memory(wide);
        let transaction = database.begin(None).unwrap();
        fill(&transaction);
        transaction.commit().unwrap();
        let path = dir.path().join(format!("{number}.db"));
        database.export(&path, sqlite_fs::Export::default()).unwrap();
        let error = Database::import(&path, options(None, TIGHT), &Import::default()).err().unwrap().to_string();
        assert!(error.contains(&format!("quota: {limit} exceeds")), "{error}");
    }
}
