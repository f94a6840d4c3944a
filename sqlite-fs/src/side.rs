//! The small file beside a database: who has it open, and which call is running.
//!
//! It is locked while the database is open for writing and removed on a clean close. A process that dies leaves it
//! behind, and with it the call that was running: the next open records that call as interrupted. Writing the note is
//! one `write` without a sync: it costs a microsecond and outlives the process, not a power cut.

#![expect(clippy::disallowed_methods, reason = "the lock and the note are a file of their own")]

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock;
use crate::error::Error;
use crate::making::with_suffix;

/// Where the note starts; before it, the holder's process id as text.
const NOTE_AT: usize = 32;
/// A note that claims more is damaged.
const NOTE_MAX: usize = 64 << 20;

pub(crate) struct Side {
    file: File,
    path: PathBuf,
    noted: bool,
}

/// How often a process that waits looks whether its turn has come.
const STEP: Duration = Duration::from_millis(5);

/// What the last holder left behind.
#[derive(Default)]
pub(crate) struct Left {
    /// It did not close the database.
    pub(crate) unclean: bool,
    /// The call it was running.
    pub(crate) note: Option<Vec<u8>>,
}

impl Side {
    /// The lock's path for a database.
    pub(crate) fn path_for(database: &Path) -> PathBuf {
        with_suffix(database, "-running")
    }

    /// Fails if a living process has a database of this name open for writing.
    pub(crate) fn refuse_if_held(database: &Path) -> Result<(), Error> {
        let Ok(mut file) = File::open(Self::path_for(database)) else { return Ok(()) };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path: database.to_owned(), pid: holder(&mut file) }),
            _ => Ok(()),
        }
    }

    /// Locks the side of a database, waiting so long for another process that has it. This one would wait for itself.
    pub(crate) fn acquire(database: &Path, wait: Duration) -> Result<(Self, Left), Error> {
        let until = clock::instant() + wait;
        loop {
            match Self::try_acquire(database) {
                Err(Error::Locked { pid, .. }) if pid != Some(std::process::id()) && clock::instant() < until => {
                    std::thread::sleep(STEP);
                }
                acquired => return acquired,
            }
        }
    }

    fn try_acquire(database: &Path) -> Result<(Self, Left), Error> {
        let path = Self::path_for(database);
        let disk = |source| Error::Unwritable { path: database.to_owned(), source };
        loop {
            let mut file = open(&path).map_err(disk)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::Locked { path: database.to_owned(), pid: holder(&mut file) });
                }
                Err(TryLockError::Error(source)) => return Err(disk(source)),
            }
            // Its last holder may have removed it between our open and our lock.
            if !is_at(&file, &path) {
                continue;
            }
            let mut left = Vec::new();
            (&mut file).take((NOTE_AT + NOTE_MAX) as u64).read_to_end(&mut left).map_err(disk)?;
            let left = Left { unclean: !left.is_empty(), note: note(&left) };
            let mut side = Self { file, path: path.clone(), noted: false };
            let line = format!("{:<31}\n", std::process::id());
            side.write_at(0, line.as_bytes()).map_err(disk)?;
            return Ok((side, left));
        }
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

    /// Leaves a note of the running call.
    pub(crate) fn note(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut record = Vec::with_capacity(bytes.len() + 16);
        record.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        record.extend_from_slice(&checksum(bytes).to_le_bytes());
        record.extend_from_slice(bytes);
        self.noted = true;
        self.write_at(NOTE_AT as u64, &record).map_err(|source| Error::Disk { path: self.path.clone(), source })
    }

    /// Takes the note away: the call is recorded.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.noted) {
            // A stale note is recognised by its call's number, so a failure here loses nothing.
            let _ = self.write_at(NOTE_AT as u64, &0u64.to_le_bytes());
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // Removed while still locked: whoever waits finds that the path is another file by then. If the database's
        // directory was moved, another process may have a file of this name.
        if is_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens the file, made if it is missing. What else lies at its path was put there by somebody: a link would have us write
/// elsewhere, and a pipe would have us wait (T-SNAP-04).
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
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("it is not a file")) }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = [0; NOTE_AT];
    let len = file.read(&mut text).ok()?;
    std::str::from_utf8(text.get(..len)?).ok()?.trim().parse().ok()
}

fn note(bytes: &[u8]) -> Option<Vec<u8>> {
    let record = bytes.get(NOTE_AT..)?;
    let (len, rest) = record.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok().filter(|len| (1..NOTE_MAX).contains(len))?;
    let text = rest.get(..len)?;
    (checksum(text) == u64::from_le_bytes(*sum)).then(|| text.to_vec())
}

/// FNV-1a: tells a torn note, no more.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// Whether an open file is still the one at a path.
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
