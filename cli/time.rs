//! Moments and spans as people write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};

const NANOS: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Now, in nanoseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// A moment that lies `10m`, `2h` or `3d` before `now`, or a date with or without a time, in UTC.
pub(crate) fn since(text: &str, now: i64) -> anyhow::Result<i64> {
    let ago = |seconds: i64| seconds.checked_mul(NANOS).map(|nanos| now.saturating_sub(nanos));
    if let Some((number, unit)) = text.split_at_checked(text.len().saturating_sub(1))
        && let Ok(number) = number.trim().parse::<i64>()
        && number >= 0
    {
        let length = match unit {
            "s" => Some(1),
            "m" => Some(60),
            "h" => Some(3_600),
            "d" => Some(DAY),
            "w" => Some(7 * DAY),
            _ => None,
        };
        if let Some(length) = length {
            return number.checked_mul(length).and_then(ago).with_context(|| format!("`{text}` is too long ago"));
        }
    }
    date(text).map_err(|_| anyhow::anyhow!("say `10m`, `2h`, `3d` or a date such as 2026-11-16T08:30"))
}

fn date(text: &str) -> anyhow::Result<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let numbers = |text: &str, separator| -> Result<Vec<i64>, _> { text.split(separator).map(str::parse).collect() };
    let [year, month, day] = numbers(date, '-')?.try_into().ok().context("a date is YEAR-MONTH-DAY")?;
    let time = numbers(time, ':')?;
    let (hour, minute, second) = match time[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => bail!("a time is HOUR:MINUTE"),
    };
    let sane = (1970..=2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sane || !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..61).contains(&second) {
        bail!("there is no such moment");
    }
    let seconds = days_from_civil(year, month, day) * DAY + hour * 3_600 + minute * 60 + second;
    Ok(seconds * NANOS)
}

// Days since 1970-01-01 of the Gregorian calendar: years begin in March, so that the leap day is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// A moment as `2026-11-16 08:30:05`, in UTC.
pub(crate) fn moment(nanos: i64) -> String {
    let seconds = nanos.div_euclid(NANOS);
    let (days, second) = (seconds.div_euclid(DAY) + 719_468, seconds.rem_euclid(DAY));
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}

/// A span as `350 µs`, `12 ms` or `3.2 s`.
pub(crate) fn span(duration: Duration) -> String {
    match duration.as_micros() {
        micros @ 0..1_000 => format!("{micros} µs"),
        micros @ 1_000..1_000_000 => format!("{} ms", micros / 1_000),
        micros @ 1_000_000..60_000_000 => format!("{}.{} s", micros / 1_000_000, micros / 100_000 % 10),
        micros => format!("{} min {} s", micros / 60_000_000, micros / 1_000_000 % 60),
    }
}

/// A number of bytes as `712 B`, `4.0 KB` or `1.2 GB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["KB", "MB", "GB", "TB"];
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = None;
    for name in units {
        if tenths < 10_240 {
            break;
        }
        tenths = tenths.div_ceil(1_024);
        unit = Some(name);
    }
    match unit {
        None => format!("{bytes} B"),
        Some(unit) => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_794_816_000 * NANOS;

    #[test]
    fn times_are_read_as_people_write_them() {
        let check = |text: &str, expected: &str| assert_eq!(moment(since(text, NOW).unwrap()), expected, "{text}");
        check("0s", "2026-11-16 08:00:00");
        check("10m", "2026-11-16 07:50:00");
        check("3d", "2026-11-13 08:00:00");
        check("2026-11-16", "2026-11-16 00:00:00");
        check("2024-02-29T23:59:58Z", "2024-02-29 23:59:58");
        check("2026-11-16 08:30", "2026-11-16 08:30:00");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "yesterday", "5", "5y", "-5m", "2026-13-01", "2026-11-16T25:00", "ü", "99999999999999999d"] {
            assert!(since(text, NOW).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!([size(0), size(1023), size(1024), size(1536), size(5 << 30)], ["0 B", "1023 B", "1.0 KB", "1.5 KB", "5.0 GB"]);
        let spans = [5, 5_000, 1_250_000, 90_000_000].map(|micros| span(Duration::from_micros(micros)));
        assert_eq!(spans, ["5 µs", "5 ms", "1.2 s", "1 min 30 s"]);
    }
}
