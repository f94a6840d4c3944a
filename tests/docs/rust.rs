//! Every `rust` block compiles, runs and prints what the block `text output` below it shows.
//!
//! `cargo xtask docs` copies the blocks into `blocks.rs`, one function each.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;

use crate::agree::line_agrees;
use crate::page::{pages, root};
use crate::reference::is_blessed;

thread_local! {
    static PRINTED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Collects the output of a block.
pub fn print(text: std::fmt::Arguments<'_>) {
    PRINTED.with_borrow_mut(|printed| writeln!(printed, "{text}").unwrap());
}

/// A block with its expected output: the block `text output` below it.
struct Shown {
    place: String,
    name: String,
    text: String,
    output: String,
}

fn shown() -> Vec<Shown> {
    let mut found = Vec::new();
    for page in pages() {
        let blocks = page.blocks();
        for (index, block) in blocks.iter().enumerate().filter(|(_, block)| block.language() == "rust") {
            let name = page.name().trim_end_matches(".md").to_lowercase().replace(['/', '-'], "_");
            let output = blocks.get(index + 1).filter(|next| next.is("output")).map(|next| next.text.clone()).unwrap_or_default();
            let place = format!("{}:{}", page.name(), block.line);
            found.push(Shown { place, name: format!("{name}_{index}"), text: block.text.clone(), output });
        }
    }
    found
}

#[test]
fn the_blocks_are_those_of_the_pages() {
    let mut file = String::from(
        "//! The `rust` blocks of the pages, written by `cargo xtask docs`.\n\n\
         #![allow(unused, reason = \"excerpts for people\")]\n\n\
         macro_rules! println {\n    ($($text:tt)*) => { crate::rust::print(format_args!($($text)*)) };\n}\n\n\
         type Done = Result<(), Box<dyn std::error::Error>>;\n\n\
         pub type Block = (&'static str, fn() -> Done);\n\n\
         pub const BLOCKS: &[Block] = &[\n",
    );
    let shown = shown();
    for Shown { name, .. } in &shown {
        writeln!(file, "    (\"{name}\", {name}),").unwrap();
    }
    file += "];\n";
    for Shown { name, text, .. } in &shown {
        let text = text.replace("sandlite_runtime", "runtime");
        let call = if text.contains("fn main()") { "main()?;\n" } else { "" };
        write!(file, "\nfn {name}() -> Done {{\n{text}{call}Ok(())\n}}\n").unwrap();
    }
    let path = root().join("tests/docs/blocks.rs");
    if is_blessed() {
        fs::write(&path, &file).unwrap();
    }
    assert!(fs::read_to_string(path).unwrap() == file, "tests/docs/blocks.rs is stale: run `cargo xtask docs`");
}

#[test]
fn every_rust_block_runs_and_prints_what_the_page_shows() {
    let shown = shown();
    assert!(shown.len() >= 4, "only {} blocks were found", shown.len());
    let before = std::env::current_dir().unwrap();
    for &(name, block) in crate::blocks::BLOCKS {
        let Some(Shown { place, output, .. }) = shown.iter().find(|shown| shown.name == name) else { continue };
        let directory = tempfile::tempdir().unwrap();
        std::env::set_current_dir(&directory).unwrap();
        PRINTED.take();
        let result = block();
        std::env::set_current_dir(&before).unwrap();
        assert!(result.is_ok(), "{place}: {result:?}");
        let printed = PRINTED.take();
        let same = output.lines().count() == printed.lines().count();
        let same = same && output.lines().zip(printed.lines()).all(|(shown, seen)| line_agrees(shown, seen));
        assert!(same, "{place}:\n--- page\n{output}--- now\n{printed}");
    }
}
