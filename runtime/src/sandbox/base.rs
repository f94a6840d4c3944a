//! Databases that sandboxes are laid over, and the version that each overlay is on.
//!
//! A base is opened once per host, however many sandboxes share it. An overlay stays on the version it began with: what was changed
//! above it was changed against that.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sqlite_fs::{Database, Import, Options, Transaction, Version};

use crate::host::Host;
use crate::{Error, clock, versions};

/// Where the versions of overlays are kept: a session that nobody can name, so that they are part of every version and every copy.
pub(crate) const OVERLAYS: &str = "\u{1}overlays";

/// How long reading a database of another kind may take.
const IMPORT_TIME: std::time::Duration = std::time::Duration::from_secs(60);

/// Largest database of another kind: it is copied into memory.
const IMPORT_BYTES: u64 = 1 << 30;

/// The version that an overlay is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    path: String,
    version: i64,
    time: i64,
}

impl Pin {
    pub(crate) fn new(path: &str, version: &Version) -> Self {
        Self { path: path.to_owned(), version: version.number, time: version.time }
    }

    /// Records it.
    pub(crate) fn record(&self, transaction: &Transaction) -> Result<(), Error> {
        let record = json!({ "version": self.version, "time": self.time }).to_string();
        Ok(transaction.sessions().set(OVERLAYS, key(&self.path), record.as_bytes())?)
    }

    // The version that is recorded for an overlay, and when it was made.
    fn recorded(database: &Database, path: &str) -> Result<Option<(i64, i64)>, Error> {
        let Some(record) = database.reader()?.session(OVERLAYS, key(path))? else { return Ok(None) };
        let record: Value = serde_json::from_slice(&record).unwrap_or_default();
        Ok(record["version"].as_i64().zip(record["time"].as_i64()))
    }
}

fn key(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// Opens a database to be read, and says which version its name asks for. The sandbox's own is not opened twice.
pub(super) fn open(host: &Host, own: &Database, file: &Path) -> Result<(Database, Option<String>), sqlite_fs::Error> {
    let (file, version) = split(file);
    let is_own = |own: &Path| own.canonicalize().is_ok_and(|own| file.canonicalize().is_ok_and(|file| own == file));
    if own.path().is_some_and(is_own) {
        return Ok((own.clone(), version));
    }
    let open = || match Database::options().path(&file).read_only().open() {
        Err(sqlite_fs::Error::Foreign { .. }) => import(&file),
        opened => opened,
    };
    Ok((host.base(&file, open)?, version))
}

// A database of AgentFS or LocalSandbox is taken in as a snapshot is: checked row by row, in memory.
fn import(file: &Path) -> Result<Database, sqlite_fs::Error> {
    let bounds = Import { deadline: Some(clock::now() + IMPORT_TIME), max_bytes: IMPORT_BYTES, ..Import::default() };
    Ok(Database::import(file, Options::default(), &bounds)?.0)
}

// The file and the version after its name. A file whose name has an `@` is taken as it is.
fn split(file: &Path) -> (PathBuf, Option<String>) {
    let text = file.to_string_lossy();
    if !file.is_file() {
        for (at, _) in text.match_indices('@') {
            let (name, version) = text.split_at(at);
            if Path::new(name).is_file() {
                return (name.into(), version.get(1..).map(str::to_owned));
            }
        }
    }
    (file.to_owned(), None)
}

/// Whether a reference means another version each time something is changed.
fn is_moving(reference: &str) -> bool {
    reference.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("HEAD")) || reference.starts_with("@{")
}

/// The version of a base that a mount shows, and what is to be recorded of it. `None`: always the newest.
pub(super) fn pinned(
    own: &Database,
    base: &Database,
    reference: Option<&str>,
    path: &str,
    overlay: bool,
) -> Result<(Option<i64>, Option<Pin>), Error> {
    let wanted = reference.map(|reference| versions::resolve(&base.reader()?, reference)).transpose()?;
    if !overlay {
        return Ok((wanted.map(|version| version.number), None));
    }
    if let Some((number, time)) = Pin::recorded(own, path)? {
        let is_fixed = reference.is_some_and(|reference| !is_moving(reference));
        if let Some(wanted) = wanted.filter(|wanted| is_fixed && wanted.number != number) {
            return Err(moved(path, &format!("it is on version v{number}, expected v{}", wanted.number)));
        }
        return match base.reader()?.version(number) {
            Ok(version) if version.time == time => Ok((Some(number), None)),
            Ok(_) => Err(moved(path, "it was created over another database")),
            // Pruned: reading it fails, and moving it to a newer one does not.
            Err(sqlite_fs::Error::NoVersion { .. }) => Ok((Some(number), None)),
            Err(error) => Err(error.into()),
        };
    }
    let version = match wanted {
        Some(version) => Some(version),
        None => base.reader()?.versions(None, 1)?.pop(),
    };
    Ok((version.as_ref().map(|version| version.number), version.map(|version| Pin::new(path, &version))))
}

fn moved(path: &str, reason: &str) -> Error {
    Error::Invalid(format!("cannot mount an overlay at `{}`: {reason}; move it with `sandlite update`", key(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_follows_the_name_of_a_file_that_exists() {
        let directory = tempfile::tempdir().unwrap();
        let plain = directory.path().join("a.db");
        Database::options().path(&plain).open().unwrap();
        let with = |suffix: &str| PathBuf::from(format!("{}{suffix}", plain.display()));
        assert_eq!(split(&plain), (plain.clone(), None));
        assert_eq!(split(&with("@v3")), (plain.clone(), Some("v3".to_owned())));
        assert_eq!(split(&with("@@{2 hours ago}")), (plain.clone(), Some("@{2 hours ago}".to_owned())));
        Database::options().path(with("@v3")).open().unwrap();
        assert_eq!(split(&with("@v3")), (with("@v3"), None));
        assert_eq!(split(Path::new("/nowhere@x")), (PathBuf::from("/nowhere@x"), None));
    }
}
