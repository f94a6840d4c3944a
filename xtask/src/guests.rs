//! `cargo xtask guests`: builds the guests to compressed WebAssembly, once per content.

mod prepare;
mod python;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::run::{cargo, cargo_home, output, root, run as run_program, step, target};

const TARGET: &str = "wasm32-wasip1";

/// The inputs of the modules: any change here triggers a rebuild.
const SOURCES: [&str; 9] = [
    "guests/abi",
    "guests/common",
    "guests/image",
    "guests/pattern",
    "guests/posix-regex",
    "guests/shell",
    "guests/sys",
    "guests/utilities",
    "guests/zip",
];

/// For fork, `__stack_pointer` is exported and the stack comes first, so that everything below it is dead.
const RUST_FLAGS: [&str; 4] = [
    "-Clink-arg=--export=__stack_pointer",
    "-Clink-arg=--stack-first",
    "-Clink-arg=-zstack-size=4194304",
    "-Ctarget-feature=+simd128,+bulk-memory",
];

/// The prefix of the paths of downloaded crates in a module, so that two machines build the same bytes.
const CRATES: &str = "/cargo";

/// Builds changed guests; with `--python-sci` also installs the scientific Python where `sandlite` looks for it.
pub(crate) fn run(args: &[String]) -> crate::Outcome {
    let with_scientific = match args {
        [] => false,
        [option] if option == "--python-sci" => true,
        _ => return Err(format!("unknown options: {}", args.join(" ")).into()),
    };
    let dist = build()?;
    if !with_scientific {
        return Ok(());
    }
    step("installing the scientific Python (98 MB to download, some minutes to compile)");
    let mut build = cargo();
    build.args(["build", "--workspace", "--release", "--quiet", "--bin", "sandlite"]).env("SANDLITE_GUESTS", dist);
    run_program(&mut build, "install Rust with rustup")?;
    let mut sandlite = Command::new(target().join("release/sandlite"));
    run_program(sandlite.args(["--verbose", "guests", "add", "python-sci"]), "run `cargo xtask guests` again")
}

/// Builds changed guests and returns the directory of the modules.
pub(crate) fn build() -> crate::Fallible<PathBuf> {
    build_holding(lock()?)
}

/// Guests that may be under construction on a thread of their own.
pub(crate) struct Building(Option<JoinHandle<Result<(), String>>>);

impl Building {
    /// Waits for the guests.
    pub(crate) fn finish(self) -> crate::Outcome {
        let built = self.0.map(JoinHandle::join);
        built.unwrap_or(Ok(Ok(()))).map_err(|_| "the build of the guests panicked")?.map_err(Into::into)
    }
}

/// Builds changed guests; in a checkout that has none, beside what the caller does next.
///
/// Linking the shell keeps one core busy for minutes, and a build of the host waits for the modules only where it embeds them
/// (`guests/build.rs`). Where modules exist, cargo would embed the old ones: then the caller waits.
pub(crate) fn start() -> crate::Fallible<Building> {
    let dist = target().join("guests/dist");
    if dist.exists() {
        build()?;
        return Ok(Building(None));
    }
    let lock = lock()?;
    Ok(Building(Some(thread::spawn(move || build_holding(lock).map(drop).map_err(|error| error.to_string())))))
}

fn build_holding(_lock: File) -> crate::Fallible<PathBuf> {
    let dist = target().join("guests/dist");
    python::build(&dist)?;
    shell(&dist)?;
    Ok(dist)
}

// Until the file is closed: the build script of `guests` waits for it, and a second `xtask guests` too.
fn lock() -> crate::Fallible<File> {
    let directory = target().join("guests");
    fs::create_dir_all(&directory)?;
    let file = File::create(directory.join("lock"))?;
    file.lock()?;
    Ok(file)
}

fn shell(dist: &Path) -> crate::Outcome {
    let key = key()?;
    let key_file = dist.join("shell.key");
    if fs::read_to_string(&key_file).is_ok_and(|built| built == key) && dist.join("shell.wasm.xz").exists() {
        return Ok(());
    }
    let started = Instant::now();
    install_target()?;
    step("building the guests (bash and its utilities, to WebAssembly)");
    let wasm = compile()?;
    step("preparing the shell's image");
    let bytes = prepare::prepare(&fs::read(&wasm)?)?;
    step("packing the guests");
    fs::create_dir_all(dist)?;
    let packed = pack(&bytes)?;
    fs::write(dist.join("shell.wasm.xz"), &packed)?;
    fs::write(dist.join("shell.sha256"), hex(&Sha256::digest(&bytes)))?;
    fs::write(&key_file, key)?;
    eprintln!(
        "    shell.wasm: {:.1} MB, packed {:.1} MB, in {} s",
        megabytes(bytes.len()),
        megabytes(packed.len()),
        started.elapsed().as_secs()
    );
    Ok(())
}

