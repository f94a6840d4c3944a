//! The differences between two versions, derived from the rows saved between them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, params};

use super::at::{self, At};
use super::{Table, first_id, versions};
use crate::error::{Error, Fault, FsError, damaged};
use crate::node::{FileType, Ino, ROOT, Stat};
use crate::reader::Reader;
use crate::rows::{self, signed};
use crate::store::{Change, ChangeKind};

/// Maximum number of listed changes.
const CHANGES_MAX: usize = 100_000;
/// Maximum size of all collected paths together: those of a hostile file can have any length.
const PATHS_MAX: usize = 64 << 20;
/// Number of bytes compared at once.
const STEP_BYTES: usize = 64 << 10;

/// Two states of one database.
struct Pair<'c> {
    connection: &'c Connection,
    from: At,
    to: At,
    chunk_bytes: u64,
    /// Paths of directories in each state.
    known: [HashMap<Ino, Option<String>>; 2],
    changes: BTreeMap<String, Change>,
    /// Unchanged files that share their content with other names than before.
    links: BTreeSet<String>,
    /// Files with several names of which one leads to another file now, or did before.
    linked: BTreeSet<Ino>,
    /// Size of the paths in `known`, and of those in `changes` and `links`.
    known_bytes: usize,
    listed_bytes: usize,
    /// Whether something was omitted.
    is_cut: bool,
}

/// Paths to compare.
#[derive(Default)]
struct Paths {
    all: BTreeSet<String>,
    bytes: usize,
}

