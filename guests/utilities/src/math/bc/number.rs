//! Decimal numbers of any length: an integer and how many of its digits stand behind the point.

use num_bigint::{BigInt, BigUint, Sign};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Number {
    pub digits: BigInt,
    pub scale: usize,
}

fn ten(power: usize) -> BigInt {
    BigInt::from(10u8).pow(power as u32)
}

impl Number {
    pub fn integer(value: i64) -> Self {
        Self { digits: BigInt::from(value), scale: 0 }
    }

    pub fn is_zero(&self) -> bool {
        self.digits.sign() == Sign::NoSign
    }

    pub fn is_negative(&self) -> bool {
        self.digits.sign() == Sign::Minus
    }

    /// Returns the number cut (or filled with zeros) to `scale` places.
    pub fn rescaled(&self, scale: usize) -> Self {
        let digits =
            if scale >= self.scale { &self.digits * ten(scale - self.scale) } else { &self.digits / ten(self.scale - scale) };
        Self { digits, scale }
    }

    fn aligned(&self, other: &Self) -> (BigInt, BigInt, usize) {
        let scale = self.scale.max(other.scale);
        (self.rescaled(scale).digits, other.rescaled(scale).digits, scale)
    }

    pub fn add(&self, other: &Self) -> Self {
        let (a, b, scale) = self.aligned(other);
        Self { digits: a + b, scale }
    }

    pub fn sub(&self, other: &Self) -> Self {
        let (a, b, scale) = self.aligned(other);
        Self { digits: a - b, scale }
    }

    pub fn neg(&self) -> Self {
        Self { digits: -&self.digits, scale: self.scale }
    }

    pub fn mul(&self, other: &Self, scale: usize) -> Self {
        let full = self.scale + other.scale;
        let product = Self { digits: &self.digits * &other.digits, scale: full };
        product.rescaled(full.min(scale.max(self.scale).max(other.scale)))
    }

