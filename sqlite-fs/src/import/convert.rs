//! Converts the rows of a foreign file to ours: every value is checked.

use std::collections::HashSet;

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row};

use super::source::Source;
use super::{Import, Imported, quota, refused, too_much};
use crate::budget::{entry_bytes, key_bytes, session_bytes};
use crate::error::{Error, FsError};
use crate::node::{FileType, Ino, S_IFMT, Stat, is_name};
use crate::quota::Quota;
use crate::rows::{INO_MAX, join, split};
use crate::schema;
use crate::settings;
use crate::store::{Store, write};

/// Permissions that are kept: no set-user-ID, no set-group-ID.
pub(super) const MODE_MASK: u32 = 0o1777;
/// Larger times are in milliseconds: as seconds they would be after the year 5000.
pub(super) const MILLISECONDS: u64 = 100_000_000_000;
/// LocalSandbox stores a symbolic link as a file with JSON of at most this size: the longest target, every byte escaped.
const FAKE_LINK_MAX: u64 = 6 * 4095 + 32;

/// Reads an integer column.
pub(super) fn integer(row: &Row<'_>, index: usize, what: &'static str) -> Result<i64, Error> {
    match row.get_ref(index)? {
        ValueRef::Integer(number) => Ok(number),
        other => Err(refused(what, format!("column {index} is {} instead of an integer", other.data_type()))),
    }
}

/// Reads a text column, which must be UTF-8.
pub(super) fn text(row: &Row<'_>, index: usize, what: &'static str) -> Result<String, Error> {
    match row.get_ref(index)? {
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| refused(what, format!("column {index} is not UTF-8")))
        }
        other => Err(refused(what, format!("column {index} is {} instead of text", other.data_type()))),
    }
}

/// Reads a text column that may be missing; AgentFS's Rust SDK writes an empty text for that.
pub(super) fn optional_text(row: &Row<'_>, index: usize, what: &'static str) -> Result<Option<String>, Error> {
    match row.get_ref(index)? {
        ValueRef::Null => Ok(None),
        _ => text(row, index, what).map(|text| (!text.is_empty()).then_some(text)),
    }
}

fn time(seconds: i64, nanos: i64) -> i64 {
    if seconds.unsigned_abs() > MILLISECONDS { seconds.saturating_mul(1_000_000) } else { join(seconds, nanos) }
}

fn number(row: &Row<'_>, index: usize) -> Result<u32, Error> {
    let number = integer(row, index, "inode values")?;
    u32::try_from(number).map_err(|_| refused("inode values", format!("{number} in column {index}")))
}

/// Reads one inode; `None` for a device or socket.
fn inode(row: &Row<'_>) -> Result<(Ino, Option<Stat>), Error> {
    let ino = integer(row, 0, "inode values")?;
    if !u64::try_from(ino).is_ok_and(|ino| (1..INO_MAX).contains(&ino)) {
        return Err(refused("inode values", format!("inode {ino}")));
    }
    let ino = ino.unsigned_abs();
    let mode = number(row, 1)?;
    let size = u64::try_from(integer(row, 4, "inode values")?)
        .map_err(|_| refused("inode values", format!("inode {ino} has a negative size")))?;
    let mut times = [0; 3];
    for (index, slot) in times.iter_mut().enumerate() {
        *slot = time(integer(row, 5 + index, "inode values")?, integer(row, 8 + index, "inode values")?);
    }
    let kind = FileType::of_mode(mode);
    if mode & S_IFMT != kind.bits() {
        return Ok((ino, None));
    }
    let [atime, mtime, ctime] = times;
    let mode = kind.bits() | (mode & if kind == FileType::Symlink { 0o777 } else { MODE_MASK });
    let (uid, gid) = (number(row, 2)?, number(row, 3)?);
    Ok((ino, Some(Stat { ino, mode, nlink: 1, uid, gid, rdev: 0, size, atime, mtime, ctime })))
}

impl Source {
    /// Reads every inode, in unspecified order.
    fn inodes(&self, mut each: impl FnMut(Ino, Option<Stat>) -> Result<(), Error>) -> Result<(), Error> {
        let or_zero = |column| self.column_or("fs_inode", column, "0");
        let query = format!(
            "SELECT ino, mode, {}, {}, size, {}, {}, {}, {}, {}, {} FROM fs_inode NOT INDEXED",
            or_zero("uid"),
            or_zero("gid"),
            or_zero("atime"),
            or_zero("mtime"),
            or_zero("ctime"),
            or_zero("atime_nsec"),
            or_zero("mtime_nsec"),
            or_zero("ctime_nsec")
        );
        let mut statement = self.connection.prepare(&query)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (ino, stat) = inode(row)?;
            each(ino, stat)?;
        }
        Ok(())
    }
}

