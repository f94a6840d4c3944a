//! `xargs`: words of the input become arguments of commands, several at a time if asked.

use std::ffi::OsString;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;
use sys::{Action, WaitStatus};

use crate::command;
use crate::io::{self, show};

const LONG: &[Long] = &[
    ("arg-file", Value::Needs, 'a'),
    ("delimiter", Value::Needs, 'd'),
    ("eof", Value::May, 'e'),
    ("exit", Value::No, 'x'),
    ("help", Value::No, '\u{1}'),
    ("interactive", Value::No, 'p'),
    ("max-args", Value::Needs, 'n'),
    ("max-chars", Value::Needs, 's'),
    ("max-lines", Value::May, 'l'),
    ("max-procs", Value::Needs, 'P'),
    ("no-run-if-empty", Value::No, 'r'),
    ("null", Value::No, '0'),
    ("open-tty", Value::No, 'o'),
    ("process-slot-var", Value::Needs, '\u{2}'),
    ("replace", Value::May, 'i'),
    ("show-limits", Value::No, '\u{3}'),
    ("verbose", Value::No, 't'),
    ("version", Value::No, '\u{4}'),
];

const SPEC: Spec = Spec { short: "+0a:d:E:e::i::I:l::L:n:oprs:txP:", long: LONG };

/// GNU's default limit for the size of a command's arguments.
const MAX_CHARS: usize = 128 * 1024;

struct Options {
    replace: Option<Vec<u8>>,
    max_args: usize,
    max_lines: usize,
    max_chars: usize,
    max_procs: usize,
    exit_if_too_long: bool,
    no_run_if_empty: bool,
    verbose: bool,
    ask: bool,
    delimiter: Option<u8>,
    eof: Option<Vec<u8>>,
    file: Option<Vec<u8>>,
    command: Vec<Vec<u8>>,
}

/// One argument, and whether a line ended after it.
struct Word {
    text: Vec<u8>,
    ends_line: bool,
}

/// Runs `xargs`.
pub fn xargs(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let options = match SPEC.parse(&args[1..]).map_err(usage).and_then(configure) {
        Ok(options) => options,
        Err(status) => return status,
    };
    let input = options.file.clone().unwrap_or_else(|| b"-".to_vec());
    let text = match io::read_all(&input) {
        Ok(text) => text,
        Err(error) => {
            warn!("xargs: Cannot open input file ‘{}’: {}", show(&input), sys::message(&error));
            return 1;
        }
    };
    let (words, broken) = match (&options.delimiter, &options.replace) {
        (Some(delimiter), _) => (delimited(&text, *delimiter), None),
        (None, Some(_)) => quoted(&text, true, options.eof.as_deref()),
        (None, None) => quoted(&text, false, options.eof.as_deref()),
    };
    let mut run = Run { options: &options, running: Vec::new(), status: 0, null: None, stop: false };
    let finished = if options.replace.is_some() { run.each(&words) } else { run.grouped(&words, broken.is_some()) };
    run.wait_for_all();
    if let Some(message) = broken {
        warn!("xargs: {message}");
        return 1;
    }
    finished.err().unwrap_or(run.status)
}

fn usage(message: String) -> i32 {
    warn!("xargs: {message}\nTry 'xargs --help' for more information.");
    1
}

fn configure(items: Vec<Item>) -> Result<Options, i32> {
    let mut options = Options {
        replace: None,
        max_args: usize::MAX,
        max_lines: usize::MAX,
        max_chars: MAX_CHARS,
        max_procs: 1,
        exit_if_too_long: false,
        no_run_if_empty: false,
        verbose: false,
        ask: false,
        delimiter: None,
        eof: None,
        file: None,
        command: Vec::new(),
    };
    for item in items {
        let (letter, value) = match item {
            Item::Operand(word) => {
                options.command.push(word);
                continue;
            }
            Item::Opt(letter, value) => (letter, value),
        };
        let number = |least: usize| {
            let text = value.clone().unwrap_or_else(|| b"1".to_vec());
            match number::parse::<i64>(&text) {
                Some(number) if number >= least as i64 => Ok(number::saturated(number)),
                Some(_) => {
                    warn!("xargs: value {} for -{letter} option should be >= {least}", show(&text));
                    warn!("Try 'xargs --help' for more information.");
                    Err(1)
                }
                None => {
                    warn!("xargs: invalid number \"{}\" for -{letter} option", show(&text));
                    warn!("Try 'xargs --help' for more information.");
                    Err(1)
                }
            }
        };
        match letter {
            '0' => options.delimiter = Some(0),
            'a' => options.file = value,
            'd' => options.delimiter = Some(delimiter(&value.unwrap_or_default())?),
            'E' | 'e' => options.eof = value.filter(|word| !word.is_empty()),
            'I' | 'i' => {
                options.replace = Some(value.unwrap_or_else(|| b"{}".to_vec()));
                options.exit_if_too_long = true;
                if options.max_args != usize::MAX {
                    warn!(
                        "xargs: warning: options --max-args and --replace/-I/-i are mutually exclusive, ignoring previous --max-args value"
                    );
                }
                if options.max_lines != usize::MAX {
                    warn!(
                        "xargs: warning: options --max-lines and --replace/-I/-i are mutually exclusive, ignoring previous --max-lines value"
                    );
                }
                (options.max_args, options.max_lines) = (usize::MAX, usize::MAX);
            }
            'l' | 'L' => {
                options.max_lines = number(1)?;
                options.max_args = usize::MAX;
                options.replace = None;
            }
            'n' => {
                options.max_args = number(1)?;
                options.max_lines = usize::MAX;
                options.replace = None;
            }
            'P' => {
                let count = number(0)?;
                options.max_procs = if count == 0 { usize::MAX } else { count };
            }
            's' => options.max_chars = number(1)?.min(MAX_CHARS),
            'r' => options.no_run_if_empty = true,
            't' => options.verbose = true,
            'p' => (options.ask, options.verbose) = (true, true),
            'x' => options.exit_if_too_long = true,
            '\u{1}' => {
                let mut out = io::Out::new("xargs", 1);
                out.put(b"Usage: xargs [OPTION]... COMMAND [INITIAL-ARGS]...\nRun COMMAND with arguments INITIAL-ARGS and more arguments read from input.\n");
                out.flush();
                return Err(0);
            }
            '\u{4}' => {
                let mut out = io::Out::new("xargs", 1);
                out.put(b"xargs (GNU findutils) 4.9.0\n");
                out.flush();
                return Err(0);
            }
            _ => {}
        }
    }
    if options.command.is_empty() {
        options.command.push(b"echo".to_vec());
    }
    Ok(options)
}

