//! `nl`: lines with numbers.

use std::num::IntErrorKind;

use posix_regex::{Regex, Syntax};

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, each_line, fail, usage, utf8};
use crate::quote;

/// Which lines of a section have numbers.
enum Style {
    All,
    Filled,
    None,
    Matching(Box<Regex>),
}

fn style(text: &std::ffi::OsStr, section: &str) -> Result<Style, i32> {
    match bytes(text) {
        b"a" => Ok(Style::All),
        b"t" => Ok(Style::Filled),
        b"n" => Ok(Style::None),
        [b'p', pattern @ ..] => {
            let syntax = Syntax { library: true, utf8: utf8(), ..Syntax::default() };
            Ok(Style::Matching(Box::new(Regex::new(pattern, syntax).map_err(fail)?)))
        }
        _ => Err(usage(format!("invalid {section} numbering style: {}", quote::plain(text)))),
    }
}

struct Numbering {
    number: i64,
    start: i64,
    step: i64,
    /// Of so many empty lines in a row only the last has a number.
    join: u64,
    empty: u64,
    width: usize,
    separator: Vec<u8>,
    format: Format,
    renumber: bool,
}

#[derive(Clone, Copy)]
enum Format {
    Left,
    Right,
    Zeros,
}

/// Runs `nl`.
pub fn main(args: Args) -> Outcome {
    let spec = Spec {
        short: "b:d:f:h:i:l:n:ps:v:w:",
        long: &[
            ("body-numbering", Needs, 'b'),
            ("section-delimiter", Needs, 'd'),
            ("footer-numbering", Needs, 'f'),
            ("header-numbering", Needs, 'h'),
            ("line-increment", Needs, 'i'),
            ("join-blank-lines", Needs, 'l'),
            ("number-format", Needs, 'n'),
            ("no-renumber", No, 'p'),
            ("number-separator", Needs, 's'),
            ("starting-line-number", Needs, 'v'),
            ("number-width", Needs, 'w'),
        ],
        help: "[OPTION]... [FILE]...",
    };
    let given = options::parse(args, &spec)?;
    let number = |letter: char, default: i64, least: i64, most: i64, what: &str| -> Result<i64, i32> {
        let Some(value) = given.value(letter) else { return Ok(default) };
        let refuse = |reason: &str| Err(fail(format!("invalid {what}: {}{reason}", quote::plain(value))));
        match value.to_str().map(|text| text.trim_start().parse::<i64>()) {
            Some(Ok(value)) if (least..=most).contains(&value) => Ok(value),
            Some(Ok(value)) if value < least => refuse(": Numerical result out of range"),
            Some(Err(error)) if *error.kind() == IntErrorKind::NegOverflow && least > i64::MIN => {
                refuse(": Numerical result out of range")
            }
            Some(Ok(_)) => refuse(": Value too large for defined data type"),
            Some(Err(error)) if matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => {
                refuse(": Value too large for defined data type")
            }
            _ => refuse(""),
        }
    };
    let start = number('v', 1, i64::MIN, i64::MAX, "starting line number")?;
    let format = match given.value('n').map(bytes) {
        None | Some(b"rn") => Format::Right,
        Some(b"ln") => Format::Left,
        Some(b"rz") => Format::Zeros,
        Some(other) => return Err(usage(format!("invalid line numbering format: {}", quote::plain_bytes(other)))),
    };
    let mut numbering = Numbering {
        number: start,
        start,
        step: number('i', 1, i64::MIN, i64::MAX, "line number increment")?,
        join: number('l', 1, 1, i64::MAX, "line number of blank lines")? as u64,
        empty: 0,
        width: number('w', 6, 1, i64::from(i32::MAX), "line number field width")? as usize,
        separator: given.value('s').map_or_else(|| b"\t".to_vec(), |text| bytes(text).to_vec()),
        format,
        renumber: !given.has('p'),
    };
    let styles = [
        style(given.value('h').unwrap_or("n".as_ref()), "header")?,
        style(given.value('b').unwrap_or("t".as_ref()), "body")?,
        style(given.value('f').unwrap_or("n".as_ref()), "footer")?,
    ];
    let mark = match given.value('d').map(bytes) {
        None => b"\\:".to_vec(),
        Some([one]) => vec![*one, b':'],
        Some(mark) => mark.to_vec(),
    };
    let mut out = Output::new();
    let mut section = 1;
    Ok(each_line(&given.operands, b'\n', &mut out, |line, out| {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        numbering.line(content, &mark, &styles, &mut section, out);
    }))
}

impl Numbering {
    fn line(&mut self, line: &[u8], mark: &[u8], styles: &[Style; 3], section: &mut usize, out: &mut Output) {
        if !mark.is_empty()
            && line.len() <= 3 * mark.len()
            && !line.is_empty()
            && line.chunks(mark.len()).all(|part| part == mark)
        {
            *section = 3 - line.len() / mark.len();
            if self.renumber {
                self.number = self.start;
            }
            return out.byte(b'\n');
        }
        let numbered = match &styles[*section] {
            Style::All if self.join > 1 && line.is_empty() => {
                self.empty += 1;
                let now = self.empty == self.join;
                self.empty = if now { 0 } else { self.empty };
                now
            }
            Style::All => true,
            Style::Filled => !line.is_empty(),
            Style::None => false,
            Style::Matching(regex) => regex.is_match(line),
        };
        if !line.is_empty() {
            self.empty = 0;
        }
        if numbered {
            let digits = self.number.unsigned_abs().to_string();
            let sign = if self.number < 0 { "-" } else { "" };
            let room = self.width.saturating_sub(digits.len() + sign.len());
            let (before, zeros, after) = match self.format {
                Format::Left => (0, 0, room),
                Format::Right => (room, 0, 0),
                Format::Zeros => (0, room, 0),
            };
            out.fill(b' ', before);
            out.text(sign);
            out.fill(b'0', zeros);
            out.text(digits);
            out.fill(b' ', after);
            out.put(&self.separator);
            self.number = self.number.saturating_add(self.step);
        } else {
            out.fill(b' ', self.width.saturating_add(self.separator.len()));
        }
        out.line(line, b'\n');
    }
}
