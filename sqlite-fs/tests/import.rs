//! Files from elsewhere: sound ones come in whole, each kind of lie is named, and no bytes whatever do harm.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sqlite_fs::{Database, Durability, Error, Export, Filter, Import, Imported, NewCall, Outcome, Quota, Rows};

#[path = "import/compat.rs"]
mod compat;
#[path = "import/digest.rs"]
mod digest;
#[path = "import/past.rs"]
mod past;

struct Corpus {
    dir: tempfile::TempDir,
    sound: PathBuf,
}

impl Corpus {
    /// A small sound database: a tree, links, a large file, keys and a call.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::options().open().unwrap();
        let transaction = database.begin(None).unwrap();
        let fs = transaction.fs();
        fs.create_dir_all("/a/b/c").unwrap();
        fs.write("/a/b/c/small", b"small").unwrap();
        fs.write("/a/large", (0..200_000u32).map(|i| (i % 251) as u8).collect::<Vec<_>>()).unwrap();
        fs.write("/empty", b"").unwrap();
        fs.hard_link("/a/large", "/hard").unwrap();
        fs.symlink("a/large", "/soft").unwrap();
        fs.set_permissions("/empty", 0o4755).unwrap();
        transaction.kv().set("key", "{\"n\":1}").unwrap();
        transaction.kv().set("token", "\"hidden\"").unwrap();
        transaction.kv().set_secret("token", true).unwrap();
        let id = transaction.calls().begin(&NewCall { name: "bash", parameters: None, command: "ls", parent: None }).unwrap();
        let outcome = Outcome { result: Some("{}"), stdout: b"out", exit_code: Some(0), ..Outcome::default() };
        transaction.calls().finish(id, &outcome).unwrap();
        transaction.commit().unwrap();
        let sound = dir.path().join("sound.db");
        database.export(&sound, Export { history: true, secrets: true }).unwrap();
        Self { dir, sound }
    }

    /// The sound file after some SQL.
    fn changed(&self, sql: &str) -> PathBuf {
        let path = self.dir.path().join("changed.db");
        let _ = std::fs::remove_file(&path);
        std::fs::copy(&self.sound, &path).unwrap();
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF; PRAGMA writable_schema=ON;").unwrap();
        connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        path
    }
}

fn import(path: &Path) -> Result<(Database, Imported), Error> {
    Database::import(path, Database::options(), &Import::default())
}

fn ino_of(path: &str) -> String {
    let mut query = "1".to_owned();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        query = format!("(SELECT ino FROM fs_dentry WHERE parent_ino={query} AND name='{name}')");
    }
    query
}

/// T-SNAP-02: modes are masked, link counts are our own.
#[test]
fn a_valid_file_is_imported_completely() {
    let corpus = Corpus::new();
    let (database, imported) = import(&corpus.sound).unwrap();
    assert_eq!((imported.inodes, imported.keys, imported.calls), (8, 2, 1));
    assert_eq!(imported.notes, Vec::<String>::new());
    assert_eq!(database.check().unwrap(), []);
    let reader = database.reader().unwrap();
    assert_eq!(reader.fs().read("/soft").unwrap().len(), 200_000);
    assert_eq!(reader.fs().read("/a/b/c/small").unwrap(), b"small");
    assert_eq!(reader.fs().metadata("/hard").unwrap().nlink, 2);
    assert_eq!(reader.fs().metadata("/a").unwrap().nlink, 3);
    // No set-user-id from elsewhere.
    assert_eq!(reader.fs().metadata("/empty").unwrap().mode, 0o100_755);
    assert!(reader.get("token").unwrap().unwrap().secret);
    let calls = reader.calls(&Filter { output: true, ..Filter::default() }).unwrap();
    assert_eq!(calls[0].run.as_ref().unwrap().stdout, b"out");
}

