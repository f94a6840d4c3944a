//! Running skills: a sandbox with the skill is prepared once and forked for each call.

mod collect;
mod contract;
mod mounted;
mod prepared;
mod session;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use runtime::{Cancel, Host, LimitName, Limits, Mount, Sandbox, Usage};
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::{Catalog, Pushed};
use crate::requirements::{self, Needs};
use crate::{Bounds, Error, Package};
use prepared::Cache;

/// A catalog of skills, and the limits of their runs. Cheap to clone.
///
/// ```
/// use sandlite_skills::{Catalog, File, Needs, Package, Request, Skills};
/// # let host = runtime::Host::builder().build()?;
/// let skills = Skills::new(Catalog::in_memory()?, &host, runtime::Preset::Normal.limits());
/// let files = vec![
///     File::new("SKILL.md", "---\nname: shout\ndescription: Writes a text in capitals.\n---\nGive `text`.\n"),
///     File::new("main.sh", r#"jq '{text: .text | ascii_upcase}' input.json > "$SANDBOX_OUTPUT""#),
/// ];
/// skills.push(&Package::from_files(files)?, Needs::default())?;
/// let result = skills.run(Request::new("shout").input(r#"{"text": "hello"}"#))?;
/// assert_eq!(result.output.as_deref(), Some(r#"{"text":"HELLO"}"#));
/// # Ok::<(), sandlite_skills::Error>(())
/// ```
#[derive(Clone)]
pub struct Skills(Arc<Inner>);

struct Inner {
    catalog: Catalog,
    host: OnceLock<Host>,
    start: Box<Start>,
    limits: Limits,
    bounds: Bounds,
    cache: Cache,
    sessions: Mutex<session::Turns>,
    scratch: OnceLock<tempfile::TempDir>,
    /// Whether the directory for mounts is in use; held while it is written.
    shown: Mutex<bool>,
}

impl std::fmt::Debug for Skills {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Skills").field("directory", &self.0.catalog.directory()).finish_non_exhaustive()
    }
}

type Start = dyn Fn() -> Result<Host, runtime::Error> + Send + Sync;

/// A request to run a skill.
#[derive(Clone, Debug, Default)]
pub struct Request {
    skill: String,
    input: Option<String>,
    files: Vec<(String, Vec<u8>)>,
    env: Vec<(String, String)>,
    session: Option<String>,
    kept: Vec<(String, Vec<u8>)>,
    cancel: Cancel,
    sink: Option<Sink>,
}

type Print = dyn Fn(&[u8]) + Send + Sync;

/// The receiver of a run's output while it runs.
#[derive(Clone)]
struct Sink(Arc<Print>);

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

impl Request {
    /// Creates a request for `name` (the active version) or `name@version`.
    pub fn new(skill: impl Into<String>) -> Self {
        Self { skill: skill.into(), ..Self::default() }
    }

    /// Sets the input as JSON text; defaults to `{}`.
    #[must_use]
    pub fn input(mut self, json: impl Into<String>) -> Self {
        self.input = Some(json.into());
        self
    }

    /// Adds a file to `/sandbox/input`.
    #[must_use]
    pub fn file(mut self, name: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.into(), content.into()));
        self
    }

    /// Sets an environment variable for the script.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Continues with the files left by earlier runs of this session.
    #[must_use]
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.session = Some(id.into());
        self
    }

    /// Adds a file that an earlier run of a session left, for callers that keep the files of sessions themselves. The script finds it in
    /// `/sandbox/session` and in `/sandbox/input`; [`RunResult::left`] returns what it leaves.
    #[must_use]
    pub fn kept(mut self, name: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.kept.push((name.into(), content.into()));
        self
    }

    /// Sets the callback for each piece of the script's output, which must not block.
    #[must_use]
    pub fn on_output(mut self, sink: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        self.sink = Some(Sink(Arc::new(sink)));
        self
    }

    /// Lets this [`Cancel`] cancel the run.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The script exited with 0, and its output is valid.
    Success,
    /// Any other outcome.
    Failed,
    /// The run timed out.
    Timeout,
}

impl Status {
    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
        }
    }
}

/// A file that a run left in `/sandbox/out/files`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Artifact {
    /// Its path relative to that directory.
    pub path: String,
    /// Its size, in bytes.
    pub size: u64,
    /// The SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

/// The result of a run.
#[derive(Clone)]
pub struct RunResult {
    /// The ID of this run: 32 random hexadecimal digits in the form of a UUID.
    pub id: String,
    /// The skill.
    pub skill: String,
    /// Its version.
    pub version: String,
    /// The status.
    pub status: Status,
    /// The output: compact JSON text, with numbers verbatim.
    pub output: Option<String>,
    /// The output files.
    pub files: Vec<Artifact>,
    /// The printed output: standard output, then standard error.
    pub logs: String,
    /// The reason if the run did not succeed.
    pub error: Option<String>,
    /// The duration, rounded up.
    pub duration_ms: u64,
    /// The limit that ended the run, if any.
    pub limit: Option<LimitName>,
    /// The resource usage; `None` if the run did not start.
    pub usage: Option<Usage>,
    /// Notes.
    pub notes: Vec<String>,
    pub(crate) sandbox: Option<Sandbox>,
}

