//! Here-documents: their bodies stand on the lines after the one that names them.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::ast::{Command, CommandSubstitution, Compound, Function, List, Part, QuoteStyle, Redirect, RedirectKind, Word};

use super::input::Token;
use super::words::{Mode, QuotedMode};
use super::{Parsed, Parser, Warning};

/// Here-documents that have been named, and bodies that have been read but not yet put into the tree.
#[derive(Debug, Default)]
pub(super) struct Pending {
    named: VecDeque<Named>,
    bodies: VecDeque<Rc<Word>>,
    /// Lines read ahead of their turn: from the newline at the first position, reading continues at the second.
    ahead: Option<(usize, usize)>,
}

#[derive(Debug)]
struct Named {
    delimiter: String,
    quoted: bool,
    strip_tabs: bool,
}

impl Parser {
    /// Parses the delimiter after `<<` or `<<-`.
    pub(super) fn heredoc(&mut self, strip_tabs: bool) -> Parsed<RedirectKind> {
        if self.peek() != Token::Word {
            return Err(self.unexpected());
        }
        let start = self.pos;
        let word = self.word(Mode::Command)?;
        let written = self.slice(start, self.pos).to_owned();
        let quoted = word.parts.iter().any(|part| matches!(part, Part::Quoted(..) | Part::DoubleQuoted { .. }));
        let delimiter = if quoted { unquoted_text(&word.parts, &written) } else { written.clone() };
        self.heredocs.named.push_back(Named { delimiter, quoted, strip_tabs });
        Ok(RedirectKind::HereDocument { body: Rc::default(), delimiter: written, strip_tabs })
    }

    /// Reads the bodies of the here-documents of a line of commands that has ended.
    pub(super) fn newline_passed(&mut self) {
        if let Some((newline, resume)) = self.heredocs.ahead
            && self.pos > newline
        {
            self.heredocs.ahead = None;
            self.pos = self.pos.max(resume);
        }
        while let Some(named) = self.heredocs.named.pop_front() {
            let body = self.heredoc_body(&named);
            self.heredocs.bodies.push_back(body);
        }
    }

    /// Ends the text: missing bodies are empty.
    pub(super) fn text_ended(&mut self) {
        self.newline_passed();
    }

    /// A `)` closes a substitution before the line has ended: bash takes the bodies from the lines that follow.
    pub(super) fn heredocs_at_close(&mut self) {
        let count = self.heredocs.named.len();
        if count == 0 {
            return;
        }
        let line = self.line_at(self.pos);
        let plural = if count == 1 { "" } else { "s" };
        let message = format!("warning: command substitution: {count} unterminated here-document{plural}");
        self.warnings.push(Warning { line, message });
        let back = self.pos;
        let newline = self.rest().find('\n').map_or(self.text.len(), |at| self.pos + at);
        let resume = match self.heredocs.ahead {
            Some((at, resume)) if at == newline => resume,
            _ => (newline + 1).min(self.text.len()),
        };
        self.pos = resume;
        let ahead = self.heredocs.ahead.take();
        self.newline_passed();
        debug_assert!(ahead.is_none_or(|(at, _)| at == newline));
        self.heredocs.ahead = Some((newline, self.pos));
        self.pos = back;
    }

    fn heredoc_body(&mut self, named: &Named) -> Rc<Word> {
        let first_line = self.line_at(self.pos);
        let line_before = if self.text.as_bytes().get(..self.pos).is_some_and(|read| read.ends_with(b"\n")) {
            first_line.saturating_sub(1)
        } else {
            first_line
        };
        let mut body = String::new();
        // Text of a line that ended in a backslash: the next line belongs to it.
        let mut joined = String::new();
        loop {
            if self.pos >= self.text.len() {
                self.warn_heredoc_end(named, line_before);
                body.push_str(&joined);
                break;
            }
            let rest = self.rest();
            let (line, length) = match rest.find('\n') {
                Some(at) => (rest.get(..at).unwrap_or_default(), at + 1),
                None => (rest, rest.len()),
            };
            let complete = length > line.len();
            let stripped = if named.strip_tabs && joined.is_empty() { line.trim_start_matches('\t') } else { line };
            if !named.quoted && complete && ends_in_odd_backslashes(stripped) {
                joined.push_str(stripped.strip_suffix('\\').unwrap_or(stripped));
                self.pos += length;
                continue;
            }
            let whole_is_delimiter =
                if joined.is_empty() { stripped == named.delimiter } else { format!("{joined}{stripped}") == named.delimiter };
            if whole_is_delimiter {
                self.pos += length;
                break;
            }
            if self.substitutions > 0
                && joined.is_empty()
                && let Some(after) = stripped.strip_prefix(named.delimiter.as_str())
                && after.contains(')')
            {
                let after = after.len();
                self.pos += line.len() - after;
                self.warn_heredoc_end(named, line_before);
                break;
            }
            body.push_str(&joined);
            joined.clear();
            body.push_str(stripped);
            if complete {
                body.push('\n');
            }
            self.pos += length;
        }
        if named.quoted {
            return Rc::new(Word { parts: vec![Part::Quoted(body, QuoteStyle::Single)] });
        }
        if !body.bytes().any(|byte| matches!(byte, b'$' | b'`' | b'\\')) {
            let parts = if body.is_empty() { Vec::new() } else { vec![Part::Literal(body)] };
            return Rc::new(Word { parts });
        }
        match self.inner(&body, first_line).heredoc_word() {
            Ok(word) => Rc::new(word),
            // bash reads the body's expansions when it runs the command, and only then sees what is wrong.
            Err(error) => {
                let error = Some(Rc::new(error));
                let substitution = CommandSubstitution { body: List::default(), source: body, backquoted: false, error };
                Rc::new(Word { parts: vec![Part::Command(Rc::new(substitution))] })
            }
        }
    }

