//! `pr`: files as pages with a head, in columns or side by side.

mod layout;

use std::ffi::{OsStr, OsString};
use std::num::IntErrorKind;
use std::path::Path;

use crate::options::{self, Given, May, Needs, No, Spec};
use crate::program::{self, Args, Outcome, Output, bytes, fail, or_stdin, usage, warn_file};
use crate::{date, quote, size};
use layout::Sheet;

const SPEC: Spec = Spec {
    short: "0123456789abcdD:e::fFh:i::Jl:mn::N:o:rs::S::tTvw:W:",
    long: &[
        ("pages", Needs, 'p'),
        ("columns", Needs, 'C'),
        ("across", No, 'a'),
        ("show-control-chars", No, 'c'),
        ("double-space", No, 'd'),
        ("date-format", Needs, 'D'),
        ("expand-tabs", May, 'e'),
        ("form-feed", No, 'f'),
        ("header", Needs, 'h'),
        ("output-tabs", May, 'i'),
        ("join-lines", No, 'J'),
        ("length", Needs, 'l'),
        ("merge", No, 'm'),
        ("number-lines", May, 'n'),
        ("first-line-number", Needs, 'N'),
        ("indent", Needs, 'o'),
        ("no-file-warnings", No, 'r'),
        ("separator", May, 's'),
        ("sep-string", May, 'S'),
        ("omit-header", No, 't'),
        ("omit-pagination", No, 'T'),
        ("show-nonprinting", No, 'v'),
        ("width", Needs, 'w'),
        ("page-width", Needs, 'W'),
    ],
    help: "[OPTION]... [FILE]...\nPaginate or columnate FILE(s) for printing.",
};

/// Lines of a page, and those of its head and of its foot.
const PAGE: usize = 66;
const HEAD: usize = 5;
const FOOT: usize = 5;
/// Characters of a line.
const WIDTH: usize = 72;

/// How lines are numbered: what follows the number, its digits, the first one.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    separator: u8,
    digits: usize,
    first: i64,
}

/// The parsed options.
pub struct Settings {
    columns: usize,
    across: bool,
    merge: bool,
    width: usize,
    /// Whether columns have a width, and lines are cut to it.
    aligned: bool,
    cut: bool,
    separator: Vec<u8>,
    /// Whether blanks become tabs, of which width.
    tabs: Option<usize>,
    expand: Option<usize>,
    double: bool,
    rows: usize,
    length: usize,
    head: bool,
    pages: bool,
    form_feed: bool,
    header: Option<Vec<u8>>,
    date_format: Vec<u8>,
    numbers: Option<Numbers>,
    indent: usize,
    first_page: usize,
    last_page: usize,
    quiet: bool,
    controls: Option<bool>,
}

/// Runs `pr`.
pub fn main(mut args: Args) -> Outcome {
    // `+2` and `+2:5` are pages, and were so before there were options with words.
    let mut range = None;
    args.retain(|arg| {
        let pages = bytes(arg).strip_prefix(b"+").and_then(|text| std::str::from_utf8(text).ok()).and_then(pages);
        if pages.is_some() {
            range = pages;
        }
        pages.is_none()
    });
    let given = options::parse(args, &SPEC)?;
    let settings = settings(&given, range)?;
    let files = or_stdin(given.operands);
    let mut out = Output::new();
    let mut status = 0;
    let mut inputs = Vec::new();
    for file in &files {
        match program::read_all(file) {
            Ok(text) => inputs.push((file, text)),
            Err(error) => {
                status = 1;
                if !settings.quiet {
                    out.send();
                    warn_file(file, &error);
                }
            }
        }
    }
    if settings.merge {
        let texts: Vec<&[u8]> = inputs.iter().map(|(_, text)| text.as_slice()).collect();
        if !texts.is_empty() {
            let name = if files.len() == 1 { files[0].clone() } else { OsString::new() };
            Sheet::new(&settings, head(&settings, &name, files.len() > 1), &mut out).merged(&texts);
        }
    } else {
        for (file, text) in &inputs {
            Sheet::new(&settings, head(&settings, file, false), &mut out).columns(text);
        }
    }
    Ok(status)
}

