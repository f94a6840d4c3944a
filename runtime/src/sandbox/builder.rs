//! Opening a sandbox.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use presets::{Limits, Policy, Preset};
use sqlite_fs::{Database, Durability, Import, Options, Quota, Transaction};

use super::Sandbox;
use super::base::Pin;
use super::files::Content;
use super::mount::{self, Mount};
use super::own::Own;
use super::policy;
use crate::CommandCall;
use crate::Error;
use crate::clock;
use crate::defaults::{ENVIRONMENT, HOME};
use crate::history::{LibraryCall as Call, Recorder};
use crate::host::{Host, HostBuilder, Starting};
use crate::run::{Command, Surroundings, set_variable, surroundings};
use crate::session::{self, Interpreters};
use crate::tools::{Tool, Tools};
use crate::vfs::{Binding, Fixed, Patience, Provider, Scope, View};

/// Settings of a [`Sandbox`].
///
/// Defaults: in memory, preset `normal`, no variables of the host's environment, working directory `/home/user`, its own host.
#[derive(Debug, Default)]
pub struct Builder {
    host: Engine,
    database: Option<PathBuf>,
    import: Option<PathBuf>,
    import_digest: Option<String>,
    preset: Preset,
    custom_limits: Option<Limits>,
    surroundings: Surroundings,
    root_alias: Option<String>,
    creates_parents: bool,
    files: Vec<(String, Content)>,
    power_safe: bool,
    wait: Option<Duration>,
    read_only: bool,
    tools: Vec<Tool>,
    own: Own,
    mounts: Vec<Mount>,
    python_idle: Option<Duration>,
    python: Python,
    policy: Option<Policy>,
    as_owner: bool,
}

/// The Python that a sandbox uses as `python3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Python {
    /// CPython 3.14 with its whole standard library: starts in milliseconds, bundled with Sandlite.
    #[default]
    Core,
    /// CPython 3.15 with NumPy, pandas, SciPy, scikit-learn, Matplotlib and more; installed separately ([`Host::add_python_sci`],
    /// `sandlite guests add python-sci`).
    Scientific,
}

/// The source of the engine.
#[derive(Debug)]
enum Engine {
    Shared(Host),
    Own(HostBuilder),
    Starting(Starting),
}

impl Default for Engine {
    fn default() -> Self {
        Self::Own(HostBuilder::default())
    }
}

/// Maximum duration of reading a snapshot.
const IMPORT_TIME: Duration = Duration::from_secs(60);

/// How long to wait for a command of another process.
const WAIT: Duration = Duration::from_secs(10);

impl Builder {
    /// Shares a host with other sandboxes: one engine, one set of compiled guests.
    #[must_use]
    pub fn host(mut self, host: &Host) -> Self {
        self.host = Engine::Shared(host.clone());
        self
    }

    /// Uses a new host with these settings. It is started while the database is being opened.
    #[must_use]
    pub fn own_host(mut self, host: HostBuilder) -> Self {
        self.host = Engine::Own(host);
        self
    }

