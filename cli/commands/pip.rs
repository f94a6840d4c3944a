//! `sandlite pip`: installs pure-Python packages from wheel files or, through this machine's pip, by name.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use runtime::{ByteSize, Error, Fetched, Installation, Packages, Sandbox, Sources};
use serde_json::json;

use crate::args::{Global, Pip, PipInstall, PipVerb};
use crate::exit::Code;
use crate::printer::{Hinted, Printer};
use crate::{host_pip, input};

const WITHOUT_PIP: &str = "download the wheel elsewhere and name the file: `sandlite pip install ./NAME.whl`";

/// Maximum size of a requirements file.
const REQUIREMENTS_MAX: ByteSize = ByteSize(1 << 20);

pub(crate) fn run(global: &Global, args: &Pip, printer: &Printer) -> anyhow::Result<Code> {
    match &args.verb {
        PipVerb::Install(install) => self::install(global, install, printer),
        PipVerb::List => list(global, printer),
        PipVerb::Uninstall { names } => uninstall(global, names, printer),
    }
}

fn install(global: &Global, args: &PipInstall, printer: &Printer) -> anyhow::Result<Code> {
    let done = install_in(&super::stored(global, printer)?, args, printer, &mut Vec::new())?;
    if printer.is_json() {
        printer.json(&json!(done));
    } else {
        for package in &done.installed {
            printer.line(&format!("installed {} {}", printer.foreign(&package.name), printer.foreign(&package.version)));
        }
        tell(&done, printer);
    }
    Ok(if done.refused.is_empty() { Code::Success } else { Code::Failure })
}

/// A wheel's file name and its bytes.
type Wheel = (String, Vec<u8>);

/// Returns the wheels that an installation needs, tried in a sandbox of their own, and the outcome.
pub(crate) fn wheels(args: &PipInstall, printer: &Printer) -> anyhow::Result<(Vec<Wheel>, Code)> {
    let sandbox = crate::engine::give(runtime::Sandbox::builder()).open()?;
    let mut found = Vec::new();
    let done = install_in(&sandbox, args, printer, &mut found)?;
    tell(&done, printer);
    let normalized = |name: &str| name.to_ascii_lowercase().replace(['-', '.'], "_");
    let names: Vec<String> = done.installed.iter().map(|package| normalized(&package.name)).collect();
    found.retain(|(file, _)| names.contains(&normalized(file.split('-').next().unwrap_or_default())));
    Ok((found, if done.refused.is_empty() { Code::Success } else { Code::Failure }))
}

// Installs packages; `found` gets the wheels that were considered.
fn install_in(
    sandbox: &Sandbox,
    args: &PipInstall,
    printer: &Printer,
    found: &mut Vec<(String, Vec<u8>)>,
) -> anyhow::Result<Installation> {
    let (files, names): (Vec<_>, Vec<_>) = args.packages.iter().cloned().partition(|package| is_file(package));
    let mut names = names;
    for file in &args.requirement {
        names.extend(required(file)?);
    }
    if args.offline && args.find_links.is_empty() && !names.is_empty() {
        return Err(Hinted::error(
            "no directory of wheels given for an offline installation",
            "name one with `--find-links DIR`",
        ));
    }
    let mut wheels = Vec::new();
    for file in files {
        wheels.push((file_name(&file), read(Path::new(&file))?));
    }
    found.clone_from(&wheels);
    let sources = Sources {
        no_deps: args.no_deps,
        find_links: args.find_links.iter().map(|directory| directory.to_string_lossy().into_owned()).collect(),
        offline: args.offline,
    };
    let mut trouble = None;
    let fetching = |words: &[String]| {
        printer.progress().spin("downloading packages");
        let fetched = fetch(words).map_err(|error| {
            let text = format!("{error:#}");
            trouble = Some(error);
            Error::Invalid(text)
        });
        if let Ok(Ok(wheels)) = &fetched {
            found.extend(wheels.iter().cloned());
        }
        fetched
    };
    let done = sandbox.packages().install_named(&names, wheels, &sources, fetching);
    if let Some(error) = trouble {
        return Err(error);
    }
    Ok(done?)
}

// Prints what could not be installed.
fn tell(done: &Installation, printer: &Printer) {
    for refused in &done.refused {
        let text = format!("cannot install `{}`: {}", printer.foreign(&refused.name), printer.foreign(&refused.reason));
        printer.error(&match &refused.hint {
            Some(hint) => Hinted::error(text, hint),
            None => anyhow::anyhow!(text),
        });
    }
    if !done.missing.is_empty() {
        let missing: Vec<_> = done.missing.iter().map(|requirement| format!("`{}`", printer.foreign(requirement))).collect();
        printer.note(format_args!("missing dependencies: {}", missing.join(", ")));
    }
}

// Returns the names in a requirements file. Files that it includes are relative to its directory.
fn required(path: &Path) -> anyhow::Result<Vec<String>> {
    let text = |path: &Path| -> anyhow::Result<String> {
        let bytes = input::bounded(input::regular_file(path)?, REQUIREMENTS_MAX, &format!("`{}`", path.display()))?;
        String::from_utf8(bytes).with_context(|| format!("`{}` is not UTF-8", path.display()))
    };
    let beside = path.parent().unwrap_or(Path::new(""));
    let mut read = |name: &str| text(&beside.join(name)).map_err(|error| Error::Invalid(format!("{error:#}")));
    runtime::requirements(&text(path)?, &mut read).with_context(|| format!("cannot use `{}`", path.display()))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    input::bounded(input::regular_file(path)?, Packages::WHEEL_MAX, &format!("`{}`", path.display()))
}

// An argument that looks like a path is a path. This is pip's rule, without pip's other forms of requirements.
fn is_file(package: &str) -> bool {
    let has_ending = Path::new(package).extension().is_some_and(|extension| extension == "whl");
    (package.contains('/') || has_ending) && !package.contains("://")
}

fn file_name(file: &str) -> String {
    Path::new(file).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Downloads wheels with the machine's pip.
pub(super) fn fetch(words: &[String]) -> anyhow::Result<Fetched> {
    let directory = tempfile::tempdir().context("cannot create a directory for the download")?;
    if let Err(stderr) = host_pip::run(words, directory.path(), WITHOUT_PIP)? {
        return Ok(Err(stderr));
    }
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory.path())?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    paths.sort();
    let named = |path: PathBuf| Ok((file_name(&path.to_string_lossy()), read(&path)?));
    paths.into_iter().map(named).collect::<anyhow::Result<_>>().map(Ok)
}

fn list(global: &Global, printer: &Printer) -> anyhow::Result<Code> {
    let packages = super::looking_bound(global, printer)?.packages().list()?;
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
    let sandbox = super::existing_bound(global, printer)?;
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
    fn a_word_that_looks_like_a_path_is_a_file() {
        assert!(is_file("./six") && is_file("six-1.0-py3-none-any.whl"));
        for name in ["six", "six==1.17.0", "requests[socks]>=2,<3", "git+https://x"] {
            assert!(!is_file(name), "{name}");
        }
    }
}
