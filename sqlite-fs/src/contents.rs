//! Facts about file contents that need not be read again: kept in memory until a commit changes the file.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::node::{Ino, Stat};

/// Maximum number of files with cached facts.
const FILES_MAX: usize = 4096;

/// Facts about a file that was read completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// A content hash: equal for equal bytes.
    pub etag: String,
    /// Number of line ends.
    pub newlines: u64,
    /// Whether a line ends with CR LF.
    pub has_crlf: bool,
    /// Whether the last line has a line end; true for an empty file.
    pub is_terminated: bool,
}

/// The cached facts.
#[derive(Debug, Default)]
pub(crate) struct Contents(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    commits: u64,
    files: HashMap<Ino, (Stamp, Content)>,
    /// Whether a file may have several names after a commit.
    links: Option<(u64, bool)>,
    /// Counts how often another process may have committed.
    visits: u64,
}

/// The attributes that another program would change along with a file.
type Stamp = (u64, i64, i64);

fn stamp(stat: &Stat) -> Stamp {
    (stat.size, stat.mtime, stat.ctime)
}

impl Contents {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the last commit; call before a state is read.
    pub(crate) fn mark(&self) -> u64 {
        self.known().commits
    }

    /// Returns whether a file may have several names, if that is known for the last commit.
    pub(crate) fn known_links(&self) -> Option<bool> {
        let known = self.known();
        known.links.filter(|(mark, _)| *mark == known.commits).map(|(_, links)| links)
    }

    /// Returns whether a file may have several names, as of the last commit. `find` determines it for a state that was read after
    /// `mark` was taken; from then on only a commit that adds such a name changes it.
    pub(crate) fn links<E>(&self, mark: u64, find: impl FnOnce() -> Result<bool, E>) -> Result<bool, E> {
        if let Some(links) = self.known_links() {
            return Ok(links);
        }
        let links = find()?;
        self.known().links = Some((mark, links));
        Ok(links)
    }

    /// Returns the facts about a file in its committed state.
    pub(crate) fn get(&self, stat: &Stat) -> Option<Content> {
        let known = self.known();
        known.files.get(&stat.ino).filter(|(seen, _)| *seen == stamp(stat)).map(|(_, content)| content.clone())
    }

    /// Stores facts that were read after `mark` was taken, unless something was committed meanwhile.
    pub(crate) fn keep(&self, mark: u64, stat: &Stat, content: Content) {
        let mut known = self.known();
        if known.commits != mark {
            return;
        }
        if known.files.len() >= FILES_MAX {
            known.files.clear();
        }
        known.files.insert(stat.ino, (stamp(stat), content));
    }

    /// Clears the cache after a commit of another process.
    pub(crate) fn forget(&self) {
        self.committed(None::<std::iter::Empty<Ino>>, false);
        let mut known = self.known();
        known.links = None;
        known.visits += 1;
    }

    /// Returns how often the cache was cleared because another process may have committed.
    pub(crate) fn visits(&self) -> u64 {
        self.known().visits
    }

    /// Clears the entries of files changed by a commit; `None` means too many to list. `has_linked`: whether it gave a file
    /// another name.
    pub(crate) fn committed(&self, changed: Option<impl Iterator<Item = Ino>>, has_linked: bool) {
        let mut known = self.known();
        let links = match known.links {
            _ if has_linked => Some(true),
            Some((mark, links)) if mark == known.commits => Some(links),
            _ => None,
        };
        known.commits += 1;
        known.links = links.map(|links| (known.commits, links));
        if known.files.is_empty() {
            return;
        }
        match changed {
            Some(changed) => changed.for_each(|ino| drop(known.files.remove(&ino))),
            None => known.files.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Content;
    use crate::{Database, Rows};

    fn content(etag: &str) -> Content {
        Content { etag: etag.to_owned(), newlines: 0, has_crlf: false, is_terminated: true }
    }

    #[test]
    fn cached_facts_of_a_file_are_dropped_by_the_commit_that_changes_it() {
        let database = Database::options().open().unwrap();
        let write = |path: &str, text: &str| {
            let transaction = database.begin(None).unwrap();
            transaction.fs().write(path, text).unwrap();
            // Timestamps prove nothing, because a clock may stand still.
            transaction.fs().set_times(path, Some(0), Some(0)).unwrap();
            transaction.commit().unwrap();
        };
        write("/a", "one");
        write("/b", "one");
        let reader = database.reader().unwrap();
        let [a, b] = ["/a", "/b"].map(|path| reader.fs().metadata(path).unwrap());
        assert_eq!(reader.content(&a), None);
        reader.keep_content(&a, content("a"));
        reader.keep_content(&b, content("b"));
        assert_eq!(reader.content(&a), Some(content("a")));
        let transaction = database.begin(None).unwrap();
        assert_eq!(transaction.content(&a), Some(content("a")));
        transaction.fs().write("/a", "two").unwrap();
        assert_eq!(transaction.content(&a), None, "it is another one in here");
        assert_eq!(reader.content(&a), Some(content("a")), "and the same out there");
        // Facts read before the commit and reported after it are discarded.
        reader.fs().metadata("/a").unwrap();
        transaction.commit().unwrap();
        reader.keep_content(&a, content("late"));
        assert_eq!((reader.content(&a), reader.content(&b)), (None, Some(content("b"))));
        // A rolled-back transaction changes nothing.
        drop(database.begin(None).inspect(|transaction| transaction.fs().write("/b", "three").unwrap()).unwrap());
        assert_eq!(reader.content(&b), Some(content("b")));
    }
}
