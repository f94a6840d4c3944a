//! The host: the engine, the compiled guests, the ticker and the worker threads. One per program, shared by all sandboxes.

mod cache;
mod engine;
mod image;
mod installed;
mod programs;
mod status;
mod ticker;
mod workers;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use guests::Entry;
use sqlite_fs::{Database, WeakDatabase};
use wasmtime::{Engine, InstancePre, Linker, Module};

use crate::Error;
use crate::cancel::Cancel;
use crate::process::State;
use crate::programs::Function;
use crate::wasi;
use cache::Cache;
pub use engine::Metering;
use engine::Places;
pub(crate) use engine::{SCIENTIFIC_STACK, WASM_STACK};
pub use programs::InstalledProgram;
pub use status::GuestStatus;
use ticker::Ticker;
use workers::Workers;

/// Callback invoked during slow operations, such as compiling a guest for the first time.
pub type Progress = Box<dyn Fn(&str) + Send + Sync>;

/// The engine and everything that sandboxes share. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Shared>);

struct Shared {
    engines: Arc<Engines>,
    cache: Cache,
    progress: Option<Progress>,
    linker: OnceLock<Linker<State>>,
    linking: Mutex<()>,
    scientific_linker: OnceLock<Linker<State>>,
    prepared: Mutex<HashMap<&'static str, Arc<Slot>>>,
    programs: programs::Compiled,
    ticker: Ticker,
    workers: Workers,
    /// Base databases of sandboxes, by file.
    bases: Mutex<HashMap<PathBuf, WeakDatabase>>,
}

/// The engine of the ordinary guests, and those of the scientific Python and of components, which are started on first use.
struct Engines {
    ordinary: Engine,
    scientific: OnceLock<Engine>,
    components: OnceLock<Engine>,
    metering: Metering,
}

impl Engines {
    fn scientific(&self) -> Result<&Engine, Error> {
        match self.scientific.get() {
            Some(engine) => Ok(engine),
            None => {
                let engine = engine::scientific(self.metering)?;
                Ok(self.scientific.get_or_init(|| engine))
            }
        }
    }

    fn components(&self) -> Result<&Engine, Error> {
        match self.components.get() {
            Some(engine) => Ok(engine),
            None => {
                let engine = engine::components(self.metering)?;
                Ok(self.components.get_or_init(|| engine))
            }
        }
    }

    /// Makes every running guest check its budget.
    fn increment_epoch(&self) {
        self.ordinary.increment_epoch();
        for engine in [&self.scientific, &self.components].into_iter().filter_map(OnceLock::get) {
            engine.increment_epoch();
        }
    }
}

/// The slot of a guest, filled on first use.
type Slot = Mutex<Option<Prepared>>;

/// A program ready to be started.
#[derive(Clone)]
pub(crate) struct Prepared {
    /// Its kind.
    pub(crate) code: Code,
    /// The exported function that runs it.
    pub(crate) entry: Entry,
    /// The address at which it records that it has read its arguments; see [`guests::Guest::told`].
    pub(crate) told: Option<u32>,
}

/// The kind of a program.
#[derive(Clone)]
pub(crate) enum Code {
    /// A bundled guest, compiled and linked.
    Guest(Arc<InstancePre<State>>),
    /// A custom module, compiled and linked.
    Foreign(Arc<InstancePre<State>>),
    /// A custom component, compiled and linked.
    Component(Arc<wasi::component::Program>),
    /// A function of the embedding program.
    Function(Arc<Function>),
}

impl Prepared {
    /// Creates a program from a linked guest.
    pub(super) fn guest(instance: InstancePre<State>, guest: &guests::Guest) -> Self {
        Self { code: Code::Guest(Arc::new(instance)), entry: guest.entry, told: guest.told }
    }

    /// Creates a program from a function of the embedding program.
    pub(crate) fn function(function: Function) -> Self {
        Self { code: Code::Function(Arc::new(function)), entry: START, told: None }
    }

    /// Returns whether it is a function of the embedding program.
    pub(crate) fn is_function(&self) -> bool {
        matches!(self.code, Code::Function(_))
    }

    /// Returns its module, if any.
    pub(crate) fn module(&self) -> Option<&Arc<InstancePre<State>>> {
        match &self.code {
            Code::Guest(instance) | Code::Foreign(instance) => Some(instance),
            Code::Component(_) | Code::Function(_) => None,
        }
    }
}

/// The entry point of a preview1 command.
const START: Entry = Entry::Start("_start");

/// Settings of a [`Host`].
///
/// Defaults: compiled guests are stored in `$SANDLITE_CACHE`, else in `sandlite` in the user's cache directory; a thousand
/// concurrent processes; no progress callback.
#[derive(Default)]
pub struct HostBuilder {
    cache: Option<PathBuf>,
    shipped: Option<PathBuf>,
    places: Places,
    metering: Metering,
    progress: Option<Progress>,
}

