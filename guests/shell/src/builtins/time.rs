//! Dates and floating-point numbers as C's library writes them.

use sys::calendar;

use crate::shell::Shell;
use crate::state::variables::Attributes;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/// A moment, broken down as the clocks of a zone show it.
struct Moment {
    seconds: i64,
    year: i64,
    month: usize,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    weekday: i64,
    year_day: i64,
    offset: i64,
    zone: String,
}

impl Moment {
    fn new(seconds: i64) -> Self {
        Self::in_zone(seconds, 0, "UTC")
    }

    fn in_zone(utc: i64, offset: i64, zone: &str) -> Self {
        let seconds = utc + offset;
        let days = seconds.div_euclid(86_400);
        let rest = seconds.rem_euclid(86_400);
        let (year, month, day) = calendar::from_days(days);
        Self {
            seconds: utc,
            offset,
            zone: zone.to_owned(),
            year,
            month: usize::try_from(month - 1).unwrap_or(0),
            day: day.into(),
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: calendar::weekday(days).into(),
            year_day: calendar::day_of_year(days).into(),
        }
    }

    /// The ISO year and week.
    fn iso_week(&self) -> (i64, i64) {
        let (year, week) = calendar::iso_week((self.seconds + self.offset).div_euclid(86_400));
        (year, week.into())
    }
}

/// The longest text that bash's `printf %()T` and prompts write.
const LONGEST_TIME: usize = 127;

impl Shell {
    /// `strftime` of a moment in seconds since 1970 (by default now), where TZ says: only an exported one counts.
    pub(crate) fn format_local_time(&mut self, format: &str, seconds: Option<i64>) -> String {
        let seconds = seconds.unwrap_or_else(|| i64::try_from(sys::now_ns().div_euclid(1_000_000_000)).unwrap_or(0));
        let exported = self.variables.get("TZ").filter(|variable| variable.attributes.has(Attributes::EXPORT));
        let moment = match exported.and_then(|variable| variable.scalar()) {
            Some(name) => {
                let zone = sys::zone::Zone::named(name);
                let (offset, name) = zone.at(seconds);
                Moment::in_zone(seconds, offset, name)
            }
            None => Moment::new(seconds),
        };
        let mut out = String::new();
        format_into(format, &moment, &mut out);
        if out.len() > LONGEST_TIME { String::new() } else { out }
    }
}

#[cfg(test)]
fn format_time(format: &str, seconds: Option<i64>) -> String {
    let mut out = String::new();
    format_into(format, &Moment::new(seconds.unwrap_or(0)), &mut out);
    out
}

fn format_into(format: &str, moment: &Moment, out: &mut String) {
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut flag = None;
        let mut letter = chars.next();
        if let Some(c @ ('-' | '_' | '0' | '^' | '#' | 'E' | 'O')) = letter {
            flag = Some(c);
            letter = chars.next();
        }
        let mut number = |value: i64, width: usize, pad: char| {
            let pad = match flag {
                Some('-') => None,
                Some('_') => Some(' '),
                Some('0') => Some('0'),
                _ => Some(pad),
            };
            let digits = value.to_string();
            if let Some(pad) = pad {
                for _ in digits.len()..width {
                    out.push(pad);
                }
            }
            out.push_str(&digits);
        };
        let hour12 = if moment.hour % 12 == 0 { 12 } else { moment.hour % 12 };
        let weekday = usize::try_from(moment.weekday).ok().and_then(|at| DAYS.get(at)).copied().unwrap_or_default();
        let month = MONTHS.get(moment.month).copied().unwrap_or_default();
        let month_number = i64::try_from(moment.month).unwrap_or(0) + 1;
        match letter {
            Some('Y') => number(moment.year, 1, '0'),
            Some('C') => number(moment.year / 100, 2, '0'),
            Some('y') => number(moment.year.rem_euclid(100), 2, '0'),
            Some('G') => number(moment.iso_week().0, 1, '0'),
            Some('g') => number(moment.iso_week().0.rem_euclid(100), 2, '0'),
            Some('V') => number(moment.iso_week().1, 2, '0'),
            Some('U') => number((moment.year_day + 7 - moment.weekday) / 7, 2, '0'),
            Some('W') => number((moment.year_day + 7 - (moment.weekday + 6) % 7) / 7, 2, '0'),
            Some('m') => number(month_number, 2, '0'),
            Some('d') => number(moment.day, 2, '0'),
            Some('e') => number(moment.day, 2, ' '),
            Some('j') => number(moment.year_day + 1, 3, '0'),
            Some('H') => number(moment.hour, 2, '0'),
            Some('k') => number(moment.hour, 2, ' '),
            Some('I') => number(hour12, 2, '0'),
            Some('l') => number(hour12, 2, ' '),
            Some('M') => number(moment.minute, 2, '0'),
            Some('S') => number(moment.second, 2, '0'),
            Some('s') => number(moment.seconds, 1, '0'),
            Some('u') => number(if moment.weekday == 0 { 7 } else { moment.weekday }, 1, '0'),
            Some('w') => number(moment.weekday, 1, '0'),
            Some('a') => out.push_str(&cased(weekday.get(..3).unwrap_or_default(), flag)),
            Some('A') => out.push_str(&cased(weekday, flag)),
            Some('b' | 'h') => out.push_str(&cased(month.get(..3).unwrap_or_default(), flag)),
            Some('B') => out.push_str(&cased(month, flag)),
            Some('p') => out.push_str(if moment.hour < 12 { "AM" } else { "PM" }),
            Some('P') => out.push_str(if moment.hour < 12 { "am" } else { "pm" }),
            Some('Z') => out.push_str(&moment.zone),
            Some('z') => {
                let (sign, minutes) = (if moment.offset < 0 { '-' } else { '+' }, moment.offset.abs() / 60);
                out.push_str(&format!("{sign}{:02}{:02}", minutes / 60, minutes % 60));
            }
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('%') => out.push('%'),
            Some('D' | 'x') => format_into("%m/%d/%y", moment, out),
            Some('F') => format_into("%Y-%m-%d", moment, out),
            Some('T' | 'X') => format_into("%H:%M:%S", moment, out),
            Some('R') => format_into("%H:%M", moment, out),
            Some('r') => format_into("%I:%M:%S %p", moment, out),
            Some('c') => format_into("%a %b %e %H:%M:%S %Y", moment, out),
            Some('+') => format_into("%a %b %e %H:%M:%S %p %Z %Y", moment, out),
            Some(other) => {
                out.push('%');
                out.push(other);
            }
            None => out.push('%'),
        }
    }
}

