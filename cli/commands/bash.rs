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
    super::run::refuse_unknown_input(&args.options, args.command.is_none() && args.args.is_empty())?;
    let options = switches(args);
    let command = match &args.command {
        Some(text) if options.is_empty() => args.args.iter().fold(Command::bash(text), Command::arg),
        Some(text) => {
            Command::bash_with(options.iter().chain(&["-c", text]).copied().chain(args.args.iter().map(String::as_str)))
        }
        None => Command::bash_with(options.into_iter().chain(args.args.iter().map(String::as_str))),
    };
    let code = super::run::run(global, &args.options, command, printer)?;
    if args.command.is_none() && code == Code::Guest(127) {
        super::run::hint_at_script(&args.args, "bash", printer);
    }
    Ok(code)
}

fn switches(args: &Bash) -> Vec<&'static str> {
    let switches = [(args.trace, "-x"), (args.exit_on_error, "-e"), (args.no_unset, "-u"), (args.login, "-l")];
    switches.into_iter().filter(|(is_on, _)| *is_on).map(|(_, switch)| switch).collect()
}
