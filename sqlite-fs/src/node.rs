//! The types of an inode: its number, type, attributes and directory entries.

/// An inode number.
pub type Ino = u64;

/// The root directory.
pub const ROOT: Ino = 1;

pub(crate) const S_IFMT: u32 = 0o170_000;
pub(crate) const S_IFDIR: u32 = 0o040_000;
pub(crate) const S_IFREG: u32 = 0o100_000;
pub(crate) const S_IFLNK: u32 = 0o120_000;
pub(crate) const S_IFIFO: u32 = 0o010_000;
const S_IFCHR: u32 = 0o020_000;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe. Only the name is stored: data written to it never reaches the database.
    Fifo,
    /// A device. Never stored, but trees joined with a database may contain some.
    Device,
}

impl FileType {
    /// Returns the type in a mode; types that AgentFS can store and we cannot (devices, sockets) are read as an empty file.
    #[must_use]
    pub fn of_mode(mode: u32) -> Self {
        match mode & S_IFMT {
            S_IFDIR => Self::Directory,
            S_IFLNK => Self::Symlink,
            S_IFIFO => Self::Fifo,
            _ => Self::File,
        }
    }

    /// Returns the `S_IF…` bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::File => S_IFREG,
            Self::Directory => S_IFDIR,
            Self::Symlink => S_IFLNK,
            Self::Fifo => S_IFIFO,
            Self::Device => S_IFCHR,
        }
    }
}

/// The attributes of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Inode number.
    pub ino: Ino,
    /// Type and permissions, as in `st_mode`.
    pub mode: u32,
    /// Number of names; for a directory 2 plus its subdirectories. 0: unlinked, alive only through
    /// [`hold`](crate::Transaction::hold).
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device file (read only from foreign files).
    pub rdev: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last access in nanoseconds since 1970 (updated as by Linux with `relatime` and `lazytime`).
    pub atime: i64,
    /// Last change of the content.
    pub mtime: i64,
    /// Last change of content or attributes.
    pub ctime: i64,
}

impl Stat {
    /// Returns the type.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        FileType::of_mode(self.mode)
    }

    /// Returns whether it is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.file_type() == FileType::Directory
    }

    /// Returns whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.file_type() == FileType::File
    }
}

/// Returns whether a text is a valid name in a directory. Any other text could lead elsewhere.
pub(crate) fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']) && name.len() <= crate::Quota::NAME_MAX
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// The inode.
    pub ino: Ino,
    /// Its type.
    pub kind: FileType,
    /// The position after this entry; stays valid whatever is created or removed.
    pub cookie: u64,
}
