//! `sandlite git export` and `git import`.

use runtime::{GitExport, GitForm, GitImport};
use serde_json::json;

use crate::args::{self, Git, GitVerb, Global};
use crate::exit::Code;
use crate::interrupt;
use crate::printer::{Hinted, Printer};

/// Maximum number of paths to list individually.
const NAMED: usize = 10;

pub(crate) fn run(global: &Global, args: &Git, printer: &Printer) -> anyhow::Result<Code> {
    match &args.verb {
        GitVerb::Export(args) => export(global, args, printer),
        GitVerb::Import(args) => import(global, args, printer),
    }
}

fn export(global: &Global, args: &args::GitExport, printer: &Printer) -> anyhow::Result<Code> {
    let to = args.to.display();
    if args.to.symlink_metadata().is_ok() {
        return Err(Hinted::error(format!("`{to}` already exists"), "name a new path for the repository"));
    }
    let form = match GitForm::of(&args.to) {
        GitForm::Repository if args.bare => GitForm::Bare,
        form => form,
    };
    let sandbox = super::looking(global, printer)?;
    interrupt::clean_up(&args.to)?;
    let slow = printer.progress().slow("writing the repository");
    let done = sandbox
        .versions()
        .git_export(&args.to, &GitExport { path: super::fs::guest(&args.path), form, checkpoints: args.checkpoints })?;
    drop(slow);
    if printer.is_json() {
        let mut printed = serde_json::to_value(&done)?;
        printed["path"] = json!(args.to);
        printer.json(&printed);
        return Ok(Code::Success);
    }
    let what = match form {
        GitForm::Bundle => "bundle",
        GitForm::Bare => "bare repository",
        GitForm::Repository => "repository",
    };
    printer.line(&format!("wrote the {what} `{to}`: {}, {}", counted(done.commits, "commit"), counted(done.tags, "tag")));
    if done.first_version > 0 {
        printer.note(format_args!("versions before v{} were pruned and are not included", done.first_version));
    }
    for path in done.skipped.iter().take(NAMED) {
        printer.note(format_args!("skipped `{}`", printer.foreign(path)));
    }
    if done.skipped.len() > NAMED {
        printer.note(format_args!("skipped {} more", done.skipped.len() - NAMED));
    }
    Ok(Code::Success)
}

fn counted(number: u64, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

fn import(global: &Global, args: &args::GitImport, printer: &Printer) -> anyhow::Result<Code> {
    let from = args.from.display();
    if !args.from.exists() {
        anyhow::bail!("`{from}` does not exist");
    }
    let sandbox = super::stored(global, printer)?;
    let slow = printer.progress().slow("importing the commits");
    let options = GitImport { reference: args.reference.clone(), into: super::fs::guest(&args.into), depth: args.depth };
    let done = sandbox.versions().git_import(&args.from, &options)?;
    drop(slow);
    if printer.is_json() {
        printer.json(&serde_json::to_value(&done)?);
        return Ok(Code::Success);
    }
    let (commits, versions) = (counted(done.commits, "commit"), counted(done.versions, "version"));
    printer.line(&format!("imported {commits} from `{from}` as {versions} ({})", counted(done.files, "file")));
    for name in done.skipped.iter().take(NAMED) {
        printer.note(format_args!("no checkpoint for tag `{}`: the name is already used or reserved", printer.foreign(name)));
    }
    Ok(Code::Success)
}
