//! The key that authorizes clients. Stored as a digest, compared in constant time, printed only once (T-NET-06).

#![expect(clippy::disallowed_methods, reason = "the key is in a file that the user names")]

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use runtime::NewFile;

use crate::Error;

/// Minimum length of a key: 128 bits in hexadecimal.
const SHORTEST: usize = 32;

/// Maximum number of bytes read from a key file.
const LONGEST: u64 = 64 << 10;

/// The key that clients must send.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(blake3::Hash);

impl Key {
    /// Creates a key from a text; `None` if it is too short.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (text.len() >= SHORTEST && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(digest(text)))
    }

    /// Creates a key of 256 random bits and returns it with its text, which is not stored.
    ///
    /// # Errors
    ///
    /// Returns an error if the system returns no random bytes.
    pub fn random() -> Result<(Self, String), Error> {
        let text = format!("sl_{}", random_hex::<32>()?);
        Ok((Self(digest(&text)), text))
    }

    /// Reads the key from a file that only its owner can read; creates the file with a new key if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or written, if others can read it, or if its key is too short.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::KeyFile { path: path.to_owned(), source };
        if !path.exists() {
            let (key, text) = Self::random()?;
            let new = NewFile::beside(path).map_err(|error| failed(io::Error::other(error)))?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new.path()).map_err(failed)?;
            writeln!(file, "{text}").map_err(failed)?;
            new.publish().map_err(|error| failed(io::Error::other(error)))?;
            return Ok(key);
        }
        let weak = |reason| Error::WeakKey { path: path.to_owned(), reason };
        let metadata = fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(weak("others can read it; run `chmod 600` on it"));
        }
        let mut text = String::new();
        fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text)).map_err(failed)?;
        Self::new(&text).ok_or_else(|| weak("expected at least 32 printable characters; remove the file to create a new key"))
    }

    /// Returns whether this is the text of the key.
    pub(super) fn matches(&self, text: &str) -> bool {
        // Digests are compared in constant time, regardless of the text's length.
        self.0 == digest(text)
    }
}

fn digest(text: &str) -> blake3::Hash {
    blake3::hash(text.as_bytes())
}

/// Returns random bytes as hexadecimal digits.
pub(crate) fn random_hex<const BYTES: usize>() -> Result<String, Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| Error::Random)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    // T-NET-06.
    #[test]
    fn a_key_file_is_private_to_its_owner_and_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let made = Key::from_file(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert!(made.matches(text.trim()) && !made.matches("sl_"));
        assert_eq!(Key::from_file(&path).unwrap(), made);
        assert_eq!(format!("{made:?}"), "Key(…)");
    }

    // T-NET-06.
    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        Key::from_file(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Key::from_file(&path), Err(Error::WeakKey { .. })));
    }

    #[test]
    fn a_short_key_is_rejected() {
        assert_eq!(Key::new("secret"), None);
        assert!(Key::new(&"k".repeat(32)).is_some());
    }
}
