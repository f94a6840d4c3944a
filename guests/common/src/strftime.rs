//! `strftime` in the C locale, with GNU's flags and widths.

use sys::calendar;
use sys::zone::Zone;

/// Nanoseconds of a second.
const SECOND: i128 = 1_000_000_000;

/// Names of the days of a week.
pub const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// Names of the months of a year.
pub const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/// Whose `strftime` it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The C library's, which bash calls.
    Library,
    /// That of GNU's programs: years have four digits, and there are `%N`, `%q`, `%:z` and the flag `+`.
    Program,
}

struct Moment<'a> {
    dialect: Dialect,
    days: i64,
    year: i64,
    month: u32,
    day: u32,
    hour: i64,
    minute: i64,
    second: i64,
    nanosecond: i128,
    epoch: i64,
    offset: i64,
    zone: &'a str,
}

#[derive(Clone, Copy, Default)]
struct Flags {
    pad: Option<char>,
    upper: bool,
    swap: bool,
    plus: bool,
    colons: usize,
    width: Option<usize>,
}

/// Writes a moment, in nanoseconds since 1970, in a format. An unknown directive is copied.
#[must_use]
pub fn format(format: &[u8], time: i128, zone: &Zone, dialect: Dialect) -> Vec<u8> {
    let epoch = time.div_euclid(SECOND) as i64;
    let (offset, name) = zone.at(epoch);
    let local = epoch + offset;
    let (days, seconds) = (local.div_euclid(86400), local.rem_euclid(86400));
    let (year, month, day) = calendar::from_days(days);
    let moment = Moment {
        dialect,
        days,
        year,
        month,
        day,
        hour: seconds / 3600,
        minute: seconds / 60 % 60,
        second: seconds % 60,
        nanosecond: time.rem_euclid(SECOND),
        epoch,
        offset,
        zone: name,
    };
    let mut out = Vec::new();
    moment.write(format, &mut out);
    out
}

