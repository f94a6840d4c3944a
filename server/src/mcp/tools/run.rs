//! `bash` and `python`: commands, with progress while they run and an end when the client has enough.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{JsonObject, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use runtime::{Command, ExitStatus, Killer, Output, Overrides, Sandbox, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::super::Service;
use super::super::answer::Answer;
use super::super::sandboxes::Named;
use super::parse;

/// Bytes of each stream that an answer holds; the rest is in the history.
const KEPT_START: usize = 40 << 10;
const KEPT_END: usize = 20 << 10;
/// How often a running command says that it runs.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long a client may take to read a piece of progress before it is left out.
const PATIENCE: Duration = Duration::from_millis(250);
/// Longest message of progress.
const MESSAGE: usize = 200;

/// A bash command line to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Bash {
    /// The command line, as `bash -c` takes it.
    command: String,
    #[serde(flatten)]
    how: How,
}

/// Python code to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Python {
    /// The code, as `python3 -c` takes it.
    code: String,
    #[serde(flatten)]
    how: How,
}

/// What every command can be given.
#[derive(Debug, Deserialize, JsonSchema)]
struct How {
    /// The directory to start in.
    #[serde(default)]
    cwd: Option<String>,
    /// Variables to set.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// What the command reads as its standard input.
    #[serde(default)]
    stdin: Option<String>,
    /// A shorter time limit than the sandbox's own, in milliseconds.
    #[serde(default)]
    timeout_ms: Option<u64>,
    /// Undo the files of a command that does not succeed.
    #[serde(default)]
    rollback_on_failure: bool,
    /// The name of a session, any that you like: what one call leaves there, the next one finds.
    #[serde(default)]
    session: Option<String>,
}

/// Where a command runs.
enum Place {
    /// In a shell or an interpreter of its own.
    Fresh,
    /// Where the last command of this shell ended.
    Shell(String),
    /// In this live interpreter.
    Interpreter(String),
}

impl Place {
    fn run(self, sandbox: &Sandbox, command: Command) -> Result<Output, runtime::Error> {
        match self {
            Self::Fresh => sandbox.run(command),
            Self::Shell(name) => sandbox.session(name)?.run(command),
            Self::Interpreter(name) => sandbox.python_in(&name, command),
        }
    }
}

/// How a command went.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Ran {
    /// 0 is success; 128 plus the signal, 124 for time and compute, 137 for memory, 126 for other limits.
    exit_code: u8,
    /// What it wrote to standard output.
    stdout: String,
    /// What it wrote to standard error.
    stderr: String,
    /// Whether something it wrote is missing here.
    truncated: bool,
    /// The limit that stopped it.
    limit: Option<Limit>,
    /// Whether the client stopped it.
    cancelled: bool,
    /// How long it took.
    duration_ms: u64,
    /// Its number in the history.
    run: i64,
    /// What else to know.
    notes: Vec<String>,
}

/// A limit that was met.
#[derive(Debug, Serialize, JsonSchema)]
struct Limit {
    /// Which one.
    name: String,
    /// What it allows.
    value: String,
    /// What was used.
    used: String,
    /// What to do about it.
    hint: String,
}

pub(super) async fn bash(
    service: &Service,
    named: Arc<Named>,
    arguments: JsonObject,
    context: RequestContext<RoleServer>,
) -> Answer {
    let asked = parse::<Bash>(arguments).and_then(|mut asked| {
        let place = asked.how.session.take().map_or(Place::Fresh, Place::Shell);
        Ok((place, asked.how.apply(Command::bash(asked.command))?))
    });
    match asked {
        Ok((place, command)) => run(service, named, place, command, context).await,
        Err(answer) => answer,
    }
}

pub(super) async fn python(
    service: &Service,
    named: Arc<Named>,
    arguments: JsonObject,
    context: RequestContext<RoleServer>,
) -> Answer {
    let asked = parse::<Python>(arguments).and_then(|mut asked| {
        let place = asked.how.session.take().map_or(Place::Fresh, Place::Interpreter);
        Ok((place, asked.how.apply(Command::python(asked.code))?))
    });
    match asked {
        Ok((place, command)) => run(service, named, place, command, context).await,
        Err(answer) => answer,
    }
}

impl How {
    fn apply(self, mut command: Command) -> Result<Command, Answer> {
        if let Some(directory) = self.cwd {
            command = command.cwd(directory);
        }
        for (name, value) in self.env {
            command = command.env(name, value);
        }
        if let Some(stdin) = self.stdin {
            command = command.stdin(stdin);
        }
        if let Some(timeout) = self.timeout_ms {
            let wall = format!("{timeout} ms").parse().map_err(|_| Answer::error("error: timeout_ms is not a time"))?;
            command = command.limits(Overrides { wall: Some(wall), ..Overrides::default() });
        }
        Ok(if self.rollback_on_failure { command.rollback_on_failure() } else { command })
    }
}

/// Kills a command whose request is dropped: nobody waits for it any more.
struct KillOnDrop(Killer);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

