//! The digest of a version's tree: one for each directory, computed from those of its entries.
//!
//! It covers names, types, permission bits, contents and targets. Inode numbers, owners, times and hard links are ignored, so
//! equal trees have equal digests however they were created. `docs/format.md` specifies the bytes.
//!
//! A digest is computed on demand and stored in its version's row. The digests of single inodes are stored for the newest
//! requested version (`sandlite_digest`), so that the cost of the next one is proportional to the changes.

use std::collections::HashSet;
use std::time::Instant;

use rusqlite::{Connection, OptionalExtension, params};

use super::at;
use super::versions;
use crate::clock;
use crate::database::Database;
use crate::error::{Error, Fault, FsError, damaged};
use crate::fs::Volume;
use crate::node::{Entry, FileType, Ino, ROOT, Stat};
use crate::path::Tree as _;
use crate::quota::Quota;
use crate::reader::Reader;
use crate::rows::{self, signed};
use crate::store::InoMap;

/// The table of single digests.
pub(crate) const TABLE: &str = "sandlite_digest";
/// The row of that table that contains its version, in the column of parents.
const VERSION_ROW: i64 = 0;
/// The domain separator of these digests.
pub(super) const CONTEXT: &str = "sandlite 2026-11-18 tree";
/// Number of bytes of a file hashed at once.
const STEP_BYTES: usize = 256 << 10;
/// Number of directory entries listed at once.
pub(super) const ENTRIES: usize = 1024;

pub(super) type Digest = [u8; blake3::OUT_LEN];

/// The stored data of one inode: its digest and, for a directory, its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) digest: Digest,
    parent: Option<Ino>,
    pub(super) mode: u32,
    /// Its attributes including times, which show whether another program has changed it.
    pub(super) attributes: i64,
}

/// The digests of a version's inodes, used as the base.
#[derive(Default)]
pub(super) struct Base {
    pub(super) version: Option<i64>,
    known: InoMap<Kept>,
    /// Whether the table has the digests that are not in memory.
    is_stored: bool,
}

impl Base {
    /// Returns the stored base.
    pub(super) fn stored(connection: &Connection) -> rusqlite::Result<Self> {
        if !rows::has_table(connection, TABLE)? {
            return Ok(Self::default());
        }
        let version = connection
            .prepare_cached("SELECT parent FROM sandlite_digest WHERE ino=?1")?
            .query_row([VERSION_ROW], |row| rows::number(row, 0, "the version of the kept digests"))
            .optional()?;
        Ok(Self { version, is_stored: version.is_some(), ..Self::default() })
    }

    pub(super) fn get(&self, connection: &Connection, ino: Ino) -> Result<Option<Kept>, Fault> {
        match self.known.get(&ino) {
            Some(kept) => Ok(Some(*kept)),
            None if self.is_stored => Ok(connection
                .prepare_cached("SELECT digest, parent, mode, attributes FROM sandlite_digest WHERE ino=?1")?
                .query_row([signed(ino)], |row| kept(row, 0))
                .optional()?),
            None => Ok(None),
        }
    }
}

/// Reads a digest with its parent, mode and attributes from four columns.
fn kept(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Kept> {
    let bytes = row.get_ref(column)?.as_blob().ok().and_then(|bytes| Digest::try_from(bytes).ok());
    let digest = bytes.ok_or_else(|| damaged("a kept digest is invalid"))?;
    let parent = match row.get_ref(column + 1)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Some(rows::ino(row, column + 1)?),
    };
    let mode = rows::number(row, column + 2, "the mode of a kept digest")?;
    let attributes = row.get_ref(column + 3)?.as_i64().map_err(|_| damaged("a kept digest has invalid attributes"))?;
    Ok(Kept { digest, parent, mode, attributes })
}

/// Returns the attributes of an inode as one number. The access time is excluded because it changes without a version.
pub(super) fn attributes(stat: &Stat) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for number in [u64::from(stat.mode), u64::from(stat.nlink), u64::from(stat.uid), u64::from(stat.gid), stat.size] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(&stat.mtime.to_le_bytes()).update(&stat.ctime.to_le_bytes());
    let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Returns the inodes that differ between two versions, possibly without inodes created since; `None` if unknown.
