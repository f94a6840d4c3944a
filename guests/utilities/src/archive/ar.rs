//! `ar`: archives of plain members, as linkers and Debian packages have them.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;

use crate::date;
use crate::files::basename::last_component;
use crate::files::mode::permissions;
use crate::program::{self, Args, Descriptor, Outcome, Output, bytes, fail, os, usage, warn};

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;

const HELP: &str = "\
Usage: ar [-]{dmpqrtx}[cUov] ARCHIVE [MEMBER]...
Keeps files as members of one archive.

  r  add or replace members     q  add members       d  take members out
  t  list members               p  print members     x  extract members
  m  move members to the end    c  say nothing when the archive is new
  v  name what is done          o  keep dates when extracting     U  keep dates and owners when adding
";

struct Member {
    name: Vec<u8>,
    time: u64,
    owner: (u32, u32),
    mode: u32,
    content: Vec<u8>,
}

/// Runs `ar`.
pub fn main(args: Args) -> Outcome {
    let mut words = args.into_iter().skip(1);
    let Some(key) = words.next() else { return Err(usage("no operation specified")) };
    match key.to_str() {
        Some("--help") => {
            Output::new().text(HELP);
            return Ok(0);
        }
        Some("--version" | "-V") => {
            Output::new().text(format!("ar (Sandlite) {}\n", env!("CARGO_PKG_VERSION")));
            return Ok(0);
        }
        _ => {}
    }
    let key = key.to_string_lossy().trim_start_matches('-').to_owned();
    let Some(operation) = key.chars().find(|letter| "dmpqrtx".contains(*letter)) else {
        return Err(usage("no operation specified"));
    };
    let has = |letter: char| key.contains(letter);
    let rest: Vec<OsString> = words.collect();
    let Some((archive, names)) = rest.split_first() else { return Err(usage("no archive specified")) };
    let mut members = match program::read_all(archive) {
        Ok(content) => {
            read(&content).ok_or_else(|| fail(format!("{}: file format not recognized", archive.to_string_lossy())))?
        }
        Err(error) if matches!(operation, 'r' | 'q') && error.kind() == std::io::ErrorKind::NotFound => {
            if !has('c') {
                warn(format!("creating {}", archive.to_string_lossy()));
            }
            Vec::new()
        }
        Err(error) => return Err(fail(format!("{}: {}", archive.to_string_lossy(), sys::message(&error)))),
    };
    let mut out = Output::new();
    match operation {
        'r' | 'q' => {
            for name in names {
                let fresh = from_file(name, !has('U'))?;
                let old = members.iter().position(|member| operation == 'r' && member.name == fresh.name);
                if has('v') {
                    out.text(format!("{} - {}\n", if old.is_some() { 'r' } else { 'a' }, name.to_string_lossy()));
                }
                match old {
                    Some(at) => members[at] = fresh,
                    None => members.push(fresh),
                }
            }
            write(archive, &members)?;
            Ok(0)
        }
        'd' => {
            for name in names {
                let before = members.len();
                members.retain(|member| member.name != last_component(bytes(name)));
                if has('v') && before != members.len() {
                    out.text(format!("d - {}\n", name.to_string_lossy()));
                }
            }
            write(archive, &members)?;
            Ok(0)
        }
        'm' => {
            let (moved, mut kept): (Vec<_>, Vec<_>) =
                members.into_iter().partition(|member| names.iter().any(|name| bytes(name) == member.name));
            kept.extend(moved);
            write(archive, &kept)?;
            Ok(0)
        }
        _ => show(&members, names, operation, has('v'), has('o'), &mut out),
    }
}

/// Runs `t`, `p` and `x`.
fn show(members: &[Member], names: &[OsString], operation: char, verbose: bool, dates: bool, out: &mut Output) -> Outcome {
    let mut status = 0;
    for name in names.iter().filter(|name| !members.iter().any(|member| member.name == bytes(name))) {
        let _ = sys::write_all(2, format!("no entry {} in archive\n", name.to_string_lossy()).as_bytes());
    }
    for member in members.iter().filter(|member| names.is_empty() || names.iter().any(|name| bytes(name) == member.name)) {
        let name = String::from_utf8_lossy(&member.name);
        match operation {
            't' if verbose => {
                let (uid, gid) = member.owner;
                let time = date::format(b"%b %e %H:%M %Y", i128::from(member.time) * date::SECOND);
                let (time, mode) = (String::from_utf8_lossy(&time), permissions(member.mode));
                out.text(format!("{mode} {uid}/{gid} {:6} {time} {name}\n", member.content.len()));
            }
            't' => out.text(format!("{name}\n")),
            'p' => {
                if verbose {
                    out.text(format!("\n<{name}>\n\n"));
                }
                out.put(&member.content);
            }
            _ => {
                if verbose {
                    out.text(format!("x - {name}\n"));
                }
                let path = os(member.name.clone());
                let written = Descriptor::create(&path).and_then(|mut file| file.write_all(&member.content));
                let done = written.and_then(|()| sys::chmod(Path::new(&path), true, member.mode & 0o777));
                if let Err(error) = done {
                    status = fail(format!("{name}: {}", sys::message(&error)));
                }
                if dates {
                    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(member.time);
                    let _ = std::fs::File::open(&path).and_then(|file| file.set_modified(time));
                }
            }
        }
    }
    Ok(status)
}

