//! Tampered files, opened as they are: false data is reported as damage where it is read, and has no effect. T-SNAP-01,
//! T-SNAP-02, T-SNAP-04

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sqlite_fs::{Database, Error, FsError};

/// A file of ours with something in it.
struct File {
    dir: tempfile::TempDir,
    path: PathBuf,
}

impl File {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let database = Database::options().path(&path).open().unwrap();
        let transaction = database.begin(None).unwrap();
        let fs = transaction.fs();
        fs.create_dir_all("/a/b/c").unwrap();
        fs.write("/a/b/c/small", b"small").unwrap();
        fs.write("/a/large", vec![7; 300_000]).unwrap();
        fs.symlink("a/large", "/soft").unwrap();
        transaction.kv().set("key", "1").unwrap();
        transaction.commit().unwrap();
        Self { dir, path }
    }

    /// The same after these statements; `INO(x)` is the inode of a name.
    fn changed(sql: &str) -> Self {
        let file = Self::new();
        let sql = sql.replace("INO(", "(SELECT ino FROM fs_dentry WHERE name=");
        Connection::open(&file.path).unwrap().execute_batch(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        file
    }

    fn open(&self) -> Result<Database, Error> {
        Database::options().path(&self.path).open()
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }
}

fn is_damage<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    match result {
        Err(Error::Damaged(_)) => true,
        Err(error) => error.fs_error() == Some(FsError::Damaged),
        Ok(_) => false,
    }
}

#[test]
fn a_name_that_is_a_path_is_damage_to_readers_and_to_transactions() {
    for name in [
        "'../../.bashrc'",
        "'a/b'",
        "'/etc/passwd'",
        "'.'",
        "'..'",
        "''",
        "'x'||char(0)",
        "hex(zeroblob(150))",
        "CAST(x'ff41' AS TEXT)",
        "x'2e2e2f78'",
    ] {
        let file = File::changed(&format!("UPDATE fs_dentry SET name={name} WHERE name='large'"));
        let database = file.open().unwrap();
        assert!(is_damage(database.reader().unwrap().fs().list("/a")), "{name}");
        assert!(is_damage(database.reader().unwrap().fs().walk("/")), "{name}");
        let transaction = database.begin(None).unwrap();
        let top = transaction.fs().metadata("/a").unwrap().ino;
        assert_eq!(transaction.readdir(top, 0, 10), Err(FsError::Damaged), "{name}");
    }
    let file = File::changed("UPDATE fs_dentry SET name='../up' WHERE name='b'");
    let database = file.open().unwrap();
    let inner = Connection::open(&file.path).unwrap().query_row("SELECT ino FROM fs_dentry WHERE name='c'", [], |row| row.get(0));
    let inner = u64::try_from(inner.unwrap_or(0_i64)).unwrap();
    // The way up leads through the name as well.
    let above = database.begin(None).unwrap().parent(inner).unwrap();
    assert_eq!(database.begin(None).unwrap().parent(above), Err(FsError::Damaged));
}

#[test]
fn a_directory_in_itself_or_with_two_names_is_damage_with_its_path() {
    for lie in [
        "UPDATE fs_dentry SET ino=INO('a') WHERE name='c'",
        "INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('c2',INO('a'),INO('c'))",
        "INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('self',INO('b'),INO('b'))",
        "INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('root',INO('b'),1)",
    ] {
        let file = File::changed(lie);
        let database = file.open().unwrap();
        let error = database.reader().unwrap().fs().walk("/").unwrap_err();
        assert!(matches!(&error, Error::Fs { path, source: FsError::Damaged, .. } if path.starts_with("/a/")), "{lie}: {error}");
        assert!(is_damage(database.digest(sqlite_fs::Export::default())), "{lie}");
        assert!(!database.check().unwrap().is_empty(), "{lie}");
    }
    let file = File::changed("UPDATE fs_dentry SET ino=INO('a') WHERE name='c'");
    let database = file.open().unwrap();
    let transaction = database.begin(None).unwrap();
    assert!(is_damage(transaction.fs().metadata("/a/b/c")));
    assert!(is_damage(transaction.fs().remove_dir_all("/a")));
}

#[test]
fn removing_a_directory_that_is_above_itself_ends() {
    // Not reached by a name that was seen before, so only the removal itself can tell.
    let file = File::changed("UPDATE fs_dentry SET ino=INO('a') WHERE name='c'");
    let transaction = file.open().unwrap().begin(None).unwrap();
    assert!(is_damage(transaction.fs().remove_dir_all("/a")));
}

