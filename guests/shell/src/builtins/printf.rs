//! `printf`.

use super::echo::{Dialect, escape, unescape};
use crate::bytes;
use crate::quote;
use crate::shell::{Done, Flow, Shell};
use crate::state::assign::{is_name, split_subscript};

/// The arguments still to be used, and what went wrong.
struct Arguments<'a> {
    list: &'a [String],
    at: usize,
    failed: bool,
}

impl Arguments<'_> {
    fn next(&mut self) -> Option<String> {
        let text = self.list.get(self.at).cloned();
        self.at += 1;
        text
    }
}

/// A conversion's flags, width and precision.
#[derive(Debug, Default)]
struct Spec {
    minus: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

pub(super) fn printf(shell: &mut Shell, args: &[String]) -> Done {
    let mut at = 1;
    let mut target = None;
    match args.get(at).map(String::as_str) {
        Some("--") => at += 1,
        Some("-v") => {
            let Some(name) = args.get(at + 1) else {
                shell.complain("printf: -v: option requires an argument");
                return Ok(shell.usage("printf"));
            };
            if !is_name(name) && split_subscript(name).is_none() {
                shell.complain(format_args!("printf: `{name}': not a valid identifier"));
                return Ok(2);
            }
            target = Some(name.clone());
            at += 2;
        }
        Some(option) if option.starts_with('-') && option.len() > 1 => {
            if shell.wants_help(args) {
                return Ok(2);
            }
            if let Some(name) = option.strip_prefix("-v") {
                target = Some(name.to_owned());
                at += 1;
            } else {
                return Ok(shell.refuse_option("printf", option.get(..2).unwrap_or(option)));
            }
        }
        _ => {}
    }
    if args.get(at).map(String::as_str) == Some("--") && target.is_some() {
        at += 1;
    }
    let Some(format) = args.get(at) else { return Ok(shell.usage("printf")) };
    let mut arguments = Arguments { list: args.get(at + 1..).unwrap_or_default(), at: 0, failed: false };
    let mut out = Vec::with_capacity(64);
    let format = bytes::encode(format).into_owned();
    loop {
        let before = arguments.at;
        let go_on = round(shell, &format, &mut arguments, &mut out);
        if !go_on || arguments.at >= arguments.list.len() || arguments.at == before {
            break;
        }
    }
    let failed = arguments.failed;
    match target {
        None => shell.output.write(&out),
        Some(name) => {
            let text = bytes::decode(&out);
            let result = match split_subscript(&name) {
                Some((base, subscript)) => {
                    let subscript = shell.subscript(base, subscript)?;
                    shell.assign_element(base, subscript, text, false)
                }
                None => shell.assign(&name, text, false),
            };
            match result {
                Err(Flow::Discard(_)) => return Ok(1),
                other => other?,
            }
        }
    }
    Ok(i32::from(failed))
}

/// Uses the format once; `false` when output ends here.
fn round(shell: &mut Shell, format: &[u8], arguments: &mut Arguments<'_>, out: &mut Vec<u8>) -> bool {
    let mut rest = format;
    while let Some((&byte, tail)) = rest.split_first() {
        match byte {
            b'\\' => {
                let used = escape(tail, Dialect::Format, out).unwrap_or(0);
                rest = tail.get(used..).unwrap_or_default();
            }
            b'%' if tail.first() == Some(&b'%') => {
                out.push(b'%');
                rest = tail.get(1..).unwrap_or_default();
            }
            b'%' => match conversion(shell, tail, arguments, out) {
                Some(left) => rest = left,
                None => return false,
            },
            _ => {
                let plain = rest.iter().position(|&byte| byte == b'\\' || byte == b'%').unwrap_or(rest.len());
                let (head, left) = rest.split_at(plain);
                out.extend_from_slice(head);
                rest = left;
            }
        }
    }
    true
}

fn conversion<'f>(shell: &mut Shell, text: &'f [u8], arguments: &mut Arguments<'_>, out: &mut Vec<u8>) -> Option<&'f [u8]> {
    let mut spec = Spec::default();
    let mut rest = text;
    while let Some((&flag, tail)) = rest.split_first() {
        match flag {
            b'-' => spec.minus = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            b'\'' => {}
            _ => break,
        }
        rest = tail;
    }
    let width = number(shell, &mut rest, arguments);
    if let Some(width) = width {
        spec.minus |= width < 0;
        spec.width = usize::try_from(width.unsigned_abs()).unwrap_or(0).min(1 << 20);
    }
    if let Some(tail) = rest.strip_prefix(b".") {
        rest = tail;
        let precision = number(shell, &mut rest, arguments).unwrap_or(0);
        spec.precision = usize::try_from(precision).ok().map(|precision| precision.min(1 << 20));
    }
    while let Some((b'l' | b'L' | b'h' | b'j' | b'z' | b't' | b'q', tail)) = rest.split_first() {
        // `%q` alone is a conversion of its own.
        if rest.first() == Some(&b'q') {
            break;
        }
        rest = tail;
    }
    let Some((&letter, tail)) = rest.split_first() else {
        shell.complain(format_args!("printf: `%{}': missing format character", bytes::decode(text)));
        arguments.failed = true;
        return None;
    };
    match letter {
        b's' => pad_text(&bytes::encode(&arguments.next().unwrap_or_default()), &spec, out),
        b'b' => {
            let argument = arguments.next().unwrap_or_default();
            let mut expanded = Vec::new();
            let go_on = unescape(&argument, Dialect::PercentB, &mut expanded);
            pad_text(&expanded, &spec, out);
            if !go_on {
                return None;
            }
        }
        b'q' | b'Q' => {
            let argument = arguments.next().unwrap_or_default();
            let argument = match (letter, spec.precision) {
                (b'Q', Some(precision)) => argument.chars().take(precision).collect(),
                _ => argument,
            };
            let spec = if letter == b'Q' { Spec { precision: None, ..spec } } else { spec };
            pad_text(&bytes::encode(&quote::backslashes(&argument)), &spec, out);
        }
        b'c' => {
            let argument = arguments.next().unwrap_or_default();
            let encoded = bytes::encode(&argument);
            let first = encoded.get(..1).map_or(&[0][..], |byte| byte);
            let spec = Spec { precision: None, ..spec };
            pad_text(first, &spec, out);
        }
        b'd' | b'i' => {
            let value = integer(shell, arguments, true);
            pad_signed(value, &spec, out);
        }
        b'u' | b'o' | b'x' | b'X' => {
            let value = integer(shell, arguments, false);
            pad_unsigned(value.cast_unsigned(), letter, &spec, out);
        }
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
            let value = float(shell, arguments);
            let text = super::time::format_float(value, letter, spec.precision, spec.alternate);
            pad_number(&text, &spec, out);
        }
        b'(' => {
            let end = tail.windows(2).position(|pair| pair == b")T");
            let Some(end) = end else {
                shell.complain("printf: `(': invalid format character");
                arguments.failed = true;
                return None;
            };
            let pattern = bytes::decode(tail.get(..end).unwrap_or_default());
            let seconds = match arguments.next().as_deref() {
                None | Some("-1" | "") => None,
                Some("-2") => Some(shell.seconds_from.div_euclid(1_000_000_000) as i64),
                Some(text) => match text.parse::<i64>() {
                    Ok(seconds) => Some(seconds),
                    Err(_) => {
                        shell.complain(format_args!("printf: {text}: invalid number"));
                        arguments.failed = true;
                        Some(0)
                    }
                },
            };
            let pattern = if pattern.is_empty() { "%X".to_owned() } else { pattern };
            let text = shell.format_local_time(&pattern, seconds);
            pad_text(text.as_bytes(), &spec, out);
            return tail.get(end + 2..);
        }
        b'n' => {
            let name = arguments.next().unwrap_or_default();
            if is_name(&name) {
                let _ = shell.assign(&name, out.len().to_string(), false);
            }
        }
        other => {
            shell.output.write(out);
            out.clear();
            shell.complain(format_args!("printf: `{}': invalid format character", bytes::decode(&[other])));
            arguments.failed = true;
            return None;
        }
    }
    Some(tail)
}

