//! Imports commits as versions: each commit of a branch's first-parent history becomes a run that sets the files to its state.
//!
//! Everything is read and checked before anything is changed, so that a damaged or hostile repository changes nothing.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use git::{Bounds, Commit, Id, Mode, Repository, TreeEntry};
use serde_json::json;
use sqlite_fs::{FsError, Transaction};

use super::{IMPORTED, parameters_of};
use crate::history::LibraryCall as Call;
use crate::versions::{Versions, reference};
use crate::vfs::View;
use crate::{Cancel, Error};

/// Maximum number of commits.
const COMMITS_MAX: usize = 100_000;
/// Maximum number of files and directories changed by all commits together.
const CHANGES_MAX: u64 = 50_000_000;
/// Maximum depth of a file; the quota may allow less.
const DEPTH_MAX: usize = 250;
/// Maximum length of a link's target.
const TARGET_MAX: u64 = 4095;
/// Maximum number of listed conflicting files.
const NAMED: usize = 5;
/// Maximum length of a row's subject.
const SUBJECT: usize = 200;
/// The message of the checkpoint of an import that was not completed.
const INCOMPLETE: &str = "The state before an import from git that is running or was killed.";

/// Options of an import from git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitImport {
    /// The branch, tag or commit whose history is imported; defaults to `HEAD`.
    pub reference: Option<String>,
    /// The destination directory.
    pub into: String,
    /// Import only this many of the newest commits; the first of them contains all its files.
    pub depth: Option<u64>,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GitImported {
    /// The newest commit, in hexadecimal.
    pub head: String,
    /// Number of imported commits.
    pub commits: u64,
    /// Number of created versions; a commit that changes no file creates none.
    pub versions: u64,
    /// Number of files and links of the newest commit.
    pub files: u64,
    /// Their size, in bytes.
    pub bytes: u64,
    /// Checkpoints created from tags.
    pub checkpoints: Vec<String>,
    /// Tags without a checkpoint: their name exists, or is reserved.
    pub skipped: Vec<String>,
}

/// A step from one tree to another.
enum Change<'a> {
    Remove { path: &'a str, entry: &'a TreeEntry },
    Directory { path: &'a str },
    Put { path: &'a str, entry: &'a TreeEntry, before: Option<&'a TreeEntry> },
}

/// Tags with their commits and messages.
type Tags = BTreeMap<String, (Id, Option<String>)>;

type Take<'t> = dyn FnMut(Change<'_>) -> Result<(), Error> + 't;

/// The trees of a repository, compared without their common parts.
struct Trees<'a> {
    repository: &'a Repository,
    cancel: &'a Cancel,
}

impl Trees<'_> {
    fn list(&self, tree: Option<Id>) -> Result<BTreeMap<String, TreeEntry>, Error> {
        let entries = tree.map(|tree| self.repository.tree(tree)).transpose()?.unwrap_or_default();
        Ok(entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect())
    }

    fn compare(&self, old: Option<Id>, new: Option<Id>, path: &str, depth: usize, take: &mut Take<'_>) -> Result<(), Error> {
        if old == new {
            return Ok(());
        }
        if depth > DEPTH_MAX {
            return Err(git::Error::TooLarge(format!("directories nested deeper than {DEPTH_MAX}")).into());
        }
        if self.cancel.is_killed() {
            return Err(git::Error::Interrupted.into());
        }
        let (old, new) = (self.list(old)?, self.list(new)?);
        let child = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        let directory = |entry: Option<&TreeEntry>| entry.filter(|entry| entry.mode == Mode::Directory).map(|entry| entry.id);
        // Removals come first, because something else may take their place.
        for (name, before) in &old {
            let after = new.get(name);
            if is_kept(before, after) {
                continue;
            }
            let path = child(name);
            if before.mode == Mode::Directory {
                self.compare(Some(before.id), None, &path, depth + 1, take)?;
            }
            take(Change::Remove { path: &path, entry: before })?;
        }
        for (name, after) in &new {
            let before = old.get(name).filter(|before| is_kept(before, Some(after)));
            if before.is_some_and(|before| (before.mode, before.id) == (after.mode, after.id)) {
                continue;
            }
            let path = child(name);
            if after.mode == Mode::Directory {
                if before.is_none() {
                    take(Change::Directory { path: &path })?;
                }
                self.compare(directory(before), Some(after.id), &path, depth + 1, take)?;
            } else {
                take(Change::Put { path: &path, entry: after, before })?;
            }
        }
        Ok(())
    }
}

// Whether an entry is changed in place; otherwise another type of file replaces it.
fn is_kept(before: &TreeEntry, after: Option<&TreeEntry>) -> bool {
    let kind = |mode: Mode| match mode {
        Mode::File | Mode::Executable => 0,
        Mode::Link => 1,
        Mode::Directory => 2,
        Mode::Submodule => 3,
    };
    after.is_some_and(|after| kind(before.mode) == kind(after.mode))
}

