//! `stat`: a file's metadata, in a format of one's choice.

use std::ffi::OsStr;
use std::path::Path;

use common::printf::Conversion;
use sys::Stat;
use sys::stat::S_IFLNK;

use super::mode;
use super::paths::{Must, resolve};
use crate::accounts::Accounts;
use crate::date;
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, usage, warn};
use crate::quote;

const SPEC: Spec = Spec {
    short: "c:fLt",
    long: &[
        ("dereference", No, 'L'),
        ("file-system", No, 'f'),
        ("format", Needs, 'c'),
        ("printf", Needs, 'p'),
        ("terse", No, 't'),
        ("cached", Needs, 'C'),
    ],
    help: "[OPTION]... FILE...",
};

const PLAIN: &str = "  File: %\u{1}\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-10i  Links: %h\nAccess: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: %w\n";
const DEVICE: &str = "  File: %\u{1}\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-10i  Links: %-5h Device type: %Hr,%Lr\nAccess: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: %w\n";
const TERSE: &str = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o\n";
const SYSTEM: &str = "  File: \"%n\"\n    ID: %-8i Namelen: %-7l Type: %T\nBlock size: %-10s Fundamental block size: %S\nBlocks: Total: %-10b Free: %-10f Available: %a\nInodes: Total: %-10c Free: %d\n";
const SYSTEM_TERSE: &str = "%n %i %l %t %s %S %b %f %a %c %d\n";

/// Runs `stat`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    if given.operands.is_empty() {
        return Err(usage("missing operand"));
    }
    let last = given.options.iter().rev().find(|(letter, _)| matches!(letter, 'c' | 'p'));
    let custom = last.map(|(letter, value)| (bytes(value).to_vec(), *letter == 'p'));
    let mut job = Job { names: Accounts::read(), out: Output::new(), system: given.has('f') };
    let mut status = 0;
    for file in &given.operands {
        let seen =
            if file == "-" && !job.system { sys::fstat(0) } else { sys::stat(Path::new(file), given.has('L') || job.system) };
        let stat = match seen {
            Ok(stat) => stat,
            Err(error) => {
                job.out.send();
                let what = if job.system { "cannot read file system information for" } else { "cannot statx" };
                warn(format!("{what} {}: {}", quote::always(file), sys::message(&error)));
                status = 1;
                continue;
            }
        };
        match &custom {
            Some((format, escapes)) => {
                job.show(format, *escapes, file, &stat);
                if !escapes {
                    job.out.byte(b'\n');
                }
            }
            None => {
                let is_device = matches!(stat.kind(), 0o020_000 | 0o060_000);
                let format = match (job.system, given.has('t')) {
                    (true, true) => SYSTEM_TERSE,
                    (true, false) => SYSTEM,
                    (false, true) => TERSE,
                    (false, false) if is_device => DEVICE,
                    _ => PLAIN,
                };
                job.show(format.as_bytes(), false, file, &stat);
            }
        }
    }
    Ok(status)
}

struct Job {
    names: Accounts,
    out: Output,
    system: bool,
}

impl Job {
    fn show(&mut self, format: &[u8], escapes: bool, file: &OsStr, stat: &Stat) {
        let mut at = 0;
        while let Some(&byte) = format.get(at) {
            at += 1;
            match byte {
                b'%' => at = self.directive(format, at, file, stat),
                b'\\' if escapes => at = self.escape(format, at),
                byte => self.out.byte(byte),
            }
        }
    }

    fn escape(&mut self, format: &[u8], at: usize) -> usize {
        let Some(&letter) = format.get(at) else {
            warn("warning: backslash at end of format");
            self.out.byte(b'\\');
            return at;
        };
        let simple = match letter {
            b'a' => 7,
            b'b' => 8,
            b'e' => 27,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'\\' | b'"' => letter,
            b'0'..=b'7' | b'x' => {
                let (base, from, most) = if letter == b'x' { (16, at + 1, 2) } else { (8, at, 3) };
                let count = format[from..].iter().take(most).take_while(|&&byte| char::from(byte).is_digit(base)).count();
                if count == 0 {
                    warn(format!("warning: unrecognized escape '\\{}'", char::from(letter)));
                    self.out.byte(letter);
                    return at + 1;
                }
                let value = std::str::from_utf8(&format[from..from + count])
                    .ok()
                    .and_then(|text| u32::from_str_radix(text, base).ok())
                    .unwrap_or(0);
                self.out.byte((value & 0xff) as u8);
                return from + count;
            }
            other => {
                warn(format!("warning: unrecognized escape '\\{}'", char::from(other)));
                self.out.byte(other);
                return at + 1;
            }
        };
        self.out.byte(simple);
        at + 1
    }

    fn directive(&mut self, format: &[u8], start: usize, file: &OsStr, stat: &Stat) -> usize {
        let (field, rest) = Conversion::read(&format[start..]);
        let mut at = format.len() - rest.len();
        let half = format
            .get(at)
            .copied()
            .filter(|letter| matches!(letter, b'H' | b'L') && matches!(format.get(at + 1), Some(b'd' | b'r')));
        if half.is_some() {
            at += 1;
        }
        let Some(&letter) = format.get(at) else {
            self.out.byte(b'%');
            return at;
        };
        if letter == b'%' {
            self.out.byte(b'%');
            return at + 1;
        }
        // C's library refuses a field that is wider than its numbers.
        if field.width.max(field.precision.unwrap_or(0)) > i32::MAX as usize {
            return at + 1;
        }
        let shown = if self.system { self.system_value(letter, file) } else { self.value(letter, half, &field, file, stat) };
        self.put(&shown, &field);
        at + 1
    }

