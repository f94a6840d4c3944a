//! The sandbox's files from outside: no guest runs, the rows are read and written directly.

use serde_json::json;
use sqlite_fs::{Database, Entry, Fs, FsError, Stat, Transaction, Volume};

use super::record::{Call, Recorded, as_user};
use crate::Error;

/// A sandbox's files. Paths are absolute.
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
    recorded: &'a Recorded,
}

/// A file or directory found by [`Files::walk`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path.
    pub path: String,
    /// Its metadata; links are not followed.
    pub stat: Stat,
}

impl<'a> Files<'a> {
    pub(super) fn new(recorded: &'a Recorded) -> Self {
        Self { recorded }
    }

    fn database(&self) -> &Database {
        self.recorded.database()
    }

    fn change(&self, call: Call, work: impl FnOnce(&Fs<'_, Transaction>) -> Result<(), Error>) -> Result<(), Error> {
        self.recorded.change(call, |transaction| work(&as_user(transaction)))
    }

    /// The content of a file.
    ///
    /// # Errors
    ///
    /// When it does not exist or is a directory.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        self.recorded.read(about("read_file", path), || Ok(self.database().reader()?.fs().read(path)?))
    }

    /// The content of a file and its version, for [`write_if_version`](Self::write_if_version).
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_versioned(&self, path: &str) -> Result<(Vec<u8>, u64), Error> {
        self.recorded.read(about("read_file", path), || {
            let reader = self.database().reader()?;
            let stat = reader.fs().metadata(path)?;
            let content = reader.fs().read(path)?;
            let version = version_of(&stat, &content);
            Ok((content, version))
        })
    }

    /// A number that changes with each change of a file, for [`write_if_version`](Self::write_if_version); 0 when there is no
    /// file. Reads the file.
    ///
    /// # Errors
    ///
    /// When it is a directory, or cannot be read.
    pub fn version(&self, path: &str) -> Result<u64, Error> {
        current_version(&self.database().reader()?.fs(), path)
    }

