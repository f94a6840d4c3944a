//! How the `sandlite` program is linked.
//!
//! At a fixed address: half a millisecond of each start would go into relocating tables of pointers (190 pages of them), and
//! `sandlite bash -c 'echo hi'` is to be a thing one does without thinking. Stacks, heap, libraries and compiled guests are
//! still placed at random. And with the unwinder inside: one library fewer to find, map and bind.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bin=sandlite=-no-pie");
        if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
            println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
        }
    }
}
