//! Text in quotes that the shell would read back as the same text, in each of the styles that bash uses.

use std::borrow::Cow;

use crate::bytes;

/// Returns `printf %q`: backslashes, or `$'…'` for what cannot be shown.
pub fn backslashes(text: &str) -> Cow<'_, str> {
    if text.is_empty() {
        return Cow::Borrowed("''");
    }
    if has_unprintable(text) {
        return Cow::Owned(ansi_c(text));
    }
    let mut out = String::new();
    let mut previous = None;
    let mut copied = 0;
    for (at, c) in text.char_indices() {
        if c == ',' || is_special(c, previous) {
            out.push_str(text.get(copied..at).unwrap_or_default());
            out.push('\\');
            copied = at;
        }
        previous = Some(c);
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// Returns `'…'`, whatever the text: `alias`, `trap`.
pub fn single(text: &str) -> String {
    if text == "'" {
        return "\\'".to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Returns `${x@Q}`: `'…'`, or `$'…'` for what cannot be shown.
pub fn single_or_ansi_c(text: &str) -> String {
    if has_unprintable(text) { ansi_c(text) } else { single(text) }
}

/// Returns `"…"`, whatever the text.
pub fn double(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '$' | '`' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// Returns a value as `declare -p` shows it.
pub fn declared(text: &str) -> String {
    if has_unprintable(text) { ansi_c(text) } else { double(text) }
}

/// Returns a key of an associative array as `declare -p` shows it between brackets.
pub fn key(text: &str) -> Cow<'_, str> {
    if has_unprintable(text) {
        Cow::Owned(ansi_c(text))
    } else if has_special(text) || text == "@" || text == "*" {
        Cow::Owned(double(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns a value as `set` shows it: bare where it can be.
pub fn listed(text: &str) -> Cow<'_, str> {
    if has_unprintable(text) {
        Cow::Owned(ansi_c(text))
    } else if has_special(text) {
        Cow::Owned(single(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns a word as `set -x` shows it.
pub fn traced(text: &str) -> Cow<'_, str> {
    if text.is_empty() {
        Cow::Borrowed("''")
    } else if has_special(text) {
        Cow::Owned(single(text))
    } else if has_unprintable(text) {
        Cow::Owned(ansi_c(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns `$'…'`.
pub fn ansi_c(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str("$'");
    for c in text.chars() {
        match c {
            '\x1b' => out.push_str("\\E"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' | '\'' => {
                out.push('\\');
                out.push(c);
            }
            _ if is_printable(c) => out.push(c),
            _ => {
                for byte in bytes::encode(c.encode_utf8(&mut [0; 4])).iter() {
                    out.push_str(&format!("\\{byte:03o}"));
                }
            }
        }
    }
    out.push('\'');
    out
}

/// Returns whether any character would be read by the shell as more than itself.
pub fn has_special(text: &str) -> bool {
    let mut previous = None;
    text.chars().any(|c| is_special(c, previous.replace(c)))
}

/// Returns whether there are characters that a terminal would not show, or stray bytes.
pub fn has_unprintable(text: &str) -> bool {
    if text.is_ascii() { text.bytes().any(|byte| byte < b' ' || byte == 0x7f) } else { text.chars().any(|c| !is_printable(c)) }
}

fn is_printable(c: char) -> bool {
    !c.is_control() && bytes::stray_byte(c).is_none()
}

fn is_special(c: char, previous: Option<char>) -> bool {
    match c {
        ' ' | '\t' | '\n' | '\'' | '"' | '\\' | '|' | '&' | ';' | '(' | ')' | '<' | '>' | '!' | '{' | '}' | '*' | '[' | ']'
        | '?' | '^' | '$' | '`' => true,
        '#' => previous.is_none(),
        '~' => matches!(previous, None | Some('=' | ':')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: [&str; 6]) {
        let got = [
            backslashes(text).into_owned(),
            single_or_ansi_c(text),
            declared(text),
            listed(text).into_owned(),
            key(text).into_owned(),
            traced(text).into_owned(),
        ];
        assert_eq!(got, expected, "{text}");
    }

    #[test]
    fn each_style_is_that_of_bash() {
        check("", ["''", "''", "\"\"", "", "", "''"]);
        check("a", ["a", "'a'", "\"a\"", "a", "a", "a"]);
        check("a b", ["a\\ b", "'a b'", "\"a b\"", "'a b'", "\"a b\"", "'a b'"]);
        check("it's", ["it\\'s", "'it'\\''s'", "\"it's\"", "'it'\\''s'", "\"it's\"", "'it'\\''s'"]);
        check("'", ["\\'", "\\'", "\"'\"", "\\'", "\"'\"", "\\'"]);
        check(
            "$x`\"\\",
            ["\\$x\\`\\\"\\\\", "'$x`\"\\'", "\"\\$x\\`\\\"\\\\\"", "'$x`\"\\'", "\"\\$x\\`\\\"\\\\\"", "'$x`\"\\'"],
        );
        check("a,b", ["a\\,b", "'a,b'", "\"a,b\"", "a,b", "a,b", "a,b"]);
        check("~", ["\\~", "'~'", "\"~\"", "'~'", "\"~\"", "'~'"]);
        check("a~", ["a~", "'a~'", "\"a~\"", "a~", "a~", "a~"]);
        check("x=~", ["x=\\~", "'x=~'", "\"x=~\"", "'x=~'", "\"x=~\"", "'x=~'"]);
        check("#x", ["\\#x", "'#x'", "\"#x\"", "'#x'", "\"#x\"", "'#x'"]);
        check("a\nb", ["$'a\\nb'", "$'a\\nb'", "$'a\\nb'", "$'a\\nb'", "$'a\\nb'", "'a\nb'"]);
        check("\u{1}", ["$'\\001'"; 6]);
        check(&bytes::decode(b"\xff"), ["$'\\377'"; 6]);
        check("\u{e9}", ["\u{e9}", "'\u{e9}'", "\"\u{e9}\"", "\u{e9}", "\u{e9}", "\u{e9}"]);
        check("@", ["@", "'@'", "\"@\"", "@", "\"@\"", "@"]);
    }
}
