//! Operations on paths, named as in `std::fs`, for a transaction or (the reading ones) for a reader.

use crate::error::{Error, FsError};
use crate::node::{Entry, FileType, Ino, ROOT, Stat};
use crate::path::{self, Bounds, Last, Open, Opened, Resolved, Tree};
use crate::transaction::Transaction;

/// Entries fetched at a time.
const READDIR_STEP: usize = 1024;

/// What path operations need beside the walk.
pub trait Volume: Tree<Node = Ino> {
    /// The attributes of an inode.
    fn stat(&self, ino: Ino) -> Result<Stat, FsError>;

    /// Reads from `offset`.
    fn read(&self, ino: Ino, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError>;

    /// At most `limit` entries after `cookie`.
    fn readdir(&self, dir: Ino, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError>;

    /// Runs several operations on one state.
    fn at_once<T>(&self, work: impl FnOnce() -> Result<T, FsError>) -> Result<T, FsError>
    where
        Self: Sized,
    {
        work()
    }
}

/// Operations on paths.
pub struct Fs<'a, V> {
    volume: &'a V,
    cwd: Ino,
    uid: u32,
    gid: u32,
}

impl<'a, V: Volume> Fs<'a, V> {
    pub(crate) fn new(volume: &'a V) -> Self {
        Self { volume, cwd: ROOT, uid: 0, gid: 0 }
    }

    /// Where relative paths start; the root unless told.
    #[must_use]
    pub fn cwd(mut self, dir: Ino) -> Self {
        self.cwd = dir;
        self
    }

    /// Who owns what is created.
    #[must_use]
    pub fn owner(mut self, uid: u32, gid: u32) -> Self {
        self.uid = uid;
        self.gid = gid;
        self
    }

    fn act<T>(&self, operation: &'static str, path: &str, work: impl FnOnce() -> Result<T, FsError>) -> Result<T, Error> {
        self.volume.at_once(work).map_err(|source| Error::Fs { operation, path: path.to_owned(), source })
    }

    fn resolve(&self, path: &str, last: Last) -> Result<Resolved<Ino>, FsError> {
        path::resolve(self.volume, ROOT, self.cwd, path, last)
    }

    fn find(&self, path: &str, last: Last) -> Result<(Ino, FileType), FsError> {
        self.resolve(path, last)?.existing()
    }

    /// The whole content of a file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        self.act("read", path, || {
            let (ino, kind) = self.find(path, Last::Follow)?;
            if kind == FileType::Directory {
                return Err(FsError::IsDirectory);
            }
            let size = usize::try_from(self.volume.stat(ino)?.size).map_err(|_| FsError::FileTooBig)?;
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(size).map_err(|_| FsError::FileTooBig)?;
            bytes.resize(size, 0);
            let read = self.volume.read(ino, 0, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        })
    }

    /// The whole content of a file as text.
    pub fn read_to_string(&self, path: &str) -> Result<String, Error> {
        String::from_utf8(self.read(path)?)
            .map_err(|_| Error::Invalid { what: "content", reason: format!("`{path}` is not UTF-8") })
    }

    /// Whether the path leads to something.
    pub fn exists(&self, path: &str) -> Result<bool, Error> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(Error::Fs { source: FsError::NoEntry | FsError::NotDirectory | FsError::Loop, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Attributes, symbolic links followed.
    pub fn metadata(&self, path: &str) -> Result<Stat, Error> {
        self.act("stat", path, || self.volume.stat(self.find(path, Last::Follow)?.0))
    }

    /// Attributes of the path itself.
    pub fn symlink_metadata(&self, path: &str) -> Result<Stat, Error> {
        self.act("stat", path, || self.volume.stat(self.find(path, Last::NoFollow)?.0))
    }

    /// The entries of a directory, sorted by name.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.act("list", path, || {
            let (ino, kind) = self.find(path, Last::Follow)?;
            if kind != FileType::Directory {
                return Err(FsError::NotDirectory);
            }
            let mut entries = self.entries(ino)?;
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(entries)
        })
    }

    fn entries(&self, dir: Ino) -> Result<Vec<Entry>, FsError> {
        let mut entries = Vec::new();
        loop {
            let cookie = entries.last().map_or(0, |entry: &Entry| entry.cookie);
            let step = self.volume.readdir(dir, cookie, READDIR_STEP)?;
            let end = step.len() < READDIR_STEP;
            if entries.is_empty() && end {
                return Ok(step);
            }
            entries.extend(step);
            if end {
                return Ok(entries);
            }
        }
    }

    /// Everything below a directory, and the path itself first: paths as given, names in order, links not followed.
    ///
    /// A directory that is met twice is reported as damage, with its path.
    pub fn walk(&self, path: &str) -> Result<Vec<(String, Stat)>, Error> {
        let mut at = path.to_owned();
        self.volume.at_once(|| self.walk_from(path, &mut at)).map_err(|source| Error::Fs { operation: "walk", path: at, source })
    }

    // `at` is where it is, for the error.
    fn walk_from(&self, path: &str, at: &mut String) -> Result<Vec<(String, Stat)>, FsError> {
        let (top, _) = self.find(path, Last::NoFollow)?;
        let mut bounds = Bounds::default();
        let mut found = Vec::new();
        let mut left = vec![(path.to_owned(), top, 0)];
        while let Some((path, ino, depth)) = left.pop() {
            at.clone_from(&path);
            let stat = self.volume.stat(ino)?;
            if stat.is_dir() {
                bounds.enter(ino, depth)?;
                let mut entries = self.entries(ino)?;
                entries.sort_by(|a, b| b.name.cmp(&a.name));
                let slash = if path.ends_with('/') { "" } else { "/" };
                for entry in entries {
                    let path = format!("{path}{slash}{}", entry.name);
                    bounds.keep(&path)?;
                    left.push((path, entry.ino, depth + 1));
                }
            }
            found.push((path, stat));
        }
        Ok(found)
    }

    /// The target of a symbolic link.
    pub fn read_link(&self, path: &str) -> Result<String, Error> {
        self.act("read link", path, || match self.find(path, Last::NoFollow)? {
            (ino, FileType::Symlink) => self.volume.readlink(ino),
            _ => Err(FsError::Invalid),
        })
    }
}

