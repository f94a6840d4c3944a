//! `tr`: bytes for bytes.

use std::io::Read;

use crate::options::{self, No, Spec};
use crate::program::{Args, Descriptor, Outcome, Output, buffer, bytes, fail, usage};
use crate::quote;

const SPEC: Spec = Spec {
    short: "+cCdst",
    long: &[("complement", No, 'c'), ("delete", No, 'd'), ("squeeze-repeats", No, 's'), ("truncate-set1", No, 't')],
    help: "[OPTION]... STRING1 [STRING2]",
};

/// A piece of a set: bytes, a class, or a byte to repeat (0: as often as needed).
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Bytes(Vec<u8>),
    Class(&'static str, Vec<u8>),
    Repeat(u8, usize),
}

const CLASSES: [&str; 12] =
    ["alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"];

/// Returns one byte with escapes replaced, and whether it was escaped.
fn unescape(text: &[u8], at: &mut usize) -> (u8, bool) {
    let byte = text[*at];
    *at += 1;
    if byte != b'\\' {
        return (byte, false);
    }
    let Some(&letter) = text.get(*at) else {
        crate::program::warn("warning: an unescaped backslash at end of string is not portable");
        return (b'\\', false);
    };
    *at += 1;
    let simple = match letter {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'0'..=b'7' => {
            let mut value = u32::from(letter - b'0');
            for _ in 0..2 {
                let Some(&digit @ b'0'..=b'7') = text.get(*at) else { break };
                let next = value * 8 + u32::from(digit - b'0');
                if next > 255 {
                    // \400 is \40 and a 0.
                    break;
                }
                value = next;
                *at += 1;
            }
            value as u8
        }
        other => other,
    };
    (simple, true)
}

fn parse(text: &[u8]) -> Result<Vec<Piece>, i32> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'['
            && let Some(piece) = bracketed(text, &mut at)?
        {
            pieces.push(piece);
            continue;
        }
        let (low, _) = unescape(text, &mut at);
        if text.get(at) == Some(&b'-') && at + 1 < text.len() {
            at += 1;
            let (high, _) = unescape(text, &mut at);
            if high < low {
                return Err(fail(format!(
                    "range-endpoints of '{}-{}' are in reverse collating sequence order",
                    printable(low),
                    printable(high)
                )));
            }
            pieces.push(Piece::Bytes((low..=high).collect()));
            continue;
        }
        match pieces.last_mut() {
            Some(Piece::Bytes(list)) => list.push(low),
            _ => pieces.push(Piece::Bytes(vec![low])),
        }
    }
    Ok(pieces)
}

fn printable(byte: u8) -> String {
    if byte.is_ascii_graphic() || byte == b' ' { char::from(byte).to_string() } else { format!("\\{byte:03o}") }
}

