//! A sandbox: one database, its policy, and the verbs. Each verb is a line here and implemented in its own module.

mod base;
mod builder;
mod files;
mod grants;
mod kv;
mod mount;
mod own;
mod policy;
mod snapshot;
mod update;

use std::sync::Arc;

use presets::Limits;
use sqlite_fs::{Database, Reader};

use crate::history::{self, HistoryFilter, LibraryCall, Ongoing, Recorder, Run};
use crate::host::Host;
use crate::process::Reaping;
use crate::run::{Command, Output, Variables};
use crate::session::Interpreters;
use crate::tools::{Tool, Tools};
use crate::vfs::{Scope, View, is_generating};
use crate::{Cancel, Error};

pub(crate) use base::OVERLAYS;
pub use builder::{Builder, Python};
pub use files::{Content, FilePage, Files, Found};
pub use kv::{Kv, KvEntry};
pub use mount::Mount;
pub use snapshot::Summary;
pub use update::{Side, Update};

/// One database and its policy.
///
/// ```no_run
/// let sandbox = sandlite_runtime::Sandbox::builder().open()?; // in memory
/// assert_eq!(sandbox.bash("echo $((6 * 7))")?.stdout, b"42\n");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct Sandbox {
    pub(crate) host: Host,
    pub(crate) database: Database,
    pub(crate) recorder: Recorder,
    pub(crate) scope: Scope,
    pub(crate) limits: Limits,
    pub(crate) env: Arc<Variables>,
    pub(crate) cwd: String,
    pub(crate) tools: Arc<Tools>,
    pub(crate) interpreters: Arc<Interpreters>,
    pub(crate) reaping: Arc<Reaping>,
    /// The version it shows; `None` for the current state.
    pub(crate) at: Option<i64>,
    python: Python,
    power_safe: bool,
    import_notes: Arc<[String]>,
}

impl Sandbox {
    /// Creates the default settings.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Runs a bash command line.
    ///
    /// # Errors
    ///
    /// Returns an error only if the host fails; a command that fails is an [`Output`].
    pub fn bash(&self, script: impl Into<String>) -> Result<Output, Error> {
        self.run(Command::bash(script))
    }

    /// Runs Python code.
    ///
    /// # Errors
    ///
    /// Returns an error only if the host fails; code that raises is an [`Output`].
    pub fn python(&self, code: impl Into<String>) -> Result<Output, Error> {
        self.run(Command::python(code))
    }

    /// Returns the guest of a command's program: the sandbox selects the Python.
    pub(crate) fn guest_of(&self, guest: &'static guests::Guest) -> &'static guests::Guest {
        if self.python == Python::Scientific && guest.name == guests::PYTHON.name { &guests::PYTHON_SCI } else { guest }
    }

    /// Returns the last committed state of the files, without waiting.
    pub(crate) fn now(&self) -> Result<View<Reader>, Error> {
        match self.at {
            None => self.recorder.now(&self.scope),
            Some(version) => self.recorder.at(&self.scope, version),
        }
    }

    /// Same as [`now`](Self::now), for work that can be cancelled, including waits for sources.
    pub(crate) fn now_until(&self, cancel: &Cancel) -> Result<View<Reader>, Error> {
        let scope = self.scope.of_run(cancel);
        match self.at {
            None => self.recorder.now(&scope),
            Some(version) => self.recorder.at(&scope, version),
        }
    }

    /// Performs a change in one transaction with its history row.
    pub(crate) fn change<T>(&self, call: LibraryCall, work: impl FnOnce(&Ongoing<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.refuse_in_the_past()?;
        self.recorder.change(&self.scope, call, work)
    }

    /// Same as [`change`](Self::change), for a call whose result is recorded.
    pub(crate) fn change_answering<T>(
        &self,
        call: LibraryCall,
        work: impl FnOnce(&Ongoing<'_>) -> Result<(T, serde_json::Value), Error>,
    ) -> Result<T, Error> {
        self.refuse_in_the_past()?;
        self.recorder.change_answering(&self.scope, call, work)
    }

    /// Same as [`change_answering`](Self::change_answering), for a call that depends on the committed state.
    pub(crate) fn change_prepared<V, T>(
        &self,
        prepare: impl FnOnce() -> Result<(LibraryCall, V), Error>,
        work: impl FnOnce(&Ongoing<'_>, V) -> Result<(T, serde_json::Value), Error>,
    ) -> Result<T, Error> {
        self.refuse_in_the_past()?;
        self.recorder.change_prepared(&self.scope, prepare, work)
    }

    /// Returns the rows it reads.
    pub(crate) fn reader(&self) -> Result<Reader, Error> {
        Ok(match self.at {
            None => self.database.reader()?,
            Some(version) => self.database.reader_at(version)?,
        })
    }

    // Rejects changes that are not possible, or not allowed for the caller.
    pub(crate) fn refuse_in_the_past(&self) -> Result<(), Error> {
        if is_generating(self.scope.patience.sandbox) {
            let reason = "a function that generates files cannot run or change anything in the sandbox that waits for it";
            return Err(Error::Invalid(reason.to_owned()));
        }
        match self.at {
            None => Ok(()),
            Some(version) => {
                Err(Error::Invalid(format!("version v{version} is past and cannot be changed: use `restore`, or fork it")))
            }
        }
    }

    /// Frees the memory of a sandbox that is not in use for now. Nothing is lost; the next call takes a little longer.
    pub fn release_memory(&self) {
        self.database.release_memory();
    }

    /// Returns its host, which other sandboxes can share.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the sandbox's files.
    #[must_use]
    pub fn fs(&self) -> Files<'_> {
        Files::new(self)
    }

    /// Returns the sandbox's key-value store.
    #[must_use]
    pub fn kv(&self) -> Kv<'_> {
        Kv::new(self)
    }

    /// Records a step of the embedding program in the history, such as the turn of an agent, and returns its number. The content
    /// is stored as the row's output, within the limit `history`.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let run = sandbox.record("turn", "plan the work", r#"{"role":"user"}"#)?;
    /// assert_eq!(sandbox.history(1)?[0].id, run);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the name or the length of the content is invalid, and an error if the row cannot be written.
    pub fn record(&self, name: &str, about: &str, content: &str) -> Result<i64, Error> {
        crate::history::record(&self.recorder, name, about, content)
    }

    /// Returns the last `limit` rows of the history, newest first, without their output.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn history(&self, limit: usize) -> Result<Vec<Run>, Error> {
        self.history_with(&HistoryFilter { limit, ..HistoryFilter::default() })
    }

    /// Returns the rows of the history that match a filter, newest first.
    ///
    /// ```
    /// use sandlite_runtime::HistoryFilter;
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.fs().write("/plan", "think")?;
    /// sandbox.kv().set("step", 1)?;
    /// let found = sandbox.history_with(&HistoryFilter { grep: Some("plan".to_owned()), ..HistoryFilter::default() })?;
    /// assert_eq!(found[0].name, "write_file");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn history_with(&self, filter: &HistoryFilter) -> Result<Vec<Run>, Error> {
        self.recorder.settle();
        let last = self.last_run()?;
        let before = filter.before.into_iter().chain(last.map(|last| last.saturating_add(1))).min();
        history::list(&self.database, &self.scope.binding, &HistoryFilter { before, ..filter.clone() })
    }

