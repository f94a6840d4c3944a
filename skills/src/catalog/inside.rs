//! A catalog inside a sandbox's own file: each version is a zip file there, so that the catalog travels with the sandbox.
//!
//! Programs in the sandbox can change those files. So each is read as what it is, a package from outside: one that is refused is left out.

use runtime::{Content, Sandbox};

use super::{Base, Catalog};
use crate::package::Package;
use crate::requirements::{Need, need};
use crate::{Error, archive};

/// Where versions are: `NAME/VERSION.zip`, and beside it `VERSION.base` with the packages that it requires.
const PLACE: &str = "/var/lib/sandlite/skills";
/// The file with the version that is used when none is named.
const ACTIVE: &str = "active";

/// What a change of the catalog does to the sandbox's files.
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
    /// The catalog inside a sandbox: what is pushed becomes files of the sandbox, and is in its snapshots and forks.
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
            // A file that names no version that is there means nothing.
            let _ = catalog.activate(&name, &version);
        }
        Ok(Self { inside: Some(sandbox), ..catalog })
    }
}
