//! The verbs of `fs` that change or copy: `put`, `get`, `rm`, `mkdir`, `mv`, `cp`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use runtime::actions::{CopyFiles, MakeDirectory};
use runtime::agent::DeleteFile;
use runtime::{FsError, Sandbox, TreeCopy};
use serde_json::json;

use crate::printer::{Hinted, Printer};
use crate::time;
use crate::{input, interrupt};

pub(super) fn put(sandbox: &Sandbox, host: &Path, guest: Option<&str>, printer: &Printer) -> anyhow::Result<()> {
    if host == Path::new("-") {
        let Some(guest) = guest else {
            return Err(Hinted::error(
                "missing destination for standard input",
                "name the destination: `sandlite fs put - /path`",
            ));
        };
        let to = super::guest(guest);
        let bytes = sandbox.fs().write_from(&to, input::standard_input()?)?;
        done("put", "-", &to, bytes, printer);
        return Ok(());
    }
    let shown = host.display().to_string();
    let metadata = fs::metadata(host).with_context(|| format!("cannot read `{shown}`"))?;
    let name = fs::canonicalize(host).ok().and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    let Some(name) = name else { bail!("`{shown}` has no file name: name the destination") };
    let to = inside(sandbox, guest.unwrap_or("."), &name)?;
    if metadata.is_dir() {
        let slow = printer.progress().slow("copying in");
        let copied = sandbox.import_tree(host, &to)?;
        drop(slow);
        tree_done("put", &shown, &to, &copied, printer);
        return Ok(());
    }
    let bytes = sandbox.fs().write_from(&to, input::content(host)?)?;
    done("put", &shown, &to, bytes, printer);
    Ok(())
}

/// Copies a file or a directory of the sandbox to this machine.
pub(crate) fn get(sandbox: &Sandbox, guest: &str, host: Option<&Path>, printer: &Printer) -> anyhow::Result<()> {
    if host == Some(Path::new("-")) {
        sandbox.fs().read_to(guest, printer.out())?;
        return Ok(());
    }
    let name = super::name_of(guest);
    if matches!(name, "" | "..") && host.is_none_or(Path::is_dir) {
        return Err(Hinted::error(format!("`{guest}` has no file name"), "name the destination on this machine"));
    }
    let host = match host {
        Some(host) if host.is_dir() => host.join(name),
        Some(host) => host.to_owned(),
        None => PathBuf::from(name),
    };
    let shown = host.display().to_string();
    if sandbox.fs().metadata(guest)?.is_dir() {
        interrupt::clean_up(&host)?;
        let slow = printer.progress().slow("copying out");
        let copied = sandbox.export_tree(guest, &host)?;
        drop(slow);
        tree_done("got", guest, &shown, &copied, printer);
        return Ok(());
    }
    let bytes = crate::commands::write_whole_with(&host, |file| Ok(sandbox.fs().read_to(guest, file)?))?;
    done("got", guest, &shown, bytes, printer);
    Ok(())
}

pub(super) fn rm(sandbox: &Sandbox, recursive: bool, paths: &[String], printer: &Printer) -> anyhow::Result<()> {
    let request = |path: &String| DeleteFile { path: super::guest(path), recursive, expected_version: None };
    let requests: Vec<DeleteFile> = paths.iter().map(request).collect();
    let removed = DeleteFile::delete_all(&requests, sandbox).map_err(|error| match (error.fs_error(), error.path()) {
        (Some(FsError::IsDirectory), Some(path)) if !recursive => {
            Hinted::error(format!("`{path}` is a directory"), "use `fs rm -r` to remove it with its contents")
        }
        _ => error.into(),
    })?;
    if printer.is_json() {
        printer.json(&json!({ "removed": removed }));
    }
    Ok(())
}

pub(super) fn mkdir(sandbox: &Sandbox, paths: &[String], printer: &Printer) -> anyhow::Result<()> {
    let requests: Vec<MakeDirectory> = paths.iter().map(|path| MakeDirectory { path: super::guest(path) }).collect();
    let made = MakeDirectory::make_all(&requests, sandbox)?;
    if printer.is_json() {
        printer.json(&json!({ "created": made.iter().map(|made| &made.path).collect::<Vec<_>>() }));
    }
    Ok(())
}

pub(super) fn mv(sandbox: &Sandbox, from: &str, to: &str, printer: &Printer) -> anyhow::Result<()> {
    let to = inside(sandbox, to, super::name_of(from))?;
    sandbox.fs().rename(from, &to).map_err(|error| match error.fs_error() {
        Some(FsError::Invalid) => runtime::Error::Invalid(format!("cannot move `{from}` into itself")),
        _ => error,
    })?;
    if printer.is_json() {
        printer.json(&json!({ "from": from, "to": to }));
    }
    Ok(())
}

pub(super) fn cp(sandbox: &Sandbox, recursive: bool, from: &str, to: &str, printer: &Printer) -> anyhow::Result<()> {
    let slash = if to.ends_with('/') { "/" } else { "" };
    let request =
        CopyFiles { from: super::guest(from), to: format!("{}{slash}", super::guest(to)), recursive, expected_version: None };
    let copied = request.copy(sandbox).map_err(|error| match error.fs_error() {
        Some(FsError::IsDirectory) if !recursive => {
            Hinted::error(format!("`{}` is a directory", request.from), "use `fs cp -r` to copy it with its contents")
        }
        _ => error.into(),
    })?;
    if printer.is_json() {
        printer.json(&json!(copied));
    }
    Ok(())
}

/// Returns the destination of an entry called `name`: inside `to` if that is a directory, else `to` itself.
fn inside(sandbox: &Sandbox, to: &str, name: &str) -> anyhow::Result<String> {
    let path = super::guest(to);
    let is_directory = to.ends_with('/') || sandbox.fs().metadata(&path).is_ok_and(|stat| stat.is_dir());
    Ok(if is_directory { super::below(&path, name) } else { path })
}

/// Prints what was copied.
pub(crate) fn done(verb: &str, from: &str, to: &str, bytes: u64, printer: &Printer) {
    if printer.is_json() {
        printer.json(&json!({ "from": from, "to": to, "bytes": bytes }));
    } else {
        let (from, to) = (printer.foreign(from), printer.foreign(to));
        printer.line(&format!("{verb} {from} -> {to} ({})", time::size(bytes)));
    }
}

/// The same for a directory.
pub(crate) fn tree_done(verb: &str, from: &str, to: &str, copied: &TreeCopy, printer: &Printer) {
    if printer.is_json() {
        printer.json(&json!({
            "from": from,
            "to": to,
            "bytes": copied.bytes,
            "files": copied.files,
            "directories": copied.directories,
            "symlinks": copied.symlinks,
            "skipped": copied.skipped,
        }));
        return;
    }
    let (from, to) = (printer.foreign(from), printer.foreign(to));
    let TreeCopy { files, directories, symlinks, bytes, skipped, .. } = copied;
    let (files, directories, links) =
        (time::count(*files, "file"), time::count(*directories, "directory"), time::count(*symlinks, "link"));
    printer.line(&format!("{verb} {from} -> {to} ({files}, {directories}, {links}, {})", time::size(*bytes)));
    for path in skipped {
        printer.note(format_args!("skipped: {}", printer.foreign(path)));
    }
}