impl Paths {
    fn add(&mut self, path: String) {
        let bytes = path.len();
        if self.all.insert(path) {
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    fn is_full(&self) -> bool {
        self.bytes > PATHS_MAX
    }
}

impl Reader {
    /// Returns the changes from a version to a later one, or to the committed state: by path, and whether the list is complete.
    /// The cost is proportional to the changes. Times of directories are ignored.
    pub fn changes(&self, from: i64, to: Option<i64>) -> Result<(Vec<Change>, bool), Error> {
        let (changes, _, is_complete) = self.changes_and_links(from, to)?;
        Ok((changes, is_complete))
    }

    /// Same as [`changes`](Self::changes), with the paths of otherwise unchanged files whose hard links changed.
    pub fn changes_and_links(&self, from: i64, to: Option<i64>) -> Result<(Vec<Change>, Vec<String>, bool), Error> {
        let chunk_bytes = self.chunk_bytes() as u64;
        let (from, to) = self.states(from, to)?;
        Ok(self.rows(|connection| {
            let (from, known) = (at::refresh(connection, from)?, Default::default());
            let to = if to == At::now() { to } else { at::refresh(connection, to)? };
            let (changes, links, is_cut) = (BTreeMap::new(), BTreeSet::new(), false);
            let (linked, known_bytes, listed_bytes) = (BTreeSet::new(), 0, 0);
            let mut pair =
                Pair { connection, from, to, chunk_bytes, known, changes, links, linked, known_bytes, listed_bytes, is_cut };
            let is_complete = pair.compare()?;
            pair.join_renamed()?;
            Ok((pair.changes.into_values().collect(), pair.links.into_iter().collect(), is_complete))
        })?)
    }

    fn states(&self, from: i64, to: Option<i64>) -> Result<(At, At), Error> {
        self.with_connection(|connection| {
            let from = at::open(connection, from)?;
            let to = to.map_or(Ok(At::now()), |to| at::open(connection, to))?;
            if to.version < from.version {
                let reason = format!("version {} is older than {}", to.version, from.version);
                return Err(Error::Invalid { what: "range", reason });
            }
            Ok((from, to))
        })
    }
}

impl Pair<'_> {
    fn state(&self, side: usize) -> At {
        if side == 0 { self.from } else { self.to }
    }

    fn compare(&mut self) -> Result<bool, Fault> {
        let (keys, inodes) = (self.keys()?, self.inodes()?);
        let is_complete = keys.len() < CHANGES_MAX && inodes.len() < CHANGES_MAX;
        let mut paths = Paths::default();
        for (dir, name) in keys.iter().take(CHANGES_MAX) {
            for side in 0..2 {
                if paths.is_full() {
                    break;
                }
                if let Some(path) = unless_unknown(self.path_of(side, *dir))?.flatten() {
                    paths.add(join(&path, name));
                }
            }
        }
        for ino in inodes.iter().take(CHANGES_MAX) {
            for side in 0..2 {
                if paths.is_full() {
                    break;
                }
                // Another program may have changed it; then the other state has its path.
                if let Some(path) = unless_unknown(self.path_of_any(side, *ino))?.flatten() {
                    paths.add(path);
                }
            }
        }
        for (dir, name) in self.names_of_linked(&inodes)? {
            for side in 0..2 {
                if paths.is_full() {
                    break;
                }
                if let Some(path) = unless_unknown(self.path_of(side, dir))?.flatten() {
                    paths.add(join(&path, &name));
                }
            }
        }
        let is_complete = is_complete && !paths.is_full();
        for path in paths.all {
            if self.is_cut {
                break;
            }
            self.compare_path(&path, 0)?;
        }
        self.list_linked(&inodes)?;
        Ok(is_complete && !self.is_cut)
    }

    /// Lists the other names of files that lost or gained a name with a directory that moved: nothing of them was saved.
    fn list_linked(&mut self, saved: &BTreeSet<Ino>) -> Result<(), Fault> {
        let linked: BTreeSet<Ino> = self.linked.difference(saved).copied().collect();
        for (dir, name) in self.names_of_linked(&linked)? {
            for side in 0..2 {
                let Some(path) = unless_unknown(self.path_of(side, dir))?.flatten().map(|path| join(&path, &name)) else {
                    continue;
                };
                if self.is_cut {
                    return Ok(());
                }
                self.compare_path(&path, 0)?;
                if !self.changes.contains_key(&path) && !self.links.contains(&path) && self.has_room(&path) {
                    self.links.insert(path);
                }
            }
        }
        Ok(())
    }

    /// Collects all names that saved files with several names had or have. Reads all entries if there is such a file.
    fn names_of_linked(&self, inodes: &BTreeSet<Ino>) -> Result<BTreeSet<(Ino, String)>, Fault> {
        let (mut linked, mut names) = (BTreeSet::new(), BTreeSet::new());
        for ino in inodes.iter().take(CHANGES_MAX) {
            for side in 0..2 {
                let stat = unless_unknown(at::inode(self.connection, self.state(side), *ino))?.flatten();
                if stat.is_some_and(|stat| stat.nlink > 1 && !stat.is_dir()) {
                    linked.insert(*ino);
                }
            }
        }
        for (query, is_there) in [
            ("SELECT parent_ino, name, ino FROM fs_dentry", true),
            ("SELECT parent_ino, name, ino FROM sandlite_past_dentry WHERE ino NOT NULL", self.from.tables.has(Table::Dentry)),
        ] {
            if linked.is_empty() || !is_there {
                continue;
            }
            let mut statement = self.connection.prepare_cached(query)?;
            let mut found = statement.query([])?;
            while let Some(row) = found.next()? {
                if linked.contains(&rows::ino(row, 2)?) {
                    names.insert((rows::ino(row, 0)?, rows::name(row, 1)?.to_owned()));
                }
            }
        }
        Ok(names)
    }

    /// Collects entries that were removed, moved or created.
    fn keys(&self) -> Result<BTreeSet<(Ino, String)>, Fault> {
        let (low, high) = (first_id(self.from.version + 1), self.to.first_after());
        let mut keys = BTreeSet::new();
        let has_saved = self.from.tables.has(Table::Dentry);
        for (query, from, to) in [
            ("SELECT parent_ino, name FROM sandlite_past_dentry WHERE id>=?1 AND id<?2 LIMIT ?3", low, high),
            ("SELECT parent_ino, name FROM fs_dentry WHERE id>=?1 AND id<?2 LIMIT ?3", self.from.entries, self.to.entries),
            (
                "SELECT parent_ino, name FROM sandlite_past_dentry INDEXED BY idx_sandlite_past_entry
                 WHERE entry>=?1 AND entry<?2 LIMIT ?3",
                self.from.entries,
                self.to.entries,
            ),
        ] {
            if query.contains("sandlite_past_dentry") && !has_saved {
                continue;
            }
            let mut statement = self.connection.prepare_cached(query)?;
            let mut found = statement.query(params![from, to, signed(CHANGES_MAX as u64)])?;
            while let Some(row) = found.next()? {
                keys.insert((rows::ino(row, 0)?, rows::name(row, 1)?.to_owned()));
            }
        }
        Ok(keys)
    }

    /// Collects saved inodes.
    fn inodes(&self) -> Result<BTreeSet<Ino>, Fault> {
        let mut statement = self.connection.prepare_cached("SELECT inodes FROM sandlite_version WHERE id>?1 AND id<=?2")?;
        let mut found = statement.query([self.from.version, self.to.version])?;
        let mut inodes = BTreeSet::new();
        while let Some(row) = found.next()? {
            // 0 starts the list of a visit.
            inodes.extend(versions::list_of(row, 0)?.into_iter().filter(|ino| *ino > 0));
            if inodes.len() > CHANGES_MAX {
                break;
            }
        }
        Ok(inodes)
    }

    /// Returns the path of a directory.
    fn path_of(&mut self, side: usize, dir: Ino) -> Result<Option<String>, Fault> {
        if dir == ROOT {
            return Ok(Some("/".to_owned()));
        }
        if let Some(known) = self.known.get(side).and_then(|known| known.get(&dir)) {
            return Ok(known.clone());
        }
        let path = self.path_of_any(side, dir)?;
        let bytes = path.as_ref().map_or(0, String::len);
        if self.known_bytes <= PATHS_MAX
            && let Some(known) = self.known.get_mut(side)
        {
            self.known_bytes = self.known_bytes.saturating_add(bytes);
            known.insert(dir, path.clone());
        }
        Ok(path)
    }

    /// Returns a path of an inode, if it had one.
    fn path_of_any(&mut self, side: usize, ino: Ino) -> Result<Option<String>, Fault> {
        let (mut names, mut current) = (Vec::new(), ino);
        while current != ROOT {
            if at::inode(self.connection, self.state(side), current)?.is_none() {
                return Ok(None);
            }
            let Some((parent, name)) = at::place(self.connection, self.state(side), current)? else { return Ok(None) };
            names.push(name);
            current = parent;
            if names.len() > crate::Quota::DEPTH_MAX as usize + 1 {
                return Err(damaged(format!("inode {ino} is below itself")).into());
            }
            if let Some(Some(known)) = self.known.get(side).and_then(|known| known.get(&current)) {
                let path = names.iter().rev().fold(known.clone(), |path, name| join(&path, name));
                return Ok(Some(path));
            }
        }
        Ok(Some(names.iter().rev().fold("/".to_owned(), |path, name| join(&path, name))))
    }

    fn walk(&self, side: usize, path: &str) -> Result<Option<Stat>, Fault> {
        let (state, mut ino) = (self.state(side), ROOT);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            match at::dentry(self.connection, state, ino, name)? {
                Some(found) => ino = found,
                None => return Ok(None),
            }
        }
        at::inode(self.connection, state, ino)
    }

