//! `sandlite log`, `diff`, `show`, `blame`, `bisect`, `replay`, `changes`, `apply`, `undo`, `restore`, `update`, `checkpoint`,
//! `checkpoints` and `prune`: the actions of those names.

use runtime::actions::{self, Answer, Context};
use runtime::{Comparison, Mount, Sandbox};
use serde_json::{Value, json};

use crate::args::{Apply, Bisect, Blame, Changes, Checkpoint, Diff, Global, Log, Prune, Replay, Restore, Show, Undo, Update};
use crate::exit::Code;
use crate::printer::{Hinted, Printer};

/// Printed instead of the keys that differ if they are unknown.
const UNKNOWN_VALUES: &str = "? keys: another program wrote to the file";

/// Maximum number of listed paths that a patch omits.
const REFUSED: usize = 10;

pub(crate) fn log(global: &Global, args: &Log, printer: &Printer) -> anyhow::Result<Code> {
    let path = args.path.as_deref().map(super::fs::guest);
    // A computed digest is stored in the file.
    let sandbox = if args.digest { super::existing(global, printer)? } else { super::looking(global, printer)? };
    act(&sandbox, "log", json!({ "path": path, "limit": args.limit, "stat": args.stat, "digest": args.digest }), printer)
}

pub(crate) fn diff(global: &Global, args: &Diff, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = super::looking(global, printer)?;
    let to = second_version(&sandbox, args)?;
    let paths: Vec<String> = args.rest.iter().skip(usize::from(to.is_some())).map(|path| super::fs::guest(path)).collect();
    let to = to.map_or("HEAD", String::as_str);
    if printer.is_json() {
        let arguments = json!({ "from": args.from, "to": to, "paths": paths, "names_only": args.name_only || args.stat });
        return act(&sandbox, "diff", arguments, printer);
    }
    let compared = sandbox.versions().compare(&args.from, to, &paths)?;
    Ok(show(&compared, args.name_only, args.stat, printer))
}

// The first word after the first version: a version, or already a path. One that is neither may be a misspelled version.
fn second_version<'a>(sandbox: &Sandbox, args: &'a Diff) -> anyhow::Result<Option<&'a String>> {
    let Some(word) = args.rest.first().filter(|word| !word.starts_with(['/', '.'])) else { return Ok(None) };
    let Err(error) = sandbox.versions().resolve(word) else { return Ok(Some(word)) };
    let path = super::fs::guest(word);
    let is_there = |sandbox: &Sandbox| sandbox.fs().symlink_metadata(&path).is_ok();
    if is_there(sandbox) || is_there(&sandbox.at(&args.from)?) { Ok(None) } else { Err(error.into()) }
}

fn show(compared: &Comparison, name_only: bool, stat: bool, printer: &Printer) -> Code {
    if name_only || stat {
        for one in &compared.differences {
            let counts = if stat { compared.line_counts(one) } else { None };
            let mark = one.kind.mark();
            let lines = match counts {
                Some((added, removed)) => format!("  +{added} -{removed}"),
                None if stat && !one.is_directory => format!("  {} -> {} bytes", one.old_size, one.new_size),
                None => String::new(),
            };
            printer.line(&format!("{mark} {}{lines}", printer.foreign(&one.path)));
        }
        if stat {
            compared.values.iter().for_each(|one| printer.line(&printer.foreign(&one.to_string())));
            if compared.values_unknown {
                printer.line(UNKNOWN_VALUES);
            }
        }
    } else {
        // File by file: all of them together can be larger than the memory.
        for one in &compared.differences {
            if printer.is_unread() {
                break;
            }
            lines_of(&compared.patch_of(one), printer);
        }
        compared.values.iter().for_each(|one| printer.line(&printer.foreign(&format!("# {one}"))));
        if compared.values_unknown {
            printer.line(&format!("# {UNKNOWN_VALUES}"));
        }
    }
    if compared.is_empty() { Code::Success } else { Code::Failure }
}

pub(crate) fn show_run(global: &Global, args: &Show, printer: &Printer) -> anyhow::Result<Code> {
    act(&super::looking(global, printer)?, "show", json!({ "run": args.run }), printer)
}

pub(crate) fn blame(global: &Global, args: &Blame, printer: &Printer) -> anyhow::Result<Code> {
    act(&super::looking(global, printer)?, "blame", json!({ "path": super::fs::guest(&args.path) }), printer)
}

pub(crate) fn bisect(global: &Global, args: &Bisect, printer: &Printer) -> anyhow::Result<Code> {
    let command = match args.command.as_slice() {
        [line] => line.clone(),
        words => words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" "),
    };
    let arguments = json!({ "good": args.good, "bad": args.bad, "command": command });
    act(&super::looking(global, printer)?, "bisect", arguments, printer)
}

pub(crate) fn replay(global: &Global, args: &Replay, printer: &Printer) -> anyhow::Result<Code> {
    if !args.file.exists() {
        return Err(Hinted::error(format!("`{}` does not exist", args.file.display()), "name the file of a sandbox"));
    }
    let builder = global.preset.give(crate::engine::give(Sandbox::builder())).wait(global.wait.0);
    let sandbox = builder.database(&args.file).read_only().open()?;
    act(&sandbox, "replay", json!({ "from": args.from }), printer)
}

