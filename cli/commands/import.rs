//! `sandlite import`.

use crate::args::{Global, Import};
use crate::exit::Code;
use crate::printer::Printer;

pub(crate) fn run(global: &Global, args: &Import, printer: &mut Printer) -> anyhow::Result<Code> {
    let Some(to) = &global.db else { anyhow::bail!("say where to: `sandlite --db NEW.db import {}`", args.from.display()) };
    if to.exists() {
        anyhow::bail!("`{}` exists: import fills a new sandbox", to.display());
    }
    let sandbox = super::builder(global)?.import(&args.from).open()?;
    let runs = sandbox.history(1)?.first().map_or(0, |run| run.id);
    if printer.is_json() {
        printer.json(&serde_json::json!({ "path": to, "runs": runs }));
    } else {
        printer.line(&format!("filled `{}` from `{}` ({runs} runs in its history)", to.display(), args.from.display()));
    }
    Ok(Code::Success)
}
