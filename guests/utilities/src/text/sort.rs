//! `sort`: lines in order, in memory.
//!
//! Each line carries the first eight bytes of what it is compared by, so that most comparisons touch nothing else. What a
//! key is, is in `sort/key.rs`.

mod key;

use std::cmp::Ordering;
use std::ffi::OsStr;

use key::{Key, Kind, Ordering as Rules};

use crate::options::{self, Given, May, Needs, No, Spec};
use crate::program::{Args, BLOCK, Descriptor, Outcome, Output, bytes, fail, os, read_all, set_failure, warn};
use crate::quote;

const SPEC: Spec = Spec {
    short: "bcCdfghik:mMno:rRsS:t:T:uVz",
    long: &[
        ("ignore-leading-blanks", No, 'b'),
        ("check", May, 'K'),
        ("compress-program", Needs, 'p'),
        ("debug", No, 'D'),
        ("dictionary-order", No, 'd'),
        ("ignore-case", No, 'f'),
        ("files0-from", Needs, '0'),
        ("general-numeric-sort", No, 'g'),
        ("human-numeric-sort", No, 'h'),
        ("ignore-nonprinting", No, 'i'),
        ("key", Needs, 'k'),
        ("merge", No, 'm'),
        ("month-sort", No, 'M'),
        ("numeric-sort", No, 'n'),
        ("version-sort", No, 'V'),
        ("random-sort", No, 'R'),
        ("random-source", Needs, 'x'),
        ("sort", Needs, 'w'),
        ("output", Needs, 'o'),
        ("reverse", No, 'r'),
        ("stable", No, 's'),
        ("batch-size", Needs, 'B'),
        ("buffer-size", Needs, 'S'),
        ("field-separator", Needs, 't'),
        ("temporary-directory", Needs, 'T'),
        ("unique", No, 'u'),
        ("zero-terminated", No, 'z'),
        ("parallel", Needs, 'P'),
    ],
    help: "[OPTION]... [FILE]...",
};

/// A line: where it is, where its first key is, and the head of that key in an order-preserving form.
#[derive(Clone, Copy)]
struct Line {
    head: u64,
    start: usize,
    end: usize,
    key_start: usize,
    key_end: usize,
}

struct Sorter {
    keys: Vec<Key>,
    unique: bool,
    stable: bool,
    reverse: bool,
    separator: Option<u8>,
    end: u8,
}

fn separator(given: &Given) -> Result<Option<u8>, i32> {
    let Some(text) = given.value('t') else { return Ok(None) };
    match bytes(text) {
        [] => Err(fail("empty tab")),
        b"\\0" => Ok(Some(0)),
        [byte] => Ok(Some(*byte)),
        _ => Err(fail(format!("multi-character tab {}", quote::plain(text)))),
    }
}

fn sorter(given: &Given) -> Result<Sorter, i32> {
    let mut global = Rules::default();
    let mut keys = Vec::new();
    for (letter, value) in &given.options {
        match letter {
            'k' => keys.push(Key::parse(value)?),
            'w' => {
                let kinds = [
                    ("general-numeric", 'g'),
                    ("human-numeric", 'h'),
                    ("month", 'M'),
                    ("numeric", 'n'),
                    ("random", 'R'),
                    ("version", 'V'),
                ];
                global.set(options::choose("--sort", value, &kinds)?);
            }
            letter => {
                global.set(*letter);
            }
        }
    }
    for key in &mut keys {
        key.inherit(&global);
    }
    let reverse = global.reverse;
    if keys.is_empty() && !global.is_plain() {
        keys.push(Key::whole(&global));
    }
    for key in &keys {
        key.check()?;
    }
    Ok(Sorter {
        keys,
        unique: given.has('u'),
        stable: given.has('s') || given.has('u'),
        reverse,
        separator: separator(given)?,
        end: if given.has('z') { 0 } else { b'\n' },
    })
}

/// Checks how many files should be merged at once, which makes no difference here.
fn check_batch_size(size: &OsStr) -> Result<(), i32> {
    let text = size.to_string_lossy();
    if !text.bytes().all(|byte| byte.is_ascii_digit()) || text.is_empty() {
        return Err(fail(format!("invalid --batch-size argument '{text}'")));
    }
    if text.parse::<u64>().is_ok_and(|size| size < 2) {
        warn(format!("invalid --batch-size argument {}", quote::plain(size)));
        return Err(fail("minimum --batch-size argument is ‘2’"));
    }
    Ok(())
}

