//! Changes by other programs: the inodes that differ from the newest version.
//!
//! They can be determined if the digests of that version's inodes are stored. The version that represents the visit then lists
//! those that differ, starting with 0, and only they are unknown in earlier versions. Without digests its list is empty, and
//! everything that was not saved before is unknown.

use std::collections::HashSet;

use rusqlite::Connection;

use super::digest::{Base, CONTEXT, Digest, ENTRIES, attributes, put};
use super::versions;
use crate::error::{Fault, FsError};
use crate::node::{Entry, FileType, Ino, Stat};
use crate::rows;

/// Fails if a visit between two versions may have changed an inode or the entries of a directory. Changes of keys are always
/// unknown.
pub(super) fn refuse(connection: &Connection, after: i64, before: i64, of: Option<Ino>) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached("SELECT inodes FROM sandlite_version WHERE id>?1 AND id<?2 AND outside=id")?;
    let mut found = statement.query([after, before])?;
    while let Some(row) = found.next()? {
        let changed = versions::list_of(row, 0)?;
        let is_known = !changed.is_empty() && of.is_some_and(|ino| changed.binary_search(&ino).is_err());
        if !is_known {
            return Err(FsError::Unknown.into());
        }
    }
    Ok(())
}

/// Returns the list of inodes that differ from a version, or an empty one if unknown. Reads every file.
pub(super) fn changed(connection: &Connection, version: i64) -> rusqlite::Result<Vec<Ino>> {
    let base = Base::stored(connection)?;
    if base.version != Some(version) {
        return Ok(Vec::new());
    }
    match compare(connection, &base) {
        Ok(changed) => Ok(changed),
        // Incomplete or damaged rows left by another program: then nothing is known.
        Err(_) => Ok(Vec::new()),
    }
}

fn compare(connection: &Connection, base: &Base) -> Result<Vec<Ino>, Fault> {
    let (mut changed, mut present) = (vec![0], HashSet::new());
    let mut statement = connection.prepare("SELECT ino FROM fs_inode")?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let ino = rows::ino(row, 0)?;
        present.insert(ino);
        let stat = rows::inode(connection, ino)?.ok_or(FsError::NoEntry)?;
        let is_same = match base.get(connection, ino)? {
            Some(kept) if kept.attributes == attributes(&stat) => is_same(connection, base, &stat, &kept.digest)?,
            _ => false,
        };
        if !is_same {
            changed.push(ino);
        }
    }
    let mut statement = connection.prepare("SELECT ino FROM sandlite_digest WHERE ino<>0")?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let ino = rows::ino(row, 0)?;
        if !present.contains(&ino) {
            changed.push(ino);
        }
    }
    changed.sort_unstable();
    Ok(changed)
}

/// Returns whether an inode has the content of its digest. A directory is compared by its entries, not by their content.
fn is_same(connection: &Connection, base: &Base, stat: &Stat, digest: &Digest) -> Result<bool, Fault> {
    match stat.file_type() {
        FileType::File => content(connection, stat).map(|found| found.as_ref() == Some(digest)),
        FileType::Symlink => {
            let target = rows::target(connection, stat.ino)?.unwrap_or_default();
            Ok(blake3::hash(target.as_bytes()).as_bytes() == digest)
        }
        FileType::Fifo | FileType::Device => Ok(true),
        FileType::Directory => {
            let (mut entries, mut cookie): (Vec<Entry>, u64) = (Vec::new(), 0);
            loop {
                let step = rows::entries(connection, stat.ino, cookie, ENTRIES, |_| FileType::File)?;
                let Some(last) = step.last() else { break };
                cookie = last.cookie;
                entries.extend(step);
            }
            entries.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
            let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
            for entry in &entries {
                let Some(kept) = base.get(connection, entry.ino)? else { return Ok(false) };
                put(&mut hasher, &entry.name, kept.mode, &kept.digest);
            }
            Ok(hasher.finalize().as_bytes() == digest)
        }
    }
}

/// Returns the digest of a file's chunks, if they match its size.
fn content(connection: &Connection, stat: &Stat) -> Result<Option<Digest>, Fault> {
    let mut statement = connection.prepare_cached("SELECT data FROM fs_data WHERE ino=?1 ORDER BY chunk_index")?;
    let mut found = statement.query([rows::signed(stat.ino)])?;
    let (mut hasher, mut size) = (blake3::Hasher::new(), 0);
    while let Some(row) = found.next()? {
        let Ok(data) = row.get_ref(0)?.as_blob() else { return Ok(None) };
        hasher.update(data);
        size += data.len() as u64;
    }
    Ok((size == stat.size).then(|| *hasher.finalize().as_bytes()))
}
