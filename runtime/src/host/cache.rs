//! Compiled guests on disk: compiled once per module, engine version and settings, then mapped into memory at each start.
//!
//! This is the only file of this crate with `unsafe`: the engine trusts compiled code, so the code may only come from a private
//! directory (0700), from a private file (0600) with the hash with which it was written (T-SUP-02). Hashing 30 MB would dominate
//! each start, so a *seal* next to the file identifies the file that had the right hash: its inode, size and both times. The
//! kernel changes a file's ctime at every write, rename, link and change of attributes, so a file that was altered, copied or
//! restored does not match its seal and is hashed again.
#![expect(unsafe_code, reason = "wasmtime can only load compiled modules through `unsafe`")]
#![expect(clippy::disallowed_methods, reason = "the cache is the one part of the runtime that has files of its own")]

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use guests::Guest;
use sqlite_fs::NewFile;
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use super::engine::{self, Places};
use crate::Error;

/// Size of the BLAKE3 hash at the end of each file.
const HASH: usize = 32;

/// Maximum number of compiled modules per guest: of this version and of others that may still be in use.
const KEPT: usize = 8;

/// Maximum number of compiled custom programs.
const PROGRAMS_KEPT: usize = 64;

/// The prefix of their file names.
const PROGRAM: &str = "program-";

/// The prefix of the file names of shipped guests that were unpacked.
const UNPACKED: &str = "shipped-";

/// The directory of compiled guests.
pub(super) struct Cache {
    directory: Option<PathBuf>,
    shipped: Option<PathBuf>,
}

impl Cache {
    /// Creates the cache in `directory`, or in the user's default cache directory; missing modules may be in `shipped`.
    pub(super) fn new(directory: Option<PathBuf>, shipped: Option<PathBuf>) -> Self {
        Self { directory: directory.or_else(default_directory), shipped }
    }

    /// Returns the directory, whether or not it exists.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns whether the directory exists and is private.
    pub(super) fn is_usable(&self) -> bool {
        self.directory.as_deref().is_some_and(is_private)
    }

    /// Returns the size of a guest's compiled module, if it exists: compiled here, or unpacked from the shipped ones.
    pub(super) fn compiled_len(&self, engine: &Engine, guest: &'static Guest) -> Option<u64> {
        let directory = self.directory.as_deref()?;
        let length = |name: &str| {
            let found = fs::symlink_metadata(directory.join(name)).ok().filter(Metadata::is_file);
            found.map(|metadata| metadata.len())
        };
        let name = file_name(engine, guest);
        length(&name).or_else(|| length(&format!("{UNPACKED}{name}")))
    }

    /// Returns the compiled module of a guest, if it is in the cache: compiled here, or unpacked from the shipped ones.
    pub(super) fn compiled(&self, engine: &Engine, guest: &'static Guest) -> Option<Module> {
        let name = file_name(engine, guest);
        self.load(engine, &name).or_else(|| self.load(engine, &format!("{UNPACKED}{name}")))
    }

    /// Returns the compiled module of a guest, if it is in the cache or was shipped.
    pub(super) fn kept(&self, engine: &Engine, guest: &'static Guest) -> Option<Module> {
        let name = file_name(engine, guest);
        self.load(engine, &name).or_else(|| self.load_shipped(engine, guest, &name))
    }

    /// Compiles the module of a guest and stores it.
    ///
    /// An unusable cache costs only time: the module is then compiled for this process only.
    pub(super) fn compile(&self, engine: &Engine, guest: &'static Guest, wasm: &[u8]) -> Result<Module, Error> {
        let name = file_name(engine, guest);
        let compiled = engine.precompile_module(wasm).map_err(Error::engine("compiling a guest"))?;
        if self.store(&name, &compiled).is_ok()
            && let Some(module) = self.load(engine, &name)
        {
            return Ok(module);
        }
        // SAFETY: the bytes come from our own compiler, one statement ago.
        unsafe { Module::deserialize(engine, &compiled) }.map_err(Error::engine("loading a compiled guest"))
    }

    /// Returns the compiled module of a custom program, if it is in the cache.
    pub(super) fn program(&self, engine: &Engine, name: &str) -> Option<Module> {
        self.load(engine, name)
    }

    /// Stores a compiled custom program, and loads it.
    pub(super) fn keep_program(&self, engine: &Engine, name: &str, compiled: &[u8]) -> Result<Module, Error> {
        if self.store(name, compiled).is_ok() {
            let _ = self.forget_oldest_programs();
            if let Some(module) = self.load(engine, name) {
                return Ok(module);
            }
        }
        // SAFETY: the bytes come from our own compiler, in `host/programs.rs`.
        unsafe { Module::deserialize(engine, compiled) }.map_err(Error::engine("loading a compiled program"))
    }