/// T-SNAP-05
#[test]
fn an_export_leaves_secrets_and_deleted_data_behind() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::options().path(dir.path().join("a.db")).open().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/deleted", b"DELETED-CONTENT".repeat(1000)).unwrap();
    transaction.kv().set("open", "1").unwrap();
    transaction.kv().set("secret", "\"SECRET-VALUE\"").unwrap();
    transaction.kv().set_secret("secret", true).unwrap();
    transaction.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().remove_file("/deleted").unwrap();
    transaction.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/uncommitted", b"UNCOMMITTED").unwrap();
    let target = dir.path().join("with space #1?.db");
    database.export(&target, Export { history: false, secrets: false }).unwrap();
    assert!(matches!(database.export(&target, Export::default()), Err(Error::Disk { .. })));
    let bytes = std::fs::read(&target).unwrap();
    for word in ["DELETED-CONTENT", "SECRET-VALUE", "UNCOMMITTED"] {
        assert!(!bytes.windows(word.len()).any(|window| window == word.as_bytes()), "{word} is in the export");
    }
    drop(transaction);
    let copy = Database::options().path(&target).open().unwrap();
    assert_eq!(copy.check().unwrap(), []);
    assert_eq!(copy.reader().unwrap().keys("").unwrap(), ["open"]);
}

#[test]
fn a_fork_is_independent() {
    let dir = tempfile::tempdir().unwrap();
    for options in [Database::options(), Database::options().path(dir.path().join("fork.db"))] {
        let database = Database::options().open().unwrap();
        let transaction = database.begin(None).unwrap();
        transaction.fs().write("/a", b"1").unwrap();
        transaction.commit().unwrap();
        let fork = database.fork(options).unwrap();
        let transaction = fork.begin(None).unwrap();
        transaction.fs().write("/a", b"2").unwrap();
        transaction.fs().write("/b", b"3").unwrap();
        transaction.commit().unwrap();
        assert_eq!(database.reader().unwrap().fs().read("/a").unwrap(), b"1");
        assert_eq!(fork.reader().unwrap().fs().read("/a").unwrap(), b"2");
        assert_eq!(fork.check().unwrap(), []);
    }
}