fn changed(connection: &Connection, one: i64, other: i64) -> Result<Option<HashSet<Ino>>, Fault> {
    let (low, high) = (one.min(other), one.max(other));
    let Some(oldest) = versions::oldest(connection)? else { return Ok(None) };
    if low < oldest.version {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached("SELECT inodes, outside=id FROM sandlite_version WHERE id>?1 AND id<=?2")?;
    let mut found = statement.query([low, high])?;
    let (mut inodes, mut count) = (HashSet::new(), 0);
    while let Some(row) = found.next()? {
        if row.get(1)? {
            return Ok(None);
        }
        inodes.extend(versions::list_of(row, 0)?);
        count += 1;
    }
    Ok((count == high - low).then_some(inodes))
}

/// One computation.
struct Computing<'a> {
    reader: &'a Reader,
    connection: &'a Connection,
    base: &'a Base,
    /// The inodes that may differ from the base; `None`: all.
    changed: Option<HashSet<Ino>>,
    /// Directories with changes below them.
    above: HashSet<Ino>,
    computed: InoMap<Kept>,
    until: Option<Instant>,
}

/// The result of a computation.
struct Computed {
    tree: Digest,
    /// The digests of inodes that differ from the base, or all.
    inodes: InoMap<Kept>,
    /// Inodes that changed; `None`: the base was not usable.
    changed: Option<HashSet<Ino>>,
    /// The base.
    base: Base,
}

impl Computing<'_> {
    fn tree(&mut self) -> Result<Digest, Fault> {
        for ino in self.changed.iter().flatten().copied().collect::<Vec<_>>() {
            self.mark_above(ino)?;
        }
        let root = self.reader.stat(ROOT)?;
        let digest = self.directory(ROOT, ROOT, 0)?;
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        put(&mut hasher, "", root.mode, &digest);
        Ok(*hasher.finalize().as_bytes())
    }

    /// Marks the parents of an inode.
    fn mark_above(&mut self, ino: Ino) -> Result<(), Fault> {
        let stat = match self.reader.stat(ino) {
            Ok(stat) => stat,
            // Its directory is listed as changed, too.
            Err(FsError::NoEntry) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if !stat.is_dir() && stat.nlink > 1 {
            for dir in self.reader.version_read().map_or(Ok(Vec::new()), |at| at::places(self.connection, at, ino))? {
                self.mark(dir)?;
            }
            return Ok(());
        }
        match self.parent(ino, stat.is_dir())? {
            Some(parent) => self.mark(parent),
            None => Ok(()),
        }
    }

    fn mark(&mut self, mut dir: Ino) -> Result<(), Fault> {
        let mut depth = 0;
        while self.above.insert(dir) && dir != ROOT {
            let Some(parent) = self.parent(dir, true)? else { break };
            dir = parent;
            depth += 1;
            if depth > Quota::DEPTH_MAX + 1 {
                return Err(damaged(format!("directory {dir} is below itself")).into());
            }
        }
        Ok(())
    }

    /// Returns the parent of an inode. An unchanged one has the parent of the base.
    fn parent(&self, ino: Ino, is_dir: bool) -> Result<Option<Ino>, Fault> {
        if ino == ROOT {
            return Ok(None);
        }
        let is_unchanged = is_dir && self.changed.as_ref().is_some_and(|changed| !changed.contains(&ino));
        let known = if is_unchanged { self.base.get(self.connection, ino)?.and_then(|kept| kept.parent) } else { None };
        match (known, self.reader.version_read()) {
            (Some(parent), _) => Ok(Some(parent)),
            (None, Some(at)) => Ok(at::place(self.connection, at, ino)?.map(|(dir, _)| dir)),
            (None, None) => Ok(None),
        }
    }

    /// Returns the digest of an inode in the base if it is still valid.
    fn unchanged(&self, ino: Ino) -> Result<Option<Kept>, Fault> {
        match &self.changed {
            Some(changed) if !changed.contains(&ino) && !self.above.contains(&ino) => self.base.get(self.connection, ino),
            _ => Ok(None),
        }
    }

    fn directory(&mut self, dir: Ino, parent: Ino, depth: u32) -> Result<Digest, Fault> {
        if let Some(kept) = self.computed.get(&dir) {
            return Ok(kept.digest);
        }
        if depth > Quota::DEPTH_MAX + 1 {
            return Err(damaged(format!("directory {dir} is below itself")).into());
        }
        let (mut entries, mut cookie): (Vec<Entry>, u64) = (Vec::new(), 0);
        loop {
            self.go_on()?;
            let step = self.reader.readdir(dir, cookie, ENTRIES)?;
            let Some(last) = step.last() else { break };
            cookie = last.cookie;
            entries.extend(step);
        }
        entries.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        for entry in &entries {
            let stat = self.reader.stat(entry.ino)?;
            let digest = match self.unchanged(entry.ino)? {
                Some(kept) => kept.digest,
                None => self.inode(&stat, dir, depth)?,
            };
            put(&mut hasher, &entry.name, stat.mode, &digest);
        }
        let digest = *hasher.finalize().as_bytes();
        let stat = self.reader.stat(dir)?;
        let (mode, attributes) = (stat.mode, attributes(&stat));
        self.computed.insert(dir, Kept { digest, parent: Some(parent), mode, attributes });
        Ok(digest)
    }

    fn inode(&mut self, stat: &Stat, dir: Ino, depth: u32) -> Result<Digest, Fault> {
        if let Some(kept) = self.computed.get(&stat.ino) {
            return Ok(kept.digest);
        }
        let digest = match stat.file_type() {
            FileType::Directory => return self.directory(stat.ino, dir, depth + 1),
            FileType::File => self.content(stat)?,
            FileType::Symlink => *blake3::hash(self.reader.readlink(stat.ino)?.as_bytes()).as_bytes(),
            // The mode determines its type, and it has no content.
            FileType::Fifo | FileType::Device => Digest::default(),
        };
        self.computed.insert(stat.ino, Kept { digest, parent: None, mode: stat.mode, attributes: attributes(stat) });
        Ok(digest)
    }

    fn content(&self, stat: &Stat) -> Result<Digest, Fault> {
        let len = usize::try_from(stat.size).unwrap_or(STEP_BYTES).min(STEP_BYTES);
        let (mut hasher, mut buffer, mut offset) = (blake3::Hasher::new(), vec![0; len], 0);
        while offset < stat.size {
            self.go_on()?;
            let read = self.reader.read(stat.ino, offset, &mut buffer)?;
            if read == 0 {
                break;
            }
            hasher.update(buffer.get(..read).unwrap_or_default());
            offset += read as u64;
        }
        Ok(*hasher.finalize().as_bytes())
    }

    /// Grants the next step its full work limit, unless the deadline has passed.
    fn go_on(&self) -> Result<(), Fault> {
        self.reader.refill();
        match self.until {
            Some(until) if clock::instant() > until => Err(FsError::Interrupted.into()),
            _ => Ok(()),
        }
    }
}

