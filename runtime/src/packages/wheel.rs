//! A wheel: an untrusted zip file, used only after all checks.

use std::collections::{HashMap, HashSet};

use super::{BIN, DATA, Package, SITE_PACKAGES, normalized, record};

/// Maximum size of a wheel file.
pub(super) const MAX_WHEEL_BYTES: usize = 64 << 20;

/// Maximum number of files in a wheel.
const MAX_FILES: usize = 20_000;

/// Maximum total size of all files.
const MAX_CONTENT_BYTES: usize = 256 << 20;

/// The newest minor version of Python 3 that a wheel may require.
const PYTHON_MINOR: u32 = 14;

/// The interpreter of scripts.
const INTERPRETER: &str = "#!/usr/bin/python3";

/// A wheel whose files match its `RECORD`.
#[derive(Debug)]
pub(super) struct Wheel {
    /// Its files, by name.
    pub(super) files: Vec<File>,
    /// `NAME-VERSION`, as in its directory names.
    stem: String,
    package: Package,
    /// Its requirements, including those of extras.
    requirements: Vec<String>,
    /// Whether it had native code, which was removed.
    stripped: bool,
}

/// A file of a wheel.
#[derive(Debug)]
pub(super) struct File {
    name: String,
    content: Vec<u8>,
}

/// The destination of a file.
pub(super) struct Target {
    place: Place,
    /// Relative to the root of the destination.
    pub(super) path: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Library,
    Programs,
    Data,
}

impl Target {
    /// Returns the root directory of `path`.
    pub(super) fn root(&self) -> &'static str {
        match self.place {
            Place::Library => SITE_PACKAGES,
            Place::Programs => BIN,
            Place::Data => DATA,
        }
    }

    /// Returns whether it is executable.
    pub(super) fn is_program(&self) -> bool {
        self.place == Place::Programs
    }
}

impl File {
    /// Returns the destination; `None` if the file is not installed.
    pub(super) fn target(&self, data_directory: &str) -> Option<Target> {
        let Some(rest) = self.name.strip_prefix(data_directory).and_then(|rest| rest.strip_prefix('/')) else {
            return (!self.name.ends_with(".dist-info/RECORD"))
                .then(|| Target { place: Place::Library, path: self.name.clone() });
        };
        let (kind, path) = rest.split_once('/')?;
        let place = match kind {
            "purelib" => Place::Library,
            "scripts" => Place::Programs,
            "data" => Place::Data,
            _ => return None,
        };
        Some(Target { place, path: path.to_owned() })
    }

    /// Returns the installed content: scripts refer to the interpreter of the sandbox.
    pub(super) fn installed_content(&self, target: &Target) -> Vec<u8> {
        match self.content.strip_prefix(b"#!python") {
            Some(rest) if target.is_program() => {
                let rest = rest.strip_prefix(b"w").unwrap_or(rest);
                [INTERPRETER.as_bytes(), rest].concat()
            }
            _ => self.content.clone(),
        }
    }
}

