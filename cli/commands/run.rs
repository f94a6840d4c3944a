//! What `bash` and `python` have in common: options of a run, output as it comes, the result.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use runtime::actions::Ran;
use runtime::{Builder, Command, Output, Overrides, Sandbox, Stream};
use serde_json::json;

use crate::args::{Global, RunOptions};
use crate::exit::Code;
use crate::input;
use crate::interrupt::Interrupts;
use crate::printer::{Hinted, Printer};

/// Runs a command and tells how it went.
pub(crate) fn run(global: &Global, options: &RunOptions, command: Command, printer: &Printer) -> anyhow::Result<Code> {
    let interrupts = Interrupts::listen()?;
    let opened = with_places(super::builder(global, printer), options)?.open_for(&command)?;
    let (opened, servers) = super::servers::attach(opened, options, printer)?;
    let sandbox = super::at(global, opened)?;
    let sandbox = match &options.onto {
        Some(file) => onto(&sandbox, file)?,
        None => sandbox,
    };
    let code = run_in(&sandbox, &interrupts, options, command, printer)?;
    servers.close();
    close(sandbox, options.onto.is_some() || super::database(global).is_some());
    Ok(code)
}

/// Runs a command in a sandbox that is open, and tells how it went.
pub(crate) fn run_in(
    sandbox: &Sandbox,
    interrupts: &Interrupts,
    options: &RunOptions,
    command: Command,
    printer: &Printer,
) -> anyhow::Result<Code> {
    let command = with_options(command, options);
    let mut command = match (options.record, &options.stdin) {
        (false, file) => input::feed(command, file.as_deref())?,
        (true, None) => command,
        // What is recorded must be known before the command begins.
        (true, Some(file)) => command.stdin(std::fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))?),
    };
    if !printer.is_json() {
        command = passed_on(command, options, printer);
    }
    let command = interrupts.watch(command);
    let output = match &options.session {
        Some(name) => sandbox.session(name)?.run(command)?,
        None => sandbox.run(command)?,
    };
    let signal = interrupts.unwatch();
    if printer.is_json() {
        printer.json(&json!(Ran::new(&output, signal.is_some())));
    } else {
        tell(&output, printer);
    }
    Ok(signal.map_or_else(|| Code::from(&output.status), Code::Signal))
}

/// Refuses to record a script that comes from our own standard input.
pub(crate) fn refuse_unknown_input(options: &RunOptions, is_script: bool) -> anyhow::Result<()> {
    if options.record && options.stdin.is_none() && is_script {
        let hint = "name the command with `-c`, or the script with `--stdin FILE`";
        return Err(Hinted::error("cannot record a script from standard input", hint));
    }
    Ok(())
}

// A new sandbox that continues from what this one shows.
fn onto(sandbox: &Sandbox, file: &Path) -> anyhow::Result<Sandbox> {
    if file.exists() {
        return Err(Hinted::error(format!("`{}` exists", file.display()), "the result is a new sandbox: name a new file"));
    }
    Ok(sandbox.fork_to(file)?)
}

// The process is about to end, and the system takes memory back faster than we could: only a file needs to be closed.
fn close(sandbox: Sandbox, has_file: bool) {
    std::mem::forget(sandbox.host().clone());
    if !has_file {
        std::mem::forget(sandbox);
    }
}

/// The command with its output going to our own.
pub(crate) fn passed_on(mut command: Command, options: &RunOptions, printer: &Printer) -> Command {
    for stream in [Stream::Stdout, Stream::Stderr] {
        let pass_on = printer.pass_on(stream, options.raw, command.cancel());
        command = command.on_output(stream, pass_on);
    }
    command
}

/// Says what the output itself does not say.
pub(crate) fn tell(output: &Output, printer: &Printer) {
    if let Some(reached) = output.status.limit() {
        printer.limit(reached);
    }
    if let Some(message) = &output.refused {
        printer.note(format_args!("changes refused by a hook: {message}"));
    }
    if output.restarted {
        printer.note(runtime::RESTARTED);
    }
    let usage = &output.usage;
    printer.verbose(format_args!(
        "run {}: exit {}, {} wall, {} fuel, {} memory, {} processes",
        output.run,
        output.status.code(),
        crate::time::span(usage.wall),
        usage.fuel,
        crate::time::size(usage.memory_peak),
        usage.processes,
    ));
}

/// A script that the sandbox does not have may be one of this machine, or a command line without its `-c`.
pub(crate) fn hint_at_script(args: &[String], verb: &str, printer: &Printer) {
    let Some(script) = args.first() else { return };
    if Path::new(script).is_file() {
        printer.hint(&format!("`{script}` is a file of this machine: `sandlite {verb} < {script}` runs it"));
    } else if script.contains([' ', '(', ';', '|']) || !script.contains(['/', '.']) {
        let words = args.join(" ").replace('\'', r"'\''");
        printer.hint(&format!("a command line comes after `-c`: `sandlite {verb} -c '{words}'`"));
    }
}

/// The sandbox with the files and directories of this machine that the options name.
pub(crate) fn with_places(mut builder: Builder, options: &RunOptions) -> anyhow::Result<Builder> {
    builder = builder.python(options.python.into());
    for (host, guest) in &options.file {
        builder = builder.file_from(guest, input::content(host)?);
    }
    builder = with_programs(builder, &options.program)?;
    builder = builder.allow_host(&options.allow_host);
    if let Some(named) = &options.skills {
        let named = Some(named.as_path()).filter(|named| !named.as_os_str().is_empty());
        builder = builder.mount(runtime::Mount::read_only(super::skill::shown(named)?, "/skills"));
    }
    Ok(options.mounts.give(builder))
}

/// The sandbox with these programs: installed, or modules of this machine.
pub(crate) fn with_programs(builder: Builder, programs: &[(String, Option<PathBuf>)]) -> anyhow::Result<Builder> {
    programs.iter().try_fold(builder, |builder, (name, file)| {
        Ok(match file {
            Some(file) => builder.program(name, input::module(file)?),
            None => builder.installed_program(name),
        })
    })
}

/// The command as the options want it.
pub(crate) fn with_options(mut command: Command, options: &RunOptions) -> Command {
    for (name, value) in &options.env {
        command = command.env(name, value);
    }
    if let Some(directory) = &options.cwd {
        command = command.cwd(directory);
    }
    let overrides = Overrides { wall: options.timeout, memory: options.memory, compute: options.fuel, ..Overrides::default() };
    command = command.limits(overrides);
    if options.rollback_on_fail {
        command = command.rollback_on_failure();
    }
    if let Some(seed) = options.deterministic {
        command = command.deterministic(seed);
    }
    if options.record {
        command = command.record();
    }
    command
}
