//! `xxd`: bytes as numbers, and back.

use std::ffi::OsString;

use common::getopt::{self, Item, Spec};
use common::number;

use crate::io::{self, Out, show};

pub(super) fn number(text: &[u8]) -> Option<i64> {
    let text = show(text).into_owned();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.to_string()),
        None => (false, text),
    };
    let (digits, unit) = match digits.chars().last() {
        Some('k' | 'K') => (digits[..digits.len() - 1].to_string(), 1024),
        Some('m' | 'M') => (digits[..digits.len() - 1].to_string(), 1 << 20),
        Some('b') if !digits.starts_with("0x") => (digits[..digits.len() - 1].to_string(), 512),
        _ => (digits, 1),
    };
    let value = if let Some(hex) = digits.strip_prefix("0x") {
        i64::from_str_radix(hex, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(&digits, 8).ok()?
    } else {
        digits.parse().ok()?
    };
    Some(if negative { -value * unit } else { value * unit })
}

/// Runs `xxd`.
pub fn xxd(args: Vec<OsString>) -> i32 {
    let args: Vec<Vec<u8>> = getopt::bytes(args);
    // xxd also takes whole words after one dash.
    let args: Vec<Vec<u8>> = args[1..]
        .iter()
        .map(|arg| match arg.as_slice() {
            b"-ps" | b"-postscript" | b"-plain" => b"-p".to_vec(),
            b"-revert" => b"-r".to_vec(),
            b"-cols" => b"-c".to_vec(),
            b"-len" => b"-l".to_vec(),
            b"-include" => b"-i".to_vec(),
            b"-bits" => b"-b".to_vec(),
            _ => arg.clone(),
        })
        .collect();
    let spec = Spec { short: "abc:deEg:il:o:prs:un:v", long: &[] };
    let items = match spec.parse(&args) {
        Ok(items) => items,
        Err(_) => {
            warn!(
                "Usage:\n       xxd [options] [infile [outfile]]\n    or\n       xxd -r [-s [-]offset] [-c cols] [-ps] [infile [outfile]]"
            );
            return 1;
        }
    };
    let (mut plain, mut reverse, mut bits, mut include, mut upper, mut little) = (false, false, false, false, false, false);
    let (mut columns, mut group, mut length, mut skip, mut name) = (None, None, usize::MAX, 0i64, None);
    let mut shift = 0i64;
    let mut files = Vec::new();
    for item in items {
        match item {
            Item::Operand(file) => files.push(file),
            Item::Opt('p', _) => plain = true,
            Item::Opt('r', _) => reverse = true,
            Item::Opt('b', _) => bits = true,
            Item::Opt('i', _) => include = true,
            Item::Opt('u', _) => upper = true,
            Item::Opt('e', _) => little = true,
            Item::Opt('c', value) => columns = value.as_deref().and_then(number).map(number::saturated),
            Item::Opt('g', value) => group = value.as_deref().and_then(number).map(number::saturated),
            Item::Opt('l', value) => length = value.as_deref().and_then(number).map_or(length, number::saturated),
            Item::Opt('s', value) => skip = value.as_deref().and_then(number).unwrap_or(0),
            Item::Opt('n', value) => name = value,
            Item::Opt('o', value) => shift = value.as_deref().and_then(number).unwrap_or(0),
            Item::Opt(..) => {}
        }
    }
    let input = files.first().cloned().unwrap_or_else(|| b"-".to_vec());
    let content = match io::read_all(&input) {
        Ok(content) => content,
        Err(error) => {
            warn!("xxd: {}: {}", show(&input), sys::message(&error));
            return 2;
        }
    };
    let mut out = Vec::new();
    if reverse {
        revert(&content, plain, columns.filter(|columns| *columns > 0).unwrap_or(16), &mut out);
    } else {
        let start = if skip < 0 {
            content.len().saturating_sub(usize::try_from(skip.unsigned_abs()).unwrap_or(usize::MAX))
        } else {
            number::saturated(skip).min(content.len())
        };
        let data = &content[start..start + length.min(content.len() - start)];
        if include {
            let variable = name.unwrap_or_else(|| input.clone());
            c_array(data, (input != b"-").then_some(variable.as_slice()), upper, &mut out);
        } else if plain {
            let columns = columns.filter(|columns| *columns > 0).unwrap_or(if columns == Some(0) { usize::MAX / 4 } else { 30 });
            for chunk in data.chunks(columns) {
                chunk.iter().for_each(|byte| out.extend_from_slice(hex(*byte, upper).as_bytes()));
                out.push(b'\n');
            }
        } else {
            let columns = columns.filter(|columns| *columns > 0).unwrap_or(if bits { 6 } else { 16 });
            let group = group.unwrap_or(if bits {
                1
            } else if little {
                4
            } else {
                2
            });
            let group = if group == 0 { columns } else { group };
            lines(data, number::saturated((start as i64).saturating_add(shift)), columns, group, bits, upper, little, &mut out);
        }
    }
    let mut stdout = Out::new("xxd", 3);
    match files.get(1) {
        Some(file) => {
            if let Err(error) = std::fs::write(io::path(file), &out) {
                warn!("xxd: {}: {}", show(file), sys::message(&error));
                return 3;
            }
        }
        None => stdout.put(&out),
    }
    stdout.flush();
    0
}

