//! Moving an overlay onto a newer version of its database: the sandbox's changes are kept, and conflicts are listed.

use serde_json::json;
use sqlite_fs::{FileType, Fs, FsError, Reader, Stat, Transaction, Volume};

use super::Sandbox;
use super::base::Pin;
use crate::cancel::Deadline;
use crate::history::LibraryCall as Call;
use crate::vfs::{DatabaseSource, mount_path};
use crate::{Cancel, Error, versions};

/// Maximum number of hidden paths examined.
const HIDDEN_MAX: usize = 1_000_000;
/// Maximum number of listed conflicts.
const NAMED_MAX: usize = 1_000;

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
    /// The previous version of the overlay.
    pub from: i64,
    /// The new version.
    pub to: i64,
    /// Number of the sandbox's own files, links and removed paths.
    pub changes: usize,
    /// Paths that both sides changed, resolved as requested: at most a thousand.
    pub conflicts: Vec<String>,
}

impl Sandbox {
    /// Moves an overlay over a database, or the whole sandbox if it has a base, onto a newer version (the newest by default). The
    /// sandbox's own changes are kept. If the other side changed the same path since, `side` wins; without it nothing is changed.
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
    /// an overlay over a database or the version does not exist.
    pub fn update(&self, path: &str, to: Option<&str>, side: Option<Side>) -> Result<Update, Error> {
        self.update_until(path, to, side, Cancel::default())
    }

    /// Same as [`update`](Self::update), cancellable.
    pub(crate) fn update_until(&self, path: &str, to: Option<&str>, side: Option<Side>, cancel: Cancel) -> Result<Update, Error> {
        self.refuse_in_part("move it onto a newer version")?;
        let is_root = path.split('/').all(str::is_empty);
        let place = if is_root { String::new() } else { mount_path(path).map_err(|_| not_an_overlay(path))? };
        let point = self.scope.mounts.iter().find(|point| point.path == place && point.overlay);
        let source = point.and_then(|point| point.source.as_database()).ok_or_else(|| not_an_overlay(path))?;
        let from = source.version().ok_or_else(|| Error::Invalid(format!("the database at `{path}` has no versions")))?;
        let target = versions::resolve(&source.base().reader()?, to.unwrap_or("HEAD"))?;
        let deadline = Deadline::after(self.limits.wall.0, cancel);
        let call = Call::new("update", path, json!({ "path": path, "from": from, "to": target.number }));
        let done = self.change_answering(call, |run| {
            let transaction = run.transaction()?;
            let is_over = || deadline.is_over();
            let sides = Sides::open(source, from, target.number, &is_over)?;
            let found = sides.compare(transaction, &place)?;
            match side {
                None if !found.conflicts.is_empty() => {
                    let conflicts = found.conflicts.iter().take(NAMED_MAX).cloned().collect();
                    return Err(Error::Conflict { path: path.to_owned(), total: found.conflicts.len(), conflicts });
                }
                Some(Side::Theirs) => found.conflicts.iter().try_for_each(|path| give_up(transaction, path))?,
                None | Some(Side::Ours) => {}
            }
            Pin::new(&place, &target).record(transaction)?;
            let answer = json!({ "changes": found.changes, "conflicts": found.conflicts.len() });
            let mut conflicts = found.conflicts;
            conflicts.truncate(NAMED_MAX);
            Ok((Update { from, to: target.number, changes: found.changes, conflicts }, answer))
        })?;
        source.move_to(target.number);
        Ok(done)
    }
}

fn not_an_overlay(path: &str) -> Error {
    Error::Invalid(format!("cannot update `{path}`: no overlay over a database is mounted there"))
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

/// The source at two versions.
struct Sides<'a> {
    /// `None` if it was pruned: then the changes of the other side are not known.
    old: Option<Reader>,
    new: Reader,
    is_over: &'a dyn Fn() -> bool,
}

