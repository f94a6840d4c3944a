//! `cargo xtask demo`: builds everything and gives a short tour.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::run::{cargo, run, shown, step, target};
use crate::{Outcome, dist, guests};

/// Runs `cargo xtask demo`.
pub(crate) fn run_demo() -> Outcome {
    let begin = Instant::now();
    let guests = guests::start()?;
    step("building sandlite, which takes some minutes the first time");
    // With the features of the whole workspace: the wheel and the tests then find every crate built.
    let built = run(cargo().args(["build", "--workspace", "--release", "--bin", "sandlite"]), "install Rust with rustup");
    guests.finish().and(built)?;
    let sandlite = dist::assemble(&target().join("release/sandlite"), &target().join("dist"))?;
    step(&format!("built in {} minutes: a tour", shown(begin.elapsed())));
    let tour = Tour::new(sandlite.clone())?;
    tour.take()?;
    println!("\nThe program is `{}`; its compiled guests are in the directory next to it.", sandlite.display());
    Ok(())
}

struct Tour {
    sandlite: PathBuf,
    directory: PathBuf,
}

impl Tour {
    fn new(sandlite: PathBuf) -> crate::Fallible<Self> {
        let directory = target().join("demo");
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        Ok(Self { sandlite, directory })
    }

    fn take(&self) -> Outcome {
        self.show(
            "one file is a whole computer: bash, utilities, files",
            &["--db", "agent.db", "bash", "-c", "echo hello | tr a-z A-Z > /greeting; cat /greeting"],
            true,
        )?;
        self.show(
            "files survive to the next command",
            &["--db", "agent.db", "bash", "-c", "wc -c /greeting; echo 'and history too' > ~/notes"],
            true,
        )?;
        self.show(
            "Python works on the same files, and bash can start it",
            &[
                "--db",
                "agent.db",
                "python",
                "-c",
                "import json; print(json.dumps({'greeting': open('/greeting').read().strip()}))",
            ],
            true,
        )?;
        self.show(
            "a preset stops a runaway loop",
            &["--db", "agent.db", "--preset", "strict", "bash", "-c", "while true; do :; done"],
            false,
        )?;
        self.show("every run is recorded", &["--db", "agent.db", "history"], true)?;
        self.show("a snapshot is one file", &["--db", "agent.db", "export", "snapshot.db"], true)?;
        self.show("continue from it elsewhere", &["--db", "twin.db", "import", "snapshot.db"], true)?;
        self.show("with the same state", &["--db", "twin.db", "bash", "-c", "cat /greeting ~/notes"], true)
    }

    fn show(&self, title: &str, args: &[&str], succeeds: bool) -> Outcome {
        println!("\n\x1b[2m# {title}\x1b[0m\n\x1b[32m$\x1b[0m sandlite {}", quoted(args));
        let status = Command::new(&self.sandlite).args(args).current_dir(Path::new(&self.directory)).status()?;
        if status.success() == succeeds { Ok(()) } else { Err(format!("the command ended with {status}").into()) }
    }
}

fn quoted(args: &[&str]) -> String {
    let quote = |arg: &&str| if arg.contains([' ', '|', ';', '>']) { format!("\"{arg}\"") } else { (*arg).to_owned() };
    args.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_a_person_would_type_them() {
        assert_eq!(quoted(&["--db", "a.db", "bash", "-c", "wc -c /x"]), "--db a.db bash -c \"wc -c /x\"");
    }
}
