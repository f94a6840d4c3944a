//! The past: the previous contents of rows, saved by each version that changes them, so that every version can be read in place.
//!
//! A transaction that changes anything is a version. Before it changes a row it saves the row in a parallel table (`save.rs`).
//! The state at a version is, for each key, the first row that a later version saved, or else the current row (`at.rs`). Numbers
//! of inodes and entries are never reused, and each version stores its first unused number, so rows that a version creates are
//! not saved at all. `docs/format.md` is the specification.

pub(crate) mod at;
mod changes;
mod counted;
pub(crate) mod digest;
mod labels;
pub(crate) mod remembered;
pub(crate) mod save;
mod versions;
mod visit;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::damaged;
use crate::format;
use crate::node::Ino;
use crate::rows::{self, INO_MAX};

pub use at::ChangedValues;
pub use labels::Label;
pub(crate) use labels::{LABELS_BYTES, is_label, label_bytes};
pub use versions::{Keep, Pruned, Version, VersionKind};
pub(crate) use versions::{has_strangers, note_strangers, note_visit, used};

/// Bits of a row's number that count within one version.
pub(crate) const NUMBER_BITS: u32 = 32;
/// Bits of an inode's saved row that are its version.
pub(crate) const VERSION_BITS: u32 = 31;
/// The maximum number of a version.
pub(crate) const VERSION_MAX: i64 = i32::MAX as i64;

/// The state of a saved row.
pub(crate) const ROW: i64 = 0;
/// The row did not exist.
pub(crate) const ABSENT: i64 = 1;

/// Returns the lowest row number of a version.
pub(crate) fn first_id(version: i64) -> i64 {
    version.clamp(0, VERSION_MAX) << NUMBER_BITS
}

/// Returns the number of an inode's saved row; `None` for an inode number that only a foreign file has.
pub(crate) fn inode_id(ino: Ino, version: i64) -> Option<i64> {
    let ino = u32::try_from(ino).ok()?;
    Some((i64::from(ino) << VERSION_BITS) | version.clamp(0, VERSION_MAX))
}

/// Encodes a list of numbers: the difference of each to the previous one, seven bits at a time.
pub(crate) fn encode(mut numbers: Vec<Ino>) -> Vec<u8> {
    numbers.sort_unstable();
    numbers.dedup();
    let (mut bytes, mut last) = (Vec::with_capacity(numbers.len() * 2), 0);
    for number in numbers {
        let mut step = number - last;
        last = number;
        while step >= 0x80 {
            bytes.push(u8::try_from(step & 0x7F).unwrap_or(0) | 0x80);
            step >>= 7;
        }
        bytes.push(u8::try_from(step).unwrap_or(0));
    }
    bytes
}

/// Decodes the list; `None` if the bytes are invalid.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<Ino>> {
    let (mut numbers, mut last, mut step, mut shift) = (Vec::new(), 0u64, 0u64, 0u32);
    for &byte in bytes {
        step |= u64::from(byte & 0x7F).checked_shl(shift).filter(|_| shift < 56)?;
        if byte & 0x80 != 0 {
            shift += 7;
            continue;
        }
        last = last.checked_add(step).filter(|last| *last <= INO_MAX)?;
        numbers.push(last);
        (step, shift) = (0, 0);
    }
    (shift == 0).then_some(numbers)
}

/// The tables of saved rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Table {
    Inode,
    Dentry,
    Data,
    Symlink,
    Key,
    Session,
    Whiteout,
}

