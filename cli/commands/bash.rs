//! `sandlite bash`.

use runtime::Command;

use crate::args::{Bash, Global};
use crate::exit::Code;
use crate::interactive::{self, Tongue};
use crate::printer::Printer;

pub(crate) fn run(global: &Global, args: &Bash, printer: &Printer) -> anyhow::Result<Code> {
    if args.command.is_none() && args.args.is_empty() && interactive::is_wanted(printer) {
        return interactive::run(global, &args.options, Tongue::Bash, printer);
    }
    let command = match &args.command {
        Some(text) => args.args.iter().fold(Command::bash(text), Command::arg),
        None => Command::bash_with(&args.args),
    };
    let code = super::run::run(global, &args.options, command, printer)?;
    if args.command.is_none() && code == Code::Guest(127) {
        super::run::hint_at_host_file(args.args.first(), "bash", printer);
    }
    Ok(code)
}
