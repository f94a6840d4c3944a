//! `cargo xtask dist`: builds everything that is distributed, in `target/dist/packages`: an archive, a Debian package, the wheel, the bill of
//! materials and the checksums. Each is tested where it would be installed.
//!
//! Two builds in two directories have the same bytes. Paths of this machine are removed from the program, so it is built in a target
//! directory of its own, with other flags than the tests, and with the profile `dist`, which optimizes everything. Compiled guests are
//! included: compiling them takes longer than a first command, and `cargo build` cannot do it, because the program itself is the compiler.

mod archive;
mod bill;
mod components;
mod debian;
pub(crate) mod licenses;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::run::{cargo, cargo_home, output, root, run, step, target};
use crate::{Fallible, Outcome, guests, wheel};
use archive::{Node, Tree, gzip, tar};
use debian::Content;

const CARGO: &str = "install Rust with rustup";

/// The directory that the program looks for next to itself (`cli/engine.rs`).
const SHIPPED: &str = "sandlite-guests";

/// The date of all files where neither `SOURCE_DATE_EPOCH` nor git has one: the first day of 2026.
const DATE: u64 = 1_767_225_600;

/// `cargo xtask dist`; with `--no-build`, packs what was built before.
pub(crate) fn run_dist(args: &[String]) -> Outcome {
    match args {
        [] => build(Work::All),
        [option] if option == "--no-build" => build(Work::Packing),
        _ => Err(format!("unknown options: {}", args.join(" ")).into()),
    }
}

/// The extent of the work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    All,
    Packing,
}

fn build(work: Work) -> Outcome {
    let modules = guests::build()?;
    let (place, build) = (target().join("dist/packages"), target().join("dist-build"));
    let (version, date) = (env!("CARGO_PKG_VERSION"), date()?);
    if work == Work::All {
        step("building the program and the Python package without paths of this machine");
        compile(&build, &modules)?;
    }
    let program = strip(&build.join("dist/sandlite"))?;
    require_static(&fs::read(&program)?)?;
    step("compiling the guests for other machines");
    let compiled = compiled_guests(&program, &build)?;
    step("collecting licenses and components");
    let components = components::components()?;
    let bill = bill::bill(&components, &modules, version, date)?;
    let content = content(version, &program, compiled, bill.into_bytes())?;
    let name = format!("sandlite-{version}-x86_64-linux");
    let files = [
        (format!("{name}.tar.gz"), gzip(&tar(&unpacked(&name, &content), date)?)),
        (format!("sandlite_{version}_amd64.deb"), debian::package(&content, date)?),
        (format!("sandlite-{version}.cdx.json"), content.bill.clone()),
    ];
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    for (name, bytes) in &files {
        fs::write(place.join(name), bytes)?;
    }
    wheel::pack_for_others(&build.join("dist/deps/lib_native.so"), &place)?;
    write_sums(&place)?;
    test_archive(&place.join(format!("{name}.tar.gz")), &name)?;
    eprintln!("    {}", place.display());
    eprint!("{}", fs::read_to_string(place.join("SHA256SUMS"))?);
    Ok(())
}

/// Returns where the guests are that a program of the profile `release` has compiled for other machines: the demo and the wheel share them.
pub(crate) fn compiled_by_release() -> PathBuf {
    target().join("dist.compiled")
}