    fn warn_heredoc_end(&mut self, named: &Named, from: u32) {
        let mut line = self.line_at(self.pos);
        if self.text.ends_with('\n') && self.pos >= self.text.len() {
            line = line.saturating_sub(1);
        }
        let message = format!("warning: here-document at line {} delimited by end-of-file (wanted `{}')", from, named.delimiter);
        self.warnings.push(Warning { line, message });
    }

    /// Parses the whole text as a here-document's body.
    pub(super) fn heredoc_word(&mut self) -> Parsed<Word> {
        self.in_heredoc = true;
        self.quoted_word(QuotedMode::HereDocument)
    }

    /// Puts the bodies that have been read into the redirections that wait for them: both are in source order.
    pub(super) fn fill_heredocs(&mut self, list: &mut List) {
        if !self.heredocs.bodies.is_empty() {
            fill_list(list, &mut std::mem::take(&mut self.heredocs.bodies));
        }
    }

    /// Sets the outer line's here-documents aside while a substitution is read.
    pub(super) fn take_heredocs(&mut self) -> Pending {
        let ahead = self.heredocs.ahead;
        std::mem::replace(&mut self.heredocs, Pending { ahead, ..Pending::default() })
    }

    pub(super) fn restore_heredocs(&mut self, outer: Pending) {
        let ahead = self.heredocs.ahead;
        self.heredocs = Pending { ahead, ..outer };
    }
}

fn ends_in_odd_backslashes(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

/// Returns a delimiter without its quotes; expansions in it stand for themselves.
fn unquoted_text(parts: &[Part], written: &str) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Literal(piece) | Part::Quoted(piece, _) => text.push_str(piece),
            Part::DoubleQuoted { parts, .. } => text.push_str(&unquoted_text(parts, written)),
            _ => return written.replace(['"', '\'', '\\'], ""),
        }
    }
    text
}

type Bodies = VecDeque<Rc<Word>>;

fn fill_list(list: &mut List, bodies: &mut Bodies) {
    for item in &mut list.items {
        fill_pipeline(&mut item.and_or.first.commands, bodies);
        for (_, pipeline) in &mut item.and_or.rest {
            fill_pipeline(&mut pipeline.commands, bodies);
        }
    }
}

fn fill_pipeline(commands: &mut [Command], bodies: &mut Bodies) {
    for command in commands {
        fill_command(command, bodies);
    }
}

fn fill_command(command: &mut Command, bodies: &mut Bodies) {
    match command {
        _ if bodies.is_empty() => {}
        Command::Simple(simple) => fill_redirects(&mut simple.redirects, bodies),
        Command::Compound { body, redirects, .. } => {
            fill_compound(body, bodies);
            fill_redirects(redirects, bodies);
        }
        Command::Function(function) => {
            if let Some(Function { body, redirects, .. }) = Rc::get_mut(function) {
                fill_compound(body, bodies);
                fill_redirects(redirects, bodies);
            }
        }
        Command::Coproc { body, .. } => fill_command(body, bodies),
    }
}

fn fill_compound(compound: &mut Compound, bodies: &mut Bodies) {
    match compound {
        Compound::Group(list) | Compound::Subshell(list) => fill_list(list, bodies),
        Compound::If { branches, otherwise } => {
            for (condition, branch) in branches {
                fill_list(condition, bodies);
                fill_list(branch, bodies);
            }
            if let Some(list) = otherwise {
                fill_list(list, bodies);
            }
        }
        Compound::While { condition, body, .. } => {
            fill_list(condition, bodies);
            fill_list(body, bodies);
        }
        Compound::For { body, .. } | Compound::ArithmeticFor { body, .. } | Compound::Select { body, .. } => {
            fill_list(body, bodies);
        }
        Compound::Case { arms, .. } => {
            for arm in arms {
                fill_list(&mut arm.body, bodies);
            }
        }
        Compound::Arithmetic(_) | Compound::Test(_) => {}
    }
}

fn fill_redirects(redirects: &mut [Redirect], bodies: &mut Bodies) {
    for redirect in redirects {
        if let RedirectKind::HereDocument { body, .. } = &mut redirect.kind
            && let Some(read) = bodies.pop_front()
        {
            *body = read;
        }
    }
}
