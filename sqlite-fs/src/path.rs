//! Path resolution, exactly as in Linux.
//!
//! Generic over [`Tree`], so that joined trees (mounts) are walked by the same rules.

use std::collections::HashSet;
use std::hash::Hash;

use crate::{FileType, FsError, Quota};

/// Maximum length of a path in bytes, without the terminating zero of C.
pub const PATH_MAX: usize = 4095;
/// Maximum number of symbolic links followed in one walk.
pub const LINKS_MAX: u32 = 40;

/// Maximum size of the paths kept by one walk: a million files with long names. In a deep tree of long names, paths are many
/// times as long as the rows.
const PATHS_MAX: usize = 256 << 20;

/// Ensures that a walk over a whole tree terminates whatever its rows contain: a directory is entered once, no deeper than a tree
/// can be, and memory is limited (T-SNAP-02).
#[derive(Debug)]
pub struct Bounds<N> {
    entered: HashSet<N>,
    bytes: usize,
}

impl<N> Default for Bounds<N> {
    fn default() -> Self {
        Self { entered: HashSet::new(), bytes: 0 }
    }
}

impl<N: Eq + Hash> Bounds<N> {
    /// Enters a directory at this depth below the root or the start of the walk. Returns [`FsError::Damaged`] if it was entered
    /// before, or is deeper than any valid directory.
    pub fn enter(&mut self, directory: N, depth: usize) -> Result<(), FsError> {
        let is_new = self.entered.insert(directory);
        if is_new && depth <= Quota::DEPTH_MAX as usize { Ok(()) } else { Err(FsError::Damaged) }
    }

    /// Keeps a path. Returns [`FsError::FileTooBig`] if the limit is reached.
    pub fn keep(&mut self, path: &str) -> Result<(), FsError> {
        self.bytes = self.bytes.saturating_add(path.len());
        if self.bytes <= PATHS_MAX { Ok(()) } else { Err(FsError::FileTooBig) }
    }
}

/// The operations on a tree that a walk needs.
pub trait Tree {
    /// The identifier of a node: an inode number, a mount and an inode number, …
    type Node: Copy;

    /// Returns the node called `name` in `dir`; `name` is never empty, `.` or `..`. Returns [`FsError::Access`] if `dir` may not
    /// be searched.
    fn lookup(&self, dir: Self::Node, name: &str) -> Result<(Self::Node, FileType), FsError>;

    /// Returns the parent directory; the root is its own parent.
    fn parent(&self, dir: Self::Node) -> Result<Self::Node, FsError>;

    /// Returns the target of a symbolic link.
    fn readlink(&self, link: Self::Node) -> Result<String, FsError>;

    /// Returns whether `.` and `..` may be looked up in `dir`, which requires search permission if permissions apply.
    fn search(&self, dir: Self::Node) -> Result<(), FsError>;
}

/// How to resolve the last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// `stat`, `open`: a symbolic link is followed.
    Follow,
    /// `lstat`, `O_NOFOLLOW`: a symbolic link is not followed, unless a slash comes after it.
    NoFollow,
    /// `open` with `O_CREAT`: followed, but a slash after it is an error whatever it leads to.
    Create,
    /// `mkdir`, `unlink`, `rename`, …: never followed; the operation applies to the name itself.
    Entry,
}

/// The flags of `open` that affect path resolution; the default is `O_RDONLY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// `O_WRONLY` or `O_RDWR`
    pub write: bool,
    /// `O_CREAT`
    pub create: bool,
    /// `O_EXCL`
    pub exclusive: bool,
    /// `O_TRUNC`; the caller empties the file.
    pub truncate: bool,
    /// `O_DIRECTORY`
    pub directory: bool,
    /// `O_NOFOLLOW`
    pub no_follow: bool,
}

impl Open {
    /// Returns how to resolve the last component.
    #[must_use]
    pub fn last(&self) -> Last {
        match (self.create, self.exclusive || self.no_follow) {
            (true, true) => Last::Entry,
            (true, false) => Last::Create,
            (false, _) if self.no_follow => Last::NoFollow,
            (false, _) => Last::Follow,
        }
    }
}

