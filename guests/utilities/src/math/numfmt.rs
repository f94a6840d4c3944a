//! `numfmt`: numbers to and from the form that people read. `scale` knows the units.

mod scale;

use std::ffi::OsStr;

use crate::lines::Lines;
use crate::options::{self, May, Needs, No, Spec};
use crate::program::{Args, Descriptor, Outcome, Output, bytes, fail, set_failure, usage, warn};
use crate::quote;
use scale::{Round, Scale, Trouble};

/// The treatment of an invalid number.
#[derive(Clone, Copy, PartialEq)]
enum Invalid {
    Abort,
    Fail,
    Warn,
    Ignore,
}

struct Job {
    from: Scale,
    to: Scale,
    from_unit: u128,
    to_unit: u128,
    round: Round,
    invalid: Invalid,
    suffix: Vec<u8>,
    padding: i64,
    grouping: bool,
    zeros: bool,
    precision: Option<usize>,
    before: Vec<u8>,
    after: Vec<u8>,
    delimiter: Option<u8>,
    fields: Vec<(usize, usize)>,
    out: Output,
    status: i32,
}

const SPEC: Spec = Spec {
    short: "d:z",
    long: &[
        ("debug", No, 'D'),
        ("delimiter", Needs, 'd'),
        ("field", Needs, 'f'),
        ("format", Needs, 'F'),
        ("from", Needs, 'a'),
        ("from-unit", Needs, 'b'),
        ("grouping", No, 'g'),
        ("header", May, 'h'),
        ("invalid", Needs, 'i'),
        ("padding", Needs, 'p'),
        ("round", Needs, 'r'),
        ("suffix", Needs, 's'),
        ("to", Needs, 't'),
        ("to-unit", Needs, 'u'),
        ("zero-terminated", No, 'z'),
    ],
    help: "[OPTION]... [NUMBER]...",
};

/// Runs `numfmt`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let mut job = Job {
        from: Scale::None,
        to: Scale::None,
        from_unit: 1,
        to_unit: 1,
        round: Round::FromZero,
        invalid: Invalid::Abort,
        suffix: Vec::new(),
        padding: 0,
        grouping: given.has('g'),
        zeros: false,
        precision: None,
        before: Vec::new(),
        after: Vec::new(),
        delimiter: None,
        fields: vec![(1, 1)],
        out: Output::new(),
        status: 0,
    };
    let mut headers = 0u64;
    for (letter, value) in &given.options {
        match letter {
            'a' => job.from = options::choose("--from", value, scale::SCALES)?,
            't' => job.to = options::choose("--to", value, &scale::SCALES[..4])?,
            'b' => job.from_unit = unit(value)?,
            'u' => job.to_unit = unit(value)?,
            'r' => job.round = options::choose("--round", value, scale::ROUNDS)?,
            'i' => {
                let choices =
                    [("abort", Invalid::Abort), ("fail", Invalid::Fail), ("warn", Invalid::Warn), ("ignore", Invalid::Ignore)];
                job.invalid = options::choose("--invalid", value, &choices)?;
            }
            's' => job.suffix = bytes(value).to_vec(),
            'p' => {
                let width = value.to_str().and_then(|text| text.parse().ok()).filter(|width| *width != 0);
                job.padding = width.ok_or_else(|| fail(format!("invalid padding value {}", quote::plain(value))))?;
            }
            'd' => match bytes(value) {
                [byte] => job.delimiter = Some(*byte),
                [] => job.delimiter = Some(0),
                _ => return Err(fail("the delimiter must be a single character")),
            },
            'f' => job.fields = fields(value)?,
            'F' => job.format(value)?,
            'h' => {
                let count = if value.is_empty() { Some(1) } else { value.to_str().and_then(|text| text.parse().ok()) };
                headers = count
                    .filter(|count| *count > 0)
                    .ok_or_else(|| fail(format!("invalid header value {}", quote::plain(value))))?;
            }
            _ => {}
        }
    }
    if job.grouping && job.to != Scale::None {
        return Err(fail("grouping cannot be combined with --to"));
    }
    set_failure(2);
    let end = if given.has('z') { 0 } else { b'\n' };
    if given.operands.is_empty() {
        let mut lines = Lines::of_file(Descriptor::inherited(0), end);
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    job.out.send();
                    return Err(fail(format!("error reading input: {}", sys::message(&error))));
                }
            };
            let (line, ended) = line.strip_suffix(&[end]).map_or((line, false), |line| (line, true));
            if headers > 0 {
                headers -= 1;
                job.out.put(line);
            } else {
                let line = line.to_vec();
                job.line(&line)?;
            }
            if ended {
                job.out.byte(end);
            }
        }
    } else {
        for operand in &given.operands {
            job.line(bytes(operand))?;
            job.out.byte(end);
        }
    }
    Ok(job.status)
}

