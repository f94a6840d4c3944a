//! Versions: reading, comparing, restoring and pruning them.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own")]

use std::path::Path;

use sqlite_fs::{
    ChangeKind, Database, Error, Export, Filter, FsError, Import, Keep, NewCall, Outcome, Quota, Transaction, VersionKind,
};

#[path = "past/support.rs"]
mod support;

use support::{changes, commit, text, write};

#[test]
fn keys_sessions_and_calls_belong_to_versions() {
    let database = Database::options().open().unwrap();
    let first = commit(&database, |transaction| {
        let call = NewCall { name: "bash", parameters: None, command: "set", parent: None };
        let id = transaction.calls().begin(&call).unwrap();
        transaction.kv().set("a", "1").unwrap();
        transaction.sessions().set("s", "shell", b"one").unwrap();
        transaction.calls().finish(id, &Outcome::default()).unwrap();
    });
    let second = commit(&database, |transaction| {
        transaction.kv().set("a", "2").unwrap();
        transaction.kv().set("b", "3").unwrap();
        transaction.sessions().set("s", "shell", b"two").unwrap();
        transaction.sessions().set("t", "shell", b"new").unwrap();
    });
    let third = commit(&database, |transaction| {
        transaction.kv().delete("a").unwrap();
        transaction.sessions().remove("s").unwrap();
    });
    let seen = |version: i64| {
        let reader = database.reader_at(version).unwrap();
        let value = reader.get("a").unwrap().map(|value| value.json);
        let state = reader.session("s", "shell").unwrap();
        (value, reader.keys("").unwrap().join(" "), state, reader.sessions().unwrap().join(" "))
    };
    assert_eq!(seen(0), (None, String::new(), None, String::new()));
    assert_eq!(seen(first), (Some("1".to_owned()), "a".to_owned(), Some(b"one".to_vec()), "s".to_owned()));
    assert_eq!(seen(second), (Some("2".to_owned()), "a b".to_owned(), Some(b"two".to_vec()), "s t".to_owned()));
    assert_eq!(seen(third), (None, "b".to_owned(), None, "t".to_owned()));
    let versions = database.reader().unwrap().versions(None, 10).unwrap();
    assert_eq!(
        versions.iter().map(|version| (version.number, version.call)).collect::<Vec<_>>(),
        [(3, None), (2, None), (1, Some(1)), (0, None)]
    );
    assert_eq!(versions.last().unwrap().kind, VersionKind::Base);
    assert_eq!(database.reader().unwrap().version_of(1).unwrap().unwrap().number, 1);
}

#[test]
fn a_transaction_without_changes_creates_no_version() {
    let database = Database::options().open().unwrap();
    commit(&database, |transaction| transaction.sessions().set("s", "shell", b"same").unwrap());
    commit(&database, |transaction| transaction.sessions().set("s", "shell", b"same").unwrap());
    commit(&database, |transaction| {
        let call = NewCall { name: "bash", parameters: None, command: "true", parent: None };
        let id = transaction.calls().begin(&call).unwrap();
        transaction.calls().finish(id, &Outcome::default()).unwrap();
    });
    drop(database.begin(None).unwrap());
    assert_eq!(database.reader().unwrap().versions(None, 10).unwrap().len(), 2);
}

