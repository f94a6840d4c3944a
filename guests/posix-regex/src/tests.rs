//! What expressions match, as in C.

use super::*;

/// Extended syntax as `[[ … =~ … ]]` reads it.
fn library() -> Syntax {
    Syntax { extended: true, strict_repeat: true, library: true, ..Syntax::default() }
}

fn check(source: &str, text: &str, expected: bool) {
    let regex = Regex::new(source.as_bytes(), library()).expect("valid");
    assert_eq!(regex.is_match(text.as_bytes()), expected, "{source} on {text}");
}

#[test]
fn posix_expressions_match_as_in_c() {
    check("^[[:digit:]]+$", "123", true);
    check("^[]a]+$", "]a", true);
    check("a{2}", "aa", true);
    check("^(a|b)*$", "abba", true);
    check(r"\.", "x", false);
    check("[a-c-]", "-", true);
    check(r"[\d]", "\\", true);
    check("(<a>)", "<a>", true);
    check(r"^(a)\1$", "aa", true);
    check("^)$", ")", true);
    check("^[:alpha:]$", "h", true);
}

#[test]
fn repetitions_of_nothing_are_errors() {
    for source in ["*", "+a", "a|*b", "(*a)", "^*a", "a$*", r"\<*a", "{", "a{", "a{1", "a{x}"] {
        assert!(Regex::new(source.as_bytes(), library()).is_err(), "{source}");
    }
}

#[test]
fn the_longest_of_the_leftmost_matches_wins() {
    let mut groups = Vec::new();
    let regex = Regex::new(b"(a|ab)(c|bcd)(d*)", library()).expect("valid");
    assert!(regex.captures_at(b"abcd", 0, &mut groups));
    assert_eq!(groups, [Some((0, 4)), Some((0, 1)), Some((1, 4)), Some((4, 4))]);
}

#[test]
fn a_byte_that_is_not_utf8_is_not_a_character() {
    check("^..$", "\u{e9}x", true);
    assert!(!Regex::new(b".", library()).expect("valid").is_match(b"\xff"));
    assert!(Regex::new(b"\xff", library()).expect("valid").is_match(b"a\xff"));
}

#[test]
fn emacs_repeats_with_bare_operators() {
    assert_eq!(from_emacs(br"a+\+[+]\(b\)?"), br"a\++[+]\(b\)\?");
}
