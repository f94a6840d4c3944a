//! Taking in a file from elsewhere: AgentFS's, LocalSandbox's or one of ours.
//!
//! The file is hostile until proven otherwise. It is copied under a private name, opened read-only and immutable, and
//! only named columns of named tables are selected; each value is checked and written into a fresh database of ours.
//! Nothing of the file's own schema, and nothing beside the file (a journal, a write-ahead log), ever acts.

mod calls;
mod convert;
mod past;
mod source;

use std::path::Path;
use std::time::Instant;

use crate::budget::Budgets;
use crate::check;
use crate::copy::Export;
use crate::database::Database;
use crate::error::{Error, FsError};
use crate::making::{NewFile, Scratch};
use crate::medium;
use crate::options::{Durability, Options};
use crate::past::Keep;
use crate::store::Store;
use source::Source;

/// What an import may take.
#[derive(Clone, Debug)]
pub struct Import {
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Size of the file, and of all files in it together.
    pub max_bytes: u64,
    /// Rows of one table.
    pub max_rows: u64,
    /// Also read the write-ahead log beside the file. Only for a file of one's own that was not closed well: a log is
    /// replayed page by page, and whoever made the log decides what the file says.
    pub write_ahead_log: bool,
    /// Refuse the file unless it says exactly this: [`Database::digest`] of the one that was exported, secrets and history
    /// as they were exported.
    pub digest: Option<String>,
}

impl Default for Import {
    fn default() -> Self {
        Self { deadline: None, max_bytes: 16 << 30, max_rows: 20_000_000, write_ahead_log: false, digest: None }
    }
}

/// What an import brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Files, directories and symbolic links.
    pub inodes: u64,
    /// Keys.
    pub keys: u64,
    /// Recorded calls.
    pub calls: u64,
    /// Versions, the oldest one included.
    pub versions: u64,
    /// What was left out or put right, in sentences.
    pub notes: Vec<String>,
}

impl Imported {
    fn note(&mut self, text: String) {
        const NOTES_MAX: usize = 100;
        if self.notes.len() < NOTES_MAX {
            self.notes.push(text);
        }
    }
}

/// Why a file is not taken in.
pub(crate) fn refused(rule: &'static str, detail: impl Into<String>) -> Error {
    Error::Refused { rule, detail: detail.into() }
}

impl Database {
    /// Makes a fresh database from a file, whose rows are checked one by one; `options.path` must not exist yet. Nothing is
    /// at that path before everything is in it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Refused`] if the file breaks a rule or does not fit into the quota, [`Error::Invalid`] if `options.path`
    /// exists, [`Error::Disk`] if a file cannot be read or written, or [`Error::Interrupted`] if the deadline passes.
    pub fn import(file: &Path, options: Options, import: &Import) -> Result<(Self, Imported), Error> {
        let Some(path) = options.path.clone() else {
            #[expect(clippy::disallowed_methods, reason = "a database in memory has no directory of its own for the copy")]
            let parent = std::env::temp_dir();
            let scratch = Scratch::new_in(&parent).map_err(|source| Error::Disk { path: parent.clone(), source })?;
            return Self::filled(file, scratch.path(), options, import);
        };
        if path.symlink_metadata().is_ok() {
            return Err(Error::Invalid { what: "path", reason: format!("`{}` exists", path.display()) });
        }
        medium::refuse_network(&path)?;
        let new = NewFile::beside(&path)?;
        let (database, imported) = Self::filled(file, new.directory(), options.clone().path(new.path()), import)?;
        database.bring_log_back()?;
        drop(database);
        new.publish_database(options.durability == Durability::PowerSafe)?;
        Ok((options.open_published()?, imported))
    }

    /// A fresh database with the rows of a file, which is copied into `directory` first.
    fn filled(file: &Path, directory: &Path, options: Options, import: &Import) -> Result<(Self, Imported), Error> {
        let source = Source::open(file, directory, import).map_err(blame)?;
        let database = options.open()?;
        let mut imported = database.take_in(&source, import).map_err(blame)?;
        database.compare(import, &mut imported)?;
        Ok((database, imported))
    }

    // Everything that came in is compared: what the exporter left out is not here either. Versions that the digest does not
    // vouch for are dropped.
    fn compare(&self, import: &Import, imported: &mut Imported) -> Result<(), Error> {
        const EVERYTHING: Export = Export { history: true, secrets: true };
        let Some(expected) = &import.digest else { return Ok(()) };
        if imported.versions > 0 && self.digest_with_past(EVERYTHING)?.eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        let found = self.digest(EVERYTHING)?;
        if !found.eq_ignore_ascii_case(expected) {
            return Err(refused("digest", format!("its digest is {found}")));
        }
        if imported.versions > 0 {
            let transaction = self.begin(None)?;
            transaction.prune(&Keep { versions: Some(1), ..Keep::default() })?;
            transaction.commit()?;
            imported.versions = 0;
            imported.note("versions were left out: the digest is of the present alone".to_owned());
        }
        Ok(())
    }

    fn take_in(&self, source: &Source, import: &Import) -> Result<Imported, Error> {
        let transaction = self.begin(None)?;
        let imported = transaction.with(|store| {
            let mut imported = Imported::default();
            store.run(|_| Ok(()))?;
            store.take_overlay(source, &mut imported)?;
            store.take_names(source, import, &mut imported)?;
            store.take_contents(source, &mut imported)?;
            store.take_keys(source, &mut imported)?;
            store.take_sessions(source)?;
            store.take_policy(source)?;
            store.take_calls(source, import, &mut imported)?;
            // The rows came in past the sums.
            store.budgets = Budgets::default();
            let names = store.run(Store::used)?.names;
            too_much("names", names, store.quota.names)?;
            store.run(Store::settle)?;
            store.take_past(source, import, &mut imported)?;
            let chunk_bytes = store.chunk_bytes();
            let violations = store.run(|store| check::rules(&store.connection, chunk_bytes, || store.patience.refill()))?;
            match violations.into_iter().next() {
                None => Ok(imported),
                Some(violation) => Err(refused(violation.rule, violation.detail)),
            }
        })?;
        transaction.commit()?;
        Ok(imported)
    }
}

/// What SQLite says while it reads a foreign file, or while it stores what the file says, is about the file; a full
/// disk or a deadline is not.
fn blame(error: Error) -> Error {
    match error {
        Error::Damaged(detail) => refused("readable", detail),
        Error::NotADatabase => refused("readable", "it is not a SQLite database"),
        Error::Sqlite(error) => refused("readable", error.to_string()),
        other => other,
    }
}

/// A budget that what a file holds does not fit into.
fn too_much(limit: &'static str, bytes: u64, allowed: u64) -> Result<(), Error> {
    if bytes > allowed { Err(refused("quota", format!("more than {allowed} bytes of {limit}"))) } else { Ok(()) }
}

/// An error of ours while writing what a file says is the file's fault when the quota is reached.
fn quota(error: FsError, detail: String) -> Error {
    match error {
        FsError::NoSpace | FsError::FileTooBig => refused("quota", detail),
        other => other.into(),
    }
}
