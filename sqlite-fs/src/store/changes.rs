//! The changes of a transaction, for the history.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Instant;

use super::{InoMap, Store};
use crate::contents::Content;
use crate::error::{Fault, FsError};
use crate::node::{FileType, Ino, ROOT, Stat};
use crate::{clock, rows};

/// The directory of an inode without a name; no inode has this number.
const NOWHERE: Ino = 0;

/// Maximum number of recorded changes of each kind. A transaction with more has an incomplete list.
const CHANGES_MAX: usize = 100_000;
/// Maximum number of changes of each kind in a list with a deadline, and maximum number that count as pending work.
const LISTED_MAX: usize = 10_000;
/// Maximum size of all listed paths together: those of a hostile file can have any length.
const PATHS_MAX: usize = 64 << 20;
/// Number of paths looked up between two checks of the clock.
const LOOK_EVERY: u32 = 16;

/// The kind of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Created.
    Created,
    /// The content changed, or another file replaced it.
    Modified,
    /// The mode, owner or times changed.
    Attributes,
    /// Deleted.
    Deleted,
    /// Moved here, with everything below it.
    Renamed {
        /// The previous path.
        from: String,
    },
}

/// One changed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The absolute path.
    pub path: String,
    /// The kind of change.
    pub kind: ChangeKind,
    /// Its type (or former type, if known).
    pub file_type: Option<FileType>,
    /// Its current size; 0 if deleted.
    pub size: u64,
}

/// The state recorded while the transaction runs. Names are recorded with the inode of their directory, because the path of a
/// directory can change at any time.
#[derive(Clone, Default)]
pub(super) struct Journal {
    /// Directory -> name -> the inode that it led to before the transaction.
    names: InoMap<HashMap<Box<str>, Option<Ino>>>,
    count: usize,
    content: HashSet<Ino>,
    attributes: HashSet<Ino>,
    /// Whether a file got another name.
    has_linked: bool,
}

impl Journal {
    /// Returns the number of changes to list.
    pub(super) fn len(&self) -> usize {
        [self.count, self.content.len(), self.attributes.len()].map(|count| count.min(LISTED_MAX)).iter().sum()
    }

    /// Returns the files whose content changed; `None` if there are too many.
    pub(super) fn changed_contents(&self) -> Option<impl Iterator<Item = Ino>> {
        (self.content.len() < CHANGES_MAX).then(|| self.content.iter().copied())
    }

    /// Returns whether the content of a file is as committed.
    fn is_unchanged(&self, ino: Ino) -> bool {
        self.content.len() < CHANGES_MAX && !self.content.contains(&ino)
    }

    pub(super) fn attributes(&mut self, ino: Ino) {
        if self.attributes.len() < CHANGES_MAX {
            self.attributes.insert(ino);
        }
    }

    /// Records that a file gets another name.
    pub(super) fn linked(&mut self) {
        self.has_linked = true;
    }

    /// Returns whether a file got another name.
    pub(super) fn has_linked(&self) -> bool {
        self.has_linked
    }

    /// Records that a name is about to change; `before` is its current inode.
    pub(super) fn name(&mut self, dir: Ino, name: &str, before: Option<Ino>) {
        if self.count >= CHANGES_MAX {
            return;
        }
        let names = self.names.entry(dir).or_default();
        if !names.contains_key(name) {
            names.insert(name.into(), before);
            self.count += 1;
        }
    }

    /// Returns what a name led to before the transaction, if it changed since.
    fn before(&self, dir: Ino, name: &str) -> Option<Option<Ino>> {
        self.names.get(&dir)?.get(name).copied()
    }

    /// Returns the former place of each inode that lost a name.
    fn places(&self) -> InoMap<(Ino, &str)> {
        let mut places: InoMap<(Ino, &str)> = InoMap::default();
        for (dir, names) in &self.names {
            for (name, ino) in names.iter().filter_map(|(name, before)| Some((&**name, (*before)?))) {
                let place = places.entry(ino).or_insert((*dir, name));
                *place = (*place).min((*dir, name));
            }
        }
        places
    }

    fn is_complete(&self) -> bool {
        self.count < CHANGES_MAX && self.content.len() < CHANGES_MAX && self.attributes.len() < CHANGES_MAX
    }
}

/// The end of the time for a list.
struct Patience {
    until: Option<Instant>,
    looked_up: u32,
}

impl Patience {
    fn is_over(&mut self) -> bool {
        self.looked_up += 1;
        self.looked_up.is_multiple_of(LOOK_EVERY) && self.until.is_some_and(|until| clock::instant() > until)
    }

