//! Whole trees: `copy_files`, `find_files`, `disk_usage` and `tree`. Each copy is one transaction, and each listing shows one
//! state of the files.

use globset::GlobMatcher;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlite_fs::{FileType, Stat};

use super::{Answer, Context, Request};
use crate::{Error, Found, Sandbox};

/// Maximum number of entries in a result, and their size.
const MOST_ENTRIES: usize = 1000;
const ENTRIES_BYTES: usize = 64 << 10;
/// Overhead of an entry besides its path: the other fields of its data.
const ENTRY_BYTES: usize = 16;

/// Selects the files to copy.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyFiles {
    /// The file or directory to copy. Relative paths start in the sandbox's working directory.
    pub from: String,
    /// The name of the copy; the copy is placed inside it if it is an existing directory or ends with a slash.
    pub to: String,
    /// Copy a directory with everything below it.
    #[serde(default)]
    pub recursive: bool,
    /// Copy only if the file that the copy replaces still has this version, as returned by `read_file`; `none`: only if there is none.
    #[serde(default)]
    pub expected_version: Option<String>,
}

/// The result of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Copied {
    /// The source.
    pub from: String,
    /// The copy.
    pub to: String,
}

impl CopyFiles {
    /// Copies in one transaction.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::IsDirectory`](crate::FsError) if `from` is a directory and `recursive` is not set, and an error if a
    /// file cannot be copied, in which case nothing is.
    pub fn copy(&self, sandbox: &Sandbox) -> Result<Copied, Error> {
        let (from, to) = (sandbox.agent().absolute(&self.from)?, sandbox.agent().absolute(&self.to)?);
        let slash = if self.to.ends_with('/') || to == "/" { "/" } else { "" };
        let to = format!("{}{slash}", to.trim_end_matches('/'));
        let to = sandbox.fs().copy_expecting((from.as_str(), to.as_str()), self.recursive, self.expected_version.as_deref())?;
        Ok(Copied { from, to })
    }
}

impl Request for CopyFiles {
    type Data = Copied;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let copied = self.copy(context.sandbox())?;
        Ok(Answer::new(format!("copied {} to {}", copied.from, copied.to), &copied))
    }
}

/// The type of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A device.
    Device,
}

impl std::fmt::Display for FileKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Fifo => "fifo",
            Self::Device => "device",
        })
    }
}

impl From<FileType> for FileKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::File => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Device => Self::Device,
        }
    }
}

/// Selects the files to find.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FindFiles {
    /// The directory to start in; defaults to the sandbox's working directory.
    pub path: Option<String>,
    /// Find only names that match this pattern: `*` is any text, `?` one character, `[a-z]` one of these characters.
    pub name: Option<String>,
    /// Find only entries of this type.
    pub kind: Option<FileKind>,
}

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FoundFile {
    /// Its path.
    pub path: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: FileKind,
    /// The size, in bytes.
    pub size: u64,
    /// The permissions, in octal.
    pub mode: String,
    /// The modification time, in nanoseconds since 1970.
    pub modified: i64,
}

impl FoundFile {
    /// Creates an entry from its path and metadata.
    #[must_use]
    pub fn new(path: String, stat: &Stat) -> Self {
        let mode = format!("{:04o}", stat.mode & 0o7777);
        Self { path, kind: stat.file_type().into(), size: stat.size, mode, modified: stat.mtime }
    }
}

/// Entries of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FoundFiles {
    /// The directory of the search.
    pub path: String,
    /// The entries, each directory before its content.
    pub found: Vec<FoundFile>,
    /// Whether there are more.
    pub truncated: bool,
    /// Notes about directories and files of mounts that cannot be read.
    pub notes: Vec<String>,
}

/// A directory and everything below it, or a part of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    /// The directory.
    pub path: String,
    /// The entries, each directory before its content.
    pub found: Vec<Found>,
    /// Notes about directories and files of mounts that cannot be read.
    pub notes: Vec<String>,
}

impl FoundFiles {
    /// Creates a list of all entries.
    #[must_use]
    pub fn new(walked: Walked) -> Self {
        let Walked { path, found, notes } = walked;
        let found = found.into_iter().map(|found| FoundFile::new(found.path, &found.stat)).collect();
        Self { path, found, truncated: false, notes }
    }
}

impl FindFiles {
    /// Returns the matching files.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory does not exist or the pattern is invalid.
    pub fn find(&self, sandbox: &Sandbox) -> Result<Walked, Error> {
        let name = self.name.as_deref().map(matcher).transpose()?;
        let mut walked = walk(sandbox, self.path.as_deref())?;
        walked.found.retain(|found| {
            let last = found.path.rsplit('/').next().unwrap_or_default();
            self.kind.is_none_or(|kind| kind == found.stat.file_type().into())
                && name.as_ref().is_none_or(|name| name.is_match(last))
        });
        Ok(walked)
    }
}

fn matcher(pattern: &str) -> Result<GlobMatcher, Error> {
    let glob = globset::GlobBuilder::new(pattern).backslash_escape(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| Error::Invalid(format!("invalid pattern `{}`: {}", super::quoted(pattern), error.kind())))
}

fn walk(sandbox: &Sandbox, path: Option<&str>) -> Result<Walked, Error> {
    let path = sandbox.agent().absolute(path.unwrap_or("."))?;
    let (found, notes) = sandbox.fs().walk_readable(&path)?;
    Ok(Walked { path, found, notes })
}

