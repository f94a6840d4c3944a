//! A skill package: a directory, a zip file, or files in memory. Read and checked once, then represented by a type.

use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::archive::{self, MOST_BYTES, MOST_ENTRIES, check_names, check_path, is_litter};
use crate::lint::{self, Severity};
use crate::manifest::{self, Language, Manifest};
use crate::requirements;
use crate::{Error, Finding};

/// The file that makes a directory a skill.
pub(crate) const SKILL_MD: &str = "SKILL.md";
/// The reason for rejecting files without it.
pub(crate) const NO_SKILL_MD: &str = "SKILL.md is missing";
/// Maximum size of that file.
const SKILL_MD_BYTES: usize = 1 << 20;

/// Names of entry points, in search order.
pub(crate) const ENTRIES: [&str; 5] = ["main.py", "run.py", "main.js", "main.sh", "run.sh"];

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct File {
    /// Its path in the skill.
    pub path: String,
    /// Its bytes.
    #[serde(skip)]
    pub content: Vec<u8>,
    /// Whether it is executable.
    pub is_executable: bool,
}

impl File {
    /// Creates a file that is not executable.
    pub fn new(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), content: content.into(), is_executable: false }
    }

    /// Returns the content if it is UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.content).ok().filter(|text| !text.contains('\0'))
    }

    /// Returns the SHA-256 of the content, in hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> String {
        hex(&Sha256::digest(&self.content))
    }
}

/// A skill whose files and manifest are valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    files: Vec<File>,
    manifest: Manifest,
}

/// Formats bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Package {
    /// Reads a skill from a directory.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Host`] if a file cannot be read, and [`Error::Unsafe`], [`Error::TooLarge`] or [`Error::Invalid`] if the
    /// skill is rejected.
    pub fn from_directory(directory: &Path) -> Result<Self, Error> {
        Self::from_files(read_directory(directory)?)
    }

    /// Reads a skill from the bytes of a zip file. A single directory around all files is removed.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Unsafe`], [`Error::TooLarge`] or [`Error::Invalid`] if the skill is rejected.
    pub fn from_zip(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_files(zip_files(bytes)?)
    }

    /// Reads a skill from a directory, a zip file or a `SKILL.md`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_directory`](Self::from_directory) and [`from_zip`](Self::from_zip).
    pub fn from_path(path: &Path) -> Result<Self, Error> {
        Self::from_files(files_of(path)?)
    }

    /// Creates a skill from files in memory.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Unsafe`], [`Error::TooLarge`] or [`Error::Invalid`] if the skill is rejected.
    pub fn from_files(mut files: Vec<File>) -> Result<Self, Error> {
        check_files(&files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let (manifest, findings) = lint::read(&files);
        let wrong: Vec<&Finding> = findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
        if !wrong.is_empty() {
            let reasons: Vec<&str> = wrong.iter().map(|finding| finding.message.as_str()).collect();
            return Err(Error::Invalid(reasons.join("; ")));
        }
        Ok(Self { files, manifest })
    }

    /// Returns the files, by path.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Returns the file with this path.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok().and_then(|at| self.files.get(at))
    }

    /// Returns the manifest from its `SKILL.md`.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the path of its script, if any.
    #[must_use]
    pub fn entry(&self) -> Option<&str> {
        entry(&self.files)
    }

    /// Returns the language: the specified one, or that of its script.
    #[must_use]
    pub fn language(&self) -> Option<Language> {
        self.manifest.lang.or_else(|| self.entry().and_then(Language::of_entry))
    }

    /// Returns the requirements in pip's format, without comments and empty lines.
    #[must_use]
    pub fn requirements(&self) -> Vec<String> {
        let text = self.file("requirements.txt").and_then(File::text).unwrap_or_default();
        requirements::lines(text).into_iter().map(|(_, line)| line).collect()
    }

    /// Returns a digest of all files: names, contents and executable bits.
    #[must_use]
    pub fn digest(&self) -> String {
        digest(&self.files)
    }

    /// Packs the skill as a zip file. Equal skills produce equal bytes.
    #[must_use]
    pub fn to_zip(&self) -> Vec<u8> {
        archive::pack(&self.files)
    }

    /// Creates a skill from files that the catalog has already checked.
    pub(crate) fn trusted(files: Vec<File>) -> Self {
        let (manifest, _) = lint::read(&files);
        Self { files, manifest }
    }
}

/// Returns the script of a skill: in its root, or else in `scripts`.
pub(crate) fn entry(files: &[File]) -> Option<&str> {
    let places = ENTRIES.iter().map(|name| (*name).to_owned()).chain(ENTRIES.iter().map(|name| format!("scripts/{name}")));
    places.into_iter().find_map(|place| files.iter().find(|file| file.path == place)).map(|file| file.path.as_str())
}

