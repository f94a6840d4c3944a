//! The past of a file of ours: versions, their labels and saved rows. Every value is checked, and values that can be computed
//! from others (sums, lists of inodes, digests) are not imported.
//!
//! A foreign file has none. Chunks of another size cannot be imported, nor can more than the budget allows: then only the current
//! state is imported, and a note reports it.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params, params_from_iter};

use super::convert::{check_name, integer, text};
use super::source::Source;
use super::{Import, Imported, refused};
use crate::error::Error;
use crate::node::{FileType, Ino, S_IFMT};
use crate::past::{self, ABSENT, ROW, Table, VERSION_MAX};
use crate::quota::Quota;
use crate::rows::{INO_MAX, TARGET_MAX, signed};
use crate::store::Store;

/// The name of the rule for versions.
const VERSION: &str = "version";
/// The name of the rule for saved rows.
const SAVED: &str = "saved row";

/// A value of an imported row.
type Value = rusqlite::types::Value;

/// The bytes and inodes of each version, computed from saved rows.
#[derive(Default)]
struct Sums {
    bytes: u64,
    inodes: Vec<Ino>,
}

/// The range of versions.
#[derive(Clone, Copy)]
struct Range {
    oldest: i64,
    newest: i64,
}

fn within(number: i64, range: std::ops::RangeInclusive<i64>, what: &str) -> Result<i64, Error> {
    if range.contains(&number) { Ok(number) } else { Err(refused(SAVED, format!("{what} is {number}"))) }
}

/// Reads one value of a saved row, by the name of its column.
fn value(table: Table, column: &str, row: &Row<'_>, index: usize, chunk_bytes: u64) -> Result<Value, Error> {
    let number = |range| within(integer(row, index, SAVED)?, range, column).map(Value::Integer);
    let name = || -> Result<Value, Error> {
        let name = text(row, index, SAVED)?;
        check_name(&name)?;
        Ok(Value::Text(name))
    };
    let blob = |least: u64, most: u64| match row.get_ref(index)? {
        ValueRef::Blob(bytes) if (least..=most).contains(&(bytes.len() as u64)) => Ok(Value::Blob(bytes.to_vec())),
        _ => Err(refused(SAVED, format!("`{column}` is not bytes of a valid length"))),
    };
    let inodes = 1..=signed(INO_MAX);
    match (table, column) {
        (_, "id" | "atime" | "mtime" | "ctime" | "created_at" | "updated_at" | "updated_ns") => number(i64::MIN..=i64::MAX),
        (_, "state") => number(ROW..=ABSENT),
        (_, "mode") => mode(integer(row, index, SAVED)?).map(Value::Integer),
        (_, "nlink" | "uid" | "gid") => number(0..=i64::from(u32::MAX)),
        (_, "size" | "entry" | "chunk_index") => number(0..=signed(INO_MAX)),
        // Devices are not imported.
        (_, "rdev") => Ok(Value::Integer(0)),
        (_, "atime_nsec" | "mtime_nsec" | "ctime_nsec") => number(0..=999_999_999),
        (_, "parent_ino" | "ino" | "dir") => number(inodes),
        (Table::Inode | Table::Dentry, "name") => name(),
        (_, "data") => blob(1, chunk_bytes),
        (_, "content") => blob(0, u64::MAX),
        (_, "target") => match text(row, index, SAVED)? {
            target if target.is_empty() || target.len() > TARGET_MAX || target.contains('\0') => {
                Err(refused(SAVED, "the target of a link is empty, too long or contains a zero byte"))
            }
            target => Ok(Value::Text(target)),
        },
        (_, "key") => match text(row, index, SAVED)? {
            key if key.len() > Quota::KEY_MAX => Err(refused(SAVED, format!("a key of {} bytes", key.len()))),
            key => Ok(Value::Text(key)),
        },
        (_, "version") => number(1..=i64::MAX),
        (_, "secret") => number(0..=1),
        (_, "path" | "parent_path") => {
            let path = text(row, index, SAVED)?;
            let names = path.strip_prefix('/').ok_or_else(|| refused(SAVED, format!("{path:?} is not absolute")))?;
            if !names.is_empty() || column == "path" {
                names.split('/').try_for_each(check_name)?;
            }
            Ok(Value::Text(path))
        }
        _ => Ok(Value::Text(text(row, index, SAVED)?)),
    }
}

/// Checks that a mode has a supported type, and removes the bits that an import omits.
fn mode(mode: i64) -> Result<i64, Error> {
    let number = u32::try_from(mode).ok().filter(|mode| *mode <= 0xFFFF);
    let number = number.ok_or_else(|| refused(SAVED, format!("mode is {mode}")))?;
    let kind = FileType::of_mode(number);
    if number & S_IFMT != kind.bits() || kind == FileType::Device {
        return Err(refused(SAVED, format!("mode is {number:o}")));
    }
    Ok(i64::from(kind.bits() | (number & super::convert::MODE_MASK)))
}

