//! The verbs on a sandbox of a server (`sandlite --server URL …`): each is an action there, so this only asks and prints.
//!
//! Knows nothing of how anything works; a verb or an option that needs this machine's engine or files is refused.

mod files;
mod http;
#[cfg(feature = "mcp")]
mod keys;
mod packages;
mod skills;
mod tar;
#[cfg(feature = "mcp")]
mod tenants;
mod tls;
mod versions;
mod whole;

use std::fs::File;
use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runtime::actions::Action;
use runtime::{Cancel, Stream};
use serde_json::{Map, Value, json};

use crate::args::{
    Bash, Changes, Git, GitVerb, Global, History, HistoryVerb, Kv, KvVerb, PolicyArgs, PolicyVerb, Python, RunOptions, Server,
    Verb,
};
use crate::commands::history;
use crate::exit::{Code, SIGPIPE};
use crate::printer::{Colour, Hinted, Printer};
use http::{Http, Refused, escaped};

/// Most rows of a page of the history.
const MOST_ROWS: usize = 200;

/// The sandbox that a command line names.
struct Remote<'a> {
    http: Http,
    named: &'a str,
    /// The version to use instead of the current state.
    at: Option<&'a str>,
    printer: &'a Printer,
}

/// Performs a verb on the server.
pub(crate) fn run(server: &Server, global: &Global, verb: &Verb, printer: &Printer) -> anyhow::Result<Code> {
    let key = server.key.clone().or_else(|| std::env::var("SANDLITE_KEY").ok()).filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| Hinted::error("no API key given", "pass one with `--key` or in SANDLITE_KEY"))?;
    refuse(global, verb)?;
    let http = Http::new(&server.url, key, server.ca.as_deref())?;
    let remote = Remote { http, named: &server.sandbox, at: global.at.as_deref(), printer };
    remote.run(global, verb).or_else(|error| match error.downcast_ref::<Refused>() {
        // A missing resource, or a conflicting change, is a negative result.
        Some(Refused { status: 404 | 409 | 412, .. }) => {
            printer.error(&error);
            Ok(Code::Failure)
        }
        // For a file every error of these verbs is one.
        Some(Refused { status: 400 | 413 | 416 | 422, .. }) if matches!(verb, Verb::Fs(_)) && global.at.is_none() => {
            printer.error(&error);
            Ok(Code::Failure)
        }
        _ => Err(error),
    })
}

fn refuse(global: &Global, verb: &Verb) -> anyhow::Result<()> {
    // A new key has a view of its own.
    let is_view = global.view.is_some() && !matches!(verb, Verb::Keys(_));
    let given = [("--db", global.db.is_some()), ("--policy", global.policy.is_some()), ("--view", is_view)];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(Hinted::error(format!("`{option}` does not apply to a server"), "leave it out, or leave out `--server`"))
        }
        None => Ok(()),
    }
}

fn no_version() -> anyhow::Error {
    Hinted::error(
        "`--at` does not work with this verb on a server",
        "leave it out, or name the version in the verb's own arguments",
    )
}

/// Returns a field as text; nothing if it is missing.
fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