/// Copies a program and its guests, compiled and packed, to a directory: for the demo, which should not take minutes.
pub(crate) fn assemble(program: &Path, place: &Path) -> Fallible<PathBuf> {
    step("compiling the guests for other machines");
    let shipped = place.join(SHIPPED);
    fs::create_dir_all(&shipped)?;
    let compiled = output(Command::new(program).args(["guests", "compile"]).arg(compiled_by_release()), CARGO)?;
    let mut kept = Vec::new();
    for path in compiled.lines().map(Path::new) {
        let name = format!("{}.xz", path.file_name().ok_or("a guest has no file name")?.to_string_lossy());
        let packed = shipped.join(&name);
        let is_new = fs::metadata(&packed).and_then(|there| Ok(there.modified()? >= fs::metadata(path)?.modified()?));
        if !is_new.unwrap_or(false) {
            fs::write(&packed, guests::pack_quickly(&fs::read(path)?)?)?;
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

/// Returns the date of all files: of the release, if the caller sets it, else of the last commit.
pub(crate) fn date() -> Fallible<u64> {
    if let Ok(date) = std::env::var("SOURCE_DATE_EPOCH") {
        return date.parse().map_err(|_| format!("invalid SOURCE_DATE_EPOCH `{date}`: expected seconds since 1970").into());
    }
    let committed = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()), "install git");
    Ok(committed.ok().and_then(|date| date.trim().parse().ok()).unwrap_or(DATE))
}

fn compile(build: &Path, modules: &Path) -> Outcome {
    let mut cargo = cargo();
    cargo
        .args([
            "build",
            "--locked",
            "--workspace",
            "--profile",
            "dist",
            "--quiet",
            "--bin",
            "sandlite",
            "--bin",
            "sandlite-native",
            "--target-dir",
        ])
        .arg(build);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(build)?).env_remove("RUSTFLAGS").env_remove("CARGO_TARGET_DIR");
    // A C compiler writes paths into assertions.
    cargo.env(
        "CFLAGS",
        format!("-ffile-prefix-map={}=/cargo -ffile-prefix-map={}=/sandlite", cargo_home()?.display(), root().display()),
    );
    cargo.env("SANDLITE_GUESTS", modules).env("CARGO_INCREMENTAL", "0");
    run(&mut cargo, CARGO)
}

// Later prefixes win where several match. The linker's id of the program would depend on the names that `strip` removes.
fn flags(build: &Path) -> Fallible<OsString> {
    let mut flags = OsString::from("-Clink-arg=-Wl,--build-id=none");
    for (from, to) in [(cargo_home()?, "/cargo"), (root(), "/sandlite"), (build.to_owned(), "/build")] {
        flags.push("\u{1f}--remap-path-prefix=");
        flags.push(from);
        flags.push("=");
        flags.push(to);
    }
    Ok(flags)
}

// Names of functions are of no use without their debug information.
fn strip(program: &Path) -> Fallible<PathBuf> {
    let stripped = program.with_extension("stripped");
    run(Command::new("strip").arg("--strip-unneeded").arg("-o").arg(&stripped).arg(program), "install binutils")?;
    Ok(stripped)
}

/// Refuses a program that needs a loader, and thereby libraries of the machine it runs on.
fn require_static(program: &[u8]) -> Outcome {
    const INTERPRETER: u32 = 3;
    let kinds = segments(program).ok_or("the program is not a 64-bit ELF file")?;
    if kinds.contains(&INTERPRETER) {
        return Err(
            "the program is linked dynamically: install the static C library (`apt install libc6-dev` on Debian), and unset \
                    SANDLITE_SHARED_LIBC"
                .into(),
        );
    }
    Ok(())
}

// The types of the program headers of a 64-bit ELF file.
fn segments(elf: &[u8]) -> Option<Vec<u32>> {
    let number = |at: usize, length: usize| {
        let bytes = elf.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0u64, |number, byte| (number << 8) | u64::from(*byte)))
    };
    if elf.get(..5)? != b"\x7fELF\x02" {
        return None;
    }
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    (0..count).map(|index| u32::try_from(number(usize::try_from(table + index * size).ok()?, 4)?).ok()).collect()
}

fn compiled_guests(program: &Path, build: &Path) -> Fallible<Vec<(String, Vec<u8>)>> {
    let place = build.join("compiled");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    let listed = output(Command::new(program).args(["guests", "compile"]).arg(&place), CARGO)?;
    let mut guests = Vec::new();
    for path in listed.lines().map(Path::new) {
        let name = format!("{}.xz", path.file_name().ok_or("a guest has no file name")?.to_string_lossy());
        guests.push((name, guests::pack(&fs::read(path)?)?));
    }
    guests.sort();
    Ok(guests)
}