fn pages(text: &str) -> Option<(usize, usize)> {
    let (first, last) = text.split_once(':').unwrap_or((text, ""));
    let first = first.parse().ok().filter(|page| *page > 0)?;
    let last = if last.is_empty() { usize::MAX } else { last.parse().ok()? };
    (first <= last).then_some((first, last))
}

/// Returns the date and the title of a file's pages.
fn head(settings: &Settings, file: &OsStr, several: bool) -> (Vec<u8>, Vec<u8>) {
    let standard = file == "-";
    let time = match sys::stat(Path::new(file), true) {
        Ok(stat) if !standard && !several => i128::from(stat.mtime),
        _ => sys::now_ns(),
    };
    let title = settings.header.clone().unwrap_or_else(|| if standard || several { Vec::new() } else { bytes(file).to_vec() });
    (date::format(&settings.date_format, time), title)
}

fn count(given: &Given, letter: char, what: &str) -> Result<Option<usize>, i32> {
    let Some(text) = given.value(letter) else { return Ok(None) };
    let invalid = |why: &str| fail(format!("{what}: {}{why}", quote::plain(text)));
    match size::parse(&text.to_string_lossy(), "") {
        Ok(0) if letter != 'o' => Err(invalid(": Numerical result out of range")),
        Ok(number) if number <= MOST => Ok(usize::try_from(number).ok()),
        Ok(_) | Err(size::Trouble::Overflow) => Err(invalid(": Value too large for defined data type")),
        Err(_) => Err(invalid("")),
    }
}

/// Counts are C's `int`.
const MOST: u64 = i32::MAX as u64;

const TOO_LARGE: &str = "Value too large for defined data type";

/// Returns a character and a number, both optional: `-e`, `-i`, `-n`.
fn letter_and_number(option: char, value: &OsStr, letter: u8, number: usize) -> Result<(u8, usize), i32> {
    let text = bytes(value);
    let (letter, rest) = match text.split_first() {
        Some((first, rest)) if !first.is_ascii_digit() => (*first, rest),
        _ => (letter, text),
    };
    if rest.is_empty() {
        return Ok((letter, number));
    }
    let shown = quote::plain_bytes(rest);
    let refuse = |why: &str| Err(usage(format!("'-{option}' extra characters or invalid number in the argument: {shown}{why}")));
    match std::str::from_utf8(rest).map(str::parse::<u64>) {
        Ok(Ok(0)) => refuse(": Numerical result out of range"),
        Ok(Ok(number)) if number <= MOST => Ok((letter, usize::try_from(number).unwrap_or(usize::MAX))),
        Ok(Ok(_)) => refuse(&format!(": {TOO_LARGE}")),
        Ok(Err(error)) if *error.kind() == IntErrorKind::PosOverflow => refuse(&format!(": {TOO_LARGE}")),
        _ => refuse(""),
    }
}

