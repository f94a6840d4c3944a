//! `test` and `[`: conditions on files, strings and numbers.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use sys::Permission;
use sys::stat::{S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG};

use crate::program::{Args, Outcome, bytes, set_failure, warn};
use crate::quote;

/// Runs `[`: like `test`, with a closing bracket.
pub fn bracket(mut args: Args) -> Outcome {
    set_failure(2);
    if args.len() > 1 && args.last().is_none_or(|last| last != "]") || args.len() == 1 {
        warn(format!("missing {}", quote::plain("]")));
        return Err(2);
    }
    args.pop();
    test(args)
}

/// Runs `test`.
pub fn test(args: Args) -> Outcome {
    set_failure(2);
    let words: Vec<OsString> = args.into_iter().skip(1).collect();
    match evaluate(&words) {
        Ok(true) => Ok(0),
        Ok(false) => Ok(1),
        Err(text) => {
            warn(text);
            Err(2)
        }
    }
}

type Answer = Result<bool, String>;

fn evaluate(words: &[OsString]) -> Answer {
    match words {
        [] => Ok(false),
        [only] => Ok(!only.is_empty()),
        [not, only] if not == "!" => Ok(only.is_empty()),
        [operator, operand] => match unary(operator, operand) {
            Some(answer) => answer,
            None if matches!(bytes(operator), [b'-', _]) => Err(format!("{}: unary operator expected", quote::plain(operator))),
            None => Err(format!("missing argument after {}", quote::plain(operand))),
        },
        [left, operator, right] => match binary(left, operator, right) {
            Some(answer) => answer,
            None if left == "!" => evaluate(&words[1..]).map(|answer| !answer),
            None if left == "(" && right == ")" => evaluate(&words[1..2]),
            None if operator == "-a" => Ok(!left.is_empty() && !right.is_empty()),
            None if operator == "-o" => Ok(!left.is_empty() || !right.is_empty()),
            None => Err(format!("{}: binary operator expected", quote::plain(operator))),
        },
        [not, rest @ ..] if words.len() == 4 && not == "!" => evaluate(rest).map(|answer| !answer),
        [open, inner @ .., close] if words.len() == 4 && open == "(" && close == ")" => evaluate(inner),
        _ => {
            let mut expression = Expression { words, at: 0 };
            let answer = expression.or()?;
            match words.get(expression.at) {
                None => Ok(answer),
                Some(extra) => Err(format!("extra argument {}", quote::plain(extra))),
            }
        }
    }
}

struct Expression<'a> {
    words: &'a [OsString],
    at: usize,
}

impl Expression<'_> {
    fn next_is(&self, word: &str) -> bool {
        self.words.get(self.at).is_some_and(|next| next == word)
    }

    fn or(&mut self) -> Answer {
        let mut answer = self.and()?;
        while self.next_is("-o") {
            self.at += 1;
            answer |= self.and()?;
        }
        Ok(answer)
    }

    fn and(&mut self) -> Answer {
        let mut answer = self.term()?;
        while self.next_is("-a") {
            self.at += 1;
            answer &= self.term()?;
        }
        Ok(answer)
    }

    fn term(&mut self) -> Answer {
        let rest = self.words.get(self.at..).unwrap_or_default();
        if let [left, operator, right, ..] = rest
            && let Some(answer) = binary(left, operator, right)
        {
            self.at += 3;
            return answer;
        }
        match rest {
            [] => Err(format!(
                "missing argument after {}",
                quote::plain(self.words.last().map_or(OsStr::new(""), OsString::as_os_str))
            )),
            [not, ..] if not == "!" => {
                self.at += 1;
                self.term().map(|answer| !answer)
            }
            [open, ..] if open == "(" => {
                self.at += 1;
                let answer = self.or()?;
                if !self.next_is(")") {
                    return Err(match self.words.get(self.at) {
                        Some(found) => format!("{} expected, found {}", quote::plain(")"), found.to_string_lossy()),
                        None => format!("{} expected", quote::plain(")")),
                    });
                }
                self.at += 1;
                Ok(answer)
            }
            [operator, operand, ..] if is_unary(operator) => {
                self.at += 2;
                unary(operator, operand).unwrap_or(Ok(false))
            }
            [word, ..] => {
                self.at += 1;
                Ok(!word.is_empty())
            }
        }
    }
}

fn is_unary(operator: &OsStr) -> bool {
    matches!(bytes(operator), [b'-', letter] if b"bcdefghknprstuvwxzGLNOS".contains(letter))
}