/// Digits, or `*` for the next argument.
fn number(shell: &mut Shell, rest: &mut &[u8], arguments: &mut Arguments<'_>) -> Option<i64> {
    if let Some(tail) = rest.strip_prefix(b"*") {
        *rest = tail;
        return Some(integer(shell, arguments, true));
    }
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, tail) = rest.split_at(count);
    *rest = tail;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn integer(shell: &mut Shell, arguments: &mut Arguments<'_>, signed: bool) -> i64 {
    let Some(text) = arguments.next() else { return 0 };
    if let Some(rest) = text.strip_prefix(['\'', '"']) {
        return rest.chars().next().map_or(0, |c| bytes::stray_byte(c).map_or(i64::from(u32::from(c)), i64::from));
    }
    let trimmed = text.trim_start();
    let (negative, digits) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let (radix, digits) = if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        (16, hex)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (8, &digits[1..])
    } else {
        (10, digits)
    };
    let used = digits.chars().take_while(|c| c.is_digit(radix)).count();
    let (valid, rest) = digits.split_at(used);
    let magnitude = if valid.is_empty() { Ok(0) } else { u128::from_str_radix(valid, radix) };
    if !rest.is_empty() || (valid.is_empty() && !(radix == 8 || text.is_empty())) {
        let said = if radix == 8 && rest.starts_with(['8', '9']) { "invalid octal number" } else { "invalid number" };
        if !(text.is_empty()) {
            shell.complain(format_args!("printf: {text}: {said}"));
            arguments.failed = true;
        }
    }
    let most = if signed { i128::from(i64::MAX) } else { i128::from(u64::MAX) };
    let least = if signed { i128::from(i64::MIN) } else { -i128::from(u64::MAX) };
    let magnitude = magnitude.ok().and_then(|value| i128::try_from(value).ok()).unwrap_or(i128::MAX);
    let value = if negative { -magnitude } else { magnitude };
    if value > most || value < least {
        shell.complain(format_args!("printf: warning: {text}: Numerical result out of range"));
        return match (signed, negative) {
            (true, true) => i64::MIN,
            (true, false) => i64::MAX,
            (false, _) => u64::MAX.cast_signed(),
        };
    }
    // Two's complement, so that `%u` of a negative number wraps.
    value as i64
}

