//! The engine of `rg -P`: back-references and look-around, by backtracking.

use grep_matcher::{Captures, Match, Matcher, NoError};
use posix_regex::{Around, Regex, Span};

use super::options::{Boundary, Case, Options};

/// A pattern with what only backtracking can match.
#[derive(Debug)]
pub(super) struct Perl(Regex);

/// The groups of a match.
#[derive(Debug, Default)]
pub(super) struct Groups(Vec<Option<Span>>);

impl Perl {
    /// Compiles what any of the patterns matches.
    pub fn new(patterns: &[String], options: &Options) -> Result<Self, String> {
        let patterns: Vec<String> = match options.fixed_strings {
            true => patterns.iter().map(|pattern| posix_regex::escape(pattern)).collect(),
            false => patterns.to_vec(),
        };
        let ignore_case = match options.case {
            Case::Sensitive => false,
            Case::Insensitive => true,
            Case::Smart => !patterns.iter().any(|pattern| pattern.chars().any(char::is_uppercase)),
        };
        let around = match options.boundary {
            None => Around::Nothing,
            Some(Boundary::Line) => Around::Line,
            Some(Boundary::Word) => Around::Word,
        };
        let joined = match &patterns[..] {
            [only] => only.clone(),
            several => several.iter().map(|pattern| format!("(?:{pattern})")).collect::<Vec<_>>().join("|"),
        };
        let joined = if options.multiline && options.multiline_dotall { format!("(?s:{joined})") } else { joined };
        Regex::perl(joined.as_bytes(), ignore_case, around)
            .map(Self)
            .map_err(|error| format!("PCRE2: error compiling pattern: {error}"))
    }
}

impl Captures for Groups {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Match> {
        self.0.get(index).copied().flatten().map(|(start, end)| Match::new(start, end))
    }
}

impl Matcher for Perl {
    type Captures = Groups;
    type Error = NoError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        Ok(self.0.find_at(haystack, at).map(|(start, end)| Match::new(start, end)))
    }

    fn new_captures(&self) -> Result<Groups, NoError> {
        Ok(Groups::default())
    }

    fn capture_count(&self) -> usize {
        self.0.groups() + 1
    }

    fn captures_at(&self, haystack: &[u8], at: usize, groups: &mut Groups) -> Result<bool, NoError> {
        Ok(self.0.captures_at(haystack, at, &mut groups.0))
    }
}
