//! Numbers with the letters of SI and IEC, read and shown as GNU's numfmt does.

use crate::quote;

/// Which letters stand for which powers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    None,
    Si,
    Iec,
    IecI,
    Auto,
}

/// The names of the scales; `auto` is only for reading.
pub const SCALES: &[(&str, Scale)] =
    &[("none", Scale::None), ("si", Scale::Si), ("iec", Scale::Iec), ("iec-i", Scale::IecI), ("auto", Scale::Auto)];

/// Where a digit too many goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    Up,
    Down,
    FromZero,
    TowardsZero,
    Nearest,
}

/// The names of the ways to round.
pub const ROUNDS: &[(&str, Round)] = &[
    ("up", Round::Up),
    ("down", Round::Down),
    ("from-zero", Round::FromZero),
    ("towards-zero", Round::TowardsZero),
    ("nearest", Round::Nearest),
];

const LETTERS: &str = "KMGTPEZY";

/// Returns the power that a single letter stands for.
pub fn power(letter: &str) -> Option<u32> {
    let mut letters = letter.chars();
    let at = LETTERS.find(letters.next()?)?;
    letters.next().is_none().then_some(at as u32 + 1)
}

/// A number: exact while it is whole.
#[derive(Clone, Debug)]
pub struct Value {
    whole: Option<i128>,
    real: f64,
    /// Digits behind the point, as they were given.
    places: usize,
}

/// The reason why a text is not a valid number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    Number,
    Suffix,
    /// The text after a number and its letter, from this byte on.
    Tail(usize),
    Rejected,
    MissingI,
    TooLarge,
    TooLargeToShow,
}

impl Trouble {
    /// Returns the message about `text`, of which `core` was to be the number.
    pub fn message(self, text: &[u8], core: &[u8]) -> String {
        let shown = quote::plain_bytes(text);
        match self {
            Self::Number => format!("invalid number: {shown}"),
            Self::Suffix => format!("invalid suffix in input: {shown}"),
            Self::Tail(at) => format!("invalid suffix in input {shown}: {}", quote::plain_bytes(&core[at.min(core.len())..])),
            Self::Rejected => format!("rejecting suffix in input: {shown} (consider using --from)"),
            Self::MissingI => format!("missing 'i' suffix in input: {shown} (e.g Ki/Mi/Gi)"),
            Self::TooLarge => format!("value too large to be converted: {shown}"),
            Self::TooLargeToShow => format!("value too large to be printed: {shown} (cannot handle values > 999Y)"),
        }
    }
}

/// Reads a number with its letter.
pub fn read(text: &[u8], scale: Scale) -> Result<Value, Trouble> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let count = |from: usize| text[from.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = count(sign);
    let mut at = sign + whole;
    let mut places = 0;
    if text.get(at) == Some(&b'.') {
        places = count(at + 1);
        if places == 0 {
            return Err(Trouble::Number);
        }
        at += 1 + places;
    }
    if whole + places == 0 {
        return Err(Trouble::Number);
    }
    if whole > 33 {
        return Err(Trouble::TooLarge);
    }
    let digits = std::str::from_utf8(&text[..at]).map_err(|_| Trouble::Number)?;
    let real: f64 = digits.parse().map_err(|_| Trouble::Number)?;
    let mut value = Value { whole: digits.parse().ok(), real, places };
    let blanks = text[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = &text[at + blanks..];
    let Some((letter, rest)) = rest.split_first() else { return Ok(value) };
    let Some(power) = power(char::from(*letter).encode_utf8(&mut [0; 4])) else { return Err(Trouble::Suffix) };
    let (has_i, rest) = match (scale, rest) {
        (Scale::Auto | Scale::IecI, [b'i', rest @ ..]) => (true, rest),
        (_, rest) => (false, rest),
    };
    let base: i128 = match scale {
        Scale::None => return Err(Trouble::Rejected),
        Scale::Si => 1000,
        Scale::Iec => 1024,
        Scale::IecI if !has_i => return Err(Trouble::MissingI),
        Scale::IecI => 1024,
        Scale::Auto => {
            if has_i {
                1024
            } else {
                1000
            }
        }
    };
    if !rest.is_empty() {
        return Err(Trouble::Tail(text.len() - rest.len()));
    }
    let factor = base.pow(power);
    value.real *= factor as f64;
    value.whole = value.whole.and_then(|whole| whole.checked_mul(factor));
    if value.whole.is_none() && value.real.fract() == 0.0 && value.real.abs() < 1e30 {
        value.whole = Some(value.real as i128);
    }
    value.places = 0;
    Ok(value)
}

impl Value {
    /// Times one unit, divided by another.
    pub fn times(self, multiply: u128, divide: u128) -> Self {
        if multiply == 1 && divide == 1 {
            return self;
        }
        let exact = self.whole.and_then(|whole| whole.checked_mul(i128::try_from(multiply).ok()?));
        let by = i128::try_from(divide).unwrap_or(i128::MAX);
        Self {
            whole: exact.filter(|whole| whole % by == 0).map(|whole| whole / by),
            real: self.real * multiply as f64 / divide as f64,
            places: self.places,
        }
    }
}

fn rounded(value: f64, round: Round) -> f64 {
    match round {
        Round::Up => value.ceil(),
        Round::Down => value.floor(),
        Round::FromZero => {
            if value < 0.0 {
                value.floor()
            } else {
                value.ceil()
            }
        }
        Round::TowardsZero => value.trunc(),
        Round::Nearest => value.round(),
    }
}

/// Returns the number as text, with its letter.
pub fn show(value: &Value, scale: Scale, round: Round, precision: Option<usize>) -> Result<String, Trouble> {
    let base = match scale {
        Scale::None => {
            let places = precision.unwrap_or(value.places);
            if let Some(whole) = value.whole {
                let zeros = if places > 0 { format!(".{}", "0".repeat(places)) } else { String::new() };
                return Ok(format!("{whole}{zeros}"));
            }
            let shift = 10f64.powi(places as i32);
            return Ok(sys::decimal::fixed(rounded(value.real * shift, round) / shift, places));
        }
        Scale::Si => 1000.0,
        _ => 1024.0,
    };
    let mut real = value.real;
    let mut power = 0usize;
    while real.abs() >= base {
        real /= base;
        power += 1;
    }
    let adjust = match precision {
        Some(precision) => precision.min(power * 3),
        None => usize::from(real.abs() < 10.0),
    };
    let shift = 10f64.powi(adjust as i32);
    real = rounded(real * shift, round) / shift;
    if real.abs() >= base {
        real /= base;
        power += 1;
    }
    if power > LETTERS.len() {
        return Err(Trouble::TooLargeToShow);
    }
    let places = precision.unwrap_or_else(|| usize::from(real != 0.0 && real.abs() < 10.0 && power > 0));
    let letter = if power == 0 { "" } else { &LETTERS[power - 1..power] };
    let i = if scale == Scale::IecI && power > 0 { "i" } else { "" };
    Ok(format!("{}{letter}{i}", sys::decimal::fixed(real, places)))
}
