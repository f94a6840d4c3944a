//! The errors of the parser.

use std::fmt;

/// A syntax error, worded as bash words it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line bash names, from 1.
    pub line: u32,
    /// The text after `bash: line N: `; empty if bash prints nothing.
    pub message: String,
    /// The second message of bash, with the same beginning: the source line between `` ` `` and `'`.
    pub second: Option<String>,
    /// More text could have made it valid: an interactive shell reads another line.
    pub incomplete: bool,
    /// bash drops this line and continues with the next one (errors inside `a=( … )`).
    pub recoverable: bool,
    /// The exit status of a `bash -c` that ends with it (a script's is 2 where this is 127).
    pub status: u8,
    /// bash stops reading as if the text had ended, and keeps the status of the last command: errors inside `[[ ]]`.
    pub keeps_status: bool,
}

/// bash has no such error: it runs out of stack.
const TOO_DEEP: &str = "syntax error: commands nested too deeply";

impl SyntaxError {
    pub(super) fn new(line: u32, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
            second: None,
            incomplete: false,
            recoverable: false,
            status: 2,
            keeps_status: false,
        }
    }

    pub(super) fn too_deep(line: u32) -> Self {
        Self::new(line, TOO_DEEP)
    }

    pub(super) fn is_too_deep(&self) -> bool {
        self.message == TOO_DEEP
    }

    pub(super) fn unmatched(line: u32, wanted: char) -> Self {
        let message = format!("unexpected EOF while looking for matching `{wanted}'");
        Self { incomplete: true, ..Self::new(line, message) }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}

/// A warning, after which bash continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The line on which it was noticed.
    pub line: u32,
    /// The text after `bash: line N: `.
    pub message: String,
}
