//! The members of a zip file, and how they are written; `guests/zip` reads them.

use std::io::Write as _;

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

/// In place of the method of a member that is encrypted: no method that can be unpacked.
const ENCRYPTED: u16 = u16::MAX;

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

    /// Returns the content; `None` when it is damaged or packed in an unknown way.
    pub fn content(&self) -> Option<Vec<u8>> {
        // More than it should have is damage too.
        let largest = usize::try_from(self.size).ok()?;
        let content = zip::unpack(self.method, &self.packed, largest).ok()?;
        (crc32fast::hash(&content) == self.crc).then_some(content)
    }

    /// Returns the fields that the local and the central header share.
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

/// Returns the members of an archive; `None` when it is none.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Member>> {
    let members = zip::entries(bytes).ok()?.into_iter().map(|entry| Member {
        name: entry.name.to_vec(),
        method: if entry.is_encrypted() { ENCRYPTED } else { entry.method },
        crc: entry.sum,
        size: entry.size,
        packed: entry.packed().to_vec(),
        mode: entry.mode,
        modified: from_dos(entry.clock, entry.date),
    });
    Some(members.collect())
}

/// Returns an archive of `members`.
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
