//! The arguments of a command: delimited patterns, texts, the parts of `s` and `y`.

use std::collections::HashMap;

use super::{Kind, Parser, Result, Substitute, intern};
use crate::text::sed::replace::{self, Replacement};

impl Parser<'_> {
    /// Returns the text up to the delimiter: `\` before the delimiter is removed, `\n` in a pattern becomes a newline.
    pub(super) fn delimited(&mut self, delimiter: u8, pattern: bool) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            let mut byte = self.next()?;
            if byte == delimiter {
                return Some(out);
            }
            if byte == b'\n' && pattern {
                self.at -= 1;
                return None;
            }
            if byte == b'[' && pattern {
                self.bracket(&mut out)?;
                continue;
            }
            if byte == b'\\' {
                byte = self.next()?;
                if byte == b'n' && pattern && delimiter != b'n' {
                    byte = b'\n';
                    // A class needs the character itself, and so does everything else.
                } else if byte == delimiter && (pattern || byte != b'&') {
                    // Taken literally where it would be special: `s|a\|b|c|` looks for a bar.
                    if pattern && !self.options.extended && b"+?|(){}".contains(&byte) {
                        out.push(byte);
                        continue;
                    }
                    if pattern && b".*]^$+?|(){}".contains(&byte) {
                        out.push(b'\\');
                    }
                } else if byte != b'\n' || !pattern {
                    out.push(b'\\');
                }
            }
            out.push(byte);
        }
    }

    /// Copies a bracket expression, in which the delimiter is an ordinary character.
    fn bracket(&mut self, out: &mut Vec<u8>) -> Option<()> {
        out.push(b'[');
        for first in [b'^', b']'] {
            if self.peek() == Some(first) {
                self.at += 1;
                out.push(first);
            }
        }
        loop {
            let byte = self.next()?;
            match (byte, self.peek()) {
                (b'\n', _) => {
                    self.at -= 1;
                    return None;
                }
                (b'\\', Some(b'n')) => {
                    self.at += 1;
                    out.push(b'\n');
                    continue;
                }
                (b'[', Some(mark @ (b':' | b'.' | b'='))) => {
                    let rest = &self.text[self.at + 1..];
                    if let Some(end) = memchr::memmem::find(rest, &[mark, b']']) {
                        out.push(b'[');
                        out.extend_from_slice(&self.text[self.at..self.at + end + 3]);
                        self.at += end + 3;
                        continue;
                    }
                }
                _ => {}
            }
            out.push(byte);
            if byte == b']' {
                return Some(());
            }
        }
    }

    /// Returns the text of `a`, `i`, `c`: one-liner or after `\` and a newline.
    pub(super) fn text_argument(&mut self) -> Result<Vec<u8>> {
        self.skip_blank();
        let Some(byte) = self.peek() else { return self.error("expected \\ after `a', `c' or `i'") };
        if byte == b'\\' {
            self.at += 1;
            let after = self.at;
            self.skip_blank();
            if self.peek() == Some(b'\n') {
                self.at += 1;
            } else if self.peek().is_none() {
                return Ok(Vec::new());
            } else {
                self.at = after;
            }
        } else if byte == b'\n' {
            return self.error("expected \\ after `a', `c' or `i'");
        }
        let mut text = Vec::new();
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => break,
                b'\\' => match self.next() {
                    None => break,
                    Some(b'\n') => text.push(b'\n'),
                    Some(letter) => match replace::escape(&self.text, &mut self.at, letter) {
                        Some(value) => text.push(value),
                        None => text.push(letter),
                    },
                },
                _ => text.push(byte),
            }
        }
        text.push(b'\n');
        Ok(text)
    }

    pub(super) fn substitute(&mut self) -> Result<Substitute> {
        let Some(delimiter) = self.next().filter(|&byte| byte != b'\n' && byte != b'\\') else {
            return self.error("unterminated `s' command");
        };
        let Some(pattern) = self.delimited(delimiter, true) else { return self.error("unterminated `s' command") };
        let Some(replacement) = self.delimited(delimiter, false) else { return self.error("unterminated `s' command") };
        let mut sub = Substitute {
            pattern: None,
            replacement: Replacement::parse(&replacement),
            global: false,
            print: false,
            evaluate: false,
            number: 0,
            write: None,
        };
        let (mut ignore_case, mut multiline) = (false, false);
        while let Some(flag) = self.next() {
            match flag {
                b'g' if sub.global => return self.error("multiple `g' options to `s' command"),
                b'g' => sub.global = true,
                b'p' if sub.print => return self.error("multiple `p' options to `s' command"),
                b'p' => sub.print = true,
                b'i' | b'I' => ignore_case = true,
                b'm' | b'M' => multiline = true,
                b'e' if self.options.sandbox => return self.error("e/r/w commands disabled in sandbox mode"),
                b'e' => sub.evaluate = true,
                b'0'..=b'9' => {
                    if sub.number > 0 {
                        return self.error("multiple number options to `s' command");
                    }
                    self.at -= 1;
                    sub.number = self.number();
                    if sub.number == 0 {
                        return self.error("number option to `s' command may not be zero");
                    }
                }
                b'w' => {
                    let name = self.file_name()?;
                    sub.write = Some(intern(&mut self.program.outputs, name));
                    break;
                }
                b'}' | b'#' => {
                    self.at -= 1;
                    break;
                }
                b'\n' | b';' => break,
                b'\r' | b' ' | b'\t' => {}
                _ => return self.error("unknown option to `s'"),
            }
        }
        sub.pattern = self.pattern(&pattern, ignore_case, multiline)?;
        if let Some(regex) = &sub.pattern
            && sub.replacement.highest > regex.groups()
        {
            return self.error(&format!("invalid reference \\{} on `s' command's RHS", sub.replacement.highest));
        }
        Ok(sub)
    }

    pub(super) fn translate(&mut self) -> Result<Kind> {
        let Some(delimiter) = self.next() else { return self.error("unterminated `y' command") };
        let Some(from) = self.delimited(delimiter, false) else { return self.error("unterminated `y' command") };
        let Some(to) = self.delimited(delimiter, false) else { return self.error("unterminated `y' command") };
        let (from, to) = (replace::characters(&from), replace::characters(&to));
        if from.len() != to.len() {
            return self.error("strings for `y' command are different lengths");
        }
        let mut map = HashMap::new();
        for (from, to) in from.into_iter().zip(to) {
            map.entry(from).or_insert(to);
        }
        Ok(Kind::Translate(map))
    }
}