/// The size of the files at a commit, and the maximum.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    bytes: u64,
    files: u64,
    inodes: u64,
}

impl Versions<'_> {
    /// Imports the commits of a git repository or bundle as versions: its first-parent history, oldest first. Author, date and
    /// message of a commit are stored in its history row, and tags become checkpoints.
    ///
    /// If the process is killed, the versions imported by then remain, and so does the checkpoint `before-git-import-` plus the
    /// start of the newest commit's hash: restore the directory to it before you import again. A complete import removes it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Git`] if the repository cannot be read, is damaged, or uses an unsupported feature such as submodules,
    /// and [`Error::Invalid`] if files would be overwritten or there is not enough space. Nothing is changed then.
    pub fn git_import(&self, from: &Path, options: &GitImport) -> Result<GitImported, Error> {
        self.git_import_until(from, options, &Cancel::default())
    }

    /// Same as [`git_import`](Self::git_import), cancellable by a [`Cancel`]; versions imported by then are rolled back.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`git_import`](Self::git_import).
    pub fn git_import_until(&self, from: &Path, options: &GitImport, cancel: &Cancel) -> Result<GitImported, Error> {
        self.sandbox.refuse_in_the_past()?;
        let into = self.sandbox.agent().absolute(&options.into)?;
        let repository = Repository::open_until(from, Bounds::default(), &|| cancel.is_killed())?;
        let head = repository.resolve(options.reference.as_deref().unwrap_or("HEAD"))?;
        let commits = history(&repository, head, options.depth, cancel)?;
        let tags = repository.tags()?;
        let trees = Trees { repository: &repository, cancel };
        let size = self.check_import(&trees, &commits, &into)?;
        let (before, start) = (self.newest()?, start_label(head));
        let done = self.import_commits(&trees, &commits, &into, &start);
        let (versions, made) = done.inspect_err(|_| self.take_back(before, &into, &start))?;
        let (checkpoints, skipped) = self.label(tags, &made)?;
        Ok(GitImported {
            head: head.to_string(),
            commits: commits.len() as u64,
            versions,
            files: size.files,
            bytes: size.bytes,
            checkpoints,
            skipped,
        })
    }

    // The state before any change is version 0, which has no row yet.
    fn newest(&self) -> Result<i64, Error> {
        Ok(self.reader()?.versions(None, 1)?.pop().map_or(0, |version| version.number))
    }

    // A full disk or a deadline can abort it in the middle: the files are restored.
    fn take_back(&self, before: i64, into: &str, start: &str) {
        let is_changed = self.newest().is_ok_and(|now| now != before);
        if is_changed && self.restore(&format!("v{before}"), &[into.to_owned()]).is_err() {
            return;
        }
        // That of an earlier import that was killed stays.
        if self.checkpoints().is_ok_and(|labels| labels.iter().any(|label| (label.version, &*label.name) == (before, start))) {
            let _ = self.remove_checkpoint(start);
        }
    }

    // Reads everything that will be written, and compares it with the available space and the existing files.
    fn check_import(&self, trees: &Trees<'_>, commits: &[(Id, Commit)], into: &str) -> Result<Size, Error> {
        let view = self.sandbox.now()?;
        let is_empty = view.fs().list(into).is_ok_and(|entries| entries.is_empty()) || !view.fs().exists(into)?;
        let info = self.sandbox.info()?;
        let room = Size {
            bytes: info.disk_allowed.saturating_sub(info.disk_used),
            inodes: info.inodes_allowed.saturating_sub(info.inodes_used),
            files: 0,
        };
        let (mut size, mut changes, mut previous) = (Size::default(), 0u64, None);
        let (mut known, mut in_the_way) = (HashMap::new(), Vec::new());
        for (_, commit) in commits {
            trees.compare(previous, Some(commit.tree), "", 1, &mut |change| {
                changes += 1;
                if changes > CHANGES_MAX {
                    return Err(git::Error::TooLarge(format!("its commits change more than {CHANGES_MAX} files")).into());
                }
                let mut measured = |entry: &TreeEntry| match known.get(&(entry.id, entry.mode == Mode::Link)) {
                    Some(bytes) => Ok(*bytes),
                    None => {
                        let bytes = measure(trees.repository, entry)?;
                        known.insert((entry.id, entry.mode == Mode::Link), bytes);
                        Ok::<u64, Error>(bytes)
                    }
                };
                match change {
                    Change::Remove { entry, .. } => {
                        size.inodes = size.inodes.saturating_sub(1);
                        if entry.mode != Mode::Directory {
                            size.files = size.files.saturating_sub(1);
                            size.bytes = size.bytes.saturating_sub(measured(entry)?);
                        }
                    }
                    Change::Directory { path } => {
                        size.inodes += 1;
                        if !is_empty && is_there(&view, into, path, true)? {
                            in_the_way.push(path.to_owned());
                        }
                    }
                    Change::Put { path, entry, before } => {
                        match before {
                            Some(before) => size.bytes = size.bytes.saturating_sub(measured(before)?),
                            None => (size.inodes, size.files) = (size.inodes + 1, size.files + 1),
                        }
                        if before.is_none() && !is_empty && is_there(&view, into, path, false)? {
                            in_the_way.push(path.to_owned());
                        }
                        let bytes = measured(entry)?;
                        if bytes > self.sandbox.limits.file.0 {
                            let (limit, allowed) = (presets::LimitName::File, self.sandbox.limits.file);
                            return Err(Error::TooLarge { path: below(into, path), limit, allowed });
                        }
                        size.bytes = size.bytes.saturating_add(bytes);
                    }
                }
                if size.inodes > room.inodes {
                    return Err(no_room("files", size.inodes, room.inodes));
                }
                if in_the_way.len() > NAMED {
                    return Err(blocked(&in_the_way, into));
                }
                Ok(())
            })?;
            if size.bytes > room.bytes {
                return Err(no_room("bytes", size.bytes, room.bytes));
            }
            previous = Some(commit.tree);
        }
        if in_the_way.is_empty() { Ok(size) } else { Err(blocked(&in_the_way, into)) }
    }

    // Each commit is one run. Returns the number of created versions, and that of each commit. The version before the first one
    // has a label until the last one is there.
    fn import_commits(
        &self,
        trees: &Trees<'_>,
        commits: &[(Id, Commit)],
        into: &str,
        start: &str,
    ) -> Result<(u64, HashMap<Id, i64>), Error> {
        let (mut versions, mut made, mut previous) = (0, HashMap::new(), None);
        let (mut first, mut is_labelled) = (None, false);
        for (index, (id, commit)) in commits.iter().enumerate() {
            let is_last = index + 1 == commits.len();
            let subject = commit.message.lines().next().unwrap_or_default();
            let subject = subject.get(..subject.floor_char_boundary(SUBJECT)).unwrap_or_default();
            let call = Call::new(IMPORTED, subject, parameters_of(*id, commit));
            let (version, is_new, labelled) = self.sandbox.change_answering(call, |run| {
                let view = run.view()?;
                let mut changed = 0u64;
                let is_created = !view.fs().exists(into)?;
                view.fs().create_dir_all(into)?;
                trees.compare(previous, Some(commit.tree), "", 1, &mut |change| {
                    changed += 1;
                    apply(view, trees.repository, into, &change, commit)
                })?;
                let transaction = run.transaction()?;
                let newest = transaction.version().map_err(sqlite_fs::Error::from)?;
                let before = first.unwrap_or(newest);
                let labelled = match (is_last, is_labelled) {
                    (true, true) => !transaction.remove_label(start)?,
                    // The first version of a new sandbox has no row before the second one.
                    (false, false) if before == 0 && newest == 0 => false,
                    (false, false) => transaction.label(start, before, Some(INCOMPLETE)).is_ok(),
                    (_, labelled) => labelled,
                };
                let is_new = changed > 0 || is_created;
                let version = newest + i64::from(is_new);
                Ok(((version, is_new, labelled), json!({ "version": version, "changed": changed })))
            })?;
            first = first.or(Some(version - i64::from(is_new)));
            is_labelled = labelled;
            versions += u64::from(is_new);
            made.insert(*id, version);
            previous = Some(commit.tree);
        }
        Ok((versions, made))
    }

    // Creates checkpoints from the tags of imported commits.
    fn label(&self, tags: Tags, made: &HashMap<Id, i64>) -> Result<(Vec<String>, Vec<String>), Error> {
        let tags: Vec<_> = tags.into_iter().filter_map(|(name, (id, message))| Some((name, *made.get(&id)?, message))).collect();
        if tags.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let (mut labelled, mut skipped) = (Vec::new(), Vec::new());
        let call = Call::new(IMPORTED, "tags", json!({ "tags": tags.len() }));
        self.sandbox.change_answering(call, |run| {
            let transaction = run.transaction()?;
            for (name, version, message) in tags {
                let message = message.as_deref().map(str::trim).filter(|message| !message.is_empty());
                let is_done = !reference::is_reserved(&name) && transaction.label(&name, version, message).is_ok();
                if is_done { labelled.push(name) } else { skipped.push(name) }
            }
            let answer = json!({ "checkpoints": labelled.len(), "skipped": skipped.len() });
            Ok(((labelled, skipped), answer))
        })
    }
}

