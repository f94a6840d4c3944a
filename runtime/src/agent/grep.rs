//! `grep`: lines that match a regular expression.

use std::collections::VecDeque;

use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlite_fs::{FileType, FsError, Reader, Step, Visited};

use super::bounded::{Bounded, failed};
use super::find::matcher;
use super::list::is_hidden;
use super::{Agent, MAX_ENTRIES, MAX_WHOLE, text};
use crate::Error;
use crate::vfs::Node;

/// Default and maximum number of matches.
const MATCHES: usize = 200;
/// Maximum number of context lines on each side.
const MAX_CONTEXT: u32 = 20;
/// Maximum length of a returned line.
const LINE_BYTES: usize = 500;
/// Overhead of a line in a result besides path and text: its number, separators and line end.
const LINE_MARKS: usize = 8;
/// Number of lines between two checks of the clock.
const CHECKED_LINES: usize = 1024;
/// Maximum memory of a compiled expression.
const EXPRESSION_BYTES: usize = 4 << 20;

/// The kind of result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrepMode {
    /// The matching lines.
    #[default]
    Content,
    /// The files with a match.
    Files,
    /// The number of matching lines of each file.
    Count,
}

/// Selects what to search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grep {
    /// A regular expression (Rust's syntax: like PCRE without back-references and look-around), matched against each line.
    pub pattern: String,
    /// The file or directory to search; defaults to the sandbox's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Search only files that match this pattern, such as `*.py` or `src/**/*.rs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// Whether to ignore case.
    #[serde(default)]
    pub ignore_case: bool,
    /// Treat the pattern as plain text.
    #[serde(default)]
    pub literal: bool,
    /// Number of lines to show before and after each match, at most 20.
    #[serde(default)]
    pub context: u32,
    /// Whether to return lines, files or counts.
    #[serde(default)]
    pub mode: GrepMode,
    /// Maximum number of matches, at most 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_matches: Option<usize>,
    /// Whether to search names that start with a dot.
    #[serde(default)]
    pub hidden: bool,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Grepped {
    /// Matching lines, in mode `content`.
    pub matches: Vec<Match>,
    /// Files with a match and their number of matching lines, in modes `files` and `count`.
    pub files: Vec<MatchCount>,
    /// Whether there is more.
    pub truncated: bool,
    /// Notes.
    pub notes: Vec<String>,
}

/// A matching line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Match {
    /// The file.
    pub path: String,
    /// The line's number, counted from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// The lines before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// The lines after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// A file with matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MatchCount {
    /// The file.
    pub path: String,
    /// The number of matching lines; 1 in mode `files`, which stops at the first.
    pub count: usize,
}

impl Agent<'_> {
    /// Searches files.
    ///
    /// # Errors
    ///
    /// Returns an error if the expression is invalid or the path does not exist.
    pub fn grep(&self, request: &Grep) -> Result<Grepped, Error> {
        let path = self.absolute(request.path.as_deref().unwrap_or("."))?;
        Self::check_pattern(&request.pattern)?;
        Self::check_pattern(request.glob.as_deref().unwrap_or_default())?;
        let pattern = if request.literal { regex::escape(&request.pattern) } else { request.pattern.clone() };
        let expression = RegexBuilder::new(&pattern)
            .case_insensitive(request.ignore_case)
            .size_limit(EXPRESSION_BYTES)
            .build()
            .map_err(|error| Error::Invalid(format!("invalid regular expression `{}`: {error}", request.pattern)))?;
        let wanted = request.glob.as_deref().map(Filter::new).transpose()?;
        let parameters = json!({ "pattern": request.pattern, "path": path, "glob": request.glob });
        self.reading("grep", &request.pattern, parameters, |files| {
            let mut search = Search { request, expression, found: Grepped::default(), room: text::Room::default(), skipped: 0 };
            match files.kind("grep", &path)? {
                None => return Err(failed("grep", &path, FsError::NoEntry)),
                Some((FileType::Directory, _)) => files.walk(&path, |visited| {
                    let entry = visited.path;
                    if !request.hidden && is_hidden(entry) {
                        return Ok(Step::Skip);
                    }
                    let relative = entry.get(path.trim_end_matches('/').len() + 1..).unwrap_or_default();
                    if visited.kind == FileType::File && wanted.as_ref().is_none_or(|wanted| wanted.fits(relative)) {
                        search.visit(files, visited)?;
                    }
                    Ok(if search.found.truncated { Step::Stop } else { Step::Enter })
                })?,
                Some(_) => search.file(files, &path)?,
            }
            Ok(search.finish(files))
        })
    }
}

/// Selects the files to search: a pattern without a slash matches names, as in ripgrep.
struct Filter {
    matcher: globset::GlobMatcher,
    names: bool,
}

impl Filter {
    fn new(pattern: &str) -> Result<Self, Error> {
        Ok(Self { matcher: matcher(pattern)?, names: !pattern.contains('/') })
    }

    fn fits(&self, relative: &str) -> bool {
        let subject = if self.names { relative.rsplit('/').next().unwrap_or(relative) } else { relative };
        self.matcher.is_match(subject)
    }
}

struct Search<'a> {
    request: &'a Grep,
    expression: Regex,
    found: Grepped,
    room: text::Room,
    skipped: usize,
}

