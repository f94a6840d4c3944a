//! From a path to a node, exactly as Linux walks it.
//!
//! Generic over [`Tree`], so that whoever joins several trees (mounts) into one walks them with the same rules.

use std::collections::HashSet;
use std::hash::Hash;

use crate::{FileType, FsError, Quota};

/// Longest path in bytes, without the terminating zero that C adds.
pub const PATH_MAX: usize = 4095;
/// Most symbolic links followed in one walk.
pub const LINKS_MAX: u32 = 40;

/// Bytes of paths that one walk keeps: a million files with long names. A deep tree of long names has paths that are many
/// times as long as its rows.
const PATHS_MAX: usize = 256 << 20;

/// Makes a walk over a whole tree end whatever its rows say: a directory is entered once, no deeper than a tree can be, and
/// what is remembered has a limit (T-SNAP-02).
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
    /// Enters a directory, so many levels below the root or the start of the walk. [`FsError::Damaged`] if it was entered
    /// before, or is deeper than any directory that was made here.
    pub fn enter(&mut self, directory: N, depth: usize) -> Result<(), FsError> {
        let is_new = self.entered.insert(directory);
        if is_new && depth <= Quota::DEPTH_MAX as usize { Ok(()) } else { Err(FsError::Damaged) }
    }

    /// Keeps a path. [`FsError::FileTooBig`] if there is no more room.
    pub fn keep(&mut self, path: &str) -> Result<(), FsError> {
        self.bytes = self.bytes.saturating_add(path.len());
        if self.bytes <= PATHS_MAX { Ok(()) } else { Err(FsError::FileTooBig) }
    }
}

/// What the walk needs to know of a tree.
pub trait Tree {
    /// A node's name for the tree: an inode number, a mount and an inode number, …
    type Node: Copy;

    /// The node behind `name` in `dir`; `name` is never empty, `.` or `..`. [`FsError::Access`] if `dir` may not be searched.
    fn lookup(&self, dir: Self::Node, name: &str) -> Result<(Self::Node, FileType), FsError>;

    /// The directory above; the root is its own.
    fn parent(&self, dir: Self::Node) -> Result<Self::Node, FsError>;

    /// The target of a symbolic link.
    fn readlink(&self, link: Self::Node) -> Result<String, FsError>;

    /// Whether `.` and `..` may be looked up in `dir`: where permissions count, that takes the right to search it.
    fn search(&self, dir: Self::Node) -> Result<(), FsError>;
}

/// What to do with the last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// `stat`, `open`: a symbolic link is followed.
    Follow,
    /// `lstat`, `O_NOFOLLOW`: it is not, unless a slash follows it.
    NoFollow,
    /// `open` with `O_CREAT`: followed, unless a slash follows it: that is an error whatever it leads to.
    Create,
    /// `mkdir`, `unlink`, `rename`, …: never; the operation is about the name itself.
    Entry,
}

/// The flags of `open` that decide about the path; the default is `O_RDONLY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// `O_WRONLY` or `O_RDWR`
    pub write: bool,
    /// `O_CREAT`
    pub create: bool,
    /// `O_EXCL`
    pub exclusive: bool,
    /// `O_TRUNC`; emptying the file is up to the caller.
    pub truncate: bool,
    /// `O_DIRECTORY`
    pub directory: bool,
    /// `O_NOFOLLOW`
    pub no_follow: bool,
}

impl Open {
    /// How to walk a path for it.
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

/// What `open` is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened<'a, N> {
    /// Use this node.
    Existing(N, FileType),
    /// Create a file of this name in [`Resolved::parent`].
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

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved<N> {
    /// The directory that has (or would have) the last name.
    pub parent: N,
    /// The last name.
    pub name: Name,
    /// The node and its type, if it exists.
    pub node: Option<(N, FileType)>,
    /// Why there is no node: `NoEntry`, or for [`Last::Entry`] what else the last lookup said.
    pub missing: FsError,
    /// Whether the path ended with a slash: then only a directory will do.
    pub slash: bool,
}

impl<N: Copy> Resolved<N> {
    fn found(parent: N, name: Name, node: (N, FileType), slash: bool) -> Self {
        Self { parent, name, node: Some(node), missing: FsError::NoEntry, slash }
    }

    fn absent(parent: N, name: &str, missing: FsError, slash: bool) -> Self {
        Self { parent, name: Name::Normal(name.to_owned()), node: None, missing, slash }
    }

    /// An entry that a listing gave.
    pub(crate) fn entry(parent: N, name: String, node: (N, FileType)) -> Self {
        Self::found(parent, Name::Normal(name), node, false)
    }

    /// The node, which must exist.
    pub fn existing(&self) -> Result<(N, FileType), FsError> {
        self.node.ok_or(self.missing)
    }

    /// The name for `mkdir`: free, and an ordinary one.
    pub fn for_mkdir(&self) -> Result<&str, FsError> {
        match (&self.name, self.node) {
            (Name::Normal(name), None) if self.missing == FsError::NoEntry => Ok(name),
            (Name::Normal(_), None) => Err(self.missing),
            _ => Err(FsError::Exists),
        }
    }

    /// What `open` is to do, after a walk with [`Open::last`].
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

    /// The name for a new link, symbolic link or node: free, ordinary, and without a slash after it.
    pub fn for_new(&self) -> Result<&str, FsError> {
        let name = self.for_mkdir()?;
        if self.slash { Err(FsError::NoEntry) } else { Ok(name) }
    }

    /// The name for `unlink`. That it is a directory's is for the removal to say: permissions come before that.
    pub fn for_unlink(&self) -> Result<&str, FsError> {
        let Name::Normal(name) = &self.name else { return Err(FsError::IsDirectory) };
        match self.existing()? {
            (_, FileType::Directory) if self.slash => Err(FsError::IsDirectory),
            _ if self.slash => Err(FsError::NotDirectory),
            _ => Ok(name),
        }
    }

    /// The name for `rmdir`. That it is not a directory's is for the removal to say.
    pub fn for_rmdir(&self) -> Result<&str, FsError> {
        match &self.name {
            Name::Normal(name) => self.existing().map(|_| name.as_str()),
            Name::Dot => Err(FsError::Invalid),
            Name::DotDot => Err(FsError::NotEmpty),
            Name::Root => Err(FsError::Busy),
        }
    }

    /// The two names for `rename`, from `self` to `to`.
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

/// Walks `path` from `root` if it is absolute, else from `cwd` (which is a directory).
///
/// A missing last component is no error here: `node` is `None`, and with [`Last::Follow`] `parent` and `name` say where a
/// dangling link points, which is where `open` creates the file.
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
                // Linux looks the last names up after it has walked to all of them: `rename` has two.
                // That it may not look is found on the way.
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
