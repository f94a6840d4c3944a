//! The limits of a database, and its usage.

/// The limits of a transaction. The defaults are generous but finite: holes are stored as zeros, so one careless `truncate` must
/// not fill the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Total size of all files; a hole counts like the zeros stored for it.
    pub bytes: u64,
    /// Maximum size of a file.
    pub file_size: u64,
    /// Files, directories and symbolic links, including the root.
    pub inodes: u64,
    /// Maximum length of a name in bytes, at most 255.
    pub name: usize,
    /// Maximum depth of a directory.
    pub depth: u32,
    /// Names of all directory entries and targets of symbolic links, with 64 bytes for each entry.
    pub names: u64,
    /// Keys and their values, with 64 bytes for each.
    pub keys: u64,
    /// State of sessions.
    pub sessions: u64,
    /// Recorded calls with their output. When exhausted, the oldest output is dropped first, then the oldest calls.
    pub history: u64,
    /// Previous contents of rows, saved by versions. When exhausted, the oldest versions are dropped. A database in memory keeps
    /// at most an eighth of `bytes`, or 16 MiB if that is more.
    pub past: u64,
}

impl Quota {
    /// The maximum length of a name in the format.
    pub const NAME_MAX: usize = 255;
    /// The maximum depth of a tree in the format.
    pub const DEPTH_MAX: u32 = 256;
    /// Size of the log besides files: keys, sessions, history and the inner pages of tables.
    const LOG_BESIDE_BYTES: u64 = 32 << 20;
    /// Average size of one inode in the log, with its name and their indexes.
    const LOG_INODE_BYTES: u64 = 1024;

    /// Returns the maximum size of a transaction's log: twice that of the files, because small ones take up to twice their bytes.
    /// A page that is changed again keeps its place in the log, so nothing within the quota needs more.
    pub(crate) fn log_max(&self) -> u64 {
        let inodes = self.inodes.saturating_mul(Self::LOG_INODE_BYTES);
        // Rows are saved before they are removed, up to the budget of the past.
        let saved = self.past.min(self.bytes).saturating_mul(2);
        self.bytes.saturating_mul(2).saturating_add(inodes).saturating_add(saved).saturating_add(Self::LOG_BESIDE_BYTES)
    }
    /// The maximum length of a key in bytes.
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

/// The usage, including the transaction's own changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Total size of all files.
    pub bytes: u64,
    /// Number of inodes, including the root.
    pub inodes: u64,
    /// Names and targets of symbolic links, with 64 bytes for each directory entry.
    pub names: u64,
    /// Keys and their values, with 64 bytes for each.
    pub keys: u64,
    /// State of sessions.
    pub sessions: u64,
    /// Recorded calls with their output.
    pub history: u64,
    /// Previous contents of rows, saved by versions.
    pub past: u64,
}

/// The number of objects in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Regular files.
    pub files: u64,
    /// Directories, including the root.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Keys.
    pub keys: u64,
    /// Recorded calls.
    pub calls: u64,
    /// Size of the database itself in bytes, without its write-ahead log.
    pub database_bytes: u64,
    /// The format of our own tables.
    pub format: u64,
}
