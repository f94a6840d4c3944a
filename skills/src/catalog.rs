//! The catalog: name → versions → files, in its own SQLite database.
//!
//! Every change is one transaction, so an interrupted push leaves the catalog unchanged. Rows have a tenant; a catalog shows
//! those of one tenant.

mod inside;
mod rows;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtime::Sandbox;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, TransactionBehavior, params};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::manifest::{Mode, is_name};
use crate::package::{self, File, Package};
use crate::version::compare;
use crate::{Error, SkillDiff};
use inside::{Change, Home};

/// The name of the database in a catalog's directory.
const FILE: &str = "skills.db";
/// Maximum size of the page cache: a list in the order of names reads rows all over the file, each page once.
const CACHE_KIB: i64 = 16 << 10;
/// How long to wait for another process that changes the catalog.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a change is attempted before the catalog is reported as changed by others.
const ATTEMPTS: usize = 100;
/// How long to wait before the log of a new file is switched on again.
const PAUSE: Duration = Duration::from_millis(2);

/// Versions of skills.
///
/// ```
/// use sandlite_skills::{Catalog, File, Package};
/// let catalog = Catalog::in_memory()?;
/// let skill = File::new("SKILL.md", "---\nname: hello\nversion: 1.2.0\ndescription: Says hello.\n---\nSay hello.\n");
/// catalog.push(&Package::from_files(vec![skill])?, false, None)?;
/// assert_eq!(catalog.list()?[0].version, "1.2.0");
/// # Ok::<(), sandlite_skills::Error>(())
/// ```
pub struct Catalog {
    connection: Mutex<Connection>,
    directory: Option<PathBuf>,
    /// The sandbox that contains the catalog, if any; the database in memory is then a copy of its files.
    inside: Option<Home>,
    tenant: String,
}

/// A skill in a list: its active version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its active version.
    pub version: String,
    /// What it does and when to use it.
    pub description: String,
    /// The language named in its `SKILL.md`, or empty.
    pub lang: String,
    /// `executable` or `cognitive`.
    pub mode: String,
    /// Whether it has a script.
    pub has_script: bool,
    /// The digest of its files.
    pub digest: String,
}

/// A version of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VersionRow {
    /// The version.
    pub version: String,
    /// Whether it is the version that `latest` refers to.
    pub active: bool,
    /// The digest of its files.
    pub digest: String,
    /// The size of its files, in bytes.
    pub size_bytes: u64,
    /// When it was pushed, in seconds since 1970.
    pub uploaded_at: i64,
    /// Digests of earlier content of this version, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<String>,
}

/// The result of a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pushed {
    /// The skill.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its files.
    pub digest: String,
    /// Whether it is the version that `latest` refers to.
    pub active: bool,
    /// Whether the catalog already had exactly this content.
    pub unchanged: bool,
    /// Notes.
    pub notes: Vec<String>,
}

/// A version with all its stored data.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) package: Package,
    /// As [`Catalog::key`] returns it.
    pub(crate) key: String,
    /// A snapshot of a sandbox with the required packages.
    pub(crate) base: Option<Vec<u8>>,
    /// Whether it requires the scientific Python.
    pub(crate) is_scientific: bool,
}

/// The dependencies of a skill.
#[derive(Clone, Copy, Debug, Default)]
pub struct Base<'a> {
    /// A snapshot of a sandbox with the required packages.
    pub(crate) snapshot: Option<&'a [u8]>,
    /// Whether it requires the scientific Python.
    pub(crate) is_scientific: bool,
}