/// `[:class:]`, `[=c=]`, `[c*n]`; `None` when the bracket is only a bracket.
fn bracketed(text: &[u8], at: &mut usize) -> Result<Option<Piece>, i32> {
    let rest = &text[*at..];
    if rest.get(1) == Some(&b':')
        && let Some(length) = rest[2..].windows(2).position(|pair| pair == b":]")
    {
        let name = &rest[2..2 + length];
        let Some(class) = CLASSES.iter().find(|class| class.as_bytes() == name) else {
            if name.is_empty() {
                return Err(fail("missing character class name '[::]'"));
            }
            return Err(fail(format!("invalid character class {}", quote::plain_bytes(name))));
        };
        *at += length + 4;
        return Ok(Some(Piece::Class(class, (0..=255).filter(|&byte| in_class(name, byte)).collect())));
    }
    if rest.get(1) == Some(&b'=')
        && let Some(length) = rest[2..].windows(2).position(|pair| pair == b"=]")
    {
        let mut inner = 2;
        let end = 2 + length;
        if length == 0 {
            return Err(fail("missing equivalence class character '[==]'"));
        }
        let (byte, _) = unescape(&rest[..end], &mut inner);
        if inner != end {
            return Err(fail(format!(
                "{}: equivalence class operand must be a single character",
                String::from_utf8_lossy(&rest[2..end])
            )));
        }
        *at += end + 2;
        return Ok(Some(Piece::Bytes(vec![byte])));
    }
    let mut inner = *at + 1;
    if inner >= text.len() {
        return Ok(None);
    }
    let (byte, _) = if text[inner] == b'\\' || inner + 1 < text.len() { unescape(text, &mut inner) } else { return Ok(None) };
    if text.get(inner) != Some(&b'*') {
        return Ok(None);
    }
    let digits = text[inner + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let after = inner + 1 + digits;
    if text.get(after) != Some(&b']') {
        return match text[inner + 1..].iter().position(|&byte| byte == b']') {
            Some(end) if end > digits => Err(fail(format!(
                "invalid repeat count {} in [c*n] construct",
                quote::plain_bytes(&text[inner + 1..inner + 1 + end])
            ))),
            _ => Ok(None),
        };
    }
    let number = std::str::from_utf8(&text[inner + 1..after]).unwrap_or_default();
    let radix = if number.starts_with('0') { 8 } else { 10 };
    let count = if number.is_empty() { 0 } else { usize::from_str_radix(number, radix).unwrap_or(usize::MAX) };
    *at = after + 1;
    Ok(Some(Piece::Repeat(byte, count)))
}

fn length(pieces: &[Piece]) -> usize {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Bytes(list) | Piece::Class(_, list) => list.len(),
            Piece::Repeat(_, count) => *count,
        })
        .sum()
}

fn expand(pieces: &[Piece], wanted: usize) -> Vec<u8> {
    let missing = wanted.saturating_sub(length(pieces));
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(list) | Piece::Class(_, list) => out.extend_from_slice(list),
            Piece::Repeat(byte, 0) => out.extend(std::iter::repeat_n(*byte, missing)),
            Piece::Repeat(byte, count) => out.extend(std::iter::repeat_n(*byte, (*count).min(wanted.max(256)))),
        }
    }
    out
}

/// Runs `tr`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let (delete, squeeze) = (given.has('d'), given.has('s'));
    let complement = given.has('c') || given.has('C');
    let operands = &given.operands;
    let (least, most) = match (delete, squeeze) {
        (true, true) => (2, 2),
        (true, false) => (1, 1),
        (false, true) => (1, 2),
        (false, false) => (2, 2),
    };
    if operands.len() < least {
        return Err(match operands.first() {
            None => usage("missing operand"),
            Some(first) => {
                crate::program::warn(format!("missing operand after {}", quote::plain(first)));
                let why = if squeeze {
                    "Two strings must be given when both deleting and squeezing repeats.\n"
                } else {
                    "Two strings must be given when translating.\n"
                };
                let _ = sys::write_all(2, why.as_bytes());
                crate::program::hint();
                1
            }
        });
    }
    if let Some(extra) = operands.get(most) {
        crate::program::warn(format!("extra operand {}", quote::plain(extra)));
        if most == 1 {
            let _ = sys::write_all(2, b"Only one string may be given when deleting without squeezing repeats.\n");
        }
        crate::program::hint();
        return Err(1);
    }
    let first = parse(bytes(&operands[0]))?;
    let second = operands.get(1).map(|text| parse(bytes(text))).transpose()?;
    if first.iter().any(|piece| matches!(piece, Piece::Repeat(_, 0))) {
        return Err(fail("the [c*] repeat construct may not appear in string1"));
    }
    let mut from = expand(&first, 0);
    if complement {
        from = (0..=255).filter(|byte| !from.contains(byte)).collect();
    }
    let member = |list: &[u8]| {
        let mut table = [false; 256];
        list.iter().for_each(|&byte| table[usize::from(byte)] = true);
        table
    };
    let translating = second.is_some() && !delete;
    let mut map: [u8; 256] = std::array::from_fn(|byte| byte as u8);
    let mut to = second.as_deref().map(|second| expand(second, from.len())).unwrap_or_default();
    if translating {
        let second = second.as_deref().unwrap_or_default();
        translation(&first, second, &mut from, &mut to, complement, given.has('t'))?;
        for (&old, &new) in from.iter().zip(&to) {
            map[usize::from(old)] = new;
        }
    }
    let deleted = if delete { member(&from) } else { [false; 256] };
    let squeezed = match (squeeze, &second) {
        (false, _) => [false; 256],
        (true, None) => member(&from),
        (true, Some(_)) => member(&to),
    };
    copy(&map, &deleted, &squeezed, delete, squeeze)
}