impl Table {
    pub(crate) const ALL: [Self; 7] =
        [Self::Inode, Self::Dentry, Self::Data, Self::Symlink, Self::Key, Self::Session, Self::Whiteout];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Inode => "sandlite_past_inode",
            Self::Dentry => "sandlite_past_dentry",
            Self::Data => "sandlite_past_data",
            Self::Symlink => "sandlite_past_symlink",
            Self::Key => "sandlite_past_kv",
            Self::Session => "sandlite_past_session",
            Self::Whiteout => "sandlite_past_whiteout",
        }
    }

    /// Returns its columns, in order.
    #[rustfmt::skip]
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Inode => &[
                "id", "state", "mode", "nlink", "uid", "gid", "size", "atime", "mtime", "ctime", "rdev", "atime_nsec",
                "mtime_nsec", "ctime_nsec", "dir", "name",
            ],
            Self::Dentry => &["id", "state", "parent_ino", "name", "ino", "entry"],
            Self::Data => &["id", "ino", "chunk_index", "data"],
            Self::Symlink => &["id", "ino", "target"],
            Self::Key => &["id", "state", "key", "value", "created_at", "updated_at", "version", "secret"],
            Self::Session => &["id", "state", "name", "part", "content", "updated_ns"],
            Self::Whiteout => &["id", "state", "path", "parent_path", "created_at"],
        }
    }

    /// Returns the statement that removes all its rows.
    fn clear(self) -> &'static str {
        match self {
            Self::Inode => "DELETE FROM sandlite_past_inode",
            Self::Dentry => "DELETE FROM sandlite_past_dentry",
            Self::Data => "DELETE FROM sandlite_past_data",
            Self::Symlink => "DELETE FROM sandlite_past_symlink",
            Self::Key => "DELETE FROM sandlite_past_kv",
            Self::Session => "DELETE FROM sandlite_past_session",
            Self::Whiteout => "DELETE FROM sandlite_past_whiteout",
        }
    }

    /// Returns the statement that removes the rows with lower numbers.
    fn cut(self) -> &'static str {
        match self {
            Self::Inode => "DELETE FROM sandlite_past_inode WHERE id<?1",
            Self::Dentry => "DELETE FROM sandlite_past_dentry WHERE id<?1",
            Self::Data => "DELETE FROM sandlite_past_data WHERE id<?1",
            Self::Symlink => "DELETE FROM sandlite_past_symlink WHERE id<?1",
            Self::Key => "DELETE FROM sandlite_past_kv WHERE id<?1",
            Self::Session => "DELETE FROM sandlite_past_session WHERE id<?1",
            Self::Whiteout => "DELETE FROM sandlite_past_whiteout WHERE id<?1",
        }
    }

    /// Returns the beginning of a statement that adds rows.
    pub(crate) fn insert(self) -> &'static str {
        match self {
            Self::Inode => "INSERT INTO sandlite_past_inode",
            Self::Dentry => "INSERT INTO sandlite_past_dentry",
            Self::Data => "INSERT INTO sandlite_past_data",
            Self::Symlink => "INSERT INTO sandlite_past_symlink",
            Self::Key => "INSERT INTO sandlite_past_kv",
            Self::Session => "INSERT INTO sandlite_past_session",
            Self::Whiteout => "INSERT INTO sandlite_past_whiteout",
        }
    }
}

/// The existing tables of a file: each is created with its first row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables(u8);

impl Tables {
    pub(crate) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare_cached("SELECT name FROM sqlite_schema WHERE type='table'")?;
        let mut found = statement.query([])?;
        let mut tables = Self::default();
        while let Some(row) = found.next()? {
            let name = row.get_ref(0)?.as_str().unwrap_or_default();
            if let Some(table) = Table::ALL.into_iter().find(|table| table.name() == name) {
                tables.0 |= 1 << table as u8;
            }
        }
        Ok(tables)
    }

    pub(crate) fn has(self, table: Table) -> bool {
        self.0 & (1 << table as u8) != 0
    }

    /// Returns the existing tables.
    pub(crate) fn iter(self) -> impl Iterator<Item = Table> {
        Table::ALL.into_iter().filter(move |table| self.has(*table))
    }
}

/// The name of the table of labels.
pub(crate) const LABELS: &str = "sandlite_label";

/// Returns the statements that create a table of the past with its indexes, if missing.
pub(crate) fn making(table: &str) -> String {
    let (itself, index) = (format!(" {table} ("), format!(" ON {table}("));
    format::PAST.split_inclusive(';').filter(|text| text.contains(&itself) || text.contains(&index)).collect()
}

