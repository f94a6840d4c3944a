//! `read_file`: a window of a file's lines, or of its bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlite_fs::{Content, Reader};

use super::bounded::{Bounded, failed};
use super::write::Encoding;
use super::{Agent, MAX_OUTPUT, text};
use crate::Error;
use crate::vfs::content::{Known, Scan};

/// Lines returned when no number is asked for.
const LINES: u64 = 2000;
/// Longest line that is returned whole.
const LINE_BYTES: usize = 2000;
/// What a line's number takes in an answer.
const NUMBER_BYTES: usize = 8;
/// Most bytes of a byte window.
const MAX_BYTES: u64 = 60_000;

/// Which part of a file to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// The file. Relative paths start in the sandbox's working directory.
    pub path: String,
    /// The first line to return, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// How many lines to return; 2000 unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Read bytes instead of lines, from this offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_offset: Option<u64>,
    /// How many bytes to read, at most 60000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_length: Option<u64>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReadWindow {
    /// The file.
    pub path: String,
    /// The text of the window, or base64 of its bytes.
    pub content: String,
    /// Whether `content` is text or base64.
    pub encoding: Encoding,
    /// The first line of the window; 0 for a window of bytes or an empty one.
    pub start_line: u64,
    /// The last line of the window.
    pub end_line: u64,
    /// Lines in the whole file.
    pub total_lines: u64,
    /// Bytes in the whole file.
    pub size: u64,
    /// The version of the whole file: give it to `write_file` or `edit_file` as `expected_version`.
    pub version: String,
    /// Whether something of the file is not in the window.
    pub truncated: bool,
    /// What else to know: how to read on, line ends, cut lines.
    pub notes: Vec<String>,
}

impl Agent<'_> {
    /// Reads a window of a file.
    ///
    /// # Errors
    ///
    /// When there is no such file, or it is a directory.
    pub fn read(&self, request: &ReadFile) -> Result<ReadWindow, Error> {
        let path = self.absolute(&request.path)?;
        self.reading("read_file", &path, json!({ "path": path }), |files| {
            if request.byte_offset.is_some() || request.byte_length.is_some() {
                read_bytes(files, &path, request)
            } else {
                read_lines(files, &path, request)
            }
        })
    }
}

/// Collects the wanted lines of a file that passes by in pieces.
struct Window {
    first: u64,
    last: u64,
    line: u64,
    /// Bytes of the current line so far.
    column: usize,
    text: Vec<u8>,
    /// Bytes of the answer so far: each line is printed with its number.
    bytes: usize,
    end_line: u64,
    cut_lines: u64,
    full: bool,
    binary: bool,
}

impl Window {
    fn new(first: u64, last: u64) -> Self {
        Self {
            first,
            last,
            line: 1,
            column: 0,
            text: Vec::new(),
            bytes: 0,
            end_line: 0,
            cut_lines: 0,
            full: false,
            binary: false,
        }
    }

    /// Whether nothing that comes can be in it.
    fn is_complete(&self) -> bool {
        self.full || self.line > self.last
    }

    fn take(&mut self, piece: &[u8]) {
        if self.is_complete() {
            return;
        }
        for run in piece.split_inclusive(|&byte| byte == b'\n') {
            let ends = run.ends_with(b"\n");
            if (self.first..=self.last).contains(&self.line) && !self.full {
                self.keep(run);
            }
            if ends {
                self.line += 1;
                self.column = 0;
            } else {
                self.column += run.len();
            }
        }
    }

    fn keep(&mut self, run: &[u8]) {
        if self.column == 0 {
            if self.bytes >= MAX_OUTPUT {
                self.full = true;
                return;
            }
            self.bytes += NUMBER_BYTES;
        }
        self.bytes += run.len().min(LINE_BYTES.saturating_sub(self.column));
        self.binary |= run.contains(&0);
        self.end_line = self.line;
        let (body, end) = run.split_at(run.len() - usize::from(run.ends_with(b"\n")));
        let room = LINE_BYTES.saturating_sub(self.column);
        if body.len() > room {
            self.cut_lines += u64::from(self.column <= LINE_BYTES);
            self.text.extend_from_slice(&body[..room]);
        } else {
            self.text.extend_from_slice(body);
        }
        self.text.extend_from_slice(end);
    }
}

