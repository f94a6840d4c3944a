//! A catalog inside a sandbox file: each version is a zip file in the sandbox, so that the catalog is part of its snapshots.
//!
//! Several programs can have one catalog: every change writes a stamp, and a change is made only in the state that its program has read.
//!
//! Programs in the sandbox can change those files. Each is therefore read as an untrusted package, and an invalid one is skipped.

use std::sync::{Mutex, MutexGuard, PoisonError};

use runtime::{Content, Found, Sandbox};
use rusqlite::Connection;
use sha2::{Digest as _, Sha256};

use super::{Base, Catalog, rows};
use crate::package::{Package, hex};
use crate::requirements::{Need, need};
use crate::{Error, archive};

/// The directory of versions: `NAME/VERSION.zip`, and next to it `VERSION.base` with the required packages and `VERSION.replaced`
/// with the digests of earlier content.
const PLACE: &str = "/var/lib/sandlite/skills";
/// The file that every change writes.
const STAMP: &str = "/var/lib/sandlite/skills/changed";
/// The file that names the active version.
const ACTIVE: &str = "active";
/// Maximum size of the digests of earlier content that are read back.
const REPLACED_BYTES: u64 = 64 << 10;
/// Nanoseconds per second.
const NANOS: i64 = 1_000_000_000;

/// The effect of a catalog change on the sandbox's files.
#[derive(Default)]
pub(super) struct Change {
    written: Vec<(String, Vec<u8>)>,
    /// Files that become empty if they exist, in the transaction of those that are written.
    emptied: Vec<String>,
    removed: Vec<String>,
}

impl Change {
    pub(super) fn push(package: &Package, base: Base<'_>) -> Self {
        let (name, version) = (&package.manifest().name, &package.manifest().version);
        let mut change = Self { written: vec![(format!("{PLACE}/{name}/{version}.zip"), package.to_zip())], ..Self::default() };
        let packages = format!("{PLACE}/{name}/{version}.base");
        match base.snapshot {
            Some(snapshot) => change.written.push((packages, snapshot.to_vec())),
            // Replaced content may have had some, which this one must not find.
            None => change.emptied.push(packages),
        }
        change
    }

    pub(super) fn replaced(mut self, package: &Package, digests: &[String]) -> Self {
        let (name, version) = (&package.manifest().name, &package.manifest().version);
        if !digests.is_empty() {
            let lines = digests.iter().map(|digest| format!("{digest}\n")).collect::<String>();
            self.written.push((format!("{PLACE}/{name}/{version}.replaced"), lines.into_bytes()));
        }
        self
    }

    pub(super) fn activate(mut self, name: &str, version: &str) -> Self {
        self.written.push((format!("{PLACE}/{name}/{ACTIVE}"), version.as_bytes().to_vec()));
        self
    }

    pub(super) fn delete(name: &str, version: Option<&str>) -> Self {
        let removed = match version {
            None => vec![format!("{PLACE}/{name}")],
            Some(version) => vec![format!("{PLACE}/{name}/{version}.zip"), format!("{PLACE}/{name}/{version}.base")],
        };
        Self { removed, ..Self::default() }
    }

    // Returns a text that no other state of the catalog has.
    fn stamp(&self, before: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(before);
        for (path, bytes) in &self.written {
            hasher.update(format!("\0{path}\0{}\0", bytes.len()));
            hasher.update(bytes);
        }
        for path in self.emptied.iter().chain(&self.removed) {
            hasher.update(format!("\0{path}"));
        }
        hex(&hasher.finalize())
    }
}

/// The sandbox that contains a catalog.
pub(super) struct Home {
    sandbox: Sandbox,
    /// The state of its files that the catalog has read; `None` before the first time.
    seen: Mutex<Option<Seen>>,
}

/// A state of the files: the version of the stamp, or the stamp that this program has just written.
enum Seen {
    Version(String),
    Own(String),
}

impl Home {
    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the catalog if its files have changed since they were last read.
    pub(super) fn newer(&self) -> Result<Option<Connection>, Error> {
        let (fs, mut seen) = (self.sandbox.fs(), self.seen());
        // A program in the sandbox may have made it a directory.
        let version = fs.version(STAMP).unwrap_or_default();
        let is_known = match &*seen {
            None => false,
            Some(Seen::Version(known)) => *known == version,
            // Read after the version: if it was changed since, that is noticed now or the next time.
            Some(Seen::Own(stamp)) => fs.metadata(STAMP).is_ok() && fs.read(STAMP)? == stamp.as_bytes(),
        };
        let newer = if is_known { None } else { Some(load(&self.sandbox)?) };
        *seen = Some(Seen::Version(version));
        Ok(newer)
    }

