//! Mounts of a sandbox: host directories, other databases, past versions and functions, read-only or as overlays. Copies of whole
//! trees from and to the host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use presets::Limits;
use serde_json::json;
use sqlite_fs::{Database, FsPath, NewFile, Reader};

use super::Sandbox;
use super::base::{self, Pin};
use crate::Error;
use crate::history::LibraryCall as Call;
use crate::host::Host;
use crate::vfs::{
    CallbackSource, DatabaseSource, GitTree, HostDirectory, MountPoint, Provider, Refused, Scope, Source, TreeCopy, TreeMark,
    View, bring_back, export_tree, import_tree, is_mount_point, mount_path,
};

/// A tree of files that a sandbox can mount: a host directory, another sandbox's database, a past version, or a tree that a
/// function generates; pass it to [`Builder::mount`](super::Builder::mount).
///
/// Guests never write to it. Symbolic links in it are resolved only inside the sandbox's own tree, so none leads out. In a host
/// directory, devices, pipes, sockets, nested mounts, `.ssh` and similar names, and the sandbox's own database are not visible.
///
/// ```
/// use sandlite_runtime::{Mount, Sandbox};
/// # let project = tempfile::tempdir().unwrap();
/// # std::fs::write(project.path().join("README"), "read me").unwrap();
/// let sandbox = Sandbox::builder().mount(Mount::overlay(project.path(), "/project")).open()?;
/// assert_eq!(sandbox.fs().read("/project/README")?, b"read me");
/// sandbox.fs().write("/project/README", "changed")?; // stored in the sandbox; the host's file is not modified
/// # assert_eq!(std::fs::read(project.path().join("README")).unwrap(), b"read me");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mount {
    what: What,
    guest: String,
    overlay: bool,
}

#[derive(Clone, Debug)]
enum What {
    Host {
        path: PathBuf,
        allow_sensitive: bool,
    },
    /// A file, optionally followed by a version: `base.db@v3`.
    Database(PathBuf),
    Past(String),
    /// A repository, optionally followed by a reference: `project@main`.
    Git(PathBuf),
    Function(Provider),
}

impl Mount {
    fn new(what: What, guest: impl Into<String>) -> Self {
        Self { what, guest: guest.into(), overlay: false }
    }

    /// Mounts a host directory at an absolute path in the sandbox; changing anything in it is an error (EROFS).
    #[must_use]
    pub fn read_only(host: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        Self::new(What::Host { path: host.into(), allow_sensitive: false }, guest)
    }

    /// Mounts a host directory as an overlay: guests can change it, and the changes are stored in the database.
    #[must_use]
    pub fn overlay(host: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        Self::read_only(host, guest).writable()
    }

