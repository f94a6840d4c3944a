//! `sandlite bench`: measures the overhead of the presets on this machine.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use sandlite_bench::{Effort, Report};
use serde_json::Value;

use crate::args::Bench;
use crate::exit::Code;
use crate::printer::{Colour, Printer};

/// Differences below this are reported as unchanged, because repeated measurements vary by as much.
const NOISE: f64 = 0.10;

pub(crate) fn run(args: &Bench, printer: &Printer) -> anyhow::Result<Code> {
    // Read before measuring, so that an unusable file is reported at once.
    let old = args.compare.as_deref().map(read).transpose()?;
    let effort = if args.thorough { Effort::Thorough } else { Effort::Quick };
    let report = sandlite_bench::presets(effort, |step| {
        printer.verbose(step);
        printer.progress().clear();
        printer.progress().spin(step);
    })?;
    printer.progress().clear();
    if let Some(path) = &args.save {
        super::write_whole(path, format!("{:#}\n", report.json()).as_bytes())?;
    }
    if let Some(path) = &args.svg {
        super::write_whole(path, report.svg().as_bytes())?;
    }
    let differences = old.as_ref().map(|old| differences(&report, old));
    if printer.is_json() {
        let mut value = report.json();
        if let Some(differences) = differences {
            value["compared"] = differences.into_iter().map(|difference| difference.json()).collect();
        }
        printer.json(&value);
        return Ok(Code::Success);
    }
    printer.line(report.table().trim_end());
    if let Some(differences) = differences {
        printer.line("");
        tell(&differences, printer);
    }
    Ok(Code::Success)
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let value: Value = serde_json::from_str(&text).with_context(|| format!("`{}` is not JSON", path.display()))?;
    if !value["rows"].is_array() {
        anyhow::bail!("`{}` is not a report of `sandlite bench --save`", path.display());
    }
    Ok(value)
}

/// A figure before and now.
#[derive(Debug, PartialEq)]
struct Difference {
    language: String,
    workload: String,
    column: String,
    before: u64,
    now: u64,
}

impl Difference {
    /// Returns the current figure relative to the earlier one.
    fn ratio(&self) -> f64 {
        self.now as f64 / self.before.max(1) as f64
    }

    fn json(&self) -> Value {
        serde_json::json!({
            "language": self.language,
            "workload": self.workload,
            "column": self.column,
            "before_micros": self.before,
            "micros": self.now,
            "ratio": self.ratio(),
        })
    }
}

// Only measurements that completed both times can be compared.
fn differences(report: &Report, old: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    for row in &report.rows {
        let rows = old["rows"].as_array().into_iter().flatten();
        let before = rows.clone().find(|old| old["language"] == row.language && old["workload"] == row.workload);
        for cell in row.cells.iter().filter(|cell| cell.stopped.is_none()) {
            let cells = before.and_then(|row| row["cells"].as_array()).into_iter().flatten();
            let same = cells.clone().find(|old| old["column"] == cell.column && old["stopped"].is_null());
            if let Some(before) = same.and_then(|old| old["micros"].as_u64()) {
                found.push(Difference {
                    language: row.language.to_owned(),
                    workload: row.workload.to_owned(),
                    column: cell.column.to_owned(),
                    before,
                    now: cell.micros,
                });
            }
        }
    }
    found
}

fn tell(differences: &[Difference], printer: &Printer) {
    printer.line(&printer.paint(Colour::Bold, "compared:      before          now"));
    for difference in differences {
        let ratio = difference.ratio();
        let (word, colour) = match ratio {
            ratio if ratio > 1.0 + NOISE => ("slower", Colour::Red),
            ratio if ratio < 1.0 - NOISE => ("faster", Colour::Green),
            _ => ("the same", Colour::Dim),
        };
        printer.line(&format!(
            "{:>18} µs {:>9} µs  {}  {} {}, {}",
            difference.before,
            difference.now,
            printer.paint(colour, format!("{ratio:>5.2}x {word:<8}")),
            difference.language,
            difference.workload,
            difference.column,
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_compared_with_its_own_past_only() {
        let cell = |column, micros, stopped: Option<&str>| sandlite_bench::Cell {
            column,
            micros,
            fuel: 0,
            memory: 0,
            stopped: stopped.map(str::to_owned),
        };
        let report = |cells| Report {
            machine: String::new(),
            version: "0",
            rounds: 1,
            rows: vec![sandlite_bench::Row { language: "bash", workload: "echo", cells }],
        };
        let old = report(vec![cell("strict", 100, Some("wall")), cell("normal", 200, None)]).json();
        let new = report(vec![cell("strict", 100, None), cell("normal", 300, None), cell("permissive", 1, None)]);
        let found = differences(&new, &old);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].column.as_str(), found[0].ratio()), ("normal", 1.5));
    }
}
