//! `sandlite bash`.

use std::io::{IsTerminal, Read};

use anyhow::Context as _;
use runtime::{Command, Output, Overrides, Stream};

use crate::args::{Bash, Global};
use crate::exit::Code;
use crate::printer::{Printer, pass_on};

pub(crate) fn run(global: &Global, args: &Bash, printer: &mut Printer) -> anyhow::Result<Code> {
    let sandbox = super::builder(global)?.open()?;
    let mut command = command(args)?;
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

fn command(args: &Bash) -> anyhow::Result<Command> {
    let mut command = Command::bash(&args.command).stdin(stdin()?);
    for arg in &args.args {
        command = command.arg(arg);
    }
    for pair in &args.env {
        let (name, value) = pair.split_once('=').with_context(|| format!("`--env {pair}` is not NAME=VALUE"))?;
        command = command.env(name, value);
    }
    if let Some(directory) = &args.cwd {
        command = command.cwd(directory);
    }
    if let Some(time) = &args.timeout {
        let wall = time.parse().with_context(|| format!("`--timeout {time}` is not a time"))?;
        command = command.limits(Overrides { wall: Some(wall), ..Overrides::default() });
    }
    if args.rollback_on_fail {
        command = command.rollback_on_failure();
    }
    if let Some(seed) = args.deterministic {
        command = command.deterministic(seed);
    }
    Ok(command)
}

fn stdin() -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    }
    Ok(bytes)
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
