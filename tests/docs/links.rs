//! Every page of `docs/` is in the table of contents, and every relative link leads to a file and a heading that exist.

use std::path::{Component, Path, PathBuf};

use crate::page::{Page, pages, root};

/// The links of a page: line, text between the parentheses.
fn links(page: &Page) -> Vec<(usize, String)> {
    let (mut found, mut inside) = (Vec::new(), false);
    for (number, line) in (1..).zip(page.text.lines()) {
        if line.starts_with("```") {
            inside = !inside;
        }
        if inside {
            continue;
        }
        // Code is not a link.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.map(|target| (number, target.to_owned())));
    }
    found
}

/// The anchor of a heading, as GitHub and mdbook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        inside ^= line.starts_with("```");
        if !inside && line.starts_with('#') {
            found.push(anchor(line.trim_start_matches('#')));
        }
    }
    found
}

/// A path without `..` and `.`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

#[test]
fn every_link_resolves() {
    let pages = pages();
    let (mut broken, mut checked) = (Vec::new(), 0);
    for page in &pages {
        for (line, link) in links(page) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.path.clone() } else { normal(&page.path.parent().unwrap().join(file)) };
            let exists = root().join(&target).exists();
            let other = pages.iter().find(|other| other.path == target);
            let has_heading = heading.is_empty() || other.is_none_or(|other| anchors(&other.text).iter().any(|a| a == heading));
            if !exists || !has_heading {
                broken.push(format!("{}:{line}: {link}", page.name()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    assert!(checked > 50, "only {checked} links were found");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = Page::read("docs/SUMMARY.md");
    let listed: Vec<PathBuf> =
        links(&contents).into_iter().map(|(_, link)| normal(&Path::new("docs").join(link.split('#').next().unwrap()))).collect();
    let pages = pages();
    let below = pages.iter().map(|page| &page.path).filter(|path| path.starts_with("docs") && !path.ends_with("SUMMARY.md"));
    let missing: Vec<_> = below.filter(|path| !listed.contains(path)).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    let outside: Vec<_> = listed.iter().filter(|path| !path.starts_with("docs")).collect();
    assert!(outside.is_empty(), "mdbook cannot read pages outside docs/: {outside:?}");
}

#[test]
fn anchors_are_those_of_github() {
    assert_eq!(anchor(" Tools of MCP servers"), "tools-of-mcp-servers");
    assert_eq!(anchor("Where `unsafe` lives"), "where-unsafe-lives");
    assert_eq!(anchor("`fs put`"), "fs-put");
}
