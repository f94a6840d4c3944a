//! `printf`: a format, used until it has taken all arguments.

use std::ffi::OsString;

use common::printf::{Conversion, number};
use common::{escape, float};

use crate::program::{Args, Outcome, Output, bytes, fail, name, usage, utf8, warn};
use crate::quote;

/// Runs `printf`.
pub fn main(args: Args) -> Outcome {
    let mut words: &[OsString] = args.get(1..).unwrap_or_default();
    match words {
        [only] if only == "--help" => {
            Output::new().text(format!("Usage: {} FORMAT [ARGUMENT]...\nPrint ARGUMENT(s) according to FORMAT.\n", name()));
            return Ok(0);
        }
        [only] if only == "--version" => {
            Output::new().text(format!("printf (GNU coreutils work-alike of Sandlite) {}\n", env!("CARGO_PKG_VERSION")));
            return Ok(0);
        }
        [first, rest @ ..] if first == "--" => words = rest,
        _ => {}
    }
    let [format, arguments @ ..] = words else { return Err(usage("missing operand")) };
    let mut printf = Printf { out: Output::new(), arguments: arguments.iter().map(|word| bytes(word)), status: 0 };
    loop {
        let left = printf.arguments.len();
        if printf.round(bytes(format))?.is_none() || printf.arguments.len() == 0 {
            break;
        }
        if printf.arguments.len() == left {
            let first = printf.arguments.next().unwrap_or_default();
            printf.out.send();
            warn(format!("warning: ignoring excess arguments, starting with {}", quote::plain_bytes(first)));
            break;
        }
    }
    Ok(printf.status)
}

struct Printf<A> {
    out: Output,
    arguments: A,
    status: i32,
}

/// `None` after `\c`, which ends all output.
type Going<T = ()> = Result<Option<T>, i32>;

impl<'a, A: Iterator<Item = &'a [u8]>> Printf<A> {
    /// Uses the format once.
    fn round(&mut self, format: &[u8]) -> Going {
        let mut rest = format;
        while !rest.is_empty() {
            let plain = rest.iter().position(|byte| matches!(byte, b'\\' | b'%')).unwrap_or(rest.len());
            let (head, tail) = rest.split_at(plain);
            self.out.put(head);
            let next = match tail {
                [] => return Ok(Some(())),
                [b'\\', tail @ ..] => self.escape(tail, escape::FORMAT)?,
                [_, b'%', tail @ ..] => {
                    self.out.byte(b'%');
                    Some(tail)
                }
                [_, b'b', tail @ ..] => self.unescaped()?.map(|()| tail),
                [_, b'q', tail @ ..] => {
                    let argument = self.arguments.next().unwrap_or_default();
                    self.out.text(quote::shell(argument, false));
                    Some(tail)
                }
                [_, tail @ ..] => Some(self.conversion(tail)?),
            };
            let Some(next) = next else { return Ok(None) };
            rest = next;
        }
        Ok(Some(()))
    }

