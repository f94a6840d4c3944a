//! Text utilities for several tools: truncation, detection of binary content, counting, and the size budget of a result.

use super::MAX_OUTPUT;

/// The remaining size of one result, charged before anything is added to it.
#[derive(Debug)]
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MAX_OUTPUT)
    }
}

impl Room {
    /// Takes this many bytes; returns `false` if they do not fit, after which nothing fits.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// Returns at most `bytes` of a text, cut between characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// Returns whether content looks binary, using grep's rule.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content.iter().take(8 << 10).any(|&byte| byte == 0)
}

/// Formats `1 file`, `2 files`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
