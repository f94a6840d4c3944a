//! `rg`: ripgrep's common options on the engine of `grep`.

mod globs;
mod ignore;

use std::ffi::OsString;
use std::fs;
use std::io::IsTerminal as _;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;
use pattern::fnmatch;
use posix_regex::{Around, Regex};

use crate::io::{self, Out, show};
use globs::Filter;

const LONG: &[Long] = &[
    ("after-context", Value::Needs, 'A'),
    ("before-context", Value::Needs, 'B'),
    ("case-sensitive", Value::No, 's'),
    ("color", Value::Needs, '\u{1}'),
    ("context", Value::Needs, 'C'),
    ("count", Value::No, 'c'),
    ("count-matches", Value::No, '\u{2}'),
    ("file", Value::Needs, 'f'),
    ("files", Value::No, '\u{3}'),
    ("files-with-matches", Value::No, 'l'),
    ("files-without-match", Value::No, '\u{4}'),
    ("fixed-strings", Value::No, 'F'),
    ("follow", Value::No, 'L'),
    ("glob", Value::Needs, 'g'),
    ("heading", Value::No, '\u{5}'),
    ("hidden", Value::No, '.'),
    ("ignore-case", Value::No, 'i'),
    ("iglob", Value::Needs, 'g'),
    ("invert-match", Value::No, 'v'),
    ("line-number", Value::No, 'n'),
    ("line-regexp", Value::No, 'x'),
    ("max-count", Value::Needs, 'm'),
    ("max-depth", Value::Needs, 'd'),
    ("multiline", Value::No, 'U'),
    ("no-filename", Value::No, 'I'),
    ("no-heading", Value::No, '\u{6}'),
    ("no-ignore", Value::No, '\u{7}'),
    ("no-ignore-vcs", Value::No, '\u{7}'),
    ("no-line-number", Value::No, 'N'),
    ("no-messages", Value::No, '\u{8}'),
    ("null", Value::No, '0'),
    ("only-matching", Value::No, 'o'),
    ("pcre2", Value::No, 'P'),
    ("quiet", Value::No, 'q'),
    ("regexp", Value::Needs, 'e'),
    ("replace", Value::Needs, 'r'),
    ("smart-case", Value::No, 'S'),
    ("sort", Value::Needs, '\u{8}'),
    ("text", Value::No, 'a'),
    ("threads", Value::Needs, 'j'),
    ("type", Value::Needs, 't'),
    ("type-not", Value::Needs, 'T'),
    ("unrestricted", Value::No, 'u'),
    ("version", Value::No, 'V'),
    ("vimgrep", Value::No, '\u{9}'),
    ("with-filename", Value::No, 'H'),
    ("word-regexp", Value::No, 'w'),
];

const SPEC: Spec = Spec { short: "A:B:C:cd:e:f:Fg:HiIj:lLm:nNopPqr:sSt:T:uUvVwx0a.", long: LONG };

#[derive(Default)]
struct Options {
    invert: bool,
    count: bool,
    count_matches: bool,
    files_with: bool,
    files_without: bool,
    only_matching: bool,
    quiet: bool,
    line_number: Option<bool>,
    filename: Option<bool>,
    heading: Option<bool>,
    before: usize,
    after: usize,
    max_count: Option<usize>,
    max_depth: Option<usize>,
    hidden: bool,
    no_ignore: bool,
    text: bool,
    column: bool,
    null: bool,
    silent: bool,
    globs: Vec<Filter>,
    types: Vec<Vec<u8>>,
    not_types: Vec<Vec<u8>>,
    replace: Option<Vec<u8>>,
}

struct Run<'a> {
    options: &'a Options,
    regex: Option<&'a Regex>,
    out: Out,
    matched: bool,
    errors: bool,
    names: bool,
    numbers: bool,
    heading: bool,
    printed: bool,
}