/// The newest version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) version: i64,
    /// The first inode number not used by any version.
    pub(crate) mark: Ino,
    /// The first number of a directory entry not used by any version.
    pub(crate) entries: i64,
    /// Bytes saved by all versions, including pruned ones.
    pub(crate) total: u64,
    /// The last version created by another program.
    pub(crate) outside: i64,
    /// Whether it has a row. The first version gets its row together with the second: writing a page twice in a large transaction
    /// would recompute all checksums of the log in between.
    pub(crate) is_stored: bool,
}

/// The state of saving rows in a transaction.
pub(crate) struct Past {
    /// Whether versions are kept at all.
    pub(crate) keeps: bool,
    /// Maximum size of the past, in bytes.
    pub(crate) allowed: u64,
    head: Cell<Option<Head>>,
    /// Whether another program wrote to the file since the newest version.
    is_visited: Cell<bool>,
    is_changed: Cell<bool>,
    bytes: Cell<u64>,
    /// Whether the transaction saves more than the whole budget, so that no earlier version can be kept.
    is_overflowed: Cell<bool>,
    /// The next number in each table; 0 if unknown.
    next: [Cell<i64>; 7],
    /// The saved inodes.
    inodes: RefCell<Vec<Ino>>,
    /// The inodes that the other program changed, as the list of its version.
    strangers: RefCell<Vec<u8>>,
    /// The existing tables of the file; `None` if unknown.
    tables: Cell<Option<Tables>>,
    /// The files with saved chunks; `None` if there are too many to remember.
    chunked: RefCell<Option<HashSet<Ino>>>,
}

/// Maximum number of files whose saved chunks are remembered; others are looked up.
const CHUNKED_MAX: usize = 1 << 16;

/// The state at a savepoint.
#[derive(Clone, Copy)]
pub(crate) struct PastMark {
    is_changed: bool,
    bytes: u64,
    is_overflowed: bool,
    inodes: usize,
    head: Option<Head>,
}

impl Past {
    pub(crate) fn new(keeps: bool, allowed: u64) -> Self {
        Self {
            keeps,
            allowed,
            head: Cell::new(None),
            is_visited: Cell::new(false),
            is_changed: Cell::new(false),
            bytes: Cell::new(0),
            is_overflowed: Cell::new(false),
            next: Default::default(),
            inodes: RefCell::default(),
            strangers: RefCell::default(),
            tables: Cell::new(None),
            chunked: RefCell::new(Some(HashSet::new())),
        }
    }

    /// Returns the existing tables of the file, looked up once.
    pub(crate) fn tables(&self, connection: &Connection) -> rusqlite::Result<Tables> {
        if let Some(tables) = self.tables.get() {
            return Ok(tables);
        }
        let tables = Tables::of(connection)?;
        self.tables.set(Some(tables));
        Ok(tables)
    }

    /// Creates a table if it is missing.
    fn make(&self, connection: &Connection, table: Table) -> rusqlite::Result<()> {
        if self.tables(connection)?.has(table) {
            return Ok(());
        }
        connection.execute_batch(&making(table.name()))?;
        self.tables.set(None);
        Ok(())
    }

    /// Returns the newest version, read once. A database without versions gets its first, which is the state before any change.
    pub(crate) fn head(&self, connection: &Connection) -> rusqlite::Result<Head> {
        if let Some(head) = self.head.get() {
            return Ok(head);
        }
        let head = match newest(connection)? {
            // Its changes are a separate version, stored with the next one.
            Some(head) if self.is_visited.get() => {
                self.strangers.replace(encode(visit::changed(connection, head.version)?));
                versions::visited(connection, head)?
            }
            Some(head) => head,
            None => versions::begin(connection)?,
        };
        self.head.set(Some(head));
        Ok(head)
    }

    /// Announces that rows are about to change, and returns the previous version.
    pub(crate) fn touch(&self, connection: &Connection) -> rusqlite::Result<Head> {
        self.is_changed.set(true);
        self.head(connection)
    }