fn translation(
    first: &[Piece],
    second: &[Piece],
    from: &mut Vec<u8>,
    to: &mut Vec<u8>,
    complement: bool,
    truncate: bool,
) -> Result<(), i32> {
    let class_of = |piece: &Piece| if let Piece::Class(name, _) = piece { Some(*name) } else { None };
    if second.iter().filter_map(class_of).any(|name| !matches!(name, "upper" | "lower")) {
        return Err(fail("when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'"));
    }
    if second.iter().any(|piece| matches!(piece, Piece::Class(..))) && !complement {
        // Case conversion: the classes must face each other.
        let aligned = |pieces: &[Piece]| {
            let mut at = 0;
            let mut spots = Vec::new();
            for piece in pieces {
                if class_of(piece).is_some_and(|name| matches!(name, "upper" | "lower")) {
                    spots.push(at);
                }
                at += length(std::slice::from_ref(piece));
            }
            spots
        };
        if aligned(second).iter().any(|spot| !aligned(first).contains(spot)) {
            return Err(fail("misaligned [:upper:] and/or [:lower:] construct"));
        }
    }
    if to.is_empty() && !from.is_empty() && !truncate {
        return Err(fail("when not truncating set1, string2 must be non-empty"));
    }
    if complement && second.iter().any(|piece| matches!(piece, Piece::Class(..))) && to.len() != from.len() {
        return Err(fail(
            "when translating with complemented character classes,\nstring2 must map all characters in the domain to one",
        ));
    }
    if truncate {
        from.truncate(to.len());
    } else if let Some(&last) = to.last() {
        to.resize(from.len().max(to.len()), last);
    }
    Ok(())
}

fn copy(map: &[u8; 256], deleted: &[bool; 256], squeezed: &[bool; 256], delete: bool, squeeze: bool) -> Outcome {
    let mut out = Output::new();
    let mut input = Descriptor::inherited(0);
    let mut buffer = buffer(&input);
    let mut last: Option<u8> = None;
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => return Ok(0),
            Ok(n) => n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(fail(format!("read error: {}", sys::message(&error)))),
        };
        let block = &mut buffer[..n];
        if !delete && !squeeze {
            block.iter_mut().for_each(|byte| *byte = map[usize::from(*byte)]);
            out.put(block);
        } else {
            let mut kept = 0;
            for index in 0..n {
                let byte = map[usize::from(block[index])];
                if deleted[usize::from(byte)] || (squeezed[usize::from(byte)] && last == Some(byte)) {
                    continue;
                }
                last = Some(byte);
                block[kept] = byte;
                kept += 1;
            }
            out.put(&block[..kept]);
        }
        if n < buffer.len() {
            out.send();
        }
    }
}

/// Returns whether a byte is of a POSIX character class in the C locale.
fn in_class(class: &[u8], byte: u8) -> bool {
    match class {
        b"alpha" => byte.is_ascii_alphabetic(),
        b"digit" => byte.is_ascii_digit(),
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"upper" => byte.is_ascii_uppercase(),
        b"lower" => byte.is_ascii_lowercase(),
        b"space" => byte.is_ascii_whitespace() || byte == 11,
        b"blank" => byte == b' ' || byte == b'\t',
        b"punct" => byte.is_ascii_punctuation(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"graph" => byte.is_ascii_graphic(),
        b"cntrl" => byte.is_ascii_control(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => false,
    }
}
