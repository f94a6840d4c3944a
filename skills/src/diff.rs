//! The differences between two versions of a skill: files, and the lines of text files.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::package::{File, Package};

/// Maximum size of texts whose differing lines are listed.
const LISTED_BYTES: usize = 256 << 10;

/// The differences between two versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkillDiff {
    /// The skill.
    pub name: String,
    /// The older version.
    pub from: String,
    /// The newer version.
    pub to: String,
    /// Every file of either version.
    pub files: Vec<FileDiff>,
}

/// The change of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileDiff {
    /// Its path.
    pub path: String,
    /// The kind of change.
    pub status: FileStatus,
    /// The changed lines, if the file is text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
}

/// The kind of change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    /// Added.
    Added,
    /// Removed.
    Removed,
    /// Modified.
    Modified,
    /// Unchanged.
    Unchanged,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Line {
    /// The kind of change.
    pub op: LineKind,
    /// The text, without the line end.
    pub text: String,
}

/// The kind of change of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    /// Added.
    Add,
    /// Removed.
    Remove,
    /// In both versions.
    Context,
}

pub(crate) fn compare(old: &Package, new: &Package) -> SkillDiff {
    let paths: BTreeSet<&str> = old.files().iter().chain(new.files()).map(|file| file.path.as_str()).collect();
    let files = paths.into_iter().map(|path| {
        let (before, after) = (old.file(path), new.file(path));
        let status = match (before, after) {
            (None, _) => FileStatus::Added,
            (_, None) => FileStatus::Removed,
            (Some(before), Some(after)) if before == after => FileStatus::Unchanged,
            _ => FileStatus::Modified,
        };
        let text = |file: Option<&File>| file.map_or(Some(String::new()), |file| file.text().map(str::to_owned));
        let lines = match (status, text(before), text(after)) {
            (FileStatus::Unchanged, ..) => Vec::new(),
            (_, Some(before), Some(after)) if before.len() + after.len() <= LISTED_BYTES => lines(&before, &after),
            _ => Vec::new(),
        };
        FileDiff { path: path.to_owned(), status, lines }
    });
    let manifest = |package: &Package| (package.manifest().name.clone(), package.manifest().version.clone());
    let ((name, from), (_, to)) = (manifest(old), manifest(new));
    SkillDiff { name, from, to, files: files.collect() }
}

fn lines(before: &str, after: &str) -> Vec<Line> {
    let diff = TextDiff::from_lines(before, after);
    let kind = |tag| match tag {
        ChangeTag::Insert => LineKind::Add,
        ChangeTag::Delete => LineKind::Remove,
        ChangeTag::Equal => LineKind::Context,
    };
    let lines = diff.iter_all_changes();
    lines.map(|change| Line { op: kind(change.tag()), text: change.value().trim_end_matches(['\n', '\r']).to_owned() }).collect()
}

impl SkillDiff {
    /// Formats the differing files as a patch.
    #[must_use]
    pub fn patch(&self) -> String {
        let mut text = String::new();
        for file in self.files.iter().filter(|file| file.status != FileStatus::Unchanged) {
            let side =
                |is_there: bool, letter: char| if is_there { format!("{letter}/{}", file.path) } else { "/dev/null".to_owned() };
            let (old, new) = (side(file.status != FileStatus::Added, 'a'), side(file.status != FileStatus::Removed, 'b'));
            text.push_str(&format!("--- {old}\n+++ {new}\n"));
            if file.lines.is_empty() {
                text.push_str("(binary, large or empty file, or changed permissions)\n");
            }
            for line in &file.lines {
                let mark = match line.op {
                    LineKind::Add => '+',
                    LineKind::Remove => '-',
                    LineKind::Context => ' ',
                };
                text.push_str(&format!("{mark}{}\n", line.text));
            }
        }
        text
    }
}
