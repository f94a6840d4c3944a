//! The one way to a sandbox's files: rows, the fixed world around them, mounts and the other name of the root, as one tree.
//!
//! What the rows are decides what can be done: a [`Reader`](sqlite_fs::Reader) is the last committed state and never waits for
//! a command, a [`Transaction`] is a run and can change them. (A past version will be the third.)

use std::sync::{Arc, Mutex, PoisonError};

use abi::stat::Stat;
use sqlite_fs::path::{Bounds, Tree};
use sqlite_fs::{Content, Database, Entry, FileType, Fs, FsError, ROOT, Reader, Rows, Transaction, Volume};

use super::mounts::{self, MountPoint, Mounts, OverlayChanges};
use super::policy::{self, Operation, Place, Principal};
use super::{ALIAS_NODE, Fixed, Node, ROOT_NODE, Thing};
use crate::Error;
use crate::defaults::USER;

/// Device number of the database's files: any constant that is not the fixed world's.
const ROWS_DEVICE: u64 = 1;

/// What a directory says its size is, as on ext4: programs take 0 for "empty".
const DIRECTORY_SIZE: u64 = 4096;

/// The program that calls functions of the embedding program.
pub(crate) const TOOL: &str = "tool";

// The root directory also shows the fixed world's names: first those, under cookies no row can have, then the rows that
// they do not hide.
const FIXED_COOKIES: u64 = 1 << 62;

/// What all views of a sandbox have in common.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The world around the rows.
    pub(crate) world: &'static Fixed,
    /// Host directories.
    pub(crate) mounts: Arc<[MountPoint]>,
    /// Another name under which the root directory is seen in itself.
    pub(crate) alias: Option<Arc<str>>,
    /// Functions of the embedding program, which are found beside the program that calls them.
    pub(crate) tools: Arc<[String]>,
    /// Whether redirections, `touch` and `tee` create the directories above their files, as LocalSandbox's shell does.
    pub(crate) creates_parents: bool,
}

impl Default for Scope {
    fn default() -> Self {
        Self { world: Fixed::world(), mounts: Arc::from([]), alias: None, tools: Arc::from([]), creates_parents: false }
    }
}

/// The files of a sandbox.
pub(crate) struct View<R> {
    pub(super) rows: R,
    fixed: &'static Fixed,
    /// `None` when nothing is mounted, which then costs nothing.
    pub(super) mounts: Option<Box<Mounts>>,
    alias: Option<Arc<str>>,
    tools: Arc<[String]>,
    creates_parents: bool,
    principal: Principal,
    /// Held from looking where a file ends to writing there: nothing of two that append at once is lost.
    pub(super) appending: Mutex<()>,
}

impl<R: Rows> View<R> {
    /// The files as these rows have them. A mount point that is not there is not shown.
    pub(crate) fn new(rows: R, scope: &Scope) -> Result<Self, FsError> {
        let mounts = if scope.mounts.is_empty() { None } else { Some(Box::new(Mounts::new(&scope.mounts, &rows)?)) };
        Ok(Self {
            rows,
            fixed: scope.world,
            mounts,
            alias: scope.alias.clone(),
            tools: Arc::clone(&scope.tools),
            creates_parents: scope.creates_parents,
            principal: Principal::Embedder,
            appending: Mutex::new(()),
        })
    }

