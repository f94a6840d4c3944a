//! The programs a sandbox can run, as embedded WebAssembly.
//!
//! `cargo xtask guests` builds the modules; this crate carries them compressed, with the sha256 of their unpacked bytes
//! and the name of their entry point. Knows nothing of engines.

#[cfg(test)]
#[expect(dead_code, reason = "cargo runs the build script; the tests call some of its functions")]
#[path = "../build.rs"]
mod build_script;

pub mod scientific;

use std::io::{self, Read};

pub use scientific::PYTHON_SCI;

include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// One guest module.
#[derive(Debug)]
pub struct Guest {
    /// Its name.
    pub name: &'static str,
    /// The module, compressed with xz; empty for one that is installed separately.
    packed: &'static [u8],
    /// SHA-256 of the unpacked module, checked when it is unpacked (T-SUP-02).
    pub sha256: [u8; 32],
    /// The exported function that runs a program.
    pub entry: Entry,
    /// Files that become part of the module when it is compiled: names and texts.
    pub glue: &'static [(&'static str, &'static str)],
    /// The address at which the module records that it has read its arguments and environment, if it reads them only once: cleared
    /// before each call of its entry.
    pub told: Option<u32>,
}

/// An exported function that runs a program, by its name and shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `() -> ()`: returning is success.
    Start(&'static str),
    /// `() -> i32`: returns the exit status.
    Status(&'static str),
    /// `(i32, i32) -> i32`: takes the address and length of a text, here none; returns the exit status.
    Turn(&'static str),
}

/// The directory in which [`PYTHON`] searches for [`PYTHON_LIBRARY`].
pub const PYTHON_LIBRARY_DIRECTORY: &str = "/usr/local/lib";

/// The names of Python.
const PYTHON_PROGRAMS: [&str; 3] = ["python", "python3", "python3.14"];

/// Maximum size of an unpacked module.
const MAX_MODULE_BYTES: u64 = 512 << 20;

impl Guest {
    /// Returns whether it is part of the program; otherwise it is installed separately.
    #[must_use]
    pub fn is_carried(&self) -> bool {
        !self.packed.is_empty()
    }

    /// Returns the number of compressed bytes.
    #[must_use]
    pub fn packed_len(&self) -> usize {
        self.packed.len()
    }

    /// Unpacks the module.
    ///
    /// # Errors
    ///
    /// Returns an error if the embedded bytes differ from the built ones.
    pub fn wasm(&self) -> io::Result<Vec<u8>> {
        let bytes = unpack(self.packed)?;
        if <[u8; 32]>::from(<sha2::Sha256 as sha2::Digest>::digest(&bytes)) != self.sha256 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its sha256 is not the one that was built"));
        }
        Ok(bytes)
    }
}

/// Unpacks bytes that were compressed like a guest.
///
/// # Errors
///
/// Returns an error if the bytes are not valid.
pub fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(packed, false).take(MAX_MODULE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns every program name with the guest that contains it.
pub fn programs() -> impl Iterator<Item = (&'static str, &'static Guest)> {
    let shell = include_str!("../programs.txt").lines().filter(|line| !line.is_empty()).map(|name| (name, &SHELL));
    shell.chain(PYTHON_PROGRAMS.map(|name| (name, &PYTHON)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // With the platform of the outer build, `xtask` would be built for a machine that it does not run on.
    #[test]
    fn settings_of_the_outer_build_do_not_reach_the_build_of_the_modules() {
        for name in ["CARGO_BUILD_TARGET", "CARGO_ENCODED_RUSTFLAGS", "CARGO_FEATURE_MCP", "TARGET", "RUSTC_WORKSPACE_WRAPPER"] {
            assert!(build_script::is_of_outer_build(name), "{name}");
        }
        for name in ["PATH", "CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_TOOLCHAIN", "HTTPS_PROXY"] {
            assert!(!build_script::is_of_outer_build(name), "{name}");
        }
    }

    #[test]
    fn the_license_of_everything_in_python_is_included() {
        for name in ["CPython", "libmpdec", "Expat", "HACL*", "zlib", "SQLite", "wasi-libc and musl"] {
            assert!(PYTHON_LICENSES.lines().any(|line| line == format!("## {name}")), "{name}");
        }
        let (_, more) = PYTHON_LICENSES.split_once("from the package `rustpython-pylib`").unwrap();
        for text in ["`unittest`", "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2", "CWI LICENSE AGREEMENT"] {
            assert!(more.contains(text), "{text}");
        }
    }
}
