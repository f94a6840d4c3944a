//! `glob`: files whose path matches a pattern.

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlite_fs::{FileType, FsError, Step};

use super::list::is_hidden;
use super::{Agent, MAX_ENTRIES, text};
use crate::Error;

/// Selects the files to find.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Glob {
    /// The pattern: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of directories, such as `src/**/*.{rs,toml}`.
    pub pattern: String,
    /// The directory in which the pattern starts; defaults to the sandbox's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether to find names that start with a dot; a pattern with a dot finds them anyway.
    #[serde(default)]
    pub hidden: bool,
}

/// The matching files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Found {
    /// Absolute paths of files and links, sorted.
    pub paths: Vec<String>,
    /// Whether there are more.
    pub truncated: bool,
    /// Notes.
    pub notes: Vec<String>,
}

impl Agent<'_> {
    /// Finds files by a pattern.
    ///
    /// # Errors
    ///
    /// Returns an error if the pattern is invalid or the directory does not exist.
    pub fn glob(&self, request: &Glob) -> Result<Found, Error> {
        Self::check_pattern(&request.pattern)?;
        let (start, pattern) = match request.pattern.strip_prefix('/') {
            Some(pattern) => ("/".to_owned(), pattern),
            None => (self.absolute(request.path.as_deref().unwrap_or("."))?, request.pattern.as_str()),
        };
        let (top, pattern) = without_literal_start(&start, pattern);
        let matcher = matcher(pattern)?;
        let hidden = request.hidden || pattern.starts_with('.') || pattern.contains("/.");
        let parameters = json!({ "pattern": request.pattern, "path": top });
        self.reading("glob", &request.pattern, parameters, |files| {
            let (mut paths, mut truncated, mut notes) = (Vec::new(), false, Vec::new());
            let mut room = text::Room::default();
            // The directory is the caller's; the names after it are part of the pattern, which need not match.
            if top != start && !is_directory(files.kind("glob", &top))? {
                return Ok(Found { paths, truncated, notes });
            }
            let base = top.trim_end_matches('/').len() + 1;
            files.walk(&top, |visited| {
                let entry = visited.path;
                if !hidden && is_hidden(entry) {
                    return Ok(Step::Skip);
                }
                if visited.kind != FileType::Directory && matcher.is_match(entry.get(base..).unwrap_or_default()) {
                    if paths.len() == MAX_ENTRIES || !room.take(entry.len() + 1) {
                        truncated = true;
                        return Ok(Step::Stop);
                    }
                    paths.push(entry.to_owned());
                }
                Ok(Step::Enter)
            })?;
            if truncated {
                notes.push(format!("only the first {} files: use a narrower pattern", paths.len()));
            } else if files.is_overdue() {
                truncated = true;
                notes.push("time limit reached: search a subdirectory".to_owned());
            }
            notes.extend(files.unread());
            Ok(Found { paths, truncated, notes })
        })
    }
}

// Below a file, nothing exists.
fn is_directory(kind: Result<Option<(FileType, u64)>, Error>) -> Result<bool, Error> {
    match kind {
        Err(error) if error.fs_error() == Some(FsError::NotDirectory) => Ok(false),
        kind => Ok(kind?.is_some_and(|(kind, _)| kind == FileType::Directory)),
    }
}

/// Creates a matcher for relative paths.
pub(super) fn matcher(pattern: &str) -> Result<GlobMatcher, Error> {
    let built = GlobBuilder::new(pattern.trim_start_matches("./")).literal_separator(true).build();
    built
        .map(|glob| glob.compile_matcher())
        .map_err(|error| Error::Invalid(format!("invalid glob pattern `{pattern}`: {}", error.kind())))
}

// The walk starts below the literal names of the pattern: `/src/**/*.rs` never reads outside `/src`.
fn without_literal_start<'a>(top: &str, mut pattern: &'a str) -> (String, &'a str) {
    let mut top = top.trim_end_matches('/').to_owned();
    while let Some((name, rest)) = pattern.split_once('/') {
        if name.contains(['*', '?', '[', '{', '}', '\\', ',']) {
            break;
        }
        if !name.is_empty() && name != "." {
            top.push('/');
            top.push_str(name);
        }
        pattern = rest;
    }
    (if top.is_empty() { "/".to_owned() } else { top }, pattern)
}

impl Found {
    /// Formats the paths for a model, one per line.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = if self.paths.is_empty() { "no files match".to_owned() } else { self.paths.join("\n") };
        self.notes.iter().for_each(|note| out.push_str(&format!("\n[{note}]")));
        out
    }
}
