//! `read_file`: a window of a file's lines or bytes.

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

/// Default number of lines.
const LINES: u64 = 2000;
/// Maximum length of a returned line.
const LINE_BYTES: usize = 2000;
/// Size of a line number in a result.
const NUMBER_BYTES: usize = 8;
/// Maximum size of a byte window.
const MAX_BYTES: u64 = 60_000;

/// Selects the part of a file to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// The file. Relative paths start in the sandbox's working directory.
    pub path: String,
    /// The first line to return, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The number of lines to return; defaults to 2000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Read bytes instead of lines, from this offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_offset: Option<u64>,
    /// The number of bytes to read, at most 60000.
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
    /// Lines in the whole file; null if it is large and only the window was read.
    pub total_lines: Option<u64>,
    /// Bytes in the whole file.
    pub size: u64,
    /// The version of the whole file: pass it to `write_file` or `edit_file` as `expected_version`.
    pub version: String,
    /// Whether a part of the file is not in the window.
    pub truncated: bool,
    /// Notes: how to continue, line ends, truncated lines.
    pub notes: Vec<String>,
}

impl Agent<'_> {
    /// Reads a window of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist or is a directory.
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

/// Collects the requested lines of a file that is read in pieces.
struct Window {
    first: u64,
    last: u64,
    line: u64,
    /// Bytes of the current line so far.
    column: usize,
    text: Vec<u8>,
    /// Bytes of the result so far: each line is printed with its number.
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

    /// Returns whether no further piece can be in the window.
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

/// Facts about a file after a window of it was read.
struct Facts {
    size: u64,
    version: String,
    /// `None` if the file is large and only the window was read.
    content: Option<Content>,
}

// Passes a file on piece by piece until `take` has enough. The rest is also read, unless its facts are cached or the file is
// large.
fn scan(files: &Bounded<'_, Reader>, path: &str, from: u64, mut take: impl FnMut(&[u8]) -> bool) -> Result<Facts, Error> {
    let known = Known::of(files.view(), path).map_err(|error| failed("read", path, error))?;
    if let Some(content) = &known.content {
        let size = files.pieces(path, from, take)?;
        return Ok(Facts { size, version: content.etag.clone(), content: Some(content.clone()) });
    }
    if let Some(version) = known.stamp() {
        let size = files.pieces(path, from, take)?;
        return Ok(Facts { size, version, content: None });
    }
    let (mut scan, mut is_wanted, mut at) = (Scan::new(), true, 0u64);
    let size = files.pieces(path, 0, |piece| {
        let skip = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX);
        at += piece.len() as u64;
        is_wanted = is_wanted && piece.get(skip..).is_none_or(&mut take);
        scan.take(piece);
        true
    })?;
    let content = scan.finish();
    known.keep(&content);
    Ok(Facts { size, version: content.etag.clone(), content: Some(content) })
}

fn read_lines(files: &Bounded<'_, Reader>, path: &str, request: &ReadFile) -> Result<ReadWindow, Error> {
    let first = request.offset.unwrap_or(1).max(1);
    let asked = request.limit.unwrap_or(LINES).max(1);
    let mut window = Window::new(first, first.saturating_add(asked - 1));
    let Facts { size, version, content } = scan(files, path, 0, |piece| {
        window.take(piece);
        !window.is_complete()
    })?;
    let total_lines = content.as_ref().map(|content| content.newlines + u64::from(!content.is_terminated));
    // An incomplete window ended with the file.
    let total_lines = total_lines.or((!window.is_complete()).then_some(window.line - u64::from(window.column == 0)));
    if window.binary || (std::str::from_utf8(&window.text).is_err() && window.cut_lines == 0) {
        let mut bytes = read_bytes(files, path, &ReadFile { byte_offset: Some(0), ..request.clone() })?;
        bytes.notes.insert(0, "binary content, returned as base64".to_owned());
        return Ok(bytes);
    }
    let mut notes = Vec::new();
    match total_lines {
        Some(total) if window.end_line == 0 && size > 0 => notes.push(format!("the file has only {total} lines")),
        Some(total) if window.end_line < total => {
            notes.push(format!("{} more lines: continue with offset={}", total - window.end_line, window.end_line + 1));
        }
        Some(_) => {}
        None => notes.push(format!("more lines: continue with offset={}", window.end_line + 1)),
    }
    if window.cut_lines > 0 {
        let lines = text::count(usize::try_from(window.cut_lines).unwrap_or(usize::MAX), "line was", "lines were");
        notes.push(format!("{lines} truncated to {LINE_BYTES} bytes: read them with byte_offset and byte_length"));
    }
    if content.as_ref().map_or_else(|| window.text.windows(2).any(|pair| pair == b"\r\n"), |content| content.has_crlf) {
        notes.push("lines end with CRLF, which edit_file preserves".to_owned());
    }
    if content.is_some_and(|content| !content.is_terminated) {
        notes.push("the last line does not end with a newline".to_owned());
    }
    let truncated = window.cut_lines > 0 || first > 1 || total_lines.is_none_or(|total| window.end_line < total);
    Ok(ReadWindow {
        path: path.to_owned(),
        content: String::from_utf8_lossy(&window.text).replace("\r\n", "\n"),
        encoding: Encoding::Text,
        start_line: if window.end_line == 0 { 0 } else { first },
        end_line: window.end_line,
        total_lines,
        size,
        version,
        truncated,
        notes,
    })
}

fn read_bytes(files: &Bounded<'_, Reader>, path: &str, request: &ReadFile) -> Result<ReadWindow, Error> {
    let start = request.byte_offset.unwrap_or(0);
    let length = usize::try_from(request.byte_length.unwrap_or(MAX_BYTES).clamp(1, MAX_BYTES)).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    let Facts { size, version, content: known } = scan(files, path, start, |piece| {
        bytes.extend_from_slice(&piece[..piece.len().min(length - bytes.len())]);
        bytes.len() < length
    })?;
    let end = start.saturating_add(bytes.len() as u64);
    let mut notes = Vec::new();
    if end < size {
        notes.push(format!("{} more bytes: continue with byte_offset={end}", size - end));
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
        total_lines: known.map(|content| content.newlines),
        size,
        version,
        truncated: start > 0 || end < size,
        notes,
    })
}

impl ReadWindow {
    /// Formats the window for a model: numbered lines, then the notes and the version.
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
        let lines = self.total_lines.map_or_else(String::new, |lines| format!("{lines} lines, "));
        out.push_str(&format!("[{}: {} bytes, {lines}version {}]", self.path, self.size, self.version));
        self.notes.iter().for_each(|note| out.push_str(&format!("\n[{note}]")));
        out
    }
}
