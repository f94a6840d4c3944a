//! The public items of `sandlite-runtime`, from the sources: signatures and the first paragraph of their documentation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::cell;
use crate::page::root;

/// The crates whose items the runtime exports.
const SOURCES: [&str; 3] = ["runtime/src", "presets/src", "sqlite-fs/src"];

/// Methods that the macro `surroundings!` defines for several types.
const SETTERS: [(&str, &str); 3] = [
    ("limits", "limits(self, overrides: Overrides) -> Self"),
    ("env", "env(self, name: impl Into<String>, value: impl Into<String>) -> Self"),
    ("cwd", "cwd(self, directory: impl Into<String>) -> Self"),
];

#[derive(Default)]
struct Item {
    kind: String,
    about: String,
    methods: BTreeMap<String, String>,
}

/// The page.
pub fn page() -> String {
    let mut items: BTreeMap<String, Item> = exported().into_iter().map(|name| (name, Item::default())).collect();
    for source in SOURCES {
        let mut files = Vec::new();
        find(&root().join(source), &mut files);
        files.sort();
        files.iter().for_each(|file| read(&fs::read_to_string(file).unwrap(), &mut items));
    }
    let mut page = String::from(
        "# Rust crate\n\nGenerated from the sources of `sandlite-runtime` by `cargo xtask docs`. [Embedding in Rust](../rust.md) is the guide;\n\
         `cargo doc -p sandlite-runtime --open` shows the full documentation. Actions are in the module `actions`: [Actions](actions.md).\n",
    );
    for (name, item) in items.iter().filter(|(_, item)| !item.kind.is_empty()) {
        write!(page, "\n## `{} {name}`\n\n{}\n", item.kind, item.about).unwrap();
        if !item.methods.is_empty() {
            page += "\n| method | description |\n|---|---|\n";
        }
        for (signature, about) in &item.methods {
            writeln!(page, "| `{}` | {about} |", signature.replace('|', "\\|")).unwrap();
        }
    }
    page
}

/// The names that `runtime/src/lib.rs` exports.
fn exported() -> Vec<String> {
    let text = fs::read_to_string(root().join("runtime/src/lib.rs")).unwrap();
    let uses = text.split("\npub use ").skip(1).map(|rest| rest.split(';').next().unwrap());
    let names = uses.flat_map(|list| list.split(['{', ',', '}']).map(str::trim).map(str::to_owned).collect::<Vec<_>>());
    let names = names.map(|name| name.rsplit("::").next().unwrap_or_default().to_owned());
    let names: Vec<String> = names.filter(|name| name.starts_with(char::is_uppercase)).collect();
    assert!(names.len() > 60, "only {names:?}");
    names
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
}

/// Adds the items of a file, and the methods of types that are exported. Relies on `rustfmt`.
fn read(text: &str, items: &mut BTreeMap<String, Item>) {
    let (mut about, mut is_over, mut owner) = (String::new(), false, None::<String>);
    let mut lines = text.split("\n#[cfg(test)]").next().unwrap().lines();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("///") {
            // The first paragraph.
            is_over |= comment.is_empty();
            if !is_over {
                about.push_str(comment);
            }
            continue;
        } else if line.starts_with("#[") || line.starts_with(')') {
            continue;
        }
        if indent == 0 && line == "}" {
            owner = None;
        } else if indent == 0 && line.starts_with("impl") && line.ends_with('{') && !line.contains(" for ") {
            let name = line.trim_end_matches(" {").rsplit_once(' ').map_or("", |(_, name)| name);
            owner = name.split('<').next().map(str::to_owned).filter(|name| items.contains_key(name));
        } else if indent == 0 {
            let declared = ["struct", "enum", "trait", "type", "const"].into_iter().find_map(|kind| {
                let rest = line.strip_prefix("pub ")?.strip_prefix(kind)?.strip_prefix(' ')?;
                Some((kind, rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?))
            });
            let found = declared.and_then(|(kind, name)| Some((kind, items.get_mut(name)?)));
            if let Some((kind, item)) = found.filter(|(_, item)| item.kind.is_empty() && !about.is_empty()) {
                (item.kind, item.about) = (kind.to_owned(), cell(&about));
            }
        } else if let Some(item) = owner.as_ref().and_then(|name| items.get_mut(name)) {
            if let Some(signature) = signature(line, &mut lines) {
                item.methods.insert(signature, cell(&about));
            } else if let Some((_, setter)) =
                SETTERS.iter().find(|(name, _)| !about.is_empty() && line.trim_end_matches(',') == *name)
            {
                item.methods.insert((*setter).to_owned(), cell(&about));
            }
        }
        about.clear();
        is_over = false;
    }
}

/// The signature of a public method that starts in this line.
fn signature<'a>(line: &str, rest: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    let start = line.strip_prefix("pub ")?;
    let start = start.strip_prefix("const ").unwrap_or(start).strip_prefix("fn ")?;
    let mut text = start.to_owned();
    while !text.ends_with('{') && !text.ends_with('}') && !text.ends_with(';') {
        text.push(' ');
        text.push_str(rest.next()?.trim());
    }
    let text = text.split(" {").next()?.split(" where ").next()?;
    let text = text.replace("( ", "(").replace(", )", ")").replace("mut self", "self");
    Some(text.trim_end_matches(',').to_owned())
}

#[test]
fn methods_of_exported_types_are_found() {
    let mut items = BTreeMap::from([("A".to_owned(), Item::default())]);
    let text = "/// An item.\n///\n/// More.\npub struct A;\n\nimpl A {\n    /// Does it.\n    ///\n    /// More.\n    #[must_use]\n    \
                pub fn long(\n        mut self,\n        b: B,\n    ) -> C\n    where\n        B: D,\n    {\n        x\n    }\n\n    \
                /// Hidden.\n    fn private(&self) {}\n}\n\n/// Not exported.\npub struct B;\n";
    read(text, &mut items);
    let item = &items["A"];
    assert_eq!((item.kind.as_str(), item.about.as_str()), ("struct", "An item."));
    assert_eq!(item.methods.iter().collect::<Vec<_>>(), [(&"long(self, b: B) -> C".to_owned(), &"Does it.".to_owned())]);
}