    /// Returns the maximum number of changes of each kind.
    fn most(&self) -> usize {
        if self.until.is_some() { LISTED_MAX } else { usize::MAX }
    }
}

/// A list under construction.
#[derive(Default)]
struct List {
    changes: BTreeMap<String, Change>,
    /// The size of their paths.
    bytes: usize,
    is_incomplete: bool,
}

impl Store {
    /// Records that a file's content changed.
    pub(super) fn note_content(&mut self, ino: Ino) -> Result<(), Fault> {
        let number = self.number;
        let before = std::mem::replace(&mut self.file(ino)?.noted, number);
        if before != number && self.journal.content.len() < CHANGES_MAX {
            self.journal.content.insert(ino);
        }
        Ok(())
    }

    /// Returns the cached facts about a file's content.
    pub(crate) fn content(&self, stat: &Stat) -> Option<Content> {
        self.contents.get(stat).filter(|_| self.journal.is_unchanged(stat.ino))
    }

    /// Returns an absolute path of an inode, if it still has one.
    pub(super) fn path_of(&mut self, ino: Ino) -> Result<Option<String>, Fault> {
        self.path_from(ino, |_, place| Some(place))
    }

    /// Returns an absolute path that an inode had before the transaction, if it existed.
    fn path_before(&mut self, ino: Ino, journal: &Journal, places: &InoMap<(Ino, &str)>) -> Result<Option<String>, Fault> {
        self.path_from(ino, |ino, (dir, name)| match places.get(&ino) {
            Some((dir, name)) => Some((*dir, (*name).to_owned())),
            // A place that was recorded without it is that of a new inode.
            None => journal.before(dir, &name).is_none().then_some((dir, name)),
        })
    }

    // Follows the places of inodes up to the root; `choose` may replace the current place of an inode, or end the search.
    fn path_from(
        &mut self,
        ino: Ino,
        choose: impl Fn(Ino, (Ino, String)) -> Option<(Ino, String)>,
    ) -> Result<Option<String>, Fault> {
        if ino == ROOT {
            return Ok(Some("/".to_owned()));
        }
        let mut names = Vec::new();
        let mut current = ino;
        while current != ROOT {
            // A removed inode has no place now, but may have had one.
            let place = self.place(current)?.unwrap_or_default();
            let Some((parent, name)) = choose(current, place).filter(|(parent, _)| *parent != NOWHERE) else { return Ok(None) };
            names.push(name);
            current = parent;
            if names.len() > crate::Quota::DEPTH_MAX as usize + 1 {
                return Ok(None);
            }
        }
        let mut path = String::new();
        for name in names.iter().rev() {
            path.push('/');
            path.push_str(name);
        }
        Ok(Some(path))
    }

    /// Returns the changes that can be listed by `until`, and whether the list is complete.
    pub(crate) fn changes(&mut self, until: Option<Instant>) -> Result<(Vec<Change>, bool), Fault> {
        let journal = std::mem::take(&mut self.journal);
        let listed = self.list_changes(&journal, Patience { until, looked_up: 0 });
        self.journal = journal;
        listed
    }

    fn list_changes(&mut self, journal: &Journal, mut patience: Patience) -> Result<(Vec<Change>, bool), Fault> {
        let mut list = List { is_incomplete: !journal.is_complete(), ..List::default() };
        self.list_names(journal, &mut list, &mut patience)?;
        for (inodes, kind) in [(&journal.content, ChangeKind::Modified), (&journal.attributes, ChangeKind::Attributes)] {
            self.list_inodes(inodes, &kind, &mut list, &mut patience)?;
        }
        Ok((list.changes.into_values().collect(), !list.is_incomplete))
    }