/// Each lie, in SQL, and the rule that names it.
fn lies() -> Vec<(String, &'static str)> {
    let (a, b, c, small, large, soft) =
        (ino_of("/a"), ino_of("/a/b"), ino_of("/a/b/c"), ino_of("/a/b/c/small"), ino_of("/a/large"), ino_of("/soft"));
    let loose = "ALTER TABLE fs_dentry RENAME TO old; CREATE TABLE fs_dentry (id, name, parent_ino, ino);
                 INSERT INTO fs_dentry SELECT * FROM old;";
    let long = "x".repeat(256);
    let deep: String = (0..300)
        .map(|i| {
            let (ino, parent) = (1000 + i, if i == 0 { 1 } else { 999 + i });
            format!(
                "INSERT INTO fs_inode (ino,mode,nlink,atime,mtime,ctime) VALUES ({ino},16877,2,0,0,0);
                     INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('d',{parent},{ino});"
            )
        })
        .collect();
    vec![
        // Structure.
        ("DELETE FROM fs_inode WHERE ino=1".into(), "root is a directory"),
        ("UPDATE fs_inode SET mode=33188 WHERE ino=1".into(), "root is a directory"),
        (format!("INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('r',{a},1)"), "root has no name"),
        (format!("UPDATE fs_dentry SET parent_ino={c} WHERE ino={a}"), "directory is below the root"),
        (format!("UPDATE fs_dentry SET parent_ino={b} WHERE ino={b}"), "directory is below the root"),
        (format!("INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('again',1,{b})"), "directory has one name"),
        ("INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('x',1,777)".into(), "entry leads to an inode"),
        (format!("INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('x',777,{small})"), "entry is in a directory"),
        (format!("INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('x',{small},{large})"), "entry is in a directory"),
        (deep, "directory is below the root"),
        // Names.
        (format!("UPDATE fs_dentry SET name='x/y' WHERE ino={small}"), "name"),
        (format!("UPDATE fs_dentry SET name='..' WHERE ino={small}"), "name"),
        (format!("UPDATE fs_dentry SET name='.' WHERE ino={small}"), "name"),
        (format!("UPDATE fs_dentry SET name='' WHERE ino={small}"), "name"),
        (format!("UPDATE fs_dentry SET name='a' || char(0) || 'b' WHERE ino={small}"), "name"),
        (format!("UPDATE fs_dentry SET name='{long}' WHERE ino={small}"), "name"),
        (format!("UPDATE fs_dentry SET name=x'ff' WHERE ino={small}"), "name"),
        (format!("UPDATE fs_dentry SET name=CAST(x'ff41' AS TEXT) WHERE ino={small}"), "name"),
        (format!("{loose} UPDATE fs_dentry SET name='b' WHERE ino={large} AND parent_ino<>1"), "name is unique"),
        (format!("{loose} UPDATE fs_dentry SET ino='text' WHERE ino={small}"), "entry"),
        // Inodes.
        ("INSERT INTO fs_inode (ino,mode,atime,mtime,ctime) VALUES (0,33188,0,0,0)".into(), "inode values"),
        ("INSERT INTO fs_inode (ino,mode,atime,mtime,ctime) VALUES (-5,33188,0,0,0)".into(), "inode values"),
        ("INSERT INTO fs_inode (ino,mode,atime,mtime,ctime) VALUES (9223372036854775807,33188,0,0,0)".into(), "inode values"),
        (format!("UPDATE fs_inode SET size=-1 WHERE ino={small}"), "inode values"),
        (format!("UPDATE fs_inode SET size='big' WHERE ino={small}"), "inode values"),
        (format!("UPDATE fs_inode SET mode='dir' WHERE ino={small}"), "inode values"),
        (format!("UPDATE fs_inode SET mode=-1 WHERE ino={small}"), "inode values"),
        (format!("UPDATE fs_inode SET uid=-1 WHERE ino={small}"), "inode values"),
        (format!("UPDATE fs_inode SET gid=4294967296 WHERE ino={small}"), "inode values"),
        (format!("UPDATE fs_inode SET mtime=x'00' WHERE ino={small}"), "inode values"),
        (format!("UPDATE fs_inode SET size=4611686018427387904 WHERE ino={small}"), "quota"),
        // Links.
        (format!("DELETE FROM fs_symlink WHERE ino={soft}"), "symbolic link has a target"),
        (format!("UPDATE fs_symlink SET target='' WHERE ino={soft}"), "symbolic link has a target"),
        (format!("UPDATE fs_symlink SET target=x'00' WHERE ino={soft}"), "symbolic link has a target"),
        (format!("UPDATE fs_symlink SET target='{}' WHERE ino={soft}", "y".repeat(5000)), "symbolic link has a target"),
        // Data.
        (format!("UPDATE fs_data SET data=zeroblob(65537) WHERE ino={small}"), "chunk"),
        (format!("UPDATE fs_data SET chunk_index=-1 WHERE ino={small}"), "chunk"),
        (format!("UPDATE fs_data SET chunk_index='x' WHERE ino={small}"), "chunk"),
        (format!("UPDATE fs_data SET chunk_index=9223372036854775807 WHERE ino={small}"), "chunk"),
        (format!("UPDATE fs_data SET chunk_index=1099511627776 WHERE ino={small}"), "quota"),
        (format!("UPDATE fs_data SET data='text' WHERE ino={small}"), "chunk"),
        (format!("INSERT INTO fs_data VALUES ({a},0,x'00')"), "data belongs to a file"),
        (format!("INSERT INTO fs_data VALUES ({soft},0,x'00')"), "data belongs to a file"),
        // Settings.
        ("DELETE FROM fs_config".into(), "chunk size"),
        ("UPDATE fs_config SET value='0' WHERE key='chunk_size'".into(), "chunk size"),
        ("UPDATE fs_config SET value='99999999999' WHERE key='chunk_size'".into(), "chunk size"),
        ("UPDATE fs_config SET value='-1' WHERE key='chunk_size'".into(), "chunk size"),
        ("DROP TABLE fs_data".into(), "tables"),
        ("ALTER TABLE fs_inode RENAME COLUMN mode TO modus".into(), "tables"),
        // Keys and calls.
        ("INSERT INTO kv_store (key,value) VALUES ('k','not json')".into(), "key and value"),
        ("INSERT INTO kv_store (key,value) VALUES (x'00','1')".into(), "key and value"),
        ("INSERT INTO kv_store (key,value) VALUES ('k',x'31')".into(), "key and value"),
        ("UPDATE tool_calls SET name=x'00'".into(), "call"),
        ("UPDATE tool_calls SET started_at='then'".into(), "call"),
        ("UPDATE tool_calls SET id=-1".into(), "call"),
        ("UPDATE sandlite_run SET id=99".into(), "run belongs to a call"),
        ("UPDATE sandlite_run SET stdout='text'".into(), "run belongs to a call"),
        // Active content where a table should be.
        (
            "ALTER TABLE fs_inode RENAME TO real_inode; CREATE VIEW fs_inode AS SELECT * FROM real_inode".into(),
            "no active content",
        ),
        ("ALTER TABLE fs_dentry RENAME TO real; CREATE VIEW Fs_Dentry AS SELECT * FROM real".into(), "no active content"),
        ("DROP TABLE kv_store; CREATE VIRTUAL TABLE kv_store USING fts5(key, value)".into(), "no active content"),
        ("ALTER TABLE fs_inode ADD COLUMN extra INTEGER GENERATED ALWAYS AS (mode*2) VIRTUAL".into(), "no active content"),
    ]
}

