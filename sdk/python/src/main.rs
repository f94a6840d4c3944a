//! An empty program that cargo builds together with the library; see `Cargo.toml`.

fn main() {}