pub(super) fn check_name(name: &str) -> Result<(), Error> {
    if is_name(name) { Ok(()) } else { Err(refused("name", format!("{name:?}"))) }
}

impl Store {
    /// Imports inodes, names and targets; contents follow later.
    pub(super) fn take_names(&mut self, source: &Source, import: &Import, imported: &mut Imported) -> Result<(), Error> {
        let mut special = HashSet::new();
        let (mut count, mut bytes) = (0u64, 0u64);
        write::remove_all_inodes(&self.connection)?;
        source.inodes(|ino, stat| {
            let Some(stat) = stat else {
                special.insert(ino);
                return Ok(());
            };
            count += 1;
            if stat.is_file() {
                bytes = bytes.saturating_add(stat.size);
            }
            if count > import.max_rows || count > self.quota.inodes {
                return Err(refused("quota", "too many inodes"));
            }
            if bytes > import.max_bytes || bytes > self.quota.bytes || stat.size > self.quota.file_size {
                return Err(refused("quota", format!("inode {ino}: the files are too large")));
            }
            let size = if stat.is_file() { 0 } else { stat.size };
            let inserted = write::import_inode(&self.connection, &Stat { size, ..stat })?;
            if inserted { Ok(()) } else { Err(refused("inode values", format!("duplicate inode {ino}"))) }
        })?;
        imported.inodes = count;
        self.take_entries(source, import, &special, imported)?;
        self.take_targets(source)?;
        self.put_right(imported)
    }

    fn take_entries(
        &mut self,
        source: &Source,
        import: &Import,
        special: &HashSet<Ino>,
        imported: &mut Imported,
    ) -> Result<(), Error> {
        let keeps_numbers = source.keeps_entries()?;
        let number = if keeps_numbers { source.column_or("fs_dentry", "id", "NULL") } else { "NULL" };
        let query = format!("SELECT parent_ino, name, ino, {number} FROM fs_dentry NOT INDEXED");
        let mut statement = source.connection.prepare(&query)?;
        let mut rows = statement.query([])?;
        let (mut count, mut bytes) = (0, 0u64);
        while let Some(row) = rows.next()? {
            let (parent, ino) = (integer(row, 0, "entry")?, integer(row, 2, "entry")?);
            let name = text(row, 1, "name")?;
            check_name(&name)?;
            count += 1;
            if count > import.max_rows {
                return Err(refused("quota", "too many names"));
            }
            if u64::try_from(ino).is_ok_and(|ino| special.contains(&ino)) {
                imported.note(format!("`{name}` is a device or socket: omitted"));
                continue;
            }
            bytes = bytes.saturating_add(entry_bytes(&name));
            too_much("names", bytes, self.quota.names)?;
            let number = match row.get_ref(3)? {
                ValueRef::Null => None,
                _ => Some(integer(row, 3, "entry")?),
            };
            if number.is_some_and(|number| !u64::try_from(number).is_ok_and(|number| (1..INO_MAX).contains(&number))) {
                return Err(refused("entry", format!("number {number:?}")));
            }
            if !write::import_name(&self.connection, number, (parent, &name), ino)? {
                return Err(refused("name is unique", format!("duplicate name {name:?} in directory {parent}")));
            }
        }
        Ok(())
    }

