//! `cargo xtask reproduce`: builds the distribution once more, from a copy of the repository in another directory, and compares the checksums.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::{cargo, output, root, run, step, target};
use crate::{Fallible, Outcome, check, dist};

/// The checksums of unpacked guests, next to the modules.
const GUESTS: [&str; 2] = ["shell.sha256", "python.sha256"];

/// Runs `cargo xtask reproduce`.
pub(crate) fn run_reproduce() -> Outcome {
    let changed = output(Command::new("git").args(["status", "--porcelain"]).current_dir(root()), "install git")?;
    if !changed.trim().is_empty() {
        return Err("the copy contains only committed files: commit the changes first".into());
    }
    dist::run_dist(&[])?;
    let first = sums(&target())?;
    let copy = std::env::temp_dir().join(format!("sandlite-reproduce-{}", std::process::id()));
    fs::create_dir_all(&copy)?;
    let second = build_in(&copy);
    fs::remove_dir_all(&copy)?;
    let second = second?;
    let different = different(&first, &second);
    if different.is_empty() {
        eprintln!("    {} files are equal", first.lines().count());
        return Ok(());
    }
    Err(format!("two builds in two directories differ: {}", different.join(", ")).into())
}

fn build_in(copy: &Path) -> Fallible<String> {
    step(&format!("building the distribution in {}", copy.display()));
    let archive = copy.with_extension("tar");
    run(Command::new("git").args(["archive", "--output"]).arg(&archive).arg("HEAD").current_dir(root()), "install git")?;
    let unpacked = run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(copy), "install tar");
    fs::remove_file(&archive)?;
    unpacked?;
    // The copy has no history from which the date could be read.
    let mut build = cargo();
    build
        .args(["xtask", "dist"])
        .current_dir(copy)
        .env("SOURCE_DATE_EPOCH", dist::date()?.to_string())
        .env_remove("CARGO_TARGET_DIR");
    run(&mut build, check::RUSTUP)?;
    sums(&copy.join("target"))
}

// The checksums of all packages and guests below a target directory, one line for each.
fn sums(target: &Path) -> Fallible<String> {
    let mut sums = fs::read_to_string(target.join("dist/packages/SHA256SUMS"))?;
    for guest in GUESTS {
        let sum = fs::read_to_string(target.join("guests/dist").join(guest))?;
        sums.push_str(&format!("{}  {guest}\n", sum.trim()));
    }
    Ok(sums)
}

// The names of files that are in only one of two lists, or differ.
fn different<'a>(first: &'a str, second: &'a str) -> Vec<&'a str> {
    let only = |these: &'a str, others: &str| -> Vec<&'a str> {
        let lines = these.lines().filter(|line| !others.lines().any(|other| other == *line));
        lines.filter_map(|line| line.split_once("  ").map(|(_, name)| name)).collect()
    };
    let mut names = only(first, second);
    names.extend(only(second, first));
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_or_are_missing_are_named() {
        assert!(different("1  a\n2  b\n", "2  b\n1  a\n").is_empty());
        assert_eq!(different("1  a\n2  b\n", "1  a\n3  b\n4  c\n"), ["b", "c"]);
    }
}
