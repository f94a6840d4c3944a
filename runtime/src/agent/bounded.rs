//! The files as the tools see them: a view with a deadline and limits on memory.

use sqlite_fs::path::Last;
use sqlite_fs::{FileType, Fs, FsError, Rows, Step, Transaction, Visited, Volume};

use super::MAX_WHOLE;
use crate::Error;
use crate::cancel::Deadline;
use crate::vfs::{Node, ROOT_NODE, Unread, View};

/// The files of one tool call.
pub(super) struct Bounded<'a, R: Rows> {
    view: &'a View<R>,
    fs: Fs<'a, View<R>>,
    deadline: Deadline,
    unread: Unread,
}

/// Creates a file error with the operation and the path.
pub(super) fn failed(operation: &'static str, path: &str, source: FsError) -> Error {
    sqlite_fs::Error::Fs { operation, path: path.to_owned(), source }.into()
}

fn too_large(path: &str, size: u64) -> Error {
    Error::Invalid(format!("`{path}` has {size} bytes, which is too large for this tool: use `bash` with sed or awk"))
}

/// Returns the name of a file type.
pub(super) fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::File => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo | FileType::Device => "other",
    }
}

impl<'a, R: Rows> Bounded<'a, R> {
    pub(super) fn new(view: &'a View<R>, deadline: Deadline) -> Self {
        Self { view, fs: view.fs(), deadline, unread: Unread::default() }
    }

    /// Returns the view.
    pub(super) fn view(&self) -> &'a View<R> {
        self.view
    }

    /// Returns the files.
    pub(super) fn fs(&self) -> &Fs<'a, View<R>> {
        &self.fs
    }

    /// Returns whether the deadline of the tool has passed.
    pub(super) fn is_overdue(&self) -> bool {
        self.deadline.is_over()
    }

    /// Returns the type and size of a path, following links; `None` if it does not exist.
    pub(super) fn kind(&self, operation: &'static str, path: &str) -> Result<Option<(FileType, u64)>, Error> {
        self.look(operation, path, Last::Follow)
    }

    /// Returns the type and size of a path itself.
    pub(super) fn own_kind(&self, operation: &'static str, path: &str) -> Result<Option<(FileType, u64)>, Error> {
        self.look(operation, path, Last::NoFollow)
    }

    fn look(&self, operation: &'static str, path: &str, last: Last) -> Result<Option<(FileType, u64)>, Error> {
        let found = self.view.find(ROOT_NODE, path, last).and_then(|(node, kind)| Ok((kind, self.view.stat(node)?.size)));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(FsError::NoEntry) => Ok(None),
            Err(error) => Err(failed(operation, path, error)),
        }
    }

    /// Passes the content of a file from an offset to `take` piece by piece until it returns `false`.
    pub(super) fn pieces(&self, path: &str, from: u64, mut take: impl FnMut(&[u8]) -> bool) -> Result<u64, Error> {
        let mut is_late = false;
        let read = self.fs.read_pieces(path, from, |piece| {
            let goes_on = take(piece);
            is_late = goes_on && self.is_overdue();
            goes_on && !is_late
        });
        match read {
            Ok(_) if is_late => {
                Err(Error::Invalid(format!("`{path}` is too large to read within the time limit: read a part with `bash`")))
            }
            Err(error) if error.fs_error() == Some(FsError::Invalid) => {
                Err(Error::Invalid(format!("`{path}` is not a regular file: read it with `bash`")))
            }
            read => Ok(read?),
        }
    }

    /// Reads a whole file.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        if let Some((FileType::File, size)) = self.kind("read", path)?
            && size > MAX_WHOLE
        {
            return Err(too_large(path, size));
        }
        let mut content = Vec::new();
        let mut fits = true;
        self.pieces(path, 0, |piece| {
            fits = content.len() as u64 + piece.len() as u64 <= MAX_WHOLE;
            if fits {
                content.extend_from_slice(piece);
            }
            fits
        })?;
        if fits { Ok(content) } else { Err(too_large(path, content.len() as u64)) }
    }

    /// Visits everything below a directory, each directory before its content, until `visit` returns [`Step::Stop`] or the
    /// deadline passes. Links are not followed; the fixed world is not entered, unless the walk starts there. What a mount cannot
    /// read is [noted](Self::unread).
    pub(super) fn walk(&self, top: &str, mut visit: impl FnMut(&Visited<'_, Node>) -> Result<Step, Error>) -> Result<(), Error> {
        let skip = |path: &str, error: FsError| self.unread.add(path, error);
        self.view.fs().skipping(&skip).visit(top, |visited| if self.is_overdue() { Ok(Step::Stop) } else { visit(visited) })
    }

    /// Continues a walk past the error of something that it met, if that belongs to a mount.
    pub(super) fn skip(&self, visited: &Visited<'_, Node>, error: Error) -> Result<(), Error> {
        match error.fs_error() {
            Some(source) if source != FsError::Interrupted && self.view.is_foreign(visited.node) => {
                self.unread.add(visited.path, source);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Returns notes about what the walk could not read.
    pub(super) fn unread(&self) -> Vec<String> {
        self.unread.notes(self.view)
    }
}

impl Bounded<'_, Transaction> {
    /// Writes a whole file, creating missing parent directories; returns whether it is new.
    pub(super) fn write(&self, path: &str, content: &[u8]) -> Result<bool, Error> {
        self.fs.create_parents(path)?;
        let (file, is_new) = self.fs.create(path)?;
        self.fs.write_at(file, 0, content).map_err(|error| failed("write", path, error))?;
        Ok(is_new)
    }

    /// Removes a directory with everything in it and returns the number of entries removed.
    pub(super) fn remove_all(&self, top: &str) -> Result<usize, Error> {
        let is_over = || self.is_overdue();
        match self.view.fs().until(&is_over).remove_dir_all(top) {
            Err(error) if error.fs_error() == Some(FsError::Interrupted) => Err(Error::Invalid(format!(
                "`{top}` has too many entries to delete within the time limit: delete a part of it first"
            ))),
            removed => Ok(removed.map_err(|error| error.during("delete"))?),
        }
    }
}
