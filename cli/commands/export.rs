//! `sandlite export`.

use crate::args::{Export, Global};
use crate::exit::Code;
use crate::printer::Printer;

pub(crate) fn run(global: &Global, args: &Export, printer: &mut Printer) -> anyhow::Result<Code> {
    let sandbox = super::existing(global)?;
    sandbox.export(&args.to)?;
    let size = std::fs::metadata(&args.to).map(|metadata| metadata.len()).unwrap_or(0);
    if printer.is_json() {
        printer.json(&serde_json::json!({ "path": args.to, "bytes": size }));
    } else {
        printer.line(&format!("wrote `{}` ({} KB)", args.to.display(), size.div_ceil(1024)));
    }
    Ok(Code::Success)
}
