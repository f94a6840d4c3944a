//! Shell strings and the bytes they stand for.
//!
//! A shell string is a `String` in which each byte that is not part of valid UTF-8 is written as one private character,
//! so that file names and data of any bytes pass through the shell unchanged.

use std::borrow::Cow;

/// Byte `b` (0x80 to 0xFF) that is not valid UTF-8 is the character `FIRST + b`.
const FIRST: u32 = 0x10_FF00;

/// Returns the character that stands for a stray byte.
pub fn stray(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte)).unwrap_or('\u{FFFD}')
}

/// Returns the byte that a character stands for, when it stands for a stray byte.
pub fn stray_byte(c: char) -> Option<u8> {
    let code = (c as u32).checked_sub(FIRST + 0x80)?;
    (code < 0x80).then_some(code as u8 + 0x80)
}

/// Bytes to a shell string.
pub fn decode(bytes: &[u8]) -> String {
    let mut rest = bytes;
    let mut out = match std::str::from_utf8(rest) {
        Ok(text) if !might_hold_stray(text) => return text.to_owned(),
        _ => String::with_capacity(bytes.len() + 8),
    };
    while !rest.is_empty() {
        let (valid, bad) = match std::str::from_utf8(rest) {
            Ok(text) => (text, 0),
            Err(error) => {
                let (good, tail) = rest.split_at(error.valid_up_to());
                let bad = error.error_len().unwrap_or(tail.len());
                (std::str::from_utf8(good).unwrap_or_default(), bad)
            }
        };
        for c in valid.chars() {
            if stray_byte(c).is_some() {
                // The private characters themselves: kept apart from the bytes they would stand for.
                out.extend(c.encode_utf8(&mut [0; 4]).bytes().map(stray));
            } else {
                out.push(c);
            }
        }
        let (_, tail) = rest.split_at(valid.len());
        let (strays, tail) = tail.split_at(bad);
        out.extend(strays.iter().copied().map(stray));
        rest = tail;
    }
    out
}

/// Returns the text with each byte of a character beyond ASCII as one of its own, as the C locale has them.
pub fn apart(text: &str) -> String {
    encode(text).iter().map(|&byte| if byte < 0x80 { char::from(byte) } else { stray(byte) }).collect()
}

/// Undoes [`apart`].
pub fn together(text: &str) -> String {
    decode(&encode(text))
}

/// Converts a shell string to bytes.
pub fn encode(text: &str) -> Cow<'_, [u8]> {
    if !might_hold_stray(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        match stray_byte(c) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(out)
}

/// Returns whether the text has a character of the last plane: only those begin with the byte F4.
fn might_hold_stray(text: &str) -> bool {
    !text.is_ascii() && text.as_bytes().contains(&0xF4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8]) {
        assert_eq!(encode(&decode(bytes)).as_ref(), bytes);
    }

    #[test]
    fn any_bytes_come_back() {
        check(b"");
        check(b"plain");
        check("h\u{e9}llo \u{1F600}".as_bytes());
        check(b"a\xffb\xc3");
        check(b"\xc3\x28\x80");
        check("\u{10FFFE}x".as_bytes());
        check("\u{10FF90}".as_bytes());
    }

    #[test]
    fn a_stray_byte_is_one_character() {
        assert_eq!(decode(b"\xff").chars().count(), 1);
    }
}