#[test]
fn changes_are_listed_by_path() {
    let database = Database::options().open().unwrap();
    let before = commit(&database, |transaction| {
        let fs = transaction.fs();
        fs.create_dir_all("/d/sub").unwrap();
        for path in ["/d/kept", "/d/edited", "/d/gone", "/d/moved", "/d/mode", "/d/sub/x"] {
            fs.write(path, path).unwrap();
        }
    });
    let after = commit(&database, |transaction| {
        let fs = transaction.fs();
        fs.write("/d/edited", "new").unwrap();
        fs.remove_file("/d/gone").unwrap();
        fs.rename("/d/moved", "/d/there").unwrap();
        fs.set_permissions("/d/mode", 0o600).unwrap();
        fs.write("/d/added", "").unwrap();
        fs.rename("/d/sub", "/d/bus").unwrap();
    });
    let renamed = |from: &str| ChangeKind::Renamed { from: from.to_owned() };
    let expected = [
        ("/d/added", ChangeKind::Created),
        ("/d/bus", renamed("/d/sub")),
        ("/d/bus/x", renamed("/d/sub/x")),
        ("/d/edited", ChangeKind::Modified),
        ("/d/gone", ChangeKind::Deleted),
        ("/d/mode", ChangeKind::Attributes),
        ("/d/there", renamed("/d/moved")),
    ];
    let expected: Vec<_> = expected.map(|(path, kind)| (path.to_owned(), kind)).into();
    assert_eq!(changes(&database, before, None), expected);
    write(&database, "/later", "x");
    assert_eq!(changes(&database, before, Some(after)), expected);
    assert_eq!(changes(&database, after, Some(after)), []);
    let error = database.reader().unwrap().changes(after, Some(before)).unwrap_err();
    assert_eq!(error.to_string(), "invalid range: version 1 is older than 2");
}

#[test]
fn the_paths_of_changes_between_versions_are_bounded_together() {
    let database = Database::options().open().unwrap();
    let before = write(&database, "/first", "x");
    commit(&database, |transaction| {
        let deep = (0..100).fold(1, |dir, _| transaction.mkdir(dir, &"d".repeat(255), 0o755, 0, 0).unwrap());
        for number in 0..2800 {
            transaction.create(deep, &number.to_string(), 0o644, 0, 0).unwrap();
        }
    });
    let (changes, is_complete) = database.reader().unwrap().changes(before, None).unwrap();
    let bytes: usize = changes.iter().map(|change| change.path.len()).sum();
    assert!(!is_complete && (60 << 20..70 << 20).contains(&bytes), "{} paths, {bytes} bytes", changes.len());
}

#[test]
fn hard_links_that_changed_are_listed_apart() {
    let database = Database::options().open().unwrap();
    let before = commit(&database, |transaction| {
        let fs = transaction.fs();
        fs.write("/a", "one").unwrap();
        fs.hard_link("/a", "/b").unwrap();
        fs.write("/c", "other").unwrap();
    });
    commit(&database, |transaction| {
        let fs = transaction.fs();
        fs.remove_file("/b").unwrap();
        fs.write("/b", "two").unwrap();
    });
    let (changes, links, is_complete) = database.reader().unwrap().changes_and_links(before, None).unwrap();
    assert_eq!(changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["/b"]);
    assert!(is_complete && links == ["/a"], "{links:?}");
}

#[test]
fn kept_versions_are_unchanged_by_pruning() {
    let database = Database::options().open().unwrap();
    let versions: Vec<i64> = (0..20)
        .map(|n| {
            commit(&database, |transaction| {
                transaction.fs().write("/a", n.to_string().repeat(50)).unwrap();
                transaction.fs().write(&format!("/{n}"), "x").unwrap();
                if n > 3 {
                    transaction.fs().remove_file(&format!("/{}", n - 3)).unwrap();
                }
            })
        })
        .collect();
    let seen = |version: i64| {
        let reader = database.reader_at(version).unwrap();
        (text(&reader, "/a"), reader.fs().list("/").unwrap().into_iter().map(|entry| entry.name).collect::<Vec<_>>())
    };
    let before: Vec<_> = versions.iter().map(|version| seen(*version)).collect();
    commit(&database, |transaction| transaction.label("start", 5, None).unwrap());
    let reader = database.reader_at(3).unwrap();
    let pruned = database.begin(None).unwrap();
    let result = pruned.prune(&Keep { versions: Some(8), ..Keep::default() }).unwrap();
    pruned.commit().unwrap();
    assert_eq!((result.versions, result.labels, result.oldest), (13, 1, 13));
    for (version, before) in versions.iter().zip(&before).filter(|(version, _)| **version >= 13) {
        assert_eq!(&seen(*version), before, "version {version}");
    }
    let error = database.reader_at(12).err().unwrap();
    assert_eq!(error.to_string(), "unknown version 12: 13 to 20 exist");
    assert_eq!(reader.fs().read("/a").unwrap_err().fs_error(), Some(FsError::Stale));
    assert_eq!(database.reader().unwrap().version(13).unwrap().kind, VersionKind::Base);
    assert_eq!(database.check().unwrap(), []);
}

