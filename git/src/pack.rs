//! Packs: many objects in one file, some stored as deltas against others, and the index that locates them.

pub(crate) mod delta;
pub(crate) mod index;
pub(crate) mod read;
pub(crate) mod write;

/// The first bytes of a pack, with its version.
pub(crate) const MAGIC: &[u8; 8] = b"PACK\0\0\0\x02";
/// Number of bytes before the first object.
pub(crate) const HEADER_LEN: usize = 12;
pub(crate) const HEADER_BYTES: u64 = HEADER_LEN as u64;
/// The kinds of delta entries: against an earlier offset, and against an object by name.
pub(crate) const OFFSET_DELTA: u8 = 6;
pub(crate) const NAME_DELTA: u8 = 7;
