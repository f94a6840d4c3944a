//! Commands that are typed or piped in: reading them line by line, prompts, startup files, history.

use crate::shell::{Done, Flow, Shell};
use crate::state::options::{SetOption, ShoptOption};
use crate::state::variables::Value;
use crate::syntax::Parser;

/// Default of HISTSIZE: the number of remembered commands.
const HISTORY_SIZE: &str = "500";

impl Shell {
    /// Switches on what `-i` implies.
    pub(crate) fn become_interactive(&mut self) {
        self.options.set_shopt(ShoptOption::ExpandAliases, true);
        for option in [SetOption::History, SetOption::HistExpand] {
            self.options.set(option, true);
        }
        if !self.on(SetOption::Vi) {
            self.options.set(SetOption::Emacs, true);
        }
        let home = self.get("HOME").unwrap_or_else(|| "/".to_owned());
        for (name, value) in [
            ("HISTFILE", format!("{}/.bash_history", home.trim_end_matches('/'))),
            ("HISTSIZE", HISTORY_SIZE.to_owned()),
            ("HISTFILESIZE", HISTORY_SIZE.to_owned()),
            ("PS1", "\\s-\\v\\$ ".to_owned()),
            ("PS2", "> ".to_owned()),
        ] {
            if self.variables.get(name).is_none_or(|variable| !variable.is_set()) {
                self.set_plain(name, value);
            }
        }
    }

    /// Reads `~/.bashrc`, or the file that the command line names.
    pub(crate) fn source_rc(&mut self, file: Option<String>) -> Done<()> {
        let home = self.get("HOME").unwrap_or_default();
        let file = file.unwrap_or_else(|| format!("{}/.bashrc", home.trim_end_matches('/')));
        self.source_startup(&file)?;
        self.load_history();
        Ok(())
    }

    /// Reads the files that a login shell reads first.
    pub(crate) fn source_profile(&mut self) -> Done<()> {
        self.source_startup("/etc/profile")?;
        let home = self.get("HOME").unwrap_or_default();
        let home = home.trim_end_matches('/');
        for name in [".bash_profile", ".bash_login", ".profile"] {
            if self.source_startup(&format!("{home}/{name}"))? {
                break;
            }
        }
        Ok(())
    }

    /// Runs a startup file if there is one; only `exit` in it ends the shell.
    fn source_startup(&mut self, file: &str) -> Done<bool> {
        if sys::stat(std::path::Path::new(&crate::exec::os(file)), true).is_err() {
            return Ok(false);
        }
        let Some(source) = self.builtin("source") else { return Ok(false) };
        let path = if file.contains('/') { file.to_owned() } else { format!("./{file}") };
        match self.run_builtin(source, &["source".to_owned(), path]) {
            Err(Flow::Exit(status)) => Err(Flow::Exit(status)),
            _ => Ok(true),
        }
    }

    /// Runs PROMPT_COMMAND and prints PS1 before each typed command.
    fn prompt(&mut self) -> Done<()> {
        let commands: Vec<String> = match self.value("PROMPT_COMMAND") {
            Value::Scalar(text) => vec![text],
            Value::Indexed(map) => map.into_values().collect(),
            _ => Vec::new(),
        };
        let status = self.status;
        for command in commands {
            self.status = status;
            match self.run_eval(&command) {
                Err(Flow::Exit(status)) => return Err(Flow::Exit(status)),
                _ => self.output.flush(),
            }
        }
        self.status = status;
        self.write_prompt("PS1")
    }

    fn write_prompt(&mut self, name: &str) -> Done<()> {
        let text = self.get(name).unwrap_or_default();
        if let Ok(text) = self.expand_prompt(&text) {
            self.write_error(&text);
        }
        Ok(())
    }

    /// Returns the next line of standard input for the parser; empty at the end.
    fn next_source_line(&mut self) -> String {
        let line = self.read_source_line(0);
        if self.on(SetOption::Verbose) {
            self.write_error(&line);
        }
        line
    }

    /// Commands from standard input, taking no more of it than the commands themselves.
    pub(crate) fn run_stdin(&mut self) -> Done {
        let mut status = 0;
        let mut line = 1;
        let mut text = String::new();
        loop {
            if text.is_empty() {
                if self.interactive {
                    self.prompt()?;
                }
                text = self.next_source_line();
                if text.is_empty() {
                    if self.interactive {
                        self.write_error("exit\n");
                    }
                    return Ok(status);
                }
            }
            let (mut parser, parsed) = self.parse_lines(&mut text, line)?;
            for warning in parser.take_warnings() {
                self.complain_at(warning.line, &warning.message);
            }
            let rest = parser.rest().to_owned();
            if self.on(SetOption::History) {
                let read = text.get(..text.len().saturating_sub(rest.len())).unwrap_or_default().to_owned();
                self.remember(&read);
            }
            self.command_number += 1;
            line = parser.line();
            text = rest;
            match parsed {
                Ok(None) => text.clear(),
                Ok(Some(list)) => match self.run_list(&list) {
                    Ok(code) => status = code,
                    Err(Flow::Discard(code)) => {
                        status = code;
                        self.status = code;
                        self.lenient = 0;
                    }
                    Err(flow) => return Err(flow),
                },
                Err(error) => {
                    self.report_syntax(&error);
                    status = self.syntax_status(&error);
                    self.status = status;
                    if !error.recoverable && !self.interactive {
                        return Err(Flow::Exit(status));
                    }
                    // bash drops the line and continues with the next one.
                    line += text.matches('\n').count() as u32;
                    text.clear();
                }
            }
        }
    }

    /// Reads lines until they make a complete command.
    fn parse_lines(
        &mut self,
        text: &mut String,
        line: u32,
    ) -> Done<(Parser, Result<Option<crate::ast::List>, crate::syntax::SyntaxError>)> {
        loop {
            let mut parser = Parser::starting_at(text, self.syntax_options(), line);
            let parsed = parser.next();
            let wants_more = match &parsed {
                Err(error) => error.incomplete,
                Ok(Some(_)) => parser.wants_heredoc() || parser.stopped_at_end() && text.ends_with('\n'),
                Ok(None) => false,
            };
            if !wants_more {
                return Ok((parser, parsed));
            }
            if self.interactive {
                self.write_prompt("PS2")?;
            }
            let more = self.next_source_line();
            if more.is_empty() {
                return Ok((parser, parsed));
            }
            text.push_str(&more);
        }
    }
}
