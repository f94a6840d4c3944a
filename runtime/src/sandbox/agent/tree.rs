//! The tree as the tools see it: paths in, bytes and names out, over the same files that a command has.

use std::time::Instant;

use abi::Errno;
use abi::stat::{S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, Stat};
use sqlite_fs::path::{Bounds, Last};

use super::MAX_WHOLE;
use crate::vfs::{Node, ROOT_NODE, Thing, Vfs, to_fs};
use crate::{Error, clock};

/// Bytes read or names listed at a time.
const STEP: usize = 1 << 18;
const NAMES: usize = 1024;

/// The files of one tool call.
pub(super) struct Tree<'a> {
    vfs: &'a Vfs,
    deadline: Instant,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Symlink,
    Other,
}

impl Kind {
    fn of_mode(mode: u32) -> Self {
        match mode & S_IFMT {
            S_IFREG => Self::File,
            S_IFDIR => Self::Directory,
            S_IFLNK => Self::Symlink,
            _ => Self::Other,
        }
    }

    /// Its word.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Other => "other",
        }
    }
}

/// One name of a directory.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// A file error with what was tried on which path, as the rest of the library says it.
pub(super) fn failed(operation: &'static str, path: &str, errno: Errno) -> Error {
    sqlite_fs::Error::Fs { operation, path: path.to_owned(), source: to_fs(errno) }.into()
}

fn too_large(path: &str, size: u64) -> Error {
    Error::Invalid(format!("`{path}` has {size} bytes, too many for this tool: use `bash` with sed or awk"))
}

impl<'a> Tree<'a> {
    pub(super) fn new(vfs: &'a Vfs, deadline: Instant) -> Self {
        Self { vfs, deadline }
    }

    /// Whether the time of the tool is used up.
    pub(super) fn is_overdue(&self) -> bool {
        clock::now() >= self.deadline
    }

    fn node(&self, path: &str, last: Last) -> Result<(Node, Stat), Errno> {
        let node = self.vfs.find(ROOT_NODE, path, last)?;
        Ok((node, self.vfs.stat(node)?))
    }

    /// The kind and size behind a path, links followed; `None` when there is nothing.
    pub(super) fn kind(&self, operation: &'static str, path: &str) -> Result<Option<(Kind, u64)>, Error> {
        self.look(operation, path, Last::Follow)
    }

    /// The kind and size of a path itself.
    pub(super) fn own_kind(&self, operation: &'static str, path: &str) -> Result<Option<(Kind, u64)>, Error> {
        self.look(operation, path, Last::NoFollow)
    }

    fn look(&self, operation: &'static str, path: &str, last: Last) -> Result<Option<(Kind, u64)>, Error> {
        match self.node(path, last) {
            Ok((_, stat)) => Ok(Some((Kind::of_mode(stat.mode), stat.size))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(operation, path, errno)),
        }
    }

    /// The target of a link.
    pub(super) fn target(&self, path: &str) -> Option<String> {
        let node = self.vfs.find(ROOT_NODE, path, Last::NoFollow).ok()?;
        self.vfs.readlink(node).ok()
    }

    /// Whether a path is part of the world that every sandbox has, which searches from above leave out.
    pub(super) fn is_fixed(&self, path: &str) -> bool {
        matches!(self.vfs.find(ROOT_NODE, path, Last::NoFollow), Ok(Node::Fixed(_) | Node::Descriptor(_)))
    }

    /// Gives the content of a file piece by piece, from an offset, until `take` answers `false`.
    pub(super) fn pieces(&self, path: &str, from: u64, mut take: impl FnMut(&[u8]) -> bool) -> Result<u64, Error> {
        let at = |errno| failed("read", path, errno);
        let (node, stat) = self.node(path, Last::Follow).map_err(at)?;
        match (Kind::of_mode(stat.mode), self.vfs.thing(node)) {
            (Kind::Directory, _) => return Err(at(Errno::ISDIR)),
            (_, Some(Thing::Text(text))) => {
                take(text.as_bytes().get(usize::try_from(from).unwrap_or(usize::MAX)..).unwrap_or_default());
                return Ok(stat.size);
            }
            (_, Some(Thing::Library(_) | Thing::Installed(_)) | None) => {}
            _ => return Err(Error::Invalid(format!("`{path}` is no ordinary file: read it with `bash`"))),
        }
        let mut offset = from;
        let mut buffer = vec![0; STEP];
        while offset < stat.size {
            let read = self.vfs.read(node, offset, &mut buffer).map_err(at)?;
            if read == 0 {
                break;
            }
            offset += read as u64;
            if !take(&buffer[..read]) {
                break;
            }
            if self.is_overdue() {
                return Err(Error::Invalid(format!("`{path}` is too large to read in time: read a part with `bash`")));
            }
        }
        Ok(stat.size)
    }

