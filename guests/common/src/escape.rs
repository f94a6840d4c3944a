//! Backslash escapes of `echo` and `printf`, bash's and those of the programs.

/// The escapes that a command knows beside `\a \b \e \f \n \r \t \v \\ \xHH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escapes {
    /// `\c` ends all output.
    pub stop: bool,
    /// `\0nnn`: up to three octal digits after the zero.
    pub zero_first: bool,
    /// `\nnn`: up to three octal digits.
    pub octal: bool,
    /// `\uHHHH` and `\UHHHHHHHH`.
    pub unicode: bool,
    /// `\E` is `\e`.
    pub capital: bool,
    /// Characters that stand for themselves.
    pub quotes: &'static [u8],
}

/// `echo -e` in bash.
pub const BASH_ECHO: Escapes = Escapes { stop: true, zero_first: true, octal: false, unicode: true, capital: true, quotes: b"" };
/// An argument of `%b` in bash.
pub const BASH_ARGUMENT: Escapes = Escapes { octal: true, ..BASH_ECHO };
/// The format of `printf` in bash.
pub const BASH_FORMAT: Escapes = Escapes { stop: false, zero_first: false, quotes: b"\"'?", ..BASH_ARGUMENT };
/// `echo -e` of coreutils.
pub const ECHO: Escapes = Escapes { octal: true, unicode: false, capital: false, ..BASH_ECHO };
/// An argument of `%b` of coreutils.
pub const ARGUMENT: Escapes = Escapes { unicode: true, quotes: b"\"", ..ECHO };
/// The format of `printf` of coreutils.
pub const FORMAT: Escapes = Escapes { zero_first: false, ..ARGUMENT };

/// Adds the text with its escapes replaced; `false` when `\c` ended the output.
pub fn unescape(text: &[u8], escapes: Escapes, out: &mut Vec<u8>) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let plain = rest.iter().position(|&byte| byte == b'\\').unwrap_or(rest.len());
        let (head, tail) = rest.split_at(plain);
        out.extend_from_slice(head);
        let Some(tail) = tail.strip_prefix(b"\\") else { break };
        match escape(tail, escapes, out) {
            Some(used) => rest = tail.get(used..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

/// Adds what one escape stands for, after its backslash; returns how many bytes it took, `None` for `\c`.
pub fn escape(tail: &[u8], escapes: Escapes, out: &mut Vec<u8>) -> Option<usize> {
    let Some((&letter, after)) = tail.split_first() else {
        out.push(b'\\');
        return Some(0);
    };
    let simple = match letter {
        b'a' => 7,
        b'b' => 8,
        b'e' => 27,
        b'E' if escapes.capital => 27,
        b'f' => 12,
        b'n' => 10,
        b'r' => 13,
        b't' => 9,
        b'v' => 11,
        b'\\' => b'\\',
        b'c' if escapes.stop => return None,
        b'0' if escapes.zero_first => {
            let (value, used) = digits(after, 8, 3);
            out.push(value as u8);
            return Some(1 + used);
        }
        b'0'..=b'7' if escapes.octal => {
            let (value, used) = digits(tail, 8, 3);
            out.push(value as u8);
            return Some(used);
        }
        b'x' => {
            let (value, used) = digits(after, 16, 2);
            match used {
                0 => out.extend_from_slice(b"\\x"),
                _ => out.push(value as u8),
            }
            return Some(1 + used);
        }
        b'u' | b'U' if escapes.unicode => {
            let (value, used) = digits(after, 16, if letter == b'u' { 4 } else { 8 });
            match char::from_u32(value).filter(|_| used > 0) {
                Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => out.extend_from_slice(&[b'\\', letter]),
            }
            return Some(1 + used);
        }
        quote if escapes.quotes.contains(&quote) => quote,
        _ => {
            out.push(b'\\');
            return Some(0);
        }
    };
    out.push(simple);
    Some(1)
}

/// Returns the number at the start of a text of at most this many digits, and how many it has.
#[must_use]
pub fn digits(text: &[u8], radix: u32, most: usize) -> (u32, usize) {
    let mut value = 0u32;
    let mut used = 0;
    while used < most
        && let Some(digit) = text.get(used).and_then(|&byte| char::from(byte).to_digit(radix))
    {
        value = value.wrapping_mul(radix).wrapping_add(digit);
        used += 1;
    }
    (value, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, escapes: Escapes, expected: &str) {
        let mut out = Vec::new();
        unescape(text.as_bytes(), escapes, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{text}");
    }

    #[test]
    fn octal_numbers_are_written_as_each_command_has_them() {
        check(r"\0101 \101", BASH_ECHO, r"A \101");
        check(r"\0101 \101", BASH_ARGUMENT, "A A");
        check(r"\0101 \101", BASH_FORMAT, "\u{8}1 A");
        check(r"\0101 \101", ECHO, "A A");
    }

    #[test]
    fn unknown_escapes_stay() {
        check(r#"\"\'\?"#, BASH_ARGUMENT, r#"\"\'\?"#);
        check(r#"\E\"\z\x\"#, FORMAT, r#"\E"\z\x\"#);
        check(r"\u00e9\'\xfz", BASH_FORMAT, "\u{e9}'\u{f}z");
        check(r"a\cb", ECHO, "a");
        check(r"a\cb", BASH_FORMAT, r"a\cb");
    }
}