/// The result of path resolution for `open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened<'a, N> {
    /// Use this node.
    Existing(N, FileType),
    /// Create a file with this name in [`Resolved::parent`].
    New(&'a str),
}

/// The last component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// An ordinary name.
    Normal(String),
    /// `.`
    Dot,
    /// `..`
    DotDot,
    /// The path was `/`.
    Root,
}

/// The result of resolving a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved<N> {
    /// The directory that contains (or would contain) the last name.
    pub parent: N,
    /// The last name.
    pub name: Name,
    /// The node and its type, if it exists.
    pub node: Option<(N, FileType)>,
    /// The reason if there is no node: `NoEntry`, or for [`Last::Entry`] another error of the last lookup.
    pub missing: FsError,
    /// Whether the path ended with a slash, so that only a directory is valid.
    pub slash: bool,
}

impl<N: Copy> Resolved<N> {
    fn found(parent: N, name: Name, node: (N, FileType), slash: bool) -> Self {
        Self { parent, name, node: Some(node), missing: FsError::NoEntry, slash }
    }

    fn absent(parent: N, name: &str, missing: FsError, slash: bool) -> Self {
        Self { parent, name: Name::Normal(name.to_owned()), node: None, missing, slash }
    }

    /// Creates the result for an entry of a listing.
    pub(crate) fn entry(parent: N, name: String, node: (N, FileType)) -> Self {
        Self::found(parent, Name::Normal(name), node, false)
    }

    /// Returns the node, which must exist.
    pub fn existing(&self) -> Result<(N, FileType), FsError> {
        self.node.ok_or(self.missing)
    }

    /// Returns the name for `mkdir`, which must be unused and ordinary.
    pub fn for_mkdir(&self) -> Result<&str, FsError> {
        match (&self.name, self.node) {
            (Name::Normal(name), None) if self.missing == FsError::NoEntry => Ok(name),
            (Name::Normal(_), None) => Err(self.missing),
            _ => Err(FsError::Exists),
        }
    }

    /// Returns what `open` must do, after a walk with [`Open::last`].
    pub fn for_open(&self, open: &Open) -> Result<Opened<'_, N>, FsError> {
        if open.create && self.slash && matches!(self.name, Name::Normal(_)) {
            return Err(FsError::IsDirectory);
        }
        let Some((node, kind)) = self.node else {
            return match (&self.name, self.missing) {
                (Name::Normal(name), FsError::NoEntry) if open.create => Ok(Opened::New(name)),
                (_, missing) => Err(missing),
            };
        };
        if open.create && open.exclusive {
            return Err(FsError::Exists);
        }
        let is_dir = kind == FileType::Directory;
        if is_dir && (open.create || open.write || open.truncate) {
            return Err(FsError::IsDirectory);
        }
        if open.directory && !is_dir {
            return Err(FsError::NotDirectory);
        }
        if kind == FileType::Symlink {
            return Err(FsError::Loop);
        }
        Ok(Opened::Existing(node, kind))
    }

    /// Returns the name for a new link, symbolic link or node, which must be unused, ordinary, and without a trailing slash.
    pub fn for_new(&self) -> Result<&str, FsError> {
        let name = self.for_mkdir()?;
        if self.slash { Err(FsError::NoEntry) } else { Ok(name) }
    }

    /// Returns the name for `unlink`. Does not check for a directory; `unlink` reports EISDIR after checking permissions.
    pub fn for_unlink(&self) -> Result<&str, FsError> {
        let Name::Normal(name) = &self.name else { return Err(FsError::IsDirectory) };
        match self.existing()? {
            (_, FileType::Directory) if self.slash => Err(FsError::IsDirectory),
            _ if self.slash => Err(FsError::NotDirectory),
            _ => Ok(name),
        }
    }

    /// Returns the name for `rmdir`. Does not check for a directory; `rmdir` reports ENOTDIR.
    pub fn for_rmdir(&self) -> Result<&str, FsError> {
        match &self.name {
            Name::Normal(name) => self.existing().map(|_| name.as_str()),
            Name::Dot => Err(FsError::Invalid),
            Name::DotDot => Err(FsError::NotEmpty),
            Name::Root => Err(FsError::Busy),
        }
    }

    /// Returns the two names for `rename`, from `self` to `to`.
    pub fn for_rename<'a>(&'a self, to: &'a Self) -> Result<(&'a str, &'a str), FsError> {
        let (Name::Normal(old), Name::Normal(new)) = (&self.name, &to.name) else { return Err(FsError::Busy) };
        let (_, kind) = self.existing()?;
        if to.node.is_none() && to.missing != FsError::NoEntry {
            return Err(to.missing);
        }
        if kind != FileType::Directory && (self.slash || to.slash) {
            return Err(FsError::NotDirectory);
        }
        Ok((old, new))
    }
}

