//! JSON on paper, as jq lays it out.

use jaq_json::{Num, Val};

use crate::io::Out;

#[derive(Clone, Debug, Default)]
pub(super) struct Style {
    pub indent: Option<String>,
    pub sort_keys: bool,
    pub ascii: bool,
    pub color: bool,
}

/// Writes a value.
pub(super) fn value(out: &mut Out, style: &Style, value: &Val) {
    let mut text = Vec::new();
    write(&mut text, style, 0, value);
    out.put(&text);
}

/// A value on one line.
pub(super) fn compact(value: &Val) -> Vec<u8> {
    let mut text = Vec::new();
    write(&mut text, &Style::default(), 0, value);
    text
}

fn newline(out: &mut Vec<u8>, style: &Style, depth: usize) {
    if let Some(indent) = &style.indent {
        out.push(b'\n');
        for _ in 0..depth {
            out.extend_from_slice(indent.as_bytes());
        }
    }
}

fn color(value: &Val) -> &'static str {
    match value {
        Val::Null => "\x1b[1;30m",
        Val::Bool(_) | Val::Num(_) => "\x1b[0;39m",
        Val::TStr(_) | Val::BStr(_) => "\x1b[0;32m",
        Val::Arr(_) | Val::Obj(_) => "\x1b[1;39m",
    }
}

const RESET: &[u8] = b"\x1b[0m";

fn write(out: &mut Vec<u8>, style: &Style, depth: usize, value: &Val) {
    if style.color {
        out.extend_from_slice(color(value).as_bytes());
    }
    match value {
        Val::Null => out.extend_from_slice(b"null"),
        Val::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Val::Num(number) => num(out, number),
        Val::TStr(text) | Val::BStr(text) => string(out, text, style.ascii),
        Val::Arr(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    separator(out, style, b",", value);
                }
                newline(out, style, depth + 1);
                if style.color {
                    out.extend_from_slice(RESET);
                }
                write(out, style, depth + 1, item);
            }
            if style.color {
                out.extend_from_slice(color(value).as_bytes());
            }
            if !items.is_empty() {
                newline(out, style, depth);
            }
            if style.color {
                out.extend_from_slice(color(value).as_bytes());
            }
            out.push(b']');
        }
        Val::Obj(map) => {
            out.push(b'{');
            let mut pairs: Vec<(&Val, &Val)> = map.iter().collect();
            if style.sort_keys {
                pairs.sort_by(|a, b| a.0.cmp(b.0));
            }
            for (index, (key, item)) in pairs.into_iter().enumerate() {
                if index > 0 {
                    separator(out, style, b",", value);
                }
                newline(out, style, depth + 1);
                if style.color {
                    out.extend_from_slice(RESET);
                    out.extend_from_slice(b"\x1b[34;1m");
                }
                match key {
                    Val::TStr(text) | Val::BStr(text) => string(out, text, style.ascii),
                    other => write(out, &Style::default(), 0, other),
                }
                if style.color {
                    out.extend_from_slice(RESET);
                    out.extend_from_slice(color(value).as_bytes());
                }
                out.push(b':');
                if style.indent.is_some() {
                    out.push(b' ');
                }
                if style.color {
                    out.extend_from_slice(RESET);
                }
                write(out, style, depth + 1, item);
            }
            if style.color {
                out.extend_from_slice(color(value).as_bytes());
            }
            if !map.is_empty() {
                newline(out, style, depth);
            }
            if style.color {
                out.extend_from_slice(color(value).as_bytes());
            }
            out.push(b'}');
        }
    }
    if style.color {
        out.extend_from_slice(RESET);
    }
}

fn separator(out: &mut Vec<u8>, style: &Style, mark: &[u8], value: &Val) {
    if style.color {
        out.extend_from_slice(color(value).as_bytes());
    }
    out.extend_from_slice(mark);
}

fn num(out: &mut Vec<u8>, number: &Num) {
    let float = match number {
        Num::Float(float) => *float,
        Num::Dec(text) => text.parse().unwrap_or(0.0),
        other => {
            let text = other.to_string();
            // jq's numbers are doubles: what does not fit into one is not kept.
            if text.len() < 17 {
                return out.extend_from_slice(text.as_bytes());
            }
            text.parse().unwrap_or(0.0)
        }
    };
    if float.is_nan() {
        return out.extend_from_slice(b"null");
    }
    let float = float.clamp(-f64::MAX, f64::MAX);
    // The shortest digits that mean this number, laid out as C's dtoa does it for jq.
    let text = format!("{:e}", float.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if float < 0.0 || float == 0.0 && float.is_sign_negative() {
        out.push(b'-');
    }
    let point = exponent + 1;
    let count = digits.len() as i32;
    let laid = if point <= -4 || point > count + 15 {
        let fraction = if count > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}{fraction}e{sign}{:02}", &digits[..1], exponent.abs())
    } else if point <= 0 {
        format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else if point >= count {
        format!("{digits}{}", "0".repeat((point - count) as usize))
    } else {
        format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
    };
    out.extend_from_slice(laid.as_bytes());
}

fn string(out: &mut Vec<u8>, bytes: &[u8], ascii: bool) {
    out.push(b'"');
    for char in String::from_utf8_lossy(bytes).chars() {
        match char {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            '\0'..' ' | '\u{7f}' => out.extend_from_slice(format!("\\u{:04x}", char as u32).as_bytes()),
            _ if ascii && !char.is_ascii() => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                }
            }
            _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}
