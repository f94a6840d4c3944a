//! Lists, pipelines and simple commands.

use crate::ast::{
    AndOr, AndOrOperator, Argument, Command, List, ListItem, Part, Pipeline, Redirect, RedirectFd, RedirectKind, SimpleCommand,
    TimeStyle, Word,
};

use super::input::{Token, is_meta, is_name_byte, is_name_start};
use super::words::Mode;
use super::{Parsed, Parser};

/// Builtins whose arguments of the form `name=value` are assignments.
const DECLARATIONS: [&str; 6] = ["alias", "declare", "export", "local", "readonly", "typeset"];

/// The meaning of an argument of the form `name=…` for its command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arguments {
    /// Nothing special.
    Plain,
    /// After `command declare`: an assignment, but `name=(` is an error.
    Scalars,
    /// After `declare` and its kin.
    Assignments,
    /// After `eval` and `let`: ordinary words, but `name=( … )` is allowed in them.
    Text,
}

impl Parser {
    pub(super) fn complete_command(&mut self) -> Parsed<Option<List>> {
        self.skip_newlines();
        if self.peek() == Token::End {
            return Ok(None);
        }
        let mut list = List::default();
        loop {
            let and_or = self.and_or()?;
            let token = self.peek();
            let background = token == Token::Ampersand;
            list.items.push(ListItem { and_or, background });
            if !matches!(token, Token::Semicolon | Token::Ampersand) {
                break;
            }
            self.take(token);
            if matches!(self.peek(), Token::Newline | Token::End) {
                break;
            }
        }
        match self.peek() {
            Token::Newline => self.take(Token::Newline),
            Token::End => {
                self.at_end = true;
                self.text_ended();
            }
            _ => return Err(self.unexpected()),
        }
        self.fill_heredocs(&mut list);
        Ok(Some(list))
    }

    /// Commands up to a word or an operator that cannot begin one; at least one command.
    pub(super) fn compound_list(&mut self) -> Parsed<List> {
        let mut list = List::default();
        self.skip_newlines();
        loop {
            let and_or = self.and_or()?;
            let token = self.peek();
            let background = token == Token::Ampersand;
            list.items.push(ListItem { and_or, background });
            if !matches!(token, Token::Semicolon | Token::Ampersand | Token::Newline) {
                break;
            }
            self.take(token);
            self.skip_newlines();
            if self.at_list_end() {
                break;
            }
        }
        Ok(list)
    }

    /// Returns whether what comes next ends a list that stands inside something.
    pub(super) fn at_list_end(&mut self) -> bool {
        match self.peek() {
            Token::End | Token::Close | Token::CaseBreak | Token::CaseFall | Token::CaseContinue => true,
            Token::Word => matches!(self.keyword(), "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "}"),
            _ => false,
        }
    }

