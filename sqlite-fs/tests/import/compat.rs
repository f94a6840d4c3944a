//! The layout that LocalSandbox reads: written on request, and read back.

use rusqlite::Connection;
use sqlite_fs::{CallStatus, Compat, Export, Filter};

use super::{Corpus, import, ino_of};

#[test]
fn an_export_for_localsandbox_round_trips() {
    let corpus = Corpus::new();
    let (database, _) = import(&corpus.sound).unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().symlink("say \"hi\"\n", "/quoted").unwrap();
    transaction.commit().unwrap();
    let path = corpus.dir.path().join("localsandbox.db");
    database.export_compat(&path, Export::default(), Compat::LocalSandbox).unwrap();

    let connection = Connection::open(&path).unwrap();
    let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let columns = "SELECT group_concat(name) FROM pragma_table_info('fs_inode')";
    assert_eq!(text(columns), "ino,mode,nlink,uid,gid,size,atime,mtime,ctime");
    assert_eq!(text("SELECT group_concat(key) FROM fs_config"), "chunk_size");
    assert_eq!(number("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'sandlite%'"), 0);
    assert_eq!(number("SELECT count(*) FROM fs_symlink"), 0);
    assert_eq!((number("PRAGMA application_id"), number("PRAGMA user_version")), (0, 0));
    let soft = format!("SELECT CAST(data AS TEXT) FROM fs_data WHERE ino={}", ino_of("/soft"));
    assert_eq!(text(&soft), "{\"__symlink\":\"a/large\"}");
    assert_eq!(number(&format!("SELECT mode*1000+size FROM fs_inode WHERE ino={}", ino_of("/soft"))), 33_188_023);
    assert!(number("SELECT started_at FROM tool_calls") > 1_000_000_000_000);
    assert_eq!(text("SELECT group_concat(key) FROM kv_store"), "key");
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    drop(connection);

    let (back, imported) = import(&path).unwrap();
    assert_eq!(imported.notes, Vec::<String>::new());
    assert_eq!(back.check().unwrap(), []);
    let (before, after) = (database.reader().unwrap(), back.reader().unwrap());
    assert_eq!(after.fs().read_link("/soft").unwrap(), "a/large");
    assert_eq!(after.fs().read_link("/quoted").unwrap(), "say \"hi\"\n");
    for path in ["/a/large", "/soft", "/a/b/c/small", "/empty"] {
        assert_eq!(after.fs().read(path).unwrap(), before.fs().read(path).unwrap(), "{path}");
    }
    assert_eq!(after.fs().metadata("/hard").unwrap().nlink, 2);
    assert_eq!(after.get("key").unwrap().unwrap().json, "{\"n\":1}");
    let calls = after.calls(&Filter::default()).unwrap();
    assert_eq!((calls.len(), calls[0].name.as_str(), calls[0].status), (1, "bash", CallStatus::Success));
}