/// Returns whether a column may be NULL: a hint, or a column that a saved absence has no value for.
fn is_optional(column: &str, is_absent: bool) -> bool {
    match column {
        "dir" | "name_hint" => true,
        "id" | "state" | "parent_ino" | "name" | "key" | "part" | "path" => false,
        "created_at" | "updated_at" | "version" | "secret" | "parent_path" => true,
        _ => is_absent,
    }
}

impl Source {
    /// Returns whether the file has versions.
    fn has_versions(&self) -> Result<bool, Error> {
        if !(self.has("sandlite_version", "entries") && self.has("sandlite_version", "outside")) {
            return Ok(false);
        }
        Ok(self.connection.prepare("SELECT 1 FROM sandlite_version NOT INDEXED LIMIT 1")?.exists([])?)
    }

    /// Returns whether the numbers of entries must be kept because saved rows refer to them.
    pub(super) fn keeps_entries(&self) -> Result<bool, Error> {
        self.has_versions()
    }

    fn tables(&self) -> impl Iterator<Item = Table> + '_ {
        Table::ALL.into_iter().filter(|table| table.columns().iter().all(|column| self.has(table.name(), column)))
    }

    /// Returns the size of the saved rows, as [`crate::past::save`] counts them, and their number.
    fn past_size(&self) -> Result<(u64, u64), Error> {
        let (mut bytes, mut count) = (0u64, 0u64);
        for table in self.tables() {
            let lengths: Vec<String> = table.columns().iter().map(|column| format!("octet_length({column})")).collect();
            let mut statement =
                self.connection.prepare(&format!("SELECT {} FROM {} NOT INDEXED", lengths.join(", "), table.name()))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                count += 1;
                for (index, column) in table.columns().iter().enumerate() {
                    if matches!(*column, "name" | "data" | "target" | "key" | "value" | "part" | "content" | "path") {
                        bytes = bytes.saturating_add(crate::rows::bytes(row, index)?);
                    }
                }
                bytes = bytes.saturating_add(past::save::ROW_BYTES);
            }
        }
        Ok((bytes, count))
    }
}

impl Store {
    /// Imports the versions and their saved rows, replacing those that the import itself would create.
    pub(super) fn take_past(&mut self, source: &Source, import: &Import, imported: &mut Imported) -> Result<(), Error> {
        if !source.has_versions()? || !self.past.keeps {
            return Ok(());
        }
        let (bytes, count) = source.past_size()?;
        let reason = match () {
            () if source.chunk_bytes != self.chunk_bytes() as u64 => "its chunk size differs",
            () if bytes > self.past.allowed => "they exceed the limit `past`",
            () if count > import.max_rows => "they have too many rows",
            () => "",
        };
        if !reason.is_empty() {
            imported.note(format!("versions were omitted: {reason}"));
            return Ok(());
        }
        self.past.clear(&self.connection)?;
        let range = source.range()?;
        let mut sums: BTreeMap<i64, Sums> = BTreeMap::new();
        for table in source.tables() {
            self.connection.execute_batch(&past::making(table.name()))?;
            take_rows(&self.connection, source, table, range, &mut sums)?;
        }
        imported.versions = self.take_versions(source, import, &mut sums)?;
        take_labels(&self.connection, source, range)?;
        past::note_strangers(&self.connection, self.now())?;
        self.past.adopt();
        Ok(())
    }

    fn take_versions(&mut self, source: &Source, import: &Import, sums: &mut BTreeMap<i64, Sums>) -> Result<u64, Error> {
        let mut statement = source
            .connection
            .prepare("SELECT id, time_ns, call, mark, entries, outside FROM sandlite_version NOT INDEXED ORDER BY id")?;
        let mut rows = statement.query([])?;
        let (mut last, mut total, mut count): (Option<[i64; 4]>, u64, u64) = (None, 0, 0);
        while let Some(row) = rows.next()? {
            let number = |index: usize| integer(row, index, VERSION);
            let (id, mark, entries, outside) = (number(0)?, number(3)?, number(4)?, number(5)?);
            let is_valid = (0..VERSION_MAX).contains(&id)
                && (1..=signed(INO_MAX)).contains(&mark)
                && (0..=signed(INO_MAX)).contains(&entries)
                && (0..=id).contains(&outside)
                && last.is_none_or(|[before, least_mark, least_entries, visit]| {
                    id == before + 1 && mark >= least_mark && entries >= least_entries && (outside == visit || outside == id)
                });
            if !is_valid {
                return Err(refused(VERSION, format!("version {id}")));
            }
            let call = match row.get_ref(2)? {
                ValueRef::Null => None,
                _ => Some(number(2)?),
            };
            let Sums { bytes, inodes } = sums.remove(&id).unwrap_or_default();
            total = total.saturating_add(bytes);
            count += 1;
            if count > import.max_rows {
                return Err(refused("quota", "too many versions"));
            }
            self.connection
                .prepare_cached(
                    "INSERT INTO sandlite_version (id, time_ns, call, mark, entries, total, outside, inodes)
                     VALUES (?1, ?2, (SELECT id FROM tool_calls WHERE id=?3), ?4, ?5, ?6, ?7, ?8)",
                )?
                .execute(params![id, number(1)?, call, mark, entries, signed(total), outside, past::encode(inodes)])?;
            last = Some([id, mark, entries, outside]);
        }
        Ok(count)
    }
}

