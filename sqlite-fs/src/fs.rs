//! Operations on paths, named as in `std::fs`, on any tree of files: rows, or rows joined with other trees.

mod volume;

use crate::error::{Error, FsError};
use crate::node::{Entry, FileType, Stat};
use crate::path::{Bounds, Last, Open, Opened, Resolved};

pub use volume::{Owner, Volume, VolumeMut};

/// Number of entries fetched at once.
const READDIR_STEP: usize = 1024;
/// Number of bytes read at once.
const PIECE_BYTES: usize = 256 << 10;

/// Operations on paths.
pub struct Fs<'a, V: Volume> {
    volume: &'a V,
    cwd: V::Node,
    owner: Owner,
    is_over: Option<&'a dyn Fn() -> bool>,
    unread: Option<&'a Unread<'a>>,
}

/// Called with the path of what cannot be read, and the reason.
type Unread<'a> = dyn Fn(&str, FsError) + 'a;

/// How a [visit](Fs::visit) continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Continue, into the directory if it is one.
    Enter,
    /// Continue with the next sibling.
    Skip,
    /// Stop.
    Stop,
}

/// An entry found by a [visit](Fs::visit).
#[derive(Debug)]
pub struct Visited<'p, N> {
    /// Its path, starting with the path of the visit.
    pub path: &'p str,
    /// The depth below the start: 1 or more.
    pub depth: usize,
    /// Its type.
    pub kind: FileType,
    /// Its node.
    pub node: N,
    /// Whether the visit skips its content: it is reported but never entered.
    pub is_left_out: bool,
}

/// A directory being visited, with its remaining names.
struct Entered<N> {
    path: String,
    node: N,
    names: std::vec::IntoIter<Entry>,
}

impl<'a, V: Volume> Fs<'a, V> {
    /// Creates operations on a volume.
    #[must_use]
    pub fn new(volume: &'a V) -> Self {
        Self { volume, cwd: volume.root(), owner: Owner::default(), is_over: None, unread: None }
    }

    /// Sets the directory that relative paths start from; defaults to the root.
    #[must_use]
    pub fn cwd(mut self, dir: V::Node) -> Self {
        self.cwd = dir;
        self
    }

    /// Sets the owner of created files.
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// Makes operations on many files fail with [`FsError::Interrupted`] once this returns true.
    #[must_use]
    pub fn until(mut self, is_over: &'a dyn Fn() -> bool) -> Self {
        self.is_over = Some(is_over);
        self
    }

    /// Makes walks continue past paths below their start that a [joined tree](Volume::is_foreign) cannot read: each is passed to
    /// this with its error.
    #[must_use]
    pub fn skipping(mut self, unread: &'a dyn Fn(&str, FsError)) -> Self {
        self.unread = Some(unread);
        self
    }

    // Returns `None` if a walk continues past an error of a joined tree.
    fn unless_skipped<T>(&self, node: V::Node, path: &str, found: Result<T, FsError>) -> Result<Option<T>, FsError> {
        match (found, self.unread) {
            (Err(error), Some(unread)) if error != FsError::Interrupted && self.volume.is_foreign(node) => {
                unread(path, error);
                Ok(None)
            }
            (found, _) => found.map(Some),
        }
    }

    fn act<T>(&self, operation: &'static str, path: &str, work: impl FnOnce() -> Result<T, FsError>) -> Result<T, Error> {
        self.volume.at_once(work).map_err(|source| Error::Fs { operation, path: path.to_owned(), source })
    }

    fn go_on(&self) -> Result<(), FsError> {
        if self.is_over.is_some_and(|is_over| is_over()) { Err(FsError::Interrupted) } else { Ok(()) }
    }

    fn resolve(&self, path: &str, last: Last) -> Result<Resolved<V::Node>, FsError> {
        self.volume.resolve(self.cwd, path, last)
    }

    fn find(&self, path: &str, last: Last) -> Result<(V::Node, FileType), FsError> {
        self.resolve(path, last)?.existing()
    }

    // Finds a file to read and its size.
    fn file(&self, path: &str) -> Result<(V::Node, u64), FsError> {
        match self.find(path, Last::Follow)? {
            (_, FileType::Directory) => Err(FsError::IsDirectory),
            (node, _) => Ok((node, self.volume.size(node)?)),
        }
    }

