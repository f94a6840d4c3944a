//! Object names: the SHA-1 of an object's kind, length and bytes.

use std::fmt;

use sha1::{Digest as _, Sha1};

/// Length of a name, in bytes.
pub(crate) const ID_BYTES: usize = 20;

/// The name of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub(crate) [u8; ID_BYTES]);

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A commit.
    Commit,
    /// A directory.
    Tree,
    /// The content of a file, or the target of a link.
    Blob,
    /// An annotated tag.
    Tag,
}

impl Kind {
    /// Returns the word that is hashed with the bytes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }

    /// Returns the number used in packs.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Commit => 1,
            Self::Tree => 2,
            Self::Blob => 3,
            Self::Tag => 4,
        }
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        [Self::Commit, Self::Tree, Self::Blob, Self::Tag].into_iter().find(|kind| kind.number() == number)
    }

    pub(crate) fn of_name(name: &[u8]) -> Option<Self> {
        [Self::Commit, Self::Tree, Self::Blob, Self::Tag].into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

/// Computes a name from bytes that arrive in pieces.
pub(crate) struct Hasher(Sha1);

impl Hasher {
    /// Creates a hasher for a file, such as a pack.
    pub(crate) fn new() -> Self {
        Self(Sha1::new())
    }

    /// Creates a hasher for an object of this size.
    pub(crate) fn of(kind: Kind, size: u64) -> Self {
        let mut hasher = Self::new();
        hasher.update(format!("{} {size}\0", kind.name()).as_bytes());
        hasher
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Id {
        Id(self.0.finalize().into())
    }
}

impl Id {
    /// Returns the name of an object.
    #[must_use]
    pub fn of(kind: Kind, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::of(kind, bytes.len() as u64);
        hasher.update(bytes);
        hasher.finish()
    }

    /// Parses 40 hexadecimal digits.
    #[must_use]
    pub fn parse(hex: &str) -> Option<Self> {
        let digits = hex.as_bytes();
        if digits.len() != 2 * ID_BYTES {
            return None;
        }
        let mut bytes = [0; ID_BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| pair.get(at).and_then(|digit| char::from(*digit).to_digit(16));
            *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
        }
        Some(Self(bytes))
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; ID_BYTES] {
        &self.0
    }

    pub(crate) fn of_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_the_name_that_git_computes() {
        assert_eq!(Id::of(Kind::Blob, b"").to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(Id::of(Kind::Tree, b"").to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        assert_eq!(Id::of(Kind::Blob, b"hello\n").to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    #[test]
    fn a_name_is_forty_digits() {
        let name = "ce013625030ba8dba906f756967f9e9ca394464a";
        assert_eq!(Id::parse(name).unwrap().to_string(), name);
        for wrong in ["", "ce01", "zz013625030ba8dba906f756967f9e9ca394464a", &name.repeat(2)] {
            assert_eq!(Id::parse(wrong), None, "{wrong}");
        }
    }
}
