//! Packages by name: the arguments for pip, and the handling of the downloaded wheels.
//!
//! Starts no program and opens no file: the embedder runs pip with [`PIP_PROGRAM`], which only downloads and never runs code of a package.

use std::collections::BTreeSet;

use super::trial::Trial;
use super::wheel::Wheel;
use super::{Package, Packages, normalized};
use crate::Error;

/// The program for `python3 -c` that runs pip without letting it build a package: with the words `download`, `--dest`, a directory, and the arguments
/// that [`Packages::install_named`] passes to its callback. By itself, pip follows the address of an archive in the metadata of a wheel, and runs the code
/// in it, despite `--only-binary`.
pub const PIP_PROGRAM: &str = include_str!("pip.py");

/// The first arguments of every `pip download`.
const DOWNLOAD: [&str; 4] = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"];

/// Pure-Python wheels for the sandbox's Python.
const PURE: [&str; 4] = ["--python-version=3.14", "--implementation=py", "--abi=none", "--platform=any"];

/// Wheels with native code for the same Python: many of them work without it.
const COMPILED: [&str; 9] = [
    "--python-version=3.14",
    "--implementation=cp",
    "--abi=cp314",
    "--abi=abi3",
    "--abi=none",
    "--platform=any",
    "--platform=manylinux_2_17_x86_64",
    "--platform=manylinux2014_x86_64",
    "--platform=manylinux_2_28_x86_64",
];

/// Packages included in the scientific Python that the core Python cannot install.
const SCIENTIFIC: [&str; 13] = [
    "contourpy",
    "kiwisolver",
    "lxml",
    "matplotlib",
    "numpy",
    "pandas",
    "patsy",
    "pillow",
    "regex",
    "scikit-learn",
    "scipy",
    "seaborn",
    "statsmodels",
];

/// Endings of names that pip takes for files.
const ARCHIVES: [&str; 7] = [".whl", ".zip", ".tar", ".tbz", ".tgz", ".txz", ".tlz"];

/// Maximum nesting of requirements files.
const MAX_INCLUDED: usize = 16;

/// The sources of packages installed by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Whether to install only the packages themselves, without their requirements.
    pub no_deps: bool,
    /// Directories of wheels.
    pub find_links: Vec<String>,
    /// Whether to use only those directories.
    pub offline: bool,
}

/// The wheels downloaded by pip, by file name; or pip's standard error.
pub type Fetched = Result<Vec<(String, Vec<u8>)>, String>;

/// The result of an installation by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Installation {
    /// The installed packages, including requirements.
    pub installed: Vec<Package>,
    /// The packages that could not be installed.
    pub refused: Vec<Refused>,
    /// Missing requirements of the installed packages.
    pub missing: Vec<String>,
}

/// A package that could not be installed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Refused {
    /// The name as requested.
    pub name: String,
    /// The reason, with the package that caused it.
    pub reason: String,
    /// A hint.
    pub hint: Option<String>,
}

/// The downloads for some names.
#[derive(Default)]
struct Catch {
    wheels: Vec<(String, Vec<u8>)>,
    refused: Vec<Refused>,
}