/// T-SNAP-01, T-SNAP-02
#[test]
fn each_violation_is_rejected_by_name() {
    let corpus = Corpus::new();
    for (sql, rule) in lies() {
        let short: String = sql.chars().take(200).collect();
        match import(&corpus.changed(&sql)) {
            Err(Error::Refused { rule: named, detail }) => assert_eq!(named, rule, "{short}: {detail}"),
            Err(error) => panic!("{short}: {error:?}"),
            Ok((_, imported)) => panic!("{short}: taken in with {imported:?}"),
        }
    }
}

/// T-SNAP-01, T-SNAP-02: what does no harm comes in without it.
#[test]
fn harmless_oddities_are_put_right() {
    let corpus = Corpus::new();
    let (small, large) = (ino_of("/a/b/c/small"), ino_of("/a/large"));
    for (sql, note) in [
        ("INSERT INTO fs_inode (ino,mode,atime,mtime,ctime) VALUES (500,33188,0,0,0); INSERT INTO fs_data VALUES (500,0,x'01')".to_owned(), Some("without a name")),
        ("INSERT INTO fs_data VALUES (501,0,x'01')".to_owned(), None),
        ("INSERT INTO fs_symlink VALUES (502,'nowhere')".to_owned(), None),
        (format!("UPDATE fs_inode SET nlink=99 WHERE ino={large}; UPDATE fs_inode SET nlink=1 WHERE ino=1"), None),
        (format!("UPDATE fs_inode SET size=3 WHERE ino={small}"), Some("was truncated")),
        (format!("UPDATE fs_inode SET size=70000 WHERE ino={small}"), Some("was extended")),
        (format!("DELETE FROM fs_data WHERE ino={large} AND chunk_index=1"), None),
        (format!("UPDATE fs_inode SET mode=8576, rdev=5 WHERE ino={small}"), Some("device")),
        (format!("UPDATE fs_inode SET atime=9223372036854775807, mtime=-9223372036854775807 WHERE ino={small}"), None),
        ("UPDATE tool_calls SET result='{}', error='both', status='odd'".to_owned(), None),
        ("CREATE TRIGGER t AFTER INSERT ON fs_inode BEGIN DELETE FROM fs_data; END".to_owned(), None),
        ("CREATE VIEW v AS SELECT * FROM fs_data; CREATE TABLE other (x); CREATE INDEX i ON fs_dentry(abs(ino))".to_owned(), None),
        ("CREATE VIRTUAL TABLE words USING fts5(x)".to_owned(), None),
        ("PRAGMA user_version=99; PRAGMA application_id=7".to_owned(), None),
    ] {
        let (database, imported) = import(&corpus.changed(&sql)).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(database.check().unwrap(), [], "{sql}");
        if let Some(note) = note {
            assert!(imported.notes.iter().any(|text| text.contains(note)), "{sql}: {:?}", imported.notes);
        }
        let size = database.reader().unwrap().fs().metadata("/hard").unwrap().size;
        assert_eq!(size, 200_000, "{sql}");
    }
}

