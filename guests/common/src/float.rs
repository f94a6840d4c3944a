//! Floating-point numbers as C's library reads and writes them.

/// Reads the number at the start of a text as `strtold` does: decimal, hexadecimal, `inf` or `nan`.
///
/// Returns it with what follows it; 0 with all of the text if there is no number.
#[must_use]
pub fn parse(text: &str) -> (f64, &str) {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match magnitude(unsigned) {
        Some((value, rest)) if text.starts_with('-') => (-value, rest),
        Some(found) => found,
        None => (0.0, text),
    }
}

/// Reads a text that is a number from end to end.
#[must_use]
pub fn parse_whole(text: &str) -> Option<f64> {
    match parse(text) {
        (value, "") if !text.is_empty() => Some(value),
        _ => None,
    }
}

fn magnitude(text: &str) -> Option<(f64, &str)> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
        && let Some(found) = hexadecimal(digits)
    {
        return Some(found);
    }
    for (name, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if let Some((start, rest)) = text.split_at_checked(name.len())
            && start.eq_ignore_ascii_case(name)
        {
            return Some((value, rest));
        }
    }
    let (mantissa, rest) = text.split_at(mantissa(text, |byte| byte.is_ascii_digit())?);
    let (exponent, rest) = rest.split_at(exponent(rest, b'e'));
    Some((format!("{mantissa}{exponent}").parse().unwrap_or(0.0), rest))
}

fn hexadecimal(text: &str) -> Option<(f64, &str)> {
    let (digits, rest) = text.split_at(mantissa(text, |byte| byte.is_ascii_hexdigit())?);
    let (power, rest) = rest.split_at(exponent(rest, b'p'));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digit = |c: char| f64::from(c.to_digit(16).unwrap_or(0));
    let whole = whole.chars().fold(0.0, |value, c| value * 16.0 + digit(c));
    let fraction = fraction.chars().rev().fold(0.0, |value, c| (value + digit(c)) / 16.0);
    let power = power.get(1..).map_or(0, |power| power.parse().unwrap_or(i32::MAX));
    Some(((whole + fraction) * 2f64.powi(power), rest))
}

/// Returns the length of digits with at most one point among them; `None` without a digit.
fn mantissa(text: &str, is_digit: impl Fn(u8) -> bool) -> Option<usize> {
    let mut point = false;
    let length = text.bytes().take_while(|&byte| is_digit(byte) || byte == b'.' && !std::mem::replace(&mut point, true)).count();
    text.bytes().take(length).any(is_digit).then_some(length)
}

/// Returns the length of an exponent: a letter, perhaps a sign, digits; 0 if there is none.
fn exponent(text: &str, letter: u8) -> usize {
    let [first, rest @ ..] = text.as_bytes() else { return 0 };
    let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
    let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if first.eq_ignore_ascii_case(&letter) && digits > 0 { 1 + sign + digits } else { 0 }
}

/// Writes a number as the conversion `letter` (one of `efgaEFGA`) does, without width.
#[must_use]
pub fn format(value: f64, letter: u8, precision: Option<usize>, alternate: bool) -> String {
    let digits = precision.unwrap_or(6);
    let text = match letter.to_ascii_lowercase() {
        _ if value.is_nan() => if value.is_sign_negative() { "-nan" } else { "nan" }.to_owned(),
        _ if value.is_infinite() => if value < 0.0 { "-inf" } else { "inf" }.to_owned(),
        b'f' if alternate && digits == 0 => sys::decimal::fixed(value, 0) + ".",
        b'f' => sys::decimal::fixed(value, digits),
        b'e' => exponential(value, digits, alternate),
        b'a' => hexadecimal_text(value, precision, alternate),
        _ => general(value, digits, alternate),
    };
    if letter.is_ascii_uppercase() { text.to_uppercase() } else { text }
}

