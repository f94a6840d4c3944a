//! Versions of files: a name for a content, so that a file is written only if it is still the one that was read.
//!
//! The same content has the same version, whenever and by whomever it was written, in any sandbox.

use sqlite_fs::{Fs, FsError, Volume};

use crate::Error;

/// What a file's version says when there is no file.
pub(super) const NO_FILE: &str = "none";

/// Letters of a version: 64 bits, far from any accident.
const LETTERS: usize = 16;

/// The version of a content.
pub(super) fn of(content: &[u8]) -> String {
    finish(blake3::Hasher::new().update(content))
}

/// The version of the file at a path.
///
/// # Errors
///
/// When it is a directory, or cannot be read.
pub(super) fn at<V: Volume>(fs: &Fs<'_, V>, path: &str) -> Result<String, Error> {
    let mut hasher = blake3::Hasher::new();
    let hashed = fs.read_pieces(path, 0, |piece| {
        hasher.update(piece);
        true
    });
    match hashed {
        Ok(_) => Ok(finish(&hasher)),
        Err(error) if error.fs_error() == Some(FsError::NoEntry) => Ok(NO_FILE.to_owned()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses to go on if a file has another version than its caller has seen.
///
/// # Errors
///
/// [`Error::Stale`]; else as [`at`].
pub(super) fn check<V: Volume>(fs: &Fs<'_, V>, path: &str, expected: &str) -> Result<(), Error> {
    compare(path, expected, at(fs, path)?)
}

/// The same for a version that is known.
///
/// # Errors
///
/// [`Error::Stale`].
pub(super) fn compare(path: &str, expected: &str, found: String) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Stale { path: path.to_owned(), expected: expected.to_owned(), found }) }
}

/// The version of what a hasher has seen.
pub(super) fn finish(hasher: &blake3::Hasher) -> String {
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(LETTERS);
    hex
}
