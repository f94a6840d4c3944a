//! Amounts with units: bytes and wall-clock time, as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// The value of a limit: ordered, never zero, printable with its unit.
pub trait Amount: Copy + PartialOrd + fmt::Display {
    /// Returns whether the amount is zero, which is invalid for a limit.
    fn is_zero(self) -> bool;
}

/// A number of bytes, written `64 MB`, `1.5 GB` or `512`; `KB`, `MB` and `GB` are powers of 1024, as `KiB` is. Parts of a byte are
/// dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

/// A duration of wall-clock time, written `5 s`, `0.3 s`, `250 ms` or `2 min`. Parts of a millisecond are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub Duration);

/// The reason a text is not a valid amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// The number before the unit is missing or invalid.
    #[error("invalid amount `{0}`: expected a number with an optional unit")]
    Number(String),
    /// The unit is unknown.
    #[error("unknown unit `{unit}` of {what}: expected {known}")]
    Unit {
        /// The text after the number.
        unit: String,
        /// The measured quantity.
        what: &'static str,
        /// The supported units.
        known: &'static str,
    },
    /// The amount does not fit in 64 bits.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

// Returns the number and the unit of an amount.
fn split(text: &str) -> Result<(&str, String), AmountError> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_' && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if !number.contains(|c: char| c.is_ascii_digit()) {
        return Err(AmountError::Number(text.to_owned()));
    }
    Ok((number, unit.trim().to_ascii_lowercase()))
}

// Returns a decimal number of units, rounded down.
fn amount(text: &str, number: &str, unit: u64) -> Result<u64, AmountError> {
    let invalid = || AmountError::Number(text.trim().to_owned());
    let too_large = || AmountError::TooLarge(text.to_owned());
    let digits = |part: &str| part.chars().filter(|&c| c != '_').collect::<String>();
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !digits(fraction).is_empty() && !fraction.contains('.') => (whole, fraction),
        Some(_) => return Err(invalid()),
        None => (number, ""),
    };
    let whole: u64 = format!("0{}", digits(whole)).parse().map_err(|_| too_large())?;
    let billionths: String = digits(fraction).chars().chain("000000000".chars()).take(9).collect();
    let billionths: u64 = billionths.parse().map_err(|_| too_large())?;
    let part = u128::from(billionths) * u128::from(unit) / 1_000_000_000;
    u64::try_from(u128::from(whole) * u128::from(unit) + part).map_err(|_| too_large())
}

impl FromStr for ByteSize {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let (number, unit) = split(text)?;
        let shift = match unit.as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            _ => return Err(AmountError::Unit { unit, what: "bytes", known: "B, KB, MB or GB" }),
        };
        Ok(Self(amount(text, number, 1 << shift)?))
    }
}

impl FromStr for WallTime {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let (number, unit) = split(text)?;
        let milliseconds: u64 = match unit.as_str() {
            "ms" => 1,
            "" | "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(AmountError::Unit { unit, what: "time", known: "ms, s, min, h or d" }),
        };
        Ok(Self(Duration::from_millis(amount(text, number, milliseconds)?)))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shift, unit) = match self.0 {
            bytes if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => (30, "GB"),
            bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => (20, "MB"),
            bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => (10, "KB"),
            _ => (0, "B"),
        };
        write!(f, "{} {unit}", self.0 >> shift)
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.as_millis();
        if milliseconds.is_multiple_of(1000) { write!(f, "{} s", milliseconds / 1000) } else { write!(f, "{milliseconds} ms") }
    }
}

impl Amount for u64 {
    fn is_zero(self) -> bool {
        self == 0
    }
}

impl Amount for u32 {
    fn is_zero(self) -> bool {
        self == 0
    }
}

impl Amount for ByteSize {
    fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Amount for WallTime {
    fn is_zero(self) -> bool {
        self.0.is_zero()
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for WallTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_and_printed_as_people_write_them() {
        for (text, bytes, printed) in [
            ("64 MB", 64 << 20, "64 MB"),
            ("1KiB", 1024, "1 KB"),
            ("1500", 1500, "1500 B"),
            ("3 GB", 3 << 30, "3 GB"),
            ("1.5 GB", 3 << 29, "1536 MB"),
            ("0.1KB", 102, "102 B"),
            ("1_0.50 k", 10_752, "10752 B"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, printed));
        }
    }

    #[test]
    fn invalid_amounts_are_rejected() {
        assert_eq!("-1".parse::<ByteSize>(), Err(AmountError::Number("-1".to_owned())));
        assert_eq!("99999999999999999999".parse::<ByteSize>(), Err(AmountError::TooLarge("99999999999999999999".to_owned())));
        assert_eq!(
            "18446744073709551615 GB".parse::<ByteSize>(),
            Err(AmountError::TooLarge("18446744073709551615 GB".to_owned()))
        );
        for text in ["", ".", "s", ".s", "1.", "1. s", "1.2.3", "1..2", "1.5.s", "_", "-0.5", "1,5x."] {
            assert!(text.parse::<WallTime>().is_err() && text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert_eq!("1.5.0".parse::<WallTime>(), Err(AmountError::Number("1.5.0".to_owned())));
        assert!("5 parsecs".parse::<WallTime>().is_err());
    }

    #[test]
    fn times_are_read_and_printed_as_people_write_them() {
        for (text, printed) in [
            ("5 s", "5 s"),
            ("250ms", "250 ms"),
            ("2 min", "120 s"),
            ("3", "3 s"),
            ("0.3", "300 ms"),
            ("1.5 min", "90 s"),
            (".25s", "250 ms"),
            ("0.0000000001 h", "0 s"),
        ] {
            assert_eq!(text.parse::<WallTime>().unwrap().to_string(), printed);
        }
    }
}
