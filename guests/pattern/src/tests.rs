//! What patterns match, as in bash.

use std::collections::BTreeMap;

use super::*;

fn compile(pattern: &str) -> Pattern {
    Pattern::compile(&[(pattern, false)], Flags { extglob: true, nocase: false, ..Flags::default() })
}

fn check(pattern: &str, yes: &[&str], no: &[&str]) {
    let compiled = compile(pattern);
    for text in yes {
        assert!(compiled.matches(text), "{pattern} should match {text}");
    }
    for text in no {
        assert!(!compiled.matches(text), "{pattern} should not match {text}");
    }
}

#[test]
fn patterns_match_as_in_bash() {
    check("", &[""], &["a"]);
    check("*", &["", "a", "abc"], &[]);
    check("a*b", &["ab", "axxb"], &["a", "abc"]);
    check("?", &["a", "é"], &["", "ab"]);
    check("[a-c]x", &["ax", "cx"], &["dx", "x"]);
    check("[!a-c]", &["d"], &["a"]);
    check("[^a-c]", &["d"], &["a"]);
    check("[]a]", &["]", "a"], &["b"]);
    check("[a", &["[a"], &["a"]);
    check("[a-]", &["a", "-"], &["b"]);
    check("[[:digit:]]*", &["1a"], &["a1"]);
    check("[[:alpha:][:digit:]_]", &["1", "a", "_", "é"], &["-"]);
    check("[[=a=]b]", &["a", "b"], &["c"]);
    check("\\*", &["*"], &["a", "\\*"]);
    check("[\\]]", &["]"], &["\\"]);
    check("@(a|b)", &["a", "b"], &["", "ab", "c"]);
    check("?(a)b", &["b", "ab"], &["aab"]);
    check("*(ab)", &["", "ab", "abab"], &["a", "aba"]);
    check("+([0-9])", &["1", "123"], &["", "1a"]);
    check("!(a|b)", &["", "c", "ab"], &["a", "b"]);
    check("!(*.txt)", &["a.md", "txt"], &["a.txt"]);
    check("a!(b)c", &["ac", "abbc", "axc"], &["abc"]);
    check("@(a|@(b|c)d)", &["a", "bd", "cd"], &["b", "d"]);
    check("@([)]|x)", &[")", "x"], &["("]);
    check("*.@(jpg|png)", &["x.jpg", ".png"], &["x.gif"]);
    check("@(a", &["@(a"], &["a"]);
}

#[test]
fn quoted_pieces_stand_for_themselves() {
    let pattern = Pattern::compile(&[("a", false), ("*", true), ("*", false)], Flags::default());
    assert!(pattern.matches("a*b"));
    assert!(!pattern.matches("ab"));
    let pattern = Pattern::compile(&[("[a", false), ("-", true), ("c]", false)], Flags::default());
    assert!(pattern.matches("-"));
    assert!(!pattern.matches("b"));
}

#[test]
fn case_can_be_ignored() {
    let pattern = Pattern::compile(&[("a[b-c]É*", false)], Flags { extglob: false, nocase: true, ..Flags::default() });
    assert!(pattern.matches("ABéx"));
    let pattern = Pattern::compile(&[("ABC", false)], Flags { extglob: false, nocase: true, ..Flags::default() });
    assert!(pattern.matches("abc"));
}

#[test]
fn ends_are_found() {
    let check = |pattern: &str, text: &str, expected: [Option<usize>; 4]| {
        let compiled = compile(pattern);
        let got = [
            compiled.prefix(text, false),
            compiled.prefix(text, true),
            compiled.suffix(text, false),
            compiled.suffix(text, true),
        ];
        assert_eq!(got, expected, "{pattern} on {text}");
    };
    check("*/", "a/b/c", [Some(2), Some(4), None, None]);
    check("/*", "a/b/c", [None, None, Some(3), Some(1)]);
    check("*", "abc", [Some(0), Some(3), Some(3), Some(0)]);
    check("[a-z]", "ab", [Some(1), Some(1), Some(1), Some(1)]);
    check("+(a|b)", "abc", [Some(1), Some(2), None, None]);
    check("x", "ab", [None, None, None, None]);
    check("é*", "é.é", [Some(2), Some(5), Some(3), Some(0)]);
    check("*(a)", "aab", [Some(0), Some(2), Some(3), Some(3)]);
}

