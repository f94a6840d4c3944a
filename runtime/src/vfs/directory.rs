//! A directory of the host, opened once: everything below it is reached name by name from its descriptor.
//!
//! The only place of the runtime that touches files of the host for a guest (T-ISO-03). No step ever follows a symbolic
//! link (the walk of paths does that, inside the sandbox's own tree), leaves the filesystem the directory is on, or opens
//! anything but regular files and directories. Nothing here writes.

use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileType as HostType, Metadata, MetadataExt, OpenOptions};
use sqlite_fs::{FileType, FsError};

/// Names that are hidden in every mounted directory: what they hold opens other doors.
const SENSITIVE_NAMES: [&str; 6] = [".ssh", ".aws", ".kube", ".docker", ".gnupg", ".netrc"];

/// Directories that are refused with all that is below them.
const SENSITIVE_TREES: [&str; 8] = ["/proc", "/sys", "/dev", "/etc", "/boot", "/run", "/var/run", "/var/lib"];

/// Directories that are refused by themselves: too much is below them.
const SENSITIVE_PLACES: [&str; 5] = ["/", "/home", "/root", "/Users", "/var"];

/// Names of one directory that are listed; a larger one is an error, not the host's memory (T-DOS-03).
const NAMES_MAX: usize = 200_000;

/// A directory of the host.
#[derive(Debug)]
pub(crate) struct HostDirectory {
    root: Dir,
    device: u64,
    path: PathBuf,
    names_hidden: bool,
    paths_hidden: Vec<String>,
}

/// What a host file says about itself; the rest is made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostStat {
    /// What it is.
    pub(super) kind: FileType,
    /// Permissions, without the bits that change who one is.
    pub(super) mode: u32,
    /// Bytes.
    pub(super) size: u64,
    /// Nanoseconds since 1970.
    pub(super) atime: i64,
    /// The same.
    pub(super) mtime: i64,
    /// The same.
    pub(super) ctime: i64,
}

/// Why a directory is not mounted.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It could give away what a sandbox must not have.
    Sensitive(&'static str),
    /// The host said no.
    Host(io::Error),
}

impl HostDirectory {
    /// Opens a directory; a sensitive one only when that was asked for.
    pub(crate) fn open(path: &Path, allow_sensitive: bool) -> Result<Self, Refused> {
        let path = path.canonicalize().map_err(Refused::Host)?;
        if !allow_sensitive && let Some(why) = sensitive(&path) {
            return Err(Refused::Sensitive(why));
        }
        let root = Dir::open_ambient_dir(&path, ambient_authority()).map_err(Refused::Host)?;
        let device = root.dir_metadata().map_err(Refused::Host)?.dev();
        Ok(Self { root, device, path, names_hidden: !allow_sensitive, paths_hidden: Vec::new() })
    }

    /// Hides a host file, should it be below: the sandbox's own database is not for its guests.
    pub(crate) fn hide(&mut self, file: &Path) {
        let Ok(file) = file.canonicalize() else { return };
        if let Some(relative) = file.strip_prefix(&self.path).ok().and_then(Path::to_str) {
            for suffix in ["", "-wal", "-shm", "-journal", "-running"] {
                self.paths_hidden.push(format!("{relative}{suffix}"));
            }
        }
    }

    /// The directory itself.
    pub(super) fn root(&self) -> &Dir {
        &self.root
    }

    /// Whether a name is not shown, whatever it is; `relative` is the path of its directory.
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

    /// A directory in a directory.
    pub(super) fn enter(&self, dir: &Dir, name: &str) -> Result<Dir, FsError> {
        let entered = dir.open_dir_nofollow(component(name)?).map_err(errno)?;
        self.same_device(&entered.dir_metadata().map_err(errno)?)?;
        Ok(entered)
    }

    // What is mounted inside the directory is not part of it.
    fn same_device(&self, metadata: &Metadata) -> Result<(), FsError> {
        if metadata.dev() == self.device { Ok(()) } else { Err(FsError::NoEntry) }
    }

    /// What a name leads to, links not followed. Devices, pipes and sockets do not exist here.
    pub(super) fn stat(&self, dir: &Dir, name: &str) -> Result<HostStat, FsError> {
        self.judge(&dir.symlink_metadata(component(name)?).map_err(errno)?)
    }

    /// The same for the directory itself.
    pub(super) fn stat_root(&self) -> Result<HostStat, FsError> {
        self.judge(&self.root.dir_metadata().map_err(errno)?)
    }

    fn judge(&self, metadata: &Metadata) -> Result<HostStat, FsError> {
        self.same_device(metadata)?;
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Ok(HostStat {
            kind: kind(metadata.file_type()).ok_or(FsError::NoEntry)?,
            mode: metadata.mode() & 0o777,
            size: metadata.len(),
            atime: nanos(metadata.atime(), metadata.atime_nsec()),
            mtime: nanos(metadata.mtime(), metadata.mtime_nsec()),
            ctime: nanos(metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// The target of a symbolic link.
    pub(super) fn read_link(&self, dir: &Dir, name: &str) -> Result<String, FsError> {
        let target = dir.read_link_contents(component(name)?).map_err(errno)?;
        target.into_os_string().into_string().map_err(|_| FsError::NoEntry)
    }

    /// Opens a regular file for reading.
    pub(super) fn open_file(&self, dir: &Dir, name: &str) -> Result<File, FsError> {
        // Should the file turn into a pipe this very moment, then the open at least does not wait.
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = dir.open_with(component(name)?, &options).map_err(errno)?;
        match self.judge(&file.metadata().map_err(errno)?)?.kind {
            FileType::File => Ok(file),
            _ => Err(FsError::NoEntry),
        }
    }

    /// The names in a directory with their types, in order. A name that is not UTF-8 cannot be said in a sandbox.
    pub(super) fn list(&self, dir: &Dir, relative: &str) -> Result<Vec<(String, FileType)>, FsError> {
        let listed = self.list_all(dir, relative)?;
        Ok(listed.into_iter().filter_map(|(name, kind)| Some((name, kind?))).collect())
    }

    /// The same with the names that are not shown, which have no type.
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

    /// The directory at a path of plain names.
    pub(super) fn descend(&self, relative: &str) -> Result<Dir, FsError> {
        let mut at = self.root.try_clone().map_err(errno)?;
        for name in relative.split('/').filter(|name| !name.is_empty()) {
            at = self.enter(&at, name)?;
        }
        Ok(at)
    }
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
        return Some("too much is below it");
    }
    if SENSITIVE_TREES.iter().any(|tree| path.starts_with(tree)) {
        return Some("it is part of the system");
    }
    if ["/home", "/Users"].iter().any(|homes| path.parent() == Some(Path::new(homes))) {
        return Some("it is a home directory");
    }
    let names = path.components().filter_map(|component| component.as_os_str().to_str());
    names.into_iter().any(|name| SENSITIVE_NAMES.contains(&name)).then_some("it holds keys")
}

/// The sandbox's word for an error of the host; what has no word is an input/output error. (The standard library's own
/// kinds cannot tell a loop of links.)
fn errno(error: io::Error) -> FsError {
    use rustix::io::Errno as Host;
    match Host::from_io_error(&error) {
        Some(Host::NOENT | Host::XDEV | Host::STALE | Host::NXIO) => FsError::NoEntry,
        Some(Host::ACCESS | Host::PERM) => FsError::Access,
        Some(Host::NOTDIR) => FsError::NotDirectory,
        Some(Host::ISDIR) => FsError::IsDirectory,
        // Only links are refused so: what was no link a moment ago is one now.
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
    fn what_opens_other_doors_is_refused() {
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