    /// Reads a whole file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        self.act("read", path, || {
            let (node, size) = self.file(path)?;
            let size = usize::try_from(size).map_err(|_| FsError::FileTooBig)?;
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(size).map_err(|_| FsError::FileTooBig)?;
            bytes.resize(size, 0);
            let read = self.volume.read(node, 0, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        })
    }

    /// Passes the content of a file from an offset to `take` piece by piece until it returns `false`; returns the file's size.
    pub fn read_pieces(&self, path: &str, from: u64, mut take: impl FnMut(&[u8]) -> bool) -> Result<u64, Error> {
        self.act("read", path, || {
            let (node, size) = self.file(path)?;
            let mut buffer = vec![0; PIECE_BYTES];
            let mut offset = from;
            loop {
                let read = self.volume.read(node, offset, &mut buffer)?;
                let piece = buffer.get(..read).unwrap_or_default();
                if piece.is_empty() || !take(piece) {
                    return Ok(size);
                }
                offset += read as u64;
                self.go_on()?;
            }
        })
    }

    /// Reads a whole file as text.
    pub fn read_to_string(&self, path: &str) -> Result<String, Error> {
        String::from_utf8(self.read(path)?)
            .map_err(|_| Error::Invalid { what: "content", reason: format!("`{path}` is not UTF-8") })
    }

    /// Returns whether the path exists.
    pub fn exists(&self, path: &str) -> Result<bool, Error> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(Error::Fs { source: FsError::NoEntry | FsError::NotDirectory | FsError::Loop, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the attributes, following symbolic links.
    pub fn metadata(&self, path: &str) -> Result<Stat, Error> {
        self.act("stat", path, || self.volume.stat(self.find(path, Last::Follow)?.0))
    }

    /// Returns the attributes of the path itself.
    pub fn symlink_metadata(&self, path: &str) -> Result<Stat, Error> {
        self.act("stat", path, || self.volume.stat(self.find(path, Last::NoFollow)?.0))
    }

    /// Returns the entries of a directory, sorted by name.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.act("list", path, || match self.find(path, Last::Follow)? {
            (node, FileType::Directory) => self.entries(node),
            _ => Err(FsError::NotDirectory),
        })
    }

    fn entries(&self, dir: V::Node) -> Result<Vec<Entry>, FsError> {
        let mut entries = Vec::new();
        let mut cookie = 0;
        loop {
            let step = self.volume.readdir(dir, cookie, READDIR_STEP)?;
            let Some(last) = step.last() else { break };
            cookie = last.cookie;
            let is_end = step.len() < READDIR_STEP;
            if entries.is_empty() {
                entries = step;
            } else {
                entries.extend(step);
            }
            if is_end && !self.volume.is_joined(dir) {
                break;
            }
            self.go_on()?;
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Visits everything below a directory, each directory before its content, in name order, without following links, until
    /// `visit` returns [`Step::Stop`]. Directories that the volume [skips](Volume::is_left_out) are entered only from inside.
    ///
    /// A directory that is met twice is reported as damage, with its path.
    pub fn visit<E: From<Error>>(
        &self,
        top: &str,
        mut visit: impl FnMut(&Visited<'_, V::Node>) -> Result<Step, E>,
    ) -> Result<(), E> {
        let mut at = top.to_owned();
        let mut refused = None;
        let work = || {
            let (node, kind) = self.find(top, Last::Follow)?;
            if kind != FileType::Directory {
                return Err(FsError::NotDirectory);
            }
            self.visit_from(node, &mut at, |visited| match visit(visited) {
                Ok(step) => step,
                Err(error) => {
                    refused = Some(error);
                    Step::Stop
                }
            })
        };
        let ended = self.volume.at_once(work).map_err(|source| Error::Fs { operation: "walk", path: at, source });
        match refused {
            Some(error) => Err(error),
            None => Ok(ended?),
        }
    }

    // `at` is the start and then the current position.
    fn visit_from(
        &self,
        top: V::Node,
        at: &mut String,
        mut visit: impl FnMut(&Visited<'_, V::Node>) -> Step,
    ) -> Result<(), FsError> {
        let is_inside = self.volume.is_left_out(top);
        let mut bounds = Bounds::default();
        self.volume.enter(&mut bounds, top, 0)?;
        let path = at.trim_end_matches('/').to_owned();
        let mut open = vec![Entered { path, node: top, names: self.entries(top)?.into_iter() }];
        while let Some(directory) = open.last_mut() {
            let Some(entry) = directory.names.next() else {
                open.pop();
                continue;
            };
            self.go_on()?;
            let path = format!("{}/{}", directory.path, entry.name);
            let child = self.volume.child(directory.node, &entry);
            let Some(node) = self.unless_skipped(directory.node, &path, child)? else { continue };
            let is_left_out = !is_inside && self.volume.is_left_out(node);
            *at = path;
            let depth = open.len();
            match visit(&Visited { path: at, depth, kind: entry.kind, node, is_left_out }) {
                Step::Enter if entry.kind == FileType::Directory && !is_left_out => {
                    self.volume.enter(&mut bounds, node, depth)?;
                    if let Some(names) = self.unless_skipped(node, at, self.entries(node))? {
                        open.push(Entered { path: at.clone(), node, names: names.into_iter() });
                    }
                }
                Step::Enter | Step::Skip => {}
                Step::Stop => break,
            }
        }
        Ok(())
    }

    /// Returns a path and everything below it: paths as given, in name order, without following links.
    ///
    /// A directory that is met twice is reported as damage, with its path.
    pub fn walk(&self, path: &str) -> Result<Vec<(String, Stat)>, Error> {
        let mut at = path.to_owned();
        self.volume.at_once(|| self.walk_from(path, &mut at)).map_err(|source| Error::Fs { operation: "walk", path: at, source })
    }

    fn walk_from(&self, path: &str, at: &mut String) -> Result<Vec<(String, Stat)>, FsError> {
        let (top, kind) = self.find(path, Last::NoFollow)?;
        let mut found = vec![(path.to_owned(), self.volume.stat(top)?)];
        if kind != FileType::Directory {
            return Ok(found);
        }
        let (mut bounds, mut failed) = (Bounds::<V::Node>::default(), None);
        self.visit_from(top, at, |visited| {
            if visited.is_left_out {
                return Step::Skip;
            }
            let stat = || self.unless_skipped(visited.node, visited.path, self.volume.stat(visited.node));
            match bounds.keep(visited.path).and_then(|()| stat()) {
                Ok(Some(stat)) => {
                    found.push((visited.path.to_owned(), stat));
                    Step::Enter
                }
                Ok(None) => Step::Skip,
                Err(error) => {
                    failed = Some(error);
                    Step::Stop
                }
            }
        })?;
        failed.map_or(Ok(found), Err)
    }

    /// Returns the target of a symbolic link.
    pub fn read_link(&self, path: &str) -> Result<String, Error> {
        self.act("read link", path, || match self.find(path, Last::NoFollow)? {
            (node, FileType::Symlink) => self.volume.readlink(node),
            _ => Err(FsError::Invalid),
        })
    }
}

impl<V: VolumeMut> Fs<'_, V> {
    /// Opens a path like `open(2)` and returns its node; `O_TRUNC` empties the file.
    pub fn open(&self, path: &str, open: &Open, mode: u32) -> Result<V::Node, Error> {
        self.act("open", path, || self.open_node(path, open, mode).map(|(node, _)| node))
    }

    // Returns the node, and whether it is new.
    fn open_node(&self, path: &str, open: &Open, mode: u32) -> Result<(V::Node, bool), FsError> {
        let resolved = self.resolve(path, open.last())?;
        let node = match resolved.for_open(open)? {
            Opened::Existing(node, _) => node,
            Opened::New(name) => return Ok((self.volume.create(&resolved, name, mode, self.owner)?, true)),
        };
        self.volume.permit(node, if open.write || open.truncate { 0o600 } else { 0o400 })?;
        if open.truncate {
            self.volume.truncate(node, 0)?;
        }
        Ok((node, false))
    }

    /// Opens the file at `path`, creating it if missing; returns whether it was created.
    fn open_or_create(&self, path: &str) -> Result<(V::Node, bool), FsError> {
        self.open_node(path, &Open { write: true, create: true, ..Open::default() }, 0o644)
    }

    /// Opens and empties the file at `path`, creating it if missing; returns whether it was created. Fill it with
    /// [`write_at`](Self::write_at).
    pub fn create(&self, path: &str) -> Result<(V::Node, bool), Error> {
        self.act("write", path, || {
            let (node, is_new) = self.open_or_create(path)?;
            self.volume.truncate(node, 0)?;
            Ok((node, is_new))
        })
    }

    /// Writes all bytes at an offset of a file.
    pub fn write_at(&self, file: V::Node, mut offset: u64, mut bytes: &[u8]) -> Result<(), FsError> {
        while !bytes.is_empty() {
            let written = self.volume.write(file, offset, bytes)?;
            offset += written as u64;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Replaces the content of a file, creating it if missing.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.act("write", path, || {
            let (node, _) = self.open_or_create(path)?;
            self.volume.truncate(node, 0)?;
            self.write_at(node, 0, bytes.as_ref())
        })
    }

    /// Appends to a file, creating it if missing.
    pub fn append(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.act("append to", path, || {
            let (node, _) = self.open_or_create(path)?;
            let size = self.volume.size(node)?;
            self.write_at(node, size, bytes.as_ref())
        })
    }

    /// Creates a directory.
    pub fn create_dir(&self, path: &str) -> Result<(), Error> {
        self.act("create directory", path, || self.volume.mkdir_at(self.cwd, path, 0o755, self.owner).map(drop))
    }

    /// Creates a directory and its missing parents.
    pub fn create_dir_all(&self, path: &str) -> Result<(), Error> {
        self.act("create directory", path, || self.make_directories(path))
    }

    /// Creates the missing parents of a path.
    pub fn create_parents(&self, path: &str) -> Result<(), Error> {
        match path.trim_end_matches('/').rsplit_once('/') {
            Some((parent, _)) if !parent.is_empty() => self.create_dir_all(parent),
            _ => Ok(()),
        }
    }

    fn make_directories(&self, path: &str) -> Result<(), FsError> {
        for end in path.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| at).chain([path.len()]) {
            let Some(part) = path.get(..end).filter(|part| !part.is_empty()) else { continue };
            let resolved = self.resolve(part, Last::Follow)?;
            match resolved.node {
                Some((_, FileType::Directory)) => {}
                Some(_) => return Err(FsError::Exists),
                None => drop(self.volume.mkdir(&resolved, resolved.for_mkdir()?, 0o755, self.owner)?),
            }
        }
        Ok(())
    }

    /// Removes a file or symbolic link.
    pub fn remove_file(&self, path: &str) -> Result<(), Error> {
        self.act("remove", path, || self.volume.unlink_at(self.cwd, path))
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, path: &str) -> Result<(), Error> {
        self.act("remove", path, || self.volume.rmdir_at(self.cwd, path))
    }

    /// Removes a directory and everything below it; returns the number of removed entries.
    pub fn remove_dir_all(&self, path: &str) -> Result<usize, Error> {
        self.act("remove", path, || {
            let resolved = self.resolve(path, Last::Entry)?;
            let name = resolved.for_rmdir()?;
            let (top, _) = resolved.existing()?;
            let removed = self.empty(top)?;
            self.volume.rmdir(&resolved, name)?;
            Ok(removed + 1)
        })
    }

    /// Removes a file, a link, or a directory with everything below it; returns the number of removed entries.
    pub fn remove(&self, path: &str) -> Result<usize, Error> {
        let is_directory = self.act("remove", path, || Ok(self.find(path, Last::NoFollow)?.1 == FileType::Directory))?;
        if is_directory { self.remove_dir_all(path) } else { self.remove_file(path).map(|()| 1) }
    }

    /// Removes everything in a directory, without recursion, because a guest can create trees of any depth.
    fn empty(&self, top: V::Node) -> Result<usize, FsError> {
        let mut removed = 0;
        let mut stack = vec![(top, Resolved::entry(top, String::new(), (top, FileType::Directory)))];
        while let Some((dir, _)) = stack.last() {
            let dir = *dir;
            let entries = self.volume.readdir(dir, 0, READDIR_STEP)?;
            let is_empty = entries.is_empty();
            let mut below = None;
            for entry in entries {
                self.go_on()?;
                let node = self.volume.child(dir, &entry)?;
                let at = Resolved::entry(dir, entry.name.clone(), (node, entry.kind));
                if entry.kind == FileType::Directory {
                    below = Some((node, at));
                    break;
                }
                self.volume.unlink(&at, &entry.name)?;
                removed += 1;
            }
            if let Some((node, at)) = below {
                match self.volume.rmdir(&at, at.for_rmdir()?) {
                    Ok(()) => removed += 1,
                    // A directory above itself would be emptied forever.
                    Err(FsError::NotEmpty) if stack.iter().any(|(dir, _)| *dir == node) => return Err(FsError::Damaged),
                    Err(FsError::NotEmpty) => stack.push((node, at)),
                    Err(error) => return Err(error),
                }
            } else if is_empty {
                let emptied = stack.pop();
                if let Some((_, at)) = emptied.filter(|_| !stack.is_empty()) {
                    self.volume.rmdir(&at, at.for_rmdir()?)?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    /// Moves `from` to `to`, replacing an existing file.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.act("rename", from, || self.volume.rename_at(self.cwd, from, self.cwd, to))
    }

    /// Copies a file's content and permissions.
    pub fn copy(&self, from: &str, to: &str) -> Result<u64, Error> {
        self.act("copy", from, || self.copy_file(from, to))
    }

    fn copy_file(&self, from: &str, to: &str) -> Result<u64, FsError> {
        let (source, size) = self.file(from)?;
        let mode = self.volume.stat(source)?.mode;
        let (target, _) = self.open_or_create(to)?;
        if target == source {
            return Ok(size);
        }
        self.volume.truncate(target, 0)?;
        let mut buffer = vec![0; PIECE_BYTES];
        let mut offset = 0;
        loop {
            let read = self.volume.read(source, offset, &mut buffer)?;
            if read == 0 {
                break;
            }
            self.write_at(target, offset, buffer.get(..read).unwrap_or_default())?;
            offset += read as u64;
            self.go_on()?;
        }
        self.volume.chmod(target, mode)?;
        Ok(offset)
    }

    /// Copies a directory and everything below it into a directory, creating it if missing. Named pipes are skipped.
    pub fn copy_dir_all(&self, from: &str, to: &str) -> Result<(), Error> {
        // A slash at the end is part of the first path only.
        let top = from.trim_end_matches('/').len();
        for (path, stat) in self.walk(from)? {
            let target = format!("{to}{}", path.get(top..).unwrap_or_default().trim_end_matches('/'));
            self.act("copy", &path, || match stat.file_type() {
                FileType::Directory => {
                    self.make_directories(&target)?;
                    self.volume.chmod(self.find(&target, Last::Follow)?.0, stat.mode)
                }
                FileType::Symlink => {
                    let link = self.volume.readlink(self.find(&path, Last::NoFollow)?.0)?;
                    self.volume.symlink_at(&link, self.cwd, &target, self.owner)
                }
                FileType::Fifo | FileType::Device => Ok(()),
                FileType::File => self.copy_file(&path, &target).map(drop),
            })?;
        }
        Ok(())
    }

    /// Creates a symbolic link at `path` that points to `target`.
    pub fn symlink(&self, target: &str, path: &str) -> Result<(), Error> {
        self.act("create link", path, || self.volume.symlink_at(target, self.cwd, path, self.owner))
    }

    /// Creates another name, `link`, for the file at `original`.
    pub fn hard_link(&self, original: &str, link: &str) -> Result<(), Error> {
        self.act("link", original, || self.volume.link_at(self.cwd, original, Last::NoFollow, self.cwd, link))
    }

    /// Sets access and modification time in nanoseconds; `None` leaves one unchanged.
    pub fn set_times(&self, path: &str, atime: Option<i64>, mtime: Option<i64>) -> Result<(), Error> {
        self.act("change times of", path, || self.volume.set_times(self.find(path, Last::Follow)?.0, atime, mtime))
    }

    /// Truncates a file or extends it with zeros to `size`.
    pub fn truncate(&self, path: &str, size: u64) -> Result<(), Error> {
        self.act("truncate", path, || self.volume.truncate(self.find(path, Last::Follow)?.0, size))
    }

    /// Changes the permissions.
    pub fn set_permissions(&self, path: &str, mode: u32) -> Result<(), Error> {
        self.act("change mode of", path, || self.volume.chmod(self.find(path, Last::Follow)?.0, mode))
    }
}
