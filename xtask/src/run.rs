//! Running other programs, and locations.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;

/// Returns the repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Returns cargo's target directory.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns the cargo that started us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a program to completion; `missing` is the hint if it is not installed.
pub(crate) fn run(command: &mut Command, missing: &str) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("cannot start `{name}` ({error}): {missing}"))?;
    if status.success() {
        return Ok(());
    }
    let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
    Err(format!("`{name} {}` failed", args.join(" ")).into())
}

/// Returns the output of a program.
pub(crate) fn output(command: &mut Command, missing: &str) -> crate::Fallible<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot start `{name}` ({error}): {missing}"))?;
    if !output.status.success() {
        return Err(format!("`{name}` failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Prints the start of a step.
pub(crate) fn step(what: &str) {
    eprintln!("\x1b[1m==> {what}\x1b[0m");
}
