//! How a sandbox is opened.

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
/// Defaults, all closed: in memory, preset `normal`, nothing of the host's environment, `/home/user` as the directory
/// commands start in, a host of its own.
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

/// Which Python a sandbox has as `python3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Python {
    /// CPython 3.14 with its whole standard library: starts in milliseconds, comes with Sandlite.
    #[default]
    Core,
    /// CPython 3.15 with NumPy, pandas, SciPy, scikit-learn, Matplotlib and more; installed apart
    /// ([`Host::add_python_sci`], `sandlite guests add python-sci`).
    Scientific,
}

/// Where the engine comes from.
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

/// How long reading a snapshot may take.
const IMPORT_TIME: Duration = Duration::from_secs(60);

/// How long a command of another process is waited for.
const WAIT: Duration = Duration::from_secs(10);

impl Builder {
    /// Shares a host with other sandboxes: one engine, one set of compiled guests.
    #[must_use]
    pub fn host(mut self, host: &Host) -> Self {
        self.host = Engine::Shared(host.clone());
        self
    }

    /// Gives the sandbox a host of its own with these settings. It is started while the database is being opened.
    #[must_use]
    pub fn own_host(mut self, host: HostBuilder) -> Self {
        self.host = Engine::Own(host);
        self
    }

    /// Gives the sandbox a host of its own that is already being started, for a program that has other things to do first.
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

    /// Keeps the sandbox in this file, created if it does not exist.
    #[must_use]
    pub fn database(mut self, path: impl Into<PathBuf>) -> Self {
        self.database = Some(path.into());
        self
    }

    /// Starts from a snapshot: its rows are checked and copied, the file itself is left alone.
    #[must_use]
    pub fn import(mut self, snapshot: impl Into<PathBuf>) -> Self {
        self.import = Some(snapshot.into());
        self
    }

    /// Refuses the snapshot unless it says exactly what [`Sandbox::digest`] told of it.
    #[must_use]
    pub fn import_digest(mut self, digest: impl Into<String>) -> Self {
        self.import_digest = Some(digest.into());
        self
    }

    /// What commands may use.
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Self {
        self.preset = preset;
        self
    }

