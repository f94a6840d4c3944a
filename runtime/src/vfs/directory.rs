//! A host directory, opened once: everything below it is reached name by name from its descriptor.
//!
//! The only code of the runtime that accesses host files for a guest (T-ISO-03). No step ever follows a symbolic link (path
//! resolution does that, inside the sandbox's own tree), leaves the directory's filesystem, or opens anything but regular files
//! and directories. Nothing here writes. The number of descriptors per view is limited (T-DOS-11).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileType as HostType, Metadata, MetadataExt, OpenOptions};
use sqlite_fs::{FileType, FsError};

use super::source::{NAMES_MAX, Source, SourceContext, SourceFiles, SourceStat};

/// Names that are hidden in every mounted directory because they contain credentials.
const SENSITIVE_NAMES: [&str; 6] = [".ssh", ".aws", ".kube", ".docker", ".gnupg", ".netrc"];

/// Directories that are rejected with everything below them.
const SENSITIVE_TREES: [&str; 8] = ["/proc", "/sys", "/dev", "/etc", "/boot", "/run", "/var/run", "/var/lib"];

/// Directories that are rejected themselves because they contain too much.
const SENSITIVE_PLACES: [&str; 5] = ["/", "/home", "/root", "/Users", "/var"];

/// Maximum number of host descriptors per view, for directories and for files each.
const DESCRIPTORS_MAX: usize = 8;
/// Maximum depth of a host file below the directory.
const DEPTH_MAX: usize = 256;

/// A directory of the host.
#[derive(Debug)]
pub(crate) struct HostDirectory {
    root: Dir,
    device: u64,
    path: PathBuf,
    names_hidden: bool,
    paths_hidden: Vec<String>,
}

/// The reason a directory is not mounted.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It could expose data that a sandbox must not have.
    Sensitive(&'static str),
    /// The host returned an error.
    Host(io::Error),
}

impl HostDirectory {
    /// Opens a directory; a sensitive one only if requested.
    pub(crate) fn open(path: &Path, allow_sensitive: bool) -> Result<Self, Refused> {
        let path = path.canonicalize().map_err(Refused::Host)?;
        if !allow_sensitive && let Some(why) = sensitive(&path) {
            return Err(Refused::Sensitive(why));
        }
        let root = Dir::open_ambient_dir(&path, ambient_authority()).map_err(Refused::Host)?;
        let device = root.dir_metadata().map_err(Refused::Host)?.dev();
        Ok(Self { root, device, path, names_hidden: !allow_sensitive, paths_hidden: Vec::new() })
    }

    /// Hides a host file if it is below the directory: the sandbox's own database must not be visible to its guests.
    pub(crate) fn hide(&mut self, file: &Path) {
        let Ok(file) = file.canonicalize() else { return };
        if let Some(relative) = file.strip_prefix(&self.path).ok().and_then(Path::to_str) {
            for suffix in ["", "-wal", "-shm", "-journal", "-running"] {
                self.paths_hidden.push(format!("{relative}{suffix}"));
            }
        }
    }

    /// Returns whether a name is hidden; `relative` is the path of its directory.
    pub(super) fn hides(&self, relative: &str, name: &str) -> bool {
        if self.names_hidden && SENSITIVE_NAMES.contains(&name) {
            return true;
        }
        !self.paths_hidden.is_empty()
            && self.paths_hidden.iter().any(|hidden| match hidden.rsplit_once('/') {
                Some((parent, last)) => parent == relative && last == name,
                None => relative.is_empty() && hidden == name,
            })
    }

    // Whether a path has a name that is not shown.
    fn hides_path(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.into_iter().any(|end| {
            let (relative, name) = split(path.get(..end).unwrap_or_default());
            self.hides(relative, name)
        })
    }

    /// Opens a directory in a directory.
    pub(super) fn enter(&self, dir: &Dir, name: &str) -> Result<Dir, FsError> {
        let entered = dir.open_dir_nofollow(component(name)?).map_err(errno)?;
        self.same_device(&entered.dir_metadata().map_err(errno)?)?;
        Ok(entered)
    }

    // Filesystems mounted inside the directory are not part of it.
    fn same_device(&self, metadata: &Metadata) -> Result<(), FsError> {
        if metadata.dev() == self.device { Ok(()) } else { Err(FsError::NoEntry) }
    }

    /// Returns the metadata of a name, without following links. Devices, pipes and sockets do not exist here.
    pub(super) fn stat(&self, dir: &Dir, name: &str) -> Result<SourceStat, FsError> {
        self.judge(&dir.symlink_metadata(component(name)?).map_err(errno)?)
    }

    /// Returns the directory itself, for code that writes to it.
    pub(super) fn top(&self) -> &Dir {
        &self.root
    }

    /// Returns the metadata of the directory itself.
    pub(super) fn stat_root(&self) -> Result<SourceStat, FsError> {
        self.judge(&self.root.dir_metadata().map_err(errno)?)
    }

