//! Running other programs, and locations.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::Outcome;

/// Returns the repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Returns cargo's target directory. A relative one is relative to the root, where [`cargo`] runs.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns cargo's own directory, with the sources of downloaded crates.
pub(crate) fn cargo_home() -> crate::Fallible<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    Ok(named.or(home).ok_or("neither CARGO_HOME nor HOME is set")?)
}

/// Returns the cargo that started us.
///
/// It does not get the variables that describe this package: build scripts that read them (such as that of `ring`) would run again
/// whenever a build by `cargo xtask` follows one by `cargo`, and everything above them would be built again.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    for (name, _) in std::env::vars_os().filter(|(name, _)| describes_package(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command
}

fn describes_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
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

/// Prints the start of a step, and how long after the first step it starts.
pub(crate) fn step(what: &str) {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    eprintln!("\x1b[1m==> {what}\x1b[0m \x1b[2m[{}]\x1b[0m", shown(BEGIN.elapsed()));
}

/// Returns a duration as minutes and seconds.
pub(crate) fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_minutes_and_seconds() {
        assert_eq!(shown(Duration::from_secs(545)), "9:05");
        assert_eq!(shown(Duration::from_millis(1_999)), "0:01");
    }
}