    /// What commands may use, in place of a preset: any limits, also wider than those of every preset. Only the owner of a sandbox
    /// sets them; [`limits`](Self::limits), [`Command::limits`] and callers of tools can only tighten them.
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
        /// Tightens some limits of the preset.
        limits,
        /// Adds a variable to the environment of every command.
        env,
        /// The directory commands start in.
        cwd
    }

    /// Lets commands see the root directory under another name as well: with `data`, `/data/x` is `/x`, and `/data` shows
    /// nothing but files of the sandbox. For what was made for sandboxes that have all their files there. The name is not in
    /// exports, and there is no `/home/user` unless it is the directory that commands start in.
    ///
    /// ```
    /// # use sandlite_runtime::Sandbox;
    /// let sandbox = Sandbox::builder().root_alias("data").cwd("/data").file("/notes", "kept").open()?;
    /// let output = sandbox.bash("cat /data/notes; echo more > new; ls /data; cat /new")?;
    /// assert_eq!(output.stdout, b"keptnew\nnotes\ntmp\nmore\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn root_alias(mut self, name: impl Into<String>) -> Self {
        self.root_alias = Some(name.into());
        self
    }

    /// Redirections of the shell, `touch` and `tee` create the directories above their files, as LocalSandbox's do. Other programs
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

    /// Puts a file into the sandbox when it is opened, with the directories above it.
    #[must_use]
    pub fn file(self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.file_from(path, content.into())
    }

    /// The same with content that is read while it is stored.
    #[must_use]
    pub fn file_from(mut self, path: impl Into<String>, content: impl Into<Content>) -> Self {
        self.files.push((path.into(), content.into()));
        self
    }

    /// Lets programs in the sandbox call a function of this program; without one they can call none.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Gives the sandbox a program: a module for `wasm32-wasip1`, such as one's own Rust or C. It is `/usr/local/bin/NAME`, works on the
    /// sandbox's files and is under its limits, as every program is. It is compiled when the sandbox is opened, and once for each machine.
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

    /// Gives the sandbox a program that is installed for this user ([`Host::add_program`], `sandlite guests add FILE.wasm --as NAME`).
    #[must_use]
    pub fn installed_program(mut self, name: impl Into<String>) -> Self {
        self.own.modules.push((name.into(), None));
        self
    }

    /// Gives the sandbox a command that is a function of this program: `/usr/local/bin/NAME`, with arguments, standard streams and an
    /// exit status, in pipelines, below `xargs` and from Python's `subprocess`. Each call is a row of the history. What the function returns
    /// as an error is printed on its standard error, and its status is then 1.
    ///
    /// The function runs on a thread of its own. When the process is killed or its command is over, its streams break and its files are
    /// refused at once; [`CommandCall::is_over`] says so.
    #[must_use]
    pub fn command(
        mut self,
        name: impl Into<String>,
        action: impl Fn(&mut CommandCall) -> Result<u8, String> + Send + Sync + 'static,
    ) -> Self {
        self.own.commands.push((name.into(), Arc::new(action)));
        self
    }

    /// Lets programs in the sandbox run these programs of this machine, each by its name or as `host [-p PATH] NAME …`. Off unless granted.
    ///
    /// A call is lent the current directory, or PATH: a private copy of it, in which the real program runs under bubblewrap, without a
    /// network, without the caller's home and with limits of its own. What it changed is brought back as part of the run, and the call is in the
    /// history. The program is native code, held by the kernel's namespaces alone: see SECURITY.md.
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

    /// Ends the Python of a session ([`Sandbox::python_in`]) that has had no call for this long; ten minutes unless set.
    #[must_use]
    pub fn python_idle(mut self, idle: Duration) -> Self {
        self.python_idle = Some(idle);
        self
    }

    /// Chooses what `python3` is, in Python calls, in sessions and in bash: the core interpreter, unless said otherwise.
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

    /// How long a command waits for one of another process that has the same file open. Defaults to ten seconds.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Makes every acknowledged command survive a power cut, not only the end of this process; costs a disk sync each.
    #[must_use]
    pub fn power_safe(mut self) -> Self {
        self.power_safe = true;
        self
    }

    /// Lets guests see a file or a directory that a function of this program generates each time somebody opens it. A mount point
    /// is made there. See [`Provider`] for what the function is given, and for its errors.
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

    /// Lays the sandbox over the whole tree of another database, or of one of its versions (`base.db@v3`): what the sandbox has not
    /// changed is the base's, which is only read and can be shared by many. The sandbox stays on the version that it was first
    /// opened with, until [`Sandbox::update`] moves it. Keys, sessions and history are its own.
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

    /// Lets guests see a tree from elsewhere: a directory of the host, another database, a past version.
    #[must_use]
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Binds the sandbox by a policy, besides the one that is stored with it: guests, [`Sandbox::fs`], the tools of agents and
    /// all else. [`Sandbox::owner`] is a handle that is not bound.
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

    /// Opens the sandbox as its owner: no policy binds the handle, be the stored one damaged. Views that are made from it are bound.
    #[must_use]
    pub fn as_owner(mut self) -> Self {
        self.as_owner = true;
        self
    }

    /// Opens a database that exists for looking at it, also while another process works in it; nothing runs.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Opens the sandbox.
    ///
    /// # Errors
    ///
    /// When the database cannot be opened, the snapshot is refused, a limit is zero or raised, or a tool makes no sense.
    pub fn open(self) -> Result<Sandbox, Error> {
        self.open_with(None)
    }

    /// Opens the sandbox for a command that comes next: what the command needs is loaded while the database is being opened.
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
    /// As [`open`](Self::open).
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
        let stored = match policy::stored(&database) {
            Err(_) if self.as_owner => None,
            stored => stored?,
        };
        let mut binding = Binding::new(stored, given)?;
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
            env,
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

// The engine and the database each take milliseconds, and neither needs the other.
fn meanwhile<T>(starting: Starting, open: impl FnOnce() -> Result<T, Error>) -> Result<(Host, T), Error> {
    Fixed::world();
    starting.help();
    let database = open();
    starting.help();
    Ok((starting.finish()?, database?))
}

/// How the database of a sandbox with these limits is opened: in a file, or in memory.
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
        // What is in memory counts in the memory limit while commands run, and must not be more than that before.
        quota.bytes = quota.bytes.min(limits.memory.0);
        // The history least of all: a command needs its memory more than the output of older ones.
        quota.history = quota.history.min(limits.memory.0 / 8);
        quota.past = quota.past.min(limits.memory.0 / 32);
    }
    let options = Database::options().durability(durability).quota(quota);
    match path {
        Some(path) => options.path(path),
        None => options,
    }
}

// A snapshot may hold what the preset lets a sandbox hold, and must be read within a minute (T-SNAP-03).
fn import_bounds(limits: &Limits, digest: Option<String>) -> Import {
    let deadline = Some(clock::now() + IMPORT_TIME);
    let parts = [limits.disk, limits.names, limits.keys, limits.sessions, limits.history, limits.past];
    let bytes = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.0));
    Import { deadline, max_bytes: bytes.saturating_mul(2), digest, ..Import::default() }
}

impl Sandbox {
    // These directories, those that mounts are at, and the versions of overlays. In a new sandbox they are how it begins, and nothing
    // that was done.
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
        // A view of a run makes the mount points itself.
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

    // The files it was given, in one row of the history.
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
