//! Whiteouts: paths at which an overlay hides its base directory. AgentFS's `fs_whiteout`.
//!
//! The table is created when the first path is hidden. The base belongs to other code; this only stores paths.

use rusqlite::{Connection, OptionalExtension};

use crate::budget::ENTRY_BYTES;
use crate::contents::Content;
use crate::error::{Fault, FsError};
use crate::fs::Volume;
use crate::node::{Ino, Stat};
use crate::past::at;
use crate::reader::Reader;
use crate::rows::{self, split};
use crate::store::{Store, write};
use crate::transaction::Transaction;

pub(crate) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS fs_whiteout (path TEXT PRIMARY KEY, parent_path TEXT NOT NULL, created_at INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS idx_fs_whiteout_parent ON fs_whiteout(parent_path);
";

/// The rows of a database: a tree of files, the paths that it hides of its base, and cached facts about contents.
pub trait Rows: Volume<Node = Ino> {
    /// Returns whether anything is hidden.
    fn hides_any(&self) -> Result<bool, FsError>;

    /// Returns whether this exact path is hidden.
    fn hides(&self, path: &str) -> Result<bool, FsError>;

    /// Returns cached facts about a file's content, without reading it.
    fn content(&self, stat: &Stat) -> Option<Content>;

    /// Caches facts about a file that was read completely, if these rows are the committed ones.
    fn keep_content(&self, stat: &Stat, content: Content);

    /// Returns whether a file may have several names: always true in a past version; in a transaction, as at its start.
    fn has_links(&self) -> Result<bool, FsError>;
}

impl Rows for Transaction {
    fn hides_any(&self) -> Result<bool, FsError> {
        self.run(|store| Ok(hides_any(&store.connection)?))
    }

    fn hides(&self, path: &str) -> Result<bool, FsError> {
        self.run(|store| Ok(hides(&store.connection, path)?))
    }

    fn content(&self, stat: &Stat) -> Option<Content> {
        self.run(|store| Ok(store.content(stat))).ok()?
    }

    fn keep_content(&self, _: &Stat, _: Content) {}

    fn has_links(&self) -> Result<bool, FsError> {
        self.run(|store| {
            let contents = std::sync::Arc::clone(&store.contents);
            Ok(contents.links(contents.mark(), || has_links(&store.connection))?)
        })
    }
}

impl Rows for Reader {
    fn hides_any(&self) -> Result<bool, FsError> {
        self.rows(|connection| match self.version_read() {
            None => Ok(hides_any(connection)?),
            Some(at) => at::hides_any(connection, at),
        })
        .map_err(|fault| fault.as_fs())
    }

    fn hides(&self, path: &str) -> Result<bool, FsError> {
        self.rows(|connection| match self.version_read() {
            None => Ok(hides(connection, path)?),
            Some(at) => at::hides(connection, at, path),
        })
        .map_err(|fault| fault.as_fs())
    }

    fn content(&self, stat: &Stat) -> Option<Content> {
        self.known_content(stat)
    }

    fn keep_content(&self, stat: &Stat, content: Content) {
        self.keep_known_content(stat, content);
    }

    fn has_links(&self) -> Result<bool, FsError> {
        if self.version_read().is_some() {
            return Ok(true);
        }
        if let Some(links) = self.known_links() {
            return Ok(links);
        }
        self.rows(|connection| Ok(self.links_known(|| has_links(connection))?)).map_err(|fault| fault.as_fs())
    }
}

fn has_links(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM fs_inode WHERE nlink>1 AND (mode & 61440)<>16384 LIMIT 1")?.exists([])
}

pub(crate) fn hides_any(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(exists(connection, "main")?
        && connection.prepare_cached("SELECT 1 FROM fs_whiteout")?.query_row([], |_| Ok(())).optional()?.is_some())
}

pub(crate) fn hides(connection: &Connection, path: &str) -> rusqlite::Result<bool> {
    match connection.prepare_cached("SELECT 1 FROM fs_whiteout WHERE path=?1") {
        Ok(mut statement) => Ok(statement.query_row([path], |_| Ok(())).optional()?.is_some()),
        Err(_) if !exists(connection, "main")? => Ok(false),
        Err(error) => Err(error),
    }
}

impl Transaction {
    /// Hides an absolute path and everything below it, discarding whiteouts below it.
    pub fn hide(&self, path: &str) -> Result<(), FsError> {
        self.run(|store| store.hide(path))
    }

    /// Shows a path again. Paths below it that were hidden before are not hidden again.
    pub fn show(&self, path: &str) -> Result<(), FsError> {
        self.run(|store| store.show(path))
    }

    /// Returns the hidden paths below a directory, in order: at most `most`.
    pub fn hidden_below(&self, directory: &str, most: usize) -> Result<Vec<String>, FsError> {
        self.run(|store| Ok(hidden_below(&store.connection, directory.trim_end_matches('/'), most)?))
    }
}

fn hidden_below(connection: &Connection, directory: &str, most: usize) -> rusqlite::Result<Vec<String>> {
    if !exists(connection, "main")? {
        return Ok(Vec::new());
    }
    // `0` is the character after `/`.
    let mut statement =
        connection.prepare_cached("SELECT path FROM fs_whiteout WHERE path>?1||'/' AND path<?1||'0' ORDER BY path LIMIT ?2")?;
    let found = statement.query_map(rusqlite::params![directory, rows::signed(most as u64)], |row| row.get(0))?;
    found.collect()
}

impl Store {
    pub(crate) fn show(&mut self, path: &str) -> Result<(), Fault> {
        if !hides(&self.connection, path)? {
            return Ok(());
        }
        let parent = path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent });
        self.change_names(0, ENTRY_BYTES.saturating_add((path.len() + parent.len()) as u64))?;
        Ok(write::show(&self.connection, &self.past, path)?)
    }

    pub(crate) fn hide(&mut self, path: &str) -> Result<(), Fault> {
        if !exists(&self.connection, "main")? {
            self.connection.execute_batch(TABLE)?;
        }
        let parent = path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent });
        let forgotten: u64 = self
            .connection
            .prepare_cached(
                "SELECT coalesce(sum(64+octet_length(path)+octet_length(parent_path)), 0) FROM fs_whiteout
                 WHERE parent_path=?1 OR path=?1",
            )?
            .query_row([path], |row| rows::bytes(row, 0))?;
        let added = ENTRY_BYTES.saturating_add((path.len() + parent.len()) as u64);
        self.check_names(added, forgotten)?;
        self.change_names(added, forgotten)?;
        Ok(write::hide(&self.connection, &self.past, path, parent, split(self.now()).0)?)
    }
}

