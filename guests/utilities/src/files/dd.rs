//! `dd`: blocks from here to there.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::time::Instant;

use sys::OpenFlags;

use crate::program::{self, Args, Descriptor, Outcome, Output, fail, os, usage, warn};
use crate::quote;
use crate::size;

#[derive(Clone, Copy, PartialEq)]
enum Status {
    All,
    NoTransfer,
    None,
}

struct Job {
    input: Option<OsString>,
    output: Option<OsString>,
    read_block: usize,
    write_block: usize,
    /// One block size for both: short reads are written as they come.
    direct: bool,
    conversion_block: usize,
    count: Option<u64>,
    skip: u64,
    seek: u64,
    count_bytes: bool,
    skip_bytes: bool,
    seek_bytes: bool,
    full_blocks: bool,
    append: bool,
    conversions: Vec<String>,
    status: Status,
}

fn number(name: &str, text: &str) -> Result<u64, i32> {
    let mut product: u64 = 1;
    for part in text.split('x') {
        let value = size::parse(part, "cwbkKMGTPEZYB").map_err(|trouble| {
            let tail = if trouble == size::Trouble::Overflow { ": Value too large for defined data type" } else { "" };
            fail(format!("invalid number: {}{tail}", quote::plain(text)))
        })?;
        product = product.checked_mul(value).ok_or_else(|| fail(format!("invalid number: {}", quote::plain(text))))?;
    }
    if product == 0 && matches!(name, "bs" | "ibs" | "obs" | "cbs") {
        return Err(fail(format!("invalid number: {}", quote::plain(text))));
    }
    Ok(product)
}

fn flags(name: &str, text: &str, known: &[&str]) -> Result<Vec<String>, i32> {
    let what = match name {
        "conv" => "conversion",
        "iflag" => "input flag",
        _ => "output flag",
    };
    text.split(',')
        .map(|word| {
            if known.contains(&word) {
                Ok(word.to_owned())
            } else {
                Err(usage(format!("invalid {what}: {}", quote::plain(word))))
            }
        })
        .collect()
}

const CONVERSIONS: &[&str] = &[
    "ascii",
    "ebcdic",
    "ibm",
    "block",
    "unblock",
    "lcase",
    "ucase",
    "sparse",
    "swab",
    "sync",
    "excl",
    "nocreat",
    "notrunc",
    "noerror",
    "fdatasync",
    "fsync",
];
const FLAGS: &[&str] = &[
    "append",
    "direct",
    "directory",
    "dsync",
    "sync",
    "fullblock",
    "nonblock",
    "noatime",
    "nocache",
    "noctty",
    "nofollow",
    "count_bytes",
    "skip_bytes",
    "seek_bytes",
];

fn parse(args: Args) -> Result<Job, i32> {
    let mut job = Job {
        input: None,
        output: None,
        read_block: 512,
        write_block: 512,
        direct: false,
        conversion_block: 0,
        count: None,
        skip: 0,
        seek: 0,
        count_bytes: false,
        skip_bytes: false,
        seek_bytes: false,
        full_blocks: false,
        append: false,
        conversions: Vec::new(),
        status: Status::All,
    };
    for arg in args.into_iter().skip(1).filter(|arg| arg != "--") {
        let bytes = program::bytes(&arg);
        let Some(at) = bytes.iter().position(|&byte| byte == b'=') else {
            return Err(usage(format!("unrecognized operand {}", quote::plain(&arg))));
        };
        let name = String::from_utf8_lossy(&bytes[..at]).into_owned();
        let value = os(bytes[at + 1..].to_vec());
        let text = value.to_string_lossy().into_owned();
        let block = |name: &str| number(name, &text).map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        match name.as_str() {
            "if" => job.input = Some(value),
            "of" => job.output = Some(value),
            "bs" => (job.read_block, job.write_block, job.direct) = (block("bs")?, block("bs")?, true),
            "ibs" => job.read_block = block("ibs")?,
            "obs" => (job.write_block, job.direct) = (block("obs")?, false),
            "cbs" => job.conversion_block = block("cbs")?,
            "count" => {
                job.count_bytes |= text.ends_with('B');
                job.count = Some(number("count", text.trim_end_matches('B'))?);
            }
            "skip" | "iseek" => {
                job.skip_bytes |= text.ends_with('B');
                job.skip = number("skip", text.trim_end_matches('B'))?;
            }
            "seek" | "oseek" => {
                job.seek_bytes |= text.ends_with('B');
                job.seek = number("seek", text.trim_end_matches('B'))?;
            }
            "conv" => job.conversions.extend(flags("conv", &text, CONVERSIONS)?),
            "iflag" => {
                for flag in flags("iflag", &text, FLAGS)? {
                    match flag.as_str() {
                        "fullblock" => job.full_blocks = true,
                        "count_bytes" => job.count_bytes = true,
                        "skip_bytes" => job.skip_bytes = true,
                        _ => {}
                    }
                }
            }
            "oflag" => {
                for flag in flags("oflag", &text, FLAGS)? {
                    match flag.as_str() {
                        "append" => job.append = true,
                        "seek_bytes" => job.seek_bytes = true,
                        _ => {}
                    }
                }
            }
            "status" => {
                job.status = match text.as_str() {
                    "none" => Status::None,
                    "noxfer" => Status::NoTransfer,
                    "progress" => Status::All,
                    _ => return Err(usage(format!("invalid status level: {}", quote::plain(&text)))),
                }
            }
            _ => return Err(usage(format!("unrecognized operand {}", quote::plain(&arg)))),
        }
    }
    Ok(job)
}

