//! Options as GNU's `getopt_long` reads them: bundled letters, abbreviated long names, operands anywhere.

use crate::io::show;

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Never.
    No,
    /// Always.
    Yes,
    /// Only as `-xVALUE` or `--name=VALUE`.
    Maybe,
}

/// One element of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An option by its letter (or the letter that stands for a long name) and its value.
    Opt(char, Option<Vec<u8>>),
    /// An operand.
    Operand(Vec<u8>),
}

/// A long option: name, value, the letter it is reported as.
pub type Long = (&'static str, Value, char);

/// Which options there are.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Letters as `getopt(3)` writes them: `ab:c::`; a leading `+` stops at the first operand.
    pub short: &'static str,
    /// Long names.
    pub long: &'static [Long],
}

impl Spec {
    fn short_value(&self, letter: char) -> Option<Value> {
        if letter == ':' || letter == '+' {
            return None;
        }
        let at = self.short.find(letter)?;
        let rest = &self.short[at + letter.len_utf8()..];
        Some(if rest.starts_with("::") {
            Value::Maybe
        } else if rest.starts_with(':') {
            Value::Yes
        } else {
            Value::No
        })
    }

    fn long(&self, name: &str) -> Result<Long, String> {
        if let Some(found) = self.long.iter().find(|long| long.0 == name) {
            return Ok(*found);
        }
        let close: Vec<&Long> = self.long.iter().filter(|long| long.0.starts_with(name)).collect();
        match close.as_slice() {
            [] => Err(format!("unrecognized option '--{name}'")),
            [first, rest @ ..] if rest.iter().all(|other| other.2 == first.2) => Ok(**first),
            all => {
                let names: String = all.iter().map(|long| format!(" '--{}'", long.0)).collect();
                Err(format!("option '--{name}' is ambiguous; possibilities:{names}"))
            }
        }
    }

    /// Reads the arguments after the program's name; the error is the message without that name.
    pub fn parse(&self, args: &[Vec<u8>]) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if arg == b"--" {
                items.extend(rest.map(|operand| Item::Operand(operand.clone())));
                break;
            }
            if let Some(long) = arg.strip_prefix(b"--") {
                let (name, given) = match memchr::memchr(b'=', long) {
                    Some(at) => (&long[..at], Some(long[at + 1..].to_vec())),
                    None => (long, None),
                };
                let (name, value, letter) = self.long(&show(name))?;
                let given = match (value, given) {
                    (Value::No, Some(_)) => return Err(format!("option '--{name}' doesn't allow an argument")),
                    (Value::Yes, None) => match rest.next() {
                        Some(next) => Some(next.clone()),
                        None => return Err(format!("option '--{name}' requires an argument")),
                    },
                    (_, given) => given,
                };
                items.push(Item::Opt(letter, given));
            } else if arg.len() > 1 && arg[0] == b'-' {
                let text = show(&arg[1..]).into_owned();
                let mut at = 0;
                while at < text.len() {
                    let Some(letter) = text[at..].chars().next() else { break };
                    at += letter.len_utf8();
                    let Some(value) = self.short_value(letter) else {
                        return Err(format!("invalid option -- '{letter}'"));
                    };
                    let attached = (at < text.len()).then(|| arg[(1 + at).min(arg.len())..].to_vec());
                    match (value, attached) {
                        (Value::No, _) => {
                            items.push(Item::Opt(letter, None));
                            continue;
                        }
                        (Value::Yes, None) => match rest.next() {
                            Some(next) => items.push(Item::Opt(letter, Some(next.clone()))),
                            None => return Err(format!("option requires an argument -- '{letter}'")),
                        },
                        (_, attached) => items.push(Item::Opt(letter, attached)),
                    }
                    break;
                }
            } else if self.short.starts_with('+') {
                items.push(Item::Operand(arg.clone()));
                items.extend(rest.map(|operand| Item::Operand(operand.clone())));
                break;
            } else {
                items.push(Item::Operand(arg.clone()));
            }
        }
        Ok(items)
    }
}

/// The arguments as bytes.
#[must_use]
pub fn bytes(args: Vec<std::ffi::OsString>) -> Vec<Vec<u8>> {
    args.into_iter().map(std::ffi::OsString::into_encoded_bytes).collect()
}

/// A number of bytes, lines or columns that is all of `text`; one that is larger than any memory is the largest.
#[must_use]
pub fn size(text: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let digits = text.strip_prefix('+').unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().unwrap_or(usize::MAX))
}

/// A number that may be larger than a `usize`, as one: none is below zero, and the largest stands for all above it.
#[must_use]
pub fn saturated(number: i64) -> usize {
    usize::try_from(number.max(0)).unwrap_or(usize::MAX)
}

/// A decimal number that is all of `text`.
#[must_use]
pub fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}
