//! `grep`, `egrep`, `fgrep`: command line, files and directories; `search` looks through one input.

mod search;

use std::ffi::OsString;
use std::fs;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;
use pattern::Fnmatch;
use posix_regex::{Around, Regex, Syntax};

use crate::io::{self, Input, Out, show};

const LONG: &[Long] = &[
    ("after-context", Value::Needs, 'A'),
    ("basic-regexp", Value::No, 'G'),
    ("before-context", Value::Needs, 'B'),
    ("binary", Value::No, 'U'),
    ("binary-files", Value::Needs, '\u{1}'),
    ("byte-offset", Value::No, 'b'),
    ("color", Value::May, '\u{2}'),
    ("colour", Value::May, '\u{2}'),
    ("context", Value::Needs, 'C'),
    ("count", Value::No, 'c'),
    ("dereference-recursive", Value::No, 'R'),
    ("devices", Value::Needs, 'D'),
    ("directories", Value::Needs, 'd'),
    ("exclude", Value::Needs, '\u{3}'),
    ("exclude-dir", Value::Needs, '\u{4}'),
    ("exclude-from", Value::Needs, '\u{5}'),
    ("extended-regexp", Value::No, 'E'),
    ("file", Value::Needs, 'f'),
    ("files-with-matches", Value::No, 'l'),
    ("files-without-match", Value::No, 'L'),
    ("fixed-strings", Value::No, 'F'),
    ("group-separator", Value::Needs, '\u{6}'),
    ("help", Value::No, '\u{7}'),
    ("ignore-case", Value::No, 'i'),
    ("include", Value::Needs, '\u{8}'),
    ("initial-tab", Value::No, 'T'),
    ("invert-match", Value::No, 'v'),
    ("label", Value::Needs, '\u{9}'),
    ("line-buffered", Value::No, '\u{a}'),
    ("line-number", Value::No, 'n'),
    ("line-regexp", Value::No, 'x'),
    ("max-count", Value::Needs, 'm'),
    ("no-filename", Value::No, 'h'),
    ("no-group-separator", Value::No, '\u{b}'),
    ("no-ignore-case", Value::No, '\u{c}'),
    ("no-messages", Value::No, 's'),
    ("null", Value::No, 'Z'),
    ("null-data", Value::No, 'z'),
    ("only-matching", Value::No, 'o'),
    ("perl-regexp", Value::No, 'P'),
    ("quiet", Value::No, 'q'),
    ("recursive", Value::No, 'r'),
    ("regexp", Value::Needs, 'e'),
    ("silent", Value::No, 'q'),
    ("text", Value::No, 'a'),
    ("unix-byte-offsets", Value::No, 'u'),
    ("version", Value::No, 'V'),
    ("with-filename", Value::No, 'H'),
    ("word-regexp", Value::No, 'w'),
];

const SPEC: Spec = Spec { short: "A:B:C:D:EFGHILPRTUVX:Zabcd:e:f:hilm:noqrsuvwxyz0123456789", long: LONG };

const USAGE: &str = "Usage: grep [OPTION]... PATTERNS [FILE]...";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Basic,
    Extended,
    Fixed,
    Perl,
}

/// The treatment of a directory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directories {
    Read,
    Recurse,
    Skip,
}

/// The treatment of a binary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Message,
    Text,
    WithoutMatch,
}

/// The options of the command line.
#[derive(Debug)]
pub(crate) struct Options {
    invert: bool,
    count: bool,
    files_with: bool,
    files_without: bool,
    only_matching: bool,
    quiet: bool,
    no_messages: bool,
    line_number: bool,
    byte_offset: bool,
    with_filename: bool,
    initial_tab: bool,
    null: bool,
    max_count: u64,
    before: usize,
    after: usize,
    separator: Option<Vec<u8>>,
    color: bool,
    eol: u8,
    binary: Binary,
    utf8: bool,
    label: Vec<u8>,
    directories: Directories,
    follow: bool,
    skip_devices: bool,
    filters: Vec<(bool, Fnmatch)>,
    exclude_dirs: Vec<Fnmatch>,
    by_line: bool,
    line_buffered: bool,
}

/// Runs `grep`.
pub fn grep(args: Vec<OsString>) -> i32 {
    run(args, Dialect::Basic)
}

/// Runs `egrep`: `grep -E`.
pub fn egrep(args: Vec<OsString>) -> i32 {
    run(args, Dialect::Extended)
}

/// Runs `fgrep`: `grep -F`.
pub fn fgrep(args: Vec<OsString>) -> i32 {
    run(args, Dialect::Fixed)
}

