//! Thousands of damaged files, the same on every run: each is refused by name, or comes in and is sound and usable.
//!
//! Half are damaged in their bytes, half in their rows, where every value of every table is fair game. More of them with
//! `SQLITE_FS_MUTATIONS=100000`; `fuzz/` looks for the same with the compiler's help. T-SNAP-02, T-SNAP-03

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use std::path::Path;

use rusqlite::Connection;
use sqlite_fs::{Database, Error, Export, Filter, Import, NewCall, Outcome, Quota};

const MUTATIONS: u64 = 3000;
const PAGE: usize = 16 * 1024;

/// A small generator of numbers; the same ones everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A sound file with something in every table.
fn sound(path: &Path) {
    let database = Database::options().open().unwrap();
    let transaction = database.begin(None).unwrap();
    let fs = transaction.fs();
    fs.create_dir_all("/a/b/c").unwrap();
    fs.write("/a/b/c/small", b"small").unwrap();
    fs.write("/a/large", [5; 150_000]).unwrap();
    fs.hard_link("/a/large", "/hard").unwrap();
    fs.symlink("a/large", "/soft").unwrap();
    fs.write("/empty", b"").unwrap();
    transaction.kv().set("key", "{\"n\":1}").unwrap();
    transaction.kv().set("token", "\"hidden\"").unwrap();
    transaction.kv().set_secret("token", true).unwrap();
    for _ in 0..3 {
        let id =
            transaction.calls().begin(&NewCall { name: "bash", parameters: Some("{}"), command: "ls", parent: None }).unwrap();
        transaction.calls().finish(id, &Outcome { result: Some("{}"), stdout: b"out", ..Outcome::default() }).unwrap();
    }
    transaction.commit().unwrap();
    database.export(path, Export { history: true, secrets: true }).unwrap();
}

/// The same rows in tables that take anything.
fn loosen(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;").unwrap();
    for (table, columns) in TABLES {
        let list = columns.join(",");
        connection
            .execute_batch(&format!(
                "CREATE TABLE loose ({list}); INSERT INTO loose SELECT {list} FROM {table}; DROP TABLE {table};
                 ALTER TABLE loose RENAME TO {table};
                 CREATE TABLE IF NOT EXISTS fs_whiteout (path, parent_path, created_at);
                 CREATE TABLE IF NOT EXISTS fs_origin (delta_ino, base_ino);
                 CREATE TABLE IF NOT EXISTS fs_overlay_config (key, value);"
            ))
            .unwrap();
    }
    connection
        .execute_batch(
            "INSERT INTO fs_whiteout VALUES ('/gone','/',1700000000); INSERT INTO fs_origin VALUES (2,77);
             INSERT INTO fs_overlay_config VALUES ('base_path','/srv/base'); VACUUM;",
        )
        .unwrap();
}

const TABLES: &[(&str, &[&str])] = &[
    ("fs_config", &["key", "value"]),
    (
        "fs_inode",
        &[
            "ino",
            "mode",
            "nlink",
            "uid",
            "gid",
            "size",
            "atime",
            "mtime",
            "ctime",
            "rdev",
            "atime_nsec",
            "mtime_nsec",
            "ctime_nsec",
        ],
    ),
    ("fs_dentry", &["id", "name", "parent_ino", "ino"]),
    ("fs_data", &["ino", "chunk_index", "data"]),
    ("fs_symlink", &["ino", "target"]),
    ("kv_store", &["key", "value", "created_at", "updated_at"]),
    ("tool_calls", &["id", "name", "parameters", "result", "error", "status", "started_at", "completed_at", "duration_ms"]),
    ("sandlite_kv", &["key", "version", "secret"]),
    (
        "sandlite_run",
        &[
            "id",
            "command",
            "stdout",
            "stderr",
            "stdout_truncated",
            "stderr_truncated",
            "interrupted",
            "exit_code",
            "limit_reached",
            "usage",
            "changes",
            "started_ns",
            "completed_ns",
        ],
    ),
];
const MORE: &[(&str, &[&str])] = &[
    ("fs_whiteout", &["path", "parent_path", "created_at"]),
    ("fs_origin", &["delta_ino", "base_ino"]),
    ("fs_overlay_config", &["key", "value"]),
];

/// Values that code easily overlooks.
const VALUES: &[&str] = &[
    "NULL",
    "0",
    "1",
    "2",
    "-1",
    "3",
    "5",
    "7",
    "65536",
    "65537",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "1.5",
    "1e308",
    "''",
    "'.'",
    "'..'",
    "'a/b'",
    "'x'",
    "char(0)",
    "'a' || char(0)",
    "x''",
    "x'00'",
    "x'ff'",
    "CAST(x'ff41' AS TEXT)",
    "zeroblob(65536)",
    "zeroblob(65537)",
    "hex(zeroblob(3000))",
    "16877",
    "33188",
    "41471",
    "4480",
    "'{'",
    "'{\"n\":1}'",
    "'null'",
    "'{\"__symlink\":\"x\"}'",
    "'pending'",
    "'chunk_size'",
    "'4096'",
    "'1'",
    "1700000000",
    "1700000000000",
    "100000000001",
    "9007199254740993",
    "(SELECT max(ino)+1 FROM fs_inode)",
    "(SELECT ino FROM fs_inode LIMIT 1 OFFSET 3)",
    "abs(random())%12",
];

