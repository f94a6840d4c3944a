//! The program of a command, and how it receives its text.

use crate::programs;

/// The program of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `bash`, with the command's text as its script.
    BashScript,
    /// `bash`, with only arguments.
    Bash,
    /// `python3`, with the command's text as its code.
    PythonCode(Code),
    /// `python3`, with only arguments.
    Python,
    /// A program that only this sandbox has; the command's text is its name.
    Own,
}

/// How Python runs code (`guests/python/lib/_sandlite_main.py`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code {
    /// Print the value of the last expression.
    pub(crate) echo: bool,
    /// Keep the globals for the next call.
    pub(crate) session: bool,
}

impl Program {
    /// Returns its name in the history.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Own => "program",
            _ if self.is_python() => "python",
            _ => "bash",
        }
    }

    /// Returns whether it is Python.
    pub(crate) fn is_python(self) -> bool {
        matches!(self, Self::PythonCode(_) | Self::Python)
    }

    /// Returns its guest; a program that only this sandbox has is in none.
    pub(crate) fn guest(self) -> Option<&'static guests::Guest> {
        match self {
            Self::Own => None,
            _ if self.is_python() => Some(&guests::PYTHON),
            _ => Some(&guests::SHELL),
        }
    }

    /// Returns its path in the sandbox.
    pub(crate) fn path(self, rest: &[String]) -> String {
        match (self, rest) {
            (Self::Own, [name, ..]) => format!("{}/{name}", programs::DIRECTORY),
            _ if self.is_python() => "/usr/bin/python3".to_owned(),
            _ => "/bin/bash".to_owned(),
        }
    }

    /// Returns its arguments, starting with its name.
    pub(crate) fn args(self, text: &str, rest: &[String]) -> Vec<Vec<u8>> {
        let own: &[&str] = match self {
            Self::BashScript => &["bash", "-c", text],
            Self::Bash => &["bash"],
            Self::PythonCode(code) => &["python3", code.option(), text],
            Self::Python => &["python3"],
            Self::Own => &[],
        };
        own.iter().copied().chain(rest.iter().map(String::as_str)).map(|arg| arg.as_bytes().to_vec()).collect()
    }
}

impl Code {
    fn option(self) -> &'static str {
        match (self.session, self.echo) {
            (false, false) => "-c",
            (false, true) => "--sandlite-echo",
            (true, false) => "--sandlite-session",
            (true, true) => "--sandlite-session-echo",
        }
    }
}