    /// Compares a path. Data that another program changed before it was saved counts as different.
    fn compare_path(&mut self, path: &str, depth: u32) -> Result<(), Fault> {
        // Everything below it was compared with it.
        if self.changes.contains_key(path) {
            return Ok(());
        }
        let (before, after) = (unless_unknown(self.walk(0, path))?, unless_unknown(self.walk(1, path))?);
        match (before, after) {
            (Some(before), Some(after)) => self.compare_at(path, before, after, depth)?,
            (before, after) => self.add(path, ChangeKind::Modified, before.flatten(), after.flatten()),
        }
        Ok(())
    }

    fn compare_at(&mut self, path: &str, before: Option<Stat>, after: Option<Stat>, depth: u32) -> Result<(), Fault> {
        if depth > crate::Quota::DEPTH_MAX {
            return Err(damaged("a directory is below itself").into());
        }
        let kind = match (&before, &after) {
            (None, None) => return Ok(()),
            (None, Some(_)) => Some(ChangeKind::Created),
            (Some(_), None) => Some(ChangeKind::Deleted),
            (Some(a), Some(b)) if a.file_type() != b.file_type() => Some(ChangeKind::Modified),
            (Some(a), Some(b)) if unless_unknown(self.is_same_content(a, b))? != Some(true) => Some(ChangeKind::Modified),
            (Some(a), Some(b)) => {
                let is_same = (a.mode, a.uid, a.gid) == (b.mode, b.uid, b.gid) && (a.is_dir() || a.mtime == b.mtime);
                (!is_same).then_some(ChangeKind::Attributes)
            }
        };
        let other_names = |a: &Stat, b: &Stat| !a.is_dir() && (a.ino, a.nlink) != (b.ino, b.nlink) && a.nlink.max(b.nlink) > 1;
        if let Some(kind) = kind {
            self.add(path, kind, before, after);
        } else if before.zip(after).is_some_and(|(a, b)| other_names(&a, &b)) && self.has_room(path) {
            self.links.insert(path.to_owned());
        }
        if let (Some(a), Some(b)) = (&before, &after)
            && a.ino != b.ino
            && other_names(a, b)
        {
            self.linked.extend([a, b].into_iter().filter(|stat| stat.nlink > 1).map(|stat| stat.ino));
        }
        // Entries of a directory that was added as a whole were not saved one by one.
        let is_moved = before.map(|stat| stat.ino) != after.map(|stat| stat.ino);
        if is_moved && [&before, &after].into_iter().flatten().any(Stat::is_dir) {
            if self.changes.len() >= CHANGES_MAX || self.is_cut {
                self.is_cut = true;
                return Ok(());
            }
            let mut names = BTreeSet::new();
            for (side, stat) in [(0, &before), (1, &after)] {
                if let Some(stat) = stat.as_ref().filter(|stat| stat.is_dir()) {
                    names.extend(unless_unknown(self.names(side, stat.ino))?.unwrap_or_default());
                }
            }
            for name in names {
                self.compare_path(&join(path, &name), depth + 1)?;
            }
        }
        Ok(())
    }

