//! The zip format: local heads, the central directory and its end.

use std::io::{Read as _, Write as _};

use sys::calendar;

/// One member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub name: Vec<u8>,
    /// 0 stored, 8 deflated.
    pub method: u16,
    pub crc: u32,
    pub size: u64,
    pub packed: Vec<u8>,
    pub mode: u32,
    pub modified: i64,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// Seconds since 1970 as the format's date and time.
fn dos(seconds: i64) -> (u16, u16) {
    let (year, month, day) = calendar::from_days(seconds.div_euclid(86_400));
    let year = (year.clamp(1980, 2107) - 1980) as u16;
    let of_day = seconds.rem_euclid(86_400);
    let clock = (of_day % 60 / 2) | (of_day / 60 % 60) << 5 | (of_day / 3600) << 11;
    (clock as u16, day as u16 | ((month as u16) << 5) | (year << 9))
}

fn from_dos(clock: u16, date: u16) -> i64 {
    let days = calendar::to_days(i64::from(date >> 9) + 1980, i64::from(date >> 5 & 15), i64::from(date & 31));
    days * 86_400 + i64::from(clock >> 11) * 3600 + i64::from(clock >> 5 & 63) * 60 + i64::from(clock & 31) * 2
}

impl Member {
    /// Packs a content, deflated where that is smaller.
    pub fn pack(name: Vec<u8>, content: &[u8], mode: u32, modified: i64, level: u32) -> Self {
        let mut member = Self {
            name,
            method: 0,
            crc: crc32fast::hash(content),
            size: content.len() as u64,
            packed: content.to_vec(),
            mode,
            modified,
        };
        if level > 0 {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(level.min(9)));
            if encoder.write_all(content).is_ok()
                && let Ok(packed) = encoder.finish()
                && packed.len() < content.len()
            {
                member.method = 8;
                member.packed = packed;
            }
        }
        member
    }

    /// The content; `None` when it is damaged or packed in an unknown way.
    pub fn content(&self) -> Option<Vec<u8>> {
        let content = match self.method {
            0 => self.packed.clone(),
            8 => {
                let mut content = Vec::new();
                flate2::read::DeflateDecoder::new(self.packed.as_slice()).read_to_end(&mut content).ok()?;
                content
            }
            _ => return None,
        };
        (crc32fast::hash(&content) == self.crc).then_some(content)
    }

    /// What the local and the central head share.
    fn common(&self) -> Vec<u8> {
        let (clock, date) = dos(self.modified);
        let mut out = Vec::new();
        for value in [0, self.method, clock, date] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        for value in [self.crc, self.packed.len() as u32, self.size as u32] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&(self.name.len() as u16).to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        out
    }
}

/// The members of an archive; `None` when it is none.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Member>> {
    let end = memchr::memmem::rfind(bytes, b"PK\x05\x06")?;
    let count = u16_at(bytes, end + 10)?;
    let mut at = u32_at(bytes, end + 16)? as usize;
    let mut members = Vec::new();
    for _ in 0..count {
        if bytes.get(at..at + 4)? != b"PK\x01\x02" {
            return None;
        }
        let (packed, size) = (u32_at(bytes, at + 20)? as usize, u32_at(bytes, at + 24)?);
        let (name, extra, comment) =
            (u16_at(bytes, at + 28)? as usize, u16_at(bytes, at + 30)? as usize, u16_at(bytes, at + 32)? as usize);
        let local = u32_at(bytes, at + 42)? as usize;
        let start = local + 30 + u16_at(bytes, local + 26)? as usize + u16_at(bytes, local + 28)? as usize;
        members.push(Member {
            name: bytes.get(at + 46..at + 46 + name)?.to_vec(),
            method: u16_at(bytes, at + 10)?,
            crc: u32_at(bytes, at + 16)?,
            size: u64::from(size),
            packed: bytes.get(start..start + packed)?.to_vec(),
            mode: u32_at(bytes, at + 38)? >> 16,
            modified: from_dos(u16_at(bytes, at + 12)?, u16_at(bytes, at + 14)?),
        });
        at += 46 + name + extra + comment;
    }
    Some(members)
}

/// An archive of `members`.
pub(super) fn write(members: &[Member]) -> Vec<u8> {
    let (mut out, mut central) = (Vec::new(), Vec::new());
    for member in members {
        let offset = out.len() as u32;
        out.extend_from_slice(b"PK\x03\x04\x14\0");
        out.extend_from_slice(&member.common());
        out.extend_from_slice(&member.name);
        out.extend_from_slice(&member.packed);
        // Made by version 3.0 on Unix, so that the upper half of the attributes is the mode.
        central.extend_from_slice(b"PK\x01\x02\x1e\x03\x14\0");
        central.extend_from_slice(&member.common());
        central.extend_from_slice(&[0; 6]);
        let directory = u32::from(member.name.ends_with(b"/")) << 4;
        central.extend_from_slice(&(member.mode << 16 | directory).to_le_bytes());
        central.extend_from_slice(&offset.to_le_bytes());
        central.extend_from_slice(&member.name);
    }
    let (start, length, count) = (out.len() as u32, central.len() as u32, members.len() as u16);
    out.extend_from_slice(&central);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_survives_being_written() {
        let members = [
            Member::pack(b"a".to_vec(), &[b'x'; 500], 0o100_644, 1_700_000_000, 6),
            Member::pack(b"d/".to_vec(), b"", 0o040_755, 1_700_000_000, 0),
        ];
        assert_eq!(read(&write(&members)).as_deref(), Some(members.as_slice()));
        assert_eq!(members[0].content(), Some(vec![b'x'; 500]));
    }
}
