//! `echo`, and the escapes that it shares with `printf %b`.

use crate::bytes;
use crate::shell::{Done, Shell};
use crate::state::options::{SetOption, ShoptOption};

pub(super) fn echo(shell: &mut Shell, args: &[String]) -> Done {
    let mut newline = true;
    let mut escapes = shell.shopt(ShoptOption::XpgEcho);
    let mut at = 1;
    let options = !(shell.on(SetOption::Posix) && escapes);
    while options && let Some(letters) = args.get(at).and_then(|arg| arg.strip_prefix('-')) {
        if letters.is_empty() || !letters.bytes().all(|letter| matches!(letter, b'n' | b'e' | b'E')) {
            break;
        }
        for letter in letters.bytes() {
            match letter {
                b'n' => newline = false,
                b'e' => escapes = true,
                _ => escapes = false,
            }
        }
        at += 1;
    }
    let words = args.get(at..).unwrap_or_default();
    let mut line = Vec::with_capacity(64);
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            line.push(b' ');
        }
        if escapes {
            if !unescape(word, Dialect::Echo, &mut line) {
                shell.output.write(&line);
                return Ok(0);
            }
        } else {
            line.extend_from_slice(&bytes::encode(word));
        }
    }
    if newline {
        line.push(b'\n');
    }
    shell.output.write(&line);
    Ok(0)
}

/// Whose escapes: they differ in how octal numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `\0nnn`.
    Echo,
    /// `\0nnn` and `\nnn`.
    PercentB,
    /// `\nnn`; `\c` is not special.
    Format,
}

/// Adds the text with its escapes replaced; `false` when `\c` ended the output.
pub(super) fn unescape(text: &str, dialect: Dialect, out: &mut Vec<u8>) -> bool {
    let encoded = bytes::encode(text);
    let mut rest: &[u8] = &encoded;
    while let Some((&byte, tail)) = rest.split_first() {
        if byte != b'\\' {
            let plain = rest.iter().position(|&byte| byte == b'\\').unwrap_or(rest.len());
            let (head, tail) = rest.split_at(plain);
            out.extend_from_slice(head);
            rest = tail;
            continue;
        }
        match escape(tail, dialect, out) {
            Some(used) => rest = tail.get(used..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

/// One escape, after its backslash: how many bytes it took. `None` for `\c`.
pub(super) fn escape(tail: &[u8], dialect: Dialect, out: &mut Vec<u8>) -> Option<usize> {
    let Some(&letter) = tail.first() else {
        out.push(b'\\');
        return Some(0);
    };
    let simple = match letter {
        b'a' => 7,
        b'b' => 8,
        b'e' | b'E' => 27,
        b'f' => 12,
        b'n' => 10,
        b'r' => 13,
        b't' => 9,
        b'v' => 11,
        b'\\' => b'\\',
        b'c' if dialect != Dialect::Format => return None,
        b'0' if dialect != Dialect::Format => {
            let (value, used) = digits(tail.get(1..).unwrap_or_default(), 8, 3);
            out.push(value as u8);
            return Some(1 + used);
        }
        b'0'..=b'7' if dialect != Dialect::Echo => {
            let (value, used) = digits(tail, 8, 3);
            out.push(value as u8);
            return Some(used);
        }
        b'"' | b'\'' | b'?' if dialect == Dialect::Format || dialect == Dialect::PercentB => letter,
        b'x' => {
            let (value, used) = digits(tail.get(1..).unwrap_or_default(), 16, 2);
            if used == 0 {
                out.extend_from_slice(b"\\x");
                return Some(1);
            }
            out.push(value as u8);
            return Some(1 + used);
        }
        b'u' | b'U' => {
            let (value, used) = digits(tail.get(1..).unwrap_or_default(), 16, if letter == b'u' { 4 } else { 8 });
            if used == 0 {
                out.extend_from_slice(&[b'\\', letter]);
                return Some(1);
            }
            match char::from_u32(value) {
                Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => out.extend_from_slice(&[b'\\', letter]),
            }
            return Some(1 + used);
        }
        _ => {
            out.push(b'\\');
            return Some(0);
        }
    };
    out.push(simple);
    Some(1)
}

fn digits(text: &[u8], radix: u32, most: usize) -> (u32, usize) {
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