#[test]
fn the_budget_of_the_past_is_kept_by_dropping_the_oldest_versions() {
    let dir = tempfile::tempdir().unwrap();
    let quota = Quota { past: 300_000, ..Quota::default() };
    let database = Database::options().path(dir.path().join("a.db")).quota(quota).open().unwrap();
    for n in 0..40u8 {
        commit(&database, |transaction| transaction.fs().write("/a", vec![n; 20_000]).unwrap());
        assert!(database.reader().unwrap().used().unwrap().past <= 300_000);
    }
    let versions = database.reader().unwrap().versions(None, 100).unwrap();
    assert!((5..20).contains(&versions.len()), "{}", versions.len());
    let oldest = versions.last().unwrap().number;
    let byte = u8::try_from(oldest - 1).unwrap();
    assert_eq!(database.reader_at(oldest).unwrap().fs().read("/a").unwrap(), vec![byte; 20_000]);
    // One that takes more than all of it leaves itself alone.
    commit(&database, |transaction| transaction.fs().write("/large", vec![1; 2_000_000]).unwrap());
    let last = commit(&database, |transaction| transaction.fs().remove_file("/large").unwrap());
    let versions = database.reader().unwrap().versions(None, 100).unwrap();
    assert_eq!(versions.iter().map(|version| version.number).collect::<Vec<_>>(), [last]);
    assert_eq!(database.check().unwrap(), []);
}

#[test]
fn an_append_saves_no_chunk() {
    let database = Database::options().open().unwrap();
    write(&database, "/log", &"a line of text\n".repeat(2000));
    let before = database.reader().unwrap().used().unwrap().past;
    let version = database.reader().unwrap().versions(None, 1).unwrap()[0].number;
    for n in 0..50 {
        commit(&database, |transaction| {
            let ino = transaction.fs().metadata("/log").unwrap().ino;
            transaction.append(ino, format!("line {n}\n").as_bytes()).unwrap();
        });
    }
    let saved = database.reader().unwrap().used().unwrap().past - before;
    assert!(saved < 50 * 200, "{saved}");
    assert_eq!(text(&database.reader_at(version).unwrap(), "/log"), Some("a line of text\n".repeat(2000)));
}

#[test]
fn labels_are_unique_and_name_versions_that_exist() {
    let database = Database::options().open().unwrap();
    write(&database, "/a", "x");
    let transaction = database.begin(None).unwrap();
    transaction.label("before the change", 1, Some("why")).unwrap();
    let refused = |name: &str, version: i64| transaction.label(name, version, None).unwrap_err().to_string();
    assert_eq!(refused("before the change", 0), "invalid checkpoint name: `before the change` already exists");
    assert_eq!(refused("other", 9), "unknown version 9: 0 to 1 exist");
    assert_eq!(refused("12", 1), "invalid checkpoint name: a number already denotes a version");
    assert_eq!(refused("", 1), "invalid checkpoint name: expected 1 to 255 printable bytes");
    transaction.commit().unwrap();
    let reader = database.reader().unwrap();
    assert_eq!(reader.versions(None, 1).unwrap()[0].labels, ["before the change"]);
    // A reader from before there was any label finds it, too.
    let dir = tempfile::tempdir().unwrap();
    let file = Database::options().path(dir.path().join("a.db")).open().unwrap();
    let number = write(&file, "/a", "x");
    let early = file.reader().unwrap();
    assert_eq!(early.labels().unwrap(), []);
    commit(&file, |transaction| transaction.label("here", number, None).unwrap());
    assert_eq!((early.labels().unwrap().len(), early.version(number).unwrap().labels), (1, vec!["here".to_owned()]));
    assert_eq!(reader.labels().unwrap()[0].message.as_deref(), Some("why"));
    assert_eq!(reader.label("before the change").unwrap().map(|label| label.version), Some(1));
    assert_eq!(reader.label("before").unwrap(), None);
}

