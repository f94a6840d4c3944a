//! Durations in Go's format: `1.5s`, `2m0s`, `1h0m0s`, `150ms`.

use std::time::Duration;

const NANOS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a duration such as `60s`, `1m30s` or `1.5h`. Returns `None` for anything else, including negative durations.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut total) = (text, 0u64);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (digits, after) = rest.split_at(number);
        let unit = after.len() - after.trim_start_matches(|c: char| !c.is_ascii_digit() && c != '.').len();
        let (unit, after) = after.split_at(unit);
        let (_, nanos) = NANOS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(digits, *nanos)?)?;
        rest = after;
    }
    Some(Duration::from_nanos(total))
}

// A decimal number of units, in nanoseconds.
fn scaled(digits: &str, nanos: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let (mut part, mut unit) = (0u64, nanos);
    for digit in fraction.bytes() {
        unit /= 10;
        part = part.checked_add(unit.checked_mul(u64::from(digit.checked_sub(b'0')?))?)?;
    }
    whole.checked_mul(nanos)?.checked_add(part)
}

/// Formats a duration as Go does.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(nanos, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(nanos, 1_000_000)),
        _ => {
            let minutes = nanos / 60_000_000_000;
            let seconds = decimal(nanos % 60_000_000_000, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

fn decimal(nanos: u128, unit: u128) -> String {
    let fraction = format!("{:0width$}", nanos % unit, width = unit.ilog10() as usize);
    let fraction = fraction.trim_end_matches('0');
    let whole = nanos / unit;
    if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (150_000_000, "150ms"),
            (1_500_000_000, "1.5s"),
            (5_000_000_000, "5s"),
            (60_000_000_000, "1m0s"),
            (120_000_000_000, "2m0s"),
            (245_001_000_000, "4m5.001s"),
            (3_600_000_000_000, "1h0m0s"),
            (18_367_001_000_000, "5h6m7.001s"),
        ] {
            assert_eq!(format_duration(Duration::from_nanos(nanos)), text);
            assert_eq!(parse_duration(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        assert_eq!(parse_duration(".5s"), Some(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5h"), Some(Duration::from_secs(5_400)));
        for text in ["", "5", "s", "-5s", "1.2.3s", "5 s", "5x", ".s", "99999999999h", "五s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