fn compile() -> crate::Fallible<PathBuf> {
    let directory = target().join("guests");
    let mut command = cargo();
    command.args(["build", "--package", "sandlite-shell", "--bin", "sandlite-shell", "--profile", "guest", "--target", TARGET]);
    let mut flags = OsString::from(RUST_FLAGS.join("\u{1f}"));
    flags.push("\u{1f}--remap-path-prefix=");
    flags.push(cargo_home()?);
    flags.push(format!("={CRATES}"));
    command.arg("--target-dir").arg(&directory).env("CARGO_ENCODED_RUSTFLAGS", flags).env_remove("RUSTFLAGS");
    run_program(&mut command, "install Rust with rustup")?;
    Ok(directory.join(TARGET).join("guest/sandlite-shell.wasm"))
}

fn install_target() -> crate::Outcome {
    let libraries =
        output(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]), "install Rust with rustup")?;
    if Path::new(libraries.trim()).is_dir() {
        return Ok(());
    }
    step("installing Rust's standard library for WebAssembly");
    let advice = format!("install rustup, or your distribution's Rust standard library for {TARGET}");
    run_program(Command::new("rustup").args(["target", "add", TARGET]), &advice).map_err(|error| {
        format!("Rust's standard library for {TARGET} is missing and could not be added ({error}): {advice}").into()
    })
}

/// Compresses a file that is distributed.
pub(crate) fn pack(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    compress(bytes, 6)
}

/// Compresses a file that stays on this machine: larger, in a fraction of the time.
pub(crate) fn pack_quickly(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    compress(bytes, 1)
}

fn compress(bytes: &[u8], preset: u32) -> std::io::Result<Vec<u8>> {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(preset))?;
    writer.write_all(bytes)?;
    writer.finish()
}

// Everything that determines the result: sources, dependencies, flags, profile, compiler.
fn key() -> crate::Fallible<String> {
    let mut hasher = Sha256::new();
    hasher.update(RUST_FLAGS.join(" "));
    hasher.update(CRATES);
    hasher.update(include_str!("guests/prepare.rs"));
    hasher.update(output(Command::new("rustc").arg("-vV"), "install Rust with rustup")?);
    hasher.update(profile()?);
    hasher.update(dependencies()?);
    for source in SOURCES {
        let path = root().join(source);
        for file in files(&path)? {
            hasher.update(file.strip_prefix(root())?.to_string_lossy().as_bytes());
            hasher.update([0]);
            hasher.update(fs::read(&file)?);
        }
    }
    Ok(hex(&hasher.finalize()))
}

// The guests' own crates with versions and features, not the whole lock file: the CLI's dependencies are not a reason to rebuild.
fn dependencies() -> crate::Fallible<String> {
    let mut command = cargo();
    command.args(["tree", "--package", "sandlite-shell", "--target", TARGET, "--edges", "normal,build"]);
    command.args(["--prefix", "none", "--no-dedupe", "--format", "{p} {f}"]);
    let tree = output(&mut command, "install Rust with rustup")?;
    // Lines with a path are crates of this workspace: their sources are hashed, and their location does not matter.
    let mut lines: Vec<&str> = tree.lines().filter(|line| !line.contains("(/")).collect();
    lines.sort_unstable();
    lines.dedup();
    Ok(lines.join("\n"))
}

fn profile() -> crate::Fallible<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    if !manifest.contains("\n[profile.guest]\n") {
        return Err("Cargo.toml has no [profile.guest]".into());
    }
    Ok(settings(&manifest))
}

// The settings of all profiles that matter, without comments: the guests inherit the settings of packages from `release`.
fn settings(manifest: &str) -> String {
    let sections = manifest.split("\n[").filter(|section| section.starts_with("profile.") && !section.starts_with("profile.d"));
    let lines = sections.flat_map(str::lines).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut left = vec![path.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            // Tests and fuzz targets are not part of the module.
            let skipped = ["tests", "fuzz", "target", "benches", "examples", "tests.rs"].iter().any(|name| path.ends_with(name));
            match path.is_dir() {
                _ if skipped => {}
                true => left.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    Ok(found)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[expect(clippy::cast_precision_loss, reason = "sizes are for display")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_in_the_manifest_do_not_change_the_key_of_the_guests() {
        let manifest =
            "[workspace]\n# a\n[profile.guest]\n# b\nopt-level = 3\n\n# c\n[profile.dev]\ndebug = 0\n[package]\nname = \"x\"\n";
        assert_eq!(settings(manifest), "profile.guest]\nopt-level = 3");
        assert_eq!(settings(manifest), settings(&manifest.replace("# b\n", "# other\n# words\n")));
        assert_ne!(settings(manifest), settings(&manifest.replace("= 3", "= 1")));
    }

    #[test]
    fn sources_of_tests_are_not_part_of_the_key_of_the_guests() {
        let sources = files(&root().join("guests/pattern")).unwrap();
        assert!(sources.iter().any(|path| path.ends_with("src/lib.rs")), "{sources:?}");
        assert!(!sources.iter().any(|path| path.ends_with("tests.rs")), "{sources:?}");
    }
}
