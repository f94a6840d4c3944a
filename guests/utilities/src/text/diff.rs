//! `diff` and `cmp`'s bigger brother: command line, files, directories; `compare` finds changes, `format` shows them.

pub(crate) mod compare;
mod format;
mod line_format;

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;
use pattern::Fnmatch;
use posix_regex::{Regex, Syntax};

use crate::date;
use crate::files::basename::last_component;
use crate::io::{self, Out, show};

const LONG: &[Long] = &[
    ("brief", Value::No, 'q'),
    ("color", Value::May, '\u{1}'),
    ("context", Value::May, 'C'),
    ("ed", Value::No, 'e'),
    ("exclude", Value::Needs, 'x'),
    ("exclude-from", Value::Needs, 'X'),
    ("expand-tabs", Value::No, 't'),
    ("ignore-all-space", Value::No, 'w'),
    ("ignore-blank-lines", Value::No, 'B'),
    ("ignore-case", Value::No, 'i'),
    ("ignore-matching-lines", Value::Needs, 'I'),
    ("ignore-space-change", Value::No, 'b'),
    ("ignore-tab-expansion", Value::No, 'E'),
    ("ignore-trailing-space", Value::No, 'Z'),
    ("initial-tab", Value::No, 'T'),
    ("horizon-lines", Value::Needs, '\u{e}'),
    ("label", Value::Needs, 'L'),
    ("line-format", Value::Needs, '\u{c}'),
    ("minimal", Value::No, 'd'),
    ("new-file", Value::No, 'N'),
    ("new-line-format", Value::Needs, '\u{a}'),
    ("no-dereference", Value::No, '\u{2}'),
    ("normal", Value::No, '\u{3}'),
    ("old-line-format", Value::Needs, '\u{9}'),
    ("recursive", Value::No, 'r'),
    ("report-identical-files", Value::No, 's'),
    ("show-c-function", Value::No, 'p'),
    ("show-function-line", Value::Needs, 'F'),
    ("side-by-side", Value::No, 'y'),
    ("speed-large-files", Value::No, 'H'),
    ("strip-trailing-cr", Value::No, '\u{4}'),
    ("suppress-blank-empty", Value::No, '\u{5}'),
    ("suppress-common-lines", Value::No, '\u{6}'),
    ("text", Value::No, 'a'),
    ("unchanged-line-format", Value::Needs, '\u{b}'),
    ("unified", Value::May, 'U'),
    ("unidirectional-new-file", Value::No, '\u{7}'),
    ("width", Value::Needs, 'W'),
    ("help", Value::No, '\u{8}'),
    ("version", Value::No, 'v'),
];

const SPEC: Spec = Spec { short: "0123456789abBcC:dD:eEfF:hHiI:lL:nNpPqrsS:tTuU:vwW:x:X:yZ", long: LONG };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Normal,
    Unified,
    Context,
    Ed,
    SideBySide,
}

#[derive(Debug)]
pub(crate) struct Options {
    style: Style,
    context: usize,
    brief: bool,
    identical: bool,
    recursive: bool,
    new_file: bool,
    ignore_case: bool,
    ignore_all_space: bool,
    ignore_space_change: bool,
    ignore_trailing: bool,
    ignore_blank_lines: bool,
    ignore_lines: Option<Regex>,
    strip_cr: bool,
    text: bool,
    color: bool,
    suppress_common: bool,
    suppress_blank_empty: bool,
    width: usize,
    labels: Vec<Vec<u8>>,
    exclude: Vec<Fnmatch>,
    function: Option<Regex>,
    /// How lines of the old file only, of the new one only and of both are written, when that was asked for.
    line_formats: Option<[Vec<u8>; 3]>,
    /// The options as they were given, for the heads of a recursive comparison.
    given: Vec<u8>,
    no_dereference: bool,
}

