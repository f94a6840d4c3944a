//! The public surface of the crates that others embed, as text: a change of it is seen in review.
//!
//! Read from the sources, which rustfmt has laid out: rustdoc's own listing needs a nightly compiler. What macros generate is not
//! listed. `SANDLITE_BLESS=1 cargo test --release --test tidy` accepts a change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names that a file exports with `pub use` of its own modules.
fn exported(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for used in text.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let list = used.rsplit_once("::").map_or(used, |(_, last)| last);
        let list = used.split_once('{').map_or(list, |(_, inside)| inside.trim_end_matches('}'));
        names.extend(list.split(',').map(|name| name.rsplit(" as ").next().unwrap_or(name).trim().to_owned()));
    }
    names.remove("");
    names
}

/// The part of a file outside its tests.
fn shipped(text: &str) -> &str {
    text.split("\n#[cfg(test)]").next().unwrap_or_default()
}

/// A declaration that begins at a line: everything up to its body, on one line.
fn signature<'a>(first: &'a str, rest: &mut impl Iterator<Item = &'a str>) -> String {
    let mut text = first.trim().to_owned();
    while !text.ends_with(['{', ';', '}', ',']) || text.ends_with("(,") {
        let Some(line) = rest.next() else { break };
        text.push(' ');
        text.push_str(line.trim());
    }
    while text.ends_with(',') {
        let Some(line) = rest.next() else { break };
        text.push(' ');
        text.push_str(line.trim());
        if text.ends_with(['{', ';']) {
            break;
        }
    }
    text.trim_end_matches(['{', ' ']).to_owned()
}

/// The name that a declaration introduces, after its keyword.
fn declared(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("const fn ").map_or(rest, |_| &rest["const ".len()..]);
    let (keyword, rest) = rest.split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    ["struct", "enum", "trait", "type", "const", "static", "fn", "mod"].contains(&keyword).then_some((keyword, name))
}

/// The type of an `impl` line, and the trait if there is one.
fn implemented(line: &str) -> Option<(&str, Option<&str>)> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(_) => rest.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    let (of, name) = rest.split_once(" for ").map_or((None, rest), |(of, name)| (Some(of), name));
    Some((name.split(['<', ' ', '{']).next()?, of))
}

/// Adds what a file declares of the exported names.
fn list(text: &str, names: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    let mut lines = shipped(text).lines();
    let (mut attributes, mut of) = (Vec::new(), None::<String>);
    while let Some(line) = lines.next() {
        if line.starts_with("#[derive") || line.starts_with("#[non_exhaustive") {
            attributes.push(line.to_owned());
        } else if line.starts_with('}') {
            of = None;
        } else if let Some((name, implements)) = implemented(line) {
            of = names.contains(name).then(|| name.to_owned());
            if let (Some(name), Some(implements)) = (&of, implements) {
                found.insert(format!("impl {implements} for {name}"));
                of = None;
            }
        } else if let Some((keyword, name)) = declared(line).filter(|(_, name)| names.contains(*name)) {
            let head = if ["struct", "enum", "trait"].contains(&keyword) { line.to_owned() } else { signature(line, &mut lines) };
            for attribute in attributes.drain(..) {
                found.insert(format!("{keyword} {name}: {attribute}"));
            }
            found.insert(head.trim_end_matches(['{', ' ', ';']).to_owned());
            let has_body = head.ends_with('{');
            while let Some(inner) = has_body.then(|| lines.next()).flatten().filter(|inner| !inner.starts_with('}')) {
                let is_member = match keyword {
                    "struct" => inner.starts_with("    pub ") && !inner.starts_with("    pub("),
                    "enum" | "trait" => inner.starts_with("    ") && inner.trim_start().starts_with(char::is_alphabetic),
                    _ => false,
                };
                if is_member {
                    found.insert(format!("{name}: {}", inner.trim().trim_end_matches([',', '{', ' '])));
                }
            }
        } else if let Some(name) = of.as_ref().filter(|_| line.starts_with("    pub ") && !line.starts_with("    pub(")) {
            let name = name.clone();
            found.insert(format!("{name}: {}", signature(line, &mut lines)));
        } else if !line.starts_with("///") && !line.starts_with("#[") {
            attributes.clear();
        }
    }
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The surface of a crate: what its root exports, and what its public modules declare.
fn surface(source: &Path) -> String {
    let top = fs::read_to_string(source.join("lib.rs")).unwrap();
    let mut names = exported(&top);
    let mut found: BTreeSet<String> = names.iter().map(|name| format!("pub use {name}")).collect();
    for module in top.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')) {
        let text = fs::read_to_string(source.join(format!("{module}.rs"))).unwrap();
        let inside: BTreeSet<String> = exported(&text)
            .into_iter()
            .chain(shipped(&text).lines().filter_map(|line| Some(declared(line)?.1.to_owned())))
            .collect();
        found.extend(inside.iter().map(|name| format!("pub use {module}::{name}")));
        names.extend(inside);
    }
    let mut files = Vec::new();
    sources(source, &mut files);
    for file in files {
        list(&fs::read_to_string(file).unwrap(), &names, &mut found);
    }
    found.into_iter().map(|line| line + "\n").collect()
}

fn check(name: &str, source: &str) {
    let path = root().join(format!("tests/api/{name}.txt"));
    let seen = surface(&root().join(source));
    if std::env::var_os("SANDLITE_BLESS").is_some() {
        fs::write(&path, &seen).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    let (known, seen): (BTreeSet<&str>, BTreeSet<&str>) = (known.lines().collect(), seen.lines().collect());
    let gone: Vec<_> = known.difference(&seen).collect();
    let new: Vec<_> = seen.difference(&known).collect();
    assert!(
        gone.is_empty() && new.is_empty(),
        "the surface of {name} changed (SANDLITE_BLESS=1 accepts)\ngone: {gone:#?}\nnew: {new:#?}"
    );
}

#[test]
fn the_surface_of_the_runtime_is_written_down() {
    check("sandlite-runtime", "runtime/src");
}

#[test]
fn the_surface_of_the_filesystem_is_written_down() {
    check("sqlite-fs", "sqlite-fs/src");
}

#[test]
fn declarations_are_read_from_sources() {
    let text = "\npub use a::{One, Two};\npub use b::Three;\n#[derive(Clone)]\n#[non_exhaustive]\npub enum One {\n    /// Yes.\n    A,\n    B(u8),\n}\n\n\
                pub struct Two {\n    pub field: u8,\n    pub(crate) hidden: u8,\n    private: u8,\n}\n\nimpl Two {\n    /// Documented.\n    pub fn long(\n        self,\n        \
                argument: u8,\n    ) -> Self {\n        self\n    }\n\n    fn private() {}\n}\n\nimpl Drop for Two {\n    fn drop(&mut self) {}\n}\n\npub fn three() {}\n\
                \n#[cfg(test)]\nmod tests {\n    pub struct Three;\n}\n";
    let mut found = BTreeSet::new();
    list(text, &exported(text), &mut found);
    let expected = [
        "One: A",
        "One: B(u8)",
        "Two: pub field: u8",
        "Two: pub fn long( self, argument: u8, ) -> Self",
        "enum One: #[derive(Clone)]",
        "enum One: #[non_exhaustive]",
        "impl Drop for Two",
        "pub enum One",
        "pub struct Two",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