#[test]
fn a_tree_that_doubles_on_every_level_can_be_moved_and_checked() {
    let file = File::changed(
        "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i+1 FROM n WHERE i<1060)
           INSERT INTO fs_inode (ino,mode,nlink,atime,mtime,ctime) SELECT i,16877,2,0,0,0 FROM n;
         INSERT INTO fs_dentry (name,parent_ino,ino) SELECT 'l',ino,ino+1 FROM fs_inode WHERE ino BETWEEN 1000 AND 1059;
         INSERT INTO fs_dentry (name,parent_ino,ino) SELECT 'r',ino,ino+1 FROM fs_inode WHERE ino BETWEEN 1000 AND 1059;
         INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('top',1,1000)",
    );
    let database = file.open().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().rename("/top", "/a/b/top").unwrap();
    transaction.commit().unwrap();
    assert!(!database.check().unwrap().is_empty());
}

#[test]
fn a_size_beyond_the_stored_bytes_is_damage() {
    for size in ["8000000000", "9223372036854775807", "-1", "'large'", "1e300", "zeroblob(9)"] {
        let file = File::changed(&format!("UPDATE fs_inode SET size={size} WHERE ino=INO('large')"));
        let database = file.open().unwrap();
        assert!(is_damage(database.reader().unwrap().fs().metadata("/a/large")), "{size}");
        assert!(is_damage(database.reader().unwrap().fs().read("/a/large")), "{size}");
        assert!(is_damage(database.begin(None).unwrap().fs().metadata("/a/large")), "{size}");
    }
    // Claimed content that does not exist is detected when its first byte is read.
    for lie in [
        "UPDATE fs_inode SET size=400000 WHERE ino=INO('large')",
        "UPDATE fs_inode SET size=60000 WHERE ino=INO('small')",
        "DELETE FROM fs_data WHERE ino=INO('large') AND chunk_index=1",
        "UPDATE fs_data SET data=x'41' WHERE ino=INO('large') AND chunk_index=1",
        "UPDATE fs_data SET chunk_index=chunk_index+9 WHERE ino=INO('large')",
    ] {
        let file = File::changed(lie);
        let database = file.open().unwrap();
        let path = if lie.contains("small") { "/a/b/c/small" } else { "/a/large" };
        assert!(is_damage(database.reader().unwrap().fs().read(path)), "{lie}");
        let transaction = database.begin(None).unwrap();
        assert!(is_damage(transaction.fs().read(path)), "{lie}");
        let ino = transaction.fs().metadata(path).unwrap().ino;
        let offset = if path.ends_with("small") { 30_000 } else { 100_000 };
        let mut few = [0; 10];
        let read = transaction.read(ino, if lie.contains("400000") { 390_000 } else { offset }, &mut few);
        assert_eq!(read, Err(FsError::Damaged), "{lie}");
    }
}

#[test]
fn a_chunk_that_is_longer_than_a_chunk_is_not_read_whole() {
    let file = File::changed("UPDATE fs_data SET data=zeroblob(70000) WHERE ino=INO('small')");
    let transaction = file.open().unwrap().begin(None).unwrap();
    let ino = transaction.fs().metadata("/a/b/c/small").unwrap().ino;
    assert_eq!(transaction.write(ino, 2, b"x"), Err(FsError::Damaged));
}