impl Packages<'_> {
    /// Installs packages by name, such as `six` or `requests>=2,<3`, with their requirements: those that can be installed in one
    /// transaction, and the others with a reason each. `wheels` are additional files to install.
    ///
    /// `pip` is called with arguments for `pip download`, to which it adds the directory; it must run [`PIP_PROGRAM`]. Packages with native code are first
    /// tried without it, in a separate sandbox: many have a Python implementation.
    ///
    /// # Errors
    ///
    /// Returns an error if a name or a wheel file is invalid, `pip` cannot be run, or the packages exceed the quota.
    pub fn install_named(
        &self,
        names: &[String],
        wheels: Vec<(String, Vec<u8>)>,
        sources: &Sources,
        mut pip: impl FnMut(&[String]) -> Result<Fetched, Error>,
    ) -> Result<Installation, Error> {
        if let Some(name) = names.iter().find(|name| !is_requirement(name)) {
            let name = name.escape_debug();
            return Err(Error::Invalid(format!("invalid package name `{name}`: expected one such as `six` or `six==1.17.0`")));
        }
        if sources.offline && sources.find_links.is_empty() && !names.is_empty() {
            return Err(Error::Invalid("no directory of wheels given for an offline installation".to_owned()));
        }
        let mut caught = fetch(names, sources, &mut pip)?;
        let given = wheels.len();
        caught.wheels.splice(0..0, wheels);
        let mut checked: Vec<Wheel> = Vec::new();
        for (number, (file, bytes)) in caught.wheels.iter().enumerate() {
            let wheel = Wheel::read_pure_part(bytes).and_then(|wheel| wheel.check_file_name(file).map(|()| wheel));
            match wheel {
                Ok(wheel) => checked.push(wheel),
                Err(reason) if number < given => {
                    return Err(Error::Invalid(format!("cannot install `{file}`: invalid wheel: {reason}")));
                }
                Err(reason) => caught.refused.push(Refused { name: named_by(file).to_owned(), reason, hint: None }),
            }
        }
        let asked: Vec<String> = names.iter().map(|name| normalized(name_of(name))).collect();
        let files: Vec<String> = checked.iter().take(given).map(|wheel| normalized(&wheel.package().name)).collect();
        let mut trial = Trial::new(self.sandbox.host(), &checked)?;
        let broken = trial.broken(&checked)?;
        let mut installation = Installation { refused: caught.refused, ..Installation::default() };
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        for name in files.iter().chain(&asked) {
            let needed = closure(name, &checked, sources.no_deps);
            let reasons = broken.iter().filter(|(package, _)| needed.contains(package)).collect::<Vec<_>>();
            match reasons.first() {
                Some((culprit, reason)) => installation.refused.push(blamed(name, culprit, reason)),
                None => wanted.extend(needed),
            }
        }
        // Of two wheels of one package, the named file wins.
        let chosen: Vec<&Wheel> = checked.iter().filter(|wheel| wanted.contains(&normalized(&wheel.package().name))).collect();
        if !chosen.is_empty() {
            let compiled = trial.compile(&chosen)?;
            installation.installed = self.place_all(&chosen, &compiled).map_err(|(_, error)| error)?;
        }
        installation.missing = missing(&installation.installed, &self.list()?);
        Ok(installation)
    }
}

// All names together, which lets pip choose compatible versions; one by one if that fails, to find the installable ones.
fn fetch(names: &[String], sources: &Sources, pip: &mut impl FnMut(&[String]) -> Result<Fetched, Error>) -> Result<Catch, Error> {
    if names.is_empty() {
        return Ok(Catch::default());
    }
    let reason = match together(names, sources, pip)? {
        Ok(wheels) => return Ok(Catch { wheels, refused: Vec::new() }),
        Err(stderr) => stderr,
    };
    if let [name] = names {
        return Ok(Catch { wheels: Vec::new(), refused: vec![not_found(name, &reason)] });
    }
    let (mut good, mut refused, mut wheels) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        match together(std::slice::from_ref(name), sources, pip)? {
            Ok(found) => {
                good.push(name.clone());
                wheels.extend(found);
            }
            Err(stderr) => refused.push(not_found(name, &stderr)),
        }
    }
    if refused.is_empty() {
        // Each can be installed, but not all of them at once.
        refused.extend(names.iter().map(|name| Refused { name: name.clone(), reason: last_word(&reason), hint: None }));
        return Ok(Catch { wheels: Vec::new(), refused });
    }
    if good.len() > 1
        && let Ok(found) = together(&good, sources, pip)?
    {
        wheels = found;
    }
    Ok(Catch { wheels, refused })
}

