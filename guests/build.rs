//! Embeds the guest modules; builds them first in a checkout that has none.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Name, constant, documentation and entry of each guest.
const GUESTS: [(&str, &str, &str, &str); 2] = [
    ("shell", "SHELL", "The shell and its utilities.", "Entry::Start(\"_start\")"),
    ("python", "PYTHON", "CPython, already started.", "Entry::Status(\"bashkit_run\")"),
];

/// The platform of the modules.
const TARGET: &str = "wasm32-wasip1";

fn main() {
    println!("cargo::rerun-if-env-changed=SANDLITE_GUESTS");
    println!("cargo::rerun-if-changed=build.rs");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let given = env::var_os("SANDLITE_GUESTS").map(PathBuf::from);
    let workspace = root.join("..");
    let target = target(&workspace);
    let is_checkout = workspace.join("xtask/Cargo.toml").exists();
    // A packed crate carries the modules; a checkout builds them.
    let directory = match &given {
        Some(given) => given.clone(),
        None if is_checkout => target.join("guests/dist"),
        None => root.join("modules"),
    };
    if is_checkout {
        wait(&target.join("guests/lock"));
    }
    let mut code = code(&directory);
    // A directory that was named with the variable is not filled here.
    if code.is_none() && given.is_none() && is_checkout {
        if !has_target() {
            println!(
                "cargo::error=Rust's standard library for {TARGET} is missing, and the guest modules are built with it: run `rustup target add {TARGET}`, then build again"
            );
            return;
        }
        code = build(&workspace, &target).then(|| self::code(&directory)).flatten();
    }
    let Some(code) = code else {
        println!("cargo::error=the guest modules are missing in `{}`: run `cargo xtask guests`", directory.display());
        return;
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("guests.rs");
    if let Err(error) = fs::write(&out, code) {
        println!("cargo::error=cannot write `{}`: {error}", out.display());
    }
}

// The directory that `cargo xtask guests` uses with the same environment.
fn target(workspace: &Path) -> PathBuf {
    workspace.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

// `cargo xtask demo` and `test` build the guests concurrently with the host, and hold this lock meanwhile.
fn wait(lock: &Path) {
    if let Ok(file) = fs::File::open(lock) {
        // On a filesystem without locks the modules exist, or they are built below.
        let _ = file.lock();
    }
}

fn code(directory: &Path) -> Option<String> {
    let guests: Option<String> = GUESTS.into_iter().map(|guest| embed_guest(directory, guest)).collect();
    Some(guests? + &embed_library(directory)?)
}

// Whether the compiler can build for the guests. If it cannot be queried, the build itself reports the reason.
fn has_target() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    output.map_or(true, |output| !output.status.success() || Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

// `cargo install --path .` and `cargo build` in a fresh checkout come here first. The modules are built as `cargo xtask guests` builds them, in
// a target directory of its own: that of the outer build is locked.
fn build(workspace: &Path, target: &Path) -> bool {
    println!("cargo::warning=building the guest modules, which takes some minutes; `cargo xtask guests` shows the progress");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--quiet", "--package", "xtask", "--target-dir"]).arg(target.join("guests/xtask"));
    // `xtask` runs here, also if the outer build or the configuration of cargo is for another platform.
    if let Some(host) = env::var_os("HOST") {
        cargo.arg("--target").arg(host);
    }
    cargo.args(["--", "guests"]).current_dir(workspace).env("CARGO_TARGET_DIR", target);
    for (name, _) in env::vars_os() {
        if is_of_outer_build(&name.to_string_lossy()) {
            cargo.env_remove(&name);
        }
    }
    match cargo.output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            text.lines().rev().take(12).collect::<Vec<_>>().into_iter().rev().for_each(|line| println!("cargo::warning={line}"));
            false
        }
        Err(error) => {
            println!("cargo::warning=cannot start cargo: {error}");
            false
        }
    }
}

// Settings of the outer build do not apply to the inner one.
pub(crate) fn is_of_outer_build(name: &str) -> bool {
    let is_ours = ["CARGO_FEATURE_", "CARGO_CFG_", "CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| name.starts_with(start));
    let is_of_build = ["TARGET", "HOST", "PROFILE", "OPT_LEVEL", "DEBUG", "OUT_DIR", "NUM_JOBS"].contains(&name);
    let is_of_platform = ["CARGO_BUILD_TARGET", "CARGO_ENCODED_RUSTFLAGS"].contains(&name);
    let is_of_clippy = ["RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS"].contains(&name);
    is_ours || is_of_build || is_of_platform || is_of_clippy
}

fn embed_guest(directory: &Path, (name, constant, docs, entry): (&str, &str, &str, &str)) -> Option<String> {
    let packed = existing(directory.join(format!("{name}.wasm.xz")))?;
    let sum = existing(directory.join(format!("{name}.sha256")))?;
    let sha256 = parse_sum(&fs::read_to_string(sum).ok()?)?;
    Some(format!(
        "/// {docs}\npub static {constant}: Guest = Guest {{ name: {name:?}, packed: include_bytes!({packed:?}), sha256: {sha256:?}, entry: {entry}, glue: &[], told: None }};\n"
    ))
}

fn embed_library(directory: &Path) -> Option<String> {
    let library = existing(directory.join("python314.zip"))?;
    let more = existing(directory.join("python314-more.zip"))?;
    let licenses = existing(directory.join("python.licenses"))?;
    Some(format!(
        "/// Python's standard library, the files of [`PYTHON_LIBRARY_DIRECTORY`]: the module in [`PYTHON`] expects exactly \
         these bytes there.\n\
         pub static PYTHON_LIBRARY: [(&str, &[u8]); 2] = [(\"python314.zip\", include_bytes!({library:?})), \
         (\"python314-more.zip\", include_bytes!({more:?}))];\n\
         /// The licenses of the contents of [`PYTHON`] and its library.\npub static PYTHON_LICENSES: &str = include_str!({licenses:?});\n"
    ))
}

fn existing(path: PathBuf) -> Option<String> {
    println!("cargo::rerun-if-changed={}", path.display());
    path.exists().then(|| path.display().to_string())
}

fn parse_sum(text: &str) -> Option<[u8; 32]> {
    let text = text.trim();
    let mut sum = [0; 32];
    for (index, byte) in sum.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(sum)
}
