//! Compound commands, functions and coprocesses.

use std::rc::Rc;

use crate::ast::{CaseArm, CaseEnd, Command, Compound, Function, List, Word};

use super::input::Token;
use super::words::{Mode, QuotedMode};
use super::{Parsed, Parser, SyntaxError};

/// The words and operators that begin a compound command.
const COMPOUND: [&str; 8] = ["{", "if", "while", "until", "for", "case", "select", "[["];

impl Parser {
    /// Parses a compound command, `function` or `coproc`, if one comes next.
    pub(super) fn compound_or_definition(&mut self) -> Parsed<Option<Command>> {
        let here = self.here();
        if !matches!(here, b'(' | b'{' | b'[' | b'i' | b'w' | b'u' | b'f' | b'c' | b's' | b't' | b'd' | b'e' | b'}' | b'!' | b']')
        {
            return Ok(None);
        }
        match self.keyword() {
            "function" => self.nested(Self::function_keyword).map(Some),
            "coproc" => self.nested(Self::coproc).map(Some),
            "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "}" | "!" | "in" | "]]" => Err(self.unexpected()),
            _ => self.compound(),
        }
    }

    fn at_compound(&mut self) -> bool {
        self.peek() == Token::Open || COMPOUND.contains(&self.keyword())
    }

    /// Parses a compound command with its redirections.
    fn compound(&mut self) -> Parsed<Option<Command>> {
        if !self.at_compound() {
            return Ok(None);
        }
        let line = self.line_at(self.pos);
        let body = self.nested(Self::compound_body)?;
        let line = if matches!(body, Compound::Arithmetic(_) | Compound::Test(_)) { self.line_at(self.pos) } else { line };
        let redirects = self.redirects()?;
        if self.peek() == Token::Word && !self.at_list_end() && !self.follows_compound() {
            return Err(self.unexpected());
        }
        Ok(Some(Command::Compound { body, redirects, line }))
    }

    /// Reserved words that may follow a compound command directly.
    fn follows_compound(&mut self) -> bool {
        matches!(self.keyword(), "in")
    }

    fn compound_body(&mut self) -> Parsed<Compound> {
        if self.peek() == Token::Open {
            return self.parenthesis();
        }
        if self.take_keyword("{") {
            let list = self.compound_list()?;
            self.expect_keyword("}")?;
            return Ok(Compound::Group(list));
        }
        if self.take_keyword("if") {
            return self.if_command();
        }
        if self.take_keyword("while") {
            return self.while_command(false);
        }
        if self.take_keyword("until") {
            return self.while_command(true);
        }
        if self.take_keyword("for") {
            return self.for_command();
        }
        if self.take_keyword("select") {
            let (name, words, body) = self.for_words()?;
            return Ok(Compound::Select { name, words, body });
        }
        if self.take_keyword("case") {
            return self.case_command();
        }
        if self.take_keyword("[[") {
            return self.conditional().map(Compound::Test);
        }
        Err(self.unexpected())
    }

    /// Parses `( … )` or `(( … ))`.
    fn parenthesis(&mut self) -> Parsed<Compound> {
        if self.at(self.pos + 1) == b'(' && self.arithmetic_ends(self.pos + 2)? {
            self.pos += 2;
            let word = self.quoted_word(QuotedMode::Arithmetic)?;
            self.pos += 2;
            return Ok(Compound::Arithmetic(word));
        }
        if self.at(self.pos + 1) == b'(' {
            // bash has read the text as arithmetic once, and counts a line more from now on.
            self.extra_lines = 1;
        }
        self.pos += 1;
        let list = self.compound_list()?;
        if self.peek() != Token::Close {
            return Err(self.unexpected());
        }
        self.pos += 1;
        Ok(Compound::Subshell(list))
    }

    fn if_command(&mut self) -> Parsed<Compound> {
        let mut branches = Vec::new();
        loop {
            let condition = self.compound_list()?;
            self.expect_keyword("then")?;
            branches.push((condition, self.compound_list()?));
            if self.take_keyword("elif") {
                continue;
            }
            let otherwise = if self.take_keyword("else") { Some(self.compound_list()?) } else { None };
            self.expect_keyword("fi")?;
            return Ok(Compound::If { branches, otherwise });
        }
    }

    fn while_command(&mut self, until: bool) -> Parsed<Compound> {
        let condition = self.compound_list()?;
        self.expect_keyword("do")?;
        let body = self.compound_list()?;
        self.expect_keyword("done")?;
        Ok(Compound::While { until, condition, body })
    }

    fn for_command(&mut self) -> Parsed<Compound> {
        if self.peek() == Token::Open && self.at(self.pos + 1) == b'(' {
            return self.arithmetic_for();
        }
        let (name, words, body) = self.for_words()?;
        Ok(Compound::For { name, words, body })
    }

    fn for_words(&mut self) -> Parsed<(String, Option<Vec<Word>>, List)> {
        self.follow_alias();
        if self.peek() != Token::Word {
            return Err(self.unexpected());
        }
        let start = self.pos;
        self.word(Mode::Command)?;
        let name = self.slice(start, self.pos).to_owned();
        let mut words = None;
        if self.peek() == Token::Semicolon {
            self.take(Token::Semicolon);
        } else {
            self.skip_newlines();
            self.follow_alias();
            if self.take_keyword("in") {
                words = Some(self.word_list()?);
            }
        }
        self.skip_newlines();
        Ok((name, words, self.loop_body()?))
    }

    /// Parses the words after `in`, with what ends them.
    fn word_list(&mut self) -> Parsed<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.follow_alias();
            match self.peek() {
                Token::Word => words.push(self.word(Mode::Command)?),
                token @ (Token::Semicolon | Token::Newline) => {
                    self.take(token);
                    return Ok(words);
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Parses `do … done` or `{ … }`.
    fn loop_body(&mut self) -> Parsed<List> {
        let end = if self.take_keyword("{") {
            "}"
        } else {
            self.expect_keyword("do")?;
            "done"
        };
        let body = self.compound_list()?;
        self.expect_keyword(end)?;
        Ok(body)
    }

    fn arithmetic_for(&mut self) -> Parsed<Compound> {
        let open = self.pos;
        let line = self.line_at(open);
        if !self.arithmetic_ends(open + 2)? {
            // bash stops reading here without a message.
            return Err(SyntaxError { keeps_status: true, ..SyntaxError::new(line, "") });
        }
        self.pos += 2;
        let mut parts = Vec::new();
        loop {
            self.skip_space();
            parts.push(self.quoted_word(QuotedMode::ArithmeticFor)?);
            if self.here() != b';' {
                break;
            }
            self.pos += 1;
        }
        self.pos += 2;
        let Ok([start, condition, step]) = <[Word; 3]>::try_from(parts) else {
            let text = self.slice(open, self.pos).to_owned();
            let message = if text.matches(';').count() > 2 {
                "syntax error: `;' unexpected"
            } else {
                "syntax error: arithmetic expression required"
            };
            let second = Some(format!("syntax error: `{text}'"));
            return Err(SyntaxError { second, ..SyntaxError::new(line, message) });
        };
        if self.peek() == Token::Semicolon {
            self.take(Token::Semicolon);
        }
        self.skip_newlines();
        let body = self.loop_body()?;
        Ok(Compound::ArithmeticFor { start, condition, step, body })
    }

    fn skip_space(&mut self) {
        while matches!(self.here(), b' ' | b'\t' | b'\n') {
            self.pos += 1;
        }
    }

    fn case_command(&mut self) -> Parsed<Compound> {
        if self.peek() != Token::Word {
            return Err(self.unexpected());
        }
        let subject = self.word(Mode::Command)?;
        self.skip_newlines();
        self.expect_keyword("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_newlines();
            if self.take_keyword("esac") {
                return Ok(Compound::Case { subject, arms });
            }
            let patterns = self.case_patterns()?;
            self.skip_newlines();
            let body = if self.at_arm_end() { List::default() } else { self.compound_list()? };
            let end = match self.peek() {
                Token::CaseBreak => CaseEnd::Break,
                Token::CaseFall => CaseEnd::FallThrough,
                Token::CaseContinue => CaseEnd::Continue,
                _ => {
                    self.expect_keyword("esac")?;
                    arms.push(CaseArm { patterns, body, end: CaseEnd::Break });
                    return Ok(Compound::Case { subject, arms });
                }
            };
            self.pos += if end == CaseEnd::Continue { 3 } else { 2 };
            arms.push(CaseArm { patterns, body, end });
        }
    }

    fn at_arm_end(&mut self) -> bool {
        matches!(self.peek(), Token::CaseBreak | Token::CaseFall | Token::CaseContinue) || self.keyword() == "esac"
    }

    fn case_patterns(&mut self) -> Parsed<Vec<Word>> {
        if self.peek() == Token::Open {
            self.pos += 1;
        }
        let mut patterns = Vec::new();
        loop {
            if self.peek() != Token::Word {
                return Err(self.unexpected());
            }
            patterns.push(self.word(Mode::Command)?);
            match self.peek() {
                Token::Pipe => self.pos += 1,
                Token::Close => {
                    self.pos += 1;
                    return Ok(patterns);
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Parses `name ( ) body`, the name having been read.
    pub(super) fn function_after_name(&mut self, name: String, line: u32) -> Parsed<Command> {
        self.pos += 1;
        if self.peek() != Token::Close {
            return Err(self.unexpected());
        }
        self.pos += 1;
        self.nested(|parser| parser.function_body(name, line))
    }

    fn function_keyword(&mut self) -> Parsed<Command> {
        let line = self.line_at(self.pos);
        self.pos += "function".len();
        if self.peek() != Token::Word {
            return Err(self.unexpected());
        }
        let start = self.pos;
        self.word(Mode::Command)?;
        let name = self.slice(start, self.pos).to_owned();
        if self.peek() == Token::Open {
            let open = self.pos;
            self.pos += 1;
            if self.peek() == Token::Close {
                self.pos += 1;
            } else {
                self.pos = open;
            }
        }
        self.function_body(name, line)
    }

    fn function_body(&mut self, name: String, line: u32) -> Parsed<Command> {
        self.skip_newlines();
        if self.options.aliases.is_some() && self.peek() == Token::Word {
            while self.expand_alias() {}
        }
        match self.compound()? {
            Some(Command::Compound { body, redirects, .. }) => {
                Ok(Command::Function(Rc::new(Function { name, body, redirects, line })))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn coproc(&mut self) -> Parsed<Command> {
        let line = self.line_at(self.pos);
        self.pos += "coproc".len();
        let token = self.peek();
        if let Some(body) = if token == Token::End { None } else { self.compound()? } {
            return Ok(Command::Coproc { name: "COPROC".to_owned(), body: Box::new(body), line });
        }
        if token == Token::Word && self.assignment_ahead().is_none() {
            let start = self.pos;
            self.word(Mode::Command)?;
            let name = self.slice(start, self.pos).to_owned();
            if let Some(body) = self.compound()? {
                return Ok(Command::Coproc { name, body: Box::new(body), line });
            }
            self.pos = start;
        }
        if !matches!(token, Token::Word | Token::Redirect) {
            return Err(self.unexpected());
        }
        let body = Box::new(self.simple_command()?);
        Ok(Command::Coproc { name: "COPROC".to_owned(), body, line })
    }
}
