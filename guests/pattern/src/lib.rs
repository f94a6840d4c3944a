//! Shell patterns: `*`, `?`, `[ … ]`, `@( … )`, and the path names they stand for.
//!
//! A pattern is compiled from pieces of text that were quoted or not. Matching never backtracks over choices: a pattern
//! with groups is run on the set of all positions it could have reached, so time grows with pattern times text.
//!
//! [`Pattern`] is the shell's: compiled from text that is quoted in part. [`Fnmatch`] is the programs': one text of bytes.

mod compile;
mod fnmatch;
mod glob;
mod matching;
mod set;

pub use fnmatch::{Fnmatch, Options, fnmatch};
pub use glob::{Directories, Entry, EntryKind, GlobOptions, glob};
use set::Set;

/// A piece of a pattern's text, and whether it was quoted (and is therefore literal).
pub type Piece<'a> = (&'a str, bool);

/// How a pattern is read and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `?( *( +( @( !(` are understood.
    pub extglob: bool,
    /// Upper and lower case are the same.
    pub nocase: bool,
    /// Only a slash matches a slash.
    pub pathname: bool,
    /// A match of the whole may end at a slash.
    pub leading_dir: bool,
}

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    nodes: Vec<Node>,
    flags: Flags,
    /// The text it stands for, when it is nothing but text.
    literal: Option<String>,
    has_groups: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Char(char),
    Any,
    Star,
    Set(Box<Set>),
    Group(Repeat, Vec<Vec<Node>>),
}

/// The operator before the parenthesis of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    /// `@`.
    Once,
    /// `?`.
    Optional,
    /// `*`.
    Any,
    /// `+`.
    Some,
    /// `!`.
    Not,
}

impl Pattern {
    /// Compiles a pattern. Any text is a pattern: what is not well-formed is literal. In unquoted text (which
    /// then came out of an expansion) a backslash quotes the next character.
    pub fn compile(pieces: &[Piece<'_>], flags: Flags) -> Self {
        compile::compile(pieces, flags)
    }

    /// Returns the text that alone matches, when the pattern has no special characters.
    pub fn literal(&self) -> Option<&str> {
        self.literal.as_deref()
    }

    /// Returns whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        match &self.literal {
            Some(literal) if !self.flags.nocase && !self.flags.leading_dir => literal == text,
            _ if self.has_groups => matching::Positions::new(text).matches(&self.nodes, self.flags),
            _ => matching::matches_plain(&self.nodes, text, self.flags),
        }
    }

    /// Returns how many bytes at the start of the text match: as many or as few as possible.
    pub fn prefix(&self, text: &str, longest: bool) -> Option<usize> {
        if let Some(literal) = &self.literal
            && !self.flags.nocase
        {
            return text.starts_with(literal.as_str()).then_some(literal.len());
        }
        matching::prefix(&self.nodes, text, longest, self.flags)
    }

    /// Returns where the end of the text that matches begins: as long or as short as possible.
    pub fn suffix(&self, text: &str, longest: bool) -> Option<usize> {
        if let Some(literal) = &self.literal
            && !self.flags.nocase
        {
            return text.ends_with(literal.as_str()).then(|| text.len() - literal.len());
        }
        let reversed: String = text.chars().rev().collect();
        let nodes = matching::reversed(&self.nodes);
        matching::prefix(&nodes, &reversed, longest, self.flags).map(|length| text.len() - length)
    }

    /// Returns the first match at or after a position, the longest there: its start and end. May be empty.
    pub fn find(&self, text: &str, from: usize) -> Option<(usize, usize)> {
        let rest = text.get(from..)?;
        if let Some(literal) = &self.literal
            && !self.flags.nocase
        {
            return rest.find(literal.as_str()).map(|at| (from + at, from + at + literal.len()));
        }
        matching::find(&self.nodes, rest, self.flags).map(|(start, end)| (from + start, from + end))
    }

    /// Returns the text with its first match, or all that do not overlap, replaced. An empty match replaces nothing.
    pub fn replace(&self, text: &str, all: bool, mut replacement: impl FnMut(&str) -> String) -> String {
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        while let Some((start, end)) = self.find(text, done) {
            if start == end {
                // Only a pattern that can match nothing: try again one character on.
                let Some(next) = text.get(start..).and_then(|rest| rest.chars().next()) else { break };
                out.push_str(text.get(done..start + next.len_utf8()).unwrap_or_default());
                done = start + next.len_utf8();
                continue;
            }
            out.push_str(text.get(done..start).unwrap_or_default());
            out.push_str(&replacement(text.get(start..end).unwrap_or_default()));
            done = end;
            if !all {
                break;
            }
        }
        out.push_str(text.get(done..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests;
