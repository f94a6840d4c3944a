//! Bracket expressions: `[a-z_]`, `[!0-9]`, `[[:alpha:]]`.

use common::bytes;

/// The characters between brackets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Set {
    pub(super) negated: bool,
    pub(super) ranges: Vec<(char, char)>,
    pub(super) classes: Vec<Class>,
}

/// A named class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Word,
    Xdigit,
    /// An unknown class, which contains no characters.
    Nothing,
}

impl Class {
    fn named(name: &str) -> Self {
        match name {
            "alnum" => Self::Alnum,
            "alpha" => Self::Alpha,
            "ascii" => Self::Ascii,
            "blank" => Self::Blank,
            "cntrl" => Self::Cntrl,
            "digit" => Self::Digit,
            "graph" => Self::Graph,
            "lower" => Self::Lower,
            "print" => Self::Print,
            "punct" => Self::Punct,
            "space" => Self::Space,
            "upper" => Self::Upper,
            "word" => Self::Word,
            "xdigit" => Self::Xdigit,
            _ => Self::Nothing,
        }
    }

    fn contains(self, c: char) -> bool {
        if bytes::stray_byte(c).is_some() {
            return false;
        }
        match self {
            Self::Alnum => c.is_alphanumeric(),
            Self::Alpha => c.is_alphabetic(),
            Self::Ascii => c.is_ascii(),
            Self::Blank => c == ' ' || c == '\t',
            Self::Cntrl => c.is_control(),
            Self::Digit => c.is_ascii_digit(),
            Self::Graph => !c.is_control() && !c.is_whitespace(),
            Self::Lower => c.is_lowercase(),
            Self::Print => !c.is_control(),
            Self::Punct => {
                c.is_ascii_punctuation() || (!c.is_ascii() && !c.is_alphanumeric() && !c.is_whitespace() && !c.is_control())
            }
            Self::Space => c.is_whitespace(),
            Self::Upper => c.is_uppercase(),
            Self::Word => c.is_alphanumeric() || c == '_',
            Self::Xdigit => c.is_ascii_hexdigit(),
            Self::Nothing => false,
        }
    }
}

impl Set {
    pub(super) fn contains(&self, c: char, nocase: bool) -> bool {
        let mut found = self.holds(c);
        if nocase && !found {
            found = c.to_lowercase().any(|c| self.holds(c)) || c.to_uppercase().any(|c| self.holds(c));
        }
        found != self.negated
    }

    fn holds(&self, c: char) -> bool {
        self.ranges.iter().any(|&(from, to)| from <= c && c <= to) || self.classes.iter().any(|class| class.contains(c))
    }

    /// Reads a set whose `[` is at `open`; gives it with the position after its `]`. `None` when it has no end.
    pub(super) fn read(text: &[(char, bool)], open: usize) -> Option<(Self, usize)> {
        let special = |at: usize, c: char| text.get(at) == Some(&(c, false));
        let mut set = Self::default();
        let mut at = open + 1;
        if special(at, '!') || special(at, '^') {
            set.negated = true;
            at += 1;
        }
        let first = at;
        loop {
            let &(c, quoted) = text.get(at)?;
            if c == ']' && !quoted && at > first {
                return Some((set, at + 1));
            }
            if c == '['
                && !quoted
                && let Some((name, kind, after)) = named(text, at)
            {
                match kind {
                    ':' => {
                        set.classes.push(Class::named(&name));
                        at = after;
                        continue;
                    }
                    _ => {
                        let mut chars = name.chars();
                        if let (Some(single), None) = (chars.next(), chars.next()) {
                            at = set.range_from(text, single, after)?;
                            continue;
                        }
                        at = after;
                        continue;
                    }
                }
            }
            if c == '\\'
                && !quoted
                && let Some(&(escaped, _)) = text.get(at + 1)
            {
                at = set.range_from(text, escaped, at + 2)?;
                continue;
            }
            at = set.range_from(text, c, at + 1)?;
        }
    }

    /// Adds a character, or the range that it begins; gives the position after.
    fn range_from(&mut self, text: &[(char, bool)], from: char, after: usize) -> Option<usize> {
        let dash = text.get(after) == Some(&('-', false));
        if !dash || text.get(after + 1) == Some(&(']', false)) {
            self.ranges.push((from, from));
            return Some(after);
        }
        let &(mut to, quoted) = text.get(after + 1)?;
        let mut end = after + 2;
        if to == '\\' && !quoted {
            to = text.get(end)?.0;
            end += 1;
        } else if to == '['
            && !quoted
            && let Some((name, '.' | '=', past)) = named(text, after + 1)
        {
            to = name.chars().next().unwrap_or(to);
            end = past;
        }
        self.ranges.push((from, to));
        Some(end)
    }
}

/// Returns `[:name:]`, `[=c=]` or `[.c.]` at a position: the name, the kind, the position after.
fn named(text: &[(char, bool)], at: usize) -> Option<(String, char, usize)> {
    /// No name is longer.
    const LONGEST: usize = 32;
    let &(kind, _) = text.get(at + 1)?;
    if !matches!(kind, ':' | '=' | '.') {
        return None;
    }
    let start = at + 2;
    let end = (start..start + LONGEST).find(|&end| {
        end > start && text.get(end).is_some_and(|&(c, _)| c == kind) && text.get(end + 1).is_some_and(|&(c, _)| c == ']')
    })?;
    let name = text.get(start..end)?.iter().map(|&(c, _)| c).collect();
    Some((name, kind, end + 2))
}