    /// Writes a file, creating the directories above it.
    ///
    /// # Errors
    ///
    /// When it is a directory or does not fit the quota.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        let content = content.as_ref();
        self.change(sized("write_file", path, content), |fs| {
            create_parents(fs, path)?;
            Ok(fs.write(path, content)?)
        })
    }

    /// Writes a file if it still has this version; 0 says that it must not exist. Answers the new version.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let version = sandbox.fs().write_if_version("/plan", 0, "one")?;
    /// sandbox.fs().append("/plan", " and two")?; // somebody else
    /// let error = sandbox.fs().write_if_version("/plan", version, "three").unwrap_err();
    /// assert!(error.to_string().starts_with("`/plan` has changed"));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Changed`] when it has another version; else as [`write`](Self::write).
    pub fn write_if_version(&self, path: &str, version: u64, content: impl AsRef<[u8]>) -> Result<u64, Error> {
        let content = content.as_ref();
        self.recorded.change(sized("write_file", path, content), |transaction| {
            let fs = as_user(transaction);
            let found = current_version(&fs, path)?;
            if found != version {
                return Err(Error::Changed { path: path.to_owned(), expected: version, found });
            }
            create_parents(&fs, path)?;
            fs.write(path, content)?;
            Ok(version_of(&fs.metadata(path)?, content))
        })
    }

    /// Adds to the end of a file, creating it and the directories above it.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn append(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        let content = content.as_ref();
        self.change(sized("append_file", path, content), |fs| {
            create_parents(fs, path)?;
            Ok(fs.append(path, content)?)
        })
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    ///
    /// When it does not exist or is no directory.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.recorded.read(about("list_files", path), || Ok(self.database().reader()?.fs().list(path)?))
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
        self.recorded.read(about("walk_files", path), || {
            let found = self.database().reader()?.fs().walk(path)?;
            Ok(found.into_iter().map(|(path, stat)| Found { path, stat }).collect())
        })
    }

    /// The metadata of a file, links followed.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn metadata(&self, path: &str) -> Result<Stat, Error> {
        Ok(self.database().reader()?.fs().metadata(path)?)
    }

    /// The metadata of the path itself, be it a link.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn symlink_metadata(&self, path: &str) -> Result<Stat, Error> {
        Ok(self.database().reader()?.fs().symlink_metadata(path)?)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    ///
    /// When it does not exist or is no link.
    pub fn read_link(&self, path: &str) -> Result<String, Error> {
        Ok(self.database().reader()?.fs().read_link(path)?)
    }

    /// Whether a path leads somewhere.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn exists(&self, path: &str) -> Result<bool, Error> {
        self.recorded.read_answering(about("exists", path), || {
            let exists = self.database().reader()?.fs().exists(path)?;
            Ok((exists, json!({ "exists": exists })))
        })
    }

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    ///
    /// When it does not exist or is a directory.
    pub fn remove_file(&self, path: &str) -> Result<(), Error> {
        self.change(about("delete_file", path), |fs| Ok(fs.remove_file(path)?))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// When it does not exist, is no directory or is not empty.
    pub fn remove_dir(&self, path: &str) -> Result<(), Error> {
        self.change(about("delete_directory", path), |fs| Ok(fs.remove_dir(path)?))
    }

    /// Removes a directory and all below it.
    ///
    /// # Errors
    ///
    /// When it does not exist or is no directory.
    pub fn remove_dir_all(&self, path: &str) -> Result<(), Error> {
        self.change(about("delete_directory", path), |fs| Ok(fs.remove_dir_all(path)?))
    }

    /// Creates a directory and those above it.
    ///
    /// # Errors
    ///
    /// When something else has its name.
    pub fn create_dir_all(&self, path: &str) -> Result<(), Error> {
        self.change(about("create_directory", path), |fs| Ok(fs.create_dir_all(path)?))
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
        self.change(between("rename", from, to), |fs| Ok(fs.rename(from, to)?))
    }

    /// Copies a file's content and permissions and answers how many bytes it has.
    ///
    /// # Errors
    ///
    /// When `from` is no file, or `to` cannot be written.
    pub fn copy(&self, from: &str, to: &str) -> Result<u64, Error> {
        self.recorded.change(between("copy_file", from, to), |transaction| Ok(as_user(transaction).copy(from, to)?))
    }

    /// Sets the permissions: the lower twelve bits of a Unix mode.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn set_permissions(&self, path: &str, mode: u32) -> Result<(), Error> {
        let call = Call::new("set_permissions", path, json!({ "path": path, "mode": format!("{mode:o}") }));
        self.change(call, |fs| Ok(fs.set_permissions(path, mode & 0o7777)?))
    }

    /// Sets the times of the last access and change, in nanoseconds since 1970; `None` leaves one as it is.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn set_times(&self, path: &str, accessed: Option<i64>, modified: Option<i64>) -> Result<(), Error> {
        self.change(about("set_times", path), |fs| Ok(fs.set_times(path, accessed, modified)?))
    }

    /// Creates a symbolic link at `path` that says `target`.
    ///
    /// # Errors
    ///
    /// When something has that name.
    pub fn symlink(&self, target: &str, path: &str) -> Result<(), Error> {
        let call = Call::new("symlink", path, json!({ "path": path, "target": target }));
        self.change(call, |fs| Ok(fs.symlink(target, path)?))
    }

    /// Gives the file at `original` another name.
    ///
    /// # Errors
    ///
    /// When it is a directory, or something has the new name.
    pub fn hard_link(&self, original: &str, link: &str) -> Result<(), Error> {
        self.change(between("hard_link", original, link), |fs| Ok(fs.hard_link(original, link)?))
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

/// The directories above a path.
pub(super) fn create_parents(fs: &Fs<'_, Transaction>, path: &str) -> Result<(), Error> {
    if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
        fs.create_dir_all(parent)?;
    }
    Ok(())
}

fn current_version<V: Volume>(fs: &Fs<'_, V>, path: &str) -> Result<u64, Error> {
    match fs.metadata(path) {
        Ok(stat) => Ok(version_of(&stat, &fs.read(path)?)),
        Err(error) if error.fs_error() == Some(FsError::NoEntry) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// What JSON's readers can hold in a number.
const VERSION_BITS: u64 = (1 << 53) - 1;

// Times alone would do, were there no clock that is set back or stands still.
fn version_of(stat: &Stat, content: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for number in [stat.ino, stat.mtime.cast_unsigned(), stat.ctime.cast_unsigned()] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(content);
    let number = hasher.finalize().as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes);
    (number & VERSION_BITS).max(1)
}