fn damage_rows(connection: &Connection, numbers: &mut Numbers) -> String {
    let mut done = String::new();
    for _ in 0..1 + numbers.below(4) {
        let all = TABLES.len() + MORE.len();
        let index = numbers.below(all);
        let (table, columns) = TABLES.iter().chain(MORE).nth(index).unwrap();
        // `random()` would make two runs differ.
        let value = match *numbers.one(VALUES) {
            "abs(random())%12" => numbers.below(12).to_string(),
            value => value.to_owned(),
        };
        let column = numbers.one(columns);
        let row = format!("(SELECT rowid FROM {table} LIMIT 1 OFFSET {})", numbers.below(8));
        let sql = match numbers.below(6) {
            0 => format!("DELETE FROM {table} WHERE rowid={row}"),
            1 => format!("INSERT INTO {table} SELECT * FROM {table} WHERE rowid={row}"),
            2 => format!("UPDATE {table} SET {column}={value}"),
            _ => format!("UPDATE {table} SET {column}={value} WHERE rowid={row}"),
        };
        connection.execute_batch(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        done.push_str(&sql);
        done.push_str("; ");
    }
    done
}

fn damage_bytes(bytes: &mut Vec<u8>, numbers: &mut Numbers) -> String {
    let len = bytes.len();
    match numbers.below(6) {
        0 => bytes.truncate(numbers.below(len)),
        1 => (0..1 + numbers.below(20)).for_each(|_| bytes[numbers.below(len)] = numbers.below(256) as u8),
        // The headers of pages, and the first of the places where their rows are.
        2 | 3 => {
            for _ in 0..1 + numbers.below(3) {
                let at = numbers.below(len / PAGE) * PAGE + numbers.below(40);
                bytes[at] ^= 1 << numbers.below(8);
            }
        }
        // The header of the file, and the text of the tables.
        4 => bytes[numbers.below(4096)] ^= 1 << numbers.below(8),
        _ => {
            let (from, to, count) = (numbers.below(len - 4096), numbers.below(len - 4096), numbers.below(4096));
            bytes.copy_within(from..from + count, to);
        }
    }
    String::from("bytes")
}

/// Everything that can be asked of a database that came in.
fn use_it(database: &Database, what: &str) {
    assert_eq!(database.check().unwrap(), [], "{what}");
    let transaction = database.begin(None).unwrap();
    let fs = transaction.fs();
    let mut directories = vec!["/".to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs.list(&directory).unwrap() {
            let path = format!("{}/{}", directory.trim_end_matches('/'), entry.name);
            let stat = fs.symlink_metadata(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
            if stat.is_dir() {
                directories.push(path);
            } else if stat.is_file() {
                assert_eq!(fs.read(&path).unwrap().len() as u64, stat.size, "{what}: {path}");
            } else {
                assert!(!fs.read_link(&path).unwrap().is_empty(), "{what}: {path}");
            }
        }
    }
    transaction.calls().list(&Filter { output: true, ..Filter::default() }).unwrap();
    for key in transaction.kv().keys("").unwrap() {
        transaction.kv().get(&key).unwrap().unwrap();
    }
    fs.write("/written-after-import", b"x").unwrap();
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), [], "{what}, after a write");
}

#[test]
fn damaged_files_are_rejected_or_imported_without_damage() {
    let rounds = std::env::var("SQLITE_FS_MUTATIONS").map_or(MUTATIONS, |count| count.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let (strict, loose) = (dir.path().join("strict.db"), dir.path().join("loose.db"));
    sound(&strict);
    std::fs::copy(&strict, &loose).unwrap();
    loosen(&loose);
    let (strict, loose) = (std::fs::read(&strict).unwrap(), std::fs::read(&loose).unwrap());
    let limits = Import { max_bytes: 16 << 20, max_rows: 10_000, ..Import::default() };
    let quota = Quota { bytes: 16 << 20, file_size: 8 << 20, inodes: 1000, ..Quota::default() };
    let mut taken_in = 0;
    for round in 0..rounds {
        let mut numbers = Numbers(round + 1);
        numbers.below(2);
        // A new name each time: ext4 waits for the disk when a file is written over.
        let path = dir.path().join(format!("{round}.db"));
        let what = if round % 2 == 0 {
            std::fs::write(&path, &loose).unwrap();
            let connection = Connection::open(&path).unwrap();
            connection.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;").unwrap();
            damage_rows(&connection, &mut numbers)
        } else {
            let mut bytes = if numbers.below(2) == 0 { strict.clone() } else { loose.clone() };
            let what = damage_bytes(&mut bytes, &mut numbers);
            std::fs::write(&path, &bytes).unwrap();
            what
        };
        let what = format!("round {round}: {what}");
        match Database::import(&path, Database::options().quota(quota), &limits) {
            Ok((database, _)) => {
                taken_in += 1;
                use_it(&database, &what);
            }
            Err(Error::Refused { .. }) => {}
            Err(error) => panic!("{what}: {error:?}"),
        }
        std::fs::remove_file(&path).unwrap();
    }
    // Neither refuses everything nor takes everything.
    assert!(taken_in > rounds / 20 && taken_in < rounds * 19 / 20, "{taken_in} of {rounds}");
}