    /// Operations on whole files by path, as the sandbox's user.
    pub(crate) fn fs(&self) -> Fs<'_, Self> {
        Fs::new(self).owner(USER)
    }

    /// Does several things on one state.
    pub(crate) fn at_one_state<T>(&self, work: impl FnOnce(&Self) -> Result<T, Error>) -> Result<T, Error> {
        let mut done = None;
        self.rows
            .at_once(|| {
                done = Some(work(self));
                Ok(())
            })
            .map_err(sqlite_fs::Error::from)?;
        done.unwrap_or_else(|| Err(sqlite_fs::Error::Busy.into()))
    }

    /// The lines of `/proc/mounts`.
    pub(crate) fn mount_lines(&self) -> String {
        let mounted = self.mounts.as_ref().map(|mounts| mounts.lines()).unwrap_or_default();
        format!("sandlite / sandlite rw,relatime 0 0\n{mounted}")
    }

    /// The metadata of a node as a guest sees it. A descriptor has none here: its process knows.
    pub(crate) fn attributes(&self, node: Node) -> Result<Stat, FsError> {
        match self.current(node) {
            Node::Row(ino) => self.rows.stat(ino).map(of_row),
            Node::Fixed(id) => Ok(self.fixed.stat(id)),
            Node::Host(id) => self.mounts()?.stat(id),
            Node::Descriptor(_) => Err(FsError::NoEntry),
        }
    }

    /// Asks the policy about an operation on a node.
    pub(super) fn decide(&self, node: Node, operation: Operation) -> Result<(), FsError> {
        policy::decide(self.principal, self.place(node)?, operation)
    }

    fn place(&self, node: Node) -> Result<Place, FsError> {
        match node {
            Node::Row(ino) => {
                let pinned = self.mounts.as_deref().is_some_and(|mounts| mounts.is_pinned(ino));
                Ok(Place { writable: true, pinned })
            }
            Node::Host(id) => {
                let mounts = self.mounts()?;
                Ok(Place { writable: mounts.point(id)?.overlay, pinned: mounts.place(id)?.is_none() })
            }
            Node::Fixed(_) | Node::Descriptor(_) => Ok(Place { writable: false, pinned: false }),
        }
    }

    /// Checks whether a file of this mode may be opened so.
    pub(crate) fn may_open(&self, node: Node, mode: u32, read: bool, write: bool) -> Result<(), FsError> {
        self.decide(node, Operation::Open { mode, read, write })
    }

    /// What is known of the content of a node without reading it.
    pub(crate) fn content(&self, node: Node, stat: &sqlite_fs::Stat) -> Option<Content> {
        matches!(self.current(node), Node::Row(_)).then(|| self.rows.content(stat))?
    }

    /// Keeps what whoever has read all of a node knows of it.
    pub(crate) fn keep_content(&self, node: Node, stat: &sqlite_fs::Stat, content: Content) {
        if matches!(self.current(node), Node::Row(_)) {
            self.rows.keep_content(stat, content);
        }
    }

    /// Whether the program of this name is a function of the embedding program: no other program has the name.
    pub(crate) fn is_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool == name) && guests::programs().all(|(program, _)| program != name)
    }

    /// Whether redirections create the directories above their files.
    pub(crate) fn creates_parents(&self) -> bool {
        self.creates_parents
    }

    /// What a node of the fixed world is; `None` for rows.
    pub(crate) fn thing(&self, node: Node) -> Option<&'static Thing> {
        match node {
            Node::Fixed(id) => Some(self.fixed.thing(id)),
            _ => None,
        }
    }

    /// Names of a directory made of rows, and of the fixed world if it is the root.
    pub(super) fn readdir_rows(&self, dir: u64, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError> {
        if dir != ROOT {
            return self.rows.readdir(dir, cookie, limit);
        }
        let (mut entries, mut after) = (Vec::new(), cookie);
        if cookie == 0 || cookie > FIXED_COOKIES {
            entries = self.fixed.readdir(Fixed::ROOT, cookie.saturating_sub(FIXED_COOKIES), limit)?;
            entries.iter_mut().for_each(|entry| entry.cookie += FIXED_COOKIES);
            after = 0;
        }
        let listed = self.rows.readdir(dir, after, limit.saturating_sub(entries.len()))?;
        entries.extend(listed.into_iter().filter(|entry| self.fixed.lookup(Fixed::ROOT, &entry.name).is_none()));
        Ok(entries)
    }
}

impl View<Reader> {
    /// The rows that it is made over, for what is not a file.
    pub(crate) fn reader(&self) -> &Reader {
        &self.rows
    }
}

