//! `sandlite check`.

use serde_json::json;

use crate::args::Global;
use crate::exit::Code;
use crate::printer::{Colour, Printer};

pub(crate) fn run(global: &Global, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = super::looking(global, printer)?;
    let slow = printer.progress().slow("looking at every row");
    let violations = sandbox.check()?;
    drop(slow);
    if printer.is_json() {
        let list: Vec<_> = violations.iter().map(|found| json!({ "rule": found.rule, "detail": found.detail })).collect();
        printer.json(&json!({ "sound": list.is_empty(), "violations": list }));
    } else if violations.is_empty() {
        printer.line("everything is as it should be");
    } else {
        for found in &violations {
            printer.line(&format!("{}: {}", printer.paint(Colour::Red, found.rule), printer.foreign(&found.detail)));
        }
        printer.hint("`sandlite export` copies what is sound; an older snapshot may be whole");
    }
    Ok(if violations.is_empty() { Code::Success } else { Code::Failure })
}
