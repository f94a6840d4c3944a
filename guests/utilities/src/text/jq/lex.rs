//! A filter cut into tokens. Strings are cut too: their texts and what is interpolated.

use super::json;
use super::number;
use super::value::Json;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A keyword or an operator.
    Mark(&'static str),
    Ident(String),
    Field(String),
    Binding(String),
    Literal(String),
    Format(String),
    StringStart,
    StringText(String),
    InterpolationStart,
    InterpolationEnd,
    StringEnd,
    /// A string escape that means nothing, with the complaint.
    BadText(String),
    Invalid,
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub kind: Kind,
    pub at: usize,
}

const KEYWORDS: [&str; 18] = [
    "as", "import", "include", "module", "def", "if", "then", "else", "elif", "and", "or", "end", "reduce", "foreach", "try",
    "catch", "label", "break",
];

/// Longest first.
const MARKS: [&str; 29] = [
    "?//", "//=", "!=", "==", "//", "|=", "+=", "-=", "*=", "/=", "%=", "<=", ">=", "..", ".", "?", "=", ";", ",", ":", "|", "+",
    "-", "*", "/", "%", "$", "<", ">",
];

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

impl Kind {
    /// Returns the token in an error message.
    pub fn name(&self) -> String {
        match self {
            Self::Mark(mark) if mark.len() == 1 => format!("'{mark}'"),
            Self::Mark(mark) => (*mark).to_string(),
            Self::Ident(_) => "IDENT".to_string(),
            Self::Field(_) => "FIELD".to_string(),
            Self::Binding(_) => "BINDING".to_string(),
            Self::Literal(_) => "LITERAL".to_string(),
            Self::Format(_) => "FORMAT".to_string(),
            Self::StringStart => "QQSTRING_START".to_string(),
            Self::StringText(_) | Self::BadText(_) => "QQSTRING_TEXT".to_string(),
            Self::InterpolationStart => "QQSTRING_INTERP_START".to_string(),
            Self::InterpolationEnd => "QQSTRING_INTERP_END".to_string(),
            Self::StringEnd => "QQSTRING_END".to_string(),
            Self::Invalid => "INVALID_CHARACTER".to_string(),
            Self::End => "end of file".to_string(),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Paren,
    Bracket,
    Brace,
    Interpolation,
    String,
}

fn word_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
        return 0;
    }
    bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
}

/// A name with module prefixes.
fn path_length(text: &str) -> usize {
    let mut length = word_length(text);
    while length > 0 && text[length..].starts_with("::") {
        match word_length(&text[length + 2..]) {
            0 => break,
            more => length += 2 + more,
        }
    }
    length
}

fn number_length(text: &str) -> usize {
    let digits = |from: usize| text.as_bytes()[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut length = whole;
    if text[length..].starts_with('.') {
        let fraction = digits(length + 1);
        if whole + fraction == 0 {
            return 0;
        }
        length += 1 + fraction;
    }
    if length > 0 && text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

/// Escapes in a row: `\n`, `\u00e9`, anything but `\(`.
fn escapes_length(text: &str) -> usize {
    let mut length = 0;
    let mut chars = text.chars();
    while chars.next() == Some('\\') {
        match chars.next() {
            None | Some('(') => break,
            Some('u') => {
                let digits = chars.as_str().bytes().take(4).take_while(u8::is_ascii_alphanumeric).count();
                length += 2 + digits;
            }
            Some(char) => length += 1 + char.len_utf8(),
        }
        chars = text[length..].chars();
    }
    length
}

/// Cuts a program up; the last token is the end, at the place of what came before it.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut modes: Vec<Mode> = Vec::new();
    let mut at = 0;
    let mut last = 0;
    while let Some(char) = text[at..].chars().next() {
        let rest = &text[at..];
        last = at;
        let mut push = |kind, length: usize| {
            tokens.push(Token { kind, at });
            length
        };
        if modes.last() == Some(&Mode::String) {
            at += match char {
                '"' => {
                    modes.pop();
                    push(Kind::StringEnd, 1)
                }
                '\\' if rest.starts_with("\\(") => {
                    modes.push(Mode::Interpolation);
                    push(Kind::InterpolationStart, 2)
                }
                '\\' => {
                    let length = escapes_length(rest);
                    if length == 0 {
                        push(Kind::Invalid, 1)
                    } else {
                        let kind = match json::parse(&format!("\"{}\"", &rest[..length])) {
                            Ok(Json::String(text)) => Kind::StringText(text.as_str().to_string()),
                            Ok(_) => Kind::Invalid,
                            Err(message) => Kind::BadText(message),
                        };
                        push(kind, length)
                    }
                }
                _ => {
                    let length = rest.find(['\\', '"']).unwrap_or(rest.len());
                    push(Kind::StringText(rest[..length].to_string()), length)
                }
            };
            continue;
        }
        let number = number_length(rest);
        let word = path_length(rest);
        at += match char {
            ' ' | '\t' | '\n' => rest.len() - rest.trim_start_matches([' ', '\t', '\n']).len(),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' => {
                modes.push(Mode::String);
                push(Kind::StringStart, 1)
            }
            '(' | '[' | '{' => {
                let (mode, mark) = match char {
                    '(' => (Mode::Paren, "("),
                    '[' => (Mode::Bracket, "["),
                    _ => (Mode::Brace, "{"),
                };
                modes.push(mode);
                push(Kind::Mark(mark), 1)
            }
            ')' | ']' | '}' => {
                let kind = match (char, modes.last()) {
                    (')', Some(Mode::Paren)) => Kind::Mark(")"),
                    (']', Some(Mode::Bracket)) => Kind::Mark("]"),
                    ('}', Some(Mode::Brace)) => Kind::Mark("}"),
                    (')', Some(Mode::Interpolation)) => Kind::InterpolationEnd,
                    _ => Kind::Invalid,
                };
                if kind != Kind::Invalid {
                    modes.pop();
                }
                push(kind, 1)
            }
            '@' => match rest[1..].bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count() {
                0 => push(Kind::Invalid, 1),
                length => push(Kind::Format(rest[1..=length].to_string()), 1 + length),
            },
            _ if number > 0 => push(Kind::Literal(rest[..number].to_string()), number),
            '.' if word_length(&rest[1..]) > 0 => {
                let length = word_length(&rest[1..]);
                push(Kind::Field(rest[1..=length].to_string()), 1 + length)
            }
            '$' if path_length(&rest[1..]) > 0 => {
                let length = path_length(&rest[1..]);
                let name = &rest[1..=length];
                push(if name == "__loc__" { Kind::Mark("$__loc__") } else { Kind::Binding(name.to_string()) }, 1 + length)
            }
            _ if word > 0 => {
                let name = &rest[..word];
                match KEYWORDS.iter().find(|keyword| **keyword == name) {
                    Some(keyword) => push(Kind::Mark(keyword), word),
                    None => push(Kind::Ident(name.to_string()), word),
                }
            }
            _ => match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
                Some(mark) => push(Kind::Mark(mark), mark.len()),
                None => push(Kind::Invalid, char.len_utf8()),
            },
        };
    }
    tokens.push(Token { kind: Kind::End, at: last });
    tokens
}

/// Returns the value of a number in a program.
pub(super) fn literal(text: &str) -> Json {
    number::parse(text).unwrap_or(Json::Null)
}