// Pure wheels if available; otherwise those with native code, and pure ones of the same versions if both exist.
fn together(
    names: &[String],
    sources: &Sources,
    pip: &mut impl FnMut(&[String]) -> Result<Fetched, Error>,
) -> Result<Fetched, Error> {
    let pure = pip(&arguments(&PURE, sources, sources.no_deps, names))?;
    let Err(stderr) = pure else { return Ok(pure) };
    let Ok(found) = pip(&arguments(&COMPILED, sources, sources.no_deps, names))? else { return Ok(Err(stderr)) };
    let mut wheels = Vec::with_capacity(found.len());
    for (file, bytes) in found {
        let pinned = if file.ends_with("-none-any.whl") { None } else { pinned(&file) };
        let pure = match pinned {
            Some(pinned) => pip(&arguments(&PURE, sources, true, &[pinned]))?.ok().and_then(|mut wheels| wheels.pop()),
            None => None,
        };
        wheels.push(pure.unwrap_or((file, bytes)));
    }
    Ok(Ok(wheels))
}

fn arguments(tags: &[&str], sources: &Sources, no_deps: bool, names: &[String]) -> Vec<String> {
    let mut arguments: Vec<String> = DOWNLOAD.iter().chain(tags).map(|&word| word.to_owned()).collect();
    arguments.extend(no_deps.then(|| "--no-deps".to_owned()));
    arguments.extend(sources.offline.then(|| "--no-index".to_owned()));
    arguments.extend(sources.find_links.iter().map(|directory| format!("--find-links={directory}")));
    arguments.push("--".to_owned());
    arguments.extend_from_slice(names);
    arguments
}

/// Returns whether a text is a name with extras, versions and conditions; not a URL or a file, for which pip might run code.
fn is_requirement(text: &str) -> bool {
    let (name, condition) = text.split_once(';').unwrap_or((text, "="));
    condition.contains(['<', '>', '='])
        && !is_archive(name)
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-[],=<>!~*+ ()".contains(letter))
        && condition.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-=<>!~*+ ()'\",".contains(letter))
}

// Whether pip takes a name for a file in the current directory, which it would unpack and, without a wheel in it, build.
fn is_archive(name: &str) -> bool {
    let name = name.trim_end();
    let without_extras = name.strip_suffix(']').and_then(|name| name.rsplit_once('[')).map_or(name, |(name, _)| name);
    let file = without_extras.trim_end().to_ascii_lowercase();
    file.contains(".tar.") || ARCHIVES.iter().any(|ending| file.ends_with(ending))
}

/// Returns the names in a requirements file, one per line. `read` returns the text of a file included with `-r`.
///
/// # Errors
///
/// Returns an error with the line number if it is neither a requirement, nor `-r FILE`, nor a comment.
pub fn requirements(text: &str, read: &mut dyn FnMut(&str) -> Result<String, Error>) -> Result<Vec<String>, Error> {
    requirements_below(text, read, MAX_INCLUDED)
}

fn requirements_below(
    text: &str,
    read: &mut dyn FnMut(&str) -> Result<String, Error>,
    depth: usize,
) -> Result<Vec<String>, Error> {
    if depth == 0 {
        return Err(Error::Invalid("requirements files include each other in a cycle".to_owned()));
    }
    let mut names = Vec::new();
    // A backslash at the end continues a line.
    for (number, line) in (1..).zip(text.replace("\\\n", " ").lines()) {
        let line = line.split_once(" #").map_or(line, |(before, _)| before).trim();
        // Hashes of packages in the file are ignored: `RECORD` is checked.
        let line = line.split_once(" --hash").map_or(line, |(before, _)| before).trim();
        let file = ["-r", "--requirement"]
            .into_iter()
            .find_map(|flag| line.strip_prefix(flag))
            .map(|rest| rest.trim_start_matches('=').trim());
        match file {
            Some(file) => names.extend(requirements_below(&read(file)?, read, depth - 1)?),
            None if line.is_empty() || line.starts_with('#') => {}
            None if is_requirement(line) => names.push(line.to_owned()),
            None => {
                return Err(Error::Invalid(format!("invalid requirement on line {number}: `{line}`")));
            }
        }
    }
    Ok(names)
}