/// Returns whether a database has the table.
pub(crate) fn exists(connection: &Connection, schema: &str) -> rusqlite::Result<bool> {
    let query = format!("SELECT 1 FROM {schema}.sqlite_schema WHERE type='table' AND name='fs_whiteout'");
    Ok(connection.prepare_cached(&query)?.query_row([], |_| Ok(())).optional()?.is_some())
}

#[cfg(test)]
mod tests {
    use crate::{Database, Rows};

    #[test]
    fn a_hidden_directory_hides_everything_below() {
        let database = Database::options().open().unwrap();
        let transaction = database.begin(None).unwrap();
        assert!(!transaction.hides_any().unwrap());
        assert!(!transaction.hides("/w/d").unwrap());
        transaction.hide("/w/d/file").unwrap();
        transaction.hide("/w/d").unwrap();
        assert!(transaction.hides("/w/d").unwrap());
        assert!(!transaction.hides("/w/d/file").unwrap());
        transaction.commit().unwrap();
        assert_eq!(database.check().unwrap(), []);
    }

    #[test]
    fn a_path_that_was_hidden_can_be_shown_again() {
        let database = Database::options().open().unwrap();
        let transaction = database.begin(None).unwrap();
        for path in ["/w/a", "/w/b/c", "/wx", "/w0"] {
            transaction.hide(path).unwrap();
        }
        assert_eq!(transaction.hidden_below("/w", 10).unwrap(), ["/w/a", "/w/b/c"]);
        assert_eq!(transaction.hidden_below("/", 3).unwrap(), ["/w/a", "/w/b/c", "/w0"]);
        transaction.show("/w/a").unwrap();
        transaction.show("/w/never").unwrap();
        assert_eq!(transaction.hidden_below("/w", 10).unwrap(), ["/w/b/c"]);
        transaction.commit().unwrap();
        assert_eq!(database.check().unwrap(), []);
    }

    #[test]
    fn whiteouts_are_part_of_forks_and_rollbacks() {
        let database = Database::options().open().unwrap();
        let transaction = database.begin(None).unwrap();
        transaction.hide("/w/kept").unwrap();
        let before = transaction.savepoint().unwrap();
        transaction.hide("/w/back").unwrap();
        transaction.rollback_to(&before).unwrap();
        transaction.commit().unwrap();
        let fork = database.fork(Database::options()).unwrap();
        let transaction = fork.begin(None).unwrap();
        assert!(transaction.hides("/w/kept").unwrap());
        assert!(!transaction.hides("/w/back").unwrap());
    }
}
