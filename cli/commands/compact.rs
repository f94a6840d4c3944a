//! `sandlite compact`.

use runtime::actions::Compact;
use serde_json::json;

use crate::args::Global;
use crate::exit::Code;
use crate::printer::Printer;
use crate::time;

pub(crate) fn run(global: &Global, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = super::existing(global, printer)?;
    let slow = printer.progress().slow("rewriting the file without free space");
    let compacted = Compact::default().compact(&sandbox)?;
    drop(slow);
    if printer.is_json() {
        printer.json(&json!(compacted));
    } else {
        printer.line(&format!("{} -> {}", time::size(compacted.before_bytes), time::size(compacted.after_bytes)));
    }
    Ok(Code::Success)
}