impl Moment<'_> {
    fn write(&self, format: &[u8], out: &mut Vec<u8>) {
        let mut at = 0;
        while let Some(&byte) = format.get(at) {
            if byte != b'%' {
                out.push(byte);
                at += 1;
                continue;
            }
            let start = at;
            at += 1;
            let mut flags = Flags::default();
            while let Some(&flag) = format.get(at) {
                match flag {
                    b'_' | b'-' | b'0' => flags.pad = Some(char::from(flag)),
                    b'+' if self.dialect == Dialect::Program => (flags.pad, flags.plus) = (Some('0'), true),
                    b'^' => flags.upper = true,
                    b'#' => flags.swap = true,
                    _ => break,
                }
                at += 1;
            }
            let digits = format[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 0 {
                flags.width = std::str::from_utf8(&format[at..at + digits]).ok().map(|text| text.parse().unwrap_or(usize::MAX));
                at += digits;
            }
            while format.get(at) == Some(&b':') && self.dialect == Dialect::Program {
                flags.colons += 1;
                at += 1;
            }
            if matches!(format.get(at), Some(b'E' | b'O')) {
                at += 1;
            }
            let Some(&letter) = format.get(at) else {
                out.extend_from_slice(&format[start..]);
                return;
            };
            at += 1;
            if !self.directive(letter, flags, out) {
                out.extend_from_slice(&format[start..at]);
            }
        }
    }

    fn directive(&self, letter: u8, flags: Flags, out: &mut Vec<u8>) -> bool {
        let weekday = calendar::weekday(self.days);
        let yday = calendar::day_of_year(self.days);
        let hour12 = if self.hour % 12 == 0 { 12 } else { self.hour % 12 };
        let number = |value: i64, width: usize, pad: char| Some(numeric(value, width, pad, flags));
        let text = |text: &str| Some(textual(text, flags));
        let nested = |format: &str| {
            let mut inner = Vec::new();
            self.write(format.as_bytes(), &mut inner);
            Some(textual(&String::from_utf8_lossy(&inner), flags))
        };
        let program = self.dialect == Dialect::Program;
        let year_width = if program { 4 } else { 1 };
        let written = match letter {
            b'N' | b'q' if !program => None,
            b'%' => text("%"),
            b'n' => text("\n"),
            b't' => text("\t"),
            b'a' => text(&DAYS[weekday as usize][..3]),
            b'A' => text(DAYS[weekday as usize]),
            b'b' | b'h' => text(&MONTHS[self.month as usize - 1][..3]),
            b'B' => text(MONTHS[self.month as usize - 1]),
            b'c' => nested("%a %b %e %H:%M:%S %Y"),
            b'C' => number(self.year.div_euclid(100), if program { 2 } else { 1 }, '0'),
            b'd' => number(self.day.into(), 2, '0'),
            b'D' | b'x' => nested("%m/%d/%y"),
            b'e' => number(self.day.into(), 2, '_'),
            b'F' => {
                let mut inner = Vec::new();
                self.write(b"-%m-%d", &mut inner);
                let year = numeric(
                    self.year,
                    flags.width.map_or(year_width, |width| width.saturating_sub(6)),
                    '0',
                    Flags { width: None, pad: None, ..flags },
                );
                Some(year + &String::from_utf8_lossy(&inner))
            }
            b'g' => number(calendar::iso_week(self.days).0.rem_euclid(100), 2, '0'),
            b'G' => number(calendar::iso_week(self.days).0, year_width, '0'),
            b'H' => number(self.hour, 2, '0'),
            b'I' => number(hour12, 2, '0'),
            b'j' => number(i64::from(yday) + 1, 3, '0'),
            b'k' => number(self.hour, 2, '_'),
            b'l' => number(hour12, 2, '_'),
            b'm' => number(self.month.into(), 2, '0'),
            b'M' => number(self.minute, 2, '0'),
            b'N' => Some(self.fraction(flags)),
            b'p' | b'P' => {
                let half = if self.hour < 12 { "AM" } else { "PM" };
                if letter == b'P' || flags.swap {
                    Some(textual(&half.to_lowercase(), Flags { swap: false, ..flags }))
                } else {
                    text(half)
                }
            }
            b'q' => number(i64::from(self.month - 1) / 3 + 1, 1, '0'),
            b'r' => nested("%I:%M:%S %p"),
            b'R' => nested("%H:%M"),
            b's' => number(self.epoch, 1, '0'),
            b'S' => number(self.second, 2, '0'),
            b'T' | b'X' => nested("%H:%M:%S"),
            b'u' => number(if weekday == 0 { 7 } else { weekday.into() }, 1, '0'),
            b'U' => number((i64::from(yday) + 7 - i64::from(weekday)) / 7, 2, '0'),
            b'V' => number(calendar::iso_week(self.days).1.into(), 2, '0'),
            b'w' => number(weekday.into(), 1, '0'),
            b'W' => number((i64::from(yday) + 7 - (i64::from(weekday) + 6) % 7) / 7, 2, '0'),
            b'y' => number(self.year.rem_euclid(100), 2, '0'),
            b'Y' => number(self.year, year_width, '0'),
            b'z' => self.offset_text(flags),
            b'Z' => {
                if flags.swap {
                    Some(textual(&self.zone.to_lowercase(), Flags { swap: false, ..flags }))
                } else {
                    text(self.zone)
                }
            }
            _ => None,
        };
        match written {
            Some(text) if flags.colons == 0 || letter == b'z' => {
                out.extend_from_slice(text.as_bytes());
                true
            }
            _ => false,
        }
    }

    fn fraction(&self, flags: Flags) -> String {
        let all = format!("{:09}", self.nanosecond);
        let width = flags.width.unwrap_or(9);
        if flags.pad == Some('-') {
            let trimmed = all.get(..width.min(9)).unwrap_or(&all).trim_end_matches('0');
            return if trimmed.is_empty() { "0".into() } else { trimmed.to_owned() };
        }
        if width <= 9 { all[..width].to_owned() } else { all.chars().chain(std::iter::repeat_n('0', width - 9)).collect() }
    }

    fn offset_text(&self, flags: Flags) -> Option<String> {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let size = self.offset.abs();
        let (hours, minutes, seconds) = (size / 3600, size / 60 % 60, size % 60);
        let tail = match flags.colons {
            0 => format!("{minutes:02}"),
            1 => format!(":{minutes:02}"),
            2 => format!(":{minutes:02}:{seconds:02}"),
            3 if seconds != 0 => format!(":{minutes:02}:{seconds:02}"),
            3 if minutes != 0 => format!(":{minutes:02}"),
            3 => String::new(),
            _ => return None,
        };
        let digits = format!("{hours:02}{tail}");
        let short = digits.strip_prefix('0').unwrap_or(&digits);
        let width = flags.width.unwrap_or(0).max(1 + digits.len());
        Some(match flags.pad {
            Some('-') => format!("{sign}{short}"),
            Some('_') => sys::padding::right(format_args!("{sign}{short}"), width),
            _ => format!("{sign}{}", sys::padding::zeros(digits, width - 1)),
        })
    }
}