// The name in a requirement.
fn name_of(requirement: &str) -> &str {
    let end = requirement.find(|letter: char| !(letter.is_ascii_alphanumeric() || "._-".contains(letter)));
    &requirement[..end.unwrap_or(requirement.len())]
}

fn named_by(file: &str) -> &str {
    file.split('-').next().unwrap_or(file)
}

// The package and the version of a wheel file, as a requirement.
fn pinned(file: &str) -> Option<String> {
    let mut parts = file.split('-');
    Some(format!("{}=={}", parts.next()?, parts.next()?)).filter(|name| is_requirement(name))
}

// A package and its requirements, among the downloaded ones.
fn closure(name: &str, wheels: &[Wheel], alone: bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        let Some(wheel) = wheels.iter().find(|wheel| normalized(&wheel.package().name) == name) else { continue };
        if found.insert(name) && !alone {
            // pip evaluates conditions: packages whose condition is false were not downloaded. Extras bring their own.
            open.extend(wheel.all_requirements().iter().map(|requirement| normalized(name_of(requirement))));
        }
    }
    found
}

fn not_found(name: &str, stderr: &str) -> Refused {
    let reason = last_word(stderr);
    let culprit = reason.strip_prefix("No matching distribution found for ").map(|rest| normalized(name_of(rest)));
    let hint = culprit.as_deref().map(|culprit| match SCIENTIFIC.contains(&culprit) {
        true => hint_for(culprit),
        false => "check the name; packages are installed from wheels only".to_owned(),
    });
    let reason = match culprit {
        Some(culprit) if culprit != normalized(name_of(name)) => {
            format!("it requires `{culprit}`, which pip cannot find as a wheel")
        }
        Some(_) => "pip cannot find it as a wheel".to_owned(),
        None => reason,
    };
    Refused { name: name.to_owned(), reason, hint }
}

fn blamed(name: &str, culprit: &str, reason: &str) -> Refused {
    let reason = if name == culprit {
        format!("it does not work without its native code: {reason}")
    } else {
        format!("it requires `{culprit}`, which does not work without its native code: {reason}")
    };
    Refused { name: name.to_owned(), reason, hint: Some(hint_for(culprit)) }
}

fn hint_for(culprit: &str) -> String {
    if SCIENTIFIC.contains(&culprit) {
        return format!(
            "use the scientific Python, which includes `{culprit}`: `sandlite guests add python-sci`, then `--python sci`"
        );
    }
    "install a package that works in pure Python".to_owned()
}

// pip's last error line, which states the reason.
fn last_word(stderr: &str) -> String {
    let said = stderr.lines().rev().find_map(|line| line.trim().strip_prefix("ERROR: "));
    let reason = said.or_else(|| stderr.lines().rev().find(|line| !line.trim().is_empty()));
    reason.unwrap_or("no reason given by pip").trim().to_owned()
}