fn usage(message: Option<String>) -> i32 {
    if let Some(message) = message {
        warn!("grep: {message}");
    }
    warn!("{USAGE}\nTry 'grep --help' for more information.");
    2
}

fn run(args: Vec<OsString>, dialect: Dialect) -> i32 {
    let args = getopt::bytes(args);
    let items = match SPEC.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => return usage(Some(message)),
    };
    match configure(items, dialect) {
        Ok((options, regex, files)) => search_all(options, regex, files),
        Err(status) => status,
    }
}

fn number(value: &[u8], what: &str) -> Result<usize, i32> {
    if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
        return Ok(number::parse(value).unwrap_or(usize::MAX));
    }
    warn!("grep: {}: invalid {what}", show(value));
    Err(2)
}

#[expect(clippy::too_many_lines, reason = "one arm per option")]
fn configure(items: Vec<Item>, mut dialect: Dialect) -> Result<(Options, Regex, Vec<Vec<u8>>), i32> {
    let mut options = Options {
        invert: false,
        count: false,
        files_with: false,
        files_without: false,
        only_matching: false,
        quiet: false,
        no_messages: false,
        line_number: false,
        byte_offset: false,
        with_filename: false,
        initial_tab: false,
        null: false,
        max_count: u64::MAX,
        before: 0,
        after: 0,
        separator: Some(b"--".to_vec()),
        color: false,
        eol: b'\n',
        binary: Binary::Message,
        utf8: common::locale::utf8(),
        label: b"(standard input)".to_vec(),
        directories: Directories::Read,
        follow: false,
        skip_devices: false,
        filters: Vec::new(),
        exclude_dirs: Vec::new(),
        by_line: false,
        line_buffered: false,
    };
    let (mut patterns, mut files): (Option<Vec<u8>>, Vec<Vec<u8>>) = (None, Vec::new());
    let (mut ignore_case, mut word, mut line, mut filename) = (false, false, false, None);
    let (mut context, mut before, mut after, mut digits) = (None, None, None, Vec::new());
    let add = |patterns: &mut Option<Vec<u8>>, more: &[u8]| match patterns {
        Some(all) => {
            all.push(b'\n');
            all.extend_from_slice(more);
        }
        None => *patterns = Some(more.to_vec()),
    };
    for item in items {
        let (letter, value) = match item {
            Item::Operand(file) => {
                files.push(file);
                continue;
            }
            Item::Opt(letter, value) => (letter, value.unwrap_or_default()),
        };
        match letter {
            'A' => after = Some(number(&value, "context length argument")?),
            'B' => before = Some(number(&value, "context length argument")?),
            'C' => context = Some(number(&value, "context length argument")?),
            '0'..='9' => digits.push(letter as u8),
            'E' => dialect = Dialect::Extended,
            'F' => dialect = Dialect::Fixed,
            'G' => dialect = Dialect::Basic,
            'P' => dialect = Dialect::Perl,
            'H' => filename = Some(true),
            'h' => filename = Some(false),
            'I' => options.binary = Binary::WithoutMatch,
            'a' => options.binary = Binary::Text,
            '\u{1}' => match value.as_slice() {
                b"binary" => options.binary = Binary::Message,
                b"text" => options.binary = Binary::Text,
                b"without-match" => options.binary = Binary::WithoutMatch,
                _ => {
                    warn!("grep: invalid argument ‘{}’ for ‘--binary-files’", show(&value));
                    warn!("Valid arguments are:\n  - ‘binary’\n  - ‘text’\n  - ‘without-match’");
                    return Err(usage(None));
                }
            },
            'L' => (options.files_without, options.files_with) = (true, false),
            'l' => (options.files_with, options.files_without) = (true, false),
            'R' => (options.directories, options.follow) = (Directories::Recurse, true),
            'r' => (options.directories, options.follow) = (Directories::Recurse, false),
            'd' => match value.as_slice() {
                b"read" => options.directories = Directories::Read,
                b"recurse" => options.directories = Directories::Recurse,
                b"skip" => options.directories = Directories::Skip,
                _ => {
                    warn!("grep: invalid argument ‘{}’ for ‘--directories’", show(&value));
                    warn!("Valid arguments are:\n  - ‘read’\n  - ‘recurse’\n  - ‘skip’");
                    return Err(usage(None));
                }
            },
            'D' => options.skip_devices = value == b"skip",
            'T' => options.initial_tab = true,
            'V' => {
                let mut out = Out::new("grep", 2);
                out.put(b"grep (Sandlite grep, GNU compatible) 3.8\n");
                out.flush();
                return Err(0);
            }
            'Z' => options.null = true,
            'b' => options.byte_offset = true,
            'c' => options.count = true,
            'e' => add(&mut patterns, &value),
            'f' => match io::read_all(&value) {
                Ok(mut text) => {
                    if text.last() == Some(&b'\n') {
                        text.pop();
                    } else if text.is_empty() {
                        // An empty file holds no pattern at all, which is less than one empty pattern.
                        patterns.get_or_insert_with(|| vec![0]);
                        continue;
                    }
                    add(&mut patterns, &text);
                }
                Err(error) => {
                    warn!("grep: {}: {}", show(&value), sys::message(&error));
                    return Err(2);
                }
            },
            'i' | 'y' => ignore_case = true,
            '\u{c}' => ignore_case = false,
            'm' => {
                let Some(count) = number::parse::<i64>(&value) else {
                    warn!("grep: invalid max count");
                    return Err(2);
                };
                options.max_count = u64::try_from(count).unwrap_or(u64::MAX);
            }
            'n' => options.line_number = true,
            'o' => options.only_matching = true,
            'q' => options.quiet = true,
            's' => options.no_messages = true,
            'v' => options.invert = true,
            'w' => word = true,
            'x' => line = true,
            'z' => options.eol = 0,
            '\u{2}' => match value.as_slice() {
                b"always" | b"yes" | b"force" => options.color = true,
                b"never" | b"no" | b"none" => options.color = false,
                b"auto" | b"tty" | b"if-tty" | b"" => {
                    options.color = std::io::IsTerminal::is_terminal(&std::io::stdout())
                        && io::env("TERM").is_some_and(|term| term != b"dumb");
                }
                _ => return Err(usage(None)),
            },
            '\u{3}' => options.filters.push((false, Fnmatch::new(&value))),
            '\u{8}' => options.filters.push((true, Fnmatch::new(&value))),
            '\u{4}' => {
                let end = value.iter().rposition(|&byte| byte != b'/').map_or(value.len(), |at| at + 1);
                options.exclude_dirs.push(Fnmatch::new(&value[..end]));
            }
            '\u{5}' => match io::read_all(&value) {
                Ok(text) => {
                    let globs = text.split(|&byte| byte == b'\n').filter(|glob| !glob.is_empty());
                    options.filters.extend(globs.map(|glob| (false, Fnmatch::new(glob))));
                }
                Err(error) => {
                    warn!("grep: {}: {}", show(&value), sys::message(&error));
                    return Err(2);
                }
            },
            '\u{6}' => options.separator = Some(value),
            '\u{b}' => options.separator = None,
            '\u{7}' => {
                let mut out = Out::new("grep", 2);
                out.put(USAGE.as_bytes());
                out.put(b"\nSearch for PATTERNS in each FILE.\nExample: grep -i 'hello world' menu.h main.c\n");
                out.flush();
                return Err(0);
            }
            '\u{9}' => options.label = value,
            '\u{a}' => options.line_buffered = true,
            _ => {}
        }
    }
    if !digits.is_empty() {
        context = Some(number(&digits, "context length argument")?);
    }
    options.before = before.or(context).unwrap_or(0);
    options.after = after.or(context).unwrap_or(0);
    let patterns = match patterns {
        Some(patterns) => patterns,
        None if files.is_empty() => return Err(usage(None)),
        None => files.remove(0),
    };
    let nothing = patterns == [0];
    let mut list: Vec<Vec<u8>> = patterns.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    if nothing {
        list.clear();
    }
    list.dedup();
    let around = if line {
        Around::Line
    } else if word {
        Around::Word
    } else {
        Around::Nothing
    };
    let lines = options.eol == b'\n';
    let syntax = Syntax { extended: dialect == Dialect::Extended, ignore_case, lines, utf8: options.utf8, ..Syntax::default() };
    let never = nothing.then(|| vec![b"$.".to_vec()]);
    let regex = match dialect {
        _ if nothing => Regex::any_of(&never.unwrap_or_default(), syntax, Around::Nothing),
        Dialect::Fixed => Regex::literals(&list, syntax, around),
        Dialect::Perl if list.len() > 1 => Err("the -P option only supports a single pattern".to_string()),
        Dialect::Perl => Regex::perl(&list[0], ignore_case, around),
        _ => Regex::any_of(&list, syntax, around),
    };
    let regex = regex.map_err(|message| {
        warn!("grep: {message}");
        2
    })?;
    for warning in regex.warnings() {
        warn!("grep: warning: {warning}");
    }
    options.by_line = !regex.is_automaton() || !lines;
    options.with_filename = filename.unwrap_or(files.len() > 1 || options.directories == Directories::Recurse);
    if options.directories == Directories::Recurse && filename.is_none() && files.len() == 1 {
        options.with_filename = fs::metadata(io::path(&files[0])).is_ok_and(|data| data.is_dir());
    }
    if (options.max_count == 0 || nothing && !options.invert) && !options.files_without {
        return Err(1);
    }
    Ok((options, regex, files))
}

