//! The files that a command sees: the sandbox's rows, the fixed world around them (`/bin`, `/dev`, `/proc`, …), and mounts.
//!
//! The only namespace consists of [`Node`]s, and a [`View`] is the only access to them, for guests and all other callers; no host
//! path is ever built from guest text (T-ISO-02). Writing anywhere but to rows is rejected here, below all operations. Knows
//! nothing about descriptors or guest memory.

mod back;
mod change;
pub(crate) mod content;
mod directory;
mod fixed;
mod lend;
#[cfg(test)]
mod model;
mod mounts;
mod overlay;
mod policy;
mod source;
mod tree;
mod unread;
mod view;
mod workplace;

use sqlite_fs::ROOT;

pub use back::TreeMark;
pub(crate) use back::bring_back;
pub(crate) use directory::{HostDirectory, Refused};
pub(crate) use fixed::{Device, Fixed, FixedId, Part, ProcFile, Thing, descriptor_entries};
pub(crate) use lend::{Lent, bytes_below};
pub(crate) use mounts::{HostId, MountPoint, OverlayChanges, is_mount_point, mount_path};
pub(crate) use policy::Binding;
pub(crate) use source::{
    CallbackSource, Complaints, DatabaseSource, GitTree, Moving, Patience, Source, SourceContext, SourceFiles, SourceStat, State,
    is_generating, path_in,
};
pub use source::{NodeContext, ProvidedNode, Provider};
pub use tree::TreeCopy;
pub(crate) use tree::{export_tree, import_tree, stays_inside};
pub(crate) use unread::Unread;
pub(crate) use view::{Scope, TOOL, View};
pub(crate) use workplace::{Becomes, Planned, There, Was, Workplace};

/// A file, a directory, a link or a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// An inode of the database.
    Row(u64),
    /// Part of the fixed world.
    Fixed(FixedId),
    /// A file of a mounted source.
    Host(HostId),
    /// One of the calling process's descriptors, through `/dev/fd`.
    Descriptor(u32),
}

/// The root directory.
pub(crate) const ROOT_NODE: Node = Node::Row(ROOT);

/// The root directory under its other name: only its rows, without the fixed world. No row has this number.
const ALIAS_NODE: Node = Node::Row(u64::MAX);

/// The first inode number of the fixed world, far from any row.
const FIXED_INODES: u64 = 1 << 62;
/// Inode numbers of `/dev/fd` entries.
const DESCRIPTOR_INODES: u64 = 1 << 61;
