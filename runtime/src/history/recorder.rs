//! Library calls as history rows: operations of the embedding program on files and keys.
//!
//! A change and its row are one transaction ([`Ongoing`]). The row of a call that only reads, or that failed, is queued in memory
//! for the next transaction: reading never waits for a running command and costs no commit.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use std::time::Duration;

use serde_json::{Value, json};
use sqlite_fs::{Database, NewCall, Outcome, Reader, Transaction};

use super::changes::{self, CHANGES_TIME};
use super::hooks::{Hooks, Moved};
use crate::tools::prefix;
use crate::vfs::{Binding, Scope, View};
use crate::{Cancel, Error, clock};

/// Maximum number of queued rows; then they are written even without a change.
const WAITING_MAX: usize = 256;

/// Maximum length of a text in a row, such as a key or a pattern, because callers choose it and rows are queued in memory
/// (T-DOS-03).
const TEXT_BYTES: usize = 4096;

/// How long a call waits for the running command, whatever its own limits.
pub(crate) const TURN: Duration = Duration::from_secs(600);

/// How often a call that waits for the running command checks whether it was cancelled.
const TURN_STEP: Duration = Duration::from_millis(20);

/// The parameter that identifies the view of a call.
pub(crate) const VIEW: &str = "view";

/// A library call.
pub(crate) struct Call {
    /// LocalSandbox's name for it if there is one: `write_file`, …
    name: &'static str,
    /// The subject: a path, a key, …
    about: String,
    parameters: Value,
    started: i64,
}

impl Call {
    /// Creates a call that starts now, for a path or a key.
    pub(crate) fn new(name: &'static str, about: &str, mut parameters: Value) -> Self {
        if let Some(texts) = parameters.as_object_mut() {
            texts.values_mut().for_each(|value| {
                if let Value::String(text) = value {
                    shorten(text);
                }
            });
        }
        Self { name, about: prefix(about, TEXT_BYTES).to_owned(), parameters, started: now() }
    }

    /// Replaces the parameters.
    pub(crate) fn with_parameters(self, parameters: Value) -> Self {
        Self { started: self.started, ..Self::new(self.name, &self.about, parameters) }
    }

    // Adds the author, if that is a view.
    fn by(mut self, mark: Option<Value>) -> Self {
        if let (Some(mark), Some(parameters)) = (mark, self.parameters.as_object_mut()) {
            parameters.insert(VIEW.to_owned(), mark);
        }
        self
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

/// Returns a text truncated to the maximum length in a row.
pub(super) fn text_of_row(text: &str) -> String {
    let mut text = text.to_owned();
    shorten(&mut text);
    text
}

pub(super) fn now() -> i64 {
    i64::try_from(clock::unix_nanos()).unwrap_or(i64::MAX)
}

/// A completed call.
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
        let call = NewCall { name, parameters: Some(&parameters), command: &command, parent: None };
        let result = self.ended.as_ref().ok().map(Value::to_string);
        let error = self.ended.as_ref().err().map(String::as_str);
        let outcome = Outcome { result: result.as_deref(), error, changes, ..Outcome::default() };
        transaction.calls().record(&call, &outcome, *started, self.completed)?;
        Ok(())
    }
}

/// A sandbox's database with its queued rows. The last clone to be dropped writes them.
#[derive(Clone)]
pub(crate) struct Recorder {
    inner: Arc<Inner>,
    binding: Binding,
}

struct Inner {
    hooks: Hooks,
    waiting: Mutex<Vec<Finished>>,
    // Declared after the rows, because fields are dropped in order.
    database: Database,
}

/// A library run that changes something: write access to files, keys and sessions. It is recorded when it ends, in one
/// transaction with its changes.
pub(crate) struct Ongoing<'a> {
    recorder: &'a Recorder,
    scope: &'a Scope,
    call: Option<Call>,
    complaint: Option<String>,
    view: Option<View<Transaction>>,
    /// What it makes visible below an overlay.
    moved: OnceLock<Moved>,
}