    /// Records that another program wrote to the file while it was open.
    pub(crate) fn visit(&self) {
        self.is_visited.set(true);
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed.get()
    }

    /// Returns whether rows older than this transaction are saved.
    fn saves(&self) -> bool {
        self.keeps && self.allowed > 0 && !self.is_overflowed.get()
    }

    /// Returns the bytes that the transaction has saved.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Stops saving in this transaction, because there is no room and removals have to make some.
    pub(crate) fn give_up(&self) {
        self.is_overflowed.set(true);
    }

    pub(crate) fn mark(&self) -> PastMark {
        PastMark {
            is_changed: self.is_changed.get(),
            bytes: self.bytes.get(),
            is_overflowed: self.is_overflowed.get(),
            inodes: self.inodes.borrow().len(),
            head: self.head.get().filter(|head| !head.is_stored),
        }
    }

    pub(crate) fn return_to(&self, mark: PastMark) {
        self.forget();
        self.head.set(mark.head);
        self.is_changed.set(mark.is_changed);
        self.bytes.set(mark.bytes);
        self.is_overflowed.set(mark.is_overflowed);
        self.inodes.borrow_mut().truncate(mark.inodes);
    }

    /// Records that the versions of the transaction are committed.
    pub(crate) fn committed(&self) {
        if self.is_changed.get() {
            self.is_visited.set(false);
        }
    }

    /// Resets the state after a transaction.
    pub(crate) fn end(&self) {
        self.is_changed.set(false);
        self.bytes.set(0);
        self.is_overflowed.set(false);
        self.inodes.borrow_mut().clear();
        self.next.iter().for_each(|next| next.set(0));
        *self.chunked.borrow_mut() = Some(HashSet::new());
    }

    /// Removes all versions and saved rows, to be replaced by others.
    pub(crate) fn clear(&self, connection: &Connection) -> rusqlite::Result<()> {
        for table in Tables::of(connection)?.iter() {
            connection.execute_batch(table.clear())?;
        }
        connection.execute_batch("DELETE FROM sandlite_version")
    }

    /// Adopts imported versions: the transaction itself is not one.
    pub(crate) fn adopt(&self) {
        self.end();
        self.forget();
        self.is_visited.set(false);
    }

    /// Discards cached knowledge of the file.
    pub(crate) fn forget(&self) {
        self.head.set(None);
        self.tables.set(None);
        self.next.iter().for_each(|next| next.set(0));
    }

    /// Records that a version was stored.
    fn set_head(&self, head: Head) {
        self.head.set(Some(head));
    }
}

fn head_of(row: &Row<'_>) -> rusqlite::Result<Head> {
    let wrong = |what: &str| damaged(format!("the newest version has an invalid {what}"));
    let number = |column: usize, what: &str| row.get_ref(column)?.as_i64().map_err(|_| wrong(what));
    let version = number(0, "number")?;
    let mark = u64::try_from(number(1, "mark")?).ok().filter(|mark| (1..=INO_MAX).contains(mark));
    let entries = Some(number(2, "mark of entries")?).filter(|entries| (0..=rows::signed(INO_MAX)).contains(entries));
    if !(0..VERSION_MAX).contains(&version) {
        return Err(wrong("number"));
    }
    Ok(Head {
        version,
        mark: mark.ok_or_else(|| wrong("mark"))?,
        entries: entries.ok_or_else(|| wrong("mark of entries"))?,
        total: u64::try_from(number(3, "sum")?).map_err(|_| wrong("sum"))?,
        outside: number(4, "visit")?,
        is_stored: true,
    })
}

/// Returns the newest version, if any.
pub(crate) fn newest(connection: &Connection) -> rusqlite::Result<Option<Head>> {
    connection
        .prepare_cached("SELECT id, mark, entries, total, outside FROM sandlite_version ORDER BY id DESC LIMIT 1")?
        .query_row([], head_of)
        .optional()
}
