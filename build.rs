//! Links the `sandlite` program so that it starts fast.
//!
//! It has a fixed address, because relocating tables of pointers (190 pages of them) would take half a millisecond of each start. It
//! includes the C library if a static one is available: finding, mapping and binding three libraries takes as long again. Stacks,
//! heap and compiled guests are still placed at random. Distributing such a program also distributes glibc (LGPL-2.1-or-later), with
//! its terms; `SANDLITE_SHARED_LIBC=1` at build time excludes glibc.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries that Rust's standard library links.
const SHARED: [&str; 7] = ["c", "dl", "gcc_s", "m", "pthread", "rt", "util"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SANDLITE_SHARED_LIBC");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") != "linux" {
        return;
    }
    // The start-up files of musl are those of position-independent programs.
    if target("ENV") == "gnu" {
        link("-no-pie");
    }
    let is_wanted = std::env::var_os("SANDLITE_SHARED_LIBC").is_none();
    // For another platform, cargo names the compiler that links for it.
    let is_for_here = std::env::var("HOST") == std::env::var("TARGET");
    let compiler = std::env::var("RUSTC_LINKER").ok().or_else(|| is_for_here.then(|| "cc".to_owned()));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    if target("ENV") == "gnu"
        && is_wanted
        && compiler.is_some_and(|compiler| has_static_library(&compiler))
        && hide_shared(&out).is_ok()
    {
        link("-static");
        link(&format!("-L{}", out.display()));
        link("-Wl,-Bstatic,--start-group,-lgcc_eh,-lgcc,-lm,-lc,--end-group");
    }
}

fn link(argument: &str) {
    println!("cargo::rustc-link-arg-bin=sandlite={argument}");
}

// The compiler prints the bare name if the file does not exist; some systems have it in a separate package.
fn has_static_library(compiler: &str) -> bool {
    let answer = Command::new(compiler).arg("-print-file-name=libc.a").output();
    answer.is_ok_and(|answer| Path::new(String::from_utf8_lossy(&answer.stdout).trim()).is_absolute())
}

// Cargo has no option to link a single program statically, and Rust's own library requests the shared ones by name: these
// are found first, and are empty.
fn hide_shared(directory: &Path) -> std::io::Result<()> {
    SHARED.iter().try_for_each(|name| std::fs::write(directory.join(format!("lib{name}.so")), "/* linked statically */\n"))
}
