//! The state shared by all requests: the catalog, the tenants' skills and sandboxes, the engine, and the queue.

#![expect(clippy::disallowed_methods, reason = "directories of tenants are made here")]

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use runtime::{Cancel, Host};
use skills::Skills;

use super::admission::{Admission, REST, Watch};
use super::auth::{Caller, Rates};
use super::catalog::Catalog;
use super::metrics::Metrics;
use super::problem::Problem;
use super::sandboxes::Opened;
use super::skillbox;
use super::tenants::Known;
use super::traces::Traces;
use super::{Config, Error};

/// How often a stopping server checks whether its runs have ended.
const LOOK: Duration = Duration::from_millis(10);
/// The file that a server locks in its data directory.
const LOCK: &str = "server.lock";
/// How long to wait for a server that is stopping.
const PREDECESSOR: Duration = Duration::from_secs(5);

/// The server's state. Clones share it.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

struct Inner {
    config: Config,
    catalog: Catalog,
    host: Host,
    tenants: Mutex<HashMap<String, Arc<Tenant>>>,
    admission: Admission,
    metrics: Metrics,
    /// Set once, on the server's threads.
    traces: OnceLock<Traces>,
    rates: Rates,
    limits: Known,
    secret: [u8; 32],
    opened: Opened,
    skillbox: skillbox::State,
    running: Mutex<HashMap<u64, Cancel>>,
    last: AtomicU64,
    is_stopping: AtomicBool,
}

/// A tenant: its directory and its skills.
pub(crate) struct Tenant {
    pub(crate) name: String,
    directory: PathBuf,
    skills: Skills,
}

impl Tenant {
    /// Returns a directory of the tenant, created if it is missing.
    pub(crate) fn directory(&self, name: &str) -> Result<PathBuf, Problem> {
        let directory = self.directory.join(name);
        std::fs::create_dir_all(&directory)?;
        Ok(directory)
    }

    /// Returns the tenant's catalog of skills.
    pub(crate) fn skills(&self) -> &Skills {
        &self.skills
    }
}