impl HostBuilder {
    /// Stores compiled guests in this directory.
    #[must_use]
    pub fn cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = Some(directory.into());
        self
    }

    /// Sets the directory of guests shipped with the program, compiled by [`Host::compile_guests`] and packed with xz: with them
    /// the first command takes a second instead of a minute. They are native code and trusted like the program itself, so the
    /// directory must be writable only by those who can write the program. Guests that do not match are not used.
    #[must_use]
    pub fn shipped(mut self, directory: impl Into<PathBuf>) -> Self {
        self.shipped = Some(directory.into());
        self
    }

    /// Sets the maximum number of concurrent guest processes, over all sandboxes; defaults to 1 000. A process beyond it fails
    /// like one beyond the limits.
    #[must_use]
    pub fn processes(mut self, processes: u32) -> Self {
        self.places = Places::Kept(processes);
        self
    }

    /// Allocates memory for each process when it starts, instead of preallocating: best for a program that runs one command and
    /// exits. The number of processes is limited only by the limits.
    #[must_use]
    pub fn unpooled(mut self) -> Self {
        self.places = Places::AsNeeded;
        self
    }

    /// Sets what the engine meters: everything that the limits need, except for measuring the overhead of limits.
    #[cfg(feature = "unmetered")]
    #[must_use]
    pub fn metering(mut self, metering: Metering) -> Self {
        self.metering = metering;
        self
    }

    /// Sets a callback invoked while a guest is compiled.
    #[must_use]
    pub fn progress(mut self, progress: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Starts the engine on its own thread, and loads what a command will need: for
    /// [`Builder::starting_host`](crate::Builder::starting_host).
    ///
    /// # Errors
    ///
    /// Returns an error if a thread cannot be spawned.
    pub fn start_for(self, command: &crate::Command) -> Result<Starting, Error> {
        self.start(command.program.guest())
    }

    pub(crate) fn start(self, guest: Option<&'static guests::Guest>) -> Result<Starting, Error> {
        let ((started, engine), (loaded, host)) = (sync_channel(1), sync_channel(1));
        let start = move || {
            let host = match self.build() {
                Ok(host) => host,
                Err(error) => return drop(loaded.send(Err(error))),
            };
            let _ = started.send(host.clone());
            guest.into_iter().for_each(|guest| host.preload(guest));
            let tick = host.0.ticker.thread_for_life();
            let _ = loaded.send(Ok(host));
            tick.into_iter().for_each(|tick| tick());
        };
        thread::Builder::new().name("sandlite engine".to_owned()).spawn(start).map_err(Error::Thread)?;
        Ok(Starting { engine, host })
    }

    /// Starts the engine.
    ///
    /// # Errors
    ///
    /// Returns an error if the machine lacks a feature that the engine needs.
    pub fn build(self) -> Result<Host, Error> {
        let ordinary = engine::new(self.places, self.metering)?;
        let engines =
            Arc::new(Engines { ordinary, scientific: OnceLock::new(), components: OnceLock::new(), metering: self.metering });
        let ticker = Ticker::new(Arc::clone(&engines));
        let cache = Cache::new(self.cache, self.shipped);
        Ok(Host(Arc::new(Shared {
            engines,
            cache,
            progress: self.progress,
            linker: OnceLock::new(),
            linking: Mutex::new(()),
            scientific_linker: OnceLock::new(),
            prepared: Mutex::default(),
            programs: programs::Compiled::default(),
            ticker,
            workers: Workers::default(),
            bases: Mutex::default(),
        })))
    }
}

/// Formats a hash in hexadecimal.
fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A host being started; see [`HostBuilder::start_for`].
#[derive(Debug)]
pub struct Starting {
    /// Sent first: the engine without a guest.
    engine: Receiver<Host>,
    /// Sent when the guest is loaded.
    host: Receiver<Result<Host, Error>>,
}

impl Starting {
    /// Does work on this thread that only needs the engine, while the other thread loads a guest. A failure is reported on first
    /// use.
    pub(crate) fn help(&self) {
        let _ = self.engine.try_recv().map(|host| host.linker().map(drop));
    }

    /// Waits for it.
    pub(crate) fn finish(self) -> Result<Host, Error> {
        self.host.recv().map_err(|_| Error::Invalid("the engine's thread panicked".to_owned()))?
    }
}

impl Host {
    /// Creates the default settings.
    #[must_use]
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    /// Returns a read-only database, opened once for all sandboxes that share this host.
    pub(crate) fn base(
        &self,
        file: &std::path::Path,
        open: impl FnOnce() -> Result<Database, sqlite_fs::Error>,
    ) -> Result<Database, sqlite_fs::Error> {
        let name = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let mut bases = self.0.bases.lock().unwrap_or_else(PoisonError::into_inner);
        // A file that was replaced meanwhile is a different one.
        if let Some(base) = bases.get(&name).and_then(WeakDatabase::upgrade).filter(|base| base.reader().is_ok()) {
            return Ok(base);
        }
        let base = open()?;
        bases.retain(|_, base| base.upgrade().is_some());
        bases.insert(name, base.downgrade());
        Ok(base)
    }

