//! The verbs on a sandbox of a server (`sandlite --server URL …`): each is an action there, so this only asks and prints.
//!
//! Knows nothing of how anything works; a verb or an option that needs this machine's engine or files is refused.

mod files;
mod http;
mod skills;
mod tls;

use std::io::IsTerminal as _;
use std::path::Path;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runtime::{Cancel, Stream};
use serde_json::{Map, Value, json};

use crate::args::{Bash, Diff, Global, History, HistoryVerb, Kv, KvVerb, Python, RunOptions, Server, Verb};
use crate::exit::{Code, SIGPIPE};
use crate::printer::{Hinted, Printer};
use http::{Http, Refused, escaped};

/// The sandbox that a command line names.
struct Remote<'a> {
    http: Http,
    named: &'a str,
    printer: &'a Printer,
}

/// Does what the words say on the server.
pub(crate) fn run(server: &Server, global: &Global, verb: &Verb, printer: &Printer) -> anyhow::Result<Code> {
    let key = server.key.clone().or_else(|| std::env::var("SANDLITE_KEY").ok()).filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| Hinted::error("no API key given", "pass one with `--key` or in SANDLITE_KEY"))?;
    refuse(global)?;
    let remote = Remote { http: Http::new(&server.url, key, server.ca.as_deref())?, named: &server.sandbox, printer };
    remote.run(global, verb).or_else(|error| match error.downcast_ref::<Refused>() {
        // Something that is missing, or that somebody else changed, is a negative result.
        Some(Refused { status: 404 | 409 | 412, .. }) => {
            printer.error(&error);
            Ok(Code::Failure)
        }
        _ => Err(error),
    })
}

fn refuse(global: &Global) -> anyhow::Result<()> {
    let given = [("--db", global.db.is_some()), ("--policy", global.policy.is_some()), ("--view", global.view.is_some())];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(Hinted::error(format!("`{option}` has no meaning on a server"), "leave it out, or leave out `--server`"))
        }
        None => Ok(()),
    }
}

/// A field as text; nothing if it is missing.
fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn stat_line(file: &Value) -> String {
    let lines = match (file["added"].as_u64(), file["removed"].as_u64()) {
        (Some(added), Some(removed)) => format!("  +{added} -{removed}"),
        _ => String::new(),
    };
    format!("{} {}{lines}", text(file, "mark"), text(file, "path"))
}