impl Wheel {
    /// Reads and checks a wheel; the error is the reason.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let wheel = Self::read_pure_part(bytes)?;
        if wheel.stripped {
            return Err(format!("it is built for {}; only pure Python (py3-none-any) is supported", wheel.tags().join(", ")));
        }
        Ok(wheel)
    }

    /// Same for a wheel with native code, which is removed: whether it works without it must be tried.
    pub(super) fn read_pure_part(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MAX_WHEEL_BYTES {
            return Err(format!("it has {} bytes; the maximum is {MAX_WHEEL_BYTES}", bytes.len()));
        }
        let files = unpack(bytes)?;
        let stem = stem(&files)?;
        let text = |name: &str| find(&files, &format!("{stem}.dist-info/{name}"));
        let stripped = !is_pure_wheel(&String::from_utf8_lossy(text("WHEEL").ok_or("missing file WHEEL")?));
        check_record(&files, &stem, &String::from_utf8_lossy(text("RECORD").ok_or("missing file RECORD")?))?;
        let metadata = text("METADATA").ok_or("missing file METADATA")?;
        let package = describe(metadata, text("entry_points.txt").unwrap_or_default())
            .ok_or("METADATA does not contain exactly one name and one version")?;
        let named = stem.split_once('-').is_some_and(|(name, version)| {
            normalized(name) == normalized(&package.name) && same_version(version, &package.version)
        });
        if !named {
            return Err(format!("METADATA describes {} {}, but the directory belongs to {stem}", package.name, package.version));
        }
        check_targets(&files, &stem, &package)?;
        let requirements = fields(metadata, "Requires-Dist");
        let mut wheel = Self { files, stem, package, requirements, stripped };
        if stripped {
            wheel.files.retain(|file| !is_compiled(&file.name));
            if wheel.sources().is_empty() {
                return Err(format!("it is compiled for {} and contains no Python", wheel.tags().join(", ")));
            }
        }
        Ok(wheel)
    }

    fn tags(&self) -> Vec<String> {
        fields(find(&self.files, &format!("{}/WHEEL", self.info_directory())).unwrap_or_default(), "Tag")
    }

    /// Returns whether it had native code, which was removed.
    pub(super) fn is_stripped(&self) -> bool {
        self.stripped
    }

    /// Returns its requirements, including those of extras.
    pub(super) fn all_requirements(&self) -> &[String] {
        &self.requirements
    }

    /// Returns the installed paths of its modules, without its own tests.
    pub(super) fn sources(&self) -> Vec<String> {
        let data = self.data_directory();
        let targets = self.files.iter().filter_map(|file| file.target(&data));
        let modules = targets.filter(|target| target.place == Place::Library && target.path.ends_with(".py"));
        let wanted = modules.filter(|target| !target.path.split('/').any(|part| matches!(part, "test" | "tests")));
        wanted.map(|target| format!("{SITE_PACKAGES}/{}", target.path)).collect()
    }

    /// Returns its top-level modules, except private ones.
    pub(super) fn modules(&self) -> Vec<String> {
        let top = self.sources().into_iter().filter_map(|path| {
            let path = path.strip_prefix(SITE_PACKAGES)?.trim_start_matches('/').to_owned();
            let name = path.strip_suffix("/__init__.py").or_else(|| path.strip_suffix(".py"))?;
            (is_dotted_name(name) && !name.contains('.') && !name.starts_with('_')).then(|| name.to_owned())
        });
        top.collect()
    }

    /// Rejects a wheel whose file name does not match its package or version: `NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM.whl`.
    pub(super) fn check_file_name(&self, file: &str) -> Result<(), String> {
        let Some(name) = file.strip_suffix(".whl") else { return Err(format!("the file name `{file}` does not end in .whl")) };
        let mut parts = name.split('-');
        let (name, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let is_of = normalized(name) == normalized(&self.package.name) && same_version(version, &self.package.version);
        if is_of && (3..=4).contains(&parts.count()) {
            return Ok(());
        }
        Err(format!("it contains {} {}, which does not match its file name `{file}`", self.package.name, self.package.version))
    }

    /// Returns the package.
    pub(super) fn package(&self) -> Package {
        self.package.clone()
    }

    /// Returns its metadata directory.
    pub(super) fn info_directory(&self) -> String {
        format!("{}.dist-info", self.stem)
    }

    /// Returns the directory of files outside the library.
    pub(super) fn data_directory(&self) -> String {
        format!("{}.data", self.stem)
    }

    /// Returns its programs that are functions: name and script.
    pub(super) fn scripts(&self) -> Vec<(String, String)> {
        let text = find(&self.files, &format!("{}/entry_points.txt", self.info_directory())).unwrap_or_default();
        entry_points(&String::from_utf8_lossy(text)).into_iter().map(|(name, target)| (name, script(&target))).collect()
    }
}

// File names write `-` as `_`.
fn same_version(written: &str, version: &str) -> bool {
    written.replace('_', "-") == version.replace('_', "-")
}

// Every file has its own destination, none of them in the metadata of another package.
fn check_targets(files: &[File], stem: &str, package: &Package) -> Result<(), String> {
    let (data, own) = (format!("{stem}.data"), format!("{SITE_PACKAGES}/{stem}.dist-info/"));
    let mut places = HashSet::new();
    for file in files {
        let Some(target) = file.target(&data) else { continue };
        let place = format!("{}/{}", target.root(), target.path);
        let about_another = place
            .strip_prefix(SITE_PACKAGES)
            .and_then(|rest| rest.trim_start_matches('/').split('/').next())
            .is_some_and(|top| top.to_ascii_lowercase().ends_with(".dist-info") && !place.starts_with(&own));
        if about_another {
            return Err(format!("`{}` describes another package", file.name));
        }
        if !places.insert(place) {
            return Err(format!("`{}` has the same destination as another file", file.name));
        }
    }
    match package.programs.iter().find(|program| !places.insert(format!("{BIN}/{program}"))) {
        Some(program) => Err(format!("duplicate program `{program}`")),
        None => Ok(()),
    }
}