/// Runs `diff`.
pub fn diff(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let (options, files) = match SPEC.parse(&args[1..]).map_err(usage).and_then(|items| configure(items, &args)) {
        Ok(configured) => configured,
        Err(status) => return status,
    };
    let [first, second] = files.as_slice() else {
        let message = match files.last() {
            None => "missing operand after 'diff'".to_string(),
            Some(one) if files.len() == 1 => format!("missing operand after '{}'", show(one)),
            Some(_) => format!("extra operand '{}'", show(&files[2])),
        };
        return usage(message);
    };
    if first == second && first == b"-" {
        return 0;
    }
    let mut out = Out::new("diff", 2);
    let status = pair(&options, &mut out, first, second, false);
    out.flush();
    status
}

fn usage(message: String) -> i32 {
    warn!("diff: {message}\ndiff: Try 'diff --help' for more information.");
    2
}

fn configure(items: Vec<Item>, args: &[Vec<u8>]) -> Result<(Options, Vec<Vec<u8>>), i32> {
    let mut options = Options {
        style: Style::Normal,
        context: 3,
        brief: false,
        identical: false,
        recursive: false,
        new_file: false,
        ignore_case: false,
        ignore_all_space: false,
        ignore_space_change: false,
        ignore_trailing: false,
        ignore_blank_lines: false,
        ignore_lines: None,
        strip_cr: false,
        no_dereference: false,
        text: false,
        color: false,
        suppress_common: false,
        suppress_blank_empty: false,
        width: 130,
        labels: Vec::new(),
        exclude: Vec::new(),
        function: None,
        line_formats: None,
        given: Vec::new(),
    };
    let pattern = |text: &[u8]| {
        Regex::new(text, Syntax { lines: true, utf8: common::locale::utf8(), ..Syntax::default() }).map_err(|message| {
            warn!("diff: {}: {message}", show(text));
            2
        })
    };
    let mut files = Vec::new();
    let mut digits = String::new();
    for item in items {
        let (letter, value) = match item {
            Item::Operand(file) => {
                files.push(file);
                continue;
            }
            Item::Opt(letter, value) => (letter, value),
        };
        match letter {
            '0'..='9' => digits.push(letter),
            'u' => options.style = Style::Unified,
            'c' => options.style = Style::Context,
            'U' | 'C' => {
                options.style = if letter == 'U' { Style::Unified } else { Style::Context };
                if let Some(value) = value {
                    let Some(context) = number::size(&value) else {
                        return Err(usage(format!("invalid context length '{}'", show(&value))));
                    };
                    options.context = context;
                }
            }
            'e' => options.style = Style::Ed,
            'y' => options.style = Style::SideBySide,
            '\u{3}' => options.style = Style::Normal,
            '\u{9}'..='\u{c}' => {
                let value = value.unwrap_or_default();
                let formats = options.line_formats.get_or_insert_with(|| [b"%l\n"; 3].map(|format| format.to_vec()));
                match letter {
                    '\u{9}' => formats[0] = value,
                    '\u{a}' => formats[1] = value,
                    '\u{b}' => formats[2] = value,
                    _ => formats.fill(value),
                }
            }
            'q' => options.brief = true,
            's' => options.identical = true,
            'r' => options.recursive = true,
            'N' | '\u{7}' | 'P' => options.new_file = true,
            'i' => options.ignore_case = true,
            'w' => options.ignore_all_space = true,
            'b' => options.ignore_space_change = true,
            'Z' | 'E' => options.ignore_trailing = true,
            'B' => options.ignore_blank_lines = true,
            'I' => options.ignore_lines = Some(pattern(&value.unwrap_or_default())?),
            'a' => options.text = true,
            'p' => options.function = Some(pattern(b"^[[:alpha:]$_]")?),
            'F' => options.function = Some(pattern(&value.unwrap_or_default())?),
            'L' => options.labels.extend(value),
            'x' => options.exclude.extend(value.as_deref().map(Fnmatch::new)),
            'X' => {
                let name = value.unwrap_or_default();
                let text = match io::read_all(&name) {
                    Ok(text) => text,
                    Err(error) => {
                        warn!("diff: {}: {}", show(&name), sys::message(&error));
                        return Err(2);
                    }
                };
                options.exclude.extend(text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(Fnmatch::new));
            }
            'W' => match value.as_deref().and_then(number::size).filter(|width| *width > 0) {
                Some(width) => options.width = width,
                None => return Err(usage(format!("invalid width '{}'", show(&value.unwrap_or_default())))),
            },
            '\u{1}' => {
                options.color = match value.as_deref() {
                    Some(b"always") => true,
                    Some(b"never") => false,
                    _ => std::io::IsTerminal::is_terminal(&std::io::stdout()),
                }
            }
            '\u{2}' => options.no_dereference = true,
            '\u{4}' => options.strip_cr = true,
            '\u{5}' => options.suppress_blank_empty = true,
            '\u{6}' => options.suppress_common = true,
            'v' => {
                let mut out = Out::new("diff", 2);
                out.put(b"diff (GNU diffutils) 3.8\n");
                out.flush();
                return Err(0);
            }
            '\u{8}' => {
                let mut out = Out::new("diff", 2);
                out.put(b"Usage: diff [OPTION]... FILES\nCompare FILES line by line.\n");
                out.flush();
                return Err(0);
            }
            _ => {}
        }
    }
    if let Ok(context) = digits.parse() {
        options.context = context;
    }
    let mut operands = files.iter().peekable();
    for arg in &args[1..] {
        if operands.next_if(|operand| *operand == arg).is_none() {
            options.given.push(b' ');
            options.given.extend_from_slice(arg);
        }
    }
    Ok((options, files))
}

