//! `cargo xtask bench`: measures, side by side in one run.

mod peers;

use std::process::Command;

use crate::run::{cargo, output, root, run, step, target};

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
    match args.first().map(String::as_str) {
        Some("presets") => {
            step("measuring the presets, some minutes");
            run(ours()?.arg("presets").arg(root().join("docs")), CARGO)
        }
        Some("targets") => {
            step("measuring crate bashkit");
            let mut theirs = cargo();
            theirs.args(["run", "--quiet", "--release"]).current_dir(root().join("benches/bashkit"));
            let nanos = output(&mut theirs, CARGO)?;
            step("measuring what is promised");
            run(ours()?.args(["targets", nanos.trim()]), CARGO)
        }
        Some("peers") => peers::peers(args),
        Some("commands") => run(cargo().args(["bench", "--workspace", "--bench", "commands"]), CARGO),
        _ => Err(HELP.into()),
    }
}

// Our own program, and `sandlite` beside it. The whole workspace is built: for a part of it cargo would choose other features,
// and build the engine a second time.
fn ours() -> crate::Fallible<Command> {
    run(cargo().args(["build", "--quiet", "--release", "--workspace", "--bins"]), CARGO)?;
    Ok(Command::new(target().join("release/sandlite-bench")))
}
