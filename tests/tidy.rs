//! Laws of the repository, as tests: what every file says first, how long it may be, where `unsafe` may live, and which
//! crate may know which.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every tracked or new Rust file, with its text.
fn rust_files() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut left = vec![root().to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !name.starts_with("target") && name != "node_modules" {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root()).unwrap().to_owned(), text));
            }
        }
    }
    assert!(found.len() > 50, "found only {} files: is this the repository?", found.len());
    found.sort();
    found
}

fn before_tests(text: &str) -> &str {
    text.find("#[cfg(test)]").map_or(text, |end| &text[..end])
}

fn assert_none(what: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{what}:\n{}", offenders.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = rust_files().into_iter().filter(|(_, text)| !text.starts_with("//! "));
    assert_none("files without `//!` at the top", &silent.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>());
}

#[test]
fn no_file_is_longer_than_600_lines_before_its_tests() {
    let long = rust_files().into_iter().filter_map(|(path, text)| {
        let lines = before_tests(&text).lines().count();
        (lines > 600).then(|| format!("{}: {lines} lines", path.display()))
    });
    assert_none("files that are too long", &long.collect::<Vec<_>>());
}

#[test]
fn unsafe_is_only_where_the_architecture_says() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = architecture.split("## Where `unsafe` lives").nth(1).expect("ARCHITECTURE.md lists the unsafe modules");
    let section = section.split("\n## ").next().unwrap();
    let named: Vec<&str> = section.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs")).collect();
    let offenders = rust_files().into_iter().filter(|(path, text)| {
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        let unsafe_code = code
            .filter(|line| !line.contains('"'))
            .any(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe"));
        unsafe_code && !named.contains(&path.to_string_lossy().as_ref())
    });
    assert_none("`unsafe` outside the named modules", &offenders.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>());
    let gone = named.iter().filter(|path| !root().join(path).exists());
    assert_none("named modules that do not exist", &gone.map(|path| (*path).to_owned()).collect::<Vec<_>>());
}

#[test]
fn every_threat_has_a_test_of_its_name() {
    let security = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let ids = security.lines().filter_map(|line| line.strip_prefix("| T-")).filter_map(|line| line.split(' ').next());
    let tests: Vec<String> = rust_files().into_iter().map(|(_, text)| text).filter(|text| text.contains("#[test]")).collect();
    let names: Vec<(String, String)> =
        ids.map(|id| (format!("T-{id}"), format!("fn t_{}_", id.to_lowercase().replace('-', "_")))).collect();
    assert!(names.len() >= 24, "SECURITY.md lists the threats: {names:?}");
    // What a guest tries is tested under its name; of the rest, some test says that it is about it.
    let untested = names.into_iter().filter(|(id, name)| {
        let by_guest = id.starts_with("T-ISO") || id.starts_with("T-DOS");
        !tests.iter().any(|text| text.contains(name) || !by_guest && text.contains(id.as_str()))
    });
    assert_none("threats without a test", &untested.map(|(id, _)| id).collect::<Vec<_>>());
}

#[test]
fn every_threat_that_code_speaks_of_is_in_the_list() {
    let security = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let mut unknown = Vec::new();
    for (path, text) in rust_files() {
        for mention in text.split("T-").skip(1) {
            let id: String = mention.chars().take_while(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '-').collect();
            let is_id = id.split_once('-').is_some_and(|(group, number)| group.len() >= 3 && number.len() == 2);
            if is_id && !security.contains(&format!("T-{id}")) {
                unknown.push(format!("{}: T-{id}", path.display()));
            }
        }
    }
    assert_none("threats that SECURITY.md does not know", &unknown);
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    let marks = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!("), concat!("#[ig", "nore")];
    let offenders = rust_files().into_iter().filter(|(_, text)| marks.iter().any(|mark| text.contains(mark)));
    assert_none("unfinished or switched-off code", &offenders.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>());
}

/// Which of our own crates each crate may know.
const DIRECTIONS: [(&str, &[&str]); 17] = [
    ("sandlite", &["sandlite-bench", "sandlite-runtime", "sandlite-server"]),
    ("sandlite-bench", &["sandlite-runtime"]),
    ("sandlite-server", &["sandlite-runtime"]),
    ("sandlite-python", &["sandlite-runtime"]),
    (
        "sandlite-runtime",
        &["sandlite-abi", "sandlite-guests", "sandlite-image", "sandlite-presets", "sandlite-probes", "sqlite-fs"],
    ),
    ("sqlite-fs", &[]),
    ("sandlite-presets", &[]),
    ("sandlite-guests", &[]),
    ("sandlite-abi", &[]),
    ("sandlite-image", &[]),
    ("sandlite-sys", &["sandlite-abi"]),
    ("sandlite-common", &["sandlite-sys"]),
    ("sandlite-pattern", &["sandlite-common"]),
    ("sandlite-posix-regex", &[]),
    (
        "sandlite-shell",
        &["sandlite-abi", "sandlite-common", "sandlite-pattern", "sandlite-posix-regex", "sandlite-sys", "sandlite-utilities"],
    ),
    ("sandlite-utilities", &["sandlite-abi", "sandlite-common", "sandlite-pattern", "sandlite-posix-regex", "sandlite-sys"]),
    ("sandlite-probes", &[]),
];

#[test]
fn crates_know_only_those_below_them() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let directions: BTreeMap<&str, &[&str]> = DIRECTIONS.into_iter().collect();
    let mut offenders = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        if name == "xtask" {
            continue;
        }
        let Some(allowed) = directions.get(name) else {
            offenders.push(format!("`{name}` is not in the table of directions"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let known = dependency["name"].as_str().unwrap();
            let own = !dependency["path"].is_null();
            if own && !allowed.contains(&known) {
                offenders.push(format!("`{name}` knows `{known}`"));
            }
        }
    }
    assert_none("dependencies against the direction", &offenders);
}