#[derive(Default)]
struct Tally {
    full_in: u64,
    partial_in: u64,
    full_out: u64,
    partial_out: u64,
    bytes: u64,
}

/// Runs `dd`.
pub fn main(args: Args) -> Outcome {
    if let [_, only] = args.as_slice()
        && only == "--help"
    {
        Output::new().text("Usage: dd [OPERAND]...\nCopy a file, converting and formatting according to the operands.\n");
        return Ok(0);
    }
    let job = parse(args)?;
    let input = match &job.input {
        Some(file) => Descriptor::read_only(file)
            .map_err(|error| fail(format!("failed to open {}: {}", quote::always(file), sys::message(&error))))?,
        None => Descriptor::inherited(0),
    };
    let output = job.open_output()?;
    let began = Instant::now();
    let mut tally = Tally::default();
    let result = job.copy(input, &output, &mut tally);
    job.report(&tally, began);
    result.map(|()| 0)
}

impl Job {
    fn has(&self, conversion: &str) -> bool {
        self.conversions.iter().any(|known| known == conversion)
    }

    fn open_output(&self) -> Result<Descriptor, i32> {
        let Some(file) = &self.output else {
            let output = Descriptor::inherited(1);
            self.seek_output(&output, OsStr::new("standard output"))?;
            return Ok(output);
        };
        let trouble = |error: &io::Error| fail(format!("failed to open {}: {}", quote::always(file), sys::message(error)));
        let keep = self.has("notrunc") || self.append || self.seek > 0;
        let flags = OpenFlags {
            write: true,
            create: !self.has("nocreat"),
            exclusive: self.has("excl"),
            truncate: !keep,
            append: self.append,
            ..OpenFlags::default()
        };
        let output = Descriptor::open(file, flags, 0o666).map_err(|error| trouble(&error))?;
        self.seek_output(&output, file)?;
        Ok(output)
    }

    fn seek_output(&self, output: &Descriptor, name: &OsStr) -> Result<(), i32> {
        if self.seek == 0 {
            return Ok(());
        }
        let at = if self.seek_bytes { self.seek } else { self.seek.saturating_mul(self.write_block as u64) };
        let trouble = |error: io::Error| fail(format!("{}: cannot seek: {}", quote::always(name), sys::message(&error)));
        let is_file = output.stat().is_ok_and(|stat| stat.kind() == sys::stat::S_IFREG);
        if is_file && !self.has("notrunc") {
            sys::truncate_fd(output.fd(), at).map_err(trouble)?;
        }
        move_to(output, at).map_err(trouble)
    }

    fn shown_input(&self) -> String {
        self.input.as_ref().map_or_else(|| "'standard input'".into(), quote::always)
    }

