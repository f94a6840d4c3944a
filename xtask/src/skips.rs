//! Checks that could not run: collected while the tests run, counted at the end, and in CI refused unless they are allowed.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::run::{root, step, target};
use crate::{Fallible, Outcome};

/// The variable that names the file to which tests add what they skip.
pub(crate) const VARIABLE: &str = "SANDLITE_SKIPPED";

/// Returns where skipped checks are collected.
pub(crate) fn file() -> PathBuf {
    target().join("skipped.txt")
}

/// Forgets what an earlier run skipped.
pub(crate) fn begin() -> Outcome {
    fs::create_dir_all(target())?;
    Ok(fs::write(file(), "")?)
}

/// Reports a step of `cargo xtask` itself that cannot run.
pub(crate) fn skip(check: &str, reason: &str) -> Outcome {
    eprintln!("    SKIPPED {check}: {reason}");
    let mut known = fs::read_to_string(file()).unwrap_or_default();
    known.push_str(&format!("{check}: {reason}\n"));
    Ok(fs::write(file(), known)?)
}

/// Lists and counts the skipped checks. In CI, where `CI` is set, a check that is not allowed to be skipped is an error.
pub(crate) fn end() -> Fallible<usize> {
    let lines = fs::read_to_string(file())?;
    let skipped: BTreeSet<&str> = lines.lines().collect();
    let allowed = fs::read_to_string(root().join("xtask/allowed-skips.txt"))?;
    let refused: Vec<&str> = skipped.iter().copied().filter(|line| !is_allowed(&allowed, line)).collect();
    step(&format!("{} checks SKIPPED, {} of them not allowed in CI", skipped.len(), refused.len()));
    skipped.iter().for_each(|line| eprintln!("    {line}"));
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    if !is_ci || refused.is_empty() {
        return Ok(skipped.len());
    }
    Err(format!("checks that must run in CI were skipped: {}; install what they need in `.ci/run`", refused.join("; ")).into())
}

// Each line of the list is the beginning of a check's name; lines with `#` say why.
fn is_allowed(allowed: &str, skipped: &str) -> bool {
    allowed.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).any(|line| skipped.starts_with(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_checks_may_be_skipped() {
        let allowed = "# too large\npython::scientific\n\n";
        assert!(is_allowed(allowed, "python::scientific::numpy_works: set SANDLITE_PYTHON_SCI"));
        assert!(!is_allowed(allowed, "cli::pages: no browser"));
        assert!(!is_allowed("", "anything"));
    }

    #[test]
    fn the_list_names_reasons_and_not_whole_suites() {
        let allowed = fs::read_to_string(root().join("xtask/allowed-skips.txt")).unwrap();
        assert!(is_allowed(&allowed, "pytest: could not import 'langchain_core': No module named 'langchain_core'"));
        for refused in [
            "pytest: no wheel can be built here: error",
            "pytest: the program was not built",
            "behaviour::files::a",
            "the Python package: pip",
            "gnu::text_utilities_are_gnus: the machine's utilities are not (GNU coreutils) 9.1",
            "random::a: `/bin/bash` is not bash 5.2, with which ours is compared",
        ] {
            assert!(!is_allowed(&allowed, refused), "{refused}");
        }
    }
}
