//! `delete_file` and `move_file`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlite_fs::{FileType, FsError, Transaction};

use super::bounded::{Bounded, failed};
use super::{Agent, text};
use crate::Error;
use crate::sandbox::Sandbox;
use crate::vfs::content;

/// Selects what to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteFile {
    /// The file, link or directory.
    pub path: String,
    /// Delete a directory with its content.
    #[serde(default)]
    pub recursive: bool,
    /// Delete only if the file still has this version, as returned by `read_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<String>,
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deleted {
    /// The path.
    pub path: String,
    /// The number of deleted files, links and directories.
    pub deleted: usize,
}

/// Selects what to move.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveFile {
    /// The file or directory.
    pub from: String,
    /// The new path; missing parent directories are created.
    pub to: String,
    /// Whether to replace an existing file.
    #[serde(default)]
    pub overwrite: bool,
    /// Move only if the file at `from` still has this version, as returned by `read_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<String>,
}

/// The result of a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Moved {
    /// The old path.
    pub from: String,
    /// The new path.
    pub to: String,
    /// Whether a file was replaced.
    pub replaced: bool,
}

impl DeleteFile {
    /// Deletes several files, links and directories in one transaction and returns their paths.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::IsDirectory`] if one of them is a directory and `recursive` is not set, and an error if one does not
    /// exist; nothing is deleted then.
    pub fn delete_all(requests: &[Self], sandbox: &Sandbox) -> Result<Vec<String>, Error> {
        let (mut files, mut paths) = (sandbox.fs(), Vec::with_capacity(requests.len()));
        for request in requests {
            let path = sandbox.agent().absolute(&request.path)?;
            files = files.if_expected(&path, request.expected_version.clone());
            paths.push((path, request.recursive));
        }
        files.remove_each(&paths)?;
        Ok(paths.into_iter().map(|(path, _)| path).collect())
    }
}

impl Agent<'_> {
    /// Deletes a file, or a directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the path does not exist or is the root, or if a directory is not empty and `recursive` is not set.
    pub fn delete(&self, request: &DeleteFile) -> Result<Deleted, Error> {
        let path = self.absolute(&request.path)?;
        self.changing("delete_file", &path, json!({ "path": path, "recursive": request.recursive }), |files| {
            if let Some(expected) = &request.expected_version {
                content::expect(files.view(), &path, expected)?;
            }
            let Some((kind, _)) = files.own_kind("delete", &path)? else {
                return Err(failed("delete", &path, FsError::NoEntry));
            };
            let deleted = match kind {
                FileType::Directory if request.recursive => delete_all(files, &path)?,
                FileType::Directory => {
                    files.fs().remove_dir(&path).map_err(|error| error.during("delete"))?;
                    1
                }
                _ => {
                    files.fs().remove_file(&path).map_err(|error| error.during("delete"))?;
                    1
                }
            };
            Ok(Deleted { path: path.clone(), deleted })
        })
    }

    /// Moves a file or a directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the source does not exist, or if the destination exists and `overwrite` is not set.
    pub fn rename(&self, request: &MoveFile) -> Result<Moved, Error> {
        let (from, to) = (self.absolute(&request.from)?, self.absolute(&request.to)?);
        let subject = format!("{from} {to}");
        self.changing("move_file", &subject, json!({ "from": from, "to": to }), |files| {
            if let Some(expected) = &request.expected_version {
                content::expect(files.view(), &from, expected)?;
            }
            if files.own_kind("move", &from)?.is_none() {
                return Err(failed("move", &from, FsError::NoEntry));
            }
            let replaced = match files.own_kind("move", &to)? {
                Some((FileType::Directory, _)) => {
                    return Err(Error::Invalid(format!("`{to}` is a directory: use a path inside it")));
                }
                Some(_) if !request.overwrite => {
                    return Err(Error::Invalid(format!("`{to}` already exists: set overwrite to replace it")));
                }
                Some(_) => true,
                None => false,
            };
            files.fs().create_parents(&to)?;
            files.fs().rename(&from, &to).map_err(|error| match error.fs_error() {
                Some(FsError::Invalid) => Error::Invalid(format!("cannot move `{from}` into itself")),
                _ => error.during("move").into(),
            })?;
            Ok(Moved { from: from.clone(), to: to.clone(), replaced })
        })
    }
}

fn delete_all(files: &Bounded<'_, Transaction>, path: &str) -> Result<usize, Error> {
    if path == "/" {
        return Err(Error::Invalid("cannot delete the root directory".to_owned()));
    }
    files.remove_all(path)
}

impl Deleted {
    /// Formats one line for a model.
    #[must_use]
    pub fn render(&self) -> String {
        match self.deleted {
            1 => format!("deleted {}", self.path),
            count => format!("deleted {} ({})", self.path, text::count(count, "entry", "entries")),
        }
    }
}

impl Moved {
    /// Formats one line for a model.
    #[must_use]
    pub fn render(&self) -> String {
        format!("moved {} to {}{}", self.from, self.to, if self.replaced { ", replacing it" } else { "" })
    }
}
