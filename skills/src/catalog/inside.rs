//! A catalog inside a sandbox file: each version is a zip file in the sandbox, so that the catalog is part of its snapshots.
//!
//! Programs in the sandbox can change those files. Each is therefore read as an untrusted package, and an invalid one is skipped.

use runtime::{Content, Found, Sandbox};

use super::{Base, Catalog, rows};
use crate::package::Package;
use crate::requirements::{Need, need};
use crate::{Error, archive};

/// The directory of versions: `NAME/VERSION.zip`, and next to it `VERSION.base` with the required packages and `VERSION.replaced`
/// with the digests of earlier content.
const PLACE: &str = "/var/lib/sandlite/skills";
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

    pub(super) fn save(self, sandbox: &Sandbox) -> Result<(), Error> {
        let fs = sandbox.fs();
        let emptied = self.emptied.into_iter().filter(|path| fs.metadata(path).is_ok()).map(|path| (path, Vec::new()));
        let written: Vec<_> = self.written.into_iter().chain(emptied).map(|(path, bytes)| (path, Content::from(bytes))).collect();
        if !written.is_empty() {
            fs.write_all(written)?;
        }
        let there: Vec<String> = self.removed.into_iter().filter(|path| fs.metadata(path).is_ok()).collect();
        if there.is_empty() { Ok(()) } else { Ok(fs.remove_all(&there)?) }
    }
}

impl Catalog {
    /// Opens the catalog inside a sandbox. Pushed versions become files of the sandbox and are part of its snapshots and forks.
    ///
    /// # Errors
    ///
    /// Returns an error if the sandbox cannot be read.
    pub fn inside(sandbox: Sandbox) -> Result<Self, Error> {
        let catalog = Self::in_memory()?;
        let fs = sandbox.fs();
        let found = if fs.metadata(PLACE).is_ok() { fs.walk(PLACE)? } else { Vec::new() };
        let small = found.iter().filter(|found| found.stat.is_file() && found.stat.size <= archive::MOST_BYTES);
        let (mut active, mut versions) = (Vec::new(), Vec::new());
        for (path, changed) in small.map(|found| (found.path.as_str(), found.stat.mtime)) {
            let Some((name, file)) = path.strip_prefix(PLACE).and_then(|rest| rest.trim_start_matches('/').split_once('/'))
            else {
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
        Ok(Self { inside: Some(sandbox), ..catalog })
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
        let newest = sandbox.history(1).unwrap().remove(0).command;
        assert!(newest.starts_with("write_files ") && newest.contains("1.0.0.base"), "one transaction: {newest}");
        assert!(Catalog::inside(sandbox).unwrap().stored("test").unwrap().base.is_none());
    }
}