    fn skip_input(&self, input: &mut Descriptor) -> Result<(), i32> {
        let mut left = if self.skip_bytes { self.skip } else { self.skip.saturating_mul(self.read_block as u64) };
        if left == 0 {
            return Ok(());
        }
        let size = input.stat().ok().filter(|stat| stat.kind() == sys::stat::S_IFREG).map(|stat| stat.size);
        if let Some(size) = size {
            if left > size && self.status != Status::None {
                warn(format!("{}: cannot skip to specified offset", self.shown_input()));
            }
            return move_to(input, left).map_err(|error| fail(format!("{}: {}", self.shown_input(), sys::message(&error))));
        }
        let mut buffer = vec![0; 65536];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            match input.read(&mut buffer[..most]) {
                Ok(0) => break,
                Ok(n) => left -= n as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fail(format!("error reading {}: {}", self.shown_input(), sys::message(&error)))),
            }
        }
        Ok(())
    }

    fn copy(&self, mut input: Descriptor, output: &Descriptor, tally: &mut Tally) -> Result<(), i32> {
        self.skip_input(&mut input)?;
        let mut block = vec![0; self.read_block];
        let mut pending: Vec<u8> = Vec::new();
        let mut left = self.count;
        let mut blocking = Blocking::default();
        loop {
            let most = match left {
                Some(0) => break,
                Some(bytes) if self.count_bytes => usize::try_from(bytes).unwrap_or(usize::MAX).min(self.read_block),
                _ => self.read_block,
            };
            let result = if self.full_blocks { input.fill(&mut block[..most]) } else { input.read(&mut block[..most]) };
            let n = match result {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.flush(output, &mut pending, tally, true)?;
                    return Err(fail(format!("error reading {}: {}", self.shown_input(), sys::message(&error))));
                }
            };
            if n == self.read_block {
                tally.full_in += 1
            } else {
                tally.partial_in += 1
            }
            if let Some(left) = &mut left {
                *left -= if self.count_bytes { n as u64 } else { 1 };
            }
            let mut chunk = block[..n].to_vec();
            if self.has("sync") {
                let fill = if self.has("block") || self.has("unblock") { b' ' } else { 0 };
                chunk.resize(self.read_block, fill);
            }
            self.convert(&mut chunk, &mut blocking);
            pending.extend_from_slice(&chunk);
            self.flush(output, &mut pending, tally, self.direct && self.conversion_block == 0)?;
        }
        let mut rest = Vec::new();
        blocking.finish(self, &mut rest);
        pending.extend_from_slice(&rest);
        self.flush(output, &mut pending, tally, true)
    }

    fn convert(&self, chunk: &mut Vec<u8>, blocking: &mut Blocking) {
        if self.has("swab") {
            chunk.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
        }
        if self.has("lcase") {
            chunk.make_ascii_lowercase();
        }
        if self.has("ucase") {
            chunk.make_ascii_uppercase();
        }
        if self.conversion_block > 0 && (self.has("block") || self.has("unblock")) {
            *chunk = blocking.push(self, chunk);
        }
    }

    /// Writes whole blocks, and with `all` what is left too.
    fn flush(&self, output: &Descriptor, pending: &mut Vec<u8>, tally: &mut Tally, all: bool) -> Result<(), i32> {
        let mut done = 0;
        while done < pending.len() {
            let size = self.write_block.min(pending.len() - done);
            if size < self.write_block && !all {
                break;
            }
            if let Err(error) = sys::write_all(output.fd(), &pending[done..done + size]) {
                let shown = self.output.as_ref().map_or_else(|| "'standard output'".into(), quote::always);
                return Err(fail(format!("error writing {shown}: {}", sys::message(&error))));
            }
            if size == self.write_block {
                tally.full_out += 1
            } else {
                tally.partial_out += 1
            }
            tally.bytes += size as u64;
            done += size;
        }
        pending.drain(..done);
        Ok(())
    }

    fn report(&self, tally: &Tally, began: Instant) {
        if self.status == Status::None {
            return;
        }
        let mut text =
            format!("{}+{} records in\n{}+{} records out\n", tally.full_in, tally.partial_in, tally.full_out, tally.partial_out);
        if self.status == Status::All {
            let seconds = began.elapsed().as_secs_f64().max(1e-9);
            let noun = if tally.bytes == 1 { "byte" } else { "bytes" };
            let mut sizes = String::new();
            if tally.bytes >= 1000 {
                sizes = format!(" ({}", scaled(tally.bytes as f64, 1000.0));
                if tally.bytes >= 1024 {
                    sizes.push_str(&format!(", {}", scaled(tally.bytes as f64, 1024.0)));
                }
                sizes.push(')');
            }
            let speed = scaled(tally.bytes as f64 / seconds, 1000.0);
            text.push_str(&format!(
                "{} {noun}{sizes} copied, {} s, {speed}/s\n",
                tally.bytes,
                common::float::general(seconds, 6, false)
            ));
        }
        let _ = sys::write_all(2, text.as_bytes());
    }
}

/// Lines padded to a length, or padded lines cut free again, across blocks.
#[derive(Default)]
struct Blocking {
    line: Vec<u8>,
}

impl Blocking {
    fn push(&mut self, job: &Job, chunk: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for &byte in chunk {
            if job.has("block") && byte == b'\n' {
                self.emit(job, &mut out);
                continue;
            }
            self.line.push(byte);
            if job.has("unblock") && self.line.len() == job.conversion_block {
                self.emit(job, &mut out);
            }
        }
        out
    }

    fn emit(&mut self, job: &Job, out: &mut Vec<u8>) {
        let mut line = std::mem::take(&mut self.line);
        if job.has("block") {
            line.resize(job.conversion_block, b' ');
        } else {
            while line.last() == Some(&b' ') {
                line.pop();
            }
            line.push(b'\n');
        }
        out.extend_from_slice(&line);
    }

    fn finish(&mut self, job: &Job, out: &mut Vec<u8>) {
        if !self.line.is_empty() {
            self.emit(job, out);
        }
    }
}

/// Returns `1.0 kB`, `2.0 MiB`: one digit after the point below ten.
fn scaled(value: f64, base: f64) -> String {
    let units: [&str; 7] =
        if base == 1000.0 { ["B", "kB", "MB", "GB", "TB", "PB", "EB"] } else { ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] };
    let (mut value, mut unit) = (value, 0);
    while value >= base && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    if value < 10.0 && unit > 0 { format!("{value:.1} {}", units[unit]) } else { format!("{value:.0} {}", units[unit]) }
}

fn move_to(file: &Descriptor, at: u64) -> io::Result<()> {
    let now = sys::seek_current(file.fd(), 0)?;
    sys::seek_current(file.fd(), at.cast_signed() - now.cast_signed()).map(drop)
}