    fn and_or(&mut self) -> Parsed<AndOr> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let operator = match self.peek() {
                Token::AndAnd => AndOrOperator::And,
                Token::OrOr => AndOrOperator::Or,
                _ => return Ok(AndOr { first, rest }),
            };
            self.pos += 2;
            self.skip_newlines();
            rest.push((operator, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let mut pipeline = Pipeline { negated: false, timed: None, commands: Vec::new() };
        let mut prefixed = false;
        loop {
            if self.options.aliases.is_some() && self.peek() == Token::Word {
                while self.expand_alias() {}
            }
            if self.take_keyword("!") {
                pipeline.negated = !pipeline.negated;
            } else if self.take_keyword("time") {
                pipeline.timed = pipeline.timed.or(Some(TimeStyle::Bash));
                if self.take_word_text("-p") {
                    pipeline.timed = Some(TimeStyle::Posix);
                }
                self.take_word_text("--");
            } else {
                break;
            }
            prefixed = true;
        }
        if prefixed && matches!(self.peek(), Token::Newline | Token::End | Token::Semicolon) {
            return Ok(pipeline);
        }
        loop {
            let mut command = self.command()?;
            let token = self.peek();
            match token {
                Token::Pipe => {}
                Token::PipeAmpersand => self.add_error_to_pipe(&mut command),
                _ => {
                    pipeline.commands.push(command);
                    return Ok(pipeline);
                }
            }
            pipeline.commands.push(command);
            self.take(token);
            self.skip_newlines();
        }
    }

    fn take_word_text(&mut self, text: &str) -> bool {
        self.skip_blanks();
        let found = self.starts_with(text) && is_meta(self.at(self.pos + text.len()));
        if found {
            self.pos += text.len();
        }
        found
    }

    /// Parses `a |& b` is `a 2>&1 | b`.
    fn add_error_to_pipe(&mut self, command: &mut Command) {
        let line = self.line_at(self.pos);
        let one = Word { parts: vec![Part::Literal("1".to_owned())] };
        let redirect = Redirect { fd: RedirectFd::Number(2), kind: RedirectKind::DuplicateOutput(one), line };
        match command {
            Command::Simple(simple) => simple.redirects.push(redirect),
            Command::Compound { redirects, .. } => redirects.push(redirect),
            Command::Function(function) => {
                if let Some(function) = std::rc::Rc::get_mut(function) {
                    function.redirects.push(redirect);
                }
            }
            Command::Coproc { body, .. } => self.add_error_to_pipe(body),
        }
    }

    pub(super) fn command(&mut self) -> Parsed<Command> {
        match self.peek() {
            Token::Word => {
                if self.options.aliases.is_some() {
                    while self.expand_alias() {}
                    if self.peek() != Token::Word {
                        return self.command_here();
                    }
                }
                if let Some(command) = self.compound_or_definition()? {
                    return Ok(command);
                }
                self.simple_command()
            }
            _ => self.command_here(),
        }
    }

    fn command_here(&mut self) -> Parsed<Command> {
        match self.peek() {
            Token::Redirect => self.simple_command(),
            Token::Open => self.compound_or_definition()?.map_or_else(|| Err(self.unexpected()), Ok),
            _ => Err(self.unexpected()),
        }
    }

    pub(super) fn simple_command(&mut self) -> Parsed<Command> {
        self.skip_blanks();
        let mut simple = SimpleCommand { line: self.line_at(self.pos), ..SimpleCommand::default() };
        let mut kind = Arguments::Plain;
        loop {
            // bash knows that a command has begun when it has read its second word: that line is the command's.
            if simple.assignments.is_empty() && simple.words.len() + simple.redirects.len() == 2 {
                simple.line = self.line_at(self.pos);
            }
            match self.peek() {
                Token::Redirect => simple.redirects.push(self.redirect()?),
                Token::Word => {
                    if !simple.words.is_empty() && self.alias_goes_on() {
                        while self.expand_alias() {}
                        if self.peek() != Token::Word {
                            continue;
                        }
                    }
                    if simple.words.is_empty() {
                        if self.assignment_ahead().is_some() {
                            simple.assignments.push(self.assignment()?);
                            continue;
                        }
                        self.refuse_open_subscript()?;
                        if !simple.assignments.is_empty() || !simple.redirects.is_empty() {
                            while self.expand_alias() {}
                        }
                    }
                    let start = self.pos;
                    let argument = self.argument(kind)?;
                    let end = self.pos;
                    if simple.words.is_empty()
                        && simple.assignments.is_empty()
                        && simple.redirects.is_empty()
                        && self.peek() == Token::Open
                    {
                        let name = self.slice(start, end).to_owned();
                        return self.function_after_name(name, simple.line);
                    }
                    simple.words.push(argument);
                    kind = kind_after(kind, &simple.words, self.options.posix);
                }
                Token::Open => return Err(self.unexpected()),
                _ => return Ok(Command::Simple(simple)),
            }
        }
    }

    fn argument(&mut self, kind: Arguments) -> Parsed<Argument> {
        if kind == Arguments::Plain {
            return self.word(Mode::Command).map(Argument::Word);
        }
        let Some(value) = self.assignment_ahead() else {
            return self.word(Mode::Command).map(Argument::Word);
        };
        // Only where a command begins may a subscript hold blanks.
        let left = self.slice(self.pos, value);
        if left.contains([' ', '\t', '\n']) && !left.contains(['"', '\'', '\\', '$', '`']) {
            return self.word(Mode::Command).map(Argument::Word);
        }
        let array = self.at(value) == b'(';
        match kind {
            Arguments::Assignments => self.assignment().map(Argument::Assignment),
            Arguments::Scalars if !array => self.assignment().map(Argument::Assignment),
            Arguments::Text if array => {
                let start = self.pos;
                self.assignment()?;
                let text = self.slice(start, self.pos).to_owned();
                let part = Part::Quoted(text, crate::ast::QuoteStyle::Backslash);
                Ok(Argument::Word(Word { parts: vec![part] }))
            }
            _ => self.word(Mode::Command).map(Argument::Word),
        }
    }

    /// Parses `name[` where an assignment may stand must have its bracket, whatever follows.
    fn refuse_open_subscript(&mut self) -> Parsed<()> {
        let mut end = self.pos;
        while is_name_byte(self.at(end)) {
            end += 1;
        }
        if !is_name_start(self.here()) || self.at(end) != b'[' {
            return Ok(());
        }
        let Err(wanted) = self.bracket_end(end) else { return Ok(()) };
        let line = self.line_at(end);
        Err(super::SyntaxError::unmatched(line, wanted))
    }

    /// Returns whether `name=`, `name+=` or `name[…]=` comes next; where its value begins.
    pub(super) fn assignment_ahead(&self) -> Option<usize> {
        if !is_name_start(self.here()) {
            return None;
        }
        let mut end = self.pos;
        while is_name_byte(self.at(end)) {
            end += 1;
        }
        if self.at(end) == b'[' {
            end = self.matching_bracket(end)? + 1;
        }
        match (self.at(end), self.at(end + 1)) {
            (b'=', _) => Some(end + 1),
            (b'+', b'=') => Some(end + 2),
            _ => None,
        }
    }

    pub(super) fn redirect(&mut self) -> Parsed<Redirect> {
        let line = self.line_at(self.pos);
        let mut fd = RedirectFd::Default;
        if let Some(end) = self.number_before_redirect() {
            // A number too great for a descriptor is refused when it is used.
            fd = RedirectFd::Number(self.slice(self.pos, end).parse().unwrap_or(u32::MAX));
            self.pos = end;
        } else if let Some(end) = self.variable_before_redirect() {
            fd = RedirectFd::Variable(self.slice(self.pos + 1, end - 1).to_owned());
            self.pos = end;
        }
        let operators = ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"];
        let Some(operator) = operators.into_iter().find(|operator| self.starts_with(operator)) else {
            return Err(self.unexpected());
        };
        self.pos += operator.len();
        if matches!(operator, "<<" | "<<-") {
            let kind = self.heredoc(operator == "<<-")?;
            return Ok(Redirect { fd, kind, line });
        }
        if self.peek() != Token::Word {
            return Err(self.unexpected());
        }
        let word = self.word(Mode::Command)?;
        let kind = match operator {
            "&>>" => RedirectKind::AppendOutputAndError(word),
            "&>" => RedirectKind::OutputAndError(word),
            "<<<" => RedirectKind::HereString(word),
            "<&" => RedirectKind::DuplicateInput(word),
            "<>" => RedirectKind::ReadWrite(word),
            "<" => RedirectKind::Input(word),
            ">>" => RedirectKind::Append(word),
            ">&" => RedirectKind::DuplicateOutput(word),
            ">|" => RedirectKind::Clobber(word),
            _ => RedirectKind::Output(word),
        };
        Ok(Redirect { fd, kind, line })
    }

    pub(super) fn redirects(&mut self) -> Parsed<Vec<Redirect>> {
        let mut redirects = Vec::new();
        while self.peek() == Token::Redirect {
            redirects.push(self.redirect()?);
        }
        Ok(redirects)
    }
}

/// Returns how the arguments after these words are to be read.
fn kind_after(kind: Arguments, words: &[Argument], posix: bool) -> Arguments {
    if kind != Arguments::Plain {
        return kind;
    }
    let Some(Argument::Word(Word { parts })) = words.last() else { return kind };
    let [Part::Literal(name)] = parts.as_slice() else { return kind };
    if DECLARATIONS.contains(&name.as_str()) {
        let before = words.split_last().map_or(&[][..], |(_, before)| before);
        let wrapped = before.iter().all(|word| {
            matches!(word, Argument::Word(Word { parts })
                if matches!(parts.as_slice(), [Part::Literal(text)] if matches!(text.as_str(), "command" | "builtin")))
        });
        return match (before.is_empty(), wrapped) {
            (true, _) => Arguments::Assignments,
            (false, true) if posix => Arguments::Scalars,
            _ => Arguments::Plain,
        };
    }
    if words.len() == 1 && matches!(name.as_str(), "eval" | "let") { Arguments::Text } else { kind }
}