    fn judge(&self, metadata: &Metadata) -> Result<SourceStat, FsError> {
        self.same_device(metadata)?;
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Ok(SourceStat {
            kind: kind(metadata.file_type()).ok_or(FsError::NoEntry)?,
            mode: metadata.mode() & 0o777,
            size: metadata.len(),
            atime: nanos(metadata.atime(), metadata.atime_nsec()),
            mtime: nanos(metadata.mtime(), metadata.mtime_nsec()),
            ctime: nanos(metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// Returns the target of a symbolic link.
    pub(super) fn read_link(&self, dir: &Dir, name: &str) -> Result<String, FsError> {
        let target = dir.read_link_contents(component(name)?).map_err(errno)?;
        target.into_os_string().into_string().map_err(|_| FsError::NoEntry)
    }

    /// Opens a regular file for reading.
    pub(super) fn open_file(&self, dir: &Dir, name: &str) -> Result<File, FsError> {
        // If the file is replaced by a pipe at this moment, the open does not block.
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = dir.open_with(component(name)?, &options).map_err(errno)?;
        match self.judge(&file.metadata().map_err(errno)?)?.kind {
            FileType::File => Ok(file),
            _ => Err(FsError::NoEntry),
        }
    }

    /// Returns the names in a directory with their types, in order. A name that is not UTF-8 cannot be represented in a sandbox.
    pub(super) fn list(&self, dir: &Dir, relative: &str) -> Result<Vec<(String, FileType)>, FsError> {
        let listed = self.list_all(dir, relative)?;
        Ok(listed.into_iter().filter_map(|(name, kind)| Some((name, kind?))).collect())
    }

    /// Same, including hidden names, which have no type.
    pub(super) fn list_all(&self, dir: &Dir, relative: &str) -> Result<Vec<(String, Option<FileType>)>, FsError> {
        let mut names = Vec::new();
        for entry in dir.entries().map_err(errno)? {
            let entry = entry.map_err(errno)?;
            let (name, kind) = match entry.file_name().into_string() {
                Ok(name) if self.hides(relative, &name) => (name, None),
                Ok(name) => {
                    // Some filesystems do not list types.
                    let listed = entry.file_type().ok().and_then(kind);
                    let kind = listed.or_else(|| self.stat(dir, &name).ok().map(|stat| stat.kind));
                    (name, kind)
                }
                Err(name) => (name.to_string_lossy().into_owned(), None),
            };
            if names.len() >= NAMES_MAX {
                return Err(FsError::NoSpace);
            }
            names.push((name, kind));
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    }

    /// Returns the directory at a path of plain names.
    pub(super) fn descend(&self, relative: &str) -> Result<Dir, FsError> {
        let mut at = self.root.try_clone().map_err(errno)?;
        for name in relative.split('/').filter(|name| !name.is_empty()) {
            at = self.enter(&at, name)?;
        }
        Ok(at)
    }
}

impl Source for HostDirectory {
    fn kind(&self) -> &'static str {
        "host"
    }

    fn open(self: Arc<Self>, _: SourceContext) -> Result<Box<dyn SourceFiles>, FsError> {
        Ok(Box::new(HostFiles { host: self, kept: Mutex::default() }))
    }
}

/// The directory as seen by one view, with cached descriptors.
struct HostFiles {
    host: Arc<HostDirectory>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    directories: Vec<(String, Arc<Dir>)>,
    files: Vec<(String, Arc<File>)>,
}

impl HostFiles {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Runs `work` in a directory, which is entered name by name from the nearest cached one.
    fn in_directory<T>(&self, path: &str, work: impl FnOnce(&Dir) -> Result<T, FsError>) -> Result<T, FsError> {
        if self.host.hides_path(path) {
            return Err(FsError::NoEntry);
        }
        let mut below = Vec::new();
        let mut at = path;
        let mut found: Option<Arc<Dir>> = None;
        while !at.is_empty() {
            found = kept(&mut self.kept().directories, at);
            if found.is_some() {
                break;
            }
            let (parent, name) = split(at);
            below.push((at, name));
            at = parent;
            if below.len() > DEPTH_MAX {
                return Err(FsError::NameTooLong);
            }
        }
        for (path, name) in below.into_iter().rev() {
            let parent = found.as_deref().unwrap_or(&self.host.root);
            let entered = Arc::new(self.host.enter(parent, name)?);
            keep(&mut self.kept().directories, path, &entered);
            found = Some(entered);
        }
        work(found.as_deref().unwrap_or(&self.host.root))
    }

    // Runs something on a name in its directory.
    fn at<T>(&self, path: &str, work: impl FnOnce(&Dir, &str) -> Result<T, FsError>) -> Result<T, FsError> {
        let (parent, name) = split(path);
        if self.host.hides(parent, name) {
            return Err(FsError::NoEntry);
        }
        self.in_directory(parent, |dir| work(dir, name))
    }
}

impl SourceFiles for HostFiles {
    fn stat(&self, path: &str) -> Result<SourceStat, FsError> {
        if path.is_empty() {
            return self.host.stat_root();
        }
        let stat = self.at(path, |dir, name| self.host.stat(dir, name))?;
        // The host may have replaced it.
        let mut kept = self.kept();
        if stat.kind != FileType::File {
            kept.files.retain(|(known, _)| known != path);
        }
        if stat.kind != FileType::Directory {
            kept.directories.retain(|(known, _)| known != path);
        }
        Ok(stat)
    }

    fn list(&self, path: &str) -> Result<Vec<(String, FileType)>, FsError> {
        self.in_directory(path, |dir| self.host.list(dir, path))
    }

    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        let known = kept(&mut self.kept().files, path);
        let file = match known {
            Some(file) => file,
            None if path.is_empty() => return Err(FsError::IsDirectory),
            None => {
                let file = Arc::new(self.at(path, |dir, name| self.host.open_file(dir, name))?);
                keep(&mut self.kept().files, path, &file);
                file
            }
        };
        read_at(&file, offset, buffer)
    }

    fn read_link(&self, path: &str) -> Result<String, FsError> {
        if path.is_empty() {
            return Err(FsError::Invalid);
        }
        self.at(path, |dir, name| self.host.read_link(dir, name))
    }
}

// The directory of a path, and the name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

// The last used is at the end.
fn kept<T>(list: &mut Vec<(String, Arc<T>)>, path: &str) -> Option<Arc<T>> {
    let at = list.iter().position(|(known, _)| known == path)?;
    let entry = list.remove(at);
    let open = Arc::clone(&entry.1);
    list.push(entry);
    Some(open)
}

fn keep<T>(list: &mut Vec<(String, Arc<T>)>, path: &str, open: &Arc<T>) {
    if list.len() >= DESCRIPTORS_MAX {
        list.remove(0);
    }
    list.push((path.to_owned(), Arc::clone(open)));
}

/// Reads from an open host file.
pub(super) fn read_at(file: &File, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        // By position, because several processes share the file: `cap-std` has no portable call for that.
        match rustix::io::pread(file, rest, offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(errno(error.into())),
        }
    }
    Ok(done)
}

fn kind(kind: HostType) -> Option<FileType> {
    match () {
        () if kind.is_file() => Some(FileType::File),
        () if kind.is_dir() => Some(FileType::Directory),
        () if kind.is_symlink() => Some(FileType::Symlink),
        () => None,
    }
}

// One name, and nothing that walks.
pub(super) fn component(name: &str) -> Result<&str, FsError> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(FsError::Invalid);
    }
    Ok(name)
}

