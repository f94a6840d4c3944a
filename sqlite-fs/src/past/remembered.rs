//! What a reader has seen of a version. A version never changes, so nothing here ever does.

use std::collections::HashMap;

use crate::node::{Entry, Ino, Stat};
use crate::store::InoMap;

/// Inodes, and names, that are remembered: some megabytes. Beyond that all are forgotten, and looked up again.
const MOST: usize = 1 << 15;

/// Inodes and names of one version.
#[derive(Default)]
pub(crate) struct Remembered {
    stats: InoMap<Option<Stat>>,
    names: InoMap<HashMap<Box<str>, Option<Ino>>>,
    count: usize,
}

impl Remembered {
    /// The attributes of an inode, or that there is none.
    pub(crate) fn stat(&self, ino: Ino) -> Option<Option<Stat>> {
        self.stats.get(&ino).copied()
    }

    pub(crate) fn keep_stat(&mut self, ino: Ino, stat: Option<Stat>) {
        if self.stats.len() >= MOST {
            self.stats.clear();
        }
        self.stats.insert(ino, stat);
    }

    /// Where a name leads, or that there is none.
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