fn cased(text: &str, flag: Option<char>) -> String {
    if matches!(flag, Some('^' | '#')) { text.to_uppercase() } else { text.to_owned() }
}

/// The number at the start of a text, and what follows it.
pub(super) fn parse_float(text: &str) -> (f64, &str) {
    let lower = text.to_ascii_lowercase();
    let unsigned = lower.trim_start_matches(['+', '-']);
    if let Some(hex) = unsigned.strip_prefix("0x") {
        let used = hex.chars().take_while(char::is_ascii_hexdigit).count();
        let value = u64::from_str_radix(hex.get(..used).unwrap_or_default(), 16).unwrap_or(0) as f64;
        let value = if lower.starts_with('-') { -value } else { value };
        return (value, text.get(text.len() - (hex.len() - used)..).unwrap_or_default());
    }
    for (name, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if unsigned.starts_with(name) {
            let value = if lower.starts_with('-') { -value } else { value };
            return (value, text.get(text.len() - (unsigned.len() - name.len())..).unwrap_or_default());
        }
    }
    // The longest start that is a number.
    let bytes = text.as_bytes();
    let mut end = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let mut best = 0;
    let (mut digits, mut dot, mut exponent) = (false, false, false);
    while let Some(&byte) = bytes.get(end) {
        match byte {
            b'0'..=b'9' => {
                digits = true;
                best = end + 1;
            }
            b'.' if !dot && !exponent => {
                dot = true;
                if digits {
                    best = end + 1;
                }
            }
            b'e' | b'E' if digits && !exponent => {
                exponent = true;
                if matches!(bytes.get(end + 1), Some(b'+' | b'-')) {
                    end += 1;
                }
            }
            _ => break,
        }
        end += 1;
    }
    let (number, rest) = text.split_at(best);
    (number.parse().unwrap_or(0.0), rest)
}

/// `%e`, `%f`, `%g`, `%a` as C writes them, without width.
pub(super) fn format_float(value: f64, letter: u8, precision: Option<usize>, alternate: bool) -> String {
    let upper = letter.is_ascii_uppercase();
    let text = if value.is_nan() {
        if value.is_sign_negative() { "-nan".to_owned() } else { "nan".to_owned() }
    } else if value.is_infinite() {
        if value < 0.0 { "-inf".to_owned() } else { "inf".to_owned() }
    } else {
        let precision_or = precision.unwrap_or(6);
        match letter.to_ascii_lowercase() {
            b'f' => {
                let mut text = sys::decimal::fixed(value, precision_or);
                if alternate && precision_or == 0 {
                    text.push('.');
                }
                text
            }
            b'e' => exponential(value, precision_or, alternate),
            b'a' => hexadecimal(value, precision, alternate),
            _ => general(value, precision_or.max(1), alternate),
        }
    };
    if upper { text.to_uppercase() } else { text }
}

fn exponential(value: f64, precision: usize, alternate: bool) -> String {
    let text = sys::decimal::scientific(value, precision);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = if alternate && precision == 0 { "." } else { "" };
    format!("{mantissa}{point}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn general(value: f64, precision: usize, alternate: bool) -> String {
    let text = sys::decimal::scientific(value, precision - 1);
    let exponent: i32 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let trim = |text: String| {
        if alternate || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if exponent < -4 || exponent >= i32::try_from(precision).unwrap_or(i32::MAX) {
        let text = exponential(value, precision - 1, alternate);
        let (mantissa, rest) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{rest}", trim(mantissa.to_owned()));
    }
    let digits = usize::try_from(i32::try_from(precision).unwrap_or(i32::MAX) - 1 - exponent).unwrap_or(0);
    trim(sys::decimal::fixed(value, digits))
}

/// `%a` as C writes a `long double`, whose first digit is 8 or more.
fn hexadecimal(value: f64, precision: Option<usize>, alternate: bool) -> String {
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
    fn dates_are_those_of_the_calendar() {
        assert_eq!(format_time("%F %T %a %j %V", Some(0)), "1970-01-01 00:00:00 Thu 001 01");
        assert_eq!(format_time("%F %T", Some(1_709_210_096)), "2024-02-29 12:34:56");
        assert_eq!(format_time("%G-%V", Some(1_609_459_200)), "2020-53");
    }

    #[test]
    fn floats_are_written_as_c_writes_them() {
        assert_eq!(format_float(5.4321, b'f', Some(2), false), "5.43");
        assert_eq!(format_float(1e10, b'g', None, false), "1e+10");
        assert_eq!(format_float(0.0001, b'g', None, false), "0.0001");
        assert_eq!(format_float(12345.678, b'e', Some(3), false), "1.235e+04");
    }
}
