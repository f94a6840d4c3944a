//! Base databases of sandboxes, and the version or commit of each overlay.
//!
//! A base is opened once per host, however many sandboxes share it. An overlay stays on its initial version or commit, because
//! its changes are relative to that.

use std::path::{Path, PathBuf};

use git::Id;
use serde_json::{Value, json};
use sqlite_fs::{Database, Import, Options, Transaction, Version};

use crate::host::Host;
use crate::vfs::{GitTree, Moving as _, State};
use crate::{Error, clock, versions};

/// The session that stores the versions and commits of overlays. It has a reserved name, so that they are part of every version and copy.
pub(crate) const OVERLAYS: &str = "\u{1}overlays";

/// Maximum duration of reading a foreign database.
const IMPORT_TIME: std::time::Duration = std::time::Duration::from_secs(60);

/// Maximum size of a foreign database, which is copied into memory.
const IMPORT_BYTES: u64 = 1 << 30;

/// The state of an overlay's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    path: String,
    state: Value,
}

impl Pin {
    pub(crate) fn new(path: &str, state: Value) -> Self {
        Self { path: path.to_owned(), state }
    }

    fn of_version(path: &str, version: &Version) -> Self {
        Self::new(path, json!({ "version": version.number, "time": version.time }))
    }

    /// Records it.
    pub(crate) fn record(&self, transaction: &Transaction) -> Result<(), Error> {
        Ok(transaction.sessions().set(OVERLAYS, key(&self.path), self.state.to_string().as_bytes())?)
    }

    // The recorded state of an overlay.
    fn recorded(database: &Database, path: &str) -> Result<Option<Value>, Error> {
        let record = database.reader()?.session(OVERLAYS, key(path))?;
        Ok(record.map(|record| serde_json::from_slice(&record).unwrap_or_default()))
    }
}

fn key(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// Opens a database for reading, and returns the version that its name selects. The sandbox's own is not opened twice.
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

// An AgentFS or LocalSandbox database is imported like a snapshot: checked row by row, in memory.
fn import(file: &Path) -> Result<Database, sqlite_fs::Error> {
    let bounds = Import { deadline: Some(clock::now() + IMPORT_TIME), max_bytes: IMPORT_BYTES, ..Import::default() };
    Ok(Database::import(file, Options::default(), &bounds)?.0)
}

// The file and the version after its name. An existing file whose name contains `@` is used directly.
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

/// Returns whether a reference denotes another version after each change.
fn is_moving(reference: &str) -> bool {
    reference.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("HEAD")) || reference.starts_with("@{")
}

/// Returns the version of a base that a mount shows, and the record for it. `None`: always the newest.
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
    if let Some(record) = Pin::recorded(own, path)? {
        let Some((number, time)) = record["version"].as_i64().zip(record["time"].as_i64()) else {
            return Err(moved(path, "it was created over another source"));
        };
        let is_fixed = reference.is_some_and(|reference| !is_moving(reference));
        if let Some(wanted) = wanted.filter(|wanted| is_fixed && wanted.number != number) {
            return Err(moved(path, &format!("it is on version v{number}, expected v{}", wanted.number)));
        }
        return match base.reader()?.version(number) {
            Ok(version) if version.time == time => Ok((Some(number), None)),
            Ok(_) => Err(moved(path, "it was created over another database")),
            // Pruned: reading it fails, but moving to a newer one does not.
            Err(sqlite_fs::Error::NoVersion { .. }) => Ok((Some(number), None)),
            Err(error) => Err(error.into()),
        };
    }
    let version = match wanted {
        Some(version) => Some(version),
        None => base.reader()?.versions(None, 1)?.pop(),
    };
    Ok((version.as_ref().map(|version| version.number), version.map(|version| Pin::of_version(path, &version))))
}

/// Makes the overlay over a repository show the recorded commit, or returns the record for it.
pub(super) fn pinned_commit(own: &Database, source: &GitTree, path: &str) -> Result<Option<Pin>, Error> {
    let wanted = source.commit();
    let Some(record) = Pin::recorded(own, path)? else { return Ok(Some(Pin::new(path, GitTree::record(wanted)))) };
    let Some(commit) = record["commit"].as_str().and_then(Id::parse) else {
        return Err(moved(path, "it was created over another source"));
    };
    if commit != wanted {
        if source.is_fixed() {
            return Err(moved(path, &format!("it is on commit {commit}, expected {wanted}")));
        }
        source.move_to(State::Commit(commit));
    }
    Ok(None)
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
