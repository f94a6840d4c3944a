//! The changes of the sandbox since a version or in its mounted directories, and applying them to a host directory.
//!
//! Review first, then apply: a file that was edited there meanwhile is never overwritten, and either all changes are made or
//! none. Access to the host is in `vfs/workplace.rs`.

use std::collections::HashMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use sqlite_fs::path::{Last, Tree as _};
use sqlite_fs::{FileType, FsError, Reader, Stat, Version, VersionKind, Volume as _};

use super::compare::{self, Comparison, DifferenceKind, Where};
use super::{Versions, seen::Seen};
use crate::cancel::Deadline;
use crate::history::{HistoryFilter, LibraryCall as Call};
use crate::vfs::{Becomes, HostDirectory, Node, Planned, ROOT_NODE, Refused, There, View, Was, Workplace, stays_inside};
use crate::{Cancel, Error};

/// Maximum number of earlier applications whose result is known.
const EARLIER: usize = 10;
/// Maximum number of versions listed at once.
const STEP_MAX: i64 = 4096;

/// Selects the changes to apply to a host directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apply {
    /// The version since which changes are applied; defaults to the mounted directory itself, or to the state before the first
    /// run.
    pub since: Option<String>,
    /// The directory in the sandbox that corresponds to the host directory; defaults to the overlay mount if there is exactly
    /// one, else to `/`.
    pub path: Option<String>,
    /// Return the changes without applying them.
    pub dry_run: bool,
}

/// The result of applying changes, or of a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Applied {
    /// The changed paths, relative to the directory, sorted.
    pub files: Vec<AppliedFile>,
    /// The number of changes that the directory already had.
    pub unchanged: usize,
    /// Paths that were edited in the directory meanwhile: nothing is applied if there are any.
    pub conflicts: Vec<Refusal>,
    /// Paths that are never applied, such as those below `.git`.
    pub left_out: Vec<Refusal>,
    /// Whether the directory was changed.
    pub is_applied: bool,
}

/// A changed path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AppliedFile {
    /// The path below the directory.
    pub path: String,
    /// The kind of change.
    pub kind: DifferenceKind,
}

/// A path that is not changed, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refusal {
    /// The path below the directory.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// The state to compare with.
enum Base {
    /// A version.
    Version(Version),
    /// The current state of the mounted directories.
    Mounted,
}

/// A file of one of the two states.
type Found = Option<(Node, FileType, Stat)>;

fn find(view: &View<Reader>, path: &str) -> Result<Found, Error> {
    match view.find(ROOT_NODE, path, Last::NoFollow) {
        Ok((node, kind)) => {
            let stat = view.stat(node).map_err(|source| Error::file("apply", path, source))?;
            Ok(Some((node, kind, stat)))
        }
        Err(FsError::NoEntry | FsError::NotDirectory) => Ok(None),
        Err(source) => Err(Error::file("apply", path, source)),
    }
}

