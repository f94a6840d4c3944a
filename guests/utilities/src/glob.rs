//! Shell patterns: `*`, `?`, `[…]` and `\`.

/// Whether the whole name fits the pattern; `period`: a leading dot must be written out.
pub fn matches(pattern: &[u8], name: &[u8], period: bool) -> bool {
    if period && name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    fits(pattern, name)
}

fn fits(mut pattern: &[u8], mut name: &[u8]) -> bool {
    // Where to go back to when a star took too little.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        let step = match pattern.split_first() {
            Some((b'*', rest)) => {
                retry = Some((rest, name));
                pattern = rest;
                continue;
            }
            None if name.is_empty() => return true,
            None => None,
            Some((&first, rest)) => name.split_first().and_then(|(&byte, after)| {
                let rest = match first {
                    b'?' => Some(rest),
                    b'[' => match bracket(rest, byte) {
                        Some((true, rest)) => Some(rest),
                        Some((false, _)) => None,
                        None => (byte == b'[').then_some(rest),
                    },
                    b'\\' if !rest.is_empty() => (rest[0] == byte).then(|| &rest[1..]),
                    literal => (literal == byte).then_some(rest),
                };
                rest.map(|rest| (rest, after))
            }),
        };
        match (step, retry) {
            (Some(next), _) => (pattern, name) = next,
            (None, Some((star, from))) => {
                let Some((_, after)) = from.split_first() else { return false };
                retry = Some((star, after));
                (pattern, name) = (star, after);
            }
            (None, None) => return false,
        }
    }
}

/// Whether a bracket expression takes the byte, and what follows it; `None` when it never ends.
fn bracket(pattern: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let mut at = usize::from(negated);
    let mut found = false;
    let mut first = true;
    loop {
        let &low = pattern.get(at)?;
        if low == b']' && !first {
            return Some((found != negated, &pattern[at + 1..]));
        }
        first = false;
        if low == b'[' && pattern.get(at + 1) == Some(&b':') {
            let length = pattern[at + 2..].windows(2).position(|pair| pair == b":]")?;
            found |= in_class(&pattern[at + 2..at + 2 + length], byte);
            at += length + 4;
            continue;
        }
        if pattern.get(at + 1) == Some(&b'-') && pattern.get(at + 2).is_some_and(|&high| high != b']') {
            found |= (low..=pattern[at + 2]).contains(&byte);
            at += 3;
        } else {
            found |= low == byte;
            at += 1;
        }
    }
}

/// Whether a byte is of a POSIX character class in the C locale.
pub fn in_class(class: &[u8], byte: u8) -> bool {
    match class {
        b"alpha" => byte.is_ascii_alphabetic(),
        b"digit" => byte.is_ascii_digit(),
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"upper" => byte.is_ascii_uppercase(),
        b"lower" => byte.is_ascii_lowercase(),
        b"space" => byte.is_ascii_whitespace() || byte == 11,
        b"blank" => byte == b' ' || byte == b'\t',
        b"punct" => byte.is_ascii_punctuation(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"graph" => byte.is_ascii_graphic(),
        b"cntrl" => byte.is_ascii_control(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names() {
        for (pattern, name, fits) in [
            ("*", "abc", true),
            ("a*c", "abbc", true),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a]x", "ax", false),
            ("*.o", "x.c", false),
            ("[", "[", true),
            ("*a*b", "xaxb", true),
            ("*", ".x", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes(), true), fits, "{pattern} {name}");
        }
    }
}