pub(crate) fn changes(global: &Global, args: &Changes, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = mounted(global, &args.mount, printer)?;
    let paths: Vec<String> = args.path.iter().map(|path| super::fs::guest(path)).collect();
    if args.patch {
        let below = paths.first().map_or("/", String::as_str);
        return write_patch(&sandbox.versions().changes(args.since.as_deref(), &paths)?, below, printer);
    }
    if printer.is_json() {
        let arguments = json!({ "since": args.since, "paths": paths, "names_only": args.name_only || args.stat });
        return act(&sandbox, "changes", arguments, printer);
    }
    Ok(show(&sandbox.versions().changes(args.since.as_deref(), &paths)?, args.name_only, args.stat, printer))
}

pub(crate) fn apply(global: &Global, args: &Apply, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = mounted(global, &args.mount, printer)?;
    let path = args.path.as_deref().map(super::fs::guest);
    if args.patch {
        let below = path.or_else(|| args.mount.first().map(|mount| mount.guest().to_owned())).unwrap_or_else(|| "/".to_owned());
        let compared = sandbox.versions().changes(args.since.as_deref(), std::slice::from_ref(&below))?;
        write_patch(&compared, &below, printer)?;
        return Ok(Code::Success);
    }
    let arguments = json!({ "directory": args.directory, "since": args.since, "path": path, "dry_run": args.dry_run });
    let action = actions::find("apply").ok_or_else(|| anyhow::anyhow!("unknown action `apply`"))?;
    let answer = match action.prepare(arguments)?.run(&Context::new(sandbox)) {
        // Conflicts are a result, not a failure.
        Err(error @ runtime::Error::Conflicts { .. }) => return Ok(super::answered(Err(error.into()), printer)),
        answer => answer?,
    };
    print(&answer, printer);
    let has_conflicts = answer.data["conflicts"].as_array().is_some_and(|conflicts| !conflicts.is_empty());
    Ok(if has_conflicts { Code::Failure } else { Code::Success })
}

// The patch is written unmodified because a program reads it.
fn write_patch(compared: &Comparison, below: &str, printer: &Printer) -> anyhow::Result<Code> {
    let mut patch = Vec::new();
    let refused = compared.write_patch(below, &mut patch)?;
    printer.bytes(&patch)?;
    for path in refused.iter().take(REFUSED) {
        printer.note(format_args!("skipped `{}`: git does not apply changes to it", printer.foreign(path)));
    }
    if refused.len() > REFUSED {
        printer.note(format_args!("skipped {} more", refused.len() - REFUSED));
    }
    Ok(if compared.differences.is_empty() { Code::Success } else { Code::Failure })
}

// Opens an existing sandbox with the directories that its commands used.
fn mounted(global: &Global, mounts: &[Mount], printer: &Printer) -> anyhow::Result<Sandbox> {
    super::existing_with(global, printer, |builder| mounts.iter().fold(builder, |builder, mount| builder.mount(mount.clone())))
}

pub(crate) fn undo(global: &Global, args: &Undo, printer: &Printer) -> anyhow::Result<Code> {
    act(&super::existing(global, printer)?, "undo", json!({ "runs": args.runs, "dry_run": args.dry_run }), printer)
}

pub(crate) fn restore(global: &Global, args: &Restore, printer: &Printer) -> anyhow::Result<Code> {
    let paths: Vec<String> = args.paths.iter().map(|path| super::fs::guest(path)).collect();
    let arguments = json!({ "version": args.version, "paths": paths, "dry_run": args.dry_run });
    act(&super::existing(global, printer)?, "restore", arguments, printer)
}

pub(crate) fn update(global: &Global, args: &Update, printer: &Printer) -> anyhow::Result<Code> {
    let keep = match (args.ours, args.theirs) {
        (true, _) => Some("ours"),
        (_, true) => Some("theirs"),
        _ => None,
    };
    let sandbox = super::existing_with(global, printer, |builder| args.mounts.give(builder))?;
    act(&sandbox, "update", json!({ "path": args.path, "to": args.to, "keep": keep }), printer)
}

pub(crate) fn checkpoint(global: &Global, args: &Checkpoint, printer: &Printer) -> anyhow::Result<Code> {
    let arguments = json!({ "name": args.name, "message": args.message });
    act(&super::existing(global, printer)?, "checkpoint", arguments, printer)
}

pub(crate) fn checkpoints(global: &Global, printer: &Printer) -> anyhow::Result<Code> {
    act(&super::looking(global, printer)?, "checkpoints", json!({}), printer)
}

pub(crate) fn prune(global: &Global, args: &Prune, printer: &Printer) -> anyhow::Result<Code> {
    let seconds = args.keep_age.map(|age| age.0.as_secs());
    let bytes = args.keep_bytes.map(|bytes| bytes.0);
    let arguments = json!({ "keep_versions": args.keep_runs, "keep_seconds": seconds, "keep_bytes": bytes });
    act(&super::existing(global, printer)?, "prune_versions", arguments, printer)
}

// Performs an action and prints its result as JSON or text.
fn act(sandbox: &Sandbox, name: &str, arguments: Value, printer: &Printer) -> anyhow::Result<Code> {
    let action = actions::find(name).ok_or_else(|| anyhow::anyhow!("unknown action `{name}`"))?;
    let answer = action.prepare(arguments)?.run(&Context::new(sandbox.clone()))?;
    print(&answer, printer);
    Ok(if answer.is_error { Code::Failure } else { Code::Success })
}

fn print(answer: &Answer, printer: &Printer) {
    if printer.is_json() {
        printer.json(&answer.data);
    } else {
        lines_of(&answer.text, printer);
    }
}

// Unlike `str::lines`, this keeps the carriage returns of a patch.
fn lines_of(text: &str, printer: &Printer) {
    text.split_terminator('\n').for_each(|line| printer.line(&printer.foreign(line)));
}