/// Any number of labels can name one version, so they have a budget of their own.
#[test]
fn labels_together_have_a_maximum_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = Database::options().path(&path).open().unwrap();
    write(&database, "/a", "x");
    let message = "m".repeat(64 << 10);
    let transaction = database.begin(None).unwrap();
    let mut count = 0;
    let refused = loop {
        match transaction.label(&format!("label {count}"), 1, Some(&message)) {
            Ok(()) => count += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.starts_with("invalid checkpoint: all checkpoints together exceed 16 MB"), "{refused}");
    assert_eq!(count, (16 << 20) / ((64 << 10) + 96 + "label 100".len()));
    assert!(transaction.remove_label("label 7").unwrap());
    transaction.label("another", 1, Some(&message)).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let import = || Database::import(&path, Database::options(), &Import::default());
    assert_eq!(import().unwrap().0.reader().unwrap().labels().unwrap().len(), count);
    let more = "INSERT INTO sandlite_label SELECT name||'x', version, message, time_ns FROM sandlite_label LIMIT 2";
    rusqlite::Connection::open(&path).unwrap().execute_batch(more).unwrap();
    assert_eq!(import().err().unwrap().to_string(), "the file was rejected: quota: too many checkpoints");
}

fn see_the_past_of_format_2(database: &Database) {
    let reader = database.reader().unwrap();
    assert_eq!(reader.versions(None, 9).unwrap().iter().map(|version| version.number).collect::<Vec<_>>(), [3, 2, 1, 0]);
    assert_eq!(reader.labels().unwrap()[0].name, "middle");
    let old = database.reader_at(2).unwrap();
    assert_eq!(text(&old, "/soft/main.rs"), Some(format!("fn main() {{ {}!() }}\n", "todo")));
    assert_eq!(text(&old, "/gone").as_deref(), Some("gone"));
    assert_eq!(old.get("key").unwrap().unwrap().json, "{\"n\":2}");
    assert_eq!(old.session("default", "shell").unwrap().as_deref(), Some(&b"cd /"[..]));
    assert_eq!(text(&database.reader_at(1).unwrap(), "/gone"), None);
}

/// An empty table takes a page of 16 KB, and its index another.
#[test]
fn a_new_file_has_only_the_tables_that_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let size = || std::fs::metadata(&path).unwrap().len();
    let open = || Database::options().path(&path).open().unwrap();
    drop(open());
    assert_eq!(size(), 20 << 14);
    let database = open();
    let before = database.reader_at(0).err().unwrap();
    assert!(matches!(before, Error::NoVersion { .. }));
    let one = write(&database, "/a", "one");
    let early = database.reader_at(one).unwrap();
    assert_eq!(text(&early, "/a").as_deref(), Some("one"));
    // A reader of an old version continues when a new table is created.
    write(&database, "/a", "two");
    assert_eq!(text(&early, "/a").as_deref(), Some("one"));
    let other = database.reader_at(one).unwrap();
    commit(&database, |transaction| transaction.fs().remove_file("/a").unwrap());
    assert_eq!(other.fs().list("/").unwrap().len(), 1);
    assert_eq!(text(&other, "/a").as_deref(), Some("one"));
    drop((early, other, database));
    assert!(size() < 28 << 14, "{}", size());
    assert_eq!(open().check().unwrap(), []);
}

/// A table that came with a transaction goes with it.
#[test]
fn a_table_is_created_again_after_a_rollback() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::options().path(dir.path().join("a.db")).open().unwrap();
    let one = write(&database, "/a", "one");
    let transaction = database.begin(None).unwrap();
    transaction.fs().remove_file("/a").unwrap();
    transaction.kv().set("key", "1").unwrap();
    drop(transaction);
    let transaction = database.begin(None).unwrap();
    let savepoint = transaction.savepoint().unwrap();
    transaction.fs().remove_file("/a").unwrap();
    transaction.savepoint().unwrap();
    transaction.rollback_to(&savepoint).unwrap();
    transaction.fs().remove_file("/a").unwrap();
    transaction.kv().set("key", "2").unwrap();
    transaction.label("here", one, None).unwrap();
    transaction.commit().unwrap();
    let reader = database.reader_at(one).unwrap();
    assert_eq!((text(&reader, "/a").as_deref(), reader.get("key").unwrap()), (Some("one"), None));
    assert_eq!(database.check().unwrap(), []);
}

