//! The programs a sandbox can run, as embedded WebAssembly.
//!
//! `cargo xtask guests` builds the modules; this crate carries them compressed, with the sha256 of their unpacked bytes
//! and the name of their entry point. Knows nothing of engines.

pub mod scientific;

use std::io::{self, Read};

pub use scientific::PYTHON_SCI;

include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// One guest module.
#[derive(Debug)]
pub struct Guest {
    /// Its name.
    pub name: &'static str,
    /// The module, compressed with xz; empty for one that is installed apart.
    packed: &'static [u8],
    /// SHA-256 of the unpacked module: what is unpacked is what was built (T-SUP-02).
    pub sha256: [u8; 32],
    /// The exported function that runs a program.
    pub entry: Entry,
    /// Files that are yet to be made part of the module when it is compiled: names and texts.
    pub glue: &'static [(&'static str, &'static str)],
    /// Where in memory the module notes that it has read its arguments and environment, if it does so once only: cleared
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
    /// `(i32, i32) -> i32`: takes where a text is and how long, here none; returns the exit status.
    Turn(&'static str),
}

/// Where [`PYTHON`] looks for [`PYTHON_LIBRARY`].
pub const PYTHON_LIBRARY_DIRECTORY: &str = "/usr/local/lib";

/// The names of Python.
const PYTHON_PROGRAMS: [&str; 3] = ["python", "python3", "python3.14"];

/// The largest module we ever unpack.
const MAX_MODULE_BYTES: u64 = 512 << 20;

impl Guest {
    /// Returns whether it comes with the program; else it is installed apart.
    #[must_use]
    pub fn is_carried(&self) -> bool {
        !self.packed.is_empty()
    }

    /// Bytes of the module as it is carried.
    #[must_use]
    pub fn packed_len(&self) -> usize {
        self.packed.len()
    }

    /// Unpacks the module.
    ///
    /// # Errors
    ///
    /// When the embedded bytes are not what was built.
    pub fn wasm(&self) -> io::Result<Vec<u8>> {
        let bytes = unpack(self.packed)?;
        if <[u8; 32]>::from(<sha2::Sha256 as sha2::Digest>::digest(&bytes)) != self.sha256 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its sha256 is not the one that was built"));
        }
        Ok(bytes)
    }
}

/// Unpacks what is packed as guests are.
///
/// # Errors
///
/// When it is not.
pub fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(packed, false).take(MAX_MODULE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns every program name with the guest that holds it.
pub fn programs() -> impl Iterator<Item = (&'static str, &'static Guest)> {
    let shell = include_str!("../programs.txt").lines().filter(|line| !line.is_empty()).map(|name| (name, &SHELL));
    shell.chain(PYTHON_PROGRAMS.map(|name| (name, &PYTHON)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_licence_of_everything_in_python_is_shipped() {
        for name in ["CPython", "libmpdec", "Expat", "HACL*", "zlib", "SQLite", "wasi-libc and musl"] {
            assert!(PYTHON_LICENSES.lines().any(|line| line == format!("## {name}")), "{name}");
        }
        let (_, more) = PYTHON_LICENSES.split_once("from the package `rustpython-pylib`").unwrap();
        for text in ["`unittest`", "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2", "CWI LICENSE AGREEMENT"] {
            assert!(more.contains(text), "{text}");
        }
    }
}
