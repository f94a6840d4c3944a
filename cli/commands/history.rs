//! `sandlite history`.

use std::path::Path;
use std::time::Duration;

use runtime::actions::{HistoryRow, HistoryRows};
use runtime::{HistoryFilter, Run, Sandbox};
use serde_json::{Value, json};

use crate::args::{Global, History, HistoryVerb};
use crate::exit::Code;
use crate::printer::{Colour, Printer};
use crate::{page, time};

pub(crate) fn run(global: &Global, args: &History, printer: &Printer) -> anyhow::Result<Code> {
    match &args.verb {
        Some(HistoryVerb::Show { run, html }) => {
            let sandbox = super::looking(global, printer)?;
            Ok(super::answered(show(&sandbox, *run, html.as_deref(), printer), printer))
        }
        None => list(global, args, printer),
    }
}

fn list(global: &Global, args: &History, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = super::looking(global, printer)?;
    let filter = HistoryFilter { limit: args.limit, since: args.since, grep: args.grep.clone(), ..HistoryFilter::default() };
    if printer.is_json() {
        // Row by row, because a history can exceed the available memory.
        let mut before = "";
        printer.bytes(br#"{"notes":[],"runs":["#)?;
        each_run(&sandbox, &filter, |run| {
            let row = serde_json::to_value(HistoryRow::whole(run.clone(), false))?;
            printer.bytes(format!("{before}{row}").as_bytes())?;
            before = ",";
            Ok(())
        })?;
        printer.bytes(b"]}\n")?;
        return Ok(Code::Success);
    }
    let mut is_empty = true;
    each_run(&sandbox, &filter, |run| {
        if std::mem::take(&mut is_empty) {
            printer.line(&printer.paint(Colour::Bold, HEAD));
        }
        printer.line(&line(run, printer));
        Ok(())
    })?;
    if is_empty {
        let narrowed = args.since.is_some() || args.grep.is_some();
        printer.line(if narrowed { "no matching runs" } else { "no runs yet" });
        return Ok(Code::Failure);
    }
    Ok(Code::Success)
}

/// The names of the columns.
pub(crate) const HEAD: &str = "  run  exit      time  command";
/// Number of runs in memory at once.
const STEP: usize = 16;

/// Calls `each` for every run that matches the filter, newest first, with only a few in memory at a time.
pub(crate) fn each_run(
    sandbox: &Sandbox,
    filter: &HistoryFilter,
    mut each: impl FnMut(&Run) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (mut left, mut filter) = (filter.limit, filter.clone());
    while left > 0 {
        filter.limit = left.min(STEP);
        let runs = sandbox.history_with(&filter)?;
        for run in &runs {
            each(run)?;
        }
        left -= filter.limit;
        match runs.last() {
            Some(last) if runs.len() == filter.limit => filter.before = Some(last.id),
            _ => break,
        }
    }
    Ok(())
}

/// Formats a run as one line.
pub(crate) fn line(run: &Run, printer: &Printer) -> String {
    let row = Row {
        id: run.id,
        exit_code: run.exit_code.map(i64::from),
        status: run.status,
        took: duration(run),
        command: &run.command,
        limit: run.limit.as_deref(),
        is_pruned: run.output_pruned,
    };
    row.line(printer)
}

/// What a line shows of a run.
pub(crate) struct Row<'a> {
    pub(crate) id: i64,
    pub(crate) exit_code: Option<i64>,
    pub(crate) status: &'a str,
    pub(crate) took: String,
    pub(crate) command: &'a str,
    pub(crate) limit: Option<&'a str>,
    pub(crate) is_pruned: bool,
}