    /// `%b`: the next argument with its escapes replaced.
    fn unescaped(&mut self) -> Going {
        let mut rest = self.arguments.next().unwrap_or_default();
        while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
            self.out.put(&rest[..at]);
            match self.escape(&rest[at + 1..], escape::ARGUMENT)? {
                Some(tail) => rest = tail,
                None => return Ok(None),
            }
        }
        self.out.put(rest);
        Ok(Some(()))
    }

    /// Prints the value of one escape; returns what follows it.
    fn escape<'t>(&mut self, tail: &'t [u8], escapes: escape::Escapes) -> Going<&'t [u8]> {
        if let [letter @ (b'x' | b'u' | b'U'), digits @ ..] = tail {
            let (least, most) = match letter {
                b'x' => (1, 2),
                b'u' => (4, 4),
                _ => (8, 8),
            };
            let (value, used) = escape::digits(digits, 16, most);
            if used < least {
                return Err(self.refuse("missing hexadecimal number in escape"));
            }
            if *letter != b'x' && (value < 0xa0 && !matches!(value, 0x24 | 0x40 | 0x60) || (0xd800..0xe000).contains(&value)) {
                let shown = String::from_utf8_lossy(&tail[..1 + used]).to_lowercase();
                return Err(self.refuse(format!("invalid universal character name \\{}{}", char::from(*letter), &shown[1..])));
            }
            if *letter != b'x' && !utf8() {
                self.out.text(if value > 0xffff { format!("\\U{value:08X}") } else { format!("\\u{value:04X}") });
                return Ok(digits.get(used..));
            }
        }
        let mut text = Vec::new();
        let used = escape::escape(tail, escapes, &mut text);
        self.out.put(&text);
        Ok(used.and_then(|used| tail.get(used..)))
    }

    /// Prints one conversion, after its `%`; returns what follows it.
    fn conversion<'f>(&mut self, text: &'f [u8]) -> Result<&'f [u8], i32> {
        let (mut conversion, mut rest) = Conversion::flags(text);
        let mut allowed = Letters::after(&text[..text.len() - rest.len()]);
        if let Some(tail) = rest.strip_prefix(b"*") {
            let width = self.size("field width")?;
            conversion.left |= width < 0;
            conversion.width = width.unsigned_abs() as usize;
            rest = tail;
        } else {
            let (width, tail) = number(rest);
            conversion.width = width.unwrap_or(0);
            rest = tail;
        }
        if let Some(tail) = rest.strip_prefix(b".") {
            allowed.refuse(b"c");
            if let Some(tail) = tail.strip_prefix(b"*") {
                conversion.precision = usize::try_from(self.size("precision")?).ok();
                rest = tail;
            } else {
                let (precision, tail) = number(tail);
                conversion.precision = Some(precision.unwrap_or(0));
                rest = tail;
            }
        }
        while let [b'l' | b'L' | b'h' | b'j' | b't' | b'z', tail @ ..] = rest {
            rest = tail;
        }
        let (letter, tail) = match rest {
            [letter, tail @ ..] if allowed.has(*letter) => (*letter, tail),
            _ => {
                let shown = &text[..text.len() - rest.len() + usize::from(!rest.is_empty())];
                return Err(self.refuse(format!("%{}: invalid conversion specification", String::from_utf8_lossy(shown))));
            }
        };
        // C's library refuses a conversion that is wider than its numbers.
        if conversion.width.max(conversion.precision.unwrap_or(0)) > i32::MAX as usize {
            return Err(self.refuse("write error"));
        }
        let argument = self.arguments.next().unwrap_or_default();
        match letter {
            b's' => conversion.text(argument, &mut self.out),
            b'c' => conversion.text(argument.get(..1).unwrap_or(&[0]), &mut self.out),
            b'd' | b'i' => {
                let value = self.integer(argument, i64::MIN.into(), i64::MAX.into());
                conversion.signed(i64::try_from(value).unwrap_or_default(), &mut self.out);
            }
            b'u' | b'o' | b'x' | b'X' => {
                let value = self.integer(argument, -i128::from(u64::MAX), u64::MAX.into());
                conversion.unsigned(value as u64, letter, &mut self.out);
            }
            _ => {
                let value = self.float(argument);
                conversion.float(value, letter, &mut self.out);
            }
        }
        Ok(tail)
    }

    /// Returns a width or a precision that is an argument.
    fn size(&mut self, what: &str) -> Result<i32, i32> {
        let argument = self.arguments.next().unwrap_or_default();
        let value = self.integer(argument, i64::MIN.into(), i64::MAX.into());
        i32::try_from(value).map_err(|_| self.refuse(format!("invalid {what}: {}", quote::plain_bytes(argument))))
    }

    fn integer(&mut self, argument: &[u8], least: i128, most: i128) -> i128 {
        if let Some(code) = self.character(argument) {
            return code.into();
        }
        let text = String::from_utf8_lossy(argument);
        let trimmed = text.trim_ascii_start();
        let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
        let hexadecimal = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
        let (radix, digits) = match hexadecimal {
            Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => (16, digits),
            _ if unsigned.starts_with('0') => (8, unsigned),
            _ => (10, unsigned),
        };
        let used = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
        let magnitude = digits[..used]
            .chars()
            .try_fold(0i128, |value, c| value.checked_mul(radix.into())?.checked_add(c.to_digit(radix)?.into()));
        let value = magnitude.map_or(i128::MAX, |value| if trimmed.starts_with('-') { -value } else { value });
        if !(least..=most).contains(&value) {
            self.complain(argument, "Numerical result out of range");
            // Below zero an unsigned number, too, is the largest.
            return if trimmed.starts_with('-') && least == i128::from(i64::MIN) { least } else { most };
        }
        self.check(argument, if used == 0 { &text } else { &digits[used..] });
        value
    }

    fn float(&mut self, argument: &[u8]) -> f64 {
        if let Some(code) = self.character(argument) {
            return code.into();
        }
        let text = String::from_utf8_lossy(argument);
        let trimmed = text.trim_ascii_start();
        let (value, rest) = float::parse(trimmed);
        self.check(argument, if rest.len() == trimmed.len() { &text } else { rest });
        value
    }

    /// Complains about what follows a number; all of the argument if it has none.
    fn check(&mut self, argument: &[u8], rest: &str) {
        if rest.is_empty() {
            return;
        }
        let all = rest.len() == String::from_utf8_lossy(argument).len();
        self.complain(argument, if all { "expected a numeric value" } else { "value not completely converted" });
    }

    /// Returns the code of the character after a quote; warns about what follows it.
    fn character(&mut self, argument: &[u8]) -> Option<u32> {
        let [b'\'' | b'"', text @ ..] = argument else { return None };
        let &byte = text.first()?;
        let first = text.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next()).filter(|_| utf8());
        let (code, length) = first.map_or((byte.into(), 1), |c| (c.into(), c.len_utf8()));
        if text.len() > length {
            self.out.send();
            let rest = String::from_utf8_lossy(&text[length..]);
            warn(format!("warning: {rest}: character(s) following character constant have been ignored"));
        }
        Some(code)
    }

    fn complain(&mut self, argument: &[u8], what: &str) {
        self.out.send();
        warn(format!("{}: {what}", quote::plain_bytes(argument)));
        self.status = 1;
    }

    /// Reports what ends the program, after all that was printed before it.
    fn refuse(&mut self, text: impl AsRef<str>) -> i32 {
        self.out.send();
        fail(text)
    }
}

/// The conversions that may follow some flags.
struct Letters(Vec<u8>);

impl Letters {
    fn after(flags: &[u8]) -> Self {
        let mut letters = Self(b"aAcdeEfFgGiosuxX".to_vec());
        for flag in flags {
            match flag {
                b'\'' => letters.refuse(b"aAceEosxX"),
                b'#' => letters.refuse(b"cdisu"),
                b'0' => letters.refuse(b"cs"),
                _ => {}
            }
        }
        letters
    }

    fn refuse(&mut self, letters: &[u8]) {
        self.0.retain(|letter| !letters.contains(letter));
    }

    fn has(&self, letter: u8) -> bool {
        self.0.contains(&letter)
    }
}
