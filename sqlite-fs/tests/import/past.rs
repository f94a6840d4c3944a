//! The past of a file comes in with it, and no lie in it does.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sqlite_fs::{Database, Error, Export, FsError, Import, Quota, VersionKind};

/// A database with some versions of everything, exported with them.
fn exported(dir: &Path) -> (Database, PathBuf) {
    let database = Database::options().open().unwrap();
    for round in 0..3u8 {
        let transaction = database.begin(None).unwrap();
        let fs = transaction.fs();
        fs.create_dir_all("/d/e").unwrap();
        fs.write("/d/a", vec![round; 100_000]).unwrap();
        fs.write(&format!("/d/{round}"), "x").unwrap();
        fs.remove("/l").unwrap_or_default();
        fs.symlink(&format!("d/{round}"), "/l").unwrap();
        fs.set_permissions("/d/a", 0o600 + u32::from(round)).unwrap();
        transaction.kv().set("key", &round.to_string()).unwrap();
        transaction.sessions().set("s", "shell", &[round]).unwrap();
        if round == 2 {
            fs.remove_file("/d/0").unwrap();
            fs.rename("/d/e", "/e").unwrap();
            transaction.label("first", 1, Some("why")).unwrap();
        }
        transaction.commit().unwrap();
    }
    let path = dir.join("past.db");
    database.export_with_past(&path, Export { history: true, secrets: true }).unwrap();
    (database, path)
}

fn import(path: &Path) -> Result<(Database, sqlite_fs::Imported), Error> {
    Database::import(path, Database::options(), &Import::default())
}

/// Everything that a version shows.
fn seen(database: &Database, version: i64) -> String {
    let reader = database.reader_at(version).unwrap();
    let mut text =
        format!("{:?} {:?}\n", reader.get("key").unwrap().map(|value| value.json), reader.session("s", "shell").unwrap());
    for (path, stat) in reader.fs().walk("/").unwrap() {
        let content = match stat.is_file() {
            true => reader.fs().read(&path).unwrap().iter().fold(0u64, |sum, byte| sum * 31 % 1_000_003 + u64::from(*byte)),
            false => 0,
        };
        text.push_str(&format!("{path} {:o} {} {content} {} {}\n", stat.mode, stat.nlink, stat.size, stat.mtime));
    }
    text
}

#[test]
fn an_import_brings_every_version() {
    let dir = tempfile::tempdir().unwrap();
    let (database, path) = exported(dir.path());
    for options in [Database::options(), Database::options().path(dir.path().join("in.db"))] {
        let (imported, brought) = Database::import(&path, options, &Import::default()).unwrap();
        assert_eq!((brought.versions, brought.notes), (4, vec![]));
        for version in 0..=3 {
            assert_eq!(seen(&imported, version), seen(&database, version), "version {version}");
            let digests = (imported.version_digest(version, None), database.version_digest(version, None));
            assert_eq!(digests.0.unwrap(), digests.1.unwrap());
        }
        let listed = |database: &Database| {
            let mut versions = database.reader().unwrap().versions(None, 9).unwrap();
            versions.iter_mut().for_each(|version| version.bytes = 0);
            versions
        };
        assert_eq!(listed(&imported), listed(&database));
        assert_eq!(imported.reader().unwrap().labels().unwrap(), database.reader().unwrap().labels().unwrap());
        assert_eq!(imported.check().unwrap(), []);
        // It continues from there.
        let transaction = imported.begin(None).unwrap();
        transaction.fs().write("/d/a", "new").unwrap();
        transaction.commit().unwrap();
        assert_eq!(seen(&imported, 3), seen(&database, 3));
        let pruned = imported.begin(None).unwrap();
        pruned.prune(&sqlite_fs::Keep { versions: Some(2), ..Default::default() }).unwrap();
        pruned.commit().unwrap();
        assert_eq!(seen(&imported, 3), seen(&database, 3));
        assert_eq!(imported.check().unwrap(), []);
    }
}

#[test]
fn a_past_that_does_not_fit_is_omitted_with_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = exported(dir.path());
    let quota = Quota { past: 50_000, ..Quota::default() };
    let (imported, brought) = Database::import(&path, Database::options().quota(quota), &Import::default()).unwrap();
    assert_eq!(brought.versions, 0);
    assert_eq!(brought.notes, ["versions were omitted: they exceed the limit `past`"]);
    assert!(imported.reader().unwrap().fs().exists("/d/a").unwrap());
    assert!(imported.reader().unwrap().labels().unwrap().is_empty());
}

#[test]
fn a_digest_verifies_the_covered_state() {
    const EVERYTHING: Export = Export { history: true, secrets: true };
    let dir = tempfile::tempdir().unwrap();
    let (database, path) = exported(dir.path());
    let import = |digest: String| {
        let expect = Import { digest: Some(digest), ..Import::default() };
        Database::import(&path, Database::options(), &expect)
    };
    let (present, past) = (database.digest(EVERYTHING).unwrap(), database.digest_with_past(EVERYTHING).unwrap());
    assert_eq!(import(past.clone()).unwrap().1.versions, 4);
    let (bare, brought) = import(present.clone()).unwrap();
    assert_eq!(brought.notes, ["versions were omitted: the digest covers only the current state"]);
    assert_eq!(bare.reader().unwrap().versions(None, 9).unwrap().len(), 1);
    Connection::open(&path).unwrap().execute_batch("UPDATE sandlite_past_kv SET value='9' WHERE state=0").unwrap();
    assert!(matches!(import(past), Err(Error::Refused { rule: "digest", .. })));
    assert_eq!(import(present).unwrap().1.versions, 0);
}

