//! The verbs of `fs` that only read: `ls`, `cat`, `stat`, `find`, `du`, `tree`.

use runtime::actions::{DiskUsage, DrawTree, FileInfo, FileKind, FindFiles, FoundFiles};
use runtime::agent::ListFiles;
use runtime::{FileType, Sandbox, Stat};
use serde_json::json;

use crate::args::{Find, Kind};
use crate::printer::{Colour, Printer, add_text};
use crate::time;

pub(super) fn ls(sandbox: &Sandbox, path: &str, long: bool, printer: &Printer) -> anyhow::Result<()> {
    if printer.is_json() {
        let request = ListFiles { path: Some(path.to_owned()), depth: None, hidden: true };
        printer.json(&json!(sandbox.agent().list_all(&request)?));
        return Ok(());
    }
    let files = sandbox.fs();
    let mut found = Vec::new();
    if files.metadata(path)?.is_dir() {
        for entry in files.list(path)? {
            let below = super::below(path, &entry.name);
            found.push((entry.name, files.symlink_metadata(&below)?, below));
        }
    } else {
        found.push((path.to_owned(), files.symlink_metadata(path)?, path.to_owned()));
    }
    for (name, stat, path) in &found {
        let shown = painted(name, stat, printer);
        if !long {
            printer.line(&shown);
            continue;
        }
        let target = match stat.file_type() {
            FileType::Symlink => format!(" -> {}", printer.foreign(&files.read_link(path)?)),
            _ => String::new(),
        };
        printer.line(&format!("{} {:>12} {} {shown}{target}", mode(stat), stat.size, time::moment(stat.mtime)));
    }
    Ok(())
}

pub(super) fn cat(sandbox: &Sandbox, path: &str, printer: &Printer) -> anyhow::Result<()> {
    if !printer.is_json() && !printer.tames() {
        sandbox.fs().read_to(path, printer.out())?;
        return Ok(());
    }
    let content = sandbox.fs().read(path)?;
    if printer.is_json() {
        let mut value = json!({ "path": path, "bytes": content.len() });
        add_text(&mut value, "content", &content);
        printer.json(&value);
        return Ok(());
    }
    Ok(printer.bytes(&content)?)
}

pub(super) fn stat(sandbox: &Sandbox, path: &str, printer: &Printer) -> anyhow::Result<()> {
    let (found, stat) = FileInfo { path: path.to_owned(), follow: false }.describe(sandbox)?;
    if printer.is_json() {
        printer.json(&json!(found));
        return Ok(());
    }
    let field =
        |name: &str, value: String| printer.line(&format!("{} {value}", printer.paint(Colour::Bold, format!("{name:<9}"))));
    field("path", printer.foreign(path).into_owned());
    field("type", found.kind.to_string());
    if let Some(target) = &found.target {
        field("target", printer.foreign(target).into_owned());
    }
    field("size", format!("{} ({})", stat.size, time::size(stat.size)));
    field("mode", format!("{} {}", found.mode, mode(&stat)));
    field("owner", format!("{}:{}", stat.uid, stat.gid));
    field("links", stat.nlink.to_string());
    field("inode", stat.ino.to_string());
    field("modified", format!("{} UTC", time::moment(stat.mtime)));
    field("changed", format!("{} UTC", time::moment(stat.ctime)));
    Ok(())
}

pub(super) fn find(sandbox: &Sandbox, wanted: &Find, printer: &Printer) -> anyhow::Result<()> {
    let kind = wanted.kind.map(|kind| match kind {
        Kind::File => FileKind::File,
        Kind::Dir => FileKind::Directory,
        Kind::Link => FileKind::Symlink,
    });
    let request = FindFiles { path: Some(super::guest(&wanted.path)), name: wanted.name.clone(), kind };
    let walked = request.find(sandbox)?;
    if printer.is_json() {
        printer.json(&json!(FoundFiles::new(walked)));
        return Ok(());
    }
    for found in &walked.found {
        printer.line(&printer.foreign(&found.path));
    }
    note(&walked.notes, printer);
    Ok(())
}

pub(super) fn du(sandbox: &Sandbox, path: &str, printer: &Printer) -> anyhow::Result<()> {
    let measured = DiskUsage { path: Some(path.to_owned()) }.measure(sandbox)?;
    if printer.is_json() {
        printer.json(&json!(measured));
    } else {
        let shown = usage(&printer.foreign(path), measured.bytes, measured.files, measured.directories);
        printer.line(&shown);
        note(&measured.notes, printer);
    }
    Ok(())
}

fn note(notes: &[String], printer: &Printer) {
    notes.iter().for_each(|note| printer.note(printer.foreign(note)));
}

/// Formats the size of a directory, its files and its directories as a line.
pub(crate) fn usage<N: TryInto<u64>>(path: &str, bytes: u64, files: N, directories: N) -> String {
    let (files, directories) = (time::count(files, "file"), time::count(directories, "directory"));
    format!("{:>10}  {path}  ({files}, {directories})", time::size(bytes))
}

pub(super) fn tree(sandbox: &Sandbox, path: &str, printer: &Printer) -> anyhow::Result<()> {
    let walked = DrawTree { path: Some(path.to_owned()) }.list(sandbox)?;
    if printer.is_json() {
        printer.json(&json!(FoundFiles::new(walked)));
    } else {
        DrawTree::draw(&walked.found, |name, stat| painted(name, stat, printer), |line| printer.line(line));
        note(&walked.notes, printer);
    }
    Ok(())
}

fn painted(name: &str, stat: &Stat, printer: &Printer) -> String {
    let name = printer.foreign(name);
    match stat.file_type() {
        FileType::Directory => printer.paint(Colour::Blue, name),
        FileType::Symlink => printer.paint(Colour::Cyan, name),
        FileType::File if stat.mode & 0o111 != 0 => printer.paint(Colour::Green, name),
        FileType::File | FileType::Fifo | FileType::Device => name.into_owned(),
    }
}

fn mode(stat: &Stat) -> String {
    let first = match stat.file_type() {
        FileType::File => '-',
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        FileType::Device => 'c',
    };
    let bits = (0..9).rev().zip("rwxrwxrwx".chars()).map(|(bit, letter)| if stat.mode >> bit & 1 == 1 { letter } else { '-' });
    std::iter::once(first).chain(bits).collect()
}
