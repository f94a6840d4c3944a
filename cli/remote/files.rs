//! `fs` on a server: single files by their bytes, directories file by file in one action.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::http::escaped;
use super::tar::Tree;
use super::{Remote, text};
use crate::args::{FilesVerb, Global, Kind};
use crate::exit::Code;
use crate::printer::Hinted;

/// Bytes of files that are written by one action; more of them go as an archive.
const IN_ONE: usize = 4 << 20;

/// Returns a path of the sandbox.
pub(super) fn guest(path: &str) -> String {
    crate::commands::guest_path(path)
}

pub(super) fn run(remote: &Remote<'_>, global: &Global, verb: &FilesVerb) -> anyhow::Result<Code> {
    let at = global.at.as_deref();
    match verb {
        FilesVerb::Ls { long, path } => {
            let found = remote.act("list_files", &json!({ "path": guest(path), "depth": 1, "hidden": true, "at": at }))?;
            remote.lines(&found, &found["entries"], |entry| {
                let name = text(entry, "path").rsplit('/').next().unwrap_or_default();
                let slash = if text(entry, "kind") == "directory" { "/" } else { "" };
                match long {
                    true => format!("{:<9} {:>12}  {name}{slash}", text(entry, "kind"), entry["size"]),
                    false => format!("{name}{slash}"),
                }
            })
        }
        FilesVerb::Cat { paths } => {
            for path in paths {
                remote.printer.bytes(&read(remote, &guest(path), at)?)?;
            }
            Ok(Code::Success)
        }
        FilesVerb::Put { host, guest } => put(remote, host, guest.as_deref()),
        FilesVerb::Get { guest, host } => get(remote, &self::guest(guest), host.as_deref(), at),
        FilesVerb::Rm { recursive, paths } => {
            for path in paths {
                remote.act("delete_file", &json!({ "path": guest(path), "recursive": recursive }))?;
            }
            Ok(Code::Success)
        }
        FilesVerb::Mkdir { paths } => {
            for path in paths {
                remote.act("make_directory", &json!({ "path": guest(path) }))?;
            }
            Ok(Code::Success)
        }
        FilesVerb::Mv { from, to } => {
            let from = guest(from);
            let to = inside(remote, to, from.rsplit('/').next().unwrap_or_default());
            quiet(remote, "move_file", json!({ "from": from, "to": to, "overwrite": true }))
        }
        FilesVerb::Cp { recursive, from, to } => {
            // The slash says that the copy is placed inside.
            let slash = if to.ends_with('/') { "/" } else { "" };
            let to = format!("{}{slash}", guest(to));
            quiet(remote, "copy_files", json!({ "from": guest(from), "to": to, "recursive": recursive }))
        }
        FilesVerb::Stat { path } => {
            let found = remote.act("file_info", &json!({ "path": guest(path), "follow": false, "at": at }))?;
            remote.lines(&found, &json!([found]), |row| {
                format!("{}: {}, {} bytes, mode {}", text(row, "path"), text(row, "type"), row["size"], text(row, "mode"))
            })
        }
        FilesVerb::Find(find) => {
            let kind = find.kind.map(|kind| match kind {
                Kind::File => "file",
                Kind::Dir => "directory",
                Kind::Link => "symlink",
            });
            let arguments = json!({ "path": guest(&find.path), "name": find.name, "kind": kind, "at": at });
            let found = remote.act("find_files", &arguments)?;
            remote.lines(&found, &found["found"], |row| text(row, "path").to_owned())?;
            noted(remote, &found)
        }
        FilesVerb::Du { path } => {
            let path = guest(path);
            let found = remote.act("disk_usage", &json!({ "path": path, "at": at }))?;
            let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or_default();
            remote.lines(&found, &json!([found]), |row| {
                crate::commands::usage(&path, number(row, "bytes"), number(row, "files"), number(row, "directories"))
            })?;
            noted(remote, &found)
        }
        FilesVerb::Tree { path } => remote.perform("tree", &json!({ "path": guest(path) })),
    }
}

// The destination of an entry with this name, as on a file: in `to` if that is a directory.
fn inside(remote: &Remote<'_>, to: &str, name: &str) -> String {
    let path = guest(to);
    let is_directory = || remote.act("file_info", &json!({ "path": path })).is_ok_and(|found| found["type"] == "directory");
    if to.ends_with('/') || is_directory() { format!("{}/{name}", path.trim_end_matches('/')) } else { path }
}

