//! `expr`: arithmetic, comparison and patterns, one token per argument.

use std::cmp::Ordering;
use std::ffi::OsString;

use posix_regex::{Regex, Syntax};

use crate::program::{Args, Outcome, Output, bytes, fail, name, set_failure, usage, utf8};
use crate::quote;

/// Runs `expr`.
pub fn main(args: Args) -> Outcome {
    set_failure(2);
    let mut words: Vec<OsString> = args.into_iter().skip(1).collect();
    match words.as_slice() {
        [only] if only == "--help" => {
            Output::new().text(format!("Usage: {} EXPRESSION\nPrint the value of EXPRESSION to standard output.\n", name()));
            return Ok(0);
        }
        [only] if only == "--version" => {
            Output::new().text(format!("expr (GNU coreutils work-alike of Sandlite) {}\n", env!("CARGO_PKG_VERSION")));
            return Ok(0);
        }
        [first, ..] if first == "--" => {
            words.remove(0);
        }
        _ => {}
    }
    if words.is_empty() {
        return Err(usage("missing operand"));
    }
    let mut parser = Parser { words: &words, at: 0 };
    let value = parser.or(true)?;
    if let Some(extra) = words.get(parser.at) {
        return Err(fail(format!("syntax error: unexpected argument {}", quote::plain(extra))));
    }
    Output::new().line(&value, b'\n');
    Ok(i32::from(is_null(&value)))
}

type Value = Vec<u8>;

/// Returns the characters of a value: bytes, or those of UTF-8.
fn characters(value: &[u8]) -> Vec<&[u8]> {
    if !utf8() {
        return value.chunks(1).collect();
    }
    let mut out = Vec::new();
    let mut at = 0;
    for chunk in value.utf8_chunks() {
        let lengths = chunk.valid().chars().map(char::len_utf8).chain(chunk.invalid().iter().map(|_| 1));
        for length in lengths {
            out.push(&value[at..at + length]);
            at += length;
        }
    }
    out
}

/// Returns the integer a value is, if it is one.
fn integer(value: &[u8]) -> Option<i128> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then_some(())?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn is_null(value: &[u8]) -> bool {
    value.is_empty() || value.strip_prefix(b"-").unwrap_or(value).iter().all(|&byte| byte == b'0') && value != b"-"
}

struct Parser<'a> {
    words: &'a [OsString],
    at: usize,
}

