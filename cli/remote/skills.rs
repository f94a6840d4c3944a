//! `skill list`, `show`, `run` and `push` on a server.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::http::escaped;
use super::{Remote, text};
use crate::args::{SkillRun, SkillVerb};
use crate::exit::Code;
use crate::printer::Hinted;

pub(super) fn run(remote: &Remote<'_>, verb: &SkillVerb) -> anyhow::Result<Code> {
    match verb {
        SkillVerb::List { search } => {
            let mut found = remote.http.json("GET", "/v1/skills", None)?;
            if let (Some(rows), Some(search)) = (found.as_array_mut(), search) {
                let search = search.to_lowercase();
                rows.retain(|row| {
                    [text(row, "name"), text(row, "description")].iter().any(|word| word.to_lowercase().contains(&search))
                });
            }
            remote.lines(&found, &found, |row| {
                format!("{}@{}  {}", text(row, "name"), text(row, "version"), text(row, "description"))
            })
        }
        SkillVerb::Show { name, instructions } => {
            let found = remote.http.json("GET", &address(name), None)?;
            remote.lines(&found, &json!([found]), |row| match instructions {
                true => text(row, "instructions").to_owned(),
                false => {
                    let head = format!("{}@{}\n{}", text(row, "name"), text(row, "version"), text(row, "description"));
                    format!("{head}\n\n{}", text(row, "instructions"))
                }
            })
        }
        SkillVerb::Push(push) => {
            let package = ::skills::Package::from_path(&push.path)?;
            let headers = [("Content-Type", "application/zip")];
            let made = remote.http.send("POST", "/v1/skills", &headers, &package.to_zip())?.bytes()?;
            let made: Value = serde_json::from_slice(&made).context("invalid response of the server")?;
            remote.lines(&made, &json!([made]), |row| format!("pushed {}@{}", text(row, "name"), text(row, "version")))
        }
        SkillVerb::Run(run) => self::run_one(remote, run),
        _ => Err(Hinted::error("this verb does not work on a server", "use list, show, run or push, or leave out `--server`")),
    }
}

fn split(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or((name, "latest"))
}

fn address(name: &str) -> String {
    let (name, version) = split(name);
    format!("/v1/skills/{}/{}", escaped(name), escaped(version))
}

fn run_one(remote: &Remote<'_>, run: &SkillRun) -> anyhow::Result<Code> {
    if !run.file.is_empty() || run.download.is_some() {
        let hint = "use one of the clients for files of this machine: docs/server.md";
        return Err(Hinted::error("`--file` and `--download` do not work on a server", hint));
    }
    let input = match run.input.as_deref() {
        None => "{}".to_owned(),
        Some("-") => std::io::read_to_string(std::io::stdin())?,
        Some(given) => match given.strip_prefix('@') {
            Some(path) => std::fs::read_to_string(path).with_context(|| format!("cannot read `{path}`"))?,
            None => given.to_owned(),
        },
    };
    let input: Value = serde_json::from_str(&input).context("invalid input: expected JSON")?;
    let (name, version) = split(&run.name);
    let env: serde_json::Map<String, Value> = run.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let mut body = json!({ "skill": name, "input": input, "env": env });
    if version != "latest" {
        body["version"] = json!(version);
    }
    if let Some(session) = &run.session {
        body["session_id"] = json!(session);
    }
    let result = remote.http.json("POST", "/v1/executions", Some(&body))?;
    if remote.printer.is_json() {
        remote.printer.json(&result);
    } else {
        for line in text(&result, "logs").lines() {
            remote.printer.note(remote.printer.foreign(line));
        }
        if !result["output"].is_null() {
            remote.printer.line(&remote.printer.foreign(&result["output"].to_string()));
        }
        if let Some(error) = result["error"].as_str() {
            remote.printer.error(&anyhow::anyhow!("{error}"));
        }
    }
    Ok(if result["status"] == "success" { Code::Success } else { Code::Failure })
}
