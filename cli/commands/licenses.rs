//! `sandlite licenses`.

use crate::exit::Code;
use crate::printer::Printer;

/// Our own license.
const OURS: &str = include_str!("../../LICENSE");

/// The licenses of the crates in the program and in the shell, and of the C code; `cargo xtask licenses` writes them.
const CRATES: &str = include_str!("../licenses.txt");

pub(crate) fn run(printer: &Printer) -> anyhow::Result<Code> {
    let python = runtime::LICENSES;
    if printer.is_json() {
        printer.json(&serde_json::json!({ "sandlite": OURS, "crates": CRATES, "guests": python }));
    } else {
        let text = format!(
            "# sandlite\n\n{OURS}\n# In the program and in the programs of the sandbox\n\n{CRATES}\n# In Python\n\n{python}"
        );
        printer.bytes(text.as_bytes())?;
    }
    Ok(Code::Success)
}