/// Adds one entry of a directory.
pub(super) fn put(hasher: &mut blake3::Hasher, name: &str, mode: u32, digest: &Digest) {
    hasher.update(&(name.len() as u64).to_le_bytes());
    hasher.update(name.as_bytes());
    hasher.update(&mode.to_le_bytes());
    hasher.update(digest);
}

impl Reader {
    /// Computes the digest of the version being read.
    fn compute(
        &self,
        base: impl FnOnce(&Connection) -> rusqlite::Result<Base>,
        until: Option<Instant>,
    ) -> Result<Computed, Fault> {
        self.rows(|connection| {
            let at = self.version_read().ok_or(FsError::Invalid)?;
            let mut base = base(connection)?;
            let changed = match base.version {
                Some(version) => changed(connection, version, at.version)?,
                None => None,
            };
            if changed.is_none() {
                base = Base { version: base.version, ..Base::default() };
            }
            let (above, computed) = (HashSet::new(), InoMap::default());
            let mut computing = Computing { reader: self, connection, base: &base, changed, above, computed, until };
            let tree = computing.tree()?;
            let Computing { computed: inodes, changed, .. } = computing;
            Ok(Computed { tree, inodes, changed, base })
        })
    }
}

impl Database {
    /// Returns the digest of a version's tree as 64 hexadecimal digits, covering names, types, permission bits, contents and
    /// targets. The cost is proportional to the changes since the newest version with a digest, and the result is stored unless a
    /// transaction is running.
    ///
    /// ```
    /// # use sqlite_fs::Database;
    /// let database = Database::options().open()?;
    /// for text in ["one", "two", "one"] {
    ///     let transaction = database.begin(None)?;
    ///     transaction.fs().write("/a", text)?;
    ///     transaction.commit()?;
    /// }
    /// assert_eq!(database.version_digest(1, None)?, database.version_digest(3, None)?);
    /// assert_ne!(database.version_digest(1, None)?, database.version_digest(2, None)?);
    /// # Ok::<(), sqlite_fs::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::NoVersion`] if the version does not exist, [`Error::Interrupted`] if the computation takes longer than
    /// `until`, and [`Error::Fs`] with [`FsError::Unknown`] if another program changed a file before it was saved.
    pub fn version_digest(&self, version: i64, until: Option<Instant>) -> Result<String, Error> {
        if let Some(digest) = self.reader()?.version(version)?.digest {
            return Ok(digest);
        }
        let computed = self.reader_at(version)?.compute(Base::stored, until)?;
        self.keep_digest(version, &computed);
        Ok(blake3::Hash::from_bytes(computed.tree).to_hex().to_string())
    }

