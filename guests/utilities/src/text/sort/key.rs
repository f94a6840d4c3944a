//! Sort keys: a part of a line and the rules by which two such parts compare.

use std::cmp::Ordering as Order;
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use crate::program::fail;
use crate::quote;
use crate::version;

/// The type of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    Text,
    Numeric,
    General,
    Human,
    Month,
    Version,
    Random,
}

/// The rules of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Ordering {
    pub kind: Kind,
    pub reverse: bool,
    pub fold: bool,
    pub dictionary: bool,
    pub printable: bool,
    pub blanks: bool,
    end_blanks: bool,
    letters: String,
}

impl Ordering {
    /// Takes an ordering option; `false` when the letter is none.
    pub fn set(&mut self, letter: char) -> bool {
        let kind = match letter {
            'n' => Kind::Numeric,
            'g' => Kind::General,
            'h' => Kind::Human,
            'M' => Kind::Month,
            'V' => Kind::Version,
            'R' => Kind::Random,
            'b' => {
                self.blanks = true;
                self.end_blanks = true;
                return true;
            }
            'd' => {
                self.dictionary = true;
                return true;
            }
            'f' => {
                self.fold = true;
                return true;
            }
            'i' => {
                self.printable = true;
                return true;
            }
            'r' => {
                self.reverse = true;
                return true;
            }
            _ => return false,
        };
        self.kind = kind;
        if !self.letters.contains(letter) {
            self.letters.push(letter);
        }
        true
    }

    /// Returns whether lines are compared as plain bytes.
    pub fn is_plain(&self) -> bool {
        self.kind == Kind::Text && !self.fold && !self.dictionary && !self.printable && !self.blanks
    }

    fn is_default(&self) -> bool {
        self.is_plain() && !self.reverse
    }

    fn keeps(&self, byte: u8) -> bool {
        (!self.dictionary || byte.is_ascii_alphanumeric() || byte == b' ' || byte == b'\t')
            && (!self.printable || byte.is_ascii_graphic() || byte == b' ')
    }

    fn fold(&self, byte: u8) -> u8 {
        if self.fold { byte.to_ascii_uppercase() } else { byte }
    }
}

/// A place in a line: field and byte, both from 0; for an end, byte 0 is the end of the field.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    field: usize,
    byte: usize,
}

/// A part of each line and how it compares.
#[derive(Clone, Debug)]
pub struct Key {
    start: Place,
    end: Option<Place>,
    pub rules: Ordering,
    own_rules: bool,
}

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

impl Key {
    /// Returns the whole line.
    pub fn whole(rules: &Ordering) -> Self {
        Self { start: Place::default(), end: None, rules: rules.clone(), own_rules: true }
    }

