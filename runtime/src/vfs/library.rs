//! Operations on whole files by path, for the embedding program: what a guest would do in several calls.

use abi::Errno;
use abi::stat::{S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, Stat};
use sqlite_fs::path::{Bounds, Last};
use sqlite_fs::{Entry, FileType};

use super::{Node, ROOT_NODE, Vfs, errno};

/// Names read at a time.
const NAMES_PER_STEP: usize = 1_024;
/// Copied at a time.
const COPY_BYTES: usize = 256 << 10;

impl Vfs {
    /// The metadata of what is at a path.
    pub(crate) fn stat_at(&self, path: &str, last: Last) -> Result<Stat, Errno> {
        self.stat(self.find(ROOT_NODE, path, last)?)
    }

    /// The content of a file.
    pub(crate) fn read_file(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let node = self.find(ROOT_NODE, path, Last::Follow)?;
        let stat = self.stat(node)?;
        if stat.kind() == S_IFDIR {
            return Err(Errno::ISDIR);
        }
        let size = usize::try_from(stat.size).map_err(|_| Errno::FBIG)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| Errno::FBIG)?;
        bytes.resize(size, 0);
        let length = self.read(node, 0, &mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    }

    /// The file at a path, created if it is missing.
    fn file(&self, path: &str) -> Result<Node, Errno> {
        let found = self.resolve(ROOT_NODE, path, Last::Create)?;
        match found.node {
            None => self.create(&found, 0o644),
            Some((_, FileType::Directory)) => Err(Errno::ISDIR),
            Some((node, _)) => Ok(node),
        }
    }

    /// The file at a path without any content, created if it is missing.
    pub(crate) fn empty_file(&self, path: &str) -> Result<Node, Errno> {
        let node = self.file(path)?;
        self.truncate(node, 0)?;
        Ok(node)
    }

    /// Writes all bytes at an offset.
    pub(crate) fn write_all(&self, node: Node, mut offset: u64, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            let written = self.write(node, offset, bytes)?;
            offset += written as u64;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Replaces the content of a file, created if it is missing.
    pub(crate) fn write_file(&self, path: &str, bytes: &[u8]) -> Result<(), Errno> {
        self.write_all(self.empty_file(path)?, 0, bytes)
    }

    /// Adds to a file, created if it is missing.
    pub(crate) fn append_file(&self, path: &str, bytes: &[u8]) -> Result<(), Errno> {
        let node = self.file(path)?;
        let (end, written) = self.append(node, bytes)?;
        self.write_all(node, end + written as u64, bytes.get(written..).unwrap_or_default())
    }

    /// Copies content and permissions.
    pub(crate) fn copy_file(&self, from: &str, to: &str) -> Result<u64, Errno> {
        let source = self.find(ROOT_NODE, from, Last::Follow)?;
        let stat = self.stat(source)?;
        if stat.kind() == S_IFDIR {
            return Err(Errno::ISDIR);
        }
        let target = self.file(to)?;
        if self.current(target) == self.current(source) {
            return Ok(stat.size);
        }
        self.truncate(target, 0)?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut offset = 0;
        loop {
            let length = self.read(source, offset, &mut buffer)?;
            if length == 0 {
                break;
            }
            self.write_all(target, offset, buffer.get(..length).unwrap_or_default())?;
            offset += length as u64;
        }
        self.chmod(target, stat.mode)?;
        Ok(offset)
    }

    /// Copies a directory and everything below it; an error comes with the path that it is about.
    pub(crate) fn copy_dir_all(&self, from: &str, to: &str) -> Result<(), (String, Errno)> {
        let walked = self.walk(from).map_err(|errno| (from.to_owned(), errno))?;
        if walked.first().is_none_or(|(_, stat)| stat.kind() != S_IFDIR) {
            return Err((from.to_owned(), Errno::NOTDIR));
        }
        for (path, stat) in walked {
            let target = format!("{to}{}", path.get(from.len()..).unwrap_or_default());
            let copy = || match stat.kind() {
                S_IFDIR => {
                    self.create_dir_all(&target)?;
                    self.chmod(self.find(ROOT_NODE, &target, Last::Follow)?, stat.mode & 0o7777)
                }
                S_IFLNK => {
                    let link = self.readlink(self.find(ROOT_NODE, &path, Last::NoFollow)?)?;
                    self.symlink(&link, ROOT_NODE, &target)
                }
                S_IFIFO => Ok(()),
                _ => self.copy_file(&path, &target).map(drop),
            };
            copy().map_err(|errno| (path.clone(), errno))?;
        }
        Ok(())
    }

    /// Creates a directory and the ones above it that are missing.
    pub(crate) fn create_dir_all(&self, path: &str) -> Result<(), Errno> {
        for end in path.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| at).chain([path.len()]) {
            let Some(part) = path.get(..end).filter(|part| !part.is_empty()) else { continue };
            match self.resolve(ROOT_NODE, part, Last::Follow)?.node {
                Some((_, FileType::Directory)) => {}
                Some(_) => return Err(Errno::EXIST),
                None => self.mkdir(ROOT_NODE, part, 0o755)?,
            }
        }
        Ok(())
    }

