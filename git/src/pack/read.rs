//! Reading an untrusted pack.

use std::fs::File;
use std::path::PathBuf;

use super::index::Index;
use super::{HEADER_BYTES, HEADER_LEN, MAGIC, NAME_DELTA, OFFSET_DELTA};
use crate::error::Error;
use crate::id::{Hasher, ID_BYTES};
use crate::zlib::{self, Inflater};
use crate::{Id, Kind};

/// Number of compressed bytes read at once: few at first, because most objects are small.
const FIRST_BYTES: usize = 4 << 10;
const NEXT_BYTES: usize = 64 << 10;
/// Maximum size of an object's header: its kind, its size and the position of its base.
const ENTRY_BYTES: usize = 10 + ID_BYTES;

/// A pack in a file, or in the later part of one.
pub(crate) struct Pack {
    file: File,
    path: PathBuf,
    start: u64,
    /// Size of the pack without its checksum, in bytes.
    len: u64,
    pub(crate) index: Index,
}

/// How an object is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Whole(Kind),
    /// A delta against the object at another offset.
    FromOffset(u64),
    /// A delta against another object.
    FromName(Id),
}

/// An object in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) stored: Stored,
    /// Size of the stored data, in bytes.
    pub(crate) size: u64,
    data: u64,
}

impl Pack {
    /// Opens a pack and checks its header and that it has as many objects as its index.
    pub(crate) fn open(file: File, path: PathBuf, start: u64, index: Index) -> Result<Self, Error> {
        let length = file.metadata().map_err(Error::io(&path))?.len();
        let cut = || Error::damaged(format!("`{}` is truncated", path.display()));
        let len = length.checked_sub(start + ID_BYTES as u64).filter(|len| *len >= HEADER_BYTES).ok_or_else(cut)?;
        Ok(Self { file, path, start, len, index })
    }

    /// Returns the number of objects stated in the pack's header.
    pub(crate) fn count(&self) -> Result<u64, Error> {
        let mut head = [0; HEADER_LEN];
        self.read_exact(0, &mut head)?;
        match head.split_at(MAGIC.len()) {
            (magic, count) if magic == MAGIC => Ok(count.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))),
            _ => Err(Error::Unsupported(format!("`{}` is not a pack of version 2", self.path.display()))),
        }
    }

    /// Compares the checksum at the end. `is_over` cancels it.
    pub(crate) fn verify(&self, is_over: &dyn Fn() -> bool) -> Result<(), Error> {
        let (mut hasher, mut at, mut piece) = (Hasher::new(), 0, vec![0; NEXT_BYTES]);
        while at < self.len {
            if is_over() {
                return Err(Error::Interrupted);
            }
            let len = piece.len().min(usize::try_from(self.len - at).unwrap_or(usize::MAX));
            let bytes = piece.get_mut(..len).unwrap_or_default();
            self.read_exact(at, bytes)?;
            hasher.update(bytes);
            at += len as u64;
        }
        let mut sum = [0; ID_BYTES];
        self.read_exact(self.len, &mut sum)?;
        if hasher.finish().0 == sum {
            Ok(())
        } else {
            Err(Error::damaged(format!("`{}` is truncated or damaged: its checksum differs", self.path.display())))
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(&self.file, buffer, self.start + offset);
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(&self.file, buffer, self.start + offset);
        read.map_err(Error::io(&self.path))
    }

    fn read_exact(&self, mut offset: u64, mut buffer: &mut [u8]) -> Result<(), Error> {
        while !buffer.is_empty() {
            let len = self.read_at(offset, buffer)?;
            if len == 0 {
                return Err(Error::damaged(format!("`{}` is truncated", self.path.display())));
            }
            offset += len as u64;
            buffer = buffer.get_mut(len..).unwrap_or_default();
        }
        Ok(())
    }

    /// Reads the entry at an offset.
    pub(crate) fn entry(&self, offset: u64) -> Result<Entry, Error> {
        let wrong = || Error::damaged(format!("`{}` has no object at {offset}", self.path.display()));
        if offset < HEADER_BYTES || offset >= self.len {
            return Err(wrong());
        }
        let mut bytes = [0; ENTRY_BYTES];
        let read = self.read_at(offset, &mut bytes)?;
        let mut bytes = bytes.get(..read).unwrap_or_default().iter().copied();
        let first = bytes.next().ok_or_else(wrong)?;
        let (mut size, mut shift, mut used, mut more) = (u64::from(first & 0x0F), 4u32, 1, first & 0x80 != 0);
        while more {
            let byte = bytes.next().ok_or_else(wrong)?;
            size |= u64::from(byte & 0x7F).checked_shl(shift).filter(|_| shift < 57).ok_or_else(wrong)?;
            (shift, used, more) = (shift + 7, used + 1, byte & 0x80 != 0);
        }
        let stored = match first >> 4 & 0x07 {
            OFFSET_DELTA => {
                let mut byte = bytes.next().ok_or_else(wrong)?;
                let mut back = u64::from(byte & 0x7F);
                used += 1;
                while byte & 0x80 != 0 {
                    byte = bytes.next().ok_or_else(wrong)?;
                    back =
                        back.checked_add(1).and_then(|back| back.checked_mul(0x80)).ok_or_else(wrong)? | u64::from(byte & 0x7F);
                    used += 1;
                }
                // The base is earlier than the delta, so a chain can only go back.
                let base = offset.checked_sub(back).filter(|base| *base < offset && *base >= HEADER_BYTES);
                Stored::FromOffset(base.ok_or_else(wrong)?)
            }
            NAME_DELTA => {
                let mut id = [0; ID_BYTES];
                for byte in &mut id {
                    *byte = bytes.next().ok_or_else(wrong)?;
                }
                used += ID_BYTES as u64;
                Stored::FromName(Id(id))
            }
            number => Stored::Whole(Kind::of_number(number).ok_or_else(wrong)?),
        };
        Ok(Entry { stored, size, data: offset + used })
    }

    /// Inflates the first bytes of an entry: the sizes of a delta.
    pub(crate) fn beginning(&self, entry: &Entry) -> Result<Vec<u8>, Error> {
        let mut bytes = [0; 256];
        let read = self.read_at(entry.data, &mut bytes)?;
        zlib::beginning(bytes.get(..read).unwrap_or_default(), 20)
    }

    /// Inflates an entry, whose size the caller has checked, and returns it with the offset after it.
    pub(crate) fn inflate(&self, entry: &Entry) -> Result<(Vec<u8>, u64), Error> {
        let size = usize::try_from(entry.size).map_err(|_| Error::TooLarge("an object does not fit in memory".to_owned()))?;
        let (mut inflater, mut at) = (Inflater::new(size), entry.data);
        let mut piece = vec![0; if size < FIRST_BYTES { FIRST_BYTES } else { NEXT_BYTES }];
        loop {
            let room = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX).min(piece.len());
            let read = self.read_at(at, piece.get_mut(..room).unwrap_or_default())?;
            let done = inflater.piece(piece.get(..read).unwrap_or_default(), read > 0)?;
            at += done.consumed as u64;
            if done.is_over {
                return Ok((inflater.finish()?, at));
            }
            piece.resize(NEXT_BYTES, 0);
        }
    }
}
