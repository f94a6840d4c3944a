//! A view's rules: the class of each node, cached as paths are walked.
//!
//! A rule applies to paths, and an inode can have several. So an operation that gives an inode another path (a hard link, a move)
//! is rejected unless the same rules apply there, and a file that already has several names gets the strictest class of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use presets::Access;
use sqlite_fs::path::{Bounds, Resolved};
use sqlite_fs::{Entry, FileType, FsError, ROOT, Rows, Transaction, Volume};

use super::rules::{Class, Found, Prepared, Rules, State};
use super::{Operation, Place, decide};
use crate::vfs::view::View;
use crate::vfs::{ALIAS_NODE, Node, ROOT_NODE};

/// Maximum number of remembered host files. Rows are bounded by the quota of inodes.
const HOST_NODES_MAX: usize = 65_536;

/// Names listed at a time.
const STEP: usize = 1024;

/// The number of a state in the table.
type StateId = u32;

/// The root directory's state, which is the first.
const ROOT_STATE: StateId = 0;

#[derive(Clone, Copy, Debug)]
struct Known {
    class: Class,
    is_directory: bool,
    /// Of a directory.
    state: StateId,
}

#[derive(Debug, Default)]
struct Table {
    states: Vec<Arc<Prepared>>,
    ids: HashMap<State, StateId>,
    nodes: HashMap<Node, Known>,
    hosts: usize,
    /// Files with several names, determined when the first one is met.
    linked: Option<HashMap<u64, Class>>,
}

impl Table {
    fn state(&self, id: StateId) -> Option<Arc<Prepared>> {
        self.states.get(id as usize).cloned()
    }

    fn intern(&mut self, rules: &Rules, state: State) -> StateId {
        if let Some(&id) = self.ids.get(&state) {
            return id;
        }
        let id = StateId::try_from(self.states.len()).unwrap_or(StateId::MAX);
        self.states.push(rules.prepared(&state));
        self.ids.insert(state, id);
        id
    }

    fn remember(&mut self, node: Node, known: Known) {
        if matches!(node, Node::Host(_)) {
            self.hosts += 1;
            if self.hosts > HOST_NODES_MAX {
                self.nodes.retain(|node, _| !matches!(node, Node::Host(_)));
                self.hosts = 1;
            }
        }
        self.nodes.insert(node, known);
    }
}

/// The rules of one view, and the nodes met so far.
#[derive(Debug)]
pub(crate) struct Guard {
    rules: Arc<Rules>,
    /// Whether a file can have several names at all.
    has_links: bool,
    table: Mutex<Table>,
}

