//! The differences between two states of the files, and making one equal to the other.
//!
//! Works on views, so it sees the same files as all other callers; the fixed world is the same in all of them and is omitted.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use sqlite_fs::path::{Last, Tree as _};
use sqlite_fs::{FileType, FsError, Reader, Rows, Stat, Step, Transaction, Volume as _, VolumeMut as _};

use super::links::{LinkPairs, Links, Relinked, shared};
use crate::Error;
use crate::cancel::Deadline;
use crate::defaults::USER;
use crate::vfs::{Node, ROOT_NODE, View};

/// Number of bytes compared at once.
const PIECE: usize = 64 << 10;
/// Maximum size of the paths of a state together: those of a hostile file can have any length.
const PATHS_MAX: usize = 128 << 20;

/// The kind of a difference between two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceKind {
    /// Added.
    Added,
    /// The content or the type changed.
    Modified,
    /// Only the permission bits changed.
    Mode,
    /// Only its hard links changed: it shares its content with other names, of those that exist on both sides.
    Links,
    /// Deleted.
    Deleted,
}

impl DifferenceKind {
    /// Returns its letter in a list.
    #[must_use]
    pub fn mark(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Mode => 'm',
            Self::Links => 'l',
            Self::Deleted => 'D',
        }
    }
}

/// A differing path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Difference {
    /// The path.
    pub path: String,
    /// The kind of difference.
    pub kind: DifferenceKind,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// The old size, in bytes.
    pub old_size: u64,
    /// The new size, in bytes.
    pub new_size: u64,
}

/// The type of a value that is not a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// A key.
    Key,
    /// The state of a session.
    Session,
}

/// A key or session that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ValueDifference {
    /// The type of the value.
    pub value: ValueKind,
    /// The name of the key or session.
    pub name: String,
    /// The kind of difference.
    pub kind: DifferenceKind,
}

impl std::fmt::Display for ValueDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = match self.value {
            ValueKind::Key => "key",
            ValueKind::Session => "session",
        };
        write!(f, "{} {value} {}", self.kind.mark(), self.name)
    }
}

/// The differences between two versions by path, with both states for further reading.
pub struct Comparison {
    /// The paths that differ, sorted.
    pub differences: Vec<Difference>,
    /// The keys and sessions that differ, unless only some paths were compared.
    pub values: Vec<ValueDifference>,
    /// Whether keys may differ that are not listed, because another program wrote to the file between the two versions.
    pub values_unknown: bool,
    views: Option<(View<Reader>, View<Reader>)>,
}

/// A file on one side.
#[derive(Clone)]
pub(super) struct Side {
    pub(super) kind: FileType,
    pub(super) node: Node,
    pub(super) stat: Stat,
}

/// The files of one side, by path.
pub(super) type Sides = BTreeMap<String, Side>;

/// Returns whether a path equals another one, or is below it.
pub(super) fn is_at_or_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_wanted(path: &str, paths: &[String]) -> bool {
    paths.is_empty() || paths.iter().any(|top| is_at_or_below(path, top))
}

/// Rejects a path that exists in neither state.
pub(super) fn require_paths<A: Rows, B: Rows>(one: &View<A>, other: &View<B>, paths: &[String]) -> Result<(), Error> {
    for path in paths {
        let is_missing = |found: Result<(Node, FileType), FsError>| match found {
            Ok(_) => Ok(false),
            Err(FsError::NoEntry | FsError::NotDirectory) => Ok(true),
            Err(source) => Err(failed("restore", path, source)),
        };
        if is_missing(one.find(ROOT_NODE, path, Last::NoFollow))? && is_missing(other.find(ROOT_NODE, path, Last::NoFollow))? {
            return Err(failed("restore", path, FsError::NoEntry));
        }
    }
    Ok(())
}

/// The paths to compare.
pub(super) enum Where {
    /// At these paths, and below the marked ones: nothing else changed.
    At(Vec<(String, bool)>),
    /// Everywhere.
    Everywhere,
    /// Everywhere, in two databases with unrelated inode numbers and times.
    Apart,
}

