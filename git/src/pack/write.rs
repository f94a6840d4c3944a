//! Writing a new pack, object by object.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::index::{self, Crc, Placed};
use super::{HEADER_BYTES, MAGIC, OFFSET_DELTA, delta};
use crate::error::Error;
use crate::id::Hasher;
use crate::zlib::Deflater;
use crate::{Id, Kind};

/// Maximum length of a delta chain, as in git: reading the last object takes this many steps.
const CHAIN_MAX: u32 = 50;
/// Number of bytes copied at once.
const COPY_BYTES: usize = 256 << 10;

/// A pack that is being written.
pub struct PackWriter {
    file: BufWriter<File>,
    path: PathBuf,
    /// The offset of the next object.
    offset: u64,
    objects: Vec<Placed>,
    /// The offset of each object and the length of its delta chain.
    known: HashMap<Id, (u64, u32)>,
    deflater: Deflater,
    buffer: Vec<u8>,
}

/// A complete pack.
pub struct Packed {
    /// Its checksum, which is part of its file's name.
    pub id: Id,
    /// The number of objects.
    pub objects: usize,
    /// Its size, in bytes.
    pub bytes: u64,
    placed: Vec<Placed>,
}

impl Packed {
    /// Encodes the index of the pack.
    #[must_use]
    pub fn index(&mut self) -> Vec<u8> {
        index::encode(&mut self.placed, self.id)
    }
}

