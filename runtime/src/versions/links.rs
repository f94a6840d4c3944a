//! Hard links: which names share one file in a state, and how a restore links them again.
//!
//! Inode numbers are compared only within one state, because those of two databases are unrelated.

use std::collections::{HashMap, HashSet};

use sqlite_fs::FileType;

use super::compare::{Side, Sides};
use crate::vfs::Node;

/// The names of each file with several names, sorted.
pub(super) struct Links<'a>(HashMap<u64, Vec<&'a str>>);

impl<'a> Links<'a> {
    pub(super) fn of(sides: &'a Sides) -> Self {
        Self::among(sides, |_| true)
    }

    /// Considers only some names.
    fn among(sides: &'a Sides, is_considered: impl Fn(&str) -> bool) -> Self {
        let mut links: HashMap<u64, Vec<&str>> = HashMap::new();
        for (path, side) in sides {
            if let Some(file) = shared(side).filter(|_| is_considered(path)) {
                links.entry(file).or_default().push(path);
            }
        }
        Self(links)
    }

    fn names(&self, side: &Side) -> Option<&[&'a str]> {
        self.0.get(&shared(side)?).map(Vec::as_slice)
    }

    /// Returns whether all names of a file are known.
    pub(super) fn has_all(&self, side: &Side) -> bool {
        let known = self.names(side).map_or(1, <[_]>::len);
        shared(side).is_none() || usize::try_from(side.stat.nlink).is_ok_and(|names| names <= known)
    }
}

/// Returns the number of a regular file with several names.
pub(super) fn shared(side: &Side) -> Option<u64> {
    match (side.node, side.kind, side.stat.nlink) {
        (Node::Row(ino), FileType::File, 2..) => Some(ino),
        _ => None,
    }
}

/// The links of two states, among the names that are files in both.
pub(super) struct LinkPairs<'a> {
    old: Links<'a>,
    new: Links<'a>,
    /// Whether two files have the same names.
    known: HashMap<(u64, u64), bool>,
}

impl<'a> LinkPairs<'a> {
    pub(super) fn new(old: &'a Sides, new: &'a Sides) -> Self {
        let is_file = |sides: &Sides, path: &str| sides.get(path).is_some_and(|side| side.kind == FileType::File);
        Self {
            old: Links::among(old, |path| is_file(new, path)),
            new: Links::among(new, |path| is_file(old, path)),
            known: HashMap::new(),
        }
    }

    /// Returns whether a path shares its file with the same names in both states.
    pub(super) fn are_equal(&mut self, old: &Side, new: &Side) -> bool {
        let (one, other) = (self.old.names(old), self.new.names(new));
        match (one, other, shared(old).zip(shared(new))) {
            (Some(one), Some(other), Some(files)) => *self.known.entry(files).or_insert_with(|| one == other),
            _ => one.or(other).is_none_or(|names| names.len() < 2),
        }
    }
}

/// The names that a restore links to each other.
pub(super) struct Relinked<'a> {
    present: (&'a Sides, Links<'a>),
    wanted: Links<'a>,
    /// The names that no longer exist when files are restored.
    removed: HashSet<&'a str>,
    /// The first restored name of each file.
    first: HashMap<u64, &'a str>,
}

impl<'a> Relinked<'a> {
    pub(super) fn new(present: &'a Sides, wanted: &'a Sides, removed: HashSet<&'a str>) -> Self {
        Self { present: (present, Links::of(present)), wanted: Links::of(wanted), removed, first: HashMap::new() }
    }

    /// Returns the name whose file a path shares: one restored before, or one whose present file has the right content.
    /// Otherwise the path is the first name, and others will be linked to it.
    pub(super) fn first_name<E>(
        &mut self,
        path: &'a str,
        file: &Side,
        mut is_right: impl FnMut(&str, &Side) -> Result<bool, E>,
    ) -> Result<Option<&'a str>, E> {
        let Some(number) = shared(file) else { return Ok(None) };
        if let Some(first) = self.first.get(&number) {
            return Ok(Some(*first));
        }
        let (sides, links) = &self.present;
        for name in self.wanted.names(file).unwrap_or_default() {
            let Some(side) = sides.get(*name).filter(|side| matches!(side.node, Node::Row(_))) else { continue };
            if side.kind == FileType::File && self.stays_together(links, side, file) && is_right(name, side)? {
                self.first.insert(number, *name);
                return Ok(Some(*name));
            }
        }
        self.first.insert(number, path);
        Ok(None)
    }

    // Whether all present names of a file that stay are names of the restored one.
    fn stays_together(&self, links: &Links<'_>, side: &Side, file: &Side) -> bool {
        let wanted = self.wanted.names(file).unwrap_or_default();
        let mut present = links.names(side).unwrap_or_default().iter();
        links.has_all(side) && present.all(|name| self.removed.contains(name) || wanted.binary_search(name).is_ok())
    }
}