impl App {
    pub(super) fn new(config: Config, host: Host) -> Result<Self, Error> {
        let failed = |source| Error::Data { path: config.data.clone(), source };
        make_private(&config.data).map_err(failed)?;
        let catalog = Catalog::open(&config.data)?;
        let secret = blake3::derive_key("sandlite 2026 addresses of artifacts", &catalog.secret()?);
        let admission = Admission::new(config.room());
        let opened = Opened::new(config.open_sandboxes);
        Ok(Self(Arc::new(Inner {
            catalog,
            host,
            tenants: Mutex::default(),
            admission,
            metrics: Metrics::default(),
            traces: OnceLock::new(),
            rates: Rates::default(),
            limits: Known::default(),
            secret,
            opened,
            skillbox: skillbox::State::default(),
            running: Mutex::default(),
            last: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            config,
        })))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    pub(crate) fn host(&self) -> &Host {
        &self.0.host
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Begins to send traces, if a collector is named.
    pub(super) fn start_traces(&self) {
        self.0.traces.get_or_init(|| Traces::start(self.0.config.otlp.as_ref()));
    }

    /// Returns where spans go; nowhere before the server listens.
    pub(crate) fn traces(&self) -> Traces {
        self.0.traces.get().cloned().unwrap_or_default()
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    pub(super) fn rates(&self) -> &Rates {
        &self.0.rates
    }

    pub(super) fn known_limits(&self) -> &Known {
        &self.0.limits
    }

    /// Returns the sandboxes that are open.
    pub(crate) fn opened(&self) -> &Opened {
        &self.0.opened
    }

    /// Returns the state of Skillbox's routes.
    pub(super) fn skillbox(&self) -> &skillbox::State {
        &self.0.skillbox
    }

    /// Returns the tenant of a name, and adds it to the catalog if it is new.
    pub(crate) fn tenant(&self, name: &str) -> Result<Arc<Tenant>, Problem> {
        if let Some(tenant) = self.tenants().get(name) {
            return Ok(Arc::clone(tenant));
        }
        let directory = self.0.config.data.join("tenants").join(self.0.catalog.tenant_directory(name)?);
        let catalog = skills::Catalog::open(&directory.join("skills"))?;
        let skills = Skills::with_bounds(catalog, &self.0.host, self.0.config.limits.clone(), self.0.config.bounds);
        let tenant = Arc::new(Tenant { name: name.to_owned(), directory, skills });
        Ok(Arc::clone(self.tenants().entry(name.to_owned()).or_insert(tenant)))
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<String, Arc<Tenant>>> {
        self.0.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a short function that reads or writes files and rows on a separate thread.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let app = self.clone();
        tokio::task::spawn_blocking(move || work(&app)).await.unwrap_or_else(|_| Err(aborted()))
    }

    /// Looks up rows by their keys: here, which takes microseconds, or on a separate thread if somebody else reads for longer. A server has few
    /// threads for its connections, and none of them waits.
    pub(crate) async fn look_up<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        if self.catalog().is_busy() { self.blocking(work).await } else { work(self) }
    }

    /// Runs a function in its tenant's turn, on a separate thread. The cancel is killed when the request is dropped or the server stops.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        caller: &Caller,
        cancel: Cancel,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let killed_on_drop = KillOnDrop(Some(cancel.clone()));
        let done = self.run_detached(&caller.tenant, cancel, work).await;
        killed_on_drop.disarm();
        done
    }

    /// Returns the same for a run in the background.
    pub(crate) async fn run_detached<T: Send + 'static>(
        &self,
        tenant: &str,
        cancel: Cancel,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (traces, began) = (self.traces(), Instant::now());
        let span = traces.begin();
        let turn = self.0.admission.turn(tenant).await;
        let queued = began.elapsed();
        let turn = turn.map_err(|_| Problem::limited("too many requests of this tenant are waiting", 1))?;
        self.require_running()?;
        let running = self.register(cancel.clone());
        let app = self.clone();
        let turn = Arc::new(turn);
        let mut watch = Watch::new(&turn, cancel);
        let mut task = tokio::task::spawn_blocking(move || {
            let done = work(&app);
            // Both belong to the work, not to the request: a request that is dropped gives no place back before the work has ended.
            drop((turn, running));
            done
        });
        let done = loop {
            match tokio::time::timeout(REST, &mut task).await {
                Ok(done) => break done.unwrap_or_else(|_| Err(aborted())),
                Err(_) => watch.look(),
            }
        };
        if span.is_some() {
            let queued = u64::try_from(queued.as_micros()).unwrap_or(u64::MAX);
            let attributes: [(&str, serde_json::Value); 2] =
                [("sandlite.tenant", tenant.into()), ("sandlite.queued_us", queued.into())];
            traces.end(span, "run", done.is_err(), &attributes);
        }
        done
    }

    /// Rejects new work while the server stops.
    pub(crate) fn require_running(&self) -> Result<(), Problem> {
        if !self.0.is_stopping.load(Ordering::Relaxed) {
            return Ok(());
        }
        let stopping = Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is stopping");
        Err(Problem { retry_after: Some(5), ..stopping })
    }

    fn register(&self, cancel: Cancel) -> Registered {
        let number = self.0.last.fetch_add(1, Ordering::Relaxed);
        self.running().insert(number, cancel);
        Registered { app: self.clone(), number }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Cancel>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for runs to end, kills the remaining ones, and closes every sandbox.
    pub(super) async fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Relaxed);
        let _ = tokio::time::timeout(self.0.config.grace, self.idle()).await;
        self.running().values().for_each(Cancel::kill);
        let _ = tokio::time::timeout(Duration::from_secs(5), async {
            for service in self.0.opened.services() {
                service.stop().await;
            }
            self.idle().await;
        })
        .await;
        self.0.opened.close_all();
    }

    async fn idle(&self) {
        for service in self.0.opened.services() {
            service.idle().await;
        }
        while !self.running().is_empty() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Signs a text, so that a client cannot forge it.
    pub(crate) fn sign(&self, text: &str) -> String {
        blake3::keyed_hash(&self.0.secret, text.as_bytes()).to_hex().to_string()
    }

    /// Returns whether a signature is that of a text, compared in constant time.
    pub(crate) fn is_signed(&self, text: &str, signature: &str) -> bool {
        blake3::Hash::from_hex(signature).is_ok_and(|hash| hash == blake3::keyed_hash(&self.0.secret, text.as_bytes()))
    }
}

fn aborted() -> Problem {
    Problem::new(http::StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the request was aborted; no changes were made")
}

// Keys' digests and everybody's files are in it.
pub(super) fn make_private(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    if directory.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Locks a data directory until the file is dropped: a second server would report the runs of the first as interrupted.
pub(super) fn lock(data: &Path) -> Result<File, Error> {
    let failed = |source| Error::Data { path: data.to_owned(), source };
    let file = File::options().create(true).truncate(false).write(true).open(data.join(LOCK)).map_err(failed)?;
    let until = Instant::now() + PREDECESSOR;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::park_timeout(LOOK),
            Err(TryLockError::WouldBlock) => return Err(failed(std::io::Error::other("another server uses it"))),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}

struct Registered {
    app: App,
    number: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.app.running().remove(&self.number);
    }
}

struct KillOnDrop(Option<Cancel>);

impl KillOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.kill();
        }
    }
}
