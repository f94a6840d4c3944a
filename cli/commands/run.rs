//! Shared parts of `bash` and `python`: options of a run, streaming output, the result.

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

/// Runs a command and reports its result.
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

/// Runs a command in an open sandbox and reports its result.
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
        // Recorded input must be known before the command starts.
        (true, None) => input::whole(command)?,
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

/// Rejects recording a script that somebody types.
pub(crate) fn refuse_unknown_input(options: &RunOptions, is_script: bool) -> anyhow::Result<()> {
    if options.record && options.stdin.is_none() && is_script && input::is_typed() {
        let hint = "name the command with `-c`, or the script with `--stdin FILE`";
        return Err(Hinted::error("cannot record a script from a terminal", hint));
    }
    Ok(())
}

// Creates a new sandbox that continues from the state of this one.
fn onto(sandbox: &Sandbox, file: &Path) -> anyhow::Result<Sandbox> {
    if file.exists() {
        return Err(Hinted::error(format!("`{}` already exists", file.display()), "name a new file for the fork"));
    }
    Ok(sandbox.fork_to(file)?)
}

// The process is about to exit and the system frees memory faster than we could; only files need to be closed.
fn close(sandbox: Sandbox, has_file: bool) {
    std::mem::forget(sandbox.host().clone());
    if !has_file {
        std::mem::forget(sandbox);
    }
}

/// Connects the command's output to our own.
pub(crate) fn passed_on(mut command: Command, options: &RunOptions, printer: &Printer) -> Command {
    for stream in [Stream::Stdout, Stream::Stderr] {
        let pass_on = printer.pass_on(stream, options.raw, command.cancel());
        command = command.on_output(stream, pass_on);
    }
    command
}

/// Prints details that the output itself does not contain.
pub(crate) fn tell(output: &Output, printer: &Printer) {
    if let Some(reached) = output.status.limit() {
        printer.limit(reached);
    }
    if let Some(message) = &output.refused {
        printer.note(format_args!("changes rejected by a hook: {message}"));
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

/// A script missing from the sandbox may be a file on this machine, or a command line without `-c`.
pub(crate) fn hint_at_script(args: &[String], verb: &str, printer: &Printer) {
    let Some(script) = args.first() else { return };
    if Path::new(script).is_file() {
        printer.hint(&format!("`{script}` is a file on this machine: run it with `sandlite {verb} < {script}`"));
    } else if script.contains([' ', '(', ';', '|']) || !script.contains(['/', '.']) {
        let words = args.join(" ").replace('\'', r"'\''");
        printer.hint(&format!("use `-c` for a command line: `sandlite {verb} -c '{words}'`"));
    }
}

/// Adds the files and directories named by the options to the sandbox.
pub(crate) fn with_places(mut builder: Builder, options: &RunOptions) -> anyhow::Result<Builder> {
    builder = builder.python(options.python.into());
    for (host, guest) in &options.file {
        builder = builder.file_from(guest, input::content(host)?);
    }
    builder = with_programs(builder, &options.program)?;
    builder = builder.allow_host(&options.allow_host);
    if let Some(named) = &options.skills {
        let named = Some(named.as_path()).filter(|named| !named.as_os_str().is_empty());
        builder = builder.mount(super::skill::mount(named)?);
    }
    Ok(options.mounts.give(builder))
}

/// Adds programs to the sandbox: installed ones, or modules on this machine.
pub(crate) fn with_programs(builder: Builder, programs: &[(String, Option<PathBuf>)]) -> anyhow::Result<Builder> {
    programs.iter().try_fold(builder, |builder, (name, file)| {
        Ok(match file {
            Some(file) => builder.program(name, input::module(file)?),
            None => builder.installed_program(name),
        })
    })
}

/// Applies the options to the command.
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
