//! `wc`: lines, words, characters, bytes and the longest line.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::Path;

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Descriptor, Outcome, Output, buffer, bytes, fail, open, os, read_all, utf8, warn, warn_file};
use crate::quote;

const SPEC: Spec = Spec {
    short: "clLmw",
    long: &[
        ("bytes", No, 'c'),
        ("chars", No, 'm'),
        ("lines", No, 'l'),
        ("words", No, 'w'),
        ("max-line-length", No, 'L'),
        ("files0-from", Needs, 'f'),
        ("total", Needs, 't'),
    ],
    help: "[OPTION]... [FILE]...",
};

#[derive(Clone, Copy, Default)]
struct Counts {
    lines: u64,
    words: u64,
    chars: u64,
    bytes: u64,
    longest: u64,
}

#[derive(Clone, Copy)]
struct Wanted {
    lines: bool,
    words: bool,
    chars: bool,
    bytes: bool,
    longest: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Total {
    Auto,
    Always,
    Only,
    Never,
}

/// Runs `wc`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let mut wanted = Wanted {
        lines: given.has('l'),
        words: given.has('w'),
        chars: given.has('m'),
        bytes: given.has('c'),
        longest: given.has('L'),
    };
    if !(wanted.lines || wanted.words || wanted.chars || wanted.bytes || wanted.longest) {
        wanted = Wanted { lines: true, words: true, bytes: true, ..wanted };
    }
    let total_mode = match given.value('t') {
        Some(value) => options::choose(
            "--total",
            value,
            &[("auto", Total::Auto), ("always", Total::Always), ("only", Total::Only), ("never", Total::Never)],
        )?,
        None => Total::Auto,
    };
    let mut status = 0;
    let files: Vec<Option<OsString>> = match given.value('f') {
        Some(list) => names_from(list, &given.operands, &mut status)?,
        None if given.operands.is_empty() => vec![None],
        None => given.operands.into_iter().map(Some).collect(),
    };
    let width = if total_mode == Total::Only {
        1
    } else {
        number_width(&files, wanted, given.options.iter().any(|(letter, _)| *letter == 'f'))
    };
    let mut out = Output::new();
    let mut total = Counts::default();
    for file in &files {
        let name = file.as_deref();
        let counted = open(name.unwrap_or(OsStr::new("-")))
            .map_err(|error| (error, Counts::default()))
            .and_then(|input| count(input, wanted));
        let counts = match counted {
            Ok(counts) => counts,
            Err((error, partial)) => {
                out.send();
                warn_file(name.unwrap_or(OsStr::new("standard input")), &error);
                status = 1;
                if error.raw_os_error() != Some(sys::errno::EISDIR) {
                    continue;
                }
                partial
            }
        };
        total.lines += counts.lines;
        total.words += counts.words;
        total.chars += counts.chars;
        total.bytes += counts.bytes;
        total.longest = total.longest.max(counts.longest);
        if total_mode != Total::Only {
            show(counts, wanted, width, name, &mut out);
        }
    }
    let with_total = match total_mode {
        Total::Auto => files.len() > 1,
        Total::Always | Total::Only => true,
        Total::Never => false,
    };
    if with_total {
        show(total, wanted, width, (total_mode != Total::Only).then_some(OsStr::new("total")), &mut out);
    }
    Ok(status)
}

fn names_from(list: &OsStr, operands: &[OsString], status: &mut i32) -> Result<Vec<Option<OsString>>, i32> {
    if let Some(operand) = operands.first() {
        warn(format!("extra operand {}", quote::always(operand)));
        let _ = sys::write_all(2, b"file operands cannot be combined with --files0-from\n");
        crate::program::hint();
        return Err(1);
    }
    let all = read_all(list)
        .map_err(|error| fail(format!("cannot open {} for reading: {}", quote::always(list), sys::message(&error))))?;
    let mut names = Vec::new();
    for (index, name) in all.split(|&byte| byte == 0).enumerate() {
        if name.is_empty() {
            if index + 1 < all.split(|&byte| byte == 0).count() {
                warn(format!("{}:{}: invalid zero-length file name", quote::maybe(list), index + 1));
                *status = 1;
            }
        } else if name == b"-" && list == "-" {
            warn("when reading file names from stdin, no file name of '-' allowed");
            *status = 1;
        } else {
            names.push(Some(os(name.to_vec())));
        }
    }
    Ok(names)
}

fn number_width(files: &[Option<OsString>], wanted: Wanted, from_list: bool) -> usize {
    let columns = [wanted.lines, wanted.words, wanted.chars, wanted.bytes, wanted.longest].iter().filter(|on| **on).count();
    if files.len() == 1 && columns == 1 || files.is_empty() || from_list {
        return 1;
    }
    let (mut least, mut sum) = (1, 0u64);
    for file in files {
        let stat = match file.as_deref() {
            Some(name) if name != "-" => sys::stat(Path::new(name), true),
            _ => sys::fstat(0),
        };
        match stat {
            Ok(stat) if stat.kind() == sys::stat::S_IFREG => sum = sum.saturating_add(stat.size),
            Ok(_) => least = 7,
            Err(_) => {}
        }
    }
    sum.to_string().len().max(least)
}

