//! `printf`: flags, widths, and C's ways of writing numbers.

use super::value::Value;

#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

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
        let mut spec = Spec::default();
        loop {
            match template.get(at) {
                Some(b'-') => spec.left = true,
                Some(b'+') => spec.plus = true,
                Some(b' ') => spec.space = true,
                Some(b'#') => spec.alternate = true,
                Some(b'0') => spec.zero = true,
                Some(b'\'') => {}
                _ => break,
            }
            at += 1;
        }
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
    let mut value = 0usize;
    while let Some(digit @ b'0'..=b'9') = template.get(*at) {
        value = value.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
        *at += 1;
    }
    value
}

fn character(value: &Value) -> Vec<u8> {
    let code = match value {
        Value::Num(number) => Some(*number),
        Value::Uninit => Some(0.0),
        Value::Input(_) => value.as_numeric(),
        Value::Str(_) => None,
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

/// The first `count` characters.
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

fn pad(out: &mut Vec<u8>, text: &[u8], spec: &Spec) {
    let width = if text.is_ascii() || !common::locale::utf8() { text.len() } else { crate::utf8::count(text) };
    let fill = spec.width.saturating_sub(width);
    if !spec.left {
        out.extend(std::iter::repeat_n(b' ', fill));
    }
    out.extend_from_slice(text);
    if spec.left {
        out.extend(std::iter::repeat_n(b' ', fill));
    }
}

/// Puts sign, zeros and digits together.
fn numeric(out: &mut Vec<u8>, prefix: &str, digits: &str, zero: bool, spec: &Spec) {
    let length = prefix.len() + digits.len();
    let fill = spec.width.saturating_sub(length);
    if spec.left {
        out.extend_from_slice(prefix.as_bytes());
        out.extend_from_slice(digits.as_bytes());
        out.extend(std::iter::repeat_n(b' ', fill));
    } else if zero {
        out.extend_from_slice(prefix.as_bytes());
        out.extend(std::iter::repeat_n(b'0', fill));
        out.extend_from_slice(digits.as_bytes());
    } else {
        out.extend(std::iter::repeat_n(b' ', fill));
        out.extend_from_slice(prefix.as_bytes());
        out.extend_from_slice(digits.as_bytes());
    }
}

fn sign(negative: bool, spec: &Spec) -> &'static str {
    if negative {
        "-"
    } else if spec.plus {
        "+"
    } else if spec.space {
        " "
    } else {
        ""
    }
}

fn special(out: &mut Vec<u8>, number: f64, spec: &Spec) -> bool {
    if number.is_finite() {
        return false;
    }
    let name = if number.is_nan() { "nan" } else { "inf" };
    let sign = if number.is_sign_negative() { "-" } else { "+" };
    numeric(out, sign, name, false, spec);
    true
}

fn integer(out: &mut Vec<u8>, number: f64, spec: &Spec) {
    if special(out, number, spec) {
        return;
    }
    let whole = number.trunc();
    let mut digits = if whole.abs() < 1e18 { (whole.abs() as u64).to_string() } else { format!("{:.0}", whole.abs()) };
    if let Some(precision) = spec.precision {
        if precision == 0 && digits == "0" {
            digits.clear();
        }
        digits = sys::padding::zeros(digits, precision);
    }
    numeric(out, sign(whole < 0.0, spec), &digits, spec.zero && spec.precision.is_none(), spec);
}

fn unsigned(out: &mut Vec<u8>, number: f64, letter: u8, spec: &Spec) {
    if special(out, number, spec) {
        return;
    }
    let whole = number.trunc();
    if whole < 0.0 && letter == b'u' {
        return integer(out, number, spec);
    }
    let value = if whole < 0.0 { (whole as i64).cast_unsigned() } else { whole as u64 };
    let mut digits = match letter {
        b'o' => format!("{value:o}"),
        b'x' => format!("{value:x}"),
        b'X' => format!("{value:X}"),
        _ => value.to_string(),
    };
    if let Some(precision) = spec.precision {
        digits = sys::padding::zeros(digits, precision);
    }
    let prefix = match letter {
        b'o' if spec.alternate => "0",
        b'x' if spec.alternate && value != 0 => "0x",
        b'X' if spec.alternate && value != 0 => "0X",
        _ => "",
    };
    numeric(out, prefix, &digits, spec.zero && spec.precision.is_none(), spec);
}

fn float(out: &mut Vec<u8>, number: f64, letter: u8, spec: &Spec) {
    if special(out, number, spec) {
        return;
    }
    let magnitude = number.abs();
    let precision = spec.precision.unwrap_or(6);
    let mut digits = match letter {
        b'f' | b'F' => sys::decimal::fixed(magnitude, precision),
        b'e' | b'E' => exponential(magnitude, precision),
        _ => general(magnitude, precision, spec.alternate),
    };
    if letter.is_ascii_uppercase() {
        digits = digits.to_uppercase();
    }
    if spec.alternate && precision == 0 && !digits.contains('.') {
        digits.push('.');
    }
    numeric(out, sign(number.is_sign_negative(), spec), &digits, spec.zero, spec);
}

fn exponential(number: f64, precision: usize) -> String {
    let text = sys::decimal::scientific(number, precision);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// C's `%g`.
pub(super) fn general(number: f64, precision: usize, keep_zeros: bool) -> String {
    if number == 0.0 {
        return if number.is_sign_negative() { "-0".to_string() } else { "0".to_string() };
    }
    let precision = precision.max(1);
    let text = sys::decimal::scientific(number, precision - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| -> String {
        if keep_zeros || !text.contains('.') {
            return text.to_string();
        }
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    };
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    trim(&sys::decimal::fixed(number, decimals))
}
