//! The lock file next to a database: which processes have it open, which one has the turn, and which call is running.
//!
//! Every process that has the database open for writing holds a shared lock on it, so that the last one to close removes it. A
//! process that dies leaves it behind together with the running call, which the next holder of the turn records as interrupted.
//! Writing the note is one `write` without a sync: it takes a microsecond and survives the process, but not a power failure.
//!
//! The turn itself is a lock on the write-ahead log, see `turn.rs`.

#![expect(clippy::disallowed_methods, reason = "the lock and the note are a file of their own")]

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock;
use crate::error::Error;
use crate::making::with_suffix;
use crate::turn::Stamp;

/// The process that has the turn, or had it last, as text.
const PID_BYTES: usize = 32;
/// The process that waits for the turn.
const WAITER_AT: usize = PID_BYTES;
/// The last commit of a holder of the turn.
const STAMP_AT: usize = 40;
/// The offset of the note.
const NOTE_AT: usize = STAMP_AT + Stamp::BYTES;
/// The length of everything before the note's text.
const HEADER_BYTES: usize = NOTE_AT + 8;
/// Maximum length of a note; a longer one is damaged.
const NOTE_MAX: usize = 64 << 20;

pub(crate) struct Side {
    file: File,
    path: PathBuf,
    noted: bool,
}

/// How often a waiting process checks for its turn.
const STEP: Duration = Duration::from_millis(5);

/// The state left by the last holder.
#[derive(Default)]
pub(crate) struct Left {
    /// Whether it did not close the database.
    pub(crate) unclean: bool,
    /// The call that was running.
    pub(crate) note: Option<Vec<u8>>,
}

/// The header of the file.
pub(crate) struct Header {
    /// The process that has the turn, or had it last.
    pub(crate) holder: Option<u32>,
    /// The process that waits for it.
    pub(crate) waiter: Option<u32>,
    pub(crate) stamp: Stamp,
    /// Whether a call was running when its holder last wrote.
    pub(crate) has_note: bool,
}

impl Side {
    /// Returns the lock file of a database.
    pub(crate) fn path_for(database: &Path) -> PathBuf {
        with_suffix(database, "-running")
    }

