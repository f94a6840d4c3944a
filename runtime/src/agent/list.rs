//! `list_files`: the content of a directory, to a given depth.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlite_fs::path::Tree as _;
use sqlite_fs::{FileType, FsError, Step, Volume};

use super::bounded::{failed, kind_name};
use super::{Agent, MAX_ENTRIES, text};
use crate::Error;

/// Maximum depth.
const MAX_DEPTH: u32 = 20;
/// Overhead of an entry in a result besides its path: type, size, line end.
const ENTRY_BYTES: usize = 16;

/// Selects the directory to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFiles {
    /// The directory; defaults to the sandbox's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The number of levels, at most 20; defaults to 1, which lists only the directory itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Whether to list names that start with a dot.
    #[serde(default)]
    pub hidden: bool,
}

/// The content of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Listed {
    /// The directory.
    pub path: String,
    /// Its entries, each directory before its content.
    pub entries: Vec<ListedFile>,
    /// Whether the list is incomplete.
    pub truncated: bool,
    /// Notes.
    pub notes: Vec<String>,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedFile {
    /// Its absolute path.
    pub path: String,
    /// `file`, `directory`, `symlink` or `other`.
    pub kind: String,
    /// The size of a file, in bytes.
    pub size: u64,
    /// The target of a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Agent<'_> {
    /// Lists a directory.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist or is not a directory.
    pub fn list(&self, request: &ListFiles) -> Result<Listed, Error> {
        let (mut entries, mut room) = (0, text::Room::default());
        self.list_while(request, |bytes| {
            entries += 1;
            entries <= MAX_ENTRIES && room.take(bytes)
        })
    }

    /// Same as [`list`](Self::list), with all entries, for a program. The list of a file is the file itself.
    ///
    /// # Errors
    ///
    /// Returns an error if the path does not exist.
    pub fn list_all(&self, request: &ListFiles) -> Result<Listed, Error> {
        match self.list_while(request, |_| true) {
            Err(Error::Database(sqlite_fs::Error::Fs { source: FsError::NotDirectory, path, .. })) => {
                let files = self.sandbox.fs();
                let stat = files.symlink_metadata(&path)?;
                let target = (stat.file_type() == FileType::Symlink).then(|| files.read_link(&path)).transpose()?;
                let size = if stat.is_file() { stat.size } else { 0 };
                let entry = ListedFile { path: path.clone(), kind: kind_name(stat.file_type()).to_owned(), size, target };
                Ok(Listed { path, entries: vec![entry], truncated: false, notes: Vec::new() })
            }
            listed => listed,
        }
    }

    fn list_while(&self, request: &ListFiles, mut fits: impl FnMut(usize) -> bool) -> Result<Listed, Error> {
        let path = self.absolute(request.path.as_deref().unwrap_or("."))?;
        let depth = request.depth.unwrap_or(1).clamp(1, MAX_DEPTH) as usize;
        self.reading("list_files", &path, json!({ "path": path }), |files| {
            if let Some((kind, _)) = files.kind("list", &path)?
                && kind != FileType::Directory
            {
                return Err(failed("list", &path, FsError::NotDirectory));
            }
            let (mut entries, mut skipped, mut truncated) = (Vec::new(), 0, false);
            files.walk(&path, |visited| {
                let (entry, kind) = (visited.path, visited.kind);
                if !request.hidden && is_hidden(entry) {
                    skipped += 1;
                    return Ok(Step::Skip);
                }
                let target = if kind == FileType::Symlink { files.view().readlink(visited.node).ok() } else { None };
                let bytes = entry.len() + target.as_ref().map_or(0, String::len) + ENTRY_BYTES;
                if !fits(bytes) {
                    truncated = true;
                    return Ok(Step::Stop);
                }
                let skip = |error| files.skip(visited, failed("list", entry, error)).map(|()| 0);
                let size = match kind {
                    FileType::File => files.view().stat(visited.node).map(|stat| stat.size).or_else(skip)?,
                    _ => 0,
                };
                entries.push(ListedFile { path: entry.to_owned(), kind: kind_name(kind).to_owned(), size, target });
                Ok(if visited.depth < depth { Step::Enter } else { Step::Skip })
            })?;
            let mut notes = Vec::new();
            if truncated {
                notes.push(format!("only the first {} entries: list a subdirectory, or use `glob`", entries.len()));
            } else if files.is_overdue() {
                truncated = true;
                notes.push("time limit reached: list a subdirectory".to_owned());
            }
            if skipped > 0 {
                notes.push(format!(
                    "{} omitted: set hidden=true to list them",
                    text::count(skipped, "hidden name", "hidden names")
                ));
            }
            notes.extend(files.unread());
            Ok(Listed { path: path.clone(), entries, truncated, notes })
        })
    }
}

/// Returns whether the last component of a path starts with a dot.
pub(super) fn is_hidden(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with('.'))
}

impl Listed {
    /// Formats the listing for a model: one path per line, directories with a slash.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        for entry in &self.entries {
            let line = match (entry.kind.as_str(), &entry.target) {
                ("directory", _) => format!("{}/\n", entry.path),
                (_, Some(target)) => format!("{} -> {target}\n", entry.path),
                _ => format!("{} ({} bytes)\n", entry.path, entry.size),
            };
            out.push_str(&line);
        }
        if self.entries.is_empty() {
            out.push_str(&format!("{} is empty\n", self.path));
        }
        self.notes.iter().for_each(|note| out.push_str(&format!("[{note}]\n")));
        out.truncate(out.trim_end().len());
        out
    }
}
