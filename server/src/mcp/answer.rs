//! What a tool answers: text for the model, data for the program, and whether it went wrong.

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

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
        Self { text, data: serde_json::to_value(data).ok(), is_error: false }
    }

    /// It did not do what was asked.
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), data: None, is_error: true }
    }

    /// Marks an answer that has data all the same as one that went wrong.
    pub(super) fn failed(mut self, failed: bool) -> Self {
        self.is_error = failed;
        self
    }
}

impl From<runtime::Error> for Answer {
    fn from(error: runtime::Error) -> Self {
        let mut text = format!("error: {error}");
        let mut cause = std::error::Error::source(&error);
        while let Some(source) = cause {
            let said = source.to_string();
            // Some errors say their cause themselves.
            if !text.ends_with(&said) {
                text.push_str(&format!("\n  caused by: {said}"));
            }
            cause = source.source();
        }
        if let Some(hint) = error.hint() {
            text.push_str(&format!("\nhint: {hint}"));
        }
        Self::error(text)
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