fn show(counts: Counts, wanted: Wanted, width: usize, name: Option<&OsStr>, out: &mut Output) {
    let columns = [
        (wanted.lines, counts.lines),
        (wanted.words, counts.words),
        (wanted.chars, counts.chars),
        (wanted.bytes, counts.bytes),
        (wanted.longest, counts.longest),
    ];
    for (index, (_, value)) in columns.iter().filter(|(on, _)| *on).enumerate() {
        if index > 0 {
            out.byte(b' ');
        }
        out.text(format!("{value:width$}"));
    }
    if let Some(name) = name {
        out.byte(b' ');
        // A name with a line break would look like two lines of counts.
        if bytes(name).contains(&b'\n') { out.text(quote::maybe(name)) } else { out.put(bytes(name)) }
    }
    out.byte(b'\n');
}

fn count(mut input: Descriptor, wanted: Wanted) -> Result<Counts, (io::Error, Counts)> {
    let mut counts = Counts::default();
    let simple_chars = !wanted.chars || !utf8();
    if wanted.bytes && !wanted.lines && !wanted.words && !wanted.chars && !wanted.longest && skip_to_end(&input, &mut counts) {
        return Ok(counts);
    }
    let mut buffer = buffer(&input);
    let mut state = State::default();
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err((error, counts)),
        };
        let block = &buffer[..n];
        counts.bytes += n as u64;
        if !wanted.words && !wanted.longest {
            counts.lines += memchr::memchr_iter(b'\n', block).count() as u64;
            if !simple_chars {
                state.count_chars(block, &mut counts);
            }
        } else if !utf8() {
            state.bytes(block, &mut counts);
        } else {
            state.chars(block, &mut counts);
        }
    }
    state.end(&mut counts);
    if simple_chars {
        counts.chars = counts.bytes;
    }
    Ok(counts)
}

/// Regular files need no reading for their size.
fn skip_to_end(input: &Descriptor, counts: &mut Counts) -> bool {
    let (Ok(stat), Ok(now)) = (input.stat(), sys::seek_current(input.fd(), 0)) else { return false };
    if stat.kind() != sys::stat::S_IFREG || stat.size == 0 || stat.size < now {
        return false;
    }
    counts.bytes = stat.size - now;
    sys::seek_current(input.fd(), counts.bytes.cast_signed()).is_ok()
}

#[derive(Default)]
struct State {
    in_word: bool,
    column: u64,
    partial: Vec<u8>,
}

/// The class of a byte for `wc`: 0 other, 1 printable, 2 space, 3 line end, 4 tab, 5 carriage return or form feed.
const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 33;
    while byte < 127 {
        class[byte] = 1;
        byte += 1;
    }
    class[b' ' as usize] = 2;
    class[11] = 6;
    class[b'\n' as usize] = 3;
    class[b'\t' as usize] = 4;
    class[b'\r' as usize] = 5;
    class[12] = 5;
    class
};

impl State {
    fn bytes(&mut self, block: &[u8], counts: &mut Counts) {
        for &byte in block {
            self.step(CLASS[usize::from(byte)], counts);
        }
    }

    #[inline]
    fn step(&mut self, class: u8, counts: &mut Counts) {
        match class {
            1 => {
                self.column += 1;
                counts.words += u64::from(!self.in_word);
                self.in_word = true;
                return;
            }
            0 => return,
            2 => self.column += 1,
            4 => self.column += 8 - self.column % 8,
            3 => {
                counts.lines += 1;
                self.line_end(counts);
            }
            5 => self.line_end(counts),
            _ => {}
        }
        self.in_word = false;
    }

    fn line_end(&mut self, counts: &mut Counts) {
        counts.longest = counts.longest.max(self.column);
        self.column = 0;
    }

    /// Hands over the text of a block. Bytes that are none do not count; a character that the block's end cuts waits for the
    /// next block.
    fn text(&mut self, block: &[u8], mut each: impl FnMut(&mut Self, &str)) {
        let joined;
        let block = if self.partial.is_empty() {
            block
        } else {
            joined = [self.partial.as_slice(), block].concat();
            self.partial.clear();
            &joined
        };
        let mut chunks = block.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            each(self, chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && !invalid.is_empty() && invalid.len() < 4 && invalid[0] >= 0xc2 {
                self.partial = invalid.to_vec();
            }
        }
    }

    /// Counts only characters.
    fn count_chars(&mut self, block: &[u8], counts: &mut Counts) {
        self.text(block, |_, text| counts.chars += text.bytes().filter(|byte| byte & 0xc0 != 0x80).count() as u64);
    }

    fn chars(&mut self, block: &[u8], counts: &mut Counts) {
        self.text(block, |state, text| {
            for c in text.chars() {
                counts.chars += 1;
                if c.is_ascii() {
                    state.step(CLASS[c as usize], counts);
                } else if c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}') {
                    state.column += 1;
                    state.in_word = false;
                } else if !c.is_control() {
                    state.column += display_width(c);
                    counts.words += u64::from(!state.in_word);
                    state.in_word = true;
                }
            }
        });
    }

    fn end(&mut self, counts: &mut Counts) {
        counts.longest = counts.longest.max(self.column);
    }
}

/// Columns of a character on a terminal: two for East Asian wide ones, none for combining marks.
pub fn display_width(c: char) -> u64 {
    match u32::from(c) {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f | 0x20d0..=0x20ff => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}
