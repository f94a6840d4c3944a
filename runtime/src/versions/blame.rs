//! Finds the run that wrote each line of a file.
//!
//! Goes back from the current text, version by version: lines that a version added are attributed to it, the others are searched
//! in the previous text. Renames are not followed: the history of a moved file starts with its name.

use std::time::Duration;

use similar::{DiffTag, TextDiff};
use sqlite_fs::{Reader, Version};

use super::compare::is_at_or_below;
use super::{LoggedVersion, Versions, changed};
use crate::cancel::Deadline;
use crate::history::Run;
use crate::vfs::View;
use crate::{Cancel, Error};

/// Maximum size of a text.
const TEXT_BYTES: u64 = 4 << 20;

/// Maximum time to compare two texts; the rest then counts as rewritten.
const PATIENCE: Duration = Duration::from_secs(2);

/// Number of versions listed at once.
const PAGE: usize = 500;

/// The lines of a file, and the versions that wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The versions that wrote them, newest first.
    pub authors: Vec<LoggedVersion>,
    /// Each line with the index of its author.
    pub lines: Vec<(String, usize)>,
}

impl Versions<'_> {
    /// Finds the run that wrote each line of a text file.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.bash("printf 'a\\nb\\n' > /list")?;
    /// sandbox.bash("echo c >> /list")?;
    /// let blame = sandbox.versions().blame("/list")?;
    /// let commands: Vec<_> = blame.lines.iter().map(|(_, author)| &blame.authors[*author].run.as_ref().unwrap().command).collect();
    /// assert_eq!(commands, ["printf 'a\\nb\\n' > /list", "printf 'a\\nb\\n' > /list", "echo c >> /list"]);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the file is not text or too large, and an error if it cannot be read.
    pub fn blame(&self, path: &str) -> Result<Blame, Error> {
        self.blame_until(path, Cancel::default())
    }

    /// Same as [`blame`](Self::blame), cancellable by a [`Cancel`].
    pub(crate) fn blame_until(&self, path: &str, cancel: Cancel) -> Result<Blame, Error> {
        let deadline = Deadline::after(self.sandbox.limits.wall.0, cancel);
        let text = text(&self.sandbox.now()?, path)?;
        let mut lines = Lines::new(text);
        let (mut authors, mut before) = (Vec::new(), self.sandbox.at.map(|at| at + 1));
        let mut oldest = None;
        'all: while !lines.is_done() {
            let page = self.log(None, before, Some(PAGE))?;
            let Some(last) = page.last() else { break };
            before = Some(last.version.number);
            oldest = Some(last.clone());
            for logged in page {
                if deadline.is_over() {
                    return Err(Error::Invalid(format!("tracing the lines of `{path}` takes too long")));
                }
                if !may_have_changed(&logged, path) {
                    continue;
                }
                let Some(earlier) = self.earlier(&logged.version, path)? else { break 'all };
                if lines.step_back(earlier, authors.len()) {
                    authors.push(logged);
                }
                if lines.is_done() {
                    break 'all;
                }
            }
        }
        // Lines older than all versions are attributed to the oldest one.
        let rest = authors.len();
        let lines = lines.finish(rest);
        if lines.iter().any(|(_, author)| *author == rest) {
            let unknown = || Error::Invalid(format!("the history of `{path}` is not known"));
            authors.push(oldest.ok_or_else(unknown)?);
        }
        Ok(Blame { authors, lines })
    }

    // The text before a version; empty if there was none, `None` if that version was pruned.
    fn earlier(&self, version: &Version, path: &str) -> Result<Option<String>, Error> {
        let Ok(before) = self.reader()?.version(version.number - 1) else { return Ok(None) };
        let view = self.view(&before)?;
        if !view.fs().symlink_metadata(path).is_ok_and(|stat| stat.is_file()) {
            return Ok(Some(String::new()));
        }
        // A binary file that became text shares no lines with it.
        Ok(Some(text(&view, path).unwrap_or_default()))
    }
}

// Unrecorded changes may have changed anything.
fn may_have_changed(logged: &LoggedVersion, path: &str) -> bool {
    let Some(run) = &logged.run else { return true };
    changed(run, path) || is_incomplete(run) || moves_above(run, path)
}

pub(super) fn is_incomplete(run: &Run) -> bool {
    let changes = run.changes.as_deref().and_then(|changes| changes.as_array());
    changes.is_none_or(|changes| changes.iter().any(|change| change["path"] == ""))
}

// Whether a parent directory of the path was moved here, or away.
pub(super) fn moves_above(run: &Run, path: &str) -> bool {
    let changes = run.changes.as_deref().and_then(|changes| changes.as_array());
    let is_above = |key: &str, change: &serde_json::Value| {
        change[key].as_str().is_some_and(|top| !top.is_empty() && is_at_or_below(path, top))
    };
    changes.into_iter().flatten().any(|change| is_above("path", change) || is_above("from", change))
}

fn text(view: &View<Reader>, path: &str) -> Result<String, Error> {
    let stat = view.fs().metadata(path)?;
    let refused = |reason: &str| Error::Invalid(format!("cannot trace the lines of `{path}`: {reason}"));
    if !stat.is_file() {
        return Err(refused("it is not a regular file"));
    }
    if stat.size > TEXT_BYTES {
        return Err(refused("it is larger than 4 MB"));
    }
    let bytes = view.fs().read(path)?;
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(|| refused("it is a binary file"))
}

/// The lines of the current text, on the way back.
struct Lines {
    present: Vec<String>,
    authors: Vec<Option<usize>>,
    /// The earlier text, and for each of its lines the corresponding line of the current text.
    earlier: Vec<(String, Option<usize>)>,
}

impl Lines {
    fn new(text: String) -> Self {
        let present: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let earlier = present.iter().cloned().enumerate().map(|(index, line)| (line, Some(index))).collect();
        Self { authors: vec![None; present.len()], present, earlier }
    }

    fn is_done(&self) -> bool {
        self.earlier.iter().all(|(_, index)| index.is_none())
    }

    // Goes back to the previous text, and returns whether lines of the current text are new since then.
    fn step_back(&mut self, before: String, author: usize) -> bool {
        let old: Vec<&str> = before.split_inclusive('\n').collect();
        let new: Vec<&str> = self.earlier.iter().map(|(line, _)| line.as_str()).collect();
        let diff = TextDiff::configure().timeout(PATIENCE).diff_slices(&old, &new);
        let mut kept: Vec<(String, Option<usize>)> = old.iter().map(|line| ((*line).to_owned(), None)).collect();
        let mut is_author = false;
        for op in diff.ops() {
            let (tag, in_old, in_new) = op.as_tag_tuple();
            if tag == DiffTag::Equal {
                for (old, new) in in_old.zip(in_new) {
                    if let (Some(line), Some((_, index))) = (kept.get_mut(old), self.earlier.get(new)) {
                        line.1 = *index;
                    }
                }
                continue;
            }
            for (_, index) in self.earlier.get(in_new).unwrap_or_default() {
                if let Some(found) = index.and_then(|index| self.authors.get_mut(index)) {
                    *found = Some(author);
                    is_author = true;
                }
            }
        }
        self.earlier = kept;
        is_author
    }

    fn finish(self, rest: usize) -> Vec<(String, usize)> {
        let plain = |line: String| line.strip_suffix('\n').map_or_else(|| line.clone(), str::to_owned);
        self.present.into_iter().zip(self.authors).map(|(line, author)| (plain(line), author.unwrap_or(rest))).collect()
    }
}
