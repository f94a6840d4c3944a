//! The reserved word `time`.

use crate::ast::{Pipeline, TimeStyle};
use crate::shell::{Done, Shell};

impl Shell {
    pub(super) fn run_timed(&mut self, pipeline: &Pipeline, style: TimeStyle) -> Done {
        let start = sys::now_ns();
        let waited = self.waited;
        let result = self.run_untimed(pipeline, false);
        let elapsed = sys::now_ns() - start;
        let busy = elapsed - (self.waited - waited);
        let format = match style {
            TimeStyle::Posix => "real %2R\nuser %2U\nsys %2S".to_owned(),
            TimeStyle::Bash => self.get("TIMEFORMAT").unwrap_or_else(|| "\nreal\t%3lR\nuser\t%3lU\nsys\t%3lS".to_owned()),
        };
        if !format.is_empty() {
            let mut text = format_times(&format, elapsed, busy);
            text.push('\n');
            self.write_error(&text);
        }
        result
    }
}

/// Fills a TIMEFORMAT. Processor time is not measured in a sandbox: all that was not spent waiting counts as user time.
fn format_times(format: &str, real_ns: i128, user_ns: i128) -> String {
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut precision = 3;
        let mut long = false;
        while let Some(&next) = chars.peek() {
            match next {
                '0'..='9' => precision = next.to_digit(10).unwrap_or(3).min(3),
                'l' => long = true,
                _ => break,
            }
            chars.next();
        }
        match chars.next() {
            Some('R') => out.push_str(&format_span(real_ns, precision, long)),
            Some('U') => out.push_str(&format_span(user_ns, precision, long)),
            Some('S') => out.push_str(&format_span(0, precision, long)),
            Some('P') => {
                let percent = if real_ns > 0 { user_ns as f64 * 100.0 / real_ns as f64 } else { 0.0 };
                out.push_str(&format!("{percent:.2}"));
            }
            Some('%') => out.push('%'),
            Some(other) => {
                out.push('%');
                out.push(other);
            }
            None => out.push('%'),
        }
    }
    out
}

fn format_span(ns: i128, precision: u32, long: bool) -> String {
    let millis = (ns / 1_000_000).max(0);
    let (seconds, fraction) = (millis / 1000, millis % 1000);
    let digits = format!("{fraction:03}");
    let digits = digits.get(..precision as usize).unwrap_or_default();
    let point = if precision > 0 { "." } else { "" };
    if long { format!("{}m{}{point}{digits}s", seconds / 60, seconds % 60) } else { format!("{seconds}{point}{digits}") }
}