impl Where {
    // Whether equal inode numbers and times imply equal content. Runs with a fixed clock give a file the same times again.
    fn trusts_stamps(&self) -> bool {
        matches!(self, Self::Everywhere)
    }
}

fn list<R: Rows>(view: &View<R>, paths: &[String], place: &Where, deadline: &Deadline) -> Result<Sides, Error> {
    let Where::At(places) = place else { return list_all(view, paths, deadline) };
    let mut sides = Sides::new();
    for (path, with_what_is_below) in places.iter().filter(|(path, _)| is_wanted(path, paths)) {
        // A link that replaced a directory above is not followed: what it leads to has another path.
        let found = view.find_listed(path).map_err(|source| failed("compare", path, source))?;
        let Some((node, kind)) = found else { continue };
        if *with_what_is_below && kind == FileType::Directory {
            sides.append(&mut list_below(view, path, paths, deadline)?);
        }
        let stat = view.stat(node).map_err(|source| failed("compare", path, source))?;
        sides.insert(path.clone(), Side { kind, node, stat });
    }
    Ok(sides)
}

fn list_all<R: Rows>(view: &View<R>, paths: &[String], deadline: &Deadline) -> Result<Sides, Error> {
    if paths.is_empty() || paths.iter().any(|path| path == "/") {
        return list_below(view, "/", &[], deadline);
    }
    let mut sides = Sides::new();
    for path in paths {
        let (node, kind) = match view.find(ROOT_NODE, path, Last::NoFollow) {
            Ok(found) => found,
            Err(FsError::NoEntry | FsError::NotDirectory) => continue,
            Err(source) => return Err(failed("compare", path, source)),
        };
        if kind == FileType::Directory {
            sides.append(&mut list_below(view, path, &[], deadline)?);
        }
        let stat = view.stat(node).map_err(|source| failed("compare", path, source))?;
        sides.insert(path.clone(), Side { kind, node, stat });
    }
    Ok(sides)
}

fn list_below<R: Rows>(view: &View<R>, top: &str, paths: &[String], deadline: &Deadline) -> Result<Sides, Error> {
    let (mut sides, mut bytes) = (Sides::new(), 0_usize);
    view.at_one_state(|view| {
        view.fs().visit(top, |visited| -> Result<Step, Error> {
            if deadline.is_over() {
                return Err(Error::Invalid("the comparison takes too long: compare fewer paths".to_owned()));
            }
            if visited.is_left_out {
                return Ok(Step::Enter);
            }
            if is_wanted(visited.path, paths) {
                let stat = view.stat(visited.node).map_err(|source| failed("compare", visited.path, source))?;
                bytes = bytes.saturating_add(visited.path.len());
                if bytes > PATHS_MAX {
                    return Err(Error::Invalid("the paths to compare are too long together: compare fewer paths".to_owned()));
                }
                sides.insert(visited.path.to_owned(), Side { kind: visited.kind, node: visited.node, stat });
            }
            Ok(Step::Enter)
        })
    })?;
    Ok(sides)
}

fn failed(operation: &'static str, path: &str, source: FsError) -> Error {
    sqlite_fs::Error::Fs { operation, path: path.to_owned(), source }.into()
}

/// Compares two states below some paths, or everywhere.
pub(super) fn compare(
    from: View<Reader>,
    to: View<Reader>,
    paths: &[String],
    place: &Where,
    deadline: &Deadline,
) -> Result<Comparison, Error> {
    let (old, new) = (list(&from, paths, place, deadline)?, list(&to, paths, place, deadline)?);
    let differences = differences(&from, &old, &to, &new, place.trusts_stamps(), deadline)?;
    Ok(Comparison { differences, values: Vec::new(), values_unknown: false, views: Some((from, to)) })
}