impl Remote<'_> {
    fn run(&self, global: &Global, verb: &Verb) -> anyhow::Result<Code> {
        match verb {
            Verb::Bash(args) => self.bash(args),
            Verb::Python(args) => self.python(args),
            Verb::Fs(args) => files::run(self, global, &args.verb),
            Verb::Compact => self.compact(),
            Verb::Kv(args) => self.kv(args),
            Verb::Skill(_) | Verb::Pip(_) | Verb::Export(_) | Verb::Import(_) | Verb::Watch(_) if self.at.is_some() => {
                Err(no_version())
            }
            Verb::History(args) => self.history(global, verb, args),
            Verb::Skill(args) => skills::run(self, &args.verb),
            Verb::Pip(args) => packages::run(self, &args.verb),
            Verb::Export(args) => whole::export(self, args),
            Verb::Import(args) => whole::import(self, args),
            Verb::Fork(args) => whole::fork(self, global, args),
            Verb::Watch(args) => whole::watch(self, args),
            #[cfg(feature = "mcp")]
            Verb::Keys(args) => keys::run(self, &args.verb),
            #[cfg(feature = "mcp")]
            Verb::Tenants(args) => tenants::run(self, &args.verb),
            // These only read: they run here, on a copy.
            Verb::Info(_)
            | Verb::Apply(_)
            | Verb::Git(Git { verb: GitVerb::Export(_) })
            | Verb::Changes(Changes { patch: true, .. })
            | Verb::Policy(PolicyArgs { verb: PolicyVerb::Show { .. } }) => whole::on_a_copy(self, global, verb),
            Verb::Git(_) => Err(Hinted::error(
                "`git import` does not work on a server",
                "import into a file here, and send it: `--server URL import FILE`",
            )),
            Verb::Policy(_) => {
                Err(Hinted::error("the policy of a sandbox on a server is set when it is created", "see POST /v1/sandboxes"))
            }
            Verb::Replay(_) => Err(Hinted::error(
                "`replay` reads a file of this machine",
                "export the sandbox and replay the file: `--server URL export copy.db`, then `sandlite replay copy.db`",
            )),
            _ => match versions::action(verb) {
                Some((action, arguments)) => self.perform(action, &arguments),
                None => versions::run(self, verb).unwrap_or_else(|| {
                    Err(Hinted::error("this verb is about this machine, not about a server", "leave out `--server`"))
                }),
            },
        }
    }

    /// Performs an action and prints its text, which is the same as for a file of this machine, or its data.
    fn perform(&self, action: &str, arguments: &Value) -> anyhow::Result<Code> {
        let kind = if self.printer.is_json() { "application/json" } else { "text/plain" };
        let headers = [("Accept", kind), ("Content-Type", "application/json")];
        let place = format!("{}/actions/{action}", self.sandbox()?);
        let response =
            self.http.send("POST", &place, &headers, given(&self.with_version(action, arguments)?).to_string().as_bytes())?;
        let code = if response.is_negative { Code::Failure } else { Code::Success };
        let bytes = response.bytes()?;
        if self.printer.is_json() {
            self.printer.json(&serde_json::from_slice(&bytes).context("invalid response of the server")?);
        } else {
            String::from_utf8_lossy(&bytes).lines().for_each(|line| self.printer.line(&self.printer.foreign(line)));
        }
        Ok(code)
    }

    /// Returns the address of the sandbox, which is created by its name if it is missing.
    fn sandbox(&self) -> anyhow::Result<String> {
        let found =
            self.http.json("GET", &format!("/v1/sandboxes?limit=1&name={}", escaped(self.named).replace('/', "%2F")), None)?;
        let by_name = found["items"][0]["id"].as_str().map(str::to_owned);
        let by_id = || self.http.json("GET", &format!("/v1/sandboxes/{}", escaped(self.named).replace('/', "%2F")), None).ok();
        let id = by_name.or_else(|| by_id()?["id"].as_str().map(str::to_owned));
        let id = match id {
            Some(id) => id,
            None => {
                let made = self.http.json("POST", "/v1/sandboxes", Some(&json!({ "name": self.named })))?;
                self.printer.verbose(format_args!("created the sandbox `{}`", self.named));
                text(&made, "id").to_owned()
            }
        };
        Ok(format!("/v1/sandboxes/{}", escaped(&id)))
    }

    /// Performs an action and returns its data.
    fn act(&self, action: &str, arguments: &Value) -> anyhow::Result<Value> {
        let arguments = given(&self.with_version(action, arguments)?);
        self.http.json("POST", &format!("{}/actions/{action}", self.sandbox()?), Some(&arguments))
    }

    // Adds `--at` to the arguments of an action. One that has no versions would show or change the current state.
    fn with_version(&self, action: &str, arguments: &Value) -> anyhow::Result<Value> {
        let mut arguments = arguments.clone();
        if let Some(at) = self.at {
            let has_versions = |action: &Action| (action.input)()["properties"]["at"].is_object();
            if !runtime::actions::find(action).is_some_and(has_versions) {
                return Err(no_version());
            }
            arguments["at"] = json!(at);
        }
        Ok(arguments)
    }

    /// Prints rows, or the whole as JSON.
    fn lines(&self, whole: &Value, rows: &Value, line: impl Fn(&Value) -> String) -> anyhow::Result<Code> {
        if self.printer.is_json() {
            self.printer.json(whole);
        } else {
            for row in rows.as_array().into_iter().flatten() {
                for part in line(row).lines() {
                    self.printer.line(&self.printer.foreign(part));
                }
            }
        }
        Ok(Code::Success)
    }

    fn bash(&self, args: &Bash) -> anyhow::Result<Code> {
        let flags = [("-x", args.trace), ("-e", args.exit_on_error), ("-u", args.no_unset), ("-l", args.login)];
        let mut words: Vec<&str> = flags.iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| *flag).collect();
        let is_plain = words.is_empty() && args.args.is_empty();
        let command = match &args.command {
            Some(command) if is_plain => command.clone(),
            None if args.args.is_empty() => script()?,
            given => {
                words.extend(given.iter().flat_map(|command| ["-c", command.as_str()]));
                words.extend(args.args.iter().map(String::as_str));
                quoted("bash", &words)
            }
        };
        self.stream("bash", "command", &command, &args.options)
    }

    fn python(&self, args: &Python) -> anyhow::Result<Code> {
        match (&args.command, &args.module) {
            (Some(code), _) if args.args.is_empty() => self.stream("python", "code", code, &args.options),
            (None, None) if args.args.is_empty() && !args.version => self.stream("python", "code", &script()?, &args.options),
            (code, module) => {
                let mut words = if args.version { vec!["-V"] } else { Vec::new() };
                words.extend(code.iter().flat_map(|code| ["-c", code.as_str()]));
                words.extend(module.iter().flat_map(|module| ["-m", module.as_str()]));
                words.extend(args.args.iter().map(String::as_str));
                self.stream("bash", "command", &quoted("python3", &words), &args.options)
            }
        }
    }

    // Runs a command; its output is passed on as it comes. Interrupting this program closes the connection, which kills the command.
    fn stream(&self, action: &str, field: &str, what: &str, options: &RunOptions) -> anyhow::Result<Code> {
        let mut arguments = options_of(options)?;
        arguments.insert(field.to_owned(), json!(what));
        if self.printer.is_json() {
            let ran = self.act(action, &Value::Object(arguments))?;
            self.printer.json(&ran);
            return Ok(code_of(&ran));
        }
        let cancel = Cancel::default();
        let mut out = self.printer.pass_on(Stream::Stdout, options.raw, cancel.clone());
        let mut err = self.printer.pass_on(Stream::Stderr, options.raw, cancel.clone());
        let headers = [("Accept", "text/event-stream"), ("Content-Type", "application/json")];
        let body = self.with_version(action, &Value::Object(arguments))?.to_string();
        let mut code = None;
        let response = self.http.send("POST", &format!("{}/actions/{action}", self.sandbox()?), &headers, body.as_bytes())?;
        let ended = response.events(|kind, data| {
            let piece = match data["base64"].as_str() {
                Some(base64) => STANDARD.decode(base64).context("invalid event of the server")?,
                None => text(data, "text").as_bytes().to_vec(),
            };
            match kind {
                "stdout" => out(&piece),
                "stderr" => err(&piece),
                "error" => anyhow::bail!("{}", text(data, "message")),
                "result" => {
                    code = Some(code_of(data));
                    if let Some(message) = data["limit"]["message"].as_str() {
                        self.printer.error(&Hinted::error(message, text(&data["limit"], "hint")));
                    }
                }
                _ => {}
            }
            anyhow::ensure!(!cancel.is_killed(), "nobody reads the output");
            Ok(())
        });
        if cancel.is_killed() {
            return Ok(Code::Signal(SIGPIPE));
        }
        ended?;
        code.context("the server ended the stream before the command")
    }

    fn compact(&self) -> anyhow::Result<Code> {
        let done = self.act("compact", &json!({}))?;
        let size = |row: &Value, name: &str| crate::time::size(row[name].as_u64().unwrap_or(0));
        self.lines(&done, &json!([done]), |row| format!("{} -> {}", size(row, "before_bytes"), size(row, "after_bytes")))
    }

    fn kv(&self, args: &Kv) -> anyhow::Result<Code> {
        match &args.verb {
            KvVerb::Get { key } => {
                let found = self.act("kv_get", &json!({ "key": key }))?;
                if found["found"] != true {
                    self.printer.error(&anyhow::anyhow!("key `{key}` does not exist"));
                    return Ok(Code::Failure);
                }
                let whole = json!([found["value"]]);
                self.lines(&found, &whole, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            }
            KvVerb::Set { key, value, text } => {
                let given = if value == "-" { std::io::read_to_string(std::io::stdin())? } else { value.clone() };
                let parsed = if *text { None } else { serde_json::from_str(&given).ok() };
                let stored = self.act("kv_set", &json!({ "key": key, "value": parsed.unwrap_or(Value::String(given)) }))?;
                self.lines(&stored, &Value::Null, |_| String::new())
            }
            KvVerb::Delete { keys } => {
                let mut code = Code::Success;
                for key in keys {
                    if self.act("kv_delete", &json!({ "key": key }))?["found"] != true {
                        self.printer.error(&anyhow::anyhow!("key `{key}` does not exist"));
                        code = Code::Failure;
                    }
                }
                Ok(code)
            }
            KvVerb::Keys { prefix } => {
                let found = self.act("kv_keys", &json!({ "prefix": prefix }))?;
                self.lines(&found, &found["keys"], |key| key.as_str().unwrap_or_default().to_owned())
            }
        }
    }

    fn history(&self, global: &Global, verb: &Verb, args: &History) -> anyhow::Result<Code> {
        match &args.verb {
            // An action returns less than a file has: a part of the output, and no usage.
            Some(HistoryVerb::Show { run, html }) => {
                return whole::on_a_copy(self, global, verb).or_else(|error| match error.downcast_ref::<Refused>() {
                    // A key with a view gets no copy.
                    Some(Refused { status: 403, .. }) if html.is_none() => self.perform("history", &json!({ "run": run })),
                    _ => Err(error),
                });
            }
            None => {}
        }
        let (mut before, mut runs, mut notes) = (None::<i64>, Vec::new(), json!([]));
        while runs.len() < args.limit {
            let page = (args.limit - runs.len()).min(MOST_ROWS);
            let found = self.act("history", &json!({ "limit": page, "grep": args.grep, "before": before }))?;
            let rows = found["runs"].as_array().cloned().unwrap_or_default();
            let is_young = |row: &Value| {
                let started = row["started_ms"].as_i64().unwrap_or(0).saturating_mul(1_000_000);
                args.since.is_none_or(|since| started >= since)
            };
            let young = rows.iter().filter(|row| is_young(row)).count();
            notes = found["notes"].clone();
            before = rows.last().and_then(|row| row["run"].as_i64());
            let is_last = rows.is_empty() || young < rows.len();
            runs.extend(rows.into_iter().take(young));
            if is_last || before.is_none() {
                break;
            }
        }
        let code = if runs.is_empty() { Code::Failure } else { Code::Success };
        if self.printer.is_json() {
            self.printer.json(&json!({ "runs": runs, "notes": notes }));
            return Ok(code);
        }
        if runs.is_empty() {
            self.printer.line(if args.since.is_some() || args.grep.is_some() { "no matching runs" } else { "no runs yet" });
            return Ok(code);
        }
        self.printer.line(&self.printer.paint(Colour::Bold, history::HEAD));
        for row in &runs {
            let took = Duration::from_millis(row["duration_ms"].as_u64().unwrap_or(0));
            let row = history::Row {
                id: row["run"].as_i64().unwrap_or(0),
                exit_code: row["exit_code"].as_i64(),
                status: text(row, "status"),
                took: crate::time::span(took),
                command: text(row, "command"),
                limit: row["limit"].as_str(),
                is_pruned: row["output_pruned"] == true,
            };
            self.printer.line(&row.line(self.printer));
        }
        Ok(code)
    }
}

