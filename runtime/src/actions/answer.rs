//! The result of an action: text for a model, data for a program, and whether it failed. Its size is limited here for every
//! action.

use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::Error;

/// Maximum size of a result, text and data together. Actions return much smaller windows and pages; this is the last line of
/// defense.
const CEILING: usize = 1 << 20;
/// Maximum size of an error text, which may quote the client's input.
pub(super) const COMPLAINT: usize = 4 << 10;
/// Maximum size of a client's own text in an error.
const QUOTED: usize = 200;

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The data, as described by the action's output schema; null if the action failed.
    pub data: Value,
    /// The text for a model.
    pub text: String,
    /// Whether the action failed or was stopped.
    pub is_error: bool,
}

impl Answer {
    /// Creates the result of a successful action.
    #[must_use]
    pub fn new(text: String, data: &impl Serialize) -> Self {
        Self::at_most(CEILING, text, data)
    }

    /// Same as [`new`](Self::new), for a result that contains a file of this many bytes.
    #[must_use]
    pub fn with_bytes(bytes: usize, text: String, data: &impl Serialize) -> Self {
        Self::at_most(CEILING + bytes, text, data)
    }

    fn at_most(ceiling: usize, text: String, data: &impl Serialize) -> Self {
        let mut size = Counted { bytes: text.len(), ceiling };
        // The size is determined before the data is built.
        if serde_json::to_writer(&mut size, data).is_err() {
            return Self::error(format!(
                "error: the result is larger than {ceiling} bytes\nhint: request less: a window, a page, a narrower pattern or a prefix"
            ));
        }
        Self { data: serde_json::to_value(data).unwrap_or_default(), text, is_error: false }
    }

    /// Creates the result of a failed action.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { data: Value::Null, text: shortened(text.into(), COMPLAINT), is_error: true }
    }

    /// Sets whether the result is a failure; its data is kept.
    #[must_use]
    pub fn failed(mut self, failed: bool) -> Self {
        self.is_error = failed;
        self
    }
}

/// Shortens a client's own text for quoting.
#[must_use]
pub fn quoted(text: &str) -> String {
    shortened(text.get(..text.floor_char_boundary(QUOTED + 4)).unwrap_or(text).to_owned(), QUOTED)
}

/// Truncates a text to a maximum number of bytes and marks the cut.
#[must_use]
pub fn shortened(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest));
        text.push('…');
    }
    text
}

/// Counts written bytes, up to a ceiling.
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

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        let causes = error.causes().into_iter().map(|cause| shortened(cause, COMPLAINT));
        let mut text = format!("error: {}", causes.collect::<Vec<_>>().join("\n  caused by: "));
        if let Some(hint) = error.hint() {
            text.push_str(&format!("\nhint: {hint}"));
        }
        Self { data: Value::Null, text, is_error: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-DOS-03.
    #[test]
    fn a_result_that_is_too_large_is_an_error_with_a_hint() {
        let large = vec!["x".repeat(1000); 2000];
        let answer = Answer::new(String::new(), &large);
        assert!(answer.is_error && answer.data.is_null() && answer.text.contains("hint: request less"), "{}", answer.text);
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
