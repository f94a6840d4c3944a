//! `edit_file`: replacements in a file, all or none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlite_fs::Transaction;

use super::bounded::Bounded;
use super::{Agent, MAX_WHOLE, text::count};
use crate::Error;
use crate::vfs::content;

/// Maximum number of replacements in one call.
const MAX_EDITS: usize = 1000;
/// Maximum number of counted occurrences of an ambiguous text, because each costs a search.
const MAX_COUNTED: usize = 100;
/// Maximum number of listed lines.
const MAX_LINES: usize = 20;

/// One replacement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The exact text to replace. It must occur exactly once, unless `replace_all` is set.
    pub old: String,
    /// The replacement.
    pub new: String,
    /// Replace every occurrence.
    #[serde(default)]
    pub replace_all: bool,
}

/// Replacements in one file, applied in order; if one of them fails, none is applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// The file. Relative paths start in the sandbox's working directory.
    pub path: String,
    /// The replacements, in order; each sees the result of those before it.
    pub edits: Vec<Edit>,
    /// Edit only if the file still has this version, as returned by `read_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<String>,
}

/// The result of an edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Edited {
    /// The file.
    pub path: String,
    /// The number of replacements.
    pub replacements: usize,
    /// For each of the first 20 edits, the line of its first occurrence in the text it was applied to.
    pub lines: Vec<usize>,
    /// The new size, in bytes.
    pub size: u64,
    /// The new version.
    pub version: String,
}

impl Agent<'_> {
    /// Replaces text in a file, all or none.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Stale`] if the file has another version than expected, and [`Error::Invalid`] if an old text does not
    /// occur or occurs more than once, if the result would exceed the maximum file size, or if the file is not text.
    pub fn edit(&self, request: &EditFile) -> Result<Edited, Error> {
        let path = self.absolute(&request.path)?;
        if request.edits.is_empty() || request.edits.len() > MAX_EDITS {
            return Err(Error::Invalid(format!("invalid number of edits: expected 1 to {MAX_EDITS}")));
        }
        let parameters = json!({ "path": path, "edits": request.edits.len() });
        self.changing("edit_file", &path, parameters, |files| {
            let bytes = files.read(&path)?;
            match &request.expected_version {
                Some(expected) if content::is_stamp(expected) => content::expect(files.view(), &path, expected)?,
                Some(expected) => content::compare(&path, expected, content::version(&bytes))?,
                None => {}
            }
            let text = String::from_utf8(bytes)
                .map_err(|_| Error::Invalid(format!("`{path}` is not UTF-8 text: use `bash` or `write_file`")))?;
            let largest = MAX_WHOLE.min(self.sandbox.limits.file.0);
            let (text, replacements, lines) = apply(files, &path, text, &request.edits, largest)?;
            files.write(&path, text.as_bytes())?;
            let version = content::version(text.as_bytes());
            Ok(Edited { path: path.clone(), replacements, lines, size: text.len() as u64, version })
        })
    }
}

fn apply(
    files: &Bounded<'_, Transaction>,
    path: &str,
    mut content: String,
    edits: &[Edit],
    largest: u64,
) -> Result<(String, usize, Vec<usize>), Error> {
    let (mut replacements, mut lines) = (0, Vec::new());
    for (number, edit) in (1..).zip(edits) {
        let refuse = |why: String| Error::Invalid(format!("edit {number} of `{path}`: {why}; no changes were made"));
        if edit.old.is_empty() {
            return Err(refuse("`old` is empty: use `write_file` to write a whole file".to_owned()));
        }
        if edit.old == edit.new {
            return Err(refuse("`old` and `new` are the same".to_owned()));
        }
        if files.is_overdue() {
            return Err(refuse("time limit reached: make fewer edits at a time".to_owned()));
        }
        let (old, new) = as_written(&content, edit);
        let Some(first) = content.find(&old) else {
            return Err(refuse(format!("the old text was not found{}", nearly(&content, &edit.old))));
        };
        // Overlapping occurrences count too, because choosing one would be a guess.
        let places = if edit.replace_all { content.matches(&old).count() } else { occurrences(&content, &old) };
        if places > 1 && !edit.replace_all {
            let more = if places == MAX_COUNTED { "at least " } else { "" };
            return Err(refuse(format!(
                "the old text occurs {more}{places} times: include more surrounding lines, or set replace_all"
            )));
        }
        let size = size_after(content.len(), places, old.len(), new.len());
        if size.is_none_or(|size| size > largest) {
            return Err(refuse(format!(
                "{places} replacements would make the file larger than {largest} bytes, the maximum for this tool"
            )));
        }
        if lines.len() < MAX_LINES {
            lines.push(content[..first].matches('\n').count() + 1);
        }
        content = content.replace(&old, &new);
        replacements += places;
    }
    Ok((content, replacements, lines))
}

// The size of the result, before any of it is built.
fn size_after(size: usize, places: usize, old: usize, new: usize) -> Option<u64> {
    let kept = size.checked_sub(places.checked_mul(old)?)?;
    kept.checked_add(places.checked_mul(new)?).map(|size| size as u64)
}

// At most `MAX_COUNTED`.
fn occurrences(content: &str, old: &str) -> usize {
    let (mut at, mut places) = (0, 0);
    while places < MAX_COUNTED
        && let Some(found) = content[at..].find(old)
    {
        places += 1;
        let step = content[at + found..].chars().next().map_or(1, char::len_utf8);
        at += found + step;
    }
    places
}

// `read_file` shows lines without CR, so an edit of a CRLF file uses plain line feeds.
fn as_written(content: &str, edit: &Edit) -> (String, String) {
    let plain = edit.old.contains('\n') || edit.new.contains('\n');
    if plain && content.contains("\r\n") && !content.contains(&edit.old) | !edit.new.contains("\r\n") {
        let dos = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
        return (dos(&edit.old), dos(&edit.new));
    }
    (edit.old.clone(), edit.new.clone())
}

// Most failed edits differ only in white space, which the error mentions.
fn nearly(content: &str, old: &str) -> String {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some(first) = old.lines().map(squeeze).find(|line| !line.is_empty()) else { return String::new() };
    match content.lines().position(|line| squeeze(line) == first) {
        Some(line) => format!(" (line {} is similar to its first line: check white space and the following lines)", line + 1),
        None => String::new(),
    }
}

impl Edited {
    /// Formats one line for a model.
    #[must_use]
    pub fn render(&self) -> String {
        let lines = self.lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let places = count(self.replacements, "place", "places");
        format!("edited {}: {places} replaced (line {lines}), version {}", self.path, self.version)
    }
}
