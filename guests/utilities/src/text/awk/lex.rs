//! Words of an awk program.

use super::value::Text;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Newline,
    Num(f64),
    Str(Text),
    Regex(Vec<u8>),
    /// A name followed directly by `(`: a function of the user.
    FuncName(String),
    Name(String),
    Op(&'static str),
    End,
}

const OPERATORS: &[&str] = &[
    "**=", "...", "&&", "||", "==", "<=", ">=", "!=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "**", "!~", ">>", "|&",
    "{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?", ":", "~", "$", "=", "@",
];

pub(super) struct Lexer {
    text: Vec<u8>,
    pub at: usize,
    pub line: usize,
    /// Where the last token starts.
    pub start: usize,
    pub warnings: Vec<(usize, String)>,
    /// Whether a slash here divides.
    after_operand: bool,
}

impl Lexer {
    pub fn new(text: Vec<u8>) -> Self {
        Self { text, at: 0, line: 1, start: 0, warnings: Vec::new(), after_operand: false }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    pub fn next(&mut self) -> Result<Token, String> {
        let token = self.token()?;
        self.after_operand = match &token {
            Token::Num(_) | Token::Str(_) | Token::Regex(_) => true,
            Token::Name(name) => !matches!(
                name.as_str(),
                "print" | "printf" | "return" | "in" | "else" | "do" | "case" | "exit" | "getline" | "delete" | "if" | "while"
            ),
            Token::Op(op) => matches!(*op, ")" | "]" | "$" | "++" | "--"),
            _ => false,
        };
        Ok(token)
    }

    fn token(&mut self) -> Result<Token, String> {
        loop {
            match self.peek(0) {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.peek(1) == b'\n' => {
                    self.at += 2;
                    self.line += 1;
                }
                b'\\' if self.peek(1) == b'\r' && self.peek(2) == b'\n' => {
                    self.at += 3;
                    self.line += 1;
                }
                b'#' => {
                    while self.at < self.text.len() && self.peek(0) != b'\n' {
                        self.at += 1;
                    }
                }
                _ => break,
            }
        }
        self.start = self.at;
        if self.at >= self.text.len() {
            return Ok(Token::End);
        }
        let byte = self.peek(0);
        match byte {
            b'\n' => {
                self.at += 1;
                self.line += 1;
                return Ok(Token::Newline);
            }
            b'"' => return self.string(),
            b'/' if !self.after_operand => return self.regex(),
            b'0'..=b'9' => return Ok(self.number()),
            b'.' if self.peek(1).is_ascii_digit() => return Ok(self.number()),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => return Ok(self.name()),
            _ => {}
        }
        for op in OPERATORS {
            if self.text[self.at..].starts_with(op.as_bytes()) {
                self.at += op.len();
                return Ok(Token::Op(match *op {
                    "**" => "^",
                    "**=" => "^=",
                    other => other,
                }));
            }
        }
        let shown = String::from_utf8_lossy(&self.text[self.at..]).chars().next().unwrap_or(' ');
        Err(format!("unexpected character '{shown}'"))
    }

    fn name(&mut self) -> Token {
        let start = self.at;
        while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' || self.peek(0) == b':' && self.peek(1) == b':' {
            self.at += if self.peek(0) == b':' { 2 } else { 1 };
        }
        let name = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
        if self.peek(0) == b'(' { Token::FuncName(name) } else { Token::Name(name) }
    }

