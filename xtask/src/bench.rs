//! `cargo xtask bench`: measures, side by side in one run.

use crate::run::{cargo, root, run, step};

const HELP: &str = "Usage: cargo xtask bench <what>

  presets     the same work under each preset and without limits: a table, and docs/presets.{md,json,svg}
  commands    what a command costs: warm, in a new sandbox, with programs and pipelines
";

/// Runs one of the benchmarks.
pub(crate) fn bench(args: &[String]) -> crate::Outcome {
    let mut command = cargo();
    match args.first().map(String::as_str) {
        Some("presets") => {
            step("measuring the presets, some minutes");
            command.args(["run", "--quiet", "--release", "--package", "sandlite-bench", "--features", "unmetered", "--"]);
            command.arg(root().join("docs"));
        }
        Some("commands") => {
            command.args(["bench", "--package", "sandlite", "--bench", "commands"]);
        }
        _ => return Err(HELP.into()),
    }
    run(&mut command, "it is part of Rust")
}
