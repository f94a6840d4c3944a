//! The sandbox's files from outside: no guest runs, the rows are read and written directly.

use sqlite_fs::{Database, Entry, Stat};

use crate::Error;
use crate::vfs::USER_ID;

/// A sandbox's files. Paths are absolute.
///
/// ```no_run
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// sandbox.fs().write("/notes.txt", "hi")?;
/// assert_eq!(sandbox.bash("cat /notes.txt")?.stdout, b"hi");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
pub struct Files<'a> {
    database: &'a Database,
}

impl<'a> Files<'a> {
    pub(super) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// The content of a file.
    ///
    /// # Errors
    ///
    /// When it does not exist or is a directory.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        Ok(self.database.reader()?.fs().read(path)?)
    }

    /// Writes a file, creating the directories above it.
    ///
    /// # Errors
    ///
    /// When it is a directory or does not fit the quota.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        let transaction = self.database.begin(None)?;
        let fs = transaction.fs().owner(USER_ID, USER_ID);
        if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
            fs.create_dir_all(parent)?;
        }
        fs.write(path, content)?;
        Ok(transaction.commit()?)
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    ///
    /// When it does not exist or is no directory.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        let mut entries = self.database.reader()?.fs().list(path)?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// The metadata of a file.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn metadata(&self, path: &str) -> Result<Stat, Error> {
        Ok(self.database.reader()?.fs().metadata(path)?)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    ///
    /// When it does not exist or is no link.
    pub fn read_link(&self, path: &str) -> Result<String, Error> {
        Ok(self.database.reader()?.fs().read_link(path)?)
    }

    /// Whether a path leads somewhere.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn exists(&self, path: &str) -> Result<bool, Error> {
        Ok(self.database.reader()?.fs().exists(path)?)
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// When it does not exist or is a directory.
    pub fn remove_file(&self, path: &str) -> Result<(), Error> {
        let transaction = self.database.begin(None)?;
        transaction.fs().remove_file(path)?;
        Ok(transaction.commit()?)
    }

    /// Removes a directory and all below it.
    ///
    /// # Errors
    ///
    /// When it does not exist or is no directory.
    pub fn remove_dir_all(&self, path: &str) -> Result<(), Error> {
        let transaction = self.database.begin(None)?;
        transaction.fs().remove_dir_all(path)?;
        Ok(transaction.commit()?)
    }

    /// Creates a directory and those above it.
    ///
    /// # Errors
    ///
    /// When something else has its name.
    pub fn create_dir_all(&self, path: &str) -> Result<(), Error> {
        let transaction = self.database.begin(None)?;
        transaction.fs().owner(USER_ID, USER_ID).create_dir_all(path)?;
        Ok(transaction.commit()?)
    }
}