// Missing requirements of the installed packages; conditions for other systems are omitted.
fn missing(installed: &[Package], there: &[Package]) -> Vec<String> {
    let known: Vec<_> = there.iter().map(|package| normalized(&package.name)).collect();
    let needed = installed.iter().flat_map(|package| &package.requires).filter(|requirement| !requirement.contains(';'));
    let mut missing: Vec<_> = needed.filter(|requirement| !known.contains(&normalized(name_of(requirement)))).cloned().collect();
    missing.sort();
    missing.dedup();
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_and_versions_reach_pip() {
        for name in ["six", "six==1.17.0", "requests[socks]>=2,<3", "a~=1.0", "tomli; python_version < '3.11'"] {
            assert!(is_requirement(name), "{name}");
        }
        for name in ["-rfile", "git+https://x", "six @ https://x", "a;b", "a;", "a;b=$", "", "$(x)", "./six", "a\nb"] {
            assert!(!is_requirement(name), "{name}");
        }
        for name in
            ["a.tar.gz", "a-1.0.TAR.GZ [x]", "a.zip[x]", "a.tgz ; python_version > '3'", "a==1.tar", "a-1-py3-none-any.whl"]
        {
            assert!(!is_requirement(name), "{name}");
        }
        for name in ["tar", "zip.it", "a.zipper", "targz==1.0", "zope.interface[test]"] {
            assert!(is_requirement(name), "{name}");
        }
    }

    #[test]
    fn requirements_are_read_line_by_line() {
        let text = "# ours\nsix==1.17.0  # pinned\n\n-r more.txt\nflask \\\n  >=3 --hash=sha256:00\n";
        let names = requirements(text, &mut |name| Ok(format!("from-{}\n", name.trim_end_matches(".txt"))));
        assert_eq!(names.unwrap(), ["six==1.17.0", "from-more", "flask    >=3"]);
        for line in ["--index-url https://x", "-e .", "git+https://x", "./wheels/x.whl"] {
            let error = requirements(&format!("six\n{line}\n"), &mut |_| Ok(String::new())).unwrap_err();
            assert_eq!(error.to_string(), format!("invalid requirement on line 2: `{line}`"));
        }
    }

    #[test]
    fn a_file_that_names_itself_ends() {
        let mut read = |_: &str| Ok("-r self.txt\n".to_owned());
        assert_eq!(
            requirements("-r self.txt\n", &mut read).unwrap_err().to_string(),
            "requirements files include each other in a cycle"
        );
    }

    #[test]
    fn blame_names_the_run() {
        let stderr = "ERROR: Could not find a version that satisfies the requirement numpy>=2 (from pandas)\n\
                      ERROR: No matching distribution found for numpy>=2\n";
        let refused = not_found("pandas", stderr);
        assert_eq!(refused.reason, "it requires `numpy`, which pip cannot find as a wheel");
        assert!(refused.hint.unwrap().starts_with("use the scientific Python, which includes `numpy`"));
        assert_eq!(
            not_found("nosuch==1", "ERROR: No matching distribution found for nosuch==1").reason,
            "pip cannot find it as a wheel"
        );
        assert_eq!(not_found("x", "something else\n").reason, "something else");
        assert_eq!(blamed("a", "b", "no").reason, "it requires `b`, which does not work without its native code: no");
    }

    #[test]
    fn missing_requirements_are_listed() {
        let package = |name: &str, requires: &[&str]| Package {
            name: name.to_owned(),
            version: "1".to_owned(),
            requires: requires.iter().map(|&text| text.to_owned()).collect(),
            programs: Vec::new(),
        };
        let installed = [package("a", &["Six>=1", "my_lib", "other[x] (>2)", "win; sys_platform == 'win32'"])];
        assert_eq!(missing(&installed, &[package("six", &[]), package("My.Lib", &[])]), ["other[x] (>2)"]);
    }

    #[test]
    fn good_names_are_fetched_though_one_is_bad() {
        let mut asked = Vec::new();
        let mut pip = |arguments: &[String]| {
            let names: Vec<String> = arguments.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
            asked.push(names.clone());
            let is_bad = names.iter().any(|name| name == "bad");
            Ok(if is_bad {
                Err("ERROR: No matching distribution found for bad".to_owned())
            } else {
                Ok(vec![(names.join("+"), Vec::new())])
            })
        };
        let names = ["a", "bad", "b"].map(str::to_owned);
        let caught = fetch(&names, &Sources::default(), &mut pip).unwrap();
        assert_eq!(caught.wheels, [("a+b".to_owned(), Vec::new())]);
        assert_eq!(caught.refused.iter().map(|refused| refused.name.as_str()).collect::<Vec<_>>(), ["bad"]);
        assert_eq!(asked.last().unwrap(), &["a", "b"]);
    }

    #[test]
    fn offline_only_the_directories_are_searched() {
        let sources = Sources { offline: true, find_links: vec!["wheels".to_owned()], no_deps: false };
        let words = arguments(&PURE, &sources, false, &["six".to_owned()]);
        assert!(words.contains(&"--no-index".to_owned()) && words.contains(&"--find-links=wheels".to_owned()));
        assert_eq!(words.last().unwrap(), "six");
    }
}