    /// Mounts the files of another sandbox's database, or of an AgentFS database, at an absolute path in the sandbox. With `@`
    /// and a version after the file's name, such as `base.db@before`, those of a past version.
    ///
    /// Each command sees one state of it. As an overlay ([`writable`](Self::writable)), the sandbox stays on the version with
    /// which it was first opened, until [`Sandbox::update`] moves it.
    ///
    /// ```
    /// use sandlite_runtime::{Mount, Sandbox};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let file = directory.path().join("base.db");
    /// # Sandbox::builder().database(&file).file("/work/a.py", "a = 1").open()?;
    /// let sandbox = Sandbox::builder().mount(Mount::database(&file, "/base")).open()?;
    /// assert_eq!(sandbox.fs().read("/base/work/a.py")?, b"a = 1");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn database(file: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        Self::new(What::Database(file.into()), guest)
    }

    /// Mounts a past version of the sandbox itself at an absolute path.
    ///
    /// ```
    /// use sandlite_runtime::{Mount, Sandbox};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let file = directory.path().join("agent.db");
    /// let sandbox = Sandbox::builder().database(&file).open()?;
    /// sandbox.fs().write("/note", "one")?;
    /// sandbox.versions().checkpoint("before", None)?;
    /// sandbox.fs().write("/note", "two")?;
    /// # drop(sandbox);
    /// let sandbox = Sandbox::builder().database(&file).mount(Mount::past("before", "/then")).open()?;
    /// assert_eq!(sandbox.bash("cat /then/note /note")?.stdout, b"onetwo");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn past(version: impl Into<String>, guest: impl Into<String>) -> Self {
        Self::new(What::Past(version.into()), guest)
    }

    /// Mounts the files of a commit of a git repository or bundle at an absolute path in the sandbox, without a checkout. With
    /// `@` and a reference after its path, such as `project@v1.0` or `project@main~2`, those of that commit; otherwise those of
    /// `HEAD`. The commit is resolved when the sandbox is opened. As an overlay ([`writable`](Self::writable)), the sandbox stays
    /// on the commit with which it was first opened, until [`Sandbox::update`] moves it.
    #[must_use]
    pub fn git(repository: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        Self::new(What::Git(repository.into()), guest)
    }

    /// Mounts a file or a directory that a function generates.
    #[must_use]
    pub fn dynamic(path: impl Into<String>, provider: Provider) -> Self {
        Self::new(What::Function(provider), path)
    }

    /// Makes the mount an overlay: guests can change it, and the changes are stored in the database.
    #[must_use]
    pub fn writable(mut self) -> Self {
        self.overlay = true;
        self
    }

    /// Returns the path in the sandbox.
    #[must_use]
    pub fn guest(&self) -> &str {
        &self.guest
    }

    /// Mounts a host directory even though it may expose secrets: `/etc`, a home directory, `.ssh`, …
    #[must_use]
    pub fn allow_sensitive(mut self) -> Self {
        if let What::Host { allow_sensitive, .. } = &mut self.what {
            *allow_sensitive = true;
        }
        self
    }

    /// Parses a mount in command-line syntax: `HOST:GUEST`, `db:FILE[@VERSION]:GUEST`, `at:VERSION:GUEST` or
    /// `git:REPOSITORY[@REF]:GUEST`, each optionally followed by `:ro` or `:overlay`.
    ///
    /// ```
    /// use sandlite_runtime::Mount;
    /// assert!(Mount::parse("./src:/src:overlay").is_ok() && Mount::parse("db:base.db@v3:/base").is_ok());
    /// assert!(Mount::parse("./src:/src:rw").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if it is none of these.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |reason: &str| Error::Invalid(reason.to_owned());
        let (place, how) = match text.rsplit_once(':') {
            Some((place, how @ ("ro" | "overlay"))) => (place, how),
            Some((place, how)) if place.contains(":/") && !how.contains('/') => {
                return Err(Error::Invalid(format!(
                    "unknown mode `{how}`: expected `ro` (read-only) or `overlay` (changes stay in the sandbox)"
                )));
            }
            _ => (text, "ro"),
        };
        let (source, guest) =
            place.rsplit_once(':').filter(|(source, _)| !source.is_empty()).ok_or_else(|| invalid("missing `:`"))?;
        if !guest.starts_with('/') {
            return Err(invalid("the path in the sandbox must start with `/`"));
        }
        let mount = match source.split_once(':') {
            Some(("db", file)) if !file.is_empty() => Self::database(file, guest),
            Some(("at", version)) if !version.is_empty() => Self::past(version, guest),
            Some(("git", repository)) if !repository.is_empty() => Self::git(repository, guest),
            _ => Self::read_only(source, guest),
        };
        Ok(if how == "overlay" { mount.writable() } else { mount })
    }

    /// Returns the name of the source for messages.
    fn name(&self) -> PathBuf {
        match &self.what {
            What::Host { path, .. } => path.clone(),
            What::Database(file) => file.clone(),
            What::Past(version) => version.into(),
            What::Git(repository) => repository.clone(),
            What::Function(_) => "a function".into(),
        }
    }

    fn open(self, database: &Database, host: &Host, largest: u64) -> Result<(MountPoint, Option<Pin>), Error> {
        let name = self.name();
        let Self { what, guest, overlay } = self;
        let refused = |reason: String, hint| Error::Mount { host: name.clone(), guest: guest.clone(), reason, hint };
        let is_root = guest.split('/').all(str::is_empty) && guest.starts_with('/');
        let can_be_base = overlay && matches!(what, What::Database(_) | What::Past(_));
        let path = match is_root && can_be_base {
            true => String::new(),
            false => mount_path(&guest).map_err(|reason| refused(reason.to_owned(), None))?,
        };
        let (source, pin): (Arc<dyn Source>, _) = match what {
            What::Host { path, allow_sensitive } => {
                let mut directory = open_directory(&path, allow_sensitive, refused)?;
                if let Some(file) = database.path() {
                    directory.hide(file);
                }
                (Arc::new(directory), None)
            }
            What::Database(file) => {
                let (base, version) = base::open(host, database, &file)
                    .map_err(|error| refused(Error::from(error).causes().join(": "), Some(DATABASE_HINT)))?;
                let (version, pin) = base::pinned(database, &base, version.as_deref(), &path, overlay)?;
                (Arc::new(DatabaseSource::new(base, version)), pin)
            }
            What::Past(version) => {
                let (version, pin) = base::pinned(database, database, Some(&version), &path, overlay)?;
                (Arc::new(DatabaseSource::new(database.clone(), version)), pin)
            }
            What::Git(repository) => {
                let (directory, reference) = with_reference(&repository);
                let tree = GitTree::open(directory, reference, largest).map_err(|error| refused(error.to_string(), None))?;
                let pin = if overlay { base::pinned_commit(database, &tree, &path)? } else { None };
                (Arc::new(tree), pin)
            }
            What::Function(provider) if overlay && !provider.is_directory() => {
                return Err(refused("a single file cannot be the base of an overlay".to_owned(), None));
            }
            What::Function(provider) => (Arc::new(CallbackSource::new(provider, largest)), None),
        };
        Ok((MountPoint { source, path, overlay }, pin))
    }
}

