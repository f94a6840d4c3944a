//! What differs between two states of the files, and how one is made like the other.
//!
//! Works on views, so it sees what everybody sees; the fixed world is the same in all of them and is left out.

use std::collections::BTreeMap;

use serde::Serialize;
use similar::TextDiff;
use sqlite_fs::path::{Last, Tree as _};
use sqlite_fs::{FileType, FsError, Reader, Rows, Stat, Step, Transaction, Volume as _, VolumeMut as _};

use crate::Error;
use crate::cancel::Deadline;
use crate::defaults::USER;
use crate::vfs::{Node, ROOT_NODE, View};

/// A larger file is compared and named, but its lines are not.
const TEXT_BYTES: u64 = 1 << 20;

/// Bytes of one diff: the rest is left out and said so.
const DIFF_BYTES: usize = 256 << 10;

/// Lines around a change.
const CONTEXT: usize = 3;

/// Bytes that are compared at a time.
const PIECE: usize = 64 << 10;

/// What happened to a path between two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceKind {
    /// It is new.
    Added,
    /// What is in it is another, or it is another kind of file.
    Modified,
    /// Only its permission bits are others.
    Mode,
    /// It is gone.
    Deleted,
}

impl DifferenceKind {
    /// The letter for it in a list.
    #[must_use]
    pub fn mark(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Mode => 'm',
            Self::Deleted => 'D',
        }
    }
}

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Difference {
    /// The path.
    pub path: String,
    /// What happened to it.
    pub kind: DifferenceKind,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Bytes before.
    pub old_size: u64,
    /// Bytes after.
    pub new_size: u64,
}

/// What differs between two versions, by path, with the two to read more of it.
pub struct Comparison {
    /// The paths that differ, sorted.
    pub differences: Vec<Difference>,
    views: Option<(View<Reader>, View<Reader>)>,
}

/// A file of one side.
#[derive(Clone)]
struct Side {
    kind: FileType,
    node: Node,
    stat: Stat,
}

type Sides = BTreeMap<String, Side>;

/// Returns whether a path is another one, or below it.
pub(super) fn is_at_or_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_wanted(path: &str, paths: &[String]) -> bool {
    paths.is_empty() || paths.iter().any(|top| is_at_or_below(path, top))
}

/// Where to look for differences.
pub(super) enum Where {
    /// At these paths, and below those that are marked: nothing else changed.
    At(Vec<(String, bool)>),
    /// Everywhere.
    Everywhere,
}

fn list<R: Rows>(view: &View<R>, paths: &[String], place: &Where, deadline: &Deadline) -> Result<Sides, Error> {
    let Where::At(places) = place else { return list_below(view, "/", paths, deadline) };
    let mut sides = Sides::new();
    for (path, with_what_is_below) in places.iter().filter(|(path, _)| is_wanted(path, paths)) {
        let (node, kind) = match view.find(ROOT_NODE, path, Last::NoFollow) {
            Ok(found) => found,
            Err(FsError::NoEntry | FsError::NotDirectory) => continue,
            Err(source) => return Err(failed("compare", path, source)),
        };
        if *with_what_is_below && kind == FileType::Directory {
            sides.append(&mut list_below(view, path, paths, deadline)?);
        }
        let stat = view.stat(node).map_err(|source| failed("compare", path, source))?;
        sides.insert(path.clone(), Side { kind, node, stat });
    }
    Ok(sides)
}

