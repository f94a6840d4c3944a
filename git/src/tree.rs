//! Trees: the entries of a directory.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::Id;
use crate::error::Error;
use crate::id::ID_BYTES;
use crate::names::is_dot_git;

/// Maximum length of an entry's name.
const NAME_MAX: usize = 255;

/// The type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A file.
    File,
    /// An executable file.
    Executable,
    /// A symbolic link.
    Link,
    /// A directory.
    Directory,
    /// A commit of another repository (submodule).
    Submodule,
}

impl Mode {
    /// Returns the digits used in a tree.
    #[must_use]
    pub fn digits(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Directory => "40000",
            Self::Submodule => "160000",
        }
    }

    fn parse(digits: &[u8]) -> Option<Self> {
        Some(match digits {
            // Git wrote the second form before 2005.
            b"100644" | b"100664" => Self::File,
            b"100755" => Self::Executable,
            b"120000" => Self::Link,
            b"40000" | b"040000" => Self::Directory,
            b"160000" => Self::Submodule,
            _ => return None,
        })
    }
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its type.
    pub mode: Mode,
    /// Its name, which is never a path, `.`, `..` or `.git`.
    pub name: String,
    /// The object.
    pub id: Id,
}

/// Returns the sort key of entries: by name, as if those of directories ended in a slash.
pub(crate) fn order(a: (&str, bool), b: (&str, bool)) -> Ordering {
    let bytes = |(name, is_directory): (&str, bool)| name.as_bytes().to_vec().into_iter().chain(is_directory.then_some(b'/'));
    let common = a.0.len().min(b.0.len());
    match a.0.as_bytes().get(..common).cmp(&b.0.as_bytes().get(..common)) {
        Ordering::Equal => bytes(a).skip(common).cmp(bytes(b).skip(common)),
        other => other,
    }
}

/// Encodes a tree; the entries are sorted first.
#[must_use]
pub fn encode_tree<'a>(entries: impl IntoIterator<Item = (&'a str, Mode, Id)>) -> Vec<u8> {
    let mut entries: Vec<(&str, Mode, Id)> = entries.into_iter().collect();
    let is_directory = |mode: Mode| mode == Mode::Directory;
    entries.sort_by(|a, b| order((a.0, is_directory(a.1)), (b.0, is_directory(b.1))));
    let mut bytes = Vec::with_capacity(entries.iter().map(|(name, ..)| name.len() + 8 + ID_BYTES).sum());
    for (name, mode, id) in entries {
        bytes.extend_from_slice(mode.digits().as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(id.as_bytes());
    }
    bytes
}

/// Parses a tree. Names that could lead elsewhere and duplicate names are damage.
pub(crate) fn parse(mut bytes: &[u8], most: usize) -> Result<Vec<TreeEntry>, Error> {
    let cut = || Error::damaged("a tree is truncated");
    let mut entries: Vec<TreeEntry> = Vec::new();
    let mut names = HashSet::new();
    while !bytes.is_empty() {
        if entries.len() >= most {
            return Err(Error::TooLarge(format!("a directory has more than {most} entries")));
        }
        let space = bytes.iter().take(8).position(|byte| *byte == b' ').ok_or_else(cut)?;
        let (digits, rest) = bytes.split_at(space);
        let rest = rest.get(1..).ok_or_else(cut)?;
        let end = rest.iter().take(NAME_MAX * 16).position(|byte| *byte == 0).ok_or_else(cut)?;
        let (name, rest) = rest.split_at(end);
        let id = rest.get(1..=ID_BYTES).and_then(Id::of_slice).ok_or_else(cut)?;
        bytes = rest.get(1 + ID_BYTES..).ok_or_else(cut)?;
        let shown = || String::from_utf8_lossy(name).escape_debug().take(64).collect::<String>();
        let mode = Mode::parse(digits).ok_or_else(|| Error::damaged(format!("`{}` has an invalid mode", shown())))?;
        let name = checked(name).ok_or_else(|| Error::Unsupported(format!("invalid file name `{}`", shown())))?;
        if !names.insert(name) {
            return Err(Error::damaged(format!("duplicate entry `{}` in a directory", shown())));
        }
        entries.push(TreeEntry { mode, name: name.to_owned(), id });
    }
    Ok(entries)
}

fn checked(name: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(name).ok()?;
    let is_name = !matches!(name, "" | "." | "..") && name.len() <= NAME_MAX && !name.contains('/') && !is_dot_git(name);
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> Id {
        Id([byte; ID_BYTES])
    }

    #[test]
    fn directories_sort_as_if_they_ended_in_a_slash() {
        let entries =
            [("a", Mode::Directory, id(1)), ("a.b", Mode::File, id(2)), ("a0", Mode::File, id(3)), ("B", Mode::Link, id(4))];
        let parsed = parse(&encode_tree(entries), 10).unwrap();
        assert_eq!(parsed.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["B", "a.b", "a", "a0"]);
        assert_eq!(parsed[2], TreeEntry { mode: Mode::Directory, name: "a".to_owned(), id: id(1) });
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["..", ".", "", "a/b", ".git", ".GIT", "git~1"] {
            assert!(parse(&encode_tree([(name, Mode::File, id(1))]), 10).is_err(), "{name}");
        }
        let twice = [encode_tree([("a", Mode::File, id(1))]), encode_tree([("a", Mode::Directory, id(1))])].concat();
        assert!(parse(&twice, 10).is_err());
        let not_text = encode_tree([("aXb", Mode::File, id(1))]).into_iter().map(|byte| if byte == b'X' { 0xFF } else { byte });
        assert!(parse(&not_text.collect::<Vec<_>>(), 10).is_err());
    }

    #[test]
    fn a_tree_that_is_cut_or_too_long_is_refused() {
        let bytes = encode_tree([("a", Mode::File, id(1)), ("b", Mode::File, id(2))]);
        for len in 1..bytes.len() {
            assert!(len == bytes.len() / 2 || parse(&bytes[..len], 10).is_err(), "{len}");
        }
        assert!(matches!(parse(&bytes, 1), Err(Error::TooLarge(_))));
        assert!(parse(b"100600 a\0aaaaaaaaaaaaaaaaaaaa", 10).is_err());
    }
}
