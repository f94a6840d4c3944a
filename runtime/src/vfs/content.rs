//! Facts about a file's content: its version and its lines. Reading the whole file computes them, and they are cached until the
//! file changes.
//!
//! Equal content has the same version, regardless of time, author and sandbox. A window of a large file is returned without
//! reading the rest: its version is then a stamp of the inode, which changes with every write.

use sqlite_fs::path::Last;
use sqlite_fs::{Content, FileType, FsError, Rows, Stat, Volume};

use crate::Error;
use crate::vfs::{Node, ROOT_NODE, View};

/// The version of a file that does not exist.
pub(crate) const NO_FILE: &str = "none";

/// Length of a version in digits: 64 bits, enough to rule out accidental collisions.
const LETTERS: usize = 16;

/// Minimum size of files with a stamp, unless their content is known.
const LARGE: u64 = 4 << 20;

/// The prefix of a stamp, which no hash has.
const STAMP: char = '~';

/// Times of deterministic runs are before this one (2020, in nanoseconds since 1970). Their clock repeats itself, so a time does
/// not identify a write.
const REAL_TIME: i64 = 1_577_836_800_000_000_000;

/// Returns the version of content.
pub(crate) fn version(content: &[u8]) -> String {
    finish(blake3::Hasher::new().update(content))
}

fn finish(hasher: &blake3::Hasher) -> String {
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(LETTERS);
    hex
}

/// Computes the facts about content that arrives in pieces.
pub(crate) struct Scan {
    hasher: blake3::Hasher,
    newlines: u64,
    has_crlf: bool,
    last: u8,
}

impl Scan {
    pub(crate) fn new() -> Self {
        Self { hasher: blake3::Hasher::new(), newlines: 0, has_crlf: false, last: b'\n' }
    }

    pub(crate) fn take(&mut self, piece: &[u8]) {
        self.hasher.update(piece);
        self.newlines += piece.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let is_split = self.last == b'\r' && piece.first() == Some(&b'\n');
        self.has_crlf = self.has_crlf || is_split || piece.windows(2).any(|pair| pair == b"\r\n");
        self.last = piece.last().copied().unwrap_or(self.last);
    }

    pub(crate) fn finish(self) -> Content {
        let (has_crlf, is_terminated) = (self.has_crlf, self.last == b'\n');
        Content { etag: finish(&self.hasher), newlines: self.newlines, has_crlf, is_terminated }
    }
}

/// A file of a view, and the known facts about its content.
pub(crate) struct Known<'a, R> {
    view: &'a View<R>,
    node: Node,
    stat: Stat,
    /// `None` if it was not read completely.
    pub(crate) content: Option<Content>,
}

impl<'a, R: Rows> Known<'a, R> {
    /// Looks at a file.
    pub(crate) fn of(view: &'a View<R>, path: &str) -> Result<Self, FsError> {
        let (node, kind) = view.find(ROOT_NODE, path, Last::Follow)?;
        if kind == FileType::Directory {
            return Err(FsError::IsDirectory);
        }
        let stat = view.stat(node)?;
        Ok(Self { content: view.content(node, &stat), view, node, stat })
    }

    fn without_content(mut self) -> Self {
        self.content = None;
        self
    }

    /// Returns the version of a large file that was not read.
    pub(crate) fn stamp(&self) -> Option<String> {
        let Stat { ino, size, mtime, ctime, .. } = self.stat;
        let is_useful = self.content.is_none() && size > LARGE && ctime >= REAL_TIME;
        is_useful.then(|| format!("{STAMP}{}", version(format!("{ino} {size} {mtime} {ctime}").as_bytes())))
    }

    /// Caches the facts.
    pub(crate) fn keep(&self, content: &Content) {
        self.view.keep_content(self.node, &self.stat, content.clone());
    }
}

/// Returns the version of the file at a path, or the value for a missing file.
///
/// # Errors
///
/// Returns an error if it is a directory or cannot be read.
pub(crate) fn version_at<R: Rows>(view: &View<R>, path: &str) -> Result<String, Error> {
    let known = match Known::of(view, path) {
        Err(FsError::NoEntry) => return Ok(NO_FILE.to_owned()),
        known => known.map_err(|source| sqlite_fs::Error::Fs { operation: "read", path: path.to_owned(), source })?,
    };
    if let Some(content) = known.content {
        return Ok(content.etag);
    }
    let mut scan = Scan::new();
    view.fs().read_pieces(path, 0, |piece| {
        scan.take(piece);
        true
    })?;
    let content = scan.finish();
    known.keep(&content);
    Ok(content.etag)
}

/// Checks that the file at a path has the version that its caller has seen.
///
/// # Errors
///
/// Returns [`Error::Stale`] if it has another, and the errors of reading the file.
pub(crate) fn expect<R: Rows>(view: &View<R>, path: &str, expected: &str) -> Result<(), Error> {
    let stamp = is_stamp(expected).then(|| Known::of(view, path).ok()?.without_content().stamp()).flatten();
    match stamp {
        Some(found) => compare(path, expected, found),
        None => compare(path, expected, version_at(view, path)?),
    }
}

/// Returns whether a version is a stamp of a large file.
pub(crate) fn is_stamp(version: &str) -> bool {
    version.starts_with(STAMP)
}

/// Checks that a file has the version that its caller has seen.
///
/// # Errors
///
/// Returns [`Error::Stale`] if it has another.
pub(crate) fn compare(path: &str, expected: &str, found: String) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Stale { path: path.to_owned(), expected: expected.to_owned(), found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], newlines: u64, has_crlf: bool, is_terminated: bool) {
        let mut scan = Scan::new();
        pieces.iter().for_each(|piece| scan.take(piece.as_bytes()));
        let etag = version(pieces.concat().as_bytes());
        assert_eq!(scan.finish(), Content { etag, newlines, has_crlf, is_terminated }, "{pieces:?}");
    }

    #[test]
    fn pieces_may_end_anywhere() {
        check(&[], 0, false, true);
        check(&["a\nb"], 1, false, false);
        check(&["a\r", "\nb\n"], 2, true, true);
        check(&["a\n", "\r"], 1, false, false);
        check(&["a", "\r\n", "b"], 1, true, false);
    }
}
