//! The crates that are part of what is distributed, from cargo's own data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use crate::Fallible;
use crate::run::{cargo, output};

/// The packages that are distributed, each with its platform: the program, the Python package, and the shell with its utilities.
const ROOTS: [(&str, &str); 3] = [
    ("sandlite", "x86_64-unknown-linux-gnu"),
    ("sandlite-python", "x86_64-unknown-linux-gnu"),
    ("sandlite-shell", "wasm32-wasip1"),
];

/// A crate from a registry.
#[derive(Debug)]
pub(crate) struct Component {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its license, as an SPDX expression.
    pub(crate) license: String,
    /// Its authors, if it names any.
    pub(crate) authors: Vec<String>,
    /// Its repository, if it names one.
    pub(crate) repository: Option<String>,
    /// The SHA-256 of its package, from the lock file.
    pub(crate) sha256: Option<String>,
    /// The directory of its sources.
    pub(crate) directory: PathBuf,
}

/// Returns the crates of others that are part of the distribution, sorted by name and version.
pub(crate) fn components() -> Fallible<Vec<Component>> {
    let mut wanted = BTreeSet::new();
    for (package, platform) in ROOTS {
        wanted.extend(tree(package, platform)?);
    }
    let sums = sums(&std::fs::read_to_string(crate::run::root().join("Cargo.lock"))?);
    // It also lists crates of other platforms, and downloads those that a build here did not need.
    let metadata = output(cargo().args(["metadata", "--locked", "--format-version", "1"]), "install Rust with rustup")?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().ok_or("`cargo metadata` lists no packages")?;
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let mut found: Vec<Component> = Vec::new();
    for package in packages.iter().filter(|package| package["source"].is_string()) {
        let key = (text(package, "name"), text(package, "version"));
        if !wanted.remove(&key) {
            continue;
        }
        let authors = package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        found.push(Component {
            license: text(package, "license").replace('/', " OR "),
            authors: authors.collect(),
            repository: package["repository"].as_str().map(str::to_owned),
            directory: PathBuf::from(text(package, "manifest_path")).parent().ok_or("a crate has no directory")?.to_owned(),
            sha256: sums.get(&key).cloned(),
            name: key.0,
            version: key.1,
        });
    }
    if let Some((name, version)) = wanted.first() {
        return Err(format!("`cargo metadata` does not list {name} {version}: run `cargo fetch`").into());
    }
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(found)
}

// Names and versions of the crates below a package that come from a registry.
fn tree(package: &str, platform: &str) -> Fallible<BTreeSet<(String, String)>> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--package", package, "--target", platform, "--edges", "normal"]);
    command.args(["--prefix", "none", "--no-dedupe", "--format", "{p}"]);
    let tree = output(&mut command, "install Rust with rustup")?;
    let mut found = BTreeSet::new();
    // Lines with a path are crates of this workspace.
    for line in tree.lines().filter(|line| !line.contains("(/")) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        found.insert((name.to_owned(), version.trim_start_matches('v').to_owned()));
    }
    Ok(found)
}

fn sums(lock: &str) -> BTreeMap<(String, String), String> {
    let packages = lock.split("[[package]]").filter_map(|package| {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
            Some(line.trim_end_matches('"').to_owned())
        };
        Some(((field("name")?, field("version")?), field("checksum")?))
    });
    packages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_found_in_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\nchecksum = \"12ab\"\n\n\
                    [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        assert_eq!(sums(lock), BTreeMap::from([(("a".to_owned(), "1.0.0".to_owned()), "12ab".to_owned())]));
    }
}
