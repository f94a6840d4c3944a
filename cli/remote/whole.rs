//! Verbs on whole sandboxes. Verbs that only read run here, on a downloaded copy.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::http::escaped;
use super::{Remote, files, text};
use crate::args::{Export, Fork, Global, Import, Verb, Watch};
use crate::commands::{local, write_whole_with};
use crate::exit::Code;
use crate::printer::Hinted;

/// Downloads the sandbox as one file.
fn download(remote: &Remote<'_>, query: &str, to: &mut impl std::io::Write) -> anyhow::Result<u64> {
    let _slow = remote.printer.progress().slow("downloading the sandbox");
    remote.http.send("GET", &format!("{}/export?{query}", remote.sandbox()?), &[], b"")?.copy_to(to)
}

/// Runs a verb on a copy of the sandbox with its versions.
pub(super) fn on_a_copy(remote: &Remote<'_>, global: &Global, verb: &Verb) -> anyhow::Result<Code> {
    let directory = tempfile::tempdir().context("cannot create a directory for the copy")?;
    let path = directory.path().join("sandbox.db");
    let mut file = std::fs::File::create(&path).context("cannot create the copy")?;
    download(remote, "history=true&versions=true", &mut file)?;
    file.flush()?;
    drop(file);
    let here = Global {
        db: Some(path),
        preset: global.preset.clone(),
        wait: global.wait,
        at: global.at.clone(),
        policy: None,
        view: None,
        json: global.json,
        verbose: global.verbose,
    };
    local(&here, verb, remote.printer)
}

pub(super) fn export(remote: &Remote<'_>, args: &Export) -> anyhow::Result<Code> {
    if args.to.exists() {
        return Err(Hinted::error(format!("`{}` already exists", args.to.display()), "name a new file for the export"));
    }
    let size = write_whole_with(&args.to, |file| download(remote, "history=true", file))?;
    let digest = if args.digest { Some(digest_of(&args.to)?) } else { None };
    let printed = json!({ "path": args.to, "bytes": size, "digest": digest });
    remote.lines(&super::given(&printed), &json!([printed]), |_| {
        let wrote = format!("wrote `{}` ({})", args.to.display(), crate::time::size(size));
        digest.as_ref().map_or(wrote.clone(), |digest| format!("{wrote}\n{digest}"))
    })
}

fn digest_of(path: &Path) -> anyhow::Result<String> {
    let sandbox = crate::engine::give(runtime::Sandbox::builder()).database(path).as_owner().read_only().open()?;
    Ok(sandbox.digest(runtime::Export::default())?)
}

/// Creates the sandbox from a file of this machine.
pub(super) fn import(remote: &Remote<'_>, args: &Import) -> anyhow::Result<Code> {
    let from = args.from.display();
    if let Some(digest) = &args.digest {
        // Checked here, before anything is sent.
        drop(crate::engine::give(runtime::Sandbox::builder()).import(&args.from).import_digest(digest).open()?);
    }
    let failed = || format!("cannot read `{from}`");
    let file = std::fs::File::open(&args.from).with_context(failed)?;
    let length = file.metadata().with_context(failed)?.len();
    let headers = [("Content-Type", "application/vnd.sqlite3")];
    let target = format!("/v1/sandboxes/import?name={}", escaped(remote.named).replace('/', "%2F"));
    let _slow = remote.printer.progress().slow("sending the snapshot");
    let made = remote.http.send_from("POST", &target, &headers, (length, file))?.bytes()?;
    let made: Value = serde_json::from_slice(&made).context("invalid response of the server")?;
    remote.lines(&made, &json!([made]), |row| format!("imported `{from}` as the sandbox `{}`", text(row, "name")))
}

/// Copies the sandbox on the server; the file that the verb names is the name of the copy.
pub(super) fn fork(remote: &Remote<'_>, global: &Global, args: &Fork) -> anyhow::Result<Code> {
    let name = args.to.to_str().context("the name of the copy is not UTF-8")?;
    let body = super::given(&json!({ "name": name, "at": global.at }));
    let made = remote.http.json("POST", &format!("{}/fork", remote.sandbox()?), Some(&body))?;
    remote.lines(&made, &json!([made]), |row| format!("copied the sandbox to `{}`", text(row, "name")))
}

pub(super) fn watch(remote: &Remote<'_>, args: &Watch) -> anyhow::Result<Code> {
    if args.consumer.is_some() {
        let hint = "use --from VERSION, or the actions `events` and `acknowledge_events`";
        return Err(Hinted::error("`--consumer` does not work on a server", hint));
    }
    let place = remote.sandbox()?;
    let path = args.path.as_deref().map(files::guest);
    let after = match &args.from {
        Some(from) => remote.act("show", &json!({ "run": from }))?["version"].as_i64(),
        None => remote.act("log", &json!({ "limit": 1 }))?["versions"][0]["version"].as_i64(),
    };
    let mut target = format!("{place}/events?after={}", after.unwrap_or(0));
    if let Some(path) = &path {
        target.push_str(&format!("&path={}", escaped(path).replace('/', "%2F")));
    }
    let print = |event: &Value| {
        if remote.printer.is_json() {
            return remote.printer.json(event);
        }
        let from =
            Some(text(event, "from")).filter(|from| !from.is_empty()).map(|from| format!("{from} -> ")).unwrap_or_default();
        let line = format!("v{} {:<10} {from}{}", event["version"], text(event, "kind"), text(event, "path"));
        remote.printer.line(&remote.printer.foreign(&line));
    };
    if args.once {
        let found = remote.http.json("GET", &target, None)?;
        found["events"].as_array().into_iter().flatten().for_each(print);
        return Ok(Code::Success);
    }
    let response = remote.http.send("GET", &target, &[("Accept", "text/event-stream")], b"")?;
    response.events(|kind, data| match kind {
        "change" => {
            print(data);
            Ok(())
        }
        "error" => anyhow::bail!("{}", text(data, "message")),
        _ => Ok(()),
    })?;
    Ok(Code::Success)
}