fn from_file(name: &OsStr, deterministic: bool) -> Result<Member, i32> {
    let trouble = |error: std::io::Error| fail(format!("{}: {}", name.to_string_lossy(), sys::message(&error)));
    let stat = sys::stat(Path::new(name), true).map_err(trouble)?;
    let content = program::read_all(name).map_err(trouble)?;
    let (time, owner, mode) = match deterministic {
        true => (0, (0, 0), 0o100_644),
        false => (u64::try_from(stat.mtime / 1_000_000_000).unwrap_or(0), (stat.uid, stat.gid), stat.mode),
    };
    Ok(Member { name: last_component(bytes(name)).to_vec(), time, owner, mode, content })
}

fn number<T: TryFrom<u64>>(field: &[u8], radix: u32) -> Option<T> {
    let text = std::str::from_utf8(field).ok()?.trim();
    let value = if text.is_empty() { 0 } else { u64::from_str_radix(text, radix).ok()? };
    T::try_from(value).ok()
}

fn read(archive: &[u8]) -> Option<Vec<Member>> {
    let mut rest = archive.strip_prefix(MAGIC)?;
    let mut long: &[u8] = &[];
    let mut members = Vec::new();
    while rest.len() >= HEADER {
        let (head, after) = rest.split_at(HEADER);
        let size: usize = number(&head[48..58], 10)?;
        let mut content = after.get(..size)?;
        rest = after.get(size + size % 2..).unwrap_or_default();
        let name = head[..16].trim_ascii_end();
        let name = match name {
            b"//" => {
                long = content;
                continue;
            }
            // The symbol table: a linker creates a new one.
            b"/" | b"/SYM64/" | b"__.SYMDEF" => continue,
            _ if name.starts_with(b"#1/") => {
                let length: usize = number(&name[3..], 10)?;
                let name = content.get(..length)?;
                content = &content[length..];
                name.split(|&byte| byte == 0).next()?.to_vec()
            }
            _ if name.len() > 1 && name[0] == b'/' && name[1].is_ascii_digit() => {
                let text = long.get(number::<usize>(&name[1..], 10)?..)?;
                text.split(|&byte| byte == b'\n').next()?.strip_suffix(b"/")?.to_vec()
            }
            _ => name.strip_suffix(b"/").unwrap_or(name).to_vec(),
        };
        members.push(Member {
            name,
            time: number(&head[16..28], 10)?,
            owner: (number(&head[28..34], 10)?, number(&head[34..40], 10)?),
            mode: number(&head[40..48], 8)?,
            content: content.to_vec(),
        });
    }
    Some(members)
}

fn write(archive: &OsStr, members: &[Member]) -> Result<(), i32> {
    let mut long = Vec::new();
    let mut body = Vec::new();
    for member in members {
        let name = if member.name.len() < 16 {
            [&member.name, &b"/"[..]].concat()
        } else {
            let at = long.len();
            long.extend_from_slice(&member.name);
            long.extend_from_slice(b"/\n");
            format!("/{at}").into_bytes()
        };
        let (uid, gid) = member.owner;
        let name = String::from_utf8_lossy(&name);
        let size = member.content.len();
        body.extend_from_slice(
            format!("{name:<16}{:<12}{uid:<6}{gid:<6}{:<8o}{size:<10}`\n", member.time, member.mode).as_bytes(),
        );
        body.extend_from_slice(&member.content);
        body.resize(body.len() + body.len() % 2, b'\n');
    }
    let mut all = MAGIC.to_vec();
    if !long.is_empty() {
        long.resize(long.len() + long.len() % 2, b'\n');
        all.extend_from_slice(format!("{:<48}{:<10}`\n", "//", long.len()).as_bytes());
        all.extend_from_slice(&long);
    }
    all.extend_from_slice(&body);
    let written = Descriptor::create(archive).and_then(|mut file| file.write_all(&all));
    written.map_err(|error| fail(format!("{}: {}", archive.to_string_lossy(), sys::message(&error))))
}
