//! Characters in bytes that are mostly UTF-8: what is not counts as one character per byte.

/// Bytes of the character that `text` starts with; 1 for a byte that starts none.
#[must_use]
pub fn length(text: &[u8]) -> usize {
    match text.first() {
        Some(0..0x80) | None => 1,
        Some(_) => (2..=text.len().min(4)).find(|&length| std::str::from_utf8(&text[..length]).is_ok()).unwrap_or(1),
    }
}

/// Returns the number of characters.
#[must_use]
pub fn count(text: &[u8]) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.utf8_chunks().map(|chunk| chunk.valid().chars().count() + chunk.invalid().len()).sum()
}

/// Returns the byte offset of the character number `index` (from 0), at most the length.
#[must_use]
pub fn offset(text: &[u8], index: usize) -> usize {
    let mut at = 0;
    for _ in 0..index {
        if at >= text.len() {
            break;
        }
        at += length(&text[at..]);
    }
    at.min(text.len())
}