fn is_dir(name: &[u8]) -> bool {
    name != b"-" && fs::metadata(io::path(name)).is_ok_and(|data| data.is_dir())
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = directory.to_vec();
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Compares two operands or entries: 0 the same, 1 different, 2 trouble.
fn pair(options: &Options, out: &mut Out, first: &[u8], second: &[u8], nested: bool) -> i32 {
    if let Some(status) = links(options, out, first, second) {
        return status;
    }
    match (is_dir(first), is_dir(second)) {
        (true, true) => directories(options, out, first, second),
        (true, false) if !nested => files(options, out, &join(first, last_component(second)), second, false),
        (false, true) if !nested => files(options, out, first, &join(second, last_component(first)), false),
        _ => files(options, out, first, second, nested),
    }
}

/// `--no-dereference`: links are compared by what they point to; `None` where neither is one.
fn links(options: &Options, out: &mut Out, a: &[u8], b: &[u8]) -> Option<i32> {
    if !options.no_dereference {
        return None;
    }
    let target = |name: &[u8]| fs::read_link(io::path(name)).ok();
    let kind = |name: &[u8]| if is_dir(name) { "directory" } else { "regular file" };
    match (target(a), target(b)) {
        (None, None) => None,
        (Some(left), Some(right)) if left == right => Some(0),
        (Some(_), Some(_)) => {
            out.put(format!("Symbolic links {} and {} differ\n", show(a), show(b)).as_bytes());
            Some(1)
        }
        (Some(_), None) => Some(mismatch(out, a, "symbolic link", b, kind(b))),
        (None, Some(_)) => Some(mismatch(out, a, kind(a), b, "symbolic link")),
    }
}

fn entries(directory: &[u8], out: &mut Out) -> Result<BTreeSet<Vec<u8>>, i32> {
    match fs::read_dir(io::path(directory)) {
        Ok(children) => Ok(children.filter_map(Result::ok).map(|child| child.file_name().into_encoded_bytes()).collect()),
        Err(error) => {
            out.flush();
            warn!("diff: {}: {}", show(directory), sys::message(&error));
            Err(2)
        }
    }
}

fn directories(options: &Options, out: &mut Out, first: &[u8], second: &[u8]) -> i32 {
    let (Ok(left), Ok(right)) = (entries(first, out), entries(second, out)) else { return 2 };
    let mut status = 0;
    for name in left.union(&right) {
        if options.exclude.iter().any(|pattern| pattern.matches(name)) {
            continue;
        }
        let (a, b) = (join(first, name), join(second, name));
        let only = match (left.contains(name), right.contains(name)) {
            (true, false) => Some((first, &a)),
            (false, true) => Some((second, &b)),
            _ => None,
        };
        if let Some((directory, path)) = only
            && !(options.new_file && (options.recursive || !is_dir(path)))
        {
            out.put(&[b"Only in ", directory, b": ", name, b"\n"].concat());
            status = status.max(1);
            continue;
        }
        if only.is_none()
            && let Some(result) = links(options, out, &a, &b)
        {
            status = status.max(result);
            continue;
        }
        let result = match (is_dir(&a), is_dir(&b)) {
            (true, true) if !options.recursive => {
                out.put(&[b"Common subdirectories: ", a.as_slice(), b" and ", &b, b"\n"].concat());
                0
            }
            (true, true) => directories(options, out, &a, &b),
            (true, false) if only.is_some() => whole_directory(options, out, &a, &b, true),
            (false, true) if only.is_some() => whole_directory(options, out, &a, &b, false),
            (true, false) => mismatch(out, &a, "directory", &b, "regular file"),
            (false, true) => mismatch(out, &a, "regular file", &b, "directory"),
            (false, false) => files(options, out, &a, &b, true),
        };
        status = status.max(result);
    }
    status
}

/// Compares a directory that only one side has, under `-N`: every file in it is compared with nothing.
fn whole_directory(options: &Options, out: &mut Out, a: &[u8], b: &[u8], left: bool) -> i32 {
    let Ok(names) = entries(if left { a } else { b }, out) else { return 2 };
    let mut status = 0;
    for name in names {
        let (x, y) = (join(a, &name), join(b, &name));
        let inner = is_dir(if left { &x } else { &y });
        let result = if inner { whole_directory(options, out, &x, &y, left) } else { files(options, out, &x, &y, true) };
        status = status.max(result);
    }
    status
}

fn mismatch(out: &mut Out, a: &[u8], a_kind: &str, b: &[u8], b_kind: &str) -> i32 {
    let text = format!("File {} is a {a_kind} while file {} is a {b_kind}\n", show(a), show(b));
    out.put(text.as_bytes());
    1
}

/// Returns a file's content and its head in a unified diff.
fn load(options: &Options, name: &[u8], may_miss: bool, label: Option<&Vec<u8>>) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
    let (content, modified) = match io::read_all(name) {
        Ok(content) => {
            let stat = if name == b"-" { sys::fstat(0) } else { sys::stat(&io::path(name), true) };
            (content, stat.map_or(0, |stat| stat.mtime))
        }
        Err(error) if may_miss && options.new_file && error.kind() == std::io::ErrorKind::NotFound => (Vec::new(), 0),
        Err(error) => return Err(error),
    };
    let header = match label {
        Some(label) => label.clone(),
        None => {
            let mut header = name.to_vec();
            header.push(b'\t');
            let seconds = modified.div_euclid(1_000_000_000);
            header.extend_from_slice(&date::format(b"%Y-%m-%d %H:%M:%S", i128::from(seconds) * date::SECOND));
            header.extend_from_slice(format!(".{:09} +0000", modified.rem_euclid(1_000_000_000)).as_bytes());
            header
        }
    };
    Ok((content, header))
}