    /// Reads `F[.C][OPTS][,F[.C][OPTS]]`.
    pub fn parse(spec: &OsStr) -> Result<Self, i32> {
        let text = spec.to_string_lossy();
        let bad = |why: &str, at: &str| fail(format!("{why}: invalid count at start of {}", quote::plain(at)));
        let number = |rest: &mut &str, why: &str| -> Result<usize, i32> {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return Err(bad(why, rest));
            }
            let value = rest[..digits].parse().unwrap_or(usize::MAX);
            *rest = &rest[digits..];
            Ok(value)
        };
        let zero = |why: &str| fail(format!("{why}: invalid field specification {}", quote::plain(spec)));
        let mut rest = text.as_ref();
        let mut rules = Ordering::default();
        let field =
            number(&mut rest, "invalid number at field start")?.checked_sub(1).ok_or_else(|| zero("field number is zero"))?;
        let mut byte = 0;
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            byte =
                number(&mut rest, "invalid number after '.'")?.checked_sub(1).ok_or_else(|| zero("character offset is zero"))?;
        }
        let (mut start_blanks, mut end_blanks) = (false, false);
        let mut letters = |rest: &mut &str, blanks: &mut bool| {
            while let Some(letter) = rest.chars().next() {
                if letter == 'b' {
                    *blanks = true;
                } else if !rules.set(letter) {
                    break;
                }
                *rest = &rest[1..];
            }
        };
        letters(&mut rest, &mut start_blanks);
        let mut end = None;
        if let Some(after) = rest.strip_prefix(',') {
            rest = after;
            let field =
                number(&mut rest, "invalid number after ','")?.checked_sub(1).ok_or_else(|| zero("field number is zero"))?;
            let mut byte = 0;
            if let Some(after) = rest.strip_prefix('.') {
                rest = after;
                byte = number(&mut rest, "invalid number after '.'")?;
            }
            letters(&mut rest, &mut end_blanks);
            end = Some(Place { field, byte });
        }
        if !rest.is_empty() {
            return Err(fail(format!("stray character in field spec: invalid field specification {}", quote::plain(spec))));
        }
        let own_rules = !rules.is_default() || start_blanks || end_blanks;
        rules.blanks = start_blanks;
        rules.end_blanks = end_blanks;
        Ok(Self { start: Place { field, byte }, end, rules, own_rules })
    }

    /// A key without rules of its own takes the global ones.
    pub fn inherit(&mut self, global: &Ordering) {
        if !self.own_rules {
            self.rules = global.clone();
        }
    }

    /// Refuses rules that contradict each other.
    pub fn check(&self) -> Result<(), i32> {
        let rules = &self.rules;
        let textual = rules.dictionary || rules.printable || rules.fold;
        let numeric = !matches!(rules.kind, Kind::Text | Kind::Version | Kind::Random);
        if rules.letters.len() > 1 || (numeric && (rules.dictionary || rules.printable)) {
            let mut letters: Vec<char> = rules.letters.chars().collect();
            if textual {
                letters.extend(
                    [(rules.dictionary, 'd'), (rules.printable, 'i')].iter().filter(|(on, _)| *on).map(|(_, letter)| *letter),
                );
            }
            letters.sort_by_key(|letter| "dfghiMnRV".find(*letter));
            return Err(fail(format!("options '-{}' are incompatible", letters.into_iter().collect::<String>())));
        }
        Ok(())
    }

    /// Returns where the key is in a line.
    pub fn range(&self, line: &[u8], separator: Option<u8>) -> (usize, usize) {
        let start = self.start(line, separator);
        let end = match self.end {
            None => line.len(),
            Some(place) => self.end(line, place, separator),
        };
        (start, end.max(start))
    }

    fn start(&self, line: &[u8], separator: Option<u8>) -> usize {
        let mut at = 0;
        if self.start.field > 0 {
            at = match separator {
                Some(tab) => memchr::memchr_iter(tab, line).nth(self.start.field - 1).map_or(line.len(), |tab| tab + 1),
                None => skip_fields(line, self.start.field),
            };
        }
        if self.rules.blanks {
            at += line[at..].iter().take_while(|&&byte| blank(byte)).count();
        }
        at.saturating_add(self.start.byte).min(line.len())
    }

    fn end(&self, line: &[u8], place: Place, separator: Option<u8>) -> usize {
        let whole = place.byte == 0;
        let fields = place.field.saturating_add(usize::from(whole));
        let mut at = match separator {
            _ if fields == 0 => 0,
            Some(tab) => match memchr::memchr_iter(tab, line).nth(fields - 1) {
                Some(tab) if whole => tab,
                Some(tab) => tab + 1,
                None => line.len(),
            },
            None => skip_fields(line, fields),
        };
        if !whole {
            if self.rules.end_blanks {
                at += line[at..].iter().take_while(|&&byte| blank(byte)).count();
            }
            at = at.saturating_add(place.byte).min(line.len());
        }
        at
    }

    /// Returns eight bytes that order keys as far as eight bytes can.
    pub fn head(&self, key: &[u8]) -> u64 {
        match self.rules.kind {
            Kind::Text if self.rules.is_plain() || (!self.rules.fold && !self.rules.dictionary && !self.rules.printable) => {
                head(key)
            }
            Kind::Text => {
                let mut eight = [0; 8];
                for (slot, byte) in eight.iter_mut().zip(key.iter().copied().filter(|&byte| self.rules.keeps(byte))) {
                    *slot = self.rules.fold(byte);
                }
                u64::from_be_bytes(eight)
            }
            Kind::Numeric => numeric_head(key),
            Kind::General => general_head(key),
            Kind::Month => month(key),
            Kind::Human => human_order(key),
            Kind::Random => random(key),
            Kind::Version => 0,
        }
    }

    /// Compares two keys by their rules, reversal aside.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Order {
        match self.rules.kind {
            Kind::Text if !self.rules.fold && !self.rules.dictionary && !self.rules.printable => a.cmp(b),
            Kind::Text => {
                let filtered = |key: &[u8]| {
                    key.iter()
                        .copied()
                        .filter(|&byte| self.rules.keeps(byte))
                        .map(|byte| self.rules.fold(byte))
                        .collect::<Vec<_>>()
                };
                filtered(a).cmp(&filtered(b))
            }
            Kind::Numeric => numeric(a, b),
            Kind::General => general_head(a).cmp(&general_head(b)),
            Kind::Month => month(a).cmp(&month(b)),
            Kind::Human => human_order(a).cmp(&human_order(b)).then_with(|| numeric(a, b)),
            Kind::Random => random(a).cmp(&random(b)).then_with(|| a.cmp(b)),
            Kind::Version => version::compare(a, b),
        }
    }
}

/// Returns the first eight bytes as a number that orders as they do.
pub fn head(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(eight) => u64::from_be_bytes(*eight),
        None => {
            let mut eight = [0; 8];
            eight[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(eight)
        }
    }
}

fn skip_fields(line: &[u8], count: usize) -> usize {
    let mut at = 0;
    for _ in 0..count {
        if at == line.len() {
            break;
        }
        while at < line.len() && blank(line[at]) {
            at += 1;
        }
        while at < line.len() && !blank(line[at]) {
            at += 1;
        }
    }
    at
}

