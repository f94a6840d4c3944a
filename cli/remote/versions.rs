//! The verbs on versions: each is the action of its name.

use serde_json::{Value, json};

use super::{Remote, files, text};
use crate::args::{Changes, Diff, Verb};
use crate::exit::Code;

/// Returns the action that a verb is, with its arguments, if its text is all that is printed.
pub(super) fn action(verb: &Verb) -> Option<(&'static str, Value)> {
    let paths = |paths: &[String]| paths.iter().map(|path| files::guest(path)).collect::<Vec<_>>();
    Some(match verb {
        Verb::Log(args) => {
            let path = args.path.as_deref().map(files::guest);
            ("log", json!({ "path": path, "limit": args.limit, "stat": args.stat, "digest": args.digest }))
        }
        Verb::Show(args) => ("show", json!({ "run": args.run })),
        Verb::Blame(args) => ("blame", json!({ "path": files::guest(&args.path) })),
        Verb::Bisect(args) => {
            let command = match args.command.as_slice() {
                [line] => line.clone(),
                words => words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" "),
            };
            ("bisect", json!({ "good": args.good, "bad": args.bad, "command": command }))
        }
        Verb::Undo(args) => ("undo", json!({ "runs": args.runs, "dry_run": args.dry_run })),
        Verb::Restore(args) => {
            ("restore", json!({ "version": args.version, "paths": paths(&args.paths), "dry_run": args.dry_run }))
        }
        Verb::Update(args) => {
            let keep = [("ours", args.ours), ("theirs", args.theirs)].into_iter().find(|(_, is_it)| *is_it).map(|(name, _)| name);
            ("update", json!({ "path": args.path, "to": args.to, "keep": keep }))
        }
        Verb::Checkpoint(args) => ("checkpoint", json!({ "name": args.name, "message": args.message })),
        Verb::Checkpoints => ("checkpoints", json!({})),
        Verb::Prune(args) => {
            let seconds = args.keep_age.map(|age| age.0.as_secs());
            let bytes = args.keep_bytes.map(|bytes| bytes.0);
            ("prune_versions", json!({ "keep_versions": args.keep_runs, "keep_seconds": seconds, "keep_bytes": bytes }))
        }
        _ => return None,
    })
}

/// Verbs whose options choose what is printed.
pub(super) fn run(remote: &Remote<'_>, verb: &Verb) -> Option<anyhow::Result<Code>> {
    Some(match verb {
        Verb::Diff(args) => diff(remote, args),
        Verb::Changes(args) => changes(remote, args),
        _ => return None,
    })
}

fn diff(remote: &Remote<'_>, args: &Diff) -> anyhow::Result<Code> {
    let to = args.rest.first().filter(|word| !word.starts_with(['/', '.']));
    let paths: Vec<String> = args.rest.iter().skip(usize::from(to.is_some())).map(|path| files::guest(path)).collect();
    let names_only = args.name_only || args.stat;
    differences(remote, "diff", &json!({ "from": args.from, "to": to, "paths": paths, "names_only": names_only }))
}

fn changes(remote: &Remote<'_>, args: &Changes) -> anyhow::Result<Code> {
    let paths: Vec<String> = args.path.iter().map(|path| files::guest(path)).collect();
    let names_only = args.name_only || args.stat;
    differences(remote, "changes", &json!({ "since": args.since, "paths": paths, "names_only": names_only }))
}

// A difference is a negative result, as for a file of this machine.
fn differences(remote: &Remote<'_>, action: &str, arguments: &Value) -> anyhow::Result<Code> {
    let found = remote.act(action, arguments)?;
    let patch = text(&found, "patch");
    let rows = if patch.is_empty() { found["files"].clone() } else { json!([patch]) };
    remote.lines(&found, &rows, |row| match row.as_str() {
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
    Ok(if found["total"].as_u64().unwrap_or(0) == 0 { Code::Success } else { Code::Failure })
}