impl Fs<'_, Transaction> {
    /// Opens a path as `open(2)` does and returns its inode; `O_TRUNC` empties the file.
    pub fn open(&self, path: &str, open: &Open, mode: u32) -> Result<Ino, Error> {
        self.act("open", path, || self.open_node(path, open, mode))
    }

    fn open_node(&self, path: &str, open: &Open, mode: u32) -> Result<Ino, FsError> {
        let resolved = self.resolve(path, open.last())?;
        let ino = match resolved.for_open(open)? {
            Opened::Existing(ino, _) => ino,
            Opened::New(name) => return self.volume.create(resolved.parent, name, mode, self.uid, self.gid),
        };
        self.volume.permit(ino, if open.write || open.truncate { 0o600 } else { 0o400 })?;
        if open.truncate {
            self.volume.truncate(ino, 0)?;
        }
        Ok(ino)
    }

    /// The file at `path`, made if it is missing.
    fn open_or_create(&self, path: &str) -> Result<Ino, FsError> {
        self.open_node(path, &Open { write: true, create: true, ..Open::default() }, 0o644)
    }

    fn write_all(&self, ino: Ino, mut offset: u64, mut bytes: &[u8]) -> Result<(), FsError> {
        while !bytes.is_empty() {
            let written = self.volume.write(ino, offset, bytes)?;
            offset += written as u64;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Replaces the content of a file, made if it is missing.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.act("write", path, || {
            let ino = self.open_or_create(path)?;
            self.volume.truncate(ino, 0)?;
            self.write_all(ino, 0, bytes.as_ref())
        })
    }

    /// Adds to the end of a file, made if it is missing.
    pub fn append(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.act("append to", path, || {
            let ino = self.open_or_create(path)?;
            let size = self.volume.stat(ino)?.size;
            self.write_all(ino, size, bytes.as_ref())
        })
    }

    /// A new directory.
    pub fn create_dir(&self, path: &str) -> Result<(), Error> {
        self.act("create directory", path, || {
            let resolved = self.resolve(path, Last::Entry)?;
            self.volume.mkdir(resolved.parent, resolved.for_mkdir()?, 0o755, self.uid, self.gid).map(drop)
        })
    }

    /// A new directory and the ones above it that are missing.
    pub fn create_dir_all(&self, path: &str) -> Result<(), Error> {
        self.act("create directory", path, || {
            for end in path.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| at).chain([path.len()]) {
                let Some(part) = path.get(..end).filter(|part| !part.is_empty()) else { continue };
                let resolved = self.resolve(part, Last::Follow)?;
                match resolved.node {
                    Some((_, FileType::Directory)) => {}
                    Some(_) => return Err(FsError::Exists),
                    None => {
                        let name = resolved.for_mkdir()?;
                        self.volume.mkdir(resolved.parent, name, 0o755, self.uid, self.gid)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Removes a file or symbolic link.
    pub fn remove_file(&self, path: &str) -> Result<(), Error> {
        self.act("remove", path, || {
            let resolved = self.resolve(path, Last::Entry)?;
            self.volume.unlink(resolved.parent, resolved.for_unlink()?)
        })
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, path: &str) -> Result<(), Error> {
        self.act("remove", path, || {
            let resolved = self.resolve(path, Last::Entry)?;
            self.volume.rmdir(resolved.parent, resolved.for_rmdir()?)
        })
    }

    /// Removes a directory and everything below it.
    pub fn remove_dir_all(&self, path: &str) -> Result<(), Error> {
        self.act("remove", path, || {
            let resolved = self.resolve(path, Last::Entry)?;
            let name = resolved.for_rmdir()?;
            let (top, _) = resolved.existing()?;
            self.empty(top)?;
            self.volume.rmdir(resolved.parent, name)
        })
    }

    /// Removes everything in a directory, without recursion: trees are as deep as a guest likes.
    fn empty(&self, top: Ino) -> Result<(), FsError> {
        let mut stack = vec![(top, String::new())];
        while let Some((dir, _)) = stack.last() {
            let dir = *dir;
            let entries = self.volume.readdir(dir, 0, READDIR_STEP)?;
            let mut below = None;
            for entry in &entries {
                if entry.kind == FileType::Directory {
                    below = Some((entry.ino, entry.name.clone()));
                    break;
                }
                self.volume.unlink(dir, &entry.name)?;
            }
            if let Some(below) = below {
                match self.volume.rmdir(dir, &below.1) {
                    Ok(()) => {}
                    // One that is above itself would be emptied for ever.
                    Err(FsError::NotEmpty) if stack.iter().any(|(dir, _)| *dir == below.0) => return Err(FsError::Damaged),
                    Err(FsError::NotEmpty) => stack.push(below),
                    Err(error) => return Err(error),
                }
            } else if entries.is_empty() {
                let name = stack.pop().map(|(_, name)| name).unwrap_or_default();
                if let Some((parent, _)) = stack.last() {
                    self.volume.rmdir(*parent, &name)?;
                }
            }
        }
        Ok(())
    }

    /// Moves `from` to `to`, replacing what is there.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.act("rename", from, || {
            let old = self.resolve(from, Last::Entry)?;
            let new = self.resolve(to, Last::Entry)?;
            let (old_name, new_name) = old.for_rename(&new)?;
            self.volume.rename(old.parent, old_name, new.parent, new_name)
        })
    }

    /// Copies a file's content and permissions.
    pub fn copy(&self, from: &str, to: &str) -> Result<u64, Error> {
        let stat = self.metadata(from)?;
        self.act("copy", from, || {
            if stat.is_dir() {
                return Err(FsError::IsDirectory);
            }
            let ino = self.open_or_create(to)?;
            if ino == stat.ino {
                return Ok(stat.size);
            }
            self.volume.truncate(ino, 0)?;
            let mut buffer = vec![0; crate::format::CHUNK_BYTES];
            let mut offset = 0;
            loop {
                let read = self.volume.read(stat.ino, offset, &mut buffer)?;
                if read == 0 {
                    break;
                }
                self.write_all(ino, offset, buffer.get(..read).unwrap_or_default())?;
                offset += read as u64;
            }
            self.volume.chmod(ino, stat.mode)?;
            Ok(offset)
        })
    }

    /// A new symbolic link at `path` that says `target`.
    pub fn symlink(&self, target: &str, path: &str) -> Result<(), Error> {
        self.act("create link", path, || {
            // Linux looks at the target before it walks the path.
            if target.is_empty() {
                return Err(FsError::NoEntry);
            }
            let resolved = self.resolve(path, Last::Entry)?;
            self.volume.symlink(resolved.parent, resolved.for_new()?, target, self.uid, self.gid).map(drop)
        })
    }

    /// Another name, `link`, for the file at `original`.
    pub fn hard_link(&self, original: &str, link: &str) -> Result<(), Error> {
        self.act("link", original, || {
            let (ino, _) = self.find(original, Last::NoFollow)?;
            let resolved = self.resolve(link, Last::Entry)?;
            self.volume.link(ino, resolved.parent, resolved.for_new()?)
        })
    }

    /// Sets access and modification time in nanoseconds; `None` leaves one as it is.
    pub fn set_times(&self, path: &str, atime: Option<i64>, mtime: Option<i64>) -> Result<(), Error> {
        self.act("change times of", path, || self.volume.set_times(self.find(path, Last::Follow)?.0, atime, mtime))
    }

    /// Cuts a file or fills it with zeros up to `size`.
    pub fn truncate(&self, path: &str, size: u64) -> Result<(), Error> {
        self.act("truncate", path, || self.volume.truncate(self.find(path, Last::Follow)?.0, size))
    }

    /// Changes the permissions.
    pub fn set_permissions(&self, path: &str, mode: u32) -> Result<(), Error> {
        self.act("change mode of", path, || self.volume.chmod(self.find(path, Last::Follow)?.0, mode))
    }
}
