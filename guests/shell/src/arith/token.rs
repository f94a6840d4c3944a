//! The tokens of an expression, and numbers.

use super::{ArithError, Binary, error};

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    End,
    Number(i64),
    /// A name, with where its subscript begins and ends if it has one.
    Name {
        start: usize,
        end: usize,
        subscript: Option<(usize, usize)>,
    },
    /// The end of `a ? b : c`, or `x++`: something that cannot be assigned to.
    Value,
    Binary(Binary),
    And,
    Or,
    Assign,
    AssignWith(Binary),
    Increment,
    Decrement,
    IncrementAfter,
    DecrementAfter,
    Not,
    Complement,
    Open,
    Close,
    Question,
    Colon,
    Comma,
}

/// Reads tokens, remembering what bash remembers: the last two, and where the last one began.
pub(super) struct Tokens<'a> {
    pub(super) text: &'a str,
    position: usize,
    pub(super) current: Token,
    pub(super) last: Token,
    /// Where the current token began; at the end of the text, the one before.
    pub(super) last_at: usize,
    /// Something has been read.
    begun: bool,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0, current: Token::End, last: Token::End, last_at: 0, begun: false }
    }

    fn at(&self, position: usize) -> u8 {
        self.text.as_bytes().get(position).copied().unwrap_or(0)
    }

    pub(super) fn fail<T>(&self, message: &str) -> Result<T, ArithError> {
        Err(error(self.text, self.text.len(), message, self.last_at))
    }

    /// Returns where the operand after the current token begins.
    pub(super) fn next_at(&self) -> usize {
        let mut at = self.position;
        while is_space(self.at(at)) {
            at += 1;
        }
        at
    }

    pub(super) fn advance(&mut self) -> Result<(), ArithError> {
        let start = self.next_at();
        self.position = start;
        if start >= self.text.len() {
            self.last = self.current;
            self.current = Token::End;
            return Ok(());
        }
        self.last_at = start;
        let byte = self.at(start);
        let token = if is_name_start(byte) {
            self.name(start)?
        } else if byte.is_ascii_digit() {
            let mut end = start;
            while matches!(self.at(end), b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'#' | b'@' | b'_') {
                end += 1;
            }
            self.position = end;
            match number(self.text.get(start..end).unwrap_or_default()) {
                Ok(value) => Token::Number(value),
                Err(message) => return Err(error(self.text, end, message, start)),
            }
        } else {
            self.operator(start)?
        };
        self.begun = true;
        self.last = self.current;
        self.current = token;
        if let Token::Name { .. } = token {
            // bash looks at what follows a name before it takes the name: an error there comes first.
            let mut ahead = Tokens { ..*self };
            ahead.advance()?;
        }
        Ok(())
    }

    fn name(&mut self, start: usize) -> Result<Token, ArithError> {
        let mut end = start;
        while is_name_start(self.at(end)) || self.at(end).is_ascii_digit() {
            end += 1;
        }
        let name_end = end;
        let mut subscript = None;
        if self.at(end) == b'[' {
            let mut depth = 0u32;
            loop {
                match self.at(end) {
                    0 => return self.fail("bad array subscript"),
                    b'[' => depth += 1,
                    b']' => depth -= 1,
                    _ => {}
                }
                end += 1;
                if depth == 0 {
                    break;
                }
            }
            subscript = Some((name_end + 1, end - 1));
        }
        self.position = end;
        Ok(Token::Name { start, end: name_end, subscript })
    }

    fn operator(&mut self, start: usize) -> Result<Token, ArithError> {
        let bytes = [self.at(start), self.at(start + 1), self.at(start + 2)];
        let (token, length) = match bytes {
            [b'=', b'=', _] => (Token::Binary(Binary::Equal), 2),
            [b'!', b'=', _] => (Token::Binary(Binary::NotEqual), 2),
            [b'<', b'<', b'='] => (Token::AssignWith(Binary::ShiftLeft), 3),
            [b'>', b'>', b'='] => (Token::AssignWith(Binary::ShiftRight), 3),
            [b'<', b'<', _] => (Token::Binary(Binary::ShiftLeft), 2),
            [b'>', b'>', _] => (Token::Binary(Binary::ShiftRight), 2),
            [b'<', b'=', _] => (Token::Binary(Binary::LessOrEqual), 2),
            [b'>', b'=', _] => (Token::Binary(Binary::GreaterOrEqual), 2),
            [b'&', b'&', _] => (Token::And, 2),
            [b'|', b'|', _] => (Token::Or, 2),
            [b'*', b'*', _] => (Token::Binary(Binary::Power), 2),
            [sign @ (b'+' | b'-'), second, _] if sign == second => return self.double_sign(start, sign),
            [operator, b'=', _] if assign_operator(operator).is_some() => {
                (assign_operator(operator).map_or(Token::End, Token::AssignWith), 2)
            }
            [b'=', ..] => (Token::Assign, 1),
            [b'<', ..] => (Token::Binary(Binary::Less), 1),
            [b'>', ..] => (Token::Binary(Binary::Greater), 1),
            [b'!', ..] => (Token::Not, 1),
            [b'~', ..] => (Token::Complement, 1),
            [b'(', ..] => (Token::Open, 1),
            [b')', ..] => (Token::Close, 1),
            [b'?', ..] => (Token::Question, 1),
            [b':', ..] => (Token::Colon, 1),
            [b',', ..] => (Token::Comma, 1),
            [operator, ..] => match assign_operator(operator) {
                Some(binary) => (Token::Binary(binary), 1),
                None if self.after_value() => return self.fail("syntax error: invalid arithmetic operator"),
                None => return self.fail("syntax error: operand expected"),
            },
        };
        self.position = start + length;
        Ok(token)
    }

    fn after_value(&self) -> bool {
        self.begun && matches!(self.current, Token::Number(_) | Token::Name { .. } | Token::Value)
    }

    /// `++` or `--`: after a name, before a name, or two signs.
    fn double_sign(&mut self, start: usize, sign: u8) -> Result<Token, ArithError> {
        let plus = sign == b'+';
        self.position = start + 2;
        if matches!(self.current, Token::Name { .. }) {
            if matches!(self.last, Token::Increment | Token::Decrement) {
                return self.fail(if plus { "++: assignment requires lvalue" } else { "--: assignment requires lvalue" });
            }
            return Ok(if plus { Token::IncrementAfter } else { Token::DecrementAfter });
        }
        if is_name_start(self.at(self.next_at())) {
            return Ok(if plus { Token::Increment } else { Token::Decrement });
        }
        self.position = start + 1;
        Ok(Token::Binary(if plus { Binary::Add } else { Binary::Subtract }))
    }
}

