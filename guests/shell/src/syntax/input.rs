//! The text under the parser: where it stands, what token comes next, which line that is.

use crate::quote;

use super::{AliasUse, Parsed, Parser, SyntaxError};

/// The next token. Words are recognized here and read by `words.rs`, because how a word is read depends on where it
/// stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    End,
    Newline,
    Word,
    Redirect,
    Semicolon,
    Ampersand,
    AndAnd,
    OrOr,
    Pipe,
    PipeAmpersand,
    Open,
    Close,
    CaseBreak,
    CaseFall,
    CaseContinue,
}

impl Token {
    fn text(self) -> &'static str {
        match self {
            Self::End | Self::Word | Self::Redirect => "",
            Self::Newline => "newline",
            Self::Semicolon => ";",
            Self::Ampersand => "&",
            Self::AndAnd => "&&",
            Self::OrOr => "||",
            Self::Pipe => "|",
            Self::PipeAmpersand => "|&",
            Self::Open => "(",
            Self::Close => ")",
            Self::CaseBreak => ";;",
            Self::CaseFall => ";&",
            Self::CaseContinue => ";;&",
        }
    }
}

/// How many alias expansions one command line may need.
const MAX_ALIASES: u32 = 10_000;

/// Returns whether a word ends here.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, 0 | b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl Parser {
    /// Returns the byte at a position, 0 at the end (the text holds no NUL).
    #[inline]
    pub(super) fn at(&self, position: usize) -> u8 {
        self.text.as_bytes().get(position).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn here(&self) -> u8 {
        self.at(self.pos)
    }

    pub(super) fn starts_with(&self, what: &str) -> bool {
        self.text.as_bytes().get(self.pos..).is_some_and(|rest| rest.starts_with(what.as_bytes()))
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> &str {
        self.text.get(from..to).unwrap_or_default()
    }

    pub(super) fn line_at(&mut self, position: usize) -> u32 {
        let (mark, line) = self.line_mark;
        let bytes = self.text.as_bytes();
        let count = |from: usize, to: usize| {
            let newlines =
                bytes.get(from..to.min(bytes.len())).map_or(0, |part| part.iter().filter(|&&b| b == b'\n').count() as u32);
            newlines + self.joints.iter().filter(|&&joint| joint > from && joint <= to).count() as u32
        };
        let line = if position >= mark { line + count(mark, position) } else { line.saturating_sub(count(position, mark)) };
        self.line_mark = (position, line);
        line
    }

    /// Returns the line bash names when the text ends too early.
    pub(super) fn end_line(&mut self) -> u32 {
        let length = self.text.len();
        let line = self.line_at(length) + self.extra_lines;
        if self.text.ends_with('\n') { line } else { line + 1 }
    }

    /// Blanks, comments and joined lines.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.here() {
                b' ' | b'\t' => self.pos += 1,
                b'\\' if self.at(self.pos + 1) == b'\n' => self.pos += 2,
                b'#' => {
                    let bytes = self.text.as_bytes();
                    while self.pos < bytes.len() && bytes.get(self.pos) != Some(&b'\n') {
                        self.pos += 1;
                    }
                    return;
                }
                _ => return,
            }
        }
    }

    /// Takes out a joined line's backslash and newline.
    pub(super) fn join_at(&mut self, position: usize) -> bool {
        let joined = self.may_join && self.at(position) == b'\\' && self.at(position + 1) == b'\n';
        if joined {
            self.line_at(self.pos);
            self.text.replace_range(position..position + 2, "");
            self.joints.push(position);
        }
        joined
    }

    /// Joins the lines that the next token is spread over.
    fn join_token(&mut self) {
        let mut at = self.pos;
        loop {
            if self.join_at(at) {
                continue;
            }
            if matches!(self.at(at), 0 | b' ' | b'\t' | b'\n' | b'\'' | b'"' | b'`' | b'\\' | b'$' | b'#') {
                return;
            }
            at += 1;
        }
    }

    /// Returns the next token, not consumed; the parser stands at its first byte.
    pub(super) fn peek(&mut self) -> Token {
        self.skip_blanks();
        if self.may_join {
            self.join_token();
        }
        let next = self.at(self.pos + 1);
        match self.here() {
            0 => Token::End,
            b'\n' => Token::Newline,
            b';' => match (next, self.at(self.pos + 2)) {
                (b';', b'&') => Token::CaseContinue,
                (b';', _) => Token::CaseBreak,
                (b'&', _) => Token::CaseFall,
                _ => Token::Semicolon,
            },
            b'&' => match next {
                b'&' => Token::AndAnd,
                b'>' => Token::Redirect,
                _ => Token::Ampersand,
            },
            b'|' => match next {
                b'|' => Token::OrOr,
                b'&' => Token::PipeAmpersand,
                _ => Token::Pipe,
            },
            b'(' => Token::Open,
            b')' => Token::Close,
            b'<' | b'>' if next == b'(' => Token::Word,
            b'<' | b'>' => Token::Redirect,
            b'0'..=b'9' if self.number_before_redirect().is_some() => Token::Redirect,
            b'{' if self.variable_before_redirect().is_some() => Token::Redirect,
            _ => Token::Word,
        }
    }

    /// Returns where a `2` of `2>` ends.
    pub(super) fn number_before_redirect(&self) -> Option<usize> {
        let mut end = self.pos;
        while self.at(end).is_ascii_digit() {
            end += 1;
        }
        (end > self.pos && matches!(self.at(end), b'<' | b'>') && self.at(end + 1) != b'(').then_some(end)
    }

    /// Returns where a `{name}` of `{name}>` ends.
    pub(super) fn variable_before_redirect(&self) -> Option<usize> {
        let mut end = self.pos + 1;
        if self.here() != b'{' || !is_name_start(self.at(end)) {
            return None;
        }
        while is_name_byte(self.at(end)) {
            end += 1;
        }
        if self.at(end) == b'[' {
            while !matches!(self.at(end), 0 | b']' | b'\n' | b' ') {
                end += 1;
            }
            if self.at(end) != b']' {
                return None;
            }
            end += 1;
        }
        (self.at(end) == b'}' && matches!(self.at(end + 1), b'<' | b'>')).then_some(end + 1)
    }

    /// Steps over an operator that `peek` has seen.
    pub(super) fn take(&mut self, token: Token) {
        self.pos += if token == Token::Newline { 1 } else { token.text().len() };
        if token == Token::Newline {
            self.newline_passed();
        }
    }

    pub(super) fn skip_newlines(&mut self) {
        while self.peek() == Token::Newline {
            self.take(Token::Newline);
        }
    }

    /// Returns the unquoted text of the next word when it could be a reserved word, else "".
    pub(super) fn keyword(&mut self) -> &str {
        self.skip_blanks();
        if self.may_join {
            self.join_token();
        }
        let start = self.pos;
        let mut end = start;
        while matches!(self.at(end), b'a'..=b'z' | b'{' | b'}' | b'[' | b']' | b'!') {
            end += 1;
        }
        if is_meta(self.at(end)) { self.slice(start, end) } else { "" }
    }

    /// Returns whether the next word is this reserved word; steps over it if so.
    pub(super) fn take_keyword(&mut self, word: &str) -> bool {
        if self.keyword() != word {
            return false;
        }
        self.pos += word.len();
        true
    }

    pub(super) fn expect_keyword(&mut self, word: &str) -> Parsed<()> {
        if self.take_keyword(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Returns the error for the token that comes next.
    pub(super) fn unexpected(&mut self) -> SyntaxError {
        let token = self.peek();
        let start = self.pos;
        let text = match token {
            Token::End => return self.unexpected_end(),
            Token::Word => {
                if let Err(error) = self.word(super::words::Mode::Command) {
                    return error;
                }
                self.slice(start, self.pos.max(start + 1)).to_owned()
            }
            Token::Redirect => match self.number_before_redirect() {
                Some(end) => self.slice(start, end).to_owned(),
                None => {
                    let operators = ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"];
                    let found = operators.into_iter().find(|operator| self.starts_with(operator));
                    found.map_or_else(|| self.slice(start, start + 1).to_owned(), str::to_owned)
                }
            },
            other => other.text().to_owned(),
        };
        self.near(&text, start)
    }

    pub(super) fn near(&mut self, token: &str, position: usize) -> SyntaxError {
        let line = self.line_at(position);
        let shown = if quote::has_unprintable(token) { quote::ansi_c(token) } else { token.to_owned() };
        let second = Some(format!("`{}'", self.source_line(position)));
        SyntaxError { second, ..SyntaxError::new(line, format!("syntax error near unexpected token `{shown}'")) }
    }

    pub(super) fn unexpected_end(&mut self) -> SyntaxError {
        let line = self.end_line();
        if self.substitutions > 0 {
            return SyntaxError::unmatched(line, ')');
        }
        SyntaxError { incomplete: true, ..SyntaxError::new(line, "syntax error: unexpected end of file") }
    }

    /// Returns the line of the source that a position stands on.
    pub(super) fn source_line(&self, position: usize) -> String {
        let start = self.slice(0, position).rfind('\n').map_or(0, |at| at + 1);
        let rest = self.text.get(start..).unwrap_or_default();
        rest.split('\n').next().unwrap_or_default().to_owned()
    }

    /// Runs a step one level deeper, refusing what would exhaust the stack.
    pub(super) fn nested<T>(&mut self, step: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= super::MAX_DEPTH {
            let line = self.line_at(self.pos);
            return Err(SyntaxError::too_deep(line));
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Replaces the word that comes next by its alias, if it has one. The parser then stands at the alias's text.
    pub(super) fn expand_alias(&mut self) -> bool {
        let Some(aliases) = self.options.aliases.clone() else { return false };
        self.skip_blanks();
        let start = self.pos;
        let mut end = start;
        while !is_meta(self.at(end)) && !matches!(self.at(end), b'\\' | b'\'' | b'"' | b'$' | b'`') {
            end += 1;
        }
        if end == start || !is_meta(self.at(end)) {
            return false;
        }
        let left = self.text.len() - start;
        self.alias_uses.retain(|used| used.left < left);
        let Some((name, value)) = aliases.get_key_value(self.slice(start, end)) else { return false };
        if self.alias_uses.iter().any(|used| used.name == *name) || self.alias_count >= MAX_ALIASES {
            return false;
        }
        self.alias_count += 1;
        self.line_at(start);
        let left = self.text.len() - end;
        self.alias_uses.push(AliasUse { name: name.clone(), left });
        self.alias_next = value.ends_with([' ', '\t']).then_some(left);
        self.text.replace_range(start..end, value);
        true
    }

    /// Replaces the next word by its alias where an alias that ended in a blank came before.
    pub(super) fn follow_alias(&mut self) {
        if self.options.aliases.is_some() && self.peek() == Token::Word && self.alias_goes_on() {
            while self.expand_alias() {}
        }
    }

    /// Returns whether the word that comes next follows an alias that ended in a blank.
    pub(super) fn alias_goes_on(&mut self) -> bool {
        let Some(left) = self.alias_next else { return false };
        self.skip_blanks();
        if self.text.len() - self.pos > left {
            return false;
        }
        self.alias_next = None;
        true
    }
}
