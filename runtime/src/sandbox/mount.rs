//! Host directories in a sandbox: mounted for reading, mounted under a layer of rows, copied in, copied out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use sqlite_fs::{Database, FsPath, NewFile, Reader};

use super::Sandbox;
use crate::Error;
use crate::history::LibraryCall as Call;
use crate::vfs::{HostDirectory, MountPoint, Refused, TreeCopy, View, export_tree, import_tree, is_mount_point, mount_path};

/// A host directory that a sandbox may see; give it to [`Builder::mount`](super::Builder::mount).
///
/// Guests never write to it. Symbolic links in it are followed inside the sandbox's own tree only, so none leads out;
/// devices, pipes, sockets, what is mounted inside it, `.ssh` and the like, and the sandbox's own database do not show.
///
/// ```
/// use sandlite_runtime::{Mount, Sandbox};
/// # let project = tempfile::tempdir().unwrap();
/// # std::fs::write(project.path().join("README"), "read me").unwrap();
/// let sandbox = Sandbox::builder().mount(Mount::overlay(project.path(), "/project")).open()?;
/// assert_eq!(sandbox.fs().read("/project/README")?, b"read me");
/// sandbox.fs().write("/project/README", "changed")?; // a row: the host's file stays as it is
/// # assert_eq!(std::fs::read(project.path().join("README")).unwrap(), b"read me");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mount {
    host: PathBuf,
    guest: String,
    overlay: bool,
    allow_sensitive: bool,
}

impl Mount {
    /// Shows a host directory at an absolute path of the sandbox; changing anything in it is an error (EROFS).
    #[must_use]
    pub fn read_only(host: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        Self { host: host.into(), guest: guest.into(), overlay: false, allow_sensitive: false }
    }

    /// Shows a host directory under a layer of rows: guests change it as they like, and the changes are in the database.
    #[must_use]
    pub fn overlay(host: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        Self { overlay: true, ..Self::read_only(host, guest) }
    }

    /// Mounts the directory even though it may give away secrets: `/etc`, a home directory, `.ssh`, …
    #[must_use]
    pub fn allow_sensitive(mut self) -> Self {
        self.allow_sensitive = true;
        self
    }

    /// The path in the sandbox.
    #[must_use]
    pub fn guest(&self) -> &str {
        &self.guest
    }

    fn open(self, database: &Database) -> Result<MountPoint, Error> {
        let Self { host, guest, overlay, allow_sensitive } = self;
        let refused = |reason: String, hint| Error::Mount { host: host.clone(), guest: guest.clone(), reason, hint };
        let path = mount_path(&guest).map_err(|reason| refused(reason.to_owned(), None))?;
        let mut directory = open_directory(&host, allow_sensitive, refused)?;
        if let Some(file) = database.path() {
            directory.hide(file);
        }
        Ok(MountPoint { directory: Arc::new(directory), path, overlay })
    }
}

const SENSITIVE_HINT: &str = "choose a directory below it; a program of your own can say `allow_sensitive`";

