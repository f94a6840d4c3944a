//! `edit_file`: replacements in a file, all or none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlite_fs::Transaction;

use super::bounded::Bounded;
use super::{Agent, MAX_WHOLE, text::count};
use crate::Error;
use crate::vfs::content;

/// Most replacements of one call.
const MAX_EDITS: usize = 1000;
/// Most places of an ambiguous text that are counted: each costs a search.
const MAX_COUNTED: usize = 100;
/// Most lines that are named; the rest of a thousand edits says nothing more.
const MAX_LINES: usize = 20;

/// One replacement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The exact text to replace. It must be in the file exactly once, unless `replace_all` is set.
    pub old: String,
    /// What to put in its place.
    pub new: String,
    /// Replace every occurrence.
    #[serde(default)]
    pub replace_all: bool,
}

/// Replacements in one file, made one after the other; if one of them does not fit, none is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// The file. Relative paths start in the sandbox's working directory.
    pub path: String,
    /// The replacements, in order; each sees the result of those before it.
    pub edits: Vec<Edit>,
    /// Edit only if the file still has this version, as `read_file` gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<String>,
}

/// What was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Edited {
    /// The file.
    pub path: String,
    /// How many places were replaced.
    pub replacements: usize,
    /// For each of the first 20 edits, the line of its first place, in the text it was applied to.
    pub lines: Vec<usize>,
    /// The file's bytes now.
    pub size: u64,
    /// Its version now.
    pub version: String,
}

impl Agent<'_> {
    /// Makes replacements in a file, all or none.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`] when the file has another version than expected; [`Error::Invalid`] when an old text is not there, is there
    /// more than once, the result would be larger than a file may be, or the file is not text.
    pub fn edit(&self, request: &EditFile) -> Result<Edited, Error> {
        let path = self.absolute(&request.path)?;
        if request.edits.is_empty() || request.edits.len() > MAX_EDITS {
            return Err(Error::Invalid(format!("give 1 to {MAX_EDITS} edits")));
        }
        let parameters = json!({ "path": path, "edits": request.edits.len() });
        self.changing("edit_file", &path, parameters, |files| {
            let bytes = files.read(&path)?;
            if let Some(expected) = &request.expected_version {
                content::compare(&path, expected, content::version(&bytes))?;
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
        let refuse = |why: String| Error::Invalid(format!("edit {number} of `{path}`: {why}; nothing was changed"));
        if edit.old.is_empty() {
            return Err(refuse("`old` is empty: use `write_file` for a whole file".to_owned()));
        }
        if edit.old == edit.new {
            return Err(refuse("`old` and `new` are the same".to_owned()));
        }
        if files.is_overdue() {
            return Err(refuse("the time is used up: make fewer edits at a time".to_owned()));
        }
        let (old, new) = as_written(&content, edit);
        let Some(first) = content.find(&old) else {
            return Err(refuse(format!("the old text is not in the file{}", nearly(&content, &edit.old))));
        };
        // Overlapping places count too: which of them is meant would be a guess.
        let places = if edit.replace_all { content.matches(&old).count() } else { occurrences(&content, &old) };
        if places > 1 && !edit.replace_all {
            let more = if places == MAX_COUNTED { "at least " } else { "" };
            return Err(refuse(format!(
                "the old text is there {more}{places} times: give more of the lines around it, or replace_all"
            )));
        }
        let size = size_after(content.len(), places, old.len(), new.len());
        if size.is_none_or(|size| size > largest) {
            return Err(refuse(format!(
                "{places} replacements would make the file larger than {largest} bytes, the most that a file edited here may have"
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

// `read_file` shows lines without their CR, so an edit of a CRLF file is given with plain line ends.
fn as_written(content: &str, edit: &Edit) -> (String, String) {
    let plain = edit.old.contains('\n') || edit.new.contains('\n');
    if plain && content.contains("\r\n") && !content.contains(&edit.old) | !edit.new.contains("\r\n") {
        let dos = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
        return (dos(&edit.old), dos(&edit.new));
    }
    (edit.old.clone(), edit.new.clone())
}

// Most failed edits differ in blanks only: say so.
fn nearly(content: &str, old: &str) -> String {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some(first) = old.lines().map(squeeze).find(|line| !line.is_empty()) else { return String::new() };
    match content.lines().position(|line| squeeze(line) == first) {
        Some(line) => format!(" (line {} is like its first line: compare blanks and what follows)", line + 1),
        None => String::new(),
    }
}

impl Edited {
    /// One line for a model.
    #[must_use]
    pub fn render(&self) -> String {
        let lines = self.lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let places = count(self.replacements, "place", "places");
        format!("edited {}: {places} replaced (line {lines}), version {}", self.path, self.version)
    }
}