#[test]
fn check_lists_damage_in_our_own_file() {
    let corpus = Corpus::new();
    let mut named = std::collections::BTreeSet::new();
    let ours = ["inode has a name", "link count", "file size", "file is dense", "file type", "target belongs to a symbolic link"];
    let (small, large) = (ino_of("/a/b/c/small"), ino_of("/a/large"));
    let more = [
        "INSERT INTO fs_inode (ino,mode,atime,mtime,ctime) VALUES (500,33188,0,0,0)".to_owned(),
        format!("UPDATE fs_inode SET nlink=7 WHERE ino={large}"),
        format!("UPDATE fs_inode SET size=7 WHERE ino={small}"),
        format!("UPDATE fs_data SET chunk_index=chunk_index+1 WHERE ino={small}"),
        format!("UPDATE fs_inode SET mode=8576 WHERE ino={small}"),
        "INSERT INTO fs_symlink VALUES (777,'x')".to_owned(),
        "CREATE VIEW mine AS SELECT 1".to_owned(),
    ];
    for sql in lies().into_iter().map(|(sql, _)| sql).chain(more) {
        let database = match Database::options().path(corpus.changed(&sql)).durability(Durability::CrashSafe).open() {
            Ok(database) => database,
            // A file without its settings, or with other tables than ours, does not even open.
            Err(Error::Damaged(_) | Error::NotADatabase | Error::Sqlite(_) | Error::Foreign { .. } | Error::Tampered { .. }) => {
                continue;
            }
            Err(error) => panic!("{sql}: {error}"),
        };
        if let Ok(violations) = database.check() {
            // Only `quota` is a rule of the import alone.
            named.extend(violations.into_iter().map(|violation| violation.rule));
        }
    }
    for rule in ours.iter().chain(
        [
            "root is a directory",
            "root has no name",
            "directory is below the root",
            "name",
            "entry leads to an inode",
            "entry is in a directory",
            "directory has one name",
            "inode values",
            "symbolic link has a target",
            "chunk",
            "data belongs to a file",
            "key and value",
            "call",
            "run belongs to a call",
            "no active content",
        ]
        .iter(),
    ) {
        assert!(named.contains(rule), "no case breaks `{rule}`; found {named:?}");
    }
}

/// T-SNAP-04
#[test]
fn files_next_to_a_database_are_not_read() {
    let corpus = Corpus::new();
    let path = corpus.dir.path().join("wal.db");
    std::fs::copy(&corpus.sound, &path).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; PRAGMA wal_checkpoint(TRUNCATE);
        INSERT INTO kv_store (key, value) VALUES ('planted', '1');",
        )
        .unwrap();
    let copy = corpus.dir.path().join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(corpus.dir.path().join("wal.db-wal"), corpus.dir.path().join("copy.db-wal")).unwrap();
    let (database, _) = import(&copy).unwrap();
    assert_eq!(database.reader().unwrap().get("planted").unwrap(), None);
    let own = Import { write_ahead_log: true, ..Import::default() };
    let (database, _) = Database::import(&copy, Database::options(), &own).unwrap();
    assert!(database.reader().unwrap().get("planted").unwrap().is_some());
    assert!(copy.with_file_name("copy.db-wal").exists());
}

/// T-SNAP-03
#[test]
fn limits_of_an_import_are_kept() {
    let corpus = Corpus::new();
    let options = || Database::options();
    let refused = |result: Result<(Database, Imported), Error>| matches!(result, Err(Error::Refused { .. }));
    let quota = Quota { inodes: 7, ..Quota::default() };
    assert!(refused(Database::import(&corpus.sound, options().quota(quota), &Import::default())));
    let quota = Quota { bytes: 200_004, ..Quota::default() };
    assert!(refused(Database::import(&corpus.sound, options().quota(quota), &Import::default())));
    assert!(refused(Database::import(&corpus.sound, options(), &Import { max_bytes: 1000, ..Import::default() })));
    let past = Import { deadline: Some(std::time::Instant::now()), ..Import::default() };
    let large = corpus.changed(
        "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i+1 FROM n WHERE i<60000)
        INSERT INTO kv_store (key, value) SELECT 'k' || i, i FROM n",
    );
    assert!(matches!(Database::import(&large, options(), &past), Err(Error::Interrupted)));
    let there = corpus.dir.path().join("there.db");
    std::fs::write(&there, b"precious").unwrap();
    assert!(Database::import(&corpus.sound, options().path(&there), &Import::default()).is_err());
    assert_eq!(std::fs::read(&there).unwrap(), b"precious");
    let target = corpus.dir.path().join("new.db");
    assert!(Database::import(&corpus.changed("DELETE FROM fs_inode"), options().path(&target), &Import::default()).is_err());
    let left: Vec<_> =
        std::fs::read_dir(corpus.dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with("new.db") || name.starts_with(".sqlite-fs")), "{left:?}");
}

