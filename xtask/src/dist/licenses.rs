//! `cargo xtask licenses`: writes `cli/licenses.txt`, the licenses of the crates that are part of the distribution.
//!
//! The file is in the repository, because `sandlite licenses` prints it, also where `cargo install` built the program.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::components::{Component, components};
use crate::run::root;
use crate::{Fallible, Outcome};

/// Code that is not a crate, with its license.
const OTHERS: [(&str, &str); 4] = [
    ("Rust's standard library, in the program and in the guests", "MIT OR Apache-2.0"),
    ("SQLite, compiled from the sources in libsqlite3-sys", "public domain (blessing)"),
    ("the definitions of jq 1.7, Copyright (C) 2012 Stephen Dolan, and what follows its interpreter, in the guests", "MIT"),
    (
        "the GNU C library, where the program is linked statically",
        "LGPL-2.1-or-later; to link with another version, build Sandlite from its sources (`SANDLITE_SHARED_LIBC=1` leaves the library out)",
    ),
];

const MIT: &str = "\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
\"Software\"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.";

/// Returns the path of the list.
pub(crate) fn path() -> PathBuf {
    root().join("cli/licenses.txt")
}

/// Runs `cargo xtask licenses`.
pub(crate) fn write() -> Outcome {
    Ok(fs::write(path(), text(&components()?)?)?)
}

/// Returns the list.
pub(crate) fn text(components: &[Component]) -> Fallible<String> {
    let mut text = String::from(
        "The program, the Python package and the guests contain the following code. Where several licenses are offered and Apache-2.0 is\n\
         one of them, it is used under Apache-2.0, whose text is above. All other license texts follow the list.\n\n",
    );
    let width = components.iter().map(|component| component.name.len() + component.version.len() + 1).max().unwrap_or_default();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for component in components {
        let name = format!("{} {}", component.name, component.version);
        writeln!(text, "{name:<width$}  {}", component.license)?;
        if !offers_apache(&component.license) {
            for found in own_texts(component)? {
                texts.entry(found).or_default().push(name.clone());
            }
        }
    }
    text.push('\n');
    for (name, license) in OTHERS {
        writeln!(text, "{name}: {license}")?;
    }
    let mut sections: Vec<_> = texts.into_iter().map(|(found, names)| (names, found)).collect();
    sections.sort();
    for (names, found) in sections {
        writeln!(text, "\n## {}\n\n{found}", names.join(", "))?;
    }
    Ok(text)
}

fn offers_apache(license: &str) -> bool {
    !license.contains(" AND ") && license.split(" OR ").any(|offered| offered.trim_matches(['(', ')', ' ']) == "Apache-2.0")
}

// The license files of a crate. A crate without any has the text of its license, with its authors.
fn own_texts(component: &Component) -> Fallible<Vec<String>> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(&component.directory)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.retain(|path| path.is_file() && is_license(path));
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        let text = String::from_utf8_lossy(&fs::read(&file)?).replace("\r\n", "\n").replace('\u{c}', "\n");
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        texts.push(lines.join("\n").trim_matches('\n').to_owned());
    }
    match component.license.as_str() {
        _ if !texts.is_empty() => Ok(texts),
        "MIT" => {
            let authors = if component.authors.is_empty() {
                format!("the authors of {}", component.name)
            } else {
                component.authors.join(", ")
            };
            Ok(vec![format!("Copyright (c) {authors}\n\n{MIT}")])
        }
        // Its text is that of the crates next to it, which have a file.
        "Apache-2.0 WITH LLVM-exception" => Ok(Vec::new()),
        other => Err(format!("{} {} has no license file, and its license is {other}", component.name, component.version).into()),
    }
}

fn is_license(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    ["licen", "copying", "copyright", "notice", "unlicense"].iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apache_is_chosen_only_where_it_is_offered() {
        assert!(offers_apache("MIT OR Apache-2.0") && offers_apache("(Apache-2.0 OR MIT)") && offers_apache("Apache-2.0"));
        assert!(!offers_apache("MIT") && !offers_apache("Apache-2.0 WITH LLVM-exception"));
        assert!(!offers_apache("(MIT OR Apache-2.0) AND Unicode-3.0"));
    }

    // `sandlite licenses` prints the licenses of the crates in the lock file.
    #[test]
    fn the_list_of_licenses_is_current() {
        let current = text(&components().unwrap()).unwrap();
        if std::env::var_os("SANDLITE_BLESS").is_some() {
            fs::write(path(), &current).unwrap();
        }
        let listed = fs::read_to_string(path()).unwrap_or_default();
        let difference = current.lines().zip(listed.lines()).find(|(current, listed)| current != listed);
        assert!(current == listed, "cli/licenses.txt is out of date ({difference:?}): run `cargo xtask licenses`");
    }
}
