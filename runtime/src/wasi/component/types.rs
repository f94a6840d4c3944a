//! Records, variants, enumerations and flags of WASI 0.2, in the words of its interfaces.
#![expect(dead_code, reason = "all cases of an enumeration must be listed, used or not")]

use abi::Errno;
use abi::stat::{S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, Stat};
use wasmtime::component::{ComponentType, Lift, Lower, Resource, flags};

use super::streams::Failure;

/// `wall-clock.datetime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(record)]
pub(super) struct Datetime {
    pub(super) seconds: u64,
    pub(super) nanoseconds: u32,
}

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

impl Datetime {
    /// Creates a time from nanoseconds since 1970.
    pub(super) fn new(nanos: u64) -> Self {
        Self { seconds: nanos / SECOND, nanoseconds: u32::try_from(nanos % SECOND).unwrap_or(0) }
    }

    /// Returns nanoseconds since 1970.
    fn nanos(self) -> Result<i64, Errno> {
        let nanos = self.seconds.checked_mul(SECOND).and_then(|nanos| nanos.checked_add(u64::from(self.nanoseconds)));
        nanos.and_then(|nanos| i64::try_from(nanos).ok()).ok_or(Errno::INVAL)
    }
}

/// `types.new-timestamp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(variant)]
pub(super) enum NewTimestamp {
    #[component(name = "no-change")]
    NoChange,
    #[component(name = "now")]
    Now,
    #[component(name = "timestamp")]
    Timestamp(Datetime),
}

impl NewTimestamp {
    /// Returns the time to set, if any.
    pub(super) fn nanos(self, now: u64) -> Result<Option<i64>, Errno> {
        match self {
            Self::NoChange => Ok(None),
            Self::Now => Ok(Some(i64::try_from(now).unwrap_or(i64::MAX))),
            Self::Timestamp(time) => time.nanos().map(Some),
        }
    }
}

/// `types.descriptor-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(enum)]
#[repr(u8)]
pub(super) enum DescriptorType {
    #[component(name = "unknown")]
    Unknown,
    #[component(name = "block-device")]
    BlockDevice,
    #[component(name = "character-device")]
    CharacterDevice,
    #[component(name = "directory")]
    Directory,
    #[component(name = "fifo")]
    Fifo,
    #[component(name = "symbolic-link")]
    SymbolicLink,
    #[component(name = "regular-file")]
    RegularFile,
    #[component(name = "socket")]
    Socket,
}

impl DescriptorType {
    /// Returns the type of `S_IF…` bits.
    pub(super) fn new(kind: u32) -> Self {
        match kind {
            S_IFREG => Self::RegularFile,
            S_IFDIR => Self::Directory,
            S_IFLNK => Self::SymbolicLink,
            S_IFCHR => Self::CharacterDevice,
            S_IFIFO => Self::Fifo,
            _ => Self::Unknown,
        }
    }
}

/// `types.descriptor-stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(record)]
pub(super) struct DescriptorStat {
    #[component(name = "type")]
    kind: DescriptorType,
    #[component(name = "link-count")]
    link_count: u64,
    size: u64,
    #[component(name = "data-access-timestamp")]
    accessed: Option<Datetime>,
    #[component(name = "data-modification-timestamp")]
    modified: Option<Datetime>,
    #[component(name = "status-change-timestamp")]
    changed: Option<Datetime>,
}

impl From<Stat> for DescriptorStat {
    fn from(stat: Stat) -> Self {
        let time = |nanos: i64| u64::try_from(nanos).ok().map(Datetime::new);
        Self {
            kind: DescriptorType::new(stat.kind()),
            link_count: u64::from(stat.nlink),
            size: stat.size,
            accessed: time(stat.atime),
            modified: time(stat.mtime),
            changed: time(stat.ctime),
        }
    }
}

/// `types.metadata-hash-value`: the file's number, which is unique in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(record)]
pub(super) struct MetadataHash {
    lower: u64,
    upper: u64,
}

impl From<Stat> for MetadataHash {
    fn from(stat: Stat) -> Self {
        Self { lower: stat.ino, upper: stat.dev }
    }
}

/// `types.directory-entry`.
#[derive(Clone, Debug, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(record)]
pub(super) struct DirectoryEntry {
    #[component(name = "type")]
    pub(super) kind: DescriptorType,
    pub(super) name: String,
}

