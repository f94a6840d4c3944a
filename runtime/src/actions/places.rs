//! `make_directory`, `file_info`, `append_file` and `write_files`: file operations for programs, in addition to the tools of
//! models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlite_fs::{FileType, Stat};

use super::{Answer, Context, FileKind, FoundFile, Request};
use crate::agent::Encoding;
use crate::{Content, Error, Sandbox};

/// Selects the directory to create.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeDirectory {
    /// The directory. Relative paths start in the sandbox's working directory.
    pub path: String,
}

/// A created directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MadeDirectory {
    /// The directory.
    pub path: String,
}

impl MakeDirectory {
    /// Creates several directories and their missing parents in one transaction.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the paths exists and is not a directory; none is created then.
    pub fn make_all(requests: &[Self], sandbox: &Sandbox) -> Result<Vec<MadeDirectory>, Error> {
        let paths: Result<Vec<String>, Error> = requests.iter().map(|made| sandbox.agent().absolute(&made.path)).collect();
        let paths = paths?;
        sandbox.fs().create_dirs(&paths)?;
        Ok(paths.into_iter().map(|path| MadeDirectory { path }).collect())
    }
}

impl Request for MakeDirectory {
    type Data = MadeDirectory;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let path = context.sandbox().agent().absolute(&self.path)?;
        context.sandbox().fs().create_dir_all(&path)?;
        Ok(Answer::new(format!("created {path}"), &MadeDirectory { path }))
    }
}

/// Selects the path to describe.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileInfo {
    /// The path. Relative paths start in the sandbox's working directory.
    pub path: String,
    /// Follow a symbolic link instead of describing the link itself; defaults to true.
    #[serde(default = "yes")]
    pub follow: bool,
}

fn yes() -> bool {
    true
}

/// Metadata of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileDescription {
    /// The path.
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
    /// The target of a symbolic link.
    pub target: Option<String>,
}

impl FileInfo {
    /// Returns the description of the path, and all of its metadata.
    ///
    /// # Errors
    ///
    /// Returns an error if the path does not exist or is hidden.
    pub fn describe(&self, sandbox: &Sandbox) -> Result<(FileDescription, Stat), Error> {
        let path = sandbox.agent().absolute(&self.path)?;
        let files = sandbox.fs();
        let stat = if self.follow { files.metadata(&path)? } else { files.symlink_metadata(&path)? };
        let target = (stat.file_type() == FileType::Symlink).then(|| files.read_link(&path)).transpose()?;
        let FoundFile { path, kind, size, mode, modified } = FoundFile::new(path, &stat);
        Ok((FileDescription { path, kind, size, mode, modified, target }, stat))
    }
}

impl Request for FileInfo {
    type Data = FileDescription;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let (found, _) = self.describe(context.sandbox())?;
        Ok(Answer::new(format!("{}: {} bytes, mode {}", found.path, found.size, found.mode), &found))
    }
}

/// The content to append.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendFile {
    /// The file, created if missing. Relative paths start in the sandbox's working directory.
    pub path: String,
    /// The content to append.
    pub content: String,
    /// Whether `content` is text or base64.
    #[serde(default)]
    pub encoding: Encoding,
    /// Append only if the file still has this version, as returned by `read_file`; `none`: only if the file does not exist.
    #[serde(default)]
    pub expected_version: Option<String>,
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Appended {
    /// The file.
    pub path: String,
    /// The number of appended bytes.
    pub bytes: usize,
}

impl Request for AppendFile {
    type Data = Appended;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let path = context.sandbox().agent().absolute(&self.path)?;
        let content = self.encoding.decode(&self.content)?;
        context.sandbox().fs().if_expected(&path, self.expected_version).append(&path, &content)?;
        let bytes = content.len();
        Ok(Answer::new(format!("appended {bytes} bytes to {path}"), &Appended { path, bytes }))
    }
}

/// Many files to write.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFiles {
    /// The files; missing parent directories are created.
    pub files: Vec<NewContent>,
}

/// One file to write.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewContent {
    /// The file. Relative paths start in the sandbox's working directory.
    pub path: String,
    /// The whole new content.
    pub content: String,
    /// Whether `content` is text or base64.
    #[serde(default)]
    pub encoding: Encoding,
    /// Write all files only if this one still has this version, as returned by `read_file`; `none`: only if it does not exist.
    #[serde(default)]
    pub expected_version: Option<String>,
}

/// The amount written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WroteFiles {
    /// The number of files.
    pub files: usize,
    /// Their total size, in bytes.
    pub bytes: usize,
}

impl Request for WriteFiles {
    type Data = WroteFiles;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let (agent, mut bytes, mut fs) = (context.sandbox().agent(), 0, context.sandbox().fs());
        let mut files = Vec::with_capacity(self.files.len());
        for file in self.files {
            let (path, content) = (agent.absolute(&file.path)?, file.encoding.decode(&file.content)?.into_owned());
            bytes += content.len();
            fs = fs.if_expected(&path, file.expected_version);
            files.push((path, Content::from(content)));
        }
        let wrote = WroteFiles { files: files.len(), bytes };
        fs.write_all(files)?;
        Ok(Answer::new(format!("wrote {} files ({} bytes)", wrote.files, wrote.bytes), &wrote))
    }
}
