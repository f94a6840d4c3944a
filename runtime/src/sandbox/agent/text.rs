//! Small things about text that several tools need: cutting, telling text from bytes, counting.

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
