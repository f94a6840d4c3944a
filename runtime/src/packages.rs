//! Python packages of a sandbox: pure-Python wheels, unpacked into its own `site-packages`.

mod fetch;
mod record;
mod trial;
mod wheel;

use std::collections::BTreeSet;

use presets::ByteSize;
use serde_json::json;
use sqlite_fs::{Fs, FsError, FsPath, Transaction, Volume};

use crate::Error;
use crate::defaults::USER_BASE;
use crate::history::LibraryCall as Call;
use crate::sandbox::Sandbox;
use crate::vfs::View;
use trial::{Compiled, Trial};
use wheel::Wheel;

pub use fetch::{Fetched, Installation, PIP_PROGRAM, Refused, Sources, requirements};

/// The directory of packages, which is in Python's `sys.path`.
const SITE_PACKAGES: &str = "/home/user/.local/lib/python3.14/site-packages";

/// The directory of their programs, the last directory of `PATH`.
const BIN: &str = "/home/user/.local/bin";

/// The modification time of installed modules. A compiled module is used while its source has this time, and not after the source
/// was edited. 1980-01-01, as in archives, in nanoseconds.
const SOURCE_TIME: i64 = 315_532_800_000_000_000;

/// The suffix of a compiled module.
const COMPILED_ENDING: &str = ".cpython-314.pyc";

/// The directory of their data.
const DATA: &str = USER_BASE;

/// The Python packages of a sandbox.
///
/// ```no_run
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// let wheel = std::fs::read("six-1.17.0-py2.py3-none-any.whl").expect("somebody downloaded it");
/// let package = sandbox.packages().install(&wheel)?;
/// println!("{} {} needs {:?}", package.name, package.version, package.requires);
/// sandbox.python("import six")?;
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
pub struct Packages<'a> {
    sandbox: &'a Sandbox,
}

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Package {
    /// Its name, as in its metadata.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its requirements: `Requires-Dist`, one each, without those of extras.
    pub requires: Vec<String>,
    /// Its programs.
    pub programs: Vec<String>,
}

impl Sandbox {
    /// Returns the sandbox's Python packages.
    #[must_use]
    pub fn packages(&self) -> Packages<'_> {
        Packages { sandbox: self }
    }
}

/// Maximum size of a package's metadata, because a guest can write any, and list one file a thousand times.
const METADATA_BYTES: u64 = 1 << 20;