fn delimiter(text: &[u8]) -> Result<u8, i32> {
    let byte = match text {
        [byte] => Some(*byte),
        [b'\\', rest @ ..] => match rest {
            [b'n'] => Some(b'\n'),
            [b't'] => Some(b'\t'),
            [b'0'] => Some(0),
            [b'\\'] => Some(b'\\'),
            [b'a'] => Some(7),
            [b'b'] => Some(8),
            [b'f'] => Some(12),
            [b'r'] => Some(b'\r'),
            [b'v'] => Some(11),
            [b'x', hex @ ..] => u8::from_str_radix(&show(hex), 16).ok(),
            octal => u8::from_str_radix(&show(octal), 8).ok(),
        },
        _ => None,
    };
    byte.ok_or_else(|| {
        warn!("xargs: Invalid input delimiter specification {}: the delimiter must be either a single character or an escape sequence starting with \\.", show(text));
        1
    })
}

fn delimited(text: &[u8], delimiter: u8) -> Vec<Word> {
    let mut words: Vec<Word> =
        text.split(|&byte| byte == delimiter).map(|word| Word { text: word.to_vec(), ends_line: true }).collect();
    if words.last().is_some_and(|last| last.text.is_empty()) {
        words.pop();
    }
    words
}

/// Words with quotes and backslashes; whole lines for `-I`. The second value is the error in the rest.
fn quoted(text: &[u8], lines: bool, eof: Option<&[u8]>) -> (Vec<Word>, Option<String>) {
    let mut words: Vec<Word> = Vec::new();
    let mut current: Option<Vec<u8>> = None;
    let mut at = 0;
    let mut last_blank = false;
    while at <= text.len() {
        let byte = text.get(at).copied();
        at += 1;
        let blank = matches!(byte, Some(b' ' | b'\t' | 11 | 12 | b'\r'));
        match byte {
            None | Some(b'\n') => {
                if let Some(word) = current.take() {
                    if eof == Some(word.as_slice()) {
                        return (words, None);
                    }
                    words.push(Word { text: word, ends_line: true });
                } else if let Some(last) = words.last_mut() {
                    last.ends_line |= !last_blank || byte.is_none();
                }
                last_blank = false;
                continue;
            }
            Some(_) if blank && (!lines || current.is_none()) => {
                if let Some(word) = current.take() {
                    if eof == Some(word.as_slice()) {
                        return (words, None);
                    }
                    words.push(Word { text: word, ends_line: false });
                }
                last_blank = true;
                continue;
            }
            Some(quote @ (b'\'' | b'"')) => {
                let word = current.get_or_insert_default();
                loop {
                    match text.get(at) {
                        Some(&byte) if byte == quote => break,
                        Some(b'\n') | None => {
                            let kind = if quote == b'"' { "double" } else { "single" };
                            let message = format!(
                                "unmatched {kind} quote; by default quotes are special to xargs unless you use the -0 option"
                            );
                            return (words, Some(message));
                        }
                        Some(&byte) => word.push(byte),
                    }
                    at += 1;
                }
                at += 1;
            }
            Some(b'\\') => {
                let word = current.get_or_insert_default();
                if let Some(&next) = text.get(at) {
                    word.push(next);
                    at += 1;
                }
            }
            Some(byte) => current.get_or_insert_default().push(byte),
        }
        last_blank = false;
    }
    (words, None)
}

