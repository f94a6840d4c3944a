//! Shell patterns (`fnmatch`): `*`, `?`, `[…]`, `\x`.

/// How a pattern meets slashes and case.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// `*`, `?` and `[` do not match a slash.
    pub pathname: bool,
    /// Letters match without regard to case.
    pub ignore_case: bool,
    /// A match may end at a slash in the text (`FNM_LEADING_DIR`).
    pub leading_dir: bool,
}

/// Whether `text` as a whole matches `pattern`.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8], options: Options) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if p == pattern.len() && (t == text.len() || options.leading_dir && text[t] == b'/') {
            return true;
        }
        if p < pattern.len() {
            if pattern[p] == b'*' {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            if t < text.len()
                && let Some((np, nt)) = step(pattern, p, text, t, options)
            {
                p = np;
                t = nt;
                continue;
            }
        }
        match star {
            Some((sp, st)) if st < text.len() && !(options.pathname && text[st] == b'/') => {
                let next = st + char_length(&text[st..]);
                star = Some((sp, next));
                p = sp;
                t = next;
            }
            _ => return false,
        }
    }
}

/// Whether the pattern has anything special in it.
#[must_use]
pub fn is_pattern(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| b"*?[\\".contains(byte))
}

/// The patterns that one with `{a,b}` stands for.
#[must_use]
pub fn braces(pattern: &[u8]) -> Vec<Vec<u8>> {
    let Some(open) = memchr::memchr(b'{', pattern) else { return vec![pattern.to_vec()] };
    let Some(close) = memchr::memchr(b'}', &pattern[open..]).map(|length| open + length) else { return vec![pattern.to_vec()] };
    pattern[open + 1..close]
        .split(|&byte| byte == b',')
        .flat_map(|choice| braces(&[&pattern[..open], choice, &pattern[close + 1..]].concat()))
        .collect()
}

fn char_length(text: &[u8]) -> usize {
    let length = match text.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 1,
    };
    if text.len() >= length && std::str::from_utf8(&text[..length]).is_ok() { length } else { 1 }
}

fn char_at(text: &[u8]) -> (u32, usize) {
    let length = char_length(text);
    match std::str::from_utf8(&text[..length]).ok().and_then(|text| text.chars().next()) {
        Some(char) => (char as u32, length),
        None => (0x11_0000 + u32::from(text[0]), 1),
    }
}

fn fold(char: u32, options: Options) -> u32 {
    if !options.ignore_case {
        return char;
    }
    char::from_u32(char).and_then(|char| char.to_lowercase().next()).map_or(char, |char| char as u32)
}

fn step(pattern: &[u8], p: usize, text: &[u8], t: usize, options: Options) -> Option<(usize, usize)> {
    let (char, length) = char_at(&text[t..]);
    if char == u32::from(b'/') && options.pathname && pattern[p] != b'/' && pattern[p] != b'\\' {
        return None;
    }
    match pattern[p] {
        b'?' => Some((p + 1, t + length)),
        b'[' => match bracket(pattern, p, char, options) {
            Some((true, end)) => Some((end, t + length)),
            Some((false, _)) => None,
            None => (char == u32::from(b'[')).then_some((p + 1, t + 1)),
        },
        b'\\' if p + 1 < pattern.len() => literal(pattern, p + 1, char, t + length, options),
        _ => literal(pattern, p, char, t + length, options),
    }
}

fn literal(pattern: &[u8], p: usize, char: u32, next: usize, options: Options) -> Option<(usize, usize)> {
    let (wanted, length) = char_at(&pattern[p..]);
    (fold(wanted, options) == fold(char, options)).then_some((p + length, next))
}

/// Whether the bracket expression at `p` has `char`, and where it ends; `None` when it never closes.
fn bracket(pattern: &[u8], p: usize, char: u32, options: Options) -> Option<(bool, usize)> {
    let mut at = p + 1;
    let negated = matches!(pattern.get(at), Some(b'!' | b'^'));
    at += usize::from(negated);
    let first = at;
    let mut found = false;
    loop {
        match *pattern.get(at)? {
            b']' if at > first => return Some((found != negated, at + 1)),
            b'[' if pattern.get(at + 1) == Some(&b':') => {
                let end = at + 2 + memchr::memmem::find(&pattern[at + 2..], b":]")?;
                found |= char::from_u32(char).is_some_and(|char| class(&pattern[at + 2..end], char));
                at = end + 2;
            }
            _ => {
                let (low, next) = bracket_char(pattern, at)?;
                at = next;
                let mut high = low;
                if pattern.get(at) == Some(&b'-') && pattern.get(at + 1).is_some_and(|&byte| byte != b']') {
                    (high, at) = bracket_char(pattern, at + 1)?;
                }
                found |= (low..=high).contains(&char);
                if options.ignore_case {
                    found |= (fold(low, options)..=fold(high, options)).contains(&fold(char, options));
                }
            }
        }
    }
}

fn bracket_char(pattern: &[u8], at: usize) -> Option<(u32, usize)> {
    let at = if pattern[at] == b'\\' && at + 1 < pattern.len() { at + 1 } else { at };
    pattern.get(at)?;
    let (char, length) = char_at(&pattern[at..]);
    Some((char, at + length))
}

/// Whether `char` is in the named POSIX class.
#[must_use]
pub fn class(name: &[u8], char: char) -> bool {
    match name {
        b"alpha" => char.is_alphabetic(),
        b"digit" => char.is_ascii_digit(),
        b"alnum" => char.is_alphanumeric(),
        b"upper" => char.is_uppercase(),
        b"lower" => char.is_lowercase(),
        b"space" => char.is_whitespace(),
        b"blank" => char == ' ' || char == '\t',
        b"punct" => char.is_ascii_punctuation(),
        b"print" => !char.is_control(),
        b"graph" => !char.is_control() && !char.is_whitespace(),
        b"cntrl" => char.is_control(),
        b"xdigit" => char.is_ascii_hexdigit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), Options::default()), expected, "{pattern} {text}");
    }

    #[test]
    fn patterns_match_as_fnmatch_says() {
        check("*.rs", "main.rs", true);
        check("*.rs", "main.rst", false);
        check("a*b*c", "aXbYbc", true);
        check("[!a-c]x", "dx", true);
        check("[!a-c]x", "bx", false);
        check("[]x]", "]", true);
        check("[[:digit:]]?", "7é", true);
        check("\\*", "*", true);
        check("\\*", "a", false);
        check("", "", true);
        check("*", "", true);
    }
}
