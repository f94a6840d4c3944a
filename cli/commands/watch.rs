//! `sandlite watch`: prints changes as they are committed.

use std::time::Duration;

use runtime::{Event, Sandbox};
use serde_json::json;

use crate::args::{Global, Watch};
use crate::exit::Code;
use crate::interrupt::Interrupts;
use crate::printer::Printer;

/// Duration of one wait.
const STEP: Duration = Duration::from_secs(60);

pub(crate) fn run(global: &Global, args: &Watch, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = match args.consumer {
        Some(_) => super::existing(global, printer)?,
        None => super::looking(global, printer)?,
    };
    let path = args.path.as_deref().map(super::fs::guest);
    let mut after = start(&sandbox, args)?;
    let interrupts = Interrupts::listen()?;
    let cancel = interrupts.cancel();
    loop {
        let page = sandbox.events_after(after, path.as_deref())?;
        page.events.iter().for_each(|event| print(event, printer));
        if let Some(consumer) = args.consumer.as_ref().filter(|_| after != Some(page.version)) {
            sandbox.acknowledge(consumer, Some(page.version))?;
        }
        after = Some(page.version);
        // The exit code reports it.
        if printer.is_unread() {
            return Ok(Code::Success);
        }
        if cancel.is_killed() {
            return Ok(interrupts.unwatch().map_or(Code::Success, Code::Signal));
        }
        if page.more {
            continue;
        }
        if args.once {
            return Ok(Code::Success);
        }
        while !sandbox.wait_for_version(page.version, STEP, &cancel)? && !cancel.is_killed() {}
    }
}

// Returns the version to start after.
fn start(sandbox: &Sandbox, args: &Watch) -> anyhow::Result<Option<i64>> {
    if let Some(consumer) = &args.consumer {
        return Ok(sandbox.cursor(consumer)?);
    }
    match args.from.as_deref().unwrap_or("HEAD") {
        "0" => Ok(None),
        from => Ok(Some(sandbox.versions().resolve(from)?.number)),
    }
}

fn print(event: &Event, printer: &Printer) {
    if printer.is_json() {
        printer.json(&json!(event));
        return;
    }
    let from = event.from.as_ref().map(|from| format!("{} -> ", printer.foreign(from))).unwrap_or_default();
    printer.line(&format!("v{} {:<10} {from}{}", event.version, event.kind, printer.foreign(&event.path)));
}
