//! Zip files in one piece, as the host reads wheels and guests read what `unzip` is given. Hostile ones too: nothing is
//! believed that the bytes do not have, no number makes room for anything, and no two files share bytes.
//!
//! Names are left to the caller, who knows where they lead. So are checksums: [`Entry::sum`] is the one in the archive.

mod cursor;

use core::fmt;

use cursor::Cursor;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

const END: &[u8; 4] = b"PK\x05\x06";
const END_BYTES: usize = 22;
const ENTRY: &[u8; 4] = b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
const LOCAL: &[u8; 4] = b"PK\x03\x04";
const LARGE_END: &[u8; 4] = b"PK\x06\x06";
const LARGE_LOCATOR: &[u8; 4] = b"PK\x06\x07";
const LARGE_LOCATOR_BYTES: usize = 20;

/// The end may be followed by a comment of at most this many bytes.
const MAX_COMMENT: usize = u16::MAX as usize;

/// The flag of an encrypted file.
const ENCRYPTED: u16 = 1;

/// The extra field that has numbers of 64 bits.
const LARGE_FIELD: u16 = 1;

/// The system that puts a Unix mode into the upper half of the attributes.
const UNIX: u8 = 3;
/// macOS, which does the same.
const DARWIN: u8 = 19;

/// Not packed.
pub const STORED: u16 = 0;
/// Packed by deflation.
pub const DEFLATED: u16 = 8;

/// An error of an archive, or of a file in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no end of a directory, or the archive is one of several parts.
    NotZip,
    /// The directory is truncated, or is not at the position in the end record.
    Directory,
    /// Two files have bytes in common.
    Overlap,
    /// A file is not at the position in the directory, or has another name there.
    Misplaced,
    /// A file is encrypted, or packed in a way that this does not know.
    Unsupported,
    /// A file is damaged, or larger than was asked for.
    Content,
    /// A file that is not packed is larger than was asked for.
    TooLarge,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotZip => "it is not a zip file",
            Self::Directory => "its directory is damaged",
            Self::Overlap => "files in it overlap",
            Self::Misplaced => "it is not where the directory says",
            Self::Unsupported => "it is encrypted or packed in an unknown way",
            Self::Content => "it is damaged, or too large",
            Self::TooLarge => "it is too large",
        })
    }
}

impl std::error::Error for Error {}

/// A file in an archive, as the directory at its end describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name, as it is written.
    pub name: &'a [u8],
    /// The compression method.
    pub method: u16,
    /// The CRC-32 that its content should have.
    pub sum: u32,
    /// The size that its content should have.
    pub size: u64,
    /// The time of day, in the format's own bits.
    pub clock: u16,
    /// The date, in the format's own bits.
    pub date: u16,
    /// Its Unix mode, if it was packed on such a system.
    pub mode: u32,
    encrypted: bool,
    packed: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Returns whether it is a symbolic link.
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }

    /// Returns whether it needs a password.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Its bytes in the archive.
    #[must_use]
    pub fn packed(&self) -> &'a [u8] {
        self.packed
    }

    /// Returns what is in the file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Unsupported`], [`Error::Content`] or [`Error::TooLarge`] if that cannot be unpacked or is larger than
    /// `largest`.
    pub fn content(&self, largest: usize) -> Result<Vec<u8>, Error> {
        if self.encrypted {
            return Err(Error::Unsupported);
        }
        unpack(self.method, self.packed, largest)
    }
}

/// Unpacks bytes that are packed by `method`.
///
/// # Errors
///
/// As [`Entry::content`].
pub fn unpack(method: u16, packed: &[u8], largest: usize) -> Result<Vec<u8>, Error> {
    match method {
        STORED if packed.len() > largest => Err(Error::TooLarge),
        STORED => Ok(packed.to_vec()),
        DEFLATED => decompress_to_vec_with_limit(packed, largest).map_err(|_| Error::Content),
        _ => Err(Error::Unsupported),
    }
}

/// Returns the files of an archive, in the order of its directory. Names may repeat.
///
/// # Errors
///
/// Returns [`Error::NotZip`], [`Error::Directory`], [`Error::Misplaced`] or [`Error::Overlap`].
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, Error> {
    let End { count, start, limit } = end(bytes).ok_or(Error::NotZip)?;
    let directory = bytes.get(start..limit).ok_or(Error::Directory)?;
    // No more than fit into the directory, whatever number is written.
    if count > (directory.len() / ENTRY_BYTES) as u64 {
        return Err(Error::Directory);
    }
    let (mut entries, mut spans) = (Vec::new(), Vec::new());
    let mut cursor = Cursor(directory);
    for _ in 0..count {
        let listed = listed(&mut cursor).ok_or(Error::Directory)?;
        let (span, packed) = placed(bytes, &listed, start).ok_or(Error::Misplaced)?;
        spans.push(span);
        entries.push(Entry { packed, ..listed.entry });
    }
    spans.sort_unstable();
    if spans.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(Error::Overlap);
    }
    Ok(entries)
}

/// Where the directory is: its files, its first byte and the one after its last.
struct End {
    count: u64,
    start: usize,
    limit: usize,
}