    /// Returns a compiled custom component, if it is in the cache.
    pub(super) fn component(&self, engine: &Engine, name: &str) -> Option<Component> {
        let compiled = self.checked(name)?;
        // SAFETY: directory and file are private, and the bytes have the hash with which they were written.
        unsafe { Component::deserialize(engine, &compiled) }.ok()
    }

    /// Stores a compiled custom component, and loads it.
    pub(super) fn keep_component(&self, engine: &Engine, name: &str, compiled: &[u8]) -> Result<Component, Error> {
        if self.store(name, compiled).is_ok() {
            let _ = self.forget_oldest_programs();
        }
        // SAFETY: the bytes come from our own compiler, in `host/programs.rs`.
        unsafe { Component::deserialize(engine, compiled) }.map_err(Error::engine("loading a compiled program"))
    }

    // The engine cannot map a component from an open file, so its bytes are read, and hashed each time.
    fn checked(&self, name: &str) -> Option<Vec<u8>> {
        let directory = self.directory.as_deref().filter(|directory| is_private(directory))?;
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut file = OpenOptions::new().read(true).custom_flags(no_follow).open(directory.join(name)).ok()?;
        file.metadata().ok().filter(|metadata| metadata.is_file() && is_ours(metadata))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let (compiled, written) = bytes.split_last_chunk::<HASH>()?;
        (blake3::hash(compiled) == blake3::Hash::from_bytes(*written)).then(|| compiled.to_vec())
    }

    fn forget_oldest_programs(&self) -> io::Result<()> {
        let directory = self.directory.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let mut programs = Vec::new();
        for entry in fs::read_dir(directory)?.flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            if name.starts_with(PROGRAM) && name.ends_with(".cwasm") {
                programs.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        programs.sort_unstable_by(|a, b| b.cmp(a));
        for (_, path) in programs.iter().skip(PROGRAMS_KEPT) {
            fs::remove_file(path)?;
            let _ = fs::remove_file(path.with_extension("cwasm.seal"));
        }
        Ok(())
    }

    // A shipped guest. It is unpacked once, under a separate name: a module compiled for this exact machine is preferred.
    fn load_shipped(&self, engine: &Engine, guest: &'static Guest, name: &str) -> Option<Module> {
        let shipped = self.shipped.as_deref()?;
        let name = format!("{UNPACKED}{name}");
        if let Some(module) = self.load(engine, &name) {
            return Some(module);
        }
        let packed = fs::read(shipped.join(shipped_name(guest) + ".xz")).ok()?;
        let compiled = guests::unpack(&packed).ok()?;
        if self.store(&name, &compiled).is_ok()
            && let Some(module) = self.load(engine, &name)
        {
            return Some(module);
        }
        // SAFETY: the embedder vouches for the directory as for its own code (`HostBuilder::shipped`), and the engine rejects
        // code compiled for another version, other settings or a processor with more features.
        unsafe { Module::deserialize(engine, &compiled) }.ok()
    }

    fn load(&self, engine: &Engine, name: &str) -> Option<Module> {
        let directory = self.directory.as_deref().filter(|directory| is_private(directory))?;
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut file = OpenOptions::new().read(true).custom_flags(no_follow).open(directory.join(name)).ok()?;
        let metadata = file.metadata().ok().filter(|metadata| metadata.is_file() && is_ours(metadata))?;
        let (seal, identity) = (directory.join(format!("{name}.seal")), identity(&metadata));
        if fs::read(&seal).ok().as_deref() != Some(identity.as_bytes()) {
            check_hash(&mut file).ok()?;
            // Without a seal the next start hashes again, which is only slower.
            let _ = write_beside(&seal, &[identity.as_bytes()]);
        }
        // SAFETY: directory and file are private, and the content of this open file has the hash with which it was written:
        // checked now, or when it was sealed.
        unsafe { Module::deserialize_open_file(engine, file) }.ok()
    }

    fn store(&self, name: &str, compiled: &[u8]) -> io::Result<()> {
        let directory = self.directory.as_deref().ok_or(io::ErrorKind::NotFound)?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        if !is_private(directory) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        write_beside(&directory.join(name), &[compiled, blake3::hash(compiled).as_bytes()])?;
        // A module that cannot be removed only takes space.
        let _ = self.forget_oldest(name);
        Ok(())
    }

    /// Returns files of guests of other versions, or incomplete ones, and their sizes. None in a directory that is not private.
    pub(super) fn stale(&self, current: &[String]) -> Vec<(PathBuf, u64)> {
        let is_current = |name: &str| {
            let module = name.strip_suffix(".seal").unwrap_or(name);
            current.iter().any(|current| module.strip_prefix(UNPACKED).unwrap_or(module) == current)
        };
        self.files()
            .into_iter()
            .filter(|(name, _)| !is_current(name))
            .map(|(_, (path, metadata))| (path, metadata.len()))
            .collect()
    }

    /// Removes a file listed by [`stale`](Self::stale). A file that another process has removed meanwhile is not an error.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    // Compiled modules and their companion files, by name.
    fn files(&self) -> Vec<(String, (PathBuf, Metadata))> {
        let Some(directory) = self.directory.as_deref().filter(|directory| is_private(directory)) else { return Vec::new() };
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| is_module(name))?;
            Some((name, (entry.path(), entry.metadata().ok().filter(Metadata::is_file)?)))
        });
        named.collect()
    }

    fn forget_oldest(&self, newest: &str) -> io::Result<()> {
        let of_guest = |name: &str| name.rsplit_once('-').map(|(guest, _)| guest.to_owned());
        let mut modules = self.files();
        modules.retain(|(name, _)| name.ends_with(".cwasm") && of_guest(name) == of_guest(newest));
        modules.sort_by_key(|(_, (_, metadata))| std::cmp::Reverse((metadata.mtime(), metadata.mtime_nsec())));
        for (_, (path, _)) in modules.iter().skip(KEPT) {
            fs::remove_file(path)?;
            let _ = fs::remove_file(path.with_extension("cwasm.seal"));
        }
        Ok(())
    }
}

