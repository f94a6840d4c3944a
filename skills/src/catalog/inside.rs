//! A catalog inside a sandbox file: each version is a zip file in the sandbox, so that the catalog is part of its snapshots.
//!
//! Programs in the sandbox can change those files. Each is therefore read as an untrusted package, and an invalid one is skipped.

use runtime::{Content, Sandbox};

use super::{Base, Catalog};
use crate::package::Package;
use crate::requirements::{Need, need};
use crate::{Error, archive};

/// The directory of versions: `NAME/VERSION.zip`, and next to it `VERSION.base` with the required packages.
const PLACE: &str = "/var/lib/sandlite/skills";
/// The file that names the active version.
const ACTIVE: &str = "active";

/// The effect of a catalog change on the sandbox's files.
#[derive(Default)]
pub(super) struct Change {
    written: Vec<(String, Vec<u8>)>,
    removed: Vec<String>,
}

impl Change {
    pub(super) fn push(package: &Package, base: Base<'_>) -> Self {
        let (name, version) = (&package.manifest().name, &package.manifest().version);
        let mut written = vec![(format!("{PLACE}/{name}/{version}.zip"), package.to_zip())];
        written.extend(base.snapshot.map(|snapshot| (format!("{PLACE}/{name}/{version}.base"), snapshot.to_vec())));
        Self { written, ..Self::default() }
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
        if !self.written.is_empty() {
            fs.write_all(self.written.into_iter().map(|(path, bytes)| (path, Content::from(bytes))).collect())?;
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
        for path in small.map(|found| found.path.as_str()) {
            let Some((name, file)) = path.strip_prefix(PLACE).and_then(|rest| rest.trim_start_matches('/').split_once('/'))
            else {
                continue;
            };
            if file == ACTIVE {
                active.push((name.to_owned(), String::from_utf8_lossy(&fs.read(path)?).into_owned()));
            } else if let Some(stem) = path.strip_suffix(".zip") {
                versions.push((stem.to_owned(), fs.read(path)?));
            }
        }
        for (stem, bytes) in versions {
            let Ok(package) = Package::from_zip(&bytes) else { continue };
            let snapshot = fs.read(&format!("{stem}.base")).ok();
            let is_scientific = package.requirements().iter().any(|line| need(line) == Need::Scientific);
            catalog.push(&package, true, Some(Base { snapshot: snapshot.as_deref(), is_scientific }))?;
        }
        for (name, version) in active {
            // A file that names a version that does not exist is ignored.
            let _ = catalog.activate(&name, &version);
        }
        Ok(Self { inside: Some(sandbox), ..catalog })
    }
}
