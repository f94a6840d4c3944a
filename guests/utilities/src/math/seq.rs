//! `seq`: numbers counted in exact decimals, so that `seq 0 0.1 1` ends where it should.

use common::float;
use common::printf::Conversion;

use crate::options::{self, Needs, No, Spec};
use crate::program::{self, Args, Outcome, Output, fail, missing_operand, usage};
use crate::quote;

/// A decimal: `units` over ten to the `places`.
#[derive(Clone, Copy)]
struct Decimal {
    units: i128,
    places: u32,
    /// Written with this many digits, sign included: what `-w` counts.
    width: usize,
    negative_zero: bool,
}

enum Operand {
    Exact(Decimal),
    Float(f64),
}

fn operand(text: &str) -> Option<Operand> {
    let trimmed = text.trim_start();
    let (negative, digits) = match (trimmed.strip_prefix('-'), trimmed.strip_prefix('+')) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => (false, trimmed),
    };
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) if !digits.starts_with("0x") && !digits.starts_with("0X") => {
            (&digits[..at], digits[at + 1..].parse::<i32>().ok()?)
        }
        _ => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let plain =
        !(whole.is_empty() && fraction.is_empty()) && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if plain && (-18..=18).contains(&exponent) && whole.trim_start_matches('0').len() + fraction.len() <= 30 {
        let places = fraction.len() as i32 - exponent;
        let mut units: i128 = format!("{whole}{fraction}").parse().ok()?;
        if places < 0 {
            units *= 10i128.pow(places.unsigned_abs());
        }
        let places = places.max(0).unsigned_abs();
        let width = if exponent == 0 {
            usize::from(negative)
                + whole.len().max(1)
                + if mantissa.contains('.') { usize::from(!fraction.is_empty()) + fraction.len() } else { 0 }
        } else {
            let digits = units.to_string().len().max(places as usize + 1);
            usize::from(negative) + digits + usize::from(places > 0)
        };
        return Some(Operand::Exact(Decimal {
            units: if negative { -units } else { units },
            places,
            width,
            negative_zero: negative && units == 0,
        }));
    }
    let value = float::parse_whole(trimmed)?;
    (!value.is_nan()).then_some(Operand::Float(value))
}

/// Runs `seq`.
pub fn main(args: Args) -> Outcome {
    let spec = Spec {
        short: "+f:s:w",
        long: &[("format", Needs, 'f'), ("separator", Needs, 's'), ("equal-width", No, 'w')],
        help: "[OPTION]... LAST",
    };
    let given = options::parse(protect_negatives(args), &spec)?;
    let operands: Vec<String> = given.operands.iter().map(|operand| operand.to_string_lossy().into_owned()).collect();
    let (first, step, last) = match operands.as_slice() {
        [] => return Err(missing_operand(None)),
        [last] => ("1", "1", last.as_str()),
        [first, last] => (first.as_str(), "1", last.as_str()),
        [first, step, last] => (first.as_str(), step.as_str(), last.as_str()),
        [_, _, _, extra, ..] => return Err(usage(format!("extra operand {}", quote::plain(extra)))),
    };
    let read = |text: &str| {
        if text.to_ascii_lowercase().contains("nan") {
            return Err(usage(format!("invalid ‘not-a-number’ argument: {}", quote::plain(text))));
        }
        operand(text).ok_or_else(|| usage(format!("invalid floating point argument: {}", quote::plain(text))))
    };
    let format = match given.value('f') {
        Some(value) => Some(Format::parse(&value.to_string_lossy())?),
        None => None,
    };
    if format.is_some() && given.has('w') {
        return Err(usage("format string may not be specified when printing equal width strings"));
    }
    let (first_value, step_value, last_value) = (read(first)?, read(step)?, read(last)?);
    if matches!(&step_value, Operand::Exact(Decimal { units: 0, .. }) | Operand::Float(0.0)) {
        return Err(usage(format!("invalid Zero increment value: {}", quote::plain(step))));
    }
    let separator = given.value('s').map_or_else(|| b"\n".to_vec(), |text| program::bytes(text).to_vec());
    let mut out = Output::new();
    match (first_value, step_value, last_value, format) {
        (Operand::Exact(first), Operand::Exact(step), Operand::Exact(last), None) => {
            exact(first, step, last, &separator, given.has('w'), &mut out)
        }
        (Operand::Exact(first), Operand::Exact(step), Operand::Float(last), None) if last.is_infinite() => {
            let far = if last > 0.0 { i128::MAX / 2 } else { i128::MIN / 2 };
            exact(
                first,
                step,
                Decimal { units: far, places: 0, width: 0, negative_zero: false },
                &separator,
                given.has('w'),
                &mut out,
            );
        }
        (first, step, last, format) => {
            floats([first, step, last].map(|operand| operand.value()), &separator, format.as_ref(), &mut out)
        }
    }
    Ok(0)
}

impl Operand {
    fn value(&self) -> f64 {
        match self {
            Self::Exact(decimal) => decimal.units as f64 / 10f64.powi(decimal.places.cast_signed()),
            Self::Float(value) => *value,
        }
    }
}

/// `-1` is an operand here, not an option.
fn protect_negatives(mut args: Args) -> Args {
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        let text = program::bytes(arg);
        let negative = text.len() > 1 && text[0] == b'-' && (text[1].is_ascii_digit() || text[1] == b'.');
        if negative {
            args.insert(at, "--".into());
            break;
        }
        if text == b"--" || !text.starts_with(b"-") {
            break;
        }
        at += if matches!(text, b"-s" | b"-f" | b"--separator" | b"--format") { 2 } else { 1 };
    }
    args
}

