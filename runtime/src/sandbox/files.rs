//! Access to the sandbox's files without running a guest: the view is read and written directly.

mod copy;
mod many;
mod page;

use serde_json::json;
use sqlite_fs::{Entry, Fs, FsError, FsPath, Reader, Stat, Transaction};

use super::Sandbox;
use crate::Error;
use crate::history::LibraryCall as Call;
use crate::vfs::content;
use crate::vfs::{Unread, View};

pub use many::Content;

/// A sandbox's files, as a command sees them, including mounts and the fixed world. Paths are absolute.
///
/// Each call is a transaction and a row in the history, except for [`metadata`](Self::metadata), [`read_link`](Self::read_link)
/// and [`version`](Self::version), which are too small to record.
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
    recorded: Option<serde_json::Value>,
    expected: Vec<(String, String)>,
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

impl<'a> Files<'a> {
    pub(super) fn new(sandbox: &'a Sandbox) -> Self {
        Self { sandbox, recorded: None, expected: Vec::new() }
    }

    /// Returns the same files; history rows of calls have these parameters instead of their own.
    #[must_use]
    pub fn recorded_as(self, parameters: serde_json::Value) -> Self {
        Self { recorded: Some(parameters), ..self }
    }

    /// Returns the same files; a call that changes something does so only if the file at this path still has this version, as
    /// returned by [`version`](Self::version). `none` means that the file must not exist.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/log", "one\n").open()?;
    /// let version = sandbox.fs().version("/log")?;
    /// sandbox.fs().if_version("/log", &version).append("/log", "two\n")?;
    /// assert!(sandbox.fs().if_version("/log", &version).remove_file("/log").is_err());
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn if_version(mut self, path: impl Into<String>, version: impl Into<String>) -> Self {
        self.expected.push((path.into(), version.into()));
        self
    }

    /// Same as [`if_version`](Self::if_version), if a version is expected.
    pub(crate) fn if_expected(self, path: &str, version: Option<String>) -> Self {
        match version {
            Some(version) => self.if_version(path, version),
            None => self,
        }
    }

    fn expect(&self, view: &View<Transaction>) -> Result<(), Error> {
        self.expected.iter().try_for_each(|(path, version)| content::expect(view, path, version))
    }

    fn recorded(&self, call: Call) -> Call {
        match &self.recorded {
            Some(parameters) => call.with_parameters(parameters.clone()),
            None => call,
        }
    }

    /// Writes files in one transaction, creating missing parent directories; recorded as one row, `seed`.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them cannot be written; none is written then.
    pub fn seed<C: AsRef<[u8]>>(&self, files: &[(String, C)]) -> Result<(), Error> {
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        let call = Call::new("seed", &paths.join(" "), json!({ "paths": paths, "count": paths.len() }));
        self.change(call, |fs| {
            Ok(files.iter().try_for_each(|(path, content)| {
                fs.create_parents(path)?;
                fs.write(path, content)
            })?)
        })
    }

