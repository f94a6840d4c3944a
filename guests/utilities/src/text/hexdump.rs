//! `hexdump`: bytes as numbers, in a format of one's choice.

use std::ffi::OsString;

use common::getopt::{self, Item, Spec};

use super::xxd::{number, visible};
use crate::io::{self, Out, show};

/// Runs `hexdump`, and `hd` which is `hexdump -C`.
pub fn hexdump(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec {
        short: "bcCde:f:n:os:vxL",
        long: &[
            ("canonical", getopt::Value::No, 'C'),
            ("length", getopt::Value::Needs, 'n'),
            ("skip", getopt::Value::Needs, 's'),
            ("no-squeezing", getopt::Value::No, 'v'),
        ],
    };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("hexdump: {message}\nTry 'hexdump --help' for more information.");
            return 1;
        }
    };
    let mut style = if args[0].ends_with(b"hd") { 'C' } else { ' ' };
    let (mut length, mut skip, mut squeeze, mut formats, mut files) = (usize::MAX, 0usize, true, Vec::new(), Vec::new());
    for item in items {
        match item {
            Item::Operand(file) => files.push(file),
            Item::Opt('n', value) => length = value.as_deref().and_then(number).map_or(length, common::number::saturated),
            Item::Opt('s', value) => skip = value.as_deref().and_then(number).map_or(0, common::number::saturated),
            Item::Opt('v', _) => squeeze = false,
            Item::Opt('e', value) => formats.push(value.unwrap_or_default()),
            Item::Opt(letter @ ('b' | 'c' | 'C' | 'd' | 'o' | 'x'), _) => style = letter,
            Item::Opt(..) => {}
        }
    }
    if files.is_empty() {
        files.push(b"-".to_vec());
    }
    let (mut data, mut status) = (Vec::new(), 0);
    for file in files {
        match io::read_all(&file) {
            Ok(content) => data.extend_from_slice(&content),
            Err(error) => {
                warn!("hexdump: {}: {}", show(&file), sys::message(&error));
                status = 1;
            }
        }
    }
    let start = skip.min(data.len());
    let data = &data[start..start + length.min(data.len() - start)];
    let mut out = Out::new("hexdump", 1);
    if formats.is_empty() {
        styled(&mut out, data, start, style, squeeze);
    } else {
        for format in &formats {
            custom(&mut out, data, start, squeeze, &show(format));
        }
    }
    out.flush();
    status
}

fn styled(out: &mut Out, data: &[u8], start: usize, style: char, squeeze: bool) {
    let offset_width = if style == 'C' { 8 } else { 7 };
    let mut previous: Option<&[u8]> = None;
    let mut squeezed = false;
    for (index, chunk) in data.chunks(16).enumerate() {
        if squeeze && chunk.len() == 16 && previous == Some(chunk) {
            if !squeezed {
                out.put(b"*\n");
            }
            squeezed = true;
            continue;
        }
        squeezed = false;
        previous = Some(chunk);
        let mut line = format!("{:0offset_width$x}", start + index * 16);
        match style {
            'C' => {
                for at in 0..16 {
                    line.push_str(if at % 8 == 0 { "  " } else { " " });
                    match chunk.get(at) {
                        Some(byte) => line.push_str(&format!("{byte:02x}")),
                        None => line.push_str("  "),
                    }
                }
                line.push_str("  |");
                line.extend(chunk.iter().map(|byte| char::from(visible(*byte))));
                line.push('|');
            }
            'b' => chunk.iter().for_each(|byte| line.push_str(&format!(" {byte:03o}"))),
            'c' => {
                for byte in chunk {
                    let shown = c_name(*byte);
                    line.push_str(&format!(" {shown:>3}"));
                }
            }
            _ => {
                for pair in chunk.chunks(2) {
                    let value = u16::from(pair[0]) | u16::from(pair.get(1).copied().unwrap_or(0)) << 8;
                    line.push_str(&match style {
                        'd' => format!("   {value:05}"),
                        'o' => format!("  {value:06o}"),
                        'x' => format!("    {value:04x}"),
                        _ => format!(" {value:04x}"),
                    });
                }
            }
        }
        let full = match style {
            'b' | 'c' => offset_width + 64,
            'd' | 'o' | 'x' => offset_width + 64,
            'C' => 0,
            _ => offset_width + 40,
        };
        while line.len() < full {
            line.push(' ');
        }
        out.put(line.as_bytes());
        out.byte(b'\n');
    }
    if !data.is_empty() {
        out.put(format!("{:0offset_width$x}\n", start + data.len()).as_bytes());
    }
}

