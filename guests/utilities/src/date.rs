//! Dates: reading what people write, and printing.

pub mod read;

use common::strftime::{self, Dialect};
use sys::calendar;
pub use sys::zone::Zone;

/// Nanoseconds of a second.
pub const SECOND: i128 = 1_000_000_000;

/// Returns a moment as `strftime` prints it, in the zone that `TZ` names.
pub fn format(format: &[u8], time: i128) -> Vec<u8> {
    strftime::format(format, time, &Zone::local(), Dialect::Program)
}

/// Returns the moment that people's words mean, counted from `now`; `None` when they mean none.
pub fn parse(text: &str, now: i128) -> Option<i128> {
    read::parse(text, now, &Zone::local())
}

/// Returns the moment of a `touch -t` stamp: `[[CC]YY]MMDDhhmm[.ss]`.
pub fn parse_stamp(stamp: &str, now: i128) -> Option<i64> {
    let (digits, seconds) = match stamp.split_once('.') {
        Some((digits, seconds)) => (digits, (seconds.len() == 2).then(|| seconds.parse::<i64>().ok())??),
        None => (stamp, 0),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let pair = |at: usize| digits.get(at..at + 2).and_then(|pair| pair.parse::<i64>().ok());
    let zone = Zone::local();
    let (year, at) = match digits.len() {
        8 => (calendar::from_days((now.div_euclid(SECOND) as i64).div_euclid(86400)).0, 0),
        10 => (pair(0).map(|year| if year < 69 { 2000 + year } else { 1900 + year })?, 2),
        12 => (digits.get(..4)?.parse().ok()?, 4),
        _ => return None,
    };
    let (month, day, hour, minute) = (pair(at)?, pair(at + 2)?, pair(at + 4)?, pair(at + 6)?);
    if !(1..=12).contains(&month)
        || !(1..=i64::from(calendar::days_in_month(year, month as u32))).contains(&day)
        || hour > 23
        || minute > 59
        || seconds > 60
    {
        return None;
    }
    let local = calendar::to_days(year, month, day) * 86400 + hour * 3600 + minute * 60 + seconds;
    zone.to_utc(local).checked_mul(SECOND as i64)
}