/// Returns the sign, the whole digits without leading zeros, and the digits after the point without trailing zeros.
fn number(key: &[u8]) -> (bool, &[u8], &[u8]) {
    let start = key.iter().position(|&byte| !blank(byte)).unwrap_or(key.len());
    let (negative, rest) = match key[start..].strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, &key[start..]),
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (whole, rest) = rest.split_at(digits);
    let zeros = whole.iter().take_while(|&&byte| byte == b'0').count();
    let mut fraction: &[u8] = b"";
    if let Some(after) = rest.strip_prefix(b".") {
        let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        fraction = &after[..digits];
        while let Some(shorter) = fraction.strip_suffix(b"0") {
            fraction = shorter;
        }
    }
    let whole = &whole[zeros..];
    (negative && !(whole.is_empty() && fraction.is_empty()), whole, fraction)
}

fn numeric(a: &[u8], b: &[u8]) -> Order {
    let ((a_negative, a_whole, a_fraction), (b_negative, b_whole, b_fraction)) = (number(a), number(b));
    if a_negative != b_negative {
        return b_negative.cmp(&a_negative);
    }
    let order = a_whole.len().cmp(&b_whole.len()).then_with(|| a_whole.cmp(b_whole)).then_with(|| a_fraction.cmp(b_fraction));
    if a_negative { order.reverse() } else { order }
}

/// Returns the whole part, as far as it fits; what is equal here is compared digit by digit.
fn numeric_head(key: &[u8]) -> u64 {
    let (negative, whole, _) = number(key);
    let size =
        if whole.len() > 18 { i64::MAX } else { whole.iter().fold(0i64, |value, byte| value * 10 + i64::from(byte - b'0')) };
    let signed = if negative { -size } else { size };
    signed.cast_unsigned() ^ (1 << 63)
}

fn general_head(key: &[u8]) -> u64 {
    let start = key.iter().position(|&byte| !blank(byte)).unwrap_or(key.len());
    let text = &key[start..];
    let ascii = text.iter().take_while(|byte| byte.is_ascii()).count();
    let number = std::str::from_utf8(&text[..ascii]).unwrap_or_default();
    let (value, rest) = common::float::parse(number);
    let value = (rest.len() < number.len()).then_some(value);
    match value {
        None => 0,
        Some(value) if value.is_nan() => 1,
        Some(value) => {
            let value = if value == 0.0 { 0.0 } else { value };
            let bits = value.to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            // Past the two that are not numbers; no finite value comes near the end.
            ordered.saturating_add(2)
        }
    }
}

fn month(key: &[u8]) -> u64 {
    const MONTHS: [&[u8]; 12] = [b"JAN", b"FEB", b"MAR", b"APR", b"MAY", b"JUN", b"JUL", b"AUG", b"SEP", b"OCT", b"NOV", b"DEC"];
    let start = key.iter().position(|&byte| !blank(byte)).unwrap_or(key.len());
    let Some(three) = key[start..].first_chunk::<3>() else { return 0 };
    let upper = three.to_ascii_uppercase();
    MONTHS.iter().position(|month| *month == upper.as_slice()).map_or(0, |at| at as u64 + 1)
}

/// Returns the sign and the unit of a number such as `2.5K`.
fn human_order(key: &[u8]) -> u64 {
    let (negative, whole, fraction) = number(key);
    if whole.is_empty() && fraction.is_empty() {
        return 1 << 32;
    }
    let start = key.iter().position(|&byte| !blank(byte) && byte != b'-').unwrap_or(key.len());
    let after = key[start..].iter().position(|byte| !(byte.is_ascii_digit() || *byte == b'.')).map_or(0, |at| key[start + at]);
    let unit = match after {
        b'k' | b'K' => 1,
        b'M' => 2,
        b'G' => 3,
        b'T' => 4,
        b'P' => 5,
        b'E' => 6,
        b'Z' => 7,
        b'Y' => 8,
        _ => 0,
    };
    // Zero stands between the smallest of both signs.
    if negative { (1 << 32) - 1 - unit } else { (1 << 32) + 1 + unit }
}

fn random(key: &[u8]) -> u64 {
    static STATE: OnceLock<RandomState> = OnceLock::new();
    STATE.get_or_init(RandomState::new).hash_one(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_compare() {
        for (a, b) in [
            ("1", "2"),
            ("-2", "-1"),
            ("9", "10"),
            ("1.5", "1.25e"),
            ("-1", "0"),
            ("99999999999999999999", "100000000000000000000"),
            ("", "1"),
        ] {
            let expected = if a == "1.5" { Order::Greater } else { Order::Less };
            assert_eq!(numeric(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
        }
    }

    #[test]
    fn keys_are_where_gnu_finds_them() {
        let line = b"a bb  ccc";
        for (spec, part) in
            [("2", " bb  ccc"), ("2,2", " bb"), ("2b,2", "bb"), ("3,3", "  ccc"), ("1.1,1.1", "a"), ("2.2,2.3", "bb"), ("9", "")]
        {
            let key = Key::parse(OsStr::new(spec)).unwrap_or_else(|_| Key::whole(&Ordering::default()));
            let (from, to) = key.range(line, None);
            assert_eq!(String::from_utf8_lossy(&line[from..to]), part, "{spec}");
        }
    }
}