// In JSON, the notes are part of the result.
fn noted(remote: &Remote<'_>, found: &Value) -> anyhow::Result<Code> {
    let notes = found["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if !remote.printer.is_json() {
        notes.for_each(|note| remote.printer.note(remote.printer.foreign(note)));
    }
    Ok(Code::Success)
}

fn quiet(remote: &Remote<'_>, action: &str, arguments: Value) -> anyhow::Result<Code> {
    let done = remote.act(action, &arguments)?;
    remote.lines(&done, &Value::Null, |_| String::new())
}

fn read(remote: &Remote<'_>, path: &str, at: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let version = at.map_or_else(String::new, |at| format!("?at={}", escaped(at).replace('/', "%2F")));
    remote.http.send("GET", &format!("{}/files{}{version}", remote.sandbox()?, escaped(path)), &[], b"")?.bytes()
}

fn put(remote: &Remote<'_>, host: &Path, to: Option<&str>) -> anyhow::Result<Code> {
    let name = host.file_name().map(|name| name.to_string_lossy().into_owned());
    let target = match (to, name) {
        (Some(to), Some(name)) if host != Path::new("-") => inside(remote, to, &name),
        (Some(to), _) => guest(to),
        (None, Some(name)) if host != Path::new("-") => guest(&name),
        _ => return Err(Hinted::error("no name in the sandbox given", "name the file: `fs put - /path`")),
    };
    let files = if host == Path::new("-") {
        let mut content = Vec::new();
        std::io::stdin().read_to_end(&mut content)?;
        vec![(target, content)]
    } else {
        let is_directory = std::fs::metadata(host).with_context(|| format!("cannot read `{}`", host.display()))?.is_dir();
        let (above, name) = target.rsplit_once('/').unwrap_or(("", &target));
        let (tree, above) = if is_directory { (Tree::read(host)?, target.as_str()) } else { (Tree::of_file(name, host)?, above) };
        let above = above.trim_end_matches('/');
        for omitted in &tree.omitted {
            let reason = "not a file, a directory or a link within the directory";
            remote.printer.note(format_args!("omitted `{}`: {reason}", remote.printer.foreign(omitted)));
        }
        match tree.plain(IN_ONE) {
            Ok(files) => files.into_iter().map(|(path, content)| (format!("{above}/{path}"), content)).collect(),
            Err(tree) => {
                let place = format!("{}/tree{}/", remote.sandbox()?, escaped(above));
                let done = remote.http.send("PUT", &place, &[("Content-Type", "application/x-tar")], &tree.packed())?.bytes()?;
                let done: Value = serde_json::from_slice(&done).context("invalid response of the server")?;
                return remote.lines(&done, &Value::Null, |_| String::new());
            }
        }
    };
    let rows: Vec<Value> = files
        .iter()
        .map(|(path, content)| json!({ "path": path, "content": STANDARD.encode(content), "encoding": "base64" }))
        .collect();
    quiet(remote, "write_files", json!({ "files": rows }))
}

fn get(remote: &Remote<'_>, path: &str, to: Option<&Path>, at: Option<&str>) -> anyhow::Result<Code> {
    if to == Some(Path::new("-")) {
        remote.printer.bytes(&read(remote, path, at)?)?;
        return Ok(Code::Success);
    }
    let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("root");
    let target = match to {
        Some(to) if to.is_dir() => to.join(name),
        Some(to) => to.to_owned(),
        None => PathBuf::from(name),
    };
    let found = remote.act("find_files", &json!({ "path": path, "at": at }))?;
    anyhow::ensure!(found["truncated"] != true, "the directory has too many files: get its parts");
    if let Some(note) = found["notes"].get(0).and_then(Value::as_str) {
        anyhow::bail!("{note}");
    }
    for row in found["found"].as_array().into_iter().flatten() {
        let inner = text(row, "path").strip_prefix(path).unwrap_or_default().trim_start_matches('/');
        // A name that leads out of the target is not ours to write.
        anyhow::ensure!(Path::new(inner).components().all(|part| matches!(part, Component::Normal(_))), "invalid path `{inner}`");
        let place = if inner.is_empty() { target.clone() } else { target.join(inner) };
        let failed = || format!("cannot write `{}`", place.display());
        match text(row, "type") {
            "directory" => std::fs::create_dir_all(&place).with_context(failed)?,
            "file" => std::fs::write(&place, read(remote, text(row, "path"), at)?).with_context(failed)?,
            kind => remote.printer.note(format_args!("omitted `{}`: it is a {kind}", remote.printer.foreign(text(row, "path")))),
        }
    }
    Ok(Code::Success)
}
