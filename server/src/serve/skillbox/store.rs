//! Bytes of files: one file of the tenant's directory for each, under its random id. Written whole and stored on the disk before a row names
//! them, so that what the catalog lists is there after a crash.

#![expect(clippy::disallowed_methods, reason = "files of tenants are kept here")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tempfile::NamedTempFile;

use crate::serve::app::{App, Tenant};
use crate::serve::problem::Problem;

/// The directory of a tenant that holds them.
const DIRECTORY: &str = "files";
/// The delay after which a client without room may retry, in seconds.
const LATER: u64 = 60;

/// Stores the output of `write` under a new id; returns the number of bytes.
pub(super) fn store<E>(tenant: &Tenant, id: &str, write: impl FnOnce(&mut dyn Write) -> Result<(), E>) -> Result<i64, Problem>
where
    Problem: From<E>,
{
    let directory = tenant.directory(DIRECTORY)?;
    let mut new = NamedTempFile::new_in(&directory)?;
    {
        let mut buffered = BufWriter::new(&mut new);
        write(&mut buffered)?;
        buffered.flush()?;
    }
    new.as_file().sync_all()?;
    let size = new.as_file().metadata()?.len();
    new.persist(directory.join(id)).map_err(|error| error.error)?;
    Ok(i64::try_from(size).unwrap_or(i64::MAX))
}

/// Opens the bytes of a file. The id is one of a row of this tenant, never a client's text.
pub(super) fn open(tenant: &Tenant, id: &str) -> Result<File, Problem> {
    Ok(File::open(path(tenant, id)?)?)
}

/// Returns the bytes of a file.
pub(super) fn read(tenant: &Tenant, id: &str) -> Result<Vec<u8>, Problem> {
    Ok(std::fs::read(path(tenant, id)?)?)
}

/// Removes the bytes of files whose rows are gone. Bytes that cannot be removed take room and nothing else.
pub(super) fn remove(tenant: &Tenant, ids: &[String]) {
    for id in ids {
        if let Ok(path) = path(tenant, id) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes bytes that no row names and that are at least this old: a crash can leave them.
pub(super) fn remove_orphans(app: &App, tenant: &Tenant, age: Duration) -> Result<(), Problem> {
    for entry in std::fs::read_dir(tenant.directory(DIRECTORY)?)?.flatten() {
        // Of a clock that was set back, nothing is known; the next sweep decides.
        let is_settled =
            entry.metadata().and_then(|found| found.modified()).is_ok_and(|at| at.elapsed().is_ok_and(|time| time >= age));
        let is_known = match entry.file_name().to_str() {
            Some(id) => app.catalog().knows_file(id)?,
            None => false,
        };
        if is_settled && !is_known {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

fn path(tenant: &Tenant, id: &str) -> Result<PathBuf, Problem> {
    Ok(tenant.directory(DIRECTORY)?.join(id))
}

/// Refuses bytes that a tenant has no room for: beside its files, which are counted now, and beside all that it has, which is counted now and then.
pub(super) fn require_room(app: &App, tenant: &str, bytes: u64) -> Result<(), Problem> {
    app.require_room(tenant, bytes)?;
    let most = app.allowed(tenant)?.bytes;
    let used = u64::try_from(app.catalog().bytes_of_files(tenant)?).unwrap_or(u64::MAX);
    if used.saturating_add(bytes) > most {
        let message = format!("the tenant's files have {used} bytes, and {most} are allowed: delete files that are not needed");
        let details = json!({ "quota": "bytes", "used": used, "limit": most, "retry_after_seconds": LATER });
        return Err(Problem::limited(message, LATER).with_details(details));
    }
    Ok(())
}