    fn change<T>(&self, call: Call, work: impl FnOnce(&Fs<'_, View<Transaction>>) -> Result<T, Error>) -> Result<T, Error> {
        self.sandbox.change(self.recorded(call), |run| {
            let view = run.view()?;
            self.expect(view)?;
            work(&view.fs()).map_err(|error| view.explain(error))
        })
    }

    fn look<T>(&self, call: Call, work: impl FnOnce(&Fs<'_, View<Reader>>) -> Result<T, Error>) -> Result<T, Error> {
        self.sandbox.recorder.read(self.recorded(call), || self.see(work))
    }

    // The last committed state, without a row in the history.
    fn see<T>(&self, work: impl FnOnce(&Fs<'_, View<Reader>>) -> Result<T, Error>) -> Result<T, Error> {
        let view = self.sandbox.now()?;
        work(&view.fs()).map_err(|error| view.explain(error))
    }

    /// Returns the content of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist or is a directory.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        self.look(about("read_file", path), |fs| Ok(fs.read(path)?))
    }

    /// Writes the content of a file to `to`, piece by piece, and returns its size. Uses little memory regardless of the size.
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
    /// Returns the errors of [`read`](Self::read), and [`Error::HostFile`] if `to` cannot be written.
    pub fn read_to(&self, path: &str, mut to: impl std::io::Write) -> Result<u64, Error> {
        self.look(about("read_file", path), |fs| {
            let mut unwritten = None;
            let size = fs.read_pieces(path, 0, |piece| {
                unwritten = to.write_all(piece).err();
                unwritten.is_none()
            })?;
            unwritten.map_or(Ok(size), |source| Err(Error::HostFile { path: path.into(), source }))
        })
    }

    /// Returns the content of a file and its version, for [`write_if_version`](Self::write_if_version).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](Self::read).
    pub fn read_versioned(&self, path: &str) -> Result<(Vec<u8>, String), Error> {
        self.look(about("read_file", path), |fs| {
            let bytes = fs.read(path)?;
            let version = content::version(&bytes);
            Ok((bytes, version))
        })
    }

    /// Returns the version of a file's content, for [`write_if_version`](Self::write_if_version); the same as in the [agent
    /// tools](crate::agent). `none` if the file does not exist. Reads the file.
    ///
    /// # Errors
    ///
    /// Returns an error if it is a directory or cannot be read.
    pub fn version(&self, path: &str) -> Result<String, Error> {
        self.sandbox.now()?.at_one_state(|view| content::version_at(view, path).map_err(|error| view.explain(error)))
    }

    /// Writes a file, creating missing parent directories.
    ///
    /// # Errors
    ///
    /// Returns an error if it is a directory or exceeds the quota.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        let content = content.as_ref();
        self.change(sized("write_file", path, content), |fs| {
            fs.create_parents(path)?;
            Ok(fs.write(path, content)?)
        })
    }

    /// Writes a file if it still has this version; `none` means that it must not exist. Returns the new version.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let version = sandbox.fs().write_if_version("/plan", "none", "one")?;
    /// sandbox.fs().append("/plan", " and two")?; // another caller
    /// let error = sandbox.fs().write_if_version("/plan", &version, "three").unwrap_err();
    /// assert!(error.to_string().ends_with("it was changed since it was read"));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Stale`] if it has another version, and the errors of [`write`](Self::write).
    pub fn write_if_version(&self, path: &str, version: &str, content: impl AsRef<[u8]>) -> Result<String, Error> {
        let bytes = content.as_ref();
        self.sandbox.change(sized("write_file", path, bytes), |run| {
            let view = run.view()?;
            self.expect(view)?;
            content::expect(view, path, version)?;
            view.fs().create_parents(path)?;
            view.fs().write(path, bytes)?;
            Ok(content::version(bytes))
        })
    }

    /// Appends to a file, creating it and its missing parent directories.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`write`](Self::write).
    pub fn append(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        let content = content.as_ref();
        self.change(sized("append_file", path, content), |fs| {
            fs.create_parents(path)?;
            Ok(fs.append(path, content)?)
        })
    }

    /// Returns the names in a directory, sorted.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist or is not a directory.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.sandbox.recorder.read_answering(self.recorded(about("list_files", path)), || {
            let entries = self.see(|fs| Ok(fs.list(path)?))?;
            let count = entries.len();
            Ok((entries, json!({ "count": count })))
        })
    }

    /// Returns a path and everything below it, each directory before its content, in name order.
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
    /// Returns an error if it does not exist.
    pub fn walk(&self, path: &str) -> Result<Vec<Found>, Error> {
        self.look(about("walk_files", path), |fs| {
            Ok(fs.walk(path)?.into_iter().map(|(path, stat)| Found { path, stat }).collect())
        })
    }

    /// Same as [`walk`](Self::walk), but continues past what a mount cannot read, and returns notes about that.
    pub(crate) fn walk_readable(&self, path: &str) -> Result<(Vec<Found>, Vec<String>), Error> {
        self.sandbox.recorder.read(self.recorded(about("walk_files", path)), || {
            let (view, unread) = (self.sandbox.now()?, Unread::default());
            let skip = |path: &str, error: FsError| unread.add(path, error);
            let walked = view.fs().skipping(&skip).walk(path).map_err(|error| view.explain(error.into()))?;
            Ok((walked.into_iter().map(|(path, stat)| Found { path, stat }).collect(), unread.notes(&view)))
        })
    }

    /// Returns the metadata of a file, following links.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist.
    pub fn metadata(&self, path: &str) -> Result<Stat, Error> {
        self.see(|fs| Ok(fs.metadata(path)?))
    }

    /// Returns the metadata of the path itself, even if it is a link.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist.
    pub fn symlink_metadata(&self, path: &str) -> Result<Stat, Error> {
        self.see(|fs| Ok(fs.symlink_metadata(path)?))
    }

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist or is not a link.
    pub fn read_link(&self, path: &str) -> Result<String, Error> {
        self.see(|fs| Ok(fs.read_link(path)?))
    }

    /// Returns whether a path exists.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn exists(&self, path: &str) -> Result<bool, Error> {
        self.sandbox.recorder.read_answering(self.recorded(about("exists", path)), || {
            let exists = self.see(|fs| Ok(fs.exists(path)?))?;
            Ok((exists, json!({ "exists": exists })))
        })
    }

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist or is a directory.
    pub fn remove_file(&self, path: &str) -> Result<(), Error> {
        self.change(about("delete_file", path), |fs| Ok(fs.remove_file(path)?))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist, is not a directory or is not empty.
    pub fn remove_dir(&self, path: &str) -> Result<(), Error> {
        self.change(about("delete_directory", path), |fs| Ok(fs.remove_dir(path)?))
    }

    /// Removes a directory and everything below it.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist or is not a directory.
    pub fn remove_dir_all(&self, path: &str) -> Result<(), Error> {
        self.change(about("delete_directory", path), |fs| Ok(fs.remove_dir_all(path).map(drop)?))
    }

    /// Creates a directory and its missing parents.
    ///
    /// # Errors
    ///
    /// Returns an error if the path exists and is not a directory.
    pub fn create_dir_all(&self, path: &str) -> Result<(), Error> {
        self.change(about("create_directory", path), |fs| Ok(fs.create_dir_all(path)?))
    }

    /// Moves a file or directory, replacing an existing file or empty directory.
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
    /// Returns an error if `from` does not exist, or `to` cannot be replaced.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.change(between("rename", from, to), |fs| Ok(fs.rename(from, to)?))
    }

    /// Copies a file's content and permissions and returns its size.
    ///
    /// # Errors
    ///
    /// Returns an error if `from` is not a file, or `to` cannot be written.
    pub fn copy(&self, from: &str, to: &str) -> Result<u64, Error> {
        self.change(between("copy_file", from, to), |fs| Ok(fs.copy(from, to)?))
    }

    /// Sets the permissions: the lower twelve bits of a Unix mode.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist.
    pub fn set_permissions(&self, path: &str, mode: u32) -> Result<(), Error> {
        let call = Call::new("set_permissions", path, json!({ "path": path, "mode": format!("{mode:o}") }));
        self.change(call, |fs| Ok(fs.set_permissions(path, mode)?))
    }

    /// Sets the access and modification times, in nanoseconds since 1970; `None` leaves one unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist.
    pub fn set_times(&self, path: &str, accessed: Option<i64>, modified: Option<i64>) -> Result<(), Error> {
        self.change(about("set_times", path), |fs| Ok(fs.set_times(path, accessed, modified)?))
    }

    /// Creates a symbolic link at `path` that points to `target`.
    ///
    /// # Errors
    ///
    /// Returns an error if the path exists.
    pub fn symlink(&self, target: &str, path: &str) -> Result<(), Error> {
        let call = Call::new("symlink", path, json!({ "path": path, "target": target }));
        self.change(call, |fs| Ok(fs.symlink(target, path)?))
    }

    /// Creates another name for the file at `original`.
    ///
    /// # Errors
    ///
    /// Returns an error if it is a directory, or if the new name exists.
    pub fn hard_link(&self, original: &str, link: &str) -> Result<(), Error> {
        self.change(between("hard_link", original, link), |fs| Ok(fs.hard_link(original, link)?))
    }
}

// Copying a directory into itself would never end.
fn not_into_itself(from: &str, to: &str) -> Result<(), Error> {
    let root = FsPath::root();
    let is_inside = root.join(to)?.starts_with(&root.join(from)?);
    if is_inside { Err(Error::Invalid(format!("cannot copy `{from}` into itself"))) } else { Ok(()) }
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
