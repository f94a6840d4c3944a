//! This machine's pip, which downloads wheels by name and never executes package code.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::printer::Hinted;

/// The Python interpreter that provides pip.
pub(crate) const PYTHON: &str = "python3";

const ONLY_WHEELS: [&str; 4] = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"];

/// Downloads wheels into a directory. `without` is the hint if pip is missing; `refused` formats pip's error.
pub(crate) fn download<S: AsRef<OsStr>>(
    names: &[S],
    options: &[&str],
    directory: &Path,
    without: &str,
    refused: impl FnOnce(&str) -> anyhow::Error,
) -> anyhow::Result<()> {
    let words =
        ONLY_WHEELS.iter().chain(options).map(OsStr::new).chain([OsStr::new("--")]).chain(names.iter().map(AsRef::as_ref));
    match run(words, directory, without)? {
        Ok(()) => Ok(()),
        Err(stderr) => Err(refused(reason(&stderr))),
    }
}

/// Runs `pip download` into a directory and returns its standard error if it failed.
pub(crate) fn run(
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    directory: &Path,
    without: &str,
) -> anyhow::Result<Result<(), String>> {
    let mut pip = Command::new(PYTHON);
    pip.args(["-c", runtime::PIP_PROGRAM, "download", "--dest"]).arg(directory).args(arguments).stdin(Stdio::null());
    let output = match pip.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Hinted::error(format!("cannot download packages: `{PYTHON}` is not installed on this machine"), without));
        }
        output => output.with_context(|| format!("cannot run `{PYTHON} -m pip`"))?,
    };
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if stderr.contains("No module named 'pip'") {
        return Err(Hinted::error(format!("this machine's `{PYTHON}` has no pip"), without));
    }
    Ok(if output.status.success() { Ok(()) } else { Err(stderr) })
}

// pip's last error line, which states the reason.
fn reason(stderr: &str) -> &str {
    let said = stderr.lines().rev().find_map(|line| line.trim().strip_prefix("ERROR: "));
    let reason = said.or_else(|| stderr.lines().rev().find(|line| !line.trim().is_empty()));
    reason.unwrap_or("no reason given").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Writes a wheel that requires the archive of a package, whose build leaves the file `ran`.
    const HOSTILE: &str = r#"
import io, pathlib, tarfile, zipfile
here = pathlib.Path().absolute()
backend = f"open({str(here / 'ran')!r}, 'w')"
project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
with tarfile.open("x-1.0.tar.gz", "w:gz") as archive:
    for name, text in {"pyproject.toml": project, "backend.py": backend, "setup.py": backend}.items():
        member = tarfile.TarInfo(f"x-1.0/{name}")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
files = {
    "METADATA": f"Metadata-Version: 2.1\nName: evil\nVersion: 1.0\nRequires-Dist: x @ file://{here}/x-1.0.tar.gz\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}
with zipfile.ZipFile("evil-1.0-py3-none-any.whl", "w") as archive:
    for name, text in files.items():
        archive.writestr(f"evil-1.0.dist-info/{name}", text)
"#;

    #[test]
    fn an_archive_that_a_wheel_requires_is_not_built() {
        let directory = tempfile::tempdir().unwrap();
        let made = Command::new(PYTHON).args(["-c", HOSTILE]).current_dir(&directory).status().unwrap();
        assert!(made.success());
        let links = format!("--find-links={}", directory.path().display());
        let fetched = tempfile::tempdir().unwrap();
        let words = ONLY_WHEELS.into_iter().chain(["--no-index", links.as_str(), "--", "evil"]);
        let stderr = run(words, fetched.path(), "").unwrap().unwrap_err();
        assert!(stderr.contains("names an address"), "{stderr}");
        assert!(!directory.path().join("ran").exists());
        assert_eq!(std::fs::read_dir(fetched.path()).unwrap().count(), 0);
    }

    #[test]
    fn pips_last_word_is_the_reason() {
        let stderr = "WARNING: x\nERROR: Could not find a version\nERROR: No matching distribution found for numpy\n";
        assert_eq!(reason(stderr), "No matching distribution found for numpy");
    }
}