fn list_below<R: Rows>(view: &View<R>, top: &str, paths: &[String], deadline: &Deadline) -> Result<Sides, Error> {
    let mut sides = Sides::new();
    view.at_one_state(|view| {
        view.fs().visit(top, |visited| -> Result<Step, Error> {
            if deadline.is_over() {
                return Err(Error::Invalid("comparing took too long: compare fewer paths".to_owned()));
            }
            if visited.is_left_out {
                return Ok(Step::Enter);
            }
            if is_wanted(visited.path, paths) {
                let stat = view.stat(visited.node).map_err(|source| failed("compare", visited.path, source))?;
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
    let differences = differences(&from, &old, &to, &new, deadline)?;
    Ok(Comparison { differences, views: Some((from, to)) })
}

fn differences<A: Rows, B: Rows>(
    from: &View<A>,
    old: &Sides,
    to: &View<B>,
    new: &Sides,
    deadline: &Deadline,
) -> Result<Vec<Difference>, Error> {
    let mut found = Vec::new();
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
                    return Err(Error::Invalid("comparing took too long: compare fewer paths".to_owned()));
                }
                if !is_same(from, side, to, other).map_err(|source| failed("compare", path, source))? {
                    found.push(difference(path, DifferenceKind::Modified, Some(side), Some(other)));
                } else if side.stat.mode != other.stat.mode {
                    found.push(difference(path, DifferenceKind::Mode, Some(side), Some(other)));
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

// Whether two files have the same kind and content.
fn is_same<A: Rows, B: Rows>(from: &View<A>, old: &Side, to: &View<B>, new: &Side) -> Result<bool, FsError> {
    if old.kind != new.kind {
        return Ok(false);
    }
    match old.kind {
        FileType::File => {
            let is_untouched = old.stat.ino == new.stat.ino
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
    /// The paths that differ.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.differences.iter().map(|difference| difference.path.as_str())
    }

    /// A patch of all text files that differ, as `git apply` takes it. What is not text or too large is named.
    #[must_use]
    pub fn patch(&self) -> String {
        let mut out = String::new();
        for difference in &self.differences {
            if out.len() > DIFF_BYTES {
                out.push_str("# the rest is left out: name fewer paths\n");
                break;
            }
            out.push_str(&self.patch_of(difference));
        }
        out
    }

    /// The part of the patch that is about one of the differences; empty for a directory.
    #[must_use]
    pub fn patch_of(&self, difference: &Difference) -> String {
        let Some((from, to)) = self.views.as_ref().filter(|_| !difference.is_directory) else { return String::new() };
        let path = difference.path.trim_start_matches('/');
        let stat = |view: &View<Reader>| view.fs().symlink_metadata(&difference.path).ok();
        let (old, new) = (stat(from), stat(to));
        let git_mode = |stat: &Stat| match stat.mode & 0o170_000 {
            0o120_000 => "120000",
            _ if stat.mode & 0o111 != 0 => "100755",
            _ => "100644",
        };
        let mut head = format!("diff --git a/{path} b/{path}\n");
        match (&old, &new) {
            (None, Some(new)) => head += &format!("new file mode {}\n", git_mode(new)),
            (Some(old), None) => head += &format!("deleted file mode {}\n", git_mode(old)),
            (Some(old), Some(new)) if git_mode(old) != git_mode(new) => {
                head += &format!("old mode {}\nnew mode {}\n", git_mode(old), git_mode(new));
            }
            _ => {}
        }
        if difference.kind == DifferenceKind::Mode {
            return head;
        }
        let (Some(before), Some(after)) = (text(from, &difference.path, old.as_ref()), text(to, &difference.path, new.as_ref()))
        else {
            return format!("{head}Binary files a/{path} and b/{path} differ\n");
        };
        let names = (
            if old.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() },
            if new.is_some() { format!("b/{path}") } else { "/dev/null".to_owned() },
        );
        let diff = TextDiff::from_lines(before.as_str(), after.as_str());
        head + &diff.unified_diff().context_radius(CONTEXT).header(&names.0, &names.1).to_string()
    }

    /// Lines added and removed in a text file that differs; `None` for what is not text.
    #[must_use]
    pub fn line_counts(&self, difference: &Difference) -> Option<(usize, usize)> {
        let (from, to) = self.views.as_ref()?;
        let stat = |view: &View<Reader>| view.fs().symlink_metadata(&difference.path).ok();
        let before = text(from, &difference.path, stat(from).as_ref())?;
        let after = text(to, &difference.path, stat(to).as_ref())?;
        let diff = TextDiff::from_lines(before.as_str(), after.as_str());
        let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
        Some((count(similar::ChangeTag::Insert), count(similar::ChangeTag::Delete)))
    }
}

// The lines of a small text file, or where a link leads; nothing for what does not exist.
fn text(view: &View<Reader>, path: &str, stat: Option<&Stat>) -> Option<String> {
    let Some(stat) = stat else { return Some(String::new()) };
    if stat.mode & 0o170_000 == 0o120_000 {
        return view.fs().read_link(path).ok();
    }
    if !stat.is_file() || stat.size > TEXT_BYTES {
        return None;
    }
    String::from_utf8(view.fs().read(path).ok()?).ok().filter(|text| !text.contains('\0'))
}

/// Makes the files of a run like those of another state, below some paths or everywhere, and returns what that changed.
pub(super) fn make_equal(
    now: &View<Transaction>,
    then: &View<Reader>,
    paths: &[String],
    place: &Where,
    deadline: &Deadline,
) -> Result<Comparison, Error> {
    let (present, wanted) = (list(now, paths, place, deadline)?, list(then, paths, place, deadline)?);
    let differences = differences(now, &present, then, &wanted, deadline)?;
    let fs = now.fs();
    // What goes, goes first and from the leaves up: another kind of file may take its place.
    for difference in differences.iter().rev() {
        let Some(old) = present.get(&difference.path) else { continue };
        let is_replaced = wanted.get(&difference.path).is_none_or(|new| new.kind != old.kind);
        if is_replaced && fs.symlink_metadata(&difference.path).is_ok() {
            if old.kind == FileType::Directory { fs.remove_dir(&difference.path)? } else { fs.remove_file(&difference.path)? }
        }
    }
    for difference in &differences {
        let Some(new) = wanted.get(&difference.path) else { continue };
        bring_back(now, then, &difference.path, new)?;
    }
    Ok(Comparison { differences, views: None })
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
    let node = now.find(ROOT_NODE, path, Last::NoFollow).map_err(|source| failed("restore", path, source))?.0;
    let set =
        now.chmod(node, old.stat.mode & 0o7777).and_then(|()| now.set_times(node, Some(old.stat.atime), Some(old.stat.mtime)));
    set.map_err(|source| failed("restore", path, source))
}