// Gives a file piece by piece until `take` has enough, and all of it if nobody knows yet what is to be known of it.
fn scan(files: &Bounded<'_, Reader>, path: &str, mut take: impl FnMut(&[u8]) -> bool) -> Result<(u64, Content), Error> {
    let known = Known::of(files.view(), path).map_err(|error| failed("read", path, error))?;
    let (mut scan, mut is_wanted) = (known.content.is_none().then(Scan::new), true);
    let size = files.pieces(path, 0, |piece| {
        is_wanted = is_wanted && take(piece);
        match &mut scan {
            Some(scan) => scan.take(piece),
            None => return is_wanted,
        }
        true
    })?;
    let content = match (scan, &known.content) {
        (None, Some(content)) => content.clone(),
        (scan, _) => {
            let content = scan.unwrap_or_else(Scan::new).finish();
            known.keep(&content);
            content
        }
    };
    Ok((size, content))
}

fn read_lines(files: &Bounded<'_, Reader>, path: &str, request: &ReadFile) -> Result<ReadWindow, Error> {
    let first = request.offset.unwrap_or(1).max(1);
    let asked = request.limit.unwrap_or(LINES).max(1);
    let mut window = Window::new(first, first.saturating_add(asked - 1));
    let (size, content) = scan(files, path, |piece| {
        window.take(piece);
        !window.is_complete()
    })?;
    let total_lines = content.newlines + u64::from(!content.is_terminated);
    if window.binary || (std::str::from_utf8(&window.text).is_err() && window.cut_lines == 0) {
        let mut bytes = read_bytes(files, path, &ReadFile { byte_offset: Some(0), ..request.clone() })?;
        bytes.notes.insert(0, "this is not text: the content is base64".to_owned());
        return Ok(bytes);
    }
    let mut notes = Vec::new();
    if window.end_line == 0 && size > 0 {
        notes.push(format!("the file has only {total_lines} lines"));
    } else if window.end_line < total_lines {
        notes.push(format!("{} more lines: read on with offset={}", total_lines - window.end_line, window.end_line + 1));
    }
    if window.cut_lines > 0 {
        let lines = text::count(usize::try_from(window.cut_lines).unwrap_or(usize::MAX), "line was", "lines were");
        notes.push(format!("{lines} cut at {LINE_BYTES} bytes: read them with byte_offset and byte_length"));
    }
    if content.has_crlf {
        notes.push("lines end with CRLF; edit_file keeps them so".to_owned());
    }
    if !content.is_terminated {
        notes.push("the last line does not end with a newline".to_owned());
    }
    let truncated = window.cut_lines > 0 || first > 1 || window.end_line < total_lines;
    Ok(ReadWindow {
        path: path.to_owned(),
        content: String::from_utf8_lossy(&window.text).replace("\r\n", "\n"),
        encoding: Encoding::Text,
        start_line: if window.end_line == 0 { 0 } else { first },
        end_line: window.end_line,
        total_lines,
        size,
        version: content.etag,
        truncated,
        notes,
    })
}

fn read_bytes(files: &Bounded<'_, Reader>, path: &str, request: &ReadFile) -> Result<ReadWindow, Error> {
    let start = request.byte_offset.unwrap_or(0);
    let length = usize::try_from(request.byte_length.unwrap_or(MAX_BYTES).clamp(1, MAX_BYTES)).unwrap_or(usize::MAX);
    let (mut bytes, mut at) = (Vec::new(), 0u64);
    let (size, found) = scan(files, path, |piece| {
        let skip = usize::try_from(start.saturating_sub(at)).unwrap_or(usize::MAX);
        let wanted = piece.get(skip..).unwrap_or_default();
        bytes.extend_from_slice(&wanted[..wanted.len().min(length - bytes.len())]);
        at += piece.len() as u64;
        bytes.len() < length
    })?;
    let end = start.saturating_add(bytes.len() as u64);
    let mut notes = Vec::new();
    if end < size {
        notes.push(format!("{} more bytes: read on with byte_offset={end}", size - end));
    }
    let (content, encoding) = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => (text, Encoding::Text),
        Ok(text) => (STANDARD.encode(text), Encoding::Base64),
        Err(error) => (STANDARD.encode(error.into_bytes()), Encoding::Base64),
    };
    Ok(ReadWindow {
        path: path.to_owned(),
        content,
        encoding,
        start_line: 0,
        end_line: 0,
        total_lines: found.newlines,
        size,
        version: found.etag,
        truncated: start > 0 || end < size,
        notes,
    })
}

impl ReadWindow {
    /// The window as a model reads it: numbered lines, then the notes and the version.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        if self.start_line > 0 {
            for (number, line) in (self.start_line..).zip(self.content.lines()) {
                out.push_str(&format!("{number:>6}\t{line}\n"));
            }
        } else if !self.content.is_empty() {
            out.push_str(&self.content);
            out.push('\n');
        }
        out.push_str(&format!("[{}: {} bytes, {} lines, version {}]", self.path, self.size, self.total_lines, self.version));
        self.notes.iter().for_each(|note| out.push_str(&format!("\n[{note}]")));
        out
    }
}
