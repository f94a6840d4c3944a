//! Patterns for names of any bytes, as `fnmatch(3)` takes them: `*`, `?`, `[…]` and `\`.

use std::borrow::Cow;

use common::{bytes, locale};

use crate::glob::begins_with_dot;
use crate::{Flags, Pattern};

/// How a pattern meets slashes, case and leading dots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `*`, `?` and `[` do not match a slash (`FNM_PATHNAME`).
    pub pathname: bool,
    /// Letters match without regard to case (`FNM_CASEFOLD`).
    pub ignore_case: bool,
    /// A match may end at a slash in the text (`FNM_LEADING_DIR`).
    pub leading_dir: bool,
    /// A leading dot is matched by a dot alone (`FNM_PERIOD`).
    pub period: bool,
}

/// A compiled pattern for names of any bytes. Its characters are those of the locale.
#[derive(Clone, Debug, PartialEq)]
pub struct Fnmatch {
    pattern: Pattern,
    hides_dots: bool,
}

impl Fnmatch {
    /// Compiles a pattern. Any text is a pattern.
    #[must_use]
    pub fn new(pattern: &[u8]) -> Self {
        Self::with(pattern, Options::default())
    }

    /// Compiles a pattern that meets slashes, case and dots as `options` say.
    #[must_use]
    pub fn with(pattern: &[u8], options: Options) -> Self {
        let Options { pathname, ignore_case: nocase, leading_dir, period } = options;
        let flags = Flags { extglob: false, nocase, pathname, leading_dir };
        let pattern = Pattern::compile(&[(&characters(pattern), false)], flags);
        let hides_dots = period && !begins_with_dot(&pattern);
        Self { pattern, hides_dots }
    }

    /// Returns whether the whole text matches.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        !(self.hides_dots && text.starts_with(b".")) && self.pattern.matches(&characters(text))
    }

    /// Returns whether the whole text matches, or what follows one of its slashes.
    #[must_use]
    pub fn matches_tail(&self, text: &[u8]) -> bool {
        self.matches(text) || (0..text.len()).any(|at| text[at] == b'/' && self.matches(&text[at + 1..]))
    }
}

/// Returns whether the whole text matches a pattern that is used once.
#[must_use]
pub fn fnmatch(pattern: &[u8], text: &[u8], options: Options) -> bool {
    Fnmatch::with(pattern, options).matches(text)
}

/// Bytes as text in which each character of the locale is one `char`.
fn characters(text: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(text) {
        Ok(text) if text.is_ascii() => Cow::Borrowed(text),
        _ if locale::utf8() => Cow::Owned(bytes::decode(text)),
        _ => Cow::Owned(text.iter().map(|&byte| if byte.is_ascii() { char::from(byte) } else { bytes::stray(byte) }).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &str, options: Options, expected: bool) {
        assert_eq!(fnmatch(pattern.as_bytes(), text.as_bytes(), options), expected, "{pattern} {text}");
    }

    #[test]
    fn patterns_match_as_fnmatch_requires() {
        for (pattern, text, expected) in [
            ("*.rs", "main.rs", true),
            ("*.rs", "main.rst", false),
            ("a*b*c", "aXbYbc", true),
            ("[!a-c]x", "dx", true),
            ("[!a-c]x", "bx", false),
            ("[]x]", "]", true),
            ("[[:digit:]]?", "7x", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("", "", true),
            ("*", "", true),
        ] {
            check(pattern, text, Options::default(), expected);
        }
    }

    #[test]
    fn a_leading_dot_is_written_out() {
        for (pattern, name, expected) in [
            ("*", "abc", true),
            ("a*c", "abbc", true),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a]x", "ax", false),
            ("*.o", "x.c", false),
            ("[", "[", true),
            ("*a*b", "xaxb", true),
            ("*", ".x", false),
            (".*", ".x", true),
        ] {
            check(pattern, name, Options { period: true, ..Options::default() }, expected);
        }
    }

    #[test]
    fn slashes_are_matched_by_slashes() {
        let pathname = Options { pathname: true, ..Options::default() };
        for (pattern, path, expected) in [
            ("src/*.rs", "src/main.rs", true),
            ("src/*.rs", "src/a/main.rs", false),
            ("*", "a/b", false),
            ("a?b", "a/b", false),
            ("a[/]b", "a/b", false),
            ("*/*x*/z", "a/bxc/z", true),
        ] {
            check(pattern, path, pathname, expected);
        }
        let leading = Options { leading_dir: true, ..Options::default() };
        check("a", "a/b", leading, true);
        check("a", "ab", leading, false);
        check("A*", "abc/d", Options { ignore_case: true, pathname: true, ..leading }, true);
    }

    #[test]
    fn a_tail_follows_a_slash() {
        let pattern = Fnmatch::new(b"b*");
        assert!(pattern.matches_tail(b"a/bc") && pattern.matches_tail(b"b/a") && !pattern.matches_tail(b"ab/a"));
    }
}