/// Returns the operators that can be joined with `=`.
fn assign_operator(byte: u8) -> Option<Binary> {
    Some(match byte {
        b'*' => Binary::Multiply,
        b'/' => Binary::Divide,
        b'%' => Binary::Remainder,
        b'+' => Binary::Add,
        b'-' => Binary::Subtract,
        b'&' => Binary::BitAnd,
        b'^' => Binary::BitXor,
        b'|' => Binary::BitOr,
        _ => return None,
    })
}

/// Returns a plain decimal number, which is what nearly every variable holds.
pub fn parse_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let first = *digits.as_bytes().first()?;
    if digits.len() > 18 || (first == b'0' && digits.len() > 1) {
        return None;
    }
    let mut value = 0i64;
    for byte in digits.bytes() {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(if digits.len() < text.len() { -value } else { value })
}

/// Returns `42`, `0x2a`, `052`, `2#101010`.
fn number(text: &str) -> Result<i64, &'static str> {
    let bytes = text.as_bytes();
    let (mut base, mut digits) = match bytes {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', rest @ ..] if !rest.is_empty() => (8, rest),
        _ => (10, bytes),
    };
    if let Some(hash) = bytes.iter().position(|&byte| byte == b'#') {
        if base != 10 {
            return Err("invalid number");
        }
        let (before, after) = bytes.split_at(hash);
        let after = after.get(1..).unwrap_or_default();
        let mut chosen: i64 = 0;
        for &byte in before {
            if !byte.is_ascii_digit() {
                return Err("value too great for base");
            }
            chosen = chosen.wrapping_mul(10).wrapping_add(i64::from(byte - b'0'));
        }
        if !(2..=64).contains(&chosen) {
            return Err("invalid arithmetic base");
        }
        if after.is_empty() {
            return Err("invalid integer constant");
        }
        if after.contains(&b'#') {
            return Err("invalid number");
        }
        base = chosen;
        digits = after;
    }
    let mut value: i64 = 0;
    for &byte in digits {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'z' => byte - b'a' + 10,
            b'A'..=b'Z' if base <= 36 => byte - b'A' + 10,
            b'A'..=b'Z' => byte - b'A' + 36,
            b'@' => 62,
            _ => 63,
        };
        if i64::from(digit) >= base {
            return Err("value too great for base");
        }
        value = value.wrapping_mul(base).wrapping_add(i64::from(digit));
    }
    Ok(value)
}
