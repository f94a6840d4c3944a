//! The right side of `s`: groups, escapes and case changes.

use posix_regex::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Lower,
    UpperNext,
    LowerNext,
    End,
}

#[derive(Debug)]
enum Part {
    Text(Vec<u8>),
    Group(usize),
    Case(Case),
}

#[derive(Debug)]
pub(super) struct Replacement {
    parts: Vec<Part>,
    pub highest: usize,
    cased: bool,
}

/// Returns the character that `\letter…` stands for; moves `at` behind its digits.
pub(super) fn escape(text: &[u8], at: &mut usize, letter: u8) -> Option<u8> {
    let digits = |at: &mut usize, radix: u32, most: usize| {
        let mut value = None;
        for _ in 0..most {
            let Some(digit) = text.get(*at).and_then(|&byte| char::from(byte).to_digit(radix)) else { break };
            value = Some(value.unwrap_or(0) * radix + digit);
            *at += 1;
        }
        value.map(|value| value as u8)
    };
    match letter {
        b'a' => Some(7),
        b'f' => Some(12),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        b'v' => Some(11),
        b'd' => digits(at, 10, 3),
        b'o' => digits(at, 8, 3),
        b'x' => digits(at, 16, 2),
        b'c' => {
            let control = text.get(*at)?.to_ascii_uppercase() ^ 0x40;
            *at += 1;
            Some(control)
        }
        _ => None,
    }
}

/// Returns the characters of a `y` string.
pub(super) fn characters(text: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'\\' && at + 1 < text.len() {
            let letter = text[at + 1];
            at += 2;
            match escape(text, &mut at, letter) {
                Some(byte) => out.push(vec![byte]),
                None if letter == b'\\' || letter == b'\n' => out.push(vec![letter]),
                None => {
                    out.push(vec![b'\\']);
                    at -= 1;
                }
            }
            continue;
        }
        let length = char_length(&text[at..]);
        out.push(text[at..at + length].to_vec());
        at += length;
    }
    out
}

/// Bytes of the character that `text` starts with.
pub(super) fn char_length(text: &[u8]) -> usize {
    match text.first() {
        Some(0..0x80) | None => 1,
        Some(_) => {
            let most = text.len().min(4);
            (2..=most).find(|&length| std::str::from_utf8(&text[..length]).is_ok()).unwrap_or(1)
        }
    }
}

impl Replacement {
    pub fn parse(text: &[u8]) -> Self {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut highest = 0;
        let mut cased = false;
        let mut at = 0;
        while at < text.len() {
            let byte = text[at];
            at += 1;
            let part = match byte {
                b'&' => Part::Group(0),
                b'\\' if at < text.len() => {
                    let letter = text[at];
                    at += 1;
                    match letter {
                        b'0'..=b'9' => {
                            let group = usize::from(letter - b'0');
                            highest = highest.max(group);
                            Part::Group(group)
                        }
                        b'U' => Part::Case(Case::Upper),
                        b'L' => Part::Case(Case::Lower),
                        b'u' => Part::Case(Case::UpperNext),
                        b'l' => Part::Case(Case::LowerNext),
                        b'E' => Part::Case(Case::End),
                        _ => {
                            literal.push(escape(text, &mut at, letter).unwrap_or(letter));
                            continue;
                        }
                    }
                }
                _ => {
                    literal.push(byte);
                    continue;
                }
            };
            cased |= matches!(part, Part::Case(_));
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(part);
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Self { parts, highest, cased }
    }

    /// Appends what replaces a match.
    pub fn append(&self, text: &[u8], spans: &[Option<Span>], out: &mut Vec<u8>) {
        let piece = |part: &Part| -> Vec<u8> {
            match part {
                Part::Text(literal) => literal.clone(),
                Part::Group(group) => {
                    spans.get(*group).copied().flatten().map_or(Vec::new(), |(from, to)| text[from..to].to_vec())
                }
                Part::Case(_) => Vec::new(),
            }
        };
        if !self.cased {
            for part in &self.parts {
                match part {
                    Part::Text(literal) => out.extend_from_slice(literal),
                    Part::Group(group) => {
                        if let Some((from, to)) = spans.get(*group).copied().flatten() {
                            out.extend_from_slice(&text[from..to]);
                        }
                    }
                    Part::Case(_) => {}
                }
            }
            return;
        }
        let (mut lasting, mut once) = (None, None);
        for part in &self.parts {
            if let Part::Case(case) = part {
                match case {
                    Case::Upper | Case::Lower => (lasting, once) = (Some(*case), None),
                    Case::End => (lasting, once) = (None, None),
                    _ => once = Some(*case),
                }
                continue;
            }
            let bytes = piece(part);
            if bytes.is_empty() {
                continue;
            }
            let mut shown = String::new();
            let mut first = true;
            for chunk in bytes.utf8_chunks() {
                for char in chunk.valid().chars() {
                    let case = if first && once.is_some() { once } else { lasting };
                    first = false;
                    match case {
                        Some(Case::Upper | Case::UpperNext) => shown.extend(char.to_uppercase()),
                        Some(Case::Lower | Case::LowerNext) => shown.extend(char.to_lowercase()),
                        _ => shown.push(char),
                    }
                }
                out.extend_from_slice(shown.as_bytes());
                shown.clear();
                out.extend_from_slice(chunk.invalid());
            }
            once = None;
        }
    }
}
