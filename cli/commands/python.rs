//! `sandlite python`.

use runtime::Command;

use crate::args::{Global, Python};
use crate::exit::Code;
use crate::interactive::{self, Tongue};
use crate::printer::{Hinted, Printer};

pub(crate) fn run(global: &Global, args: &Python, printer: &Printer) -> anyhow::Result<Code> {
    let is_bare = args.command.is_none() && args.args.is_empty() && args.module.is_none() && !args.version;
    if is_bare && interactive::is_wanted(printer) {
        return interactive::run(global, &args.options, Tongue::Python, printer);
    }
    if args.options.session.is_some() {
        let hint = "run `sandlite python` interactively to keep state; between calls, use files or `sandlite kv`";
        return Err(Hinted::error("`--session` is not supported for Python: its state ends with its process", hint));
    }
    super::run::refuse_unknown_input(&args.options, is_bare || args.args.first().is_some_and(|first| first == "-"))?;
    let rest = args.args.iter().map(String::as_str);
    let unbuffered = args.unbuffered.then_some("-u").into_iter();
    let command = match (&args.command, &args.module) {
        _ if args.version => Command::python_with(["-V"]),
        (Some(code), _) if !args.unbuffered => rest.fold(Command::python(code), Command::arg),
        (Some(code), _) => Command::python_with(unbuffered.chain(["-c", code]).chain(rest)),
        (None, Some(module)) => Command::python_with(unbuffered.chain(["-m", module]).chain(rest)),
        (None, None) if args.args.is_empty() => Command::python_with(unbuffered.chain(["-"])),
        (None, None) => Command::python_with(unbuffered.chain(rest)),
    };
    let code = super::run::run(global, &args.options, command, printer)?;
    if args.command.is_none() && args.module.is_none() && code == Code::Guest(2) {
        super::run::hint_at_script(&args.args, "python", printer);
    }
    Ok(code)
}
