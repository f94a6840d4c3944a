//! Calls of the library as history rows: what the embedding program did to files and keys, beside what commands did.
//!
//! A change and its row are one transaction. The row of a call that only reads, or that failed, waits in memory for the
//! next transaction: reading never waits for a running command, and costs no commit.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sqlite_fs::{Database, Fs, NewCall, Outcome, Transaction};

use crate::tools::prefix;
use crate::vfs::{MountPoint, OverlayChanges, USER_ID, Vfs};
use crate::{Error, clock, history};

/// Rows that wait at most; then they are written even without a change.
const WAITING_MAX: usize = 256;

/// Longest text of a row, such as a key or a pattern: callers choose it, and rows wait in memory (T-DOS-03).
const TEXT_BYTES: usize = 4096;

/// One call of the library.
pub(super) struct Call {
    /// LocalSandbox's name for it where it has one: `write_file`, …
    name: &'static str,
    /// What it was about: a path, a key, …
    about: String,
    parameters: Value,
    started: i64,
}

impl Call {
    /// A call that begins now, about a path or a key.
    pub(super) fn new(name: &'static str, about: &str, mut parameters: Value) -> Self {
        if let Some(texts) = parameters.as_object_mut() {
            texts.values_mut().for_each(|value| {
                if let Value::String(text) = value {
                    shorten(text);
                }
            });
        }
        Self { name, about: prefix(about, TEXT_BYTES).to_owned(), parameters, started: now() }
    }

    fn finish(self, mut ended: Result<Value, String>) -> Finished {
        if let Err(complaint) = &mut ended {
            shorten(complaint);
        }
        Finished { call: self, ended, completed: now() }
    }
}

fn shorten(text: &mut String) {
    if text.len() > TEXT_BYTES {
        text.truncate(text.floor_char_boundary(TEXT_BYTES));
        text.push('…');
    }
}

fn now() -> i64 {
    i64::try_from(clock::unix_nanos()).unwrap_or(i64::MAX)
}

/// A call that is over.
struct Finished {
    call: Call,
    ended: Result<Value, String>,
    completed: i64,
}

impl Finished {
    fn write(&self, transaction: &Transaction, changes: Option<&str>) -> Result<(), Error> {
        let Call { name, about, parameters, started } = &self.call;
        let parameters = parameters.to_string();
        let command = format!("{name} {about}");
        let call = NewCall { name, parameters: Some(&parameters), command: &command };
        let result = self.ended.as_ref().ok().map(Value::to_string);
        let error = self.ended.as_ref().err().map(String::as_str);
        let outcome = Outcome { result: result.as_deref(), error, changes, ..Outcome::default() };
        transaction.calls().record(&call, &outcome, *started, self.completed)?;
        Ok(())
    }
}

/// Rows that no longer wait.
pub(super) struct Waited(Vec<Finished>);

impl Waited {
    /// Writes the rows into a transaction.
    pub(super) fn write(&self, transaction: &Transaction) -> Result<(), Error> {
        self.0.iter().try_for_each(|finished| finished.write(transaction, None))
    }
}

/// A sandbox's database with the rows that wait for it. The last clone to go writes what still waits.
#[derive(Clone)]
pub(super) struct Recorded(Arc<Inner>);

struct Inner {
    waiting: Mutex<Vec<Finished>>,
    // After the rows, for fields are dropped in order.
    database: Database,
}

impl Recorded {
    pub(super) fn new(database: Database) -> Self {
        Self(Arc::new(Inner { waiting: Mutex::new(Vec::new()), database }))
    }

    /// The database itself.
    pub(super) fn database(&self) -> &Database {
        &self.0.database
    }

    /// Does something to the files or keys, and records it in the same transaction; on an error nothing is done.
    pub(super) fn change<T>(&self, call: Call, work: impl FnOnce(&Transaction) -> Result<T, Error>) -> Result<T, Error> {
        self.change_answering(call, |transaction| Ok((work(transaction)?, serde_json::json!({ "success": true }))))
    }

