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
    for (name, stat, path) in found {
        let is_link = stat.file_type() == FileType::Symlink;
        let target = if long && is_link { Some(files.read_link(&path)?) } else { None };
        let entry = Entry { name, kind: stat.file_type().into(), mode: stat.mode, size: stat.size, modified: stat.mtime, target };
        printer.line(&entry.line(long, printer));
    }
    Ok(())
}

/// A path as `ls` shows it.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: FileKind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: i64,
    pub(crate) target: Option<String>,
}

impl Entry {
    /// Formats it as a line; `long` is with permissions, size, time and target.
    pub(crate) fn line(&self, long: bool, printer: &Printer) -> String {
        let name = painted(&self.name, self.kind, self.mode, printer);
        if !long {
            return name;
        }
        let target = self.target.as_ref().map(|target| format!(" -> {}", printer.foreign(target))).unwrap_or_default();
        format!("{} {:>12} {} {name}{target}", letters(self.kind, self.mode), self.size, time::moment(self.modified))
    }
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
    let field = |name: &str, value: String| fact(name, &value, printer);
    field("path", printer.foreign(path).into_owned());
    field("type", found.kind.to_string());
    if let Some(target) = &found.target {
        field("target", printer.foreign(target).into_owned());
    }
    field("size", format!("{} ({})", stat.size, time::size(stat.size)));
    field("mode", format!("{} {}", found.mode, letters(found.kind, stat.mode)));
    field("owner", format!("{}:{}", stat.uid, stat.gid));
    field("links", stat.nlink.to_string());
    field("inode", stat.ino.to_string());
    field("modified", format!("{} UTC", time::moment(stat.mtime)));
    field("changed", format!("{} UTC", time::moment(stat.ctime)));
    Ok(())
}

/// Prints a line of `stat`.
pub(crate) fn fact(name: &str, value: &str, printer: &Printer) {
    printer.line(&format!("{} {value}", printer.paint(Colour::Bold, format!("{name:<9}"))));
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
        let shown = |name: &str, stat: &Stat| painted(name, stat.file_type().into(), stat.mode, printer);
        DrawTree::draw(&walked.found, shown, |line| printer.line(line));
        note(&walked.notes, printer);
    }
    Ok(())
}

fn painted(name: &str, kind: FileKind, mode: u32, printer: &Printer) -> String {
    let name = printer.foreign(name);
    match kind {
        FileKind::Directory => printer.paint(Colour::Blue, name),
        FileKind::Symlink => printer.paint(Colour::Cyan, name),
        FileKind::File if mode & 0o111 != 0 => printer.paint(Colour::Green, name),
        FileKind::File | FileKind::Fifo | FileKind::Device => name.into_owned(),
    }
}

/// Formats a type and permissions as `drwxr-xr-x`.
pub(crate) fn letters(kind: FileKind, mode: u32) -> String {
    let first = match kind {
        FileKind::File => '-',
        FileKind::Directory => 'd',
        FileKind::Symlink => 'l',
        FileKind::Fifo => 'p',
        FileKind::Device => 'c',
    };
    let bits = (0..9).rev().zip("rwxrwxrwx".chars()).map(|(bit, letter)| if mode >> bit & 1 == 1 { letter } else { '-' });
    std::iter::once(first).chain(bits).collect()
}
