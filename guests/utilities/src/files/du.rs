//! `du`: how much room files take.

use std::collections::HashSet;
use std::path::Path;

use pattern::Fnmatch;
use sys::Stat;
use sys::stat::S_IFDIR;

use super::chmod::children;
use crate::date;
use crate::options::{self, Given, May, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, fail, os, read_all, usage, warn};
use crate::quote;
use crate::size::Scale;

const SPEC: Spec = Spec {
    short: "0abcd:DhHklLmPsSt:xX:B:",
    long: &[
        ("all", No, 'a'),
        ("apparent-size", No, 'A'),
        ("block-size", Needs, 'B'),
        ("bytes", No, 'b'),
        ("count-links", No, 'l'),
        ("dereference", No, 'L'),
        ("dereference-args", No, 'D'),
        ("exclude", Needs, 'e'),
        ("exclude-from", Needs, 'X'),
        ("files0-from", Needs, 'f'),
        ("human-readable", No, 'h'),
        ("inodes", No, 'i'),
        ("max-depth", Needs, 'd'),
        ("no-dereference", No, 'P'),
        ("null", No, '0'),
        ("one-file-system", No, 'x'),
        ("separate-dirs", No, 'S'),
        ("si", No, 'I'),
        ("summarize", No, 's'),
        ("threshold", Needs, 't'),
        ("time", May, 'T'),
        ("time-style", Needs, 'y'),
        ("total", No, 'c'),
    ],
    help: "[OPTION]... [FILE]...",
};

#[derive(Clone, Copy, Default)]
struct Usage {
    bytes: u64,
    inodes: u64,
    time: i64,
}

struct Job {
    all: bool,
    apparent: bool,
    inodes: bool,
    scale: Scale,
    depth: usize,
    follow: bool,
    follow_named: bool,
    separate: bool,
    count_links: bool,
    one_system: bool,
    threshold: i128,
    time: Option<(char, String)>,
    exclude: Vec<Fnmatch>,
    end: u8,
    seen: HashSet<(u64, u64)>,
    status: i32,
    out: Output,
}

fn settings(given: &Given) -> Result<Job, i32> {
    let mut job = Job {
        all: given.has('a'),
        apparent: given.has('A') || given.has('b'),
        inodes: given.has('i'),
        scale: Scale::Blocks(1024),
        depth: usize::MAX,
        follow: given.has('L'),
        follow_named: given.has('D') || given.has('H'),
        separate: given.has('S'),
        count_links: given.has('l'),
        one_system: given.has('x'),
        threshold: 0,
        time: None,
        exclude: Vec::new(),
        end: if given.has('0') { 0 } else { b'\n' },
        seen: HashSet::new(),
        status: 0,
        out: Output::new(),
    };
    let mut time_style = "%Y-%m-%d %H:%M".to_owned();
    for (letter, value) in &given.options {
        let text = value.to_string_lossy();
        match letter {
            'b' => job.scale = Scale::Blocks(1),
            'B' => {
                job.scale =
                    Scale::parse(&text).map_err(|_| fail(format!("invalid --block-size argument {}", quote::plain(value))))?
            }
            'd' => job.depth = text.parse().map_err(|_| usage(format!("invalid maximum depth {}", quote::plain(value))))?,
            'h' => job.scale = Scale::Human(1024),
            'I' => job.scale = Scale::Human(1000),
            'k' => job.scale = Scale::Blocks(1024),
            'm' => job.scale = Scale::Blocks(1 << 20),
            'e' => job.exclude.push(Fnmatch::new(bytes(value))),
            'X' => {
                let list = read_all(value).map_err(|error| fail(format!("{}: {}", quote::maybe(value), sys::message(&error))))?;
                job.exclude.extend(list.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(Fnmatch::new));
            }
            't' => {
                let (sign, digits) = text.strip_prefix('-').map_or((1, text.as_ref()), |digits| (-1, digits));
                let size = crate::size::parse(digits, crate::size::SUFFIXES)
                    .map_err(|_| fail(format!("invalid --threshold argument {}", quote::plain(value))))?;
                job.threshold = sign * i128::from(size);
            }
            'T' => {
                let kinds = [("atime", 'a'), ("access", 'a'), ("use", 'a'), ("ctime", 'c'), ("status", 'c'), ("mtime", 'm')];
                job.time = Some((if value.is_empty() { 'm' } else { options::choose("--time", value, &kinds)? }, String::new()));
            }
            'y' => {
                time_style = match text.as_ref() {
                    "full-iso" => "%Y-%m-%d %H:%M:%S.%N %z".into(),
                    "long-iso" => "%Y-%m-%d %H:%M".into(),
                    "iso" => "%Y-%m-%d".into(),
                    other => other.strip_prefix('+').map(str::to_owned).ok_or_else(|| {
                        usage(format!("invalid argument {} for {}", quote::plain(value), quote::plain("time style")))
                    })?,
                }
            }
            _ => {}
        }
    }
    if let Some((_, style)) = &mut job.time {
        *style = time_style;
    }
    if given.has('s') {
        if job.all {
            return Err(usage("cannot both summarize and show all entries"));
        }
        if job.depth != usize::MAX && job.depth != 0 {
            warn(format!("warning: summarizing conflicts with --max-depth={}", job.depth));
            crate::program::hint();
            return Err(1);
        }
        job.depth = 0;
    }
    Ok(job)
}