    /// Creates the directories above a path.
    pub(crate) fn create_parents(&self, path: &str) -> Result<(), Errno> {
        match path.trim_end_matches('/').rsplit_once('/') {
            Some((parent, _)) if !parent.is_empty() => self.create_dir_all(parent),
            _ => Ok(()),
        }
    }

    /// The names of a directory, sorted.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<Entry>, Errno> {
        let node = self.find(ROOT_NODE, path, Last::Follow)?;
        if self.stat(node)?.kind() != S_IFDIR {
            return Err(Errno::NOTDIR);
        }
        self.entries(node)
    }

    // What the fixed world adds to the root directory is in every sandbox, and in no answer to its owner.
    fn entries(&self, node: Node) -> Result<Vec<Entry>, Errno> {
        let mut entries = Vec::new();
        let mut cookie = 0;
        loop {
            let step = self.readdir(node, cookie, NAMES_PER_STEP)?;
            let Some(last) = step.last() else { break };
            cookie = last.cookie;
            for entry in step {
                if !matches!(self.find(node, &entry.name, Last::NoFollow), Ok(Node::Row(_) | Node::Host(_))) {
                    continue;
                }
                entries.push(Entry { name: entry.name, ino: entry.ino, kind: kind(entry.kind), cookie: entry.cookie });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Enters a directory of a walk that must end. How deep a mounted directory is, its own system says.
    pub(crate) fn enter(&self, bounds: &mut Bounds<Node>, directory: Node, depth: usize) -> Result<(), Errno> {
        let node = self.current(directory);
        let depth = if matches!(node, Node::Row(_)) && self.mounts.is_none() { depth } else { 0 };
        bounds.enter(node, depth).map_err(errno::from_fs)
    }

    /// Everything below a path, and the path itself first.
    pub(crate) fn walk(&self, path: &str) -> Result<Vec<(String, Stat)>, Errno> {
        let mut found = Vec::new();
        let mut bounds = Bounds::default();
        let mut left = vec![(path.to_owned(), self.find(ROOT_NODE, path, Last::NoFollow)?, 0)];
        while let Some((path, node, depth)) = left.pop() {
            let stat = self.stat(node)?;
            if stat.kind() == S_IFDIR {
                self.enter(&mut bounds, node, depth)?;
                let slash = if path.ends_with('/') { "" } else { "/" };
                for entry in self.entries(node)?.into_iter().rev() {
                    let child = self.find(node, &entry.name, Last::NoFollow)?;
                    let path = format!("{path}{slash}{}", entry.name);
                    bounds.keep(&path).map_err(errno::from_fs)?;
                    left.push((path, child, depth + 1));
                }
            }
            found.push((path, stat));
        }
        Ok(found)
    }

    /// Removes a directory and everything below it.
    pub(crate) fn remove_dir_all(&self, path: &str) -> Result<(), Errno> {
        let walked = self.walk(path)?;
        if walked.first().is_some_and(|(_, stat)| stat.kind() != S_IFDIR) {
            return Err(Errno::NOTDIR);
        }
        for (path, stat) in walked.into_iter().rev() {
            if stat.kind() == S_IFDIR { self.rmdir(ROOT_NODE, &path)? } else { self.unlink(ROOT_NODE, &path)? }
        }
        Ok(())
    }
}

fn kind(bits: u32) -> FileType {
    match bits & S_IFMT {
        S_IFDIR => FileType::Directory,
        S_IFLNK => FileType::Symlink,
        S_IFIFO => FileType::Fifo,
        _ => FileType::File,
    }
}

/// Metadata as the library tells it.
pub(crate) fn library_stat(stat: Stat) -> sqlite_fs::Stat {
    let Stat { ino, mode, nlink, uid, gid, rdev, size, atime, mtime, ctime, .. } = stat;
    sqlite_fs::Stat { ino, mode, nlink, uid, gid, size, rdev, atime, mtime, ctime }
}
