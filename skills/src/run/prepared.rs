//! A skill prepared to run: its files on this machine, and a sandbox in memory that runs are forked from.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use runtime::{Builder, ByteSize, Content, JsonSchema, Limits, Mount, Python, Sandbox};

use super::{Inner, Request, RunResult, Status, contract, session};
use crate::catalog::Stored;
use crate::{Error, Package};

/// Maximum number of prepared skills.
const MOST: usize = 64;

/// A prepared skill.
pub(super) struct Prepared {
    pub(super) package: Package,
    /// The sandbox that runs are forked from.
    pub(super) sandbox: Sandbox,
    pub(super) timeout: Duration,
    pub(super) memory: u64,
    pub(super) log_bytes: usize,
    pub(super) has_packages: bool,
    pub(super) is_scientific: bool,
    pub(super) input_schema: Option<JsonSchema>,
    pub(super) output_schema: Option<JsonSchema>,
    // Declared after the sandbox, because fields are dropped in order.
    scripts: tempfile::TempDir,
    /// The required packages, for sessions: skills with different packages share one.
    packages: OnceLock<tempfile::TempDir>,
}

/// The prepared skills.
#[derive(Default)]
pub(super) struct Cache(Mutex<Ready>);

/// The skills by the key of their version, each with the time of its last use, and a counter of uses.
#[derive(Default)]
struct Ready {
    clock: u64,
    by_key: HashMap<String, (u64, Arc<Prepared>)>,
}

impl Cache {
    fn lock(&self) -> MutexGuard<'_, Ready> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the skill for a reference, preparing it if necessary.
    pub(super) fn get(&self, inner: &Inner, reference: &str) -> Result<Arc<Prepared>, Error> {
        let key = inner.catalog.key(reference)?;
        {
            let Ready { clock, by_key } = &mut *self.lock();
            *clock += 1;
            // Systems remove temporary files that are old.
            if let Some((used, prepared)) = by_key.get_mut(&key).filter(|(_, prepared)| prepared.scripts.path().exists()) {
                *used = *clock;
                return Ok(Arc::clone(prepared));
            }
        }
        let stored = inner.catalog.stored(reference)?;
        let key = stored.key.clone();
        let prepared = Arc::new(Prepared::new(stored, inner)?);
        let Ready { clock, by_key: ready } = &mut *self.lock();
        let oldest = ready.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
        let dropped = if ready.len() >= MOST { oldest.and_then(|oldest| ready.remove(&oldest)) } else { None };
        ready.insert(key, (*clock, Arc::clone(&prepared)));
        drop(dropped);
        Ok(prepared)
    }

    /// Forgets the versions with this content, because they may have other packages now.
    pub(super) fn forget(&self, digest: &str) {
        self.lock().by_key.retain(|key, _| key.split(' ').next() != Some(digest));
    }
}

impl Prepared {
    fn new(stored: Stored, inner: &Inner) -> Result<Self, Error> {
        let Stored { package, base, is_scientific, .. } = stored;
        let scripts = tempfile::tempdir().map_err(Error::host("create", "a temporary directory"))?;
        write_files(&package, scripts.path())?;
        let manifest = package.manifest();
        let schema = |schema: &Option<serde_json::Value>| {
            schema.as_ref().map(JsonSchema::parse).transpose().map_err(|reason| Error::Invalid(format!("its schema: {reason}")))
        };
        let (input_schema, output_schema) = (schema(&manifest.input_schema)?, schema(&manifest.output_schema)?);
        let timeout = contract::timeout(manifest, &inner.bounds, &inner.limits);
        let memory = contract::memory(manifest, &inner.bounds, &inner.limits, is_scientific);
        let sandbox = with_base(builder(inner, scripts.path(), is_scientific)?, base.as_deref())?;
        furnish(&sandbox)?;
        let has_packages = base.is_some();
        Ok(Self {
            package,
            sandbox,
            timeout,
            memory,
            log_bytes: inner.bounds.log_bytes,
            has_packages,
            is_scientific,
            input_schema,
            output_schema,
            scripts,
            packages: OnceLock::new(),
        })
    }

    /// Creates the result of a run that has not started.
    pub(super) fn begin(&self) -> Result<RunResult, Error> {
        let manifest = self.package.manifest();
        Ok(RunResult {
            id: random_id()?,
            skill: manifest.name.clone(),
            version: manifest.version.clone(),
            status: Status::Failed,
            output: None,
            files: Vec::new(),
            logs: String::new(),
            error: None,
            duration_ms: 0,
            limit: None,
            usage: None,
            notes: Vec::new(),
            sandbox: None,
        })
    }