fn hex(byte: u8, upper: bool) -> String {
    if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }
}

pub(super) fn visible(byte: u8) -> u8 {
    if (0x20..0x7f).contains(&byte) { byte } else { b'.' }
}

#[expect(clippy::too_many_arguments, reason = "each is one option of the layout")]
fn lines(data: &[u8], start: usize, columns: usize, group: usize, bits: bool, upper: bool, little: bool, out: &mut Vec<u8>) {
    let digits = if bits { 8 } else { 2 };
    let groups = columns.div_ceil(group);
    let width = columns * digits + groups;
    for (index, chunk) in data.chunks(columns).enumerate() {
        let mut line = format!("{:08x}: ", start + index * columns);
        let head = line.len();
        for piece in chunk.chunks(group) {
            let mut bytes: Vec<Option<u8>> = piece.iter().copied().map(Some).collect();
            if little {
                bytes.resize(group, None);
                bytes.reverse();
            }
            for byte in bytes {
                match byte {
                    None => line.push_str("  "),
                    Some(byte) if bits => line.push_str(&format!("{byte:08b}")),
                    Some(byte) => line.push_str(&hex(byte, upper)),
                }
            }
            line.push(' ');
        }
        while line.len() < head + width {
            line.push(' ');
        }
        line.push(' ');
        out.extend_from_slice(line.as_bytes());
        out.extend(chunk.iter().map(|byte| visible(*byte)));
        out.push(b'\n');
    }
}

fn c_array(data: &[u8], name: Option<&[u8]>, upper: bool, out: &mut Vec<u8>) {
    let variable = name.map(|name| {
        name.iter().map(|byte| if byte.is_ascii_alphanumeric() { char::from(*byte) } else { '_' }).collect::<String>()
    });
    if let Some(variable) = &variable {
        let prefix = if variable.starts_with(|first: char| first.is_ascii_digit()) { "__" } else { "" };
        out.extend_from_slice(format!("unsigned char {prefix}{variable}[] = {{\n").as_bytes());
    }
    let lines: Vec<String> = data
        .chunks(12)
        .map(|chunk| {
            format!(
                "  {}",
                chunk
                    .iter()
                    .map(|byte| if upper { format!("0X{byte:02X}") } else { format!("0x{byte:02x}") })
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        })
        .collect();
    out.extend_from_slice(lines.join(",\n").as_bytes());
    out.push(b'\n');
    if let Some(variable) = &variable {
        let prefix = if variable.starts_with(|first: char| first.is_ascii_digit()) { "__" } else { "" };
        out.extend_from_slice(format!("}};\nunsigned int {prefix}{variable}_len = {};\n", data.len()).as_bytes());
    }
}

/// Turns a dump into bytes again. Two characters that are not digits end a line's digits; one only ends the byte it is in.
fn revert(text: &[u8], plain: bool, columns: usize, out: &mut Vec<u8>) {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let decode = |digits: &[u8], most: usize, out: &mut Vec<u8>| {
        let (mut high, mut bad, mut count) = (None, 0, 0);
        for &byte in digits {
            let Some(value) = digit(byte) else {
                if plain && byte.is_ascii_whitespace() {
                    continue;
                }
                if byte != b' ' && byte != b'\r' {
                    high = None;
                }
                bad += 1;
                if bad >= 2 {
                    break;
                }
                continue;
            };
            bad = 0;
            match high.take() {
                None => high = Some(value),
                Some(first) if count < most => {
                    out.push((first * 16 + value) as u8);
                    count += 1;
                }
                Some(_) => break,
            }
        }
    };
    for line in text.split(|&byte| byte == b'\n') {
        if plain {
            decode(line, usize::MAX, out);
            continue;
        }
        let line = line.trim_ascii_start();
        let length = line.iter().take_while(|&&byte| digit(byte).is_some()).count();
        let Ok(offset) = usize::from_str_radix(&show(&line[..length]), 16) else { continue };
        let body = line[length..].strip_prefix(b":").unwrap_or(&line[length..]).trim_ascii_start();
        out.resize(offset.max(out.len()), 0);
        let mut bytes = Vec::new();
        decode(body, columns, &mut bytes);
        out.truncate(offset);
        out.extend_from_slice(&bytes);
    }
}