    /// Makes a change, unless another program has changed the catalog since it was read. Files are removed first: if the second
    /// transaction is missing, the active version is the newest one, as without the files.
    pub(super) fn save(&self, change: Change) -> Result<(), Error> {
        let mut seen = self.seen();
        let before = match &*seen {
            Some(Seen::Version(version)) => version.clone(),
            Some(Seen::Own(_)) | None => self.sandbox.fs().version(STAMP)?,
        };
        let stamp = change.stamp(&before);
        let fs = self.sandbox.fs().if_version(STAMP, before);
        let there: Vec<String> = change.removed.into_iter().filter(|path| fs.metadata(path).is_ok()).collect();
        if !there.is_empty() {
            fs.remove_all(&there)?;
        }
        let emptied = change.emptied.into_iter().filter(|path| fs.metadata(path).is_ok()).map(|path| (path, Vec::new()));
        let written = change.written.into_iter().chain(emptied).chain([(STAMP.to_owned(), stamp.clone().into_bytes())]);
        fs.write_all(written.map(|(path, bytes)| (path, Content::from(bytes))).collect())?;
        *seen = Some(Seen::Own(stamp));
        Ok(())
    }
}

impl Catalog {
    /// Opens the catalog inside a sandbox. Pushed versions become files of the sandbox and are part of its snapshots and forks.
    ///
    /// # Errors
    ///
    /// Returns an error if the sandbox cannot be read.
    pub fn inside(sandbox: Sandbox) -> Result<Self, Error> {
        let catalog = Self { inside: Some(Home { sandbox, seen: Mutex::default() }), ..Self::in_memory()? };
        drop(catalog.current()?);
        Ok(catalog)
    }

    // Sets when a version was pushed and what it replaced, as far as these are digests.
    fn recall(&self, package: &Package, pushed: i64, replaced: &str) -> Result<(), Error> {
        let (name, version) = (&package.manifest().name, &package.manifest().version);
        let connection = self.connection();
        rows::set_pushed(&connection, &self.tenant, name, version, pushed)?;
        let is_digest = |line: &&str| {
            line.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        for digest in replaced.lines().filter(is_digest) {
            rows::replace(&connection, &self.tenant, name, version, digest)?;
        }
        Ok(())
    }
}

// Reads the catalog from the files of a sandbox.
fn load(sandbox: &Sandbox) -> Result<Connection, Error> {
    let (catalog, fs) = (Catalog::in_memory()?, sandbox.fs());
    let found = if fs.metadata(PLACE).is_ok() { fs.walk(PLACE)? } else { Vec::new() };
    let small = found.iter().filter(|found| found.stat.is_file() && found.stat.size <= archive::MOST_BYTES);
    let (mut active, mut versions) = (Vec::new(), Vec::new());
    for (path, changed) in small.map(|found| (found.path.as_str(), found.stat.mtime)) {
        let Some((name, file)) = path.strip_prefix(PLACE).and_then(|rest| rest.trim_start_matches('/').split_once('/')) else {
            continue;
        };
        if file == ACTIVE {
            active.push((name.to_owned(), String::from_utf8_lossy(&fs.read(path)?).into_owned()));
        } else if let Some(stem) = path.strip_suffix(".zip") {
            versions.push((stem.to_owned(), fs.read(path)?, changed));
        }
    }
    for (stem, bytes, changed) in versions {
        let Ok(package) = Package::from_zip(&bytes) else { continue };
        let beside = |ending: &str, largest: u64| {
            let path = format!("{stem}.{ending}");
            // Reading a file that does not exist would be an error in the history.
            let is_there = |found: &Found| found.path == path && found.stat.is_file() && found.stat.size <= largest;
            found.iter().any(is_there).then(|| fs.read(&path)).transpose()
        };
        let snapshot = beside("base", u64::MAX)?.filter(|snapshot| !snapshot.is_empty());
        let is_scientific = package.requirements().iter().any(|line| need(line) == Need::Scientific);
        catalog.push(&package, true, Some(Base { snapshot: snapshot.as_deref(), is_scientific }))?;
        let replaced = beside("replaced", REPLACED_BYTES)?.unwrap_or_default();
        catalog.recall(&package, changed / NANOS, &String::from_utf8_lossy(&replaced))?;
    }
    for (name, version) in active {
        // A file that names a version that does not exist is ignored.
        let _ = catalog.activate(&name, &version);
    }
    Ok(catalog.connection.into_inner().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::File;

    fn package(script: &str) -> Package {
        let manifest = "---\nname: test\ndescription: Tests.\n---\n";
        Package::from_files(vec![File::new("SKILL.md", manifest), File::new("main.sh", script)]).unwrap()
    }

    #[test]
    fn replaced_content_leaves_no_packages_behind() {
        let sandbox = Sandbox::builder().open().unwrap();
        let catalog = Catalog::inside(sandbox.clone()).unwrap();
        let base = Base { snapshot: Some(b"packages"), is_scientific: false };
        catalog.push(&package("echo 1"), false, Some(base)).unwrap();
        assert!(Catalog::inside(sandbox.clone()).unwrap().stored("test").unwrap().base.is_some());
        catalog.push(&package("echo 2"), true, None).unwrap();
        let newest: Vec<String> = sandbox.history(3).unwrap().into_iter().map(|run| run.command).collect();
        let is_one = |row: &String| row.starts_with("write_files ") && row.contains("1.0.0.zip") && row.contains("1.0.0.base");
        assert!(newest.iter().any(is_one), "one transaction: {newest:?}");
        assert!(Catalog::inside(sandbox).unwrap().stored("test").unwrap().base.is_none());
    }
}