    // Lists paths that lead to another inode than before, or to none.
    fn list_names(&mut self, journal: &Journal, list: &mut List, patience: &mut Patience) -> Result<(), Fault> {
        let places = journal.places();
        let (mut paths, mut bytes) = (BTreeSet::new(), 0);
        let mut dirs: Vec<_> = journal.names.iter().collect();
        dirs.sort_unstable_by_key(|(dir, _)| **dir);
        for (dir, names) in dirs {
            if paths.len() > patience.most() || bytes > PATHS_MAX || patience.is_over() {
                list.is_incomplete = true;
                break;
            }
            let (before, now) = (self.path_before(*dir, journal, &places)?, self.path_of(*dir)?);
            for above in [now.as_ref(), before.as_ref().filter(|before| now.as_ref() != Some(*before))].into_iter().flatten() {
                for name in names.keys().take(patience.most().saturating_add(1)) {
                    if bytes > PATHS_MAX {
                        list.is_incomplete = true;
                        break;
                    }
                    let path = format!("{}/{name}", above.trim_end_matches('/'));
                    bytes += path.len();
                    paths.insert(path);
                }
            }
        }
        let (mut gone, mut moved) = (Vec::new(), HashSet::new());
        for (at, path) in paths.into_iter().enumerate() {
            if at >= patience.most() || (at > 0 && patience.is_over()) {
                list.is_incomplete = true;
                break;
            }
            let (before, now) = (self.walk(&path, Some(journal))?, self.walk(&path, None)?);
            let Some(ino) = now.filter(|_| before != now) else {
                if before != now {
                    gone.push(path);
                }
                continue;
            };
            let origin = match places.contains_key(&ino) {
                true => self.path_before(ino, journal, &places)?,
                false => None,
            };
            let origin = match origin {
                Some(from) if self.walk(&from, None)? != Some(ino) => Some(from),
                _ => None,
            };
            let kind = match (origin, before) {
                (Some(from), _) => {
                    moved.insert(from.clone());
                    ChangeKind::Renamed { from }
                }
                (None, Some(_)) => ChangeKind::Modified,
                (None, None) => ChangeKind::Created,
            };
            let stat = self.stat(ino)?;
            list.add(path, kind, Some(stat));
        }
        gone.into_iter().filter(|path| !moved.contains(path)).for_each(|path| list.add(path, ChangeKind::Deleted, None));
        Ok(())
    }

    // Lists inodes that changed themselves, under all their names.
    fn list_inodes(
        &mut self,
        inodes: &HashSet<Ino>,
        kind: &ChangeKind,
        list: &mut List,
        patience: &mut Patience,
    ) -> Result<(), Fault> {
        let mut linked = HashMap::new();
        for (at, &ino) in inodes.iter().enumerate() {
            if at >= patience.most() || list.bytes > PATHS_MAX || patience.is_over() {
                list.is_incomplete = true;
                break;
            }
            if self.orphans.contains_key(&ino) {
                continue;
            }
            let stat = match self.stat(ino) {
                Ok(stat) => stat,
                Err(Fault::Fs(FsError::NoEntry)) => continue,
                Err(fault) => return Err(fault),
            };
            if stat.nlink > 1 && !stat.is_dir() {
                linked.insert(ino, stat);
            } else if let Some(path) = self.path_of(ino)? {
                list.add(path, kind.clone(), Some(stat));
            }
        }
        for (dir, name, ino) in self.names_of(&linked)? {
            if list.bytes > PATHS_MAX || patience.is_over() {
                list.is_incomplete = true;
                break;
            }
            if let (Some(above), Some(stat)) = (self.path_of(dir)?, linked.get(&ino)) {
                list.add(format!("{}/{name}", above.trim_end_matches('/')), kind.clone(), Some(*stat));
            }
        }
        Ok(())
    }

    // All names of some inodes. Reads all entries once.
    fn names_of(&mut self, inodes: &HashMap<Ino, Stat>) -> Result<Vec<(Ino, String, Ino)>, Fault> {
        if inodes.is_empty() {
            return Ok(Vec::new());
        }
        let connection = &self.connection;
        Ok(self.interrupter.reading(|| rows::names_of(connection, |ino| inodes.contains_key(&ino)))?)
    }

    // The inode at an absolute path of plain names, now or before the transaction.
    fn walk(&mut self, path: &str, before: Option<&Journal>) -> Result<Option<Ino>, Fault> {
        let mut ino = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let recorded = before.and_then(|journal| journal.before(ino, name));
            let found = match recorded {
                Some(found) => found,
                None => match self.find(ino, name) {
                    Ok(found) => found,
                    Err(Fault::Fs(FsError::NoEntry | FsError::NotDirectory)) => None,
                    Err(fault) => return Err(fault),
                },
            };
            let Some(found) = found else { return Ok(None) };
            ino = found;
        }
        Ok(Some(ino))
    }
}

impl List {
    // The first reason counts: a new name is more than new content.
    fn add(&mut self, path: String, kind: ChangeKind, stat: Option<Stat>) {
        let (file_type, size) = (stat.map(|stat| stat.file_type()), stat.map_or(0, |stat| stat.size));
        self.bytes += path.len();
        self.changes.entry(path.clone()).or_insert(Change { path, kind, file_type, size });
    }
}