/// Parses the metadata of a package.
pub(super) fn describe(metadata: &[u8], entry_points_text: &[u8]) -> Option<Package> {
    let values = |key: &'static str| fields(metadata, key).into_iter();
    let only = |key: &'static str| Some(values(key)).and_then(|mut values| values.next().filter(|_| values.next().is_none()));
    let (name, version) = (only("Name")?, only("Version")?);
    let requires = values("Requires-Dist").filter(|requirement| !requirement.contains("extra ==")).collect();
    let programs = entry_points(&String::from_utf8_lossy(entry_points_text)).into_iter().map(|(name, _)| name).collect();
    Some(Package { name, version, requires, programs })
}

// The values of a field in the header of a file, which ends at the first empty line.
fn fields(text: &[u8], key: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let head = text.split("\n\n").next().unwrap_or_default();
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.filter(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.trim().to_owned()).collect()
}

fn find<'a>(files: &'a [File], name: &str) -> Option<&'a [u8]> {
    files.iter().find(|file| file.name == name).map(|file| file.content.as_slice())
}

fn unpack(bytes: &[u8]) -> Result<Vec<File>, String> {
    let entries = zip::entries(bytes).map_err(|error| error.to_string())?;
    if entries.len() > MAX_FILES {
        return Err(format!("it has {} files; the maximum is {MAX_FILES}", entries.len()));
    }
    let (mut files, mut seen, mut left) = (Vec::new(), HashSet::new(), MAX_CONTENT_BYTES);
    for entry in entries {
        let name = std::str::from_utf8(entry.name).map_err(|_| "a file name is not UTF-8")?.to_owned();
        check_name(&name)?;
        if entry.is_symlink() {
            return Err(format!("`{name}` is a symbolic link"));
        }
        if name.ends_with('/') {
            continue;
        }
        if !seen.insert(name.clone()) {
            return Err(format!("duplicate file `{name}`"));
        }
        let content = entry.content(left).map_err(|reason| format!("cannot unpack `{name}`: {reason}"))?;
        left -= content.len();
        files.push(File { name, content });
    }
    Ok(files)
}

// A name that stays below its directory.
fn check_name(name: &str) -> Result<(), String> {
    let inner = name.strip_suffix('/').unwrap_or(name);
    let fits = inner.split('/').all(|part| !matches!(part, "" | "." | "..") && part.len() <= 255);
    if fits && name.len() <= 1024 && !name.contains(['\\', '\0', '\n', '\r']) {
        return Ok(());
    }
    Err(format!("invalid file name {name:?}"))
}

fn stem(files: &[File]) -> Result<String, String> {
    let tops: HashSet<_> = files.iter().filter_map(|file| file.name.split_once('/')?.0.strip_suffix(".dist-info")).collect();
    match tops.into_iter().collect::<Vec<_>>().as_slice() {
        [stem] if stem.contains('-') => Ok((*stem).to_owned()),
        [] => Err("missing directory .dist-info".to_owned()),
        _ => Err("more than one directory .dist-info".to_owned()),
    }
}

fn is_pure_wheel(wheel: &str) -> bool {
    let is_library = |pure: &String| pure.eq_ignore_ascii_case("true");
    fields(wheel.as_bytes(), "Tag").iter().any(|tag| is_pure(tag))
        && fields(wheel.as_bytes(), "Root-Is-Purelib").iter().all(is_library)
}

/// Returns whether a file of a wheel is native: a library, or its source.
fn is_compiled(name: &str) -> bool {
    let (directory, file) = name.rsplit_once('/').unwrap_or(("", name));
    let ending = file.rsplit('.').next().unwrap_or_default();
    directory.split('/').next().is_some_and(|top| top.ends_with(".libs"))
        || matches!(ending, "so" | "pyd" | "dylib" | "dll" | "a" | "o" | "c" | "cpp" | "h" | "pyx" | "pxd")
        || file.contains(".so.")
}