fn files(options: &Options, out: &mut Out, first: &[u8], second: &[u8], nested: bool) -> i32 {
    let mut loaded = Vec::new();
    for (index, name) in [first, second].into_iter().enumerate() {
        match load(options, name, true, options.labels.get(index)) {
            Ok(side) => loaded.push(side),
            Err(error) => {
                out.flush();
                warn!("diff: {}: {}", show(name), sys::message(&error));
            }
        }
    }
    let [old, new] = loaded.as_slice() else { return 2 };
    let same = old.0 == new.0;
    let binary = |content: &[u8]| memchr::memchr(0, &content[..content.len().min(64 * 1024)]).is_some();
    if !same && !options.text && (binary(&old.0) || binary(&new.0)) {
        let word = if options.brief { "Files" } else { "Binary files" };
        out.put(format!("{word} {} and {} differ\n", show(first), show(second)).as_bytes());
        return 1;
    }
    let changes = if same && options.style != Style::SideBySide { Vec::new() } else { changes(options, &old.0, &new.0) };
    if let Some(formats) = options.line_formats.as_ref().filter(|_| !options.brief) {
        line_format::write(out, formats, (&old.0, &new.0), &changes);
        return i32::from(!changes.is_empty());
    }
    if changes.is_empty() {
        if options.identical {
            out.put(format!("Files {} and {} are identical\n", show(first), show(second)).as_bytes());
            return 0;
        }
        if options.style != Style::SideBySide || options.brief {
            return 0;
        }
    } else if options.brief {
        out.put(format!("Files {} and {} differ\n", show(first), show(second)).as_bytes());
        return 1;
    }
    if nested {
        out.put(&[b"diff", options.given.as_slice(), b" ", first, b" ", second, b"\n"].concat());
    }
    let side = |loaded: &(Vec<u8>, Vec<u8>)| (loaded.1.clone(), !loaded.0.is_empty() && !loaded.0.ends_with(b"\n"));
    let ((old_header, old_open), (new_header, new_open)) = (side(old), side(new));
    let mut paper = format::Paper {
        options,
        out,
        old: format::Side { header: old_header, lines: lines(&old.0), open_end: old_open },
        new: format::Side { header: new_header, lines: lines(&new.0), open_end: new_open },
    };
    paper.write(&changes);
    i32::from(!changes.is_empty())
}

