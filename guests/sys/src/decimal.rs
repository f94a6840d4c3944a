//! Floating-point numbers in decimal, with any number of digits.
//!
//! The standard library's precision ends at 65 535 and panics beyond; C's does not. Every `f64` is exact within
//! `EXACT` digits, so that more of them are zeros.

/// More decimals, and more significant digits, than any `f64` has.
const EXACT: usize = 1100;

/// Formats as C's `%.*f`.
#[must_use]
pub fn fixed(value: f64, precision: usize) -> String {
    let mut text = format!("{value:.*}", precision.min(EXACT));
    text.extend(zeros(precision));
    text
}

/// Formats as C's `%.*e`, except that the exponent has neither a plus sign nor leading zeros.
#[must_use]
pub fn scientific(value: f64, precision: usize) -> String {
    let mut text = format!("{value:.*e}", precision.min(EXACT));
    if precision > EXACT
        && let Some(at) = text.find('e')
    {
        let exponent = text.split_off(at);
        text.extend(zeros(precision));
        text.push_str(&exponent);
    }
    text
}

fn zeros(precision: usize) -> std::iter::RepeatN<char> {
    std::iter::repeat_n('0', precision.saturating_sub(EXACT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_have_no_end() {
        let text = fixed(0.1, 70_000);
        assert_eq!((text.len(), text.trim_end_matches('0').len()), (70_002, 57));
        assert_eq!(fixed(-2.5, 0), "-2");
        let text = scientific(1.5, 100_000);
        assert_eq!((text.len(), &text[..4], &text[text.len() - 3..]), (100_004, "1.50", "0e0"));
        assert_eq!(scientific(12345.0, 2), "1.23e4");
    }

    #[test]
    fn the_smallest_number_is_exact() {
        let text = fixed(f64::from_bits(1), 1_200);
        assert!(text.trim_end_matches('0').len() < EXACT);
    }
}