    /// Writes the input of a run into a sandbox in one transaction; `more` are additional files of `/sandbox/input`.
    pub(super) fn place(&self, sandbox: &Sandbox, request: &Request, more: &[(String, Vec<u8>)]) -> Result<(), Error> {
        let input = request.input.as_deref().unwrap_or("{}").as_bytes().to_vec();
        let named = more.iter().chain(&request.files);
        let named = named.map(|(name, content)| (format!("{}/{name}", contract::INPUT_FILES), Content::from(content.clone())));
        let kept = request.kept.iter();
        let kept = kept.map(|(name, content)| (format!("{}/{name}", contract::SESSION), Content::from(content.clone())));
        let files = std::iter::once((contract::INPUT.to_owned(), Content::from(input))).chain(named).chain(kept);
        Ok(sandbox.fs().write_all(files.collect())?)
    }

    /// Opens the sandbox of a session with this skill.
    pub(super) fn open_session(&self, inner: &Inner, file: &Path) -> Result<Sandbox, Error> {
        // A run replaces the files of the last one, which nobody reads again.
        let limits = Limits { past: ByteSize(0), ..inner.limits.clone() };
        let mut builder = builder(inner, self.scripts.path(), self.is_scientific)?.custom_limits(limits).database(file);
        if self.has_packages {
            // Not copied into the session, because its next run may be that of a skill with other packages.
            builder = builder.mount(Mount::read_only(self.packages()?, contract::SITE_PACKAGES).allow_sensitive());
        }
        let sandbox = builder.open()?;
        session::clear(&sandbox)?;
        furnish(&sandbox)?;
        Ok(sandbox)
    }

    // Returns the directory on this machine with the required packages, which the first call writes.
    fn packages(&self) -> Result<PathBuf, Error> {
        if self.packages.get().is_none() {
            let made = tempfile::tempdir().map_err(Error::host("create", "a temporary directory"))?;
            self.sandbox.export_tree(contract::SITE_PACKAGES, made.path())?;
            let _ = self.packages.set(made);
        }
        let packages = self.packages.get().map(|directory| directory.path().to_owned());
        packages.ok_or_else(|| Error::Argument("no temporary directory".to_owned()))
    }
}

fn builder(inner: &Inner, scripts: &Path, is_scientific: bool) -> Result<Builder, Error> {
    let python = if is_scientific { Python::Scientific } else { Python::Core };
    // Read-only because it is a mount: no program in the sandbox can change it (EROFS), whatever its user.
    let mount = Mount::read_only(scripts, contract::SCRIPTS).allow_sensitive();
    let builder = Sandbox::builder().host(&inner.host()?).custom_limits(inner.limits.clone());
    Ok(builder.python(python).mount(mount).cwd(contract::ROOT))
}

fn with_base(builder: Builder, base: Option<&[u8]>) -> Result<Sandbox, Error> {
    let Some(base) = base else { return Ok(builder.open()?) };
    let directory = tempfile::tempdir().map_err(Error::host("create", "a temporary directory"))?;
    let path = directory.path().join("base.db");
    std::fs::write(&path, base).map_err(Error::host("write", &path))?;
    Ok(builder.import(&path).open()?)
}

fn furnish(sandbox: &Sandbox) -> Result<(), Error> {
    let paths: Vec<String> = contract::DIRECTORIES.iter().map(|directory| (*directory).to_owned()).collect();
    Ok(sandbox.fs().create_dirs(&paths)?)
}

/// Writes the files of a skill to a directory on this machine.
pub(super) fn write_files(package: &Package, directory: &Path) -> Result<(), Error> {
    for file in package.files() {
        // The path was checked when the package was read, so it stays below the directory.
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(Error::host("create", parent))?;
        }
        std::fs::write(&path, &file.content).map_err(Error::host("write", &path))?;
        if file.is_executable {
            make_executable(&path)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).map_err(Error::host("change", path))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<(), Error> {
    Ok(())
}

// 128 random bits in the form of a UUID of version 4.
fn random_id() -> Result<String, Error> {
    let mut bytes = [0u8; 16];
    let mut left = bytes.as_mut_slice();
    while !left.is_empty() {
        let filled = rustix::rand::getrandom(&mut *left, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| Error::Argument(format!("no random bytes: {error}")))?;
        left = left.get_mut(filled..).unwrap_or_default();
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = crate::package::hex(&bytes);
    Ok(format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalog, File, Needs, Skills};

    #[test]
    fn a_skill_whose_temporary_files_were_removed_is_prepared_again() {
        let host = runtime::Host::builder().build().unwrap();
        let skills = Skills::new(Catalog::in_memory().unwrap(), &host, runtime::Preset::Normal.limits());
        let manifest = File::new("SKILL.md", "---\nname: test\ndescription: Tests.\n---\n");
        skills.push(&Package::from_files(vec![manifest]).unwrap(), Needs::default()).unwrap();
        let first = skills.0.cache.get(&skills.0, "test").unwrap();
        assert!(Arc::ptr_eq(&first, &skills.0.cache.get(&skills.0, "test").unwrap()));
        skills.0.cache.forget("sha256:0");
        assert!(Arc::ptr_eq(&first, &skills.0.cache.get(&skills.0, "test").unwrap()));
        std::fs::remove_dir_all(first.scripts.path()).unwrap();
        assert!(skills.0.cache.get(&skills.0, "test").unwrap().scripts.path().join("SKILL.md").exists());
    }
}