fn open_directory(
    host: &Path,
    allow_sensitive: bool,
    refused: impl FnOnce(String, Option<&'static str>) -> Error,
) -> Result<HostDirectory, Error> {
    HostDirectory::open(host, allow_sensitive).map_err(|why| match why {
        Refused::Sensitive(why) => refused(why.to_owned(), Some(SENSITIVE_HINT)),
        Refused::Host(error) => refused(error.to_string(), None),
    })
}

/// Opens the mounts of a sandbox: none may be at or in the place of another.
pub(super) fn open(mounts: Vec<Mount>, database: &Database) -> Result<Arc<[MountPoint]>, Error> {
    let mut points: Vec<MountPoint> = Vec::new();
    for mount in mounts {
        let (host, guest) = (mount.host.clone(), mount.guest.clone());
        let point = mount.open(database)?;
        let path = FsPath::new(point.path.as_str())?;
        let inside = |other: &FsPath| path.starts_with(other) || other.starts_with(&path);
        if let Some(other) = points.iter().find(|other| FsPath::new(other.path.as_str()).is_ok_and(|other| inside(&other))) {
            let reason = format!("`{}` is mounted there", other.path);
            return Err(Error::Mount { host, guest, reason, hint: Some("mounts cannot be inside each other") });
        }
        points.push(point);
    }
    Ok(points.into())
}

impl Sandbox {
    /// Copies what is in a host directory into a directory of the sandbox, made if it is missing: one transaction, one row of
    /// the history. Links are copied as links, and never followed on the host.
    ///
    /// ```
    /// # let project = tempfile::tempdir().unwrap();
    /// # std::fs::write(project.path().join("a.txt"), "a").unwrap();
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let copied = sandbox.import_tree(project.path(), "/project")?;
    /// assert_eq!((copied.files, copied.bytes), (1, 1));
    /// assert_eq!(sandbox.fs().read("/project/a.txt")?, b"a");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the host directory cannot be read or is a sensitive one (as for [`Mount`]), or when it does not fit the quota:
    /// then nothing is copied.
    pub fn import_tree(&self, host: impl AsRef<Path>, guest: &str) -> Result<TreeCopy, Error> {
        let host = host.as_ref();
        let refused = |reason, hint| Error::Mount { host: host.to_owned(), guest: guest.to_owned(), reason, hint };
        let directory = open_directory(host, false, refused)?;
        // The host's path stays out of the history: snapshots travel.
        self.change_answering(Call::new("import_tree", guest, json!({ "path": guest })), |run| {
            let view = run.view()?;
            view.fs().create_dir_all(guest)?;
            let copy = import_tree(&directory, view, guest)?;
            let answer = counts(&copy);
            Ok((copy, answer))
        })
    }

    /// Copies what a directory of the sandbox shows (mounts included) into a host directory, made if it is missing. Nothing on
    /// the host is overwritten or followed; links that lead out of the tree are left behind and named in the answer.
    ///
    /// ```
    /// # let host = tempfile::tempdir().unwrap();
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/out/report.md", "done").open()?;
    /// let copied = sandbox.export_tree("/out", host.path().join("result"))?;
    /// assert_eq!(copied.files, 1);
    /// assert_eq!(std::fs::read(host.path().join("result/report.md")).unwrap(), b"done");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When a file exists on the host, or cannot be written. A directory that was missing is then missing still; in one that
    /// was there, files copied before the error stay.
    pub fn export_tree(&self, guest: &str, host: impl AsRef<Path>) -> Result<TreeCopy, Error> {
        let call = Call::new("export_tree", guest, json!({ "path": guest }));
        self.recorder.read_answering(call, || {
            let copy = export_whole(&self.now()?, guest, host.as_ref())?;
            let answer = counts(&copy);
            Ok((copy, answer))
        })
    }

    /// The directories that mounts are at and that are not there; an error now rather than at the first command.
    pub(super) fn missing_mount_points(&self) -> Result<Vec<&str>, Error> {
        let rows = self.database.reader()?;
        let mut missing = Vec::new();
        for MountPoint { path, .. } in self.scope.mounts.iter() {
            match is_mount_point(path, &rows) {
                Ok(true) => {}
                Ok(false) => missing.push(path.as_str()),
                Err(error) => return Err(Error::Invalid(format!("cannot mount at `{path}`: {error}"))),
            }
        }
        Ok(missing)
    }
}

// A directory that is not there yet appears when everything is in it.
fn export_whole(view: &View<Reader>, guest: &str, host: &Path) -> Result<TreeCopy, Error> {
    if host.symlink_metadata().is_ok() {
        return export_tree(view, guest, host);
    }
    let new = NewFile::beside(host)?;
    let copy = export_tree(view, guest, new.path()).map_err(|error| match error {
        Error::HostFile { path, source } => {
            let path = path.strip_prefix(new.path()).map_or_else(|_| path.clone(), |below| host.join(below));
            Error::HostFile { path, source }
        }
        error => error,
    })?;
    new.publish()?;
    Ok(copy)
}

fn counts(copy: &TreeCopy) -> serde_json::Value {
    let TreeCopy { files, directories, symlinks, bytes, skipped } = copy;
    json!({ "files": files, "directories": directories, "symlinks": symlinks, "bytes": bytes, "skipped": skipped.len() })
}
