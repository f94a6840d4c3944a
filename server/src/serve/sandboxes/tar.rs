//! Tar archives: written so that every program reads them, read with everything checked before the first byte is used.
//!
//! Knows nothing of sandboxes: names, kinds and where the bytes are. POSIX.1-2001 with `path`, `linkpath` and `size`, and GNU's long names.

use std::io::{self, Read, Write};

/// Bytes of a block.
const BLOCK: u64 = 512;
/// Most entries of an archive.
const MOST_ENTRIES: usize = 100_000;
/// Longest path, as the tree itself has it.
const LONGEST_PATH: usize = 4096;
/// Longest name in a path.
const LONGEST_NAME: usize = 255;
/// Largest extended header.
const LARGEST_HEADER: u64 = 64 << 10;

/// The type of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file whose content is at this offset of the archive.
    File {
        offset: u64,
        size: u64,
    },
    Directory,
    /// A symbolic link with this target.
    Link(String),
}

/// An entry. The path is relative, without `.` and `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) mode: u32,
    /// Nanoseconds since 1970.
    pub(super) modified: i64,
}

/// Writes the header of an entry; the content of a file follows, then [`pad`].
pub(super) fn write_header(to: &mut impl Write, entry: &Entry) -> io::Result<()> {
    let (kind, size, target) = match &entry.kind {
        Kind::File { size, .. } => (b'0', *size, ""),
        Kind::Directory => (b'5', 0, ""),
        Kind::Link(target) => (b'2', 0, target.as_str()),
    };
    let path = if kind == b'5' { format!("{}/", entry.path) } else { entry.path.clone() };
    let mut extended = Vec::new();
    if path.len() > 100 {
        extended.extend(record("path", &path));
    }
    if target.len() > 100 {
        extended.extend(record("linkpath", target));
    }
    if size >= 1 << 33 {
        extended.extend(record("size", &size.to_string()));
    }
    let seconds = u64::try_from(entry.modified / 1_000_000_000).unwrap_or(0);
    if !extended.is_empty() {
        to.write_all(&block("extended", b'x', extended.len() as u64, "", 0o644, seconds))?;
        to.write_all(&extended)?;
        pad(to, extended.len() as u64)?;
    }
    to.write_all(&block(&path, kind, size, target, entry.mode & 0o7777, seconds))
}

/// Fills the last block of a content of this size.
pub(super) fn pad(to: &mut impl Write, size: u64) -> io::Result<()> {
    let rest = usize::try_from((BLOCK - size % BLOCK) % BLOCK).unwrap_or(0);
    to.write_all([0; 512].get(..rest).unwrap_or_default())
}

/// Writes the end of an archive.
pub(super) fn finish(to: &mut impl Write) -> io::Result<()> {
    to.write_all(&[0; 1024])
}

// `LENGTH NAME=VALUE\n`, where the length counts itself.
fn record(name: &str, value: &str) -> Vec<u8> {
    let rest = name.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {name}={value}\n").into_bytes()
}

fn block(path: &str, kind: u8, size: u64, target: &str, mode: u32, seconds: u64) -> [u8; 512] {
    let mut block = [0; 512];
    let mut put = |at: usize, most: usize, bytes: &[u8]| {
        let length = bytes.len().min(most);
        if let (Some(room), Some(bytes)) = (block.get_mut(at..at + length), bytes.get(..length)) {
            room.copy_from_slice(bytes);
        }
    };
    put(0, 100, path.as_bytes());
    put(100, 8, format!("{mode:07o}").as_bytes());
    put(108, 8, b"0001750");
    put(116, 8, b"0001750");
    put(124, 12, format!("{:011o}", if size < 1 << 33 { size } else { 0 }).as_bytes());
    put(136, 12, format!("{:011o}", seconds.min((1 << 33) - 1)).as_bytes());
    put(148, 8, b"        ");
    put(156, 1, &[kind]);
    put(157, 100, target.as_bytes());
    put(257, 8, b"ustar\x0000");
    put(265, 32, b"user");
    put(297, 32, b"user");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    if let Some(room) = block.get_mut(148..155) {
        room.copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }
    block
}

fn refuse<T>(reason: impl std::fmt::Display) -> Result<T, String> {
    Err(format!("the archive was refused: {reason}"))
}

