//! Small things about text that several tools need: cutting, telling text from bytes, counting, the room in an answer.

use super::MAX_OUTPUT;

/// What is left of the bytes that one answer may have: taken before anything is added to it.
#[derive(Debug)]
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MAX_OUTPUT)
    }
}

impl Room {
    /// Takes so many bytes; `false` if they no longer fit, after which nothing fits.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
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