// The checkpoint of the version before an import.
fn start_label(head: Id) -> String {
    let mut hash = head.to_string();
    hash.truncate(12);
    format!("before-git-import-{hash}")
}

fn no_room(what: &str, needed: u64, free: u64) -> Error {
    Error::Invalid(format!("cannot import the repository: it requires {needed} {what}, but {free} are free"))
}

fn blocked(paths: &[String], into: &str) -> Error {
    let named = paths.iter().take(NAMED).map(|path| format!("`{}`", below(into, path))).collect::<Vec<_>>().join(", ");
    let more = if paths.len() > NAMED { ", …" } else { "" };
    Error::Invalid(format!("cannot import the repository: {named}{more} would be overwritten; choose another directory"))
}

fn below(into: &str, path: &str) -> String {
    format!("{}/{path}", into.trim_end_matches('/'))
}

// The commits of a history, oldest first.
fn history(repository: &Repository, head: Id, depth: Option<u64>, cancel: &Cancel) -> Result<Vec<(Id, Commit)>, Error> {
    let most = depth.and_then(|depth| usize::try_from(depth.max(1)).ok());
    let (mut commits, mut next) = (Vec::new(), Some(head));
    while let Some(id) = next.filter(|_| most.is_none_or(|most| commits.len() < most)) {
        if commits.len() >= COMMITS_MAX {
            let reason = format!("its history has more than {COMMITS_MAX} commits; import only the newest");
            return Err(git::Error::TooLarge(reason).into());
        }
        if cancel.is_killed() {
            return Err(git::Error::Interrupted.into());
        }
        let commit = repository.commit(id)?;
        next = commit.parents.first().copied();
        commits.push((id, commit));
    }
    commits.reverse();
    Ok(commits)
}