flags! {
    DescriptorFlags {
        #[component(name = "read")]
        const READ;
        #[component(name = "write")]
        const WRITE;
        #[component(name = "file-integrity-sync")]
        const FILE_INTEGRITY_SYNC;
        #[component(name = "data-integrity-sync")]
        const DATA_INTEGRITY_SYNC;
        #[component(name = "requested-write-sync")]
        const REQUESTED_WRITE_SYNC;
        #[component(name = "mutate-directory")]
        const MUTATE_DIRECTORY;
    }
}

flags! {
    PathFlags {
        #[component(name = "symlink-follow")]
        const SYMLINK_FOLLOW;
    }
}

flags! {
    OpenFlags {
        #[component(name = "create")]
        const CREATE;
        #[component(name = "directory")]
        const DIRECTORY;
        #[component(name = "exclusive")]
        const EXCLUSIVE;
        #[component(name = "truncate")]
        const TRUNCATE;
    }
}

/// `types.advice`: nothing is ever read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(enum)]
#[repr(u8)]
pub(super) enum Advice {
    #[component(name = "normal")]
    Normal,
    #[component(name = "sequential")]
    Sequential,
    #[component(name = "random")]
    Random,
    #[component(name = "will-need")]
    WillNeed,
    #[component(name = "dont-need")]
    DontNeed,
    #[component(name = "no-reuse")]
    NoReuse,
}

/// `streams.stream-error`.
#[derive(Debug, ComponentType, Lift, Lower)]
#[component(variant)]
pub(super) enum StreamError {
    #[component(name = "last-operation-failed")]
    Failed(Resource<Failure>),
    #[component(name = "closed")]
    Closed,
}

// The cases of `types.error-code`, in their order, and the errnos that they report.
macro_rules! error_codes {
    ($($case:ident = $name:literal $(: $($errno:ident)|+)?;)*) => {
        /// `types.error-code`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift, Lower)]
        #[component(enum)]
        #[repr(u8)]
        pub(super) enum ErrorCode {
            $(#[component(name = $name)] $case,)*
        }

        impl From<Errno> for ErrorCode {
            fn from(errno: Errno) -> Self {
                $($(if [$(Errno::$errno),+].contains(&errno) {
                    return Self::$case;
                })?)*
                Self::Io
            }
        }
    };
}

error_codes! {
    Access = "access": ACCES;
    WouldBlock = "would-block": AGAIN;
    Already = "already";
    BadDescriptor = "bad-descriptor": BADF;
    Busy = "busy": BUSY;
    Deadlock = "deadlock": DEADLK;
    Quota = "quota";
    Exist = "exist": EXIST;
    FileTooLarge = "file-too-large": FBIG;
    IllegalByteSequence = "illegal-byte-sequence": ILSEQ;
    InProgress = "in-progress";
    Interrupted = "interrupted": INTR;
    Invalid = "invalid": INVAL;
    Io = "io": IO;
    IsDirectory = "is-directory": ISDIR;
    Loop = "loop": LOOP;
    TooManyLinks = "too-many-links": MLINK;
    MessageSize = "message-size";
    NameTooLong = "name-too-long": NAMETOOLONG;
    NoDevice = "no-device": NODEV;
    NoEntry = "no-entry": NOENT;
    NoLock = "no-lock";
    InsufficientMemory = "insufficient-memory": NOMEM | MFILE | NFILE;
    InsufficientSpace = "insufficient-space": NOSPC;
    NotDirectory = "not-directory": NOTDIR;
    NotEmpty = "not-empty": NOTEMPTY;
    NotRecoverable = "not-recoverable";
    Unsupported = "unsupported": NOTSUP | NOSYS;
    NoTty = "no-tty": NOTTY;
    NoSuchDevice = "no-such-device": NXIO;
    Overflow = "overflow": OVERFLOW;
    NotPermitted = "not-permitted": PERM | NOTCAPABLE;
    Pipe = "pipe": PIPE;
    ReadOnly = "read-only": ROFS;
    InvalidSeek = "invalid-seek": SPIPE;
    TextFileBusy = "text-file-busy": TXTBSY;
    CrossDevice = "cross-device": XDEV;
}
