//! The verbs of `fs` that only look: `ls`, `cat`, `stat`, `find`, `du`, `tree`.

use std::io;

use runtime::{FileType, Found, Sandbox, Stat};
use serde_json::{Value, json};

use crate::args::{Find, Kind};
use crate::printer::{Colour, Printer};
use crate::time;

pub(super) fn ls(sandbox: &Sandbox, path: &str, long: bool, printer: &Printer) -> anyhow::Result<()> {
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
    if printer.is_json() {
        let entries: Vec<_> = found.iter().map(|(name, stat, _)| with(json!({ "name": name }), stat)).collect();
        printer.json(&json!({ "path": path, "entries": entries }));
        return Ok(());
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
        sandbox.fs().read_to(path, io::stdout().lock())?;
        return Ok(());
    }
    let content = sandbox.fs().read(path)?;
    if printer.is_json() {
        let text = String::from_utf8_lossy(&content);
        printer.json(&json!({ "path": path, "content": text, "bytes": content.len() }));
        return Ok(());
    }
    Ok(printer.bytes(&content)?)
}

pub(super) fn stat(sandbox: &Sandbox, path: &str, printer: &Printer) -> anyhow::Result<()> {
    let files = sandbox.fs();
    let stat = files.symlink_metadata(path)?;
    let target = (stat.file_type() == FileType::Symlink).then(|| files.read_link(path)).transpose()?;
    if printer.is_json() {
        let mut value = with(json!({ "path": path }), &stat);
        if let Some(target) = target {
            value["target"] = target.into();
        }
        printer.json(&value);
        return Ok(());
    }
    let field =
        |name: &str, value: String| printer.line(&format!("{} {value}", printer.paint(Colour::Bold, format!("{name:<9}"))));
    field("path", printer.foreign(path).into_owned());
    field("type", kind(&stat).to_owned());
    if let Some(target) = target {
        field("target", printer.foreign(&target).into_owned());
    }
    field("size", format!("{} ({})", stat.size, time::size(stat.size)));
    field("mode", format!("{:04o} {}", stat.mode & 0o7777, mode(&stat)));
    field("owner", format!("{}:{}", stat.uid, stat.gid));
    field("links", stat.nlink.to_string());
    field("inode", stat.ino.to_string());
    field("modified", format!("{} UTC", time::moment(stat.mtime)));
    field("changed", format!("{} UTC", time::moment(stat.ctime)));
    Ok(())
}

pub(super) fn find(sandbox: &Sandbox, path: &str, wanted: &Find, printer: &Printer) -> anyhow::Result<()> {
    let kind = wanted.kind.map(|kind| match kind {
        Kind::File => FileType::File,
        Kind::Dir => FileType::Directory,
        Kind::Link => FileType::Symlink,
    });
    let found = sandbox.fs().walk(path)?.into_iter().filter(|found| {
        kind.is_none_or(|kind| found.stat.file_type() == kind)
            && wanted.name.as_deref().is_none_or(|pattern| matches(pattern, super::name_of(&found.path)))
    });
    let found: Vec<Found> = found.collect();
    if printer.is_json() {
        let found: Vec<_> = found.iter().map(|found| with(json!({ "path": found.path }), &found.stat)).collect();
        printer.json(&json!({ "found": found }));
        return Ok(());
    }
    for found in &found {
        printer.line(&printer.foreign(&found.path));
    }
    Ok(())
}

pub(super) fn du(sandbox: &Sandbox, path: &str, printer: &Printer) -> anyhow::Result<()> {
    let found = sandbox.fs().walk(path)?;
    // Two names of one file take its bytes once.
    let mut files: Vec<(u64, u64)> =
        found.iter().filter(|found| found.stat.is_file()).map(|found| (found.stat.ino, found.stat.size)).collect();
    files.sort_unstable();
    files.dedup();
    let bytes: u64 = files.iter().map(|(_, size)| size).sum();
    let directories = found.iter().filter(|found| found.stat.is_dir()).count();
    if printer.is_json() {
        printer.json(&json!({ "path": path, "bytes": bytes, "files": files.len(), "directories": directories }));
    } else {
        let shown = printer.foreign(path);
        printer.line(&format!("{:>10}  {shown}  ({} files, {directories} directories)", time::size(bytes), files.len()));
    }
    Ok(())
}

pub(super) fn tree(sandbox: &Sandbox, path: &str, printer: &Printer) -> anyhow::Result<()> {
    let found = sandbox.fs().walk(path)?;
    if printer.is_json() {
        let found: Vec<_> = found.iter().map(|found| with(json!({ "path": found.path }), &found.stat)).collect();
        printer.json(&json!({ "path": path, "found": found }));
        return Ok(());
    }
    let Some((root, rest)) = found.split_first() else { return Ok(()) };
    printer.line(&painted(path, &root.stat, printer));
    let depth_of = |path: &str| path.trim_end_matches('/').matches('/').count();
    let top = depth_of(path);
    // Whether each directory above the line has more below it: then its branch is drawn on.
    let mut open: Vec<bool> = Vec::new();
    for (index, item) in rest.iter().enumerate() {
        let depth = depth_of(&item.path) - top;
        let after = rest[index + 1..].iter().map(|next| depth_of(&next.path) - top).find(|&next| next <= depth);
        let is_last = after != Some(depth);
        open.truncate(depth - 1);
        let branches: String = open.iter().map(|&open| if open { "│   " } else { "    " }).collect();
        let corner = if is_last { "└── " } else { "├── " };
        printer.line(&format!("{branches}{corner}{}", painted(super::name_of(&item.path), &item.stat, printer)));
        open.push(!is_last);
    }
    let directories = rest.iter().filter(|found| found.stat.is_dir()).count();
    printer.line(&format!("\n{directories} directories, {} files", rest.len() - directories));
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

fn kind(stat: &Stat) -> &'static str {
    match stat.file_type() {
        FileType::File => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
        FileType::Device => "device",
    }
}

fn with(mut value: Value, stat: &Stat) -> Value {
    value["type"] = kind(stat).into();
    value["size"] = stat.size.into();
    value["mode"] = format!("{:04o}", stat.mode & 0o7777).into();
    value["modified"] = stat.mtime.into();
    value
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

/// Whether a name is like a pattern: `*` is any text, `?` one character.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut seen) = (0, 0);
    // Where to go on when the text after the last `*` does not fit: one character further.
    let mut star = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == name[seen] => (at, seen) = (at + 1, seen + 1),
            _ => match &mut star {
                Some((star_at, taken)) => {
                    *taken += 1;
                    (at, seen) = (*star_at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&wanted| wanted == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_one_character() {
        let check = |pattern, name, expected| assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        check("*.rs", "main.rs", true);
        check("*.rs", "main.rst", false);
        check("m?in*", "main", true);
        check("*a*b*", "xxayybzz", true);
        check("*a*b", "abab c", false);
        check("", "", true);
        check("?", "", false);
        check("ü?", "üx", true);
    }
}
