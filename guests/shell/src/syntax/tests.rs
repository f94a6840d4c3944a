//! Accepted and rejected input of the parser, its errors, and its results.

use std::io::Write;
use std::process::{Command as Process, Stdio};

use super::*;
use crate::ast::{Argument, Command, Part, QuoteStyle, SimpleCommand};

/// What bash would print for a script called `bash`, reading but not running it.
fn messages(source: &str) -> String {
    let mut parser = Parser::new(source, Options::default());
    let mut out = String::new();
    let mut ended = false;
    while !ended {
        let result = parser.next();
        for warning in parser.take_warnings() {
            out.push_str(&format!("bash: line {}: {}\n", warning.line, warning.message));
        }
        match result {
            Ok(Some(_)) => {}
            Ok(None) => ended = true,
            Err(error) => {
                for text in [Some(error.message), error.second].into_iter().flatten() {
                    if !text.is_empty() {
                        out.push_str(&format!("bash: line {}: {text}\n", error.line));
                    }
                }
                ended = !error.recoverable;
                parser.skip_line();
            }
        }
    }
    out
}

fn check(source: &str, expected: &str) {
    assert_eq!(messages(source), expected, "{source}");
}

/// Snippets whose messages are known to differ: bash prints a second one after the first.
const DIFFERENT: [&str; 2] = ["[[ a =~ (b ]]", "cat <<EOF)"];

fn snippets() -> impl Iterator<Item = &'static str> {
    include_str!("snippets.txt").split("\n%%\n").map(|text| text.trim_matches('\n'))
}

/// The messages that bash 5.2 gave for each snippet, recorded: a line `%% n` and then its messages.
#[test]
fn snippets_are_judged_as_recorded_from_bash() {
    let recorded = include_str!("snippets.expected");
    let mut expected = recorded.split("%% ").skip(1).map(|text| text.split_once('\n').map_or("", |(_, text)| text));
    for snippet in snippets() {
        let expected = expected.next().expect("every snippet has an answer");
        if !DIFFERENT.contains(&snippet) {
            check(&format!("{snippet}\n"), expected);
        }
    }
}

