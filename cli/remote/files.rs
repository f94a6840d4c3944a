//! `fs` on a server: single files by their bytes, directories file by file in one action.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runtime::actions::FileKind;
use runtime::{Preset, Sandbox, TreeCopy};
use serde_json::{Value, json};

use super::http::escaped;
use super::tar::Tree;
use super::{Remote, text};
use crate::args::{FilesVerb, Global, Kind};
use crate::commands::fs::{Entry, done, fact, letters, tree_done};
use crate::exit::Code;
use crate::printer::Hinted;
use crate::time;

/// Bytes of files that are written by one action; more of them go as an archive.
const IN_ONE: usize = 4 << 20;

/// Returns a path of the sandbox.
pub(super) fn guest(path: &str) -> String {
    crate::commands::guest_path(path)
}

pub(super) fn run(remote: &Remote<'_>, global: &Global, verb: &FilesVerb) -> anyhow::Result<Code> {
    let at = global.at.as_deref();
    match verb {
        FilesVerb::Ls { long, path } => ls(remote, &guest(path), *long),
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
            let name = from.rsplit('/').next().unwrap_or_default();
            quiet(remote, "move_file", json!({ "from": from, "to": inside(remote, to, name)?, "overwrite": true }))
        }
        FilesVerb::Cp { recursive, from, to } => {
            // The slash says that the copy is placed inside.
            let slash = if to.ends_with('/') { "/" } else { "" };
            let to = format!("{}{slash}", guest(to));
            quiet(remote, "copy_files", json!({ "from": guest(from), "to": to, "recursive": recursive }))
        }
        FilesVerb::Stat { path } => stat(remote, &guest(path)),
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

// What the server knows of a path; for a link that is not followed, of the link.
fn info(remote: &Remote<'_>, path: &str, follow: bool) -> anyhow::Result<Value> {
    remote.act("file_info", &json!({ "path": path, "follow": follow }))
}

fn kind(row: &Value) -> anyhow::Result<FileKind> {
    serde_json::from_value(row["type"].clone()).context("invalid response of the server")
}

fn mode(row: &Value) -> u32 {
    u32::from_str_radix(text(row, "mode"), 8).unwrap_or(0)
}

fn ls(remote: &Remote<'_>, path: &str, long: bool) -> anyhow::Result<Code> {
    let is_directory = text(&info(remote, path, true)?, "type") == "directory";
    if !is_directory && !remote.printer.is_json() {
        return entry(remote, path.to_owned(), path, long);
    }
    let found = remote.act("list_files", &json!({ "path": path, "depth": 1, "hidden": true }))?;
    if remote.printer.is_json() {
        return remote.lines(&found, &Value::Null, |_| String::new());
    }
    for row in found["entries"].as_array().into_iter().flatten() {
        let below = text(row, "path");
        let name = below.rsplit('/').next().unwrap_or_default().to_owned();
        let inner = format!("{}/{name}", path.trim_end_matches('/'));
        entry(remote, name, &inner, long)?;
    }
    if found["truncated"] == true {
        remote.printer.note("only the first entries are listed: the directory has more");
    }
    noted(remote, &found)
}

// Only the long form needs more than the name.
fn entry(remote: &Remote<'_>, name: String, path: &str, long: bool) -> anyhow::Result<Code> {
    if !long {
        remote.printer.line(&remote.printer.foreign(&name));
        return Ok(Code::Success);
    }
    let row = info(remote, path, false)?;
    let (size, modified) = (row["size"].as_u64().unwrap_or(0), row["modified"].as_i64().unwrap_or(0));
    let target = row["target"].as_str().map(str::to_owned);
    let entry = Entry { name, kind: kind(&row)?, mode: mode(&row), size, modified, target };
    remote.printer.line(&entry.line(long, remote.printer));
    Ok(Code::Success)
}

fn stat(remote: &Remote<'_>, path: &str) -> anyhow::Result<Code> {
    let row = info(remote, path, false)?;
    if remote.printer.is_json() {
        return remote.lines(&row, &Value::Null, |_| String::new());
    }
    let field = |name: &str, value: &str| fact(name, value, remote.printer);
    field("path", &remote.printer.foreign(path));
    field("type", text(&row, "type"));
    if let Some(target) = row["target"].as_str() {
        field("target", &remote.printer.foreign(target));
    }
    let size = row["size"].as_u64().unwrap_or(0);
    field("size", &format!("{size} ({})", time::size(size)));
    field("mode", &format!("{} {}", text(&row, "mode"), letters(kind(&row)?, mode(&row))));
    field("modified", &format!("{} UTC", time::moment(row["modified"].as_i64().unwrap_or(0))));
    Ok(Code::Success)
}

// The destination of an entry called `name`: inside `to` if that is a directory, else `to` itself.
fn inside(remote: &Remote<'_>, to: &str, name: &str) -> anyhow::Result<String> {
    let path = guest(to);
    let is_directory = to.ends_with('/') || info(remote, &path, true).is_ok_and(|found| text(&found, "type") == "directory");
    Ok(if is_directory { format!("{}/{name}", path.trim_end_matches('/')) } else { path })
}

// For a file of this machine that cannot be copied the result is negative, as without a server.
fn refused(remote: &Remote<'_>, error: &anyhow::Error) -> anyhow::Result<Code> {
    remote.printer.error(error);
    Ok(Code::Failure)
}

fn put(remote: &Remote<'_>, host: &Path, to: Option<&str>) -> anyhow::Result<Code> {
    if host == Path::new("-") {
        let Some(to) = to else {
            let hint = "name the destination: `sandlite fs put - /path`";
            return refused(remote, &Hinted::error("missing destination for standard input", hint));
        };
        let (path, mut content) = (guest(to), Vec::new());
        std::io::stdin().read_to_end(&mut content)?;
        let bytes = content.len() as u64;
        write(remote, &[(path.clone(), content)])?;
        done("put", "-", &path, bytes, remote.printer);
        return Ok(Code::Success);
    }
    let shown = host.display().to_string();
    let metadata = match std::fs::metadata(host).with_context(|| format!("cannot read `{shown}`")) {
        Ok(metadata) => metadata,
        Err(error) => return refused(remote, &error),
    };
    let name = std::fs::canonicalize(host).ok().and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    let Some(name) = name else {
        return refused(remote, &anyhow::anyhow!("`{shown}` has no file name: name the destination"));
    };
    let target = inside(remote, to.unwrap_or("."), &name)?;
    let (above, last) = target.rsplit_once('/').unwrap_or(("", &target));
    let (tree, above) =
        if metadata.is_dir() { (Tree::read(host)?, target.as_str()) } else { (Tree::of_file(last, host)?, above) };
    for omitted in &tree.omitted {
        let reason = "not a file, a directory or a link within the directory";
        remote.printer.note(format_args!("omitted `{}`: {reason}", remote.printer.foreign(omitted)));
    }
    let ((files, directories, symlinks), bytes) = (tree.counts(), tree.bytes() as u64);
    let above = above.trim_end_matches('/');
    match tree.plain(IN_ONE) {
        Ok(files) => {
            let files: Vec<_> = files.into_iter().map(|(path, content)| (format!("{above}/{path}"), content)).collect();
            write(remote, &files)?;
        }
        Err(tree) => {
            let place = format!("{}/tree{}/", remote.sandbox()?, escaped(above));
            remote.http.send("PUT", &place, &[("Content-Type", "application/x-tar")], &tree.packed())?.bytes()?;
        }
    }
    if metadata.is_dir() {
        let copied = TreeCopy { files, directories, symlinks, bytes, skipped: Vec::new() };
        tree_done("put", &shown, &target, &copied, remote.printer);
    } else {
        done("put", &shown, &target, bytes, remote.printer);
    }
    Ok(Code::Success)
}

fn write(remote: &Remote<'_>, files: &[(String, Vec<u8>)]) -> anyhow::Result<()> {
    let rows: Vec<Value> = files
        .iter()
        .map(|(path, content)| json!({ "path": path, "content": STANDARD.encode(content), "encoding": "base64" }))
        .collect();
    remote.act("write_files", &json!({ "files": rows })).map(drop)
}

// What was asked for is put together in memory, and copied from there as from a sandbox of this machine: nothing is overwritten or followed, and
// links that lead out are left out.
fn get(remote: &Remote<'_>, path: &str, to: Option<&Path>, at: Option<&str>) -> anyhow::Result<Code> {
    if to == Some(Path::new("-")) {
        remote.printer.bytes(&read(remote, path, at)?)?;
        return Ok(Code::Success);
    }
    let here = crate::engine::give(Sandbox::builder()).custom_limits(Preset::Permissive.limits()).open()?;
    let files = here.fs();
    if text(&info(remote, path, true)?, "type") == "directory" {
        let found = remote.act("find_files", &json!({ "path": path, "at": at }))?;
        anyhow::ensure!(found["truncated"] != true, "the directory has too many files: get its parts");
        if let Some(note) = found["notes"].get(0).and_then(Value::as_str) {
            anyhow::bail!("{note}");
        }
        for row in found["found"].as_array().into_iter().flatten() {
            let inner = text(row, "path");
            match text(row, "type") {
                "directory" => files.create_dir_all(inner)?,
                "file" => {
                    files.write(inner, read(remote, inner, at)?)?;
                    files.set_permissions(inner, mode(row))?;
                }
                "symlink" => files.symlink(text(&info(remote, inner, false)?, "target"), inner)?,
                kind => remote.printer.note(format_args!("omitted `{}`: it is a {kind}", remote.printer.foreign(inner))),
            }
        }
    } else {
        if let Some((above, _)) = path.rsplit_once('/').filter(|(above, _)| !above.is_empty()) {
            files.create_dir_all(above)?;
        }
        files.write(path, read(remote, path, at)?)?;
    }
    match crate::commands::fs::get(&here, path, to, remote.printer) {
        Ok(()) => Ok(Code::Success),
        Err(error) => refused(remote, &error),
    }
}