    /// Divides; returns `None` when dividing by zero.
    pub fn div(&self, other: &Self, scale: usize) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        let shift = scale + other.scale;
        let numerator =
            if shift >= self.scale { &self.digits * ten(shift - self.scale) } else { &self.digits / ten(self.scale - shift) };
        Some(Self { digits: numerator / &other.digits, scale })
    }

    pub fn rem(&self, other: &Self, scale: usize) -> Option<Self> {
        let quotient = self.div(other, scale)?;
        let places = (scale + other.scale).max(self.scale);
        let product = Self { digits: &quotient.digits * &other.digits, scale: quotient.scale + other.scale };
        Some(self.sub(&product).rescaled(places))
    }

    pub fn pow(&self, exponent: i64, scale: usize) -> Option<Self> {
        if exponent == 0 {
            return Some(Self::integer(1));
        }
        // A larger power of anything but zero and one has more digits than an address space.
        let Ok(count) = u32::try_from(exponent.unsigned_abs()) else { return self.huge_power(exponent) };
        let power = Self { digits: self.digits.pow(count), scale: self.scale.saturating_mul(count as usize) };
        if exponent < 0 {
            return Self::integer(1).div(&power, scale);
        }
        let kept = power.scale.min(scale.max(self.scale));
        Some(power.rescaled(kept))
    }

    fn huge_power(&self, exponent: i64) -> Option<Self> {
        let one = BigInt::from(1);
        match self.scale {
            0 if self.digits == BigInt::from(0) => (exponent > 0).then(|| Self::integer(0)),
            0 if self.digits == one => Some(Self::integer(1)),
            0 if self.digits == -one => Some(Self::integer(if exponent % 2 == 0 { 1 } else { -1 })),
            _ => sys::memory::exhausted(usize::MAX),
        }
    }

    /// Returns the square root; `None` for a negative number.
    pub fn sqrt(&self, scale: usize) -> Option<Self> {
        if self.is_negative() {
            return None;
        }
        let places = scale.max(self.scale);
        let shifted = self.rescaled(2 * places);
        Some(Self { digits: shifted.digits.sqrt(), scale: places })
    }

    pub fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let (a, b, _) = self.aligned(other);
        a.cmp(&b)
    }

    /// Returns the number of significant digits, as `length()` counts them.
    pub fn length(&self) -> usize {
        let count = self.digits.magnitude().to_string().len();
        if self.is_zero() { self.scale.max(1) } else { count.max(self.scale) }
    }

    pub fn to_i64(&self) -> Option<i64> {
        i64::try_from(&self.rescaled(0).digits).ok()
    }

    pub fn parse(text: &str, base: u32) -> Self {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        // A single digit keeps its value; in longer numbers digits too large for the base count as the largest.
        let significant = whole.trim_start_matches('0');
        let whole = if fraction.is_empty() && significant.len() == 1 { significant } else { whole };
        let single = whole.len() + fraction.len() == 1;
        let value = |digit: char| {
            let value = digit.to_digit(36).unwrap_or(0);
            if single { value } else { value.min(base - 1) }
        };
        if base == 10 {
            let digits: String = whole
                .chars()
                .chain(fraction.chars())
                .map(|digit| char::from_digit(value(digit).min(9), 10).unwrap_or('0'))
                .collect();
            if single && whole.chars().any(|digit| digit.is_ascii_uppercase()) {
                return Self::integer(i64::from(value(whole.chars().next().unwrap_or('0'))));
            }
            let digits = digits.parse().unwrap_or_default();
            return Self { digits, scale: fraction.len() };
        }
        let mut digits = BigInt::default();
        for digit in whole.chars() {
            digits = digits * base + value(digit);
        }
        let mut number = Self { digits, scale: 0 };
        if !fraction.is_empty() {
            let mut part = BigInt::default();
            for digit in fraction.chars() {
                part = part * base + value(digit);
            }
            let divisor = Self { digits: BigInt::from(base).pow(fraction.len() as u32), scale: 0 };
            if let Some(part) = (Self { digits: part, scale: 0 }).div(&divisor, fraction.len()) {
                number = number.add(&part);
            }
        }
        number
    }

    pub fn text(&self, base: u32) -> String {
        let sign = if self.is_negative() { "-" } else { "" };
        if base == 10 {
            let digits = self.digits.magnitude().to_string();
            if self.scale == 0 {
                return format!("{sign}{digits}");
            }
            let padded = sys::padding::zeros(&digits, self.scale.saturating_add(1));
            let (whole, fraction) = padded.split_at(padded.len() - self.scale);
            let whole = if whole == "0" { "" } else { whole };
            return if self.is_zero() { "0".to_string() } else { format!("{sign}{whole}.{fraction}") };
        }
        let whole = self.rescaled(0).digits.magnitude().clone();
        let digit = |value: u32| {
            if base <= 16 {
                char::from_digit(value, 36).unwrap_or('0').to_ascii_uppercase().to_string()
            } else {
                let width = (base - 1).to_string().len();
                format!(" {value:0width$}")
            }
        };
        let mut digits = Vec::new();
        let mut rest = whole;
        let big = BigUint::from(base);
        while rest != BigUint::default() {
            let value = &rest % &big;
            digits.push(u32::try_from(&value).unwrap_or(0));
            rest /= &big;
        }
        let mut out: String = digits.iter().rev().map(|value| digit(*value)).collect();
        if self.scale > 0 {
            let mut fraction = Self { digits: BigInt::from(self.digits.magnitude().clone()), scale: self.scale };
            fraction = fraction.sub(&fraction.rescaled(0));
            out.push('.');
            let mut limit = BigInt::from(1u8);
            let bound = ten(self.scale);
            while limit < bound {
                fraction.digits *= base;
                let value = fraction.rescaled(0);
                let shown = digit(value.to_i64().unwrap_or(0) as u32);
                // Digits of many figures are apart, but the first stands at the point.
                out.push_str(if out.ends_with('.') { shown.trim_start() } else { &shown });
                fraction = fraction.sub(&value);
                limit *= base;
            }
        }
        if self.is_zero() || out.is_empty() { "0".to_string() } else { format!("{sign}{out}") }
    }
}