impl Ongoing<'_> {
    /// Returns the files.
    pub(crate) fn view(&self) -> Result<&View<Transaction>, Error> {
        self.view.as_ref().ok_or_else(|| sqlite_fs::Error::Busy.into())
    }

    /// Returns the transaction, for data other than files.
    pub(crate) fn transaction(&self) -> Result<&Transaction, Error> {
        Ok(self.view()?.transaction())
    }

    /// Notes the changes of an overlay that is moved, for hooks and the row. Only the first call counts.
    pub(crate) fn note_moved(&self, moved: Moved) {
        let _ = self.moved.set(moved);
    }

    fn perform<T>(mut self, work: impl FnOnce(&Self) -> Result<(T, Value), Error>) -> Result<T, Error> {
        match work(&self) {
            Ok((done, answer)) => {
                self.finish(answer)?;
                Ok(done)
            }
            Err(error) => {
                self.complaint = Some(error.to_string());
                Err(error)
            }
        }
    }

    // Records the result and commits, unless a hook rejects it.
    fn finish(mut self, answer: Value) -> Result<(), Error> {
        let command = self.call.as_ref().map(|call| format!("{} {}", call.name, call.about)).unwrap_or_default();
        let moved = self.moved.take();
        if let Some(message) = self.recorder.ask_hooks(self.view()?, None, &command, moved.as_ref())? {
            self.complaint = Some(message.clone());
            return Err(Error::Refused(message));
        }
        let (Some(view), Some(call)) = (self.view.take(), self.call.take()) else { return Err(sqlite_fs::Error::Busy.into()) };
        self.recorder.write_waiting(view.transaction())?;
        let changes = changes::json(self.recorder, self.scope, &view, CHANGES_TIME, moved.as_ref())?;
        call.by(self.recorder.binding.mark()).finish(Ok(answer)).write(view.transaction(), changes.as_deref())?;
        Ok(view.into_transaction().commit()?)
    }
}

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        // Only the row that reports it is stored.
        self.view = None;
        if let Some(call) = self.call.take() {
            let complaint = self.complaint.take().unwrap_or_else(|| "interrupted".to_owned());
            self.recorder.wait(call, Err(complaint));
        }
    }
}

impl Recorder {
    pub(crate) fn new(database: Database) -> Self {
        Self {
            inner: Arc::new(Inner { hooks: Hooks::default(), waiting: Mutex::new(Vec::new()), database }),
            binding: Binding::default(),
        }
    }

    /// Returns the same for a handle with another binding, which rows list as their author.
    pub(crate) fn bound_by(&self, binding: &Binding) -> Self {
        Self { inner: Arc::clone(&self.inner), binding: binding.clone() }
    }

    /// Returns the hooks.
    pub(crate) fn hooks(&self) -> &Hooks {
        &self.inner.hooks
    }

    /// Calls the hooks for the changes of a run; returns the message of the first rejection.
    pub(crate) fn ask_hooks(
        &self,
        view: &View<Transaction>,
        run: Option<i64>,
        command: &str,
        moved: Option<&Moved>,
    ) -> Result<Option<String>, Error> {
        let principal = self.binding.viewer().map(|viewer| viewer.principal.as_str());
        self.inner.hooks.ask(view, (run, command, principal), moved)
    }

    fn wait(&self, call: Call, ended: Result<Value, String>) {
        self.inner.wait(call.by(self.binding.mark()).finish(ended));
    }

    /// Returns the database.
    pub(crate) fn database(&self) -> &Database {
        &self.inner.database
    }

    /// Starts a run that changes something.
    pub(crate) fn begin<'a>(&'a self, scope: &'a Scope, call: Call) -> Result<Ongoing<'a>, Error> {
        Ok(self.ongoing(scope, call, self.view(scope)?))
    }

    fn ongoing<'a>(&'a self, scope: &'a Scope, call: Call, view: View<Transaction>) -> Ongoing<'a> {
        Ongoing { recorder: self, scope, call: Some(call), complaint: None, view: Some(view), moved: OnceLock::new() }
    }

    /// Creates the initial content of a new sandbox, which is not recorded.
    pub(crate) fn fill(&self, scope: &Scope, work: impl FnOnce(&View<Transaction>) -> Result<(), Error>) -> Result<(), Error> {
        let view = self.view(scope)?;
        work(&view)?;
        Ok(view.into_transaction().commit()?)
    }

    fn view(&self, scope: &Scope) -> Result<View<Transaction>, Error> {
        let transaction = begin(self.database(), &scope.patience.cancel)?;
        Ok(View::of_run(transaction, scope).map_err(sqlite_fs::Error::from)?)
    }

