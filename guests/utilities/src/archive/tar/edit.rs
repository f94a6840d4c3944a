//! Archives held against the files (`-d`), and members taken out (`--delete`).

use std::io::Read;

use super::header::{self, Member};
use super::{Options, open, pack};
use crate::io::{self, Out, show};

/// A member and where its bytes are in the archive: heads, then content.
struct Piece {
    member: Member,
    start: usize,
    content: usize,
    end: usize,
}

fn load(options: &Options) -> Result<Vec<u8>, i32> {
    let fatal = |message: String| {
        warn!("tar: {message}\ntar: Error is not recoverable: exiting now");
        2
    };
    let mut bytes = Vec::new();
    let mut archive = open(options).map_err(fatal)?;
    archive.read_to_end(&mut bytes).map_err(|_| fatal("Unexpected EOF in archive".to_string()))?;
    Ok(bytes)
}

fn pieces(archive: &[u8]) -> Result<Vec<Piece>, &'static str> {
    const NO_ARCHIVE: &str = "This does not look like a tar archive";
    let mut pieces = Vec::new();
    let (mut at, mut start) = (0, 0);
    let (mut name, mut link, mut pax) = (None, None, None);
    while let Some(block) = archive.get(at..).and_then(|rest| rest.first_chunk::<512>()) {
        let Some(mut member) = header::decode(block).map_err(|()| NO_ARCHIVE)? else { break };
        at += 512;
        let has_content = !matches!(member.kind, b'1' | b'2' | b'3' | b'4' | b'5' | b'6');
        let size = if has_content { usize::try_from(member.size).map_err(|_| NO_ARCHIVE)? } else { 0 };
        let end = at.checked_add(size).map(|end| end.next_multiple_of(512)).ok_or(NO_ARCHIVE)?;
        let bytes = archive.get(at..at + size).ok_or("Unexpected EOF in archive")?;
        let text = || bytes.split(|&byte| byte == 0).next().unwrap_or_default().to_vec();
        match member.kind {
            b'L' => name = Some(text()),
            b'K' => link = Some(text()),
            b'x' => pax = Some(bytes),
            b'g' => {}
            _ => {
                member.name = name.take().unwrap_or(member.name);
                member.link = link.take().unwrap_or(member.link);
                if let Some(records) = pax.take() {
                    header::apply_pax(&mut member, records);
                }
                pieces.push(Piece { member, start, content: at, end });
                start = end;
            }
        }
        at = end;
    }
    Ok(pieces)
}

fn names(options: &Options, operand: &[u8], name: &[u8]) -> bool {
    let (operand, bare) = (operand.strip_suffix(b"/").unwrap_or(operand), name.strip_suffix(b"/").unwrap_or(name));
    let inside = bare.strip_prefix(operand).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
    let pattern = pattern::Options { leading_dir: true, ..pattern::Options::default() };
    inside || options.wildcards && pattern::fnmatch(operand, bare, pattern)
}

/// Says which operands named nothing; the status.
fn unused(options: &Options, pieces: &[Piece]) -> i32 {
    let mut status = 0;
    for (_, operand) in &options.operands {
        if !pieces.iter().any(|piece| names(options, operand, &piece.member.name)) {
            warn!("tar: {}: Not found in archive", show(operand));
            status = 2;
        }
    }
    status
}

fn ended(status: i32) -> i32 {
    if status == 2 {
        warn!("tar: Exiting with failure status due to previous errors");
    }
    status
}

/// Runs `--delete`.
pub(super) fn delete(options: &Options) -> i32 {
    let (archive, pieces) = match read(options) {
        Ok(read) => read,
        Err(status) => return status,
    };
    let mut kept = Vec::with_capacity(archive.len());
    for piece in &pieces {
        if !options.operands.iter().any(|(_, operand)| names(options, operand, &piece.member.name)) {
            kept.extend_from_slice(archive.get(piece.start..piece.end).unwrap_or_default());
        }
    }
    match pack::finish(options, kept) {
        Ok(()) => ended(unused(options, &pieces)),
        Err(status) => status,
    }
}

