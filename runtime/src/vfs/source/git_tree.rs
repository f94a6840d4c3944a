//! A commit of a git repository as a source: its files, without a checkout.
//!
//! A commit never changes, so cached data stays valid for all views; an overlay stays on one until it is moved. The repository is untrusted: names, sizes and work are
//! limited when it is read (the crate `git`), and damage is an error of that file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use git::{Bounds, Id, Mode, Repository, TreeEntry};
use serde_json::{Value, json};
use sqlite_fs::{FileType, FsError};

use super::{Moving, NAMES_MAX, Source, SourceContext, SourceFiles, SourceStat, State, path_in};
use crate::Error;

/// Maximum number of cached directory entries; then the cache is cleared.
const KNOWN_MAX: usize = 200_000;
/// Byte budget of one view: each run has a new one.
const VIEW_BYTES: u64 = 16 << 30;
/// Maximum size of a file, which is completely in memory while it is read.
const FILE_BYTES: u64 = 256 << 20;

type Directory = Arc<BTreeMap<String, TreeEntry>>;

/// A repository, and the commit whose files it shows.
pub(crate) struct GitTree {
    path: PathBuf,
    /// The mounted reference.
    reference: String,
    largest: u64,
    shown: Mutex<Arc<Tree>>,
}

/// The files of one commit.
struct Tree {
    repository: Arc<Repository>,
    commit: Id,
    /// `None` if the commit no longer exists.
    root: Option<Id>,
    /// Nanoseconds since 1970: the time of every file.
    time: i64,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    directories: HashMap<Id, Directory>,
    entries: usize,
    /// The file that was read last, because most are read sequentially.
    last: Option<(Id, Arc<Vec<u8>>)>,
}

impl GitTree {
    /// Opens a repository and resolves the commit.
    pub(crate) fn open(path: &Path, reference: &str, largest: u64) -> Result<Self, git::Error> {
        let tree = Tree::named(open(path, largest)?, reference)?;
        Ok(Self { path: path.to_owned(), reference: reference.to_owned(), largest, shown: Mutex::new(Arc::new(tree)) })
    }

    /// Returns the shown commit.
    pub(crate) fn commit(&self) -> Id {
        self.tree().commit
    }

    /// Returns the data by which a commit is found when the sandbox is opened again.
    pub(crate) fn record(commit: Id) -> Value {
        json!({ "commit": commit.to_string() })
    }

    /// Returns whether the mounted reference always denotes the same commit: the name of a commit, or a tag.
    pub(crate) fn is_fixed(&self) -> bool {
        let tree = self.tree();
        let is_tag = || tree.repository.resolve(&format!("refs/tags/{}", self.reference)).is_ok();
        tree.commit.to_string().starts_with(&self.reference.to_lowercase()) || is_tag()
    }