    fn put(&mut self, value: &Value, field: &Conversion) {
        let out = &mut self.out;
        match value {
            Value::Text(text) => field.text(text, out),
            Value::Exact(text) => field.padded(text.as_bytes(), text.len(), out),
            Value::Signed(digits) => match digits.strip_prefix('-') {
                Some(digits) => field.digits("-", digits, out),
                None => field.digits(field.sign(false), digits, out),
            },
            Value::Number(digits) => field.digits("", digits, out),
        }
    }

    fn value(&self, letter: u8, half: Option<u8>, field: &Conversion, file: &OsStr, stat: &Stat) -> Value {
        let text = |text: &str| Value::Text(text.as_bytes().to_vec());
        let number = |value: u64| Value::Number(value.to_string());
        let octal = |value: u32| Value::Number(if field.alternate { format!("0{value:o}") } else { format!("{value:o}") });
        let hex = |value: u64| Value::Number(if field.alternate { format!("0x{value:x}") } else { format!("{value:x}") });
        let major = |device: u64| (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
        let minor = |device: u64| (device & 0xff) | (device >> 12 & !0xff);
        match letter {
            b'a' => octal(stat.mode & 0o7777),
            b'A' => text(&mode::long(stat.mode)),
            b'b' => number(mode::allocated(stat) / 512),
            b'B' => number(512),
            b'C' => text("?"),
            b'd' | b'r' => {
                let device = if letter == b'd' { stat.dev } else { stat.rdev };
                match half {
                    Some(b'H') => number(major(device)),
                    Some(_) => number(minor(device)),
                    None => number(device),
                }
            }
            b'D' => hex(stat.dev),
            b'R' => hex(stat.rdev),
            b'f' => hex(stat.mode.into()),
            b'F' => text(mode::kind(stat)),
            b'g' => number(stat.gid.into()),
            b'G' => text(&self.names.group(stat.gid).map_or_else(|| "UNKNOWN".to_owned(), str::to_owned)),
            b'h' => number(stat.nlink.into()),
            b'i' => number(stat.ino),
            b'm' => Value::Text(bytes(mount_point(Path::new(file), stat).as_os_str()).to_vec()),
            b'n' => Value::Text(bytes(file).to_vec()),
            b'N' => Value::Text(self.quoted(file, stat).into_bytes()),
            // The default form shows names as they are.
            1 => Value::Text(self.plain(file, stat)),
            b'o' => number(4096),
            b's' => number(stat.size),
            b't' => hex(major(stat.rdev)),
            b'T' => hex(minor(stat.rdev)),
            b'u' => number(stat.uid.into()),
            b'U' => text(&self.names.user(stat.uid).map_or_else(|| "UNKNOWN".to_owned(), str::to_owned)),
            b'w' => text("-"),
            b'W' => Value::Signed("0".into()),
            b'x' => Value::Text(human(stat.atime)),
            b'y' => Value::Text(human(stat.mtime)),
            b'z' => Value::Text(human(stat.ctime)),
            b'X' => epoch(stat.atime, field),
            b'Y' => epoch(stat.mtime, field),
            b'Z' => epoch(stat.ctime, field),
            _ => text("?"),
        }
    }

    fn plain(&self, file: &OsStr, stat: &Stat) -> Vec<u8> {
        match std::fs::read_link(file).ok().filter(|_| stat.kind() == S_IFLNK) {
            Some(target) => [bytes(file), b" -> ", bytes(target.as_os_str())].concat(),
            None => bytes(file).to_vec(),
        }
    }

    fn quoted(&self, file: &OsStr, stat: &Stat) -> String {
        let style = std::env::var("QUOTING_STYLE").unwrap_or_default();
        let name = |name: &OsStr| if style == "literal" { name.to_string_lossy().into_owned() } else { quote::always(name) };
        match std::fs::read_link(file).ok().filter(|_| stat.kind() == S_IFLNK) {
            Some(target) => format!("{} -> {}", name(file), name(target.as_os_str())),
            None => name(file),
        }
    }

    /// Returns the known attributes of the only file system: its names and blocks, not its size.
    fn system_value(&self, letter: u8, file: &OsStr) -> Value {
        let number = |value: u64| Value::Number(value.to_string());
        match letter {
            b'n' => Value::Text(bytes(file).to_vec()),
            b'i' => Value::Number("0".into()),
            b'l' => number(255),
            b's' | b'S' => number(4096),
            b't' => Value::Number("73716c66".into()),
            b'T' => Value::Text(b"sandlite".to_vec()),
            b'a' | b'b' | b'c' | b'd' | b'f' => number(0),
            _ => Value::Text(b"?".to_vec()),
        }
    }
}

enum Value {
    Text(Vec<u8>),
    Number(String),
    Signed(String),
    /// Text that has used its precision up.
    Exact(String),
}

fn human(time: i64) -> Vec<u8> {
    date::format(b"%Y-%m-%d %H:%M:%S.%N %z", i128::from(time))
}

fn epoch(time: i64, field: &Conversion) -> Value {
    let (seconds, nanoseconds) = (time.div_euclid(1_000_000_000), time.rem_euclid(1_000_000_000));
    match field.precision {
        // The precision of a time counts digits after the point.
        Some(digits) => {
            Value::Exact(format!("{seconds}.{}", format!("{nanoseconds:09}").get(..digits.clamp(1, 9)).unwrap_or_default()))
        }
        None => Value::Signed(seconds.to_string()),
    }
}

fn mount_point(file: &Path, stat: &Stat) -> std::path::PathBuf {
    let mut path = resolve(file, Must::Nothing, true).unwrap_or_else(|_| "/".into());
    while let Some(parent) = path.parent() {
        if sys::stat(parent, true).map_or(true, |above| above.dev != stat.dev) {
            break;
        }
        path = parent.to_owned();
    }
    path
}
