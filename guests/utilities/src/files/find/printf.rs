//! `-printf`: the format taken apart once, filled in for every file.

use common::printf::Conversion;

use crate::date;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Vec<u8>),
    /// A directive: flags, width and precision, letter, and the time's letter.
    Directive {
        conversion: Conversion,
        letter: u8,
        time: u8,
    },
    /// `\c`: stop here.
    Stop,
}

#[derive(Debug)]
pub(super) struct Format(pub Vec<Piece>);

impl Format {
    pub fn parse(text: &[u8]) -> Self {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let byte = text[at];
            at += 1;
            match byte {
                b'\\' => {
                    let Some(&letter) = text.get(at) else {
                        literal.push(b'\\');
                        break;
                    };
                    at += 1;
                    match letter {
                        b'a' => literal.push(7),
                        b'b' => literal.push(8),
                        b'f' => literal.push(12),
                        b'n' => literal.push(b'\n'),
                        b'r' => literal.push(b'\r'),
                        b't' => literal.push(b'\t'),
                        b'v' => literal.push(11),
                        b'\\' => literal.push(b'\\'),
                        b'c' => {
                            pieces.push(Piece::Text(std::mem::take(&mut literal)));
                            pieces.push(Piece::Stop);
                            return Self(pieces);
                        }
                        b'0'..=b'7' => {
                            let mut value = u32::from(letter - b'0');
                            for _ in 0..2 {
                                let Some(digit @ b'0'..=b'7') = text.get(at) else { break };
                                value = value * 8 + u32::from(digit - b'0');
                                at += 1;
                            }
                            literal.push(value as u8);
                        }
                        _ => {
                            warn!("find: warning: unrecognized escape `\\{}'", char::from(letter));
                            literal.push(b'\\');
                            literal.push(letter);
                        }
                    }
                }
                b'%' => {
                    let start = at - 1;
                    let (conversion, rest) = Conversion::read(&text[at..]);
                    at = text.len() - rest.len();
                    let Some(&letter) = text.get(at) else {
                        literal.extend_from_slice(&text[start..]);
                        break;
                    };
                    at += 1;
                    if letter == b'%' {
                        literal.push(b'%');
                        continue;
                    }
                    let mut time = 0;
                    if matches!(letter, b'A' | b'C' | b'T' | b'B') {
                        time = text.get(at).copied().unwrap_or(b'@');
                        at += 1;
                    } else if !b"abcdDfFgGhHiklmMnpPsStuUyY".contains(&letter) {
                        warn!("find: warning: unrecognized format directive `%{}'", char::from(letter));
                        literal.extend_from_slice(&text[start..at]);
                        continue;
                    }
                    if !literal.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Directive { conversion, letter, time });
                }
                _ => literal.push(byte),
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Self(pieces)
    }
}

/// Returns a time as one of `%T`'s letters shows it; `nanos` since 1970.
pub(super) fn time(letter: u8, nanos: i64) -> Vec<u8> {
    let seconds = nanos.div_euclid(1_000_000_000);
    // GNU shows ten places: nine of nanoseconds and a zero.
    let fraction = format!(".{:09}0", nanos.rem_euclid(1_000_000_000));
    let with_fraction = |format: &[u8]| {
        let mut text = date::format(format, nanos.into());
        text.extend_from_slice(fraction.as_bytes());
        text
    };
    match letter {
        b'@' => format!("{seconds}{fraction}").into_bytes(),
        b'S' => with_fraction(b"%S"),
        b'T' | b'X' => with_fraction(b"%H:%M:%S"),
        b'+' => with_fraction(b"%Y-%m-%d+%H:%M:%S"),
        b'r' => date::format(b"%I:%M:%S %p", nanos.into()),
        other => date::format(&[b'%', other], nanos.into()),
    }
}

/// Returns `%t`, `%a`, `%c`: the C library's `ctime` with a fraction.
pub(super) fn ctime(nanos: i64) -> Vec<u8> {
    let fraction = format!(".{:09}0", nanos.rem_euclid(1_000_000_000));
    let mut text = date::format(b"%a %b %e %H:%M:%S", nanos.into());
    text.extend_from_slice(fraction.as_bytes());
    text.extend_from_slice(&date::format(b" %Y", nanos.into()));
    text
}