/// Walks `path` from `root` if it is absolute, else from the directory `cwd`.
///
/// A missing last component is not an error here: `node` is `None`, and with [`Last::Follow`] `parent` and `name` are the target
/// of a dangling link, which is where `open` creates the file.
pub fn resolve<T: Tree + ?Sized>(
    tree: &T,
    root: T::Node,
    cwd: T::Node,
    path: &str,
    last: Last,
) -> Result<Resolved<T::Node>, FsError> {
    if path.is_empty() {
        return Err(FsError::NoEntry);
    }
    if path.len() > PATH_MAX {
        return Err(FsError::NameTooLong);
    }
    if path.contains('\0') {
        return Err(FsError::Invalid);
    }
    let mut expanded: String;
    let mut text = path;
    let mut links = 0;
    let mut dir = cwd;
    'walk: loop {
        if text.starts_with('/') {
            dir = root;
        }
        let mut rest = text.trim_start_matches('/');
        if rest.is_empty() {
            return Ok(Resolved::found(root, Name::Root, (root, FileType::Directory), true));
        }
        loop {
            let (name, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let slash = !tail.is_empty();
            rest = tail.trim_start_matches('/');
            let is_last = rest.is_empty();
            if name == "." || name == ".." {
                let parent = dir;
                tree.search(dir)?;
                if name == ".." {
                    dir = tree.parent(dir)?;
                }
                if is_last {
                    let name = if name == "." { Name::Dot } else { Name::DotDot };
                    return Ok(Resolved::found(parent, name, (dir, FileType::Directory), slash));
                }
                continue;
            }
            if is_last && slash && last == Last::Create {
                tree.search(dir)?;
                return Ok(Resolved::absent(dir, name, FsError::NoEntry, slash));
            }
            let (node, kind) = match tree.lookup(dir, name) {
                Ok(found) => found,
                Err(FsError::NoEntry) if is_last => return Ok(Resolved::absent(dir, name, FsError::NoEntry, slash)),
                // Linux looks up the last names after it has walked to all of them (`rename` has two), but checks search
                // permission on the way.
                Err(error) if is_last && last == Last::Entry && error != FsError::Access => {
                    return Ok(Resolved::absent(dir, name, error, slash));
                }
                Err(error) => return Err(error),
            };
            let follow = match last {
                Last::Follow | Last::Create => true,
                Last::NoFollow => !is_last || slash,
                Last::Entry => !is_last,
            };
            if kind == FileType::Symlink && follow {
                links += 1;
                if links > LINKS_MAX {
                    return Err(FsError::Loop);
                }
                let mut target = tree.readlink(node)?;
                if target.is_empty() {
                    return Err(FsError::NoEntry);
                }
                target.push_str(tail);
                expanded = target;
                text = &expanded;
                continue 'walk;
            }
            if is_last {
                if slash && last != Last::Entry && kind != FileType::Directory {
                    return Err(FsError::NotDirectory);
                }
                return Ok(Resolved::found(dir, Name::Normal(name.to_owned()), (node, kind), slash));
            }
            if kind != FileType::Directory {
                return Err(FsError::NotDirectory);
            }
            dir = node;
        }
    }
}
