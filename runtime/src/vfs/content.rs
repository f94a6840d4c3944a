//! What is known of a file's content: its version and its lines. A read of the whole file computes them, and they are kept until the
//! file changes.
//!
//! The same content has the same version, whenever and by whomever it was written, in any sandbox.

use sqlite_fs::path::Last;
use sqlite_fs::{Content, FileType, FsError, Rows, Stat, Volume};

use crate::Error;
use crate::vfs::{Node, ROOT_NODE, View};

/// The version of a file that does not exist.
pub(crate) const NO_FILE: &str = "none";

/// Letters of a version: 64 bits, far from any accident.
const LETTERS: usize = 16;

/// The version of a content.
pub(crate) fn version(content: &[u8]) -> String {
    finish(blake3::Hasher::new().update(content))
}

fn finish(hasher: &blake3::Hasher) -> String {
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(LETTERS);
    hex
}

/// Finds out what is to be known of a content that passes by in pieces.
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

/// A file of a view, and what is known of its content.
pub(crate) struct Known<'a, R> {
    view: &'a View<R>,
    node: Node,
    stat: Stat,
    /// `None` if nobody has read all of it.
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

    /// Keeps what was found out.
    pub(crate) fn keep(&self, content: &Content) {
        self.view.keep_content(self.node, &self.stat, content.clone());
    }
}

/// The version of the file at a path, or what stands for none.
///
/// # Errors
///
/// When it is a directory, or cannot be read.
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

/// Refuses to go on if a file has another version than its caller has seen.
///
/// # Errors
///
/// [`Error::Stale`].
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
