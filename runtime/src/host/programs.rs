//! Custom modules: compiled once, cached by content, and installed for the user by name.
//!
//! Compilation is started only by the owner: when a sandbox is opened with a program, or when one is installed. No guest can
//! trigger it.
#![expect(clippy::disallowed_methods, reason = "installed programs are files of this user, beside the compiled ones")]

use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sqlite_fs::NewFile;
use wasmtime::Engine;

use super::cache::is_private;
use super::{Code, Host, Prepared, START};
use crate::Error;
use crate::programs::module::Kind;
use crate::programs::{check_name, module};
use crate::wasi::{component, foreign};

/// Maximum duration of a compilation.
const COMPILE_TIME: Duration = Duration::from_secs(300);

/// The directory of installed programs below that of compiled guests.
const DIRECTORY: &str = "programs";

/// The suffix of an installed program's file.
const SUFFIX: &str = ".wasm";

/// Modules that are ready, by content hash.
pub(super) type Compiled = Mutex<HashMap<blake3::Hash, Prepared>>;

/// A program installed for this user; see [`Host::add_program`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledProgram {
    /// Its name.
    pub name: String,
    /// The size of its module, in bytes.
    pub bytes: u64,
}

impl Host {
    /// Returns a custom module or component, compiled and linked: from memory, else from the cache, else compiled now.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Program`] if it is not a command of WASI 0.1 or 0.2 that can be compiled.
    pub(crate) fn program(&self, name: &str, wasm: &[u8]) -> Result<Prepared, Error> {
        let refused = |reason: String| Error::Program { name: name.to_owned(), reason };
        let hash = blake3::hash(wasm);
        let lock = || self.0.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = lock().get(&hash) {
            return Ok(prepared.clone());
        }
        let prepared = match module::check(wasm).map_err(refused)? {
            Kind::Module => self.module_program(name, wasm, &hash)?,
            Kind::Component => self.component_program(name, wasm, &hash)?,
        };
        lock().insert(hash, prepared.clone());
        Ok(prepared)
    }

    fn module_program(&self, name: &str, wasm: &[u8], hash: &blake3::Hash) -> Result<Prepared, Error> {
        let refused = |reason: String| Error::Program { name: name.to_owned(), reason };
        let engine = &self.0.engines.ordinary;
        let file = super::cache::program_name(engine, hash);
        let module = match self.0.cache.program(engine, &file) {
            Some(module) => module,
            None => {
                self.tell(&format!("compiling the program {name} for this machine (once)"));
                let compiled = compile(engine, wasm, Kind::Module).map_err(refused)?;
                self.0.cache.keep_program(engine, &file, &compiled)?
            }
        };
        foreign::check(&module).map_err(refused)?;
        let linker = foreign::foreign_linker(engine)?;
        let instance = linker.instantiate_pre(&module).map_err(|error| refused(format!("{error:#}")))?;
        Ok(Prepared { code: Code::Foreign(Arc::new(instance)), entry: START, told: None })
    }

    fn component_program(&self, name: &str, wasm: &[u8], hash: &blake3::Hash) -> Result<Prepared, Error> {
        let refused = |reason: String| Error::Program { name: name.to_owned(), reason };
        let engine = self.0.engines.components()?;
        let file = super::cache::program_name(engine, hash);
        let component = match self.0.cache.component(engine, &file) {
            Some(component) => component,
            None => {
                self.tell(&format!("compiling the program {name} for this machine (once)"));
                let compiled = compile(engine, wasm, Kind::Component).map_err(refused)?;
                self.0.cache.keep_component(engine, &file, &compiled)?
            }
        };
        let program = component::Program::new(&component).map_err(refused)?;
        Ok(Prepared { code: Code::Component(program), entry: START, told: None })
    }

