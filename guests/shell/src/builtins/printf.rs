//! `printf`.

use common::escape::{BASH_ARGUMENT, BASH_FORMAT, escape, unescape};
use common::float;
use common::printf::{self, Conversion, Sink};

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

/// Padding up to this length is built at once, a longer one when it is written.
const SHORT: usize = 4096;

/// Output: bytes, and long padding between them, which takes no memory.
#[derive(Debug, Default)]
struct Printed {
    bytes: Vec<u8>,
    /// Where in `bytes`, which byte, how often.
    padding: Vec<(usize, u8, usize)>,
}

impl Sink for Printed {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn fill(&mut self, byte: u8, count: usize) {
        if count <= SHORT {
            self.bytes.resize(self.bytes.len() + count, byte);
        } else {
            self.padding.push((self.bytes.len(), byte, count));
        }
    }
}

impl Printed {
    fn len(&self) -> usize {
        self.padding.iter().fold(self.bytes.len(), |length, (_, _, count)| length.saturating_add(*count))
    }

    /// Passes everything on in order, in pieces, until `take` refuses one.
    fn pour(&self, mut take: impl FnMut(&[u8]) -> bool) {
        let mut done = 0;
        for &(at, byte, count) in &self.padding {
            if !take(self.bytes.get(done..at).unwrap_or_default()) {
                return;
            }
            done = at;
            let piece = [byte; SHORT];
            let mut left = count;
            while left > 0 {
                let length = left.min(SHORT);
                if !take(piece.get(..length).unwrap_or_default()) {
                    return;
                }
                left -= length;
            }
        }
        take(self.bytes.get(done..).unwrap_or_default());
    }

