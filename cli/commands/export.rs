//! `sandlite export`.

use serde_json::json;

use crate::args::{Export, Global};
use crate::exit::Code;
use crate::interrupt;
use crate::printer::{Hinted, Printer};

pub(crate) fn run(global: &Global, args: &Export, printer: &Printer) -> anyhow::Result<Code> {
    if args.to.exists() {
        return Err(Hinted::error(format!("`{}` already exists", args.to.display()), "name a new file for the export"));
    }
    let sandbox = super::existing(global, printer)?;
    interrupt::clean_up(&args.to)?;
    let slow = printer.progress().slow("writing the snapshot");
    sandbox.export(&args.to)?;
    let digest = args.digest.then(|| sandbox.digest(runtime::Export::default())).transpose()?;
    drop(slow);
    let size = std::fs::metadata(&args.to).map(|metadata| metadata.len()).unwrap_or(0);
    if printer.is_json() {
        let mut printed = json!({ "path": args.to, "bytes": size });
        if let Some(digest) = digest {
            printed["digest"] = digest.into();
        }
        printer.json(&printed);
    } else {
        printer.line(&format!("wrote `{}` ({})", args.to.display(), crate::time::size(size)));
        if let Some(digest) = digest {
            printer.line(&digest);
        }
    }
    Ok(Code::Success)
}