// As many as fit in one result, and whether there are more.
fn bounded(found: &mut Vec<Found>) -> bool {
    let mut room = ENTRIES_BYTES;
    let fitting = found.iter().take(MOST_ENTRIES).take_while(|found| {
        let left = room.checked_sub(found.path.len() + ENTRY_BYTES);
        room = left.unwrap_or(0);
        left.is_some()
    });
    let fitting = fitting.count();
    let more = fitting < found.len();
    found.truncate(fitting);
    more
}

fn answer(mut walked: Walked, render: impl FnOnce(&[Found]) -> String) -> Answer {
    let truncated = bounded(&mut walked.found);
    let mut text = render(&walked.found);
    if truncated {
        text.push_str(&format!("\n[only the first {} entries: search a subdirectory]", walked.found.len()));
    }
    text.push_str(&lines_of(&walked.notes));
    Answer::new(text, &FoundFiles { truncated, ..FoundFiles::new(walked) })
}

fn lines_of(notes: &[String]) -> String {
    notes.iter().map(|note| format!("\n[{note}]")).collect()
}

impl Request for FindFiles {
    type Data = FoundFiles;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let walked = self.find(context.sandbox())?;
        let render = |found: &[Found]| match found {
            [] => "no files match".to_owned(),
            found => found.iter().map(|found| found.path.as_str()).collect::<Vec<_>>().join("\n"),
        };
        Ok(answer(walked, render))
    }
}

/// Selects the directory to measure.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiskUsage {
    /// The directory; defaults to the sandbox's working directory.
    pub path: Option<String>,
}

/// The content of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Measured {
    /// The directory.
    pub path: String,
    /// Total size of all files, in bytes; hard links count once.
    pub bytes: u64,
    /// The number of files.
    pub files: usize,
    /// The number of directories, including the first one.
    pub directories: usize,
    /// Notes about directories and files of mounts that cannot be read.
    pub notes: Vec<String>,
}

impl DiskUsage {
    /// Measures the content of the directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory does not exist.
    pub fn measure(&self, sandbox: &Sandbox) -> Result<Measured, Error> {
        let Walked { path, found, notes } = walk(sandbox, self.path.as_deref())?;
        let mut files: Vec<(u64, u64)> =
            found.iter().filter(|found| found.stat.is_file()).map(|found| (found.stat.ino, found.stat.size)).collect();
        files.sort_unstable();
        files.dedup();
        let bytes = files.iter().map(|(_, size)| size).sum();
        let directories = found.iter().filter(|found| found.stat.is_dir()).count();
        Ok(Measured { path, bytes, files: files.len(), directories, notes })
    }
}

impl Request for DiskUsage {
    type Data = Measured;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let measured = self.measure(context.sandbox())?;
        let Measured { path, bytes, files, directories, notes } = &measured;
        let (files, directories) = (counted(*files, "file", "files"), counted(*directories, "directory", "directories"));
        let notes = lines_of(notes);
        Ok(Answer::new(format!("{path}: {bytes} bytes, {files}, {directories}{notes}"), &measured))
    }
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Selects the tree to draw.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrawTree {
    /// The directory; defaults to the sandbox's working directory.
    pub path: Option<String>,
}

impl DrawTree {
    /// Returns the directory and everything below it.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory does not exist.
    pub fn list(&self, sandbox: &Sandbox) -> Result<Walked, Error> {
        walk(sandbox, self.path.as_deref())
    }

    /// Draws a tree line by line; `paint` formats a name, `line` receives each line.
    pub fn draw(found: &[Found], paint: impl Fn(&str, &Stat) -> String, mut line: impl FnMut(&str)) {
        let Some((root, rest)) = found.split_first() else { return };
        line(&paint(&root.path, &root.stat));
        let depth_of = |path: &str| path.trim_end_matches('/').matches('/').count();
        let top = depth_of(&root.path);
        // Whether each parent directory has further entries, so that its branch continues.
        let mut open: Vec<bool> = Vec::new();
        for (index, item) in rest.iter().enumerate() {
            let depth = depth_of(&item.path) - top;
            let after = rest[index + 1..].iter().map(|next| depth_of(&next.path) - top).find(|&next| next <= depth);
            let is_last = after != Some(depth);
            open.truncate(depth - 1);
            let branches: String = open.iter().map(|&open| if open { "│   " } else { "    " }).collect();
            let corner = if is_last { "└── " } else { "├── " };
            let name = item.path.rsplit('/').next().unwrap_or_default();
            line(&format!("{branches}{corner}{}", paint(name, &item.stat)));
            open.push(!is_last);
        }
        let directories = rest.iter().filter(|found| found.stat.is_dir()).count();
        line(&format!(
            "\n{}, {}",
            counted(directories, "directory", "directories"),
            counted(rest.len() - directories, "file", "files")
        ));
    }
}

impl Request for DrawTree {
    type Data = FoundFiles;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let walked = self.list(context.sandbox())?;
        let render = |found: &[Found]| {
            let mut lines = Vec::new();
            Self::draw(found, |name, _| name.to_owned(), |line| lines.push(line.to_owned()));
            lines.join("\n")
        };
        Ok(answer(walked, render))
    }
}