/// Runs `du`.
pub fn du(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let mut job = settings(&given)?;
    let mut files = given.operands.clone();
    if let Some(list) = given.value('f') {
        if let Some(operand) = given.operands.first() {
            warn(format!("extra operand {}", quote::plain(operand)));
            let _ = sys::write_all(2, b"file operands cannot be combined with --files0-from\n");
            crate::program::hint();
            return Err(1);
        }
        let all = read_all(list)
            .map_err(|error| fail(format!("cannot open {} for reading: {}", quote::always(list), sys::message(&error))))?;
        for (index, name) in all.strip_suffix(b"\0").unwrap_or(&all).split(|&byte| byte == 0).enumerate() {
            if name == b"-" && list == "-" {
                warn("when reading file names from stdin, no file name of '-' allowed");
                job.status = 1;
            } else if !name.is_empty() {
                files.push(os(name.to_vec()));
            } else if !all.is_empty() {
                warn(format!("{}:{}: invalid zero-length file name", quote::maybe(list), index + 1));
                job.status = 1;
            }
        }
    } else if files.is_empty() {
        files.push(".".into());
    }
    let mut total = Usage::default();
    for file in &files {
        let path = Path::new(file);
        let follow = job.follow || job.follow_named || bytes(file).ends_with(b"/");
        match sys::stat(path, follow) {
            Ok(stat) => {
                if let Some(usage) = job.walk(path, &stat, 0, stat.dev) {
                    total.bytes += usage.bytes;
                    total.inodes += usage.inodes;
                    total.time = total.time.max(usage.time);
                }
            }
            Err(error) => {
                job.out.send();
                warn(format!("cannot access {}: {}", quote::always(file), sys::message(&error)));
                job.status = 1;
            }
        }
    }
    if given.has('c') {
        job.print(Path::new("total"), total);
    }
    Ok(job.status)
}

impl Job {
    fn own(&self, stat: &Stat) -> Usage {
        let bytes = if self.apparent {
            if stat.kind() == S_IFDIR && cfg!(target_arch = "wasm32") { 4096 } else { stat.size }
        } else {
            super::mode::allocated(stat)
        };
        let time = match self.time {
            Some(('a', _)) => stat.atime,
            Some(('c', _)) => stat.ctime,
            _ => stat.mtime,
        };
        Usage { bytes, inodes: 1, time }
    }

    fn walk(&mut self, path: &Path, stat: &Stat, depth: usize, device: u64) -> Option<Usage> {
        let name = bytes(path.as_os_str());
        let base = crate::files::basename::last_component(name);
        if self.exclude.iter().any(|pattern| pattern.matches(base) || pattern.matches(name)) {
            return None;
        }
        if self.one_system && stat.dev != device {
            return None;
        }
        let is_directory = stat.kind() == S_IFDIR;
        if (stat.nlink > 1 || depth == 0 || self.follow) && !self.count_links && !self.seen.insert((stat.dev, stat.ino)) {
            return None;
        }
        let mut usage = self.own(stat);
        if is_directory {
            usage = self.inside(path, usage, depth, device);
        }
        let shown = usage;
        if (is_directory || self.all || depth == 0) && depth <= self.depth {
            self.print(path, shown);
        }
        Some(usage)
    }

    fn inside(&mut self, path: &Path, own: Usage, depth: usize, device: u64) -> Usage {
        let mut usage = own;
        let names = match children(path) {
            Ok(names) => names,
            Err(error) => {
                self.out.send();
                warn(format!("cannot read directory {}: {}", quote::always(path), sys::message(&error)));
                self.status = 1;
                return usage;
            }
        };
        for child in names {
            let child = super::links::join(path, &super::mkdir::base(&child));
            let Ok(stat) = sys::stat(&child, self.follow) else {
                self.out.send();
                warn(format!("cannot access {}: No such file or directory", quote::always(&child)));
                self.status = 1;
                continue;
            };
            let Some(below) = self.walk(&child, &stat, depth + 1, device) else { continue };
            usage.time = usage.time.max(below.time);
            if !(self.separate && stat.kind() == S_IFDIR) {
                usage.bytes += below.bytes;
                usage.inodes += below.inodes;
            }
        }
        usage
    }

    fn print(&mut self, path: &Path, usage: Usage) {
        let value = if self.inodes { usage.inodes } else { usage.bytes };
        let hidden = if self.threshold < 0 { i128::from(value) > -self.threshold } else { i128::from(value) < self.threshold };
        if hidden {
            return;
        }
        let text = match self.scale {
            Scale::Human(_) | Scale::Suffixed(..) | Scale::Blocks(_) if !self.inodes => self.scale.show(value),
            Scale::Human(base) => crate::size::human(value, base),
            _ => value.to_string(),
        };
        self.out.text(text);
        self.out.byte(b'\t');
        if let Some((_, style)) = &self.time {
            let shown = date::format(style.as_bytes(), i128::from(usage.time));
            self.out.line(&shown, b'\t');
        }
        self.out.line(bytes(path.as_os_str()), self.end);
    }
}
