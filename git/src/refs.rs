//! References of a repository in a directory: loose files and the packed list.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};

use cap_std::fs::Dir;

use crate::Id;
use crate::error::Error;
use crate::names::is_reference;

/// Maximum size of one reference file and of the packed list, in bytes.
const LOOSE_MAX: u64 = 4 << 10;
const PACKED_MAX: u64 = 256 << 20;
/// Maximum number of symbolic references to follow.
const SYMBOLIC_MAX: usize = 5;
/// Maximum number of listed loose references, and maximum depth of their directories.
const LISTED_MAX: usize = 100_000;
const DEPTH_MAX: usize = 16;

/// The references of a repository.
pub(crate) enum References {
    Directory { dir: Dir, packed: BTreeMap<String, Id> },
    List(BTreeMap<String, Id>),
}

/// Reads a small file completely; `None` if it does not exist.
pub(crate) fn read(dir: &Dir, path: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
    let failed = Error::io(path.as_ref());
    match dir.symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let mut bytes = Vec::new();
    let file = dir.open(path).map_err(&failed)?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(&failed)?;
    if bytes.len() as u64 > most {
        Err(Error::TooLarge(format!("`{path}` is larger than {most} bytes")))
    } else {
        Ok(Some(bytes))
    }
}

impl References {
    pub(crate) fn open(dir: Dir) -> Result<Self, Error> {
        let packed = read(&dir, "packed-refs", PACKED_MAX)?.unwrap_or_default();
        let packed = packed.split(|byte| *byte == b'\n').filter_map(|line| {
            let (hex, name) = std::str::from_utf8(line).ok()?.split_once(' ')?;
            Some((name.to_owned(), Id::parse(hex)?)).filter(|(name, _)| is_reference(name))
        });
        Ok(Self::Directory { packed: packed.collect(), dir })
    }

    /// Returns the target of a reference, by its full name.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Id>, Error> {
        let mut name = name.to_owned();
        for _ in 0..SYMBOLIC_MAX {
            if !is_reference(&name) {
                return Ok(None);
            }
            let (dir, packed) = match self {
                Self::List(list) => return Ok(list.get(&name).copied()),
                Self::Directory { dir, packed } => (dir, packed),
            };
            let Some(bytes) = read(dir, &name, LOOSE_MAX)? else { return Ok(packed.get(&name).copied()) };
            let text = String::from_utf8_lossy(&bytes);
            match text.trim_end().strip_prefix("ref:") {
                Some(next) => name = next.trim().to_owned(),
                None => {
                    let id = Id::parse(text.trim_end());
                    return id.map(Some).ok_or_else(|| Error::damaged(format!("the reference `{name}` is not an object name")));
                }
            }
        }
        Err(Error::damaged("cycle of symbolic references"))
    }

    /// Returns the references below a directory such as `refs/tags/`, by the rest of their names.
    pub(crate) fn below(&self, top: &str) -> Result<BTreeMap<String, Id>, Error> {
        let (Self::List(listed) | Self::Directory { packed: listed, .. }) = self;
        let listed = listed.range(top.to_owned()..).take_while(|(name, _)| name.starts_with(top));
        let mut found: BTreeMap<String, Id> =
            listed.map(|(name, id)| (name.get(top.len()..).unwrap_or_default().to_owned(), *id)).collect();
        let Self::Directory { dir, .. } = self else { return Ok(found) };
        let mut left = vec![(top.trim_end_matches('/').to_owned(), 0)];
        while let Some((path, depth)) = left.pop() {
            let Ok(entries) = dir.read_dir(&path) else { continue };
            for entry in entries.flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                let name = format!("{path}/{name}");
                if found.len() + left.len() >= LISTED_MAX {
                    return Err(Error::TooLarge(format!("more than {LISTED_MAX} references")));
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) && depth < DEPTH_MAX {
                    left.push((name, depth + 1));
                } else if let Some(id) = self.find(&name)? {
                    found.insert(name.get(top.len()..).unwrap_or_default().to_owned(), id);
                }
            }
        }
        Ok(found)
    }
}