impl Packages<'_> {
    /// The directory of packages in a sandbox.
    pub const DIRECTORY: &'static str = SITE_PACKAGES;

    /// Maximum size of a wheel file.
    pub const WHEEL_MAX: ByteSize = ByteSize(wheel::MAX_WHEEL_BYTES as u64);

    /// Installs a wheel from the bytes of its file, replacing another version of the package.
    ///
    /// The wheel must be pure Python (`py3-none-any`), and each of its files must have the hash listed in its `RECORD`. Its
    /// programs become scripts in `~/.local/bin`. Its requirements are not installed.
    ///
    /// # Errors
    ///
    /// Returns an error if the wheel is invalid or exceeds the quota; nothing is changed then.
    pub fn install(&self, wheel: &[u8]) -> Result<Package, Error> {
        let mut installed = self.install_checked(&[(None, wheel)]).map_err(|(_, error)| error)?;
        installed.pop().ok_or_else(|| Error::Invalid("no wheel was installed".to_owned()))
    }

    /// Installs several wheels in one transaction: all of them or none. The name of each file must match its package and version.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`install`](Self::install) with the number of the invalid wheel, and an error if a file name does
    /// not match its package or version.
    pub fn install_files<N: AsRef<str>, W: AsRef<[u8]>>(&self, wheels: &[(N, W)]) -> Result<Vec<Package>, (usize, Error)> {
        let wheels: Vec<(Option<&str>, &[u8])> =
            wheels.iter().map(|(file, wheel)| (Some(file.as_ref()), wheel.as_ref())).collect();
        self.install_checked(&wheels)
    }

    fn install_checked(&self, wheels: &[(Option<&str>, &[u8])]) -> Result<Vec<Package>, (usize, Error)> {
        let mut checked = Vec::new();
        for (number, (file, wheel)) in wheels.iter().enumerate() {
            let check = |wheel: Wheel| file.map_or(Ok(()), |file| wheel.check_file_name(file)).map(|()| wheel);
            let wheel = Wheel::read(wheel).and_then(check);
            checked.push(wheel.map_err(|reason| (number, Error::Invalid(format!("invalid wheel: {reason}"))))?);
        }
        let wheels: Vec<&Wheel> = checked.iter().collect();
        // Without compiled modules a package is only slower to import.
        let compiled = Trial::new(self.sandbox.host(), &checked).and_then(|mut trial| trial.compile(&wheels)).unwrap_or_default();
        self.place_all(&wheels, &compiled)
    }

    // Installs wheels in one transaction, with their compiled modules if they fit. Returns the number of the one that failed.
    fn place_all(&self, wheels: &[&Wheel], compiled: &Compiled) -> Result<Vec<Package>, (usize, Error)> {
        match self.place_with(wheels, compiled) {
            Err((_, error)) if !compiled.is_empty() && is_out_of_room(&error) => self.place_with(wheels, &Compiled::new()),
            placed => placed,
        }
    }

    fn place_with(&self, wheels: &[&Wheel], compiled: &Compiled) -> Result<Vec<Package>, (usize, Error)> {
        let packages: Vec<Package> = wheels.iter().map(|wheel| wheel.package()).collect();
        let names: Vec<String> = packages.iter().map(|package| format!("{}=={}", package.name, package.version)).collect();
        let about = names.join(" ");
        let parameters = if names.len() == 1 { json!({ "package": about }) } else { json!({ "packages": names }) };
        let mut number = 0;
        let done = self.sandbox.change(Call::new("install_package", &about, parameters), |run| {
            let fs = run.view()?.fs();
            for (wheel, package) in wheels.iter().zip(&packages) {
                remove(&fs, &package.name)?;
                place(&fs, wheel, compiled)?;
                number += 1;
            }
            Ok(())
        });
        done.map(|()| packages).map_err(|error| (number.min(wheels.len().saturating_sub(1)), error))
    }

    /// Removes a package and returns whether it was installed.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be written.
    pub fn uninstall(&self, name: &str) -> Result<bool, Error> {
        let call = Call::new("uninstall_package", name, json!({ "package": name }));
        self.sandbox.change(call, |run| remove(&run.view()?.fs(), name))
    }

    /// Removes several packages in one transaction and returns those that were installed.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be written; none is removed then.
    pub fn uninstall_all(&self, names: &[String]) -> Result<Vec<bool>, Error> {
        if let [name] = names {
            return Ok(vec![self.uninstall(name)?]);
        }
        let call = Call::new("uninstall_package", &names.join(" "), json!({ "packages": names }));
        self.sandbox.change(call, |run| {
            let fs = run.view()?.fs();
            names.iter().map(|name| remove(&fs, name)).collect()
        })
    }

    /// Returns the installed packages, sorted by name.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn list(&self) -> Result<Vec<Package>, Error> {
        let view = self.sandbox.now()?;
        let fs = view.fs();
        let mut found = Vec::new();
        for directory in info_directories(&fs)? {
            let text = |name: &str| {
                let path = format!("{SITE_PACKAGES}/{directory}/{name}");
                let is_small = fs.metadata(&path).is_ok_and(|stat| stat.size <= METADATA_BYTES);
                if is_small { fs.read(&path).unwrap_or_default() } else { Vec::new() }
            };
            found.extend(wheel::describe(&text("METADATA"), &text("entry_points.txt")));
        }
        found.sort_by_key(|package| normalized(&package.name));
        Ok(found)
    }
}

// A file of the wheel and its destination.
fn place(fs: &Fs<'_, View<Transaction>>, wheel: &Wheel, compiled: &Compiled) -> Result<(), Error> {
    let mut placed = Vec::new();
    let mut put = |path: String, content: &[u8], executable: bool| -> Result<(), Error> {
        if let Some((parent, _)) = path.rsplit_once('/') {
            fs.create_dir_all(parent)?;
        }
        fs.write(&path, content)?;
        fs.set_permissions(&path, if executable { 0o755 } else { 0o644 })?;
        placed.push(record::line(&relative(&path), content));
        Ok(())
    };
    for file in &wheel.files {
        let Some(target) = file.target(&wheel.data_directory()) else { continue };
        let path = format!("{}/{}", target.root(), target.path);
        put(path.clone(), &file.installed_content(&target), target.is_program())?;
        if let Some(cached) = compiled_path(&path) {
            fs.set_times(&path, None, Some(SOURCE_TIME))?;
            if let Some(content) = compiled.get(&cached) {
                put(cached, content, false)?;
            }
        }
    }
    for (name, script) in wheel.scripts() {
        put(format!("{BIN}/{name}"), script.as_bytes(), true)?;
    }
    let info = format!("{SITE_PACKAGES}/{}", wheel.info_directory());
    put(format!("{info}/INSTALLER"), b"sandlite\n", false)?;
    placed.push(format!("{}/RECORD,,", wheel.info_directory()));
    fs.write(&format!("{info}/RECORD"), format!("{}\n", placed.join("\n")))?;
    Ok(())
}