impl<'a> Sides<'a> {
    fn open(source: &DatabaseSource, from: i64, to: i64, is_over: &'a dyn Fn() -> bool) -> Result<Self, Error> {
        let old = match source.base().reader_at(from) {
            Ok(reader) => Some(reader),
            Err(sqlite_fs::Error::NoVersion { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { old, new: source.base().reader_at(to)?, is_over })
    }

    fn go_on(&self) -> Result<(), Error> {
        if (self.is_over)() { Err(sqlite_fs::Error::Interrupted.into()) } else { Ok(()) }
    }

    // Examines everything that the sandbox has above the source.
    fn compare(&self, transaction: &Transaction, place: &str) -> Result<Compared, Error> {
        let mut found = Compared::default();
        let (own, top) = (transaction.fs(), if place.is_empty() { "/" } else { place });
        let below = |path: &str| path.get(place.len()..).unwrap_or_default().to_owned();
        for (path, stat) in own.walk(top)?.into_iter().skip(1) {
            self.go_on()?;
            let at = below(&path);
            let new = entry(&self.new, &at)?;
            // A directory on both sides shows the names of both.
            if stat.is_dir() && new.is_none_or(|new| new.is_dir()) {
                continue;
            }
            found.changes += usize::from(!stat.is_dir());
            let is_equal = match new {
                Some(new) => is_same((transaction, &path, &stat), (&self.new, &at, &new))?,
                None => false,
            };
            if !is_equal && self.has_changed(&at)? && !is_inside(&path, &found.conflicts) {
                found.conflicts.push(path);
            }
        }
        let hidden = transaction.hidden_below(place, HIDDEN_MAX).map_err(sqlite_fs::Error::from)?;
        for path in hidden {
            self.go_on()?;
            // Its replacement was examined above.
            if own.symlink_metadata(&path).is_ok_and(|stat| !stat.is_dir()) {
                continue;
            }
            found.changes += 1;
            let at = below(&path);
            if entry(&self.new, &at)?.is_some() && self.has_changed(&at)? && !is_inside(&path, &found.conflicts) {
                found.conflicts.push(path);
            }
        }
        found.conflicts.sort();
        Ok(found)
    }

    // Whether the source has changed a path, or anything below it.
    fn has_changed(&self, path: &str) -> Result<bool, Error> {
        let Some(old) = &self.old else { return Ok(true) };
        let (before, after) = match (entry(old, path)?, entry(&self.new, path)?) {
            (None, None) => return Ok(false),
            (Some(before), Some(after)) => (before, after),
            _ => return Ok(true),
        };
        if !is_same((old, path, &before), (&self.new, path, &after))? {
            return Ok(true);
        }
        if !before.is_dir() {
            return Ok(false);
        }
        let (before, after) = (old.fs().walk(path)?, self.new.fs().walk(path)?);
        if before.len() != after.len() {
            return Ok(true);
        }
        for ((path, before), (other, after)) in before.iter().zip(&after) {
            self.go_on()?;
            if path != other || !is_same((old, path, before), (&self.new, path, after))? {
                return Ok(true);
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

fn entry(reader: &Reader, path: &str) -> Result<Option<Stat>, Error> {
    match reader.fs().symlink_metadata(path) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if matches!(error.fs_error(), Some(FsError::NoEntry | FsError::NotDirectory)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

// Whether two files are equal: type, permissions, content.
fn is_same<A: Volume, B: Volume>(
    (a, path_a, stat_a): (&A, &str, &Stat),
    (b, path_b, stat_b): (&B, &str, &Stat),
) -> Result<bool, Error> {
    if stat_a.mode != stat_b.mode {
        return Ok(false);
    }
    match stat_a.file_type() {
        FileType::File if stat_a.size != stat_b.size => Ok(false),
        FileType::File => Ok(hash(a, path_a)? == hash(b, path_b)?),
        FileType::Symlink => Ok(Fs::new(a).read_link(path_a)? == Fs::new(b).read_link(path_b)?),
        _ => Ok(true),
    }
}

fn hash<V: Volume>(volume: &V, path: &str) -> Result<blake3::Hash, Error> {
    let mut hasher = blake3::Hasher::new();
    Fs::new(volume).read_pieces(path, 0, |piece| {
        hasher.update(piece);
        true
    })?;
    Ok(hasher.finalize())
}