    fn write(&self, shell: &mut Shell) {
        self.pour(|piece| {
            shell.output.write(piece);
            shell.output.failure.is_none()
        });
    }
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
    let mut out = Printed { bytes: Vec::with_capacity(64), padding: Vec::new() };
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
        None => out.write(shell),
        Some(name) => {
            let mut text = Vec::with_capacity(out.len());
            out.pour(|piece| {
                text.extend_from_slice(piece);
                true
            });
            let text = bytes::decode(&text);
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
fn round(shell: &mut Shell, format: &[u8], arguments: &mut Arguments<'_>, out: &mut Printed) -> bool {
    let mut rest = format;
    while let Some((&byte, tail)) = rest.split_first() {
        match byte {
            b'\\' => {
                refuse_missing_digits(shell, rest.get(..3).unwrap_or(rest));
                let used = escape(tail, BASH_FORMAT, &mut out.bytes).unwrap_or(0);
                rest = tail.get(used..).unwrap_or_default();
            }
            b'%' if tail.first() == Some(&b'%') => {
                out.bytes.push(b'%');
                rest = tail.get(1..).unwrap_or_default();
            }
            b'%' => match conversion(shell, tail, arguments, out) {
                Some(left) => rest = left,
                None => return false,
            },
            _ => {
                let plain = rest.iter().position(|&byte| byte == b'\\' || byte == b'%').unwrap_or(rest.len());
                let (head, left) = rest.split_at(plain);
                out.put(head);
                rest = left;
            }
        }
    }
    true
}

/// Complains of each `\x` without a digit, which stays as it is.
fn refuse_missing_digits(shell: &mut Shell, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        let tail = rest.get(at + 1..).unwrap_or_default();
        if tail.first() == Some(&b'x') && !tail.get(1).is_some_and(u8::is_ascii_hexdigit) {
            shell.complain("printf: missing hex digit for \\x");
        }
        rest = tail.get(1..).unwrap_or_default();
    }
}

fn conversion<'f>(shell: &mut Shell, text: &'f [u8], arguments: &mut Arguments<'_>, out: &mut Printed) -> Option<&'f [u8]> {
    let (mut spec, mut rest) = Conversion::flags(text);
    // C's library refuses a conversion that is wider than its numbers, and bash continues without it.
    let mut refused = false;
    match number(shell, &mut rest, arguments) {
        Size::Given(width) => {
            spec.left |= width < 0;
            spec.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        }
        Size::Absent => {}
        Size::TooLarge => refused = true,
    }
    if let Some(tail) = rest.strip_prefix(b".") {
        rest = tail;
        match number(shell, &mut rest, arguments) {
            Size::Given(precision) => spec.precision = usize::try_from(precision).ok(),
            Size::Absent => spec.precision = Some(0),
            Size::TooLarge => refused = true,
        }
    }
    let discarded = &mut Printed::default();
    if refused {
        (spec.width, spec.precision) = (0, None);
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
    let out = if refused { discarded } else { out };
    match letter {
        b's' => spec.text(&bytes::encode(&arguments.next().unwrap_or_default()), out),
        b'b' => {
            let argument = arguments.next().unwrap_or_default();
            let mut expanded = Vec::new();
            let argument = bytes::encode(&argument);
            refuse_missing_digits(shell, &argument);
            let go_on = unescape(&argument, BASH_ARGUMENT, &mut expanded);
            spec.text(&expanded, out);
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
            let spec = if letter == b'Q' { Conversion { precision: None, ..spec } } else { spec };
            spec.text(&bytes::encode(&quote::backslashes(&argument)), out);
        }
        b'c' => {
            let argument = arguments.next().unwrap_or_default();
            let encoded = bytes::encode(&argument);
            let first = encoded.get(..1).map_or(&[0][..], |byte| byte);
            spec.padded(first, first.len(), out);
        }
        b'd' | b'i' => {
            let value = integer(shell, arguments, true);
            spec.signed(value, out);
        }
        b'u' | b'o' | b'x' | b'X' => {
            let value = integer(shell, arguments, false);
            spec.unsigned(value.cast_unsigned(), letter, out);
        }
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
            let value = float(shell, arguments);
            spec.float(value, letter, out);
        }
        b'(' => {
            let closed = tail.iter().position(|&byte| byte == b')').and_then(|at| Some((at, *tail.get(at + 1)?)));
            let Some((end, kind)) = closed else {
                shell.complain("printf: `(': invalid format character");
                arguments.failed = true;
                return None;
            };
            if kind != b'T' {
                shell.complain(format_args!("printf: warning: `{}': invalid time format specification", char::from(kind)));
                // The text after the parenthesis is ordinary text.
                out.bytes.extend_from_slice(b"%(");
                return Some(tail);
            }
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
            spec.text(text.as_bytes(), out);
            return tail.get(end + 2..);
        }
        b'n' => {
            let name = arguments.next().unwrap_or_default();
            if is_name(&name) {
                let _ = shell.assign(&name, out.len().to_string(), false);
            }
        }
        other => {
            out.write(shell);
            *out = Printed::default();
            shell.complain(format_args!("printf: `{}': invalid format character", bytes::decode(&[other])));
            arguments.failed = true;
            return None;
        }
    }
    Some(tail)
}

/// A width or a precision.
enum Size {
    Absent,
    Given(i32),
    /// More than C's `int` holds.
    TooLarge,
}

/// Digits, or `*` for the next argument.
fn number(shell: &mut Shell, rest: &mut &[u8], arguments: &mut Arguments<'_>) -> Size {
    if let Some(tail) = rest.strip_prefix(b"*") {
        *rest = tail;
        let value = integer(shell, arguments, true);
        return Size::Given(i32::try_from(value).unwrap_or_else(|_| {
            // Bash, too, shows the argument that comes next.
            let shown = arguments.list.get(arguments.at).map_or("", String::as_str);
            shell.complain(format_args!("printf: warning: {shown}: Numerical result out of range"));
            if value < 0 { i32::MIN } else { i32::MAX }
        }));
    }
    let (size, tail) = printf::number(rest);
    *rest = tail;
    match size.map(i32::try_from) {
        None => Size::Absent,
        Some(size) => size.map_or(Size::TooLarge, Size::Given),
    }
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
    match float::parse(text.trim_start()) {
        (value, "") => value,
        (value, _) => {
            shell.complain(format_args!("printf: {text}: invalid number"));
            arguments.failed = true;
            value
        }
    }
}