// The path at which Python looks for a compiled module; nothing for other files.
fn compiled_path(path: &str) -> Option<String> {
    let (directory, name) = path.rsplit_once('/')?;
    Some(format!("{directory}/__pycache__/{}{COMPILED_ENDING}", name.strip_suffix(".py")?))
}

fn is_out_of_room(error: &Error) -> bool {
    matches!(error, Error::TooLarge { .. } | Error::Database(sqlite_fs::Error::Quota { .. }))
        || error.fs_error() == Some(FsError::NoSpace)
}

// The name of a file in `RECORD`: relative to `site-packages`.
fn relative(path: &str) -> String {
    match path.strip_prefix(SITE_PACKAGES).and_then(|rest| rest.strip_prefix('/')) {
        Some(inside) => inside.to_owned(),
        None => format!("../../../{}", path.strip_prefix(DATA).unwrap_or(path).trim_start_matches('/')),
    }
}

// The inverse; nothing for a path outside the package directories, whatever a guest has written into its `RECORD`.
fn absolute(name: &str) -> Option<String> {
    let path = FsPath::new(SITE_PACKAGES).ok()?.join(name).ok()?;
    let place = FsPath::new(DATA).ok()?;
    (path != place && path.starts_with(&place)).then(|| path.to_string())
}

fn remove(fs: &Fs<'_, View<Transaction>>, name: &str) -> Result<bool, Error> {
    let mut found = false;
    for directory in info_directories(fs)?.into_iter().filter(|directory| is_of(directory, name)) {
        found = true;
        let record = fs.read(&format!("{SITE_PACKAGES}/{directory}/RECORD")).unwrap_or_default();
        let paths: Vec<_> = record::names(&String::from_utf8_lossy(&record)).iter().filter_map(|name| absolute(name)).collect();
        let mut parents = BTreeSet::new();
        for path in &paths {
            let _ = fs.remove_file(path);
            parents.extend(path.rmatch_indices('/').map(|(at, _)| path[..at].to_owned()).filter(|parent| is_inside(parent)));
        }
        for parent in parents.iter().rev() {
            let _ = fs.remove_dir_all(&format!("{parent}/__pycache__"));
            let _ = fs.remove_dir(parent);
        }
        let _ = fs.remove_dir_all(&format!("{SITE_PACKAGES}/{directory}"));
    }
    Ok(found)
}

fn is_inside(directory: &str) -> bool {
    directory.strip_prefix(SITE_PACKAGES).is_some_and(|rest| rest.starts_with('/'))
}

fn info_directories<V: Volume>(fs: &Fs<'_, V>) -> Result<Vec<String>, Error> {
    if !fs.exists(SITE_PACKAGES)? {
        return Ok(Vec::new());
    }
    let names = fs.list(SITE_PACKAGES)?.into_iter().map(|entry| entry.name);
    Ok(names.filter(|name| name.ends_with(".dist-info")).collect())
}

fn is_of(directory: &str, name: &str) -> bool {
    directory.split_once('-').is_some_and(|(package, _)| normalized(package) == normalized(name))
}

/// Normalizes a package name for comparisons: case and the separators `-`, `_` and `.` are ignored.
fn normalized(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            letter => out.extend(letter.to_lowercase()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_packages_are() {
        assert_eq!(normalized("Zope.Interface__x"), "zope-interface-x");
        assert!(is_of("my_package-1.0.dist-info", "My.Package"));
        assert!(!is_of("my_package_x-1.0.dist-info", "my_package"));
    }

    #[test]
    fn a_record_reaches_only_the_place_of_packages() {
        assert!([SITE_PACKAGES, BIN].iter().all(|directory| directory.starts_with(&format!("{USER_BASE}/"))));
        assert_eq!(absolute("six.py").as_deref(), Some("/home/user/.local/lib/python3.14/site-packages/six.py"));
        assert_eq!(absolute("../../../bin/tool").as_deref(), Some("/home/user/.local/bin/tool"));
        for name in ["../../../../notes", "../../../../../../etc/x", "../../..", ""] {
            let inside = absolute(name).is_some_and(|path| path != SITE_PACKAGES);
            assert!(!inside, "{name}");
        }
        assert_eq!(relative("/home/user/.local/bin/tool"), "../../../bin/tool");
    }
}
