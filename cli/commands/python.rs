//! `sandlite python`.

use runtime::Command;

use crate::args::{Global, Python};
use crate::exit::Code;
use crate::printer::Printer;

pub(crate) fn run(global: &Global, args: &Python, printer: &mut Printer) -> anyhow::Result<Code> {
    let command = match &args.command {
        Some(code) => args.args.iter().fold(Command::python(code), Command::arg),
        None => Command::python_with(&args.args),
    };
    super::run::run(global, &args.options, command, printer)
}
