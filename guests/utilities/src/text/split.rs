//! `split`: one input into many files, or through many runs of a command.

mod output;

use std::borrow::Cow;
use std::io::Read as _;

use crate::lines::Lines;
use crate::options::{self, Given, May, Needs, No, Spec};
use crate::program::{self, Args, Descriptor, Outcome, bytes, extra_operand, fail, usage};
use crate::quote;
use crate::size::{self, Trouble};
use output::{Alphabet, Outputs, Target};

const SPEC: Spec = Spec {
    short: "0123456789a:b:C:del:n:t:ux",
    long: &[
        ("suffix-length", Needs, 'a'),
        ("additional-suffix", Needs, 'A'),
        ("bytes", Needs, 'b'),
        ("line-bytes", Needs, 'C'),
        ("numeric-suffixes", May, 'd'),
        ("hex-suffixes", May, 'x'),
        ("elide-empty-files", No, 'e'),
        ("filter", Needs, 'f'),
        ("lines", Needs, 'l'),
        ("number", Needs, 'n'),
        ("separator", Needs, 't'),
        ("unbuffered", No, 'u'),
        ("verbose", No, 'v'),
        ("-io-blksize", Needs, 'B'),
    ],
    help: "[OPTION]... [FILE [PREFIX]]",
};

/// The way in which the input is split.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// Every so many lines.
    Lines(u64),
    /// Every this many bytes.
    Bytes(u64),
    /// Every this many bytes of whole lines.
    LineBytes(u64),
    /// Into so many parts, or one of them for standard output.
    Chunks(Chunk, u64, Option<u64>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    Bytes,
    Lines,
    Round,
}

/// Runs `split`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let cut = cut(&given)?;
    let separator = separator(&given)?;
    let (alphabet, start) = alphabet(&given)?;
    let length = match given.value('a') {
        None => 0,
        Some(text) => number(text, "suffix length", true)?,
    };
    let ending = bytes(given.value('A').unwrap_or_default());
    if ending.contains(&b'/') {
        return Err(usage(format!("invalid suffix {}, contains directory separator", quote::plain_bytes(ending))));
    }
    if given.has('f') && matches!(cut, Cut::Chunks(_, _, Some(_))) {
        return Err(usage("--filter does not process a chunk extracted to stdout"));
    }
    let (input, prefix) = match given.operands.as_slice() {
        [] => ("-".into(), "x".into()),
        [input] => (input.clone(), "x".into()),
        [input, prefix] => (input.clone(), prefix.clone()),
        [_, _, extra, ..] => return Err(extra_operand(extra)),
    };
    let mut outputs = Outputs::new(bytes(&prefix), ending, alphabet, start, usize::try_from(length).unwrap_or(usize::MAX));
    outputs.filter = given.value('f').map(|command| bytes(command).to_vec());
    outputs.verbose = given.has('v');
    if let Cut::Chunks(_, count, _) = cut {
        outputs.make_room(count)?;
    }
    let opened = program::open(&input)
        .map_err(|error| fail(format!("cannot open {} for reading: {}", quote::always(&input), sys::message(&error))))?;
    let trouble = |error: std::io::Error| fail(format!("{}: {}", quote::maybe(&input), sys::message(&error)));
    match cut {
        Cut::Lines(count) => by_lines(opened, separator, count, &mut outputs).map_err(trouble)?,
        Cut::Bytes(count) => by_bytes(opened, count, &mut outputs).map_err(trouble)?,
        Cut::LineBytes(count) => by_line_bytes(opened, separator, count, &mut outputs).map_err(trouble)?,
        Cut::Chunks(kind, count, only) => {
            let all = program::read_all(&input).map_err(trouble)?;
            by_chunks(&all, kind, count, only, separator, given.has('e'), &mut outputs)?;
        }
    }
    Ok(0)
}

/// Reports an invalid number; GNU adds the reason if it is one.
fn number(text: &std::ffi::OsStr, what: &str, zero: bool) -> Result<u64, i32> {
    let invalid = |why: &str| fail(format!("invalid {what}: {}{why}", quote::plain(text)));
    match size::parse(&text.to_string_lossy(), size::SUFFIXES) {
        Ok(0) if !zero => Err(invalid(": Numerical result out of range")),
        Ok(number) => Ok(number),
        Err(Trouble::Overflow) => Err(invalid(": Value too large for defined data type")),
        Err(_) => Err(invalid("")),
    }
}