fn search_all(options: Options, regex: Regex, mut files: Vec<Vec<u8>>) -> i32 {
    let recurse = options.directories == Directories::Recurse;
    let implied = files.is_empty();
    if implied {
        files.push(if recurse { b".".to_vec() } else { b"-".to_vec() });
    }
    let mut run = Run { search: search::Search::new(&options, &regex), options: &options, errors: false, selected: false };
    for file in &files {
        run.operand(file, implied && recurse);
        if run.selected && options.quiet {
            return 0;
        }
    }
    run.search.out.flush();
    if run.errors { 2 } else { i32::from(!run.selected) }
}

struct Run<'a> {
    search: search::Search<'a>,
    options: &'a Options,
    errors: bool,
    selected: bool,
}

impl Run<'_> {
    fn fail(&mut self, file: &[u8], error: &std::io::Error) {
        self.errors = true;
        if !self.options.no_messages {
            self.search.out.flush();
            warn!("grep: {}: {}", show(file), sys::message(error));
        }
    }

    fn operand(&mut self, file: &[u8], implied: bool) {
        if file == b"-" {
            // Standard input has no name to leave it out by.
            return self.read(Input::Stdin, &self.options.label.clone());
        }
        let data = match fs::metadata(io::path(file)) {
            Ok(data) => data,
            Err(error) => return self.fail(file, &error),
        };
        if data.is_dir() {
            match self.options.directories {
                Directories::Skip => {}
                Directories::Read => {
                    self.errors = true;
                    if !self.options.no_messages {
                        self.search.out.flush();
                        warn!("grep: {}: Is a directory", show(file));
                    }
                }
                Directories::Recurse => {
                    if implied || !self.excluded_dir(file, true) {
                        self.directory(file, implied);
                    }
                }
            }
        } else if self.wanted(file, true) {
            self.file(file);
        }
    }

    fn file(&mut self, file: &[u8]) {
        match Input::open_file(file) {
            Ok(input) => self.read(input, file),
            Err(error) => self.fail(file, &error),
        }
    }

    fn read(&mut self, input: Input, name: &[u8]) {
        match self.search.input(input, name) {
            Ok(selected) => self.selected |= selected,
            Err(error) => self.fail(name, &error),
        }
    }

    fn directory(&mut self, directory: &[u8], implied: bool) {
        let entries = match fs::read_dir(io::path(directory)) {
            Ok(entries) => entries,
            Err(error) => return self.fail(directory, &error),
        };
        let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().into_encoded_bytes();
            let mut path = if implied { Vec::new() } else { directory.to_vec() };
            if !implied && !path.ends_with(b"/") {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
            let Ok(mut kind) = entry.file_type() else { continue };
            if kind.is_symlink() {
                if !self.options.follow {
                    continue;
                }
                match fs::metadata(io::path(&path)) {
                    Ok(data) => kind = data.file_type(),
                    Err(error) => {
                        self.fail(&path, &error);
                        continue;
                    }
                }
            }
            if kind.is_dir() {
                if !self.excluded_dir(&name, false) {
                    self.directory(&path, false);
                }
            } else if kind.is_file() && self.wanted(&name, false) {
                self.file(&path);
            }
            if self.selected && self.options.quiet {
                return;
            }
        }
    }

    fn excluded_dir(&self, name: &[u8], operand: bool) -> bool {
        self.options.exclude_dirs.iter().any(|pattern| name_matches(pattern, name, operand))
    }

    /// Returns whether `--include` and `--exclude` let a file through: the last one that matches decides.
    fn wanted(&self, name: &[u8], operand: bool) -> bool {
        let mut wanted = self.options.filters.first().is_none_or(|first| !first.0);
        for (include, pattern) in &self.options.filters {
            if name_matches(pattern, name, operand) {
                wanted = *include;
            }
        }
        wanted
    }
}

/// Returns whether a name matches; of an operand, which is a path, also what follows one of its slashes.
fn name_matches(pattern: &Fnmatch, name: &[u8], operand: bool) -> bool {
    if operand { pattern.matches_tail(name) } else { pattern.matches(name) }
}
