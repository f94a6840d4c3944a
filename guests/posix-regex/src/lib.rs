//! POSIX regular expressions, basic and extended with GNU's additions, on linear-time automata.
//!
//! A pattern is parsed here into a tree, rewritten by `translate` for the automata of `engine`; only a pattern with
//! back-references is matched by backtracking. Knows nothing of lines, files or utilities.

mod bracket;
mod emacs;
mod engine;
mod translate;

pub use emacs::from_emacs;
pub use engine::{Around, Regex, Span};
pub use regex_syntax::escape;

/// Which dialect a pattern is written in and how it meets its text.
#[derive(Clone, Copy, Debug)]
pub struct Syntax {
    /// Extended (`grep -E`) instead of basic.
    pub extended: bool,
    /// Letters match without regard to case.
    pub ignore_case: bool,
    /// A newline is never part of a match.
    pub lines: bool,
    /// `^` and `$` also match at newlines inside the text.
    pub multiline: bool,
    /// Characters are UTF-8, otherwise bytes.
    pub utf8: bool,
    /// awk: a backslash escapes inside brackets too, and there are no back-references.
    pub awk: bool,
    /// `\n`, `\t`, `\x41` and so on stand for characters.
    pub escapes: bool,
    /// A repetition with nothing before it is an error in extended syntax.
    pub strict_repeat: bool,
    /// As the C library's `regcomp` does, takes a lone `)` and `[:alpha:]` outside brackets for ordinary text.
    pub library: bool,
}

impl Default for Syntax {
    fn default() -> Self {
        Self {
            extended: false,
            ignore_case: false,
            lines: false,
            multiline: false,
            utf8: true,
            awk: false,
            escapes: false,
            strict_repeat: false,
            library: false,
        }
    }
}

/// First code of a unit that is a raw byte and no character.
pub(crate) const RAW: u32 = 0x11_0000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Empty,
    /// A character, or [`RAW`] plus a byte.
    Char(u32),
    Any,
    Class(Class),
    Start,
    End,
    TextStart,
    TextEnd,
    Boundary,
    NotBoundary,
    WordStart,
    WordEnd,
    Group(Box<Node>),
    Backref(u32),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    Repeat(Box<Node>, u32, Option<u32>),
}