/// The processor features required by shipped guests: x86-64-v2, which all processors since about 2010 have. Others compile their
/// own.
#[cfg(target_arch = "x86_64")]
const SHIPPED_FOR: (&str, &[&str]) =
    ("x86_64-unknown-linux-gnu", &["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt", "has_cmpxchg16b"]);
#[cfg(target_arch = "aarch64")]
const SHIPPED_FOR: (&str, &[&str]) = ("aarch64-unknown-linux-gnu", &[]);

/// Compiles guests for shipping into a directory; existing valid ones are kept.
pub(super) fn compile_to(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let trouble = |source| Error::Cache { path: directory.to_owned(), source };
    fs::create_dir_all(directory).map_err(trouble)?;
    let (here, mut config) =
        (engine::new(Places::Kept(1), super::Metering::default())?, engine::config(Places::Kept(1), super::Metering::default()));
    let (target, abilities) = SHIPPED_FOR;
    config.target(target).map_err(Error::engine("compiling for other machines"))?;
    for ability in abilities {
        // SAFETY: the flags name processor features; the engine rejects the code where they are missing.
        unsafe { config.cranelift_flag_enable(ability) };
    }
    let elsewhere = Engine::new(&config).map_err(Error::engine("compiling for other machines"))?;
    let mut paths = Vec::new();
    for guest in [&guests::SHELL, &guests::PYTHON] {
        let path = directory.join(shipped_name(guest));
        let fits = fs::read(&path).is_ok_and(|bytes| {
            // SAFETY: a file in the developer's own build directory, like those of the compiler.
            unsafe { Module::deserialize(&here, bytes) }.is_ok()
        });
        if !fits {
            let wasm = guest.wasm().map_err(|source| Error::Guest { name: guest.name, source })?;
            let compiled = elsewhere.precompile_module(&wasm).map_err(Error::engine("compiling a guest"))?;
            write_beside(&path, &[&compiled]).map_err(trouble)?;
        }
        paths.push(path);
    }
    Ok(paths)
}

// Written under a temporary name and renamed, so that another process sees the whole file or none.
fn write_beside(path: &Path, pieces: &[&[u8]]) -> io::Result<()> {
    let new = NewFile::beside(path).map_err(io::Error::other)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new.path())?;
    pieces.iter().try_for_each(|piece| file.write_all(piece))?;
    // A seal must not survive a power failure without its file, so the file is synced before it is renamed.
    new.replace().map_err(io::Error::other)
}

// The kernel's attributes of a file, which change whenever it is touched.
fn identity(file: &Metadata) -> String {
    let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
    format!("{} {} {} {times:?}\n", file.dev(), file.ino(), file.size())
}

// A compiled module is an ELF file, so a hash after its end is ignored.
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

// `shell-` and 32 hexadecimal digits, also with the prefix of unpacked ones; a seal and an incomplete file have a suffix after `.cwasm`.
fn is_module(name: &str) -> bool {
    let Some((guest, rest)) = name.strip_prefix(UNPACKED).unwrap_or(name).rsplit_once('-') else { return false };
    let known = [&guests::SHELL, &guests::PYTHON, &guests::PYTHON_SCI].iter().any(|known| known.name == guest);
    let Some((hash, _)) = rest.split_once(".cwasm") else { return false };
    known && hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn is_private(directory: &Path) -> bool {
    fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir() && is_ours(&metadata))
}

