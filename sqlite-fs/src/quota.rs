//! How much a database may hold, and how much it does.

/// What a transaction may fill. The default is bounded only by the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Sum of the sizes of all files; a hole counts like the zeros that are stored for it.
    pub bytes: u64,
    /// Largest single file.
    pub file_size: u64,
    /// Files, directories and symbolic links together, the root included.
    pub inodes: u64,
    /// Longest name in bytes, at most 255.
    pub name: usize,
    /// Deepest directory below the root.
    pub depth: u32,
}

impl Quota {
    /// The longest name that the format knows.
    pub const NAME_MAX: usize = 255;
    /// The deepest tree that the format knows.
    pub const DEPTH_MAX: u32 = 256;
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            bytes: i64::MAX as u64,
            // 2^31 chunks of 64 KiB: chunk numbers stay small integers in every SDK.
            file_size: 1 << 47,
            inodes: i64::MAX as u64,
            name: Self::NAME_MAX,
            depth: Self::DEPTH_MAX,
        }
    }
}

/// What is used, the transaction's own changes included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Sum of the sizes of all files.
    pub bytes: u64,
    /// Number of inodes, the root included.
    pub inodes: u64,
}