/// The same against the machine's bash, where it is of the version that we follow.
#[test]
fn snippets_are_judged_as_by_the_bash_of_this_machine() {
    let version = Process::new("bash").args(["-c", "echo $BASH_VERSION"]).output();
    if !version.is_ok_and(|output| output.stdout.starts_with(b"5.2.")) {
        return;
    }
    for snippet in snippets().filter(|snippet| !DIFFERENT.contains(snippet)) {
        let mut bash = Process::new("bash")
            .args(["-n", "-s"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("bash starts");
        let source = format!("{snippet}\n");
        bash.stdin.take().expect("a pipe").write_all(source.as_bytes()).expect("bash reads");
        let output = bash.wait_with_output().expect("bash ends");
        check(&source, &String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn incomplete_text_is_reported_as_such() {
    let check = |source: &str, incomplete: bool| {
        let error = Parser::new(source, Options::default()).all().expect_err("an error");
        assert_eq!(error.incomplete, incomplete, "{source}");
    };
    for source in ["if a", "echo 'a", "echo \"a", "echo $(a", "a &&", "a |", "{ a", "f() {", "a=(1", "[[ a =", "case x in"] {
        check(source, true);
    }
    for source in ["fi", "a )", "[[ a b ]]", "a ;;", "for 1 2"] {
        check(source, false);
    }
}

fn first(source: &str) -> SimpleCommand {
    let list = Parser::new(source, Options::default()).all().expect("well-formed");
    match list.items.into_iter().next().and_then(|item| item.and_or.first.commands.into_iter().next()) {
        Some(Command::Simple(simple)) => simple,
        other => panic!("{other:?} is not a simple command"),
    }
}

#[test]
fn one_line_is_read_at_a_time() {
    let mut parser = Parser::new("a; b\nc &&\nd\n\n# e\nf @(x)\n", Options::default());
    assert_eq!(parser.next().map(|list| list.map(|list| list.items.len())), Ok(Some(2)));
    assert_eq!(parser.line(), 2);
    assert_eq!(parser.next().map(|list| list.map(|list| list.items.len())), Ok(Some(1)));
    parser.options.extglob = true;
    assert_eq!(parser.next().map(|list| list.map(|list| list.items.len())), Ok(Some(1)));
    assert_eq!(parser.next(), Ok(None));
}

#[test]
fn quotes_are_kept_apart() {
    let simple = first(r#"a'b'"c$d"\e$'f\n'"#);
    let [Argument::Word(word)] = simple.words.as_slice() else { panic!("one word") };
    assert_eq!(word.parts.len(), 5);
    assert_eq!(word.parts.first(), Some(&Part::Literal("a".to_owned())));
    assert_eq!(word.parts.get(1), Some(&Part::Quoted("b".to_owned(), QuoteStyle::Single)));
    assert!(matches!(word.parts.get(2), Some(Part::DoubleQuoted { parts, locale: false }) if parts.len() == 2));
    assert_eq!(word.parts.get(3), Some(&Part::Quoted("e".to_owned(), QuoteStyle::Backslash)));
    assert_eq!(word.parts.get(4), Some(&Part::Quoted("f\n".to_owned(), QuoteStyle::AnsiC)));
}

#[test]
fn assignments_are_seen_where_bash_sees_them() {
    let shape = |source: &str| {
        let simple = first(source);
        let arguments = simple.words.iter().filter(|word| matches!(word, Argument::Assignment(_))).count();
        (simple.assignments.len(), simple.words.len(), arguments)
    };
    assert_eq!(shape("a=1 b=2 c d=3"), (2, 2, 0));
    assert_eq!(shape("declare -a a=(1 2) b=$x c"), (0, 5, 2));
    assert_eq!(shape("x=1 local y=(2)"), (1, 2, 1));
    assert_eq!(shape("command export a=$b"), (0, 3, 0));
    assert_eq!(shape("declare a[x y]=1"), (0, 3, 0));
    assert_eq!(shape("eval a=(1)"), (0, 2, 0));
    assert_eq!(shape("a[1]=2 a[x y]+=3 a+=(4)"), (3, 0, 0));
    assert_eq!(shape("1a=2"), (0, 1, 0));
}

#[test]
fn aliases_are_expanded_while_reading() {
    let check = |source: &str, expected: &str| {
        let mut aliases = Aliases::default();
        for (name, value) in [
            ("ll", "ls -l"),
            ("ls", "ls -F"),
            ("sudo", "sudo "),
            ("open", "if true; then"),
            ("say", "echo 'x"),
            ("loop", "loop"),
            ("two", "a; b"),
        ] {
            aliases.insert(name.to_owned(), value.to_owned());
        }
        let options = Options { aliases: Some(Rc::new(aliases)), ..Options::default() };
        let list = Parser::new(source, options).all().expect("well-formed");
        assert_eq!(crate::print::list(&list), expected, "{source}");
    };
    check("ll a", "ls -F -l a");
    check("echo ll", "echo ll");
    check("sudo ll", "sudo ls -F -l");
    check("sudo x ll", "sudo x ll");
    check("open a; fi", "if true; then\n    a;\nfi");
    check("say y'", "echo 'x y'");
    check("loop", "loop");
    check("two | c", "a; b | c");
    check("\\ll; 'll'", "\\ll; 'll'");
    check("x=1 ll", "x=1 ls -F -l");
    check("a && ll || ll", "a && ls -F -l || ls -F -l");
}

#[test]
fn here_documents_find_their_bodies() {
    let bodies = |source: &str| {
        let list = Parser::new(source, Options::default()).all().expect("well-formed");
        crate::print::list(&list)
    };
    assert_eq!(bodies("cat <<A <<'B'\na $x\nA\nb $y\nB\n"), "cat <<A <<'B'\na $x\nA\nb $y\nB\n");
    assert_eq!(bodies("cat <<-A\n\t\ta\n\tA\n"), "cat <<-A\na\nA\n");
    assert_eq!(bodies("cat <<A\na\\\nb\nA\n"), "cat <<A\nab\nA\n");
    assert_eq!(bodies("cat $(cat <<A)\nhi\nA\necho"), "cat $(cat <<A\nhi\nA\n); echo");
}

#[test]
fn ansi_c_escapes_are_decoded() {
    for (text, expected) in [
        (r"a\tb\n", "a\tb\n".as_bytes()),
        (r"\x41\x4\101\7", b"A\x04A\x07"),
        (r"\u00e9\U1F600", "é😀".as_bytes()),
        (r"\cA\c?\e\E", b"\x01\x7f\x1b\x1b"),
        (r#"\\\'\"\?"#, br#"\'"?"#),
        (r"\q\xz", br"\q\xz"),
        (r"a\0b", b"a"),
        (r"\xff", b"\xff"),
        (r"\xc3\xa9", "é".as_bytes()),
        (r"\x{41}", b"A"),
    ] {
        assert_eq!(crate::bytes::encode(&decode_ansi_c(text)).as_ref(), expected, "{text}");
    }
}

#[test]
fn deep_nesting_is_an_error() {
    for (open, close) in [
        ("(", ")"),
        ("{ ", "; }"),
        ("$(", ")"),
        ("\"$(", ")\""),
        ("${x:-", "}"),
        ("if ", "; then a; fi"),
        ("<(", ")"),
        ("f() { ", "; }"),
        ("[[ ! ", ""),
        ("[[ a || ", ""),
        ("${a[", "]}"),
        ("\\`", ""),
    ] {
        let source = format!("{}x{}", open.repeat(50_000), close.repeat(50_000));
        assert!(Parser::new(&source, Options::default()).all().is_err() || open == "\\`", "{open}");
    }
}
