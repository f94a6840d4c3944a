//! `delete_file` and `move_file`: names that go, and names that change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlite_fs::{FileType, FsError, Transaction};

use super::bounded::{Bounded, failed};
use super::{Agent, text};
use crate::Error;
use crate::vfs::content;

/// What to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteFile {
    /// The file, link or directory.
    pub path: String,
    /// Delete a directory with all that is in it.
    #[serde(default)]
    pub recursive: bool,
    /// Delete only if the file still has this version, as `read_file` gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<String>,
}

/// What was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deleted {
    /// The path.
    pub path: String,
    /// How many files, links and directories are gone.
    pub deleted: usize,
}

/// What to move where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveFile {
    /// The file or directory.
    pub from: String,
    /// Its new path; the directories above it are created.
    pub to: String,
    /// Whether a file at the new path is replaced.
    #[serde(default)]
    pub overwrite: bool,
    /// Move only if the file at `from` still has this version, as `read_file` gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<String>,
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Moved {
    /// The old path.
    pub from: String,
    /// The new one.
    pub to: String,
    /// Whether something was replaced.
    pub replaced: bool,
}

impl Agent<'_> {
    /// Deletes a file, or a directory.
    ///
    /// # Errors
    ///
    /// When there is nothing, when a directory is not empty and `recursive` is not set, or for the root.
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
    /// When there is nothing to move, or something is at the new path and `overwrite` is not set.
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
                    return Err(Error::Invalid(format!("`{to}` is a directory: name the new path of `{from}` in it")));
                }
                Some(_) if !request.overwrite => {
                    return Err(Error::Invalid(format!("`{to}` exists: set overwrite to replace it")));
                }
                Some(_) => true,
                None => false,
            };
            files.fs().create_parents(&to)?;
            files.fs().rename(&from, &to).map_err(|error| error.during("move"))?;
            Ok(Moved { from: from.clone(), to: to.clone(), replaced })
        })
    }
}

fn delete_all(files: &Bounded<'_, Transaction>, path: &str) -> Result<usize, Error> {
    if path == "/" {
        return Err(Error::Invalid("the root directory cannot be deleted".to_owned()));
    }
    files.remove_all(path)
}

impl Deleted {
    /// One line for a model.
    #[must_use]
    pub fn render(&self) -> String {
        match self.deleted {
            1 => format!("deleted {}", self.path),
            count => format!("deleted {} ({})", self.path, text::count(count, "entry", "entries")),
        }
    }
}

impl Moved {
    /// One line for a model.
    #[must_use]
    pub fn render(&self) -> String {
        format!("moved {} to {}{}", self.from, self.to, if self.replaced { ", replacing it" } else { "" })
    }
}
