//! `cargo xtask dist`: builds the program for distribution, with its compiled guests next to it, and tests it with a first
//! command.
//!
//! Compilation takes longer than a first command, so users of such a distribution do not wait for it. `cargo build` cannot do it,
//! because the program itself compiles the guests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::run::{cargo, output, run, step, target};
use crate::{Fallible, Outcome, guests};

const CARGO: &str = "install Rust with rustup";

/// The directory that the program looks for next to itself (`cli/engine.rs`).
const SHIPPED: &str = "sandlite-guests";

/// `cargo xtask dist`.
pub(crate) fn build() -> Outcome {
    guests::build()?;
    step("building sandlite");
    run(cargo().args(["build", "--workspace", "--release", "--quiet", "--bin", "sandlite"]), CARGO)?;
    let place = target().join("dist");
    let program = assemble(&target().join("release/sandlite"), &place)?;
    step("testing it with an empty cache");
    let cache = target().join("dist-cache");
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    for args in [["bash", "-c", "echo hello"], ["python", "-c", "print('hello')"]] {
        let begin = Instant::now();
        output(Command::new(&program).args(args).env("SANDLITE_CACHE", &cache), CARGO)?;
        eprintln!("    first `sandlite {}`: {} ms", args[0], begin.elapsed().as_millis());
    }
    fs::remove_dir_all(&cache)?;
    eprintln!("    {}", place.display());
    Ok(())
}

/// Copies a program and its guests, compiled and packed, to a directory.
pub(crate) fn assemble(program: &Path, place: &Path) -> Fallible<PathBuf> {
    step("compiling the guests for other machines");
    let shipped = place.join(SHIPPED);
    fs::create_dir_all(&shipped)?;
    let compiled = output(Command::new(program).args(["guests", "compile"]).arg(place.with_extension("compiled")), CARGO)?;
    let mut kept = Vec::new();
    for path in compiled.lines().map(Path::new) {
        let name = format!("{}.xz", path.file_name().ok_or("a guest has no file name")?.to_string_lossy());
        let packed = shipped.join(&name);
        let is_new = fs::metadata(&packed).and_then(|there| Ok(there.modified()? >= fs::metadata(path)?.modified()?));
        if !is_new.unwrap_or(false) {
            fs::write(&packed, guests::pack(&fs::read(path)?)?)?;
        }
        kept.push(name);
    }
    for entry in fs::read_dir(&shipped)? {
        let entry = entry?;
        if !kept.iter().any(|name| entry.file_name() == name.as_str()) {
            fs::remove_file(entry.path())?;
        }
    }
    let copy = place.join("sandlite");
    // A running program cannot be overwritten.
    if copy.exists() {
        fs::remove_file(&copy)?;
    }
    fs::copy(program, &copy)?;
    Ok(copy)
}