impl Row<'_> {
    /// Formats it as one line.
    pub(crate) fn line(&self, printer: &Printer) -> String {
        let (exit, colour) = match self.exit_code {
            Some(0) => ("0".to_owned(), Colour::Green),
            Some(code) => (code.to_string(), Colour::Red),
            None if self.status == "success" => ("-".to_owned(), Colour::Dim),
            None => (self.status.to_owned(), Colour::Yellow),
        };
        let exit = printer.paint(colour, format!("{exit:>4}"));
        let first = self.command.lines().next().unwrap_or_default();
        let more = if self.command.lines().nth(1).is_some() { " …" } else { "" };
        let limit = self.limit.map(|limit| printer.paint(Colour::Yellow, format!("   [{}]", printer.foreign(limit))));
        let limit = limit.unwrap_or_default();
        let pruned = if self.is_pruned { printer.paint(Colour::Dim, "   [output pruned]") } else { String::new() };
        format!("{:>5}  {exit}  {:>8}  {}{more}{limit}{pruned}", self.id, self.took, printer.foreign(first))
    }
}

/// Describes the missing part of a run's output.
pub(crate) fn output_note(run: &Run) -> Option<&'static str> {
    match (run.output_pruned, run.output_truncated) {
        (true, _) => Some("pruned to keep the history within its limit"),
        (false, true) => Some("truncated"),
        (false, false) => None,
    }
}

fn duration(run: &Run) -> String {
    let nanos = run.completed.map_or(0, |completed| completed.saturating_sub(run.started));
    time::span(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
}

fn show(sandbox: &Sandbox, id: i64, html: Option<&Path>, printer: &Printer) -> anyhow::Result<Code> {
    let Some(run) = sandbox.history_run(id)? else { anyhow::bail!("run {id} does not exist") };
    if let Some(path) = html {
        return super::write_page(path, printer, |out| page::run(sandbox, &run, out));
    }
    if printer.is_json() {
        printer.json(&json!(HistoryRows { runs: vec![HistoryRow::whole(run, true)], notes: Vec::new() }));
        return Ok(Code::Success);
    }
    let field = |name: &str, value: &str| printer.line(&format!("{} {value}", printer.paint(Colour::Bold, format!("{name:<8}"))));
    field("run", &format!("{} ({})", run.id, printer.foreign(&run.name)));
    for (index, text) in run.command.lines().enumerate() {
        field(if index == 0 { "command" } else { "" }, &printer.foreign(text));
    }
    field("started", &format!("{} UTC", time::moment(run.started)));
    field("took", &duration(&run));
    match run.exit_code {
        Some(code) => field("exit", &code.to_string()),
        None => field("status", run.status),
    }
    if let Some(limit) = &run.limit {
        field("limit", &printer.foreign(limit));
    }
    if let Some(error) = run.error.as_ref().filter(|_| run.limit.is_none()) {
        field("error", &printer.foreign(error));
    }
    if let Some(usage) = &run.usage {
        field("used", &used(usage));
    }
    if let Some(note) = output_note(&run) {
        field("output", &printer.paint(Colour::Yellow, note));
    }
    for (title, bytes) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
        for text in String::from_utf8_lossy(bytes).lines() {
            printer.line(&format!("{} {}", printer.paint(Colour::Dim, format!("{title} |")), printer.foreign(text)));
        }
    }
    for change in changes(&run) {
        let word = |key: &str| change[key].as_str().unwrap_or_default();
        let from = change["from"].as_str().map(|from| format!(" from {}", printer.foreign(from))).unwrap_or_default();
        let size = change["size"].as_u64().map(|size| format!(" ({})", time::size(size))).unwrap_or_default();
        let note = printer.foreign(word("note"));
        field(&printer.foreign(word("kind")), &format!("{}{from}{size}{note}", printer.foreign(word("path"))));
    }
    Ok(Code::Success)
}

/// Returns the recorded file changes of a run.
pub(crate) fn changes(run: &Run) -> impl Iterator<Item = &Value> {
    run.changes.as_deref().and_then(Value::as_array).into_iter().flatten()
}

fn used(usage: &Value) -> String {
    let number = |name: &str| usage[name].as_u64().unwrap_or(0);
    format!(
        "{} fuel, {} memory, {} processes, {} read, {} written",
        number("fuel"),
        time::size(number("memory_peak")),
        number("processes"),
        time::size(number("bytes_read")),
        time::size(number("bytes_written")),
    )
}
