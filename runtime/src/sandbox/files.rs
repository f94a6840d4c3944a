//! The sandbox's files from outside: no guest runs, the rows (and what is mounted) are read and written directly.

mod copy;
mod many;
mod page;

use serde_json::json;
use sqlite_fs::path::Last;
use sqlite_fs::{Entry, FsError, Reader, Stat, Volume};

use super::record::Call;
use super::{Sandbox, version};
use crate::Error;
use crate::vfs::{Node, ROOT_NODE, Vfs, library_stat, to_fs};

pub use many::Content;
pub(super) use many::Room;

/// A sandbox's files, mounted ones included. Paths are absolute.
///
/// Each call is a transaction and a row of the history, but for [`metadata`](Self::metadata), [`read_link`](Self::read_link)
/// and [`version`](Self::version), which are too small to be worth one.
///
/// ```
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// sandbox.fs().write("/notes.txt", "hi")?;
/// assert_eq!(sandbox.fs().read("/notes.txt")?, b"hi");
/// assert_eq!(sandbox.history(1)?[0].command, "read_file /notes.txt");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
pub struct Files<'a> {
    sandbox: &'a Sandbox,
}

pub use page::FilePage;

/// A file or directory found by [`Files::walk`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path.
    pub path: String,
    /// Its metadata; links are not followed.
    pub stat: Stat,
}

/// Read at a time.
const PIECE_BYTES: usize = 256 << 10;

/// What reading calls look at.
enum View {
    /// The last committed rows: waits for nobody.
    Rows(Reader),
    /// What a command would see, where something is mounted: waits for the command that runs.
    Mounted(Box<Vfs>),
}

fn failed<'a>(operation: &'static str, path: &'a str) -> impl Fn(abi::Errno) -> Error + 'a {
    move |errno| sqlite_fs::Error::Fs { operation, path: path.to_owned(), source: to_fs(errno) }.into()
}

impl View {
    fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        match self {
            Self::Rows(reader) => Ok(reader.fs().read(path)?),
            Self::Mounted(vfs) => vfs.read_file(path).map_err(failed("read", path)),
        }
    }

    // `take` gets the content piece by piece, so that a file of any size takes little memory.
    fn pieces(&self, path: &str, mut take: impl FnMut(&[u8]) -> std::io::Result<()>) -> Result<u64, Error> {
        let unwritten = |source| Error::HostFile { path: path.into(), source };
        let mut buffer = vec![0; PIECE_BYTES];
        let mut offset = 0;
        let stat = self.stat(path, Last::Follow).map_err(|error| match error {
            Error::Database(sqlite_fs::Error::Fs { path, source, .. }) => {
                sqlite_fs::Error::Fs { operation: "read", path, source }.into()
            }
            error => error,
        })?;
        let node = match self {
            Self::Rows(_) => Node::Row(stat.ino),
            Self::Mounted(vfs) => vfs.find(ROOT_NODE, path, Last::Follow).map_err(failed("read", path))?,
        };
        if stat.is_dir() {
            return Err(failed("read", path)(abi::Errno::ISDIR));
        }
        loop {
            let read = match self {
                Self::Rows(reader) => Volume::read(reader, stat.ino, offset, &mut buffer)
                    .map_err(|source| sqlite_fs::Error::Fs { operation: "read", path: path.to_owned(), source })?,
                Self::Mounted(vfs) => vfs.read(node, offset, &mut buffer).map_err(failed("read", path))?,
            };
            let piece = buffer.get(..read).filter(|piece| !piece.is_empty());
            let Some(piece) = piece else { return Ok(offset) };
            take(piece).map_err(unwritten)?;
            offset += read as u64;
        }
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        match self {
            Self::Rows(reader) => Ok(reader.fs().list(path)?),
            Self::Mounted(vfs) => vfs.list(path).map_err(failed("list", path)),
        }
    }

    fn walk(&self, path: &str) -> Result<Vec<Found>, Error> {
        let found = match self {
            Self::Rows(reader) => reader.fs().walk(path)?,
            Self::Mounted(vfs) => {
                let found = vfs.walk(path).map_err(failed("walk", path))?;
                found.into_iter().map(|(path, stat)| (path, library_stat(stat))).collect()
            }
        };
        Ok(found.into_iter().map(|(path, stat)| Found { path, stat }).collect())
    }

    fn stat(&self, path: &str, last: Last) -> Result<Stat, Error> {
        match self {
            Self::Rows(reader) if last == Last::Follow => Ok(reader.fs().metadata(path)?),
            Self::Rows(reader) => Ok(reader.fs().symlink_metadata(path)?),
            Self::Mounted(vfs) => vfs.stat_at(path, last).map(library_stat).map_err(failed("stat", path)),
        }
    }

    fn read_link(&self, path: &str) -> Result<String, Error> {
        match self {
            Self::Rows(reader) => Ok(reader.fs().read_link(path)?),
            Self::Mounted(vfs) => {
                let read = || vfs.readlink(vfs.find(ROOT_NODE, path, Last::NoFollow)?);
                read().map_err(failed("read link", path))
            }
        }
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        match self.stat(path, Last::Follow) {
            Ok(_) => Ok(true),
            Err(error) => match error.fs_error() {
                Some(FsError::NoEntry | FsError::NotDirectory | FsError::Loop) => Ok(false),
                _ => Err(error),
            },
        }
    }
}

