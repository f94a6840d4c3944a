//! Versions: every run that changed something created a state that can be named, read, compared and restored.
//!
//! The rows of a past state are in `sqlite-fs`; this module has references to them (`reference.rs`), the differences between two
//! of them (`compare.rs`, `patch.rs`), applying them to a host directory (`apply.rs`), git commits (`git.rs`) and the other
//! verbs.

mod apply;
mod bisect;
mod blame;
mod checkpoints;
mod compare;
mod events;
mod git;
mod links;
mod patch;
mod reference;
mod replay;
mod seen;
mod show;
mod values;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::json;
use sqlite_fs::{ChangeKind, Keep, Pruned, Reader, Transaction, Version, VersionKind};

pub use apply::{Applied, AppliedFile, Apply, Refusal};
pub use bisect::{BisectStep, Bisection, Verdict};
pub use blame::Blame;
use compare::Where;
pub use compare::{Comparison, Difference, DifferenceKind, ValueDifference, ValueKind};
pub use events::{Event, EventPage};
pub use git::{GitExport, GitExported, GitForm, GitImport, GitImported};
pub(crate) use reference::resolve;
pub use replay::{ReplayDifference, Replayed};
pub use show::ShownRun;
use values::{changed_values, restore_values, unknown_values};

use crate::cancel::Deadline;
use crate::history::{self, HistoryFilter, LibraryCall as Call, Run};
use crate::sandbox::Sandbox;
use crate::vfs::View;
use crate::{Cancel, Error, clock};

/// The versions of a sandbox.
///
/// ```
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// sandbox.bash("echo one > /note")?;
/// sandbox.versions().checkpoint("before", None)?;
/// sandbox.bash("echo two > /note; touch /more")?;
/// let changed = sandbox.versions().compare("before", "HEAD", &[])?;
/// assert_eq!(changed.paths().collect::<Vec<_>>(), ["/more", "/note"]);
/// sandbox.versions().restore("before", &[])?;
/// assert_eq!(sandbox.fs().read("/note")?, b"one\n");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Versions<'a> {
    sandbox: &'a Sandbox,
}

/// A version and the run that created it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedVersion {
    /// The version.
    pub version: Version,
    /// The run, without its output; `None` if no run created it or its row was pruned.
    pub run: Option<Run>,
}

/// The operation that a view of a part cannot perform.
const WHOLE: &str = "restore everything; name some paths";

/// The same, of digests: they cover the whole tree.
const DIGEST: &str = "compute the digest of a version";

/// Number of runs read together.
const PAGE_OF_RUNS: usize = 256;

/// Default number of versions on a page.
const PAGE: usize = 20;

impl Sandbox {
    /// Returns the versions of the sandbox.
    #[must_use]
    pub fn versions(&self) -> Versions<'_> {
        Versions { sandbox: self }
    }

    /// Returns the same sandbox as it was at a version: all reads show that state, nothing can be changed, and a command runs in
    /// a temporary copy.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.bash("echo one > /note")?;
    /// sandbox.bash("rm /note")?;
    /// let before = sandbox.at("HEAD~1")?;
    /// assert_eq!(before.fs().read("/note")?, b"one\n");
    /// assert_eq!(before.bash("echo more >> /note; cat /note")?.stdout, b"one\nmore\n");
    /// assert!(before.fs().write("/note", "other").is_err() && !sandbox.fs().exists("/note")?);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the version does not exist.
    pub fn at(&self, reference: &str) -> Result<Self, Error> {
        let mut sandbox = self.clone();
        sandbox.at = Some(self.versions().resolve(reference)?.number);
        Ok(sandbox)
    }

    /// Returns the version shown by a sandbox that [`at`](Self::at) returned.
    #[must_use]
    pub fn version_shown(&self) -> Option<i64> {
        self.at
    }

    /// Creates a second sandbox in memory that continues from a version: its files, keys and sessions, under the same limits.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the version does not exist, and an error if the database cannot be read.
    pub fn fork_at(&self, reference: &str) -> Result<Self, Error> {
        self.at(reference)?.fork()
    }
}