    /// Fails if a running process has a database of this name open for writing.
    pub(crate) fn refuse_if_held(database: &Path) -> Result<(), Error> {
        let Ok(mut file) = File::open(Self::path_for(database)) else { return Ok(()) };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path: database.to_owned(), pid: holder(&mut file) }),
            _ => Ok(()),
        }
    }

    /// Excludes all writers from a database, if none has it open and the last one closed it.
    pub(crate) fn alone(database: &Path) -> Option<Self> {
        let path = Self::path_for(database);
        let file = open(&path).ok()?;
        // What a process that died left here is the next writer's.
        let is_closed = file.try_lock().is_ok() && is_at(&file, &path) && file.metadata().is_ok_and(|found| found.len() == 0);
        if !is_closed {
            return None;
        }
        Some(Self { file, path, noted: false })
    }

    /// Joins the processes that have a database open, waiting this long for one that is preparing it. The first process gets the
    /// state left by the last holder, and excludes all others until [`Side::share`].
    pub(crate) fn join(database: &Path, wait: Duration) -> Result<(Self, Option<Left>), Error> {
        let until = clock::instant() + wait;
        loop {
            match Self::try_join(database) {
                Err(Error::Locked { .. }) if clock::instant() < until => std::thread::sleep(STEP),
                joined => return joined,
            }
        }
    }

    fn try_join(database: &Path) -> Result<(Self, Option<Left>), Error> {
        let path = Self::path_for(database);
        let disk = |source| Error::Unwritable { path: database.to_owned(), source };
        loop {
            let mut file = open(&path).map_err(disk)?;
            let is_first = match file.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => match file.try_lock_shared() {
                    Ok(()) => false,
                    Err(TryLockError::WouldBlock) => {
                        return Err(Error::Locked { path: database.to_owned(), pid: holder(&mut file) });
                    }
                    Err(TryLockError::Error(source)) => return Err(disk(source)),
                },
                Err(TryLockError::Error(source)) => return Err(disk(source)),
            };
            // Its last holder may have removed it between our open and our lock.
            if !is_at(&file, &path) {
                continue;
            }
            let mut side = Self { file, path: path.clone(), noted: false };
            if !is_first {
                return Ok((side, None));
            }
            let mut left = Vec::new();
            (&mut side.file).take((NOTE_AT + NOTE_MAX) as u64).read_to_end(&mut left).map_err(disk)?;
            let left = Left { unclean: !left.is_empty(), note: note(&left) };
            side.hold().map_err(disk)?;
            return Ok((side, Some(left)));
        }
    }

    /// Admits other processes: the database is prepared, and the state left behind is recorded.
    pub(crate) fn share(&mut self) -> Result<(), Error> {
        self.noted = true;
        self.clear();
        self.file.lock_shared().map_err(|source| Error::Disk { path: self.path.clone(), source })
    }

    /// Records that this process has the turn.
    pub(crate) fn hold(&mut self) -> std::io::Result<()> {
        let line = format!("{:<31}\n", std::process::id());
        self.write_at(0, line.as_bytes())
    }

    /// Records that this process waits for its turn.
    pub(crate) fn set_waiting(&mut self) {
        self.set_waiter(std::process::id());
    }

    /// Records that this process no longer waits. Another one that does is still recorded.
    pub(crate) fn stop_waiting(&mut self) {
        if self.header().waiter == Some(std::process::id()) {
            self.remove_waiter();
        }
    }

    /// Records that no process waits.
    pub(crate) fn remove_waiter(&mut self) {
        self.set_waiter(0);
    }

    fn set_waiter(&mut self, pid: u32) {
        // Without it the wait is longer.
        let _ = self.write_at(WAITER_AT as u64, &pid.to_le_bytes());
    }

    /// Reads the header.
    pub(crate) fn header(&self) -> Header {
        let mut bytes = [0; HEADER_BYTES];
        // A shorter file has no values for the rest.
        let _ = read_at(&self.file, &mut bytes, 0);
        let number =
            |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        Header {
            holder: parse_pid(bytes.get(..PID_BYTES).unwrap_or_default()),
            waiter: Some(number(WAITER_AT)).filter(|&pid| pid != 0),
            stamp: bytes.get(STAMP_AT..).and_then(|rest| rest.first_chunk()).map_or(Stamp::EMPTY, |bytes| Stamp::decode(*bytes)),
            has_note: bytes.get(NOTE_AT..).is_some_and(|length| length.iter().any(|&byte| byte != 0)),
        }
    }

    /// Returns the call left by the last holder of the turn.
    pub(crate) fn left_note(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        std::io::Seek::rewind(&mut file).ok()?;
        file.take((NOTE_AT + NOTE_MAX) as u64).read_to_end(&mut bytes).ok()?;
        note(&bytes)
    }

    /// Records the last commit, for the next holder of the turn.
    pub(crate) fn set_stamp(&mut self, stamp: Stamp) {
        // Without it the next holder treats our commit as a foreign one, which is safe.
        let _ = self.write_at(STAMP_AT as u64, &stamp.encode());
    }

    #[cfg(unix)]
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset)
    }

    #[cfg(not(unix))]
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        use std::io::{Seek, SeekFrom, Write};
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)
    }

    /// Writes a note of the running call.
    pub(crate) fn note(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut record = Vec::with_capacity(bytes.len() + 16);
        record.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        record.extend_from_slice(&checksum(bytes).to_le_bytes());
        record.extend_from_slice(bytes);
        self.noted = true;
        self.write_at(NOTE_AT as u64, &record).map_err(|source| Error::Disk { path: self.path.clone(), source })
    }

    /// Removes the note after the call is recorded.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.noted) {
            // A stale note is recognized by its call's number, so a failure here loses nothing.
            let _ = self.write_at(NOTE_AT as u64, &0u64.to_le_bytes());
        }
    }

    /// Removes the note of another process after its call is recorded.
    pub(crate) fn clear_left(&mut self) {
        self.noted = true;
        self.clear();
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // Kept if other processes have the database open. Removed while locked: a waiting process then finds that the path is
        // another file. If the database's directory was moved, another process may have a file of this name.
        if self.file.try_lock().is_ok() && is_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(unix)]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, offset)
}

#[cfg(not(unix))]
pub(crate) fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<usize> {
    use std::io::{Seek, SeekFrom};
    file.seek(SeekFrom::Start(offset))?;
    file.read(bytes)
}

/// Opens the file, creating it if missing. Anything else at its path was planted: a link would make us write elsewhere, and a
/// pipe would block us (T-SNAP-04).
fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("not a regular file")) }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = [0; PID_BYTES];
    let len = file.read(&mut text).ok()?;
    parse_pid(text.get(..len)?)
}

fn parse_pid(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

fn note(bytes: &[u8]) -> Option<Vec<u8>> {
    let record = bytes.get(NOTE_AT..)?;
    let (len, rest) = record.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok().filter(|len| (1..NOTE_MAX).contains(len))?;
    let text = rest.get(..len)?;
    (checksum(text) == u64::from_le_bytes(*sum)).then(|| text.to_vec())
}

/// FNV-1a: detects only a torn note.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// Returns whether an open file is still the one at a path.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(theirs)) => (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
pub(crate) fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}