/// Runs `sort`.
pub fn main(args: Args) -> Outcome {
    set_failure(2);
    let given = options::parse(args, &SPEC)?;
    let sorter = sorter(&given)?;
    let outputs: Vec<_> = given.options.iter().filter(|(letter, _)| *letter == 'o').collect();
    if outputs.windows(2).any(|pair| pair[0].1 != pair[1].1) {
        return Err(fail("multiple output files specified"));
    }
    if let Some(size) = given.value('B') {
        check_batch_size(size)?;
    }
    let files = match given.value('0') {
        Some(list) => {
            if let Some(operand) = given.operands.first() {
                warn(format!("extra operand {}", quote::always(operand)));
                let _ = sys::write_all(2, b"file operands cannot be combined with --files0-from\n");
                crate::program::hint();
                return Err(2);
            }
            let all =
                read_all(list).map_err(|error| fail(format!("open failed: {}: {}", quote::maybe(list), sys::message(&error))))?;
            if all.is_empty() {
                return Err(fail(format!("no input from {}", quote::always(list))));
            }
            let all = all.strip_suffix(b"\0").unwrap_or(&all);
            let mut names = Vec::new();
            for (index, name) in all.split(|&byte| byte == 0).enumerate() {
                if name.is_empty() {
                    return Err(fail(format!("{}:{}: invalid zero-length file name", quote::maybe(list), index + 1)));
                }
                if name == b"-" && list == "-" {
                    return Err(fail("when reading file names from stdin, no file name of '-' allowed"));
                }
                names.push(os(name.to_vec()));
            }
            names
        }
        None => crate::program::or_stdin(given.operands.clone()),
    };
    let check = given.options.iter().rev().find_map(|(letter, value)| match letter {
        'c' => Some(Ok('c')),
        'C' => Some(Ok('C')),
        'K' if value.is_empty() => Some(Ok('c')),
        'K' => Some(options::choose("--check", value, &[("quiet", 'C'), ("silent", 'C'), ("diagnose-first", 'c')])),
        _ => None,
    });
    if let Some(mode) = check.transpose()? {
        if let Some(extra) = files.get(1) {
            return Err(fail(format!("extra operand {} not allowed with -{mode}", quote::plain(extra))));
        }
        if given.has('o') {
            return Err(fail(format!("options '-{mode}o' are incompatible")));
        }
        return sorter.check(&files[0], mode == 'c');
    }
    let mut text = Vec::new();
    let mut starts = Vec::new();
    for file in &files {
        starts.push(text.len());
        read_into(file, &mut text).map_err(|error| {
            let what = if error.raw_os_error() == Some(sys::errno::EISDIR) { "read failed" } else { "cannot read" };
            fail(format!("{what}: {}: {}", quote::maybe(file), sys::message(&error)))
        })?;
        if text.len() > starts[starts.len() - 1] && text.last() != Some(&sorter.end) {
            text.push(sorter.end);
        }
    }
    let mut lines = sorter.lines(&text);
    if given.has('m') {
        lines = sorter.merge(&text, &lines, &starts);
    } else {
        sorter.sort(&text, &mut lines);
    }
    if let Some((_, target)) = outputs.last() {
        let file = Descriptor::create(target)
            .map_err(|error| fail(format!("open failed: {}: {}", quote::maybe(target), sys::message(&error))))?;
        let _ = sys::dup2(file.fd(), 1);
    }
    sorter.write(&text, &lines);
    Ok(0)
}

