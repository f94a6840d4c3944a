//! Text of a given width.
//!
//! The standard library's widths end at 65 535 and panic beyond; the widths that users give do not.

use std::fmt::Display;

/// Aligns right in `width` characters.
#[must_use]
pub fn right(text: impl Display, width: usize) -> String {
    filled(&text.to_string(), ' ', width)
}

/// Aligns left in `width` characters.
#[must_use]
pub fn left(text: impl Display, width: usize) -> String {
    let mut text = text.to_string();
    text.extend(fill(&text, ' ', width));
    text
}

/// Adds zeros on the left up to `width` characters; a minus sign stays in front.
#[must_use]
pub fn zeros(number: impl Display, width: usize) -> String {
    let text = number.to_string();
    match text.strip_prefix('-') {
        Some(digits) => format!("-{}", filled(digits, '0', width.saturating_sub(1))),
        None => filled(&text, '0', width),
    }
}

fn filled(text: &str, with: char, width: usize) -> String {
    let mut out: String = fill(text, with, width).collect();
    out.push_str(text);
    out
}

fn fill(text: &str, with: char, width: usize) -> std::iter::RepeatN<char> {
    std::iter::repeat_n(with, width.saturating_sub(text.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_have_no_end() {
        assert_eq!((right(-7, 4).as_str(), left("é", 3).as_str(), zeros(-7, 4).as_str()), ("  -7", "é  ", "-007"));
        assert_eq!((right("long", 2).as_str(), zeros(12345, 2).as_str()), ("long", "12345"));
        assert_eq!([right(1, 70_000).len(), left(1, 70_000).len(), zeros(1, 70_000).len()], [70_000; 3]);
    }
}
