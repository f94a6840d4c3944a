//! What a tool answers: text for the model, data for the program, and whether it went wrong. Bounded here, whatever a tool does.

use std::io;

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

/// Most bytes of an answer, text and data together. Tools return windows and pages far below it; this is the last wall.
const CEILING: usize = 1 << 20;
/// Most bytes of a text that says what went wrong: it may repeat what the client sent.
const COMPLAINT: usize = 4 << 10;
/// Most bytes of a client's own text in a complaint.
const QUOTED: usize = 200;

/// A tool's answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    text: String,
    data: Option<serde_json::Value>,
    is_error: bool,
}

impl Answer {
    /// It worked: text for the model, the same as data.
    pub(super) fn new(text: String, data: &impl Serialize) -> Self {
        Self::at_most(CEILING, text, data)
    }

    /// The same for an answer that carries a file inline, with a ceiling of its own.
    pub(super) fn with_bytes(bytes: usize, text: String, data: &impl Serialize) -> Self {
        Self::at_most(CEILING + bytes, text, data)
    }

    fn at_most(ceiling: usize, text: String, data: &impl Serialize) -> Self {
        let mut size = Counted { bytes: text.len(), ceiling };
        // The size is known before the data is built.
        if serde_json::to_writer(&mut size, data).is_err() {
            return Self::error(format!(
                "error: the answer would have more than {ceiling} bytes\nhint: ask for less: a window, a page, a narrower pattern or a prefix"
            ));
        }
        Self { text, data: serde_json::to_value(data).ok(), is_error: false }
    }

    /// It did not do what was asked.
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { text: shortened(text.into(), COMPLAINT), data: None, is_error: true }
    }

    /// Marks an answer that has data all the same as one that went wrong.
    pub(super) fn failed(mut self, failed: bool) -> Self {
        self.is_error = failed;
        self
    }
}

/// A client's own text, short enough to be repeated to it.
pub(super) fn quoted(text: &str) -> String {
    shortened(text.get(..text.floor_char_boundary(QUOTED + 4)).unwrap_or(text).to_owned(), QUOTED)
}

/// Cuts a text to a maximum number of bytes and marks the cut.
pub(super) fn shortened(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest));
        text.push('…');
    }
    text
}

/// Counts what is written, up to a ceiling.
struct Counted {
    bytes: usize,
    ceiling: usize,
}

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.ceiling { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<runtime::Error> for Answer {
    fn from(error: runtime::Error) -> Self {
        let mut text = shortened(format!("error: {error}"), COMPLAINT);
        let mut cause = std::error::Error::source(&error);
        while let Some(source) = cause {
            let said = shortened(source.to_string(), COMPLAINT);
            // Some errors say their cause themselves.
            if !text.ends_with(&said) {
                text.push_str(&format!("\n  caused by: {said}"));
            }
            cause = source.source();
        }
        if let Some(hint) = error.hint() {
            text.push_str(&format!("\nhint: {hint}"));
        }
        Self { text, data: None, is_error: true }
    }
}

impl From<Answer> for CallToolResult {
    fn from(answer: Answer) -> Self {
        let content = vec![ContentBlock::text(answer.text)];
        let mut result = if answer.is_error { Self::error(content) } else { Self::success(content) };
        result.structured_content = answer.data;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-DOS-03.
    #[test]
    fn an_answer_that_is_too_large_is_an_error_that_says_what_to_do() {
        let large = vec!["x".repeat(1000); 2000];
        let answer = Answer::new(String::new(), &large);
        assert!(answer.is_error && answer.data.is_none() && answer.text.contains("hint: ask for less"), "{}", answer.text);
        assert!(!Answer::with_bytes(4 << 20, String::new(), &large).is_error);
        assert!(!Answer::new("x".repeat(1000), &"fine").is_error);
        assert!(Answer::new("x".repeat(CEILING), &"text counts too").is_error);
    }

    #[test]
    fn a_complaint_does_not_repeat_a_long_text() {
        assert_eq!(quoted("short"), "short");
        assert_eq!(quoted(&"é".repeat(500)), format!("{}…", "é".repeat(100)));
        assert!(Answer::error("x".repeat(1 << 20)).text.len() < COMPLAINT + 4);
    }
}