/// Returns the lines of a text without their newlines.
pub(crate) fn lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
}

/// Returns a line as the options see it.
fn key(options: &Options, line: &[u8]) -> Vec<u8> {
    let mut line = if options.strip_cr { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
    let mut out = Vec::with_capacity(line.len());
    if options.ignore_trailing || options.ignore_space_change {
        line = line.trim_ascii_end();
    }
    let mut blank = false;
    for &byte in line {
        if byte.is_ascii_whitespace() && (options.ignore_all_space || options.ignore_space_change) {
            blank = true;
            continue;
        }
        if blank && !options.ignore_all_space {
            out.push(b' ');
        }
        blank = false;
        out.push(if options.ignore_case { byte.to_ascii_lowercase() } else { byte });
    }
    out
}

fn changes(options: &Options, old: &[u8], new: &[u8]) -> Vec<compare::Change> {
    let (old_lines, new_lines) = (lines(old), lines(new));
    let mut numbers: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut number = |lines: &[&[u8]], text: &[u8]| -> Vec<u32> {
        let open = !text.is_empty() && !text.ends_with(b"\n");
        let count = lines.len();
        let numbered = lines.iter().enumerate().map(|(index, line)| {
            let mut key = key(options, line);
            if open && index + 1 == count && !options.ignore_all_space && !options.ignore_space_change && !options.ignore_trailing
            {
                key.extend_from_slice(b"\n\\");
            }
            let next = numbers.len() as u32;
            *numbers.entry(key).or_insert(next)
        });
        numbered.collect()
    };
    let old_numbers = number(&old_lines, old);
    let new_numbers = number(&new_lines, new);
    let horizon = if matches!(options.style, Style::Unified | Style::Context) { options.context } else { 0 };
    let mut changes = compare::between(&old_numbers, &new_numbers, horizon);
    if options.ignore_blank_lines || options.ignore_lines.is_some() {
        let ignored = |line: &[u8]| {
            options.ignore_blank_lines && key(options, line).is_empty()
                || options.ignore_lines.as_ref().is_some_and(|regex| regex.is_match(line))
        };
        changes.retain(|change| {
            !(change.old.clone().all(|index| ignored(old_lines[index]))
                && change.new.clone().all(|index| ignored(new_lines[index])))
        });
    }
    changes
}
