//! Running text: `eval`, traps, sourced files, and what the shell itself was given.

use crate::shell::{Done, Flow, Shell};
use crate::syntax::{Parser, SyntaxError};

impl Shell {
    /// Parses and runs text, one complete command line at a time.
    pub fn run_text(&mut self, text: &str, first_line: u32) -> Done {
        self.run_parser(Parser::starting_at(text, self.syntax_options(), first_line), false)
    }

    /// As [`Shell::run_text`], where nothing comes after: the last program may take the process over.
    pub fn run_text_tail(&mut self, text: &str) -> Done {
        self.run_parser(Parser::new(text, self.syntax_options()), true)
    }

    fn run_parser(&mut self, mut parser: Parser, tail: bool) -> Done {
        let mut status = 0;
        loop {
            parser.options = self.syntax_options();
            let next = parser.next();
            for warning in parser.take_warnings() {
                self.complain_at(warning.line, format_args!("warning: {}", warning.message));
            }
            let list = match next {
                Ok(Some(list)) => list,
                Ok(None) => return Ok(status),
                Err(error) => {
                    self.report_syntax(&error);
                    status = i32::from(error.status);
                    self.status = status;
                    if error.recoverable {
                        parser.skip_line();
                        continue;
                    }
                    return Err(Flow::Discard(status));
                }
            };
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

    /// Says what is wrong with the syntax.
    pub fn report_syntax(&mut self, error: &SyntaxError) {
        self.complain_at(error.line, &error.message);
        if let Some(second) = &error.second {
            self.complain_at(error.line, second);
        }
    }

    /// Runs a trap's or `eval`'s text whose syntax errors do not end the shell.
    pub(crate) fn run_eval(&mut self, text: &str) -> Done {
        let line = self.line;
        let result = self.run_text(text, line);
        self.line = line;
        match result {
            Err(Flow::Discard(status)) if self.subshell == 0 => Ok(status),
            other => other,
        }
    }
}

/// Only blanks and comments are left.
fn is_blank(text: &str) -> bool {
    text.lines().all(|line| {
        let line = line.trim_start_matches([' ', '\t', ';']);
        line.is_empty() || line.starts_with('#')
    })
}
