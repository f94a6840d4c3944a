//! A reader's cache of a version. A version never changes, so entries never become stale.

use std::collections::HashMap;

use crate::node::{Entry, Ino, Stat};
use crate::store::InoMap;

/// Maximum number of cached inodes, and of names: some megabytes. Beyond that the cache is cleared.
const MOST: usize = 1 << 15;

/// Inodes and names of one version.
#[derive(Default)]
pub(crate) struct Remembered {
    stats: InoMap<Option<Stat>>,
    names: InoMap<HashMap<Box<str>, Option<Ino>>>,
    count: usize,
}

impl Remembered {
    /// Returns the attributes of an inode, or that it does not exist.
    pub(crate) fn stat(&self, ino: Ino) -> Option<Option<Stat>> {
        self.stats.get(&ino).copied()
    }

    pub(crate) fn keep_stat(&mut self, ino: Ino, stat: Option<Stat>) {
        if self.stats.len() >= MOST {
            self.stats.clear();
        }
        self.stats.insert(ino, stat);
    }

    /// Returns the inode of a name, or that it does not exist.
    pub(crate) fn name(&self, dir: Ino, name: &str) -> Option<Option<Ino>> {
        self.names.get(&dir)?.get(name).copied()
    }

    pub(crate) fn keep_name(&mut self, dir: Ino, name: &str, ino: Option<Ino>) {
        if self.count >= MOST {
            self.names.clear();
            self.count = 0;
        }
        if self.names.entry(dir).or_default().insert(name.into(), ino).is_none() {
            self.count += 1;
        }
    }

    pub(crate) fn keep_entries(&mut self, dir: Ino, entries: &[Entry]) {
        for entry in entries {
            self.keep_name(dir, &entry.name, Some(entry.ino));
        }
    }
}