/// T-SNAP-03; `mutations.rs` has thousands more.
#[test]
fn no_bytes_whatever_do_harm() {
    let corpus = Corpus::new();
    let sound = std::fs::read(&corpus.sound).unwrap();
    let path = corpus.dir.path().join("broken.db");
    let mut seed = 7u64;
    let mut next = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    for round in 0..300 {
        let mut bytes = sound.clone();
        match round % 4 {
            0 => bytes.truncate(next(sound.len())),
            1 => (0..1 + next(20)).for_each(|_| bytes[next(sound.len())] = next(256) as u8),
            // The first page holds the schema, the others rows: aim at their headers.
            2 => {
                let page = next(sound.len() / 16_384) * 16_384;
                let at = page + next(64);
                bytes[at] ^= 1 << next(8);
            }
            _ => {
                let (from, to, len) = (next(sound.len() - 4096), next(sound.len() - 4096), next(4096));
                bytes.copy_within(from..from + len, to);
            }
        }
        // Not overwritten: ext4 waits for the disk then.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, &bytes).unwrap();
        if let Ok((database, _)) = import(&path) {
            assert_eq!(database.check().unwrap(), [], "round {round}");
        }
    }
    for bytes in [&b""[..], b"SQLite format 3\0", b"not a database at all", &[0; 100_000]] {
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(import(&path), Err(Error::Refused { .. })), "{} bytes", bytes.len());
    }
}

#[test]
fn localsandbox_snapshots_are_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.db");
    Connection::open(&path).unwrap().execute_batch(
        "CREATE TABLE fs_config (key TEXT PRIMARY KEY, value TEXT NOT NULL);
         CREATE TABLE fs_inode (ino INTEGER PRIMARY KEY AUTOINCREMENT, mode INTEGER NOT NULL, nlink INTEGER NOT NULL DEFAULT 0,
           uid INTEGER NOT NULL DEFAULT 0, gid INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL DEFAULT 0,
           atime INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL);
         CREATE TABLE fs_dentry (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, parent_ino INTEGER NOT NULL,
           ino INTEGER NOT NULL, UNIQUE(parent_ino, name));
         CREATE TABLE fs_data (ino INTEGER NOT NULL, chunk_index INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (ino, chunk_index));
         CREATE TABLE fs_symlink (ino INTEGER PRIMARY KEY, target TEXT NOT NULL);
         CREATE TABLE kv_store (key TEXT PRIMARY KEY, value TEXT NOT NULL, created_at INTEGER DEFAULT (unixepoch()), updated_at INTEGER DEFAULT (unixepoch()));
         CREATE TABLE tool_calls (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, parameters TEXT, result TEXT, error TEXT,
           status TEXT NOT NULL DEFAULT 'pending', started_at INTEGER NOT NULL, completed_at INTEGER, duration_ms INTEGER);
         INSERT INTO fs_config VALUES ('chunk_size', '4096');
         INSERT INTO fs_inode VALUES (1,16877,1,0,0,0,1700000000,1700000000,1700000000), (2,33188,1,0,0,10000,1700000001,1700000002,1700000003),
           (3,33188,1,0,0,25,1700000000,1700000000,1700000000), (4,33188,1,0,0,31,1700000000,1700000000,1700000000);
         INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('f',1,2), ('link',1,3), ('no-link',1,4);
         INSERT INTO fs_data VALUES (2,2,zeroblob(1808)), (2,0,zeroblob(4096)), (2,1,CAST('x' || hex(zeroblob(2047)) || 'y' AS BLOB)),
           (3,0,CAST('{\"__symlink\":\"/data/target\"}' AS BLOB)), (4,0,CAST('{\"__symlink\":\"a\",\"other\":true}' AS BLOB));
         UPDATE fs_inode SET size=28 WHERE ino=3;
         INSERT INTO kv_store (key, value) VALUES ('k', '\"v\"');
         INSERT INTO tool_calls VALUES (1,'bash','{\"command\":\"ls\"}','{\"exitCode\":0}',NULL,'success',1700000000123,1700000000456,333000);",
    ).unwrap();
    let (database, imported) = import(&path).unwrap();
    assert_eq!(database.check().unwrap(), []);
    let reader = database.reader().unwrap();
    let bytes = reader.fs().read("/f").unwrap();
    assert_eq!((bytes.len(), bytes[4096], bytes[8191], bytes[9999]), (10_000, b'x', b'y', 0));
    assert_eq!(reader.fs().metadata("/f").unwrap().mtime, 1_700_000_002_000_000_000);
    assert_eq!(reader.fs().read_link("/link").unwrap(), "/data/target");
    assert_eq!(
        reader.fs().read("/no-link").unwrap(),
        br#"{"__symlink":"a","other":true}"#.to_vec().into_iter().chain([0]).collect::<Vec<_>>()
    );
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
    let call = reader.call(1).unwrap().unwrap();
    assert_eq!((call.started, call.completed), (1_700_000_000_000_000_000, Some(1_700_000_000_000_000_000)));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.db");
    database.export(&out, Export::default()).unwrap();
    let duration: i64 =
        Connection::open(&out).unwrap().query_row("SELECT duration_ms FROM tool_calls", [], |row| row.get(0)).unwrap();
    assert_eq!(duration, 333);
}

