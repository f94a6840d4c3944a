//! `sandlite completions`.

use clap::CommandFactory as _;

use crate::args::{Args, Completions};
use crate::exit::Code;
use crate::printer::Printer;

pub(crate) fn run(args: &Completions, printer: &Printer) -> anyhow::Result<Code> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "sandlite", &mut script);
    printer.bytes(&script)?;
    Ok(Code::Success)
}