async fn run(
    service: &Service,
    named: Arc<Named>,
    place: Place,
    mut command: Command,
    context: RequestContext<RoleServer>,
) -> Answer {
    let killer = KillOnDrop(command.killer());
    let from_session = session_of(&context).map(|session| service.running().request(&session, &context.id.to_string()));
    let told = from_session.as_ref().map_or_else(CancellationToken::new, |request| request.token.clone());
    let mut progress = Progress::new(&context);
    let (sender, mut lines) = mpsc::channel(8);
    if progress.token.is_some() {
        let other = sender.clone();
        command = command
            .on_output(Stream::Stdout, move |bytes| drop(sender.try_send(last_line(bytes))))
            .on_output(Stream::Stderr, move |bytes| drop(other.try_send(last_line(bytes))));
    } else {
        drop(sender);
    }

    let waiting = Arc::clone(&named);
    let _turn = tokio::select! {
        turn = waiting.turn.lock() => turn,
        () = cancelled(&context, &told) => return Answer::error("cancelled before it began"),
    };
    let _slot = service.running().place().await;
    let _running = service.running().command(killer.0.clone());
    let mut task = tokio::task::spawn_blocking(move || place.run(&named.sandbox, command));
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat.tick().await;
    let mut stopped = false;
    let done = loop {
        tokio::select! {
            done = &mut task => break done,
            () = cancelled(&context, &told), if !stopped => {
                stopped = true;
                killer.0.kill();
            }
            Some(line) = lines.recv() => progress.line(line).await,
            _ = heartbeat.tick() => progress.tell().await,
        }
    };
    // What was printed last may still be waiting here; the answer comes after it.
    while let Ok(line) = lines.try_recv() {
        progress.line(line).await;
    }
    match done {
        Ok(Ok(output)) => answer(&output, stopped),
        Ok(Err(error)) => error.into(),
        Err(_) => Answer::error("error: the command broke off; nothing was changed"),
    }
}

async fn cancelled(context: &RequestContext<RoleServer>, told: &CancellationToken) {
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = told.cancelled() => {}
    }
}

// Over HTTP a request comes with its headers; over standard input there are none.
fn session_of(context: &RequestContext<RoleServer>) -> Option<String> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    Some(parts.headers.get(crate::http::SESSION_HEADER)?.to_str().ok()?.to_owned())
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.trim_end().rsplit('\n').next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(MESSAGE).collect()
}

/// Tells the client that a command is running, if it asked to be told.
struct Progress<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    started: Instant,
    told: Option<Instant>,
    count: f64,
    last: String,
}

impl<'a> Progress<'a> {
    fn new(context: &'a RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self { context, token, started: Instant::now(), told: None, count: 0.0, last: String::new() }
    }

    async fn line(&mut self, line: String) {
        self.last = line;
        if self.told.is_none_or(|told| told.elapsed() >= HEARTBEAT) {
            self.tell().await;
        }
    }

    async fn tell(&mut self) {
        let Some(token) = self.token.clone() else { return };
        self.count += 1.0;
        self.told = Some(Instant::now());
        let seconds = self.started.elapsed().as_secs();
        let message =
            if self.last.is_empty() { format!("running for {seconds} s") } else { format!("{seconds} s: {}", self.last) };
        let progress = ProgressNotificationParam::new(token, self.count).with_message(message);
        // A client that does not read loses progress, not its command.
        let _ = tokio::time::timeout(PATIENCE, self.context.peer.notify_progress(progress)).await;
    }
}

fn answer(output: &Output, cancelled: bool) -> Answer {
    let (stdout, stdout_cut) = shorten(&output.stdout);
    let (stderr, stderr_cut) = shorten(&output.stderr);
    let limit = output.status.limit();
    let mut notes = Vec::new();
    if stdout_cut || stderr_cut {
        notes.push(format!("the middle of the output is left out: `history` with run={} shows all of it", output.run));
    }
    if output.stdout_truncated || output.stderr_truncated {
        notes.push("there was more output than the limit keeps: write it to a file and read the part you need".to_owned());
    }
    if cancelled {
        notes.push("cancelled: this is what was printed until then".to_owned());
    }
    if let Some(reached) = limit {
        notes.push(format!("stopped: {reached}; {}", reached.hint()));
    }
    let ran = Ran {
        exit_code: output.status.code(),
        stdout,
        stderr,
        truncated: stdout_cut || stderr_cut || output.stdout_truncated || output.stderr_truncated,
        limit: limit.map(|reached| Limit {
            name: reached.limit.as_str().to_owned(),
            value: reached.value.clone(),
            used: reached.used.clone(),
            hint: reached.hint().to_owned(),
        }),
        cancelled,
        duration_ms: u64::try_from(output.usage.wall.as_millis()).unwrap_or(u64::MAX),
        run: output.run,
        notes,
    };
    let stopped = cancelled || !matches!(output.status, ExitStatus::Exited(_) | ExitStatus::Signaled(_));
    Answer::new(ran.render(), &ran).failed(stopped)
}

impl Ran {
    fn render(&self) -> String {
        let mut text = self.stdout.clone();
        if !self.stderr.is_empty() {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            text.push_str(&format!("{end}[stderr]\n{}", self.stderr));
        }
        if self.exit_code != 0 || text.is_empty() {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            text.push_str(&format!("{end}[exit code {}]\n", self.exit_code));
        }
        for note in &self.notes {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            text.push_str(&format!("{end}[{note}]\n"));
        }
        text.truncate(text.trim_end_matches('\n').len());
        text
    }
}

// The start says what happened, the end how it ended.
fn shorten(bytes: &[u8]) -> (String, bool) {
    if bytes.len() <= KEPT_START + KEPT_END {
        return (String::from_utf8_lossy(bytes).into_owned(), false);
    }
    let (start, end) = (&bytes[..KEPT_START], &bytes[bytes.len() - KEPT_END..]);
    let left_out = bytes.len() - KEPT_START - KEPT_END;
    (format!("{}\n[… {left_out} bytes left out …]\n{}", String::from_utf8_lossy(start), String::from_utf8_lossy(end)), true)
}