fn float(shell: &mut Shell, arguments: &mut Arguments<'_>) -> f64 {
    let Some(text) = arguments.next() else { return 0.0 };
    if let Some(rest) = text.strip_prefix(['\'', '"']) {
        return rest.chars().next().map_or(0.0, |c| f64::from(u32::from(c)));
    }
    if text.is_empty() {
        return 0.0;
    }
    match super::time::parse_float(text.trim_start()) {
        (value, "") => value,
        (value, _) => {
            shell.complain(format_args!("printf: {text}: invalid number"));
            arguments.failed = true;
            value
        }
    }
}

fn pad_text(text: &[u8], spec: &Spec, out: &mut Vec<u8>) {
    let shown = match spec.precision {
        Some(precision) => text.get(..precision.min(text.len())).unwrap_or(text),
        None => text,
    };
    let room = spec.width.saturating_sub(shown.len());
    if !spec.minus {
        out.resize(out.len() + room, b' ');
    }
    out.extend_from_slice(shown);
    if spec.minus {
        out.resize(out.len() + room, b' ');
    }
}

fn pad_signed(value: i64, spec: &Spec, out: &mut Vec<u8>) {
    let digits = value.unsigned_abs().to_string();
    let sign = sign(value < 0, spec);
    pad_digits(sign, &digits, spec, out);
}

fn sign(negative: bool, spec: &Spec) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn pad_unsigned(value: u64, letter: u8, spec: &Spec, out: &mut Vec<u8>) {
    let (digits, prefix) = match letter {
        b'o' => (format!("{value:o}"), if spec.alternate && value != 0 { "0" } else { "" }),
        b'x' => (format!("{value:x}"), if spec.alternate && value != 0 { "0x" } else { "" }),
        b'X' => (format!("{value:X}"), if spec.alternate && value != 0 { "0X" } else { "" }),
        _ => (value.to_string(), ""),
    };
    pad_digits(prefix, &digits, spec, out);
}

fn pad_digits(prefix: &str, digits: &str, spec: &Spec, out: &mut Vec<u8>) {
    let mut digits = digits.to_owned();
    if let Some(precision) = spec.precision {
        if precision == 0 && digits == "0" {
            digits.clear();
        }
        while digits.len() < precision {
            digits.insert(0, '0');
        }
    } else if spec.zero && !spec.minus {
        let room = spec.width.saturating_sub(prefix.len() + digits.len());
        digits.insert_str(0, &"0".repeat(room));
    }
    let text = format!("{prefix}{digits}");
    pad_text(text.as_bytes(), &Spec { minus: spec.minus, width: spec.width, ..Spec::default() }, out);
}

/// A formatted float with its sign, zero padding and width.
fn pad_number(text: &str, spec: &Spec, out: &mut Vec<u8>) {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let sign = sign(negative, spec);
    let finite = digits.starts_with(|c: char| c.is_ascii_digit());
    if spec.zero && !spec.minus && finite {
        let room = spec.width.saturating_sub(sign.len() + digits.len());
        out.extend_from_slice(sign.as_bytes());
        out.resize(out.len() + room, b'0');
        out.extend_from_slice(digits.as_bytes());
        return;
    }
    let text = format!("{sign}{digits}");
    pad_text(text.as_bytes(), &Spec { minus: spec.minus, width: spec.width, ..Spec::default() }, out);
}
