//! The only access to a sandbox's files: rows, the fixed world around them, mounts and the other name of the root, as one tree.
//!
//! The kind of rows determines what can be done: a [`Reader`](sqlite_fs::Reader) is the last committed state and never waits for
//! a command, a [`Transaction`] is a run and can change them.

use std::sync::{Arc, Mutex, PoisonError};

use abi::stat::Stat;
use presets::Access;
use sqlite_fs::path::{Bounds, Tree};
use sqlite_fs::{Content, Database, Entry, FileType, Fs, FsError, ROOT, Reader, Rows, Transaction, Volume};

use super::mounts::{self, HOST_INODES, HostId, MountPoint, Mounts, OverlayChanges};
use super::policy::{self, Binding, Guard, Operation, Place, Principal};
use super::source::Patience;
use super::{ALIAS_NODE, Fixed, FixedId, Node, ROOT_NODE, Thing};
use crate::defaults::USER;
use crate::host::Prepared;
use crate::programs::Programs;
use crate::{Cancel, Error};

/// Device number of the database's files: any constant other than the fixed world's.
const ROWS_DEVICE: u64 = 1;

/// The size of a directory, as on ext4, because programs interpret 0 as "empty".
const DIRECTORY_SIZE: u64 = 4096;

/// The name of the directory for temporary files, in the root.
const TMP: &str = "tmp";

/// The program that calls functions of the embedding program.
pub(crate) const TOOL: &str = "tool";

// The root directory also shows the fixed world's names: first those, with cookies that no row can have, then the rows that they
// do not hide.
pub(super) const FIXED_COOKIES: u64 = 1 << 62;

/// The common part of all views of a sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The world around the rows.
    pub(crate) world: &'static Fixed,
    /// The mounts.
    pub(crate) mounts: Arc<[MountPoint]>,
    /// The time limit of slow sources.
    pub(crate) patience: Patience,
    /// Another name under which the root directory appears in itself.
    pub(crate) alias: Option<Arc<str>>,
    /// Functions of the embedding program, found next to the program that calls them.
    pub(crate) tools: Arc<[String]>,
    /// Programs that only this sandbox has.
    pub(crate) programs: Arc<Programs>,
    /// Whether redirections, `touch` and `tee` create missing parent directories, as in LocalSandbox's shell.
    pub(crate) creates_parents: bool,
    /// The access restrictions.
    pub(crate) binding: Binding,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            world: Fixed::world(),
            mounts: Arc::from([]),
            patience: Patience::default(),
            alias: None,
            tools: Arc::from([]),
            programs: Arc::default(),
            creates_parents: false,
            binding: Binding::default(),
        }
    }
}

impl Scope {
    /// Returns the same for a run, whose end ends every wait for a source.
    pub(crate) fn of_run(&self, cancel: &Cancel) -> Self {
        let patience = Patience { cancel: cancel.clone(), ..self.patience.clone() };
        Self { patience, ..self.clone() }
    }
}

/// The files of a sandbox.
pub(crate) struct View<R> {
    pub(super) rows: R,
    fixed: &'static Fixed,
    /// `None` if nothing is mounted, which then costs nothing.
    pub(super) mounts: Option<Box<Mounts>>,
    alias: Option<Arc<str>>,
    tools: Arc<[String]>,
    programs: Arc<Programs>,
    creates_parents: bool,
    pub(super) principal: Principal,
    /// The rules of policies; `None` if there are none, which then costs nothing.
    pub(super) guard: Option<Box<Guard>>,
    /// Held from finding the end of a file to writing there, so that concurrent appends lose nothing.
    pub(super) appending: Mutex<()>,
}

impl<R: Rows> View<R> {
    /// Creates the view of these rows. A missing mount point is not shown.
    pub(crate) fn new(rows: R, scope: &Scope) -> Result<Self, FsError> {
        let mounts = match &*scope.mounts {
            [] => None,
            points => Some(Box::new(Mounts::new(points, &scope.patience, &rows)?)),
        };
        let guard = scope.binding.rules()?.map(|rules| Guard::new(rules, &rows)).transpose()?.map(Box::new);
        Ok(Self {
            rows,
            fixed: scope.world,
            mounts,
            alias: scope.alias.clone(),
            tools: Arc::clone(&scope.tools),
            programs: Arc::clone(&scope.programs),
            creates_parents: scope.creates_parents,
            principal: Principal::Embedder,
            guard,
            appending: Mutex::new(()),
        })
    }

