//! Embeds the built guest modules, or says how to build them.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-env-changed=SANDLITE_GUESTS");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let directory = env::var_os("SANDLITE_GUESTS").map_or_else(|| root.join("../target/guests/dist"), PathBuf::from);
    let packed = directory.join("shell.wasm.xz");
    let sum = directory.join("shell.sha256");
    println!("cargo::rerun-if-changed={}", packed.display());
    println!("cargo::rerun-if-changed={}", sum.display());
    let Some(sha256) = fs::read_to_string(&sum).ok().and_then(|text| parse_sum(&text)).filter(|_| packed.exists()) else {
        println!("cargo::error=the guest modules are not built: run `cargo xtask guests` first");
        return;
    };
    let code = format!(
        "/// The shell and its utilities.\npub static SHELL: Guest = Guest {{ name: \"shell\", packed: include_bytes!({path:?}), sha256: {sha256:?}, entry: \"_start\" }};\n",
        path = packed.display().to_string(),
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("guests.rs");
    if let Err(error) = fs::write(&out, code) {
        println!("cargo::error=cannot write `{}`: {error}", out.display());
    }
}

fn parse_sum(text: &str) -> Option<[u8; 32]> {
    let text = text.trim();
    let mut sum = [0; 32];
    for (index, byte) in sum.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(sum)
}
