//! Files of a database as a source: another sandbox's as a shared base, or a past version of any.
//!
//! A view holds one state of it from its first access to its end. The file is untrusted: names, types and sizes are checked when
//! rows are read (`sqlite-fs`), and a directory in two places is damage, because a walk would never end.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use sqlite_fs::path::Tree as _;
use sqlite_fs::{ChangeKind, Database, FileType, FsError, ROOT, Reader, Stat, VersionKind, Volume as _};

use super::{Moving, NAMES_MAX, Source, SourceContext, SourceFiles, SourceStat, State};
use crate::{Error, versions};

/// Maximum number of cached paths per view; then the cache is cleared.
const KNOWN_MAX: usize = 65_536;
/// Names that are fetched at a time.
const STEP: usize = 1024;

/// The files of a database: at a version, or their state when a view first reads.
pub(crate) struct DatabaseSource {
    database: Database,
    version: Mutex<Option<i64>>,
}

impl DatabaseSource {
    pub(crate) fn new(database: Database, version: Option<i64>) -> Self {
        Self { database, version: Mutex::new(version) }
    }

    // The shown version; `None`: always the newest.
    fn version(&self) -> Option<i64> {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Moving for DatabaseSource {
    fn shown(&self) -> Option<State> {
        self.version().map(State::Version)
    }

    fn resolve(&self, name: Option<&str>) -> Result<(State, Value), Error> {
        let version = versions::resolve(&self.database.reader()?, name.unwrap_or("HEAD"))?;
        Ok((State::Version(version.number), json!({ "version": version.number, "time": version.time })))
    }

    fn open_at(&self, state: State, context: SourceContext) -> Result<Option<Box<dyn SourceFiles>>, Error> {
        let State::Version(number) = state else { return Ok(None) };
        match self.database.reader_at(number) {
            Ok(reader) => Ok(Some(DatabaseFiles::open(reader, context)?)),
            Err(sqlite_fs::Error::NoVersion { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn changed(&self, from: State, to: State, is_over: &dyn Fn() -> bool) -> Result<Option<BTreeSet<String>>, Error> {
        let (State::Version(from), State::Version(to)) = (from, to) else { return Ok(None) };
        let (older, newer) = (from.min(to), from.max(to));
        let reader = self.database.reader()?;
        // What another program changed was not recorded.
        if has_outside(&reader, older, newer, is_over)? {
            return Ok(None);
        }
        let (changes, is_complete) = match reader.changes(older, Some(newer)) {
            Err(sqlite_fs::Error::NoVersion { .. }) => return Ok(None),
            found => found?,
        };
        let mut paths = BTreeSet::new();
        for change in changes {
            if let ChangeKind::Renamed { from } = &change.kind {
                paths.insert(from.trim_start_matches('/').to_owned());
            }
            paths.insert(change.path.trim_start_matches('/').to_owned());
        }
        Ok(is_complete.then_some(paths))
    }

    fn move_to(&self, state: State) {
        if let State::Version(number) = state {
            *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(number);
        }
    }

    fn for_another(&self) -> Arc<dyn Source> {
        Arc::new(Self::new(self.database.clone(), self.version()))
    }
}

// Whether another program wrote to a database after a version, up to another one.
fn has_outside(reader: &Reader, older: i64, newer: i64, is_over: &dyn Fn() -> bool) -> Result<bool, Error> {
    let mut before = newer.checked_add(1);
    loop {
        if is_over() {
            return Err(sqlite_fs::Error::Interrupted.into());
        }
        let page = reader.versions(before, STEP)?;
        let mut later = page.iter().take_while(|version| version.number > older);
        if later.any(|version| version.kind == VersionKind::Outside) {
            return Ok(true);
        }
        match page.last() {
            Some(last) if last.number > older => before = Some(last.number),
            _ => return Ok(false),
        }
    }
}

impl fmt::Debug for DatabaseSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseSource").field("version", &self.version()).finish_non_exhaustive()
    }
}

impl Source for DatabaseSource {
    fn kind(&self) -> &'static str {
        if self.version().is_some() { "past" } else { "database" }
    }

    fn as_moving(&self) -> Option<&dyn Moving> {
        Some(self)
    }

    fn open(self: Arc<Self>, context: SourceContext) -> Result<Box<dyn SourceFiles>, FsError> {
        let reader = match self.version() {
            None => self.database.reader(),
            Some(version) => self.database.reader_at(version),
        };
        let opened = reader.and_then(|reader| DatabaseFiles::open(reader, context.clone()));
        opened.map_err(|error| {
            context.complain("", &format!("cannot read the mounted database: {error}"));
            error.fs_error().unwrap_or(FsError::Io)
        })
    }
}

struct DatabaseFiles(Mutex<Held>);

/// One state. It never changes, so cached data stays valid.
struct Held {
    reader: Reader,
    known: HashMap<Box<str>, Stat>,
    /// Directories -> where they were met.
    places: HashMap<u64, Box<str>>,
}

impl DatabaseFiles {
    fn open(reader: Reader, context: SourceContext) -> Result<Box<dyn SourceFiles>, sqlite_fs::Error> {
        let reader = reader.hold(move || context.is_over())?;
        Ok(Box::new(Self(Mutex::new(Held { reader, known: HashMap::new(), places: HashMap::new() }))))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn stat(&mut self, path: &str) -> Result<Stat, FsError> {
        if let Some(stat) = self.known.get(path) {
            return Ok(*stat);
        }
        let stat = match path.rsplit_once('/') {
            _ if path.is_empty() => self.reader.stat(ROOT)?,
            None => self.reader.entry_stat(ROOT, path)?,
            Some((parent, name)) => {
                // Mounts limit the depth of a path.
                let parent = self.stat(parent)?;
                if parent.file_type() != FileType::Directory {
                    return Err(FsError::NotDirectory);
                }
                self.reader.entry_stat(parent.ino, name)?
            }
        };
        self.keep(path, &stat)?;
        Ok(stat)
    }

    fn keep(&mut self, path: &str, stat: &Stat) -> Result<(), FsError> {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
            self.places.clear();
        }
        if stat.file_type() == FileType::Directory {
            let place = self.places.entry(stat.ino).or_insert_with(|| path.into());
            if **place != *path {
                return Err(FsError::Damaged);
            }
        }
        self.known.insert(path.into(), *stat);
        Ok(())
    }
}

impl SourceFiles for DatabaseFiles {
    fn stat(&self, path: &str) -> Result<SourceStat, FsError> {
        let stat = self.held().stat(path)?;
        let Stat { mode, size, atime, mtime, ctime, .. } = stat;
        Ok(SourceStat { kind: stat.file_type(), mode: mode & 0o7777, size, atime, mtime, ctime })
    }

    fn list(&self, path: &str) -> Result<Vec<(String, FileType)>, FsError> {
        let mut held = self.held();
        let ino = held.stat(path)?.ino;
        let (mut names, mut cookie) = (Vec::new(), 0);
        loop {
            let step = held.reader.readdir(ino, cookie, STEP)?;
            let Some(last) = step.last() else { return Ok(names) };
            cookie = last.cookie;
            names.extend(step.into_iter().map(|entry| (entry.name, entry.kind)));
            if names.len() > NAMES_MAX {
                return Err(FsError::NoSpace);
            }
        }
    }

    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        let mut held = self.held();
        let stat = held.stat(path)?;
        match stat.file_type() {
            // Most readers read on until they get nothing.
            FileType::File if offset >= stat.size => Ok(0),
            FileType::File => held.reader.read(stat.ino, offset, buffer),
            FileType::Directory => Err(FsError::IsDirectory),
            _ => Err(FsError::Invalid),
        }
    }

    fn read_link(&self, path: &str) -> Result<String, FsError> {
        let mut held = self.held();
        let ino = held.stat(path)?.ino;
        held.reader.readlink(ino)
    }

    // Its files belong to a sandbox, with the permission bits set by its user.
    fn binds_guests(&self) -> bool {
        true
    }
}