impl RunResult {
    /// Returns the content of an output file.
    ///
    /// # Errors
    ///
    /// Returns an error if the run left no such file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        let artifact = self.files.iter().find(|artifact| artifact.path == path);
        match (artifact, &self.sandbox) {
            (Some(artifact), Some(sandbox)) => Ok(sandbox.fs().read(&format!("{}/{}", contract::FILES, artifact.path))?),
            _ => Err(Error::Argument(format!("the run left no file `{}`", runtime::actions::quoted(path)))),
        }
    }

    /// Writes the content of one of its files, without holding all of it.
    ///
    /// # Errors
    ///
    /// Returns an error if the run left no such file, or if it cannot be written.
    pub fn read_to(&self, path: &str, to: impl std::io::Write) -> Result<u64, Error> {
        let artifact = self.files.iter().find(|artifact| artifact.path == path);
        match (artifact, &self.sandbox) {
            (Some(artifact), Some(sandbox)) => Ok(sandbox.fs().read_to(&format!("{}/{}", contract::FILES, artifact.path), to)?),
            _ => Err(Error::Argument(format!("the run left no file `{}`", runtime::actions::quoted(path)))),
        }
    }

    /// Returns the files that the next run of its session should find, by the last part of their names: those of `/sandbox/out/session` and of
    /// `/sandbox/out/files`.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be read.
    pub fn left(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        self.sandbox.as_ref().map_or(Ok(Vec::new()), session::left)
    }

    /// Copies the output files to a directory on this machine, which is created if missing. Existing files are not overwritten.
    ///
    /// # Errors
    ///
    /// Returns an error if a file exists or cannot be written.
    pub fn save(&self, directory: &Path) -> Result<(), Error> {
        match &self.sandbox {
            Some(sandbox) if !self.files.is_empty() => Ok(sandbox.export_tree(contract::FILES, directory).map(drop)?),
            _ => Ok(()),
        }
    }

    /// Formats the result as one JSON object, with the output verbatim: large integers stay exact.
    #[must_use]
    pub fn to_json(&self) -> String {
        let text = |value: &dyn erased::Json| value.json();
        let mut fields = vec![
            format!("\"run\":{}", text(&self.id)),
            format!("\"skill\":{}", text(&self.skill)),
            format!("\"version\":{}", text(&self.version)),
            format!("\"status\":{}", text(&self.status)),
        ];
        fields.extend(self.output.as_ref().map(|output| format!("\"output\":{output}")));
        fields.push(format!("\"files\":{}", text(&self.files)));
        fields.push(format!("\"logs\":{}", text(&self.logs)));
        fields.push(format!("\"error\":{}", text(&self.error)));
        fields.push(format!("\"duration_ms\":{}", self.duration_ms));
        fields.extend(self.usage.as_ref().map(|usage| format!("\"usage\":{}", text(usage))));
        fields.push(format!("\"notes\":{}", text(&self.notes)));
        format!("{{{}}}", fields.join(","))
    }
}

mod erased {
    //! A value serialized as JSON through a reference.

    pub(super) trait Json {
        fn json(&self) -> String;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> String {
            serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned())
        }
    }
}

impl std::fmt::Debug for RunResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl Skills {
    /// Creates the skills of a catalog. Runs use this host, and at most these limits.
    #[must_use]
    pub fn new(catalog: Catalog, host: &Host, limits: Limits) -> Self {
        Self::with_bounds(catalog, host, limits, Bounds::default())
    }

    /// Same as [`new`](Self::new), with other defaults and maximums of skills.
    #[must_use]
    pub fn with_bounds(catalog: Catalog, host: &Host, limits: Limits, bounds: Bounds) -> Self {
        let host = host.clone();
        Self::made(catalog, limits, bounds, Box::new(move || Ok(host.clone())))
    }

    /// Same as [`new`](Self::new), with a host that the first run starts: reading a catalog needs none.
    #[must_use]
    pub fn with_start(
        catalog: Catalog,
        limits: Limits,
        start: impl Fn() -> Result<Host, runtime::Error> + Send + Sync + 'static,
    ) -> Self {
        Self::made(catalog, limits, Bounds::default(), Box::new(start))
    }