impl Parser<'_> {
    fn take(&mut self, word: &str) -> bool {
        let found = self.words.get(self.at).is_some_and(|next| next == word);
        self.at += usize::from(found);
        found
    }

    fn take_any(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let found = words.iter().copied().find(|word| self.words.get(self.at).is_some_and(|next| next == *word))?;
        self.at += 1;
        Some(found)
    }

    fn missing(&self) -> i32 {
        let last = self.words.get(self.at.wrapping_sub(1)).map(quote::plain).unwrap_or_default();
        fail(format!("syntax error: missing argument after {last}"))
    }

    fn or(&mut self, live: bool) -> Result<Value, i32> {
        let mut left = self.and(live)?;
        while self.take("|") {
            let right = self.and(live && is_null(&left))?;
            if is_null(&left) {
                left = if is_null(&right) { b"0".to_vec() } else { right };
            }
        }
        Ok(left)
    }

    fn and(&mut self, live: bool) -> Result<Value, i32> {
        let mut left = self.comparison(live)?;
        while self.take("&") {
            let right = self.comparison(live && !is_null(&left))?;
            if is_null(&left) || is_null(&right) {
                left = b"0".to_vec();
            }
        }
        Ok(left)
    }

    fn comparison(&mut self, live: bool) -> Result<Value, i32> {
        let mut left = self.sum(live)?;
        while let Some(operator) = self.take_any(&["<", "<=", "=", "==", "!=", ">=", ">"]) {
            let right = self.sum(live)?;
            let order = match (integer(&left), integer(&right)) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => left.cmp(&right),
            };
            let holds = match operator {
                "<" => order == Ordering::Less,
                "<=" => order != Ordering::Greater,
                "=" | "==" => order == Ordering::Equal,
                "!=" => order != Ordering::Equal,
                ">=" => order != Ordering::Less,
                _ => order == Ordering::Greater,
            };
            left = if holds { b"1".to_vec() } else { b"0".to_vec() };
        }
        Ok(left)
    }

    fn sum(&mut self, live: bool) -> Result<Value, i32> {
        let mut left = self.product(live)?;
        while let Some(operator) = self.take_any(&["+", "-"]) {
            let right = self.product(live)?;
            if live {
                let (a, b) = numbers(&left, &right)?;
                left = shown(if operator == "+" { a.checked_add(b) } else { a.checked_sub(b) })?;
            }
        }
        Ok(left)
    }

    fn product(&mut self, live: bool) -> Result<Value, i32> {
        let mut left = self.pattern(live)?;
        while let Some(operator) = self.take_any(&["*", "/", "%"]) {
            let right = self.pattern(live)?;
            if live {
                let (a, b) = numbers(&left, &right)?;
                if operator != "*" && b == 0 {
                    return Err(fail("division by zero"));
                }
                left = shown(match operator {
                    "*" => a.checked_mul(b),
                    "/" => a.checked_div(b),
                    _ => a.checked_rem(b),
                })?;
            }
        }
        Ok(left)
    }

    fn pattern(&mut self, live: bool) -> Result<Value, i32> {
        let mut left = self.keyword(live)?;
        while self.take(":") {
            let right = self.keyword(live)?;
            if live {
                left = matched(&left, &right)?;
            }
        }
        Ok(left)
    }

    fn keyword(&mut self, live: bool) -> Result<Value, i32> {
        if self.take("+") {
            let Some(word) = self.words.get(self.at) else { return Err(self.missing()) };
            self.at += 1;
            return Ok(bytes(word).to_vec());
        }
        match self.take_any(&["length", "match", "index", "substr"]) {
            Some("length") => {
                let value = self.keyword(live)?;
                Ok(characters(&value).len().to_string().into_bytes())
            }
            Some("match") => {
                let (text, pattern) = (self.keyword(live)?, self.keyword(live)?);
                if live { matched(&text, &pattern) } else { Ok(text) }
            }
            Some("index") => {
                let (text, set) = (self.keyword(live)?, self.keyword(live)?);
                let set = characters(&set);
                let at = characters(&text).iter().position(|c| set.contains(c)).map_or(0, |at| at + 1);
                Ok(at.to_string().into_bytes())
            }
            Some(_) => {
                let (text, from, length) = (self.keyword(live)?, self.keyword(live)?, self.keyword(live)?);
                let number =
                    |value: &[u8]| integer(value).and_then(|value| usize::try_from(value).ok()).filter(|value| *value > 0);
                let (Some(from), Some(length)) = (number(&from), number(&length)) else { return Ok(Vec::new()) };
                Ok(characters(&text).into_iter().skip(from - 1).take(length).flatten().copied().collect())
            }
            None => self.primary(live),
        }
    }

    fn primary(&mut self, live: bool) -> Result<Value, i32> {
        let Some(word) = self.words.get(self.at) else { return Err(self.missing()) };
        self.at += 1;
        if word == "(" {
            let value = self.or(live)?;
            if !self.take(")") {
                return Err(match self.words.get(self.at) {
                    None => fail(format!("syntax error: expecting ')' after {}", quote::plain(&self.words[self.at - 1]))),
                    Some(found) => fail(format!("syntax error: expecting ')' instead of {}", quote::plain(found))),
                });
            }
            return Ok(value);
        }
        if word == ")" {
            return Err(fail("syntax error: unexpected ')'"));
        }
        Ok(bytes(word).to_vec())
    }
}

fn numbers(a: &[u8], b: &[u8]) -> Result<(i128, i128), i32> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(fail("non-integer argument")),
    }
}

fn shown(value: Option<i128>) -> Result<Value, i32> {
    value.map(|value| value.to_string().into_bytes()).ok_or_else(|| fail("integer result too large"))
}

/// Returns the match of a pattern anchored at the start: its first group, or the number of characters.
fn matched(text: &[u8], pattern: &[u8]) -> Result<Value, i32> {
    // Between ASCII texts bytes match as characters do, and their automaton is far smaller.
    let characters_are_bytes = !utf8() || text.is_ascii() && pattern.is_ascii();
    let syntax = Syntax { library: true, utf8: !characters_are_bytes, ..Syntax::default() };
    let regex = Regex::new(pattern, syntax).map_err(fail)?;
    let mut groups = Vec::new();
    // Of all matches the leftmost is found: where another begins there is none at the start.
    let matched = regex.captures_at(text, 0, &mut groups) && matches!(groups.first(), Some(Some((0, _))));
    let taken = |group: usize| groups.get(group).copied().flatten().and_then(|(start, end)| text.get(start..end));
    Ok(match (matched, regex.groups() > 0) {
        (true, true) => taken(1).unwrap_or_default().to_vec(),
        (true, false) => taken(0).map_or(0, |whole| characters(whole).len()).to_string().into_bytes(),
        (false, true) => Vec::new(),
        (false, false) => b"0".to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_take_from_the_start() {
        for (text, pattern, expected) in [
            ("abc", "a.", "2"),
            ("abc", "b", "0"),
            ("file.txt", "\\(.*\\)\\.txt", "file"),
            ("x1", "[a-z][0-9]*$", "2"),
            ("a*b", "a\\*", "2"),
        ] {
            assert_eq!(matched(text.as_bytes(), pattern.as_bytes()), Ok(expected.as_bytes().to_vec()), "{text} : {pattern}");
        }
    }
}
