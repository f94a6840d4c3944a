//! `sandlite fork`.

use serde_json::json;

use crate::args::{Fork, Global};
use crate::exit::Code;
use crate::interrupt;
use crate::printer::{Hinted, Printer};

pub(crate) fn run(global: &Global, args: &Fork, printer: &Printer) -> anyhow::Result<Code> {
    let to = args.to.display();
    if args.to.exists() {
        return Err(Hinted::error(format!("`{to}` already exists"), "name a new file for the fork"));
    }
    let sandbox = super::looking(global, printer)?;
    interrupt::clean_up(&args.to)?;
    let slow = printer.progress().slow("copying the sandbox");
    sandbox.fork_to(&args.to)?;
    drop(slow);
    if printer.is_json() {
        printer.json(&json!({ "path": args.to }));
    } else {
        printer.line(&format!("copied the sandbox to `{to}`"));
    }
    Ok(Code::Success)
}