fn content(version: &str, program: &Path, guests: Vec<(String, Vec<u8>)>, bill: Vec<u8>) -> Fallible<Content> {
    let print = |args: &[&str]| output(Command::new(program).args(args), CARGO).map(String::into_bytes);
    let pages = program.with_extension("man");
    // Pages of an earlier version would be packed, too.
    if pages.exists() {
        fs::remove_dir_all(&pages)?;
    }
    fs::create_dir_all(&pages)?;
    run(Command::new(program).arg("man").arg(&pages), CARGO)?;
    let mut manual = Vec::new();
    for entry in fs::read_dir(&pages)? {
        let entry = entry?;
        manual.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    manual.sort();
    let completions = [print(&["completions", "bash"])?, print(&["completions", "zsh"])?, print(&["completions", "fish"])?];
    Ok(Content {
        version: version.to_owned(),
        program: fs::read(program)?,
        guests,
        manual,
        completions,
        licenses: print(&["licenses"])?,
        bill,
        changelog: fs::read(root().join("CHANGELOG.md"))?,
    })
}

fn unpacked(name: &str, content: &Content) -> Tree {
    let mut tree = Tree::new();
    let mut add = |path: &str, node: Node| drop(tree.insert(format!("{name}/{path}"), node));
    add("sandlite", Node::Program(content.program.clone()));
    for (guest, bytes) in &content.guests {
        add(&format!("{SHIPPED}/{guest}"), Node::File(bytes.clone()));
    }
    for (page, bytes) in &content.manual {
        add(&format!("man/{page}"), Node::File(bytes.clone()));
    }
    for (file, bytes) in ["sandlite.bash", "_sandlite", "sandlite.fish"].into_iter().zip(&content.completions) {
        add(&format!("completions/{file}"), Node::File(bytes.clone()));
    }
    add("LICENSES.txt", Node::File(content.licenses.clone()));
    add("CHANGELOG.md", Node::File(content.changelog.clone()));
    add("sandlite.cdx.json", Node::File(content.bill.clone()));
    tree
}

fn write_sums(place: &Path) -> Outcome {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(place)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut sums = String::new();
    for name in names {
        let sum = Sha256::digest(fs::read(place.join(&name))?);
        sums.push_str(&format!("{}  {name}\n", hex(&sum)));
    }
    Ok(fs::write(place.join("SHA256SUMS"), sums)?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// Unpacked with the system's tar, started with an empty cache and an empty environment, as on a machine that never saw it.
fn test_archive(archive: &Path, name: &str) -> Outcome {
    step("testing the archive with an empty cache");
    let place = target().join("dist-test");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&place), "install tar")?;
    let begin = Instant::now();
    let mut program = Command::new(place.join(name).join("sandlite"));
    run(program.arg("self-test").env_clear().env("SANDLITE_CACHE", place.join("cache")).current_dir(&place), CARGO)?;
    eprintln!("    `sandlite self-test`: {} ms", begin.elapsed().as_millis());
    Ok(fs::remove_dir_all(&place)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    // A test program of Rust is linked dynamically.
    #[test]
    fn a_dynamic_program_is_refused() {
        let program = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(require_static(&program).unwrap_err().to_string().starts_with("the program is linked dynamically"));
        assert!(require_static(b"#!/bin/sh").unwrap_err().to_string().contains("not a 64-bit ELF file"));
    }

    #[test]
    fn a_static_program_is_accepted() {
        // An ELF header with one program header, which loads.
        let mut elf = vec![0; 64 + 56];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        (elf[32], elf[54], elf[56], elf[64]) = (64, 56, 1, 1);
        require_static(&elf).unwrap();
        elf[64] = 3;
        require_static(&elf).unwrap_err();
    }
}
