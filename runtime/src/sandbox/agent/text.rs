//! Small things about text that several tools need: versions, cutting, telling text from bytes.

/// What a file's version says when there is no file.
pub(super) const NO_FILE: &str = "none";

/// Letters of a version: 64 bits, far from any accident.
const VERSION_LETTERS: usize = 16;

/// The version of a content: the same content has the same version, whenever and by whomever it was written.
pub(super) fn version(content: &[u8]) -> String {
    finish(&{
        let mut hasher = blake3::Hasher::new();
        hasher.update(content);
        hasher
    })
}

/// The version of what a hasher has seen.
pub(super) fn finish(hasher: &blake3::Hasher) -> String {
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(VERSION_LETTERS);
    hex
}

/// At most `bytes` of a text, cut between characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// Whether the start of a content looks like something else than text, as grep decides.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content.iter().take(8 << 10).any(|&byte| byte == 0)
}

/// `one file`, `2 files`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