fn version_line(row: &Value) -> String {
    let name = row["run"].as_i64().map_or_else(|| format!("v{}", row["version"]), |run| run.to_string());
    let listed = |field: &str| row[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    let labels: String = listed("checkpoints").iter().map(|label| format!(" [{label}]")).collect();
    let what = Some(text(row, "command")).filter(|command| !command.is_empty()).unwrap_or_else(|| text(row, "made_by"));
    let paths = listed("changed").join(" ");
    let stat: String =
        row["stat"].as_array().into_iter().flatten().map(|file| format!("\n        {}", stat_line(file))).collect();
    let paths = match stat.is_empty() {
        true if paths.is_empty() => paths,
        true => format!("\n        {paths}"),
        false => stat,
    };
    format!("{name:>6}{labels}  {}{paths}", what.lines().next().unwrap_or_default())
}

impl Remote<'_> {
    fn run(&self, global: &Global, verb: &Verb) -> anyhow::Result<Code> {
        match verb {
            Verb::Bash(args) => self.bash(args),
            Verb::Python(args) => self.python(args),
            Verb::Fs(args) => files::run(self, global, &args.verb),
            Verb::Kv(args) => self.kv(args),
            Verb::History(args) => self.history(args),
            Verb::Log(args) => {
                let path = args.path.as_deref().map(files::guest);
                let arguments = json!({ "path": path, "limit": args.limit, "stat": args.stat, "digest": args.digest });
                let found = self.act("log", &arguments)?;
                self.lines(&found, &found["versions"], version_line)
            }
            Verb::Diff(args) => self.diff(args),
            Verb::Undo(args) => self.differences("undo", json!({ "runs": args.runs, "dry_run": args.dry_run }), Code::Success),
            Verb::Restore(args) => {
                let paths: Vec<String> = args.paths.iter().map(|path| files::guest(path)).collect();
                let arguments = json!({ "version": args.version, "paths": paths, "dry_run": args.dry_run });
                self.differences("restore", arguments, Code::Success)
            }
            Verb::Checkpoint(args) => {
                let made = self.act("checkpoint", &json!({ "name": args.name, "message": args.message }))?;
                self.lines(&made, &json!([made]), |row| {
                    format!("checkpoint {} names version {}", text(row, "name"), row["version"])
                })
            }
            Verb::Checkpoints => {
                let found = self.act("checkpoints", &json!({}))?;
                self.lines(&found, &found["checkpoints"], |row| {
                    format!("{:>6}  {}  {}", row["version"].to_string(), text(row, "name"), text(row, "message"))
                        .trim_end()
                        .to_owned()
                })
            }
            Verb::Skill(args) => skills::run(self, &args.verb),
            _ => Err(Hinted::error("this verb does not work on a server", "use it without `--server`, on the file of a sandbox")),
        }
    }

    /// The address of the sandbox, which is created by its name if it is missing.
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
        let mut arguments = arguments.clone();
        if let Some(fields) = arguments.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        self.http.json("POST", &format!("{}/actions/{action}", self.sandbox()?), Some(&arguments))
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
        let body = Value::Object(arguments).to_string();
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

    fn kv(&self, args: &Kv) -> anyhow::Result<Code> {
        match &args.verb {
            KvVerb::Get { key } => {
                let found = self.act("kv_get", &json!({ "key": key }))?;
                if found["found"] != true {
                    self.printer.error(&anyhow::anyhow!("unknown key `{key}`"));
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
                        self.printer.error(&anyhow::anyhow!("unknown key `{key}`"));
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

    fn history(&self, args: &History) -> anyhow::Result<Code> {
        let one = match &args.verb {
            Some(HistoryVerb::Show { html: Some(_), .. }) => {
                return Err(Hinted::error(
                    "`--html` does not work on a server",
                    "the server's console shows runs at its address",
                ));
            }
            Some(HistoryVerb::Show { run, .. }) => Some(*run),
            None => None,
        };
        let found = self.act("history", &json!({ "limit": args.limit, "grep": args.grep, "run": one }))?;
        self.lines(&found, &found["runs"], |row| {
            let end = [text(row, "limit"), text(row, "error")].into_iter().find(|end| !end.is_empty()).map(str::to_owned);
            let end = end.or_else(|| row["exit_code"].as_i64().map(|code| format!("exit code {code}")));
            let end = end.unwrap_or_else(|| text(row, "status").to_owned());
            let output = [text(row, "stdout"), text(row, "stderr")].concat();
            format!(
                "{:>6} {}: {} [{end}]\n{output}",
                row["run"].to_string(),
                text(row, "name"),
                text(row, "command").replace('\n', " ⏎ ")
            )
        })
    }

    fn diff(&self, args: &Diff) -> anyhow::Result<Code> {
        let to = args.rest.first().filter(|word| !word.starts_with(['/', '.']));
        let paths: Vec<String> = args.rest.iter().skip(usize::from(to.is_some())).map(|path| files::guest(path)).collect();
        let names_only = args.name_only || args.stat;
        let arguments = json!({ "from": args.from, "to": to, "paths": paths, "names_only": names_only });
        self.differences("diff", arguments, Code::Failure)
    }

    // `differ` is the exit code if there is a difference.
    fn differences(&self, action: &str, arguments: Value, differ: Code) -> anyhow::Result<Code> {
        let found = self.act(action, &arguments)?;
        let patch = text(&found, "patch");
        let rows = if patch.is_empty() { found["files"].clone() } else { json!([patch]) };
        self.lines(&found, &rows, |row| match row.as_str() {
            Some(patch) => patch.to_owned(),
            None => {
                let mark = match text(row, "kind") {
                    "added" => 'A',
                    "deleted" => 'D',
                    "mode" => 'm',
                    _ => 'M',
                };
                format!("{mark} {}", text(row, "path"))
            }
        })?;
        Ok(if found["total"].as_u64().unwrap_or(0) == 0 { Code::Success } else { differ })
    }
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
    let stdin = options.stdin.as_deref().map(read_text).transpose()?;
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

fn read_text(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).context("cannot read standard input");
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}
