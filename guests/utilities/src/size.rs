//! Sizes: `10K`, `1MB`, `4kB` in; `1.5K` out.

/// Why a size could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Not a number.
    Invalid,
    /// A number with an unknown suffix.
    Suffix,
    /// Too large.
    Overflow,
}

/// Returns the factor behind a suffix letter and the rest, such as `K`, `KB`, `KiB`.
fn factor(suffix: &str) -> Option<u128> {
    let mut chars = suffix.chars();
    let power = match chars.next()? {
        'b' if suffix.len() == 1 => return Some(512),
        'c' if suffix.len() == 1 => return Some(1),
        'w' if suffix.len() == 1 => return Some(2),
        'B' if suffix.len() == 1 => return Some(1024),
        'k' | 'K' => 1,
        'm' | 'M' => 2,
        'g' | 'G' => 3,
        't' | 'T' => 4,
        'P' => 5,
        'E' => 6,
        'Z' => 7,
        'Y' => 8,
        _ => return None,
    };
    match chars.as_str() {
        "" | "iB" => Some(1024u128.pow(power)),
        "B" => Some(1000u128.pow(power)),
        _ => None,
    }
}

/// Reads a number with one of the suffix letters in `allowed` (`B` stands for `kB` and `KiB` forms too).
pub fn parse(text: &str, allowed: &str) -> Result<u64, Trouble> {
    let text = text.trim_start();
    let text = text.strip_prefix('+').unwrap_or(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let number: u128 = match number {
        "" if suffix.starts_with(|c| allowed.contains(c)) && !suffix.starts_with('-') => 1,
        "" => return Err(Trouble::Invalid),
        number => number.parse().map_err(|_| Trouble::Overflow)?,
    };
    let scale = match suffix {
        "" => 1,
        suffix if suffix.starts_with(|c| allowed.contains(c)) => factor(suffix).ok_or(Trouble::Suffix)?,
        _ => return Err(Trouble::Suffix),
    };
    number.checked_mul(scale).and_then(|value| u64::try_from(value).ok()).ok_or(Trouble::Overflow)
}

/// The suffix letters most utilities know.
pub const SUFFIXES: &str = "bkKmMGTPEZY";

/// Returns a size for people: `512`, `1.5K`, `12M`; always rounded up, as GNU rounds.
pub fn human(size: u64, base: u64) -> String {
    const UNITS: &[u8] = b"KMGTPEZY";
    if size < base {
        return size.to_string();
    }
    let (mut unit, mut scale) = (0, u128::from(base));
    let size = u128::from(size);
    while size.div_ceil(scale) >= u128::from(base) && unit + 1 < UNITS.len() {
        // 1023.5K is shown as 1.0M: the rounded value decides.
        scale *= u128::from(base);
        unit += 1;
    }
    let letter = if base == 1000 && unit == 0 { 'k' } else { char::from(UNITS[unit]) };
    let tenths = (size * 10).div_ceil(scale);
    if tenths < 100 { format!("{}.{}{letter}", tenths / 10, tenths % 10) } else { format!("{}{letter}", size.div_ceil(scale)) }
}

/// How sizes are shown: in blocks of this many bytes, or for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// In units of this many bytes, rounded up.
    Blocks(u64),
    /// In units of this many bytes, rounded up, with the unit's letter after it.
    Suffixed(u64, &'static str),
    /// With a letter, in powers of this base.
    Human(u64),
}

impl Scale {
    /// Returns the size as text.
    pub fn show(self, bytes: u64) -> String {
        match self {
            Self::Blocks(unit) => bytes.div_ceil(unit).to_string(),
            Self::Suffixed(unit, suffix) => format!("{}{suffix}", bytes.div_ceil(unit)),
            Self::Human(base) => human(bytes, base),
        }
    }

    /// Returns the scale behind a `--block-size` value.
    pub fn parse(text: &str) -> Result<Self, Trouble> {
        let text = text.trim_start_matches('\'');
        match text {
            "human-readable" => return Ok(Self::Human(1024)),
            "si" => return Ok(Self::Human(1000)),
            _ => {}
        }
        let unit = parse(text, SUFFIXES)?;
        if unit == 0 {
            return Err(Trouble::Invalid);
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Self::Blocks(unit));
        }
        const KNOWN: &[&str] = &["K", "M", "G", "T", "P", "E", "kB", "MB", "GB", "TB", "PB", "EB", "KiB", "MiB", "GiB", "TiB"];
        let suffix = KNOWN.iter().find(|known| known.eq_ignore_ascii_case(text)).copied();
        Ok(suffix.map_or(Self::Blocks(unit), |suffix| Self::Suffixed(unit, if suffix == "KB" { "kB" } else { suffix })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_suffixes() {
        for (text, size) in
            [("10", 10), ("1K", 1024), ("1kB", 1000), ("2b", 1024), ("1MiB", 1 << 20), ("1M", 1 << 20), ("k", 1024)]
        {
            assert_eq!(parse(text, SUFFIXES), Ok(size), "{text}");
        }
        assert_eq!(parse("x", SUFFIXES), Err(Trouble::Invalid));
        assert_eq!(parse("1x", SUFFIXES), Err(Trouble::Suffix));
        assert_eq!(parse("99999999999999999999", SUFFIXES), Err(Trouble::Overflow));
    }

    #[test]
    fn sizes_for_people_round_up() {
        for (size, text) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (1025, "1.1K"),
            (10240, "10K"),
            (10241, "11K"),
            (1 << 20, "1.0M"),
            (1047552, "1023K"),
            (1047553, "1.0M"),
        ] {
            assert_eq!(human(size, 1024), text);
        }
    }
}
