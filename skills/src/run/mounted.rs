//! A directory on this machine with the active version of each skill, which sandboxes mount at `/skills`.
//!
//! It is a cache of the catalog. Each skill's directory is written next to its final place and then renamed, and a file of
//! digests records which are up to date.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::prepared::write_files;
use crate::Error;
use crate::catalog::Catalog;

/// Updates the directory and returns the part of it to mount.
pub(super) fn update(catalog: &Catalog, directory: &Path) -> Result<PathBuf, Error> {
    let shown = directory.join("skills");
    std::fs::create_dir_all(&shown).map_err(Error::host("create", &shown))?;
    let digests = directory.join("digests.json");
    let known: BTreeMap<String, String> =
        std::fs::read(&digests).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let wanted: BTreeMap<String, String> = catalog.list()?.into_iter().map(|skill| (skill.name, skill.digest)).collect();
    if known == wanted {
        return Ok(shown);
    }
    // Until everything is written, the existing content is not known to be valid.
    let _ = std::fs::remove_file(&digests);
    for name in known.keys().filter(|name| !wanted.contains_key(*name)) {
        remove(&shown.join(name))?;
    }
    for (name, digest) in &wanted {
        if known.get(name) != Some(digest) {
            let new = tempfile::tempdir_in(directory).map_err(Error::host("create", directory))?;
            write_files(&catalog.get(name)?, new.path())?;
            let place = shown.join(name);
            remove(&place)?;
            std::fs::rename(new.keep(), &place).map_err(Error::host("write", &place))?;
        }
    }
    let text = serde_json::to_vec(&wanted).unwrap_or_default();
    std::fs::write(&digests, text).map_err(Error::host("write", &digests))?;
    Ok(shown)
}

fn remove(place: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::host("remove", place)(error)),
        _ => Ok(()),
    }
}
