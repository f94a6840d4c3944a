//! The sandbox as a whole: summary, integrity check, copies and forks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlite_fs::{Compat, Counts, Export, Usage, Violation};

use super::Sandbox;
use super::builder::options;
use super::mount;
use super::policy;
use crate::Error;
use crate::clock;
use crate::history::{Recorder, TURN};
use crate::vfs::Patience;

/// A summary of a sandbox; see [`Sandbox::info`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The database's file; `None` in memory.
    pub path: Option<PathBuf>,
    /// Size of the database itself in bytes, without its write-ahead log.
    pub database_bytes: u64,
    /// Regular files.
    pub files: u64,
    /// Directories, including the root.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Keys of the key-value store.
    pub keys: u64,
    /// Rows of the history.
    pub runs: u64,
    /// AgentFS's version of the tables.
    pub schema: &'static str,
    /// The version of our own tables.
    pub format: u64,
    /// Bytes that count toward the limit `disk`.
    pub disk_used: u64,
    /// The limit `disk`.
    pub disk_allowed: u64,
    /// Files, directories and links together, which count toward the limit `inodes`.
    pub inodes_used: u64,
    /// The limit `inodes`.
    pub inodes_allowed: u64,
    /// Bytes that count toward the limit `names`.
    pub names_used: u64,
    /// The limit `names`.
    pub names_allowed: u64,
    /// Bytes that count toward the limit `keys`.
    pub keys_used: u64,
    /// The limit `keys`.
    pub keys_allowed: u64,
    /// Bytes that count toward the limit `sessions`.
    pub sessions_used: u64,
    /// The limit `sessions`.
    pub sessions_allowed: u64,
    /// Bytes that count toward the limit `history`.
    pub history_used: u64,
    /// The limit `history`.
    pub history_allowed: u64,
    /// Bytes of earlier versions, which count toward the limit `past`.
    pub past_used: u64,
    /// The limit `past`.
    pub past_allowed: u64,
    /// Number of versions.
    pub versions: u64,
    /// The oldest version: earlier ones were pruned unless it is 0.
    pub oldest_version: i64,
}

/// The AgentFS specification that the tables follow.
const SCHEMA: &str = "0.4";