fn unit(value: &OsStr) -> Result<u128, i32> {
    let text = value.to_string_lossy();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &text[digits..];
    let (letters, base) = match rest.strip_suffix('i') {
        Some(letters) => (letters, 1024u128),
        None => (rest, 1000),
    };
    let power = match letters {
        "" if rest.is_empty() => Some(0),
        _ => scale::power(letters),
    };
    let count = if digits == 0 { Ok(1) } else { text[..digits].parse::<u128>() };
    match (count, power) {
        (Ok(count), Some(power)) if count > 0 && !text.is_empty() => Ok(count.saturating_mul(base.saturating_pow(power))),
        _ => Err(fail(format!("invalid unit size: {}", quote::plain(value)))),
    }
}

fn fields(value: &OsStr) -> Result<Vec<(usize, usize)>, i32> {
    let number = |text: &str| match text.parse::<usize>() {
        Ok(0) => Err(usage("fields are numbered from 1")),
        Ok(number) => Ok(number),
        Err(_) => Err(usage(format!("invalid field value {}", quote::plain(text)))),
    };
    let mut found = Vec::new();
    for part in value.to_string_lossy().split([',', ' ']) {
        let range = match part.split_once('-') {
            None => (number(part)?, number(part)?),
            Some(("", "")) => (1, usize::MAX),
            Some((low, "")) => (number(low)?, usize::MAX),
            Some(("", high)) => (1, number(high)?),
            Some((low, high)) => (number(low)?, number(high)?),
        };
        if range.0 > range.1 {
            return Err(usage("invalid decreasing range"));
        }
        found.push(range);
    }
    Ok(found)
}

