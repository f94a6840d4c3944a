//! `file`: what a file's content looks like.

use std::ffi::OsString;
use std::fs;

use common::getopt::{self, Item, Long, Spec, Value};

use crate::io::{self, Out, show};
use crate::utf8;

const LONG: &[Long] = &[
    ("brief", Value::No, 'b'),
    ("dereference", Value::No, 'L'),
    ("mime", Value::No, 'i'),
    ("mime-type", Value::No, '\u{1}'),
    ("mime-encoding", Value::No, '\u{2}'),
    ("separator", Value::Needs, 'F'),
];

/// Runs `file`.
pub fn file(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "bikLhF:zsN0", long: LONG };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("file: {message}\nUsage: file [-bcCdEhikLlNnprsSvzZ0] [--apple] [--extension] [--mime-encoding]");
            return 1;
        }
    };
    let (mut brief, mut mime, mut encoding, mut follow, mut separator) = (false, false, false, false, b":".to_vec());
    let mut files = Vec::new();
    for item in items {
        match item {
            Item::Operand(file) => files.push(file),
            Item::Opt('b', _) => brief = true,
            Item::Opt('i', _) => (mime, encoding) = (true, true),
            Item::Opt('\u{1}', _) => mime = true,
            Item::Opt('\u{2}', _) => encoding = true,
            Item::Opt('L', _) => follow = true,
            Item::Opt('F', value) => separator = value.unwrap_or_default(),
            Item::Opt(..) => {}
        }
    }
    if files.is_empty() {
        warn!("Usage: file [-bcCdEhikLlNnprsSvzZ0] [--apple] [--extension] [--mime-encoding]");
        return 1;
    }
    let width = files.iter().map(|name| utf8::count(name)).max().unwrap_or(0);
    let mut out = Out::new("file", 1);
    for name in &files {
        let (text, kind, charset) = describe(name, follow);
        if !brief {
            let shown = if name == b"-" { b"/dev/stdin".to_vec() } else { name.clone() };
            out.put(&shown);
            out.put(&separator);
            out.put(" ".repeat(1 + width.saturating_sub(utf8::count(&shown))).as_bytes());
        }
        let line = match (mime, encoding) {
            (true, true) => format!("{kind}; charset={charset}"),
            (true, false) => kind,
            (false, true) => charset,
            (false, false) => text,
        };
        out.put(line.as_bytes());
        out.byte(b'\n');
    }
    out.flush();
    0
}

type Description = (String, String, String);

fn binary(text: &str, kind: &str) -> Description {
    (text.to_string(), kind.to_string(), "binary".to_string())
}

fn describe(name: &[u8], follow: bool) -> Description {
    let path = io::path(name);
    if name != b"-" {
        match sys::stat(&path, follow) {
            Err(error) => {
                let text = format!("cannot open `{}' ({})", show(name), sys::message(&error));
                return (text.clone(), text, "binary".to_string());
            }
            Ok(stat) => match stat.kind() {
                sys::stat::S_IFDIR => return binary("directory", "inode/directory"),
                sys::stat::S_IFLNK => {
                    let target = fs::read_link(&path).unwrap_or_default();
                    let state = if sys::stat(&path, true).is_ok() { "symbolic link to" } else { "broken symbolic link to" };
                    return binary(&format!("{state} {}", target.display()), "inode/symlink");
                }
                sys::stat::S_IFCHR => return binary("character special", "inode/chardevice"),
                sys::stat::S_IFIFO => return binary("fifo (named pipe)", "inode/fifo"),
                _ => {}
            },
        }
    }
    match io::read_all(name) {
        Ok(content) => content_kind(&content, name != b"-"),
        Err(error) => binary(&format!("cannot open `{}' ({})", show(name), sys::message(&error)), "application/octet-stream"),
    }
}