fn numeric(value: i64, width: usize, pad: char, flags: Flags) -> String {
    let pad = flags.pad.unwrap_or(pad);
    let width = flags.width.unwrap_or(width);
    let digits = value.unsigned_abs().to_string();
    let sign = if value < 0 {
        "-"
    } else if flags.plus && digits.len() > 4 {
        "+"
    } else {
        ""
    };
    match pad {
        '-' => format!("{sign}{digits}"),
        '_' => sys::padding::right(format_args!("{sign}{digits}"), width),
        _ => format!("{sign}{}", sys::padding::zeros(digits, width.saturating_sub(sign.len()))),
    }
}

fn textual(text: &str, flags: Flags) -> String {
    let text = if flags.upper || flags.swap { text.to_uppercase() } else { text.to_owned() };
    let width = flags.width.unwrap_or(0);
    match flags.pad {
        Some('0') => sys::padding::zeros(text, width),
        Some('-') => text,
        _ => sys::padding::right(text, width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(directive: &str, time: i128, dialect: Dialect, expected: &str) {
        let text = format(directive.as_bytes(), time, &Zone::utc(), dialect);
        assert_eq!(String::from_utf8_lossy(&text), expected, "{directive}");
    }

    #[test]
    fn directives_print_as_gnu_prints_them() {
        for (directive, text) in [
            ("%F %T", "2023-11-14 22:13:20"),
            ("%j %U %V %W %u %w", "318 46 46 46 2 2"),
            ("%-d|%_m|%03d|%^a|%#Z", "14|11|014|TUE|utc"),
            ("%s.%N %3N", "1700000000.000000005 000"),
            ("%z %:z %::z %:::z", "+0000 +00:00 +00:00:00 +00"),
            ("%I %p %P %k %l", "10 PM pm 22 10"),
            ("%Q %", "%Q %"),
            ("%Y-%m-%d %H:%M:%S %a %j %V %G %U", "2023-11-14 22:13:20 Tue 318 46 2023 46"),
        ] {
            check(directive, 1_700_000_000 * SECOND + 5, Dialect::Program, text);
        }
    }

    #[test]
    fn the_library_knows_less() {
        check("%F %T %a %j %V", 0, Dialect::Library, "1970-01-01 00:00:00 Thu 001 01");
        check("%F %T", 1_709_210_096 * SECOND, Dialect::Library, "2024-02-29 12:34:56");
        check("%G-%V", 1_609_459_200 * SECOND, Dialect::Library, "2020-53");
        check("%Y %C %G %F %N %q %:z %+", -60_000_000_000 * SECOND, Dialect::Library, "68 0 68 68-09-03 %N %q %:z %+");
        check("%Y %F", -60_000_000_000 * SECOND, Dialect::Program, "0068 0068-09-03");
    }

    #[test]
    fn dates_before_1970_work() {
        assert_eq!(calendar::to_days(1969, 12, 31), -1);
        check("%Y %S", -SECOND, Dialect::Program, "1969 59");
    }
}
