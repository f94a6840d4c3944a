//! Operations on many files in one transaction: a signal or a kill leaves all of it or nothing.

use std::io::{self, Read};

use presets::{ByteSize, LimitName, Limits};
use serde_json::json;
use sqlite_fs::{FsError, Transaction};

use super::{Files, about, between, not_into_itself};
use crate::Error;
use crate::history::LibraryCall as Call;
use crate::vfs::View;

/// Number of bytes read and stored at once.
const PIECE: usize = 256 << 10;

/// Maximum number of paths listed in a history row.
const NAMED: usize = 100;

/// The content of a new file, streamed with little memory.
///
/// ```
/// # use sandlite_runtime::{Content, Sandbox};
/// # let sandbox = Sandbox::builder().open()?;
/// let stored = sandbox.fs().write_from("/zeros", Content::new(std::io::Read::take(std::io::repeat(0), 1_000_000)))?;
/// assert_eq!(stored, 1_000_000);
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
pub struct Content {
    reader: Box<dyn Read + Send>,
    bytes: Option<u64>,
}

impl Content {
    /// Creates content from a reader, up to its end.
    #[must_use]
    pub fn new(reader: impl Read + Send + 'static) -> Self {
        Self { reader: Box::new(reader), bytes: None }
    }

    /// Announces the size: content that does not fit is rejected before it is read.
    #[must_use]
    pub fn announced(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Reads a piece; 0 at the end.
    fn piece(&mut self, buffer: &mut [u8], path: &str) -> Result<usize, Error> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map_err(|source| Error::Input { path: path.to_owned(), source }),
            }
        }
    }

    /// Rejects announced content that cannot fit.
    fn admit(&self, path: &str, room: Room) -> Result<(), Error> {
        self.bytes.map_or(Ok(()), |bytes| room.admit(path, bytes))
    }

    /// Writes everything to a file, piece by piece, creating missing parent directories.
    pub(in crate::sandbox) fn write(mut self, view: &View<Transaction>, limits: &Limits, path: &str) -> Result<u64, Error> {
        let fs = view.fs();
        fs.create_parents(path)?;
        let (file, _) = fs.create(path)?;
        let room = Room::of(view, limits)?;
        self.admit(path, room)?;
        let announced = self.bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(PIECE);
        let mut buffer = vec![0; announced.clamp(1, PIECE)];
        let mut offset = 0;
        loop {
            let length = self.piece(&mut buffer, path)?;
            if length == 0 {
                return Ok(offset);
            }
            let end = offset + length as u64;
            room.admit(path, end)?;
            let unwritten = |source| sqlite_fs::Error::Fs { operation: "write", path: path.to_owned(), source };
            fs.write_at(file, offset, buffer.get(..length).unwrap_or_default()).map_err(unwritten)?;
            offset = end;
        }
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        Self::new(io::Cursor::new(bytes)).announced(length)
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Content").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The maximum size of one more file.
#[derive(Clone, Copy)]
struct Room {
    file: ByteSize,
    disk: ByteSize,
    left: u64,
}

impl Room {
    /// Returns the remaining space in a run; the file that is written is empty already.
    fn of(view: &View<Transaction>, limits: &Limits) -> Result<Self, Error> {
        let used = view.transaction().file_bytes().map_err(sqlite_fs::Error::from)?;
        Ok(Self { file: limits.file, disk: limits.disk, left: limits.disk.0.saturating_sub(used) })
    }

    fn admit(self, path: &str, bytes: u64) -> Result<(), Error> {
        let refused = |limit, allowed| Err(Error::TooLarge { path: path.to_owned(), limit, allowed });
        if bytes > self.file.0 {
            return refused(LimitName::File, self.file);
        }
        if bytes > self.left {
            return refused(LimitName::Disk, self.disk);
        }
        Ok(())
    }
}

impl Files<'_> {
    /// Writes a file from a reader, creating missing parent directories, and returns its size.
    ///
    /// # Errors
    ///
    /// Returns [`Error::TooLarge`] if it exceeds the quota, and [`Error::Input`] if the reader fails; nothing is changed then.
    pub fn write_from(&self, path: &str, content: impl Into<Content>) -> Result<u64, Error> {
        let content = content.into();
        let call = Call::new("write_file", path, json!({ "path": path, "contentLength": content.bytes }));
        self.sandbox.change(call, |run| {
            self.expect(run.view()?)?;
            content.write(run.view()?, &self.sandbox.limits, path)
        })
    }

    /// Writes many files, creating missing parent directories, in one transaction.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.fs().write_all(vec![("/a".to_owned(), b"1".to_vec().into()), ("/b/c".to_owned(), b"2".to_vec().into())])?;
    /// assert_eq!(sandbox.fs().read("/b/c")?, b"2");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`write_from`](Self::write_from); none is written then.
    pub fn write_all(&self, files: Vec<(String, Content)>) -> Result<(), Error> {
        let named: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).take(NAMED).collect();
        let call = Call::new("write_files", &named.join(" "), json!({ "paths": named, "count": files.len() }));
        self.sandbox.change(call, |run| {
            self.expect(run.view()?)?;
            files.into_iter().try_for_each(|(path, content)| content.write(run.view()?, &self.sandbox.limits, &path).map(drop))
        })
    }

    /// Copies a directory with everything below it. Named pipes are skipped because they have no content.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/a/b/c", "text").open()?;
    /// sandbox.fs().copy_dir_all("/a", "/d")?;
    /// assert_eq!(sandbox.fs().read("/d/b/c")?, b"text");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if `from` is not a directory, `to` is inside it, or it exceeds the quota; nothing is copied then.
    pub fn copy_dir_all(&self, from: &str, to: &str) -> Result<(), Error> {
        self.change(between("copy_directory", from, to), |fs| {
            not_into_itself(from, to)?;
            Ok(fs.copy_dir_all(from, to)?)
        })
    }

    /// Removes files, links and directories with everything below them.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them does not exist; nothing is removed then.
    pub fn remove_all(&self, paths: &[String]) -> Result<(), Error> {
        let paths: Vec<(String, bool)> = paths.iter().map(|path| (path.clone(), true)).collect();
        self.remove_each(&paths)
    }

    /// Same as [`remove_all`](Self::remove_all); only paths with `true` may be directories.
    pub(crate) fn remove_each(&self, paths: &[(String, bool)]) -> Result<(), Error> {
        let call = match paths {
            [(path, _)] if self.symlink_metadata(path)?.is_dir() => about("delete_directory", path),
            [(path, _)] => about("delete_file", path),
            _ => {
                let named: Vec<&str> = paths.iter().map(|(path, _)| path.as_str()).collect();
                Call::new("delete_files", &named.join(" "), json!({ "paths": named }))
            }
        };
        self.change(call, |fs| {
            for (path, recursive) in paths {
                if fs.symlink_metadata(path)?.is_dir() && !recursive {
                    return Err(Error::file("remove", path, FsError::IsDirectory));
                }
                fs.remove(path)?;
            }
            Ok(())
        })
    }

    /// Creates directories and their missing parents.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the paths exists and is not a directory; none is created then.
    pub fn create_dirs(&self, paths: &[String]) -> Result<(), Error> {
        let [path] = paths else {
            let call = Call::new("create_directories", &paths.join(" "), json!({ "paths": paths }));
            return self.change(call, |fs| Ok(paths.iter().try_for_each(|path| fs.create_dir_all(path))?));
        };
        self.create_dir_all(path)
    }
}