impl Catalog {
    /// Opens the catalog in a directory, which is created if missing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Host`] if the directory cannot be created, and [`Error::Catalog`] if its database cannot be used.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(directory).map_err(Error::host("create", directory))?;
        Self::new(Connection::open(directory.join(FILE))?, Some(directory.to_owned()))
    }

    /// Creates a catalog in memory, which is discarded when dropped.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Catalog`] if there is not enough memory.
    pub fn in_memory() -> Result<Self, Error> {
        Self::new(Connection::open_in_memory()?, None)
    }

    fn new(mut connection: Connection, directory: Option<PathBuf>) -> Result<Self, Error> {
        connection.busy_timeout(PATIENCE)?;
        write_ahead(&connection)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        rows::create(&mut connection)?;
        Ok(Self { connection: Mutex::new(connection), directory, inside: None, tenant: String::new() })
    }

    /// Returns the same catalog for another tenant, which does not see the data of others.
    #[must_use]
    pub fn of_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// Returns the directory of the catalog; `None` in memory.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns the directory for data of this tenant next to the catalog; `None` in memory.
    pub(crate) fn place(&self) -> Option<PathBuf> {
        let directory = self.directory.clone()?;
        if self.tenant.is_empty() {
            return Some(directory);
        }
        // The name of a tenant need not be a file name.
        Some(directory.join("tenants").join(package::hex(&Sha256::digest(&self.tenant))))
    }

    /// Returns the sandbox that contains the catalog, if any.
    pub(crate) fn sandbox(&self) -> Option<&Sandbox> {
        self.inside.as_ref().map(Home::sandbox)
    }

    // Returns the database. That of a catalog inside a sandbox is read again if another program changed it.
    fn current(&self) -> Result<MutexGuard<'_, Connection>, Error> {
        let mut connection = self.connection();
        if let Some(home) = &self.inside
            && let Some(newer) = home.newer()?
        {
            *connection = newer;
        }
        Ok(connection)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a version of a skill. Identical content is stored once. Other content for an existing version is rejected, or
    /// replaces it if `replace` is set. A version that is not older than the active one becomes the active one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Conflict`] if the version exists with other content and `replace` is not set.
    pub fn push(&self, package: &Package, replace: bool, base: Option<Base<'_>>) -> Result<Pushed, Error> {
        repeated(|| self.push_once(package, replace, base))
    }

    fn push_once(&self, package: &Package, replace: bool, base: Option<Base<'_>>) -> Result<Pushed, Error> {
        let (manifest, digest) = (package.manifest(), package.digest());
        let (name, version) = (manifest.name.clone(), manifest.version.clone());
        let mut connection = self.current()?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let known = rows::digest(&transaction, &self.tenant, &name, &version)?;
        if let Some((id, known, active)) = known {
            if known == digest {
                return Ok(Pushed { name, version, digest, active, unchanged: true, notes: Vec::new() });
            }
            if !replace {
                return Err(Error::Conflict { name, version, digest: known });
            }
            rows::replace(&transaction, &self.tenant, &name, &version, &known)?;
            rows::remove(&transaction, id)?;
        }
        let active = rows::active(&transaction, &self.tenant, &name)?;
        let is_active = active.is_none_or(|active| compare(&version, &active).is_ge());
        let base = base.unwrap_or_default();
        let id = rows::insert(&transaction, &self.tenant, package, &digest, base)?;
        let mut change =
            Change::push(package, base).replaced(package, &rows::replaced(&transaction, &self.tenant, &name, &version)?);
        if is_active {
            rows::activate(&transaction, &self.tenant, &name, id)?;
            change = change.activate(&name, &version);
        }
        self.save(change)?;
        transaction.commit()?;
        Ok(Pushed { name, version, digest, active: is_active, unchanged: false, notes: Vec::new() })
    }

    /// Returns whether the catalog has exactly this content under its version.
    pub(crate) fn has(&self, package: &Package) -> Result<bool, Error> {
        let manifest = package.manifest();
        let known = rows::digest(&*self.current()?, &self.tenant, &manifest.name, &manifest.version)?;
        Ok(known.is_some_and(|(_, digest, _)| digest == package.digest()))
    }

    /// Returns the skills by name, each with its active version.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Catalog`] if the database cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        Ok(rows::list(&*self.current()?, &self.tenant, "", i64::MAX)?)
    }

    /// Returns a page of the skills by name, those after `after`, and the number of all skills. Its cost does not depend on the
    /// skills of other pages.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Catalog`] if the database cannot be read.
    pub fn page(&self, after: &str, most: usize) -> Result<(Vec<Listed>, usize), Error> {
        let connection = self.current()?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        Ok((rows::list(&connection, &self.tenant, after, most)?, rows::count(&connection, &self.tenant)?))
    }

    /// Returns one skill with its active version.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownSkill`] if it does not exist.
    pub fn find(&self, name: &str) -> Result<Listed, Error> {
        let found = rows::find(&*self.current()?, &self.tenant, name)?;
        found.ok_or_else(|| Error::UnknownSkill(name.to_owned()))
    }

    /// Returns the versions of a skill, newest first.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownSkill`] if it does not exist.
    pub fn versions(&self, name: &str) -> Result<Vec<VersionRow>, Error> {
        let mut versions = rows::versions(&*self.current()?, &self.tenant, name)?;
        if versions.is_empty() {
            return Err(Error::UnknownSkill(name.to_owned()));
        }
        versions.sort_by(|a, b| compare(&b.version, &a.version));
        Ok(versions)
    }

    /// Returns a version of a skill by `name` (the active one) or `name@version`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownSkill`] or [`Error::UnknownVersion`] if it does not exist.
    pub fn get(&self, reference: &str) -> Result<Package, Error> {
        Ok(self.stored(reference)?.package)
    }

    pub(crate) fn stored(&self, reference: &str) -> Result<Stored, Error> {
        let connection = self.current()?;
        let (id, digest) = self.resolved(&connection, reference)?;
        let files: Vec<File> = rows::files(&connection, id)?;
        let package = Package::trusted(files);
        // Only pushed content is run: a catalog that was tampered with is rejected (T-SKL-05).
        if package.digest() != digest {
            return Err(Error::Invalid(format!("the content of `{reference}` was modified: its digest differs from {digest}")));
        }
        let (base, is_scientific) = rows::base(&connection, id)?;
        Ok(Stored { package, key: key(&connection, id, &digest)?, base, is_scientific })
    }

    /// Returns a text that differs if the files of a version differ or it was pushed again, perhaps with other packages. Reads no file.
    pub(crate) fn key(&self, reference: &str) -> Result<String, Error> {
        let connection = self.current()?;
        let (id, digest) = self.resolved(&connection, reference)?;
        key(&connection, id, &digest)
    }

    fn resolved(&self, connection: &Connection, reference: &str) -> Result<(i64, String), Error> {
        let (name, version) = package::reference(reference)?;
        let found = rows::resolve(connection, &self.tenant, name, version)?;
        found.ok_or_else(|| match version {
            None => Error::UnknownSkill(name.to_owned()),
            Some(version) => Error::UnknownVersion { name: name.to_owned(), version: version.to_owned() },
        })
    }

    /// Returns the differences between two versions of a skill; `to` defaults to the active one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownSkill`] or [`Error::UnknownVersion`] if one of them does not exist.
    pub fn diff(&self, name: &str, from: &str, to: Option<&str>) -> Result<SkillDiff, Error> {
        let old = self.get(&format!("{name}@{from}"))?;
        let new = self.get(&to.map_or_else(|| name.to_owned(), |to| format!("{name}@{to}")))?;
        Ok(crate::diff::compare(&old, &new))
    }

    /// Makes a version the active one, which `latest` refers to, and returns it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownSkill`] or [`Error::UnknownVersion`] if it does not exist.
    pub fn activate(&self, name: &str, version: &str) -> Result<String, Error> {
        repeated(|| self.activate_once(name, version))
    }

    fn activate_once(&self, name: &str, version: &str) -> Result<String, Error> {
        let mut connection = self.current()?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (id, _) = self.resolved(&transaction, &format!("{name}@{version}"))?;
        rows::activate(&transaction, &self.tenant, name, id)?;
        // `latest` is the version that is active already.
        let active = rows::active(&transaction, &self.tenant, name)?.unwrap_or_else(|| version.to_owned());
        self.save(Change::default().activate(name, &active))?;
        transaction.commit()?;
        Ok(active)
    }

    // The sandbox is changed before memory, so a change that cannot be stored is not made.
    fn save(&self, change: Change) -> Result<(), Error> {
        self.inside.as_ref().map_or(Ok(()), |home| home.save(change))
    }

    /// Deletes a version, or all versions of a skill if none is named; `name@latest` is the active version. If the active version was
    /// deleted, the newest remaining one becomes active. Returns the deleted versions.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownSkill`] or [`Error::UnknownVersion`] if it does not exist.
    pub fn delete(&self, reference: &str) -> Result<Vec<String>, Error> {
        if reference.ends_with('@') {
            // A program that leaves the version empty means one version.
            return Err(Error::Argument(format!("missing version in `{}`", runtime::actions::quoted(reference))));
        }
        repeated(|| self.delete_once(reference))
    }

    fn delete_once(&self, reference: &str) -> Result<Vec<String>, Error> {
        let (name, _) = package::reference(reference)?;
        let mut connection = self.current()?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (id, _) = self.resolved(&transaction, reference)?;
        let version = if reference.contains('@') { Some(rows::version(&transaction, id)?) } else { None };
        let version = version.as_deref();
        let mut versions: Vec<String> =
            rows::versions(&transaction, &self.tenant, name)?.into_iter().map(|row| row.version).collect();
        versions.sort_by(|a, b| compare(a, b));
        let mut change = Change::delete(name, version);
        let removed = match version {
            None => {
                rows::remove_all(&transaction, &self.tenant, name)?;
                versions
            }
            Some(version) => {
                rows::remove(&transaction, id)?;
                versions.retain(|known| known != version);
                let has_active = rows::active(&transaction, &self.tenant, name)?.is_some();
                if let Some(newest) = versions.last().filter(|_| !has_active)
                    && let Some((id, _)) = rows::resolve(&transaction, &self.tenant, name, Some(newest))?
                {
                    rows::activate(&transaction, &self.tenant, name, id)?;
                    change = change.activate(name, newest);
                }
                vec![version.to_owned()]
            }
        };
        self.save(change)?;
        transaction.commit()?;
        Ok(removed)
    }

    /// Returns whether any version of a skill exists; `false` for an invalid name.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Catalog`] if the database cannot be read.
    pub fn contains(&self, name: &str) -> Result<bool, Error> {
        if !is_name(name) {
            return Ok(false);
        }
        let sql = "SELECT 1 FROM skill WHERE tenant = ?1 AND name = ?2 LIMIT 1";
        Ok(self.current()?.query_row(sql, params![self.tenant, name], |_| Ok(())).optional()?.is_some())
    }
}

// Repeats a change of a catalog inside a sandbox that another program changes at the same time.
fn repeated<T>(change: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..ATTEMPTS {
        match change() {
            Err(Error::Runtime(runtime::Error::Stale { .. })) => {}
            done => return done,
        }
    }
    change()
}

fn key(connection: &Connection, id: i64, digest: &str) -> Result<String, Error> {
    Ok(format!("{digest} {id} {}", rows::pushed(connection, id)?))
}

// Switches the log on. SQLite does not wait for another process that does the same with a new file.
fn write_ahead(connection: &Connection) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && began.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            switched => return Ok(switched?),
        }
    }
}

impl Listed {
    /// Returns whether the skill has only instructions.
    #[must_use]
    pub fn is_cognitive(&self) -> bool {
        self.mode == Mode::Cognitive.as_str()
    }
}