// Reads an entry and returns its bytes.
fn measure(repository: &Repository, entry: &TreeEntry) -> Result<u64, Error> {
    let shown = entry.name.escape_debug().take(100).collect::<String>();
    match entry.mode {
        Mode::Submodule => Err(git::Error::Unsupported(format!("`{shown}` is a submodule")).into()),
        Mode::Link => {
            target(repository, entry)?;
            Ok(0)
        }
        _ => Ok(repository.blob(entry.id)?.len() as u64),
    }
}

fn target(repository: &Repository, entry: &TreeEntry) -> Result<String, Error> {
    let bytes = repository.blob(entry.id)?;
    let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.is_empty() && !text.contains('\0'));
    match text.filter(|text| text.len() as u64 <= TARGET_MAX) {
        Some(text) => Ok(text.to_owned()),
        None => {
            let shown = entry.name.escape_debug().take(100).collect::<String>();
            Err(git::Error::Unsupported(format!("the link `{shown}` has an invalid target")).into())
        }
    }
}

// Whether a file's destination exists; a directory conflicts only with a file.
fn is_there(view: &View<sqlite_fs::Reader>, into: &str, path: &str, is_directory: bool) -> Result<bool, Error> {
    match view.fs().symlink_metadata(&below(into, path)) {
        Ok(stat) => Ok(!(is_directory && stat.is_dir())),
        Err(error) => match error.fs_error() {
            Some(FsError::NoEntry | FsError::NotDirectory) => Ok(false),
            _ => Err(error.into()),
        },
    }
}

fn apply(
    view: &View<Transaction>,
    repository: &Repository,
    into: &str,
    change: &Change<'_>,
    commit: &Commit,
) -> Result<(), Error> {
    let fs = view.fs();
    match change {
        Change::Remove { path, entry } if entry.mode == Mode::Directory => {
            match fs.remove_dir(&below(into, path)) {
                // Other existing files remain.
                Err(error) if error.fs_error() == Some(FsError::NotEmpty) => Ok(()),
                done => Ok(done?),
            }
        }
        Change::Remove { path, .. } => Ok(fs.remove_file(&below(into, path))?),
        Change::Directory { path } => Ok(fs.create_dir_all(&below(into, path))?),
        Change::Put { path, entry, before } => {
            let path = below(into, path);
            if entry.mode == Mode::Link {
                if before.is_some() {
                    fs.remove_file(&path)?;
                }
                return Ok(fs.symlink(&target(repository, entry)?, &path)?);
            }
            fs.write(&path, &*repository.blob(entry.id)?)?;
            fs.set_permissions(&path, if entry.mode == Mode::Executable { 0o755 } else { 0o644 })?;
            let time = commit.committer.seconds.clamp(0, i64::MAX / 2_000_000_000).saturating_mul(1_000_000_000);
            Ok(fs.set_times(&path, None, Some(time))?)
        }
    }
}