    /// Uses a host that is already being started, for a program that has other work to do first.
    ///
    /// ```
    /// # use sandlite_runtime::{Command, Host, Sandbox};
    /// let starting = Host::builder().unpooled().start_for(&Command::bash(""))?;
    /// let words = "echo while the engine starts";
    /// let sandbox = Sandbox::builder().starting_host(starting).open()?;
    /// assert_eq!(sandbox.bash(words)?.stdout, b"while the engine starts\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn starting_host(mut self, starting: Starting) -> Self {
        self.host = Engine::Starting(starting);
        self
    }

    /// Stores the sandbox in this file, which is created if missing.
    #[must_use]
    pub fn database(mut self, path: impl Into<PathBuf>) -> Self {
        self.database = Some(path.into());
        self
    }

    /// Starts from a snapshot: its rows are checked and copied, and the file itself is not modified.
    #[must_use]
    pub fn import(mut self, snapshot: impl Into<PathBuf>) -> Self {
        self.import = Some(snapshot.into());
        self
    }

    /// Rejects the snapshot unless it has this digest, as returned by [`Sandbox::digest`].
    #[must_use]
    pub fn import_digest(mut self, digest: impl Into<String>) -> Self {
        self.import_digest = Some(digest.into());
        self
    }

    /// Sets the limits of commands.
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Self {
        self.preset = preset;
        self
    }

    /// Sets the limits of commands instead of a preset, also above those of every preset. Only the owner of a sandbox sets them;
    /// [`limits`](Self::limits), [`Command::limits`] and callers of tools can only lower them.
    ///
    /// ```
    /// # use sandlite_runtime::{Limits, Sandbox};
    /// let limits = Limits::parse_custom("base = \"permissive\"\nloop_iterations = 50_000")?;
    /// let sandbox = Sandbox::builder().custom_limits(limits).open()?;
    /// assert_eq!(sandbox.bash("n=0; while ((n < 20000)); do ((n += 1)); done; echo $n")?.stdout, b"20000\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn custom_limits(mut self, limits: Limits) -> Self {
        self.custom_limits = Some(limits);
        self
    }

    surroundings! {
        /// Lowers some limits of the preset.
        limits,
        /// Adds a variable to the environment of every command.
        env,
        /// Sets the working directory of commands.
        cwd
    }

    /// Makes the root directory also visible under another name: with `data`, `/data/x` is `/x`, and `/data` contains only files
    /// of the sandbox. For compatibility with sandboxes that have all their files there. The name is not in exports, and there is
    /// no `/home/user` unless it is the working directory of commands.
    ///
    /// ```
    /// # use sandlite_runtime::Sandbox;
    /// let sandbox = Sandbox::builder().root_alias("data").cwd("/data").file("/notes", "kept").open()?;
    /// let output = sandbox.bash("cat /data/notes; echo more > new; ls /data; cat /new")?;
    /// assert_eq!(output.stdout, b"keptnew\nnotes\nmore\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn root_alias(mut self, name: impl Into<String>) -> Self {
        self.root_alias = Some(name.into());
        self
    }

    /// Makes redirections of the shell, `touch` and `tee` create missing parent directories, as in LocalSandbox. Other programs
    /// do not.
    ///
    /// ```no_run
    /// # use sandlite_runtime::Sandbox;
    /// let sandbox = Sandbox::builder().creates_parents().open()?;
    /// assert!(sandbox.bash("echo 1 > /new/dir/file")?.status.success());
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn creates_parents(mut self) -> Self {
        self.creates_parents = true;
        self
    }

    /// Writes a file to the sandbox when it is opened, creating missing parent directories.
    #[must_use]
    pub fn file(self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.file_from(path, content.into())
    }

    /// Same as [`file`](Self::file), with content that is streamed.
    #[must_use]
    pub fn file_from(mut self, path: impl Into<String>, content: impl Into<Content>) -> Self {
        self.files.push((path.into(), content.into()));
        self
    }

    /// Lets programs in the sandbox call a function of this program; by default there are none.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a program to the sandbox: a module built for `wasm32-wasip1` or a component built for `wasm32-wasip2`, such as your
    /// own Rust or C. It appears as `/usr/local/bin/NAME` and works on the sandbox's files and under its limits, like every
    /// program. It is compiled when the sandbox is opened, and cached.
    ///
    /// ```no_run
    /// # use sandlite_runtime::Sandbox;
    /// let module = std::fs::read("target/wasm32-wasip1/release/count.wasm").unwrap();
    /// let sandbox = Sandbox::builder().program("count", module).open()?;
    /// assert!(sandbox.bash("cat /etc/passwd | count --lines")?.status.success());
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn program(mut self, name: impl Into<String>, wasm: impl Into<Vec<u8>>) -> Self {
        self.own.modules.push((name.into(), Some(wasm.into())));
        self
    }

    /// Adds a program that is installed for this user ([`Host::add_program`], `sandlite guests add FILE.wasm --as NAME`).
    #[must_use]
    pub fn installed_program(mut self, name: impl Into<String>) -> Self {
        self.own.modules.push((name.into(), None));
        self
    }

    /// Adds a command that is a function of this program: `/usr/local/bin/NAME`, with arguments, standard streams and an exit
    /// status. It works in pipelines, with `xargs` and from Python's `subprocess`. Each call is recorded in the history. If the
    /// function returns an error, it is printed to standard error, and the status is 1.
    ///
    /// The function runs on its own thread. When the process is killed or its command has ended, its streams break and its file
    /// accesses fail at once; [`CommandCall::is_over`] reports it.
    #[must_use]
    pub fn command(
        mut self,
        name: impl Into<String>,
        action: impl Fn(&mut CommandCall) -> Result<u8, String> + Send + Sync + 'static,
    ) -> Self {
        self.own.commands.push((name.into(), Arc::new(action)));
        self
    }

    /// Lets programs in the sandbox run these programs of this machine, each by its name or as `host [-p PATH] NAME …`. Off by
    /// default.
    ///
    /// A call is lent the current directory, or PATH: a private copy of it, in which the real program runs under bubblewrap,
    /// without a network, without the caller's home directory and with its own limits. Its changes are copied back as part of the
    /// run, and the call is recorded in the history. The program is native code, confined only by the kernel's namespaces: see
    /// SECURITY.md.
    ///
    /// ```no_run
    /// # use sandlite_runtime::Sandbox;
    /// let sandbox = Sandbox::builder().allow_host(["git"]).open()?;
    /// assert!(sandbox.bash("mkdir repo && cd repo && git init -q && ls .git/HEAD")?.status.success());
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn allow_host(mut self, programs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.own.hosts.extend(programs.into_iter().map(Into::into));
        self
    }

    /// Ends the Python of a session ([`Sandbox::python_in`]) that was idle for this long; defaults to ten minutes.
    #[must_use]
    pub fn python_idle(mut self, idle: Duration) -> Self {
        self.python_idle = Some(idle);
        self
    }

    /// Selects `python3`, in Python calls, in sessions and in bash; defaults to the core interpreter.
    ///
    /// ```no_run
    /// # use sandlite_runtime::{Python, Sandbox};
    /// let sandbox = Sandbox::builder().python(Python::Scientific).open()?;
    /// assert_eq!(sandbox.python("import numpy; print(numpy.arange(4).sum())")?.stdout, b"6\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn python(mut self, python: Python) -> Self {
        self.python = python;
        self
    }

    /// Sets how long a command waits for another process that has the same file open; defaults to ten seconds.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Makes every acknowledged command survive a power failure, not only the end of this process; costs a disk sync each.
    #[must_use]
    pub fn power_safe(mut self) -> Self {
        self.power_safe = true;
        self
    }

    /// Mounts a file or directory that a function of this program generates each time it is opened. The mount point is created.
    /// See [`Provider`] for the function's arguments and errors.
    ///
    /// ```
    /// use sandlite_runtime::{Provider, Sandbox};
    /// let users = Provider::file(|context| Ok(format!("run {:?}\n", context.run()).into()));
    /// let sandbox = Sandbox::builder().dynamic("/srv/run", users).open()?;
    /// assert_eq!(sandbox.bash("cat /srv/run | wc -l")?.stdout, b"1\n");
    /// assert_eq!(sandbox.fs().read("/srv/run")?, b"run None\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn dynamic(self, path: impl Into<String>, provider: Provider) -> Self {
        self.mount(Mount::dynamic(path, provider))
    }

    /// Lays the sandbox over the whole tree of another database, or of one of its versions (`base.db@v3`): unchanged files come
    /// from the base, which is only read and can be shared by many sandboxes. The sandbox stays on the version with which it was
    /// first opened, until [`Sandbox::update`] moves it. Keys, sessions and history are its own.
    ///
    /// ```
    /// use sandlite_runtime::Sandbox;
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let file = directory.path().join("base.db");
    /// # Sandbox::builder().database(&file).file("/work/a.py", "a = 1").open()?;
    /// let sandbox = Sandbox::builder().base(&file).open()?;
    /// sandbox.bash("echo 'b = 2' >> /work/a.py")?;
    /// assert_eq!(sandbox.fs().read("/work/a.py")?, b"a = 1b = 2\n");
    /// # assert_eq!(Sandbox::builder().database(&file).open()?.fs().read("/work/a.py")?, b"a = 1");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn base(self, file: impl Into<PathBuf>) -> Self {
        self.mount(Mount::database(file, "/").writable())
    }

    /// Mounts a tree: a host directory, another database, a past version.
    #[must_use]
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Applies a policy to the sandbox, in addition to the stored one: to guests, [`Sandbox::fs`], the tools of agents and
    /// everything else. [`Sandbox::owner`] returns a handle without restrictions.
    ///
    /// ```
    /// use sandlite_runtime::{Policy, Sandbox};
    /// let policy = Policy::parse("[[rule]]\npath = \"/keys\"\naccess = \"hidden\"")?;
    /// let sandbox = Sandbox::builder().policy(policy).file("/keys/id", "secret").open()?;
    /// assert!(!sandbox.bash("cat /keys/id")?.status.success());
    /// assert_eq!(sandbox.owner()?.fs().read("/keys/id")?, b"secret");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Opens the sandbox as its owner: no policy applies to the handle, even if the stored one is damaged. Policies apply to its
    /// views.
    #[must_use]
    pub fn as_owner(mut self) -> Self {
        self.as_owner = true;
        self
    }

    /// Opens an existing database read-only, also while another process works in it; nothing can be run.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Opens the sandbox.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be opened, the snapshot is invalid, a limit is zero or raised, or a tool is
    /// invalid.
    pub fn open(self) -> Result<Sandbox, Error> {
        self.open_with(None)
    }

    /// Opens the sandbox for a subsequent command: what the command needs is loaded while the database is being opened.
    ///
    /// ```
    /// # use sandlite_runtime::{Command, Sandbox};
    /// let command = Command::bash("echo soon");
    /// let sandbox = Sandbox::builder().open_for(&command)?;
    /// assert_eq!(sandbox.run(command)?.stdout, b"soon\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`open`](Self::open).
    pub fn open_for(self, command: &Command) -> Result<Sandbox, Error> {
        self.open_with(command.program.guest())
    }

    fn open_with(self, guest: Option<&'static guests::Guest>) -> Result<Sandbox, Error> {
        let is_scientific = self.python == Python::Scientific;
        let guest =
            guest.map(|guest| if is_scientific && guest.name == guests::PYTHON.name { &guests::PYTHON_SCI } else { guest });
        self.surroundings.check()?;
        let owned = self.custom_limits.map_or_else(|| Ok(self.preset.limits()), Limits::check)?;
        let limits = owned.tighten(&self.surroundings.overrides)?;
        let tools = Arc::new(Tools::new(self.tools)?);
        let interpreters = Interpreters::new(self.python_idle.unwrap_or(session::IDLE), limits.memory.0);
        let options = options(&limits, self.power_safe, self.database).wait(self.wait.unwrap_or(WAIT));
        let options = if self.read_only { options.read_only() } else { options };
        let cwd = self.surroundings.cwd.unwrap_or_else(|| HOME.to_owned());
        let alias: Option<Arc<str>> = self.root_alias.map(Arc::from);
        let open = || -> Result<(Database, Vec<String>), Error> {
            let (database, notes) = match self.import {
                Some(snapshot) => {
                    let bounds = import_bounds(&limits, self.import_digest);
                    let (database, imported) = Database::import(&snapshot, options, &bounds)?;
                    (database, imported.notes)
                }
                None => (options.open()?, Vec::new()),
            };
            Ok((database, notes))
        };
        let (host, (database, import_notes)) = match self.host {
            Engine::Shared(host) => (host, open()?),
            Engine::Own(host) => meanwhile(host.start(guest)?, open)?,
            Engine::Starting(starting) => meanwhile(starting, open)?,
        };
        let world = if is_scientific { host.scientific_world()? } else { Fixed::world() };
        let mut env: Vec<_> = ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        for (name, value) in self.surroundings.env {
            set_variable(&mut env, name, value);
        }
        let (mounts, pins) = mount::open(self.mounts, &database, &host, mount::largest(&limits))?;
        let given = self.policy.map(Policy::check).transpose()?;
        let visits = database.visits();
        let stored = match policy::stored(&database) {
            Err(_) if self.as_owner => None,
            stored => stored?,
        };
        let mut binding = Binding::new(stored, given)?.stored_in(&database, visits, policy::stored);
        if self.as_owner {
            binding = binding.of_owner();
        }
        let recorder = Recorder::new(database.clone()).bound_by(&binding);
        let scope = Scope {
            binding,
            world,
            mounts,
            patience: Patience::of_sandbox(limits.wall.0),
            alias,
            tools: tools.names(),
            programs: Arc::new(self.own.prepare(&host)?),
            creates_parents: self.creates_parents,
        };
        let sandbox = Sandbox {
            host,
            recorder,
            database,
            power_safe: self.power_safe,
            scope,
            limits,
            env: Arc::new(env),
            cwd,
            tools,
            interpreters,
            reaping: Arc::default(),
            at: None,
            python: self.python,
            import_notes: import_notes.into(),
        };
        if !self.read_only {
            let home = if sandbox.scope.alias.is_some() { "/" } else { HOME };
            let owner = sandbox.unbound();
            owner.furnish(&["/tmp", home, &sandbox.cwd], &pins)?;
            owner.seed(self.files)?;
        }
        Ok(sandbox)
    }
}

