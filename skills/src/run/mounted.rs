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

/// The prefix of the names of directories that are still being written.
const UNFINISHED: &str = ".new-";

/// Updates the directory and returns the part of it to mount.
pub(super) fn update(catalog: &Catalog, directory: &Path) -> Result<PathBuf, Error> {
    let shown = directory.join("skills");
    std::fs::create_dir_all(&shown).map_err(Error::host("create", &shown))?;
    let digests = directory.join("digests.json");
    if known(&digests).as_ref() == Some(&wanted(catalog)?) {
        return Ok(shown);
    }
    // Another process may be writing it.
    let lock = directory.join("lock");
    let held = std::fs::File::create(&lock).map_err(Error::host("create", &lock))?;
    held.lock().map_err(Error::host("lock", &lock))?;
    // While this one waited, skills may have been pushed and shown.
    let (known, wanted) = (known(&digests).unwrap_or_default(), wanted(catalog)?);
    // Until everything is written, the existing content is not known to be valid.
    let _ = std::fs::remove_file(&digests);
    remove_others(directory, |name| !name.starts_with(UNFINISHED))?;
    remove_others(&shown, |name| wanted.contains_key(name))?;
    for (name, digest) in &wanted {
        if known.get(name) != Some(digest) {
            let package = match catalog.get(name) {
                // Another process has just deleted it.
                Err(Error::UnknownSkill(_)) => continue,
                package => package?,
            };
            let new = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(directory);
            let new = new.map_err(Error::host("create", directory))?;
            write_files(&package, new.path())?;
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

fn wanted(catalog: &Catalog) -> Result<Digests, Error> {
    Ok(catalog.list()?.into_iter().map(|skill| (skill.name, skill.digest)).collect())
}

fn known(digests: &Path) -> Option<Digests> {
    serde_json::from_slice(&std::fs::read(digests).ok()?).ok()
}

// Removes the directories in a directory that are not kept: a process that was killed may have left any.
fn remove_others(directory: &Path, is_kept: impl Fn(&str) -> bool) -> Result<(), Error> {
    for entry in std::fs::read_dir(directory).map_err(Error::host("read", directory))? {
        let path = entry.map_err(Error::host("read", directory))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !is_kept(&name) {
            remove(&path)?;
        }
    }
    Ok(())
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