fn is_pure(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let versions = parts.next().unwrap_or_default();
    let newest = |version: &str| match version.strip_prefix("py3") {
        Some("") => true,
        Some(minor) => minor.parse::<u32>().is_ok_and(|minor| minor <= PYTHON_MINOR),
        None => false,
    };
    parts.eq(["none", "any"]) && versions.split('.').any(newest)
}

fn check_record(files: &[File], stem: &str, text: &str) -> Result<(), String> {
    let rows: HashMap<String, (String, String)> = record::rows(text).map(|[name, hash, size]| (name, (hash, size))).collect();
    let unhashed = ["RECORD", "RECORD.jws", "RECORD.p7s"].map(|name| format!("{stem}.dist-info/{name}"));
    for File { name, content } in files.iter().filter(|file| !unhashed.contains(&file.name)) {
        let Some((hash, size)) = rows.get(name) else { return Err(format!("`{name}` is not listed in RECORD")) };
        let sized = size.is_empty() || size.parse() == Ok(content.len());
        if *hash != record::hash(content) || !sized {
            return Err(format!("`{name}` does not match RECORD"));
        }
    }
    match rows.keys().find(|name| !unhashed.contains(name) && !files.iter().any(|file| file.name == **name)) {
        Some(missing) => Err(format!("`{missing}` is listed in RECORD but missing")),
        None => Ok(()),
    }
}

/// A function to call.
#[derive(Debug, PartialEq, Eq)]
struct EntryPoint {
    module: String,
    function: String,
}

// The programs in `entry_points.txt`; invalid lines are ignored.
fn entry_points(text: &str) -> Vec<(String, EntryPoint)> {
    let mut found = Vec::new();
    let mut wanted = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            wanted = matches!(section.trim(), "console_scripts" | "gui_scripts");
        } else if wanted && !line.starts_with(['#', ';']) {
            found.extend(entry_point(line));
        }
    }
    found
}

fn entry_point(line: &str) -> Option<(String, EntryPoint)> {
    let (name, target) = line.split_once('=')?;
    let (name, target) = (name.trim(), target.split('[').next()?.trim());
    let (module, function) = target.split_once(':')?;
    let (module, function) = (module.trim(), function.trim());
    let named = !name.is_empty()
        && name.chars().all(|letter| letter.is_alphanumeric() || "._-+".contains(letter))
        && !name.starts_with('.');
    (named && is_dotted_name(module) && is_dotted_name(function))
        .then(|| (name.to_owned(), EntryPoint { module: module.to_owned(), function: function.to_owned() }))
}

