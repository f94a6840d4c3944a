//! Compiled guests on disk: compiled once per module, engine version and settings, then mapped into memory at each start.
//!
//! The only `unsafe` of this crate is here: the engine trusts compiled code, so it may only come from a directory that is
//! ours alone (0700), with the hash it was written with (T-SUP-02).
#![expect(unsafe_code, reason = "wasmtime can only load compiled modules through `unsafe`")]
#![expect(clippy::disallowed_methods, reason = "the cache is the one part of the runtime that has files of its own")]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use guests::Guest;
use wasmtime::{Engine, Module};

use super::Progress;
use crate::Error;

/// Bytes of the BLAKE3 hash that each file ends with.
const HASH: usize = 32;

/// The directory of compiled guests.
pub(super) struct Cache {
    directory: Option<PathBuf>,
}

impl Cache {
    /// The cache in `directory`, or in the user's own place for such things.
    pub(super) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory: directory.or_else(default_directory) }
    }

    /// The compiled module of a guest: loaded, or compiled now and kept.
    ///
    /// A cache that cannot be used costs time, never correctness: the module is then compiled for this program alone.
    pub(super) fn module(&self, engine: &Engine, guest: &'static Guest, progress: Option<&Progress>) -> Result<Module, Error> {
        let name = file_name(engine, guest);
        if let Some(module) = self.load(engine, &name) {
            return Ok(module);
        }
        if let Some(progress) = progress {
            progress(&format!("compiling the {} guest for this machine (once)", guest.name));
        }
        let wasm = guest.wasm().map_err(|source| Error::Guest { name: guest.name, source })?;
        let compiled = engine.precompile_module(&wasm).map_err(Error::engine("compiling a guest"))?;
        if self.store(&name, &compiled).is_ok()
            && let Some(module) = self.load(engine, &name)
        {
            return Ok(module);
        }
        // SAFETY: the bytes come from our own compiler, one statement ago.
        unsafe { Module::deserialize(engine, &compiled) }.map_err(Error::engine("loading a compiled guest"))
    }

    fn load(&self, engine: &Engine, name: &str) -> Option<Module> {
        let directory = self.directory.as_deref().filter(|directory| is_private(directory))?;
        let mut file = File::open(directory.join(name)).ok()?;
        check_hash(&mut file).ok()?;
        // SAFETY: the directory is ours alone, and the content of this very open file has the hash it was written with.
        unsafe { Module::deserialize_open_file(engine, file) }.ok()
    }

    // Written beside and renamed: another process sees the whole file or none.
    fn store(&self, name: &str, compiled: &[u8]) -> io::Result<()> {
        let directory = self.directory.as_deref().ok_or(io::ErrorKind::NotFound)?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        if !is_private(directory) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let partial = directory.join(format!("{name}.{}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        file.write_all(compiled)?;
        file.write_all(blake3::hash(compiled).as_bytes())?;
        fs::rename(&partial, directory.join(name))
    }
}

// A compiled module is an ELF file; the hash behind its end disturbs nobody.
fn check_hash(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len().checked_sub(HASH as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut hasher = blake3::Hasher::new();
    let copied = io::copy(&mut Read::by_ref(file).take(length), &mut hasher)?;
    let mut written = [0; HASH];
    file.read_exact(&mut written)?;
    file.rewind()?;
    if copied == length && hasher.finalize() == blake3::Hash::from_bytes(written) {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

fn is_private(directory: &Path) -> bool {
    let Ok(metadata) = fs::symlink_metadata(directory) else { return false };
    metadata.is_dir() && metadata.mode() & 0o077 == 0 && metadata.uid() == rustix::process::getuid().as_raw()
}

fn default_directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("SANDLITE_CACHE").or_else(|| {
        let base = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
        Some(base.join("sandlite"))
    })
}

fn file_name(engine: &Engine, guest: &Guest) -> String {
    let mut settings = Blake3Hasher(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut settings);
    guest.sha256.hash(&mut settings);
    format!("{}-{}.cwasm", guest.name, &settings.0.finalize().to_hex()[..32])
}

struct Blake3Hasher(blake3::Hasher);

impl Hasher for Blake3Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.0.finalize();
        u64::from_le_bytes(hash.as_bytes().first_chunk::<8>().copied().unwrap_or_default())
    }
}
