//! Patterns that a tenant's admins add to those of the security scan, in the form of Skillbox's files of patterns.
//!
//! The built-in ones always apply. Expressions run in linear time, and their number and size are bounded.

use ::skills::File;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::serve::app::App;
use crate::serve::problem::Problem;

/// Most patterns of a tenant, and longest text of one.
const MOST: usize = 200;
const TEXT_BYTES: usize = 1000;
/// Largest compiled expression.
const COMPILED_BYTES: usize = 1 << 18;

/// The patterns of a tenant.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Patterns {
    version: u32,
    /// Patterns that refuse a skill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    block_patterns: Vec<Pattern>,
    /// Patterns that are listed with its versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    flag_patterns: Vec<Pattern>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    regex: String,
    category: String,
    #[serde(default)]
    description: String,
}

/// A line that a pattern matches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) blocks: bool,
    pub(super) category: String,
    pub(super) description: String,
    pub(super) file: String,
    pub(super) line: usize,
}

impl Pattern {
    fn compile(&self) -> Result<Regex, Problem> {
        for (name, text) in [("regex", &self.regex), ("category", &self.category), ("description", &self.description)] {
            if text.len() > TEXT_BYTES || text.is_empty() && name != "description" {
                return Err(Problem::bad_request(format!("invalid `{name}`: expected 1 to {TEXT_BYTES} bytes")));
            }
        }
        let compiled = RegexBuilder::new(&self.regex).case_insensitive(true).size_limit(COMPILED_BYTES).build();
        compiled.map_err(|error| {
            let regex = runtime::actions::quoted(&self.regex);
            Problem::bad_request(format!("invalid regular expression `{regex}`: {error}"))
        })
    }

    fn found(&self, blocks: bool, file: &str, line: usize) -> Found {
        let (category, description) = (self.category.clone(), self.description.clone());
        Found { blocks, category, description, file: file.to_owned(), line }
    }
}

impl Patterns {
    /// No patterns.
    pub(super) fn none() -> Self {
        Self { version: 1, block_patterns: Vec::new(), flag_patterns: Vec::new() }
    }

    /// Returns the patterns of a tenant.
    pub(super) fn of(app: &App, tenant: &str) -> Result<Self, Problem> {
        let stored = app.catalog().scan_patterns(tenant)?;
        Ok(stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(Self::none))
    }

    /// Makes them those of a tenant, if each is in order.
    pub(super) fn store(&self, app: &App, tenant: &str) -> Result<(), Problem> {
        if self.version != 1 {
            return Err(Problem::bad_request(format!("unknown `version` {}: expected 1", self.version)));
        }
        if self.block_patterns.len() + self.flag_patterns.len() > MOST {
            return Err(Problem::bad_request(format!("more than {MOST} patterns")));
        }
        self.each().try_for_each(|(_, pattern)| pattern.compile().map(drop))?;
        let text = serde_json::to_string(self).map_err(|error| Problem::internal(&error))?;
        Ok(app.catalog().set_scan_patterns(tenant, &text)?)
    }

    fn each(&self) -> impl Iterator<Item = (bool, &Pattern)> {
        let block = self.block_patterns.iter().map(|pattern| (true, pattern));
        block.chain(self.flag_patterns.iter().map(|pattern| (false, pattern)))
    }

    /// Returns the first line of each file that each pattern matches; those that block come first.
    pub(super) fn search(&self, files: &[File]) -> Result<Vec<Found>, Problem> {
        let mut found = Vec::new();
        for (blocks, pattern) in self.each() {
            let regex = pattern.compile()?;
            for file in files {
                // The built-in scan rejects a skill with text that is not searched.
                let (text, _) = ::skills::scanned_text(file);
                let line = text.lines().position(|line| regex.is_match(line));
                found.extend(line.map(|line| pattern.found(blocks, &file.path, line + 1)));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_finds_the_first_line_of_each_file_and_blocks_come_first() {
        let text = r#"{ "version": 1, "block_patterns": [{ "regex": "coin\\s*hive", "category": "mining" }],
                        "flag_patterns": [{ "regex": "^import os", "category": "os", "description": "reads the machine" }] }"#;
        let patterns: Patterns = serde_json::from_str(text).unwrap();
        let files = [File::new("a.py", "import os\nx = 'Coin hive'\ncoinhive"), File::new("b", b"\xffcoinhive".to_vec())];
        let found = patterns.search(&files).unwrap();
        let shown: Vec<(bool, &str, usize)> =
            found.iter().map(|found| (found.blocks, found.category.as_str(), found.line)).collect();
        assert_eq!(shown, [(true, "mining", 2), (false, "os", 1)]);
    }

    #[test]
    fn bytes_and_size_hide_no_pattern() {
        let text = r#"{ "version": 1, "block_patterns": [{ "regex": "coinhive", "category": "mining" }] }"#;
        let patterns: Patterns = serde_json::from_str(text).unwrap();
        let large = format!("{}coinhive\n", "1,2\n".repeat(1 << 19));
        let files = [File::new("a.bin", b"\xff\n\0run coinhive here\n".to_vec()), File::new("b.csv", large)];
        let found = patterns.search(&files).unwrap();
        assert_eq!(found.iter().map(|found| found.line).collect::<Vec<_>>(), [2, (1 << 19) + 1]);
    }

    #[test]
    fn an_expression_that_is_invalid_or_huge_is_refused() {
        let pattern = |regex: &str| Pattern { regex: regex.to_owned(), category: "c".to_owned(), description: String::new() };
        assert!(pattern("a+b").compile().is_ok());
        for regex in ["(", "", r"(?:a{1000}){1000}", &"x".repeat(1001)] {
            assert_eq!(pattern(regex).compile().unwrap_err().status.as_u16(), 400, "{regex}");
        }
    }
}