#[test]
fn values_of_the_wrong_type_or_range_are_damage() {
    for (lie, path) in [
        ("UPDATE fs_inode SET mode=-1 WHERE ino=INO('large')", "/a/large"),
        ("UPDATE fs_inode SET mode='x' WHERE ino=INO('large')", "/a/large"),
        ("UPDATE fs_inode SET mode=99999999 WHERE ino=INO('large')", "/a/large"),
        ("UPDATE fs_inode SET nlink=-1 WHERE ino=INO('large')", "/a/large"),
        ("UPDATE fs_inode SET uid=-1 WHERE ino=INO('large')", "/a/large"),
        ("UPDATE fs_inode SET mtime='then' WHERE ino=INO('large')", "/a/large"),
        ("UPDATE fs_dentry SET ino=-5 WHERE name='large'", "/a/large"),
        ("UPDATE fs_dentry SET ino='x' WHERE name='large'", "/a/large"),
    ] {
        let database = File::changed(lie);
        let database = database.open().unwrap();
        assert!(is_damage(database.reader().unwrap().fs().metadata(path)), "{lie}");
        assert!(is_damage(database.begin(None).unwrap().fs().metadata(path)), "{lie}");
    }
    for target in ["''", "hex(zeroblob(2500))", "'a'||char(0)", "x'ff'", "CAST(x'ff' AS TEXT)"] {
        let file = File::changed(&format!("UPDATE fs_symlink SET target={target}"));
        assert!(is_damage(file.open().unwrap().reader().unwrap().fs().read_link("/soft")), "{target}");
    }
    let file = File::changed("UPDATE fs_inode SET size=9223372036854775807 WHERE (mode & 61440)=32768");
    assert!(
        file.open().unwrap().reader().unwrap().used().unwrap().bytes > 1 << 62,
        "a sum that does not fit is the largest there is"
    );
    let file =
        File::changed("INSERT INTO fs_inode (ino,mode,nlink,atime,mtime,ctime) VALUES (9223372036854775807,33188,1,0,0,0)");
    assert!(is_damage(file.open().unwrap().begin(None).unwrap().fs().write("/new", b"x")));
}

#[test]
fn a_schema_that_acts_is_refused_for_reading_and_for_writing() {
    for lie in [
        "ALTER TABLE fs_inode ADD COLUMN x AS (hex(zeroblob(200000000)))",
        "ALTER TABLE tool_calls ADD COLUMN x DEFAULT 5",
        "CREATE INDEX mine ON fs_dentry(hex(name))",
        "CREATE TRIGGER t AFTER INSERT ON tool_calls BEGIN DELETE FROM fs_inode; END",
        "DROP TABLE kv_store; CREATE VIEW kv_store AS SELECT 1",
        "DROP TABLE sandlite_run",
    ] {
        let file = File::changed(lie);
        let refused = |result: Result<Database, Error>| matches!(result, Err(Error::Tampered { .. }));
        assert!(refused(file.open()), "{lie}");
        assert!(refused(Database::options().path(&file.path).read_only().open()), "{lie}");
    }
    assert!(File::changed("CREATE TABLE mine (x, y AS (x||x)); CREATE VIEW look AS SELECT 1").open().is_ok());
}

fn journal_that_names(path: &Path) -> Vec<u8> {
    const MAGIC: [u8; 8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7];
    let name = path.to_str().unwrap().as_bytes();
    let mut journal = MAGIC.to_vec();
    journal.resize(512, 0);
    journal.extend_from_slice(&65_537u32.to_be_bytes());
    journal.extend_from_slice(name);
    journal.extend_from_slice(&(name.len() as u32).to_be_bytes());
    journal.extend_from_slice(&name.iter().map(|byte| u32::from(*byte)).sum::<u32>().to_be_bytes());
    journal.extend_from_slice(&MAGIC);
    journal
}

#[test]
fn a_journal_that_names_a_file_elsewhere_is_refused_and_the_file_stays() {
    let file = File::new();
    let precious = file.dir.path().join("precious");
    std::fs::write(&precious, "x").unwrap();
    std::fs::write(file.beside("-journal"), journal_that_names(&precious)).unwrap();
    assert!(matches!(file.open(), Err(Error::Tampered { .. })));
    assert!(matches!(Database::options().path(&file.path).read_only().open(), Err(Error::Tampered { .. })));
    assert!(precious.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_link_or_a_flood_in_place_of_the_lock_does_nothing() {
    let file = File::new();
    let precious = file.dir.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    std::os::unix::fs::symlink(&precious, file.beside("-running")).unwrap();
    assert!(matches!(file.open(), Err(Error::Disk { .. } | Error::Unwritable { .. })));
    assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    std::fs::remove_file(file.beside("-running")).unwrap();
    // Sixteen terabytes of holes: read whole, this would end for want of memory.
    std::fs::File::create(file.beside("-running")).unwrap().set_len(1 << 43).unwrap();
    assert!(file.open().is_ok());
}

#[cfg(unix)]
#[test]
fn a_link_to_nothing_is_not_followed_to_make_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
    assert!(matches!(Database::options().path(&path).open(), Err(Error::Tampered { .. })));
    assert!(!dir.path().join("elsewhere").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(matches!(Database::options().path(&path).read_only().open(), Err(Error::Tampered { .. })));
    assert!(matches!(Database::options().path(&path).open(), Err(Error::Tampered { .. })));
}
