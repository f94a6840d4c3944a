//! Changes by another program: they are a version of their own, and the previous content is unknown.

use sqlite_fs::{Database, FsError, Keep, Rows, VersionKind};

#[path = "past/support.rs"]
mod support;

use support::{changes, commit, text, write};

#[test]
fn changes_of_another_program_are_a_version_and_the_previous_data_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let open = || Database::options().path(&path).open().unwrap();
    let database = open();
    write(&database, "/saved", "one");
    let early = write(&database, "/theirs", "ours");
    let late = write(&database, "/saved", "two");
    drop(database);
    let connection = rusqlite::Connection::open(&path).unwrap();
    // An SDK adds this when it opens a file.
    connection
        .execute_batch(
            "CREATE INDEX idx_kv_store_created_at ON kv_store(created_at);
             UPDATE fs_data SET data=CAST('they' AS BLOB) WHERE ino=(SELECT ino FROM fs_dentry WHERE name='theirs');",
        )
        .unwrap();
    drop(connection);
    let database = open();
    let reader = database.reader().unwrap();
    assert_eq!(text(&reader, "/theirs").as_deref(), Some("they"));
    let newest = &reader.versions(None, 1).unwrap()[0];
    assert_eq!((newest.number, newest.kind), (late + 1, VersionKind::Outside));
    for version in [early, late] {
        let error = database.reader_at(version).unwrap().fs().read("/theirs").unwrap_err();
        assert_eq!(error.fs_error(), Some(FsError::Unknown), "version {version}");
    }
    assert_eq!(text(&database.reader_at(late + 1).unwrap(), "/theirs").as_deref(), Some("they"));
    // The same while the file is open.
    let version = write(&database, "/theirs", "ours again");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("UPDATE kv_store SET value='1'; UPDATE fs_inode SET atime=1")
        .unwrap();
    let last = write(&database, "/more", "x");
    assert_eq!(last, version + 2);
    assert_eq!(database.reader().unwrap().version(version + 1).unwrap().kind, VersionKind::Outside);
    assert_eq!(database.reader_at(version).unwrap().fs().read("/theirs").unwrap_err().fs_error(), Some(FsError::Unknown));
    assert_eq!(text(&database.reader_at(last).unwrap(), "/theirs").as_deref(), Some("ours again"));
    assert_eq!(database.check().unwrap(), []);
}

