//! `sandlite pip`: pure-Python packages of the sandbox, from wheel files or, through this machine's own pip, by name.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use runtime::{Package, Packages};
use serde_json::json;

use crate::args::{Global, Pip, PipVerb};
use crate::exit::Code;
use crate::printer::{Hinted, Printer};
use crate::{host_pip, input};

/// What pip is asked for: wheels of pure Python for the sandbox's Python.
const PURE: [&str; 4] = ["--implementation=py", "--abi=none", "--platform=any", "--python-version=3.14"];

const WITHOUT_PIP: &str = "fetch the wheel elsewhere and name the file: `sandlite pip install ./NAME.whl`";
const PURE_ONLY: &str = "only packages of pure Python can be installed, and only where this machine's pip finds them";

pub(crate) fn run(global: &Global, args: &Pip, printer: &Printer) -> anyhow::Result<Code> {
    match &args.verb {
        PipVerb::Install { packages, no_deps } => install(global, packages, *no_deps, printer),
        PipVerb::List => list(global, printer),
        PipVerb::Uninstall { names } => uninstall(global, names, printer),
    }
}

fn install(global: &Global, packages: &[String], no_deps: bool, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = super::stored(global, printer)?;
    let (files, names): (Vec<_>, Vec<_>) = packages.iter().partition(|package| is_file(package));
    let mut wheels = Vec::new();
    for file in files {
        wheels.push((file.clone(), read(Path::new(file))?));
    }
    wheels.extend(fetch(&names, no_deps, printer)?);
    let files: Vec<String> = wheels.iter().map(|(file, _)| file.clone()).collect();
    let named: Vec<(String, Vec<u8>)> = wheels.into_iter().map(|(file, wheel)| (file_name(&file), wheel)).collect();
    let installed = sandbox.packages().install_files(&named).map_err(|(number, error)| {
        let file = files.get(number).map_or("", String::as_str);
        anyhow::Error::new(error).context(format!("cannot install `{file}`"))
    })?;
    let missing = missing(&installed, &sandbox.packages().list()?);
    if printer.is_json() {
        printer.json(&json!({ "installed": installed, "missing": missing }));
        return Ok(Code::Success);
    }
    for package in &installed {
        printer.line(&format!("installed {} {}", printer.foreign(&package.name), printer.foreign(&package.version)));
    }
    if !missing.is_empty() {
        let missing: Vec<_> = missing.iter().map(|requirement| format!("`{}`", printer.foreign(requirement))).collect();
        printer.note(format_args!("needed and not installed: {}", missing.join(", ")));
    }
    Ok(Code::Success)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    input::bounded(input::regular_file(path)?, Packages::WHEEL_MAX, &format!("`{}`", path.display()))
}

// What looks like a path is one; pip's own rule, without its other ways to name a package.
fn is_file(package: &str) -> bool {
    let has_ending = Path::new(package).extension().is_some_and(|extension| extension == "whl");
    (package.contains('/') || has_ending) && !package.contains("://")
}

fn file_name(file: &str) -> String {
    Path::new(file).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

// Wheels by name, through the machine's own pip.
fn fetch(names: &[&String], no_deps: bool, printer: &Printer) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(name) = names.iter().find(|name| !is_requirement(name)) {
        let hint = "give a name such as `six`, a version such as `six==1.17.0`, or a .whl file";
        return Err(Hinted::error(format!("`{}` is no name of a package", printer.foreign(name)), hint));
    }
    printer.progress().spin("fetching packages");
    let directory = tempfile::tempdir().context("cannot make a directory for the download")?;
    let options: Vec<&str> = PURE.into_iter().chain(no_deps.then_some("--no-deps")).collect();
    host_pip::download(names, &options, directory.path(), WITHOUT_PIP, |reason| {
        Hinted::error(format!("pip cannot fetch that: {reason}"), PURE_ONLY)
    })?;
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory.path())?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    paths.sort();
    let named = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, read(&path)?))
    };
    paths.into_iter().map(named).collect()
}

// A name with extras and versions; no address, which pip might run code for.
fn is_requirement(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-[],=<>!~*+ ".contains(letter))
}

// What the installed ones need and nobody has brought; conditions on other systems are left to whoever reads it.
fn missing(installed: &[Package], there: &[Package]) -> Vec<String> {
    let known: Vec<_> = there.iter().map(|package| plain(&package.name)).collect();
    let needed = installed.iter().flat_map(|package| &package.requires).filter(|requirement| !requirement.contains(';'));
    let mut missing: Vec<_> = needed.filter(|requirement| !known.contains(&plain(name_of(requirement)))).cloned().collect();
    missing.sort();
    missing.dedup();
    missing
}

fn name_of(requirement: &str) -> &str {
    let end = requirement.find(|letter: char| !(letter.is_ascii_alphanumeric() || "._-".contains(letter)));
    &requirement[..end.unwrap_or(requirement.len())]
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

fn list(global: &Global, printer: &Printer) -> anyhow::Result<Code> {
    let packages = super::looking(global, printer)?.packages().list()?;
    if printer.is_json() {
        printer.json(&json!({ "packages": packages }));
        return Ok(Code::Success);
    }
    let width = packages.iter().map(|package| package.name.len()).max().unwrap_or_default();
    for package in &packages {
        printer.line(&format!("{:<width$}  {}", printer.foreign(&package.name), printer.foreign(&package.version)));
    }
    Ok(Code::Success)
}

fn uninstall(global: &Global, names: &[String], printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = super::existing(global, printer)?;
    let (mut removed, mut missing) = (Vec::new(), Vec::new());
    for (name, found) in names.iter().zip(sandbox.packages().uninstall_all(names)?) {
        let place = if found { &mut removed } else { &mut missing };
        place.push(name.as_str());
    }
    if printer.is_json() {
        printer.json(&json!({ "uninstalled": removed, "missing": missing }));
    } else {
        for name in removed {
            printer.line(&format!("uninstalled {}", printer.foreign(name)));
        }
        for name in &missing {
            printer.error(&anyhow::anyhow!("`{name}` is not installed"));
        }
    }
    Ok(if missing.is_empty() { Code::Success } else { Code::Failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_and_versions_reach_pip() {
        for name in ["six", "six==1.17.0", "requests[socks]>=2,<3", "a~=1.0"] {
            assert!(is_requirement(name) && !is_file(name), "{name}");
        }
        for name in ["-rfile", "git+https://x", "six @ https://x", "a;b", "", "$(x)"] {
            assert!(!is_requirement(name) || is_file(name), "{name}");
        }
        assert!(is_file("./six") && is_file("six-1.0-py3-none-any.whl"));
    }

    #[test]
    fn what_is_needed_and_not_there_is_named() {
        let package = |name: &str, requires: &[&str]| Package {
            name: name.to_owned(),
            version: "1".to_owned(),
            requires: requires.iter().map(|&text| text.to_owned()).collect(),
            programs: Vec::new(),
        };
        let installed = [package("a", &["Six>=1", "my_lib", "other[x] (>2)", "win; sys_platform == 'win32'"])];
        assert_eq!(missing(&installed, &[package("six", &[]), package("My.Lib", &[])]), ["other[x] (>2)"]);
    }
}
