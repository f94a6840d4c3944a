//! `free`: the memory that this sandbox may use.

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, fail};
use crate::size;

const SPEC: Spec = Spec {
    short: "bkmghtwlVs:c:",
    long: &[
        ("bytes", No, 'b'),
        ("kibi", No, 'k'),
        ("mebi", No, 'm'),
        ("gibi", No, 'g'),
        ("human", No, 'h'),
        ("total", No, 't'),
        ("wide", No, 'w'),
        ("lohi", No, 'l'),
        ("si", No, 'S'),
        ("seconds", Needs, 's'),
        ("count", Needs, 'c'),
    ],
    help: "[options]",
};

/// Runs `free`.
pub fn free(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let memory =
        std::fs::read_to_string("/proc/meminfo").map_err(|error| fail(format!("Unable to create meminfo structure: {error}")))?;
    let field = |name: &str| {
        let line = memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    let (total, unused, available) = (field("MemTotal"), field("MemFree"), field("MemAvailable"));
    let used = total.saturating_sub(available);
    let cached = total.saturating_sub(used).saturating_sub(unused);
    let thousand = if given.has('S') { 1000 } else { 1024 };
    let show =
        |kilobytes: u64| match given.options.iter().rev().map(|(letter, _)| *letter).find(|letter| "bkmgh".contains(*letter)) {
            Some('b') => (kilobytes * 1024).to_string(),
            Some('m') => (kilobytes * 1024 / (thousand * thousand)).to_string(),
            Some('g') => (kilobytes * 1024 / (thousand * thousand * thousand)).to_string(),
            Some('h') if kilobytes == 0 => "0B".to_owned(),
            Some('h') => format!("{}{}", size::human(kilobytes * 1024, thousand), if thousand == 1024 { "i" } else { "" }),
            _ => (kilobytes * 1024 / thousand).to_string(),
        };
    let row = |name: &str, values: &[u64]| {
        let cells: String = values.iter().map(|value| format!(" {:>11}", show(*value))).collect();
        format!("{name:<8}{}\n", cells)
    };
    let mut out = Output::new();
    out.text("               total        used        free      shared  buff/cache   available\n");
    out.text(row("Mem:", &[total, used, unused, 0, cached, available]));
    out.text(row("Swap:", &[0, 0, 0]));
    if given.has('t') {
        out.text(row("Total:", &[total, used, unused]));
    }
    Ok(0)
}