// The engine and the database each take milliseconds, and are independent.
fn meanwhile<T>(starting: Starting, open: impl FnOnce() -> Result<T, Error>) -> Result<(Host, T), Error> {
    Fixed::world();
    starting.help();
    let database = open();
    starting.help();
    Ok((starting.finish()?, database?))
}

/// Returns the options for the database of a sandbox with these limits: in a file, or in memory.
pub(super) fn options(limits: &Limits, power_safe: bool, path: Option<PathBuf>) -> Options {
    let durability = if power_safe { Durability::PowerSafe } else { Durability::CrashSafe };
    let mut quota = Quota {
        bytes: limits.disk.0,
        file_size: limits.file.0,
        inodes: limits.inodes,
        names: limits.names.0,
        keys: limits.keys.0,
        sessions: limits.sessions.0,
        history: limits.history.0,
        past: limits.past.0,
        ..Quota::default()
    };
    if path.is_none() {
        // Data in memory counts toward the memory limit while commands run, and must not exceed it before.
        quota.bytes = quota.bytes.min(limits.memory.0);
        // The history least of all: a command needs its memory more than old output.
        quota.history = quota.history.min(limits.memory.0 / 8);
        quota.past = quota.past.min(limits.memory.0 / 32);
    }
    // Without a budget for the past there are no versions.
    let options = Database::options().durability(durability).quota(quota).versions(limits.past.0 > 0);
    match path {
        Some(path) => options.path(path),
        None => options,
    }
}

