//! `[[ … ]]`.

use crate::ast::{TestExpression, Word};

use super::input::Token;
use super::words::Mode;
use super::{Parsed, Parser, SyntaxError};

const BINARY: [&str; 13] = ["=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];

const UNARY: &[u8] = b"abcdefghknoprstuvwxzGLNORS";

impl Parser {
    /// Parses the expression after `[[`, and `]]`.
    pub(super) fn conditional(&mut self) -> Parsed<TestExpression> {
        let line = self.line_at(self.pos);
        let expression = self.conditional_or()?;
        self.skip_newlines();
        if self.take_keyword("]]") {
            return Ok(expression);
        }
        Err(self.conditional_end_error(line))
    }

    fn conditional_or(&mut self) -> Parsed<TestExpression> {
        let left = self.conditional_and()?;
        self.skip_newlines();
        if self.peek() != Token::OrOr {
            return Ok(left);
        }
        self.pos += 2;
        let right = self.nested(Self::conditional_or)?;
        Ok(TestExpression::Or(Box::new(left), Box::new(right)))
    }

    fn conditional_and(&mut self) -> Parsed<TestExpression> {
        let left = self.conditional_term()?;
        self.skip_newlines();
        if self.peek() != Token::AndAnd {
            return Ok(left);
        }
        self.pos += 2;
        let right = self.nested(Self::conditional_and)?;
        Ok(TestExpression::And(Box::new(left), Box::new(right)))
    }

    fn conditional_term(&mut self) -> Parsed<TestExpression> {
        self.skip_newlines();
        if self.peek() == Token::Open {
            self.pos += 1;
            let inner = self.nested(Self::conditional_or)?;
            self.skip_newlines();
            if self.peek() != Token::Close {
                if self.peek() == Token::Word && self.keyword() != "]]" {
                    return Err(self.conditional_error("expected `)'"));
                }
                let token = self.conditional_token();
                return Err(self.conditional_error(&format!("unexpected token `{token}', expected `)'")));
            }
            self.pos += 1;
            return Ok(TestExpression::Group(Box::new(inner)));
        }
        let pattern = self.options.extglob && self.starts_with("!(");
        if !pattern && self.take_keyword("!") {
            let inner = self.nested(Self::conditional_term)?;
            return Ok(TestExpression::Not(Box::new(inner)));
        }
        if !self.at_conditional_word() {
            return Err(self.conditional_token_error());
        }
        if self.here() == b'-' && UNARY.contains(&self.at(self.pos + 1)) && super::input::is_meta(self.at(self.pos + 2)) {
            let operator = self.slice(self.pos, self.pos + 2).to_owned();
            self.pos += 2;
            if !self.at_conditional_word() {
                let token = self.conditional_token();
                return Err(self.conditional_error(&format!("unexpected argument `{token}' to conditional unary operator")));
            }
            return Ok(TestExpression::Unary(operator, self.word(Mode::Command)?));
        }
        let left = self.word(Mode::Command)?;
        self.conditional_after_word(left)
    }

    /// Returns whether the next word is not `]]`.
    fn at_conditional_word(&mut self) -> bool {
        let token = self.peek();
        (token == Token::Word || (token == Token::Redirect && self.here().is_ascii_digit() || self.here() == b'{'))
            && self.keyword() != "]]"
    }

    fn conditional_after_word(&mut self, left: Word) -> Parsed<TestExpression> {
        let token = self.peek();
        if matches!(token, Token::AndAnd | Token::OrOr | Token::Close) || self.keyword() == "]]" {
            return Ok(TestExpression::Word(left));
        }
        let operator = if token == Token::Redirect && matches!(self.here(), b'<' | b'>') {
            self.slice(self.pos, self.pos + 1).to_owned()
        } else {
            let mut end = self.pos;
            while !super::input::is_meta(self.at(end)) {
                end += 1;
            }
            self.slice(self.pos, end).to_owned()
        };
        if !BINARY.contains(&operator.as_str()) && !matches!(operator.as_str(), "<" | ">") {
            if token == Token::Word {
                return Err(self.conditional_error("conditional binary operator expected"));
            }
            let token = self.conditional_token();
            return Err(self.conditional_error(&format!("unexpected token `{token}', conditional binary operator expected")));
        }
        self.pos += operator.len();
        self.skip_blanks();
        let mode = match operator.as_str() {
            "=~" => Mode::Regex,
            "=" | "==" | "!=" => Mode::Pattern,
            _ => Mode::Command,
        };
        let regex = mode == Mode::Regex && matches!(self.here(), b'(' | b'|');
        if !regex && !self.at_conditional_word() {
            let token = self.conditional_token();
            return Err(self.conditional_error(&format!("unexpected argument `{token}' to conditional binary operator")));
        }
        let right = self.word(mode)?;
        Ok(TestExpression::Binary(operator, left, right))
    }

    /// Returns the token that comes next, as messages name it.
    fn conditional_token(&mut self) -> String {
        if self.peek() == Token::End {
            return "newline".to_owned();
        }
        let back = self.pos;
        let message = self.unexpected().message;
        self.pos = back;
        let start = message.find('`').map_or(0, |at| at + 1);
        message.get(start..message.len().saturating_sub(1)).unwrap_or_default().to_owned()
    }

    /// Returns an error about what comes next. bash then stops reading as if the text had ended there.
    fn conditional_error(&mut self, message: &str) -> SyntaxError {
        let at_end = self.peek() == Token::End;
        let line = self.line_at(self.pos);
        let error = SyntaxError::new(line, message);
        SyntaxError { status: if at_end { 2 } else { 0 }, incomplete: at_end, keeps_status: !at_end, ..error }
    }

    fn conditional_token_error(&mut self) -> SyntaxError {
        if self.keyword() == "]]" {
            return self.conditional_error("");
        }
        if self.peek() == Token::End {
            let line = self.end_line();
            let error = self.conditional_error("unexpected token `EOF' in conditional command");
            return SyntaxError { line, ..error };
        }
        let token = self.conditional_token();
        self.conditional_error(&format!("unexpected token `{token}' in conditional command"))
    }

    fn conditional_end_error(&mut self, line: u32) -> SyntaxError {
        let error = match self.peek() {
            Token::End => self.conditional_error("unexpected EOF while looking for `]]'"),
            Token::Word => self.conditional_error("syntax error in conditional expression"),
            _ => {
                let token = self.conditional_token();
                self.conditional_error(&format!("syntax error in conditional expression: unexpected token `{token}'"))
            }
        };
        SyntaxError { line, ..error }
    }
}