fn is_dotted_name(name: &str) -> bool {
    name.split('.').all(|part| {
        part.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

fn script(EntryPoint { module, function }: &EntryPoint) -> String {
    let first = function.split('.').next().unwrap_or_default();
    format!("{INTERPRETER}\nimport sys\nfrom {module} import {first}\nsys.exit({function}())\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pure_python_is_let_in() {
        for (tag, expected) in [
            ("py3-none-any", true),
            ("py2.py3-none-any", true),
            ("py310-none-any", true),
            ("py315-none-any", false),
            ("py2-none-any", false),
            ("cp314-cp314-wasi", false),
            ("py3-none-manylinux1_x86_64", false),
            ("py3-abi3-any", false),
        ] {
            assert_eq!(is_pure(tag), expected, "{tag}");
        }
    }

    #[test]
    fn native_code_is_distinguished_from_python() {
        for name in ["a/_speedups.cpython-314-x86_64-linux-gnu.so", "a.libs/libx.so.3", "a/b.pyd", "a/_c.c", "a/x.pyx"] {
            assert!(is_compiled(name), "{name}");
        }
        for name in ["a/_native.py", "a/so.py", "a/data.json", "a-1.dist-info/RECORD", "a/libs/b.py"] {
            assert!(!is_compiled(name), "{name}");
        }
        assert!(is_pure_wheel("Root-Is-Purelib: true\nTag: py3-none-any\n"));
        assert!(!is_pure_wheel("Root-Is-Purelib: false\nTag: py3-none-any\n"));
        assert!(!is_pure_wheel("Root-Is-Purelib: true\nTag: cp314-cp314-manylinux_2_17_x86_64\n"));
    }

    #[test]
    fn modules_are_named_as_they_are_imported() {
        let names = ["yaml/__init__.py", "_yaml/__init__.py", "six.py", "yaml/tests/x.py", "a-b.py", "yaml/loader.py"];
        let files = names.iter().map(|name| File { name: (*name).to_owned(), content: Vec::new() }).collect();
        let wheel = Wheel { files, stem: "x-1".to_owned(), package: package(&[]), requirements: Vec::new(), stripped: true };
        assert_eq!(wheel.modules(), ["yaml", "six"]);
        assert!(wheel.sources().iter().all(|path| !path.contains("/tests/")) && wheel.sources().len() == 5);
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        for name in ["/etc/passwd", "../x", "a/../../x", "a//b", "a\\..\\b", "", ".", "a/./b", "a\0b"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["a.py", "a/b.py", "a/", "ä/ö.py", "a..b/...c"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }

    fn package(programs: &[&str]) -> Package {
        let programs = programs.iter().map(|&program| program.to_owned()).collect();
        Package { name: "My.Pkg".to_owned(), version: "1.0-1".to_owned(), requires: Vec::new(), programs }
    }

    #[test]
    fn the_file_name_is_that_of_the_package() {
        let (requirements, stem) = (Vec::new(), "my_pkg-1.0_1".to_owned());
        let wheel = Wheel { files: Vec::new(), stem, package: package(&[]), requirements, stripped: false };
        for file in ["my_pkg-1.0_1-py3-none-any.whl", "My.Pkg-1.0_1-7-py3-none-any.whl"] {
            assert_eq!(wheel.check_file_name(file), Ok(()), "{file}");
        }
        for file in
            ["requests-1.0_1-py3-none-any.whl", "my_pkg-1.0-py3-none-any.whl", "my_pkg-1.0_1.whl", "my_pkg.whl", "x.zip", ""]
        {
            assert!(wheel.check_file_name(file).is_err(), "{file}");
        }
    }

    #[test]
    fn metadata_names_one_package() {
        assert!(describe(b"Name: a\nVersion: 1\n", b"").is_some());
        for metadata in ["Version: 1\n", "Name: a\n", "Name: a\nName: b\nVersion: 1\n", "Name: a\nVersion: 1\nversion: 2\n"] {
            assert!(describe(metadata.as_bytes(), b"").is_none(), "{metadata}");
        }
    }

    #[test]
    fn no_file_describes_another_package_or_shares_its_place() {
        let check = |names: &[&str], programs: &[&str]| {
            let files: Vec<File> = names.iter().map(|name| File { name: (*name).to_owned(), content: Vec::new() }).collect();
            check_targets(&files, "a-1", &package(programs)).is_ok()
        };
        assert!(check(&["a.py", "a-1.dist-info/METADATA", "a-1.data/scripts/run", "a-1.data/purelib/b.py"], &["other"]));
        assert!(!check(&["a-1.data/purelib/six-1.0.dist-info/METADATA"], &[]));
        assert!(!check(&["a-1.data/purelib/SIX-1.0.Dist-Info/METADATA"], &[]));
        assert!(!check(&["a-1.data/data/lib/python3.14/site-packages/six-1.0.dist-info/METADATA"], &[]));
        assert!(!check(&["b.py", "a-1.data/purelib/b.py"], &[]));
        assert!(!check(&["a-1.data/scripts/run"], &["run"]));
    }

    #[test]
    fn entry_points_become_scripts() {
        let text =
            "[console_scripts]\nhello = pkg.main:run\n bad = x\nobj=pkg:a.b [extra]\n../x = a:b\nq = a:b()\n[other]\nno = a:b\n";
        let scripts: Vec<_> = entry_points(text).iter().map(|(name, target)| (name.clone(), script(target))).collect();
        let expected = [
            ("hello", "#!/usr/bin/python3\nimport sys\nfrom pkg.main import run\nsys.exit(run())\n"),
            ("obj", "#!/usr/bin/python3\nimport sys\nfrom pkg import a\nsys.exit(a.b())\n"),
        ];
        assert_eq!(scripts, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }

    #[test]
    fn invalid_data_is_rejected() {
        for bytes in [&b""[..], b"PK", b"not a zip file at all, but long enough to look"] {
            assert!(Wheel::read(bytes).is_err());
        }
    }
}
