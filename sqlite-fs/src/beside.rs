//! Files next to a database that SQLite acts on when it opens it; the author of the database may have created them.

#![expect(clippy::disallowed_methods, reason = "this module inspects the files next to a database")]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::Error;

/// The end of a journal that belongs to a transaction over several databases. It is preceded by the path of a file that SQLite
/// reads and then deletes, whatever it is.
const NAMES_ANOTHER_FILE: [u8; 8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7];

/// Rejects a database whose journal would make SQLite delete a file elsewhere, a pipe or device, and a dangling symbolic link,
/// which SQLite would follow to create a file (T-SNAP-04).
pub(crate) fn refuse_traps(path: &Path) -> Result<(), Error> {
    let refused = |reason: &str| Err(Error::Tampered { path: path.to_owned(), reason: reason.to_owned() });
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    if names_another_file(Path::new(&journal)).unwrap_or(false) {
        return refused("its journal names a file elsewhere, which would be deleted");
    }
    match std::fs::metadata(path) {
        // Opening a pipe would block, and a device has no end.
        Ok(metadata) if !metadata.is_file() => refused("it is not a regular file"),
        Err(_) if path.is_symlink() => refused("it is a symbolic link to a file that does not exist"),
        _ => Ok(()),
    }
}

fn names_another_file(journal: &Path) -> std::io::Result<bool> {
    // SQLite itself follows no link here, and opening a pipe would block.
    if !std::fs::symlink_metadata(journal)?.is_file() {
        return Ok(false);
    }
    let mut end = [0; NAMES_ANOTHER_FILE.len()];
    let mut file = File::open(journal)?;
    file.seek(SeekFrom::End(-(end.len() as i64)))?;
    file.read_exact(&mut end)?;
    Ok(end == NAMES_ANOTHER_FILE)
}