/// `rg`.
#[expect(clippy::too_many_lines, reason = "one arm per option")]
pub fn rg(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let items = match SPEC.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("rg: {message}");
            return 2;
        }
    };
    let mut options = Options::default();
    let (mut patterns, mut operands): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    let (mut ignore_case, mut smart, mut fixed, mut around, mut files) = (false, false, false, Around::Nothing, false);
    let mut unrestricted = 0;
    for item in items {
        let (letter, value) = match item {
            Item::Operand(operand) => {
                operands.push(operand);
                continue;
            }
            Item::Opt(letter, value) => (letter, value.unwrap_or_default()),
        };
        let size = number::size(&value);
        if size.is_none() && matches!(letter, 'A' | 'B' | 'C' | 'd' | 'm') {
            warn!("rg: error parsing flag -{letter}: value is not a valid number: '{}'", show(&value));
            return 2;
        }
        let number = || size.unwrap_or(0);
        match letter {
            'A' => options.after = number(),
            'B' => options.before = number(),
            'C' => (options.before, options.after) = (number(), number()),
            'c' => options.count = true,
            '\u{2}' => options.count_matches = true,
            'd' => options.max_depth = Some(number()),
            'e' => patterns.push(value),
            'f' => match io::read_all(&value) {
                Ok(text) => patterns.extend(crate::text::diff::lines(&text).into_iter().map(<[u8]>::to_vec)),
                Err(error) => {
                    warn!("rg: {}: {}", show(&value), described(&error));
                    return 2;
                }
            },
            'F' => fixed = true,
            'g' => options.globs.push(Filter::new(&value)),
            'H' => options.filename = Some(true),
            'I' => options.filename = Some(false),
            'i' => ignore_case = true,
            's' => (ignore_case, smart) = (false, false),
            'S' => smart = true,
            'l' => options.files_with = true,
            '\u{4}' => options.files_without = true,
            'm' => options.max_count = Some(number()),
            'n' => options.line_number = Some(true),
            'N' => options.line_number = Some(false),
            'o' => options.only_matching = true,
            'q' => options.quiet = true,
            'r' => options.replace = Some(value),
            't' => options.types.push(value),
            'T' => options.not_types.push(value),
            'u' => unrestricted += 1,
            'v' => options.invert = true,
            'w' => around = Around::Word,
            'x' => around = Around::Line,
            '0' => options.null = true,
            'a' => options.text = true,
            '.' => options.hidden = true,
            '\u{3}' => files = true,
            '\u{5}' => options.heading = Some(true),
            '\u{6}' => options.heading = Some(false),
            '\u{7}' => options.no_ignore = true,
            '\u{8}' => options.silent = true,
            '\u{9}' => {
                (options.column, options.line_number, options.filename, options.heading) =
                    (true, Some(true), Some(true), Some(false))
            }
            'V' => {
                let mut out = Out::new("rg", 2);
                out.put(b"ripgrep 14.1.0\n");
                out.flush();
                return 0;
            }
            _ => {}
        }
    }
    options.no_ignore |= unrestricted > 0;
    options.hidden |= unrestricted > 1;
    options.text |= unrestricted > 2;
    for name in options.types.iter().chain(&options.not_types) {
        if ignore::type_globs(&show(name)).is_empty() {
            warn!("rg: unrecognized file type: {}", show(name));
            return 2;
        }
    }
    if !files && patterns.is_empty() {
        if operands.is_empty() {
            warn!("rg: ripgrep requires at least one pattern to execute a search");
            return 2;
        }
        patterns.push(operands.remove(0));
    }
    if smart && !patterns.iter().any(|pattern| show(pattern).chars().any(char::is_uppercase)) {
        ignore_case = true;
    }
    let regex = if files {
        None
    } else {
        let joined =
            patterns.iter().map(|pattern| if fixed { posix_regex::escape(&show(pattern)) } else { show(pattern).into_owned() });
        let joined = joined
            .map(|pattern| if patterns.len() > 1 { format!("(?:{pattern})") } else { pattern })
            .collect::<Vec<_>>()
            .join("|");
        match Regex::perl(joined.as_bytes(), ignore_case, around) {
            Ok(regex) => Some(regex),
            Err(message) => {
                warn!("rg: regex parse error:\n    {joined}\nerror: {message}");
                return 2;
            }
        }
    };
    let terminal = std::io::stdout().is_terminal();
    let implied = operands.is_empty();
    let stdin =
        implied && !files && !std::io::stdin().is_terminal() && sys::fstat(0).is_ok_and(|stat| stat.kind() != sys::stat::S_IFCHR);
    let single = stdin || operands.len() == 1 && fs::metadata(io::path(&operands[0])).is_ok_and(|data| data.is_file());
    let mut run = Run {
        options: &options,
        regex: regex.as_ref(),
        out: Out::new("rg", 2),
        matched: false,
        errors: false,
        names: options.filename.unwrap_or(!single),
        numbers: options.line_number.unwrap_or(terminal),
        heading: options.heading.unwrap_or(terminal),
        printed: false,
    };
    if stdin {
        run.standard_input();
    } else {
        if implied {
            operands.push(b".".to_vec());
        }
        for operand in &operands {
            run.operand(operand, implied);
        }
    }
    run.out.flush();
    match (run.matched, run.errors) {
        (true, false) => 0,
        (true, true) if options.quiet => 0,
        (_, true) => 2,
        (false, false) => 1,
    }
}

