//! The terminal: the only place that prints.

use std::io::{self, IsTerminal, Write};

use runtime::{LimitReached, Stream};

/// Prints for a person or for a program.
pub(crate) struct Printer {
    json: bool,
}

impl Printer {
    /// Prints JSON objects instead of text when `json`.
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether results are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints one JSON value.
    pub(crate) fn json(&mut self, value: &serde_json::Value) {
        let _ = writeln!(io::stdout(), "{value}");
    }

    /// Prints a line of a result.
    pub(crate) fn line(&mut self, line: &str) {
        let _ = writeln!(io::stdout(), "{line}");
    }

    /// Prints an error with its causes and what to do about it.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        let mut stderr = io::stderr();
        let _ = writeln!(stderr, "error: {error}");
        for cause in error.chain().skip(1) {
            let _ = writeln!(stderr, "  caused by: {cause}");
        }
        if let Some(hint) = error.downcast_ref::<runtime::Error>().and_then(runtime::Error::hint) {
            let _ = writeln!(stderr, "\nhint: {hint}");
        }
    }

    /// Says that a limit ended a command.
    pub(crate) fn limit(&mut self, reached: &LimitReached) {
        let mut stderr = io::stderr();
        let _ = writeln!(stderr, "error: {reached}\nhint: {}", reached.hint());
    }
}

/// Passes a guest's output on: byte for byte, but harmless where a terminal would obey it (T-ISO-07).
pub(crate) fn pass_on(stream: Stream) -> impl FnMut(&[u8]) + Send + 'static {
    let tame = match stream {
        Stream::Stdout => io::stdout().is_terminal(),
        Stream::Stderr => io::stderr().is_terminal(),
    };
    move |bytes| {
        let tamed = if tame { tame_controls(bytes) } else { bytes.to_vec() };
        let _ = match stream {
            Stream::Stdout => io::stdout().write_all(&tamed).and_then(|()| io::stdout().flush()),
            Stream::Stderr => io::stderr().write_all(&tamed),
        };
    }
}

/// Replaces what a terminal would obey, but for line ends and tabs, by a visible sign. C1 controls are two bytes in UTF-8:
/// 0xC2 and one of 0x80 to 0x9F.
fn tame_controls(bytes: &[u8]) -> Vec<u8> {
    let mut tamed = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\n' | b'\t' | b'\r' | 0x20..=0x7e => tamed.push(byte),
            0x00..=0x1f | 0x7f => tamed.extend_from_slice("\u{fffd}".as_bytes()),
            0xc2 if after.first().is_some_and(|next| (0x80..=0x9f).contains(next)) => {
                tamed.extend_from_slice("\u{fffd}".as_bytes());
                rest = after.get(1..).unwrap_or_default();
            }
            _ => tamed.push(byte),
        }
    }
    tamed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &str) {
        assert_eq!(String::from_utf8_lossy(&tame_controls(bytes)), expected);
    }

    // T-ISO-07.
    #[test]
    fn what_a_terminal_would_obey_is_made_harmless() {
        check(b"plain\ttext\n", "plain\ttext\n");
        check(b"\x1b[2J\x1b]0;owned\x07", "\u{fffd}[2J\u{fffd}]0;owned\u{fffd}");
        check("\u{9b}31m".as_bytes(), "\u{fffd}31m");
        check("grün ✓".as_bytes(), "grün ✓");
    }
}
