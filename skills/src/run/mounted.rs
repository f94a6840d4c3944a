//! A directory on this machine with the active version of each skill, which sandboxes mount at `/skills`.
//!
//! It is a cache of the catalog. Each skill's directory is written next to its final place and then renamed, and a file of
//! digests records which are up to date.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use runtime::{ProvidedNode, Provider};

use super::Skills;
use super::prepared::write_files;
use crate::catalog::Catalog;
use crate::{Error, File};

/// Updates the directory and returns the part of it to mount.
pub(super) fn update(catalog: &Catalog, directory: &Path) -> Result<PathBuf, Error> {
    let shown = directory.join("skills");
    std::fs::create_dir_all(&shown).map_err(Error::host("create", &shown))?;
    let digests = directory.join("digests.json");
    let wanted: Digests = catalog.list()?.into_iter().map(|skill| (skill.name, skill.digest)).collect();
    if known(&digests) == wanted {
        return Ok(shown);
    }
    // Another process may be writing it.
    let lock = directory.join("lock");
    let held = std::fs::File::create(&lock).map_err(Error::host("create", &lock))?;
    held.lock().map_err(Error::host("lock", &lock))?;
    let known = known(&digests);
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

/// The digests of the skills in the directory.
type Digests = BTreeMap<String, String>;

fn known(digests: &Path) -> Digests {
    std::fs::read(digests).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn remove(place: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::host("remove", place)(error)),
        _ => Ok(()),
    }
}

/// Returns the active version of each skill as files that are generated when they are read, for a catalog without a directory.
pub(super) fn generated(skills: &Skills) -> Provider {
    let skills = skills.clone();
    Provider::directory(move |_| {
        let listed = skills.catalog().list().map_err(|error| error.to_string())?;
        let skill = |name: String| {
            let (skills, wanted) = (skills.clone(), name.clone());
            let provider = Provider::directory(move |_| {
                let package = skills.catalog().get(&wanted).map_err(|error| error.to_string())?;
                Ok(tree(package.files().iter().map(|file| (file.path.as_str(), file))))
            });
            (name, ProvidedNode::later(provider))
        };
        Ok(ProvidedNode::directory(listed.into_iter().map(|listed| skill(listed.name))))
    })
}

fn tree<'a>(files: impl IntoIterator<Item = (&'a str, &'a File)>) -> ProvidedNode {
    let mut below: BTreeMap<&str, Vec<(&str, &File)>> = BTreeMap::new();
    let mut nodes = Vec::new();
    for (path, file) in files {
        match path.split_once('/') {
            Some((directory, path)) => below.entry(directory).or_default().push((path, file)),
            None if file.is_executable => nodes.push((path, ProvidedNode::later(Provider::program(file.content.clone())))),
            None => nodes.push((path, ProvidedNode::file(file.content.clone()))),
        }
    }
    nodes.extend(below.into_iter().map(|(name, files)| (name, tree(files))));
    ProvidedNode::directory(nodes)
}
