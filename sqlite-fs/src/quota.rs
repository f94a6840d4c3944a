//! How much a database may hold, and how much it does.

/// What a transaction may fill. The default is generous and yet finite: holes are stored as zeros, so one careless
/// `truncate` must not fill the disk.
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
    /// Names of all directory entries and targets of symbolic links, with 64 bytes for each entry.
    pub names: u64,
    /// Keys and their values, with 64 bytes for each.
    pub keys: u64,
    /// What sessions leave behind.
    pub sessions: u64,
    /// Recorded calls with their output. When it is used up, the oldest output goes first, then the oldest calls.
    pub history: u64,
    /// What rows were before versions changed them. When it is used up, the oldest versions go. A database in memory keeps no
    /// more of the past than an eighth of `bytes`, or 16 MiB if that is more.
    pub past: u64,
}

impl Quota {
    /// The longest name that the format knows.
    pub const NAME_MAX: usize = 255;
    /// The deepest tree that the format knows.
    pub const DEPTH_MAX: u32 = 256;
    /// What a log has beside files: keys, sessions, history and the inner pages of tables.
    const LOG_BESIDE_BYTES: u64 = 32 << 20;
    /// What one inode takes in the log with its name and their indexes, on average.
    const LOG_INODE_BYTES: u64 = 1024;

    /// Bytes of the log that one transaction may fill: twice what the files may be, for small ones take up to twice their bytes.
    /// A page that is changed again stays where it is in the log, so nothing that the quota allows needs more.
    pub(crate) fn log_max(&self) -> u64 {
        let inodes = self.inodes.saturating_mul(Self::LOG_INODE_BYTES);
        // Rows are saved before they are removed, up to the budget of the past.
        let saved = self.past.min(self.bytes).saturating_mul(2);
        self.bytes.saturating_mul(2).saturating_add(inodes).saturating_add(saved).saturating_add(Self::LOG_BESIDE_BYTES)
    }
    /// The longest key in bytes.
    pub const KEY_MAX: usize = 1024;
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            bytes: 64 << 30,
            file_size: 16 << 30,
            inodes: 100_000_000,
            name: Self::NAME_MAX,
            depth: Self::DEPTH_MAX,
            names: 16 << 30,
            keys: 4 << 30,
            sessions: 1 << 30,
            history: 8 << 30,
            past: 8 << 30,
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
    /// Names and targets of symbolic links, with 64 bytes for each directory entry.
    pub names: u64,
    /// Keys and their values, with 64 bytes for each.
    pub keys: u64,
    /// What sessions leave behind.
    pub sessions: u64,
    /// Recorded calls with their output.
    pub history: u64,
    /// What rows were before versions changed them.
    pub past: u64,
}

/// How many of what a database holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Regular files.
    pub files: u64,
    /// Directories, the root included.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Keys.
    pub keys: u64,
    /// Recorded calls.
    pub calls: u64,
    /// Bytes of the database itself, its write-ahead log aside.
    pub database_bytes: u64,
    /// The format of our own tables.
    pub format: u64,
}