/// Returns every entry of an archive of this size; `part` reads a part of it. Devices, names that lead out and links that lead out are refused.
pub(super) fn entries<R: Read>(size: u64, part: impl Fn(u64, u64) -> R) -> Result<Vec<Entry>, String> {
    let (mut entries, mut at) = (Vec::new(), 0);
    let mut long = Long::default();
    while at + BLOCK <= size {
        let mut header = [0; 512];
        part(at, BLOCK).read_exact(&mut header).map_err(|error| error.to_string())?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(entries);
        }
        let sum: u32 =
            header.iter().enumerate().map(|(place, byte)| if (148..156).contains(&place) { 32 } else { u32::from(*byte) }).sum();
        if number(&header, 148, 8) != Some(u64::from(sum)) {
            return refuse("it is not a tar file, or is damaged");
        }
        let kind = header.get(156).copied().unwrap_or(0);
        let Some(stated) = number(&header, 124, 12) else { return refuse("an entry has an invalid size") };
        let length = if matches!(kind, b'x' | b'g' | b'L' | b'K') { stated } else { long.size.take().unwrap_or(stated) };
        let content = at + BLOCK;
        let Some(next) = length.div_ceil(BLOCK).checked_mul(BLOCK).and_then(|length| content.checked_add(length)) else {
            return refuse("an entry has an invalid size");
        };
        let has_content = matches!(kind, b'0' | 0 | b'7' | b'x' | b'g' | b'L' | b'K');
        if has_content && content.checked_add(length).is_none_or(|end| end > size) {
            return refuse("it ends early");
        }
        at = if has_content { next } else { content };
        match kind {
            b'x' | b'L' | b'K' | b'g' => {
                if length > LARGEST_HEADER {
                    return refuse("an extended header is too large");
                }
                let mut bytes = Vec::new();
                part(content, length).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
                long.read(kind, bytes)?;
                continue;
            }
            _ => {}
        }
        let path = match long.path.take() {
            Some(path) => path,
            None => name_of(&header)?,
        };
        let target = match long.target.take() {
            Some(target) => target,
            None => text(&header, 157, 100)?,
        };
        let Some(path) = checked(&path)? else { continue };
        let kind = match kind {
            b'0' | 0 | b'7' => Kind::File { offset: content, size: length },
            b'5' => Kind::Directory,
            b'2' => Kind::Link(inside(&path, target)?),
            b'1' => first_name(&entries, &target)?,
            _ => return refuse(format_args!("`{}` is a device or of an unknown kind", shown(&path))),
        };
        let mode = u32::try_from(number(&header, 100, 8).unwrap_or(0o644) & 0o777).unwrap_or(0o644);
        let seconds = i64::try_from(number(&header, 136, 12).unwrap_or(0)).unwrap_or(0);
        entries.push(Entry { path, kind, mode, modified: seconds.saturating_mul(1_000_000_000) });
        if entries.len() > MOST_ENTRIES {
            return refuse("it has more than 100000 entries");
        }
    }
    if at == 0 { refuse("it is empty, or not a tar file") } else { Ok(entries) }
}

fn shown(path: &str) -> String {
    path.chars().take(100).flat_map(char::escape_debug).collect()
}

// A name that an archive has for a second time is the content of the first.
fn first_name(entries: &[Entry], target: &str) -> Result<Kind, String> {
    let target = checked(target)?.unwrap_or_default();
    let first = entries.iter().rfind(|entry| entry.path == target).map(|entry| &entry.kind);
    match first {
        Some(Kind::File { offset, size }) => Ok(Kind::File { offset: *offset, size: *size }),
        _ => refuse(format_args!("a hard link leads to `{}`, which is not a file before it", shown(&target))),
    }
}

// A relative path without `.` and `..`; `None` is the directory itself.
fn checked(path: &str) -> Result<Option<String>, String> {
    if path.starts_with('/') || path.contains('\0') {
        return refuse(format_args!("`{}` is not a relative path", shown(path)));
    }
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." || part.len() > LONGEST_NAME {
            return refuse(format_args!("`{}` leads out of the directory, or is too long", shown(path)));
        }
        parts.push(part);
    }
    let path = parts.join("/");
    if path.len() > LONGEST_PATH {
        return refuse("a path is too long");
    }
    Ok(Some(path).filter(|path| !path.is_empty()))
}

// A link's target stays inside: it is relative, and climbs no higher than the archive's own root.
fn inside(path: &str, target: String) -> Result<String, String> {
    let mut depth = path.split('/').count() - 1;
    let leads_out = target.is_empty()
        || target.starts_with('/')
        || target.len() > LONGEST_PATH
        || target.split('/').any(|part| match part {
            "" | "." => false,
            ".." => match depth.checked_sub(1) {
                Some(above) => {
                    depth = above;
                    false
                }
                None => true,
            },
            _ => {
                depth += 1;
                false
            }
        });
    if leads_out { refuse(format_args!("the link `{}` leads out of the directory", shown(path))) } else { Ok(target) }
}

/// Values of extended headers for the entry that follows.
#[derive(Default)]
struct Long {
    path: Option<String>,
    target: Option<String>,
    size: Option<u64>,
}

