//! Measured figures are the same everywhere: `docs/benchmarks.md` and `docs/presets.md` are written by the benchmarks, and any other
//! page that quotes a figure names the cell it comes from: `6.1 ms<!-- figure: bash/Sandlite/start -->`.

use std::collections::BTreeMap;
use std::fs;

use crate::page::{Page, pages, root};
use crate::reference::is_blessed;

/// Pages that a benchmark writes, and the history of changes.
const SOURCES: [&str; 3] = ["docs/benchmarks.md", "docs/presets.md", "CHANGELOG.md"];

/// Times that are chosen, not measured: page, text, reason.
const CHOSEN: [(&str, &str, &str); 3] = [
    ("ARCHITECTURE.md", "tick (4 ms)", "the length of a tick"),
    ("SECURITY.md", "time +50 ms", "the slack of a guarantee"),
    ("SECURITY.md", "50 ms then does not apply", "the same slack"),
];

/// Every figure that can be quoted, by name.
fn figures() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let (mut section, mut columns) = (String::new(), Vec::new());
    for line in Page::read("docs/benchmarks.md").text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.to_owned();
        }
        let Some(row) = line.strip_prefix('|').and_then(|row| row.strip_suffix('|')) else { continue };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        match cells.split_first() {
            Some((_, rest)) if rest.first() == Some(&"isolation") => {
                columns = rest.iter().map(|cell| (*cell).to_owned()).collect()
            }
            Some((name, rest)) => {
                for (column, cell) in columns.iter().zip(rest).filter(|(_, cell)| cell.contains("ms")) {
                    let value = cell.split(" (").next().unwrap();
                    found.insert(format!("{section}/{name}/{column}"), value.to_owned());
                }
            }
            None => {}
        }
    }
    let programs = fs::read_to_string(root().join("guests/programs.txt")).unwrap();
    let programs = programs.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    found.insert("programs".to_owned(), programs.to_string());
    found
}

#[test]
fn quoted_figures_are_those_of_the_benchmarks() {
    let figures = figures();
    assert!(figures.len() > 20, "docs/benchmarks.md has only {figures:?}");
    let (mut wrong, mut quoted) = (Vec::new(), 0);
    if is_blessed() {
        for page in pages() {
            // Other pages may be generated at the same time.
            let text = updated(&page.text, &figures);
            if text != page.text {
                fs::write(root().join(&page.path), text).unwrap();
            }
        }
    }
    for page in pages() {
        for (number, line) in (1..).zip(page.text.lines()) {
            let parts: Vec<&str> = line.split("<!-- figure: ").collect();
            for (before, after) in parts.iter().zip(parts.iter().skip(1)) {
                let name = after.split(" -->").next().unwrap();
                quoted += 1;
                match figures.get(name) {
                    Some(value) if before.ends_with(value.as_str()) => {}
                    Some(value) => wrong.push(format!("{}:{number}: `{name}` is {value}", page.name())),
                    None => wrong.push(format!("{}:{number}: unknown figure `{name}`", page.name())),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "run `cargo xtask docs`:\n{}", wrong.join("\n"));
    assert!(quoted >= 3, "only {quoted} figures are quoted");
}

/// The text of a page with the values of its quoted figures replaced by the current ones.
fn updated(text: &str, figures: &BTreeMap<String, String>) -> String {
    let mut parts = text.split("<!-- figure: ");
    let mut done = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let name = part.split(" -->").next().unwrap_or_default();
        if let Some(value) = figures.get(name) {
            let kept = done.trim_end_matches(" ms").trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
            done.truncate(kept);
            done.push_str(value);
        }
        done.push_str("<!-- figure: ");
        done.push_str(part);
    }
    done
}

#[test]
fn quoted_figures_are_updated() {
    let figures = BTreeMap::from([("a/b/c".to_owned(), "7.5 ms".to_owned()), ("n".to_owned(), "12".to_owned())]);
    let check = |text: &str, expected: &str| assert_eq!(updated(text, &figures), expected);
    check("takes 6.1 ms<!-- figure: a/b/c --> here", "takes 7.5 ms<!-- figure: a/b/c --> here");
    check("(9<!-- figure: n --> of 6 ms<!-- figure: a/b/c -->)", "(12<!-- figure: n --> of 7.5 ms<!-- figure: a/b/c -->)");
    check("plain, 3 ms<!-- figure: other -->", "plain, 3 ms<!-- figure: other -->");
}

/// Whether a line has a time in milliseconds or microseconds that names no source.
fn has_bare_time(line: &str) -> bool {
    [" ms", " µs", " milliseconds", " microseconds"].iter().any(|unit| {
        line.match_indices(unit).any(|(at, _)| {
            let after = &line[at + unit.len()..];
            let ends_word = !after.starts_with(|c: char| c.is_alphanumeric());
            line[..at].ends_with(|c: char| c.is_ascii_digit()) && ends_word && !after.starts_with("<!-- figure: ")
        })
    })
}

#[test]
fn a_measured_time_names_its_source() {
    let mut bare = Vec::new();
    for page in pages().iter().filter(|page| !SOURCES.contains(&page.name().as_str()) && !page.path.starts_with("docs/reference"))
    {
        let mut inside = false;
        for (number, line) in (1..).zip(page.text.lines()) {
            inside ^= line.starts_with("```");
            let is_chosen = CHOSEN.iter().any(|(path, text, _)| page.name() == *path && line.contains(text));
            if !inside && has_bare_time(line) && !is_chosen {
                bare.push(format!("{}:{number}: {line}", page.name()));
            }
        }
    }
    assert!(bare.is_empty(), "times without `<!-- figure: … -->`:\n{}", bare.join("\n"));
}

#[test]
fn times_without_a_source_are_found() {
    assert!(has_bare_time("takes 3.4 ms while"));
    assert!(has_bare_time("3 ms."));
    assert!(!has_bare_time("takes 3.4 ms<!-- figure: a/b/c --> while"));
    assert!(!has_bare_time("some ms, 3 msgs"));
}