pub(crate) fn digest(files: &[File]) -> String {
    let mut hasher = Sha256::new();
    for file in files {
        let kind = if file.is_executable { 'x' } else { '-' };
        hasher.update(format!("{}\0{kind}\0{}\n", file.path, file.sha256()));
    }
    format!("sha256:{}", hex(&hasher.finalize()))
}

/// Checks the path of a file, which ends with a name.
pub(crate) fn check_file_path(path: &str) -> Result<(), Error> {
    check_path(path)?;
    if path.ends_with('/') {
        let shown = runtime::actions::quoted(path);
        return Err(Error::Unsafe(format!("invalid path `{shown}`: the path of a file ends with a slash")));
    }
    Ok(())
}

/// Rejects invalid files regardless of the content of `SKILL.md`.
pub(crate) fn check_files(files: &[File]) -> Result<(), Error> {
    if files.len() > MOST_ENTRIES {
        return Err(Error::TooLarge(format!("it has {} files; the maximum is {MOST_ENTRIES}", files.len())));
    }
    let total = files.iter().fold(0u64, |total, file| total.saturating_add(file.content.len() as u64));
    if total > MOST_BYTES {
        return Err(Error::TooLarge(format!("it has {total} bytes; the maximum is {MOST_BYTES}")));
    }
    files.iter().try_for_each(|file| check_file_path(&file.path))?;
    check_names(files.iter().map(|file| file.path.as_str()))?;
    match files.iter().find(|file| file.path == SKILL_MD) {
        None => Err(Error::Invalid(NO_SKILL_MD.to_owned())),
        Some(file) if file.content.len() > SKILL_MD_BYTES => {
            Err(Error::TooLarge(format!("SKILL.md is larger than {SKILL_MD_BYTES} bytes")))
        }
        Some(file) if file.text().is_none() => Err(Error::Invalid("SKILL.md is not UTF-8".to_owned())),
        Some(_) => Ok(()),
    }
}

/// Returns the files of a zip file, without a single directory around them.
pub(crate) fn zip_files(bytes: &[u8]) -> Result<Vec<File>, Error> {
    let mut files = archive::unpack(bytes)?;
    let has_root = files.iter().any(|file| file.path == SKILL_MD);
    let wrapper = files.first().and_then(|file| file.path.split_once('/')).map(|(wrapper, _)| format!("{wrapper}/"));
    if let Some(wrapper) = wrapper.filter(|wrapper| !has_root && files.iter().all(|file| file.path.starts_with(wrapper))) {
        for file in &mut files {
            file.path = file.path.split_off(wrapper.len());
        }
    }
    Ok(files)
}

/// Reads the files at a path: a directory, a zip file, or only a `SKILL.md`.
pub(crate) fn files_of(path: &Path) -> Result<Vec<File>, Error> {
    if path.is_dir() {
        return read_directory(path);
    }
    let metadata = std::fs::metadata(path).map_err(Error::host("read", path))?;
    if !metadata.is_file() {
        // Reading a device or a pipe may never end.
        return Err(Error::Argument(format!("`{}` is neither a directory nor a regular file", path.display())));
    }
    let size = metadata.len();
    if size > MOST_BYTES {
        return Err(Error::TooLarge(format!("`{}` has {size} bytes; the maximum is {MOST_BYTES}", path.display())));
    }
    let bytes = std::fs::read(path).map_err(Error::host("read", path))?;
    if path.extension().is_some_and(|extension| extension == "md") {
        return Ok(vec![File::new(SKILL_MD, bytes)]);
    }
    zip_files(&bytes)
}

