//! The terminal. No other file prints.
//!
//! A guest's names and output may contain anything, so all untrusted text is sanitized before it reaches a terminal (T-ISO-07).

mod tame;

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runtime::{Cancel, LimitReached, Stream};
use serde_json::json;

use crate::progress::Progress;
pub(crate) use tame::{Tamer, is_deceptive, shown};

/// Prints for a person or for a program.
#[derive(Clone, Debug)]
pub(crate) struct Printer {
    json: bool,
    verbose: bool,
    stdout: Sink,
    stderr: Sink,
    progress: Progress,
    unread: Arc<AtomicBool>,
}

/// The destination of one of our streams.
#[derive(Clone, Copy, Debug)]
struct Sink {
    is_terminal: bool,
    colour: bool,
}

impl Sink {
    fn new(is_terminal: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { is_terminal, colour: is_terminal && !plain && !dumb }
    }

    // The last line of defense: sanitizes text that was not sanitized before.
    fn walled(self, text: &str) -> Cow<'_, str> {
        if self.is_terminal { tame::wall(text).into() } else { text.into() }
    }

    fn paint(self, colour: Colour, text: impl Display) -> String {
        if self.colour { format!("\x1b[{}m{text}\x1b[0m", colour.code()) } else { text.to_string() }
    }
}

/// The few colors in use; the text is complete without them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Colour {
    /// Errors.
    Red,
    /// Success.
    Green,
    /// Warnings.
    Yellow,
    /// Names and places.
    Blue,
    /// Hints.
    Cyan,
    /// Details.
    Dim,
    /// Headings.
    Bold,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Red => "1;31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "1;34",
            Self::Cyan => "36",
            Self::Dim => "2",
            Self::Bold => "1",
        }
    }
}

impl Printer {
    /// Creates a printer that prints JSON objects instead of text if `json`, and progress details if `verbose`.
    pub(crate) fn new(json: bool, verbose: bool) -> Self {
        let (stdout, stderr) = (Sink::new(io::stdout().is_terminal()), Sink::new(io::stderr().is_terminal()));
        Self { json, verbose, stdout, stderr, progress: Progress::new(stderr.is_terminal && !json), unread: Arc::default() }
    }

    /// Returns whether results are printed as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Returns the progress indicator.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Prints one JSON value.
    pub(crate) fn json(&self, value: &serde_json::Value) {
        self.line(&tame::json(&value.to_string()));
    }

    /// Prints a line of a result.
    pub(crate) fn line(&self, line: &str) {
        let _ = writeln!(self.out(), "{}", self.stdout.walled(line));
    }

