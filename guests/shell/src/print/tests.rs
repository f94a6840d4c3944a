//! Functions printed back, against what bash 5.2's `declare -f` printed for the same source.

use std::collections::BTreeMap;

use crate::ast::Command;
use crate::syntax::{Options, Parser};

#[test]
fn functions_are_printed_as_bash_prints_them() {
    let mut parser = Parser::new(include_str!("functions.sh"), Options::default());
    let mut functions = BTreeMap::new();
    while let Some(list) = parser.next().expect("the functions are well-formed") {
        for item in &list.items {
            if let Some(Command::Function(function)) = item.and_or.first.commands.first() {
                functions.insert(function.name.clone(), super::function(function));
            }
        }
    }
    let printed: String = functions.values().map(|text| format!("{text}\n")).collect();
    for (got, expected) in printed.lines().zip(include_str!("functions.txt").lines()) {
        assert_eq!(got, expected);
    }
    assert_eq!(printed, include_str!("functions.txt"));
}

#[test]
fn printed_commands_are_parsed_to_the_same_tree() {
    let mut parser = Parser::new(include_str!("functions.sh"), Options::default());
    while let Some(list) = parser.next().expect("the functions are well-formed") {
        for item in &list.items {
            if let Some(Command::Function(function)) = item.and_or.first.commands.first() {
                let text = super::function(function);
                // bash itself cannot read back a here-document that stood in a condition, nor `coproc COPROC j`.
                if text.contains("<<") || text.contains("coproc COPROC") {
                    continue;
                }
                let again = Parser::new(&text, Options::default()).all().expect("well-formed");
                let Some(Command::Function(again)) = again.items.first().and_then(|i| i.and_or.first.commands.first()) else {
                    panic!("{text} is not a function");
                };
                assert_eq!(super::function(again), text);
            }
        }
    }
}

#[test]
fn commands_for_jobs_stay_on_one_line() {
    let check = |source: &str, expected: &str| {
        let list = Parser::new(source, Options::default()).all().expect("well-formed");
        assert_eq!(super::list(&list), expected);
    };
    check("sleep   5 &", "sleep 5 &");
    check("{ a;b; } | ( c;d )", "{ a; b; } | ( c; d )");
    check("x=1   y z>f", "x=1 y z > f");
    check("if a\nthen b\nfi", "if a; then\n    b;\nfi");
}
