//! `base64` and `base32`.

use std::ffi::OsString;

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, BLOCK, Outcome, Output, extra_operand, fail, open, read_all};
use crate::quote;

struct Code {
    alphabet: &'static [u8],
    /// Bits per letter.
    bits: u32,
    /// Bytes that fill whole letters, and the letters they fill.
    group: (usize, usize),
}

const BASE64: Code =
    Code { alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", bits: 6, group: (3, 4) };
const BASE32: Code = Code { alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", bits: 5, group: (5, 8) };

/// Runs `base64`.
pub fn base64(args: Args) -> Outcome {
    main(args, &BASE64)
}

/// Runs `base32`.
pub fn base32(args: Args) -> Outcome {
    main(args, &BASE32)
}

fn main(args: Args, code: &Code) -> Outcome {
    let spec = Spec {
        short: "diw:",
        long: &[("decode", No, 'd'), ("ignore-garbage", No, 'i'), ("wrap", Needs, 'w')],
        help: "[OPTION]... [FILE]",
    };
    let given = options::parse(args, &spec)?;
    let wrap = match given.value('w') {
        Some(value) => value
            .to_str()
            .and_then(|text| text.parse::<usize>().ok())
            .ok_or_else(|| fail(format!("invalid wrap size: {}", quote::plain(value))))?,
        None => 76,
    };
    if let Some(extra) = given.operands.get(1) {
        return Err(extra_operand(extra));
    }
    let file = given.operands.first().cloned().unwrap_or_else(|| OsString::from("-"));
    let trouble = |error: &std::io::Error| fail(format!("{}: {}", quote::maybe(&file), sys::message(error)));
    let mut out = Output::new();
    if given.has('d') {
        let all = read_all(&file).map_err(|error| trouble(&error))?;
        return decode(&all, code, given.has('i'), &mut out);
    }
    let mut input = open(&file).map_err(|error| trouble(&error))?;
    // A multiple of both groups, so that only the end needs padding.
    let mut buffer = vec![0; BLOCK / 15 * 15];
    let mut column = 0;
    let mut text = Vec::new();
    loop {
        let n = input.fill(&mut buffer).map_err(|error| {
            if error.raw_os_error() == Some(sys::errno::EISDIR) {
                fail(format!("read error: {}", sys::message(&error)))
            } else {
                trouble(&error)
            }
        })?;
        text.clear();
        encode(&buffer[..n], code, &mut text);
        put_wrapped(&text, wrap, &mut column, &mut out);
        if n < buffer.len() {
            break;
        }
    }
    if wrap > 0 && column > 0 {
        out.byte(b'\n');
    }
    Ok(0)
}

fn put_wrapped(mut text: &[u8], wrap: usize, column: &mut usize, out: &mut Output) {
    if wrap == 0 {
        return out.put(text);
    }
    while !text.is_empty() {
        if *column == wrap {
            out.byte(b'\n');
            *column = 0;
        }
        let (head, rest) = text.split_at((wrap - *column).min(text.len()));
        out.put(head);
        *column += head.len();
        text = rest;
    }
}

fn encode(bytes: &[u8], code: &Code, out: &mut Vec<u8>) {
    for group in bytes.chunks(code.group.0) {
        let mut value = group.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        value <<= 8 * (code.group.0 - group.len());
        let used = (group.len() * 8).div_ceil(code.bits as usize);
        for index in 0..code.group.1 {
            let shift = code.bits as usize * (code.group.1 - 1 - index);
            let letter = code.alphabet[(value >> shift) as usize & ((1 << code.bits) - 1)];
            out.push(if index < used { letter } else { b'=' });
        }
    }
}

fn decode(text: &[u8], code: &Code, ignore: bool, out: &mut Output) -> Outcome {
    let mut table = [255u8; 256];
    for (value, &letter) in code.alphabet.iter().enumerate() {
        table[usize::from(letter)] = value as u8;
    }
    let mut group: Vec<u8> = Vec::with_capacity(8);
    let mut padding = 0;
    let mut invalid = false;
    let flush = |group: &mut Vec<u8>, padding: usize, out: &mut Output| -> bool {
        let letters = group.len();
        let mut value = group.iter().fold(0u64, |value, &letter| value << code.bits | u64::from(letter));
        value <<= code.bits as usize * (code.group.1 - letters);
        let whole = letters * code.bits as usize / 8;
        for index in 0..whole {
            out.byte((value >> (8 * (code.group.0 - 1 - index))) as u8);
        }
        // The letters must be as many as some bytes need, padded to a full group, with no bits left over.
        let needed = (whole * 8).div_ceil(code.bits as usize);
        let rest = value & ((1u64 << (8 * (code.group.0 - whole))) - 1);
        group.clear();
        letters == needed && (letters + padding == code.group.1) && rest == 0
    };
    for &byte in text {
        match byte {
            b'\n' => continue,
            b'=' if !group.is_empty() => {
                padding += 1;
                if group.len() + padding == code.group.1 {
                    invalid |= !flush(&mut group, padding, out);
                    padding = 0;
                }
            }
            byte if table[usize::from(byte)] != 255 => {
                if padding > 0 {
                    invalid = true;
                } else {
                    group.push(table[usize::from(byte)]);
                    if group.len() == code.group.1 {
                        flush(&mut group, 0, out);
                    }
                }
            }
            _ if ignore => {}
            _ => invalid = true,
        }
        if invalid {
            break;
        }
    }
    if !group.is_empty() {
        flush(&mut group, padding, out);
        invalid = true;
    }
    if invalid {
        out.send();
        return Err(fail("invalid input"));
    }
    Ok(0)
}