impl View<Transaction> {
    /// The files as a run sees and changes them, with the directories that mounts are at.
    pub(crate) fn of_run(rows: Transaction, scope: &Scope) -> Result<Self, FsError> {
        mounts::make_mount_points(&scope.mounts, &rows)?;
        Self::new(rows, scope)
    }

    /// The files of nobody: those of an empty database.
    pub(crate) fn of_nothing() -> Result<Self, sqlite_fs::Error> {
        Ok(Self::new(Database::options().open()?.begin(None)?, &Scope::default())?)
    }

    /// The same as guests see it: the user's permission bits count.
    pub(crate) fn for_guests(self) -> Result<Self, sqlite_fs::Error> {
        self.rows.obey_modes(true)?;
        Ok(Self { principal: Principal::Guest, ..self })
    }

    /// The end of [`for_guests`](Self::for_guests): from here on it is the host's.
    pub(crate) fn after_guests(self) -> Result<Self, sqlite_fs::Error> {
        self.rows.obey_modes(false)?;
        Ok(Self { principal: Principal::Embedder, ..self })
    }

    /// What overlays did so far.
    pub(crate) fn overlay_changes(&self) -> OverlayChanges {
        let changes = self.mounts.as_ref().map(|mounts| mounts.changes.lock().unwrap_or_else(PoisonError::into_inner).clone());
        changes.unwrap_or_default()
    }

    /// The run's transaction.
    pub(crate) fn transaction(&self) -> &Transaction {
        &self.rows
    }

    /// Gives the transaction back when the run is over.
    pub(crate) fn into_transaction(self) -> Transaction {
        self.rows
    }

    /// Keeps an unlinked file readable while it is open.
    pub(crate) fn hold(&self, node: Node) {
        let row = match (node, &self.mounts) {
            (Node::Row(ino), _) => Some(ino),
            (Node::Host(id), Some(mounts)) => mounts.hold(id),
            _ => None,
        };
        if let Some(ino) = row {
            let _ = self.rows.hold(ino);
        }
    }

    /// The end of a [`hold`](Self::hold).
    pub(crate) fn release(&self, node: Node) {
        let row = match (node, &self.mounts) {
            (Node::Row(ino), _) => Some(ino),
            (Node::Host(id), Some(mounts)) => mounts.release(id),
            _ => None,
        };
        if let Some(ino) = row {
            let _ = self.rows.release(ino);
        }
    }
}

impl<R: Rows> Tree for View<R> {
    type Node = Node;

    fn lookup(&self, dir: Node, name: &str) -> Result<(Node, FileType), FsError> {
        match self.current(dir) {
            Node::Row(ino) if dir == ALIAS_NODE => self.rows.lookup(ino, name).map(|(ino, kind)| (Node::Row(ino), kind)),
            Node::Row(ino) => {
                if ino == ROOT
                    && let Some(found) = self.fixed.lookup(Fixed::ROOT, name)
                {
                    return Ok(found);
                }
                if ino == ROOT && self.alias.as_deref() == Some(name) {
                    return Ok((ALIAS_NODE, FileType::Directory));
                }
                let found = self.rows.lookup(ino, name);
                match &self.mounts {
                    None => found.map(|(ino, kind)| (Node::Row(ino), kind)),
                    Some(mounts) => self.lookup_mounted(mounts, ino, name, found),
                }
            }
            Node::Fixed(id) => {
                // A tool is run by the program `tool`, in whose directory it is found.
                let tool = || self.tools.iter().any(|tool| tool == name).then(|| self.fixed.lookup(id, TOOL)).flatten();
                self.fixed.lookup(id, name).or_else(tool).ok_or(FsError::NoEntry)
            }
            Node::Host(id) => self.lookup_lower(id, name),
            Node::Descriptor(_) => Err(FsError::NotDirectory),
        }
    }

    fn parent(&self, dir: Node) -> Result<Node, FsError> {
        match self.current(dir) {
            Node::Row(ino) => self.rows.parent(ino).map(Node::Row),
            Node::Fixed(id) => Ok(self.fixed.parent(id).map_or(ROOT_NODE, Node::Fixed)),
            Node::Host(id) => self.parent_of_host(id),
            Node::Descriptor(_) => Err(FsError::NotDirectory),
        }
    }