fn sensitive(path: &Path) -> Option<&'static str> {
    if SENSITIVE_PLACES.iter().any(|place| path == Path::new(place)) {
        return Some("it contains too much");
    }
    if SENSITIVE_TREES.iter().any(|tree| path.starts_with(tree)) {
        return Some("it is part of the system");
    }
    if ["/home", "/Users"].iter().any(|homes| path.parent() == Some(Path::new(homes))) {
        return Some("it is a home directory");
    }
    let names = path.components().filter_map(|component| component.as_os_str().to_str());
    names.into_iter().any(|name| SENSITIVE_NAMES.contains(&name)).then_some("it contains keys")
}

/// Returns the sandbox's error for an error of the host; others become input/output errors. (The standard library's own kinds
/// cannot represent a loop of links.)
fn errno(error: io::Error) -> FsError {
    use rustix::io::Errno as Host;
    match Host::from_io_error(&error) {
        Some(Host::NOENT | Host::XDEV | Host::STALE | Host::NXIO) => FsError::NoEntry,
        Some(Host::ACCESS | Host::PERM) => FsError::Access,
        Some(Host::NOTDIR) => FsError::NotDirectory,
        Some(Host::ISDIR) => FsError::IsDirectory,
        // Only links are rejected in this way: it has just become a link.
        Some(Host::LOOP) => FsError::NoEntry,
        Some(Host::NAMETOOLONG) => FsError::NameTooLong,
        Some(Host::INVAL) => FsError::Invalid,
        Some(Host::INTR) => FsError::Interrupted,
        _ => FsError::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, refused: bool) {
        assert_eq!(sensitive(Path::new(path)).is_some(), refused, "{path}");
    }

    // T-ISO-03.
    #[test]
    fn sensitive_directories_are_rejected() {
        for path in ["/", "/etc", "/etc/ssl", "/proc/self", "/sys", "/dev/shm", "/home", "/home/me", "/root", "/run/user/1000"] {
            check(path, true);
        }
        for path in ["/home/me/.ssh", "/srv/x/.aws/cli", "/root/.docker", "/var/lib/docker", "/Users/me"] {
            check(path, true);
        }
        for path in ["/home/me/project", "/srv/repo", "/tmp/x", "/root/project", "/work/etc"] {
            check(path, false);
        }
    }

    #[test]
    fn a_name_is_one_component() {
        for name in ["", ".", "..", "a/b", "/a", "a\0b", "../x"] {
            assert_eq!(component(name), Err(FsError::Invalid), "{name:?}");
        }
        assert!(component("..a").is_ok());
    }
}