    /// Returns operations on whole files by path, as the sandbox's user.
    pub(crate) fn fs(&self) -> Fs<'_, Self> {
        Fs::new(self).owner(USER)
    }

    /// Runs several operations on one state.
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

    /// Finds the node at a path that a list of changes names, if there is one. Links are not followed, because what they lead to
    /// has another path.
    pub(crate) fn find_listed(&self, path: &str) -> Result<Option<(Node, FileType)>, FsError> {
        let mut found = (ROOT_NODE, FileType::Directory);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if found.1 != FileType::Directory {
                return Ok(None);
            }
            found = match self.lookup(found.0, name) {
                Ok(found) => found,
                Err(FsError::NoEntry | FsError::NotDirectory) => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        Ok(Some(found))
    }

    /// Returns the lines of `/proc/mounts`.
    pub(crate) fn mount_lines(&self) -> String {
        let mounted = self.mounts.as_ref().map(|mounts| mounts.lines()).unwrap_or_default();
        let plain = |path: &str| path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\");
        let is_seen = |line: &&str| !line.split(' ').nth(1).is_some_and(|path| self.hides_path(&plain(path)));
        let mounted: String = mounted.split_inclusive('\n').filter(is_seen).collect();
        format!("sandlite / sandlite rw,relatime 0 0\n{mounted}")
    }

    /// Returns the metadata of a node as a guest sees it. Descriptors have none here; their process has it.
    pub(crate) fn attributes(&self, node: Node) -> Result<Stat, FsError> {
        match self.current(node) {
            Node::Row(ino) => self.rows.stat(ino).map(|row| self.of_row(row)),
            Node::Fixed(id) => {
                let stat = self.fixed.stat(id);
                Ok(self.own_file(id).map_or(stat, |file| Stat { size: file.len() as u64, ..stat }))
            }
            Node::Host(id) => self.mounts()?.stat(id),
            Node::Descriptor(_) => Err(FsError::NoEntry),
        }
    }

    /// Checks an operation on a node by its location. Rules are checked before, on the node that the caller named
    /// ([`allow`](Self::allow)): a file can be created in a directory that itself may not be changed.
    pub(super) fn decide(&self, node: Node, operation: Operation) -> Result<(), FsError> {
        policy::decide(self.principal, self.place(node)?, operation)
    }

    fn place(&self, node: Node) -> Result<Place, FsError> {
        match node {
            Node::Row(ino) => {
                let pinned = node == ALIAS_NODE || self.mounts.as_deref().is_some_and(|mounts| mounts.is_pinned(ino));
                Ok(Place { writable: true, pinned, access: Access::Write })
            }
            Node::Host(id) => {
                let mounts = self.mounts()?;
                let (writable, pinned) = (mounts.point(id)?.overlay, mounts.place(id)?.is_none());
                Ok(Place { writable, pinned, access: Access::Write })
            }
            Node::Fixed(_) | Node::Descriptor(_) => Ok(Place { writable: false, pinned: false, access: Access::Write }),
        }
    }

    /// Checks whether a directory of a source may be searched.
    pub(super) fn may_search(&self, dir: HostId) -> Result<(), FsError> {
        if self.principal == Principal::Guest { self.mounts()?.may_search(dir) } else { Ok(()) }
    }

    /// Returns whether a name in a directory of rows is the fixed world's or the root's other one.
    pub(super) fn is_fixed_name(&self, dir: u64, name: &str) -> bool {
        dir == ROOT && (self.fixed.lookup(Fixed::ROOT, name).is_some() || self.alias.as_deref() == Some(name))
    }

    /// Checks whether a file with this mode may be opened in this way.
    pub(crate) fn may_open(&self, node: Node, mode: u32, read: bool, write: bool, grow: bool) -> Result<(), FsError> {
        let operation = Operation::Open { mode, read, write, grow };
        self.allow(node, operation)?;
        self.decide(node, operation)
    }

    /// Returns whether a name in the root directory is the fixed world's.
    pub(super) fn is_fixed(&self, name: &str) -> bool {
        self.fixed.lookup(Fixed::ROOT, name).is_some()
    }

    /// Returns whether the number in an entry is a row's: those of host files are synthetic.
    pub(super) fn is_row(&self, ino: u64) -> bool {
        self.mounts.is_none() || ino < HOST_INODES
    }

    /// Returns the entries of a directory, including hidden ones.
    pub(super) fn all_entries(&self, dir: Node, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError> {
        match self.current(dir) {
            Node::Row(ino) => match self.lower_of(ino) {
                None if dir == ALIAS_NODE => self.rows.readdir(ino, cookie, limit),
                None => self.readdir_rows(ino, cookie, limit),
                Some(lower) => self.readdir_merged(Some(ino), lower, cookie, limit),
            },
            Node::Fixed(id) => self.own_entries(id, cookie, limit),
            Node::Host(id) => self.readdir_merged(None, id, cookie, limit),
            Node::Descriptor(_) => Err(FsError::NotDirectory),
        }
    }

    // A program that may not be started does not exist.
    fn is_started(&self, (node, _): (Node, FileType)) -> bool {
        match self.thing(node) {
            Some(Thing::Program(_, program)) => self.may_start(program),
            _ => true,
        }
    }

    // A row's metadata in the guest's words.
    fn of_row(&self, row: sqlite_fs::Stat) -> Stat {
        let is_dir = row.is_dir();
        Stat {
            dev: ROWS_DEVICE,
            ino: row.ino,
            mode: row.mode,
            // It would count hidden directories.
            nlink: if is_dir && self.hides() { 1 } else { row.nlink },
            uid: row.uid,
            gid: row.gid,
            rdev: row.rdev,
            size: if is_dir { DIRECTORY_SIZE } else { row.size },
            atime: row.atime,
            mtime: row.mtime,
            ctime: row.ctime,
        }
    }

    /// Returns the cached facts about the content of a node.
    pub(crate) fn content(&self, node: Node, stat: &sqlite_fs::Stat) -> Option<Content> {
        matches!(self.current(node), Node::Row(_)).then(|| self.rows.content(stat))?
    }

    /// Caches facts about a node that was read completely.
    pub(crate) fn keep_content(&self, node: Node, stat: &sqlite_fs::Stat, content: Content) {
        if matches!(self.current(node), Node::Row(_)) {
            self.rows.keep_content(stat, content);
        }
    }

    /// Returns whether the program with this name is a function of the embedding program: no other program has the name.
    pub(crate) fn is_tool(&self, name: &str) -> bool {
        self.may_start(name)
            && self.tools.iter().any(|tool| tool == name)
            && guests::programs().all(|(program, _)| program != name)
    }

    /// Returns the program that only this sandbox has at a node.
    pub(crate) fn own_program(&self, node: Node) -> Option<&Prepared> {
        let Node::Fixed(id) = node else { return None };
        self.programs.get(id.own_number()?).map(|(_, prepared)| prepared)
    }

    // The content of such a program's file: a copy of it is the same program, as for all programs.
    fn own_file(&self, id: FixedId) -> Option<Vec<u8>> {
        self.programs.get(id.own_number()?).map(|(name, _)| abi::program::file(name))
    }

    // The names in `/usr/local/bin`, after those that every sandbox has there.
    fn own_entries(&self, id: FixedId, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError> {
        let mut entries = self.fixed.readdir(id, cookie, limit)?;
        if id != self.fixed.local_bin() {
            return Ok(entries);
        }
        let fixed = self.fixed.readdir(id, 0, usize::MAX)?.len();
        let skip = usize::try_from(cookie).unwrap_or(usize::MAX).saturating_sub(fixed);
        let mut names: Vec<&str> = self.programs.names().filter(|name| self.may_start(name)).collect();
        names.sort_unstable();
        let numbered = (fixed as u64 + 1..).zip(names).skip(skip).take(limit.saturating_sub(entries.len()));
        entries.extend(numbered.map(|(cookie, name)| {
            let id = FixedId::own(self.programs.position(name).unwrap_or(0));
            Entry { name: name.to_owned(), ino: self.fixed.stat(id).ino, kind: FileType::File, cookie }
        }));
        Ok(entries)
    }

    /// Returns whether redirections create missing parent directories.
    pub(crate) fn creates_parents(&self) -> bool {
        self.creates_parents
    }

    /// Returns the kind of a node of the fixed world; `None` for rows.
    pub(crate) fn thing(&self, node: Node) -> Option<&'static Thing> {
        match node {
            Node::Fixed(id) => Some(self.fixed.thing(id)),
            _ => None,
        }
    }

    // The node at a name of the fixed world.
    fn fixed_child(&self, dir: Node, name: &str) -> Option<(Node, FileType)> {
        match dir {
            Node::Fixed(id) => self.fixed.lookup(id, name),
            _ => None,
        }
    }

    // The root's other name lists the files of the embedder, who did not create the directory for temporary files.
    fn is_unused_tmp(&self, entry: &Entry) -> bool {
        let is_empty = || self.all_entries(Node::Row(entry.ino), 0, 1).is_ok_and(|inside| inside.is_empty());
        entry.name == TMP && entry.kind == FileType::Directory && self.is_row(entry.ino) && is_empty()
    }

    /// Returns the names of a directory of rows, and of the fixed world if it is the root.
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
    /// Returns the underlying rows, for data other than files.
    pub(crate) fn reader(&self) -> &Reader {
        &self.rows
    }
}

impl View<Transaction> {
    /// Creates the view of a run, with its mount points.
    pub(crate) fn of_run(rows: Transaction, scope: &Scope) -> Result<Self, FsError> {
        mounts::make_mount_points(&scope.mounts, &rows)?;
        Self::new(rows, scope)
    }

    /// Creates the view of an empty database.
    pub(crate) fn of_nothing() -> Result<Self, sqlite_fs::Error> {
        Ok(Self::new(Database::options().open()?.begin(None)?, &Scope::default())?)
    }

    /// Applies the user's permission bits, as for guests.
    pub(crate) fn for_guests(self) -> Result<Self, sqlite_fs::Error> {
        self.rows.obey_modes(true)?;
        Ok(Self { principal: Principal::Guest, ..self })
    }

    /// Ends [`for_guests`](Self::for_guests): from here on it is the host's.
    pub(crate) fn after_guests(self) -> Result<Self, sqlite_fs::Error> {
        self.rows.obey_modes(false)?;
        Ok(Self { principal: Principal::Embedder, ..self })
    }

    /// Returns the changes of overlays so far.
    pub(crate) fn overlay_changes(&self) -> OverlayChanges {
        let changes = self.mounts.as_ref().map(|mounts| mounts.changes.lock().unwrap_or_else(PoisonError::into_inner).clone());
        changes.unwrap_or_default()
    }

    /// Returns the rows, regardless of the rules of this view: for the owner's own functions.
    pub(crate) fn unguarded(&self) -> sqlite_fs::Fs<'_, Transaction> {
        self.rows.fs()
    }

    /// Returns the run's transaction.
    pub(crate) fn transaction(&self) -> &Transaction {
        &self.rows
    }

    /// Returns the transaction when the run has ended.
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

    /// Ends a [`hold`](Self::hold).
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
        let found = match self.current(dir) {
            Node::Row(ino) => {
                let is_root = ino == ROOT && dir != ALIAS_NODE;
                if is_root && let Some(found) = self.fixed.lookup(Fixed::ROOT, name) {
                    return Ok(found);
                }
                if is_root && self.alias.as_deref() == Some(name) {
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
                let is_tool = self.tools.iter().any(|tool| tool == name) && self.may_start(name);
                let tool = || is_tool.then(|| self.fixed.lookup(id, TOOL)).flatten();
                let own = || {
                    let is_own = id == self.fixed.local_bin() && self.may_start(name);
                    let number = is_own.then(|| self.programs.position(name)).flatten()?;
                    Some((Node::Fixed(FixedId::own(number)), FileType::File))
                };
                let program = self.fixed.lookup(id, name).filter(|found| self.is_started(*found));
                return program.or_else(own).or_else(tool).ok_or(FsError::NoEntry);
            }
            Node::Host(id) => self.lookup_lower(id, name),
            Node::Descriptor(_) => Err(FsError::NotDirectory),
        };
        self.met(dir, name, found?)
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
            Node::Host(id) => self.may_search(id),
            // The fixed world is accessible to all.
            Node::Fixed(_) | Node::Descriptor(_) => Ok(()),
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

    fn size(&self, file: Node) -> Result<u64, FsError> {
        match self.current(file) {
            Node::Host(id) => self.mounts()?.size(id),
            _ => Ok(self.stat(file)?.size),
        }
    }

    fn read(&self, file: Node, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        match self.current(file) {
            Node::Row(ino) => self.rows.read(ino, offset, buffer),
            Node::Fixed(id) => match self.own_file(id) {
                None => self.fixed.read(id, offset, buffer),
                Some(file) => {
                    let rest = usize::try_from(offset).ok().and_then(|offset| file.get(offset..)).unwrap_or_default();
                    buffer.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                    Ok(rest.len().min(buffer.len()))
                }
            },
            Node::Host(id) => self.mounts()?.read(id, offset, buffer),
            Node::Descriptor(_) => Err(FsError::Invalid),
        }
    }

    fn readdir(&self, dir: Node, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError> {
        let is_program = |entry: &Entry| self.fixed_child(dir, &entry.name).is_none_or(|found| self.is_started(found));
        let mut cookie = cookie;
        loop {
            let entries = self.all_entries(dir, cookie, limit)?;
            // An empty list means the end, so a page of only hidden names must not be empty.
            let Some(last) = entries.last() else { return Ok(entries) };
            cookie = last.cookie;
            let mut seen: Vec<Entry> = match dir {
                Node::Fixed(_) if self.restricts_commands() => entries.into_iter().filter(is_program).collect(),
                Node::Row(_) | Node::Host(_) if self.hides() => self.visible(dir, entries)?,
                _ if dir != ALIAS_NODE => return Ok(entries),
                _ => entries,
            };
            if dir == ALIAS_NODE {
                seen.retain(|entry| !self.is_unused_tmp(entry));
            }
            if !seen.is_empty() {
                return Ok(seen);
            }
        }
    }

    fn child(&self, dir: Node, entry: &Entry) -> Result<Node, FsError> {
        match dir {
            Node::Row(_) if self.mounts.is_none() && dir != ROOT_NODE => {
                Ok(self.met(dir, &entry.name, (Node::Row(entry.ino), entry.kind))?.0)
            }
            _ => Ok(self.lookup(dir, &entry.name)?.0),
        }
    }

    fn is_joined(&self, dir: Node) -> bool {
        self.mounts.is_some() || dir == ROOT_NODE || self.guard.is_some()
    }

    // It is in every sandbox.
    fn is_left_out(&self, node: Node) -> bool {
        matches!(node, Node::Fixed(_) | Node::Descriptor(_))
    }

    fn is_foreign(&self, node: Node) -> bool {
        match self.current(node) {
            Node::Row(ino) => self.lower_of(ino).is_some(),
            node => matches!(node, Node::Host(_)),
        }
    }

    // The depth of a mounted directory is limited by its own system.
    fn enter(&self, bounds: &mut Bounds<Node>, dir: Node, depth: usize) -> Result<(), FsError> {
        let node = self.current(dir);
        let depth = if matches!(node, Node::Row(_)) && self.mounts.is_none() { depth } else { 0 };
        bounds.enter(node, depth)
    }

    fn at_once<T>(&self, work: impl FnOnce() -> Result<T, FsError>) -> Result<T, FsError> {
        self.rows.at_once(work)
    }
}