fn exact(first: Decimal, step: Decimal, last: Decimal, separator: &[u8], equal: bool, out: &mut Output) {
    let shown = first.places.max(step.places);
    let places = shown.max(last.places);
    let scale = |decimal: Decimal| decimal.units.saturating_mul(10i128.saturating_pow(places - decimal.places));
    let (mut value, step_units, last_units) = (scale(first), scale(step), scale(last));
    let infinite = last.width == 0;
    let width = if equal {
        let grow = |decimal: Decimal| {
            let own = if decimal.places == 0 { 0 } else { decimal.places as usize + 1 };
            decimal.width - own.min(decimal.width) + if shown == 0 { 0 } else { shown as usize + 1 }
        };
        let last_width = if infinite { 0 } else { grow(last) };
        grow(first).max(last_width)
    } else {
        0
    };
    if places == 0
        && step_units == 1
        && value >= 0
        && width == 0
        && !infinite
        && !first.negative_zero
        && last_units < i128::from(u64::MAX)
    {
        return count_up(value as u64, last_units, separator, out);
    }
    let mut any = false;
    let mut first_zero = first.negative_zero;
    let divisor = 10i128.pow(places - shown);
    while (step_units > 0 && value <= last_units) || (step_units < 0 && value >= last_units) {
        if any {
            out.put(separator);
        }
        any = true;
        let negative = value < 0 || std::mem::take(&mut first_zero);
        out.text(decimal_text(value / divisor, negative, shown, width));
        value = match value.checked_add(step_units) {
            Some(value) => value,
            None => break,
        };
    }
    if any {
        out.byte(b'\n');
    }
}

fn decimal_text(units: i128, negative: bool, places: u32, width: usize) -> String {
    let digits = units.unsigned_abs();
    let body = if places == 0 {
        digits.to_string()
    } else {
        let scale = 10u128.pow(places);
        format!("{}.{:0places$}", digits / scale, digits % scale, places = places as usize)
    };
    let sign = if negative { "-" } else { "" };
    let pad = width.saturating_sub(body.len() + sign.len());
    format!("{sign}{}{body}", "0".repeat(pad))
}

/// The common case: the digits themselves are counted up.
fn count_up(first: u64, last: i128, separator: &[u8], out: &mut Output) {
    if i128::from(first) > last {
        return;
    }
    let mut digits: Vec<u8> = first.to_string().into_bytes();
    let mut left = last - i128::from(first);
    loop {
        out.put(&digits);
        if left == 0 {
            break;
        }
        left -= 1;
        out.put(separator);
        let mut at = digits.len();
        loop {
            if at == 0 {
                digits.insert(0, b'1');
                break;
            }
            at -= 1;
            if digits[at] == b'9' {
                digits[at] = b'0';
            } else {
                digits[at] += 1;
                break;
            }
        }
    }
    out.byte(b'\n');
}

fn floats([first, step, last]: [f64; 3], separator: &[u8], format: Option<&Format>, out: &mut Output) {
    let mut index = 0.0;
    let mut any = false;
    loop {
        let value = first + index * step;
        // A hair past the end is still the end: 0.1 has no exact form.
        let slack = step.abs() * 1e-9;
        if (step > 0.0 && value > last + slack) || (step < 0.0 && value < last - slack) {
            break;
        }
        if any {
            out.put(separator);
        }
        any = true;
        match format {
            Some(format) => format.write(value, out),
            None => out.text(float::format(value, b'g', None, false)),
        }
        index += 1.0;
    }
    if any {
        out.byte(b'\n');
    }
}

/// A `printf` format with one number in it.
struct Format {
    before: String,
    after: String,
    conversion: Conversion,
    letter: u8,
}

impl Format {
    fn parse(text: &str) -> Result<Self, i32> {
        let mut before = String::new();
        let mut rest = text;
        loop {
            let Some(at) = rest.find('%') else {
                return Err(fail(format!("format {} has no % directive", quote::plain(text))));
            };
            before.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            match rest.strip_prefix('%') {
                Some(after) => {
                    before.push('%');
                    rest = after;
                }
                None => break,
            }
        }
        let Some((conversion, letter, after)) = conversion(rest) else {
            let bad = rest.trim_start_matches(|c: char| "-+#0 '".contains(c) || c.is_ascii_digit() || c == '.').chars().next();
            return Err(fail(match bad {
                None => format!("format {} ends in %", quote::plain(text)),
                Some(letter) => format!("format {} has unknown %{letter} directive", quote::plain(text)),
            }));
        };
        let unescaped = after.replace("%%", "\0");
        if unescaped.contains('%') {
            return Err(fail(format!("format {} has too many % directives", quote::plain(text))));
        }
        Ok(Self { before, after: unescaped.replace('\0', "%"), conversion, letter })
    }

    fn write(&self, value: f64, out: &mut Output) {
        out.text(&self.before);
        self.conversion.float(value, self.letter, out);
        out.text(&self.after);
    }
}

/// Reads what follows a `%`: one of `aefgAEFG` and what is before it; returns the rest, too.
fn conversion(text: &str) -> Option<(Conversion, u8, &str)> {
    let (conversion, rest) = Conversion::read(text.as_bytes());
    let rest = rest.strip_prefix(b"L").unwrap_or(rest);
    let &letter = rest.first().filter(|letter| b"aefgAEFG".contains(letter))?;
    // C's library refuses a conversion that is wider than its numbers.
    let fits = i32::try_from(conversion.width.max(conversion.precision.unwrap_or(0))).is_ok();
    fits.then(|| (conversion, letter, &text[text.len() - rest.len() + 1..]))
}
