//! The package for Debian and its descendants.

use std::fmt::Write as _;

use super::archive::{Node, Tree, ar, gzip, tar};
use crate::{Fallible, guests};

/// Where the program and its guests are installed; the program looks for guests next to itself.
const HOME: &str = "./usr/lib/sandlite";

/// The content of a distribution.
pub(crate) struct Content {
    /// The version.
    pub(crate) version: String,
    /// The program.
    pub(crate) program: Vec<u8>,
    /// Names and bytes of the compiled guests.
    pub(crate) guests: Vec<(String, Vec<u8>)>,
    /// Names and bytes of the manual pages.
    pub(crate) manual: Vec<(String, Vec<u8>)>,
    /// Completions of bash, zsh and fish.
    pub(crate) completions: [Vec<u8>; 3],
    /// All licenses, as `sandlite licenses` prints them.
    pub(crate) licenses: Vec<u8>,
    /// The bill of materials.
    pub(crate) bill: Vec<u8>,
    /// The changelog.
    pub(crate) changelog: Vec<u8>,
}

/// Returns the package.
pub(crate) fn package(content: &Content, date: u64) -> Fallible<Vec<u8>> {
    let tree = installed(content);
    // Without `md5sums`: dpkg does not need the list, and `SHA256SUMS` has a better one of the whole package.
    let control = Tree::from([("./control".to_owned(), Node::File(control(content, &tree).into_bytes()))]);
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.xz", guests::pack(&tar(&control, date)?)?),
        ("data.tar.xz", guests::pack(&tar(&tree, date)?)?),
    ];
    ar(&members, date)
}

fn installed(content: &Content) -> Tree {
    let mut tree = Tree::new();
    let mut add = |path: String, node: Node| drop(tree.insert(path, node));
    add(format!("{HOME}/sandlite"), Node::Program(content.program.clone()));
    for (name, bytes) in &content.guests {
        add(format!("{HOME}/sandlite-guests/{name}"), Node::File(bytes.clone()));
    }
    add("./usr/bin/sandlite".to_owned(), Node::Link("../lib/sandlite/sandlite".to_owned()));
    for (name, bytes) in &content.manual {
        add(format!("./usr/share/man/man1/{name}.gz"), Node::File(gzip(bytes)));
    }
    let [bash, zsh, fish] = &content.completions;
    add("./usr/share/bash-completion/completions/sandlite".to_owned(), Node::File(bash.clone()));
    add("./usr/share/zsh/vendor-completions/_sandlite".to_owned(), Node::File(zsh.clone()));
    add("./usr/share/fish/vendor_completions.d/sandlite.fish".to_owned(), Node::File(fish.clone()));
    let about = "./usr/share/doc/sandlite";
    add(format!("{about}/copyright"), Node::File(content.licenses.clone()));
    add(format!("{about}/changelog.gz"), Node::File(gzip(&content.changelog)));
    add(format!("{about}/sandlite.cdx.json"), Node::File(content.bill.clone()));
    tree
}

fn control(content: &Content, tree: &Tree) -> String {
    let bytes: usize = tree
        .values()
        .map(|node| match node {
            Node::File(bytes) | Node::Program(bytes) => bytes.len(),
            Node::Link(_) => 0,
        })
        .sum();
    let mut text = String::new();
    for (field, value) in [
        ("Package", "sandlite"),
        ("Version", content.version.as_str()),
        ("Architecture", "amd64"),
        ("Maintainer", "The Sandlite authors <sandlite@localhost>"),
        ("Installed-Size", &bytes.div_ceil(1024).to_string()),
        // The program is static: it depends on nothing.
        ("Suggests", "bubblewrap, python3-pip"),
        ("Section", "utils"),
        ("Priority", "optional"),
        ("Description", "sandbox for AI agents in one SQLite file"),
    ] {
        let _ = writeln!(text, "{field}: {value}");
    }
    text.push_str(" One .db file is a small computer for an AI agent: files, bash, Python, keys\n and history, with enforced limits and without access to the host.\n");
    text
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn content() -> Content {
        Content {
            version: "1.2.3".to_owned(),
            program: b"program".to_vec(),
            guests: vec![("shell.cwasm.xz".to_owned(), b"guest".to_vec())],
            manual: vec![("sandlite.1".to_owned(), b".TH sandlite".to_vec())],
            completions: [b"bash".to_vec(), b"zsh".to_vec(), b"fish".to_vec()],
            licenses: b"licenses".to_vec(),
            bill: b"{}".to_vec(),
            changelog: b"changelog".to_vec(),
        }
    }

    // The system's own program reads what is written here.
    #[test]
    fn dpkg_reads_the_package() {
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            return crate::skips::skip("xtask::debian", "install dpkg").unwrap();
        }
        let path = std::env::temp_dir().join(format!("sandlite-{}.deb", std::process::id()));
        std::fs::write(&path, package(&content(), 1_700_000_000).unwrap()).unwrap();
        let run = |option: &str, rest: &[&str]| {
            let output = Command::new("dpkg-deb").arg(option).arg(&path).args(rest).env("TZ", "UTC").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let fields = run("--field", &["Package", "Version", "Architecture", "Installed-Size"]);
        let listed = run("--contents", &[]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(fields, "Package: sandlite\nVersion: 1.2.3\nArchitecture: amd64\nInstalled-Size: 1\n");
        let lines: Vec<String> = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for expected in [
            "lrwxrwxrwx root/root 0 2023-11-14 22:13 ./usr/bin/sandlite -> ../lib/sandlite/sandlite",
            "-rwxr-xr-x root/root 7 2023-11-14 22:13 ./usr/lib/sandlite/sandlite",
            "-rw-r--r-- root/root 5 2023-11-14 22:13 ./usr/lib/sandlite/sandlite-guests/shell.cwasm.xz",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected} is missing:\n{listed}");
        }
    }
}