    /// The same for a call whose answer is worth recording.
    pub(super) fn change_answering<T>(
        &self,
        call: Call,
        work: impl FnOnce(&Transaction) -> Result<(T, Value), Error>,
    ) -> Result<T, Error> {
        let transaction = self.database().begin(None)?;
        match work(&transaction) {
            Ok((done, answer)) => {
                self.keep(transaction, call, answer, &OverlayChanges::default())?;
                Ok(done)
            }
            Err(error) => {
                drop(transaction);
                self.0.wait(call.finish(Err(error.to_string())));
                Err(error)
            }
        }
    }

    /// Does something to the files as guests see them, mounts included.
    pub(super) fn change_files<T>(
        &self,
        mounts: &[MountPoint],
        call: Call,
        work: impl FnOnce(&Vfs) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let vfs = Vfs::with_mounts(self.database().begin(None)?, mounts).map_err(sqlite_fs::Error::from)?;
        match work(&vfs) {
            Ok(done) => {
                let overlay = vfs.overlay_changes();
                self.keep(vfs.into_transaction(), call, serde_json::json!({ "success": true }), &overlay)?;
                Ok(done)
            }
            Err(error) => {
                drop(vfs);
                self.0.wait(call.finish(Err(error.to_string())));
                Err(error)
            }
        }
    }

    fn keep(&self, transaction: Transaction, call: Call, answer: Value, overlay: &OverlayChanges) -> Result<(), Error> {
        self.write_waiting(&transaction)?;
        let changes = history::changes_json(self.database(), &transaction, overlay, history::CHANGES_TIME)?;
        call.finish(Ok(answer)).write(&transaction, changes.as_deref())?;
        Ok(transaction.commit()?)
    }

    /// Reads something, and lets the row wait for the next transaction.
    pub(super) fn read<T>(&self, call: Call, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.read_answering(call, || Ok((work()?, serde_json::json!({ "success": true }))))
    }

    /// The same for a call whose answer is worth recording.
    pub(super) fn read_answering<T>(&self, call: Call, work: impl FnOnce() -> Result<(T, Value), Error>) -> Result<T, Error> {
        match work() {
            Ok((done, answer)) => {
                self.0.wait(call.finish(Ok(answer)));
                Ok(done)
            }
            Err(error) => {
                self.0.wait(call.finish(Err(error.to_string())));
                Err(error)
            }
        }
    }

    /// Writes the waiting rows into a transaction that is going on anyway, and returns them in case it is rolled back.
    pub(super) fn write_waiting(&self, transaction: &Transaction) -> Result<Waited, Error> {
        let waited = Waited(std::mem::take(&mut *self.0.waiting()));
        waited.write(transaction)?;
        Ok(waited)
    }

    /// Writes the waiting rows now, unless a command is running or the database is for reading only: then they wait on.
    pub(super) fn settle(&self) {
        self.0.settle();
    }
}

impl Inner {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Finished>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, finished: Finished) {
        let mut waiting = self.waiting();
        waiting.push(finished);
        let full = waiting.len() >= WAITING_MAX;
        drop(waiting);
        if full {
            self.settle();
            // Whoever reads without end while a command runs loses the oldest rows, not the memory.
            let mut waiting = self.waiting();
            let excess = waiting.len().saturating_sub(WAITING_MAX * 4);
            waiting.drain(..excess);
        }
    }

    fn settle(&self) {
        if self.waiting().is_empty() {
            return;
        }
        let Ok(transaction) = self.database.begin(Some(clock::now())) else { return };
        let mut waiting = self.waiting();
        let written = waiting.iter().all(|finished| finished.write(&transaction, None).is_ok());
        if written && transaction.commit().is_ok() {
            waiting.clear();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.settle();
    }
}

/// Operations on paths that create files as the sandbox's user.
pub(super) fn as_user(transaction: &Transaction) -> Fs<'_, Transaction> {
    transaction.fs().owner(USER_ID, USER_ID)
}
