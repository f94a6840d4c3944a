//! `diff --old-line-format=…` and its kin: every line of both files, each written as its side wants it.

use super::compare::Change;
use crate::io::Out;

/// Writes all lines in order; `formats` are for lines of the old file, of the new one and of both.
pub(super) fn write(out: &mut Out, formats: &[Vec<u8>; 3], (old, new): (&[u8], &[u8]), changes: &[Change]) {
    let old: Vec<&[u8]> = old.split_inclusive(|&byte| byte == b'\n').collect();
    let new: Vec<&[u8]> = new.split_inclusive(|&byte| byte == b'\n').collect();
    let mut at = 0;
    for change in changes {
        for (index, text) in old.iter().enumerate().take(change.old.start).skip(at) {
            line(out, &formats[2], text, index + 1);
        }
        for index in change.old.clone() {
            line(out, &formats[0], old[index], index + 1);
        }
        for index in change.new.clone() {
            line(out, &formats[1], new[index], index + 1);
        }
        at = change.old.end;
    }
    for (index, text) in old.iter().enumerate().skip(at) {
        line(out, &formats[2], text, index + 1);
    }
}

fn line(out: &mut Out, format: &[u8], text: &[u8], number: usize) {
    let mut rest = format;
    while let Some((&byte, following)) = rest.split_first() {
        rest = following;
        if byte != b'%' {
            out.byte(byte);
            continue;
        }
        match rest {
            [b'%', following @ ..] => {
                out.byte(b'%');
                rest = following;
            }
            [b'l', following @ ..] => {
                out.put(text.strip_suffix(b"\n").unwrap_or(text));
                rest = following;
            }
            [b'L', following @ ..] => {
                out.put(text);
                rest = following;
            }
            [b'c', b'\'', char, b'\'', following @ ..] => {
                out.byte(*char);
                rest = following;
            }
            _ => match counted(rest, number) {
                Some((shown, following)) => {
                    out.put(shown.as_bytes());
                    rest = following;
                }
                None => out.byte(b'%'),
            },
        }
    }
}

/// Returns `[-0][width]dn` and its kin with `o`, `x` and `X`: the line's number, and what follows in the format.
fn counted(format: &[u8], number: usize) -> Option<(String, &[u8])> {
    let flags = format.iter().take_while(|byte| matches!(byte, b'-' | b'0' | b'\'')).count();
    let digits = format[flags..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let width: usize =
        std::str::from_utf8(&format[flags..flags + digits]).ok()?.parse().unwrap_or(if digits == 0 { 0 } else { usize::MAX });
    let [letter, b'n', following @ ..] = &format[flags + digits..] else { return None };
    let shown = match letter {
        b'd' => number.to_string(),
        b'o' => format!("{number:o}"),
        b'x' => format!("{number:x}"),
        b'X' => format!("{number:X}"),
        _ => return None,
    };
    let shown = match format[..flags].first() {
        Some(b'-') => sys::padding::left(shown, width),
        Some(b'0') => sys::padding::zeros(shown, width),
        _ => sys::padding::right(shown, width),
    };
    Some((shown, following))
}
