//! `skill` on a server.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Component, Path};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::http::escaped;
use super::{Remote, text};
use crate::args::{PushOptions, SkillRun, SkillVerb};
use crate::commands::skill::{TIMEOUT, read_input};
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
        SkillVerb::Push(args) => {
            refuse(&args.options)?;
            push(remote, &::skills::Package::from_path(&args.path)?, args.options.replace)
        }
        SkillVerb::Run(run) => self::run_one(remote, run),
        SkillVerb::Add(add) => {
            refuse(&add.options)?;
            crate::commands::skill::added(&add.source, |package| push(remote, package, add.options.replace))
        }
        SkillVerb::Files { name, path } => {
            let query = path.as_ref().map(|path| format!("?path={}", escaped(path).replace('/', "%2F"))).unwrap_or_default();
            let found = remote.http.json("GET", &format!("{}/files{query}", address(name)), None)?;
            remote.lines(&found, &found, |row| match path {
                Some(_) => text(row, "content").to_owned(),
                None => format!("{:>8}  {}", row["size_bytes"].to_string(), text(row, "path")),
            })
        }
        SkillVerb::Diff { from, to } => {
            let (name, from) = split(from);
            let to = to.as_deref().map(|to| to.split_once('@').map_or(to, |(_, version)| version));
            let to = match to {
                Some(to) => to.to_owned(),
                None => text(&remote.http.json("GET", &address(name), None)?, "version").to_owned(),
            };
            let query = format!("from={}&to={}", escaped(from), escaped(&to));
            let found = remote.http.json("GET", &format!("/v1/skills/{}/diff?{query}", escaped(name)), None)?;
            let changed = found["files"].as_array().into_iter().flatten().filter(|file| text(file, "status") != "unchanged");
            let changed: Vec<Value> = changed.cloned().collect();
            remote.lines(&found, &json!(changed), |file| {
                let lines = file["lines"].as_array().into_iter().flatten().map(|line| {
                    let mark = match text(line, "op") {
                        "added" | "add" => '+',
                        "removed" | "remove" => '-',
                        _ => ' ',
                    };
                    format!("\n{mark}{}", text(line, "text"))
                });
                format!("{} {}{}", text(file, "status"), text(file, "path"), lines.collect::<String>())
            })?;
            Ok(if changed.is_empty() { Code::Success } else { Code::Failure })
        }
        SkillVerb::Versions { name } => {
            let found = remote.http.json("GET", &format!("/v1/skills/{}/versions", escaped(name)), None)?;
            remote.lines(&found, &found, |row| {
                let active = if row["active"] == true { " (active)" } else { "" };
                format!("{}{active}  {}", text(row, "version"), text(row, "uploaded_at"))
            })
        }
        SkillVerb::Activate { name } => {
            let (name, version) = split(name);
            let made =
                remote.http.json("PUT", &format!("/v1/skills/{}/active", escaped(name)), Some(&json!({ "version": version })))?;
            remote.lines(&made, &json!([made]), |row| format!("{} {} is active", text(row, "name"), text(row, "active")))
        }
        SkillVerb::Delete { name } => {
            let target = match name.split_once('@') {
                Some(_) => address(name),
                None => format!("/v1/skills/{}", escaped(name)),
            };
            remote.http.send("DELETE", &target, &[], b"")?.bytes()?;
            remote.lines(&json!({ "deleted": name }), &json!([name]), |name| {
                format!("deleted {}", name.as_str().unwrap_or_default())
            })
        }
        // These are about directories of this machine.
        SkillVerb::New { .. } | SkillVerb::Package { .. } | SkillVerb::Lint { .. } => {
            crate::commands::skill::here(verb, remote.printer)
        }
    }
}

// The server looks for packages, with its own settings.
fn refuse(options: &PushOptions) -> anyhow::Result<()> {
    let here = [("--find-links", !options.find_links.is_empty()), ("--offline", options.offline)];
    match here.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(Hinted::error(format!("`{option}` does not work on a server"), "leave it out, or leave out `--server`"))
        }
        None => Ok(()),
    }
}

fn push(remote: &Remote<'_>, package: &::skills::Package, replace: bool) -> anyhow::Result<Code> {
    let target = if replace { "/v1/skills" } else { "/v1/skills?replace=false" };
    let made = remote.http.send("POST", target, &[("Content-Type", "application/zip")], &package.to_zip())?.bytes()?;
    let made: Value = serde_json::from_slice(&made).context("invalid response of the server")?;
    remote.lines(&made, &json!([made]), |row| format!("pushed {}@{}", text(row, "name"), text(row, "version")))
}

fn split(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or((name, "latest"))
}

fn address(name: &str) -> String {
    let (name, version) = split(name);
    format!("/v1/skills/{}/{}", escaped(name), escaped(version))
}