    fn take_targets(&mut self, source: &Source) -> Result<(), Error> {
        if !source.has("fs_symlink", "target") {
            return Ok(());
        }
        let mut statement = source.connection.prepare("SELECT ino, target FROM fs_symlink NOT INDEXED")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (ino, target) = (integer(row, 0, "symbolic link has a target")?, text(row, 1, "symbolic link has a target")?);
            // A target without a link is meaningless, so it is omitted.
            write::import_target(&self.connection, ino, &target)?;
        }
        Ok(())
    }

    /// An overlay's file is one layer: its base is a directory on another machine and is not imported. Paths that the layer hides
    /// stay hidden wherever a base is attached again.
    pub(super) fn take_overlay(&mut self, source: &Source, imported: &mut Imported) -> Result<(), Error> {
        if source.has("fs_overlay_config", "value") && source.has("fs_overlay_config", "key") {
            let mut statement =
                source.connection.prepare("SELECT value FROM fs_overlay_config NOT INDEXED WHERE key='base_path'")?;
            let mut rows = statement.query([])?;
            if let Some(row) = rows.next()? {
                let base = text(row, 0, "overlay")?;
                imported.note(format!("the file is an overlay of `{base}`: files that exist only in the base were not imported"));
            }
        }
        if source.has("fs_whiteout", "path") {
            let mut statement = source.connection.prepare("SELECT path FROM fs_whiteout NOT INDEXED")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let path = text(row, 0, "overlay")?;
                let names = path.strip_prefix('/').ok_or_else(|| refused("overlay", format!("{path:?} is not absolute")))?;
                names.split('/').try_for_each(check_name)?;
                self.run(|store| store.hide(&path))?;
            }
        }
        if source.has("fs_origin", "delta_ino") {
            let mut statement = source.connection.prepare("SELECT delta_ino FROM fs_origin NOT INDEXED")?;
            let mut rows = statement.query([])?;
            let mut count = 0u64;
            while let Some(row) = rows.next()? {
                integer(row, 0, "overlay")?;
                count += 1;
            }
            if count > 0 {
                imported.note(format!("{count} origins of copied files were omitted"));
            }
        }
        Ok(())
    }

    /// Corrects the result of a careless but honest writer: inodes without a name, and its own link counts.
    fn put_right(&mut self, imported: &mut Imported) -> Result<(), Error> {
        let orphans = schema::put_right(&self.connection)?;
        if orphans > 0 {
            imported.inodes -= orphans as u64;
            imported.note(format!("{orphans} inodes without a name were omitted"));
        }
        Ok(())
    }

    /// Imports the bytes of every file, in chunks of our own size.
    pub(super) fn take_contents(&mut self, source: &Source, imported: &mut Imported) -> Result<(), Error> {
        let mut statement = source.connection.prepare("SELECT ino, chunk_index, data FROM fs_data NOT INDEXED")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (ino, index) = (integer(row, 0, "chunk")?, integer(row, 1, "chunk")?);
            let detail = || format!("inode {ino} chunk {index}");
            let ValueRef::Blob(data) = row.get_ref(2)? else { return Err(refused("chunk", detail())) };
            let (Ok(node), Ok(index)) = (u64::try_from(ino), u64::try_from(index)) else {
                return Err(refused("chunk", detail()));
            };
            if data.len() as u64 > source.chunk_bytes {
                return Err(refused("chunk", format!("{} is longer than the chunk size", detail())));
            }
            let offset = index.checked_mul(source.chunk_bytes).ok_or_else(|| refused("chunk", detail()))?;
            let written = self.run(|store| store.write(node, offset, data));
            match written.map_err(|fault| fault.as_fs()) {
                Ok(written) if written == data.len() => {}
                Ok(_) => return Err(refused("quota", detail())),
                // Omitted with its inode.
                Err(FsError::NoEntry) => {}
                Err(FsError::IsDirectory | FsError::Invalid) => return Err(refused("data belongs to a file", detail())),
                Err(error) => return Err(quota(error, detail())),
            }
        }
        self.take_sizes(source, imported)
    }

    /// Sets each file to the size in its inode: holes become zeros, bytes beyond it are cut off.
    fn take_sizes(&mut self, source: &Source, imported: &mut Imported) -> Result<(), Error> {
        source.inodes(|ino, stat| {
            let Some(stat) = stat.filter(Stat::is_file) else { return Ok(()) };
            let nlink = match self.run(|store| store.stat(ino)).map_err(|fault| fault.as_fs()) {
                Ok(now) => {
                    if now.size > stat.size {
                        imported.note(format!("inode {ino} was truncated to its size of {} bytes", stat.size));
                    } else if now.size < stat.size {
                        imported.note(format!("inode {ino} was extended to its size of {} bytes", stat.size));
                    }
                    now.nlink
                }
                Err(FsError::NoEntry) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            self.run(|store| store.truncate(ino, stat.size)).map_err(|fault| quota(fault.as_fs(), format!("inode {ino}")))?;
            self.run(|store| store.set_stat(Stat { nlink, ..stat }))?;
            if source.is_old_layout() && stat.size <= FAKE_LINK_MAX {
                self.take_fake_link(ino, stat, nlink)?;
            }
            Ok(())
        })
    }

    /// Converts LocalSandbox's `ln -s`, which writes `{"__symlink":"target"}` into a regular file.
    fn take_fake_link(&mut self, ino: Ino, stat: Stat, nlink: u32) -> Result<(), Error> {
        let mut bytes = vec![0; usize::try_from(stat.size).unwrap_or(0)];
        self.run(|store| store.read(ino, 0, &mut bytes))?;
        let Some(json) = std::str::from_utf8(&bytes).ok().filter(|text| text.contains("\"__symlink\"")) else {
            return Ok(());
        };
        let target: Option<String> = self
            .connection
            .prepare_cached(
                "SELECT CASE WHEN json_valid(?1) AND json_type(?1)='object' AND json_type(?1, '$.__symlink')='text'
                   AND (SELECT count(*) FROM json_each(?1))=1 THEN json_extract(?1, '$.__symlink') END",
            )?
            .query_row([json], |row| row.get(0))
            .optional()?
            .flatten();
        let Some(target) = target.filter(|target| !target.is_empty() && !target.contains('\0')) else { return Ok(()) };
        self.run(|store| store.truncate(ino, 0))?;
        write::add_target(&self.connection, &self.past, ino, &target)?;
        let mode = FileType::Symlink.bits() | 0o777;
        Ok(self.run(|store| store.set_stat(Stat { mode, nlink, size: target.len() as u64, ..stat }))?)
    }

    pub(super) fn take_keys(&mut self, source: &Source, imported: &mut Imported) -> Result<(), Error> {
        if source.has("kv_store", "value") {
            let (created, updated) =
                (source.column_or("kv_store", "created_at", "0"), source.column_or("kv_store", "updated_at", "0"));
            let query = format!("SELECT key, value, {created}, {updated} FROM kv_store NOT INDEXED");
            let mut statement = source.connection.prepare(&query)?;
            let mut rows = statement.query([])?;
            let mut bytes = 0u64;
            while let Some(row) = rows.next()? {
                let (key, value) = (text(row, 0, "key and value")?, text(row, 1, "key and value")?);
                if key.len() > Quota::KEY_MAX {
                    return Err(refused("key and value", format!("a key of {} bytes", key.len())));
                }
                bytes = bytes.saturating_add(key_bytes(&key, value.len() as u64));
                too_much("keys", bytes, self.quota.keys)?;
                let when = |index| match row.get_ref(index) {
                    Ok(ValueRef::Integer(seconds)) => split(time(seconds, 0)).0,
                    _ => 0,
                };
                write::import_key(&self.connection, &key, &value, when(2), when(3))?;
                imported.keys += 1;
            }
        }
        if source.has("sandlite_kv", "version") && source.has("sandlite_kv", "secret") {
            let mut statement = source.connection.prepare("SELECT key, version, secret FROM sandlite_kv NOT INDEXED")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (key, version) = (text(row, 0, "key and value")?, integer(row, 1, "key and value")?);
                let secret = integer(row, 2, "key and value")? != 0;
                write::import_key_version(&self.connection, &key, version.max(1), secret)?;
            }
        }
        Ok(())
    }

    /// Imports sessions. They are only passed back to a guest, which checks them, so they need only be bytes with a name.
    pub(super) fn take_sessions(&mut self, source: &Source) -> Result<(), Error> {
        if !(source.has("sandlite_session", "state") && source.has("sandlite_session", "updated_ns")) {
            return Ok(());
        }
        let mut statement =
            source.connection.prepare("SELECT name, part, state, updated_ns FROM sandlite_session NOT INDEXED")?;
        let mut rows = statement.query([])?;
        let mut bytes = 0u64;
        while let Some(row) = rows.next()? {
            let (name, part) = (text(row, 0, "session")?, text(row, 1, "session")?);
            let ValueRef::Blob(state) = row.get_ref(2)? else { return Err(refused("session", format!("{name:?} has no bytes"))) };
            bytes = bytes.saturating_add(session_bytes(&name, &part, state.len() as u64));
            too_much("sessions", bytes, self.quota.sessions)?;
            write::import_session(&self.connection, &name, &part, state, integer(row, 3, "session")?)?;
        }
        Ok(())
    }

    /// Imports the policy, so that the imported sandbox is restricted as before. Other settings concern the file itself.
    pub(super) fn take_policy(&mut self, source: &Source) -> Result<(), Error> {
        if !(source.has("sandlite_setting", "name") && source.has("sandlite_setting", "value")) {
            return Ok(());
        }
        let mut statement =
            source.connection.prepare("SELECT value FROM sandlite_setting NOT INDEXED WHERE name='policy' LIMIT 1")?;
        let mut rows = statement.query([])?;
        if let Some(row) = rows.next()? {
            let policy = text(row, 0, "policy")?;
            if policy.len() > settings::VALUE_MAX {
                return Err(refused("policy", "the policy is too long"));
            }
            self.connection.execute_batch(settings::TABLE)?;
            write::put_setting(&self.connection, "policy", Some(&policy))?;
        }
        Ok(())
    }
}