    /// Stores a digest, if no transaction is running. Errors are ignored, because the digest is only a cache.
    fn keep_digest(&self, version: i64, computed: &Computed) {
        let kept = self.fill_now(|connection| {
            let transaction = rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
            write(&transaction, version, computed)?;
            transaction.commit()
        });
        drop(kept);
    }

    /// Recomputes every stored digest, and returns the differences.
    pub(crate) fn check_digests(&self) -> Result<Vec<String>, Error> {
        let reader = self.reader()?;
        let stored: Vec<i64> = reader.rows(|connection| Ok(stored_digests(connection)?))?;
        let kept = reader.rows(|connection| Ok(Base::stored(connection)?.version))?;
        let (mut base, mut wrong) = (Base::default(), Vec::new());
        for version in stored {
            let at = self.reader_at(version)?;
            let known = std::mem::take(&mut base);
            let Computed { tree, inodes, changed, base: known } = match at.compute(|_| Ok(known), None) {
                Ok(computed) => computed,
                // States that another program overwrote cannot be compared.
                Err(Fault::Fs(FsError::Unknown)) => continue,
                Err(fault) => return Err(fault.into()),
            };
            let found = blake3::Hash::from_bytes(tree).to_hex().to_string();
            if reader.version(version)?.digest.is_some_and(|digest| digest != found) {
                wrong.push(format!("version {version}"));
            }
            base = known.with(version, inodes, changed.as_ref());
            if kept == Some(version) {
                wrong.extend(reader.rows(|connection| base.differences(connection))?);
            }
        }
        Ok(wrong)
    }
}

impl Base {
    /// Returns the digests of the next version.
    fn with(mut self, version: i64, inodes: InoMap<Kept>, changed: Option<&HashSet<Ino>>) -> Self {
        match changed {
            Some(changed) => self.known.retain(|ino, _| !changed.contains(ino)),
            None => self.known.clear(),
        }
        self.known.extend(inodes);
        Self { version: Some(version), ..self }
    }

    /// Returns the inodes whose digest in the table differs from these.
    fn differences(&self, connection: &Connection) -> Result<Vec<String>, Fault> {
        let mut statement =
            connection.prepare("SELECT ino, digest, parent, mode, attributes FROM sandlite_digest WHERE ino<>?1")?;
        let mut found = statement.query([VERSION_ROW])?;
        let mut wrong = Vec::new();
        while let Some(row) = found.next()? {
            let ino = rows::ino(row, 0)?;
            if self.known.get(&ino).is_some_and(|known| kept(row, 1).ok().as_ref() != Some(known)) {
                wrong.push(format!("inode {ino}"));
            }
        }
        Ok(wrong)
    }
}

/// Returns the versions with a digest, and the one with inode digests, oldest first.
fn stored_digests(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    if !rows::has_table(connection, "sandlite_version")? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached("SELECT id FROM sandlite_version WHERE digest NOT NULL ORDER BY id")?;
    let found = statement.query_map([], |row| row.get(0))?;
    found.collect()
}

/// Stores a digest with those of the inodes, if the version is newer than that of the stored inodes.
fn write(connection: &Connection, version: i64, computed: &Computed) -> rusqlite::Result<()> {
    let stored = connection
        .prepare_cached("UPDATE sandlite_version SET digest=?2 WHERE id=?1")?
        .execute(params![version, computed.tree.as_slice()])?;
    if stored == 0 || Base::stored(connection)?.version != computed.base.version {
        return Ok(());
    }
    // An older one is rarely requested twice; the newest is the base of the next one.
    if computed.changed.is_some() && computed.base.version.is_some_and(|base| base > version) {
        return Ok(());
    }
    connection.execute_batch(&super::making(TABLE))?;
    match &computed.changed {
        None => forget(connection)?,
        Some(changed) => {
            let mut remove = connection.prepare_cached("DELETE FROM sandlite_digest WHERE ino=?1")?;
            for ino in changed.iter().filter(|ino| !computed.inodes.contains_key(ino)) {
                remove.execute([signed(*ino)])?;
            }
        }
    }
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO sandlite_digest (ino, digest, parent, mode, attributes) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (ino, Kept { digest, parent, mode, attributes }) in &computed.inodes {
        insert.execute(params![signed(*ino), digest.as_slice(), parent.map(signed), mode, attributes])?;
    }
    insert.execute(params![VERSION_ROW, computed.tree.as_slice(), version, 0, 0])?;
    Ok(())
}

/// Removes the digests of single inodes, because their version was removed.
pub(crate) fn forget(connection: &Connection) -> rusqlite::Result<()> {
    if rows::has_table(connection, TABLE)? {
        connection.execute("DELETE FROM sandlite_digest", [])?;
    }
    Ok(())
}