fn run_one(remote: &Remote<'_>, run: &SkillRun) -> anyhow::Result<Code> {
    let input = run.input.as_deref().map_or_else(|| Ok("{}".to_owned()), read_input)?;
    serde_json::from_str::<Value>(&input).context("invalid input: expected JSON")?;
    let (name, version) = split(&run.name);
    let env: serde_json::Map<String, Value> = run.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let mut body = json!({ "skill": name, "env": env });
    if version != "latest" {
        body["version"] = json!(version);
    }
    if let Some(session) = &run.session {
        body["session_id"] = json!(session);
    }
    let mut sent = Vec::new();
    for path in &run.file {
        sent.push(send_file(remote, path)?);
    }
    if !sent.is_empty() {
        body["input_files"] = json!(sent);
    }
    // The input and the output are passed on as text, so that their numbers stay exact.
    let body = format!("{{\"input\":{},{}", input.trim(), body.to_string().trim_start_matches('{'));
    let sending = remote.http.send("POST", "/v1/executions", &[("Content-Type", "application/json")], body.as_bytes());
    let answer = sending.and_then(super::http::Response::bytes);
    for id in &sent {
        // Only this run needs it; one that stays is listed by GET /v1/files.
        let _ = remote.http.send("DELETE", &format!("/v1/files/{}", escaped(id)), &[], b"");
    }
    let answer = String::from_utf8(answer?).context("invalid response of the server")?;
    let result: Value = serde_json::from_str(&answer).context("invalid response of the server")?;
    if let Some(directory) = &run.download {
        download(remote, text(&result, "execution_id"), directory)?;
    }
    if remote.printer.is_json() {
        remote.printer.line(&remote.printer.foreign(answer.trim()));
    } else {
        for line in text(&result, "logs").lines() {
            remote.printer.note(remote.printer.foreign(line));
        }
        if let Some(output) = member(&answer, "output").filter(|output| *output != "null") {
            remote.printer.line(&remote.printer.foreign(output));
        }
        if let Some(error) = result["error"].as_str() {
            remote.printer.error(&anyhow::anyhow!("{error}"));
        }
    }
    Ok(match text(&result, "status") {
        "success" => Code::Success,
        "timeout" => Code::Guest(TIMEOUT),
        _ => Code::Failure,
    })
}

// The text of a member of a JSON object.
fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = object.trim_start().strip_prefix('{')?;
    loop {
        let (key, after) = first(rest)?;
        let value = after.trim_start().strip_prefix(':')?;
        let (_, after) = first(value)?;
        if key == name {
            return value.strip_suffix(after).map(str::trim);
        }
        rest = after.trim_start().strip_prefix(',')?;
    }
}

// The first value of a text, and what follows it.
fn first(text: &str) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

// Uploads a file for a run; returns its id.
fn send_file(remote: &Remote<'_>, path: &Path) -> anyhow::Result<String> {
    let name = path.file_name().with_context(|| format!("`{}` has no name", path.display()))?.to_string_lossy().replace('"', "_");
    let content = std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    // Random, so that no file ends the form early.
    let random = || RandomState::new().build_hasher().finish();
    let boundary = format!("sandlite-{:016x}{:016x}", random(), random());
    let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
    let body = [head.as_bytes(), &content, format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
    let kind = format!("multipart/form-data; boundary={boundary}");
    let made = remote.http.send("POST", "/v1/files", &[("Content-Type", &kind)], &body)?.bytes()?;
    let made: Value = serde_json::from_slice(&made).context("invalid response of the server")?;
    Ok(text(&made, "id").to_owned())
}

// Copies the files that an execution left to a directory of this machine.
fn download(remote: &Remote<'_>, execution: &str, directory: &Path) -> anyhow::Result<()> {
    let found = remote.http.json("GET", &format!("/v1/files?execution_id={}&limit=200", escaped(execution)), None)?;
    for row in found.as_array().into_iter().flatten() {
        let name = text(row, "name");
        // A name that leads out of the directory is not ours to write.
        anyhow::ensure!(Path::new(name).components().all(|part| matches!(part, Component::Normal(_))), "invalid path `{name}`");
        let place = directory.join(name);
        let failed = || format!("cannot write `{}`", place.display());
        if let Some(above) = place.parent() {
            std::fs::create_dir_all(above).with_context(failed)?;
        }
        let target = format!("/v1/files/{}/download", escaped(text(row, "id")));
        let mut file = std::fs::File::create_new(&place).with_context(failed)?;
        remote.http.send("GET", &target, &[], b"")?.copy_to(&mut file)?;
        remote.printer.note(remote.printer.foreign(&format!("file {name} in `{}`", directory.display())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_keeps_its_text() {
        let check = |object: &str, expected: Option<&str>| assert_eq!(member(object, "output"), expected, "{object}");
        check(r#"{"a":1,"output":{"n":123456789012345678901234567890,"x":1.50},"b":"output"}"#, {
            Some(r#"{"n":123456789012345678901234567890,"x":1.50}"#)
        });
        check(r#" { "logs" : "\"output\": 1", "output" : 1.10 } "#, Some("1.10"));
        check(r#"{"a":{"output":1},"status":"failed"}"#, None);
        check("[]", None);
        check("{}", None);
    }
}
