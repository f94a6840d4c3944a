//! `sandlite bash`.

use runtime::Command;

use crate::args::{Bash, Global};
use crate::exit::Code;
use crate::printer::Printer;

pub(crate) fn run(global: &Global, args: &Bash, printer: &mut Printer) -> anyhow::Result<Code> {
    let command = args.args.iter().fold(Command::bash(&args.command), Command::arg);
    super::run::run(global, &args.options, command, printer)
}
