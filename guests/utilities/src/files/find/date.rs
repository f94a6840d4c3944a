//! Dates as `-newermt` takes them: ISO, `@seconds`, and small sentences like `2 days ago`.

use crate::time;

/// Nanoseconds since 1970; `now` likewise.
pub(crate) fn parse(text: &str, now: i128) -> Option<i128> {
    const SECOND: i128 = 1_000_000_000;
    let text = text.trim();
    if let Some(seconds) = text.strip_prefix('@') {
        let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        let nanos: i128 = format!("{fraction:0<9}")[..9].parse().ok()?;
        return Some(whole.parse::<i128>().ok()? * SECOND + nanos);
    }
    let mut at = now;
    let mut words = text.split_whitespace().peekable();
    let mut dated = false;
    while let Some(word) = words.next() {
        let lower = word.to_ascii_lowercase();
        if let Some((date, clock)) = word.split_once('T').filter(|(date, _)| date.contains('-')) {
            at = day(date)? * SECOND + of_day(clock.trim_end_matches('Z'))?;
            dated = true;
        } else if lower.matches('-').count() == 2 && lower.as_bytes()[0].is_ascii_digit() {
            at = day(word)? * SECOND;
            dated = true;
        } else if lower.contains(':') {
            let midnight = if dated { at } else { at.div_euclid(86_400 * SECOND) * 86_400 * SECOND };
            at = midnight + of_day(word)?;
        } else {
            match lower.as_str() {
                "now" => {}
                "today" => {}
                "yesterday" => at -= 86_400 * SECOND,
                "tomorrow" => at += 86_400 * SECOND,
                "utc" | "gmt" | "z" | "ago" => {}
                _ => {
                    let (count, unit) = match lower.as_str() {
                        "last" => (-1, words.next()?.to_ascii_lowercase()),
                        "next" => (1, words.next()?.to_ascii_lowercase()),
                        _ => {
                            let digits = lower.trim_start_matches(['+', '-']);
                            let split = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
                            let value: i128 = digits[..split].parse().ok()?;
                            let value = if lower.starts_with('-') { -value } else { value };
                            let unit = if split < digits.len() {
                                digits[split..].to_string()
                            } else {
                                words.next()?.to_ascii_lowercase()
                            };
                            (value, unit)
                        }
                    };
                    let ago = words.peek().is_some_and(|next| next.eq_ignore_ascii_case("ago"));
                    let count = if ago { -count } else { count };
                    at = shift(at, count, unit.trim_end_matches('s'))?;
                }
            }
        }
    }
    Some(at)
}

fn shift(at: i128, count: i128, unit: &str) -> Option<i128> {
    const SECOND: i128 = 1_000_000_000;
    let seconds = match unit {
        "second" | "sec" => 1,
        "minute" | "min" => 60,
        "hour" => 3600,
        "day" => 86_400,
        "week" => 7 * 86_400,
        "month" | "year" => {
            let civil = time::civil(i64::try_from(at / SECOND).ok()?);
            let months = i64::try_from(count).ok()? * if unit == "year" { 12 } else { 1 };
            let days = time::days(civil.year, i64::from(civil.month) + months, i64::from(civil.day));
            return Some(i128::from(days) * 86_400 * SECOND + at.rem_euclid(86_400 * SECOND));
        }
        _ => return None,
    };
    Some(at + count * seconds * SECOND)
}

fn day(text: &str) -> Option<i128> {
    let mut parts = text.split('-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    ((1..=12).contains(&month) && (1..=31).contains(&day)).then(|| i128::from(time::days(year, month, day)) * 86_400)
}

fn of_day(text: &str) -> Option<i128> {
    let mut parts = text.split(':');
    let hour: i128 = parts.next()?.parse().ok()?;
    let minute: i128 = parts.next()?.parse().ok()?;
    let seconds = parts.next().unwrap_or("0");
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let nanos: i128 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    Some((hour * 3600 + minute * 60 + whole.parse::<i128>().ok()?) * 1_000_000_000 + nanos)
}
