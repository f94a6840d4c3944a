//! `sandlite doctor`: tests whether this machine and this installation work.

use std::time::Instant;

use runtime::{Command, Host, Sandbox};
use serde_json::json;

use crate::args::Global;
use crate::exit::Code;
use crate::printer::{Colour, Printer};
use crate::time;

/// The result of one test.
struct Finding {
    about: &'static str,
    verdict: Verdict,
    detail: String,
    fix: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Odd,
    Bad,
}

impl Finding {
    fn good(about: &'static str, detail: impl Into<String>) -> Self {
        Self { about, verdict: Verdict::Good, detail: detail.into(), fix: None }
    }

    fn odd(about: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { about, verdict: Verdict::Odd, detail: detail.into(), fix: Some(fix.into()) }
    }

    fn bad(about: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { about, verdict: Verdict::Bad, detail: detail.into(), fix: Some(fix.into()) }
    }
}

pub(crate) fn run(global: &Global, printer: &Printer) -> anyhow::Result<Code> {
    let mut findings = vec![Finding::good("sandlite", format!("version {}", env!("CARGO_PKG_VERSION"))), platform()];
    findings.extend(memory());
    findings.extend(address_space());
    match crate::engine::settings().build() {
        Ok(host) => {
            findings.push(Finding::good("engine", "starts"));
            let usable = host.cache_directory().is_none_or(|directory| !directory.exists() || host.cache_is_private());
            let missing = uncompiled(&host);
            let versions = [("bash", Command::bash("echo $BASH_VERSION")), ("python", Command::python(PYTHON_VERSION))];
            let run = versions.map(|(name, command)| match usable {
                true => guest(&host, name, command),
                false => Finding::odd(
                    name,
                    "skipped: without a cache, it is compiled at every start",
                    "fix the cache, then run `sandlite doctor` again",
                ),
            });
            findings.push(cache(&host));
            let left = uncompiled(&host);
            let prepared: Vec<_> = missing.into_iter().filter(|name| !left.contains(name)).collect();
            if !prepared.is_empty() {
                findings.push(Finding::good("guests", format!("prepared {} for this machine", prepared.join(", "))));
            }
            findings.extend(run);
        }
        Err(error) => {
            findings.push(Finding::bad("engine", format!("{error:#}"), "use 64-bit Linux on x86-64, the tested platform"))
        }
    }
    findings.extend(database(global, printer));
    printer.progress().clear();
    tell(&findings, printer);
    let broken = findings.iter().any(|finding| finding.verdict == Verdict::Bad);
    Ok(if broken { Code::Failure } else { Code::Success })
}

const PYTHON_VERSION: &str = "import platform; print(platform.python_version())";

fn tell(findings: &[Finding], printer: &Printer) {
    let word = |verdict| match verdict {
        Verdict::Good => "ok",
        Verdict::Odd => "note",
        Verdict::Bad => "broken",
    };
    if printer.is_json() {
        let list: Vec<_> = findings
            .iter()
            .map(
                |found| json!({ "about": found.about, "verdict": word(found.verdict), "detail": found.detail, "fix": found.fix }),
            )
            .collect();
        printer.json(&json!({ "findings": list }));
        return;
    }
    for found in findings {
        let colour = match found.verdict {
            Verdict::Good => Colour::Green,
            Verdict::Odd => Colour::Yellow,
            Verdict::Bad => Colour::Red,
        };
        let verdict = printer.paint(colour, format!("{:<6}", word(found.verdict)));
        printer.line(&format!("{verdict}  {:<10} {}", found.about, printer.foreign(&found.detail)));
        if let Some(fix) = &found.fix {
            printer.line(&format!("{:<19}{}", "", printer.paint(Colour::Cyan, fix)));
        }
    }
}

fn platform() -> Finding {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let detail = format!("{system} on {machine}, {cores} cores");
    if (system, machine) == ("linux", "x86_64") {
        Finding::good("platform", detail)
    } else {
        Finding::odd("platform", detail, "Sandlite is tested on x86-64 Linux; please report how it works here")
    }
}

/// Less than one command may use with the `normal` preset.
const LITTLE_MEMORY: u64 = 768 << 20;

fn memory() -> Option<Finding> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let bytes = line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)?;
    let detail = format!("{} available", time::size(bytes));
    Some(if bytes < LITTLE_MEMORY {
        Finding::odd("memory", detail, "the preset `normal` allows 768 MB per command: use `--preset strict` or `--memory`")
    } else {
        Finding::good("memory", detail)
    })
}

// Guests use large reservations of address space, which are free but must be permitted.
fn address_space() -> Option<Finding> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit = line.split_whitespace().next()?;
    Some(if limit == "unlimited" {
        Finding::good("addresses", "unlimited")
    } else {
        Finding::bad(
            "addresses",
            format!("limited to {limit} bytes"),
            "run `ulimit -v unlimited`: the engine reserves address space",
        )
    })
}

// Available guests without a compiled module in the cache.
fn uncompiled(host: &Host) -> Vec<&'static str> {
    let guests = host.guests().into_iter().filter(|guest| guest.installed && guest.compiled_bytes.is_none());
    guests.map(|guest| guest.name).collect()
}

fn cache(host: &Host) -> Finding {
    const FIX: &str = "set SANDLITE_CACHE to a directory that only you can write (`chmod 700`)";
    let Some(directory) = host.cache_directory() else {
        return Finding::odd("cache", "no cache directory: guests are compiled at every start", FIX);
    };
    let shown = directory.display().to_string();
    if directory.exists() && !host.cache_is_private() {
        return Finding::bad("cache", format!("{shown} is writable by others, so it is not used"), FIX);
    }
    let bytes: u64 = host.guests().iter().filter_map(|guest| guest.compiled_bytes).sum();
    let stale = match host.stale_bytes() {
        0 => String::new(),
        bytes => format!("; {} from other versions: remove with `sandlite guests prune`", time::size(bytes)),
    };
    Finding::good("cache", format!("{shown} ({}{stale})", time::size(bytes)))
}

fn guest(host: &Host, name: &'static str, command: Command) -> Finding {
    let begin = Instant::now();
    let output = Sandbox::builder().host(host).open().and_then(|sandbox| sandbox.run(command));
    let took = time::span(begin.elapsed());
    match output {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout);
            Finding::good(name, format!("{} runs in {took}", version.trim()))
        }
        Ok(output) => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            Finding::bad(name, format!("exit {}: {}", output.status.code(), complaint.trim()), "reinstall Sandlite")
        }
        Err(error) => Finding::bad(name, error.to_string(), error.hint().unwrap_or_else(|| "reinstall Sandlite".to_owned())),
    }
}

fn database(global: &Global, printer: &Printer) -> Option<Finding> {
    let path = super::database(global).filter(|path| path.exists())?;
    let shown = path.display();
    let checked = super::looking(global, printer).and_then(|sandbox| Ok(sandbox.check()?));
    Some(match checked {
        Ok(broken) if broken.is_empty() => Finding::good("sandbox", format!("{shown} is intact")),
        Ok(broken) => {
            let problems = time::count(broken.len(), "problem");
            Finding::bad("sandbox", format!("{shown} has {problems}"), "list them with `sandlite check`")
        }
        Err(error) => Finding::bad("sandbox", format!("{shown}: {error}"), "restore an exported snapshot"),
    })
}
