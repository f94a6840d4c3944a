//! `sandlite import`.

use serde_json::json;

use crate::args::{Global, Import};
use crate::exit::Code;
use crate::interrupt;
use crate::printer::{Hinted, Printer};
use crate::time;

pub(crate) fn run(global: &Global, args: &Import, printer: &Printer) -> anyhow::Result<Code> {
    let from = args.from.display();
    let Some(to) = &global.db else {
        return Err(Hinted::error(
            "no destination database given",
            format!("name the new file: `sandlite --db NEW.db import {from}`"),
        ));
    };
    if to.exists() {
        return Err(Hinted::error(format!("`{}` already exists", to.display()), "name a new file for the imported sandbox"));
    }
    if !args.from.exists() {
        anyhow::bail!("`{from}` does not exist");
    }
    interrupt::clean_up(to)?;
    let slow = printer.progress().slow("checking and copying the snapshot");
    let mut builder = super::builder(global, printer).import(&args.from);
    if let Some(digest) = &args.digest {
        builder = builder.import_digest(digest);
    }
    let sandbox = builder.open()?;
    drop(slow);
    let (runs, notes) = (sandbox.info()?.runs, sandbox.import_notes());
    if printer.is_json() {
        printer.json(&json!({ "path": to, "runs": runs, "notes": notes }));
    } else {
        printer.line(&format!("imported `{from}` into `{}` ({} in its history)", to.display(), time::count(runs, "run")));
        for note in notes {
            printer.note(format_args!("{}", printer.foreign(note)));
        }
    }
    Ok(Code::Success)
}