fn settings(given: &Given, range: Option<(usize, usize)>) -> Result<Settings, i32> {
    let digits: String = given.options.iter().filter(|(letter, _)| letter.is_ascii_digit()).map(|(letter, _)| *letter).collect();
    let old: Option<usize> = match digits.as_str() {
        "" => None,
        text => match text.parse::<u64>() {
            Ok(0) => {
                return Err(fail(format!("invalid number of columns: {}: Numerical result out of range", quote::plain(text))));
            }
            Ok(number) if number <= MOST => usize::try_from(number).ok(),
            Ok(_) => return Err(fail(format!("invalid number of columns: {}: {TOO_LARGE}", quote::plain(text)))),
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
                return Err(fail(format!("invalid number of columns: {}: {TOO_LARGE}", quote::plain(text))));
            }
            Err(_) => return Err(fail(format!("invalid number of columns: {}", quote::plain(text)))),
        },
    };
    let asked = count(given, 'C', "invalid number of columns")?.or(old);
    let merge = given.has('m');
    if merge && asked.is_some() {
        return Err(fail("cannot specify number of columns when printing in parallel"));
    }
    if merge && given.has('a') {
        return Err(fail("cannot specify both printing across and printing in parallel"));
    }
    let columns = if merge { given.operands.len().max(1) } else { asked.unwrap_or(1) };
    let several = columns > 1 || merge;
    let width = count(given, 'w', "'-w PAGE_WIDTH' invalid number of characters")?;
    let page_width = count(given, 'W', "'-W PAGE_WIDTH' invalid number of characters")?;
    let join = given.has('J');
    // A character between columns is enough; with a width asked for there are columns after all.
    let (separator, aligned) = match (given.value('S'), given.value('s')) {
        (Some(text), _) if !text.is_empty() => (bytes(text).to_vec(), !join),
        (None, Some(text)) if !text.is_empty() => (bytes(text).to_vec(), width.is_some() || page_width.is_some()),
        (None, Some(_)) if width.is_none() && page_width.is_none() => (b"\t".to_vec(), false),
        _ => (if join { b"\t".to_vec() } else { b" ".to_vec() }, !join),
    };
    let plain = separator == b" " && aligned;
    let length = count(given, 'l', "'-l PAGE_LENGTH' invalid number of lines")?.unwrap_or(PAGE);
    let head = !(given.has('t') || given.has('T')) && length > HEAD + FOOT;
    let rows = if head { length - HEAD - FOOT } else { length };
    let double = given.has('d');
    let first = match given.value('N') {
        None => 1,
        Some(text) => text
            .to_string_lossy()
            .parse()
            .map_err(|_| fail(format!("'-N NUMBER' invalid starting line number: {}", quote::plain(text))))?,
    };
    let range = match given.value('p') {
        None => range,
        Some(text) => {
            let found = pages(&text.to_string_lossy());
            Some(found.ok_or_else(|| fail(format!("invalid page range {}", quote::plain(text))))?)
        }
    };
    let (first_page, last_page) = range.unwrap_or((1, usize::MAX));
    let tab = |letter: char| -> Result<Option<usize>, i32> {
        given.value(letter).map(|text| letter_and_number(letter, text, b'\t', 8).map(|found| found.1)).transpose()
    };
    let width = page_width.or(width).unwrap_or(WIDTH);
    if aligned && several && width < columns.saturating_mul(2) - 1 {
        return Err(fail("page width too narrow"));
    }
    Ok(Settings {
        columns,
        across: given.has('a'),
        merge,
        width,
        aligned: aligned && several,
        cut: aligned && several || page_width.is_some(),
        tabs: tab('i')?.or((several && (plain || aligned)).then_some(8)),
        separator,
        expand: tab('e')?.or((several && aligned).then_some(8)),
        double,
        rows: if double { (rows / 2).max(1) } else { rows },
        length,
        head,
        pages: head,
        form_feed: given.has('f') || given.has('F'),
        header: given.value('h').map(|text| bytes(text).to_vec()),
        date_format: given.value('D').map_or_else(|| b"%Y-%m-%d %H:%M".to_vec(), |text| bytes(text).to_vec()),
        numbers: match given.value('n') {
            None => None,
            Some(text) => {
                let (separator, digits) = letter_and_number('n', text, b'\t', 5)?;
                Some(Numbers { separator, digits, first })
            }
        },
        indent: count(given, 'o', "'-o MARGIN' invalid line offset")?.unwrap_or(0),
        first_page,
        last_page,
        quiet: given.has('r'),
        controls: if given.has('v') { Some(true) } else { given.has('c').then_some(false) },
    })
}