    /// Compiles the guests for any machine of this architecture into a directory, to be shipped with a program
    /// ([`HostBuilder::shipped`]). Existing valid files are kept.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be written.
    pub fn compile_guests(directory: impl AsRef<std::path::Path>) -> Result<Vec<PathBuf>, Error> {
        cache::compile_to(directory.as_ref())
    }

    /// Returns a guest, compiled and linked: from memory, else from the cache, else compiled now.
    pub(crate) fn prepared(&self, guest: &'static guests::Guest) -> Result<Prepared, Error> {
        let slot = Arc::clone(self.0.prepared.lock().unwrap_or_else(PoisonError::into_inner).entry(guest.name).or_default());
        // This guest's lock is held while compiling, because another thread would only compile it a second time.
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = &*slot {
            return Ok(prepared.clone());
        }
        let engine = self.engine_of(guest)?;
        let module = match self.0.cache.kept(engine, guest) {
            Some(module) => module,
            None if guest.is_carried() => {
                self.tell(&format!("compiling the {} guest for this machine (once)", guest.name));
                let wasm = guest.wasm().map_err(|source| Error::Guest { name: guest.name, source })?;
                self.0.cache.compile(engine, guest, &wasm)?
            }
            None => {
                let image = self.image(guest)?;
                self.tell(&format!("compiling the {} guest for this machine (once, some minutes)", guest.name));
                self.0.cache.compile(engine, guest, &image)?
            }
        };
        let prepared = self.linked(&module, guest)?;
        *slot = Some(prepared.clone());
        Ok(prepared)
    }

    /// Loads a guest from the cache in advance. Errors are reported on first use.
    pub(crate) fn preload(&self, guest: &'static guests::Guest) {
        let slot = Arc::clone(self.0.prepared.lock().unwrap_or_else(PoisonError::into_inner).entry(guest.name).or_default());
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            let compiled = self.engine_of(guest).ok().and_then(|engine| self.0.cache.compiled(engine, guest));
            *slot = compiled.and_then(|module| self.linked(&module, guest).ok());
        }
    }

    fn engine_of(&self, guest: &guests::Guest) -> Result<&Engine, Error> {
        if guest.is_carried() { Ok(&self.0.engines.ordinary) } else { self.0.engines.scientific() }
    }

    fn tell(&self, what: &str) {
        if let Some(progress) = &self.0.progress {
            progress(what);
        }
    }

    /// Returns the linker with the host calls, created once.
    pub(crate) fn linker(&self) -> Result<&Linker<State>, Error> {
        // A second caller waits: two at once would compete, and one would be wasted.
        let _making = self.0.linking.lock().unwrap_or_else(PoisonError::into_inner);
        match self.0.linker.get() {
            Some(linker) => Ok(linker),
            None => {
                let linker = wasi::linker(&self.0.engines.ordinary)?;
                Ok(self.0.linker.get_or_init(|| linker))
            }
        }
    }

    fn scientific_linker(&self) -> Result<&Linker<State>, Error> {
        match self.0.scientific_linker.get() {
            Some(linker) => Ok(linker),
            None => {
                let linker = wasi::scientific_linker(self.0.engines.scientific()?)?;
                Ok(self.0.scientific_linker.get_or_init(|| linker))
            }
        }
    }

    fn linked(&self, module: &Module, guest: &'static guests::Guest) -> Result<Prepared, Error> {
        let linker = if guest.is_carried() { self.linker()? } else { self.scientific_linker()? };
        let instance = linker.instantiate_pre(module).map_err(Error::engine("linking a guest"))?;
        Ok(Prepared::guest(instance, guest))
    }

    /// Compiles a guest written by a test.
    #[cfg(test)]
    pub(crate) fn prepared_from_text(&self, text: &str) -> Prepared {
        let module = wasmtime::Module::new(&self.0.engines.ordinary, wat::parse_str(text).unwrap()).unwrap();
        let instance = wasi::linker(&self.0.engines.ordinary).unwrap().instantiate_pre(&module).unwrap();
        Prepared::guest(instance, &guests::SHELL)
    }

    /// Returns the ordinary guests' engine.
    #[cfg(test)]
    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engines.ordinary
    }

    /// Advances the epoch while the returned guard lives, and stops the command when it must end.
    pub(crate) fn tick(&self, cancel: Cancel) -> ticker::Ticking<'_> {
        self.0.ticker.start(cancel)
    }

    /// Makes every running guest check its budget now.
    pub(crate) fn interrupt(&self) {
        self.0.engines.increment_epoch();
    }

    /// Runs `work` on a worker thread.
    pub(crate) fn run_on_worker(&self, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        self.0.workers.run(Box::new(work)).map_err(Error::Thread)
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder").field("cache", &self.cache).field("places", &self.places).finish_non_exhaustive()
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}
