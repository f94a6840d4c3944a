//! When an overlay last read a file of its directory: a file that was changed there later is not the one that was changed here.
//!
//! An overlay shows a host file until a run changes or removes it. From that run on the sandbox has its own copy, based on the
//! host's file at that time. So the host's file is its base exactly if it was not changed since that run started.

use std::collections::HashMap;

use serde_json::Value;
use sqlite_fs::path::Last;
use sqlite_fs::{FileType, FsError, Reader, Stat, Volume as _};

use super::Versions;
use crate::Error;
use crate::history::BASE;
use crate::vfs::{Node, ROOT_NODE, View};

/// Maximum number of open views of versions.
const OPEN: usize = 32;

/// A run's record of the host files that it was the first to change.
struct Began {
    at: i64,
    /// The previous modification time of each, if recorded. File times have a resolution of milliseconds, so a file that is
    /// edited just after a run started can seem older than it. A file that the run created had none.
    bases: HashMap<String, Option<i64>>,
}

pub(super) struct Seen<'a> {
    versions: Versions<'a>,
    oldest: i64,
    newest: i64,
    views: HashMap<i64, View<Reader>>,
    /// The known data of the runs of versions.
    runs: HashMap<i64, Option<Began>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(versions: Versions<'a>, newest: i64) -> Result<Self, Error> {
        Ok(Self { versions, oldest: versions.oldest()?, newest, views: HashMap::new(), runs: HashMap::new() })
    }

    /// Returns whether the base of a path is a file of the host that was, or may have been, changed after the sandbox read it.
    pub(super) fn is_stale(&mut self, path: &str, base: &Option<(Node, FileType, Stat)>) -> Result<bool, Error> {
        let Some((Node::Host(_), kind, stat)) = base else { return Ok(false) };
        if *kind == FileType::Directory {
            return Ok(false);
        }
        let Some(began) = self.began_changing(path)? else { return Ok(true) };
        Ok(stat.ctime > began.at || began.bases.get(path).is_some_and(|base| Some(stat.ctime) != *base))
    }

    // The run from which on the sandbox has its own file; `None` if that version was pruned.
    fn began_changing(&mut self, path: &str) -> Result<Option<&Began>, Error> {
        if self.is_own(self.oldest, path)? {
            return Ok(None);
        }
        let (mut not_own, mut own) = (self.oldest, self.newest);
        while own - not_own > 1 {
            let middle = not_own + (own - not_own) / 2;
            if self.is_own(middle, path)? { own = middle } else { not_own = middle }
        }
        if !self.runs.contains_key(&own) {
            let began = self.began(own)?;
            self.runs.insert(own, began);
        }
        Ok(self.runs.get(&own).and_then(Option::as_ref))
    }

    fn began(&self, version: i64) -> Result<Option<Began>, Error> {
        let reader = self.versions.reader()?;
        let Some(call) = reader.version(version)?.call else {
            // Its start is not known, but it was after the previous version.
            return Ok(Some(Began { at: reader.version(version - 1)?.time, bases: HashMap::new() }));
        };
        let Some(run) = self.versions.run(call)? else { return Ok(None) };
        let changes = run.changes.as_deref().and_then(Value::as_array).into_iter().flatten();
        let base = |change: &Value| {
            let (base, is_new) = (change.get(BASE).and_then(Value::as_i64), change.get("kind")? == "created");
            (base.is_some() || is_new).then(|| Some((change.get("path")?.as_str()?.to_owned(), base)))?
        };
        Ok(Some(Began { at: run.started, bases: changes.filter_map(base).collect() }))
    }

    // Whether a version has its own file at a path of an overlay, or hides that of the host.
    fn is_own(&mut self, version: i64, path: &str) -> Result<bool, Error> {
        if self.views.len() >= OPEN && !self.views.contains_key(&version) {
            self.views.clear();
        }
        let view = match self.views.entry(version) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let sandbox = self.versions.sandbox;
                entry.insert(sandbox.recorder.at(&sandbox.scope, version)?)
            }
        };
        match view.find(ROOT_NODE, path, Last::NoFollow) {
            Ok((node, _)) => Ok(!matches!(node, Node::Host(_))),
            // A directory that is not mounted yet shows nothing.
            Err(FsError::NoEntry | FsError::NotDirectory) => {
                let mounts = self.versions.sandbox.scope.mounts.iter();
                let mut above = mounts.filter(|mount| super::compare::is_at_or_below(path, &mount.path));
                Ok(above.any(|mount| view.find(ROOT_NODE, &mount.path, Last::Follow).is_ok()))
            }
            Err(source) => Err(Error::file("apply", path, source)),
        }
    }
}
