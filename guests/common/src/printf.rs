//! `printf`'s conversions as C's library writes them: flags, width and precision around text and numbers.
//!
//! Knows nothing of arguments and messages: bash, awk, `printf`, `seq`, `stat` and `find` each have their own.

use crate::float;

/// Where formatted bytes go.
pub trait Sink {
    /// Adds bytes.
    fn put(&mut self, bytes: &[u8]);
    /// Adds one byte `count` times, however often that is.
    fn fill(&mut self, byte: u8, count: usize);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn fill(&mut self, byte: u8, count: usize) {
        self.resize(self.len() + count, byte);
    }
}

/// A conversion's flags, width and precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conversion {
    /// `-`.
    pub left: bool,
    /// `+`.
    pub plus: bool,
    /// A blank.
    pub space: bool,
    /// `#`.
    pub alternate: bool,
    /// `0`.
    pub zero: bool,
    /// The least length.
    pub width: usize,
    /// The least number of digits, the number of decimals or the greatest length of a text.
    pub precision: Option<usize>,
}

impl Conversion {
    /// Reads the flags that follow a `%`; returns the conversion with what follows them.
    #[must_use]
    pub fn flags(text: &[u8]) -> (Self, &[u8]) {
        let mut conversion = Self::default();
        let mut rest = text;
        while let Some((&flag, tail)) = rest.split_first() {
            match flag {
                b'-' => conversion.left = true,
                b'+' => conversion.plus = true,
                b' ' => conversion.space = true,
                b'#' => conversion.alternate = true,
                b'0' => conversion.zero = true,
                b'\'' => {}
                _ => break,
            }
            rest = tail;
        }
        (conversion, rest)
    }

    /// Reads flags, width and precision where no argument can stand for a number.
    #[must_use]
    pub fn read(text: &[u8]) -> (Self, &[u8]) {
        let (mut conversion, rest) = Self::flags(text);
        let (width, mut rest) = number(rest);
        conversion.width = width.unwrap_or(0);
        if let Some(tail) = rest.strip_prefix(b".") {
            let (precision, tail) = number(tail);
            conversion.precision = Some(precision.unwrap_or(0));
            rest = tail;
        }
        (conversion, rest)
    }

    /// Writes text, cut to the precision in bytes.
    pub fn text(&self, text: &[u8], out: &mut impl Sink) {
        let shown = text.get(..self.precision.unwrap_or(usize::MAX)).unwrap_or(text);
        self.padded(shown, shown.len(), out);
    }

    /// Writes text that takes so many columns, whatever the precision is.
    pub fn padded(&self, text: &[u8], columns: usize, out: &mut impl Sink) {
        let room = self.width.saturating_sub(columns);
        if !self.left {
            out.fill(b' ', room);
        }
        out.put(text);
        if self.left {
            out.fill(b' ', room);
        }
    }

    /// Writes a number as `%d` does.
    pub fn signed(&self, value: i64, out: &mut impl Sink) {
        self.digits(self.sign(value < 0), &value.unsigned_abs().to_string(), out);
    }

    /// Writes a number as `letter` (one of `uoxX`) does.
    pub fn unsigned(&self, value: u64, letter: u8, out: &mut impl Sink) {
        let marked = self.alternate && value != 0;
        match letter {
            b'o' if marked => self.digits("", &format!("0{value:o}"), out),
            b'o' => self.digits("", &format!("{value:o}"), out),
            b'x' => self.digits(if marked { "0x" } else { "" }, &format!("{value:x}"), out),
            b'X' => self.digits(if marked { "0X" } else { "" }, &format!("{value:X}"), out),
            _ => self.digits("", &value.to_string(), out),
        }
    }

    /// Writes a sign or a prefix, zeros and the digits of an integer.
    pub fn digits(&self, prefix: &str, digits: &str, out: &mut impl Sink) {
        let digits = if self.precision == Some(0) && digits == "0" { "" } else { digits };
        let zeros = match self.precision {
            Some(precision) => precision.saturating_sub(digits.len()),
            None if self.zero && !self.left => self.width.saturating_sub(prefix.len() + digits.len()),
            None => 0,
        };
        let room = self.width.saturating_sub((prefix.len() + digits.len()).saturating_add(zeros));
        if !self.left {
            out.fill(b' ', room);
        }
        out.put(prefix.as_bytes());
        out.fill(b'0', zeros);
        out.put(digits.as_bytes());
        if self.left {
            out.fill(b' ', room);
        }
    }

    /// Writes a number as `letter` (one of `efgaEFGA`) does.
    pub fn float(&self, value: f64, letter: u8, out: &mut impl Sink) {
        let digits = float::format(value.abs(), letter, self.precision, self.alternate);
        let zero = self.zero && value.is_finite();
        Self { precision: None, zero, ..*self }.digits(self.sign(value.is_sign_negative()), &digits, out);
    }

    /// Returns the sign before a number.
    #[must_use]
    pub fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }
}

/// Reads a width or a precision; a number larger than any is the largest. `None` without a digit.
#[must_use]
pub fn number(text: &[u8]) -> (Option<usize>, &[u8]) {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(count);
    let value = digits.iter().fold(0usize, |value, byte| value.saturating_mul(10).saturating_add(usize::from(byte - b'0')));
    ((count > 0).then_some(value), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(conversion: &str, write: impl Fn(&Conversion, &mut Vec<u8>), expected: &str) {
        let (read, rest) = Conversion::read(conversion.as_bytes());
        assert_eq!(rest, b"");
        let mut out = Vec::new();
        write(&read, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{conversion}");
    }

    #[test]
    fn text_is_cut_and_padded() {
        check("5", |conversion, out| conversion.text(b"abc", out), "  abc");
        check("-5.2", |conversion, out| conversion.text(b"abc", out), "ab   ");
    }

    #[test]
    fn integers_have_signs_zeros_and_prefixes() {
        check("05", |conversion, out| conversion.signed(-42, out), "-0042");
        check("-05", |conversion, out| conversion.signed(42, out), "42   ");
        check("+6.4", |conversion, out| conversion.signed(42, out), " +0042");
        check(".0", |conversion, out| conversion.signed(0, out), "");
        check("#", |conversion, out| conversion.unsigned(255, b'x', out), "0xff");
        check("#", |conversion, out| conversion.unsigned(0, b'o', out), "0");
        check("#.3", |conversion, out| conversion.unsigned(8, b'o', out), "010");
    }

    #[test]
    fn floats_are_padded_with_zeros_if_they_are_finite() {
        check("08.2", |conversion, out| conversion.float(-12.25, b'f', out), "-0012.25");
        check("05", |conversion, out| conversion.float(f64::INFINITY, b'f', out), "  inf");
        check("+", |conversion, out| conversion.float(0.0001, b'g', out), "+0.0001");
    }

    #[test]
    fn a_size_beyond_all_numbers_is_the_largest() {
        assert_eq!(number(b"99999999999999999999x"), (Some(usize::MAX), &b"x"[..]));
        assert_eq!(number(b"x"), (None, &b"x"[..]));
    }
}