impl Source {
    /// Returns the oldest and the newest version.
    fn range(&self) -> Result<Range, Error> {
        let find = |order: &str| -> Result<i64, Error> {
            let mut statement =
                self.connection.prepare(&format!("SELECT id FROM sandlite_version NOT INDEXED ORDER BY id {order} LIMIT 1"))?;
            let mut rows = statement.query([])?;
            let Some(row) = rows.next()? else { return Err(refused(VERSION, "there are no versions")) };
            integer(row, 0, VERSION)
        };
        Ok(Range { oldest: find("ASC")?, newest: find("DESC")? })
    }
}

fn take_rows(
    connection: &Connection,
    source: &Source,
    table: Table,
    range: Range,
    sums: &mut BTreeMap<i64, Sums>,
) -> Result<(), Error> {
    let columns = table.columns();
    let names = columns.join(", ");
    let mut statement = source.connection.prepare(&format!("SELECT {names} FROM {} NOT INDEXED", table.name()))?;
    let places: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
    let mut insert = connection.prepare_cached(&format!("{} ({names}) VALUES ({})", table.insert(), places.join(", ")))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id = integer(row, 0, SAVED)?;
        let version = match table {
            Table::Inode => id & VERSION_MAX,
            _ => id >> past::NUMBER_BITS,
        };
        if id < 0 || version <= range.oldest || version > range.newest {
            return Err(refused(SAVED, format!("row {id} of `{}` does not belong to a version", table.name())));
        }
        let is_absent = columns.contains(&"state") && integer(row, 1, SAVED)? == ABSENT;
        let (mut values, mut bytes) = (Vec::with_capacity(columns.len()), past::save::ROW_BYTES);
        for (index, column) in columns.iter().enumerate() {
            let optional =
                is_optional(if matches!((table, *column), (Table::Inode, "name")) { "name_hint" } else { column }, is_absent);
            let value = match row.get_ref(index)? {
                ValueRef::Null if optional => Value::Null,
                _ => value(table, column, row, index, source.chunk_bytes)?,
            };
            bytes = bytes.saturating_add(match &value {
                Value::Text(text) => text.len() as u64,
                Value::Blob(blob) => blob.len() as u64,
                _ => 0,
            });
            values.push(value);
        }
        let sum = sums.entry(version).or_default();
        sum.bytes = sum.bytes.saturating_add(bytes);
        if matches!(table, Table::Inode) {
            let ino = u64::try_from(id >> past::VERSION_BITS).ok().filter(|ino| *ino > 0);
            sum.inodes.push(ino.ok_or_else(|| refused(SAVED, format!("row {id} has no inode")))?);
        }
        insert.execute(params_from_iter(values))?;
    }
    Ok(())
}

fn take_labels(connection: &Connection, source: &Source, range: Range) -> Result<(), Error> {
    const LABEL: &str = "label names a version";
    if !(source.has(past::LABELS, "name") && source.has(past::LABELS, "time_ns") && source.has(past::LABELS, "message")) {
        return Ok(());
    }
    let mut statement = source.connection.prepare("SELECT name, version, message, time_ns FROM sandlite_label NOT INDEXED")?;
    let (mut rows, mut bytes) = (statement.query([])?, 0_u64);
    while let Some(row) = rows.next()? {
        let (name, version) = (text(row, 0, LABEL)?, integer(row, 1, LABEL)?);
        let message = match row.get_ref(2)? {
            ValueRef::Null => None,
            _ => Some(text(row, 2, LABEL)?),
        };
        if !(range.oldest..=range.newest).contains(&version) || !past::is_label(&name, message.as_deref()) {
            return Err(refused(LABEL, format!("{:?}", name.chars().take(64).collect::<String>())));
        }
        bytes = bytes.saturating_add(past::label_bytes(&name, message.as_deref()));
        if bytes > past::LABELS_BYTES {
            return Err(refused("quota", "too many checkpoints"));
        }
        connection.execute_batch(&past::making(past::LABELS))?;
        connection
            .prepare_cached("INSERT INTO sandlite_label (name, version, message, time_ns) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![name, version, message, integer(row, 3, LABEL)?])?;
    }
    Ok(())
}
