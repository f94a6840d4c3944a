//! Creates hostile databases: a valid one, and changes to it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::rows::{ROWS, SCHEMA};

/// How the database is called in its directory.
pub const NAME: &str = "x.db";

/// Random changes of bytes.
const MUTATIONS: u64 = 40;

/// Changes the files of a directory, next to the directory `canary`.
type Act = fn(&Path);

/// A kind of lie.
pub struct Lie {
    pub name: String,
    how: How,
}

enum How {
    Rows(&'static str),
    Schema(&'static str),
    Bytes(Act),
    Mutation(u64),
}

/// Every kind of lie.
pub fn lies() -> Vec<Lie> {
    let rows = ROWS.iter().map(|(name, sql)| Lie { name: (*name).to_owned(), how: How::Rows(sql) });
    let schema = SCHEMA.iter().map(|(name, sql)| Lie { name: (*name).to_owned(), how: How::Schema(sql) });
    let bytes = BYTES.iter().map(|(name, act)| Lie { name: (*name).to_owned(), how: How::Bytes(*act) });
    let mutations = (0..MUTATIONS).map(|seed| Lie { name: format!("mutation-{seed}"), how: How::Mutation(seed) });
    rows.chain(schema).chain(bytes).chain(mutations).collect()
}

/// The content of every database before it is changed.
const CONTENT: &str = "mkdir -p /home/user/a/b/c /home/user/.local/lib/python3.14/site-packages/p-1.dist-info
    cd /home/user; echo rc > /.bashrc; echo text > notes; seq 30000 > a/large; ln a/large hard; ln -s a/large soft
    echo small > a/b/c/small; mkdir /canary; echo inside > /canary/.bashrc; : > empty
    seq 20000 > changed; echo x > removed; ln -s a removed-link; mkdir before; echo y > before/inside
    printf 'Name: p\\nVersion: 1\\n' > .local/lib/python3.14/site-packages/p-1.dist-info/METADATA";

/// The changes of a second run, so that every table of the past has rows.
const CHANGES: &str =
    "cd /home/user; seq 3 > changed; rm removed removed-link; mv before after; echo z > after/inside; chmod 640 notes";

/// Makes the sound database.
pub fn sound(directory: &Path) -> PathBuf {
    let path = directory.join(NAME);
    for args in [
        &["bash", "--session", "s", "-c", CONTENT][..],
        &["kv", "set", "key", "{\"n\":1}"],
        &["bash", "--session", "s", "-c", "x=1; echo out; echo err >&2; exit 3"],
        &["bash", "-c", CHANGES],
        &["kv", "set", "key", "{\"n\":2}"],
        &["checkpoint", "named"],
        &["log", "--digest"],
        &["bash", "-c", "echo last > /home/user/changed"],
    ] {
        let mut command = Command::new(super::program());
        command.arg("--db").arg(&path).args(args).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap();
    }
    let connection = Connection::open(&path).unwrap();
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM fs_dentry WHERE name IN ('large', 'soft', 'small', 'notes')"), 4);
    assert!(count("SELECT count(*) FROM sandlite_run") >= 2 && count("SELECT count(*) FROM sandlite_session") > 0);
    for table in ["inode", "dentry", "data", "symlink", "kv", "session"] {
        assert!(count(&format!("SELECT count(*) FROM sandlite_past_{table}")) > 0, "{table}");
    }
    assert!(count("SELECT count(*) FROM sandlite_digest") > 0 && count("SELECT count(*) FROM sandlite_label") > 0);
    path
}

impl Lie {
    /// Makes a database that lies from a sound one, in an empty directory.
    pub fn make(&self, sound: &Path, directory: &Path) {
        let path = directory.join(NAME);
        fs::copy(sound, &path).unwrap();
        match self.how {
            How::Rows(sql) => change(&path, sql),
            How::Schema(sql) => change_schema(&path, sql),
            How::Bytes(act) => act(&path),
            How::Mutation(seed) => mutate(&path, seed),
        }
    }
}

fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
    connection.execute_batch("PRAGMA synchronous=OFF; PRAGMA foreign_keys=OFF; PRAGMA ignore_check_constraints=ON").unwrap();
    connection
}

// `INO(x)` is the inode of a name.
fn with_inodes(sql: &str) -> String {
    let mut out = String::new();
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once("INO(") {
        let (name, after) = after.split_once(')').unwrap();
        out.push_str(&format!("{before}(SELECT ino FROM fs_dentry WHERE name='{name}')"));
        rest = after;
    }
    out + rest
}

fn change(path: &Path, sql: &str) {
    open(path).execute_batch(&with_inodes(sql)).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn change_schema(path: &Path, sql: &str) {
    for statement in split(sql) {
        let connection = open(path);
        connection.execute_batch("PRAGMA writable_schema=ON").unwrap();
        let sql = match statement.strip_prefix("SET(") {
            None => with_inodes(&statement),
            Some(change) => {
                let [table, old, new] = change.splitn(3, ", ").collect::<Vec<_>>().try_into().unwrap();
                let new = new.strip_suffix(')').unwrap();
                let quote = |text: &str| text.replace('\'', "''");
                format!("UPDATE sqlite_schema SET sql=replace(sql, '{}', '{}') WHERE name='{table}'", quote(old), quote(new))
            }
        };
        connection.execute_batch(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

// Statements end with a semicolon at the end of one; a trigger has some inside.
fn split(sql: &str) -> Vec<String> {
    if sql.contains("CREATE TRIGGER") {
        return vec![sql.to_owned()];
    }
    sql.split("; ").map(|statement| statement.trim().to_owned()).filter(|statement| !statement.is_empty()).collect()
}

/// The same numbers on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn mutate(path: &Path, seed: u64) {
    let mut numbers = Numbers(seed + 1);
    numbers.below(2);
    let mut bytes = fs::read(path).unwrap();
    let (page, len) = (page_size(&bytes), bytes.len());
    match seed % 4 {
        0 => (0..1 + numbers.below(50)).for_each(|_| bytes[numbers.below(len)] = numbers.below(256) as u8),
        // The headers of pages and the first of the places where their rows are.
        1 => (0..3).for_each(|_| bytes[numbers.below(len / page) * page + numbers.below(60)] ^= 1 << numbers.below(8)),
        2 => bytes[16 + numbers.below(page - 16)] ^= 1 << numbers.below(8),
        _ => {
            let (from, to) = (numbers.below(len / page) * page, numbers.below(len / page) * page);
            bytes.copy_within(from..from + page, to);
        }
    }
    fs::write(path, bytes).unwrap();
}

fn page_size(bytes: &[u8]) -> usize {
    match usize::from(u16::from_be_bytes([bytes[16], bytes[17]])) {
        1 => 65_536,
        size => size,
    }
}

fn patch(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn root_page(path: &Path, name: &str) -> usize {
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name=?1";
    open(path).query_row(sql, [name], |row| row.get::<_, i64>(0)).unwrap() as usize
}

// Makes the root of a table or index name one page a hundred times, which names one page a hundred times, and so on: a few
// pages that look like more rows than anybody can count.
fn bomb(path: &Path, name: &str, interior: u8) {
    let root = root_page(path, name);
    patch(path, |bytes| {
        let size = page_size(bytes);
        let at = |number: usize| (number - 1) * size;
        // The content of the root is moved to a new page, with eight levels above it.
        let leaf = bytes[at(root)..at(root) + size].to_vec();
        let first = bytes.len() / size + 1;
        bytes.extend_from_slice(&leaf);
        let mut below = first;
        for level in 0..8 {
            let number = if level == 7 { root } else { first + 1 + level };
            let mut page = vec![0; size];
            let cells = 100usize;
            page[0] = interior;
            page[3..5].copy_from_slice(&(cells as u16).to_be_bytes());
            page[8..12].copy_from_slice(&(below as u32).to_be_bytes());
            let mut end = size;
            for cell in 0..cells {
                end -= 8;
                page[end..end + 4].copy_from_slice(&(below as u32).to_be_bytes());
                // A key of a table is a number, one of an index a record.
                let key: [u8; 4] = if interior == 5 { [0x81, 0x01 + (cell % 100) as u8, 0, 0] } else { [2, 2, 1, 1] };
                page[end + 4..end + 8].copy_from_slice(&key);
                page[12 + 2 * cell..14 + 2 * cell].copy_from_slice(&(end as u16).to_be_bytes());
            }
            page[5..7].copy_from_slice(&(end as u16).to_be_bytes());
            if number == root {
                bytes[at(root)..at(root) + size].copy_from_slice(&page);
            } else {
                bytes.extend_from_slice(&page);
            }
            below = number;
        }
        let pages = (bytes.len() / size) as u32;
        bytes[28..32].copy_from_slice(&pages.to_be_bytes());
    });
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

// A journal that belongs to a transaction over several databases: SQLite deletes the file that it names.
fn journal_that_deletes(path: &Path) {
    const MAGIC: [u8; 8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7];
    let bytes = fs::read(path).unwrap();
    let size = page_size(&bytes);
    let mut journal = MAGIC.to_vec();
    for number in [0u32, 1, (bytes.len() / size) as u32, 512, size as u32] {
        journal.extend_from_slice(&number.to_be_bytes());
    }
    journal.resize(512, 0);
    // The canary of the case: each has its own, so a relative name.
    let name = b"../canary/.bashrc";
    journal.extend_from_slice(&((0x4000_0000 / size) as u32 + 1).to_be_bytes());
    journal.extend_from_slice(name);
    journal.extend_from_slice(&(name.len() as u32).to_be_bytes());
    journal.extend_from_slice(&name.iter().map(|byte| u32::from(*byte)).sum::<u32>().to_be_bytes());
    journal.extend_from_slice(&MAGIC);
    fs::write(beside(path, "-journal"), journal).unwrap();
}

fn replace_by_link(path: &Path, target: &str) {
    fs::remove_file(path).unwrap();
    symlink(target, path).unwrap();
}

/// Changes that SQL cannot make.
const BYTES: &[(&str, Act)] = &[
    ("sound", |_| {}),
    ("empty-file", |path| fs::write(path, b"").unwrap()),
    ("zeros", |path| fs::write(path, vec![0; 100_000]).unwrap()),
    ("text-file", |path| fs::write(path, "not a database\n".repeat(5000)).unwrap()),
    ("header-only", |path| patch(path, |bytes| bytes.truncate(100))),
    ("half", |path| patch(path, |bytes| bytes.truncate(bytes.len() / 2))),
    ("odd-length", |path| patch(path, |bytes| bytes.truncate(bytes.len() - 777))),
    ("pages-claimed", |path| patch(path, |bytes| bytes[28..32].copy_from_slice(&[0xFF; 4]))),
    ("sparse-terabyte", |path| {
        patch(path, |bytes| bytes[28..32].copy_from_slice(&0x0400_0000u32.to_be_bytes()));
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
    }),
    ("page-size-512", |path| patch(path, |bytes| bytes[16..18].copy_from_slice(&512u16.to_be_bytes()))),
    ("page-size-3", |path| patch(path, |bytes| bytes[16..18].copy_from_slice(&3u16.to_be_bytes()))),
    ("reserved-bytes", |path| patch(path, |bytes| bytes[20] = 255)),
    ("freelist-circle", |path| {
        patch(path, |bytes| {
            bytes[32..36].copy_from_slice(&2u32.to_be_bytes());
            bytes[36..40].copy_from_slice(&0x7FFF_FFFFu32.to_be_bytes());
        })
    }),
    ("encoding-16", |path| {
        let text = open(path).query_row("SELECT hex(value) FROM fs_config", [], |row| row.get::<_, String>(0)).unwrap();
        assert!(!text.is_empty());
        patch(path, |bytes| bytes[59] = 2);
    }),
    ("other-application", |path| change(path, "PRAGMA application_id=7")),
    ("later-format", |path| change(path, "PRAGMA user_version=99")),
    ("negative-format", |path| change(path, "PRAGMA user_version=-1")),
    ("plain-journal", |path| change(path, "PRAGMA journal_mode=DELETE")),
    ("pages-of-4-kb", |path| change(path, "PRAGMA journal_mode=DELETE; PRAGMA page_size=4096; VACUUM")),
    ("bomb-inodes", |path| bomb(path, "fs_inode", 5)),
    ("bomb-entries", |path| bomb(path, "fs_dentry", 5)),
    ("bomb-entries-index", |path| bomb(path, "idx_fs_dentry_parent", 2)),
    ("bomb-data", |path| bomb(path, "fs_data", 5)),
    ("bomb-data-index", |path| bomb(path, "sqlite_autoindex_fs_data_1", 2)),
    ("bomb-keys", |path| bomb(path, "kv_store", 5)),
    ("bomb-keys-index", |path| bomb(path, "sqlite_autoindex_kv_store_1", 2)),
    ("bomb-calls", |path| bomb(path, "tool_calls", 5)),
    ("bomb-runs", |path| bomb(path, "sandlite_run", 5)),
    ("bomb-sessions", |path| bomb(path, "sandlite_session", 5)),
    ("bomb-visited", |path| {
        change(path, "CREATE INDEX idx_tool_calls_name ON tool_calls(name)");
        bomb(path, "idx_tool_calls_name", 2);
    }),
    ("page-of-ones", |path| {
        let root = root_page(path, "fs_inode");
        patch(path, |bytes| {
            let size = page_size(bytes);
            bytes[(root - 1) * size..root * size].fill(0xFF);
        });
    }),
    ("index-of-another", |path| {
        change_schema(
            path,
            "UPDATE sqlite_schema SET rootpage=(SELECT rootpage FROM sqlite_schema WHERE name='sqlite_autoindex_kv_store_1')
               WHERE name='sqlite_autoindex_fs_data_1'",
        );
    }),
    ("journal-that-deletes", journal_that_deletes),
    ("journal-garbage", |path| fs::write(beside(path, "-journal"), vec![0xD9; 5000]).unwrap()),
    ("journal-link", |path| symlink("../canary/.bashrc", beside(path, "-journal")).unwrap()),
    ("log-garbage", |path| fs::write(beside(path, "-wal"), vec![0x37; 50_000]).unwrap()),
    ("log-link", |path| symlink("../canary/.bashrc", beside(path, "-wal")).unwrap()),
    ("log-directory", |path| fs::create_dir(beside(path, "-wal")).unwrap()),
    ("shared-memory-link", |path| symlink("../canary/.bashrc", beside(path, "-shm")).unwrap()),
    ("running-link", |path| symlink("../canary/.bashrc", beside(path, "-running")).unwrap()),
    ("running-link-new", |path| symlink("../canary/planted", beside(path, "-running")).unwrap()),
    ("running-garbage", |path| fs::write(beside(path, "-running"), vec![0x31; 5000]).unwrap()),
    ("running-huge", |path| fs::File::create(beside(path, "-running")).unwrap().set_len(20 << 30).unwrap()),
    ("running-pipe", |path| {
        rustix::fs::mknodat(rustix::fs::CWD, beside(path, "-running"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }),
    ("is-a-link", |path| replace_by_link(path, "../canary/.bashrc")),
    ("is-a-link-to-nothing", |path| replace_by_link(path, "../canary/planted")),
    ("is-a-device", |path| replace_by_link(path, "/dev/zero")),
    ("is-a-directory", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }),
    ("is-a-pipe", |path| {
        fs::remove_file(path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }),
];
