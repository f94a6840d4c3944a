//! `cargo xtask bench`: measures, side by side in one run.

mod peers;

use crate::run::{cargo, output, root, run, step};

const HELP: &str = "Usage: cargo xtask bench <what>

  presets     the same work under each preset and without limits: a table, and docs/presets.{md,json,svg}
  targets     what is promised, each beside what it is compared with
  peers       the same work in what else one could use: docs/benchmarks.{md,svg}; --install gets the neighbours by name,
              --rounds N, --note TEXT for the end of the page
  commands    what a command costs: warm, in a new sandbox, with programs and pipelines
";

const CARGO: &str = "it is part of Rust";

/// Runs one of the benchmarks.
pub(crate) fn bench(args: &[String]) -> crate::Outcome {
    let ours = ["run", "--quiet", "--release", "--package", "sandlite-bench", "--"];
    match args.first().map(String::as_str) {
        Some("presets") => {
            step("measuring the presets, some minutes");
            run(cargo().args(ours).arg("presets").arg(root().join("docs")), CARGO)
        }
        Some("targets") => {
            run(cargo().args(["build", "--quiet", "--release", "--package", "sandlite"]), CARGO)?;
            step("measuring crate bashkit");
            let mut theirs = cargo();
            theirs.args(["run", "--quiet", "--release"]).current_dir(root().join("benches/bashkit"));
            let nanos = output(&mut theirs, CARGO)?;
            step("measuring what is promised");
            run(cargo().args(ours).args(["targets", nanos.trim()]), CARGO)
        }
        Some("peers") => peers::peers(args),
        Some("commands") => run(cargo().args(["bench", "--package", "sandlite", "--bench", "commands"]), CARGO),
        _ => Err(HELP.into()),
    }
}
