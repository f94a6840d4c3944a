//! Zip files as wheels are: stored or deflated, in one piece, not encrypted. Anything else is refused.
//!
//! A crate for zip files would bring features that this must not have, and make the engine's own dependencies be built
//! anew. Hashes are compared by `RECORD`, so the archive's own checksums are not looked at.

use miniz_oxide::inflate::decompress_to_vec_with_limit;

const END: &[u8; 4] = b"PK\x05\x06";
const END_BYTES: usize = 22;
const ENTRY: &[u8; 4] = b"PK\x01\x02";
const LOCAL: &[u8; 4] = b"PK\x03\x04";

/// The end may be followed by a comment of at most so many bytes.
const MAX_COMMENT: usize = u16::MAX as usize;

/// The flag of an encrypted file.
const ENCRYPTED: u16 = 1;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// A file in an archive, as the directory at its end tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// Its name, as it is written.
    pub(crate) name: &'a str,
    /// It is a symbolic link on Unix.
    pub(crate) is_symlink: bool,
    method: u16,
    packed: usize,
    at: usize,
}

/// Numbers from bytes, little-endian, none beyond the end.
#[derive(Clone, Copy)]
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn at(bytes: &'a [u8], offset: usize) -> Option<Self> {
        bytes.get(offset..).map(Self)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn length(&mut self) -> Option<usize> {
        self.u16().map(usize::from)
    }

    fn size(&mut self) -> Option<usize> {
        // All ones stand for a number elsewhere, in archives larger than any wheel here.
        self.u32().filter(|&size| size != u32::MAX).and_then(|size| usize::try_from(size).ok())
    }
}

/// The files of an archive.
pub(crate) fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, String> {
    let (count, mut directory) = directory(bytes).ok_or("it is not a zip file")?;
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(entry(&mut directory).ok_or("its directory is damaged")??);
    }
    Ok(entries)
}

fn directory(bytes: &[u8]) -> Option<(u16, Cursor<'_>)> {
    let from = bytes.len().saturating_sub(END_BYTES + MAX_COMMENT);
    let found = bytes.get(from..)?.windows(END.len()).rposition(|window| window == END)?;
    let mut end = Cursor::at(bytes, from + found + END.len())?;
    let (disk, first_disk) = (end.u16()?, end.u16()?);
    let (here, count) = (end.u16()?, end.u16()?);
    let (_size, start) = (end.size()?, end.size()?);
    let comment = end.length()?;
    let in_one_piece = disk == 0 && first_disk == 0 && here == count && comment == end.0.len();
    in_one_piece.then_some((count, Cursor::at(bytes, start)?))
}

// Nothing when the bytes end too early; an error when there is something that this does not read.
fn entry<'a>(cursor: &mut Cursor<'a>) -> Option<Result<Entry<'a>, String>> {
    if cursor.take(ENTRY.len())? != ENTRY {
        return None;
    }
    let (made_by, _needed, flags, method) = (cursor.u16()?, cursor.u16()?, cursor.u16()?, cursor.u16()?);
    let (_time, _sum) = (cursor.u32()?, cursor.u32()?);
    let (packed, _size) = (cursor.size()?, cursor.size()?);
    let (name, extra, comment) = (cursor.length()?, cursor.length()?, cursor.length()?);
    let (_disk, _internal, external, at) = (cursor.u16()?, cursor.u16()?, cursor.u32()?, cursor.size()?);
    let name = cursor.take(name)?;
    cursor.take(extra + comment)?;
    let Ok(name) = std::str::from_utf8(name) else { return Some(Err("a name in it is not UTF-8".to_owned())) };
    if flags & ENCRYPTED != 0 || ![STORED, DEFLATED].contains(&method) {
        return Some(Err(format!("`{name}` is packed in a way that wheels do not use")));
    }
    let (on_unix, mode) = (made_by >> 8 == 3, external >> 16);
    Some(Ok(Entry { name, is_symlink: on_unix && mode & 0o170_000 == 0o120_000, method, packed, at }))
}

impl Entry<'_> {
    /// What is in the file, unless it is larger than this.
    pub(crate) fn content(&self, bytes: &[u8], largest: usize) -> Result<Vec<u8>, &'static str> {
        let packed = self.packed_bytes(bytes).ok_or("it is not where the directory says")?;
        if self.method == STORED {
            return if packed.len() <= largest { Ok(packed.to_vec()) } else { Err("it is too large") };
        }
        decompress_to_vec_with_limit(packed, largest).map_err(|_| "it is damaged, or too large")
    }

    fn packed_bytes<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let mut local = Cursor::at(bytes, self.at)?;
        if local.take(LOCAL.len())? != LOCAL {
            return None;
        }
        local.take(22)?;
        let (name, extra) = (local.length()?, local.length()?);
        // Both places must say the same name: what is checked is what is unpacked, whoever reads.
        if local.take(name)? != self.name.as_bytes() {
            return None;
        }
        local.take(extra)?;
        local.take(self.packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // One stored file, as any zip program writes it.
    fn archive(name: &str, content: &[u8]) -> Vec<u8> {
        let (length, size) = ((name.len() as u16).to_le_bytes(), (content.len() as u32).to_le_bytes());
        let mut bytes = [&LOCAL[..], &[0; 14], &size, &size, &length, &[0; 2], name.as_bytes(), content].concat();
        let start = (bytes.len() as u32).to_le_bytes();
        let entry = [&ENTRY[..], &[0; 16], &size, &size, &length, &[0; 16], name.as_bytes()].concat();
        bytes.extend_from_slice(&entry);
        let one = 1u16.to_le_bytes();
        bytes.extend_from_slice(&[&END[..], &[0; 4], &one, &one, &(entry.len() as u32).to_le_bytes(), &start, &[0; 2]].concat());
        bytes
    }

    #[test]
    fn a_file_is_found_and_read() {
        let bytes = archive("a/b.py", b"x = 1");
        let entries = entries(&bytes).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!((entries[0].name, entries[0].content(&bytes, 5)), ("a/b.py", Ok(b"x = 1".to_vec())));
        assert!(entries[0].content(&bytes, 4).is_err());
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = archive("a/b.py", b"x = 1");
        for length in 0..bytes.len() {
            assert!(entries(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn damage_never_panics() {
        let whole = archive("a/b.py", b"x = 1");
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                for entry in entries(&bytes).unwrap_or_default() {
                    let _ = entry.content(&bytes, 100);
                }
            }
        }
    }
}