struct Run<'a> {
    options: &'a Options,
    running: Vec<u32>,
    status: i32,
    null: Option<u32>,
    stop: bool,
}

impl Run<'_> {
    /// Runs `-I`: one command for each line.
    fn each(&mut self, words: &[Word]) -> Result<(), i32> {
        let options = self.options;
        let mark = options.replace.clone().unwrap_or_default();
        for word in words {
            let args: Vec<Vec<u8>> = options.command.iter().map(|arg| replace(arg, &mark, &word.text)).collect();
            if args.iter().map(|arg| arg.len() + 1).sum::<usize>() > options.max_chars {
                warn!("xargs: argument list too long");
                return Err(1);
            }
            self.start(&args)?;
        }
        Ok(())
    }

    fn grouped(&mut self, words: &[Word], broken: bool) -> Result<(), i32> {
        let options = self.options;
        if words.is_empty() {
            if options.no_run_if_empty || broken {
                return Ok(());
            }
            return self.start(&options.command);
        }
        let base: usize = options.command.iter().map(|arg| arg.len() + 1).sum();
        let mut args = options.command.clone();
        let (mut count, mut lines, mut size) = (0, 0, base);
        for word in words {
            let length = word.text.len() + 1;
            if size + length > options.max_chars {
                if count == 0 || options.exit_if_too_long {
                    warn!("xargs: argument line too long");
                    return Err(1);
                }
                self.start(&args)?;
                args.truncate(options.command.len());
                (count, lines, size) = (0, 0, base);
            }
            args.push(word.text.clone());
            count += 1;
            size += length;
            lines += usize::from(word.ends_line);
            if count == options.max_args || lines == options.max_lines {
                self.start(&args)?;
                args.truncate(options.command.len());
                (count, lines, size) = (0, 0, base);
            }
        }
        if count > 0 { self.start(&args) } else { Ok(()) }
    }

    fn start(&mut self, args: &[Vec<u8>]) -> Result<(), i32> {
        if self.options.verbose {
            let line: Vec<_> = args.iter().map(|arg| shell_quoted(arg)).collect();
            let end = if self.options.ask { "?..." } else { "\n" };
            let _ = sys::write_all(2, format!("{}{end}", line.join(" ")).as_bytes());
        }
        if self.options.ask {
            return Ok(());
        }
        while self.running.len() >= self.options.max_procs {
            self.wait_for_one();
        }
        if self.stop {
            return Err(self.status);
        }
        let mut actions = Vec::new();
        if self.options.file.is_none() {
            if self.null.is_none() {
                let flags = sys::OpenFlags { read: true, ..sys::OpenFlags::default() };
                self.null = sys::open(&io::path(b"/dev/null"), flags, 0).ok();
            }
            actions.extend(self.null.map(|null| Action::Dup { from: null, fd: 0 }));
            actions.extend(self.null.map(|null| Action::Close { fd: null }));
        }
        match command::spawn(args, actions, None) {
            Ok(pid) => self.running.push(pid),
            Err(error) => {
                warn!("xargs: {}: {}", show(&args[0]), sys::message(&error));
                self.status = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
                return Err(self.status);
            }
        }
        if self.options.max_procs == 1 {
            self.wait_for_one();
            if self.stop {
                return Err(self.status);
            }
        }
        Ok(())
    }

    fn wait_for_one(&mut self) {
        let pid = if let [only] = self.running.as_slice() { only.cast_signed() } else { -1 };
        loop {
            match sys::wait(pid, 0) {
                Ok(Some(ended)) => {
                    self.running.retain(|running| *running != ended.pid);
                    return self.note(ended.status);
                }
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                    self.running.clear();
                    return;
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, status: WaitStatus) {
        let name = show(&self.options.command[0]).into_owned();
        match status {
            WaitStatus::Exited(0) => {}
            WaitStatus::Exited(255) => {
                warn!("xargs: {name}: exited with status 255; aborting");
                self.status = 124;
                self.stop = true;
            }
            WaitStatus::Exited(126 | 127) if self.status == 0 => self.status = 123,
            WaitStatus::Exited(_) => self.status = if self.status == 0 { 123 } else { self.status },
            WaitStatus::Signaled(signal) => {
                warn!("xargs: {name}: terminated by signal {}", signal.number());
                self.status = 125;
                self.stop = true;
            }
        }
    }

    fn wait_for_all(&mut self) {
        while !self.running.is_empty() {
            self.wait_for_one();
        }
    }
}

fn replace(template: &[u8], mark: &[u8], with: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = template;
    while let Some(at) = memchr::memmem::find(rest, mark).filter(|_| !mark.is_empty()) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(with);
        rest = &rest[at + mark.len()..];
    }
    out.extend_from_slice(rest);
    out
}

fn shell_quoted(arg: &[u8]) -> String {
    let text = show(arg);
    let plain = !text.is_empty() && text.chars().all(|char| char.is_alphanumeric() || "_-./:=@%+,".contains(char));
    if plain { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