/// T-SNAP-05: with `secure_delete` not even the file itself has what was deleted.
#[test]
fn deleted_bytes_are_overwritten_with_secure_delete() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = Database::options().path(&path).secure_delete().versions(false).open().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/deleted", b"DELETED-CONTENT".repeat(50_000)).unwrap();
    transaction.fs().write("/kept", b"KEPT-CONTENT").unwrap();
    transaction.kv().set("token", "\"DELETED-VALUE\"").unwrap();
    transaction.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().remove_file("/deleted").unwrap();
    transaction.kv().delete("token").unwrap();
    transaction.commit().unwrap();
    drop(database);
    let bytes = std::fs::read(&path).unwrap();
    let has = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    assert!(has(b"KEPT-CONTENT"));
    assert!(!has(b"DELETED-CONTENT"));
    assert!(!has(b"DELETED-VALUE"));
}

/// T-SNAP-06: nothing in a snapshot is authority; its claims about itself are not imported.
#[test]
fn a_snapshot_brings_rows_and_nothing_else() {
    let corpus = Corpus::new();
    let changed = corpus.changed(
        "INSERT INTO fs_config VALUES ('mount', '/etc'), ('allow_network', 'true');
         CREATE TABLE hooks (command); INSERT INTO hooks VALUES ('rm -rf /');
         CREATE TABLE sandlite_policy (preset); INSERT INTO sandlite_policy VALUES ('permissive');",
    );
    let (database, _) = import(&changed).unwrap();
    let out = corpus.dir.path().join("out.db");
    database.export(&out, Export::default()).unwrap();
    let connection = Connection::open(&out).unwrap();
    let list = |sql: &str| -> Vec<String> {
        connection.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(list("SELECT key FROM fs_config ORDER BY key"), ["chunk_size", "schema_version"]);
    assert_eq!(
        list("SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name"),
        [
            "fs_config",
            "fs_data",
            "fs_dentry",
            "fs_inode",
            "fs_symlink",
            "kv_store",
            "sandlite_kv",
            "sandlite_run",
            "sandlite_session",
            "sandlite_usage",
            "sandlite_version",
            "tool_calls"
        ]
    );
}

/// AgentFS's overlay tables, with and without the column that its Rust SDK leaves out.
#[test]
fn a_layer_of_an_overlay_is_imported_without_its_base() {
    let corpus = Corpus::new();
    let config = "CREATE TABLE fs_overlay_config (key TEXT PRIMARY KEY, value TEXT NOT NULL);
                  INSERT INTO fs_overlay_config VALUES ('base_path', '/srv/base');
                  CREATE TABLE fs_origin (delta_ino INTEGER PRIMARY KEY, base_ino INTEGER NOT NULL);
                  INSERT INTO fs_origin VALUES (3, 77);";
    for whiteout in [
        "CREATE TABLE fs_whiteout (path TEXT PRIMARY KEY, parent_path TEXT NOT NULL, created_at INTEGER NOT NULL);
         INSERT INTO fs_whiteout VALUES ('/gone', '/', 1700000000), ('/a/gone', '/a', 1700000000);",
        "CREATE TABLE fs_whiteout (path TEXT PRIMARY KEY, created_at INTEGER NOT NULL);
         INSERT INTO fs_whiteout VALUES ('/gone', 1700000000), ('/a/gone', 1700000000);",
    ] {
        let (database, imported) = import(&corpus.changed(&format!("{config} {whiteout}"))).unwrap();
        assert_eq!(
            imported.notes,
            [
                "the file is an overlay of `/srv/base`: files that exist only in the base were not imported",
                "1 origins of copied files were omitted",
            ]
        );
        assert_eq!(database.check().unwrap(), []);
        assert_eq!(database.reader().unwrap().fs().read("/a/b/c/small").unwrap(), b"small");
        let transaction = database.begin(None).unwrap();
        assert!(transaction.hides("/a/gone").unwrap() && transaction.hides("/gone").unwrap());
        assert!(!transaction.hides("/a").unwrap());
    }
    let nameless = "CREATE TABLE fs_whiteout (path); INSERT INTO fs_whiteout VALUES ('/a/../b')";
    assert!(matches!(import(&corpus.changed(nameless)), Err(Error::Refused { rule: "name", .. })));
    for lie in [
        "CREATE TABLE fs_whiteout (path); INSERT INTO fs_whiteout VALUES (x'00')",
        "CREATE TABLE fs_whiteout (path); INSERT INTO fs_whiteout VALUES ('relative')",
        "CREATE TABLE fs_origin (delta_ino); INSERT INTO fs_origin VALUES ('text')",
        "CREATE TABLE fs_overlay_config (key, value); INSERT INTO fs_overlay_config VALUES ('base_path', x'00')",
    ] {
        assert!(matches!(import(&corpus.changed(lie)), Err(Error::Refused { rule: "overlay", .. })), "{lie}");
    }
}

/// The changes of AgentFS's SDKs to our files: their indexes, and a directory's inode that stays when its name is removed.
#[test]
fn a_file_is_put_right_after_the_visit_of_an_sdk() {
    let corpus = Corpus::new();
    let (b, c) = (ino_of("/a/b"), ino_of("/a/b/c"));
    let path = corpus.changed(&format!(
        "CREATE INDEX idx_tool_calls_name ON tool_calls(name); CREATE INDEX idx_kv_store_created_at ON kv_store(created_at);
         CREATE TABLE gone AS SELECT {b} AS b, {c} AS c;
         DELETE FROM fs_dentry WHERE parent_ino=(SELECT c FROM gone); DELETE FROM fs_dentry WHERE ino=(SELECT c FROM gone);
         DELETE FROM fs_dentry WHERE ino=(SELECT b FROM gone);
         UPDATE fs_inode SET nlink=nlink-1 WHERE ino IN (SELECT b FROM gone UNION SELECT c FROM gone); DROP TABLE gone;"
    ));
    let database = Database::options().path(&path).open().unwrap();
    assert_eq!(database.check().unwrap(), []);
    let reader = database.reader().unwrap();
    assert!(!reader.fs().exists("/a/b").unwrap());
    assert_eq!(reader.fs().metadata("/a").unwrap().nlink, 2);
    assert_eq!(reader.used().unwrap().inodes, 5);
    drop((reader, database));
    let indexes = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'idx_tool%' OR name LIKE 'idx_kv%'";
    assert_eq!(Connection::open(&path).unwrap().query_row(indexes, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}
