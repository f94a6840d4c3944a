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
    pip.args(["-m", "pip", "download", "--dest"]).arg(directory).args(arguments).stdin(Stdio::null());
    let output = match pip.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Hinted::error(format!("cannot download packages: `{PYTHON}` is not installed on this machine"), without));
        }
        output => output.with_context(|| format!("cannot run `{PYTHON} -m pip`"))?,
    };
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if stderr.contains("No module named pip") {
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

    #[test]
    fn pips_last_word_is_the_reason() {
        let stderr = "WARNING: x\nERROR: Could not find a version\nERROR: No matching distribution found for numpy\n";
        assert_eq!(reason(stderr), "No matching distribution found for numpy");
    }
}
