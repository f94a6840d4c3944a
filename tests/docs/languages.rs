//! Every block has a language that is run or parsed, or is marked as `text`. A block that cannot be run is on the list here.

use std::collections::BTreeMap;

use crate::page::pages;

/// Languages of blocks that are executed, here or in the tests of the Python package.
const RUN: [&str; 4] = ["console", "sh", "python", "rust"];

/// Languages of data; JSON and TOML are parsed.
const DATA: [&str; 3] = ["json", "toml", "yaml"];

/// Pages with blocks marked `ignore`, how many, and why they are not run.
const IGNORED: [(&str, usize, &str); 2] = [
    ("docs/programs.md", 2, "needs a module of the reader's own, and programs of this machine"),
    ("docs/server.md", 3, "`tests/clients` runs the calls of the clients"),
];

#[test]
fn every_block_is_run_parsed_or_marked_as_text() {
    let mut unknown = Vec::new();
    for page in pages() {
        for block in page.blocks() {
            let known = RUN.contains(&block.language()) || DATA.contains(&block.language()) || block.language() == "text";
            if !known && !block.is("ignore") {
                unknown.push(format!("{}:{}: unknown language `{}`", page.name(), block.line, block.language()));
            }
        }
    }
    assert!(unknown.is_empty(), "write `text`, or a language that the tests run:\n{}", unknown.join("\n"));
}

#[test]
fn every_ignored_block_is_on_the_list() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for page in pages() {
        let ignored = page.blocks().iter().filter(|block| block.is("ignore")).count();
        if ignored > 0 {
            found.insert(page.name(), ignored);
        }
    }
    let expected = IGNORED.iter().map(|(page, count, _)| ((*page).to_owned(), *count)).collect();
    assert_eq!(found, expected, "a block that cannot be run needs a reason in this file");
}

#[test]
fn data_is_well_formed() {
    for page in pages() {
        for block in page.blocks() {
            let problem = match block.language() {
                "json" => serde_json::from_str::<serde_json::Value>(&block.text).err().map(|error| error.to_string()),
                "toml" => toml::from_str::<toml::Table>(&block.text).err().map(|error| error.to_string()),
                _ => None,
            };
            assert_eq!(problem, None, "{}:{}", page.name(), block.line);
        }
    }
}