impl Versions<'_> {
    /// Compares the current state with a version, or with the directories that are mounted as overlays; defaults to the state
    /// before the first run.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/src/a", "one\n").open()?;
    /// sandbox.bash("echo two > /src/a; echo new > /src/b")?;
    /// // The files that the sandbox was opened with are its first version.
    /// let changes = sandbox.versions().changes(None, &[])?;
    /// assert_eq!(changes.paths().collect::<Vec<_>>(), ["/src", "/src/a", "/src/b"]);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the reference is invalid, and an error if a file cannot be read.
    pub fn changes(&self, since: Option<&str>, paths: &[String]) -> Result<Comparison, Error> {
        self.changes_until(since, paths, Cancel::default())
    }

    /// Same as [`changes`](Self::changes), cancellable by a [`Cancel`].
    pub(crate) fn changes_until(&self, since: Option<&str>, paths: &[String], cancel: Cancel) -> Result<Comparison, Error> {
        let Some(head) = self.present()? else { return Ok(Comparison::none()) };
        match self.base(since)? {
            Base::Version(base) => self.between(&base, &head, paths, cancel),
            Base::Mounted => {
                let deadline = Deadline::after(self.sandbox.limits.wall.0, cancel);
                let mounted: Vec<String> = self.overlays().map(str::to_owned).collect();
                let paths = if paths.is_empty() { &mounted } else { paths };
                let from = self.sandbox.recorder.mounted(&self.sandbox.scope)?;
                compare::compare(from, self.view(&head)?, paths, &Where::Everywhere, &deadline)
            }
        }
    }

    /// Returns the version that the sandbox shows; `None` if nothing was ever changed.
    pub(crate) fn present(&self) -> Result<Option<Version>, Error> {
        let reader = self.reader()?;
        Ok(match self.sandbox.at {
            Some(number) => Some(reader.version(number)?),
            None => reader.versions(None, 1)?.pop(),
        })
    }

    fn overlays(&self) -> impl Iterator<Item = &str> {
        self.sandbox.scope.mounts.iter().filter(|mount| mount.overlay).map(|mount| mount.path.as_str())
    }

    fn base(&self, since: Option<&str>) -> Result<Base, Error> {
        match since {
            Some(reference) => Ok(Base::Version(self.resolve(reference)?)),
            None if self.overlays().next().is_some() => Ok(Base::Mounted),
            None => Ok(Base::Version(self.before_the_first_run()?)),
        }
    }

    // The initial content of a new sandbox has no run either.
    fn before_the_first_run(&self) -> Result<Version, Error> {
        let reader = self.reader()?;
        let (mut found, mut step) = (reader.version(self.oldest()?)?, 4_i64);
        loop {
            // Usually a few, but a hostile file can have a million versions without a run.
            let page = reader.versions(found.number.checked_add(step + 1), usize::try_from(step).unwrap_or(1))?;
            let later: Vec<Version> = page.into_iter().filter(|version| version.number > found.number).rev().collect();
            if later.is_empty() {
                return Ok(found);
            }
            for next in later {
                if next.call.is_some() || next.kind == VersionKind::Outside || next.number != found.number.saturating_add(1) {
                    return Ok(found);
                }
                found = next;
            }
            step = (step * 4).min(STEP_MAX);
        }
    }

    /// Returns the number of the oldest existing version.
    pub(crate) fn oldest(&self) -> Result<i64, Error> {
        let reader = self.reader()?;
        let newest = reader.versions(None, 1)?.pop().map_or(0, |version| version.number);
        // There is a version below `high`, and none below `low`.
        let (mut low, mut high) = (0, newest + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if reader.versions(Some(middle), 1)?.is_empty() { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// Applies the sandbox's changes to a host directory, all or none. A file that was edited there meanwhile is never
    /// overwritten. Links that lead out of the directory, everything below `.git` and names of keys are skipped and listed.
    ///
    /// ```
    /// use sandlite_runtime::{Apply, Mount, Sandbox};
    /// # let project = tempfile::tempdir().unwrap();
    /// # std::fs::write(project.path().join("a.txt"), "one\n").unwrap();
    /// let sandbox = Sandbox::builder().mount(Mount::overlay(project.path(), "/project")).open()?;
    /// sandbox.bash("cd /project; echo two > a.txt; echo new > b.txt")?;
    /// let applied = sandbox.versions().apply(project.path(), &Apply::default())?;
    /// assert_eq!(applied.files.len(), 2);
    /// assert_eq!(std::fs::read(project.path().join("a.txt")).unwrap(), b"two\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Conflicts`] if files were edited in the directory meanwhile, [`Error::Invalid`] if the reference or the
    /// directory is invalid, and [`Error::HostFile`] if a file cannot be read or written. Nothing is changed then.
    pub fn apply(&self, directory: impl AsRef<Path>, apply: &Apply) -> Result<Applied, Error> {
        self.apply_until(directory.as_ref(), apply, Cancel::default())
    }

    /// Same as [`apply`](Self::apply), cancellable by a [`Cancel`] before anything is changed.
    pub(crate) fn apply_until(&self, directory: &Path, apply: &Apply, cancel: Cancel) -> Result<Applied, Error> {
        let top = self.applied_path(apply)?;
        if apply.dry_run {
            return Ok(self.plan(directory, &top, apply, cancel)?.applied);
        }
        // The host's path is not recorded in the history, because snapshots are shared.
        let call = Call::new("apply", &top, json!({ "path": top, "since": apply.since }));
        self.sandbox.recorder.read_answering(call, || {
            let mut plan = self.plan(directory, &top, apply, cancel)?;
            if !plan.applied.conflicts.is_empty() {
                let paths = plan.applied.conflicts.into_iter().map(|one| (one.path, one.reason)).collect();
                return Err(Error::Conflicts { directory: directory.to_owned(), paths });
            }
            if let Some((_, to)) = plan.compared.views() {
                let kept = plan.place.change(to, &plan.planned)?;
                let reason = "it contains other files".to_owned();
                plan.applied.files.retain(|file| !kept.contains(&file.path));
                plan.applied.left_out.extend(kept.into_iter().map(|path| Refusal { path, reason: reason.clone() }));
            }
            plan.applied.is_applied = true;
            let answer = json!({ "version": plan.version, "changed": plan.applied.files.len() });
            Ok((plan.applied, answer))
        })
    }

    fn applied_path(&self, apply: &Apply) -> Result<String, Error> {
        if let Some(path) = &apply.path {
            return self.sandbox.agent().absolute(path);
        }
        let mut overlays = self.overlays();
        match (overlays.next(), overlays.next()) {
            (Some(one), None) => Ok(one.to_owned()),
            (None, _) => Ok("/".to_owned()),
            _ => Err(Error::Invalid("missing path: several directories are mounted; name the one to apply".to_owned())),
        }
    }

    fn plan(&self, directory: &Path, top: &str, apply: &Apply, cancel: Cancel) -> Result<Plan, Error> {
        let place = self.workplace(directory)?;
        let paths = if top == "/" { Vec::new() } else { vec![top.to_owned()] };
        let compared = self.changes_until(apply.since.as_deref(), &paths, cancel)?;
        let version = self.present()?.map_or(0, |version| version.number);
        let applied = Applied { files: Vec::new(), unchanged: 0, conflicts: Vec::new(), left_out: Vec::new(), is_applied: false };
        let mut plan = Plan { place, compared, version, planned: Vec::new(), applied };
        plan.fill(self, top)?;
        Ok(plan)
    }

    fn workplace(&self, directory: &Path) -> Result<Workplace, Error> {
        let opened = HostDirectory::open(directory, false).map_err(|refused| match refused {
            Refused::Sensitive(why) => Error::Invalid(format!("cannot apply to `{}`: {why}", directory.display())),
            Refused::Host(source) => Error::HostFile { path: directory.to_owned(), source },
        })?;
        Ok(Workplace::open(opened, directory, self.sandbox.database.path()))
    }

    // The previously applied states: a file that has not changed since is equivalent to the base.
    fn applied_earlier(&self) -> Vec<View<Reader>> {
        let filter = HistoryFilter { limit: EARLIER, name: Some("apply".to_owned()), ..HistoryFilter::default() };
        let runs = self.sandbox.history_with(&filter).unwrap_or_default();
        let numbers = runs.iter().filter_map(|run| run.result.as_ref()?.get("version")?.as_i64());
        numbers.filter_map(|number| self.sandbox.recorder.at(&self.sandbox.scope, number).ok()).collect()
    }
}

/// The planned changes.
struct Plan {
    place: Workplace,
    compared: Comparison,
    /// The version that is applied.
    version: i64,
    planned: Vec<Planned>,
    applied: Applied,
}

impl Plan {
    fn fill(&mut self, versions: &Versions<'_>, top: &str) -> Result<(), Error> {
        let Some((from, to)) = self.compared.views() else { return Ok(()) };
        let mut seen = Seen::new(*versions, self.version)?;
        let earlier = versions.applied_earlier();
        let prefix = format!("{}/", top.trim_end_matches('/'));
        for difference in &self.compared.differences {
            let Some(relative) = difference.path.strip_prefix(&prefix).filter(|rest| !rest.is_empty()) else { continue };
            let is_skipped = match difference.kind {
                DifferenceKind::Mode => difference.is_directory,
                // The directory's own hard links remain.
                DifferenceKind::Links => true,
                _ => false,
            };
            if is_skipped {
                continue;
            }
            let refusal = |reason: &str| Refusal { path: relative.to_owned(), reason: reason.to_owned() };
            if let Some(reason) = self.place.refuses(relative) {
                self.applied.left_out.push(refusal(reason));
                continue;
            }
            // A missing path can still lead somewhere, through a link that replaced a directory.
            let new = if difference.kind == DifferenceKind::Deleted { None } else { find(to, &difference.path)? };
            let becomes = match becomes(to, relative, &new).map_err(|source| Error::file("apply", &difference.path, source))? {
                Ok(becomes) => becomes,
                Err(reason) => {
                    self.applied.left_out.push(refusal(reason));
                    continue;
                }
            };
            let there = self.place.look(relative)?;
            let Some(was) = there.was() else {
                self.applied.conflicts.push(refusal("the destination is a special file"));
                continue;
            };
            let failed = |source| Error::file("apply", &difference.path, source);
            if is_like(&there, to, &new).map_err(failed)? && has_mode(&there, &becomes) {
                self.applied.unchanged += 1;
                continue;
            }
            let base = if difference.kind == DifferenceKind::Added { None } else { find(from, &difference.path)? };
            let is_known = is_like(&there, from, &base).map_err(failed)?;
            if !is_known || seen.is_stale(&difference.path, &base)? {
                let is_ours = |view: &View<Reader>| {
                    find(view, &difference.path)
                        .is_ok_and(|found| found.is_some() && is_like(&there, view, &found).unwrap_or(false))
                };
                if !earlier.iter().any(is_ours) {
                    let reason = match (&there, base) {
                        (There::Nothing, Some(_)) => "deleted in the directory",
                        (_, None) => "already exists in the directory",
                        _ => "edited in the directory",
                    };
                    self.applied.conflicts.push(refusal(reason));
                    continue;
                }
            }
            self.applied.files.push(AppliedFile { path: relative.to_owned(), kind: difference.kind });
            self.planned.push(Planned { relative: relative.to_owned(), was, becomes });
        }
        self.check_directories()
    }

    // A new file needs its directory, and a directory that becomes a file must contain nothing else.
    fn check_directories(&mut self) -> Result<(), Error> {
        let becomes: HashMap<&str, &Becomes> = self.planned.iter().map(|one| (one.relative.as_str(), &one.becomes)).collect();
        let mut conflicts = Vec::new();
        for one in &self.planned {
            let above = one.relative.rsplit_once('/').map(|(above, _)| above);
            if let Some(above) = above.filter(|_| one.was == Was::Nothing && one.becomes != Becomes::Nothing) {
                let is_made = becomes.get(above) == Some(&&Becomes::Directory);
                if !is_made && !matches!(self.place.look(above)?, There::Directory) {
                    conflicts.push((one.relative.clone(), "its parent directory does not exist"));
                }
            }
            if one.was == Was::Directory && matches!(one.becomes, Becomes::File(..) | Becomes::Link(_)) {
                let goes =
                    |name: &String| matches!(becomes.get(format!("{}/{name}", one.relative).as_str()), Some(Becomes::Nothing));
                if !self.place.names(&one.relative)?.iter().all(goes) {
                    conflicts.push((one.relative.clone(), "the directory contains other files"));
                }
            }
        }
        self.applied.conflicts.extend(conflicts.into_iter().map(|(path, reason)| Refusal { path, reason: reason.to_owned() }));
        self.applied.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }
}

// The new state of a path on the host, or the reason it is skipped.
fn becomes(to: &View<Reader>, relative: &str, new: &Found) -> Result<Result<Becomes, &'static str>, FsError> {
    let Some((node, kind, stat)) = new else { return Ok(Ok(Becomes::Nothing)) };
    Ok(match kind {
        FileType::Directory => Ok(Becomes::Directory),
        FileType::File => Ok(Becomes::File(*node, stat.mode & 0o111 != 0)),
        FileType::Symlink => {
            let target = to.readlink(*node)?;
            if stays_inside(&target, relative.matches('/').count()) {
                Ok(Becomes::Link(target))
            } else {
                Err("the link leads out of the directory")
            }
        }
        FileType::Fifo | FileType::Device => Err("not a regular file"),
    })
}

// Whether a path on the host has the type and the content of a file of the sandbox.
fn is_like(there: &There, view: &View<Reader>, found: &Found) -> Result<bool, FsError> {
    match (there, found) {
        (There::Nothing, None) | (There::Directory, Some((_, FileType::Directory, _))) => Ok(true),
        (There::File(file), Some((node, FileType::File, stat))) => file.is_like(view, *node, stat.size),
        (There::Link(target, _), Some((node, FileType::Symlink, _))) => Ok(*target == view.readlink(*node)?),
        _ => Ok(false),
    }
}

fn has_mode(there: &There, becomes: &Becomes) -> bool {
    match (there, becomes) {
        (There::File(file), Becomes::File(_, is_program)) => file.is_executable == *is_program,
        _ => true,
    }
}