fn differences<A: Rows, B: Rows>(
    from: &View<A>,
    old: &Sides,
    to: &View<B>,
    new: &Sides,
    trusts_stamps: bool,
    deadline: &Deadline,
) -> Result<Vec<Difference>, Error> {
    let (mut found, mut links) = (Vec::new(), LinkPairs::new(old, new));
    let size = |side: &Side| if side.kind == FileType::File { side.stat.size } else { 0 };
    let difference = |path: &str, kind, old: Option<&Side>, new: Option<&Side>| Difference {
        path: path.to_owned(),
        kind,
        is_directory: new.or(old).is_some_and(|side| side.kind == FileType::Directory),
        old_size: old.map_or(0, size),
        new_size: new.map_or(0, size),
    };
    for (path, side) in old {
        match new.get(path) {
            None => found.push(difference(path, DifferenceKind::Deleted, Some(side), None)),
            Some(other) => {
                if deadline.is_over() {
                    return Err(Error::Invalid("the comparison takes too long: compare fewer paths".to_owned()));
                }
                if !is_same(from, side, to, other, trusts_stamps).map_err(|source| failed("compare", path, source))? {
                    found.push(difference(path, DifferenceKind::Modified, Some(side), Some(other)));
                } else if side.stat.mode != other.stat.mode {
                    found.push(difference(path, DifferenceKind::Mode, Some(side), Some(other)));
                } else if !links.are_equal(side, other) {
                    found.push(difference(path, DifferenceKind::Links, Some(side), Some(other)));
                }
            }
        }
    }
    found.extend(
        new.iter()
            .filter(|(path, _)| !old.contains_key(*path))
            .map(|(path, side)| difference(path, DifferenceKind::Added, None, Some(side))),
    );
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

// Whether two files have the same type and content.
fn is_same<A: Rows, B: Rows>(from: &View<A>, old: &Side, to: &View<B>, new: &Side, trusts_stamps: bool) -> Result<bool, FsError> {
    if old.kind != new.kind {
        return Ok(false);
    }
    match old.kind {
        FileType::File => {
            let is_untouched = trusts_stamps
                && old.stat.ino == new.stat.ino
                && (old.stat.size, old.stat.mtime, old.stat.ctime) == (new.stat.size, new.stat.mtime, new.stat.ctime);
            if is_untouched || old.stat.size != new.stat.size {
                return Ok(is_untouched);
            }
            let (mut left, mut right, mut offset) = (vec![0; PIECE], vec![0; PIECE], 0u64);
            loop {
                let (one, other) = (from.read(old.node, offset, &mut left)?, to.read(new.node, offset, &mut right)?);
                if left.get(..one) != right.get(..other) {
                    return Ok(false);
                }
                if one == 0 {
                    return Ok(true);
                }
                offset += one as u64;
            }
        }
        FileType::Symlink => Ok(from.readlink(old.node)? == to.readlink(new.node)?),
        FileType::Directory | FileType::Fifo | FileType::Device => Ok(true),
    }
}

impl Comparison {
    /// Returns no differences.
    pub(super) fn none() -> Self {
        Self { differences: Vec::new(), values: Vec::new(), values_unknown: false, views: None }
    }

    /// Returns whether the two states are known to be equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty() && self.values.is_empty() && !self.values_unknown
    }

    /// Returns the differing paths.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.differences.iter().map(|difference| difference.path.as_str())
    }

    /// Returns the two states, unless one of them was the run that made it equal to the other.
    pub(super) fn views(&self) -> Option<(&View<Reader>, &View<Reader>)> {
        self.views.as_ref().map(|(from, to)| (from, to))
    }
}

