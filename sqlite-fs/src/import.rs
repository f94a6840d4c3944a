//! Import of foreign files: AgentFS's, LocalSandbox's or our own.
//!
//! The file is treated as hostile. It is copied under a private name, opened read-only and immutable, and only named columns of
//! named tables are selected; each value is checked and written into a fresh database. Neither the file's own schema nor anything
//! next to the file (a journal, a write-ahead log) ever acts.

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
use crate::error::{Error, FsError, NO_DATABASE};
use crate::making::{NewFile, Scratch};
use crate::medium;
use crate::options::{Durability, Options};
use crate::past::Keep;
use crate::store::Store;
use source::Source;

/// Limits of an import.
#[derive(Clone, Debug)]
pub struct Import {
    /// The deadline.
    pub deadline: Option<Instant>,
    /// Maximum size of the file, and of all files in it together.
    pub max_bytes: u64,
    /// Maximum number of rows in one table.
    pub max_rows: u64,
    /// Whether to also read the write-ahead log next to the file. Only for your own files that were not closed properly: a log is
    /// replayed page by page, so its author controls the content of the file.
    pub write_ahead_log: bool,
    /// Reject the file unless it has this digest: [`Database::digest`] of the exported one, with the same settings for secrets
    /// and history.
    pub digest: Option<String>,
}

impl Default for Import {
    fn default() -> Self {
        Self { deadline: None, max_bytes: 16 << 30, max_rows: 20_000_000, write_ahead_log: false, digest: None }
    }
}

/// The result of an import.
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
    /// Notes on omitted and corrected data.
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

/// Creates the error for a rejected file.
pub(crate) fn refused(rule: &'static str, detail: impl Into<String>) -> Error {
    Error::Refused { rule, detail: detail.into() }
}

impl Database {
    /// Creates a fresh database from a file, whose rows are checked one by one. `options.path` must not exist; it appears only
    /// once the import is complete.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Refused`] if the file violates a rule or exceeds the quota, [`Error::Invalid`] if `options.path` exists,
    /// [`Error::Disk`] if a file cannot be read or written, and [`Error::Interrupted`] if the deadline passes.
    pub fn import(file: &Path, options: Options, import: &Import) -> Result<(Self, Imported), Error> {
        let Some(path) = options.path.clone() else {
            #[expect(clippy::disallowed_methods, reason = "a database in memory has no directory of its own for the copy")]
            let parent = std::env::temp_dir();
            let scratch = Scratch::new_in(&parent).map_err(|source| Error::Disk { path: parent.clone(), source })?;
            return Self::filled(file, scratch.path(), options, import);
        };
        if path.symlink_metadata().is_ok() {
            return Err(Error::Invalid { what: "path", reason: format!("`{}` already exists", path.display()) });
        }
        medium::refuse_network(&path)?;
        let new = NewFile::beside(&path)?;
        let (database, imported) = Self::filled(file, new.directory(), options.clone().path(new.path()), import)?;
        database.bring_log_back()?;
        drop(database);
        new.publish_database(options.durability == Durability::PowerSafe)?;
        Ok((options.open_published()?, imported))
    }

    /// Creates a fresh database with the rows of a file, which is first copied into `directory`.
    fn filled(file: &Path, directory: &Path, options: Options, import: &Import) -> Result<(Self, Imported), Error> {
        let source = Source::open(file, directory, import).map_err(blame)?;
        let database = options.open()?;
        let mut imported = database.take_in(&source, import).map_err(blame)?;
        database.compare(import, &mut imported)?;
        Ok((database, imported))
    }

    // Everything that was imported is compared: data omitted by the exporter is not here either. Versions not covered by the
    // digest are dropped.
    fn compare(&self, import: &Import, imported: &mut Imported) -> Result<(), Error> {
        const EVERYTHING: Export = Export { history: true, secrets: true };
        let Some(expected) = &import.digest else { return Ok(()) };
        if imported.versions > 0 && self.digest_with_past(EVERYTHING)?.eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        let found = self.digest(EVERYTHING)?;
        if !found.eq_ignore_ascii_case(expected) {
            return Err(refused("digest", format!("the digest of the file is {found}")));
        }
        if imported.versions > 0 {
            let transaction = self.begin(None)?;
            transaction.prune(&Keep { versions: Some(1), ..Keep::default() })?;
            transaction.commit()?;
            imported.versions = 0;
            imported.note("versions were omitted: the digest covers only the current state".to_owned());
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
            // The rows were written without updating the sums.
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

/// Attributes SQLite's errors while reading a foreign file, or while storing its values, to the file; a full disk or a deadline
/// is not its fault.
fn blame(error: Error) -> Error {
    match error {
        Error::Damaged(detail) => refused("readable", detail),
        Error::NotADatabase => refused(NO_DATABASE, "it is not an SQLite database"),
        Error::Sqlite(error) => refused("readable", error.to_string()),
        other => other,
    }
}

/// Rejects a file whose content exceeds a budget.
fn too_much(limit: &'static str, bytes: u64, allowed: u64) -> Result<(), Error> {
    if bytes > allowed { Err(refused("quota", format!("{limit} exceeds {allowed} bytes"))) } else { Ok(()) }
}

/// Attributes an error while writing the file's values to the file if the quota is reached.
fn quota(error: FsError, detail: String) -> Error {
    match error {
        FsError::NoSpace | FsError::FileTooBig => refused("quota", detail),
        other => other.into(),
    }
}
