//! `sandlite check`.

use serde_json::json;

use crate::args::Global;
use crate::exit::Code;
use crate::printer::{Colour, Printer};

pub(crate) fn run(global: &Global, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = super::looking(global, printer)?;
    let slow = printer.progress().slow("checking every row");
    let violations = sandbox.check()?;
    drop(slow);
    if printer.is_json() {
        let list: Vec<_> = violations.iter().map(|found| json!({ "rule": found.rule, "detail": found.detail })).collect();
        printer.json(&json!({ "sound": list.is_empty(), "violations": list }));
    } else if violations.is_empty() {
        printer.line("no problems found");
    } else {
        for found in &violations {
            printer.line(&format!("{}: {}", printer.paint(Colour::Red, found.rule), printer.foreign(&found.detail)));
        }
        printer.hint("copy the intact data with `sandlite export`, or restore an older snapshot");
    }
    Ok(if violations.is_empty() { Code::Success } else { Code::Failure })
}