    /// Prints bytes of a result, sanitized on a terminal.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut tamer = Tamer::new(self.stdout.is_terminal);
        let mut out = self.out();
        out.write_all(&tamer.tame(bytes))?;
        out.write_all(&tamer.finish())?;
        out.flush()
    }

    /// Returns our standard output for unmodified bytes, which other programs read.
    pub(crate) fn out(&self) -> Out<'_> {
        self.progress.clear();
        Out { unread: &self.unread, stdout: io::stdout().lock() }
    }

    /// Returns whether results go to a terminal, where untrusted text is sanitized.
    pub(crate) fn tames(&self) -> bool {
        self.stdout.is_terminal
    }

    /// Returns untrusted text for display with results: on a terminal, one sanitized line.
    pub(crate) fn foreign<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.stdout.is_terminal { tame::line(text).into() } else { text.into() }
    }

    /// Colors text of a result, if colors are enabled.
    pub(crate) fn paint(&self, colour: Colour, text: impl Display) -> String {
        self.stdout.paint(colour, text)
    }

    /// Returns whether the reader of our output has closed it.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Acquire)
    }

    /// Returns whether results are colored.
    pub(crate) fn has_colour(&self) -> bool {
        self.stdout.colour
    }

    /// Prints a note that is not part of a result.
    pub(crate) fn note(&self, what: impl Display) {
        self.progress.clear();
        let _ = writeln!(io::stderr(), "{}", self.stderr.walled(&self.stderr.paint(Colour::Dim, what)));
    }

    /// Prints a progress detail if `verbose`.
    pub(crate) fn verbose(&self, what: impl Display) {
        if self.verbose {
            self.note(what);
        }
    }

    /// Prints an error with its causes and its hint.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        // After `sandlite … | head` closes the pipe, there is no error to report.
        if self.is_unread() {
            return;
        }
        let known = error.chain().find_map(|cause| cause.downcast_ref::<runtime::Error>());
        let hint = error.downcast_ref::<Hinted>().map(|hinted| hinted.hint.clone());
        let hint = hint.or_else(|| known.and_then(runtime::Error::hint));
        // The error itself is printed before them.
        let causes = runtime::causes(AsRef::<dyn std::error::Error>::as_ref(error)).split_off(1);
        if self.json {
            self.json(&json!({ "error": error.to_string(), "causes": causes, "hint": hint }));
            return;
        }
        self.progress.clear();
        let tamed = |text: &str| if self.stderr.is_terminal { tame::line(text) } else { text.to_owned() };
        let mut stderr = io::stderr();
        let _ = writeln!(stderr, "{} {}", self.stderr.paint(Colour::Red, "error:"), tamed(&error.to_string()));
        for cause in causes {
            let _ = writeln!(stderr, "  caused by: {}", tamed(&cause));
        }
        if let Some(hint) = hint {
            self.hint(&hint);
        }
    }

    /// Prints a hint.
    pub(crate) fn hint(&self, hint: &str) {
        let _ = writeln!(io::stderr(), "{} {}", self.stderr.paint(Colour::Cyan, "hint:"), self.stderr.walled(hint));
    }

    /// Reports that a limit ended a command.
    pub(crate) fn limit(&self, reached: &LimitReached) {
        self.progress.clear();
        let reached_text = reached.to_string();
        let _ = writeln!(io::stderr(), "{} {}", self.stderr.paint(Colour::Red, "error:"), self.stderr.walled(&reached_text));
        self.hint(reached.hint());
    }

    /// Streams a guest's output byte for byte, sanitized on a terminal unless `raw`. When the reader closes our output, the
    /// command is ended, as a native program would be.
    pub(crate) fn pass_on(&self, stream: Stream, raw: bool, cancel: Cancel) -> impl FnMut(&[u8]) + Send + 'static {
        let (progress, unread) = (self.progress.clone(), Arc::clone(&self.unread));
        let sink = match stream {
            Stream::Stdout => self.stdout,
            Stream::Stderr => self.stderr,
        };
        let mut tamer = Tamer::new(sink.is_terminal && !raw);
        move |bytes| {
            progress.clear();
            let tamed = tamer.tame(bytes);
            let written = match stream {
                Stream::Stdout => io::stdout().write_all(&tamed).and_then(|()| io::stdout().flush()),
                Stream::Stderr => io::stderr().write_all(&tamed),
            };
            if written.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                unread.store(true, Ordering::Release);
                cancel.kill();
            }
        }
    }
}

/// Our standard output, which detects that its reader has closed it.
pub(crate) struct Out<'a> {
    unread: &'a AtomicBool,
    stdout: io::StdoutLock<'static>,
}

impl Out<'_> {
    fn noticed<T>(&self, written: io::Result<T>) -> io::Result<T> {
        written.inspect_err(|error| {
            if error.kind() == io::ErrorKind::BrokenPipe {
                self.unread.store(true, Ordering::Release);
            }
        })
    }
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stdout.write(bytes);
        self.noticed(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stdout.flush();
        self.noticed(flushed)
    }
}

/// Adds output or file content to a JSON object: as text, and also in base64 (`…_base64`) if it is not UTF-8.
pub(crate) fn add_text(object: &mut serde_json::Value, name: &str, bytes: &[u8]) {
    object[name] = String::from_utf8_lossy(bytes).into();
    if std::str::from_utf8(bytes).is_err() {
        object[format!("{name}_base64")] = STANDARD.encode(bytes).into();
    }
}

/// An error of the command line itself, with a hint.
#[derive(Debug)]
pub(crate) struct Hinted {
    message: String,
    hint: String,
}

impl Hinted {
    /// Creates an error with a hint.
    pub(crate) fn error(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self { message: message.into(), hint: hint.into() })
    }
}

impl Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}
