//! Finding where something ends without making a tree of it.
//!
//! Used where bash decides what a text is only after it has found its end: `((`, `$((`, `name[`, and `${…}` of a form
//! that bash refuses. None of these calls itself through the tree-making parser, so the cost stays linear.

use super::{Parsed, Parser, SyntaxError};

impl Parser {
    /// Returns whether the text after `((` ends in `))`, and so is arithmetic; else it is a subshell in a subshell.
    pub(super) fn arithmetic_ends(&mut self, start: usize) -> Parsed<bool> {
        match self.closing(start, b'(', b')', true) {
            Ok(end) => Ok(self.at(end + 1) == b')'),
            Err(wanted) => {
                let line = self.line_at(start);
                Err(SyntaxError::unmatched(line, wanted))
            }
        }
    }

    /// Returns where the `}` of a `${` is; `start` is after the brace.
    pub(super) fn closing_brace(&mut self, start: usize, quoted: bool) -> Parsed<usize> {
        self.closing(start, 0, b'}', !quoted).map_err(|wanted| {
            let line = self.line_at(start);
            SyntaxError::unmatched(line, wanted)
        })
    }

    /// Returns where the `)` of a `(` is; `start` is after the parenthesis.
    pub(super) fn closing_parenthesis(&mut self, start: usize) -> Parsed<usize> {
        self.closing(start, b'(', b')', true).map_err(|wanted| {
            let line = self.line_at(start);
            SyntaxError::unmatched(line, wanted)
        })
    }

    /// Returns where the `]` of a `[` is.
    pub(super) fn matching_bracket(&self, open: usize) -> Option<usize> {
        self.bracket_end(open).ok()
    }

    /// Returns where the `]` of a `[` is; `Err` is the character that is missing.
    pub(super) fn bracket_end(&self, open: usize) -> Result<usize, char> {
        self.closing(open + 1, b'[', b']', true)
    }

    /// Returns the position of the closing byte; `Err` is the character that is missing.
    fn closing(&self, start: usize, open: u8, close: u8, single_quotes: bool) -> Result<usize, char> {
        let mut stack: Vec<(u8, u8, bool)> = vec![(open, close, single_quotes)];
        let mut at = start;
        loop {
            let Some(&(open, close, single_quotes)) = stack.last() else { return Ok(at) };
            let byte = self.at(at);
            if byte == 0 {
                return Err(char::from(close));
            }
            if byte == close {
                stack.pop();
                if stack.is_empty() {
                    return Ok(at);
                }
                at += 1;
                continue;
            }
            match byte {
                b'\\' => at += usize::from(self.at(at + 1) != 0),
                b'\'' if single_quotes => at = self.after_single_quotes(at)?,
                b'"' if close != b'`' => stack.push((0, b'"', false)),
                b'`' => stack.push((0, b'`', false)),
                b'$' => match self.at(at + 1) {
                    b'{' => {
                        stack.push((0, b'}', single_quotes));
                        at += 1;
                    }
                    b'(' => {
                        stack.push((b'(', b')', true));
                        at += 1;
                    }
                    _ => {}
                },
                _ if byte == open && open != 0 => stack.push((open, close, single_quotes)),
                _ => {}
            }
            at += 1;
            // Nothing that deep is a program; the parser proper will say so.
            if stack.len() > 10_000 {
                return Err(char::from(close));
            }
        }
    }

    /// Returns the position of the quote that ends single quotes; `$'…'` knows backslashes.
    fn after_single_quotes(&self, open: usize) -> Result<usize, char> {
        let ansi = open > 0 && self.at(open - 1) == b'$';
        let mut at = open + 1;
        loop {
            match self.at(at) {
                0 => return Err('\''),
                b'\'' => return Ok(at),
                b'\\' if ansi => at += 2,
                _ => at += 1,
            }
        }
    }
}