    /// Returns whether a path can be listed; otherwise the list is incomplete.
    fn has_room(&mut self, path: &str) -> bool {
        self.listed_bytes = self.listed_bytes.saturating_add(path.len());
        self.is_cut |= self.listed_bytes > PATHS_MAX;
        !self.is_cut
    }

    fn add(&mut self, path: &str, kind: ChangeKind, before: Option<Stat>, after: Option<Stat>) {
        if !self.has_room(path) {
            return;
        }
        let file_type = after.as_ref().or(before.as_ref()).map(Stat::file_type);
        let size = after.map_or(0, |stat| stat.size);
        self.changes.insert(path.to_owned(), Change { path: path.to_owned(), kind, file_type, size });
    }

    fn names(&self, side: usize, dir: Ino) -> Result<Vec<String>, Fault> {
        let (mut names, mut cookie) = (Vec::new(), 0);
        let mut listed = at::Listed::default();
        loop {
            let step = at::entries(self.connection, self.state(side), &mut listed, dir, cookie, 1024)?;
            let Some(last) = step.last() else { return Ok(names) };
            cookie = last.cookie;
            names.extend(step.into_iter().map(|entry| entry.name));
        }
    }

    fn is_same_content(&self, a: &Stat, b: &Stat) -> Result<bool, Fault> {
        match a.file_type() {
            FileType::Symlink => {
                Ok(at::target(self.connection, self.from, a.ino)? == at::target(self.connection, self.to, b.ino)?)
            }
            FileType::File if a.size != b.size => Ok(false),
            FileType::File if a.ino != b.ino => {
                (0..a.size.div_ceil(self.chunk_bytes)).try_fold(true, |same, index| Ok(same && self.is_same_chunk(a, b, index)?))
            }
            FileType::File if !self.from.tables.has(Table::Data) => Ok(true),
            FileType::File => {
                let mut statement = self.connection.prepare_cached(
                    "SELECT DISTINCT chunk_index FROM sandlite_past_data INDEXED BY idx_sandlite_past_data
                     WHERE ino=?1 AND id>=?2 AND id<?3",
                )?;
                let (low, high) = (first_id(self.from.version + 1), self.to.first_after());
                let mut found = statement.query([signed(a.ino), low, high])?;
                while let Some(row) = found.next()? {
                    if !self.is_same_chunk(a, b, rows::number(row, 0, "the number of a chunk")?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    fn is_same_chunk(&self, a: &Stat, b: &Stat, index: u64) -> Result<bool, Fault> {
        let Some(start) = index.checked_mul(self.chunk_bytes).filter(|start| *start < a.size) else { return Ok(true) };
        let (mut offset, end) = (0, self.chunk_bytes.min(a.size - start));
        while offset < end {
            let len = usize::try_from(end - offset).unwrap_or(STEP_BYTES).min(STEP_BYTES);
            let (mut left, mut right) = (vec![0; len], vec![0; len]);
            let from = usize::try_from(offset).map_err(|_| FsError::FileTooBig)?;
            let stored = (
                at::part(self.connection, self.from, a.ino, index, from, &mut left)?,
                at::part(self.connection, self.to, b.ino, index, from, &mut right)?,
            );
            if stored != (Some(len), Some(len)) {
                return Err(rows::short_chunk(a.ino, index).into());
            }
            if left != right {
                return Ok(false);
            }
            offset += len as u64;
        }
        Ok(true)
    }

    /// Merges a removed and an added name of the same inode into one change.
    fn join_renamed(&mut self) -> Result<(), Fault> {
        let paths = |kind: &ChangeKind, changes: &BTreeMap<String, Change>| -> Vec<String> {
            changes.values().filter(|change| change.kind == *kind).map(|change| change.path.clone()).collect()
        };
        let mut gone = HashMap::new();
        for path in paths(&ChangeKind::Deleted, &self.changes) {
            if let Some(stat) = unless_unknown(self.walk(0, &path))?.flatten() {
                gone.insert(stat.ino, path);
            }
        }
        for path in paths(&ChangeKind::Created, &self.changes) {
            let Some(stat) = unless_unknown(self.walk(1, &path))?.flatten() else { continue };
            let Some(from) = gone.remove(&stat.ino) else { continue };
            self.changes.remove(&from);
            if let Some(change) = self.changes.get_mut(&path) {
                change.kind = ChangeKind::Renamed { from };
            }
        }
        Ok(())
    }
}

/// Returns `None` for data that another program changed before it was saved.
fn unless_unknown<T>(result: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Fault::Fs(FsError::Unknown)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn join(dir: &str, name: &str) -> String {
    format!("{}/{name}", dir.trim_end_matches('/'))
}
