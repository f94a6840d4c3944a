//! `cargo xtask bench`: comparative measurements in one run.

mod peers;

use std::process::Command;

use crate::run::{cargo, output, root, run, step, target};

const HELP: &str = "Usage: cargo xtask bench <benchmark>

  presets     compare the presets and no limits: prints a table, writes docs/presets.{md,json,svg}
  targets     check the performance targets against their references
  peers       compare with similar tools: writes docs/benchmarks.{md,svg}; --install installs them by name,
              --rounds N, --note TEXT adds a note to the page
  commands    measure commands: warm, in a new sandbox, with programs and pipelines
  python      check the bars of the Python package, and of reading while a command runs: [starts] [warm] [chunks] [memory]
              [files] [reads]
  server      check the targets of `sandlite serve`: [warm] [flood] [memory] [many] [ROUNDS]
  versions    measure versions beside none and beside git; reports whether each bar is met
  skills      measure runs of skills beside a container; reports whether each bar is met
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
            step("measuring the performance targets");
            run(ours()?.args(["targets", nanos.trim()]), CARGO)
        }
        Some("peers") => peers::peers(args),
        Some("python") => {
            crate::wheel::bench(args.get(1..).unwrap_or_default())?;
            run(cargo().args(["bench", "--workspace", "--bench", "reading"]), CARGO)
        }
        Some("server") => {
            let bench = ["bench", "--workspace", "--bench", "server", "--"];
            run(cargo().args(bench).args(args.iter().skip(1)), CARGO)
        }
        Some("commands") => run(cargo().args(["bench", "--workspace", "--bench", "commands"]), CARGO),
        Some("versions") => {
            run(cargo().args(["bench", "--package", "sqlite-fs", "--bench", "past"]), CARGO)?;
            run(cargo().args(["bench", "--workspace", "--bench", "git"]), CARGO)
        }
        Some("skills") => run(cargo().args(["bench", "--workspace", "--bench", "skills"]), CARGO),
        _ => Err(HELP.into()),
    }
}

// Our own program, and `sandlite` next to it. The whole workspace is built, because for a part of it cargo would select other
// features and build the engine a second time.
fn ours() -> crate::Fallible<Command> {
    run(cargo().args(["build", "--quiet", "--release", "--workspace", "--bins"]), CARGO)?;
    Ok(Command::new(target().join("release/sandlite-bench")))
}