fn cut(given: &Given) -> Result<Cut, i32> {
    let mut cut = None;
    let mut digits = String::new();
    for (letter, value) in &given.options {
        let fresh = match letter {
            '0'..='9' => {
                digits.push(*letter);
                continue;
            }
            'l' => Cut::Lines(number(value, "number of lines", false)?),
            'b' => Cut::Bytes(number(value, "number of bytes", false)?),
            'C' => Cut::LineBytes(number(value, "number of bytes", false)?),
            'n' => chunks(value)?,
            _ => continue,
        };
        if cut.replace(fresh).is_some() {
            return Err(usage("cannot split in more than one way"));
        }
    }
    if !digits.is_empty() {
        if cut.is_some() {
            return Err(usage("cannot split in more than one way"));
        }
        cut = Some(Cut::Lines(number(digits.as_ref(), "number of lines", false)?));
    }
    Ok(cut.unwrap_or(Cut::Lines(1000)))
}

/// `N`, `K/N`, and both after `l/` or `r/`.
fn chunks(value: &std::ffi::OsStr) -> Result<Cut, i32> {
    let text = value.to_string_lossy();
    let (kind, rest) = match (text.strip_prefix("l/"), text.strip_prefix("r/")) {
        (Some(rest), _) => (Chunk::Lines, rest),
        (_, Some(rest)) => (Chunk::Round, rest),
        _ => (Chunk::Bytes, text.as_ref()),
    };
    match rest.split_once('/') {
        None => Ok(Cut::Chunks(kind, number(rest.as_ref(), "number of chunks", false)?, None)),
        Some((which, count)) => {
            let count = number(count.as_ref(), "number of chunks", false)?;
            let which_number = number(which.as_ref(), "chunk number", false)?;
            if which_number > count {
                let which = quote::plain(which);
                return Err(fail(format!("invalid chunk number: {which}: Numerical result out of range")));
            }
            Ok(Cut::Chunks(kind, count, Some(which_number)))
        }
    }
}

fn separator(given: &Given) -> Result<u8, i32> {
    let mut chosen = None;
    for (_, value) in given.options.iter().filter(|(letter, _)| *letter == 't') {
        let fresh = match bytes(value) {
            b"" => return Err(fail("empty record separator")),
            b"\\0" => 0,
            [byte] => *byte,
            _ => return Err(fail(format!("multi-character separator {}", quote::plain(value)))),
        };
        if chosen.is_some_and(|old| old != fresh) {
            return Err(fail("multiple separator characters specified"));
        }
        chosen = Some(fresh);
    }
    Ok(chosen.unwrap_or(b'\n'))
}

/// Returns which letters the names end in, and where they start; with a given start, names do not grow.
fn alphabet(given: &Given) -> Result<(Alphabet, Option<u64>), i32> {
    let Some((letter, value)) = given.options.iter().rev().find(|(letter, _)| matches!(letter, 'd' | 'x')) else {
        return Ok((Alphabet::Letters, None));
    };
    let alphabet = if *letter == 'd' { Alphabet::Digits } else { Alphabet::Hexadecimal };
    if value.is_empty() {
        return Ok((alphabet, None));
    }
    let text = value.to_string_lossy();
    let start = u64::from_str_radix(&text, if *letter == 'd' { 10 } else { 16 });
    let kind = if *letter == 'd' { "numerical" } else { "hexadecimal" };
    start
        .map(|start| (alphabet, Some(start)))
        .map_err(|_| usage(format!("{}: invalid start value for {kind} suffix", quote::plain(value))))
}

/// The file that is being filled, and how much it still takes: bytes, or lines.
struct Piece<'a> {
    outputs: &'a mut Outputs,
    target: Option<Target>,
    count: u64,
    left: u64,
}

impl<'a> Piece<'a> {
    fn new(count: u64, outputs: &'a mut Outputs) -> Self {
        Self { outputs, target: None, count, left: 0 }
    }

    /// Ends this file and begins the next one.
    fn next(&mut self) {
        self.outputs.close(self.target.take());
        self.target = Some(self.outputs.open());
        self.left = self.count;
    }

    fn put(&mut self, bytes: &[u8], taken: u64) {
        if let Some(target) = &mut self.target {
            target.put(bytes);
        }
        self.left -= taken;
    }

    /// Writes as many bytes as fit; returns the others.
    fn fill<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let (now, later) = bytes.split_at(bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX)));
        self.put(now, now.len() as u64);
        later
    }

    fn end(mut self) {
        self.outputs.close(self.target.take());
    }
}

fn by_lines(input: Descriptor, separator: u8, count: u64, outputs: &mut Outputs) -> std::io::Result<()> {
    let mut lines = Lines::of_file(input, separator);
    let mut piece = Piece::new(count, outputs);
    while let Some(line) = lines.next_line()? {
        if piece.left == 0 {
            piece.next();
        }
        piece.put(line, 1);
    }
    piece.end();
    Ok(())
}

