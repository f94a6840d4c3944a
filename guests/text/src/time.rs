//! Dates without time zones but UTC: what `strftime`, `find -printf` and `tar -t` show.

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
#[must_use]
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468 + day - 1
}

/// The moment `seconds` after 1970.
#[must_use]
pub fn civil(seconds: i64) -> Civil {
    let day_number = seconds.div_euclid(86_400);
    let rest = seconds.rem_euclid(86_400);
    let shifted = day_number + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Civil {
        year,
        month: month as u32,
        day: day as u32,
        hour: (rest / 3600) as u32,
        minute: (rest / 60 % 60) as u32,
        second: (rest % 60) as u32,
        weekday: (day_number + 4).rem_euclid(7) as u32,
        yearday: (day_number - days(year, 1, 1)) as u32,
    }
}

/// ISO year and week.
fn iso_week(at: &Civil) -> (i64, i64) {
    let weekday = i64::from((at.weekday + 6) % 7);
    let week = (i64::from(at.yearday) - weekday + 10) / 7;
    let weeks_in = |year: i64| {
        let first = (days(year, 1, 1) + 3).rem_euclid(7);
        let leap = days(year + 1, 1, 1) - days(year, 1, 1) == 366;
        if first == 3 || leap && first == 2 { 53 } else { 52 }
    };
    if week < 1 {
        (at.year - 1, weeks_in(at.year - 1))
    } else if week > weeks_in(at.year) {
        (at.year + 1, 1)
    } else {
        (at.year, week)
    }
}

/// `strftime` in the C locale, in UTC.
#[must_use]
pub fn strftime(format: &[u8], seconds: i64) -> Vec<u8> {
    let at = civil(seconds);
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
            b'V' => pad(iso_week(&at).1, 2, '0'),
            b'G' => iso_week(&at).0.to_string(),
            b'g' => pad(iso_week(&at).0.rem_euclid(100), 2, '0'),
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