impl<'a> Files<'a> {
    pub(super) fn new(sandbox: &'a Sandbox) -> Self {
        Self { sandbox }
    }

    fn view(&self) -> Result<View, Error> {
        if self.sandbox.mounts.is_empty() {
            return Ok(View::Rows(self.sandbox.database.reader()?));
        }
        Ok(View::Mounted(Box::new(self.sandbox.view()?)))
    }

    fn change<T>(&self, call: Call, work: impl FnOnce(&Vfs) -> Result<T, Error>) -> Result<T, Error> {
        self.sandbox.recorded.change_files(&self.sandbox.mounts, call, work)
    }

    fn look<T>(&self, call: Call, work: impl FnOnce(&View) -> Result<T, Error>) -> Result<T, Error> {
        self.sandbox.recorded.read(call, || work(&self.view()?))
    }

    /// The content of a file.
    ///
    /// # Errors
    ///
    /// When it does not exist or is a directory.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        self.look(about("read_file", path), |view| view.read(path))
    }

    /// Writes the content of a file to `to`, piece by piece, and returns how many bytes it has. Takes little memory, however
    /// large the file is.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/notes", "five!").open()?;
    /// let mut copy = Vec::new();
    /// assert_eq!(sandbox.fs().read_to("/notes", &mut copy)?, 5);
    /// assert_eq!(copy, b"five!");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); and [`Error::HostFile`] if `to` cannot be written.
    pub fn read_to(&self, path: &str, mut to: impl std::io::Write) -> Result<u64, Error> {
        self.look(about("read_file", path), |view| view.pieces(path, |piece| to.write_all(piece)))
    }

    /// The content of a file and its version, for [`write_if_version`](Self::write_if_version).
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_versioned(&self, path: &str) -> Result<(Vec<u8>, String), Error> {
        self.look(about("read_file", path), |view| {
            let content = view.read(path)?;
            let version = version::of(&content);
            Ok((content, version))
        })
    }

    /// A name for a file's content, for [`write_if_version`](Self::write_if_version), as the [agent tools](crate::agent) have
    /// it too; `none` when there is no file. Reads the file.
    ///
    /// # Errors
    ///
    /// When it is a directory, or cannot be read.
    pub fn version(&self, path: &str) -> Result<String, Error> {
        let view = self.view()?;
        if view.exists(path)? { Ok(version::of(&view.read(path)?)) } else { Ok(version::NO_FILE.to_owned()) }
    }

    /// Writes a file, creating the directories above it.
    ///
    /// # Errors
    ///
    /// When it is a directory or does not fit the quota.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        let content = content.as_ref();
        self.change(sized("write_file", path, content), |vfs| {
            let write = || vfs.create_parents(path).and_then(|()| vfs.write_file(path, content));
            write().map_err(failed("write", path))
        })
    }

    /// Writes a file if it still has this version; `none` says that it must not exist. Answers the new version.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let version = sandbox.fs().write_if_version("/plan", "none", "one")?;
    /// sandbox.fs().append("/plan", " and two")?; // somebody else
    /// let error = sandbox.fs().write_if_version("/plan", &version, "three").unwrap_err();
    /// assert!(error.to_string().ends_with("it was changed since it was read"));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Stale`] when it has another version; else as [`write`](Self::write).
    pub fn write_if_version(&self, path: &str, version: &str, content: impl AsRef<[u8]>) -> Result<String, Error> {
        let content = content.as_ref();
        self.change(sized("write_file", path, content), |vfs| {
            let found = current_version(vfs, path)?;
            if found != version {
                return Err(Error::Stale { path: path.to_owned(), expected: version.to_owned(), found });
            }
            let write = || vfs.create_parents(path).and_then(|()| vfs.write_file(path, content));
            write().map_err(failed("write", path))?;
            Ok(version::of(content))
        })
    }

    /// Adds to the end of a file, creating it and the directories above it.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn append(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        let content = content.as_ref();
        self.change(sized("append_file", path, content), |vfs| {
            let append = || vfs.create_parents(path).and_then(|()| vfs.append_file(path, content));
            append().map_err(failed("append to", path))
        })
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    ///
    /// When it does not exist or is no directory.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.look(about("list_files", path), |view| view.list(path))
    }

    /// Everything below a path and the path itself, each directory before what is in it, names in order.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/a/b/c", "").open()?;
    /// let paths: Vec<_> = sandbox.fs().walk("/a")?.into_iter().map(|found| found.path).collect();
    /// assert_eq!(paths, ["/a", "/a/b", "/a/b/c"]);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn walk(&self, path: &str) -> Result<Vec<Found>, Error> {
        self.look(about("walk_files", path), |view| view.walk(path))
    }

    /// The metadata of a file, links followed.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn metadata(&self, path: &str) -> Result<Stat, Error> {
        self.view()?.stat(path, Last::Follow)
    }

    /// The metadata of the path itself, be it a link.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn symlink_metadata(&self, path: &str) -> Result<Stat, Error> {
        self.view()?.stat(path, Last::NoFollow)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    ///
    /// When it does not exist or is no link.
    pub fn read_link(&self, path: &str) -> Result<String, Error> {
        self.view()?.read_link(path)
    }

    /// Whether a path leads somewhere.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn exists(&self, path: &str) -> Result<bool, Error> {
        self.sandbox.recorded.read_answering(about("exists", path), || {
            let exists = self.view()?.exists(path)?;
            Ok((exists, json!({ "exists": exists })))
        })
    }

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    ///
    /// When it does not exist or is a directory.
    pub fn remove_file(&self, path: &str) -> Result<(), Error> {
        self.change(about("delete_file", path), |vfs| vfs.unlink(ROOT_NODE, path).map_err(failed("remove", path)))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// When it does not exist, is no directory or is not empty.
    pub fn remove_dir(&self, path: &str) -> Result<(), Error> {
        self.change(about("delete_directory", path), |vfs| vfs.rmdir(ROOT_NODE, path).map_err(failed("remove", path)))
    }

    /// Removes a directory and all below it.
    ///
    /// # Errors
    ///
    /// When it does not exist or is no directory.
    pub fn remove_dir_all(&self, path: &str) -> Result<(), Error> {
        self.change(about("delete_directory", path), |vfs| vfs.remove_dir_all(path).map_err(failed("remove", path)))
    }

    /// Creates a directory and those above it.
    ///
    /// # Errors
    ///
    /// When something else has its name.
    pub fn create_dir_all(&self, path: &str) -> Result<(), Error> {
        self.change(about("create_directory", path), |vfs| vfs.create_dir_all(path).map_err(failed("create directory", path)))
    }

    /// Moves a file or directory, replacing a file or an empty directory that is there.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/old", "text").open()?;
    /// sandbox.fs().rename("/old", "/new")?;
    /// assert_eq!(sandbox.history(1)?[0].changes.as_ref().unwrap()[0]["from"], "/old");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When `from` does not exist, or `to` cannot be replaced.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.change(between("rename", from, to), |vfs| vfs.rename(ROOT_NODE, from, ROOT_NODE, to).map_err(failed("rename", from)))
    }

    /// Copies a file's content and permissions and answers how many bytes it has.
    ///
    /// # Errors
    ///
    /// When `from` is no file, or `to` cannot be written.
    pub fn copy(&self, from: &str, to: &str) -> Result<u64, Error> {
        self.change(between("copy_file", from, to), |vfs| vfs.copy_file(from, to).map_err(failed("copy", from)))
    }

    /// Sets the permissions: the lower twelve bits of a Unix mode.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn set_permissions(&self, path: &str, mode: u32) -> Result<(), Error> {
        let call = Call::new("set_permissions", path, json!({ "path": path, "mode": format!("{mode:o}") }));
        self.change(call, |vfs| {
            let change = || vfs.chmod(vfs.find(ROOT_NODE, path, Last::Follow)?, mode);
            change().map_err(failed("change mode of", path))
        })
    }

    /// Sets the times of the last access and change, in nanoseconds since 1970; `None` leaves one as it is.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn set_times(&self, path: &str, accessed: Option<i64>, modified: Option<i64>) -> Result<(), Error> {
        self.change(about("set_times", path), |vfs| {
            let change = || vfs.set_times(vfs.find(ROOT_NODE, path, Last::Follow)?, accessed, modified);
            change().map_err(failed("change times of", path))
        })
    }

    /// Creates a symbolic link at `path` that says `target`.
    ///
    /// # Errors
    ///
    /// When something has that name.
    pub fn symlink(&self, target: &str, path: &str) -> Result<(), Error> {
        let call = Call::new("symlink", path, json!({ "path": path, "target": target }));
        self.change(call, |vfs| vfs.symlink(target, ROOT_NODE, path).map_err(failed("create link", path)))
    }

    /// Gives the file at `original` another name.
    ///
    /// # Errors
    ///
    /// When it is a directory, or something has the new name.
    pub fn hard_link(&self, original: &str, link: &str) -> Result<(), Error> {
        self.change(between("hard_link", original, link), |vfs| {
            vfs.link(ROOT_NODE, original, false, ROOT_NODE, link).map_err(failed("link", original))
        })
    }
}

fn about(name: &'static str, path: &str) -> Call {
    Call::new(name, path, json!({ "path": path }))
}

fn sized(name: &'static str, path: &str, content: &[u8]) -> Call {
    Call::new(name, path, json!({ "path": path, "contentLength": content.len() }))
}

fn between(name: &'static str, from: &str, to: &str) -> Call {
    Call::new(name, &format!("{from} {to}"), json!({ "from": from, "to": to }))
}

fn current_version(vfs: &Vfs, path: &str) -> Result<String, Error> {
    match vfs.read_file(path) {
        Ok(content) => Ok(version::of(&content)),
        Err(abi::Errno::NOENT) => Ok(version::NO_FILE.to_owned()),
        Err(errno) => Err(failed("read", path)(errno)),
    }
}
