//! Moving an overlay onto a newer version of its database or another commit of its repository: the sandbox's changes are kept,
//! and conflicts are listed.

mod visible;

use serde_json::json;
use sqlite_fs::{FileType, FsError, Stat, Transaction};

use super::Sandbox;
use super::base::Pin;
use crate::cancel::Deadline;
use crate::history::{LibraryCall as Call, Moved};
use crate::vfs::{Complaints, Moving, Patience, SourceContext, SourceFiles, SourceStat, State, mount_path};
use crate::{Cancel, Error};

/// Maximum number of hidden paths examined.
const HIDDEN_MAX: usize = 1_000_000;
/// Maximum number of listed conflicts.
const NAMED_MAX: usize = 1_000;
/// Number of bytes compared at once.
const PIECE: usize = 256 << 10;

/// The side that wins a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The sandbox's own changes.
    Ours,
    /// The newer version.
    Theirs,
}

/// The result of [`Sandbox::update`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The previous version of the overlay; 0 if it is over a repository.
    pub from: i64,
    /// The new version; 0 if it is over a repository.
    pub to: i64,
    /// The previous and the new commit, if it is over a repository.
    pub commits: Option<(String, String)>,
    /// Number of the sandbox's own files, links and removed paths.
    pub changes: usize,
    /// Paths that both sides changed, resolved as requested: at most a thousand.
    pub conflicts: Vec<String>,
}

impl Sandbox {
    /// Moves an overlay over a database, or the whole sandbox if it has a base, onto a newer version (the newest by default), and
    /// one over a git repository onto another commit (by default the one that the mounted reference denotes now). The sandbox's
    /// own changes are kept. If the other side changed the same path since, `side` wins; without it nothing is changed.
    ///
    /// ```
    /// use sandlite_runtime::{Error, Sandbox, Side};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let file = directory.path().join("base.db");
    /// let base = Sandbox::builder().database(&file).file("/a", "1").file("/b", "1").open()?;
    /// # drop(base);
    /// let sandbox = Sandbox::builder().base(&file).open()?;
    /// sandbox.fs().write("/a", "mine")?;
    /// # let base = Sandbox::builder().database(&file).open()?;
    /// base.bash("echo -n 2 > /a; echo -n 2 > /b")?;
    /// # drop(base);
    /// let refused = sandbox.update("/", None, None).unwrap_err();
    /// assert!(matches!(refused, Error::Conflict { ref conflicts, .. } if conflicts == &["/a"]));
    /// sandbox.update("/", None, Some(Side::Ours))?;
    /// assert_eq!((sandbox.fs().read("/a")?, sandbox.fs().read("/b")?), (b"mine".to_vec(), b"2".to_vec()));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Conflict`] if both sides changed a path and `side` is `None`, and [`Error::Invalid`] if the path is not
    /// an overlay over a database or a repository, the version does not exist, or a rule could forbid a change there.
    pub fn update(&self, path: &str, to: Option<&str>, side: Option<Side>) -> Result<Update, Error> {
        self.update_until(path, to, side, Cancel::default())
    }

    /// Same as [`update`](Self::update), cancellable.
    pub(crate) fn update_until(&self, path: &str, to: Option<&str>, side: Option<Side>, cancel: Cancel) -> Result<Update, Error> {
        self.refuse_in_part("move it onto a newer version")?;
        let is_root = path.split('/').all(str::is_empty);
        let place = if is_root { String::new() } else { mount_path(path).map_err(|_| not_an_overlay(path))? };
        let point = self.scope.mounts.iter().find(|point| point.path == place && point.overlay);
        let source = point.and_then(|point| point.source.as_moving()).ok_or_else(|| not_an_overlay(path))?;
        // It compares and replaces rows, which no view sees.
        if self.scope.binding.keeps(&place) {
            let reason = format!("cannot update `{path}`: the policy makes some of it read-only or append-only");
            return Err(Error::Invalid(reason));
        }
        let from = source.shown().ok_or_else(|| Error::Invalid(format!("the database at `{path}` has no versions")))?;
        let (target, record) = source.resolve(to)?;
        let patience = Patience { cancel: cancel.clone(), longest: self.limits.wall.0, ..self.scope.patience.clone() };
        let deadline = Deadline::after(self.limits.wall.0, cancel);
        let call = Call::new("update", path, json!({ "path": path, "from": from.to_json(), "to": target.to_json() }));
        let done = self.change_answering(call, |run| {
            let transaction = run.transaction()?;
            let is_over = || deadline.is_over();
            let sides = Sides::open(source, (from, target), &patience, &place, &is_over)?;
            let found = sides.compare(transaction)?;
            let given_up = match side {
                None if !found.conflicts.is_empty() => {
                    let conflicts = found.conflicts.iter().take(NAMED_MAX).cloned().collect();
                    return Err(Error::Conflict { path: path.to_owned(), total: found.conflicts.len(), conflicts });
                }
                Some(Side::Theirs) => found.conflicts.as_slice(),
                None | Some(Side::Ours) => &[],
            };
            let before = self.recorder.now(&self.scope)?;
            given_up.iter().try_for_each(|path| give_up(transaction, path))?;
            let (changes, is_complete) = if from == target {
                (Vec::new(), true)
            } else {
                let changed = source.changed(from, target, &is_over)?;
                visible::changes(&sides, transaction, (&before, given_up), changed)?
            };
            let Sides { new: files, .. } = sides;
            run.note_moved(Moved { changes, is_complete, place: place.clone(), files });
            Pin::new(&place, record).record(transaction)?;
            let answer = json!({ "changes": found.changes, "conflicts": found.conflicts.len() });
            let mut conflicts = found.conflicts;
            conflicts.truncate(NAMED_MAX);
            Ok((Update::new(from, target, found.changes, conflicts), answer))
        })?;
        source.move_to(target);
        Ok(done)
    }
}