fn exponential(value: f64, precision: usize, alternate: bool) -> String {
    let text = sys::decimal::scientific(value, precision);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = if alternate && precision == 0 { "." } else { "" };
    format!("{mantissa}{point}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Writes a finite number as `%g` does, with so many significant digits; `alternate` keeps trailing zeros.
#[must_use]
pub fn general(value: f64, precision: usize, alternate: bool) -> String {
    let precision = precision.max(1);
    let text = sys::decimal::scientific(value, precision - 1);
    let exponent: i32 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let trim = |text: String| {
        if alternate || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let most = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= most {
        let text = exponential(value, precision - 1, alternate);
        let (mantissa, rest) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{rest}", trim(mantissa.to_owned()));
    }
    trim(sys::decimal::fixed(value, usize::try_from(most - 1 - exponent).unwrap_or(0)))
}

/// Returns `%a` as C writes a `long double`, whose first digit is 8 or more.
fn hexadecimal_text(value: f64, precision: Option<usize>, alternate: bool) -> String {
    let bits = value.to_bits();
    let sign = if bits >> 63 == 1 { "-" } else { "" };
    let exponent = i64::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    let fraction = bits & 0xf_ffff_ffff_ffff;
    let (mantissa, mut exponent) = match (exponent, fraction) {
        (0, 0) => (0, 0),
        // A `long double` has room to make the smallest numbers normal.
        (0, _) => (fraction << fraction.leading_zeros(), 1 - 1023 - 3 + 11 - i64::from(fraction.leading_zeros())),
        _ => ((1 << 63) | fraction << 11, exponent - 1023 - 3),
    };
    let mut digits = u128::from(mantissa);
    if let Some(cut) = precision.and_then(|precision| 15usize.checked_sub(precision)) {
        let unit = 1u128 << (4 * cut);
        let (kept, rest) = (digits / unit, digits % unit);
        let up = rest * 2 > unit || (rest * 2 == unit && kept % 2 == 1);
        digits = (kept + u128::from(up)) * unit;
        if digits >> 64 != 0 {
            digits >>= 4;
            exponent += 4;
        }
    }
    let digits = format!("{digits:016x}");
    let (first, rest) = digits.split_at(1);
    let mut rest = match precision {
        None => rest.trim_end_matches('0').to_owned(),
        Some(precision) => rest.get(..precision).unwrap_or(rest).to_owned(),
    };
    rest.extend(std::iter::repeat_n('0', precision.unwrap_or(0).saturating_sub(rest.len())));
    let point = if rest.is_empty() && !alternate { "" } else { "." };
    format!("{sign}0x{first}{point}{rest}p{}{}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_c_writes_them() {
        assert_eq!(format(5.4321, b'f', Some(2), false), "5.43");
        assert_eq!(format(1e10, b'g', None, false), "1e+10");
        assert_eq!(format(0.0001, b'g', None, false), "0.0001");
        assert_eq!(format(12345.678, b'e', Some(3), false), "1.235e+04");
        assert_eq!(format(1.0, b'a', None, false), "0x8p-3");
        assert_eq!(format(f64::NEG_INFINITY, b'G', None, false), "-INF");
    }

    #[test]
    fn general_form_is_c() {
        for (value, text) in
            [(1.0, "1"), (1_000_000.0, "1e+06"), (0.0001, "0.0001"), (0.00001, "1e-05"), (1.5, "1.5"), (123_456.7, "123457")]
        {
            assert_eq!(general(value, 6, false), text);
        }
    }

    #[test]
    fn numbers_are_read_as_strtold_reads_them() {
        for (text, value, rest) in [
            ("12.5e1x", 125.0, "x"),
            ("-.5", -0.5, ""),
            ("5.", 5.0, ""),
            ("1e", 1.0, "e"),
            ("1e+", 1.0, "e+"),
            ("0x1.8p1", 3.0, ""),
            ("-0xFFg", -255.0, "g"),
            ("0xg", 0.0, "xg"),
            ("INFx", f64::INFINITY, "x"),
            ("+-1", 0.0, "+-1"),
            (".", 0.0, "."),
            ("1.2.3", 1.2, ".3"),
        ] {
            assert_eq!(parse(text), (value, rest), "{text}");
        }
        assert!(parse("nan").0.is_nan());
        assert_eq!([parse_whole("1e3"), parse_whole("1e"), parse_whole("")], [Some(1000.0), None, None]);
    }
}
