//! What `bash` and `python` have in common: options of a run, output as it comes, the result.

use std::io::{self, IsTerminal};
use std::thread;

use anyhow::Context as _;
use runtime::{Command, Output, Overrides, Stream};

use crate::args::{Global, RunOptions};
use crate::exit::Code;
use crate::printer::{Printer, pass_on};

/// Runs a command and tells how it went.
pub(crate) fn run(global: &Global, options: &RunOptions, command: Command, printer: &mut Printer) -> anyhow::Result<Code> {
    let sandbox = super::builder(global)?.open()?;
    let mut command = feed(with_options(command, options)?);
    if !printer.is_json() {
        command = command.on_output(Stream::Stdout, pass_on(Stream::Stdout)).on_output(Stream::Stderr, pass_on(Stream::Stderr));
    }
    let output = sandbox.run(command)?;
    if printer.is_json() {
        printer.json(&json(&output));
    } else if let Some(reached) = output.status.limit() {
        printer.limit(reached);
    }
    Ok(Code::from(&output.status))
}

fn with_options(mut command: Command, options: &RunOptions) -> anyhow::Result<Command> {
    for pair in &options.env {
        let (name, value) = pair.split_once('=').with_context(|| format!("`--env {pair}` is not NAME=VALUE"))?;
        command = command.env(name, value);
    }
    if let Some(directory) = &options.cwd {
        command = command.cwd(directory);
    }
    if let Some(time) = &options.timeout {
        let wall = time.parse().with_context(|| format!("`--timeout {time}` is not a time"))?;
        command = command.limits(Overrides { wall: Some(wall), ..Overrides::default() });
    }
    if options.rollback_on_fail {
        command = command.rollback_on_failure();
    }
    if let Some(seed) = options.deterministic {
        command = command.deterministic(seed);
    }
    Ok(command)
}

// Our own input goes in as the command reads it. Nobody waits for the copying: a command that does not read its input
// ends whether or not the input does.
fn feed(command: Command) -> Command {
    if io::stdin().is_terminal() {
        return command;
    }
    let (command, mut stdin) = command.stdin_pipe();
    thread::spawn(move || io::copy(&mut io::stdin().lock(), &mut stdin));
    command
}

fn json(output: &Output) -> serde_json::Value {
    let limit = output.status.limit().map(|reached| {
        serde_json::json!({
            "limit": reached.limit.as_str(),
            "value": reached.value,
            "used": reached.used,
            "hint": reached.hint(),
        })
    });
    serde_json::json!({
        "exit_code": output.status.code(),
        "stdout": String::from_utf8_lossy(&output.stdout),
        "stderr": String::from_utf8_lossy(&output.stderr),
        "truncated": output.stdout_truncated || output.stderr_truncated,
        "limit": limit,
        "usage": output.usage,
        "run": output.run,
    })
}
