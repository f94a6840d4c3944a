//! Packs: many objects in one file, some as differences from others, and the index that finds them.

pub(crate) mod delta;
pub(crate) mod index;
pub(crate) mod read;
pub(crate) mod write;

/// How a pack begins, with its version.
pub(crate) const MAGIC: &[u8; 8] = b"PACK\0\0\0\x02";
/// Bytes before the first object.
pub(crate) const HEADER_LEN: usize = 12;
pub(crate) const HEADER_BYTES: u64 = HEADER_LEN as u64;
/// The kinds of entries that are differences: from an earlier offset, and from an object by name.
pub(crate) const OFFSET_DELTA: u8 = 6;
pub(crate) const NAME_DELTA: u8 = 7;
