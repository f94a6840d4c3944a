//! `sandlite self-test`: checks the core promises on the machine on which Sandlite is installed.
//!
//! Unlike `doctor`, which looks for causes, it exercises the promises and reports each as kept or broken. It stores nothing outside
//! a temporary directory.

mod checks;
mod launcher;

use std::time::{Duration, Instant};

use runtime::{Builder, Command, Host, Overrides, Sandbox};
use serde_json::json;

pub(crate) use launcher::set_word_count;

use crate::exit::Code;
use crate::printer::{Colour, Hinted, Printer};
use crate::time;

/// A promise, and the function that tries to break it.
struct Check {
    name: &'static str,
    promise: &'static str,
    run: fn(&Bench) -> anyhow::Result<()>,
}

/// The result of one check: an error describes how the promise was broken.
struct Finding {
    check: &'static Check,
    result: anyhow::Result<()>,
    took: Duration,
}

/// The shared state of the checks: one engine, and a directory that is removed at the end.
struct Bench {
    host: Host,
    directory: tempfile::TempDir,
}

impl Bench {
    /// Returns the settings of a sandbox on the shared engine.
    fn builder(&self) -> Builder {
        Sandbox::builder().host(&self.host)
    }

    /// Opens a sandbox in memory with some limits lowered.
    fn limited(&self, overrides: Overrides) -> anyhow::Result<Sandbox> {
        Ok(self.builder().limits(overrides).open()?)
    }

    /// Returns a path in the temporary directory.
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }
}

pub(crate) fn run(printer: &Printer) -> anyhow::Result<Code> {
    let directory = tempfile::tempdir().map_err(|error| {
        Hinted::error(format!("cannot create a temporary directory: {error}"), "set TMPDIR to a directory that you can write")
    })?;
    let host = crate::engine::settings().build()?;
    let bench = Bench { host, directory };
    let prepared = prepare(&bench)?;
    let begin = Instant::now();
    let findings: Vec<Finding> = checks::ALL.iter().map(|check| examine(check, &bench, printer)).collect();
    Ok(report(&findings, prepared, begin.elapsed(), printer))
}

// On a machine without compiled guests, the first command compiles them once. That is not part of the checks.
fn prepare(bench: &Bench) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let sandbox = bench.builder().open()?;
    for command in [Command::bash(":"), Command::python("pass")] {
        sandbox.run(command)?;
    }
    Ok(begin.elapsed())
}

fn examine(check: &'static Check, bench: &Bench, printer: &Printer) -> Finding {
    printer.progress().spin(&format!("checking {}", check.name));
    let begin = Instant::now();
    let result = (check.run)(bench);
    Finding { check, result, took: begin.elapsed() }
}

fn report(findings: &[Finding], prepared: Duration, took: Duration, printer: &Printer) -> Code {
    printer.progress().clear();
    let failed = findings.iter().filter(|finding| finding.result.is_err()).count();
    if printer.is_json() {
        printer.json(&as_json(findings, prepared, took));
    } else {
        findings.iter().for_each(|finding| show(finding, printer));
        let passed = findings.len().saturating_sub(failed);
        printer.line(&format!("{passed} of {} checks passed in {}", findings.len(), time::span(took)));
        if failed > 0 {
            printer.hint("do not use this installation for untrusted code; run `sandlite doctor` to find the cause");
        }
    }
    if failed == 0 { Code::Success } else { Code::Failure }
}

fn show(finding: &Finding, printer: &Printer) {
    let (word, colour) = if finding.result.is_ok() { ("ok", Colour::Green) } else { ("failed", Colour::Red) };
    let verdict = printer.paint(colour, format!("{word:<6}"));
    let Check { name, promise, .. } = finding.check;
    printer.line(&format!("{verdict}  {name:<10} {promise:<58} {:>7}", time::span(finding.took)));
    if let Err(error) = &finding.result {
        printer.line(&format!("{:<19}{}", "", printer.foreign(&format!("{error:#}"))));
    }
}

fn as_json(findings: &[Finding], prepared: Duration, took: Duration) -> serde_json::Value {
    let checks = findings.iter().map(|finding| {
        json!({
            "name": finding.check.name,
            "promise": finding.check.promise,
            "result": if finding.result.is_ok() { "ok" } else { "failed" },
            "reason": finding.result.as_ref().err().map(|error| format!("{error:#}")),
            "milliseconds": milliseconds(finding.took),
        })
    });
    json!({
        "checks": checks.collect::<Vec<_>>(),
        "failed": findings.iter().filter(|finding| finding.result.is_err()).count(),
        "prepared_milliseconds": milliseconds(prepared),
        "milliseconds": milliseconds(took),
    })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    static KEPT: Check = Check { name: "kept", promise: "is kept", run: |_| Ok(()) };
    static BROKEN: Check = Check { name: "broken", promise: "is broken", run: |_| anyhow::bail!("found 2, expected 1") };

    fn findings(checks: &[&'static Check]) -> Vec<Finding> {
        let bench = Bench { host: Host::builder().unpooled().build().unwrap(), directory: tempfile::tempdir().unwrap() };
        let printer = Printer::new(true, false);
        checks.iter().map(|check| examine(check, &bench, &printer)).collect()
    }

    #[test]
    fn a_broken_promise_is_a_failure() {
        let printer = Printer::new(true, false);
        assert_eq!(report(&findings(&[&KEPT]), Duration::ZERO, Duration::ZERO, &printer), Code::Success);
        assert_eq!(report(&findings(&[&KEPT, &BROKEN]), Duration::ZERO, Duration::ZERO, &printer), Code::Failure);
    }

    #[test]
    fn the_reason_of_a_failure_is_reported() {
        let found = as_json(&findings(&[&KEPT, &BROKEN]), Duration::ZERO, Duration::from_millis(3));
        assert_eq!((&found["failed"], &found["milliseconds"]), (&json!(1), &json!(3)));
        assert_eq!((&found["checks"][0]["result"], &found["checks"][0]["reason"]), (&json!("ok"), &json!(null)));
        assert_eq!(
            (&found["checks"][1]["result"], &found["checks"][1]["reason"]),
            (&json!("failed"), &json!("found 2, expected 1"))
        );
    }

    #[test]
    fn each_check_has_a_unique_name() {
        let names: std::collections::BTreeSet<&str> = checks::ALL.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), checks::ALL.len());
    }
}
