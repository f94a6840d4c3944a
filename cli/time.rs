//! Formatting and parsing of times, durations and sizes.

use std::time::Duration;

use anyhow::Context as _;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};

/// The valid years of a date: the range of nanoseconds since 1970 in 64 bits, with a margin.
const YEARS: std::ops::RangeInclusive<i16> = 1970..=2200;

/// Returns the current time in nanoseconds since 1970.
pub(crate) fn now() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// Parses `10m`, `2h` or `3d` before `now`, or a date with an optional time, in UTC.
pub(crate) fn since(text: &str, now: i64) -> anyhow::Result<i64> {
    if let Ok(span) = text.parse::<Span>()
        && !span.is_negative()
        && let Ok(ago) = span.to_duration(SpanRelativeTo::days_are_24_hours())
    {
        let nanos = i64::try_from(ago.as_nanos()).ok();
        return nanos.map(|nanos| now.saturating_sub(nanos)).with_context(|| format!("`{text}` is too long ago"));
    }
    date(text).context("expected `10m`, `2h`, `3d` or a date such as 2026-11-16T08:30")
}

fn date(text: &str) -> Option<i64> {
    let date: DateTime = text.strip_suffix('Z').unwrap_or(text).parse().ok()?;
    let moment = TimeZone::UTC.to_timestamp(date).ok().filter(|_| YEARS.contains(&date.year()))?;
    i64::try_from(moment.as_nanosecond()).ok()
}

/// Formats a time as `2026-11-16 08:30:05`, in UTC.
pub(crate) fn moment(nanos: i64) -> String {
    let moment = Timestamp::from_nanosecond(nanos.into()).unwrap_or_default();
    moment.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Formats a duration as `350 µs`, `12 ms` or `3.2 s`.
pub(crate) fn span(duration: Duration) -> String {
    match duration.as_micros() {
        micros @ 0..1_000 => format!("{micros} µs"),
        micros @ 1_000..1_000_000 => format!("{} ms", micros / 1_000),
        micros @ 1_000_000..60_000_000 => format!("{}.{} s", micros / 1_000_000, micros / 100_000 % 10),
        micros => format!("{} min {} s", micros / 60_000_000, micros / 1_000_000 % 60),
    }
}

/// Formats a count as `1 file` or `3 files`.
pub(crate) fn count(number: impl TryInto<u64>, noun: &str) -> String {
    match (number.try_into().unwrap_or(u64::MAX), noun.strip_suffix("ry")) {
        (1, _) => format!("1 {noun}"),
        (number, Some(stem)) => format!("{number} {stem}ries"),
        (number, None) => format!("{number} {noun}s"),
    }
}

/// Formats a number of bytes as `712 B`, `4.0 KB` or `1.2 GB`.
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

    const NOW: i64 = 1_794_816_000_000_000_000;

    #[test]
    fn times_are_read_as_people_write_them() {
        let check = |text: &str, expected: &str| assert_eq!(moment(since(text, NOW).unwrap()), expected, "{text}");
        check("0s", "2026-11-16 08:00:00");
        check("10m", "2026-11-16 07:50:00");
        check("3d", "2026-11-13 08:00:00");
        check("2026-11-16", "2026-11-16 00:00:00");
        check("2024-02-29T23:59:58Z", "2024-02-29 23:59:58");
        check("2026-11-16 08:30", "2026-11-16 08:30:00");
        check("1h 30m", "2026-11-16 06:30:00");
        check("2w", "2026-11-02 08:00:00");
    }

    #[test]
    fn an_invalid_time_is_refused() {
        let days = ["2026-13-01", "2026-02-30", "2023-02-29", "2026-11-16T25:00", "0001-01-01", "9999-01-01"];
        for text in ["", "yesterday", "5", "5y", "-5m", "ü", "99999999999999999d"].into_iter().chain(days) {
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