    // The run that created the shown version; `None` if this is the current state. Later runs have not happened yet.
    fn last_run(&self) -> Result<Option<i64>, Error> {
        let Some(at) = self.at else { return Ok(None) };
        let (reader, mut before) = (self.database.reader()?, at.saturating_add(1));
        loop {
            let page = reader.versions(Some(before), 100)?;
            let Some(oldest) = page.last() else { return Ok(Some(0)) };
            before = oldest.number;
            if let Some(call) = page.iter().find_map(|version| version.call) {
                return Ok(Some(call));
            }
        }
    }

    /// Returns one run with its output.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn history_run(&self, run: i64) -> Result<Option<Run>, Error> {
        self.recorder.settle();
        if self.last_run()?.is_some_and(|last| run > last) {
            return Ok(None);
        }
        history::get(&self.database, &self.scope.binding, run)
    }

    /// Returns the first `most` bytes of a run's standard output and standard error, each with its total length: for a list that
    /// shows only the beginning.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn history_output(&self, run: i64, most: usize) -> Result<[(Vec<u8>, u64); 2], Error> {
        if (self.at.is_some() || self.scope.binding.is_partial()) && self.history_run(run)?.is_none() {
            return Ok(Default::default());
        }
        Ok(self.database.reader()?.output(run, most)?)
    }

    /// Returns the tools that programs in this sandbox may call.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter()
    }

    /// Returns the same sandbox with other tools: programs that are run through it can call only these.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let add = sandlite_runtime::Tool::new("now", "The time.", "{}", |_| Ok("noon".into()));
    /// let with = sandbox.with_tools(vec![add])?;
    /// assert_eq!((with.tools().count(), sandbox.tools().count()), (1, 0));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a tool is invalid.
    pub fn with_tools(&self, tools: Vec<Tool>) -> Result<Self, Error> {
        let tools = Arc::new(Tools::new(tools)?);
        let scope = Scope { tools: tools.names(), ..self.scope.clone() };
        Ok(Self { tools, scope, ..self.clone() })
    }

    /// Closes this handle, and reports errors that dropping it would hide: rows of the history that could not be written, a file
    /// that was replaced or removed, a log that could not be copied into the file. Waits for a running command. Other handles,
    /// such as clones and sessions, continue to work; the last one copies the log.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("agent.db");
    /// let sandbox = sandlite_runtime::Sandbox::builder().database(&path).file("/plan", "A").open()?;
    /// sandbox.close()?;
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error of kind [`ErrorKind::Busy`](crate::ErrorKind::Busy) if a command does not end in time, and
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) if the file was replaced or removed, or cannot be written. Committed
    /// data is safe then, unless the file itself was removed.
    pub fn close(self) -> Result<(), Error> {
        self.recorder.finish()?;
        self.reaping.wait();
        let database = self.database.clone();
        drop(self);
        Ok(database.close(Some(crate::clock::now() + history::TURN))?)
    }

    /// Returns the limits of commands.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the default working directory of commands.
    #[must_use]
    pub fn current_dir(&self) -> &str {
        &self.cwd
    }

    /// Returns an absolute path; relative ones start in [`current_dir`](Self::current_dir). `..` stays, because it may follow a
    /// link.
    ///
    /// ```
    /// let sandbox = sandlite_runtime::Sandbox::builder().cwd("/work").open()?;
    /// assert_eq!((sandbox.resolve("a/b"), sandbox.resolve("/c")), ("/work/a/b".to_owned(), "/c".to_owned()));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn resolve(&self, path: &str) -> String {
        absolute(&self.cwd, path)
    }
}

/// Returns an absolute path; a relative one starts in a directory. `..` is left to the walk, which follows links.
///
/// ```
/// use sandlite_runtime::{HOME, absolute};
/// assert_eq!(absolute(HOME, "a/b"), "/home/user/a/b");
/// assert_eq!(absolute(HOME, "/a"), "/a");
/// ```
#[must_use]
pub fn absolute(directory: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", directory.trim_end_matches('/')) }
}
