//! The changes of a transaction, for the history.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use super::Store;
use crate::clock;
use crate::contents::Content;
use crate::error::{Fault, FsError};
use crate::node::{FileType, Ino, ROOT, Stat};

/// Maximum number of listed changes.
const CHANGES_MAX: usize = 10_000;
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

/// The state recorded while the transaction runs.
#[derive(Clone, Default)]
pub(super) struct Journal {
    /// Path -> the inode it led to when it was first touched.
    names: HashMap<String, Option<Ino>>,
    content: HashSet<Ino>,
    attributes: HashSet<Ino>,
    /// The directory that was last looked up, because most changes come in groups.
    last_dir: Option<(Ino, String)>,
}

impl Journal {
    /// Records that a directory was moved, which changes the paths below it.
    pub(super) fn directory_moved(&mut self) {
        self.last_dir = None;
    }

    /// Returns the number of changes to list.
    pub(super) fn len(&self) -> usize {
        self.names.len() + self.content.len() + self.attributes.len()
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
}

impl Store {
    /// Records that a name is about to change; `before` is its current inode.
    pub(super) fn note_name(&mut self, dir: Ino, name: &str, before: Option<Ino>) -> Result<(), Fault> {
        if self.journal.names.len() >= CHANGES_MAX {
            return Ok(());
        }
        let known = self.journal.last_dir.as_ref().filter(|(ino, _)| *ino == dir);
        let mut path = match known {
            Some((_, path)) => path.clone(),
            None => {
                let Some(path) = self.path_of(dir)? else { return Ok(()) };
                self.journal.last_dir = Some((dir, path.clone()));
                path
            }
        };
        if path.len() > 1 {
            path.push('/');
        }
        path.push_str(name);
        self.journal.names.entry(path).or_insert(before);
        Ok(())
    }

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
        if ino == ROOT {
            return Ok(Some("/".to_owned()));
        }
        let mut names = Vec::new();
        let mut current = ino;
        while current != ROOT {
            let Some((parent, name)) = self.place(current)? else { return Ok(None) };
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
        let journal = self.journal.clone();
        let mut looked_up = 0_u32;
        let mut is_time_over = move || {
            looked_up += 1;
            looked_up.is_multiple_of(LOOK_EVERY) && until.is_some_and(|until| clock::instant() > until)
        };
        let mut is_complete =
            journal.names.len() < CHANGES_MAX && journal.content.len() < CHANGES_MAX && journal.attributes.len() < CHANGES_MAX;
        let mut names: Vec<(&String, &Option<Ino>)> = journal.names.iter().collect();
        names.sort_unstable();
        let was: HashMap<Ino, &String> = names.iter().filter_map(|(path, before)| before.map(|ino| (ino, *path))).collect();
        let mut now: HashMap<&String, Option<Ino>> = HashMap::new();
        for (at, (path, _)) in names.iter().enumerate() {
            now.insert(path, self.walk(path)?);
            if is_time_over() {
                names.truncate(at + 1);
                is_complete = false;
                break;
            }
        }
        let mut changes = Vec::new();
        let mut listed = HashSet::new();
        let mut moved = HashSet::new();
        for (path, before) in &names {
            let Some(ino) = now.get(path).copied().flatten() else { continue };
            if **before == Some(ino) {
                continue;
            }
            let stat = self.stat(ino)?;
            let origin = was.get(&ino).filter(|from| now.get(*from).copied().flatten() != Some(ino));
            let kind = match (origin, before) {
                (Some(from), _) => {
                    moved.insert((*from).clone());
                    ChangeKind::Renamed { from: (*from).clone() }
                }
                (None, Some(_)) => ChangeKind::Modified,
                (None, None) => ChangeKind::Created,
            };
            listed.insert(ino);
            changes.push(Change { path: (*path).clone(), kind, file_type: Some(stat.file_type()), size: stat.size });
        }
        for (path, before) in &names {
            if before.is_some() && now.get(path).copied().flatten().is_none() && !moved.contains(*path) {
                changes.push(Change { path: (*path).clone(), kind: ChangeKind::Deleted, file_type: None, size: 0 });
            }
        }
        for (inodes, kind) in [(&journal.content, ChangeKind::Modified), (&journal.attributes, ChangeKind::Attributes)] {
            for &ino in inodes {
                if is_time_over() {
                    is_complete = false;
                    break;
                }
                if listed.contains(&ino) || self.orphans.contains_key(&ino) {
                    continue;
                }
                let stat = match self.stat(ino) {
                    Ok(stat) => stat,
                    Err(Fault::Fs(FsError::NoEntry)) => continue,
                    Err(fault) => return Err(fault),
                };
                if let Some(path) = self.path_of(ino)? {
                    listed.insert(ino);
                    let file_type = Some(stat.file_type());
                    changes.push(Change { path, kind: kind.clone(), file_type, size: stat.size });
                }
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((changes, is_complete))
    }

    /// Returns the inode at an absolute path of plain names.
    fn walk(&mut self, path: &str) -> Result<Option<Ino>, Fault> {
        let mut ino = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            match self.lookup(ino, name) {
                Ok((found, _)) => ino = found,
                Err(Fault::Fs(FsError::NoEntry | FsError::NotDirectory)) => return Ok(None),
                Err(fault) => return Err(fault),
            }
        }
        Ok(Some(ino))
    }
}