impl Search<'_> {
    fn most(&self) -> usize {
        match self.request.mode {
            GrepMode::Content => self.request.max_matches.unwrap_or(MATCHES).clamp(1, MATCHES),
            _ => self.request.max_matches.unwrap_or(MAX_ENTRIES).clamp(1, MAX_ENTRIES),
        }
    }

    fn visit(&mut self, files: &Bounded<'_, Reader>, visited: &Visited<'_, Node>) -> Result<(), Error> {
        match self.file(files, visited.path) {
            // The size of a generated file is unknown until it is read.
            Err(Error::Invalid(_)) => {
                self.skipped += usize::from(!files.is_overdue());
                Ok(())
            }
            Err(error) => files.skip(visited, error),
            Ok(()) => Ok(()),
        }
    }

    fn file(&mut self, files: &Bounded<'_, Reader>, path: &str) -> Result<(), Error> {
        if files.kind("grep", path)?.is_some_and(|(_, size)| size > MAX_WHOLE) {
            self.skipped += 1;
            return Ok(());
        }
        let content = files.read(path)?;
        if text::is_binary(&content) {
            return Ok(());
        }
        if self.request.mode == GrepMode::Content {
            self.lines(files, path, &content)
        } else {
            self.count(files, path, &content)
        }
        Ok(())
    }

    fn count(&mut self, files: &Bounded<'_, Reader>, path: &str, content: &[u8]) {
        let timely = lines(content).enumerate().take_while(|(number, _)| number % CHECKED_LINES > 0 || !files.is_overdue());
        let mut fitting = timely.filter(|(_, line)| self.expression.is_match(line));
        let count = if self.request.mode == GrepMode::Files { usize::from(fitting.next().is_some()) } else { fitting.count() };
        if count == 0 {
            return;
        }
        if self.found.files.len() == self.most() || !self.room.take(path.len() + LINE_MARKS) {
            self.found.truncated = true;
        } else {
            self.found.files.push(MatchCount { path: path.to_owned(), count });
        }
    }

    fn lines(&mut self, files: &Bounded<'_, Reader>, path: &str, content: &[u8]) {
        let around = self.request.context.min(MAX_CONTEXT) as usize;
        let mut before = VecDeque::with_capacity(around);
        let mut rest = lines(content);
        for number in 1.. {
            let Some(line) = rest.next() else { return };
            if number % CHECKED_LINES == 0 && files.is_overdue() {
                return;
            }
            if self.expression.is_match(line) {
                let found = Match {
                    path: path.to_owned(),
                    line: number,
                    text: shown(line),
                    before: before.iter().copied().map(shown).collect(),
                    after: rest.clone().take(around).map(shown).collect(),
                };
                if self.found.matches.len() == self.most() || !self.room.take(found.bytes()) {
                    self.found.truncated = true;
                    return;
                }
                self.found.matches.push(found);
            }
            if around > 0 {
                if before.len() == around {
                    before.pop_front();
                }
                before.push_back(line);
            }
        }
    }

    fn finish(mut self, files: &Bounded<'_, Reader>) -> Grepped {
        if self.found.truncated {
            self.found
                .notes
                .push("more matches: narrow the pattern, the path or the glob, or request less context or mode=count".to_owned());
        } else if files.is_overdue() {
            self.found.truncated = true;
            self.found.notes.push("time limit reached: search a subdirectory".to_owned());
        }
        if self.skipped > 0 {
            let large = text::count(self.skipped, "file", "files");
            self.found.notes.push(format!("{large} larger than {} MB not searched: use `bash` with grep", MAX_WHOLE >> 20));
        }
        self.found.notes.extend(files.unread());
        self.found
    }
}

impl Match {
    // Its size in a result: every line is printed with its path.
    fn bytes(&self) -> usize {
        let lines = self.before.iter().chain(&self.after).chain(std::iter::once(&self.text));
        lines.map(|line| self.path.len() + line.len() + LINE_MARKS).sum()
    }
}

// Iterates over the lines of a file without their ends, without copying.
fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let content = content.strip_suffix(b"\n").map_or_else(|| (!content.is_empty()).then_some(content), Some);
    let lines = content.into_iter().flat_map(|content| content.split(|&byte| byte == b'\n'));
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn shown(line: &[u8]) -> String {
    // One character more than is kept, so that the cut is between characters.
    let start = line.get(..LINE_BYTES + 4).unwrap_or(line);
    text::cut(&String::from_utf8_lossy(start), LINE_BYTES).to_owned()
}

impl Grepped {
    /// Formats the result for a model: `path:line:text`, context with dashes, as printed by grep.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        for (number, found) in self.matches.iter().enumerate() {
            let has_context = !found.before.is_empty() || !found.after.is_empty();
            if number > 0 && has_context {
                out.push_str("--\n");
            }
            for (line, text) in (found.line - found.before.len()..).zip(&found.before) {
                out.push_str(&format!("{}-{line}-{text}\n", found.path));
            }
            out.push_str(&format!("{}:{}:{}\n", found.path, found.line, found.text));
            for (line, text) in (found.line + 1..).zip(&found.after) {
                out.push_str(&format!("{}-{line}-{text}\n", found.path));
            }
        }
        self.files.iter().for_each(|file| out.push_str(&format!("{}:{}\n", file.path, file.count)));
        if out.is_empty() {
            out.push_str("no matches\n");
        }
        self.notes.iter().for_each(|note| out.push_str(&format!("[{note}]\n")));
        out.truncate(out.trim_end().len());
        out
    }
}
