//! `sandlite info`.

use runtime::actions::HistoryRow;
use runtime::{Run, Summary};
use serde_json::json;

use crate::args::{Global, Info};
use crate::exit::Code;
use crate::printer::{Colour, Printer};
use crate::{page, time};

/// Number of recent commands to show.
const LAST: usize = 5;

pub(crate) fn run(global: &Global, args: &Info, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = super::looking(global, printer)?;
    if let Some(path) = &args.html {
        return super::write_page(path, printer, |out| {
            let _slow = printer.progress().slow("generating the page");
            page::sandbox(&sandbox, out)
        });
    }
    let (summary, runs) = (sandbox.info()?, sandbox.history(LAST)?);
    if printer.is_json() {
        printer.json(&to_json(&summary, &runs));
        return Ok(Code::Success);
    }
    let field =
        |name: &str, value: String| printer.line(&format!("{} {value}", printer.paint(Colour::Bold, format!("{name:<12}"))));
    let path = summary.path.as_ref().map_or_else(|| "in memory".to_owned(), |path| path.display().to_string());
    field("sandbox", printer.foreign(&path).into_owned());
    field("size", time::size(summary.database_bytes));
    let Summary { files, directories, symlinks, .. } = summary;
    let (files, directories) = (time::count(files, "file"), time::count(directories, "directory"));
    field("files", format!("{files}, {directories}, {}", time::count(symlinks, "link")));
    field("disk", format!("{} of {}", time::size(summary.disk_used), time::size(summary.disk_allowed)));
    field("inodes", format!("{} of {}", summary.inodes_used, summary.inodes_allowed));
    let budget = |used: u64, allowed: u64| format!("{} of {}", time::size(used), time::size(allowed));
    field("names", budget(summary.names_used, summary.names_allowed));
    field("keys", format!("{}, {}", summary.keys, budget(summary.keys_used, summary.keys_allowed)));
    field("sessions", budget(summary.sessions_used, summary.sessions_allowed));
    field("history", format!("{}, {}", time::count(summary.runs, "run"), budget(summary.history_used, summary.history_allowed)));
    let pruned = match summary.oldest_version {
        0 => String::new(),
        oldest => format!(" (those before v{oldest} were pruned)"),
    };
    let versions = time::count(summary.versions, "version");
    field("past", format!("{versions}, {}{pruned}", budget(summary.past_used, summary.past_allowed)));
    field("format", format!("AgentFS {}, Sandlite {}", summary.schema, summary.format));
    if !runs.is_empty() {
        printer.line("");
        printer.line(&printer.paint(Colour::Bold, "  run  exit      time  last commands"));
        for run in &runs {
            printer.line(&super::history::line(run, printer));
        }
    }
    Ok(Code::Success)
}

fn to_json(summary: &Summary, runs: &[Run]) -> serde_json::Value {
    json!({
        "path": summary.path,
        "database_bytes": summary.database_bytes,
        "files": summary.files,
        "directories": summary.directories,
        "symlinks": summary.symlinks,
        "keys": summary.keys,
        "runs": summary.runs,
        "schema": summary.schema,
        "format": summary.format,
        "disk_used": summary.disk_used,
        "disk_allowed": summary.disk_allowed,
        "inodes_used": summary.inodes_used,
        "inodes_allowed": summary.inodes_allowed,
        "names_used": summary.names_used,
        "names_allowed": summary.names_allowed,
        "keys_used": summary.keys_used,
        "keys_allowed": summary.keys_allowed,
        "sessions_used": summary.sessions_used,
        "sessions_allowed": summary.sessions_allowed,
        "history_used": summary.history_used,
        "history_allowed": summary.history_allowed,
        "past_used": summary.past_used,
        "past_allowed": summary.past_allowed,
        "versions": summary.versions,
        "oldest_version": summary.oldest_version,
        "last": runs.iter().map(|run| HistoryRow::whole(run.clone(), false)).collect::<Vec<_>>(),
    })
}
