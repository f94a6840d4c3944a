//! `cargo xtask cross [PLATFORM]`: builds the program for another platform, and runs `sandlite self-test` there, in an emulator if needed.
//!
//! The build has a target directory of its own, because nothing of it fits this machine.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::run::{cargo, output, root, run, step, target};
use crate::{Fallible, Outcome, guests};

/// A platform, and the programs of Debian's packages that build for it.
#[derive(Debug)]
struct Platform {
    name: &'static str,
    compiler: &'static str,
    archiver: &'static str,
    /// The program that runs other programs of this platform, if this machine cannot.
    emulator: Option<&'static str>,
    packages: &'static str,
}

const PLATFORMS: [Platform; 2] = [
    Platform {
        name: "aarch64-unknown-linux-gnu",
        compiler: "aarch64-linux-gnu-gcc",
        archiver: "aarch64-linux-gnu-ar",
        emulator: Some("qemu-aarch64-static"),
        packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static binfmt-support",
    },
    Platform { name: "x86_64-unknown-linux-musl", compiler: "musl-gcc", archiver: "ar", emulator: None, packages: "musl-tools" },
];

/// `cargo xtask cross`; without a name, for aarch64.
pub(crate) fn run_cross(args: &[String]) -> Outcome {
    let platform = match args {
        [] => &PLATFORMS[0],
        [name] => named(name)?,
        _ => return Err(format!("unknown options: {}", args.join(" ")).into()),
    };
    let Platform { name, compiler, packages, .. } = platform;
    let modules = guests::build()?;
    let install = format!("install the packages {packages} of Debian");
    output(Command::new(compiler).arg("--version"), &install)?;
    run(Command::new("rustup").args(["target", "add", name]), "install Rust with rustup")?;
    step(&format!("building sandlite for {name}"));
    let place = target().join("cross");
    run(&mut build(platform, &modules, &place), "install Rust with rustup")?;
    let program = place.join(name).join("release/sandlite");
    step(&format!("testing it{}", platform.emulator.map_or_else(String::new, |emulator| format!(" with {emulator}"))));
    let cache = place.join("cache");
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    let begin = Instant::now();
    let mut test = platform.emulator.map_or_else(|| Command::new(&program), |emulator| started(emulator, &program));
    let tested = test.args(["--json", "self-test"]).env("SANDLITE_CACHE", &cache).output();
    let tested = tested.map_err(|error| format!("cannot start {test:?} ({error}): {install}"))?;
    let report = summary(&String::from_utf8_lossy(&tested.stdout)).ok_or_else(|| failure(&tested.stderr))?;
    eprintln!("    {report}, {} s", begin.elapsed().as_secs());
    if tested.status.success() { Ok(()) } else { Err(format!("`sandlite self-test` failed on {name}: {report}").into()) }
}

fn named(name: &str) -> Fallible<&'static Platform> {
    let known: Vec<_> = PLATFORMS.iter().map(|platform| platform.name).collect();
    let found = PLATFORMS.iter().find(|platform| platform.name == name);
    found.ok_or_else(|| format!("unknown platform `{name}`: expected one of {}", known.join(", ")).into())
}

fn build(platform: &Platform, modules: &Path, place: &Path) -> Command {
    let Platform { name, compiler, archiver, .. } = platform;
    let mut cargo = cargo();
    cargo.args(["build", "--locked", "--release", "--quiet", "--bin", "sandlite", "--target", name, "--target-dir"]).arg(place);
    cargo.env(format!("CARGO_TARGET_{}_LINKER", name.replace('-', "_").to_uppercase()), compiler);
    let name = name.replace('-', "_");
    cargo.env(format!("CC_{name}"), compiler).env(format!("AR_{name}"), archiver).env("SANDLITE_GUESTS", modules);
    cargo.current_dir(root()).env_remove("RUSTFLAGS").env_remove("CARGO_TARGET_DIR");
    cargo
}

fn started(emulator: &str, program: &Path) -> Command {
    let mut command = Command::new(emulator);
    command.arg(program);
    command
}

fn failure(stderr: &[u8]) -> String {
    format!("`sandlite self-test` printed no report: {}", String::from_utf8_lossy(stderr).trim())
}

// The number of passed checks, and each failed one with its reason; `None` if it is not a report.
fn summary(report: &str) -> Option<String> {
    let report: Value = serde_json::from_str(report).ok()?;
    let checks = report["checks"].as_array()?;
    let failed = checks.iter().filter(|check| check["result"] != "ok");
    let failed: Vec<_> = failed.map(|check| format!("{}: {}", check["name"], check["reason"])).collect();
    let passed = checks.len() - failed.len();
    Some(match failed.as_slice() {
        [] => format!("{passed} of {} checks passed", checks.len()),
        failed => format!("{passed} of {} checks passed; {}", checks.len(), failed.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_platform_is_an_error() {
        assert_eq!(named("x86_64-unknown-linux-musl").unwrap().compiler, "musl-gcc");
        assert!(named("sparc").unwrap_err().to_string().starts_with("unknown platform `sparc`: expected one of aarch64"));
    }

    #[test]
    fn a_report_is_summed_up() {
        let report = r#"{"checks": [{"name": "files", "result": "ok", "reason": null}, {"name": "crash", "result": "failed", "reason": "no"}]}"#;
        assert_eq!(summary(report).unwrap(), "1 of 2 checks passed; \"crash\": \"no\"");
        assert_eq!(summary("qemu: error"), None);
    }
}