    /// Performs a change and records it in the same transaction; on an error nothing is changed.
    pub(crate) fn change<T>(
        &self,
        scope: &Scope,
        call: Call,
        work: impl FnOnce(&Ongoing<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.change_answering(scope, call, |run| Ok((work(run)?, json!({ "success": true }))))
    }

    /// Same as [`change`](Self::change), for a call whose result is recorded.
    pub(crate) fn change_answering<T>(
        &self,
        scope: &Scope,
        call: Call,
        work: impl FnOnce(&Ongoing<'_>) -> Result<(T, Value), Error>,
    ) -> Result<T, Error> {
        self.begin(scope, call)?.perform(work)
    }

    /// Same as [`change_answering`](Self::change_answering), for a call that depends on the committed state: `prepare` runs when no
    /// other run can change it any more. An error of it is not recorded.
    pub(crate) fn change_prepared<V, T>(
        &self,
        scope: &Scope,
        prepare: impl FnOnce() -> Result<(Call, V), Error>,
        work: impl FnOnce(&Ongoing<'_>, V) -> Result<(T, Value), Error>,
    ) -> Result<T, Error> {
        let view = self.view(scope)?;
        let (call, prepared) = prepare()?;
        self.ongoing(scope, call, view).perform(|run| work(run, prepared))
    }

    /// Returns the last committed state of the files, without waiting.
    pub(crate) fn now(&self, scope: &Scope) -> Result<View<Reader>, Error> {
        Ok(View::new(self.database().reader()?, scope).map_err(sqlite_fs::Error::from)?)
    }

    /// Returns only the files of the mounted directories, without rows of the sandbox.
    pub(crate) fn mounted(&self, scope: &Scope) -> Result<View<Reader>, Error> {
        let database = Database::options().open()?;
        let made = View::of_run(database.begin(None)?, scope).map_err(sqlite_fs::Error::from)?;
        made.into_transaction().commit()?;
        Ok(View::new(database.reader()?, scope).map_err(sqlite_fs::Error::from)?)
    }

    /// Returns the files of a version.
    pub(crate) fn at(&self, scope: &Scope, version: i64) -> Result<View<Reader>, Error> {
        Ok(View::new(self.database().reader_at(version)?, scope).map_err(sqlite_fs::Error::from)?)
    }

    /// Performs a read and queues its row for the next transaction.
    pub(crate) fn read<T>(&self, call: Call, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.read_answering(call, || Ok((work()?, json!({ "success": true }))))
    }

    /// Same as [`read`](Self::read), for a call whose result is recorded.
    pub(crate) fn read_answering<T>(&self, call: Call, work: impl FnOnce() -> Result<(T, Value), Error>) -> Result<T, Error> {
        match work() {
            Ok((done, answer)) => {
                self.wait(call, Ok(answer));
                Ok(done)
            }
            Err(error) => {
                self.wait(call, Err(error.to_string()));
                Err(error)
            }
        }
    }

    /// Writes the queued rows in a running transaction.
    pub(crate) fn write_waiting(&self, transaction: &Transaction) -> Result<(), Error> {
        let waited = std::mem::take(&mut *self.inner.waiting());
        waited.iter().try_for_each(|finished| finished.write(transaction, None))
    }

    /// Writes the queued rows now, unless a command is running or the database is read-only.
    pub(crate) fn settle(&self) {
        self.inner.settle();
    }

    /// Writes the queued rows, waiting for a running command, and reports the error if that fails.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let database = &self.inner.database;
        if self.inner.waiting().is_empty() || database.path().is_none() {
            return Ok(());
        }
        let transaction = match database.begin(Some(clock::now() + TURN)) {
            Err(sqlite_fs::Error::ReadOnly) => return Ok(()),
            begun => begun?,
        };
        self.write_waiting(&transaction)?;
        Ok(transaction.commit()?)
    }
}

/// Starts a transaction when the running command has ended, unless the caller cancels before.
pub(crate) fn begin(database: &Database, cancel: &Cancel) -> Result<Transaction, Error> {
    let until = clock::now() + TURN;
    loop {
        let now = clock::now();
        match database.begin(Some(until.min(now + TURN_STEP))) {
            Err(sqlite_fs::Error::Busy) if cancel.is_killed() => return Err(sqlite_fs::Error::Interrupted.into()),
            Err(sqlite_fs::Error::Busy) if now < until => {}
            begun => return Ok(begun?),
        }
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
            // Endless reads while a command runs lose the oldest rows instead of exhausting memory.
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
        // A database in memory cannot be read after its last sandbox is dropped, so a temporary fork writes nothing.
        if self.database.path().is_some() {
            self.settle();
        }
    }
}