// A snapshot may contain what the preset allows, and must be read within a minute (T-SNAP-03).
fn import_bounds(limits: &Limits, digest: Option<String>) -> Import {
    let deadline = Some(clock::now() + IMPORT_TIME);
    let parts = [limits.disk, limits.names, limits.keys, limits.sessions, limits.history, limits.past];
    let bytes = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.0));
    Import { deadline, max_bytes: bytes.saturating_mul(2), digest, ..Import::default() }
}

impl Sandbox {
    // These directories, the mount points, and the versions of overlays. In a new sandbox they are its initial state and not
    // recorded.
    pub(super) fn furnish(&self, directories: &[&str], pins: &[Pin]) -> Result<(), Error> {
        let now = self.now()?;
        let (fs, mut missing) = (now.fs(), Vec::new());
        for directory in directories {
            if !fs.exists(directory)? {
                missing.push(*directory);
            }
        }
        let missing_points = self.missing_mount_points()?;
        if missing.is_empty() && missing_points.is_empty() && pins.is_empty() {
            return Ok(());
        }
        // A view of a run creates the mount points itself.
        let make = |view: &View<Transaction>| -> Result<(), Error> {
            missing.iter().try_for_each(|directory| view.fs().create_dir_all(directory))?;
            pins.iter().try_for_each(|pin| pin.record(view.transaction()))
        };
        if self.database.reader()?.fs().list("/")?.is_empty() {
            return self.recorder.fill(&self.scope, make);
        }
        let paths: Vec<&str> = missing.iter().copied().chain(missing_points).collect();
        let call = Call::new("create_directories", &paths.join(" "), serde_json::json!({ "paths": paths }));
        self.change(call, |run| make(run.view()?))
    }

    // The given files, in one row of the history.
    fn seed(&self, files: Vec<(String, Content)>) -> Result<(), Error> {
        if files.is_empty() {
            return Ok(());
        }
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        let call = Call::new("seed", &paths.join(" "), serde_json::json!({ "paths": paths, "count": paths.len() }));
        self.change(call, |run| {
            files.into_iter().try_for_each(|(path, content)| content.write(run.view()?, &self.limits, &path).map(drop))
        })
    }
}