// The path of a repository and the text after its last `@`, unless that is part of the path.
fn with_reference(repository: &Path) -> (&Path, &str) {
    let parts = repository.to_str().and_then(|text| text.rsplit_once('@')).filter(|_| !repository.exists());
    parts.map_or((repository, "HEAD"), |(path, reference)| (Path::new(path), reference))
}
const DATABASE_HINT: &str = "name a file that `sandlite --db FILE` opens";

const SENSITIVE_HINT: &str = "choose a directory below it, or use `allow_sensitive` in your own program";

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

/// Opens the mounts of a sandbox: they must not be nested, except in a base. Also returns the overlays without a recorded
/// version.
pub(super) fn open(
    mounts: Vec<Mount>,
    database: &Database,
    host: &Host,
    largest: u64,
) -> Result<(Arc<[MountPoint]>, Vec<Pin>), Error> {
    let (mut points, mut pins) = (Vec::new(), Vec::new());
    for mount in mounts {
        let (name, guest) = (mount.name(), mount.guest.clone());
        let (point, pin) = mount.open(database, host, largest)?;
        check_place(&points, &point, name, guest)?;
        points.push(point);
        pins.extend(pin);
    }
    Ok((points.into(), pins))
}

fn check_place(points: &[MountPoint], point: &MountPoint, host: PathBuf, guest: String) -> Result<(), Error> {
    let inside = |other: &MountPoint| -> Result<bool, Error> {
        if point.path.is_empty() || other.path.is_empty() {
            return Ok(point.path == other.path);
        }
        let (path, other) = (FsPath::new(point.path.as_str())?, FsPath::new(other.path.as_str())?);
        Ok(path.starts_with(&other) || other.starts_with(&path))
    };
    for other in points {
        if inside(other)? {
            let reason = format!("`{}` is mounted there", if other.path.is_empty() { "/" } else { &other.path });
            return Err(Error::Mount { host, guest, reason, hint: Some("use separate directories: mounts cannot be nested") });
        }
    }
    Ok(())
}

impl Sandbox {
    /// Copies the content of a host directory to a directory in the sandbox, which is created if missing: one transaction, one
    /// history row. Links are copied as links, and never followed on the host.
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
    /// Returns an error if the host directory cannot be read or is a sensitive one (as for [`Mount`]), or if it exceeds the
    /// quota; nothing is copied then.
    pub fn import_tree(&self, host: impl AsRef<Path>, guest: &str) -> Result<TreeCopy, Error> {
        let host = host.as_ref();
        let refused = |reason, hint| Error::Mount { host: host.to_owned(), guest: guest.to_owned(), reason, hint };
        let directory = open_directory(host, false, refused)?;
        // The host's path is not recorded in the history, because snapshots are shared.
        self.change_answering(Call::new("import_tree", guest, json!({ "path": guest })), |run| {
            let view = run.view()?;
            view.fs().create_dir_all(guest)?;
            let copy = import_tree(&directory, view, guest)?;
            let answer = counts(&copy);
            Ok((copy, answer))
        })
    }

    /// Copies the content of a directory in the sandbox (including mounts) to a host directory, which is created if missing.
    /// Nothing on the host is overwritten or followed; links that lead out of the tree are skipped and listed in the result.
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
    /// Returns an error if a file exists on the host or cannot be written. A missing directory is not created then; in an
    /// existing one, files copied before the error remain.
    pub fn export_tree(&self, guest: &str, host: impl AsRef<Path>) -> Result<TreeCopy, Error> {
        let call = Call::new("export_tree", guest, json!({ "path": guest }));
        self.recorder.read_answering(call, || {
            let copy = export_whole(&self.now()?, guest, host.as_ref())?;
            let answer = counts(&copy);
            Ok((copy, answer))
        })
    }

