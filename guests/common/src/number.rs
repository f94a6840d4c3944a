//! Decimal numbers in arguments and files.

/// Reads a number of bytes, lines or columns that is all of `text`; one that is larger than any memory is the largest.
#[must_use]
pub fn size(text: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let digits = text.strip_prefix('+').unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().unwrap_or(usize::MAX))
}

/// Returns a number that may be larger than a `usize` as one: 0 stands for all below it, the largest for all above it.
#[must_use]
pub fn saturated(number: i64) -> usize {
    usize::try_from(number.max(0)).unwrap_or(usize::MAX)
}

/// Reads a number that is all of `text`.
#[must_use]
pub fn parse<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}
