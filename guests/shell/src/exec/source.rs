//! Running text: `eval`, traps, sourced files, and what the shell itself was given.

use std::borrow::Cow;

use crate::shell::{Done, Flow, Origin, Shell};
use crate::state::options::SetOption;
use crate::syntax::{Parser, SyntaxError};

impl Shell {
    /// Parses and runs text, one complete command line at a time.
    pub fn run_text(&mut self, text: &str, first_line: u32, input: Option<&'static str>) -> Done {
        let outer = std::mem::replace(&mut self.input_name, input);
        let parser = Parser::starting_at(&ended(text), self.syntax_options(), first_line);
        let result = self.run_parser(parser, false);
        self.input_name = outer;
        result
    }

    /// Same as [`Shell::run_text`], where nothing comes after: the last program may take the process over.
    pub fn run_text_tail(&mut self, text: &str, input: Option<&'static str>) -> Done {
        self.input_name = input;
        self.run_parser(Parser::new(&ended(text), self.syntax_options()), true)
    }

    fn run_parser(&mut self, mut parser: Parser, tail: bool) -> Done {
        if self.stack_is_full() {
            self.complain("maximum eval nesting level exceeded");
            return Err(Flow::Discard(1));
        }
        let mut status = 0;
        loop {
            parser.options = self.syntax_options();
            let own = tail && self.on(SetOption::History);
            let before = (own || self.on(SetOption::Verbose)).then(|| parser.rest().to_owned());
            let next = parser.next();
            if let Some(before) = before {
                let read = before.get(..before.len() - parser.rest().len()).unwrap_or_default().to_owned();
                if self.on(SetOption::Verbose) {
                    self.write_error(&read);
                }
                if own {
                    self.remember(&read);
                }
            }
            self.command_number += u32::from(tail);
            for warning in parser.take_warnings() {
                self.complain_at(warning.line, &warning.message);
            }
            let list = match next {
                Ok(Some(list)) => list,
                Ok(None) => return Ok(status),
                Err(error) => {
                    self.report_syntax(&error);
                    status = self.syntax_status(&error);
                    self.status = status;
                    if error.recoverable {
                        parser.skip_line();
                        continue;
                    }
                    // POSIX: a syntax error in `eval` or a sourced file ends the shell.
                    let fatal = self.on(SetOption::Posix) && !self.interactive;
                    return Err(if fatal { Flow::Exit(status) } else { Flow::Discard(status) });
                }
            };
            // An error without a line is reported on the line that was read last.
            self.line = parser.last_line();
            let last = tail && is_blank(parser.rest());
            let result = if last { self.run_list_tail(&list) } else { self.run_list(&list) };
            match result {
                Ok(code) => status = code,
                // In a subshell the error ends the process; elsewhere only the rest of the line is dropped.
                Err(Flow::Discard(code)) if self.subshell == 0 => {
                    status = code;
                    self.status = code;
                    self.lenient = 0;
                }
                Err(flow) => return Err(flow),
            }
        }
    }

    /// Returns the status after a syntax error: of some, a command string's differs from that of a file.
    pub(crate) fn syntax_status(&self, error: &SyntaxError) -> i32 {
        if error.status == 127 && self.origin != Origin::CommandString { 2 } else { i32::from(error.status) }
    }

    /// Says what is wrong with the syntax.
    pub fn report_syntax(&mut self, error: &SyntaxError) {
        self.complain_syntax(error.line, &error.message);
        if let Some(second) = &error.second {
            self.complain_syntax(error.line, second);
        }
    }

    /// Runs a trap's or `eval`'s text whose syntax errors do not end the shell.
    pub(crate) fn run_eval(&mut self, text: &str) -> Done {
        let line = self.line;
        let result = self.run_text(text, line, Some("eval"));
        self.line = line;
        match result {
            Err(Flow::Discard(status)) if self.subshell == 0 => Ok(status),
            other => other,
        }
    }
}

/// Returns the text with a newline at its end, as the parser's messages and here-documents need it.
fn ended(text: &str) -> Cow<'_, str> {
    // A backslash at the very end is one: a new line behind it would be taken away with it.
    let backslashes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
    if text.is_empty() || text.ends_with('\n') || backslashes % 2 == 1 {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{text}\n"))
    }
}

/// Returns whether only blanks and comments are left.
fn is_blank(text: &str) -> bool {
    text.lines().all(|line| {
        let line = line.trim_start_matches([' ', '\t', ';']);
        line.is_empty() || line.starts_with('#')
    })
}