fn read_into(file: &OsStr, text: &mut Vec<u8>) -> std::io::Result<()> {
    let input = crate::program::open(file)?;
    let stat = input.stat();
    if let Ok(stat) = stat
        && stat.kind() == sys::stat::S_IFREG
    {
        text.reserve(usize::try_from(stat.size).unwrap_or(0).saturating_add(1).min(1 << 30));
    }
    let mut filled = text.len();
    loop {
        // Small inputs touch little memory, large ones are read in large bites.
        text.resize(filled + filled.clamp(BLOCK / 4, BLOCK * 4), 0);
        let n = loop {
            match sys::read(input.fd(), &mut text[filled..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match n {
            Ok(0) => {
                text.truncate(filled);
                return Ok(());
            }
            Ok(n) => filled += n,
            Err(error) => return Err(error),
        }
    }
}

impl Sorter {
    fn line(&self, text: &[u8], start: usize, end: usize) -> Line {
        let line = &text[start..end];
        match self.keys.first() {
            None => Line { head: key::head(line), start, end, key_start: start, key_end: end },
            Some(key) => {
                let (from, to) = key.range(line, self.separator);
                Line { head: key.head(&line[from..to]), start, end, key_start: start + from, key_end: start + to }
            }
        }
    }

    fn lines(&self, text: &[u8]) -> Vec<Line> {
        let mut lines = Vec::with_capacity(text.len() / 32);
        let mut start = 0;
        for at in memchr::memchr_iter(self.end, text) {
            lines.push(self.line(text, start, at));
            start = at + 1;
        }
        lines
    }

    fn compare(&self, text: &[u8], a: &Line, b: &Line) -> Ordering {
        let order = self.compare_keys(text, a, b);
        if order != Ordering::Equal || self.stable || self.keys.is_empty() {
            return order;
        }
        let order = text[a.start..a.end].cmp(&text[b.start..b.end]);
        if self.reverse { order.reverse() } else { order }
    }

    #[inline]
    fn compare_keys(&self, text: &[u8], a: &Line, b: &Line) -> Ordering {
        let Some((first, rest)) = self.keys.split_first() else {
            let order = a.head.cmp(&b.head).then_with(|| text[a.start..a.end].cmp(&text[b.start..b.end]));
            return if self.reverse { order.reverse() } else { order };
        };
        let order = a.head.cmp(&b.head).then_with(|| {
            if first.head_decides() {
                Ordering::Equal
            } else {
                first.compare(&text[a.key_start..a.key_end], &text[b.key_start..b.key_end])
            }
        });
        if order != Ordering::Equal {
            return if first.rules.reverse { order.reverse() } else { order };
        }
        for key in rest {
            let (x, y) = (&text[a.start..a.end], &text[b.start..b.end]);
            let ((x_from, x_to), (y_from, y_to)) = (key.range(x, self.separator), key.range(y, self.separator));
            let order = key.compare(&x[x_from..x_to], &y[y_from..y_to]);
            if order != Ordering::Equal {
                return if key.rules.reverse { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }

    fn sort(&self, text: &[u8], lines: &mut [Line]) {
        let by_bytes = self.keys.is_empty();
        if by_bytes && !self.reverse {
            // The most common case, with nothing but bytes in the comparison.
            lines.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| text[a.start..a.end].cmp(&text[b.start..b.end])));
        } else if self.stable {
            lines.sort_by(|a, b| self.compare(text, a, b));
        } else {
            lines.sort_unstable_by(|a, b| self.compare(text, a, b));
        }
    }

    fn merge(&self, text: &[u8], lines: &[Line], starts: &[usize]) -> Vec<Line> {
        let mut parts: Vec<&[Line]> = Vec::new();
        for (index, start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(text.len());
            let from = lines.partition_point(|line| line.start < *start);
            let to = lines.partition_point(|line| line.start < end);
            parts.push(&lines[from..to]);
        }
        let mut merged = Vec::with_capacity(lines.len());
        loop {
            let mut best: Option<usize> = None;
            for index in 0..parts.len() {
                let Some(line) = parts[index].first() else { continue };
                if best.and_then(|best| parts[best].first()).is_none_or(|other| self.compare(text, line, other) == Ordering::Less)
                {
                    best = Some(index);
                }
            }
            let Some(best) = best else { return merged };
            merged.push(parts[best][0]);
            parts[best] = &parts[best][1..];
        }
    }

    fn write(&self, text: &[u8], lines: &[Line]) {
        let mut out = Output::new();
        let mut previous: Option<&Line> = None;
        for line in lines {
            if self.unique && previous.is_some_and(|previous| self.compare_keys(text, previous, line) == Ordering::Equal) {
                continue;
            }
            previous = Some(line);
            // Every line in the buffer is followed by its delimiter.
            out.put(&text[line.start..=line.end]);
        }
    }

    fn check(&self, file: &OsStr, tell: bool) -> Outcome {
        let mut text =
            read_all(file).map_err(|error| fail(format!("cannot read: {}: {}", quote::maybe(file), sys::message(&error))))?;
        if !text.is_empty() && text.last() != Some(&self.end) {
            text.push(self.end);
        }
        let lines = self.lines(&text);
        for (index, pair) in lines.windows(2).enumerate() {
            let order =
                if self.unique { self.compare_keys(&text, &pair[0], &pair[1]) } else { self.compare(&text, &pair[0], &pair[1]) };
            if order == Ordering::Greater || (self.unique && order == Ordering::Equal) {
                if tell {
                    let line = String::from_utf8_lossy(&text[pair[1].start..pair[1].end]).into_owned();
                    warn(format!("{}:{}: disorder: {line}", quote::maybe(file), index + 2));
                }
                return Ok(1);
            }
        }
        Ok(0)
    }
}

impl Key {
    /// Returns whether equal heads mean equal keys.
    fn head_decides(&self) -> bool {
        matches!(self.rules.kind, Kind::Month | Kind::General)
    }
}
