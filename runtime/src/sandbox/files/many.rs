//! What is more than one operation on files and still one transaction: a signal or a kill leaves all of it or nothing.

use std::io::{self, Read};

use serde_json::json;
use sqlite_fs::{FsError, Transaction};

use super::{Files, about, between, failed};
use crate::Error;
use crate::sandbox::record::Call;
use crate::vfs::{ROOT_NODE, Vfs};
use presets::{ByteSize, LimitName, Limits};

/// Read and stored at a time.
const PIECE: usize = 256 << 10;

/// The content of a new file, read while it is stored: however much there is, little of it is in memory.
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
    /// Whatever the reader has until its end.
    #[must_use]
    pub fn new(reader: impl Read + Send + 'static) -> Self {
        Self { reader: Box::new(reader), bytes: None }
    }

    /// Announces how many bytes there are: content that does not fit is refused before any of it is read.
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

    /// Refuses announced content that cannot fit.
    fn admit(&self, path: &str, room: Room) -> Result<(), Error> {
        self.bytes.map_or(Ok(()), |bytes| room.admit(path, bytes))
    }

    /// Stores everything, piece by piece: `write` puts bytes at an offset.
    pub(in crate::sandbox) fn store(
        mut self,
        path: &str,
        room: Room,
        write: impl Fn(u64, &[u8]) -> Result<(), FsError>,
    ) -> Result<u64, Error> {
        self.admit(path, room)?;
        let mut buffer = vec![0; PIECE];
        let mut offset = 0;
        loop {
            let length = self.piece(&mut buffer, path)?;
            if length == 0 {
                return Ok(offset);
            }
            let end = offset + length as u64;
            room.admit(path, end)?;
            write(offset, buffer.get(..length).unwrap_or_default()).map_err(|source| sqlite_fs::Error::Fs {
                operation: "write",
                path: path.to_owned(),
                source,
            })?;
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

/// What one more file may have.
#[derive(Clone, Copy)]
pub(in crate::sandbox) struct Room {
    file: ByteSize,
    disk: ByteSize,
    left: u64,
}

impl Room {
    /// What is left in a transaction once the file at `path`, if there is one, is replaced.
    pub(in crate::sandbox) fn of(transaction: &Transaction, limits: &Limits, path: &str) -> Result<Self, Error> {
        let used = transaction.used().map_err(sqlite_fs::Error::from)?.bytes;
        let replaced = transaction.fs().metadata(path).ok().filter(sqlite_fs::Stat::is_file).map_or(0, |stat| stat.size);
        let left = limits.disk.0.saturating_sub(used.saturating_sub(replaced));
        Ok(Self { file: limits.file, disk: limits.disk, left })
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
    /// Writes a file from a reader, creating the directories above it, and returns how many bytes it has.
    ///
    /// # Errors
    ///
    /// Returns [`Error::TooLarge`] if it does not fit the quota, [`Error::Input`] if the reader fails; then nothing changes.
    pub fn write_from(&self, path: &str, content: impl Into<Content>) -> Result<u64, Error> {
        let content = content.into();
        let call = Call::new("write_file", path, json!({ "path": path, "contentLength": content.bytes }));
        self.change(call, |vfs| {
            let room = Room::of(vfs.transaction(), &self.sandbox.limits, path)?;
            content.admit(path, room)?;
            let file = || {
                vfs.create_parents(path)?;
                vfs.empty_file(path)
            };
            let node = file().map_err(failed("write", path))?;
            content.store(path, room, |offset, bytes| vfs.write_all(node, offset, bytes).map_err(crate::vfs::to_fs))
        })
    }

    /// Copies a directory with all below it. Named pipes are left out: they have nothing to copy.
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
    /// When `from` is not a directory, `to` is inside it, or it does not fit the quota: then nothing is copied.
    pub fn copy_dir_all(&self, from: &str, to: &str) -> Result<(), Error> {
        let inside = format!("{}/", from.trim_end_matches('/'));
        self.change(between("copy_directory", from, to), |vfs| {
            if format!("{to}/").starts_with(&inside) {
                return Err(Error::Invalid(format!("cannot copy `{from}` into itself")));
            }
            vfs.copy_dir_all(from, to).map_err(|(path, errno)| failed("copy", &path)(errno))
        })
    }

    /// Removes files, links and directories with all below them.
    ///
    /// # Errors
    ///
    /// When one of them does not exist: then nothing is removed.
    pub fn remove_all(&self, paths: &[String]) -> Result<(), Error> {
        let [path] = paths else {
            let call = Call::new("delete_files", &paths.join(" "), json!({ "paths": paths }));
            return self.change(call, |vfs| paths.iter().try_for_each(|path| remove(vfs, path)));
        };
        let name = if self.symlink_metadata(path)?.is_dir() { "delete_directory" } else { "delete_file" };
        self.change(about(name, path), |vfs| remove(vfs, path))
    }

    /// Creates directories and those above them.
    ///
    /// # Errors
    ///
    /// When something else has the name of one: then none is created.
    pub fn create_dirs(&self, paths: &[String]) -> Result<(), Error> {
        let [path] = paths else {
            let call = Call::new("create_directories", &paths.join(" "), json!({ "paths": paths }));
            let create = |vfs: &Vfs, path: &String| vfs.create_dir_all(path).map_err(failed("create directory", path));
            return self.change(call, |vfs| paths.iter().try_for_each(|path| create(vfs, path)));
        };
        self.create_dir_all(path)
    }
}

fn remove(vfs: &Vfs, path: &str) -> Result<(), Error> {
    let remove = || {
        if vfs.stat_at(path, sqlite_fs::path::Last::NoFollow)?.kind() == abi::stat::S_IFDIR {
            vfs.remove_dir_all(path)
        } else {
            vfs.unlink(ROOT_NODE, path)
        }
    };
    remove().map_err(failed("remove", path))
}