    fn number(&mut self) -> Token {
        let start = self.at;
        if self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X') && self.peek(2).is_ascii_hexdigit() {
            self.at += 2;
            let mut value = 0.0;
            while let Some(digit) = char::from(self.peek(0)).to_digit(16) {
                value = value * 16.0 + f64::from(digit);
                self.at += 1;
            }
            return Token::Num(value);
        }
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        if self.peek(0) == b'.' {
            self.at += 1;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
        }
        let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + sign).is_ascii_digit() {
            self.at += 1 + sign;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
        }
        let digits = &self.text[start..self.at];
        if digits.len() > 1 && digits[0] == b'0' && digits.iter().all(|byte| (b'0'..=b'7').contains(byte)) {
            return Token::Num(digits.iter().fold(0.0, |value, byte| value * 8.0 + f64::from(byte - b'0')));
        }
        Token::Num(super::value::to_number(digits))
    }

    fn string(&mut self) -> Result<Token, String> {
        self.at += 1;
        let start = self.at;
        while self.at < self.text.len() && self.peek(0) != b'"' {
            if self.peek(0) == b'\n' {
                return Err("unterminated string".to_string());
            }
            if self.peek(0) == b'\\' {
                if self.peek(1) == b'\n' {
                    self.line += 1;
                }
                self.at += 1;
            }
            self.at += 1;
        }
        if self.at >= self.text.len() {
            return Err("unterminated string".to_string());
        }
        let raw = self.text[start..self.at].to_vec();
        self.at += 1;
        let line = self.line;
        let warnings = &mut self.warnings;
        Ok(Token::Str(Text::new(unescape(&raw, |letter| {
            let warning = format!("escape sequence `\\{letter}' treated as plain `{letter}'");
            warnings.push((line, warning));
        }))))
    }

    fn regex(&mut self) -> Result<Token, String> {
        self.at += 1;
        let mut out = Vec::new();
        let mut class = false;
        loop {
            if self.at >= self.text.len() || self.peek(0) == b'\n' {
                return Err("unterminated regexp".to_string());
            }
            let byte = self.peek(0);
            self.at += 1;
            match byte {
                b'/' if !class => return Ok(Token::Regex(out)),
                b'\\' if self.peek(0) == b'/' => {
                    out.push(b'/');
                    self.at += 1;
                }
                b'\\' => {
                    out.push(b'\\');
                    out.push(self.peek(0));
                    self.at += 1;
                }
                b'[' if !class => {
                    class = true;
                    out.push(byte);
                    if self.peek(0) == b'^' {
                        out.push(b'^');
                        self.at += 1;
                    }
                    if self.peek(0) == b']' {
                        out.push(b']');
                        self.at += 1;
                    }
                }
                b'[' if self.peek(0) == b':' => match memchr::memmem::find(&self.text[self.at..], b":]") {
                    Some(end) => {
                        out.push(b'[');
                        out.extend_from_slice(&self.text[self.at..self.at + end + 2]);
                        self.at += end + 2;
                    }
                    None => out.push(byte),
                },
                b']' => {
                    class = false;
                    out.push(byte);
                }
                _ => out.push(byte),
            }
        }
    }
}

/// Returns the characters a string literal stands for.
pub(super) fn unescape(raw: &[u8], mut unknown: impl FnMut(char)) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let byte = raw[at];
        at += 1;
        if byte != b'\\' || at >= raw.len() {
            out.push(byte);
            continue;
        }
        let letter = raw[at];
        at += 1;
        match letter {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'v' => out.push(11),
            b'"' | b'\\' => out.push(letter),
            b'\n' => {}
            b'0'..=b'7' => {
                let mut value = u32::from(letter - b'0');
                for _ in 0..2 {
                    match raw.get(at) {
                        Some(digit @ b'0'..=b'7') => value = value * 8 + u32::from(digit - b'0'),
                        _ => break,
                    }
                    at += 1;
                }
                out.push(value as u8);
            }
            b'x' if raw.get(at).is_some_and(u8::is_ascii_hexdigit) => {
                let mut value = 0;
                for _ in 0..2 {
                    let Some(digit) = raw.get(at).and_then(|&byte| char::from(byte).to_digit(16)) else { break };
                    value = value * 16 + digit;
                    at += 1;
                }
                out.push(value as u8);
            }
            b'&' => out.extend_from_slice(b"\\&"),
            _ => {
                unknown(String::from_utf8_lossy(&raw[at - 1..]).chars().next().unwrap_or(' '));
                out.push(letter);
            }
        }
    }
    out
}
