//! The changes that become visible when an overlay moves: what hooks can reject, and what the history and events list.
//!
//! A path changes if the two states of the source differ there and the sandbox has no file, link or removal of its own above it,
//! or if the sandbox gives up its own data there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlite_fs::path::Last;
use sqlite_fs::{Change, ChangeKind, FileType, FsError, Reader, Rows as _, Transaction, Volume as _};

use super::{Sides, entry, is_inside, is_same, names};
use crate::Error;
use crate::vfs::{ROOT_NODE, SourceStat, View, path_in};

/// Maximum number of listed changes.
const CHANGES_MAX: usize = 100_000;

/// Returns the visible changes, in the order of their paths, and whether there are no others. `before` shows the sandbox before the
/// update, and the conflicting paths were given up since; `changed` are the paths at which the states of the source may differ.
pub(super) fn changes(
    sides: &Sides<'_>,
    transaction: &Transaction,
    (before, given_up): (&View<Reader>, &[String]),
    changed: Option<BTreeSet<String>>,
) -> Result<(Vec<Change>, bool), Error> {
    let mut search = Search { sides, transaction, before, given_up, covers: HashMap::new(), found: BTreeMap::new() };
    let is_complete = search.run(changed)?;
    Ok((search.found.into_values().collect(), is_complete))
}

/// What the sandbox has at a path of the overlay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cover {
    /// Nothing: the source is visible.
    Nothing,
    /// A directory: names of the source are visible in it.
    Directory,
    /// A file or a removal, here or above.
    Everything,
}

struct Search<'a> {
    sides: &'a Sides<'a>,
    transaction: &'a Transaction,
    before: &'a View<Reader>,
    given_up: &'a [String],
    covers: HashMap<String, Cover>,
    found: BTreeMap<String, Change>,
}

impl Search<'_> {
    fn run(&mut self, changed: Option<BTreeSet<String>>) -> Result<bool, Error> {
        // Paths of the source, and whether everything below them is compared too.
        let mut left: Vec<(String, bool)> = match changed {
            Some(paths) => paths.into_iter().map(|path| (path, false)).collect(),
            None => vec![(String::new(), true)],
        };
        left.extend(self.given_up.iter().map(|path| (self.below(path), true)));
        let mut seen: HashMap<String, bool> = HashMap::new();
        while let Some((at, is_whole)) = left.pop() {
            self.sides.go_on()?;
            if self.found.len() >= CHANGES_MAX {
                return Ok(false);
            }
            if seen.get(&at).is_some_and(|seen| *seen >= is_whole) {
                continue;
            }
            seen.insert(at.clone(), is_whole);
            let cover = self.cover(&at)?;
            if cover == Cover::Everything {
                continue;
            }
            let old = match self.sides.old.as_deref() {
                Some(old) => self.sides.explained(entry(old, &at))?,
                None => None,
            };
            let new = self.sides.explained(entry(&*self.sides.new, &at))?;
            if cover == Cover::Nothing {
                self.compare(&at, old, new)?;
            }
            let kinds = [old, new].map(|stat| stat.map(|stat| stat.kind));
            let [before, after] = kinds;
            if is_whole || before != after {
                left.extend(self.names(&at, kinds)?.into_iter().map(|name| (path_in(&at, &name), true)));
            }
        }
        Ok(true)
    }

    // The names in a directory of either state.
    fn names(&self, at: &str, [before, after]: [Option<FileType>; 2]) -> Result<BTreeSet<String>, Error> {
        let mut found = BTreeSet::new();
        if let Some(old) = self.sides.old.as_deref().filter(|_| before == Some(FileType::Directory)) {
            found.extend(self.sides.explained(names(old, at))?);
        }
        if after == Some(FileType::Directory) {
            found.extend(self.sides.explained(names(&*self.sides.new, at))?);
        }
        Ok(found)
    }

    fn compare(&mut self, at: &str, old: Option<SourceStat>, new: Option<SourceStat>) -> Result<(), Error> {
        let path = self.full(at);
        let is_given_up = is_inside(&path, self.given_up);
        let old_kind = if is_given_up { self.kind_before(&path) } else { old.map(|old| old.kind) };
        let kind = match (old_kind, new) {
            (None, None) => return Ok(()),
            (None, Some(_)) => ChangeKind::Created,
            (Some(_), None) => ChangeKind::Deleted,
            (Some(FileType::Directory), Some(new)) if is_given_up && new.kind == FileType::Directory => ChangeKind::Attributes,
            (Some(_), Some(_)) if is_given_up => ChangeKind::Modified,
            (Some(_), Some(new)) => match self.difference(at, old, new)? {
                Some(kind) => kind,
                None => return Ok(()),
            },
        };
        let file_type = new.map(|new| new.kind).or(old_kind);
        let size = new.filter(|new| new.kind == FileType::File).map_or(0, |new| new.size);
        self.found.insert(path.clone(), Change { path, kind, file_type, size });
        Ok(())
    }

    // The difference between two states of the source.
    fn difference(&self, at: &str, old: Option<SourceStat>, new: SourceStat) -> Result<Option<ChangeKind>, Error> {
        let (Some(before), Some(stat)) = (self.sides.old.as_deref(), old) else { return Ok(Some(ChangeKind::Created)) };
        let with_mode = SourceStat { mode: stat.mode, ..new };
        if !self.sides.explained(is_same((before, &stat), (&*self.sides.new, &with_mode), at))? {
            return Ok(Some(ChangeKind::Modified));
        }
        Ok((stat.mode != new.mode).then_some(ChangeKind::Attributes))
    }

    // The type of what the sandbox showed at a path before it gave up its own data.
    fn kind_before(&self, path: &str) -> Option<FileType> {
        self.before.find(ROOT_NODE, path, Last::NoFollow).ok().map(|(_, kind)| kind)
    }

    fn cover(&mut self, at: &str) -> Result<Cover, Error> {
        if at.is_empty() {
            return Ok(Cover::Directory);
        }
        if let Some(known) = self.covers.get(at) {
            return Ok(*known);
        }
        let above = self.cover(at.rsplit_once('/').map_or("", |(above, _)| above))?;
        let cover = if above == Cover::Everything { above } else { self.own(&self.full(at))? };
        self.covers.insert(at.to_owned(), cover);
        Ok(cover)
    }

    fn own(&self, path: &str) -> Result<Cover, Error> {
        let kind = match self.transaction.fs().symlink_metadata(path) {
            Ok(stat) => Some(stat.file_type()),
            Err(error) if matches!(error.fs_error(), Some(FsError::NoEntry | FsError::NotDirectory)) => None,
            Err(error) => return Err(error.into()),
        };
        // A directory that replaced a removed one shows nothing of the source.
        if self.transaction.hides(path).map_err(sqlite_fs::Error::from)? {
            return Ok(Cover::Everything);
        }
        Ok(match kind {
            None => Cover::Nothing,
            Some(FileType::Directory) => Cover::Directory,
            Some(_) => Cover::Everything,
        })
    }

    fn full(&self, at: &str) -> String {
        format!("{}/{at}", self.sides.place)
    }

    fn below(&self, path: &str) -> String {
        path.get(self.sides.place.len()..).unwrap_or_default().trim_start_matches('/').to_owned()
    }
}
