//! The pages of `docs/reference` are generated from the code and are not stale. `cargo xtask docs` rewrites them.

mod actions;
mod cli;
mod errors;
mod presets;
mod rust;
mod server;

use std::fs;
use std::process::Command;

use crate::page::{Page, root};
use crate::skipped::skip;

/// Returns whether generated files are rewritten instead of compared.
pub fn is_blessed() -> bool {
    std::env::var_os("SANDLITE_BLESS").is_some()
}

#[track_caller]
fn check(name: &str, page: &str) {
    let path = root().join("docs/reference").join(name);
    let page = format!("{}\n", page.trim_end());
    if is_blessed() {
        fs::write(&path, &page).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    for (line, (known, now)) in (1..).zip(known.lines().zip(page.lines())) {
        assert_eq!(known, now, "docs/reference/{name}:{line} is stale: run `cargo xtask docs`");
    }
    assert_eq!(known.lines().count(), page.lines().count(), "docs/reference/{name} is stale: run `cargo xtask docs`");
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    // Links of rustdoc lead to items, not to pages.
    let mut parts = text.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_once(')').unwrap_or((part, ""));
        if target.contains("::") {
            let begin = text.rfind('[').unwrap_or(text.len());
            text.replace_range(begin..text.len().min(begin + 1), "");
            text += rest;
        } else {
            text += &format!("]({part}");
        }
    }
    text.replace("[`", "`").replace("`]", "`")
}

#[test]
fn links_to_items_become_their_text() {
    assert_eq!(
        cell(" A budget of the [quota](crate::Quota) is\n exhausted, see [`X`](super::X)"),
        "A budget of the quota is exhausted, see `X`"
    );
    assert_eq!(cell("a [page](b.md) | [`Y`]"), "a [page](b.md) \\| `Y`");
}

/// The variants of an enum or the fields of a struct in a source file, with their documentation.
fn documented(file: &str, item: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let body = text.split(&format!("{item} {{\n")).nth(1).unwrap_or_else(|| panic!("{file} has no `{item}`"));
    let body = body.split("\n}\n").next().unwrap();
    let (mut found, mut words) = (Vec::new(), String::new());
    for line in body.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if indent != 4 || line.starts_with("#[") || line.starts_with('}') {
            continue;
        } else if let Some(comment) = line.strip_prefix("///") {
            words.push_str(comment);
        } else {
            let name = line.trim_start_matches("pub ").split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            found.push((name.to_owned(), cell(&std::mem::take(&mut words))));
        }
    }
    assert!(!found.is_empty(), "{file}: `{item}` is empty");
    found
}

#[test]
fn the_command_line_is_documented() {
    check("cli.md", &cli::page());
}

#[test]
fn exit_codes_are_documented() {
    check("exit-codes.md", &cli::exit_codes());
}

#[test]
fn actions_are_documented() {
    check("actions.md", &actions::page());
}

#[test]
fn preset_fields_are_documented() {
    check("preset-fields.md", &presets::page());
}

#[test]
fn error_kinds_are_documented() {
    check("errors.md", &errors::page());
}

#[test]
fn settings_of_the_server_are_documented() {
    check("server-settings.md", &server::page());
}

#[test]
fn the_rust_crate_is_documented() {
    check("rust.md", &rust::page());
}

#[test]
fn the_python_package_is_documented() {
    let output = Command::new("python3").arg(root().join("sdk/python/reference.py")).output();
    let Ok(output) = output else { return skip("python3 is not installed") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check("python.md", &String::from_utf8(output.stdout).unwrap());
}

#[test]
fn the_page_of_the_mcp_server_lists_every_tool() {
    let page = Page::read("docs/mcp.md").text;
    let tools = runtime::actions::actions().iter().filter(|action| action.audience == runtime::actions::Audience::Models);
    let missing: Vec<&str> = tools.map(|action| action.name).filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/mcp.md: {missing:?}");
}

#[test]
fn the_readme_mentions_every_verb() {
    let page = Page::read("README.md").text;
    let known = |verb: &&String| !page.contains(&format!("`{verb}")) && !page.contains(&format!(" {verb} "));
    let verbs = cli::verbs(&cli::help(&[]));
    assert!(verbs.len() > 30, "{verbs:?}");
    let missing: Vec<&String> = verbs.iter().filter(known).collect();
    assert!(missing.is_empty(), "not in README.md: {missing:?}");
}

#[test]
fn documentation_of_variants_is_found() {
    let found = documented("tests/docs/reference.rs", "enum Example");
    assert_eq!(
        found,
        [("One".to_owned(), "The first | in two lines.".replace('|', "\\|")), ("Two".to_owned(), "The last.".to_owned())]
    );
}

#[allow(dead_code, reason = "read as text by the test above")]
enum Example {
    /// The first | in
    /// two lines.
    One,
    /// The last.
    #[allow(missing_docs, reason = "an attribute to skip")]
    Two {
        /// A field.
        field: u8,
    },
}
