//! `sleep`: nothing for a while.

use std::time::Duration;

use crate::options::{self, Spec};
use crate::program::{self, Args, Outcome, missing_operand};
use crate::quote;

/// Returns a time span such as `1.5m`; `None` when it is none.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, scale) = match text.char_indices().next_back()? {
        (at, 's') => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3600.0),
        (at, 'd') => (&text[..at], 86400.0),
        _ => (text, 1.0),
    };
    let trimmed = number.trim_start();
    if trimmed.starts_with("nan") || trimmed.starts_with("NaN") {
        return None;
    }
    let seconds: f64 = match text {
        "inf" | "infinity" => f64::INFINITY,
        _ => trimmed.parse().ok()?,
    };
    let seconds = seconds * scale;
    if seconds < 0.0 || (seconds == 0.0 && trimmed.starts_with('-')) {
        return None;
    }
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(u32::MAX.into())))
}

/// Runs `sleep`.
pub fn sleep(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "NUMBER[SUFFIX]..." })?;
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let mut total = Duration::ZERO;
    let mut bad = false;
    for operand in &given.operands {
        match operand.to_str().and_then(duration) {
            Some(span) => total = total.saturating_add(span),
            None => {
                program::warn(format!("invalid time interval {}", quote::plain(operand)));
                bad = true;
            }
        }
    }
    if bad {
        program::hint();
        return Err(1);
    }
    if !total.is_zero() {
        std::thread::sleep(total);
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        assert_eq!(duration("1.5m"), Some(Duration::from_secs(90)));
        assert_eq!(duration("x"), None);
        assert_eq!(duration("-1"), None);
    }
}