    /// The whole content of a file.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        if let Some((Kind::File, size)) = self.kind("read", path)?
            && size > MAX_WHOLE
        {
            return Err(too_large(path, size));
        }
        let mut content = Vec::new();
        let mut fits = true;
        self.pieces(path, 0, |piece| {
            fits = content.len() as u64 + piece.len() as u64 <= MAX_WHOLE;
            if fits {
                content.extend_from_slice(piece);
            }
            fits
        })?;
        if fits { Ok(content) } else { Err(too_large(path, content.len() as u64)) }
    }

    /// Writes a whole file; says whether it is new.
    pub(super) fn write(&self, path: &str, content: &[u8]) -> Result<bool, Error> {
        let at = |errno| failed("write", path, errno);
        if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
            self.create_dirs(parent)?;
        }
        let resolved = self.vfs.resolve(ROOT_NODE, path, Last::Create).map_err(at)?;
        let (node, created) = match resolved.node {
            Some((node, _)) => {
                if Kind::of_mode(self.vfs.stat(node).map_err(at)?.mode) == Kind::Directory {
                    return Err(at(Errno::ISDIR));
                }
                self.vfs.truncate(node, 0).map_err(at)?;
                (node, false)
            }
            None => (self.vfs.create(&resolved, 0o644).map_err(at)?, true),
        };
        let mut offset = 0;
        while offset < content.len() {
            offset += self.vfs.write(node, offset as u64, &content[offset..]).map_err(at)?;
        }
        Ok(created)
    }

    /// Creates a directory and those above it.
    pub(super) fn create_dirs(&self, path: &str) -> Result<(), Error> {
        let mut whole = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            whole.push('/');
            whole.push_str(part);
            match self.kind("create", &whole)? {
                Some((Kind::Directory, _)) => {}
                Some(_) => return Err(failed("create", &whole, Errno::NOTDIR)),
                None => self.vfs.mkdir(ROOT_NODE, &whole, 0o755).map_err(|errno| failed("create", &whole, errno))?,
            }
        }
        Ok(())
    }

    /// The names of a directory, sorted.
    pub(super) fn names(&self, path: &str) -> Result<Vec<Named>, Error> {
        let at = |errno| failed("list", path, errno);
        let (node, stat) = self.node(path, Last::Follow).map_err(at)?;
        if Kind::of_mode(stat.mode) != Kind::Directory {
            return Err(at(Errno::NOTDIR));
        }
        let mut names = Vec::new();
        let mut cookie = 0;
        loop {
            let step = self.vfs.readdir(node, cookie, NAMES).map_err(at)?;
            let Some(last) = step.last() else { break };
            cookie = last.cookie;
            names.extend(step.into_iter().map(|entry| Named { name: entry.name, kind: Kind::of_mode(entry.kind) }));
        }
        names.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(names)
    }

    /// Visits everything below a directory, each directory before what is in it, until `visit` answers [`Walk::Stop`]. Links are
    /// not followed; the fixed world is left out, unless the walk starts there. Holds the names of the open directories, not paths.
    pub(super) fn walk(&self, top: &str, mut visit: impl FnMut(&str, usize, Kind) -> Result<Walk, Error>) -> Result<(), Error> {
        let inside_fixed = self.is_fixed(top);
        let mut bounds = Bounds::default();
        let mut open = vec![self.open(top.trim_end_matches('/').to_owned(), 0, &mut bounds)?];
        while let Some(directory) = open.last_mut() {
            let Some((path, kind)) = directory.next() else {
                open.pop();
                continue;
            };
            if self.is_overdue() {
                return Ok(());
            }
            let step = visit(&path, open.len(), kind)?;
            if step == Walk::Stop {
                return Ok(());
            }
            if step == Walk::Enter && kind == Kind::Directory && (inside_fixed || !self.is_fixed(&path)) {
                let inner = self.open(path, open.len(), &mut bounds)?;
                open.push(inner);
            }
        }
        Ok(())
    }

    /// Removes a directory with everything in it and returns the number of entries removed.
    pub(super) fn remove_all(&self, top: &str) -> Result<usize, Error> {
        let mut removed = 0;
        let mut bounds = Bounds::default();
        let mut open = vec![self.open(top.to_owned(), 0, &mut bounds)?];
        while let Some(directory) = open.last_mut() {
            if self.is_overdue() {
                return Err(Error::Invalid(format!("`{top}` has too many entries to delete in time: delete a part of it first")));
            }
            match directory.next() {
                Some((path, Kind::Directory)) => {
                    let inner = self.open(path, open.len(), &mut bounds)?;
                    open.push(inner);
                    continue;
                }
                Some((path, _)) => self.unlink(&path)?,
                None => {
                    let path = std::mem::take(&mut directory.path);
                    open.pop();
                    self.rmdir(&path)?;
                }
            }
            removed += 1;
        }
        Ok(removed)
    }

    // So many levels below the start of the walk.
    fn open(&self, path: String, depth: usize, bounds: &mut Bounds<Node>) -> Result<Open, Error> {
        let shown = if path.is_empty() { "/" } else { &path };
        let at = |errno| failed("list", shown, errno);
        let (node, _) = self.node(shown, Last::Follow).map_err(at)?;
        self.vfs.enter(bounds, node, depth).map_err(at)?;
        let names = self.names(shown)?.into_iter();
        Ok(Open { path, names })
    }

    /// Removes a name that is not a directory's.
    pub(super) fn unlink(&self, path: &str) -> Result<(), Error> {
        self.vfs.unlink(ROOT_NODE, path).map_err(|errno| failed("delete", path, errno))
    }

    /// Removes an empty directory.
    pub(super) fn rmdir(&self, path: &str) -> Result<(), Error> {
        self.vfs.rmdir(ROOT_NODE, path).map_err(|errno| failed("delete", path, errno))
    }

    /// Renames, replacing what is there.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.vfs.rename(ROOT_NODE, from, ROOT_NODE, to).map_err(|errno| failed("move", from, errno))
    }
}

/// A directory that a walk is in, with the names that it has not visited yet. The root's path is empty.
struct Open {
    path: String,
    names: std::vec::IntoIter<Named>,
}

impl Open {
    fn next(&mut self) -> Option<(String, Kind)> {
        let named = self.names.next()?;
        Some((format!("{}/{}", self.path, named.name), named.kind))
    }
}

/// What a walk does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// Goes on, into the directory if it is one.
    Enter,
    /// Goes on beside it.
    Skip,
    /// Ends.
    Stop,
}
