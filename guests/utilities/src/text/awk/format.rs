//! `printf`: flags, widths, and C's ways of writing numbers.

use common::printf::{self, Conversion};

use super::value::Value;

/// Formats `values`; the error is blanks up to the directive for which there was no value.
pub(super) fn format(template: &[u8], values: &[Value], convfmt: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(template.len() + 16);
    let mut values = values.iter();
    let mut at = 0;
    while at < template.len() {
        let Some(percent) = memchr::memchr(b'%', &template[at..]) else {
            out.extend_from_slice(&template[at..]);
            break;
        };
        out.extend_from_slice(&template[at..at + percent]);
        let start = at + percent;
        at = start + 1;
        let missing = || " ".repeat(start);
        let (mut spec, rest) = Conversion::flags(&template[at..]);
        at = template.len() - rest.len();
        if template.get(at) == Some(&b'*') {
            at += 1;
            let width = values.next().ok_or_else(missing)?.number();
            spec.left |= width < 0.0;
            spec.width = width.abs() as usize;
        } else {
            spec.width = digits(template, &mut at);
        }
        if template.get(at) == Some(&b'.') {
            at += 1;
            if template.get(at) == Some(&b'*') {
                at += 1;
                let precision = values.next().ok_or_else(missing)?.number();
                spec.precision = (precision >= 0.0).then_some(precision as usize);
            } else {
                spec.precision = Some(digits(template, &mut at));
            }
        }
        while matches!(template.get(at), Some(b'l' | b'h' | b'L' | b'q' | b'j' | b'z' | b't')) {
            at += 1;
        }
        let Some(&letter) = template.get(at) else {
            out.extend_from_slice(&template[start..]);
            break;
        };
        at += 1;
        match letter {
            b'%' => out.push(b'%'),
            b'c' => {
                let value = values.next().ok_or_else(missing)?;
                pad(&mut out, &character(value), &spec);
            }
            b's' => {
                let text = values.next().ok_or_else(missing)?.text(convfmt);
                let text = match spec.precision {
                    Some(precision) => cut(&text, precision),
                    None => &text,
                };
                pad(&mut out, text, &spec);
            }
            b'd' | b'i' => integer(&mut out, values.next().ok_or_else(missing)?.number(), &spec),
            b'o' | b'x' | b'X' | b'u' => unsigned(&mut out, values.next().ok_or_else(missing)?.number(), letter, &spec),
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                float(&mut out, values.next().ok_or_else(missing)?.number(), letter, &spec);
            }
            _ => out.extend_from_slice(&template[start..at]),
        }
    }
    Ok(out)
}

fn digits(template: &[u8], at: &mut usize) -> usize {
    let (value, rest) = printf::number(&template[*at..]);
    *at = template.len() - rest.len();
    value.unwrap_or(0)
}

fn character(value: &Value) -> Vec<u8> {
    let code = match value {
        Value::Num(number) => Some(*number),
        Value::Uninit => Some(0.0),
        Value::Input(_) => value.as_numeric(),
        Value::Str(_) | Value::Array(_) => None,
    };
    match code {
        Some(code) if code >= 128.0 && common::locale::utf8() => match char::from_u32(code as u32) {
            Some(char) => char.to_string().into_bytes(),
            None => vec![code as u8],
        },
        Some(code) => vec![(code as i64 & 0xff) as u8],
        None => {
            let text = value.text(b"%.6g");
            if text.is_empty() { vec![0] } else { cut(&text, 1).to_vec() }
        }
    }
}

/// Returns the first `count` characters.
fn cut(text: &[u8], count: usize) -> &[u8] {
    if text.is_ascii() || !common::locale::utf8() {
        return &text[..count.min(text.len())];
    }
    let mut at = 0;
    for _ in 0..count {
        if at >= text.len() {
            break;
        }
        at += crate::utf8::length(&text[at..]);
    }
    &text[..at]
}

fn pad(out: &mut Vec<u8>, text: &[u8], spec: &Conversion) {
    let columns = if text.is_ascii() || !common::locale::utf8() { text.len() } else { crate::utf8::count(text) };
    spec.padded(text, columns, out);
}

/// Writes what is not a finite number, with a sign in any case; `false` for one that is.
fn special(out: &mut Vec<u8>, number: f64, spec: &Conversion) -> bool {
    if number.is_finite() {
        return false;
    }
    let spec = Conversion { zero: false, precision: None, ..*spec };
    spec.digits(if number.is_sign_negative() { "-" } else { "+" }, if number.is_nan() { "nan" } else { "inf" }, out);
    true
}

fn integer(out: &mut Vec<u8>, number: f64, spec: &Conversion) {
    if special(out, number, spec) {
        return;
    }
    let whole = number.trunc();
    let digits = if whole.abs() < 1e18 { (whole.abs() as u64).to_string() } else { format!("{:.0}", whole.abs()) };
    spec.digits(spec.sign(whole < 0.0), &digits, out);
}

fn unsigned(out: &mut Vec<u8>, number: f64, letter: u8, spec: &Conversion) {
    if special(out, number, spec) {
        return;
    }
    let whole = number.trunc();
    if whole < 0.0 && letter == b'u' {
        return integer(out, number, spec);
    }
    let value = if whole < 0.0 { (whole as i64).cast_unsigned() } else { whole as u64 };
    spec.unsigned(value, letter, out);
}

fn float(out: &mut Vec<u8>, number: f64, letter: u8, spec: &Conversion) {
    let letter = match letter {
        b'a' => b'g',
        b'A' => b'G',
        other => other,
    };
    if !special(out, number, spec) {
        spec.float(number, letter, out);
    }
}