    fn tree(&self) -> Arc<Tree> {
        Arc::clone(&self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn open(path: &Path, largest: u64) -> Result<Arc<Repository>, git::Error> {
    let bounds =
        Bounds { object_bytes: largest.min(FILE_BYTES), total_bytes: VIEW_BYTES, entries: NAMES_MAX, ..Bounds::default() };
    Repository::open(path, bounds).map(Arc::new)
}

impl Tree {
    fn named(repository: Arc<Repository>, reference: &str) -> Result<Self, git::Error> {
        let commit = repository.resolve(reference)?;
        Self::at(repository, commit)
    }

    fn at(repository: Arc<Repository>, commit: Id) -> Result<Self, git::Error> {
        let (root, time) = match repository.commit(commit) {
            Ok(found) => (Some(found.tree), found.committer.seconds.clamp(0, i64::MAX / 2_000_000_000)),
            Err(git::Error::Missing(_)) => (None, 0),
            Err(error) => return Err(error),
        };
        Ok(Self { repository, commit, root, time: time.saturating_mul(1_000_000_000), known: Mutex::default() })
    }

    fn directory(&self, id: Id) -> Result<Directory, git::Error> {
        let known = self.known().directories.get(&id).cloned();
        if let Some(directory) = known {
            return Ok(directory);
        }
        let entries = self.repository.tree(id)?;
        let directory: Directory = Arc::new(entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect());
        let mut known = self.known();
        if known.entries >= KNOWN_MAX {
            (known.directories, known.entries) = (HashMap::new(), 0);
        }
        known.entries += directory.len() + 1;
        known.directories.insert(id, Arc::clone(&directory));
        Ok(directory)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for GitTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitTree").field("path", &self.path).field("commit", &self.commit()).finish_non_exhaustive()
    }
}

impl Source for GitTree {
    fn kind(&self) -> &'static str {
        "git"
    }

    fn as_moving(&self) -> Option<&dyn Moving> {
        Some(self)
    }

    fn open(self: Arc<Self>, context: SourceContext) -> Result<Box<dyn SourceFiles>, FsError> {
        let tree = self.tree();
        let commit = tree.commit;
        GitFiles::open(tree, context.clone()).ok_or_else(|| {
            context.complain("", &format!("commit {commit} is no longer in the mounted git repository"));
            FsError::Io
        })
    }
}

impl Moving for GitTree {
    fn shown(&self) -> Option<State> {
        Some(State::Commit(self.commit()))
    }

    fn resolve(&self, name: Option<&str>) -> Result<(State, Value), Error> {
        // Opened again, because it may have new packs.
        let commit = open(&self.path, self.largest)?.resolve(name.unwrap_or(&self.reference))?;
        Ok((State::Commit(commit), Self::record(commit)))
    }

    fn open_at(&self, state: State, context: SourceContext) -> Result<Option<Box<dyn SourceFiles>>, Error> {
        let State::Commit(commit) = state else { return Ok(None) };
        let tree = Tree::at(open(&self.path, self.largest)?, commit)?;
        Ok(GitFiles::open(Arc::new(tree), context))
    }

    fn changed(&self, from: State, to: State, is_over: &dyn Fn() -> bool) -> Result<Option<BTreeSet<String>>, Error> {
        let (State::Commit(from), State::Commit(to)) = (from, to) else { return Ok(None) };
        let repository = open(&self.path, self.largest)?;
        let (old, new) = (Tree::at(Arc::clone(&repository), from)?, Tree::at(repository, to)?);
        let (Some(before), Some(after)) = (old.root, new.root) else { return Ok(None) };
        let (mut paths, mut left) = (BTreeSet::new(), vec![(String::new(), before, after)]);
        while let Some((above, before, after)) = left.pop() {
            if is_over() {
                return Err(sqlite_fs::Error::Interrupted.into());
            }
            // Equal objects have equal content.
            if before == after {
                continue;
            }
            let (before, after) = (old.directory(before)?, new.directory(after)?);
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let path = path_in(&above, name);
                match (before.get(name), after.get(name)) {
                    (Some(before), Some(after)) if before == after => {}
                    (Some(before), Some(after)) if (before.mode, after.mode) == (Mode::Directory, Mode::Directory) => {
                        left.push((path, before.id, after.id));
                    }
                    _ => {
                        paths.insert(path);
                    }
                }
            }
            if paths.len() > NAMES_MAX {
                return Ok(None);
            }
        }
        Ok(Some(paths))
    }

    fn move_to(&self, state: State) {
        let State::Commit(commit) = state else { return };
        // Without the repository, nothing can be read.
        let tree = open(&self.path, self.largest).and_then(|repository| Tree::at(repository, commit));
        let tree = tree.unwrap_or_else(|_| Tree {
            repository: Arc::clone(&self.tree().repository),
            commit,
            root: None,
            time: 0,
            known: Mutex::default(),
        });
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(tree);
    }

    fn for_another(&self) -> Arc<dyn Source> {
        let Self { path, reference, largest, .. } = self;
        Arc::new(Self { path: path.clone(), reference: reference.clone(), largest: *largest, shown: Mutex::new(self.tree()) })
    }
}

struct GitFiles {
    tree: Arc<Tree>,
    root: Id,
    context: SourceContext,
}

impl GitFiles {
    // `None` if the commit no longer exists.
    fn open(tree: Arc<Tree>, context: SourceContext) -> Option<Box<dyn SourceFiles>> {
        tree.repository.refill();
        // A large file is cached for one view, not for the lifetime of a sandbox.
        tree.known().last = None;
        let root = tree.root?;
        Some(Box::new(Self { tree, root, context }))
    }

