//! Dates without time zones but UTC: what `strftime`, `find -printf` and `tar -t` show.

use sys::calendar;

/// A moment taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u32,
    /// Day of the month, 1 to 31.
    pub day: u32,
    /// Hour.
    pub hour: u32,
    /// Minute.
    pub minute: u32,
    /// Second.
    pub second: u32,
    /// Day of the week, 0 is Sunday.
    pub weekday: u32,
    /// Day of the year, from 0.
    pub yearday: u32,
}

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Days since 1970 of a date; months and days outside their range carry over.
pub use sys::calendar::to_days as days;

/// The moment `seconds` after 1970.
#[must_use]
pub fn civil(seconds: i64) -> Civil {
    let day_number = seconds.div_euclid(86_400);
    let rest = seconds.rem_euclid(86_400);
    let (year, month, day) = calendar::from_days(day_number);
    Civil {
        year,
        month,
        day,
        hour: (rest / 3600) as u32,
        minute: (rest / 60 % 60) as u32,
        second: (rest % 60) as u32,
        weekday: calendar::weekday(day_number),
        yearday: calendar::day_of_year(day_number),
    }
}

/// `strftime` in the C locale, in UTC.
#[must_use]
pub fn strftime(format: &[u8], seconds: i64) -> Vec<u8> {
    let at = civil(seconds);
    let (iso_year, iso_week) = calendar::iso_week(seconds.div_euclid(86_400));
    let mut out = Vec::new();
    let mut bytes = format.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut letter = bytes.next();
        let mut flag = None;
        if let Some(b'-' | b'_' | b'0' | b'^' | b'#' | b'E' | b'O') = letter {
            flag = letter;
            letter = bytes.next();
        }
        let Some(letter) = letter else {
            out.push(b'%');
            break;
        };
        let hour12 = if at.hour.is_multiple_of(12) { 12 } else { at.hour % 12 };
        let month = MONTHS[at.month as usize - 1];
        let weekday = DAYS[at.weekday as usize];
        let pad = |value: i64, width: usize, fill: char| match (flag, fill) {
            (Some(b'-'), _) => value.to_string(),
            (Some(b'_'), _) | (None, ' ') => format!("{value:width$}"),
            _ => format!("{value:0width$}"),
        };
        let again = |format: &str| String::from_utf8_lossy(&strftime(format.as_bytes(), seconds)).into_owned();
        let text = match letter {
            b'Y' => at.year.to_string(),
            b'C' => pad(at.year.div_euclid(100), 2, '0'),
            b'y' => pad(at.year.rem_euclid(100), 2, '0'),
            b'm' => pad(i64::from(at.month), 2, '0'),
            b'd' => pad(i64::from(at.day), 2, '0'),
            b'e' => pad(i64::from(at.day), 2, ' '),
            b'H' => pad(i64::from(at.hour), 2, '0'),
            b'k' => pad(i64::from(at.hour), 2, ' '),
            b'I' => pad(i64::from(hour12), 2, '0'),
            b'l' => pad(i64::from(hour12), 2, ' '),
            b'M' => pad(i64::from(at.minute), 2, '0'),
            b'S' => pad(i64::from(at.second), 2, '0'),
            b'j' => pad(i64::from(at.yearday) + 1, 3, '0'),
            b'a' => weekday[..3].to_string(),
            b'A' => weekday.to_string(),
            b'b' | b'h' => month[..3].to_string(),
            b'B' => month.to_string(),
            b'p' => if at.hour < 12 { "AM" } else { "PM" }.to_string(),
            b'P' => if at.hour < 12 { "am" } else { "pm" }.to_string(),
            b'u' => if at.weekday == 0 { 7 } else { at.weekday }.to_string(),
            b'w' => at.weekday.to_string(),
            b's' => seconds.to_string(),
            b'Z' => "UTC".to_string(),
            b'z' => "+0000".to_string(),
            b'n' => "\n".to_string(),
            b't' => "\t".to_string(),
            b'%' => "%".to_string(),
            b'T' | b'X' => again("%H:%M:%S"),
            b'D' | b'x' => again("%m/%d/%y"),
            b'F' => again("%Y-%m-%d"),
            b'R' => again("%H:%M"),
            b'r' => again("%I:%M:%S %p"),
            b'c' => again("%a %b %e %H:%M:%S %Y"),
            b'U' => pad((i64::from(at.yearday) + 7 - i64::from(at.weekday)) / 7, 2, '0'),
            b'W' => pad((i64::from(at.yearday) + 7 - i64::from((at.weekday + 6) % 7)) / 7, 2, '0'),
            b'V' => pad(iso_week.into(), 2, '0'),
            b'G' => iso_year.to_string(),
            b'g' => pad(iso_year.rem_euclid(100), 2, '0'),
            other => format!("%{}", char::from(other)),
        };
        let text = if flag == Some(b'^') { text.to_uppercase() } else { text };
        out.extend_from_slice(text.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_taken_apart() {
        let text = strftime(b"%Y-%m-%d %H:%M:%S %a %j %V %G %U", 1_700_000_000);
        assert_eq!(String::from_utf8_lossy(&text), "2023-11-14 22:13:20 Tue 318 46 2023 46");
    }

    #[test]
    fn dates_before_1970_work() {
        assert_eq!(days(1969, 12, 31), -1);
        assert_eq!(civil(-1).year, 1969);
        assert_eq!(civil(-1).second, 59);
    }
}