/// A file of each earlier format, as the program of that time made it.
#[test]
fn files_of_earlier_formats_are_upgraded_when_they_are_opened() {
    for name in ["1", "2"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("old.db");
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{name}.sqlite"));
        std::fs::copy(old, &path).unwrap();
        let looking = Database::options().path(&path).read_only().open().unwrap();
        assert_eq!(looking.reader().unwrap().calls(&Filter::default()).unwrap().len(), 2);
        match name {
            "1" => {
                assert_eq!(looking.reader().unwrap().versions(None, 9).unwrap(), []);
                assert!(matches!(looking.reader_at(0), Err(Error::NoVersion { .. })));
            }
            _ => see_the_past_of_format_2(&looking),
        }
        assert_eq!(looking.check().unwrap(), []);
        looking.export(&dir.path().join("export.db"), Export::default()).unwrap();
        drop(looking);
        for _ in 0..2 {
            let database = Database::options().path(&path).open().unwrap();
            let reader = database.reader().unwrap();
            assert_eq!(reader.counts().unwrap().format, 3);
            assert_eq!(text(&reader, "/hard").as_deref(), Some("fn main() {}\n"));
            assert_eq!(reader.fs().metadata("/soft/main.rs").unwrap().nlink, 2);
            assert_eq!(reader.get("key").unwrap().unwrap().json, "{\"n\":1}");
            assert_eq!(reader.session("default", "shell").unwrap().as_deref(), Some(&b"cd /project"[..]));
            assert_eq!(reader.call(2).unwrap().unwrap().parent, None);
            assert_eq!(database.check().unwrap(), []);
        }
        let database = Database::options().path(&path).open().unwrap();
        if name == "2" {
            see_the_past_of_format_2(&database);
        }
        let version = write(&database, "/hard", "changed");
        assert_eq!(text(&database.reader_at(version - 1).unwrap(), "/hard").as_deref(), Some("fn main() {}\n"));
        commit(&database, |transaction| {
            let call = NewCall { name: "tool", parameters: None, command: "x", parent: Some(1) };
            let id = transaction.calls().begin(&call).unwrap();
            transaction.calls().finish(id, &Outcome::default()).unwrap();
            assert_eq!(transaction.calls().get(id).unwrap().unwrap().parent, Some(1));
        });
        drop(database);
        let (imported, _) = Database::import(&path, Database::options(), &Import::default()).unwrap();
        assert_eq!(imported.reader().unwrap().call(3).unwrap().unwrap().parent, Some(1));
    }
}

#[test]
fn forks_have_the_past_and_exports_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::options().open().unwrap();
    let version = write(&database, "/a", "DELETED-CONTENT");
    commit(&database, |transaction| transaction.fs().remove_file("/a").unwrap());
    commit(&database, |transaction| {
        transaction.kv().set("token", "\"SECRET-VALUE\"").unwrap();
        transaction.kv().set_secret("token", true).unwrap();
    });
    commit(&database, |transaction| assert!(transaction.kv().delete("token").unwrap()));
    for fork in [Database::options(), Database::options().path(dir.path().join("fork.db"))] {
        let fork = database.fork(fork).unwrap();
        assert_eq!(text(&fork.reader_at(version).unwrap(), "/a").as_deref(), Some("DELETED-CONTENT"));
        assert_eq!(fork.check().unwrap(), []);
    }
    let has = |path: &Path, word: &str| std::fs::read(path).unwrap().windows(word.len()).any(|window| window == word.as_bytes());
    let (bare, full) = (dir.path().join("bare.db"), dir.path().join("full.db"));
    database.export(&bare, Export::default()).unwrap();
    assert!(!has(&bare, "DELETED-CONTENT") && !has(&bare, "SECRET-VALUE"));
    database.export_with_past(&full, Export::default()).unwrap();
    assert!(has(&full, "DELETED-CONTENT") && !has(&full, "SECRET-VALUE"));
    let full = Database::options().path(&full).open().unwrap();
    assert_eq!(text(&full.reader_at(version).unwrap(), "/a").as_deref(), Some("DELETED-CONTENT"));
}