impl Job {
    /// Reads `--format`: text around one `%f` with its flags, width and precision.
    fn format(&mut self, value: &OsStr) -> Result<(), i32> {
        let text = bytes(value);
        let shown = quote::plain(value);
        let mut at = 0;
        let mut before = Vec::new();
        loop {
            match &text[at..] {
                [] => return Err(fail(format!("format {shown} has no % directive"))),
                [b'%', b'%', ..] => {
                    before.push(b'%');
                    at += 2;
                }
                [b'%', ..] => break,
                [byte, ..] => {
                    before.push(*byte);
                    at += 1;
                }
            }
        }
        at += 1;
        let mut left = false;
        while let Some(flag @ (b'0' | b'\'' | b'-' | b' ')) = text.get(at) {
            match flag {
                b'0' => self.zeros = true,
                b'\'' => self.grouping = true,
                b'-' => left = true,
                _ => {}
            }
            at += 1;
        }
        let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let parse =
            |from: usize, length: usize| std::str::from_utf8(&text[from..from + length]).ok().and_then(|t| t.parse::<i64>().ok());
        let length = digits(at);
        if let Some(width) = parse(at, length).filter(|width| *width > 0) {
            self.padding = if left { -width } else { width };
        }
        at += length;
        if text.get(at) == Some(&b'.') {
            let length = digits(at + 1);
            let places = parse(at + 1, length).and_then(|places| usize::try_from(places).ok());
            self.precision = Some(match places {
                Some(places) => places,
                None if length == 0 => 0,
                None => return Err(fail(format!("invalid precision in format {shown}"))),
            });
            at += 1 + length;
        }
        if text.get(at) != Some(&b'f') {
            return Err(fail(format!("invalid format {shown}, directive must be %[0]['][-][N][.][N]f")));
        }
        let mut after = Vec::new();
        let mut rest = &text[at + 1..];
        while let Some((byte, following)) = rest.split_first() {
            rest = following;
            if *byte == b'%' {
                match rest.split_first() {
                    Some((b'%', following)) => rest = following,
                    _ => return Err(fail(format!("format {shown} has too many % directives"))),
                }
            }
            after.push(*byte);
        }
        (self.before, self.after) = (before, after);
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), i32> {
        let mut rest = line;
        for number in 1.. {
            let length = match self.delimiter {
                Some(delimiter) => rest.iter().position(|byte| *byte == delimiter).unwrap_or(rest.len()),
                None => {
                    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
                    let blanks = rest.iter().take_while(|byte| is_blank(byte)).count();
                    blanks + rest[blanks..].iter().position(is_blank).unwrap_or(rest.len() - blanks)
                }
            };
            let field = &rest[..length];
            if self.fields.iter().any(|(low, high)| (*low..=*high).contains(&number)) {
                self.number(field, number)?;
            } else {
                self.out.put(field);
            }
            let Some(following) = rest.get(length + 1..) else { break };
            self.out.byte(self.delimiter.unwrap_or(b' '));
            rest = following;
        }
        Ok(())
    }

    fn number(&mut self, field: &[u8], index: usize) -> Result<(), i32> {
        let text = field.trim_ascii_start();
        // Columns stay where they were when nothing else was asked for.
        let padding = match self.padding {
            0 if self.delimiter.is_none() && (text.len() < field.len() || index > 1) => field.len() as i64,
            padding => padding,
        };
        let core = text.strip_suffix(self.suffix.as_slice()).filter(|_| !self.suffix.is_empty()).unwrap_or(text);
        match self.convert(core) {
            Ok(shown) => {
                self.out.put(&self.before.clone());
                self.padded(&shown, padding);
                self.out.put(&self.after.clone());
            }
            Err(trouble) => {
                let message = trouble.message(text, core);
                if self.invalid == Invalid::Abort {
                    self.out.send();
                    return Err(fail(message));
                }
                if self.invalid != Invalid::Ignore {
                    self.out.send();
                    warn(message);
                }
                if self.invalid == Invalid::Fail {
                    self.status = 2;
                }
                self.out.put(field);
            }
        }
        Ok(())
    }

    fn convert(&self, text: &[u8]) -> Result<Vec<u8>, Trouble> {
        let value = scale::read(text, self.from)?;
        let value = value.times(self.from_unit, self.to_unit);
        let mut shown = scale::show(&value, self.to, self.round, self.precision)?;
        if self.zeros && self.padding > 0 {
            let width = usize::try_from(self.padding).unwrap_or(usize::MAX);
            let sign = usize::from(shown.starts_with('-'));
            let digits = shown.trim_end_matches(char::is_alphabetic).len();
            shown.insert_str(sign, &"0".repeat(width.saturating_sub(digits)));
        }
        let mut shown = shown.into_bytes();
        shown.extend_from_slice(&self.suffix);
        Ok(shown)
    }

    fn padded(&mut self, shown: &[u8], padding: i64) {
        let fill = usize::try_from(padding.unsigned_abs()).unwrap_or(usize::MAX).saturating_sub(shown.len());
        if padding > 0 {
            self.out.fill(b' ', fill);
        }
        self.out.put(shown);
        if padding < 0 {
            self.out.fill(b' ', fill);
        }
    }
}
