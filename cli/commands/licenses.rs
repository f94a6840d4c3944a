//! `sandlite licenses`.

use crate::exit::Code;
use crate::printer::Printer;

/// Our own license.
const OURS: &str = include_str!("../../LICENSE");

pub(crate) fn run(printer: &Printer) -> anyhow::Result<Code> {
    let guests = runtime::LICENSES;
    if printer.is_json() {
        printer.json(&serde_json::json!({ "sandlite": OURS, "guests": guests }));
    } else {
        printer.bytes(format!("# sandlite\n\n{OURS}\n# In the programs of the sandbox\n\n{guests}").as_bytes())?;
    }
    Ok(Code::Success)
}
