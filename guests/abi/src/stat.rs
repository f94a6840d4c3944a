//! Full file metadata: what preview1's `filestat` leaves out (permissions, owner, blocks).

/// File type bits of a mode.
pub const S_IFMT: u32 = 0o170_000;
/// A regular file.
pub const S_IFREG: u32 = 0o100_000;
/// A directory.
pub const S_IFDIR: u32 = 0o040_000;
/// A symbolic link.
pub const S_IFLNK: u32 = 0o120_000;
/// A character device.
pub const S_IFCHR: u32 = 0o020_000;
/// A pipe.
pub const S_IFIFO: u32 = 0o010_000;

/// The metadata of a file, as `stat(2)` gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Device the file lives on.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Type and permissions.
    pub mode: u32,
    /// Number of hard links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device file.
    pub rdev: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last access, in nanoseconds since 1970.
    pub atime: i64,
    /// Last change of the content, in nanoseconds since 1970.
    pub mtime: i64,
    /// Last change of the metadata, in nanoseconds since 1970.
    pub ctime: i64,
}

impl Stat {
    /// Bytes of an encoded [`Stat`].
    pub const SIZE: usize = 72;

    /// Returns the layout on the wire: the fields in order, little-endian.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&self.dev.to_le_bytes());
        put(&self.ino.to_le_bytes());
        put(&self.mode.to_le_bytes());
        put(&self.nlink.to_le_bytes());
        put(&self.uid.to_le_bytes());
        put(&self.gid.to_le_bytes());
        put(&self.rdev.to_le_bytes());
        put(&self.size.to_le_bytes());
        put(&self.atime.to_le_bytes());
        put(&self.mtime.to_le_bytes());
        put(&self.ctime.to_le_bytes());
        bytes
    }

    /// Returns the metadata behind an encoded layout.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::SIZE]) -> Self {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        Self {
            dev: u64_at(0),
            ino: u64_at(8),
            mode: u32_at(16),
            nlink: u32_at(20),
            uid: u32_at(24),
            gid: u32_at(28),
            rdev: u64_at(32),
            size: u64_at(40),
            atime: u64_at(48).cast_signed(),
            mtime: u64_at(56).cast_signed(),
            ctime: u64_at(64).cast_signed(),
        }
    }

    /// Returns the type bits of the mode.
    #[must_use]
    pub fn kind(&self) -> u32 {
        self.mode & S_IFMT
    }

    /// Blocks of 512 bytes that the content takes.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.size.div_ceil(4096) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_survives_the_wire() {
        let stat = Stat {
            dev: 1,
            ino: u64::MAX,
            mode: S_IFREG | 0o644,
            nlink: 2,
            uid: 1000,
            gid: 1001,
            rdev: 7,
            size: 1 << 40,
            atime: -1,
            mtime: 5,
            ctime: i64::MAX,
        };
        assert_eq!(Stat::decode(&stat.encode()), stat);
    }
}
