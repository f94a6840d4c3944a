//! `df`: how much room there is.

use std::path::Path;

use crate::options::{self, May, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, fail};
use crate::quote;

/// Runs `df`: one file system, whose size only the host knows.
pub fn df(args: Args) -> Outcome {
    let spec = Spec {
        short: "aB:hHiklmPt:Tvx:",
        long: &[
            ("all", No, 'a'),
            ("block-size", Needs, 'B'),
            ("human-readable", No, 'h'),
            ("si", No, 'H'),
            ("inodes", No, 'i'),
            ("local", No, 'l'),
            ("no-sync", No, 'n'),
            ("output", May, 'o'),
            ("portability", No, 'P'),
            ("print-type", No, 'T'),
            ("sync", No, 's'),
            ("total", No, 'c'),
            ("type", Needs, 't'),
            ("exclude-type", Needs, 'x'),
        ],
        help: "[OPTION]... [FILE]...",
    };
    let given = options::parse(args, &spec)?;
    let mut status = 0;
    let mut rows = 0;
    for file in &given.operands {
        match sys::stat(Path::new(file), true) {
            Ok(_) => rows += 1,
            Err(error) => status = fail(format!("{}: {}", quote::maybe(file), sys::message(&error))),
        }
    }
    if given.operands.is_empty() {
        rows = 1;
    }
    if rows == 0 {
        return Ok(status);
    }
    let (total, free) = if given.has('i') {
        ("Inodes", "IFree")
    } else {
        (
            if given.has('h') || given.has('H') {
                "Size"
            } else if given.has('P') {
                "1024-blocks"
            } else {
                "1K-blocks"
            },
            if given.has('h') || given.has('H') { "Avail" } else { "Available" },
        )
    };
    let used = if given.has('i') { "IUsed" } else { "Used" };
    let percent = match (given.has('i'), given.has('P')) {
        (true, _) => "IUse%",
        (_, true) => "Capacity",
        _ => "Use%",
    };
    let kind = |text: &str| if given.has('T') { format!(" {text:<8}") } else { String::new() };
    let mut out = Output::new();
    out.text(format!("Filesystem{} {total:>9} {used:>9} {free:>9} {percent} Mounted on\n", kind("Type")));
    for _ in 0..rows {
        out.text(format!(
            "sandlite  {} {:>9} {:>9} {:>9} {:>width$} /\n",
            kind("sandlite"),
            "-",
            "-",
            "-",
            "-",
            width = percent.len()
        ));
    }
    Ok(status)
}
