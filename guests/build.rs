//! Embeds the built guest modules, or says how to build them.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Name, constant, documentation and entry of each guest.
const GUESTS: [(&str, &str, &str, &str); 2] = [
    ("shell", "SHELL", "The shell and its utilities.", "Entry::Start(\"_start\")"),
    ("python", "PYTHON", "CPython, already started.", "Entry::Status(\"bashkit_run\")"),
];

fn main() {
    println!("cargo::rerun-if-env-changed=SANDLITE_GUESTS");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let directory = env::var_os("SANDLITE_GUESTS").map_or_else(|| root.join("../target/guests/dist"), PathBuf::from);
    let mut code = String::new();
    for guest in GUESTS {
        match embed_guest(&directory, guest) {
            Some(item) => code.push_str(&item),
            None => return missing(),
        }
    }
    match embed_library(&directory) {
        Some(item) => code.push_str(&item),
        None => return missing(),
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("guests.rs");
    if let Err(error) = fs::write(&out, code) {
        println!("cargo::error=cannot write `{}`: {error}", out.display());
    }
}

fn missing() {
    println!("cargo::error=the guest modules are not built: run `cargo xtask guests` first");
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
         /// The licences of what is in [`PYTHON`] and its library.\npub static PYTHON_LICENSES: &str = include_str!({licenses:?});\n"
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
