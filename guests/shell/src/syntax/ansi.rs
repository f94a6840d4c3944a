//! The escapes of `$' … '`.

use crate::bytes;

/// Returns the value of a text between `$'` and `'`.
pub fn decode_ansi_c(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut buffer = [0; 4];
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend_from_slice(&bytes::encode(c.encode_utf8(&mut buffer)));
            continue;
        }
        let Some(escape) = chars.next() else {
            out.push(b'\\');
            break;
        };
        let byte = match escape {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            '\\' | '\'' | '"' | '?' => escape as u8,
            '0'..='7' => {
                let mut value = escape as u32 - 48;
                for _ in 0..2 {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    chars.next();
                }
                value as u8
            }
            'x' => {
                let braces = chars.peek() == Some(&'{');
                let mut ahead = chars.clone();
                if braces {
                    ahead.next();
                }
                let (value, count) = hexadecimal(&mut ahead, if braces { usize::MAX } else { 2 });
                if count == 0 && !braces {
                    out.extend_from_slice(b"\\x");
                    continue;
                }
                if braces && ahead.peek() == Some(&'}') {
                    ahead.next();
                }
                chars = ahead;
                value as u8
            }
            'u' | 'U' => {
                let (value, count) = hexadecimal(&mut chars, if escape == 'u' { 4 } else { 8 });
                if count == 0 {
                    out.extend_from_slice(&[b'\\', escape as u8]);
                } else if value < 0x80 {
                    if value == 0 {
                        break;
                    }
                    out.push(value as u8);
                } else {
                    push_code_point(&mut out, value);
                }
                continue;
            }
            'c' => match chars.next() {
                Some('\\') if chars.peek() == Some(&'\\') => {
                    chars.next();
                    0x1c
                }
                Some('?') => 0x7f,
                Some(c) if c.is_ascii() => c.to_ascii_uppercase() as u8 & 0x1f,
                Some(c) => c.encode_utf8(&mut buffer).as_bytes().first().map_or(0, |byte| byte & 0x1f),
                None => {
                    out.extend_from_slice(b"\\c");
                    break;
                }
            },
            other => {
                out.push(b'\\');
                out.extend_from_slice(&bytes::encode(other.encode_utf8(&mut buffer)));
                continue;
            }
        };
        // A NUL ends the string, as it does in C.
        if byte == 0 {
            break;
        }
        out.push(byte);
    }
    bytes::decode(&out)
}

fn hexadecimal(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, most: usize) -> (u32, usize) {
    let (mut value, mut count) = (0u32, 0);
    while count < most {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(16)) else { break };
        value = value.wrapping_mul(16).wrapping_add(digit);
        count += 1;
        chars.next();
    }
    (value, count)
}

/// Adds UTF-8 as bash writes it: also for numbers that are not characters.
fn push_code_point(out: &mut Vec<u8>, value: u32) {
    let tail = |shift: u32| 0x80 | ((value >> shift) & 0x3f) as u8;
    match value {
        0..0x800 => out.extend([0xc0 | (value >> 6) as u8, tail(0)]),
        0x800..0x1_0000 => out.extend([0xe0 | (value >> 12) as u8, tail(6), tail(0)]),
        0x1_0000..0x20_0000 => out.extend([0xf0 | (value >> 18) as u8, tail(12), tail(6), tail(0)]),
        0x20_0000..0x400_0000 => out.extend([0xf8 | (value >> 24) as u8, tail(18), tail(12), tail(6), tail(0)]),
        0x400_0000..0x8000_0000 => {
            out.extend([0xfc | (value >> 30) as u8, tail(24), tail(18), tail(12), tail(6), tail(0)]);
        }
        _ => {}
    }
}
