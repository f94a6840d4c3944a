//! The utilities that are not coreutils: grep, sed, awk, find and friends, as functions from arguments to exit status.
//!
//! Each function is the whole of a process: it reads descriptor 0 and files, writes descriptors 1 and 2 and returns its
//! status. Which of them runs is decided by the caller through [`find`].

pub mod about;
pub mod accounts;
pub mod awk;
pub mod bc;
pub mod cmp;
pub mod compress;
pub mod dc;
pub mod decoder;
pub mod diff;
pub mod diff3;
pub mod find;
pub mod grep;
pub mod io;
pub mod jq;
pub mod patch;
pub mod process;
pub mod rg;
pub mod sed;
pub mod small;
pub mod sqlite3;
pub mod tar;
pub mod time;
pub mod utf8;
pub mod xargs;
pub mod zip;

use std::ffi::OsString;

/// A utility: arguments, its own name first, to exit status.
pub type Utility = fn(Vec<OsString>) -> i32;

const UTILITIES: &[(&str, Utility)] = &[
    ("awk", awk::awk),
    ("bc", bc::bc),
    ("bunzip2", compress::bunzip2),
    ("bzcat", compress::bzcat),
    ("bzip2", compress::bzip2),
    ("clear", small::clear),
    ("cmp", cmp::cmp),
    ("column", small::column::column),
    ("dc", dc::dc),
    ("diff", diff::diff),
    ("diff3", diff3::diff3),
    ("egrep", grep::egrep),
    ("envsubst", small::envsubst),
    ("fgrep", grep::fgrep),
    ("file", small::file::file),
    ("find", find::find),
    ("gawk", awk::awk),
    ("grep", grep::grep),
    ("gunzip", compress::gunzip),
    ("gzip", compress::gzip),
    ("hd", small::dump::hexdump),
    ("hexdump", small::dump::hexdump),
    ("jq", jq::jq),
    ("less", small::pager),
    ("lzcat", compress::lzcat),
    ("lzma", compress::lzma),
    ("mawk", awk::awk),
    ("more", small::pager),
    ("nawk", awk::awk),
    ("patch", patch::patch),
    ("rev", small::rev),
    ("rg", rg::rg),
    ("sandlite-decoder", decoder::decoder),
    ("sed", sed::sed),
    ("sqlite3", sqlite3::sqlite3),
    ("strings", small::strings::strings),
    ("tar", tar::tar),
    ("time", small::time),
    ("tput", small::tput),
    ("tree", small::tree::tree),
    ("unlzma", compress::unlzma),
    ("unxz", compress::unxz),
    ("unzip", zip::unzip),
    ("which", small::which),
    ("xargs", xargs::xargs),
    ("xxd", small::dump::xxd),
    ("xz", compress::xz),
    ("xzcat", compress::xzcat),
    ("zcat", compress::zcat),
    ("zip", zip::zip),
];

const NAMES: [&str; UTILITIES.len()] = {
    let mut names = [""; UTILITIES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = UTILITIES[at].0;
        at += 1;
    }
    names
};

/// The utility called `name`.
#[must_use]
pub fn find(name: &str) -> Option<Utility> {
    UTILITIES.binary_search_by(|entry| entry.0.cmp(name)).ok().map(|at| UTILITIES[at].1)
}

/// The names of all utilities, sorted.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &NAMES
}
