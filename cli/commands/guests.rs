//! `sandlite guests`: the programs' modules that this binary carries, and where they are kept compiled.

use anyhow::Context as _;
use serde_json::json;

use crate::args::{Global, Guests, GuestsVerb};
use crate::exit::Code;
use crate::printer::{Colour, Hinted, Printer};
use crate::time;

pub(crate) fn run(global: &Global, args: &Guests, printer: &Printer) -> anyhow::Result<Code> {
    match args.verb.as_ref().unwrap_or(&GuestsVerb::List) {
        GuestsVerb::List => list(global, printer),
        GuestsVerb::Path => path(global, printer),
        GuestsVerb::Prune => prune(global, printer),
    }
}

fn list(global: &Global, printer: &Printer) -> anyhow::Result<Code> {
    let guests = super::host(printer).build()?.guests();
    if printer.is_json() {
        let list: Vec<_> = guests
            .iter()
            .map(|guest| {
                json!({
                    "name": guest.name,
                    "programs": guest.programs,
                    "sha256": guest.sha256,
                    "packed_bytes": guest.packed_bytes,
                    "compiled_bytes": guest.compiled_bytes,
                })
            })
            .collect();
        printer.json(&json!({ "guests": list }));
        return Ok(Code::Success);
    }
    printer.line(&printer.paint(Colour::Bold, "guest    programs      packed    compiled  sha256"));
    for guest in &guests {
        let compiled = guest.compiled_bytes.map_or_else(|| "not yet".to_owned(), time::size);
        let sha256 = guest.sha256.get(..16).unwrap_or_default();
        let packed = time::size(guest.packed_bytes);
        printer.line(&format!("{:<8} {:>8}  {packed:>10}  {compiled:>10}  {sha256}", guest.name, guest.programs));
    }
    Ok(Code::Success)
}

fn path(global: &Global, printer: &Printer) -> anyhow::Result<Code> {
    let host = super::host(printer).build()?;
    let Some(directory) = host.cache_directory() else {
        return Err(Hinted::error("there is no place for compiled guests", "set SANDLITE_CACHE to a directory of your own"));
    };
    if printer.is_json() {
        printer.json(&json!({ "path": directory }));
    } else {
        printer.line(&directory.display().to_string());
    }
    Ok(Code::Success)
}

fn prune(global: &Global, printer: &Printer) -> anyhow::Result<Code> {
    let removed = super::host(printer).build()?.remove_stale().context("cannot remove a compiled guest")?;
    if printer.is_json() {
        printer.json(&json!({ "removed_bytes": removed }));
    } else {
        printer.line(&format!("removed {}", time::size(removed)));
    }
    Ok(Code::Success)
}
