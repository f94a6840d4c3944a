//! Versions of files: a name for a content, so that a file is written only if it is still the one that was read.
//!
//! The same content has the same version, whenever and by whomever it was written, in any sandbox.

/// What a file's version says when there is no file.
pub(super) const NO_FILE: &str = "none";

/// Letters of a version: 64 bits, far from any accident.
const LETTERS: usize = 16;

/// The version of a content.
pub(super) fn of(content: &[u8]) -> String {
    finish(blake3::Hasher::new().update(content))
}

/// The version of what a hasher has seen.
pub(super) fn finish(hasher: &blake3::Hasher) -> String {
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(LETTERS);
    hex
}