impl Update {
    fn new(from: State, to: State, changes: usize, conflicts: Vec<String>) -> Self {
        let number = |state: State| if let State::Version(number) = state { number } else { 0 };
        let commits = match (from, to) {
            (State::Commit(from), State::Commit(to)) => Some((from.to_string(), to.to_string())),
            _ => None,
        };
        Self { from: number(from), to: number(to), commits, changes, conflicts }
    }
}

fn not_an_overlay(path: &str) -> Error {
    Error::Invalid(format!("cannot update `{path}`: no overlay over a database or a git repository is mounted there"))
}

// Removes the sandbox's data at a path, so that the source is visible.
fn give_up(transaction: &Transaction, path: &str) -> Result<(), Error> {
    let fs = transaction.fs();
    match fs.symlink_metadata(path) {
        Ok(stat) if stat.is_dir() => {
            fs.remove_dir_all(path)?;
        }
        Ok(_) => fs.remove_file(path)?,
        Err(error) if error.fs_error() == Some(FsError::NoEntry) => {}
        Err(error) => return Err(error.into()),
    }
    let hidden = transaction.hidden_below(path, HIDDEN_MAX).map_err(sqlite_fs::Error::from)?;
    for hidden in hidden.iter().map(String::as_str).chain([path]) {
        transaction.show(hidden).map_err(sqlite_fs::Error::from)?;
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Compared {
    changes: usize,
    conflicts: Vec<String>,
}

/// The source in two states. Paths are relative to its root.
struct Sides<'a> {
    /// `None` if it no longer exists: then the changes of the other side are not known.
    old: Option<Box<dyn SourceFiles>>,
    new: Box<dyn SourceFiles>,
    /// The mount point.
    place: &'a str,
    complaints: Complaints,
    is_over: &'a dyn Fn() -> bool,
}

impl<'a> Sides<'a> {
    fn open(
        source: &dyn Moving,
        (from, to): (State, State),
        patience: &Patience,
        place: &'a str,
        is_over: &'a dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let complaints = Complaints::default();
        let context = || SourceContext::new(patience, place, &complaints);
        let old = source.open_at(from, context())?;
        let new = source.open_at(to, context())?;
        let new = new.ok_or_else(|| Error::Invalid(format!("cannot update `{place}`: the new version no longer exists")))?;
        Ok(Self { old, new, place, complaints, is_over })
    }

    fn go_on(&self) -> Result<(), Error> {
        if (self.is_over)() { Err(sqlite_fs::Error::Interrupted.into()) } else { Ok(()) }
    }

    // Adds the reason of the source to its error.
    fn explained<T>(&self, result: Result<T, FsError>) -> Result<T, Error> {
        result.map_err(|error| match (error, self.complaints.all().pop()) {
            (FsError::Interrupted, _) => sqlite_fs::Error::Interrupted.into(),
            (source, Some((path, reason))) => Error::Source { path, reason, source },
            (source, None) => sqlite_fs::Error::from(source).into(),
        })
    }

    // Examines everything that the sandbox has above the source.
    fn compare(&self, transaction: &Transaction) -> Result<Compared, Error> {
        let mut found = Compared::default();
        let (own, top) = (transaction.fs(), if self.place.is_empty() { "/" } else { self.place });
        let below = |path: &str| path.get(self.place.len()..).unwrap_or_default().trim_start_matches('/').to_owned();
        for (path, stat) in own.walk(top)?.into_iter().skip(1) {
            self.go_on()?;
            let at = below(&path);
            let new = self.explained(entry(&*self.new, &at))?;
            // A directory on both sides shows the names of both.
            if stat.is_dir() && new.is_none_or(|new| new.kind == FileType::Directory) {
                continue;
            }
            found.changes += usize::from(!stat.is_dir());
            let row = Row { transaction, stat };
            let is_equal = match new {
                Some(new) => self.explained(is_same((&row, &row.seen()), (&*self.new, &new), &at))?,
                None => false,
            };
            if !is_equal && self.has_changed(&at)? && !is_inside(&path, &found.conflicts) {
                found.conflicts.push(path);
            }
        }
        let hidden = transaction.hidden_below(self.place, HIDDEN_MAX).map_err(sqlite_fs::Error::from)?;
        for path in hidden {
            self.go_on()?;
            // Its replacement was examined above.
            if own.symlink_metadata(&path).is_ok_and(|stat| !stat.is_dir()) {
                continue;
            }
            found.changes += 1;
            let at = below(&path);
            let is_there = self.explained(entry(&*self.new, &at))?.is_some();
            if is_there && self.has_changed(&at)? && !is_inside(&path, &found.conflicts) {
                found.conflicts.push(path);
            }
        }
        found.conflicts.sort();
        Ok(found)
    }

    // Whether the source has changed a path, or anything below it.
    fn has_changed(&self, path: &str) -> Result<bool, Error> {
        let Some(old) = self.old.as_deref() else { return Ok(true) };
        let new = &*self.new;
        let mut left = vec![path.to_owned()];
        while let Some(path) = left.pop() {
            self.go_on()?;
            let (before, after) = match (self.explained(entry(old, &path))?, self.explained(entry(new, &path))?) {
                (None, None) => continue,
                (Some(before), Some(after)) => (before, after),
                _ => return Ok(true),
            };
            if !self.explained(is_same((old, &before), (new, &after), &path))? {
                return Ok(true);
            }
            if before.kind == FileType::Directory {
                let (before, after) = (self.explained(names(old, &path))?, self.explained(names(new, &path))?);
                if before != after {
                    return Ok(true);
                }
                left.extend(before.iter().map(|name| if path.is_empty() { name.clone() } else { format!("{path}/{name}") }));
            }
        }
        Ok(false)
    }
}

fn is_inside(path: &str, conflicts: &[String]) -> bool {
    let is_above =
        |above: &String| path.strip_prefix(above.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    conflicts.iter().any(is_above)
}

fn entry(files: &dyn SourceFiles, path: &str) -> Result<Option<SourceStat>, FsError> {
    match files.stat(path) {
        Ok(stat) => Ok(Some(stat)),
        Err(FsError::NoEntry | FsError::NotDirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

fn names(files: &dyn SourceFiles, path: &str) -> Result<Vec<String>, FsError> {
    let mut names: Vec<String> = files.list(path)?.into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    Ok(names)
}

/// The content of a file.
trait Content {
    fn piece(&self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError>;

    fn target(&self, path: &str) -> Result<String, FsError>;
}

impl Content for dyn SourceFiles + '_ {
    fn piece(&self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        self.read(path, offset, buffer)
    }

    fn target(&self, path: &str) -> Result<String, FsError> {
        self.read_link(path)
    }
}

/// A file of the sandbox.
struct Row<'a> {
    transaction: &'a Transaction,
    stat: Stat,
}

impl Row<'_> {
    fn seen(&self) -> SourceStat {
        let Stat { mode, size, atime, mtime, ctime, .. } = self.stat;
        SourceStat { kind: self.stat.file_type(), mode: mode & 0o7777, size, atime, mtime, ctime }
    }
}

impl Content for Row<'_> {
    fn piece(&self, _: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        self.transaction.read(self.stat.ino, offset, buffer)
    }

    fn target(&self, _: &str) -> Result<String, FsError> {
        self.transaction.readlink(self.stat.ino)
    }
}

// Whether two files are equal: type, permissions, content.
fn is_same<A: Content + ?Sized, B: Content + ?Sized>(
    (a, stat_a): (&A, &SourceStat),
    (b, stat_b): (&B, &SourceStat),
    path: &str,
) -> Result<bool, FsError> {
    if (stat_a.kind, stat_a.mode) != (stat_b.kind, stat_b.mode) {
        return Ok(false);
    }
    match stat_a.kind {
        FileType::File if stat_a.size != stat_b.size => Ok(false),
        FileType::File => has_same_bytes(a, b, path),
        FileType::Symlink => Ok(a.target(path)? == b.target(path)?),
        _ => Ok(true),
    }
}

fn has_same_bytes<A: Content + ?Sized, B: Content + ?Sized>(a: &A, b: &B, path: &str) -> Result<bool, FsError> {
    let (mut one, mut other, mut offset) = (vec![0; PIECE], vec![0; PIECE], 0);
    loop {
        let read = a.piece(path, offset, &mut one)?;
        let mut same = 0;
        while same < read {
            let more = b.piece(path, offset + same as u64, other.get_mut(..read - same).unwrap_or_default())?;
            if more == 0 || one.get(same..same + more) != other.get(..more) {
                return Ok(false);
            }
            same += more;
        }
        if read == 0 {
            return Ok(true);
        }
        offset += read as u64;
    }
}