/// Makes the files of a run equal to those of another state, below some paths or everywhere, and returns the changes: content,
/// permission bits, hard links and the modification times of files. Times alone are not listed.
pub(super) fn make_equal(
    now: &View<Transaction>,
    then: &View<Reader>,
    paths: &[String],
    place: &Where,
    deadline: &Deadline,
) -> Result<Comparison, Error> {
    let (present, wanted) = (list(now, paths, place, deadline)?, list(then, paths, place, deadline)?);
    let differences = differences(now, &present, then, &wanted, place.trusts_stamps(), deadline)?;
    let complete = list_linked(now, then, (&differences, &wanted), (paths, place), deadline)?;
    let (all_present, all_wanted) = complete.as_ref().map_or((&present, &wanted), |(present, wanted)| (present, wanted));
    let (fs, mut removed) = (now.fs(), HashSet::new());
    // Removals come first, from the leaves up, because another type of file may take their place.
    for difference in differences.iter().rev() {
        let Some(old) = present.get(&difference.path) else { continue };
        let is_replaced = wanted.get(&difference.path).is_none_or(|new| new.kind != old.kind);
        if is_replaced && fs.symlink_metadata(&difference.path).is_ok() {
            if old.kind == FileType::Directory {
                fs.remove_dir(&difference.path)?
            } else {
                fs.remove_file(&difference.path)?
            }
            removed.insert(difference.path.as_str());
        }
    }
    let restoring =
        Restoring { now, then, paths, place, wanted: &wanted, links: Relinked::new(all_present, all_wanted, removed) };
    restoring.bring_all_back(&differences)?;
    bring_times_back(now, &present, &wanted, &differences)?;
    Ok(Comparison { differences, values: Vec::new(), values_unknown: false, views: None })
}

// Lists more of both states if restored files have other names than the listed ones.
fn list_linked(
    now: &View<Transaction>,
    then: &View<Reader>,
    (differences, wanted): (&[Difference], &Sides),
    (paths, place): (&[String], &Where),
    deadline: &Deadline,
) -> Result<Option<(Sides, Sides)>, Error> {
    let has_all = |sides: &Sides| {
        let links = Links::of(sides);
        differences.iter().filter_map(|difference| wanted.get(&difference.path)).all(|side| links.has_all(side))
    };
    let is_whole = matches!(place, Where::Everywhere | Where::Apart);
    if has_all(wanted) || is_whole && paths.is_empty() {
        return Ok(None);
    }
    if !paths.is_empty() && !is_whole {
        let changed = (list(now, &[], place, deadline)?, list(then, &[], place, deadline)?);
        if has_all(&changed.1) {
            return Ok(Some(changed));
        }
    }
    Ok(Some((list_all(now, &[], deadline)?, list_all(then, &[], deadline)?)))
}

/// A restore of files.
struct Restoring<'a> {
    now: &'a View<Transaction>,
    then: &'a View<Reader>,
    paths: &'a [String],
    place: &'a Where,
    wanted: &'a Sides,
    links: Relinked<'a>,
}

impl<'a> Restoring<'a> {
    // Restores what differs, parents first.
    fn bring_all_back(mut self, differences: &'a [Difference]) -> Result<(), Error> {
        // Directories above may differ, too.
        let is_limited = !self.paths.is_empty() && matches!(self.place, Where::At(_));
        let wanted = self.wanted;
        for difference in differences {
            let path = difference.path.as_str();
            let Some(new) = wanted.get(path) else { continue };
            if is_limited {
                refuse_link_above(self.now, path)?;
            }
            let stat = if new.kind == FileType::File { self.now.fs().symlink_metadata(path).ok() } else { None };
            let names = stat.map_or(0, |stat| stat.nlink);
            let is_content_kept = matches!(difference.kind, DifferenceKind::Mode | DifferenceKind::Links);
            if is_content_kept && names < 2 && shared(new).is_none() {
                set_attributes(self.now, path, new)?;
                continue;
            }
            self.bring_one_back(path, new, stat)?;
        }
        Ok(())
    }

