//! Bringing files back as a version had them: a change like any other, so nothing is lost by it.

use std::collections::BTreeSet;

use crate::error::{Error, FsError};
use crate::fs::Owner;
use crate::node::{FileType, Stat};
use crate::reader::Reader;
use crate::store::{Change, ChangeKind};
use crate::transaction::Transaction;

impl Transaction {
    /// Brings files back as a version had them: all, or those at and below some paths. Returns what was different. Costs what it
    /// changes, and is part of the version that this transaction becomes. What the transaction itself changed before stays.
    ///
    /// ```
    /// # use sqlite_fs::Database;
    /// let database = Database::options().open()?;
    /// for text in ["one", "two"] {
    ///     let transaction = database.begin(None)?;
    ///     transaction.fs().write("/a", text)?;
    ///     transaction.commit()?;
    /// }
    /// let transaction = database.begin(None)?;
    /// transaction.restore(1, &[])?;
    /// transaction.commit()?;
    /// let reader = database.reader()?;
    /// assert_eq!(reader.fs().read_to_string("/a")?, "one");
    /// assert_eq!(reader.changes(1, None)?, (vec![], true));
    /// # Ok::<(), sqlite_fs::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoVersion`] if there is no such version, [`Error::Fs`] with [`FsError::Unknown`] if another program
    /// changed a file before it was saved, or [`FsError::NoSpace`] if the quota has no room for it. The caller takes the
    /// transaction back then.
    pub fn restore(&self, version: i64, paths: &[&str]) -> Result<Vec<Change>, Error> {
        let (mut changes, is_complete) = self.committed()?.changes(version, None)?;
        if !is_complete {
            return Err(Error::Invalid { what: "version", reason: "too many files differ".to_owned() });
        }
        let old = self.committed()?.at(version)?;
        let is_wanted = |path: &str| {
            let is_at = |top: &&str| {
                let top = top.trim_end_matches('/');
                path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            paths.is_empty() || paths.iter().any(is_at)
        };
        let mut wanted = BTreeSet::new();
        changes.retain(|change| {
            let from = match &change.kind {
                ChangeKind::Renamed { from } => Some(from),
                _ => None,
            };
            let found: Vec<&String> = from.into_iter().chain([&change.path]).filter(|path| is_wanted(path)).collect();
            wanted.extend(found.iter().map(|path| (*path).clone()));
            !found.is_empty()
        });
        for path in wanted.iter().rev() {
            self.clear(&old, path)?;
        }
        for path in &wanted {
            if let Some(stat) = find(&old, path)? {
                self.bring_back(&old, path, &stat)?;
            }
        }
        // What was done in a directory has changed its times.
        for path in &wanted {
            if let Some(stat) = find(&old, path)?.filter(Stat::is_dir) {
                self.fs().set_times(path, Some(stat.atime), Some(stat.mtime))?;
            }
        }
        Ok(changes)
    }

    /// Removes what the version did not have, or had as something else.
    fn clear(&self, old: &Reader, path: &str) -> Result<(), Error> {
        let is = match self.fs().symlink_metadata(path) {
            Ok(stat) => stat,
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        match find(old, path)? {
            Some(was) if was.file_type() == is.file_type() && was.file_type() != FileType::Symlink => Ok(()),
            _ if is.is_dir() => self.fs().remove_dir_all(path).map(drop),
            _ => self.fs().remove_file(path),
        }
    }

    fn bring_back(&self, old: &Reader, path: &str, was: &Stat) -> Result<(), Error> {
        let fs = self.fs().owner(Owner { uid: was.uid, gid: was.gid });
        let is_there = match self.fs().symlink_metadata(path) {
            Ok(_) => true,
            Err(error) if is_missing(&error) => false,
            Err(error) => return Err(error),
        };
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !is_there
            && !parent.is_empty()
            && !self.fs().exists(parent)?
            && let Some(stat) = find(old, parent)?
        {
            self.bring_back(old, parent, &stat)?;
        }
        match was.file_type() {
            FileType::Directory if !is_there => fs.create_dir(path)?,
            FileType::Directory => {}
            FileType::Symlink => {
                fs.symlink(&old.fs().read_link(path)?, path)?;
                let ino = self.fs().symlink_metadata(path)?.ino;
                return Ok(self.set_times(ino, Some(was.atime), Some(was.mtime))?);
            }
            FileType::Fifo if !is_there => {
                let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
                let dir = self.fs().metadata(if dir.is_empty() { "/" } else { dir })?.ino;
                self.mkfifo(dir, name, was.mode, was.uid, was.gid)?;
            }
            FileType::File => self.write_back(old, path, was, is_there)?,
            FileType::Fifo | FileType::Device => {}
        }
        let ino = self.fs().symlink_metadata(path)?.ino;
        self.chmod(ino, was.mode)?;
        self.chown(ino, Some(was.uid), Some(was.gid))?;
        Ok(self.set_times(ino, Some(was.atime), Some(was.mtime))?)
    }

    /// Writes a file as it was. Where another name still leads to it, this is one more.
    fn write_back(&self, old: &Reader, path: &str, was: &Stat, is_there: bool) -> Result<(), Error> {
        if !is_there && self.stat(was.ino).is_ok_and(|stat| stat.is_file() && stat.nlink > 0) {
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
            let dir = self.fs().metadata(if dir.is_empty() { "/" } else { dir })?.ino;
            self.link(was.ino, dir, name)?;
        }
        let open = crate::path::Open { write: true, create: true, ..Default::default() };
        let ino = self.fs().open(path, &open, 0o600)?;
        let (mut offset, mut failed) = (0, None);
        old.fs().read_pieces(path, 0, |piece| {
            let mut rest = piece;
            while !rest.is_empty() {
                match self.write(ino, offset, rest) {
                    Ok(written) => {
                        offset += written as u64;
                        rest = rest.get(written..).unwrap_or_default();
                    }
                    Err(error) => {
                        failed = Some(error);
                        return false;
                    }
                }
            }
            true
        })?;
        match failed {
            Some(source) => Err(Error::Fs { operation: "restore", path: path.to_owned(), source }),
            None => Ok(self.truncate(ino, was.size)?),
        }
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(error.fs_error(), Some(FsError::NoEntry | FsError::NotDirectory))
}

/// What a version has at a path.
fn find(old: &Reader, path: &str) -> Result<Option<Stat>, Error> {
    match old.fs().symlink_metadata(path) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
