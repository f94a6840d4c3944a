//! Dates as C's library writes them.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(format_time("%F %T %a %j %V", Some(0)), "1970-01-01 00:00:00 Thu 001 01");
        assert_eq!(format_time("%F %T", Some(1_709_210_096)), "2024-02-29 12:34:56");
        assert_eq!(format_time("%G-%V", Some(1_609_459_200)), "2020-53");
    }
}
