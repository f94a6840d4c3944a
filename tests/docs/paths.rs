//! Paths of this repository that a page names in backticks exist.

use std::collections::BTreeSet;
use std::fs;

use crate::page::{Page, pages, root};

/// Pages about the past, and pages that are generated from sources.
fn is_checked(page: &Page) -> bool {
    page.name() != "CHANGELOG.md" && !page.path.starts_with("docs/reference")
}

/// Every file and directory of the repository, relative to its root.
fn tree() -> BTreeSet<String> {
    let (mut found, mut left) = (BTreeSet::new(), vec![root().to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if name.starts_with("target") || name == ".git" || name == "node_modules" {
                continue;
            }
            found.insert(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    found
}

/// The paths that a text in backticks stands for: `a/{b,c}.rs` is two.
fn expanded(text: &str) -> Vec<String> {
    let braces = text.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (names, after))) = braces else { return vec![text.trim_end_matches('/').to_owned()] };
    names.split(',').flat_map(|name| expanded(&format!("{before}{}{after}", name.trim()))).collect()
}

/// Whether a text in backticks names a file of this repository: a Rust source, or anything below a directory at the root.
fn is_path(text: &str, tree: &BTreeSet<String>) -> bool {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./{},*".contains(c));
    let first = text.split('/').next().unwrap_or_default();
    plain && (text.ends_with(".rs") || text.contains('/') && tree.contains(first) && root().join(first).is_dir())
}

/// Whether a path exists, from the root, or as the end of a path whose beginning the text around it names.
fn exists(path: &str, tree: &BTreeSet<String>) -> bool {
    let agrees = |known: &str| {
        let (known, path): (Vec<_>, Vec<_>) = (known.split('/').collect(), path.split('/').collect());
        known.len() == path.len() && known.iter().zip(&path).all(|(known, part)| *part == "*" || known == part)
    };
    let ending = format!("/{path}");
    tree.contains(path) || tree.iter().any(|known| known.ends_with(&ending) || path.contains('*') && agrees(known))
}

#[test]
fn every_path_that_a_page_names_exists() {
    let tree = tree();
    let (mut missing, mut checked) = (Vec::new(), 0);
    for page in pages().iter().filter(|page| is_checked(page)) {
        let mut inside = false;
        for (number, line) in (1..).zip(page.text.lines()) {
            inside ^= line.starts_with("```");
            let code = line.split('`').skip(1).step_by(2).filter(|text| !inside && is_path(text, &tree));
            for path in code.flat_map(expanded) {
                checked += 1;
                missing.extend((!exists(&path, &tree)).then(|| format!("{}:{number}: {path}", page.name())));
            }
        }
    }
    assert!(missing.is_empty(), "paths that do not exist:\n{}", missing.join("\n"));
    assert!(checked > 150, "only {checked} paths were found");
}

#[test]
fn missing_paths_are_found() {
    let tree = tree();
    assert!(is_path("runtime/src/{run,session}.rs", &tree) && is_path("lib.rs", &tree) && is_path("cli/", &tree));
    assert!(!is_path("a/b", &tree) && !is_path("cargo test", &tree) && !is_path("GET /v1", &tree));
    assert_eq!(expanded("cli/{main,lib}.rs"), ["cli/main.rs", "cli/lib.rs"]);
    assert!(exists("cli/main.rs", &tree) && exists("docs/links.rs", &tree) && exists("guests/*/src", &tree));
    assert!(!exists("cli/gone.rs", &tree) && !exists("inks.rs", &tree) && !exists("guests/*/gone", &tree));
}