fn unary(operator: &OsStr, operand: &OsStr) -> Option<Answer> {
    let &[b'-', letter] = bytes(operator) else { return None };
    let path = Path::new(operand);
    let kind = |wanted: u32| sys::stat(path, true).is_ok_and(|stat| stat.kind() == wanted);
    let bit = |wanted: u32| sys::stat(path, true).is_ok_and(|stat| stat.mode & wanted != 0);
    Some(Ok(match letter {
        b'n' => !operand.is_empty(),
        b'z' => operand.is_empty(),
        b'e' => sys::stat(path, true).is_ok(),
        b'f' => kind(S_IFREG),
        b'd' => kind(S_IFDIR),
        b'c' => kind(S_IFCHR),
        b'b' => kind(0o060_000),
        b'p' => kind(S_IFIFO),
        b'S' => kind(0o140_000),
        b'h' | b'L' => sys::stat(path, false).is_ok_and(|stat| stat.kind() == S_IFLNK),
        b's' => sys::stat(path, true).is_ok_and(|stat| stat.size > 0),
        b'r' => sys::accessible(path, Permission::Read),
        b'w' => sys::accessible(path, Permission::Write),
        b'x' => sys::accessible(path, Permission::Execute),
        b'u' => bit(0o4000),
        b'g' => bit(0o2000),
        b'k' => bit(0o1000),
        b'O' => sys::stat(path, true).is_ok_and(|stat| stat.uid == sys::user_ids()[0]),
        b'G' => sys::stat(path, true).is_ok_and(|stat| stat.gid == sys::user_ids()[1]),
        b'N' => sys::stat(path, true).is_ok_and(|stat| stat.mtime > stat.atime),
        b't' => match integer(operand) {
            Ok(number) => u32::try_from(number).is_ok_and(sys::is_terminal),
            Err(text) => return Some(Err(text)),
        },
        _ => return None,
    }))
}

fn integer(word: &OsStr) -> Result<i128, String> {
    let text = word.to_string_lossy();
    let trimmed = text.trim();
    trimmed
        .strip_prefix('+')
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        .unwrap_or(trimmed)
        .parse()
        .map_err(|_| format!("invalid integer {}", quote::plain(word)))
}

fn binary(left: &OsStr, operator: &OsStr, right: &OsStr) -> Option<Answer> {
    let numbers = |fits: fn(Ordering) -> bool| match (integer(left), integer(right)) {
        (Ok(a), Ok(b)) => Some(Ok(fits(a.cmp(&b)))),
        (Err(text), _) | (_, Err(text)) => Some(Err(text)),
    };
    let stats = || (sys::stat(Path::new(left), true).ok(), sys::stat(Path::new(right), true).ok());
    match bytes(operator) {
        b"=" | b"==" => Some(Ok(left == right)),
        b"!=" => Some(Ok(left != right)),
        b"<" => Some(Ok(bytes(left) < bytes(right))),
        b">" => Some(Ok(bytes(left) > bytes(right))),
        b"-eq" => numbers(Ordering::is_eq),
        b"-ne" => numbers(Ordering::is_ne),
        b"-lt" => numbers(Ordering::is_lt),
        b"-le" => numbers(Ordering::is_le),
        b"-gt" => numbers(Ordering::is_gt),
        b"-ge" => numbers(Ordering::is_ge),
        b"-nt" => Some(Ok(match stats() {
            (Some(a), Some(b)) => a.mtime > b.mtime,
            (Some(_), None) => true,
            _ => false,
        })),
        b"-ot" => Some(Ok(match stats() {
            (Some(a), Some(b)) => a.mtime < b.mtime,
            (None, Some(_)) => true,
            _ => false,
        })),
        b"-ef" => Some(Ok(matches!(stats(), (Some(a), Some(b)) if (a.dev, a.ino) == (b.dev, b.ino)))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_or_not() {
        for (words, expected) in [
            ("", false),
            ("x", true),
            ("! x", false),
            ("a = a", true),
            ("1 -lt 2 -a 3 -gt 2", true),
            ("( a = b ) -o x", true),
            ("! a = b", true),
            ("-n x -a -z y", false),
            ("! -n x -o x", true),
            ("( ! x )", false),
        ] {
            let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
            assert_eq!(evaluate(&words), Ok(expected), "{words:?}");
        }
    }
}