    fn readlink(&self, link: Node) -> Result<String, FsError> {
        match self.current(link) {
            Node::Row(ino) => self.rows.readlink(ino),
            Node::Fixed(id) => match self.fixed.thing(id) {
                Thing::Link(target) => Ok((*target).to_owned()),
                _ => Err(FsError::Invalid),
            },
            Node::Host(id) => self.mounts()?.read_link(id),
            Node::Descriptor(_) => Err(FsError::Invalid),
        }
    }

    fn search(&self, dir: Node) -> Result<(), FsError> {
        match self.current(dir) {
            Node::Row(ino) => self.rows.search(ino),
            // The fixed world is open to all, and what a host directory allows its own system says.
            Node::Fixed(_) | Node::Host(_) | Node::Descriptor(_) => Ok(()),
        }
    }
}

impl<R: Rows> Volume for View<R> {
    fn root(&self) -> Node {
        ROOT_NODE
    }

    fn stat(&self, node: Node) -> Result<sqlite_fs::Stat, FsError> {
        let Stat { ino, mode, nlink, uid, gid, rdev, size, atime, mtime, ctime, .. } = self.attributes(node)?;
        Ok(sqlite_fs::Stat { ino, mode, nlink, uid, gid, rdev, size, atime, mtime, ctime })
    }

    fn read(&self, file: Node, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        match self.current(file) {
            Node::Row(ino) => self.rows.read(ino, offset, buffer),
            Node::Fixed(id) => self.fixed.read(id, offset, buffer),
            Node::Host(id) => self.mounts()?.read(id, offset, buffer),
            Node::Descriptor(_) => Err(FsError::Invalid),
        }
    }

    fn readdir(&self, dir: Node, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError> {
        match self.current(dir) {
            Node::Row(ino) if dir == ALIAS_NODE => self.rows.readdir(ino, cookie, limit),
            Node::Row(ino) => match self.lower_of(ino) {
                None => self.readdir_rows(ino, cookie, limit),
                Some(lower) => self.readdir_merged(Some(ino), lower, cookie, limit),
            },
            Node::Fixed(id) => self.fixed.readdir(id, cookie, limit),
            Node::Host(id) => self.readdir_merged(None, id, cookie, limit),
            Node::Descriptor(_) => Err(FsError::NotDirectory),
        }
    }

    fn child(&self, dir: Node, entry: &Entry) -> Result<Node, FsError> {
        match dir {
            Node::Row(_) if self.mounts.is_none() && dir != ROOT_NODE => Ok(Node::Row(entry.ino)),
            _ => Ok(self.lookup(dir, &entry.name)?.0),
        }
    }

    fn is_joined(&self, dir: Node) -> bool {
        self.mounts.is_some() || dir == ROOT_NODE
    }

    // It is in every sandbox.
    fn is_left_out(&self, node: Node) -> bool {
        matches!(node, Node::Fixed(_) | Node::Descriptor(_))
    }

    // How deep a mounted directory is, its own system says.
    fn enter(&self, bounds: &mut Bounds<Node>, dir: Node, depth: usize) -> Result<(), FsError> {
        let node = self.current(dir);
        let depth = if matches!(node, Node::Row(_)) && self.mounts.is_none() { depth } else { 0 };
        bounds.enter(node, depth)
    }

    fn at_once<T>(&self, work: impl FnOnce() -> Result<T, FsError>) -> Result<T, FsError> {
        self.rows.at_once(work)
    }
}

// A row's metadata in the guest's words.
fn of_row(row: sqlite_fs::Stat) -> Stat {
    Stat {
        dev: ROWS_DEVICE,
        ino: row.ino,
        mode: row.mode,
        nlink: row.nlink,
        uid: row.uid,
        gid: row.gid,
        rdev: row.rdev,
        size: if row.is_dir() { DIRECTORY_SIZE } else { row.size },
        atime: row.atime,
        mtime: row.mtime,
        ctime: row.ctime,
    }
}