fn end(bytes: &[u8]) -> Option<End> {
    let from = bytes.len().saturating_sub(END_BYTES + MAX_COMMENT);
    let tail = bytes.get(from..)?;
    // The last one whose comment ends with the file: a comment may contain what looks like an end.
    let places = tail.windows(END.len()).enumerate().rev().filter(|(_, window)| window == END);
    places.map(|(place, _)| from + place).find_map(|at| end_at(bytes, at))
}

fn end_at(bytes: &[u8], at: usize) -> Option<End> {
    let mut end = Cursor::at(bytes, at + END.len())?;
    let (disk, first_disk) = (end.u16()?, end.u16()?);
    let (here, count) = (end.u16()?, end.u16()?);
    let (size, start) = (end.u32()?, end.u32()?);
    let comment = end.u16()?;
    if usize::from(comment) != end.0.len() || disk != first_disk || here != count {
        return None;
    }
    let elsewhere = count == u16::MAX || size == u32::MAX || start == u32::MAX;
    if elsewhere && let Some(end) = large_end(bytes, at) {
        return Some(end);
    }
    if disk != 0 {
        return None;
    }
    bounded(u64::from(count), u64::from(start), at)
}

/// Returns the end with numbers of 64 bits, which a locator before the short end points to.
fn large_end(bytes: &[u8], short: usize) -> Option<End> {
    let mut locator = Cursor::at(bytes, short.checked_sub(LARGE_LOCATOR_BYTES)?)?;
    if locator.take(4)? != LARGE_LOCATOR || locator.u32()? != 0 {
        return None;
    }
    let at = usize::try_from(locator.u64()?).ok()?;
    let mut end = Cursor::at(bytes, at)?;
    if end.take(4)? != LARGE_END {
        return None;
    }
    end.take(12)?;
    let (disk, first_disk) = (end.u32()?, end.u32()?);
    let (here, count) = (end.u64()?, end.u64()?);
    let (_size, start) = (end.u64()?, end.u64()?);
    if disk != 0 || first_disk != 0 || here != count {
        return None;
    }
    bounded(count, start, at)
}

fn bounded(count: u64, start: u64, limit: usize) -> Option<End> {
    let start = usize::try_from(start).ok().filter(|&start| start <= limit)?;
    Some(End { count, start, limit })
}

/// A file as the directory has it: how long it is packed, and where.
struct Listed<'a> {
    entry: Entry<'a>,
    packed: u64,
    at: u64,
}

fn listed<'a>(cursor: &mut Cursor<'a>) -> Option<Listed<'a>> {
    if cursor.take(ENTRY.len())? != ENTRY {
        return None;
    }
    let [_version, system] = cursor.u16()?.to_le_bytes();
    let (_needed, flags, method) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
    let (clock, date, sum) = (cursor.u16()?, cursor.u16()?, cursor.u32()?);
    let (packed, size) = (cursor.u32()?, cursor.u32()?);
    let (name, extra, comment) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
    let (_disk, _internal, external, at) = (cursor.u16()?, cursor.u16()?, cursor.u32()?, cursor.u32()?);
    let name = cursor.take(usize::from(name))?;
    let extra = cursor.take(usize::from(extra))?;
    cursor.take(usize::from(comment))?;
    // All ones stand for a number in the extra field, where they come in this order.
    let mut large = large_field(extra).unwrap_or(Cursor(&[]));
    let mut widened = |number: u32| if number == u32::MAX { large.u64() } else { Some(u64::from(number)) };
    let (size, packed, at) = (widened(size)?, widened(packed)?, widened(at)?);
    let mode = if matches!(system, UNIX | DARWIN) { external >> 16 } else { 0 };
    let entry = Entry { name, method, sum, size, clock, date, mode, encrypted: flags & ENCRYPTED != 0, packed: &[] };
    Some(Listed { entry, packed, at })
}

fn large_field(extra: &[u8]) -> Option<Cursor<'_>> {
    let mut fields = Cursor(extra);
    loop {
        let (kind, length) = (fields.u16()?, fields.u16()?);
        let field = fields.take(usize::from(length))?;
        if kind == LARGE_FIELD {
            return Some(Cursor(field));
        }
    }
}

type Span = (usize, usize);

/// Returns the span of a file in the archive with its head, and its bytes. It ends before the directory.
fn placed<'a>(bytes: &'a [u8], listed: &Listed<'a>, directory: usize) -> Option<(Span, &'a [u8])> {
    let before = bytes.get(..directory)?;
    let at = usize::try_from(listed.at).ok()?;
    let mut local = Cursor::at(before, at)?;
    if local.take(LOCAL.len())? != LOCAL {
        return None;
    }
    local.take(22)?;
    let (name, extra) = (local.u16()?, local.u16()?);
    // Both places must have the same name: then every reader unpacks the entry that was checked.
    if local.take(usize::from(name))? != listed.entry.name {
        return None;
    }
    local.take(usize::from(extra))?;
    let packed = local.take(usize::try_from(listed.packed).ok()?)?;
    Some(((at, before.len() - local.0.len()), packed))
}

#[cfg(test)]
mod tests;