impl Node {
    /// Returns whether it matches a place between characters.
    fn is_assertion(&self) -> bool {
        matches!(
            self,
            Self::Start
                | Self::End
                | Self::TextStart
                | Self::TextEnd
                | Self::Boundary
                | Self::NotBoundary
                | Self::WordStart
                | Self::WordEnd
        )
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Class {
    pub negated: bool,
    pub ranges: Vec<(u32, u32)>,
    /// POSIX names, or `word` for `\w`.
    pub names: Vec<&'static str>,
}

pub(crate) struct Parsed {
    pub node: Node,
    pub groups: usize,
    pub backrefs: bool,
    pub warnings: Vec<String>,
}

/// Returns the pattern as characters; what is not UTF-8 becomes raw bytes.
pub(crate) fn units(pattern: &[u8], utf8: bool) -> Vec<u32> {
    let raw = |byte: &u8| if *byte < 0x80 { u32::from(*byte) } else { RAW + u32::from(*byte) };
    if !utf8 {
        return pattern.iter().map(raw).collect();
    }
    let mut units = Vec::with_capacity(pattern.len());
    for chunk in pattern.utf8_chunks() {
        units.extend(chunk.valid().chars().map(u32::from));
        units.extend(chunk.invalid().iter().map(raw));
    }
    units
}

pub(crate) struct Parser {
    units: Vec<u32>,
    at: usize,
    syntax: Syntax,
    groups: usize,
    closed: Vec<bool>,
    backrefs: bool,
    warnings: Vec<String>,
}

const MAX_REPEAT: u32 = 32767;

pub(crate) fn parse(pattern: &[u8], syntax: Syntax) -> Result<Parsed, String> {
    let mut parser = Parser {
        units: units(pattern, syntax.utf8),
        at: 0,
        syntax,
        groups: 0,
        closed: Vec::new(),
        backrefs: false,
        warnings: Vec::new(),
    };
    let node = parser.alternate(0)?;
    Ok(Parsed { node, groups: parser.groups, backrefs: parser.backrefs, warnings: parser.warnings })
}

impl Parser {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.units.get(self.at + ahead).and_then(|&unit| char::from_u32(unit))
    }

    fn end(&self) -> bool {
        self.at >= self.units.len()
    }

    /// Returns whether the operator `op` (`\op` in basic syntax) is next; returns its length.
    fn operator(&self, op: char) -> Option<usize> {
        if self.syntax.extended {
            (self.peek(0) == Some(op)).then_some(1)
        } else {
            (self.peek(0) == Some('\\') && self.peek(1) == Some(op)).then_some(2)
        }
    }

    fn alternate(&mut self, depth: usize) -> Result<Node, String> {
        let mut branches = vec![self.branch(depth)?];
        while let Some(length) = self.operator('|') {
            self.at += length;
            branches.push(self.branch(depth)?);
        }
        Ok(if branches.len() == 1 { branches.remove(0) } else { Node::Alternate(branches) })
    }

    fn branch(&mut self, depth: usize) -> Result<Node, String> {
        let mut items: Vec<Node> = Vec::new();
        while !self.end() && self.operator('|').is_none() {
            if self.operator(')').is_some() {
                if depth > 0 {
                    break;
                }
                if !self.syntax.extended || self.syntax.strict_repeat && !self.syntax.library {
                    return Err("Unmatched ) or \\)".to_string());
                }
            }
            let first = items.is_empty() || !self.syntax.extended && items == [Node::Start];
            if first && self.leading_repeat(items.is_empty())? {
                continue;
            }
            let atom = self.atom(items.is_empty(), depth)?;
            let atom = self.repeats(atom)?;
            items.push(atom);
        }
        Ok(match items.len() {
            0 => Node::Empty,
            1 => items.remove(0),
            _ => Node::Concat(items),
        })
    }

    /// Skips (or refuses) a repetition that has nothing to repeat; in basic syntax a `*` there is an ordinary character.
    fn leading_repeat(&mut self, start: bool) -> Result<bool, String> {
        if self.syntax.extended {
            if matches!(self.peek(0), Some('*' | '+' | '?')) {
                if self.syntax.strict_repeat {
                    return Err("Invalid preceding regular expression".to_string());
                }
                if let Some(char) = self.peek(0) {
                    self.warnings.push(format!("{char} at start of expression"));
                }
                self.at += 1;
                return Ok(true);
            }
            if self.peek(0) == Some('{') && self.syntax.strict_repeat {
                return Err("Invalid preceding regular expression".to_string());
            }
        } else if start && self.peek(0) == Some('\\') && self.peek(1) == Some('{') {
            return Err("Invalid preceding regular expression".to_string());
        }
        Ok(false)
    }

    fn repeats(&mut self, mut atom: Node) -> Result<Node, String> {
        if !self.syntax.extended && atom == Node::Start {
            return Ok(atom);
        }
        loop {
            let (min, max) = if self.peek(0) == Some('*') {
                self.at += 1;
                (0, None)
            } else if let Some(length) = self.operator('+') {
                self.at += length;
                (1, None)
            } else if let Some(length) = self.operator('?') {
                self.at += length;
                (0, Some(1))
            } else if let Some(length) = self.operator('{') {
                match self.interval(length)? {
                    Some(interval) => interval,
                    None => return Ok(atom),
                }
            } else {
                return Ok(atom);
            };
            if self.syntax.extended && self.syntax.strict_repeat && atom.is_assertion() {
                return Err("Invalid preceding regular expression".to_string());
            }
            let anchor = matches!(atom, Node::Start | Node::End | Node::Empty);
            atom = if anchor { Node::Empty } else { Node::Repeat(Box::new(atom), min, max) };
        }
    }

    fn interval(&mut self, open: usize) -> Result<Option<(u32, Option<u32>)>, String> {
        let start = self.at;
        self.at += open;
        let low = self.count()?;
        let (min, max) = if self.peek(0) == Some(',') {
            self.at += 1;
            let high = self.count()?;
            (low.unwrap_or(0), high)
        } else {
            (low.unwrap_or(0), low)
        };
        let comma = self.units.get(self.at.wrapping_sub(1)) == Some(&u32::from(','));
        let Some(close) = self.operator('}') else {
            if self.syntax.extended && !self.syntax.strict_repeat {
                self.at = start;
                return Ok(None);
            }
            return Err(if self.end() { "Unmatched \\{" } else { "Invalid content of \\{\\}" }.to_string());
        };
        if low.is_none() && max.is_none() && !comma {
            if self.syntax.extended && !self.syntax.strict_repeat {
                self.at = start;
                return Ok(None);
            }
            return Err("Invalid content of \\{\\}".to_string());
        }
        self.at += close;
        if max.is_some_and(|max| max < min) {
            return Err("Invalid content of \\{\\}".to_string());
        }
        Ok(Some((min, max)))
    }

    fn count(&mut self) -> Result<Option<u32>, String> {
        let mut value = None;
        while let Some(digit) = self.peek(0).and_then(|char| char.to_digit(10)) {
            let next = value.unwrap_or(0) * 10 + digit;
            if next > MAX_REPEAT {
                return Err("Regular expression too big".to_string());
            }
            value = Some(next);
            self.at += 1;
        }
        Ok(value)
    }

    fn atom(&mut self, first: bool, depth: usize) -> Result<Node, String> {
        if let Some(length) = self.operator('(') {
            self.at += length;
            return self.group(depth);
        }
        let unit = self.units[self.at];
        self.at += 1;
        Ok(match char::from_u32(unit) {
            Some('.') => Node::Any,
            Some('[') => self.bracket()?,
            Some('^') if self.syntax.extended || first => Node::Start,
            Some('$') if self.syntax.extended || self.end() || self.closing() => Node::End,
            Some('\\') => self.escape()?,
            _ => Node::Char(unit),
        })
    }

    fn closing(&self) -> bool {
        self.operator(')').is_some() || self.operator('|').is_some()
    }

    fn group(&mut self, depth: usize) -> Result<Node, String> {
        if depth > 200 {
            return Err("Regular expression too big".to_string());
        }
        let index = self.groups;
        self.groups += 1;
        self.closed.push(false);
        let inner = self.alternate(depth + 1)?;
        match self.operator(')') {
            Some(length) => self.at += length,
            None => return Err("Unmatched ( or \\(".to_string()),
        }
        self.closed[index] = true;
        Ok(Node::Group(Box::new(inner)))
    }

    fn escape(&mut self) -> Result<Node, String> {
        let Some(&unit) = self.units.get(self.at) else { return Err("Trailing backslash".to_string()) };
        self.at += 1;
        let word = |negated| Node::Class(Class { negated, ranges: Vec::new(), names: vec!["word"] });
        let space = |negated| Node::Class(Class { negated, ranges: Vec::new(), names: vec!["space"] });
        let Some(char) = char::from_u32(unit) else { return Ok(Node::Char(unit)) };
        Ok(match char {
            'w' => word(false),
            'W' => word(true),
            's' => space(false),
            'S' => space(true),
            'b' if self.syntax.awk => Node::Char(8),
            'y' if self.syntax.awk => Node::Boundary,
            'b' => Node::Boundary,
            'B' => Node::NotBoundary,
            '<' => Node::WordStart,
            '>' => Node::WordEnd,
            '`' => Node::TextStart,
            '\'' => Node::TextEnd,
            '1'..='9' if !self.syntax.awk => {
                let number = unit - u32::from('0');
                if !self.closed.get(number as usize - 1).copied().unwrap_or(false) {
                    return Err("Invalid back reference".to_string());
                }
                self.backrefs = true;
                Node::Backref(number)
            }
            _ if self.syntax.escapes || self.syntax.awk => Node::Char(self.character_escape(char, unit)),
            _ => Node::Char(unit),
        })
    }

    /// `\n`, `\x41`, `\101` … after the letter was read.
    fn character_escape(&mut self, char: char, unit: u32) -> u32 {
        let byte = |value: u32| if value < 0x80 { value } else { RAW + (value & 0xff) };
        match char {
            'n' => 10,
            't' => 9,
            'r' => 13,
            'f' => 12,
            'v' => 11,
            'a' => 7,
            'x' => match self.digits(16, 2) {
                Some(value) => byte(value),
                None => unit,
            },
            'd' if !self.syntax.awk => match self.digits(10, 3) {
                Some(value) => byte(value),
                None => unit,
            },
            'o' if !self.syntax.awk => match self.digits(8, 3) {
                Some(value) => byte(value),
                None => unit,
            },
            'c' if !self.syntax.awk => match self.peek(0) {
                Some(control) if control.is_ascii() => {
                    self.at += 1;
                    u32::from(control.to_ascii_uppercase()) ^ 0x40
                }
                _ => unit,
            },
            '0'..='7' if self.syntax.awk => {
                self.at -= 1;
                self.digits(8, 3).map_or(unit, byte)
            }
            _ => unit,
        }
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..most {
            let Some(digit) = self.peek(0).and_then(|char| char.to_digit(radix)) else { break };
            value = Some(value.unwrap_or(0) * radix + digit);
            self.at += 1;
        }
        value
    }
}

#[cfg(test)]
mod tests;