impl Long {
    fn read(&mut self, kind: u8, bytes: Vec<u8>) -> Result<(), String> {
        let Ok(text) = String::from_utf8(bytes) else { return refuse("a name is not UTF-8") };
        match kind {
            b'L' => self.path = Some(text.trim_end_matches('\0').to_owned()),
            b'K' => self.target = Some(text.trim_end_matches('\0').to_owned()),
            b'x' => {
                let mut rest = text.as_str();
                while let Some((length, _)) = rest.split_once(' ') {
                    let record = length.parse().ok().and_then(|length: usize| Some((rest.get(..length)?, rest.get(length..)?)));
                    let Some((record, after)) = record else { return refuse("an extended header is damaged") };
                    let field = record.split_once(' ').and_then(|(_, field)| field.strip_suffix('\n')?.split_once('='));
                    match field {
                        Some(("path", value)) => self.path = Some(value.to_owned()),
                        Some(("linkpath", value)) => self.target = Some(value.to_owned()),
                        Some(("size", value)) => match value.parse() {
                            Ok(size) => self.size = Some(size),
                            Err(_) => return refuse("an entry has an invalid size"),
                        },
                        Some(_) => {}
                        None => return refuse("an extended header is damaged"),
                    }
                    rest = after;
                }
            }
            // Other headers, such as global ones, only have owners and times.
            _ => {}
        }
        Ok(())
    }
}

fn text(header: &[u8; 512], at: usize, most: usize) -> Result<String, String> {
    let field = header.get(at..at + most).unwrap_or_default();
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    match std::str::from_utf8(field.get(..end).unwrap_or_default()) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => refuse("a name is not UTF-8"),
    }
}

fn name_of(header: &[u8; 512]) -> Result<String, String> {
    let name = text(header, 0, 100)?;
    // GNU's own format has other things where POSIX has the first part of a name.
    let prefix = if header.get(257..263) == Some(b"ustar\0") { text(header, 345, 155)? } else { String::new() };
    Ok(if prefix.is_empty() { name } else { format!("{prefix}/{name}") })
}

// An octal number, or a binary one as GNU writes it.
fn number(header: &[u8; 512], at: usize, most: usize) -> Option<u64> {
    let field = header.get(at..at + most)?;
    if let Some((first, rest)) = field.split_first()
        && *first == 0x80
    {
        return rest.iter().try_fold(0u64, |sum, byte| sum.checked_mul(256)?.checked_add(u64::from(*byte)));
    }
    let text = std::str::from_utf8(field).ok()?;
    let digits = text.trim_matches(|letter| letter == ' ' || letter == '\0');
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, kind: Kind) -> Entry {
        Entry { path: path.to_owned(), kind, mode: 0o644, modified: 1_700_000_000_000_000_000 }
    }

    fn read(archive: &[u8]) -> Result<Vec<Entry>, String> {
        entries(archive.len() as u64, |at, length| {
            let (from, to) = (usize::try_from(at).unwrap(), usize::try_from(at + length).unwrap());
            io::Cursor::new(archive[from..to.min(archive.len())].to_vec())
        })
    }

    fn archive(of: &[(Entry, &[u8])]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (entry, content) in of {
            write_header(&mut archive, entry).unwrap();
            archive.extend_from_slice(content);
            pad(&mut archive, content.len() as u64).unwrap();
        }
        finish(&mut archive).unwrap();
        archive
    }

    #[test]
    fn a_written_archive_can_be_read() {
        let long = format!("{}/{}", "d".repeat(120), "é".repeat(60));
        let written = [
            (entry("a", Kind::Directory), &b""[..]),
            (entry("a/b.txt", Kind::File { offset: 1024, size: 5 }), b"hello"),
            (entry("a/link", Kind::Link("../a/b.txt".to_owned())), b""),
            (entry(&long, Kind::File { offset: 3584, size: 0 }), b""),
        ];
        let found = read(&archive(&written)).unwrap();
        assert_eq!(found, written.map(|(entry, _)| entry));
    }

    // T-NET-07.
    #[test]
    fn paths_that_lead_out_are_rejected() {
        let check = |entry: Entry, part: &str| {
            let refused = read(&archive(&[(entry, b"")])).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        };
        check(entry("../x", Kind::Directory), "leads out");
        check(entry("a/../../x", Kind::Directory), "leads out");
        check(entry("/etc/passwd", Kind::Directory), "not a relative path");
        check(entry("a/link", Kind::Link("/etc".to_owned())), "leads out");
        check(entry("a/link", Kind::Link("../../etc".to_owned())), "leads out");
        check(entry("link", Kind::Link("a/../../b".to_owned())), "leads out");
        let mut device = block("null", b'3', 0, "", 0o644, 0).to_vec();
        device.extend([0; 1024]);
        assert!(read(&device).unwrap_err().contains("device"));
    }

    #[test]
    fn damaged_archives_are_refused() {
        assert!(read(b"").unwrap_err().contains("empty"));
        assert!(read(&[7; 2048]).unwrap_err().contains("not a tar"));
        let mut short = block("f", b'0', 9999, "", 0o644, 0).to_vec();
        short.extend([0; 512]);
        assert!(read(&short).unwrap_err().contains("ends early"));
    }
}
