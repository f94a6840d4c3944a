//! `sandlite history`.

use runtime::Run;

use crate::args::{Global, History};
use crate::exit::Code;
use crate::printer::Printer;

pub(crate) fn run(global: &Global, args: &History, printer: &mut Printer) -> anyhow::Result<Code> {
    let sandbox = super::existing(global)?;
    if let Some(id) = args.run {
        let Some(run) = sandbox.history_run(id)? else { anyhow::bail!("there is no run {id}") };
        show(&run, printer);
        return Ok(Code::Success);
    }
    let runs = sandbox.history(args.limit)?;
    if printer.is_json() {
        printer.json(&serde_json::to_value(&runs)?);
        return Ok(Code::Success);
    }
    if runs.is_empty() {
        printer.line("nothing has run here yet");
        return Ok(Code::NotFound);
    }
    printer.line("  run  exit      time  command");
    for run in &runs {
        printer.line(&line(run));
    }
    Ok(Code::Success)
}

fn line(run: &Run) -> String {
    let exit = match (run.exit_code, run.status) {
        (Some(code), _) => code.to_string(),
        (None, status) => status.to_owned(),
    };
    let command = run.command.lines().next().unwrap_or_default();
    let more = if run.command.lines().nth(1).is_some() { " …" } else { "" };
    let limit = run.limit.as_ref().map(|limit| format!("   [{limit}]")).unwrap_or_default();
    format!("{:>5}  {exit:>4}  {:>8}  {command}{more}{limit}", run.id, duration(run))
}

fn duration(run: &Run) -> String {
    let nanos = run.completed.map_or(0, |completed| completed.saturating_sub(run.started));
    match nanos {
        0..1_000_000 => format!("{} µs", nanos / 1_000),
        1_000_000..10_000_000_000 => format!("{} ms", nanos / 1_000_000),
        _ => format!("{} s", nanos / 1_000_000_000),
    }
}

fn show(run: &Run, printer: &mut Printer) {
    if printer.is_json() {
        let mut value = serde_json::to_value(run).unwrap_or_default();
        value["stdout"] = String::from_utf8_lossy(&run.stdout).into();
        value["stderr"] = String::from_utf8_lossy(&run.stderr).into();
        printer.json(&value);
        return;
    }
    printer.line(&line(run));
    for (title, bytes) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
        for text in String::from_utf8_lossy(bytes).lines() {
            printer.line(&format!("{title} | {text}"));
        }
    }
    for change in run.changes.iter().filter_map(|changes| changes.as_array()).flatten() {
        let word = |key: &str| change[key].as_str().unwrap_or_default().to_owned();
        printer.line(&format!("{:>6} | {}", word("kind"), word("path")));
    }
}