impl Guard {
    /// Creates the rules of a view on these rows.
    pub(crate) fn new<R: Rows>(rules: Arc<Rules>, rows: &R) -> Result<Self, FsError> {
        let mut table = Table { states: vec![Arc::clone(rules.root())], ..Table::default() };
        table.nodes.insert(ROOT_NODE, Known { class: Class::FREE, is_directory: true, state: ROOT_STATE });
        let has_links = rules.has_paths() && rows.has_links()?;
        Ok(Self { rules, has_links, table: Mutex::new(table) })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Rows> View<R> {
    /// Returns the rules for paths, if any.
    fn guard(&self) -> Option<&Guard> {
        self.guard.as_deref().filter(|guard| guard.rules.has_paths())
    }

    /// Returns whether a rule of this view hides anything.
    pub(in crate::vfs) fn hides(&self) -> bool {
        self.guard().is_some_and(|guard| guard.rules.hides())
    }

    /// Returns whether a program with this name may be started.
    pub(crate) fn may_start(&self, name: &str) -> bool {
        self.guard.as_deref().is_none_or(|guard| guard.rules.may_start(name))
    }

    /// Returns whether a policy denies a tool with this name, which is a program that can also be called in other ways.
    pub(crate) fn denies(&self, name: &str) -> bool {
        self.guard.as_deref().is_some_and(|guard| guard.rules.denies(name))
    }

    /// Returns whether programs are restricted.
    pub(in crate::vfs) fn restricts_commands(&self) -> bool {
        self.guard.as_deref().is_some_and(|guard| guard.rules.restricts_commands())
    }

    /// Returns whether the rules hide an absolute path, whether or not it exists.
    pub(crate) fn hides_path(&self, path: &str) -> bool {
        self.guard().is_some_and(|guard| guard.rules.of_path(path).access == Access::Hidden)
    }

    /// Records a node that was found under a name. Returns `NoEntry` if it is hidden.
    pub(in crate::vfs) fn met(&self, dir: Node, name: &str, found: (Node, FileType)) -> Result<(Node, FileType), FsError> {
        let (Some(guard), Node::Row(_) | Node::Host(_)) = (self.guard(), found.0) else { return Ok(found) };
        // The root under its other name.
        if found.0 == ALIAS_NODE {
            return Ok(found);
        }
        // A node keeps its class, because operations that would change it are rejected. A source can replace a file by a directory.
        let is_directory = found.1 == FileType::Directory;
        if guard.table().nodes.get(&found.0).is_some_and(|known| known.is_directory == is_directory) {
            return Ok(found);
        }
        match self.known_at(guard, dir, name, Some(found))? {
            Some(_) => Ok(found),
            None => Err(FsError::NoEntry),
        }
    }

    // The class and state of a node under a name, which are remembered; `None` if it is hidden.
    fn known_at(&self, guard: &Guard, dir: Node, name: &str, node: Option<(Node, FileType)>) -> Result<Option<Known>, FsError> {
        let above = self.state_of(guard, dir)?;
        let mut table = guard.table();
        let state = table.state(above).ok_or(FsError::Damaged)?;
        let Found { mut class, is_passage } = guard.rules.at(&state, name);
        let Some((node, kind)) = node else {
            return Ok(Some(Known { class, is_directory: false, state: above }));
        };
        let is_directory = kind == FileType::Directory;
        if let (true, false, Node::Row(ino)) = (guard.has_links, is_directory, node) {
            drop(table);
            class = self.of_linked(guard, ino, class)?;
            table = guard.table();
        }
        if class.access == Access::Hidden {
            if !(is_directory && is_passage) {
                return Ok(None);
            }
            class.access = Access::Read;
        }
        let below = if is_directory { table.intern(&guard.rules, guard.rules.enter(&state, name)) } else { ROOT_STATE };
        let known = Known { class, is_directory, state: below };
        table.remember(node, known);
        Ok(Some(known))
    }

    // The number of a directory's state.
    fn state_of(&self, guard: &Guard, dir: Node) -> Result<StateId, FsError> {
        let dir = if dir == ALIAS_NODE { ROOT_NODE } else { dir };
        match dir {
            Node::Row(_) | Node::Host(_) => Ok(self.known(guard, dir)?.state),
            // Nothing can be created there, and no rule applies to its content.
            Node::Fixed(_) | Node::Descriptor(_) => Ok(ROOT_STATE),
        }
    }

    fn known(&self, guard: &Guard, node: Node) -> Result<Known, FsError> {
        if let Some(known) = guard.table().nodes.get(&node) {
            return Ok(*known);
        }
        // It was met long ago, or from above: its own path determines it. A removed file has none.
        let (parent, name) = self.path_of(node)?;
        let stat = self.attributes(node)?;
        let kind = FileType::of_mode(stat.mode);
        self.known_at(guard, parent, &name, Some((node, kind)))?.ok_or(FsError::NoEntry)
    }

    // The directory that a node is in, and its name there.
    fn path_of(&self, node: Node) -> Result<(Node, String), FsError> {
        match node {
            Node::Host(id) => match self.mounts()?.place(id)? {
                // The root of an overlay is a row.
                Some((parent, name)) => Ok((self.current(Node::Host(parent)), name.to_string())),
                None => {
                    let path = self.mounts()?.point(id)?.path.clone();
                    let (above, name) = path.rsplit_once('/').ok_or(FsError::NoEntry)?;
                    let above = if above.is_empty() { "/" } else { above };
                    Ok((self.find(ROOT_NODE, above, sqlite_fs::path::Last::Follow)?.0, name.to_owned()))
                }
            },
            Node::Row(ino) => {
                let parent = self.rows.parent(ino)?;
                let mut cookie = 0;
                loop {
                    let entries = self.rows.readdir(parent, cookie, STEP)?;
                    let Some(last) = entries.last() else { return Err(FsError::NoEntry) };
                    cookie = last.cookie;
                    if let Some(entry) = entries.into_iter().find(|entry| entry.ino == ino) {
                        return Ok((Node::Row(parent), entry.name));
                    }
                }
            }
            Node::Fixed(_) | Node::Descriptor(_) => Err(FsError::NoEntry),
        }
    }

    // A file with several names has the strictest class of them.
    fn of_linked(&self, guard: &Guard, ino: u64, class: Class) -> Result<Class, FsError> {
        if self.rows.stat(ino)?.nlink < 2 {
            return Ok(class);
        }
        if guard.table().linked.is_none() {
            let linked = self.linked(guard)?;
            guard.table().linked = Some(linked);
        }
        // A file that is not in the list was linked by this view, where the same rules apply.
        Ok(guard.table().linked.as_ref().and_then(|linked| linked.get(&ino)).map_or(class, |least| least.meet(class)))
    }

    // All files that have several names, by walking all rows once.
    fn linked(&self, guard: &Guard) -> Result<HashMap<u64, Class>, FsError> {
        let mut found: HashMap<u64, (Class, bool)> = HashMap::new();
        let root = Arc::clone(guard.rules.root());
        let (mut bounds, mut open) = (Bounds::default(), vec![(ROOT, root, false, 0)]);
        bounds.enter(ROOT, 0)?;
        while let Some((dir, state, is_hidden, depth)) = open.pop() {
            let mut cookie = 0;
            loop {
                let entries = self.rows.readdir(dir, cookie, STEP)?;
                let Some(last) = entries.last() else { break };
                cookie = last.cookie;
                for entry in &entries {
                    let at = guard.rules.at(&state, &entry.name);
                    let mut class = at.class;
                    if is_hidden {
                        class.access = Access::Hidden;
                    }
                    match entry.kind {
                        FileType::Directory => {
                            bounds.enter(entry.ino, depth + 1)?;
                            let is_hidden = class.access == Access::Hidden && (is_hidden || !at.is_passage);
                            let below = guard.rules.prepared(&guard.rules.enter(&state, &entry.name));
                            open.push((entry.ino, below, is_hidden, depth + 1));
                        }
                        // Links and named pipes can have several names, too.
                        _ => {
                            found
                                .entry(entry.ino)
                                .and_modify(|(known, is_linked)| (*known, *is_linked) = (known.meet(class), true))
                                .or_insert((class, false));
                        }
                    }
                }
            }
        }
        Ok(found.into_iter().filter(|(_, (_, is_linked))| *is_linked).map(|(ino, (class, _))| (ino, class)).collect())
    }

    /// Returns the class of a node.
    pub(in crate::vfs) fn class_of(&self, node: Node) -> Result<Class, FsError> {
        match (self.guard(), node) {
            (Some(guard), Node::Row(_) | Node::Host(_)) if node != ALIAS_NODE => Ok(self.known(guard, node)?.class),
            _ => Ok(Class::FREE),
        }
    }

    /// Returns the class of a name, whether or not it exists.
    fn class_at(&self, dir: Node, name: &str) -> Result<Class, FsError> {
        match (self.guard(), dir) {
            (Some(guard), Node::Row(_) | Node::Host(_)) => {
                Ok(self.known_at(guard, dir, name, None)?.map_or(Class::FREE, |known| known.class))
            }
            _ => Ok(Class::FREE),
        }
    }

    /// Returns the visible entries of a directory.
    pub(in crate::vfs) fn visible(&self, dir: Node, entries: Vec<Entry>) -> Result<Vec<Entry>, FsError> {
        let Some(guard) = self.guard() else { return Ok(entries) };
        let above = self.state_of(guard, dir)?;
        let state = guard.table().state(above).ok_or(FsError::Damaged)?;
        let mut seen = Vec::with_capacity(entries.len());
        for entry in entries {
            if dir == ROOT_NODE && self.is_fixed(&entry.name) {
                seen.push(entry);
                continue;
            }
            let Found { mut class, is_passage } = guard.rules.at(&state, &entry.name);
            let is_directory = entry.kind == FileType::Directory;
            if guard.has_links && !is_directory && class.access != Access::Hidden && self.is_row(entry.ino) {
                class = self.of_linked(guard, entry.ino, class)?;
            }
            if class.access != Access::Hidden || (is_passage && is_directory) {
                seen.push(entry);
            }
        }
        Ok(seen)
    }

    // Whether a row has this name in a directory, although this view may not see it.
    fn is_taken(&self, dir: Node, name: &str) -> bool {
        matches!(self.current(dir), Node::Row(ino) if self.rows.lookup(ino, name).is_ok())
    }

    // Checks whether everything visible below a directory may be moved with it. This is examined only if a rule could forbid it.
    fn allow_moved(&self, guard: &Guard, dir: Node, below: &State) -> Result<(), FsError> {
        if !guard.rules.keeps_below(below) {
            return Ok(());
        }
        let (mut bounds, mut open) = (Bounds::default(), vec![(dir, 0)]);
        self.enter(&mut bounds, dir, 0)?;
        while let Some((dir, depth)) = open.pop() {
            let mut cookie = 0;
            loop {
                let entries = self.readdir(dir, cookie, STEP)?;
                let Some(last) = entries.last() else { break };
                cookie = last.cookie;
                for entry in &entries {
                    let node = self.child(dir, entry)?;
                    self.allow(node, Operation::Displace)?;
                    if entry.kind == FileType::Directory {
                        self.enter(&mut bounds, node, depth + 1)?;
                        open.push((node, depth + 1));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks an operation on a node, using only the rules.
    pub(in crate::vfs) fn allow(&self, node: Node, operation: Operation) -> Result<(), FsError> {
        if self.guard.is_none() {
            return Ok(());
        }
        decide(self.principal, Place { access: self.class_of(node)?.access, ..Place::FREE }, operation)
    }
}

impl View<Transaction> {
    /// Checks whether something may be created under a name that is unused for this view.
    pub(in crate::vfs) fn allow_new(&self, at: &Resolved<Node>, name: &str) -> Result<(), FsError> {
        if self.guard.is_none() {
            return Ok(());
        }
        let access = self.class_at(at.parent, name)?.access;
        decide(self.principal, Place { access, ..Place::FREE }, Operation::Create)
    }

    /// Records a created node. If the name exists although it is invisible, that is not disclosed.
    pub(in crate::vfs) fn created(
        &self,
        at: &Resolved<Node>,
        name: &str,
        kind: FileType,
        made: Result<u64, FsError>,
    ) -> Result<Node, FsError> {
        let Some(guard) = self.guard() else { return made.map(Node::Row) };
        let node = Node::Row(made.map_err(|error| if error == FsError::Exists { FsError::Access } else { error })?);
        self.known_at(guard, at.parent, name, Some((node, kind)))?;
        Ok(node)
    }

    /// Checks whether a file may get a second name.
    pub(in crate::vfs) fn allow_link(&self, source: Node, at: &Resolved<Node>, name: &str) -> Result<(), FsError> {
        if self.guard().is_none() {
            return Ok(());
        }
        self.allow(source, Operation::Change)?;
        self.allow_new(at, name)?;
        if self.class_of(source)? == self.class_at(at.parent, name)? { Ok(()) } else { Err(FsError::CrossDevice) }
    }

    /// Checks whether something may be moved. It may not be moved to a place with other rules: neither itself nor, if it is a
    /// directory, anything that could be below it. Nor may a directory with something in it that has to stay where it is.
    pub(in crate::vfs) fn allow_rename(
        &self,
        (from, old_name): (&Resolved<Node>, &str),
        (to, new_name): (&Resolved<Node>, &str),
    ) -> Result<(), FsError> {
        let Some(guard) = self.guard() else { return Ok(()) };
        let (node, kind) = from.existing()?;
        self.allow(node, Operation::Displace)?;
        let target = self.class_at(to.parent, new_name)?;
        decide(self.principal, Place { access: target.access, ..Place::FREE }, Operation::Replace)?;
        match to.node {
            Some((replaced, kind)) => {
                self.allow(replaced, Operation::Displace)?;
                if kind == FileType::Directory {
                    self.allow_emptied(replaced)?;
                }
            }
            // A file that another of its names hides: it stays, and is not disclosed.
            None if self.is_taken(to.parent, new_name) => return Err(FsError::Access),
            None => {}
        }
        let is_same = if kind == FileType::Directory {
            let state = |dir: Node, name: &str| -> Result<State, FsError> {
                let above = self.state_of(guard, dir)?;
                let state = guard.table().state(above).ok_or(FsError::Damaged)?;
                Ok(guard.rules.enter(&state, name))
            };
            let (old, new) = (state(from.parent, old_name)?, state(to.parent, new_name)?);
            let is_same = self.class_at(from.parent, old_name)? == target && guard.rules.is_same_below(&old, &new);
            if is_same {
                self.allow_moved(guard, node, &old)?;
            }
            is_same
        } else {
            self.class_of(node)? == target
        };
        if is_same { Ok(()) } else { Err(FsError::CrossDevice) }
    }

    /// Checks whether a directory that looks empty may be removed: not if it has hidden content.
    pub(in crate::vfs) fn allow_emptied(&self, dir: Node) -> Result<(), FsError> {
        if !self.hides() || !self.readdir(dir, 0, 1)?.is_empty() || self.all_entries(dir, 0, 1)?.is_empty() {
            return Ok(());
        }
        Err(FsError::Access)
    }
}
