//! `sandlite python`.

use runtime::Command;

use crate::args::{Global, Python};
use crate::exit::Code;
use crate::interactive::{self, Tongue};
use crate::printer::{Hinted, Printer};

pub(crate) fn run(global: &Global, args: &Python, printer: &Printer) -> anyhow::Result<Code> {
    if args.command.is_none() && args.args.is_empty() && args.module.is_none() && interactive::is_wanted(printer) {
        return interactive::run(global, &args.options, Tongue::Python, printer);
    }
    if args.options.session.is_some() {
        let hint = "`sandlite python` on a terminal remembers; from call to call, use files or `sandlite kv`";
        return Err(Hinted::error("a session keeps the state of bash; Python's ends with its process", hint));
    }
    let rest = args.args.iter().cloned();
    let command = match (&args.command, &args.module) {
        (Some(code), _) => rest.fold(Command::python(code), Command::arg),
        (None, Some(module)) => Command::python_with(["-m".to_owned(), module.clone()].into_iter().chain(rest)),
        (None, None) if args.args.is_empty() => Command::python_with(["-"]),
        (None, None) => Command::python_with(rest),
    };
    let code = super::run::run(global, &args.options, command, printer)?;
    if args.command.is_none() && args.module.is_none() && code == Code::Guest(2) {
        super::run::hint_at_host_file(args.args.first(), "python", printer);
    }
    Ok(code)
}