fn be32(data: &[u8], at: usize) -> u32 {
    data.get(at..at + 4).map_or(0, |bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn le16(data: &[u8], at: usize) -> u16 {
    data.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// Describes the header of a gzip file, and the length at its end if it exists.
fn gzip(data: &[u8], whole: bool) -> String {
    let byte = |at: usize| data.get(at).copied().unwrap_or(0);
    let mut text = "gzip compressed data".to_string();
    let extra = if byte(3) & 4 != 0 { 2 + usize::from(le16(data, 10)) } else { 0 };
    if byte(3) & 8 != 0 {
        let name = data.get(10 + extra..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
        text.push_str(&format!(", was \"{}\"", show(name)));
    }
    let time = u32::from_le_bytes([byte(4), byte(5), byte(6), byte(7)]);
    if time != 0 {
        let zone = sys::zone::Zone::local();
        let moment = i128::from(time) * 1_000_000_000;
        let date = common::strftime::format(b"%a %b %e %T %Y", moment, &zone, common::strftime::Dialect::Library);
        text.push_str(&format!(", last modified: {}", show(&date)));
    }
    text.push_str(match byte(8) {
        2 => ", max compression",
        4 => ", max speed",
        _ => "",
    });
    text.push_str(match byte(9) {
        0 => ", from FAT filesystem (MS-DOS, OS/2, NT)",
        3 => ", from Unix",
        7 => ", from MacOS",
        11 => ", from NTFS filesystem (NT)",
        _ => "",
    });
    if let (true, Some(length)) = (whole, data.last_chunk::<4>()) {
        text.push_str(&format!(", original size modulo 2^32 {}", u32::from_le_bytes(*length)));
    }
    text
}

fn content_kind(data: &[u8], whole: bool) -> Description {
    if data.is_empty() {
        return binary("empty", "inode/x-empty");
    }
    let starts = |magic: &[u8]| data.starts_with(magic);
    if let Some(name) = abi::program::named(data) {
        return binary(&format!("Sandlite program, {name}"), "application/x-executable");
    }
    if starts(b"\x7fELF") {
        let bits = if data.get(4) == Some(&2) { "64" } else { "32" };
        return binary(&format!("ELF {bits}-bit LSB executable"), "application/x-executable");
    }
    if starts(b"\0asm") {
        return binary("WebAssembly (wasm) binary module version 0x1 (MVP)", "application/wasm");
    }
    if starts(b"\x89PNG\r\n\x1a\n") {
        let depth = data.get(24).copied().unwrap_or(8);
        let color = match data.get(25) {
            Some(0) => "grayscale",
            Some(2) => "/color RGB",
            Some(3) => " colormap",
            Some(4) => " gray+alpha",
            _ => "/color RGBA",
        };
        return binary(
            &format!("PNG image data, {} x {}, {depth}-bit{color}, non-interlaced", be32(data, 16), be32(data, 20)),
            "image/png",
        );
    }
    if starts(b"\xff\xd8\xff") {
        return binary("JPEG image data", "image/jpeg");
    }
    if starts(b"GIF8") {
        return binary(
            &format!("GIF image data, version {}, {} x {}", show(&data[3..6.min(data.len())]), le16(data, 6), le16(data, 8)),
            "image/gif",
        );
    }
    if starts(b"%PDF-") {
        return binary(&format!("PDF document, version {}", show(data.get(5..8).unwrap_or_default())), "application/pdf");
    }
    if starts(b"\x1f\x8b") {
        return binary(&gzip(data, whole), "application/gzip");
    }
    if starts(b"BZh") {
        return binary(&format!("bzip2 compressed data, block size = {}00k", char::from(data[3])), "application/x-bzip2");
    }
    if starts(b"\xfd7zXZ\0") {
        return binary("XZ compressed data, checksum CRC64", "application/x-xz");
    }
    if starts(b"PK\x03\x04") {
        let (version, method) = (le16(data, 4), le16(data, 8));
        let method = match method {
            0 => "store".to_owned(),
            8 => "deflate".to_owned(),
            12 => "bzip2".to_owned(),
            14 => "lzma".to_owned(),
            other => format!("[{other:#x}]"),
        };
        let text =
            format!("Zip archive data, at least v{}.{} to extract, compression method={method}", version / 10, version % 10);
        return binary(&text, "application/zip");
    }
    if let Some(found) = magic(data) {
        return found;
    }
    if starts(b"SQLite format 3\0") {
        return binary("SQLite 3.x database", "application/vnd.sqlite3");
    }
    if data.get(257..262) == Some(b"ustar") {
        let flavor = if data.get(262..265) == Some(b"  \0") { "POSIX tar archive (GNU)" } else { "POSIX tar archive" };
        return binary(flavor, "application/x-tar");
    }
    text_kind(data)
}

/// Describes what its first bytes name.
fn magic(data: &[u8]) -> Option<Description> {
    const PLAIN: [(&[u8], &str, &str); 13] = [
        (b"!<arch>\n", "current ar archive", "application/x-archive"),
        (b"070701", "ASCII cpio archive (SVR4 with no CRC)", "application/x-cpio"),
        (b"070702", "ASCII cpio archive (SVR4 with CRC)", "application/x-cpio"),
        (b"070707", "ASCII cpio archive (pre-SVR4 or odc)", "application/x-cpio"),
        (b"Rar!\x1a\x07\x01\0", "RAR archive data, v5", "application/x-rar"),
        (b"Rar!\x1a\x07\0", "RAR archive data", "application/x-rar"),
        (b"OggS", "Ogg data", "application/ogg"),
        (b"\x28\xb5\x2f\xfd", "Zstandard compressed data (v0.8+), Dictionary ID: None", "application/zstd"),
        (b"\x04\x22\x4d\x18", "LZ4 compressed data (v1.4+)", "application/x-lz4"),
        (b"wOFF\0\x01\0\0", "Web Open Font Format, TrueType", "font/woff"),
        (b"wOF2", "Web Open Font Format (Version 2)", "font/woff2"),
        (b"\xcf\xfa\xed\xfe\x07\0\0\x01\x03\0\0\0\x02\0\0\0", "Mach-O 64-bit x86_64 executable", "application/x-mach-binary"),
        (b"\xcf\xfa\xed\xfe\x0c\0\0\x01\0\0\0\0\x02\0\0\0", "Mach-O 64-bit arm64 executable", "application/x-mach-binary"),
    ];
    if let Some((_, text, kind)) = PLAIN.iter().find(|(magic, ..)| data.starts_with(magic)) {
        return Some(binary(text, kind));
    }
    let byte = |at: usize| data.get(at).copied().unwrap_or(0);
    if data.starts_with(b"7z\xbc\xaf\x27\x1c") {
        return Some(binary(&format!("7-zip archive data, version {}.{}", byte(6), byte(7)), "application/x-7z-compressed"));
    }
    // Universal Mach-O files begin alike, but have few parts where a class has its version.
    if data.starts_with(b"\xca\xfe\xba\xbe") && be32(data, 4) > 30 {
        let (minor, major) = (u16::from_be_bytes([byte(4), byte(5)]), u16::from_be_bytes([byte(6), byte(7)]));
        let java = match major {
            45..=52 => format!(" (Java 1.{})", major - 44),
            53.. => format!(" (Java SE {})", major - 44),
            _ => String::new(),
        };
        return Some(binary(&format!("compiled Java class data, version {major}.{minor}{java}"), "application/x-java-applet"));
    }
    if data.starts_with(b"dex\n") && byte(7) == 0 {
        let version = show(data.get(4..7).unwrap_or_default()).into_owned();
        return Some(binary(&format!("Dalvik dex file version {version}"), "application/octet-stream"));
    }
    if data.starts_with(b"ID3") {
        return Some(binary(&format!("Audio file with ID3 version 2.{}.{}", byte(3), byte(4)), "audio/mpeg"));
    }
    if data.starts_with(b"RIFF") && data.get(8..12) == Some(b"WEBP") {
        return Some(binary("RIFF (little-endian) data, Web/P image", "image/webp"));
    }
    if data.starts_with(b"RIFF") && data.get(8..16) == Some(b"WAVEfmt ") && le16(data, 20) == 1 {
        let channels = match le16(data, 22) {
            1 => "mono".to_owned(),
            2 => "stereo".to_owned(),
            other => format!("{other} channels"),
        };
        let rate = u32::from(le16(data, 24)) | u32::from(le16(data, 26)) << 16;
        let text = format!("RIFF (little-endian) data, WAVE audio, Microsoft PCM, {} bit, {channels} {rate} Hz", le16(data, 34));
        return Some(binary(&text, "audio/x-wav"));
    }
    None
}

fn text_kind(data: &[u8]) -> Description {
    let control = data.iter().any(|byte| matches!(byte, 0..=6 | 14..=26 | 28..=31 | 127));
    let valid = std::str::from_utf8(data).is_ok();
    if control || !valid && data.iter().any(|byte| (0x80..0xa0).contains(byte)) {
        return binary("data", "application/octet-stream");
    }
    let (charset, encoding) = if data.is_ascii() {
        ("us-ascii", "ASCII")
    } else if data.starts_with(b"\xef\xbb\xbf") {
        ("utf-8", "Unicode text, UTF-8 (with BOM)")
    } else if valid {
        ("utf-8", "Unicode text, UTF-8")
    } else {
        ("iso-8859-1", "ISO-8859")
    };
    let crlf = memchr::memmem::find(data, b"\r\n").is_some();
    let mut tail = String::new();
    if data.split(|&byte| byte == b'\n').any(|line| line.len() > 300) {
        let longest = data.split(|&byte| byte == b'\n').map(<[u8]>::len).max().unwrap_or(0);
        tail.push_str(&format!(", with very long lines ({longest})"));
    }
    if crlf {
        tail.push_str(", with CRLF line terminators");
    } else if !data.contains(&b'\n') {
        tail.push_str(", with no line terminators");
    }
    let head = data.trim_ascii_start();
    let first_line = data.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let script =
        |name: &str, kind: &str| (format!("{name}, {encoding} text executable{tail}"), kind.to_string(), charset.to_string());
    let named = |name: &str, kind: &str| (format!("{name}, {encoding} text{tail}"), kind.to_string(), charset.to_string());
    if let Some(line) = first_line.strip_prefix(b"#!") {
        let line = show(line.trim_ascii()).into_owned();
        let program = line.split_whitespace().next().unwrap_or_default();
        let interpreter = if program.ends_with("/env") {
            line.split_whitespace().nth(1).unwrap_or("")
        } else {
            program.rsplit('/').next().unwrap_or("")
        };
        return match interpreter {
            "bash" => script("Bourne-Again shell script", "text/x-shellscript"),
            "sh" | "dash" => script("POSIX shell script", "text/x-shellscript"),
            name if name.starts_with("python") => script("Python script", "text/x-script.python"),
            "perl" => script("Perl script", "text/x-perl"),
            "node" => script("Node.js script", "application/javascript"),
            "ruby" => script("Ruby script", "text/x-ruby"),
            _ => script(&format!("a {line} script"), "text/plain"),
        };
    }
    if matches!(head.first(), Some(b'{' | b'[')) && crate::text::jq::is_json(data) {
        return ("JSON text data".to_string(), "application/json".to_string(), charset.to_string());
    }
    let lower = head[..head.len().min(64)].to_ascii_lowercase();
    if lower.starts_with(b"<!doctype html") || lower.starts_with(b"<html") {
        return named("HTML document", "text/html");
    }
    if head.starts_with(b"<?xml") {
        return (format!("XML 1.0 document, {encoding} text{tail}"), "text/xml".to_string(), charset.to_string());
    }
    let has = |needle: &[u8]| memchr::memmem::find(data, needle).is_some();
    if has(b"#include") && (has(b"int main") || has(b"{")) {
        return named("C source", "text/x-c");
    }
    if has(b"\ndef ") && has(b":\n") || head.starts_with(b"import ") && has(b"\ndef ") || head.starts_with(b"def ") {
        return (
            format!("Python script, {encoding} text executable{tail}"),
            "text/x-script.python".to_string(),
            charset.to_string(),
        );
    }
    (format!("{encoding} text{tail}"), "text/plain".to_string(), charset.to_string())
}