fn by_bytes(mut input: Descriptor, count: u64, outputs: &mut Outputs) -> std::io::Result<()> {
    let mut buffer = vec![0; program::BLOCK];
    let mut piece = Piece::new(count, outputs);
    loop {
        let length = input.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            if piece.left == 0 {
                piece.next();
            }
            rest = piece.fill(rest);
        }
    }
    piece.end();
    Ok(())
}

fn by_line_bytes(input: Descriptor, separator: u8, count: u64, outputs: &mut Outputs) -> std::io::Result<()> {
    let mut lines = Lines::of_file(input, separator);
    let mut piece = Piece::new(count, outputs);
    while let Some(line) = lines.next_line()? {
        let mut rest = line;
        while !rest.is_empty() {
            let length = rest.len() as u64;
            // A line that fits nowhere begins where the last one ended; one that fits does not get broken.
            let breaks = length > piece.left && piece.left < count && (length <= count || rest.len() == line.len());
            if piece.left == 0 || breaks {
                piece.next();
            }
            rest = piece.fill(rest);
        }
    }
    piece.end();
    Ok(())
}

fn by_chunks(
    all: &[u8],
    kind: Chunk,
    count: u64,
    only: Option<u64>,
    separator: u8,
    elide: bool,
    outputs: &mut Outputs,
) -> Result<(), i32> {
    let parts: Box<dyn Iterator<Item = Cow<'_, [u8]>> + '_> = match (kind, only) {
        (Chunk::Round, Some(only)) => Box::new(std::iter::once(round(all, count, only - 1, separator).into())),
        (Chunk::Round, None) => Box::new(rounds(all, count, separator)),
        (kind, Some(only)) => Box::new(ends(all, count, kind == Chunk::Lines, separator).skip_to(only - 1).take(1)),
        (kind, None) => Box::new(ends(all, count, kind == Chunk::Lines, separator)),
    };
    if only.is_some() {
        for part in parts {
            sys::write_all(1, &part).map_err(|error| fail(format!("write error: {}", sys::message(&error))))?;
        }
        return Ok(());
    }
    let mut left = all.len();
    for part in parts {
        left -= part.len();
        if !(elide && part.is_empty()) {
            let mut target = outputs.open();
            target.put(&part);
            outputs.close(Some(target));
        }
        if elide && left == 0 {
            break;
        }
    }
    Ok(())
}

/// Returns one part of [`rounds`].
fn round(all: &[u8], count: u64, wanted: u64, separator: u8) -> Vec<u8> {
    let lines = all.split_inclusive(|&byte| byte == separator);
    lines.zip(0u64..).filter(|(_, at)| at % count == wanted).flat_map(|(line, _)| line).copied().collect()
}

fn rounds(all: &[u8], count: u64, separator: u8) -> impl Iterator<Item = Cow<'_, [u8]>> {
    // GNU, too, keeps something for each part: too many of them do not fit the memory.
    let mut parts = vec![Vec::new(); usize::try_from(count).unwrap_or(usize::MAX)];
    let width = parts.len().max(1);
    for (at, line) in all.split_inclusive(|&byte| byte == separator).enumerate() {
        if let Some(part) = parts.get_mut(at % width) {
            part.extend_from_slice(line);
        }
    }
    parts.into_iter().map(Into::into)
}

/// Parts of about the same size; with `whole`, a line belongs to the part that its first byte is in.
fn ends(all: &[u8], count: u64, whole: bool, separator: u8) -> Ends<'_> {
    Ends { all, count, whole, separator, part: 0, start: 0 }
}

/// The iterator behind [`ends`]: there may be more parts than memory.
struct Ends<'a> {
    all: &'a [u8],
    count: u64,
    whole: bool,
    separator: u8,
    part: u64,
    start: usize,
}

impl Ends<'_> {
    /// Leaves out parts, without a step for each of those that hold nothing.
    fn skip_to(mut self, part: u64) -> Self {
        while self.part < part && self.start < self.all.len() {
            self.next();
        }
        self.part = self.part.max(part);
        self
    }
}

impl<'a> Iterator for Ends<'a> {
    type Item = Cow<'a, [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.part == self.count {
            return None;
        }
        self.part += 1;
        let length = self.all.len() as u64;
        let size = (length / self.count).max(1);
        let planned = if self.part == self.count { length } else { size.saturating_mul(self.part).min(length) };
        let planned = usize::try_from(planned).unwrap_or(self.all.len());
        let end = match self.whole {
            _ if planned <= self.start => self.start,
            false => planned,
            true => memchr::memchr(self.separator, &self.all[planned - 1..]).map_or(self.all.len(), |at| planned + at),
        };
        let bytes = &self.all[self.start..end];
        self.start = end;
        Some(bytes.into())
    }
}
