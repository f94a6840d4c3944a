//! `sandlite man`: writes the manual pages, one for each verb, from the text of `--help`.

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::args::{Args, Man};
use crate::exit::Code;
use crate::printer::Printer;

pub(crate) fn run(args: &Man, printer: &Printer) -> anyhow::Result<Code> {
    let directory = args.directory.display();
    std::fs::create_dir_all(&args.directory).with_context(|| format!("cannot create `{directory}`"))?;
    clap_mangen::generate_to(Args::command(), &args.directory).with_context(|| format!("cannot write to `{directory}`"))?;
    printer.verbose(format_args!("wrote the manual pages to `{directory}`"));
    Ok(Code::Success)
}