// The arguments that are given: null is not the same as absent.
fn given(arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    if let Some(fields) = arguments.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    arguments
}

fn code_of(ran: &Value) -> Code {
    Code::Guest(ran["exit_code"].as_u64().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

// A script from standard input.
fn script() -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        return Err(Hinted::error("no command given", "there is no interactive shell on a server: use `-c COMMAND`"));
    }
    std::io::read_to_string(std::io::stdin()).context("cannot read standard input")
}

fn quoted(program: &str, words: &[&str]) -> String {
    let words = words.iter().map(|word| format!(" '{}'", word.replace('\'', r"'\''")));
    std::iter::once(program.to_owned()).chain(words).collect()
}

// The options that the server has, as arguments of an action.
fn options_of(options: &RunOptions) -> anyhow::Result<Map<String, Value>> {
    let here = [
        ("--file", !options.file.is_empty()),
        ("--mount", !options.mounts.mount.is_empty()),
        ("--base", options.mounts.base.is_some()),
        ("--skills", options.skills.is_some()),
        ("--program", !options.program.is_empty()),
        ("--allow-host", !options.allow_host.is_empty()),
        ("--fuel", options.fuel.is_some()),
        ("--memory", options.memory.is_some()),
        ("--onto", options.onto.is_some()),
    ];
    if let Some((option, _)) = here.iter().find(|(_, is_given)| *is_given) {
        return Err(Hinted::error(format!("`{option}` does not work on a server"), "leave it out, or leave out `--server`"));
    }
    let piped = is_piped().then(|| Path::new("-"));
    let stdin = options.stdin.as_deref().or(piped).map(read_text).transpose()?;
    let mut made = Map::new();
    let env: Map<String, Value> = options.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let timeout = options.timeout.map(|time| u64::try_from(time.0.as_millis()).unwrap_or(u64::MAX));
    for (name, value) in [
        ("cwd", json!(options.cwd)),
        ("session", json!(options.session)),
        ("stdin", json!(stdin)),
        ("timeout_ms", json!(timeout)),
        ("seed", json!(options.deterministic)),
        ("env", if env.is_empty() { Value::Null } else { Value::Object(env) }),
        ("rollback_on_failure", if options.rollback_on_fail { json!(true) } else { Value::Null }),
        ("record", if options.record { json!(true) } else { Value::Null }),
    ] {
        if !value.is_null() {
            made.insert(name.to_owned(), value);
        }
    }
    Ok(made)
}

// Piped or redirected input is read to its end before the command starts. Other input may have no end: a terminal, or the socket that Node
// leaves open.
fn is_piped() -> bool {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let kind = stdin.and_then(|stdin| File::from(stdin).metadata()).map(|found| found.file_type());
    kind.is_ok_and(|kind| kind.is_file() || kind.is_fifo())
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).context("cannot read standard input");
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}