/// T-SNAP-02
#[test]
fn each_false_row_of_the_past_is_rejected() {
    let lies = [
        ("UPDATE sandlite_version SET id=id+5 WHERE id=3", "version"),
        ("UPDATE sandlite_version SET id=-1 WHERE id=0", "version"),
        ("DELETE FROM sandlite_version WHERE id=1", "version"),
        ("UPDATE sandlite_version SET mark=-1", "version"),
        ("UPDATE sandlite_version SET mark=1 WHERE id=3", "version"),
        ("UPDATE sandlite_version SET entries='x'", "version"),
        ("UPDATE sandlite_version SET outside=9", "version"),
        ("UPDATE sandlite_version SET time_ns='x'", "version"),
        ("UPDATE sandlite_label SET version=99", "label names a version"),
        ("UPDATE sandlite_label SET name='12'", "label names a version"),
        ("UPDATE sandlite_label SET name=char(27)", "label names a version"),
        ("UPDATE sandlite_past_inode SET state=7", "saved row"),
        ("UPDATE sandlite_past_inode SET mode=24576", "saved row"),
        ("UPDATE sandlite_past_inode SET mode=NULL", "saved row"),
        ("UPDATE sandlite_past_inode SET size=-1", "saved row"),
        ("UPDATE sandlite_past_inode SET mtime_nsec=-1", "saved row"),
        ("UPDATE sandlite_past_inode SET uid='root'", "saved row"),
        ("UPDATE sandlite_past_inode SET name='../up', dir=1", "name"),
        ("UPDATE sandlite_past_inode SET id=id+100", "saved row"),
        ("UPDATE sandlite_past_inode SET id=-id", "saved row"),
        ("UPDATE sandlite_past_dentry SET name='..'", "name"),
        ("UPDATE sandlite_past_dentry SET parent_ino=0", "saved row"),
        ("UPDATE sandlite_past_dentry SET ino=NULL, state=0", "saved row"),
        ("UPDATE sandlite_past_dentry SET entry=-4 WHERE state=0", "saved row"),
        ("UPDATE sandlite_past_dentry SET id=id+(1<<40)", "saved row"),
        ("UPDATE sandlite_past_data SET data='text'", "saved row"),
        ("UPDATE sandlite_past_data SET data=x''", "saved row"),
        ("UPDATE sandlite_past_data SET data=zeroblob(70000)", "saved row"),
        ("UPDATE sandlite_past_data SET chunk_index=-1", "saved row"),
        ("UPDATE sandlite_past_symlink SET target=x'ff'", "saved row"),
        ("UPDATE sandlite_past_symlink SET target=char(0)", "saved row"),
        ("UPDATE sandlite_past_symlink SET ino=0", "saved row"),
        ("UPDATE sandlite_past_kv SET value='not json', state=0", "saved key and value"),
        ("UPDATE sandlite_past_kv SET key=zeroblob(4)", "saved row"),
        ("UPDATE sandlite_past_kv SET secret=7", "saved row"),
        ("UPDATE sandlite_past_session SET content='text', state=0", "saved row"),
        ("DROP TABLE sandlite_past_kv; CREATE VIEW sandlite_past_kv AS SELECT 1 AS id", "no active content"),
        ("ALTER TABLE sandlite_past_data ADD COLUMN x AS (data || 'x')", "no active content"),
        ("UPDATE fs_dentry SET id=-id", "entry"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = exported(dir.path());
    for (lie, expected) in lies {
        let changed = dir.path().join("changed.db");
        std::fs::copy(&path, &changed).unwrap();
        let connection = Connection::open(&changed).unwrap();
        connection.execute_batch(lie).unwrap_or_else(|error| panic!("{lie}: {error}"));
        drop(connection);
        match import(&changed) {
            Err(Error::Refused { rule, .. }) => assert_eq!(rule, expected, "{lie}"),
            Err(error) => panic!("{lie}: {error:?}"),
            Ok(_) => panic!("{lie}: came in"),
        }
    }
    // Sums and lists are recomputed, whatever the file contains; digests are not trusted.
    let lie = "UPDATE sandlite_version SET total=99, inodes=x'ffff', digest=zeroblob(32)";
    Connection::open(&path).unwrap().execute_batch(lie).unwrap();
    let (imported, _) = import(&path).unwrap();
    assert_eq!(imported.check().unwrap(), []);
    let newest = imported.reader().unwrap().version(3).unwrap();
    assert!(newest.digest.is_none() && newest.bytes > 1000, "{newest:?}");
}

/// A file that another program wrote to, and that was not opened since.
#[test]
fn files_created_by_another_program_are_a_separate_version() {
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = exported(dir.path());
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "INSERT INTO fs_inode (mode, nlink, atime, mtime, ctime) VALUES (33188, 1, 0, 0, 0);
             INSERT INTO fs_dentry (name, parent_ino, ino) SELECT 'theirs', 1, max(ino) FROM fs_inode;",
        )
        .unwrap();
    let (imported, brought) = import(&path).unwrap();
    assert_eq!(brought.versions, 4);
    let opened = Database::options().path(&path).open().unwrap();
    for database in [imported, opened] {
        let newest = &database.reader().unwrap().versions(None, 1).unwrap()[0];
        assert_eq!((newest.number, newest.kind), (4, VersionKind::Outside));
        assert!(database.reader().unwrap().fs().exists("/theirs").unwrap());
        let error = database.reader_at(3).unwrap().fs().read("/d/a").unwrap_err();
        assert_eq!(error.fs_error(), Some(FsError::Unknown));
        assert_eq!(database.check().unwrap(), []);
    }
}