#[test]
fn equal_trees_have_equal_digests_however_they_came_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let open = || Database::options().path(&path).open().unwrap();
    let database = open();
    let tree = |transaction: &Transaction| {
        transaction.fs().create_dir_all("/d/e").unwrap();
        transaction.fs().write("/d/a", vec![1; 100_000]).unwrap();
        transaction.fs().symlink("a", "/d/l").unwrap();
    };
    let one = commit(&database, tree);
    let other = Database::options().open().unwrap();
    commit(&other, |transaction| {
        transaction.fs().create_dir_all("/d").unwrap();
        transaction.fs().symlink("a", "/d/l").unwrap();
        transaction.fs().write("/d/b", vec![1; 100_000]).unwrap();
    });
    let built = commit(&other, |transaction| {
        transaction.fs().create_dir_all("/x").unwrap();
        transaction.fs().rename("/x", "/d/e").unwrap();
        transaction.fs().hard_link("/d/b", "/d/a").unwrap();
        transaction.fs().remove_file("/d/b").unwrap();
        transaction.kv().set("key", "1").unwrap();
    });
    let digest = |version: i64| database.version_digest(version, None).unwrap();
    assert_eq!(other.version_digest(built, None).unwrap(), digest(one));
    let changes: &[&dyn Fn(&Transaction)] = &[
        &|t| t.fs().write("/d/a", vec![2; 100_000]).unwrap(),
        &|t| t.fs().set_permissions("/d/a", 0o600).unwrap(),
        &|t| t.fs().rename("/d/a", "/d/e/a").unwrap(),
        &|t| t.fs().write("/d/e/empty", "").unwrap(),
        &|t| assert!(t.mkfifo(1, "pipe", 0o600, 0, 0).is_ok()),
        &|t| t.fs().hard_link("/d/e/a", "/also").unwrap(),
        &|t| t.fs().write("/d/e/a", "through one of two names").unwrap(),
        &|t| t.fs().rename("/d/e", "/e").unwrap(),
        &|t| t.fs().write("/e/a", "in a directory that was moved").unwrap(),
    ];
    let mut seen = vec![digest(one)];
    for change in changes {
        let version = commit(&database, |transaction| change(transaction));
        seen.push(digest(version));
    }
    assert_eq!(seen.iter().collect::<std::collections::BTreeSet<_>>().len(), seen.len());
    // The same tree again, from the other end.
    let again = commit(&database, |transaction| {
        for name in transaction.fs().list("/").unwrap() {
            transaction.fs().remove(&format!("/{}", name.name)).unwrap();
        }
        tree(transaction);
    });
    assert_eq!(digest(again), seen[0]);
    // Times and keys are not part of it.
    let touched = commit(&database, |transaction| {
        transaction.fs().set_times("/d/a", Some(1), Some(2)).unwrap();
        transaction.kv().set("key", "1").unwrap();
    });
    assert_eq!(digest(touched), seen[0]);
    // Stored digests equal recomputed ones, in any order.
    drop(database);
    let fresh = open().fork(Database::options()).unwrap();
    for version in [7, 3, 10, 1, 9, 2, 8, 4, 6, 5] {
        assert_eq!(fresh.version_digest(version, None).unwrap(), seen[usize::try_from(version).unwrap() - 1]);
    }
    let database = open();
    assert_eq!(database.reader().unwrap().version(3).unwrap().digest.as_ref(), Some(&seen[2]));
    assert_eq!(database.check().unwrap(), []);
    assert_eq!(fresh.check().unwrap(), []);
}

#[test]
fn a_wrong_digest_is_found() {
    for lie in [
        "UPDATE sandlite_version SET digest=zeroblob(32) WHERE id=1",
        "UPDATE sandlite_digest SET digest=zeroblob(32) WHERE ino=2",
        "UPDATE sandlite_digest SET parent=7 WHERE ino=1",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let database = Database::options().path(&path).open().unwrap();
        write(&database, "/a", "one");
        write(&database, "/a", "two");
        for version in 1..=2 {
            database.version_digest(version, None).unwrap();
        }
        drop(database);
        rusqlite::Connection::open(&path).unwrap().execute_batch(lie).unwrap();
        let database = Database::options().path(&path).open().unwrap();
        let rules: Vec<_> = database.check().unwrap().into_iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, ["digest"], "{lie}");
    }
}