fn read(options: &Options) -> Result<(Vec<u8>, Vec<Piece>), i32> {
    let archive = load(options)?;
    match pieces(&archive) {
        Ok(pieces) => Ok((archive, pieces)),
        Err(message) => {
            warn!("tar: {message}\ntar: Exiting with failure status due to previous errors");
            Err(2)
        }
    }
}

/// Runs `--diff`.
pub(super) fn compare(options: &Options) -> i32 {
    let (archive, pieces) = match read(options) {
        Ok(read) => read,
        Err(status) => return status,
    };
    let mut out = Out::new("tar", 2);
    let mut status = 0;
    for piece in &pieces {
        let member = &piece.member;
        let wanted =
            options.operands.is_empty() || options.operands.iter().any(|(_, operand)| names(options, operand, &member.name));
        if !wanted || options.excluded(&member.name) {
            continue;
        }
        if options.verbose > 0 {
            out.put(&[member.name.as_slice(), b"\n"].concat());
        }
        let content = archive.get(piece.content..).and_then(|rest| rest.get(..usize::try_from(member.size).ok()?));
        for difference in differences(options, member, content.unwrap_or_default()) {
            out.flush();
            match difference {
                Ok(text) => out.put(format!("{}: {text}\n", show(&member.name)).as_bytes()),
                Err(text) => warn!("tar: {}: {text}", show(&member.name)),
            }
            status = 1;
        }
    }
    out.flush();
    ended(status.max(unused(options, &pieces)))
}

/// Returns the differences, for standard output or as warnings.
fn differences(options: &Options, member: &Member, content: &[u8]) -> Vec<Result<String, String>> {
    let location = Options::locate(&options.directory, &member.name);
    let path = io::path(&location);
    let stat = match sys::stat(&path, options.dereference) {
        Ok(stat) => stat,
        Err(error) => return vec![Err(format!("Warning: Cannot stat: {}", sys::message(&error)))],
    };
    let mut found = Vec::new();
    let kind = match member.kind {
        b'5' => sys::stat::S_IFDIR,
        b'2' => sys::stat::S_IFLNK,
        b'6' => sys::stat::S_IFIFO,
        b'1' => stat.kind(),
        _ => sys::stat::S_IFREG,
    };
    if stat.kind() != kind {
        return vec![Ok("File type differs".to_string())];
    }
    match member.kind {
        b'1' => {
            let other = Options::locate(&options.directory, &member.link);
            if !sys::stat(&io::path(&other), false).is_ok_and(|other| (other.dev, other.ino) == (stat.dev, stat.ino)) {
                return vec![Ok(format!("Not linked to {}", show(&member.link)))];
            }
            return found;
        }
        b'2' => {
            let target = std::fs::read_link(&path).map_or_else(|_| Vec::new(), |target| io::path_bytes(&target).to_vec());
            return if target == member.link { found } else { vec![Ok("Symlink differs".to_string())] };
        }
        _ => {}
    }
    if stat.mode & 0o7777 != member.mode & 0o7777 {
        found.push(Ok("Mode differs".to_string()));
    }
    if stat.uid != member.uid {
        found.push(Ok("Uid differs".to_string()));
    }
    if stat.gid != member.gid {
        found.push(Ok("Gid differs".to_string()));
    }
    if member.kind == b'5' || member.kind == b'6' {
        return found;
    }
    if stat.mtime.div_euclid(1_000_000_000) != member.mtime {
        found.push(Ok("Mod time differs".to_string()));
    }
    if stat.size != member.size {
        found.push(Ok("Size differs".to_string()));
    } else {
        match io::read_all(if location == b"-" { b"./-" } else { &location }) {
            Ok(bytes) if bytes == content => {}
            Ok(_) => found.push(Ok("Contents differ".to_string())),
            Err(error) => found.push(Ok(format!("Cannot read: {}", sys::message(&error)))),
        }
    }
    found
}
