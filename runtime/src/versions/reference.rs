//! References to versions: `HEAD`, `HEAD~3`, a run's number, a label, `@{2 hours ago}`, `v12`.

use sqlite_fs::{Filter, Reader, Version};

use crate::{Error, clock};

/// Maximum length of a reference.
const LONGEST: usize = 300;

/// Returns whether a name is ambiguous with a reference of another kind.
pub(super) fn is_reserved(name: &str) -> bool {
    let is_version =
        name.strip_prefix('v').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    let is_run = name.starts_with(['+', '-']) && name.parse::<i64>().is_ok();
    is_version || is_run || name.eq_ignore_ascii_case("HEAD") || name.contains(['~', '@', '{', '}'])
}

pub(super) fn invalid(reference: &str, reason: &str) -> Error {
    let shown = reference.get(..reference.floor_char_boundary(100)).unwrap_or_default();
    Error::Invalid(format!("invalid version `{shown}`: {reason}"))
}

/// Returns the error for a name that is neither a checkpoint nor a reference of another kind.
pub(super) fn unknown(reference: &str) -> Error {
    invalid(reference, "expected a run's number, HEAD, HEAD~N, a checkpoint or @{TIME}")
}

/// Resolves a reference to a version.
pub(crate) fn resolve(reader: &Reader, reference: &str) -> Result<Version, Error> {
    resolve_until(reader, reference, None)
}

/// Resolves a reference to a version that is not later than another one, which is then the newest.
pub(super) fn resolve_until(reader: &Reader, reference: &str, last: Option<i64>) -> Result<Version, Error> {
    let reference = reference.trim();
    if reference.len() > LONGEST {
        return Err(invalid(reference, "too long"));
    }
    let (name, back) = match reference.rsplit_once('~') {
        None => (reference, 0),
        Some((name, "")) => (name, 1),
        Some((name, back)) => (name, digits(back).ok_or_else(|| invalid(reference, "expected a number after `~`"))?),
    };
    let found = named(reader, name, reference, last)?;
    if last.is_some_and(|last| found.number > last) {
        return Err(invalid(reference, "it is later than the version shown"));
    }
    if back == 0 {
        return Ok(found);
    }
    // Numbers of versions are consecutive.
    match reader.version(found.number.saturating_sub(back)) {
        Err(sqlite_fs::Error::NoVersion { .. }) => {
            Err(invalid(reference, "not enough earlier versions; older ones may have been pruned"))
        }
        version => Ok(version?),
    }
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn named(reader: &Reader, name: &str, reference: &str, last: Option<i64>) -> Result<Version, Error> {
    let newest = || match last {
        Some(last) => Ok(reader.version(last)?),
        None => reader.versions(None, 1)?.pop().ok_or_else(|| invalid(reference, "no changes yet")),
    };
    if name.eq_ignore_ascii_case("HEAD") {
        return newest();
    }
    if let Some(time) = name.strip_prefix("@{").and_then(|rest| rest.strip_suffix('}')) {
        let until =
            moment(time).ok_or_else(|| invalid(reference, "expected a time such as `2 hours ago` or `2026-01-31T12:00`"))?;
        let found = reader.version_at(until)?.ok_or_else(|| invalid(reference, "no version at that time"))?;
        return if last.is_some_and(|last| found.number > last) { newest() } else { Ok(found) };
    }
    if let Ok(run) = name.parse::<i64>() {
        return after_run(reader, run, reference);
    }
    if let Some(label) = reader.label(name)? {
        return Ok(reader.version(label.version)?);
    }
    match name.strip_prefix('v').and_then(|number| number.parse().ok()) {
        Some(number) => Ok(reader.version(number)?),
        None => Err(unknown(reference)),
    }
}

// The state after a run: its own version, or that of the last earlier run that changed something.
fn after_run(reader: &Reader, run: i64, reference: &str) -> Result<Version, Error> {
    if let Some(version) = reader.version_of(run)? {
        return Ok(version);
    }
    if reader.call(run)?.is_none() {
        return Err(invalid(reference, "unknown run"));
    }
    before_run(reader, run)
}

/// Returns the state in which a run started.
pub(super) fn before_run(reader: &Reader, run: i64) -> Result<Version, Error> {
    let began = reader.calls(&Filter { limit: 1, before: run.checked_add(1), ..Filter::default() })?;
    let began = began.first().map_or(i64::MAX, |call| call.started);
    let mut before = None;
    loop {
        let page = reader.versions(before, 1000)?;
        let Some(last) = page.last() else {
            return Err(invalid(&run.to_string(), "its version was pruned"));
        };
        before = Some(last.number);
        // A version without a run is found by its time.
        let is_before = |version: &Version| version.call.map_or(version.time <= began, |call| call < run);
        if let Some(found) = page.into_iter().find(is_before) {
            return Ok(found);
        }
    }
}

const SECOND: i64 = 1_000_000_000;

// Nanoseconds since 1970: `N UNIT ago`, or a date with or without a time, in UTC.
fn moment(text: &str) -> Option<i64> {
    let now = i64::try_from(clock::unix_nanos()).ok()?;
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["now"] => Some(now),
        ["yesterday"] => Some(now - 24 * 3600 * SECOND),
        [number, unit, "ago"] => {
            let number: i64 = number.parse().ok().filter(|number| *number >= 0)?;
            let seconds: i64 = match unit.trim_end_matches('s') {
                "second" => 1,
                "minute" => 60,
                "hour" => 3600,
                "day" => 24 * 3600,
                "week" => 7 * 24 * 3600,
                _ => return None,
            };
            now.checked_sub(number.checked_mul(seconds)?.checked_mul(SECOND)?)
        }
        [date] => date_time(date, "00:00"),
        [date, time] => date_time(date, time),
        _ => None,
    }
}

fn date_time(date: &str, time: &str) -> Option<i64> {
    let (date, time) = date.split_once('T').unwrap_or((date, time));
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1970..=2200).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let mut parts = time.trim_end_matches('Z').split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..61).contains(&second) {
        return None;
    }
    // Days since 1970 of the proleptic Gregorian calendar, with March as the first month.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1 - 719_468;
    (days * 86_400 + hour * 3600 + minute * 60 + second).checked_mul(SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_a_moment_of_utc() {
        assert_eq!(moment("1970-01-01"), Some(0));
        assert_eq!(moment("2001-09-09T01:46:40"), Some(1_000_000_000 * SECOND));
        assert_eq!(moment("2024-02-29 12:00Z"), Some(1_709_208_000 * SECOND));
        for wrong in ["", "soon", "2024-13-01", "2024-1", "2024-01-01T25:00", "-1 hours ago", "3 parsecs ago"] {
            assert_eq!(moment(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_age_is_taken_from_now() {
        let ago = |text: &str| i64::try_from(clock::unix_nanos()).unwrap() - moment(text).unwrap();
        assert!((7190 * SECOND..7260 * SECOND).contains(&ago("2 hours ago")));
        assert!((-SECOND..60 * SECOND).contains(&ago("now")));
    }

    #[test]
    fn a_name_that_means_something_else_is_reserved() {
        for name in ["HEAD", "head", "v1", "a~1", "@{x}", "+1", "-1"] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["before", "v", "version", "v1.0"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