impl PackWriter {
    /// Starts a pack in a new file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if the file cannot be created.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let failed = Error::io(path);
        let file = File::options().read(true).write(true).create_new(true).open(path).map_err(&failed)?;
        let mut file = BufWriter::with_capacity(COPY_BYTES, file);
        // The number of objects is written last.
        file.write_all(MAGIC).and_then(|()| file.write_all(&[0; 4])).map_err(&failed)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            offset: HEADER_BYTES,
            objects: Vec::new(),
            known: HashMap::new(),
            deflater: Deflater::new(),
            buffer: Vec::new(),
        })
    }

    /// Returns whether an object is in the pack.
    #[must_use]
    pub fn contains(&self, id: Id) -> bool {
        self.known.contains_key(&id)
    }

    /// Adds an object unless the pack already contains it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if it cannot be written.
    pub fn add(&mut self, kind: Kind, bytes: &[u8]) -> Result<Id, Error> {
        let id = Id::of(kind, bytes);
        if !self.contains(id) {
            self.put(id, kind.number(), bytes.len() as u64, &[], bytes, 0)?;
        }
        Ok(id)
    }

    /// Adds an object that is similar to one in the pack: stores only a delta if that is shorter.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if it cannot be written.
    pub fn add_like(&mut self, kind: Kind, bytes: &[u8], like: Option<(Id, &[u8])>) -> Result<Id, Error> {
        let id = Id::of(kind, bytes);
        if self.contains(id) {
            return Ok(id);
        }
        let base = like.and_then(|(base, old)| {
            let (offset, chain) = self.known.get(&base).copied().filter(|(_, chain)| *chain < CHAIN_MAX)?;
            Some((offset, chain + 1, delta::make(old, bytes)?))
        });
        match base {
            Some((offset, chain, difference)) => {
                let back = back(self.offset - offset);
                self.put(id, OFFSET_DELTA, difference.len() as u64, &back, &difference, chain)?;
            }
            None => self.put(id, kind.number(), bytes.len() as u64, &[], bytes, 0)?,
        }
        Ok(id)
    }

    /// Adds a large file piece by piece; `read` fills a buffer and returns 0 at the end.
    ///
    /// # Errors
    ///
    /// Returns the error of `read`, [`Error::Damaged`] if the pieces do not add up to the given size, and [`Error::Io`] if they
    /// cannot be written.
    pub fn add_stream<E: From<Error>>(
        &mut self,
        size: u64,
        mut read: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Id, E> {
        let failed = Error::io(&self.path);
        let before = self.offset;
        let mut head = header(Kind::Blob.number(), size);
        let (mut hasher, mut crc, mut left) = (Hasher::of(Kind::Blob, size), Crc::new(), size);
        let mut piece = vec![0; COPY_BYTES];
        let mut out = std::mem::take(&mut self.buffer);
        out.clear();
        out.append(&mut head);
        loop {
            let len = read(&mut piece)?;
            let bytes = piece.get(..len).unwrap_or_default();
            left = left.checked_sub(len as u64).ok_or_else(|| Error::damaged("a file grew while it was read"))?;
            hasher.update(bytes);
            self.deflater.piece(bytes, len == 0, &mut out)?;
            crc.update(&out);
            self.file.write_all(&out).map_err(&failed)?;
            self.offset += out.len() as u64;
            out.clear();
            if len == 0 {
                break;
            }
        }
        self.buffer = out;
        if left > 0 {
            return Err(Error::damaged("a file became shorter while it was read").into());
        }
        let id = hasher.finish();
        if self.contains(id) {
            // The pack already contains it: the next object overwrites this one.
            self.file.seek(SeekFrom::Start(before)).map_err(&failed)?;
            self.offset = before;
        } else {
            self.known.insert(id, (before, 0));
            self.objects.push(Placed { id, offset: before, crc: crc.finish() });
        }
        Ok(id)
    }

    fn put(&mut self, id: Id, number: u8, size: u64, base: &[u8], bytes: &[u8], chain: u32) -> Result<(), Error> {
        let mut out = std::mem::take(&mut self.buffer);
        out.clear();
        out.append(&mut header(number, size));
        out.extend_from_slice(base);
        self.deflater.piece(bytes, true, &mut out)?;
        let mut crc = Crc::new();
        crc.update(&out);
        self.file.write_all(&out).map_err(Error::io(&self.path))?;
        self.known.insert(id, (self.offset, chain));
        self.objects.push(Placed { id, offset: self.offset, crc: crc.finish() });
        self.offset += out.len() as u64;
        self.buffer = out;
        Ok(())
    }

    /// Completes the pack: writes its number of objects and its checksum.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if the file cannot be written, or [`Error::TooLarge`] if it has too many objects.
    pub fn finish(self) -> Result<Packed, Error> {
        let failed = Error::io(&self.path);
        let count = u32::try_from(self.objects.len()).map_err(|_| Error::TooLarge("more than 4 billion objects".to_owned()))?;
        let end = self.offset;
        let mut file = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        let mut finish = || -> io::Result<Id> {
            // A duplicate object may have left bytes after the last one.
            file.set_len(end)?;
            file.seek(SeekFrom::Start(MAGIC.len() as u64))?;
            file.write_all(&count.to_be_bytes())?;
            file.rewind()?;
            let (mut hasher, mut piece) = (Hasher::new(), vec![0; COPY_BYTES]);
            loop {
                let len = file.read(&mut piece)?;
                if len == 0 {
                    break;
                }
                hasher.update(piece.get(..len).unwrap_or_default());
            }
            let id = hasher.finish();
            file.write_all(&id.0)?;
            Ok(id)
        };
        let id = finish().map_err(&failed)?;
        Ok(Packed { id, objects: self.objects.len(), bytes: self.offset + id.0.len() as u64, placed: self.objects })
    }
}

// The kind and size of an object: four bits of the size, then seven at a time.
fn header(number: u8, size: u64) -> Vec<u8> {
    let mut out = vec![number << 4 | u8::try_from(size & 0x0F).unwrap_or(0)];
    let mut rest = size >> 4;
    while rest > 0 {
        if let Some(last) = out.last_mut() {
            *last |= 0x80;
        }
        out.push(u8::try_from(rest & 0x7F).unwrap_or(0));
        rest >>= 7;
    }
    out
}

// The distance to the base of a delta: seven bits at a time, each group but the last reduced by one.
fn back(mut distance: u64) -> Vec<u8> {
    let mut out = vec![u8::try_from(distance & 0x7F).unwrap_or(0)];
    while distance >> 7 > 0 {
        distance = (distance >> 7) - 1;
        out.push(u8::try_from(distance & 0x7F).unwrap_or(0) | 0x80);
    }
    out.reverse();
    out
}
