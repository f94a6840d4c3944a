//! Numbers as text: doubles in jq's layout, and literals that keep the digits they were written with.

use std::cmp::Ordering;
use std::rc::Rc;

use super::value::Json;

/// A decimal number of any length.
#[derive(Debug)]
pub(super) struct Literal {
    negative: bool,
    /// Digits without leading zeros; empty for zero.
    digits: String,
    exponent: i64,
    value: f64,
}

/// Decimal digits that a double always keeps.
const EXACT_DIGITS: usize = 15;

/// Largest exponent of a literal.
const MAX_EXPONENT: i64 = 999_999_999;

/// Returns the number that `text` writes; `None` when it writes none.
pub(super) fn parse(text: &str) -> Option<Json> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = rest.to_ascii_lowercase();
    if let Some(payload) = lower.strip_prefix("nan") {
        return payload.bytes().all(|byte| byte.is_ascii_digit()).then_some(Json::Number(f64::NAN));
    }
    if lower == "inf" || lower == "infinity" {
        return Some(Json::Number(if negative { f64::NEG_INFINITY } else { f64::INFINITY }));
    }
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let shift = match exponent {
        None => 0,
        Some(text) => {
            let (minus, digits) = match text.as_bytes().first() {
                Some(b'-') => (true, &text[1..]),
                Some(b'+') => (false, &text[1..]),
                _ => (false, text),
            };
            if digits.is_empty() || !all_digits(digits) {
                return None;
            }
            let size = digits.parse::<i64>().unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
            if minus { -size } else { size }
        }
    };
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0').to_string();
    let exponent = shift - fraction.len() as i64;
    if exponent + digits.len() as i64 - 1 > MAX_EXPONENT && !digits.is_empty() {
        return Some(Json::Number(if negative { f64::NEG_INFINITY } else { f64::INFINITY }));
    }
    let value = double(negative, &digits, exponent);
    let literal = Literal { negative, digits, exponent, value };
    if literal.digits.len() <= EXACT_DIGITS && literal.text() == text_of(value) {
        return Some(Json::Number(value));
    }
    Some(Json::Literal(Rc::new(literal)))
}

/// Returns the double nearest to the first seventeen digits.
fn double(negative: bool, digits: &str, exponent: i64) -> f64 {
    const PRECISION: usize = 17;
    let sign = if negative { "-" } else { "" };
    let mut kept = digits.to_string();
    let mut exponent = exponent;
    if digits.len() > PRECISION {
        let (head, tail) = digits.split_at(PRECISION);
        let half = tail.as_bytes()[0]
            .cmp(&b'5')
            .then_with(|| if tail[1..].bytes().any(|digit| digit != b'0') { Ordering::Greater } else { Ordering::Equal });
        let odd = head.as_bytes()[PRECISION - 1] % 2 == 1;
        let up = half == Ordering::Greater || half == Ordering::Equal && odd;
        kept = (head.parse::<u64>().unwrap_or(0) + u64::from(up)).to_string();
        exponent += tail.len() as i64;
    }
    format!("{sign}{}e{exponent}", if kept.is_empty() { "0" } else { &kept }).parse().unwrap_or(0.0)
}

impl Literal {
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Returns the canonical text: plain where that is short, else with an exponent.
    pub fn text(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        let count = digits.len() as i64;
        let adjusted = self.exponent + count - 1;
        if self.exponent <= 0 && adjusted >= -6 {
            let point = count + self.exponent;
            if self.exponent == 0 {
                return format!("{sign}{digits}");
            }
            if point > 0 {
                let (whole, fraction) = digits.split_at(point as usize);
                return format!("{sign}{whole}.{fraction}");
            }
            return format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize));
        }
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{sign}{first}{point}{rest}E{}{}", if adjusted < 0 { '-' } else { '+' }, adjusted.abs())
    }

    /// Compares all digits.
    pub fn order(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        };
        let order = sign(self).cmp(&sign(other));
        if order != Ordering::Equal || self.digits.is_empty() {
            return order;
        }
        let adjusted = |number: &Self| number.exponent + number.digits.len() as i64;
        let size = adjusted(self).cmp(&adjusted(other)).then_with(|| {
            let width = self.digits.len().max(other.digits.len());
            let digits = |number: &Self| format!("{:0<width$}", number.digits);
            digits(self).cmp(&digits(other))
        });
        if self.negative { size.reverse() } else { size }
    }
}

/// Returns a double as jq writes it: the shortest digits that mean it, laid out as C's `dtoa` does.
pub(super) fn text_of(number: f64) -> String {
    if number.is_nan() {
        return "null".to_string();
    }
    let number = number.clamp(-f64::MAX, f64::MAX);
    if number.fract() == 0.0 && number.abs() < 1e15 && (number != 0.0 || number.is_sign_positive()) {
        return (number as i64).to_string();
    }
    let text = format!("{:e}", number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let point = exponent + 1;
    let count = digits.len() as i32;
    if point <= -4 || point > count + 15 {
        let fraction = if count > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        let mark = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{}{fraction}e{mark}{:02}", &digits[..1], exponent.abs());
    }
    if point <= 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize));
    }
    if point >= count {
        return format!("{sign}{digits}{}", "0".repeat((point - count) as usize));
    }
    format!("{sign}{}.{}", &digits[..point as usize], &digits[point as usize..])
}
