//! The command line, word for word: what each verb prints on both streams, and how it exits.
//!
//! `cases/*.txt` are transcripts (see `transcript.rs`); each is replayed in a fresh directory. Own format and not `trycmd` or
//! `insta`: the first mixes both streams into one, the second needs a program of its own to accept a change. Here it is
//! `SANDLITE_BLESS=1 cargo test --release --test cli`, and then reading the diff.

mod agree;
mod help;
mod pages;
mod sharing;
#[path = "../support/skipped.rs"]
mod skipped;
mod terminal;
mod transcript;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn directory() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/cases"))
}

macro_rules! transcripts {
    ($($name:ident)*) => {
        $(#[test] fn $name() { transcript::replay(stringify!($name)); })*

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

transcripts! {
    apply bash errors files git history input inquiry kv limits machine mounts pip policy presets programs python sessions skill snapshots
    trouble versions
}

#[test]
fn every_transcript_is_replayed() {
    let files = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.map(|name| name.trim_end_matches(".txt").to_owned()).collect();
    assert_eq!(files, NAMES.iter().map(|name| (*name).to_owned()).collect());
}