/// With digests of the newest version it is known what another program changed, and the rest can be read.
#[test]
fn only_data_changed_by_another_program_is_unknown() {
    // While the file is closed, and while it is open.
    for is_open in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let open = || Database::options().path(&path).open().unwrap();
        let mut database = open();
        let one = commit(&database, |transaction| {
            let fs = transaction.fs();
            for dir in ["/kept/sub", "/emptied", "/listed", "/moved"] {
                fs.create_dir_all(dir).unwrap();
            }
            for path in ["/kept/a", "/kept/sub/b", "/content", "/quiet", "/emptied/gone", "/listed/x", "/mode", "/moved/m"] {
                fs.write(path, path).unwrap();
            }
        });
        let two = write(&database, "/kept/a", "second");
        database.version_digest(two, None).unwrap();
        if !is_open {
            drop(database);
            database = Database::options().open().unwrap();
        }
        let connection = rusqlite::Connection::open(&path).unwrap();
        let of = |name: &str| format!("(SELECT ino FROM fs_dentry WHERE name='{name}')");
        connection
            .execute_batch(&format!(
                "UPDATE fs_data SET data=CAST('CONTENT!' AS BLOB) WHERE ino={content};
                 UPDATE fs_inode SET mtime=mtime+1 WHERE ino={content};
                 UPDATE fs_data SET data=CAST('QUIET!' AS BLOB) WHERE ino={quiet};
                 UPDATE fs_inode SET mode=33152 WHERE ino={mode};
                 DELETE FROM fs_data WHERE ino={gone}; DELETE FROM fs_inode WHERE ino={gone};
                 DELETE FROM fs_dentry WHERE name='gone';
                 UPDATE fs_dentry SET parent_ino={listed} WHERE name='m';
                 INSERT INTO fs_inode (mode, nlink, atime, mtime, ctime) VALUES (33188, 1, 0, 0, 0);
                 INSERT INTO fs_dentry (name, parent_ino, ino) SELECT 'new', {listed}, max(ino) FROM fs_inode;",
                content = of("content"),
                quiet = of("quiet"),
                mode = of("mode"),
                gone = of("gone"),
                listed = of("listed"),
            ))
            .unwrap();
        drop(connection);
        if !is_open {
            database = open();
        }
        let last = write(&database, "/after", "x");
        assert_eq!(last, two + 2);
        assert_eq!(database.reader().unwrap().version(two + 1).unwrap().kind, VersionKind::Outside);
        for version in [one, two] {
            let reader = database.reader_at(version).unwrap();
            let kept = if version == one { "/kept/a" } else { "second" };
            assert_eq!(text(&reader, "/kept/a").as_deref(), Some(kept));
            assert_eq!(text(&reader, "/kept/sub/b").as_deref(), Some("/kept/sub/b"));
            assert_eq!(reader.fs().list("/").unwrap().len(), 7, "{is_open}");
            for unknown in ["/content", "/quiet", "/mode", "/emptied/gone", "/listed/x", "/listed/new", "/moved/m"] {
                let error = reader.fs().read(unknown).unwrap_err();
                assert_eq!(error.fs_error(), Some(FsError::Unknown), "{unknown} in version {version}, {is_open}");
            }
            assert_eq!(reader.fs().list("/listed").unwrap_err().fs_error(), Some(FsError::Unknown));
        }
        let changed: Vec<String> = changes(&database, two, None).into_iter().map(|(path, _)| path).collect();
        for path in ["/after", "/content", "/mode", "/quiet"] {
            assert!(changed.contains(&path.to_owned()), "{path}: {changed:?}");
        }
        assert!(!changed.iter().any(|path| path.starts_with("/kept")), "{changed:?}");
        assert_eq!(text(&database.reader_at(last).unwrap(), "/quiet").as_deref(), Some("QUIET!"));
    }
}

/// A database in memory continues with a compact copy of its rows when much of it is free.
#[test]
fn compacting_memory_is_not_a_change_by_another_program() {
    let database = Database::options().open().unwrap();
    let large = vec![7; 40 << 20];
    commit(&database, |transaction| transaction.fs().write("/large", &large).unwrap());
    commit(&database, |transaction| transaction.fs().remove_file("/large").unwrap());
    commit(&database, |transaction| {
        transaction.fs().write("/note", "one").unwrap();
        transaction.prune(&Keep { versions: Some(1), ..Keep::default() }).unwrap();
    });
    let one = write(&database, "/note", "one");
    assert!(database.compact(None).unwrap().before < 16 << 20, "the free pages were not returned");
    let two = write(&database, "/note", "two");
    write(&database, "/note", "three");
    let reader = database.reader().unwrap();
    let versions = reader.versions(None, 100).unwrap();
    assert!(versions.iter().all(|version| version.kind != VersionKind::Outside), "{versions:?}");
    let notes = [one, two].map(|version| text(&database.reader_at(version).unwrap(), "/note"));
    assert_eq!(notes, [Some("one".to_owned()), Some("two".to_owned())]);
}

#[test]
fn a_second_name_that_another_program_adds_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = Database::options().path(&path).open().unwrap();
    write(&database, "/file", "x");
    assert!(!database.reader().unwrap().has_links().unwrap());
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch(
            "INSERT INTO fs_dentry (name, parent_ino, ino) SELECT 'second', parent_ino, ino FROM fs_dentry WHERE name='file';
             UPDATE fs_inode SET nlink=2 WHERE ino=(SELECT ino FROM fs_dentry WHERE name='file');",
        )
        .unwrap();
    write(&database, "/more", "y");
    assert!(database.reader().unwrap().has_links().unwrap());
}