    fn made(catalog: Catalog, limits: Limits, bounds: Bounds, start: Box<Start>) -> Self {
        let (host, scratch, cache, sessions) = (OnceLock::new(), OnceLock::new(), Cache::default(), Mutex::default());
        let shown = Mutex::default();
        Self(Arc::new(Inner { catalog, host, start, limits, bounds, cache, sessions, scratch, shown }))
    }

    /// Returns the catalog.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// Stores a version of a skill with its required packages. Runs nothing of the skill.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Requirements`] if a required package cannot be installed, and the errors of [`Catalog::push`].
    pub fn push(&self, package: &Package, needs: Needs<'_>) -> Result<Pushed, Error> {
        let Inner { catalog, limits, cache, .. } = &*self.0;
        if catalog.has(package)? {
            return catalog.push(package, false, None);
        }
        let replace = needs.replace;
        let resolved = requirements::resolve(package, needs, || self.0.host(), limits)?;
        let pushed = catalog.push(package, replace, Some(resolved.base()))?;
        cache.forget(&pushed.digest);
        let mut notes = resolved.notes;
        if let Some(image) = &package.manifest().image {
            notes.push(format!("image `{image}` has no effect: skills run in WebAssembly"));
        }
        if package.language() == Some(crate::Language::Node) {
            notes.push(contract::NO_JAVASCRIPT.to_owned());
        }
        Ok(Pushed { notes, ..pushed })
    }

    /// Runs a skill.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownSkill`] or [`Error::UnknownVersion`] if it does not exist, and an error if the host fails. A
    /// script that fails, invalid input and a forbidden variable are results, not errors.
    pub fn run(&self, request: Request) -> Result<RunResult, Error> {
        let began = std::time::Instant::now();
        let prepared = self.0.cache.get(&self.0, &request.skill)?;
        let mut result = prepared.begin()?;
        let refused = match contract::check(&prepared, &request) {
            Ok(()) => self.perform(&prepared, &request, &mut result)?,
            Err(reason) => Some(reason),
        };
        if refused.is_some() {
            result.error = refused;
        }
        let nanos = began.elapsed().as_nanos();
        result.duration_ms = u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1);
        Ok(result)
    }

    // Runs the script, or returns the reason why it cannot start.
    fn perform(&self, prepared: &prepared::Prepared, request: &Request, result: &mut RunResult) -> Result<Option<String>, Error> {
        let command = match contract::command(prepared, request) {
            Ok(command) => command,
            Err(reason) => return Ok(Some(reason)),
        };
        result.notes.extend(contract::note(prepared, request));
        match &request.session {
            None => {
                let sandbox = prepared.sandbox.fork()?;
                prepared.place(&sandbox, request, &request.kept)?;
                collect::run(&sandbox, prepared, command, result)?;
                result.sandbox = Some(sandbox);
            }
            Some(id) => session::run(&self.0, prepared, id, request, command, result)?,
        }
        Ok(None)
    }

    /// Returns a directory on this machine with the active version of each skill, for a read-only mount at `/skills`. This call
    /// creates or updates it; afterwards, `load_skill` updates it too.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Host`] if it cannot be written.
    pub fn directory(&self) -> Result<PathBuf, Error> {
        let mut is_shown = self.0.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = mounted::update(&self.0.catalog, &self.0.place()?.join("mounted"))?;
        *is_shown = true;
        Ok(directory)
    }

    /// Returns a read-only mount with the active version of each skill.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`directory`](Self::directory).
    pub fn mount(&self, guest: &str) -> Result<Mount, Error> {
        match self.0.catalog.directory() {
            Some(_) => Ok(Mount::read_only(self.directory()?, guest)),
            // Nothing on this machine would have to be removed afterwards.
            None => Ok(Mount::dynamic(guest, mounted::generated(self))),
        }
    }

    /// Updates the directory that [`directory`](Self::directory) returned, if any, so that sandboxes see the current skills.
    pub(crate) fn refresh(&self) -> Result<(), Error> {
        let is_shown = *self.0.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if is_shown { self.directory().map(drop) } else { Ok(()) }
    }
}

impl Inner {
    /// Returns the host, which is started on first use.
    fn host(&self) -> Result<Host, Error> {
        if let Some(host) = self.host.get() {
            return Ok(host.clone());
        }
        let host = (self.start)()?;
        Ok(self.host.get_or_init(|| host).clone())
    }

    /// Returns the directory for data next to the catalog; a temporary one for a catalog in memory.
    fn place(&self) -> Result<PathBuf, Error> {
        if let Some(place) = self.catalog.place() {
            return Ok(place);
        }
        if self.scratch.get().is_none() {
            let made = tempfile::tempdir().map_err(Error::host("create", "a temporary directory"))?;
            let _ = self.scratch.set(made);
        }
        let scratch = self.scratch.get().map(|directory| directory.path().to_owned());
        scratch.ok_or_else(|| Error::Argument("no temporary directory".to_owned()))
    }
}
