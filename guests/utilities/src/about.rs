//! `--help` and `--version` of the utilities that do not print their own: those whose originals know neither, or print pages.
//!
//! Asked for alone, as agents do before they use a tool. The texts stand in `help/`, a file each.

use std::ffi::OsString;

/// Name, and what `--help` prints. Sorted by name.
const HELP: &[(&str, &str)] = &[
    ("awk", include_str!("../help/awk.txt")),
    ("cmp", include_str!("../help/cmp.txt")),
    ("column", include_str!("../help/column.txt")),
    ("diff3", include_str!("../help/diff3.txt")),
    ("file", include_str!("../help/file.txt")),
    ("gawk", include_str!("../help/awk.txt")),
    ("hd", include_str!("../help/hexdump.txt")),
    ("hexdump", include_str!("../help/hexdump.txt")),
    ("less", include_str!("../help/pager.txt")),
    ("mawk", include_str!("../help/awk.txt")),
    ("more", include_str!("../help/pager.txt")),
    ("nawk", include_str!("../help/awk.txt")),
    ("patch", include_str!("../help/patch.txt")),
    ("rev", include_str!("../help/rev.txt")),
    ("sandlite-decoder", include_str!("../help/sandlite-decoder.txt")),
    ("strings", include_str!("../help/strings.txt")),
    ("tar", include_str!("../help/tar.txt")),
    ("time", include_str!("../help/time.txt")),
    ("tput", include_str!("../help/tput.txt")),
    ("tree", include_str!("../help/tree.txt")),
    ("unzip", include_str!("../help/unzip.txt")),
    ("which", include_str!("../help/which.txt")),
    ("xxd", include_str!("../help/xxd.txt")),
    ("zip", include_str!("../help/zip.txt")),
];

/// Those that print `--version` themselves.
const VERSIONED: &[&str] = &["awk", "gawk", "mawk", "nawk", "tar", "tree"];

/// Returns the output of `NAME --help` or `NAME --version`; `None` for other arguments, or if the utility prints it itself.
#[must_use]
pub fn about(name: &str, args: &[OsString]) -> Option<String> {
    let [_, only] = args else { return None };
    let help = HELP.binary_search_by_key(&name, |(known, _)| known).ok().map(|at| HELP[at].1)?;
    match only.to_str()? {
        "--help" => Some(help.to_owned()),
        "--version" if !VERSIONED.contains(&name) => Some(format!("{name} (Sandlite) {}\n", env!("CARGO_PKG_VERSION"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_found_and_names_a_utility() {
        assert!(HELP.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted by name");
        for (name, help) in HELP {
            assert!(crate::find(name).is_some(), "{name}");
            assert!(help.starts_with("Usage: ") && help.ends_with('\n'), "{name}");
            assert_eq!(about(name, &["x".into(), "--help".into()]).as_deref(), Some(*help));
        }
    }

    #[test]
    fn only_a_lone_question_is_answered() {
        assert_eq!(about("rev", &["rev".into()]), None);
        assert_eq!(about("rev", &["rev".into(), "--help".into(), "x".into()]), None);
        assert_eq!(about("cat", &["cat".into(), "--help".into()]), None);
        assert!(about("rev", &["rev".into(), "--version".into()]).is_some_and(|text| text.starts_with("rev (Sandlite)")));
    }
}