    // Reconstructing objects may take long, depending on the repository.
    fn work<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(&Tree) -> Result<T, git::Error> + Send + 'static,
    ) -> Result<T, FsError> {
        let tree = Arc::clone(&self.tree);
        self.context.wait(move || work(&tree))?.map_err(|error| {
            self.context.complain(path, &format!("cannot read the mounted git repository: {error}"));
            FsError::Io
        })
    }

    fn directory(&self, path: &str, id: Id) -> Result<Directory, FsError> {
        let known = self.tree.known().directories.get(&id).cloned();
        match known {
            Some(directory) => Ok(directory),
            None => self.work(path, move |tree| tree.directory(id)),
        }
    }

    fn find(&self, path: &str) -> Result<(Mode, Id), FsError> {
        let mut found = (Mode::Directory, self.root);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if found.0 != Mode::Directory {
                return Err(if found.0 == Mode::Submodule { FsError::NoEntry } else { FsError::NotDirectory });
            }
            let directory = self.directory(path, found.1)?;
            let entry = directory.get(name).ok_or(FsError::NoEntry)?;
            found = (entry.mode, entry.id);
        }
        Ok(found)
    }

    fn blob(&self, path: &str, id: Id) -> Result<Arc<Vec<u8>>, FsError> {
        let last = self.tree.known().last.clone();
        if let Some((_, bytes)) = last.filter(|(last, _)| *last == id) {
            return Ok(bytes);
        }
        let bytes = self.work(path, move |tree| tree.repository.blob(id))?;
        self.tree.known().last = Some((id, Arc::clone(&bytes)));
        Ok(bytes)
    }
}

// A submodule is an empty directory, as in a clone without them.
fn kind(mode: Mode) -> FileType {
    match mode {
        Mode::File | Mode::Executable => FileType::File,
        Mode::Link => FileType::Symlink,
        Mode::Directory | Mode::Submodule => FileType::Directory,
    }
}

impl SourceFiles for GitFiles {
    fn stat(&self, path: &str) -> Result<SourceStat, FsError> {
        let (mode, id) = self.find(path)?;
        let size = match kind(mode) {
            FileType::File => self.tree.repository.blob_size(id).map_err(|_| FsError::Io)?,
            FileType::Symlink => self.blob(path, id)?.len() as u64,
            _ => 0,
        };
        let bits = match mode {
            Mode::File => 0o644,
            Mode::Link => 0o777,
            _ => 0o755,
        };
        let time = self.tree.time;
        Ok(SourceStat { kind: kind(mode), mode: bits, size, atime: time, mtime: time, ctime: time })
    }

    fn list(&self, path: &str) -> Result<Vec<(String, FileType)>, FsError> {
        match self.find(path)? {
            (Mode::Directory, id) => {
                let directory = self.directory(path, id)?;
                Ok(directory.values().map(|entry| (entry.name.clone(), kind(entry.mode))).collect())
            }
            (Mode::Submodule, _) => Ok(Vec::new()),
            _ => Err(FsError::NotDirectory),
        }
    }

    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        let (mode, id) = self.find(path)?;
        match kind(mode) {
            FileType::File => {
                let bytes = self.blob(path, id)?;
                let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
                let len = rest.len().min(buffer.len());
                buffer.get_mut(..len).unwrap_or_default().copy_from_slice(rest.get(..len).unwrap_or_default());
                Ok(len)
            }
            FileType::Directory => Err(FsError::IsDirectory),
            _ => Err(FsError::Invalid),
        }
    }

    fn read_link(&self, path: &str) -> Result<String, FsError> {
        match self.find(path)? {
            (Mode::Link, id) => String::from_utf8(self.blob(path, id)?.to_vec()).map_err(|_| FsError::Io),
            _ => Err(FsError::Invalid),
        }
    }
}