    /// Installs and compiles a program for this user: a module built for `wasm32-wasip1`, or a component built for
    /// `wasm32-wasip2`. It can then be added to sandboxes by name ([`Builder::installed_program`](crate::Builder::installed_program)). An existing one with the same name is replaced.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Program`] if the module is not such a command, [`Error::Invalid`] if the name is invalid, and
    /// [`Error::Cache`] if there is no cache directory.
    pub fn add_program(&self, name: &str, wasm: &[u8]) -> Result<(), Error> {
        check_name(name)?;
        self.program(name, wasm)?;
        let (directory, trouble) = self.program_directory()?;
        let write = || -> io::Result<()> {
            DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
            if !is_private(&directory) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            let new = NewFile::beside(&directory.join(format!("{name}{SUFFIX}"))).map_err(io::Error::other)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new.path())?;
            file.write_all(wasm)?;
            new.replace().map_err(io::Error::other)
        };
        write().map_err(trouble)
    }

    /// Returns the programs installed for this user, by name.
    #[must_use]
    pub fn programs(&self) -> Vec<InstalledProgram> {
        let Ok((directory, _)) = self.program_directory() else { return Vec::new() };
        if !is_private(&directory) {
            return Vec::new();
        }
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let program = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?.strip_suffix(SUFFIX)?.to_owned();
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            check_name(&name).ok().map(|()| InstalledProgram { name, bytes: metadata.len() })
        };
        let mut programs: Vec<_> = entries.filter_map(program).collect();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        programs
    }

    /// Removes an installed program; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Cache`] if it cannot be removed.
    pub fn remove_program(&self, name: &str) -> Result<bool, Error> {
        check_name(name)?;
        let (directory, trouble) = self.program_directory()?;
        match fs::remove_file(directory.join(format!("{name}{SUFFIX}"))) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(trouble(error)),
        }
    }

    /// Returns the module of an installed program.
    pub(crate) fn installed_program(&self, name: &str) -> Result<Vec<u8>, Error> {
        check_name(name)?;
        let missing = || Error::Program { name: name.to_owned(), reason: "it is not installed".to_owned() };
        let (directory, trouble) = self.program_directory()?;
        if !is_private(&directory) {
            return Err(missing());
        }
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(no_follow).open(directory.join(format!("{name}{SUFFIX}")));
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing()),
            file => file.map_err(&trouble)?,
        };
        let mut wasm = Vec::new();
        file.take(module::MAX_BYTES as u64 + 1).read_to_end(&mut wasm).map_err(&trouble)?;
        Ok(wasm)
    }

    fn program_directory(&self) -> Result<(PathBuf, impl Fn(io::Error) -> Error + use<>), Error> {
        let nowhere = || Error::Cache { path: PathBuf::new(), source: io::ErrorKind::NotFound.into() };
        let directory = self.cache_directory().ok_or_else(nowhere)?.join(DIRECTORY);
        let path = directory.clone();
        Ok((directory, move |source| Error::Cache { path: path.clone(), source }))
    }
}

// The compiler cannot be interrupted: if it takes too long, its thread is abandoned and its module is not used.
fn compile(engine: &Engine, wasm: &[u8], kind: Kind) -> Result<Vec<u8>, String> {
    let (done, result) = sync_channel(1);
    let (engine, wasm) = (engine.clone(), wasm.to_vec());
    let work = move || {
        let compiled = match kind {
            Kind::Module => engine.precompile_module(&wasm),
            Kind::Component => engine.precompile_component(&wasm),
        };
        let _ = done.send(compiled.map_err(|error| format!("{error:#}")));
    };
    let builder = thread::Builder::new().name("sandlite compiler".to_owned());
    builder.spawn(work).map_err(|error| format!("cannot start a thread: {error}"))?;
    match result.recv_timeout(COMPILE_TIME) {
        Ok(compiled) => compiled,
        Err(RecvTimeoutError::Timeout) => Err(format!("compilation takes longer than {} seconds", COMPILE_TIME.as_secs())),
        Err(RecvTimeoutError::Disconnected) => Err("the compiler panicked".to_owned()),
    }
}