    /// Returns the same sandbox with an additional mount, which is visible to programs that are run through it and to all reads.
    ///
    /// ```
    /// # use sandlite_runtime::{Mount, Provider, Sandbox};
    /// # let sandbox = Sandbox::builder().open()?;
    /// let now = Provider::file(|context| Ok(format!("generated for {}\n", context.path()).into()));
    /// let sandbox = sandbox.with_mount(Mount::dynamic("/run/now", now))?;
    /// assert_eq!(sandbox.bash("cat /run/now")?.stdout, b"generated for /run/now\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Mount`] if the mount is invalid, and an error if its mount point cannot be created.
    pub fn with_mount(&self, mount: Mount) -> Result<Self, Error> {
        let (name, guest) = (mount.name(), mount.guest.clone());
        let (point, pin) = mount.open(&self.database, &self.host, largest(&self.limits))?;
        check_place(&self.scope.mounts, &point, name, guest)?;
        let mounts = self.scope.mounts.iter().cloned().chain([point]).collect();
        let sandbox = Self { scope: Scope { mounts, ..self.scope.clone() }, ..self.clone() };
        sandbox.furnish(&[], &pin.into_iter().collect::<Vec<_>>())?;
        Ok(sandbox)
    }

    /// Returns the same sandbox without the mount at a path; `None` if nothing is mounted there. The recorded data of an overlay
    /// is kept.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the path is not a valid mount point.
    pub fn without_mount(&self, path: &str) -> Result<Option<Self>, Error> {
        let path = mount_path(path).map_err(|reason| Error::Invalid(format!("cannot unmount `{path}`: {reason}")))?;
        let mounts: Arc<[MountPoint]> = self.scope.mounts.iter().filter(|point| point.path != path).cloned().collect();
        let is_less = mounts.len() < self.scope.mounts.len();
        Ok(is_less.then(|| Self { scope: Scope { mounts, ..self.scope.clone() }, ..self.clone() }))
    }

    /// Records the content of a directory in the sandbox, for [`export_changes`](Self::export_changes).
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist or cannot be read.
    pub fn mark_tree(&self, guest: &str) -> Result<TreeMark, Error> {
        TreeMark::new(&self.now()?, guest)
    }

    /// Copies the changes below a marked directory to the host directory that it was copied from: new and changed files are
    /// written, removed ones are removed. Unchanged files are not touched. No link is followed on the host, and links that lead
    /// out of the tree are skipped and listed in the result.
    ///
    /// ```
    /// # let project = tempfile::tempdir().unwrap();
    /// # std::fs::write(project.path().join("old"), "1").unwrap();
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.import_tree(project.path(), "/project")?;
    /// let mark = sandbox.mark_tree("/project")?;
    /// sandbox.bash("cd /project && mv old new && echo 2 >> new")?;
    /// sandbox.export_changes(&mark, project.path())?;
    /// assert_eq!(std::fs::read(project.path().join("new")).unwrap(), b"12\n");
    /// assert!(!project.path().join("old").exists());
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read here or written there; earlier changes remain.
    pub fn export_changes(&self, mark: &TreeMark, host: impl AsRef<Path>) -> Result<TreeCopy, Error> {
        let call = Call::new("export_changes", mark.guest(), json!({ "path": mark.guest() }));
        self.recorder.read_answering(call, || {
            let copy = bring_back(&self.now()?, mark, host.as_ref())?;
            let answer = counts(&copy);
            Ok((copy, answer))
        })
    }

    /// Returns the missing mount points; an invalid one fails now rather than at the first command.
    pub(super) fn missing_mount_points(&self) -> Result<Vec<&str>, Error> {
        let rows = self.database.reader()?;
        let mut missing = Vec::new();
        for point in self.scope.mounts.iter() {
            let path = point.path.as_str();
            match is_mount_point(point, &rows) {
                Ok(true) => {}
                Ok(false) => missing.push(path),
                Err(error) => return Err(Error::Invalid(format!("cannot mount at `{path}`: {error}"))),
            }
        }
        Ok(missing)
    }
}

/// Returns the same mounts for another sandbox: each moves its overlays independently.
pub(super) fn for_another(points: &[MountPoint]) -> Arc<[MountPoint]> {
    let copy = |point: &MountPoint| match point.source.as_moving() {
        Some(source) => MountPoint { source: source.for_another(), ..point.clone() },
        None => point.clone(),
    };
    points.iter().map(copy).collect()
}

/// Returns the maximum size of a generated file, which is in memory while it is read.
pub(super) fn largest(limits: &Limits) -> u64 {
    limits.file.0.min(limits.memory.0)
}

// A new directory becomes visible once it is complete.
fn export_whole(view: &View<Reader>, guest: &str, host: &Path) -> Result<TreeCopy, Error> {
    if host.symlink_metadata().is_ok() {
        return export_tree(view, guest, host, &|_| false);
    }
    let new = NewFile::beside(host)?;
    let copy = export_tree(view, guest, new.path(), &|_| false).map_err(|error| match error {
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
