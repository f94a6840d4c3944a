//! The index of a pack: the offset of each object, by name (version 2).

use crate::Id;
use crate::error::Error;
use crate::id::{Hasher, ID_BYTES};

const MAGIC: &[u8; 8] = b"\xfftOc\0\0\0\x02";
const FAN_BYTES: usize = 256 * 4;
/// Offsets from this one on are stored in a separate table.
const LARGE: u32 = 1 << 31;

/// An object in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) id: Id,
    pub(crate) offset: u64,
    pub(crate) crc: u32,
}

/// Encodes an index.
pub(crate) fn encode(objects: &mut [Placed], pack: Id) -> Vec<u8> {
    objects.sort_unstable_by_key(|placed| placed.id);
    let mut out = MAGIC.to_vec();
    let mut at = 0;
    for first in 0..=255u8 {
        at += objects.get(at..).unwrap_or_default().iter().take_while(|placed| placed.id.0[0] <= first).count();
        out.extend_from_slice(&u32::try_from(at).unwrap_or(u32::MAX).to_be_bytes());
    }
    objects.iter().for_each(|placed| out.extend_from_slice(&placed.id.0));
    objects.iter().for_each(|placed| out.extend_from_slice(&placed.crc.to_be_bytes()));
    let mut large = Vec::new();
    for placed in objects.iter() {
        let small = u32::try_from(placed.offset).ok().filter(|offset| *offset < LARGE);
        let stored = small.unwrap_or_else(|| {
            let number = u32::try_from(large.len() / 8).unwrap_or(0);
            large.extend_from_slice(&placed.offset.to_be_bytes());
            LARGE | number
        });
        out.extend_from_slice(&stored.to_be_bytes());
    }
    out.append(&mut large);
    out.extend_from_slice(&pack.0);
    let mut hasher = Hasher::new();
    hasher.update(&out);
    out.extend_from_slice(&hasher.finish().0);
    out
}

/// The offsets of the objects of a pack.
pub(crate) enum Index {
    /// A file.
    File { bytes: Vec<u8>, count: usize },
    /// A list, sorted by name.
    List(Vec<(Id, u64)>),
}

impl Index {
    /// Parses the bytes of a file, checking that its parts are consistent.
    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Self, Error> {
        if bytes.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(Error::Unsupported(
                "a pack index whose version is not 2; create a new one with `git repack -ad`".to_owned(),
            ));
        }
        let fan = |at: usize| be32(&bytes, MAGIC.len() + 4 * at);
        let is_rising = (1..256).all(|at| fan(at - 1) <= fan(at));
        let count = fan(255).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        let least = (MAGIC.len() + FAN_BYTES + 2 * ID_BYTES) as u64 + (ID_BYTES as u64 + 8) * count as u64;
        let is_right = |bytes: &[u8]| {
            let (body, sum) = bytes.split_at(bytes.len() - ID_BYTES);
            let mut hasher = Hasher::new();
            hasher.update(body);
            hasher.finish().0 == *sum
        };
        if !is_rising || (bytes.len() as u64) < least || !is_right(&bytes) {
            return Err(Error::damaged("the index of a pack is damaged"));
        }
        Ok(Self::File { bytes, count })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::File { count, .. } => *count,
            Self::List(list) => list.len(),
        }
    }

    fn id(&self, at: usize) -> Option<Id> {
        match self {
            Self::File { bytes, .. } => {
                let start = MAGIC.len() + FAN_BYTES + at * ID_BYTES;
                Id::of_slice(bytes.get(start..start + ID_BYTES)?)
            }
            Self::List(list) => list.get(at).map(|(id, _)| *id),
        }
    }

    fn offset(&self, at: usize) -> Option<u64> {
        match self {
            Self::File { bytes, count } => {
                let offsets = MAGIC.len() + FAN_BYTES + count * (ID_BYTES + 4);
                let small = be32(bytes, offsets + 4 * at)?;
                if small & LARGE == 0 {
                    return Some(u64::from(small));
                }
                let start = offsets + 4 * count + 8 * usize::try_from(small & !LARGE).ok()?;
                Some(u64::from_be_bytes(bytes.get(start..start + 8)?.try_into().ok()?))
            }
            Self::List(list) => list.get(at).map(|(_, offset)| *offset),
        }
    }

    // Returns the first object that does not sort before a name.
    fn first_from(&self, id: Id) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.id(middle).is_some_and(|found| found < id) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Returns the offset of an object.
    pub(crate) fn find(&self, id: Id) -> Option<u64> {
        let at = self.first_from(id);
        self.id(at).filter(|found| *found == id).and_then(|_| self.offset(at))
    }

    /// Returns at most two names from the given one on, enough to check whether an abbreviation is unique.
    pub(crate) fn two_from(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        let at = self.first_from(id);
        (at..at + 2).filter_map(|at| self.id(at))
    }
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The checksum of each object in an index: CRC-32, as zlib computes it.
pub(crate) struct Crc(u32);

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0u32;
    while at < 256 {
        let (mut value, mut bit) = (at, 0);
        while bit < 8 {
            value = if value & 1 == 1 { 0xEDB8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[at as usize] = value;
        at += 1;
    }
    table
};

impl Crc {
    pub(crate) fn new() -> Self {
        Self(u32::MAX)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let at = (self.0 ^ u32::from(*byte)) & 0xFF;
            self.0 = CRC_TABLE.get(at as usize).copied().unwrap_or(0) ^ (self.0 >> 8);
        }
    }

    pub(crate) fn finish(&self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_by_its_name() {
        let id = |n: u8| Id([n; ID_BYTES]);
        let mut objects: Vec<Placed> =
            [9u8, 3, 200].map(|n| Placed { id: id(n), offset: u64::from(n) << if n == 200 { 32 } else { 0 }, crc: 0 }).to_vec();
        let bytes = encode(&mut objects, id(7));
        let index = Index::parse(bytes.clone()).unwrap();
        assert_eq!(
            [index.find(id(3)), index.find(id(9)), index.find(id(200)), index.find(id(4))],
            [Some(3), Some(9), Some(200 << 32), None]
        );
        assert_eq!(index.two_from(id(4)).collect::<Vec<_>>(), [id(9), id(200)]);
        for at in [0, 8, 900, 1040, bytes.len() - 1] {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x40;
            assert!(Index::parse(wrong).is_err(), "{at}");
        }
        assert!(Index::parse(bytes[..bytes.len() - 20].to_vec()).is_err() && Index::parse(Vec::new()).is_err());
    }

    #[test]
    fn the_checksum_is_that_of_zlib() {
        let mut crc = Crc::new();
        crc.update(b"1234");
        crc.update(b"56789");
        assert_eq!(crc.finish(), 0xCBF4_3926);
    }
}