#[test]
fn without_versions_the_past_is_dropped_and_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let open = |versions: bool| Database::options().path(&path).versions(versions).open().unwrap();
    write(&open(true), "/a", "one");
    assert_eq!(open(false).reader().unwrap().versions(None, 9).unwrap().len(), 2);
    write(&open(false), "/a", "two");
    assert_eq!(open(true).reader().unwrap().versions(None, 9).unwrap(), []);
    let database = open(true);
    assert_eq!(write(&database, "/a", "three"), 1);
    assert_eq!(text(&database.reader_at(0).unwrap(), "/a").as_deref(), Some("two"));
}

/// T-SNAP-02: reading saved rows with any content returns a value or an error.
#[test]
fn hostile_saved_rows_are_damage_where_they_are_met() {
    let lies = [
        "UPDATE sandlite_past_inode SET size=9223372036854775807",
        "UPDATE sandlite_past_inode SET size=-1",
        "UPDATE sandlite_past_inode SET mode=NULL",
        "UPDATE sandlite_past_inode SET mode='x'",
        "UPDATE sandlite_past_inode SET state=7",
        "UPDATE sandlite_past_data SET data=x''",
        "UPDATE sandlite_past_data SET data='text'",
        "DELETE FROM sandlite_past_data",
        "UPDATE sandlite_past_dentry SET name='../up'",
        "UPDATE sandlite_past_dentry SET ino=-3",
        "UPDATE sandlite_past_dentry SET ino=1",
        "UPDATE sandlite_past_dentry SET entry='x'",
        "UPDATE sandlite_past_dentry SET ino=NULL",
        "UPDATE sandlite_past_symlink SET target=x'ff'",
        "UPDATE sandlite_version SET mark=-1",
        "UPDATE sandlite_version SET entries='x'",
        "UPDATE sandlite_version SET inodes=x'ffffffffffffffffffffffffff'",
        "UPDATE sandlite_version SET inodes='x', total=-5",
        "UPDATE sandlite_version SET id=id+4000000000",
        "INSERT INTO sandlite_past_dentry SELECT id+1000, 0, ino, 'self', ino, 1 FROM sandlite_past_dentry WHERE ino NOT NULL",
    ];
    for lie in lies {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let database = Database::options().path(&path).open().unwrap();
        commit(&database, |transaction| {
            transaction.fs().create_dir_all("/d/e").unwrap();
            transaction.fs().write("/d/a", vec![1; 100_000]).unwrap();
            transaction.fs().symlink("a", "/d/l").unwrap();
        });
        commit(&database, |transaction| {
            transaction.fs().write("/d/a", vec![2; 90_000]).unwrap();
            transaction.fs().rename("/d/e", "/d/f").unwrap();
            transaction.fs().remove_file("/d/l").unwrap();
        });
        commit(&database, |transaction| assert!(transaction.fs().remove_dir_all("/d").unwrap() > 0));
        drop(database);
        rusqlite::Connection::open(&path).unwrap().execute_batch(lie).unwrap_or_else(|error| panic!("{lie}: {error}"));
        let database = Database::options().path(&path).open().unwrap();
        let mut met = 0;
        for version in 0..4 {
            let Ok(reader) = database.reader_at(version) else {
                met += 1;
                continue;
            };
            for path in ["/d/a", "/d/l", "/d/e/x"] {
                met += u32::from(reader.fs().read(path).is_err());
            }
            met += u32::from(reader.fs().walk("/").is_err());
            met += u32::from(reader.changes(version, None).is_err());
        }
        assert!(met > 0, "{lie}");
        // The present is not affected, but for what stores the next version.
        assert!(!database.reader().unwrap().fs().exists("/d").unwrap(), "{lie}");
        let transaction = database.begin(None).unwrap();
        let written = transaction.fs().write("/new", "x").is_ok() && transaction.commit().is_ok();
        assert!(written || lie.contains("sandlite_version"), "{lie}");
    }
}