#[test]
fn matches_are_replaced() {
    let check = |pattern: &str, text: &str, all: bool, expected: &str| {
        assert_eq!(compile(pattern).replace(text, all, |found| format!("<{found}>")), expected);
    };
    check("a", "banana", false, "b<a>nana");
    check("a", "banana", true, "b<a>n<a>n<a>");
    check("an*", "banana", true, "b<anana>");
    check("[an]", "banana", true, "b<a><n><a><n><a>");
    check("+(a|n)", "banab", true, "b<ana>b");
    check("*", "abc", true, "<abc>");
    check("*(x)", "axb", true, "a<x>b");
}

#[test]
fn nothing_takes_exponential_time() {
    let text = "a".repeat(3000);
    check("*a*a*a*a*a*a*a*a*a*a*a*b", &[], &[&text]);
    let text = "a".repeat(300);
    check("*(a|aa|*(a|aa))b", &[], &[&text]);
    check("+(+(+(a)))b", &[], &[&text]);
    check("!(!(!(a*)))b", &[], &[&text]);
    check(&"[".repeat(20_000), &[], &[&text]);
    check(&"@(".repeat(20_000), &[], &[&text]);
    check(&format!("{}a{}", "@(".repeat(90), ")".repeat(90)), &["a"], &["b"]);
}

struct Tree(BTreeMap<&'static str, Vec<(&'static str, EntryKind)>>);

impl Directories for Tree {
    fn list(&mut self, path: &str) -> Vec<Entry> {
        let key = path.trim_end_matches('/');
        let key = if key.is_empty() && !path.is_empty() { "/" } else { key };
        let names = self.0.get(key).cloned().unwrap_or_default();
        names.into_iter().map(|(name, kind)| Entry { name: name.to_owned(), kind }).collect()
    }
    fn exists(&mut self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.0.contains_key(path) || self.0.get(parent).is_some_and(|names| names.iter().any(|entry| entry.0 == name))
    }
    fn is_directory(&mut self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.0.contains_key(path)
    }
}

#[test]
fn path_names_are_found() {
    use EntryKind::{Directory, Link, Other};
    let mut tree = Tree(BTreeMap::from([
        ("", vec![("b.txt", Other), ("a.txt", Other), (".hidden", Other), ("d", Directory), ("l", Link), ("Z", Other)]),
        ("d", vec![("x.c", Other), ("e", Directory), (".h", Other)]),
        ("d/e", vec![("y.c", Other)]),
        ("l", vec![("q", Other)]),
        ("/", vec![("usr", Directory)]),
    ]));
    let mut check = |pattern: &str, options: GlobOptions, expected: &[&str]| {
        let found = glob(&[(pattern, false)], &mut tree, options).unwrap_or_else(|| vec!["no pattern".to_owned()]);
        assert_eq!(found, expected, "{pattern}");
    };
    let plain = GlobOptions::default();
    check("*", plain, &["Z", "a.txt", "b.txt", "d", "l"]);
    check("*.txt", plain, &["a.txt", "b.txt"]);
    check(".*", plain, &[".hidden"]);
    check("*", GlobOptions { dotglob: true, ..plain }, &[".hidden", "Z", "a.txt", "b.txt", "d", "l"]);
    check("*/", plain, &["d/", "l/"]);
    check("*/*", plain, &["d/e", "d/x.c", "l/q"]);
    check("d/*.c", plain, &["d/x.c"]);
    check("d//*.c", plain, &["d//x.c"]);
    check("*/e/y.c", plain, &["d/e/y.c"]);
    check("z*", plain, &[]);
    check("z*", GlobOptions { nocaseglob: true, ..plain }, &["Z"]);
    check("plain", plain, &["no pattern"]);
    check("/*", plain, &["/usr"]);
    let star = GlobOptions { globstar: true, ..plain };
    check("**", star, &["Z", "a.txt", "b.txt", "d", "d/e", "d/e/y.c", "d/x.c", "l"]);
    check("**/*.c", star, &["d/e/y.c", "d/x.c"]);
    check("**/", star, &["d/", "d/e/", "l/"]);
    check("d/**", star, &["d/", "d/e", "d/e/y.c", "d/x.c"]);
    check("@(a|b).txt", GlobOptions { extglob: true, ..plain }, &["a.txt", "b.txt"]);
    check("!(*.txt)", GlobOptions { extglob: true, ..plain }, &["Z", "d", "l"]);
}