impl Versions<'_> {
    fn reader(&self) -> Result<Reader, Error> {
        self.sandbox.recorder.settle();
        Ok(self.sandbox.database.reader()?)
    }

    /// Resolves a reference to a version: `HEAD`, `HEAD~3`, a run's number, a label, `@{2 hours ago}`, `v12`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the reference is invalid, or refers to a version that was pruned.
    pub fn resolve(&self, reference: &str) -> Result<Version, Error> {
        self.shown(self.found(reference)?)
    }

    // The version of a reference. A past sandbox knows nothing of later ones, and a view nothing of the checkpoints of others.
    fn found(&self, reference: &str) -> Result<Version, Error> {
        self.refuse_foreign(reference)?;
        reference::resolve_until(&self.reader()?, reference, self.sandbox.at)
    }

    // A version as this handle may know it: a digest of the whole tree would confirm guesses of hidden content.
    fn shown(&self, version: Version) -> Result<Version, Error> {
        if !self.sandbox.scope.binding.is_partial() {
            return Ok(version);
        }
        let labels = self.own_labels(version.number, version.labels)?;
        Ok(Version { digest: None, labels, ..version })
    }

    /// Returns the files of a version.
    pub(crate) fn view(&self, version: &Version) -> Result<View<Reader>, Error> {
        self.sandbox.recorder.at(&self.sandbox.scope, version.number)
    }

    /// Lists versions, newest first, with the runs that created them. Fewer than `limit` (20 by default) are all that there are.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] with the version to continue from if the versions that changed a path are not found in time, and an
    /// error if the database cannot be read.
    pub fn log(&self, path: Option<&str>, before: Option<i64>, limit: Option<usize>) -> Result<Vec<LoggedVersion>, Error> {
        self.log_until(path, before, limit, Cancel::default())
    }

    /// Same as [`log`](Self::log), cancellable by a [`Cancel`].
    pub(crate) fn log_until(
        &self,
        path: Option<&str>,
        before: Option<i64>,
        limit: Option<usize>,
        cancel: Cancel,
    ) -> Result<Vec<LoggedVersion>, Error> {
        let deadline = Deadline::after(self.sandbox.limits.wall.0, cancel);
        let reader = self.reader()?;
        let limit = limit.unwrap_or(PAGE);
        let shown = self.sandbox.at.map(|at| at.saturating_add(1));
        let before = before.into_iter().chain(shown).min();
        let (mut found, mut before) = (Vec::new(), before);
        let step = if path.is_some() { PAGE_OF_RUNS } else { limit.clamp(1, 1000) };
        while found.len() < limit {
            let page = reader.versions(before, step)?;
            let Some(last) = page.last() else { break };
            if let Some(reached) = before.filter(|_| deadline.is_over()) {
                let found = found.len();
                let reason = format!("listing versions takes too long: {found} were found from version {reached} on");
                return Err(Error::Invalid(format!("{reason}; list fewer, or those before version {reached}")));
            }
            before = Some(last.number);
            for logged in self.logged(page)? {
                if found.len() < limit && self.is_wanted(&reader, &logged, path)? {
                    found.push(logged);
                }
            }
        }
        Ok(found)
    }

    // Whether a log shows a version. The changes in the row of a run may be incomplete, and a move lists only the directory.
    fn is_wanted(&self, reader: &Reader, logged: &LoggedVersion, path: Option<&str>) -> Result<bool, Error> {
        let binding = &self.sandbox.scope.binding;
        let Some(path) = path else {
            // A view sees the versions of its own runs.
            return Ok(logged.run.is_some() || !binding.is_partial());
        };
        match &logged.run {
            Some(run) if changed(run, path) => Ok(true),
            Some(run) if !blame::is_incomplete(run) && !blame::moves_above(run, path) => Ok(false),
            None if binding.is_partial() => Ok(false),
            _ if binding.hides_path(path) => Ok(false),
            _ => has_changed(reader, &logged.version, path),
        }
    }

    /// Returns the digest of a version's files, in hexadecimal, covering names, types, permission bits, contents and link
    /// targets. Equal trees have equal digests. It is computed from the changes since the last digest, and stored.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.bash("echo one > /note")?;
    /// sandbox.bash("echo two > /note")?;
    /// sandbox.versions().undo(1)?;
    /// assert_eq!(sandbox.versions().digest("HEAD")?, sandbox.versions().digest("HEAD~2")?);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the reference is invalid or this handle does not see the whole sandbox, and an error if a file
    /// cannot be read in time.
    pub fn digest(&self, reference: &str) -> Result<String, Error> {
        self.sandbox.refuse_in_part(DIGEST)?;
        let version = self.resolve(reference)?;
        let deadline = Deadline::after(self.sandbox.limits.wall.0, Cancel::default());
        Ok(self.sandbox.database.version_digest(version.number, Some(deadline.moment()))?)
    }

    /// Fills in the missing digests, oldest first: each costs what changed since the previous one.
    pub(crate) fn add_digests(&self, logged: &mut [LoggedVersion], cancel: Cancel) -> Result<(), Error> {
        self.sandbox.refuse_in_part(DIGEST)?;
        let deadline = Deadline::after(self.sandbox.limits.wall.0, cancel);
        for LoggedVersion { version, .. } in logged.iter_mut().rev().filter(|logged| logged.version.digest.is_none()) {
            if deadline.is_over() {
                return Err(sqlite_fs::Error::Interrupted.into());
            }
            version.digest = match self.sandbox.database.version_digest(version.number, Some(deadline.moment())) {
                Ok(digest) => Some(digest),
                // Another program overwrote a part of it.
                Err(error) if error.fs_error() == Some(sqlite_fs::FsError::Unknown) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(())
    }

    // Versions with their runs. All runs of a page are read together, because they are nearly always adjacent.
    fn logged(&self, versions: Vec<Version>) -> Result<Vec<LoggedVersion>, Error> {
        let calls: BTreeSet<i64> = versions.iter().filter_map(|version| version.call).collect();
        let mut runs: HashMap<i64, Run> = HashMap::new();
        let mut before = calls.last().map(|last| last.saturating_add(1));
        while let (Some(until), Some(first)) = (before, calls.first()) {
            // No further than the next needed run, however many others are in between.
            let span = usize::try_from(until.saturating_sub(*first)).unwrap_or(usize::MAX);
            let filter = HistoryFilter { limit: span.min(PAGE_OF_RUNS), before, ..HistoryFilter::default() };
            let page = history::list(&self.sandbox.database, &self.sandbox.scope.binding, &filter)?;
            let last = page.last().map(|run| run.id);
            runs.extend(page.into_iter().filter(|run| calls.contains(&run.id)).map(|run| (run.id, run)));
            let rest = calls.range(..last.unwrap_or(i64::MIN)).next_back();
            before = rest.map(|next| next.saturating_add(1));
        }
        let logged = |version: Version| -> Result<LoggedVersion, Error> {
            let run = version.call.and_then(|call| runs.remove(&call));
            Ok(LoggedVersion { run, version: self.shown(version)? })
        };
        versions.into_iter().map(logged).collect()
    }

    fn run(&self, call: i64) -> Result<Option<Run>, Error> {
        let filter = HistoryFilter { limit: 1, before: call.checked_add(1), ..HistoryFilter::default() };
        let binding = &self.sandbox.scope.binding;
        if binding.is_partial() {
            return history::get(&self.sandbox.database, binding, call);
        }
        Ok(history::list(&self.sandbox.database, binding, &filter)?.pop().filter(|run| run.id == call))
    }

    /// Compares two versions below some paths, or everywhere.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a reference is invalid, and an error if a file cannot be read.
    pub fn compare(&self, from: &str, to: &str, paths: &[String]) -> Result<Comparison, Error> {
        self.compare_until(from, to, paths, Cancel::default())
    }

    /// Same as [`compare`](Self::compare), cancellable by a [`Cancel`].
    pub(crate) fn compare_until(&self, from: &str, to: &str, paths: &[String], cancel: Cancel) -> Result<Comparison, Error> {
        let (from, to) = (self.resolve(from)?, self.resolve(to)?);
        self.between(&from, &to, paths, cancel)
    }

    fn between(&self, from: &Version, to: &Version, paths: &[String], cancel: Cancel) -> Result<Comparison, Error> {
        let deadline = Deadline::after(self.sandbox.limits.wall.0, cancel);
        let (old, new) = (self.view(from)?, self.view(to)?);
        let place = self.places(&new, from.number, Some(to.number))?;
        let mut compared = compare::compare(old, new, paths, &place, &deadline)?;
        if paths.is_empty() && !self.sandbox.scope.binding.is_partial() {
            let database = &self.sandbox.database;
            let (one, other) = (database.reader_at(from.number)?, database.reader_at(to.number)?);
            let (older, until) = if from.number < to.number { (&one, to.number) } else { (&other, from.number) };
            let values = changed_values((older, Some(until)), &one, &other)?;
            compared.values_unknown = values.is_none();
            compared.values = values.unwrap_or_default();
        }
        Ok(compared)
    }

    /// Returns what [`restore`](Self::restore) would change.
    pub(crate) fn preview(&self, reference: &str, paths: &[String], cancel: Cancel) -> Result<Comparison, Error> {
        if paths.is_empty() {
            self.sandbox.refuse_in_part(WHOLE)?;
        }
        let compared = self.compare_until("HEAD", reference, paths, cancel)?;
        if compared.values_unknown {
            return Err(unknown_values(reference));
        }
        if let Some((now, then)) = compared.views() {
            compare::require_paths(now, then, paths)?;
        }
        Ok(compared)
    }

    // Where a version can differ from another one, or from the committed state. The content of a mounted directory is not
    // recorded, so every file in it is compared.
    fn places(&self, view: &View<Reader>, one: i64, other: Option<i64>) -> Result<Where, Error> {
        if self.sandbox.scope.mounts.is_empty() { places_of(view.reader(), one, other) } else { Ok(Where::Everywhere) }
    }

    /// Restores files to their state at a version: those below some paths, or all of them with keys and sessions. This is a run
    /// itself, so it can be undone.
    ///
    /// Restores content, permission bits, hard links and the modification times of files. Modification times of directories,
    /// access times and change times are not restored. The result does not list files of which only the time was restored.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the reference is invalid, and an error if a file cannot be read or written.
    pub fn restore(&self, reference: &str, paths: &[String]) -> Result<Comparison, Error> {
        self.bring_back(reference, paths, "restore")
    }

    /// Restores everything to the state before the last `runs` versions. Undoing an undo is a redo.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`restore`](Self::restore).
    pub fn undo(&self, runs: u32) -> Result<Comparison, Error> {
        self.bring_back(&format!("HEAD~{runs}"), &[], "undo")
    }

    fn bring_back(&self, reference: &str, paths: &[String], name: &'static str) -> Result<Comparison, Error> {
        if paths.is_empty() {
            self.sandbox.refuse_in_part(WHOLE)?;
        }
        // An invalid reference is reported without waiting. Which version it is depends on the run that is waited for.
        self.resolve(reference)?;
        let prepare = || -> Result<(Call, Version), Error> {
            let version = reference::resolve(&self.sandbox.database.reader()?, reference)?;
            let about = json!({ "version": version.number, "paths": paths });
            Ok((Call::new(name, &format!("v{}", version.number), about), version))
        };
        self.sandbox.change_prepared(prepare, |run, version| {
            let then = self.view(&version)?;
            let deadline = Deadline::after(self.sandbox.limits.wall.0, Cancel::default());
            let view: &View<Transaction> = run.view()?;
            // The run itself has changed nothing yet.
            let place = self.places(&then, version.number, None)?;
            compare::require_paths(view, &then, paths)?;
            let mut done = compare::make_equal(view, &then, paths, &place, &deadline)?;
            if paths.is_empty() {
                let (now, then) = (self.sandbox.database.reader()?, self.sandbox.database.reader_at(version.number)?);
                done.values = changed_values((&then, None), &now, &then)?.ok_or_else(|| unknown_values(reference))?;
                restore_values(run.transaction()?, &now, &then)?;
            }
            let count = done.differences.len() + done.values.len();
            Ok((done, json!({ "version": version.number, "changed": count })))
        })
    }

    /// Drops the oldest versions; the others can still be read.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if this handle does not see the whole sandbox or a rule makes something read-only or append-only, and
    /// an error if the database cannot be written.
    pub fn prune(&self, keep: &Keep) -> Result<Pruned, Error> {
        self.sandbox.refuse_in_part("drop versions")?;
        self.sandbox.refuse_kept("drop versions")?;
        let about = json!({ "versions": keep.versions, "since": keep.since, "bytes": keep.bytes });
        self.sandbox.change_answering(Call::new("prune", "versions", about), |run| {
            let pruned = run.transaction()?.prune(keep)?;
            Ok((pruned, json!({ "versions": pruned.versions, "bytes": pruned.bytes, "oldest": pruned.oldest })))
        })
    }
}

// Whether a version changed a path, or something below it.
fn has_changed(reader: &Reader, version: &Version, path: &str) -> Result<bool, Error> {
    if version.kind == VersionKind::Base {
        return Ok(false);
    }
    let (changes, is_complete) = reader.changes(version.number - 1, Some(version.number))?;
    let is_in = |change: &sqlite_fs::Change| match &change.kind {
        ChangeKind::Renamed { from } => [from, &change.path].into_iter().any(|moved| compare::is_at_or_below(moved, path)),
        _ => compare::is_at_or_below(&change.path, path),
    };
    Ok(!is_complete || changes.iter().any(is_in))
}

// Where two versions of a database can differ, or a version and the committed state.
fn places_of(reader: &Reader, one: i64, other: Option<i64>) -> Result<Where, Error> {
    let from = other.map_or(one, |other| one.min(other));
    let (changes, links, is_complete) = reader.changes_and_links(from, other.map(|other| one.max(other)))?;
    if !is_complete {
        return Ok(Where::Everywhere);
    }
    let mut places: BTreeMap<String, bool> = links.into_iter().map(|path| (path, false)).collect();
    for change in changes {
        let is_moved = matches!(change.kind, ChangeKind::Renamed { .. });
        if let ChangeKind::Renamed { from } = change.kind {
            places.insert(from, true);
        }
        *places.entry(change.path).or_insert(false) |= is_moved;
    }
    Ok(Where::At(places.into_iter().collect()))
}

/// Returns the time this many seconds ago, in nanoseconds since 1970.
pub(crate) fn seconds_ago(seconds: u64) -> i64 {
    let nanos = u128::from(seconds) * 1_000_000_000;
    i64::try_from(u128::from(clock::unix_nanos()).saturating_sub(nanos)).unwrap_or(0)
}

// Whether a run changed a path, or something below it.
fn changed(run: &Run, path: &str) -> bool {
    let is_below = |changed: &str| compare::is_at_or_below(changed, path);
    let changes = run.changes.as_deref().and_then(|changes| changes.as_array());
    changes
        .into_iter()
        .flatten()
        .any(|change| ["path", "from"].iter().any(|key| change.get(*key).and_then(|path| path.as_str()).is_some_and(is_below)))
}

impl LoggedVersion {
    /// Returns the origin of a version: `base`, `setup`, `run` or `outside`.
    #[must_use]
    pub fn made_by(&self) -> &'static str {
        match self.version.kind {
            VersionKind::Base => "base",
            VersionKind::Outside => "outside",
            _ if self.version.call.is_none() => "setup",
            _ => "run",
        }
    }
}