fn is_ours(metadata: &Metadata) -> bool {
    metadata.mode() & 0o077 == 0 && metadata.uid() == rustix::process::getuid().as_raw()
}

fn default_directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("SANDLITE_CACHE").or_else(|| {
        let base = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
        Some(base.join("sandlite"))
    })
}

/// Returns the file name of a guest's compiled module: the module and everything else that determines its content. The engine
/// checks these again.
pub(super) fn file_name(engine: &Engine, guest: &Guest) -> String {
    let mut settings = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut settings);
    guest.glue.iter().for_each(|file| file.hash(&mut settings));
    format!("{}-{}{:016x}.cwasm", guest.name, beginning(guest), settings.finish())
}

/// Returns the file name of a compiled custom program: its module and settings.
pub(super) fn program_name(engine: &Engine, hash: &blake3::Hash) -> String {
    let mut settings = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut settings);
    format!("{PROGRAM}{}{:016x}.cwasm", hash.to_hex(), settings.finish())
}

// The source module is in the name, so that code of another one is never used.
fn shipped_name(guest: &Guest) -> String {
    format!("{}-{}.cwasm", guest.name, beginning(guest))
}

// The first sixteen digits of a module's hash.
fn beginning(guest: &Guest) -> String {
    super::hex(&guest.sha256[..8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::engine;

    const NAME: &str = "test.cwasm";

    fn stored() -> (tempfile::TempDir, Cache, Engine) {
        let directory = tempfile::tempdir().unwrap();
        let (cache, engine) = (
            Cache::new(Some(directory.path().join("cache")), None),
            engine::new(Places::Kept(1), engine::Metering::Full).unwrap(),
        );
        let compiled = engine.precompile_module(&wat::parse_str("(module)").unwrap()).unwrap();
        cache.store(NAME, &compiled).unwrap();
        (directory, cache, engine)
    }

    #[test]
    fn old_modules_are_forgotten_and_nothing_else_is() {
        let (directory, cache, engine) = stored();
        let place = directory.path().join("cache");
        let old = |number: u64| format!("shell-{number:032x}.cwasm");
        for number in 0..20 {
            let path = place.join(old(number));
            fs::write(&path, "x").unwrap();
            fs::write(path.with_extension("cwasm.seal"), "y").unwrap();
            let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number);
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        fs::write(place.join("notes.txt"), "mine").unwrap();
        assert_eq!(cache.stale(&[file_name(&engine, &guests::SHELL)]).len(), 40);
        cache.store(&format!("shell-{:032x}.cwasm", 99), b"new").unwrap();
        let left: Vec<_> = (0..20).filter(|&number| place.join(old(number)).exists()).collect();
        assert_eq!(left, [13, 14, 15, 16, 17, 18, 19]);
        assert!(place.join("notes.txt").exists() && place.join(NAME).exists());
        assert!(!place.join(old(12)).with_extension("cwasm.seal").exists());
    }

    #[test]
    fn unpacked_guests_count_as_compiled_and_only_those_of_other_versions_are_stale() {
        let (directory, cache, engine) = stored();
        let place = directory.path().join("cache");
        assert_eq!(cache.compiled_len(&engine, &guests::SHELL), None);
        let current = file_name(&engine, &guests::SHELL);
        fs::write(place.join(format!("shipped-{current}")), "seven b").unwrap();
        fs::write(place.join(format!("shipped-{current}.seal")), "seal").unwrap();
        let old = place.join(format!("shipped-shell-{:032x}.cwasm", 7));
        fs::write(&old, "old").unwrap();
        assert_eq!(cache.compiled_len(&engine, &guests::SHELL), Some(7));
        assert_eq!(cache.stale(&[current]), [(old, 3)]);
    }

    // T-SUP-02.
    #[test]
    fn a_sealed_file_that_was_altered_is_refused_even_with_its_old_time() {
        let (directory, cache, engine) = stored();
        assert!(cache.load(&engine, NAME).is_some());
        let path = directory.path().join("cache").join(NAME);
        assert!(path.with_extension("cwasm.seal").exists());
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[100] ^= 1;
        fs::write(&path, bytes).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        assert!(cache.load(&engine, NAME).is_none());
    }

    #[test]
    fn a_file_or_directory_that_others_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let (directory, cache, engine) = stored();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let place = directory.path().join("cache");
        set(&place.join(NAME), 0o666);
        assert!(cache.load(&engine, NAME).is_none());
        set(&place.join(NAME), 0o600);
        set(&place, 0o755);
        assert!(cache.load(&engine, NAME).is_none());
        set(&place, 0o700);
        assert!(cache.load(&engine, NAME).is_some());
    }
}
