//! Copies of files and trees from and to this machine, and the summary of a sandbox.

#![expect(clippy::disallowed_methods, reason = "Python names files and directories of this machine to copy")]

use std::fs::File;
use std::path::Path;

use runtime::actions::FoundFile;
use runtime::{Compat, Content, Error, Export, GitExport, GitForm, GitImport, NewFile, Sandbox, Summary, TreeCopy};
use serde_json::json;

use crate::operation::{Done, json as text};

/// Returns everything below a path, as JSON.
pub(crate) fn walk(sandbox: &Sandbox, path: &str) -> Result<Done, Error> {
    let found = sandbox.fs().walk(path)?;
    let rows: Vec<FoundFile> = found.into_iter().map(|found| FoundFile::new(found.path, &found.stat)).collect();
    Ok(Done::Json(Some(text(&rows)?)))
}

/// Copies a file from this machine, streaming it.
pub(crate) fn upload(sandbox: &Sandbox, host: &Path, path: &str) -> Result<Done, Error> {
    let failed = |source| Error::HostFile { path: host.to_owned(), source };
    // Opening a named pipe would block, and a device would never end.
    let metadata = std::fs::metadata(host).map_err(failed)?;
    if !metadata.is_file() {
        let hint = if metadata.is_dir() { "use upload_dir" } else { "only regular files can be copied" };
        return Err(Error::Invalid(format!("`{}` is not a regular file: {hint}", host.display())));
    }
    let file = File::open(host).map_err(failed)?;
    Ok(Done::Size(sandbox.fs().write_from(path, Content::new(file).announced(metadata.len()))?))
}

/// Whether a git repository has no files, and whether its commits are the checkpoints.
pub(crate) type Form = (bool, bool);

/// Copies a file to this machine; it is created atomically.
pub(crate) fn download(sandbox: &Sandbox, path: &str, host: &Path, overwrite: bool) -> Result<Done, Error> {
    let failed = |source| Error::HostFile { path: host.to_owned(), source };
    if !overwrite && host.symlink_metadata().is_ok() {
        return Err(failed(std::io::ErrorKind::AlreadyExists.into()));
    }
    let new = NewFile::beside(host)?;
    let mut file = File::create_new(new.path()).map_err(failed)?;
    let size = sandbox.fs().read_to(path, &mut file)?;
    drop(file);
    if overwrite {
        new.replace()?;
    } else {
        new.publish()?;
    }
    Ok(Done::Size(size))
}

/// Formats the result of a copy as JSON.
pub(crate) fn copied(copy: &TreeCopy) -> Result<Done, Error> {
    let TreeCopy { files, directories, symlinks, bytes, skipped } = copy;
    let rows = json!({ "files": files, "directories": directories, "symlinks": symlinks, "bytes": bytes, "skipped": skipped });
    Ok(Done::Json(Some(rows.to_string())))
}

/// Writes a compact copy to a new file, in the requested layout.
pub(crate) fn export(sandbox: &Sandbox, path: &Path, compat: Option<&str>) -> Result<(), Error> {
    match compat {
        None => sandbox.export(path),
        Some("localsandbox") => sandbox.export_compat(path, Export::default(), Compat::LocalSandbox),
        Some(other) => Err(Error::Invalid(format!("unknown layout `{other}` (supported: `localsandbox`)"))),
    }
}

/// Returns the bytes of such a copy.
pub(crate) fn snapshot(sandbox: &Sandbox, compat: Option<&str>) -> Result<Done, Error> {
    let trouble = |error: std::io::Error| Error::Invalid(format!("cannot create a temporary file for the snapshot: {error}"));
    let directory = tempfile::tempdir().map_err(trouble)?;
    let path = directory.path().join("snapshot.db");
    export(sandbox, &path, compat)?;
    Ok(Done::Bytes(std::fs::read(&path).map_err(trouble)?))
}

/// Writes the versions as commits and returns the result as JSON.
pub(crate) fn git_export(sandbox: &Sandbox, to: &Path, path: String, (bare, checkpoints): Form) -> Result<Done, Error> {
    let form = match GitForm::of(to) {
        GitForm::Repository if bare => GitForm::Bare,
        form => form,
    };
    Ok(Done::Json(Some(text(&sandbox.versions().git_export(to, &GitExport { path, form, checkpoints })?)?)))
}

/// Imports commits as versions and returns the result as JSON.
pub(crate) fn git_import(sandbox: &Sandbox, source: &Path, options: &GitImport) -> Result<Done, Error> {
    Ok(Done::Json(Some(text(&sandbox.versions().git_import(source, options)?)?)))
}

/// Returns a summary of a sandbox, as JSON.
pub(crate) fn info(sandbox: &Sandbox, preset: &str) -> Result<Done, Error> {
    let info: Summary = sandbox.info()?;
    let rows = json!({
        "path": info.path,
        "preset": preset,
        "database_bytes": info.database_bytes,
        "files": info.files,
        "directories": info.directories,
        "symlinks": info.symlinks,
        "keys": info.keys,
        "runs": info.runs,
        "used": {
            "disk": info.disk_used,
            "inodes": info.inodes_used,
            "names": info.names_used,
            "keys": info.keys_used,
            "sessions": info.sessions_used,
            "history": info.history_used,
        },
        "allowed": {
            "disk": info.disk_allowed,
            "inodes": info.inodes_allowed,
            "names": info.names_allowed,
            "keys": info.keys_allowed,
            "sessions": info.sessions_allowed,
            "history": info.history_allowed,
        },
    });
    Ok(Done::Json(Some(rows.to_string())))
}
