//! The files of sources that one view has met: their numbers, names and paths.
//!
//! Their number is limited: the oldest are forgotten, and met again (T-DOS-03).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use sqlite_fs::{FileType, FsError};

use super::{DEPTH_MAX, HostId, Listing};
use crate::vfs::source::path_in;

/// Maximum number of remembered files.
const NODES_MAX: usize = 65_536;
/// Maximum number of cached generated contents of files that are read without being opened.
const GENERATED_MAX: usize = 4;
/// Longest remembered path: with [`NODES_MAX`] files, it bounds the memory of all of them.
const PATH_MAX: usize = 256;

/// What is known of a file.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) mount: usize,
    pub(super) parent: Option<HostId>,
    pub(super) name: Box<str>,
    /// The path below the mount point, unless it is long: then it is put together when it is needed.
    path: Option<Arc<str>>,
    /// Its number as shown in the sandbox, once it was needed.
    pub(super) inode: Option<u64>,
    pub(super) kind: FileType,
    children: u32,
    pub(super) holds: u32,
    used: u64,
    /// The row that replaced it: a directory with additional rows, or a changed file.
    pub(super) upper: Option<u64>,
}

/// The files that were met.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<(u32, Option<Known>)>,
    free: Vec<u32>,
    /// Directories -> their names.
    names: HashMap<u32, HashMap<Box<str>, HostId>>,
    /// Rows of directories -> the source directory that is visible through them.
    pub(super) lower: HashMap<u64, HostId>,
    pub(super) generated: Vec<(HostId, Arc<[u8]>)>,
    pub(super) listing: Option<(HostId, Listing)>,
    clock: u64,
}

impl Known {
    /// Creates what is known of the root of a mount, which is held as long as the mount.
    pub(super) fn root(mount: usize, kind: FileType, upper: Option<u64>) -> Self {
        let (name, path) = (Box::default(), Some(Arc::default()));
        Self { mount, parent: None, name, path, inode: None, kind, children: 0, holds: 1, used: 0, upper }
    }
}

impl Table {
    pub(super) fn get(&self, id: HostId) -> Result<&Known, FsError> {
        match self.slots.get(id.index as usize) {
            Some((generation, Some(known))) if *generation == id.generation => Ok(known),
            _ => Err(FsError::NoEntry),
        }
    }

    pub(super) fn get_mut(&mut self, id: HostId) -> Result<&mut Known, FsError> {
        match self.slots.get_mut(id.index as usize) {
            Some((generation, Some(known))) if *generation == id.generation => Ok(known),
            _ => Err(FsError::NoEntry),
        }
    }

    // The id of a known name.
    fn child(&self, dir: HostId, name: &str) -> Option<HostId> {
        self.names.get(&dir.index)?.get(name).copied()
    }

    /// Returns the path below the mount point, without slashes at the ends.
    pub(super) fn path(&self, id: HostId) -> Result<Arc<str>, FsError> {
        let mut known = self.get(id)?;
        if let Some(path) = &known.path {
            return Ok(Arc::clone(path));
        }
        let mut names = Vec::new();
        while let Some(parent) = known.parent {
            names.push(&*known.name);
            known = self.get(parent)?;
            if names.len() > DEPTH_MAX {
                return Err(FsError::NameTooLong);
            }
        }
        names.reverse();
        Ok(names.join("/").into())
    }

    /// Returns the path of a name in a directory.
    pub(super) fn path_in(&self, dir: HostId, name: &str) -> Result<Arc<str>, FsError> {
        match self.child(dir, name).and_then(|id| self.get(id).ok()?.path.clone()) {
            Some(path) => Ok(path),
            None => Ok(path_in(&self.path(dir)?, name).into()),
        }
    }

    /// Returns the id of a name, new or known.
    pub(super) fn meet(&mut self, dir: HostId, name: &str, kind: FileType) -> Result<HostId, FsError> {
        self.clock += 1;
        let used = self.clock;
        if let Some(id) = self.child(dir, name)
            && let Ok(known) = self.get_mut(id)
        {
            if known.kind == kind || known.upper.is_some() {
                known.used = used;
                return Ok(id);
            }
            // The source has replaced it.
            known.kind = kind;
            known.used = used;
            self.generated.retain(|(kept, _)| *kept != id);
            return Ok(id);
        }
        let above = self.get(dir)?;
        let path =
            above.path.as_deref().filter(|above| above.len() + name.len() < PATH_MAX).map(|above| path_in(above, name).into());
        let new = Known { parent: Some(dir), name: name.into(), path, holds: 0, used, ..Known::root(above.mount, kind, None) };
        let id = self.add(new)?;
        self.get_mut(dir)?.children += 1;
        self.names.entry(dir.index).or_default().insert(name.into(), id);
        Ok(id)
    }

    pub(super) fn add(&mut self, known: Known) -> Result<HostId, FsError> {
        if self.slots.len() - self.free.len() >= NODES_MAX {
            self.forget_oldest();
        }
        if let Some(index) = self.free.pop() {
            let Some(slot) = self.slots.get_mut(index as usize) else { return Err(FsError::Io) };
            slot.0 = slot.0.wrapping_add(1);
            slot.1 = Some(known);
            return Ok(HostId { index, generation: slot.0 });
        }
        if self.slots.len() >= NODES_MAX {
            return Err(FsError::NoSpace);
        }
        self.slots.push((0, Some(known)));
        Ok(HostId { index: u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX), generation: 0 })
    }

    // Forgets the older half of the files that are neither open nor on the path to a known one.
    fn forget_oldest(&mut self) {
        let newest = self.clock.saturating_sub(NODES_MAX as u64 / 2);
        // Leaves first: each round frees directories for the next.
        for _ in 0..DEPTH_MAX {
            let mut forgotten = Vec::new();
            for (index, (_, slot)) in self.slots.iter().enumerate() {
                if let Some(known) = slot
                    && known.children == 0
                    && known.holds == 0
                    && known.used < newest
                    && known.parent.is_some()
                {
                    forgotten.push(index);
                }
            }
            if forgotten.is_empty() {
                return;
            }
            for index in forgotten {
                let Some(known) = self.slots.get_mut(index).and_then(|slot| slot.1.take()) else { continue };
                if let Some(parent) = known.parent {
                    if let Entry::Occupied(mut names) = self.names.entry(parent.index) {
                        names.get_mut().remove(&known.name);
                        if names.get().is_empty() {
                            names.remove();
                        }
                    }
                    if let Ok(parent) = self.get_mut(parent) {
                        parent.children = parent.children.saturating_sub(1);
                    }
                }
                self.free.push(u32::try_from(index).unwrap_or(u32::MAX));
            }
        }
    }

    pub(super) fn keep_generated(&mut self, id: HostId, bytes: &Arc<[u8]>) {
        if self.generated.len() >= GENERATED_MAX {
            self.generated.remove(0);
        }
        self.generated.push((id, Arc::clone(bytes)));
    }
}