/// What went wrong, with its number as ripgrep shows it.
fn described(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => format!("{} (os error {number})", sys::message(error)),
        None => sys::message(error),
    }
}

impl Run<'_> {
    fn standard_input(&mut self) {
        match io::read_all(b"-") {
            Ok(text) => self.content(b"<stdin>", &text),
            Err(error) => self.trouble(b"<stdin>", &described(&error)),
        }
    }

    fn trouble(&mut self, name: &[u8], reason: &str) {
        self.errors = true;
        if !self.options.silent {
            self.out.flush();
            warn!("rg: {}: {reason}", show(name));
        }
    }

    fn operand(&mut self, operand: &[u8], implied: bool) {
        if operand == b"-" {
            return self.standard_input();
        }
        match fs::metadata(io::path(operand)) {
            Ok(data) if data.is_dir() => {
                let mut rules = ignore::Rules::default();
                let prefix = if implied { Vec::new() } else { operand.to_vec() };
                self.directory(operand, &prefix, 1, &mut rules);
            }
            Ok(_) => self.file(operand, operand),
            Err(error) => self.trouble(operand, &format!("{} (os error 2)", sys::message(&error))),
        }
    }

    fn directory(&mut self, directory: &[u8], shown: &[u8], depth: usize, rules: &mut ignore::Rules) {
        if self.options.max_depth.is_some_and(|most| depth > most) {
            return;
        }
        let added = if self.options.no_ignore { 0 } else { rules.enter(directory) };
        let mut names: Vec<(Vec<u8>, bool)> = Vec::new();
        match fs::read_dir(io::path(directory)) {
            Ok(children) => {
                for child in children {
                    match child.and_then(|child| Ok((child.file_type()?, child))) {
                        Ok((kind, _)) if kind.is_symlink() => {}
                        Ok((kind, child)) => names.push((child.file_name().into_encoded_bytes(), kind.is_dir())),
                        Err(error) => self.trouble(directory, &described(&error)),
                    }
                }
            }
            Err(error) => self.trouble(directory, &described(&error)),
        }
        names.sort();
        for (name, is_dir) in names {
            if name.starts_with(b".") && !self.options.hidden || name == b".git" && !self.options.no_ignore {
                continue;
            }
            let join = |base: &[u8]| {
                if base.is_empty() {
                    name.clone()
                } else {
                    [base, if base.ends_with(b"/") { b"" } else { &b"/"[..] }, &name].concat()
                }
            };
            let (path, label) = (join(directory), join(shown));
            if !self.options.no_ignore && rules.ignored(&path, is_dir) {
                continue;
            }
            if is_dir {
                if !self.excluded_directory(&name, &label) {
                    self.directory(&path, &label, depth + 1, rules);
                }
            } else if self.wanted(&name, &label) {
                self.file(&path, &label);
            }
            if self.options.quiet && self.matched {
                break;
            }
        }
        rules.leave(added);
    }

    fn excluded_directory(&self, name: &[u8], label: &[u8]) -> bool {
        self.options.globs.iter().any(|filter| !filter.include && filter.directories.matches(name, label))
    }

    fn wanted(&self, name: &[u8], label: &[u8]) -> bool {
        let of_type = |kind: &Vec<u8>| {
            let globs = ignore::type_globs(&show(kind));
            globs.iter().any(|glob| fnmatch(glob.as_bytes(), name, pattern::Options::default()))
        };
        if !self.options.types.is_empty() && !self.options.types.iter().any(of_type) || self.options.not_types.iter().any(of_type)
        {
            return false;
        }
        let mut wanted = !self.options.globs.iter().any(|filter| filter.include);
        for filter in &self.options.globs {
            if filter.files.matches(name, label) {
                wanted = filter.include;
            }
        }
        wanted
    }

    fn file(&mut self, path: &[u8], label: &[u8]) {
        if self.regex.is_none() {
            self.matched = true;
            self.out.put(label);
            return self.out.byte(if self.options.null { 0 } else { b'\n' });
        }
        match fs::read(io::path(path)) {
            Ok(content) => self.content(label, &content),
            Err(error) => {
                self.errors = true;
                if !self.options.silent {
                    self.out.flush();
                    warn!("rg: {}: {}", show(path), sys::message(&error));
                }
            }
        }
    }

    fn content(&mut self, label: &[u8], content: &[u8]) {
        let Some(regex) = self.regex else { return };
        let options = self.options;
        let binary = !options.text && memchr::memchr(0, content).is_some();
        let lines = crate::text::diff::lines(content);
        let mut selected: Vec<usize> = Vec::new();
        let mut matches = 0;
        for (index, line) in lines.iter().enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if regex.is_match(line) != options.invert {
                selected.push(index);
                if options.count_matches {
                    matches += regex.matches(line).len();
                }
                if options.max_count == Some(selected.len()) || options.quiet || options.files_with || binary && !options.count {
                    break;
                }
            }
        }
        self.matched |= selected.is_empty() == options.files_without && (!options.files_without || selected.is_empty());
        if options.quiet {
            return;
        }
        let end = if options.null { 0 } else { b'\n' };
        if options.files_with || options.files_without {
            if selected.is_empty() == options.files_without {
                self.out.put(label);
                self.out.byte(end);
            }
            return;
        }
        if selected.is_empty() {
            return;
        }
        if options.count || options.count_matches {
            if self.names {
                self.out.put(label);
                self.out.byte(if options.null { 0 } else { b':' });
            }
            self.out.number(if options.count_matches { matches } else { selected.len() } as u64);
            return self.out.byte(b'\n');
        }
        if binary {
            let offset = memchr::memchr(0, content).unwrap_or(0);
            let name = if self.names { format!("{}: ", show(label)) } else { String::new() };
            return self.out.put(format!("{name}binary file matches (found \"\\0\" byte around offset {offset})\n").as_bytes());
        }
        self.print(label, &lines, &selected, regex);
    }

    fn print(&mut self, label: &[u8], lines: &[&[u8]], selected: &[usize], regex: &Regex) {
        let options = self.options;
        if self.heading && self.names {
            if self.printed {
                self.out.byte(b'\n');
            }
            self.out.put(label);
            self.out.byte(b'\n');
        }
        let context = options.before > 0 || options.after > 0;
        if context && self.printed && !self.heading {
            self.out.put(b"--\n");
        }
        let mut next = 0;
        for (order, &index) in selected.iter().enumerate() {
            let start = index.saturating_sub(options.before).max(next);
            if context && order > 0 && start > next {
                self.out.put(b"--\n");
            }
            for (before, line) in lines.iter().enumerate().take(index).skip(start) {
                self.line(label, before, b'-', line, None);
            }
            self.selected_line(label, index, lines[index], regex);
            let limit = selected.get(order + 1).copied().unwrap_or(lines.len());
            let stop = (index + 1 + options.after).min(limit).min(lines.len());
            for (after, line) in lines.iter().enumerate().take(stop).skip(index + 1) {
                self.line(label, after, b'-', line, None);
            }
            next = stop;
        }
        self.printed = true;
    }

    fn selected_line(&mut self, label: &[u8], index: usize, line: &[u8], regex: &Regex) {
        let options = self.options;
        if options.only_matching && !options.invert {
            for (from, to) in regex.matches(line) {
                let text = match &options.replace {
                    Some(with) => replaced(regex, &line[from..to], with),
                    None => line[from..to].to_vec(),
                };
                self.line(label, index, b':', &text, Some(from + 1));
            }
            return;
        }
        match &options.replace {
            Some(with) => {
                let text = replaced(regex, line, with);
                self.line(label, index, b':', &text, None);
            }
            None => {
                let column = if options.column { regex.find_at(line, 0).map(|span| span.0 + 1) } else { None };
                self.line(label, index, b':', line, column);
            }
        }
    }

    fn line(&mut self, label: &[u8], index: usize, mark: u8, text: &[u8], column: Option<usize>) {
        if self.names && !self.heading {
            self.out.put(label);
            self.out.byte(if self.options.null { 0 } else { mark });
        }
        if self.numbers {
            self.out.number(index as u64 + 1);
            self.out.byte(mark);
        }
        if let Some(column) = column.filter(|_| self.options.column) {
            self.out.number(column as u64);
            self.out.byte(mark);
        }
        self.out.put(text);
        self.out.byte(b'\n');
    }
}

fn replaced(regex: &Regex, line: &[u8], with: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut at, mut spans) = (0, Vec::new());
    while at <= line.len() && regex.captures_at(line, at, &mut spans) {
        let Some((from, to)) = spans[0] else { break };
        out.extend_from_slice(&line[at..from]);
        let mut rest = with;
        while let Some(&byte) = rest.first() {
            rest = &rest[1..];
            match (byte, rest.first()) {
                (b'$', Some(digit @ b'0'..=b'9')) => {
                    if let Some((start, end)) = spans.get(usize::from(digit - b'0')).copied().flatten() {
                        out.extend_from_slice(&line[start..end]);
                    }
                    rest = &rest[1..];
                }
                _ => out.push(byte),
            }
        }
        if to == from {
            if to < line.len() {
                out.push(line[to]);
            }
            at = to + 1;
        } else {
            at = to;
        }
    }
    out.extend_from_slice(&line[at.min(line.len())..]);
    out
}