    fn bring_one_back(&mut self, path: &'a str, new: &Side, stat: Option<Stat>) -> Result<(), Error> {
        let (now, then) = (self.now, self.then);
        let fs = now.fs();
        let (paths, trusts_stamps) = (self.paths, self.place.trusts_stamps());
        let first = self.links.first_name(path, new, |name, side| {
            let has_mode = side.stat.mode == new.stat.mode || is_wanted(name, paths);
            Ok::<_, Error>(
                has_mode && is_same(now, side, then, new, trusts_stamps).map_err(|source| failed("restore", name, source))?,
            )
        })?;
        let is_first = first == Some(path);
        let of_first = first.and_then(|first| fs.symlink_metadata(first).ok());
        let is_linked = of_first.zip(stat).is_some_and(|(first, stat)| stat.nlink > 1 && first.ino == stat.ino);
        if is_first || is_linked {
            let has_attributes = stat.is_some_and(|stat| (stat.mode, stat.mtime) == (new.stat.mode, new.stat.mtime));
            return if has_attributes { Ok(()) } else { set_attributes(now, path, new) };
        }
        // Its other names may lead to other files in the restored state.
        if stat.is_some_and(|stat| stat.nlink > 1 || first.is_some()) {
            fs.remove_file(path)?;
        }
        if let Some(first) = first {
            fs.create_parents(path)?;
            if fs.hard_link(first, path).is_ok() {
                return Ok(());
            }
        }
        bring_back(now, then, path, new)
    }
}

// Restores the modification times of files that are otherwise equal. Those of directories change with their entries.
fn bring_times_back(now: &View<Transaction>, present: &Sides, wanted: &Sides, differences: &[Difference]) -> Result<(), Error> {
    let restored: HashSet<&str> = differences.iter().map(|difference| difference.path.as_str()).collect();
    for (path, new) in wanted.iter().filter(|(path, _)| !restored.contains(path.as_str())) {
        let Some(old) = present.get(path).filter(|old| matches!(old.node, Node::Row(_))) else { continue };
        if matches!(new.kind, FileType::File | FileType::Fifo) && old.stat.mtime != new.stat.mtime {
            now.set_times(old.node, None, Some(new.stat.mtime)).map_err(|source| failed("restore", path, source))?;
        }
    }
    Ok(())
}

// The file would be written to where the link leads, which is another path.
fn refuse_link_above(now: &View<Transaction>, path: &str) -> Result<(), Error> {
    for (end, _) in path.match_indices('/').skip(1) {
        match now.find_listed(path.get(..end).unwrap_or_default()).map_err(|source| failed("restore", path, source))? {
            Some((_, FileType::Symlink)) => return Err(failed("restore", path, FsError::NotDirectory)),
            Some(_) => {}
            None => break,
        }
    }
    Ok(())
}

fn bring_back(now: &View<Transaction>, then: &View<Reader>, path: &str, old: &Side) -> Result<(), Error> {
    let fs = now.fs();
    fs.create_parents(path)?;
    match old.kind {
        FileType::Directory => fs.create_dir_all(path)?,
        FileType::Symlink => {
            let _ = fs.remove_file(path);
            let target = then.readlink(old.node).map_err(|source| failed("restore", path, source))?;
            fs.symlink(&target, path)?;
            return Ok(());
        }
        FileType::File => {
            let (file, _) = fs.create(path)?;
            let (mut buffer, mut offset) = (vec![0; PIECE], 0u64);
            loop {
                let read = then.read(old.node, offset, &mut buffer).map_err(|source| failed("restore", path, source))?;
                let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
                fs.write_at(file, offset, piece).map_err(|source| failed("restore", path, source))?;
                offset += read as u64;
            }
        }
        FileType::Fifo => {
            now.mkfifo_at(ROOT_NODE, path, old.stat.mode & 0o7777, USER).map_err(|source| failed("restore", path, source))?;
        }
        FileType::Device => return Ok(()),
    }
    set_attributes(now, path, old)
}

fn set_attributes(now: &View<Transaction>, path: &str, old: &Side) -> Result<(), Error> {
    let node = now.find(ROOT_NODE, path, Last::NoFollow).map_err(|source| failed("restore", path, source))?.0;
    let set =
        now.chmod(node, old.stat.mode & 0o7777).and_then(|()| now.set_times(node, Some(old.stat.atime), Some(old.stat.mtime)));
    set.map_err(|source| failed("restore", path, source))
}