// The files of a directory, without following links.
fn read_directory(directory: &Path) -> Result<Vec<File>, Error> {
    let mut files = Vec::new();
    let (mut left, mut total) = (vec![(directory.to_owned(), String::new())], 0u64);
    while let Some((place, prefix)) = left.pop() {
        let entries = std::fs::read_dir(&place).map_err(Error::host("read", &place))?;
        for entry in entries {
            let entry = entry.map_err(Error::host("read", &place))?;
            let name = entry
                .file_name()
                .into_string()
                .map_err(|name| Error::Unsafe(format!("invalid path `{}`: not UTF-8", name.to_string_lossy())))?;
            let path = format!("{prefix}{name}");
            if is_litter(&path) {
                continue;
            }
            check_path(&path)?;
            let metadata = std::fs::symlink_metadata(entry.path()).map_err(Error::host("read", entry.path()))?;
            if metadata.is_dir() {
                left.push((entry.path(), format!("{path}/")));
            } else if metadata.is_symlink() {
                return Err(Error::Unsafe(format!("`{path}` is a symbolic link")));
            } else if !metadata.is_file() {
                return Err(Error::Unsafe(format!("`{path}` is neither a file nor a directory")));
            } else {
                total = total.saturating_add(metadata.len());
                if total > MOST_BYTES || files.len() >= MOST_ENTRIES {
                    let most = format!("the maximum is {MOST_ENTRIES} files and {MOST_BYTES} bytes");
                    return Err(Error::TooLarge(most));
                }
                let content = std::fs::read(entry.path()).map_err(Error::host("read", entry.path()))?;
                files.push(File { path, content, is_executable: is_executable(&metadata) });
            }
        }
        if left.len() > MOST_ENTRIES {
            return Err(Error::TooLarge(format!("the maximum is {MOST_ENTRIES} directories")));
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}

/// Parses a reference to a skill, `name` or `name@version`.
pub(crate) fn reference(text: &str) -> Result<(&str, Option<&str>), Error> {
    let (name, version) = match text.split_once('@') {
        Some((name, version)) => (name, Some(version).filter(|version| !matches!(*version, "" | "latest"))),
        None => (text, None),
    };
    if !manifest::is_name(name) {
        return Err(Error::Argument(format!("invalid skill name `{}`", runtime::actions::quoted(name))));
    }
    if let Some(version) = version.filter(|version| !crate::is_version(version)) {
        return Err(Error::Argument(format!("invalid version `{}`", runtime::actions::quoted(version))));
    }
    Ok((name, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "---\nname: x\ndescription: y\n---\n# X\n";

    fn package(paths: &[&str]) -> Package {
        let files = paths.iter().map(|path| File::new(*path, "")).chain([File::new(SKILL_MD, HEAD)]);
        Package::from_files(files.collect()).unwrap()
    }

    #[test]
    fn the_entry_is_in_the_root_before_scripts() {
        assert_eq!(package(&["scripts/main.py", "run.py"]).entry(), Some("run.py"));
        assert_eq!(package(&["scripts/main.sh", "scripts/run.py"]).entry(), Some("scripts/run.py"));
        assert_eq!(package(&["run.sh", "main.sh"]).entry(), Some("main.sh"));
        assert_eq!(package(&["lib/main.py"]).entry(), None);
        assert_eq!(package(&["run.sh"]).language(), Some(Language::Bash));
        assert_eq!(package(&[]).language(), None);
    }

    #[test]
    fn a_directory_around_all_files_of_a_zip_is_left_out() {
        let files = [File::new("my-skill/SKILL.md", HEAD), File::new("my-skill/scripts/main.py", "1")];
        let package = Package::from_zip(&archive::pack(&files)).unwrap();
        assert_eq!(package.files().iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["SKILL.md", "scripts/main.py"]);
        let two = [File::new("a/SKILL.md", HEAD), File::new("b/main.py", "1")];
        assert!(Package::from_zip(&archive::pack(&two)).is_err());
    }

    #[test]
    fn the_digest_is_that_of_names_contents_and_programs() {
        let one = package(&["a"]);
        let mut program = one.files().to_vec();
        program[1].is_executable = true;
        let digests = [one.digest(), package(&["b"]).digest(), Package::from_files(program).unwrap().digest()];
        assert!(digests[0] != digests[1] && digests[0] != digests[2], "{digests:?}");
        assert_eq!(Package::from_zip(&one.to_zip()).unwrap().digest(), one.digest());
    }

    #[test]
    fn requirements_are_lines_without_comments() {
        let files = vec![File::new(SKILL_MD, HEAD), File::new("requirements.txt", "# none\n\nsix==1.17.0  # pinned\nrich\n")];
        assert_eq!(Package::from_files(files).unwrap().requirements(), ["six==1.17.0", "rich"]);
    }

    #[test]
    fn the_path_of_a_file_ends_with_a_name() {
        let files = vec![File::new(SKILL_MD, HEAD), File::new("scripts/", "echo")];
        let error = Package::from_files(files).unwrap_err().to_string();
        assert_eq!(error, "unsafe archive: invalid path `scripts/`: the path of a file ends with a slash");
    }

    #[test]
    fn a_device_is_not_read() {
        let error = Package::from_path(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.to_string(), "`/dev/null` is neither a directory nor a regular file");
    }

    #[test]
    fn a_directory_is_read_without_its_links() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(SKILL_MD), HEAD).unwrap();
        std::fs::create_dir(directory.path().join(".git")).unwrap();
        std::fs::write(directory.path().join(".git/config"), "x").unwrap();
        assert_eq!(Package::from_directory(directory.path()).unwrap().files().len(), 1);
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("link")).unwrap();
        assert!(Package::from_directory(directory.path()).unwrap_err().to_string().contains("symbolic link"));
    }
}