/// `-e 'count/bytes "format" …'`.
fn custom(out: &mut Out, data: &[u8], start: usize, squeeze: bool, format: &str) {
    struct Unit {
        count: usize,
        bytes: usize,
        text: String,
    }
    let mut units = Vec::new();
    let mut rest = format.trim_start();
    while !rest.is_empty() {
        let quote = rest.find('"').unwrap_or(rest.len());
        let head = rest[..quote].trim();
        let (count, bytes) = head.split_once('/').unwrap_or((head, ""));
        let after = rest.get(quote + 1..).unwrap_or_default();
        let close = after.find('"').unwrap_or(after.len());
        let text = after[..close].replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0");
        let default = if text.contains("%c") || text.contains("%_") {
            1
        } else if text.contains('%') {
            4
        } else {
            0
        };
        let number = |text: &str| common::number::size(text.as_bytes());
        units.push(Unit { count: number(count).unwrap_or(1), bytes: number(bytes).unwrap_or(default), text });
        rest = after.get(close + 1..).unwrap_or_default().trim_start();
    }
    let size: usize = units
        .iter()
        .filter(|unit| unit.text.contains('%'))
        .fold(0, |sum, unit| unit.count.saturating_mul(unit.bytes).saturating_add(sum));
    if size == 0 {
        return;
    }
    let (mut previous, mut squeezed) = (None, false);
    for (index, block) in data.chunks(size).enumerate() {
        if squeeze && block.len() == size && previous == Some(block) {
            if !squeezed {
                out.put(b"*\n");
            }
            squeezed = true;
            continue;
        }
        squeezed = false;
        previous = Some(block);
        let mut at = 0usize;
        for unit in &units {
            for repeat in 0..unit.count {
                if !unit.text.contains('%') {
                    out.put(unit.text.as_bytes());
                    continue;
                }
                let end = at.saturating_add(unit.bytes).min(block.len());
                let shown = block.get(at..end).filter(|bytes| !bytes.is_empty());
                let mut shown = directive(&unit.text, shown, (start + index * size).saturating_add(at));
                if repeat + 1 == unit.count && unit.count > 1 {
                    shown = shown.trim_end_matches(' ').to_string();
                }
                out.put(shown.as_bytes());
                at = at.saturating_add(unit.bytes);
            }
        }
    }
}

/// The names of the control characters, as `%_u` has them.
const CONTROLS: [&str; 32] = [
    "nul", "soh", "stx", "etx", "eot", "enq", "ack", "bel", "bs", "ht", "lf", "vt", "ff", "cr", "so", "si", "dle", "dc1", "dc2",
    "dc3", "dc4", "nak", "syn", "etb", "can", "em", "sub", "esc", "fs", "gs", "rs", "us",
];

/// Returns one unit of a format with its bytes filled in; without bytes, with blanks in their place.
fn directive(text: &str, bytes: Option<&[u8]>, offset: usize) -> String {
    let Some(percent) = text.find('%') else { return text.to_string() };
    let body = &text[percent + 1..];
    let end = body.find(|letter: char| letter.is_ascii_alphabetic() || letter == '_').unwrap_or(body.len());
    let flags = &body[..end];
    let width: usize =
        flags.trim_start_matches(['0', '-', '#', '+', ' ']).split('.').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let zero = flags.starts_with('0');
    let mut conversion: String = body[end..].chars().take(1).collect();
    if conversion == "_" {
        conversion = body[end..].chars().take(2).collect();
        if conversion.starts_with("_a") || conversion.starts_with("_A") {
            conversion = body[end..].chars().take(3).collect();
        }
    }
    let tail = body.get(end + conversion.len()..).unwrap_or_default();
    let shown = bytes.map(|bytes| {
        let value = bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        let spare = 64 - 8 * bytes.len().clamp(1, 8) as u32;
        let signed = (value << spare) as i64 >> spare;
        let byte = value as u8;
        match conversion.as_str() {
            "x" => format!("{value:x}"),
            "X" => format!("{value:X}"),
            "o" => format!("{value:o}"),
            "d" | "i" => signed.to_string(),
            "c" => char::from(byte).to_string(),
            "s" => bytes.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect(),
            "_p" => char::from(visible(byte)).to_string(),
            "_u" => match byte {
                0..32 => CONTROLS[usize::from(byte)].to_string(),
                0x7f => "del".to_string(),
                0x80.. => format!("{byte:x}"),
                _ => char::from(byte).to_string(),
            },
            "_c" => c_name(byte),
            "_ax" | "_Ax" => format!("{offset:x}"),
            "_ad" | "_Ad" => offset.to_string(),
            "_ao" | "_Ao" => format!("{offset:o}"),
            "e" | "f" | "g" | "E" | "G" => match bytes.len() {
                4 => f64::from(f32::from_bits(value as u32)).to_string(),
                _ => f64::from_bits(value).to_string(),
            },
            _ => value.to_string(),
        }
    });
    let pad = |shown: &str, with: &str| with.repeat(width.saturating_sub(shown.chars().count()));
    let field = match shown {
        None => {
            let natural = if width > 0 { width } else { usize::from(!conversion.is_empty()) };
            " ".repeat(natural)
        }
        Some(shown) if flags.starts_with('-') => format!("{shown}{}", pad(&shown, " ")),
        Some(shown) => format!("{}{shown}", pad(&shown, if zero { "0" } else { " " })),
    };
    format!("{}{field}{tail}", &text[..percent])
}

fn c_name(byte: u8) -> String {
    match byte {
        0 => "\\0".to_string(),
        7 => "\\a".to_string(),
        8 => "\\b".to_string(),
        9 => "\\t".to_string(),
        10 => "\\n".to_string(),
        11 => "\\v".to_string(),
        12 => "\\f".to_string(),
        13 => "\\r".to_string(),
        0x20..0x7f => char::from(byte).to_string(),
        _ => format!("{byte:03o}"),
    }
}
