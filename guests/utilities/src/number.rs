//! Floating-point numbers as C reads and prints them.

/// Reads what `strtod` would: decimals, exponents, hexadecimal, `inf` and `nan`.
pub fn parse_float(text: &str) -> Option<f64> {
    let (sign, digits) = match (text.strip_prefix('-'), text.strip_prefix('+')) {
        (Some(rest), _) => (-1.0, rest),
        (_, Some(rest)) => (1.0, rest),
        _ => (1.0, text),
    };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return hexadecimal(hex).map(|value| sign * value);
    }
    let first = digits.chars().next()?;
    (first.is_ascii_digit() || first == '.' || first == 'i' || first == 'I' || first == 'n' || first == 'N').then_some(())?;
    digits.parse::<f64>().ok().map(|value| sign * value)
}

fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.find(['p', 'P']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let mut scale = 1.0;
    for digit in fraction.chars() {
        scale /= 16.0;
        value += f64::from(digit.to_digit(16)?) * scale;
    }
    Some(value * 2f64.powi(exponent))
}

/// `%e` with so many digits.
pub fn scientific(value: f64, precision: usize) -> String {
    let text = sys::decimal::scientific(value, precision);
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// `%g` with so many significant digits; `alternate` keeps trailing zeros.
pub fn general(value: f64, precision: usize, alternate: bool) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "nan".into() } else { if value > 0.0 { "inf" } else { "-inf" }.into() };
    }
    let precision = precision.max(1);
    let probe = sys::decimal::scientific(value, precision - 1);
    let exponent: i32 = probe.split_once('e').and_then(|(_, digits)| digits.parse().ok()).unwrap_or(0);
    let trim = |text: String| {
        if alternate || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if exponent < -4 || exponent >= precision as i32 {
        let text = scientific(value, precision - 1);
        let (mantissa, tail) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{tail}", trim(mantissa.to_owned()));
    }
    let places = usize::try_from(precision as i32 - 1 - exponent).unwrap_or(0);
    trim(sys::decimal::fixed(value, places))
}

/// One conversion of a `printf` format: flags, width, precision and one of `aefgAEFG`.
#[derive(Clone, Debug)]
pub struct Spec {
    minus: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    letter: char,
}

impl Spec {
    /// Reads what follows a `%`; gives the rest too.
    pub fn parse(text: &str) -> Option<(Self, &str)> {
        let mut spec = Self {
            minus: false,
            plus: false,
            space: false,
            zero: false,
            alternate: false,
            width: 0,
            precision: None,
            letter: 'g',
        };
        let flags = text.find(|c| !"-+ 0#'".contains(c))?;
        for flag in text[..flags].chars() {
            match flag {
                '-' => spec.minus = true,
                '+' => spec.plus = true,
                ' ' => spec.space = true,
                '0' => spec.zero = true,
                '#' => spec.alternate = true,
                _ => {}
            }
        }
        let mut rest = &text[flags..];
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        if digits > 0 {
            spec.width = rest[..digits].parse().ok()?;
        }
        rest = &rest[digits..];
        if let Some(after) = rest.strip_prefix('.') {
            let digits = after.find(|c: char| !c.is_ascii_digit())?;
            spec.precision = Some(if digits == 0 { 0 } else { after[..digits].parse().ok()? });
            rest = &after[digits..];
        }
        rest = rest.strip_prefix('L').unwrap_or(rest);
        spec.letter = rest.chars().next().filter(|c| "aefgAEFG".contains(*c))?;
        Some((spec, &rest[1..]))
    }

    /// The number as this conversion prints it.
    pub fn show(&self, value: f64) -> String {
        let magnitude = value.abs();
        let body = match self.letter.to_ascii_lowercase() {
            _ if !value.is_finite() => {
                if value.is_nan() {
                    "nan".to_owned()
                } else {
                    "inf".to_owned()
                }
            }
            'f' => sys::decimal::fixed(magnitude, self.precision.unwrap_or(6)),
            'e' => scientific(magnitude, self.precision.unwrap_or(6)),
            'a' => hexadecimal_text(magnitude),
            _ => general(magnitude, self.precision.unwrap_or(6), self.alternate),
        };
        let body = if self.letter.is_ascii_uppercase() { body.to_ascii_uppercase() } else { body };
        let sign = match (value.is_sign_negative(), self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let pad = self.width.saturating_sub(body.len() + sign.len());
        match (self.minus, self.zero && value.is_finite()) {
            (true, _) => format!("{sign}{body}{}", " ".repeat(pad)),
            (_, true) => format!("{sign}{}{body}", "0".repeat(pad)),
            _ => format!("{}{sign}{body}", " ".repeat(pad)),
        }
    }
}

fn hexadecimal_text(value: f64) -> String {
    if value == 0.0 {
        return "0x0p+0".into();
    }
    // As x86's long double prints: the first digit holds four bits.
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    let digits = format!("{:x}", mantissa << 3);
    let (first, fraction) = digits.split_at(1);
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("0x{first}{dot}{fraction}p{:+}", exponent - 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_form_is_c() {
        for (value, text) in
            [(1.0, "1"), (1_000_000.0, "1e+06"), (0.0001, "0.0001"), (0.00001, "1e-05"), (1.5, "1.5"), (123_456.7, "123457")]
        {
            assert_eq!(general(value, 6, false), text);
        }
    }
}