impl Sandbox {
    /// Returns a summary of the sandbox.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/notes", "five!").open()?;
    /// let info = sandbox.info()?;
    /// assert_eq!((info.files, info.disk_used), (1, 5));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn info(&self) -> Result<Summary, Error> {
        self.refuse_in_part("describe the sandbox")?;
        self.recorder.settle();
        let reader = self.at.map_or_else(|| self.database.reader(), |version| self.database.reader_at(version))?;
        let Usage { bytes: disk_used, inodes: inodes_used, names, keys: keys_used, sessions, history, past } = reader.used()?;
        let Counts { files, directories, symlinks, keys, calls: runs, database_bytes, format } = reader.counts()?;
        let oldest_version = self.versions().oldest()?;
        let newest = self.versions().present()?.map(|newest| newest.number);
        Ok(Summary {
            path: self.database.path().map(Path::to_owned),
            database_bytes,
            files,
            directories,
            symlinks,
            keys,
            runs,
            schema: SCHEMA,
            format,
            disk_used,
            disk_allowed: self.limits.disk.0,
            inodes_used,
            inodes_allowed: self.limits.inodes,
            names_used: names,
            names_allowed: self.limits.names.0,
            keys_used,
            keys_allowed: self.limits.keys.0,
            sessions_used: sessions,
            sessions_allowed: self.limits.sessions.0,
            history_used: history,
            history_allowed: self.limits.history.0,
            past_used: past,
            past_allowed: self.limits.past.0,
            versions: newest.map_or(0, |newest| newest.saturating_sub(oldest_version).unsigned_abs() + 1),
            oldest_version,
        })
    }

    /// Checks the whole database and returns every violated rule; the list is empty if it is intact.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// assert!(sandbox.check()?.is_empty());
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn check(&self) -> Result<Vec<Violation>, Error> {
        self.refuse_in_part("check the sandbox")?;
        Ok(self.database.check()?)
    }

    /// Returns the space of deleted files, keys and rows to the disk, however long that takes, and returns the size of the
    /// database before and after. Waits for a running command; small files are compacted automatically.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("agent.db");
    /// let sandbox = sandlite_runtime::Sandbox::builder().database(&path).file("/big", vec![7; 4 << 20]).open()?;
    /// sandbox.fs().remove_file("/big")?;
    /// // Earlier versions contain it until they are pruned.
    /// sandbox.versions().prune(&sandlite_runtime::Keep { versions: Some(1), ..Default::default() })?;
    /// let (before, after) = sandbox.compact()?;
    /// assert!(before > 4 << 20 && after < 1 << 20);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if this handle does not see the whole sandbox, and an error if the database is open read-only, or if
    /// the disk has no room for the copy; it is unchanged then.
    pub fn compact(&self) -> Result<(u64, u64), Error> {
        self.refuse_in_part("compact the sandbox")?;
        self.recorder.settle();
        let compacted = self.database.compact(Some(clock::now() + TURN))?;
        Ok((compacted.before, compacted.after))
    }

    /// Creates a second sandbox in memory that continues from here: same files, keys, history, limits and environment.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/plan", "A").open()?;
    /// let other = sandbox.fork()?;
    /// other.fs().write("/plan", "B")?;
    /// assert_eq!(sandbox.fs().read("/plan")?, b"A");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read or does not fit in memory.
    pub fn fork(&self) -> Result<Self, Error> {
        self.fork_with(options(&self.limits, self.power_safe, None))
    }

    /// Same as [`fork`](Self::fork), stored in a new file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists or cannot be written.
    pub fn fork_to(&self, path: impl Into<PathBuf>) -> Result<Self, Error> {
        self.refuse_in_part("copy the sandbox into a file")?;
        self.fork_with(options(&self.limits, self.power_safe, Some(path.into())))
    }

    fn fork_with(&self, options: sqlite_fs::Options) -> Result<Self, Error> {
        self.recorder.settle();
        let database = self.database.fork(options)?;
        let interpreters = self.interpreters.none();
        let import_notes = Arc::default();
        let mut fork =
            Self { recorder: Recorder::new(database.clone()), database, interpreters, import_notes, at: None, ..self.clone() };
        fork.scope.mounts = mount::for_another(&fork.scope.mounts);
        fork.scope.patience = Patience::of_sandbox(fork.limits.wall.0);
        // Its stored policy changes independently from now on.
        fork.scope.binding = self.scope.binding.stored_in(&fork.database, fork.database.visits(), policy::stored);
        let fork = Self { recorder: fork.recorder.bound_by(&fork.scope.binding), ..fork };
        if let Some(version) = self.at {
            fork.unbound().versions().restore(&format!("v{version}"), &[])?;
        }
        Ok(fork)
    }

    /// Returns notes on omitted and changed data of the imported snapshot ([`Builder::import`](crate::Builder::import)). They
    /// quote names of the snapshot, so a handle that does not see the whole sandbox receives none.
    #[must_use]
    pub fn import_notes(&self) -> &[String] {
        if self.scope.binding.is_partial() { &[] } else { &self.import_notes }
    }

    /// Writes a compact copy of the sandbox to a new file, without secret keys.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists or cannot be written.
    pub fn export(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.export_with(path, Export::default())
    }

    /// Returns the digest of an export with these settings, for [`Builder::import_digest`](crate::Builder::import_digest): 64
    /// hexadecimal digits, short enough to be signed or sent separately (T-SNAP-07).
    ///
    /// ```
    /// # use sandlite_runtime::{Export, Sandbox};
    /// # let directory = std::env::temp_dir().join(format!("sandlite-digest-{}", std::process::id()));
    /// # std::fs::create_dir(&directory).unwrap();
    /// # let file = directory.join("snapshot.db");
    /// let sandbox = Sandbox::builder().file("/plan", "A").open()?;
    /// sandbox.export(&file)?;
    /// let digest = sandbox.digest(Export::default())?;
    /// Sandbox::builder().import(&file).import_digest(digest).open()?;
    /// let error = Sandbox::builder().import(&file).import_digest("0".repeat(64)).open().err().unwrap();
    /// # std::fs::remove_dir_all(directory).unwrap();
    /// assert!(error.to_string().contains("digest"));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn digest(&self, export: Export) -> Result<String, Error> {
        self.refuse_in_part("compute the digest of the sandbox")?;
        if self.at.is_some() {
            return self.fork()?.digest(export);
        }
        self.recorder.settle();
        Ok(self.database.digest(export)?)
    }

    /// Same as [`export`](Self::export), with or without the history and the secrets.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`export`](Self::export).
    pub fn export_with(&self, path: impl AsRef<Path>, export: Export) -> Result<(), Error> {
        self.refuse_in_part("export the sandbox")?;
        if self.at.is_some() {
            return self.fork()?.export_with(path, export);
        }
        self.recorder.settle();
        Ok(self.database.export(path.as_ref(), export)?)
    }

    /// Same as [`export_with`](Self::export_with), with all versions: readers of the file can see deleted data.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`export`](Self::export).
    pub fn export_with_versions(&self, path: impl AsRef<Path>, export: Export) -> Result<(), Error> {
        self.refuse_in_part("export the sandbox")?;
        self.recorder.settle();
        Ok(self.database.export_with_past(path.as_ref(), export)?)
    }

    /// Same as [`export_with`](Self::export_with), in the layout of another program.
    ///
    /// ```
    /// use sandlite_runtime::{Compat, Export, Sandbox};
    /// # let sandbox = Sandbox::builder().file("/notes", "kept").open()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("snapshot.db");
    /// sandbox.export_compat(&path, Export::default(), Compat::LocalSandbox)?;
    /// assert_eq!(Sandbox::builder().import(&path).open()?.fs().read("/notes")?, b"kept");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`export`](Self::export).
    pub fn export_compat(&self, path: impl AsRef<Path>, export: Export, compat: Compat) -> Result<(), Error> {
        self.refuse_in_part("export the sandbox")?;
        if self.at.is_some() {
            return self.fork()?.export_compat(path, export, compat);
        }
        self.recorder.settle();
        Ok(self.database.export_compat(path.as_ref(), export, compat)?)
    }
}
