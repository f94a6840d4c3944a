//! `getopt`: puts a script's arguments into order, as util-linux's does.

use std::collections::VecDeque;

use crate::options::{self, May, Needs, No, Spec, Value};
use crate::program::{self, Args, Outcome, Output, bytes, usage};

const SPEC: Spec = Spec {
    short: "+ao:l:n:qQs:Tu",
    long: &[
        ("alternative", No, 'a'),
        ("options", Needs, 'o'),
        ("longoptions", Needs, 'l'),
        ("name", Needs, 'n'),
        ("quiet", No, 'q'),
        ("quiet-output", No, 'Q'),
        ("shell", Needs, 's'),
        ("test", No, 'T'),
        ("unquoted", No, 'u'),
    ],
    help: "OPTSTRING PARAMETERS\n  or:  getopt [OPTION]... [--] OPTSTRING PARAMETERS\n  or:  getopt [OPTION]... -o|--options OPTSTRING [OPTION]... [--] PARAMETERS",
};

/// Status of `-T`, by which scripts know this `getopt` from the old one.
const ENHANCED: i32 = 4;

/// Where operands are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Permute,
    StopAtFirst,
    Keep,
}

struct Parser {
    short: Vec<u8>,
    long: Vec<(Vec<u8>, Value)>,
    name: String,
    quiet: bool,
    alternative: bool,
    failed: bool,
}

/// Runs `getopt`.
pub fn main(args: Args) -> Outcome {
    program::set_failure(2);
    // Without options of its own it is the old one, which does not quote.
    let old = args.get(1).is_none_or(|first| !bytes(first).starts_with(b"-"));
    let (given, mut words): (_, VecDeque<_>) = if old {
        (options::Given { options: Vec::new(), operands: Vec::new() }, args.into_iter().skip(1).collect())
    } else {
        let mut given = options::parse(args, &SPEC)?;
        let words = std::mem::take(&mut given.operands);
        (given, words.into())
    };
    if given.has('T') {
        return Ok(ENHANCED);
    }
    let short = match given.value('o') {
        Some(short) => bytes(short).to_vec(),
        None => match words.pop_front() {
            Some(short) => bytes(&short).to_vec(),
            None => return Err(usage("missing optstring argument")),
        },
    };
    let posix = std::env::var_os("POSIXLY_CORRECT").is_some();
    let (order, short) = match short.split_first() {
        Some((b'+', rest)) => (Order::StopAtFirst, rest.to_vec()),
        Some((b'-', rest)) => (Order::Keep, rest.to_vec()),
        _ => (if posix { Order::StopAtFirst } else { Order::Permute }, short),
    };
    let lists = given.options.iter().filter(|(letter, _)| *letter == 'l').flat_map(|(_, list)| {
        bytes(list).split(|byte| matches!(byte, b',' | b' ' | b'\t' | b'\n')).filter(|name| !name.is_empty()).map(long_option)
    });
    let mut parser = Parser {
        short,
        long: lists.collect(),
        name: given.value('n').map_or_else(|| program::name().to_owned(), |name| name.to_string_lossy().into_owned()),
        quiet: given.has('q'),
        alternative: given.has('a'),
        failed: false,
    };
    let quote = |text: &[u8]| if old || given.has('u') { text.to_vec() } else { quoted(text, given.value('s').map(bytes)) };
    let line = parser.read(words.into_iter().map(|word| bytes(&word).to_vec()).collect(), order, quote);
    if !given.has('Q') {
        Output::new().line(&line, b'\n');
    }
    Ok(i32::from(parser.failed))
}

fn long_option(name: &[u8]) -> (Vec<u8>, Value) {
    match (name.strip_suffix(b"::"), name.strip_suffix(b":")) {
        (Some(name), _) => (name.to_vec(), May),
        (_, Some(name)) => (name.to_vec(), Needs),
        _ => (name.to_vec(), No),
    }
}

/// Returns a text in single quotes; a C shell also interprets `!` and line ends.
fn quoted(text: &[u8], shell: Option<&[u8]>) -> Vec<u8> {
    let c_shell = matches!(shell, Some(b"csh" | b"tcsh"));
    let mut out = vec![b'\''];
    for &byte in text {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            b'!' if c_shell => out.extend_from_slice(b"'\\!'"),
            b'\n' if c_shell => out.extend_from_slice(b"\\n"),
            b'\\' if c_shell => out.extend_from_slice(b"\\\\"),
            byte => out.push(byte),
        }
    }
    out.push(b'\'');
    out
}

impl Parser {
    fn complain(&mut self, text: &str) {
        self.failed = true;
        if !self.quiet {
            let _ = sys::write_all(2, format!("{}: {text}\n", self.name).as_bytes());
        }
    }

    fn read(&mut self, mut words: VecDeque<Vec<u8>>, order: Order, quote: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let mut line = Vec::new();
        let mut operands = Vec::new();
        while let Some(word) = words.pop_front() {
            if word == b"--" {
                operands.extend(words.drain(..));
            } else if let Some(long) = word.strip_prefix(b"--") {
                self.long(long, "--", &mut words, &mut line, &quote);
            } else if word.len() > 1 && word[0] == b'-' {
                let known = self.short_value(word[1]).is_some();
                if self.alternative && (word.len() > 2 || !known) && self.find(&word[1..]).is_ok() {
                    self.long(&word[1..], "-", &mut words, &mut line, &quote);
                } else {
                    self.letters(&word[1..], &mut words, &mut line, &quote);
                }
            } else {
                match order {
                    Order::Permute => operands.push(word),
                    Order::StopAtFirst => {
                        operands.push(word);
                        operands.extend(words.drain(..));
                    }
                    Order::Keep => {
                        line.push(b' ');
                        line.extend(quote(&word));
                    }
                }
            }
        }
        line.extend_from_slice(b" --");
        for operand in operands {
            line.push(b' ');
            line.extend(quote(&operand));
        }
        line
    }

    fn short_value(&self, letter: u8) -> Option<Value> {
        let at = self.short.iter().position(|&known| known == letter && letter != b':')?;
        Some(match self.short.get(at + 1..).unwrap_or_default() {
            [b':', b':', ..] => May,
            [b':', ..] => Needs,
            _ => No,
        })
    }

    fn letters(&mut self, cluster: &[u8], words: &mut VecDeque<Vec<u8>>, line: &mut Vec<u8>, quote: &impl Fn(&[u8]) -> Vec<u8>) {
        let mut rest = cluster;
        while let Some((&letter, after)) = rest.split_first() {
            rest = after;
            let shown = String::from_utf8_lossy(&[letter]).into_owned();
            let Some(value) = self.short_value(letter) else {
                self.complain(&format!("invalid option -- '{shown}'"));
                continue;
            };
            let attached = match value {
                No => None,
                Needs if rest.is_empty() => match words.pop_front() {
                    Some(word) => Some(word),
                    None => return self.complain(&format!("option requires an argument -- '{shown}'")),
                },
                _ => Some(std::mem::take(&mut rest).to_vec()),
            };
            line.extend_from_slice(&[b' ', b'-', letter]);
            if let Some(value) = attached {
                line.push(b' ');
                line.extend(quote(&value));
            }
        }
    }

    /// Returns the long option that `text` (without dashes) names or begins, or what is wrong with it.
    fn find(&self, text: &[u8]) -> Result<(Vec<u8>, Value), Vec<String>> {
        let name = text.split(|&byte| byte == b'=').next().unwrap_or_default();
        if let Some(exact) = self.long.iter().find(|(known, _)| known == name) {
            return Ok(exact.clone());
        }
        let close: Vec<_> = self.long.iter().filter(|(known, _)| known.starts_with(name)).collect();
        match close.as_slice() {
            [one] => Ok((*one).clone()),
            several => Err(several.iter().map(|(known, _)| String::from_utf8_lossy(known).into_owned()).collect()),
        }
    }

    fn long(
        &mut self,
        text: &[u8],
        dashes: &str,
        words: &mut VecDeque<Vec<u8>>,
        line: &mut Vec<u8>,
        quote: &impl Fn(&[u8]) -> Vec<u8>,
    ) {
        let shown = format!("{dashes}{}", String::from_utf8_lossy(text));
        let (name, value) = match self.find(text) {
            Ok(found) => found,
            Err(close) if close.is_empty() => return self.complain(&format!("unrecognized option '{shown}'")),
            Err(close) => {
                let list: String = close.iter().map(|name| format!(" '--{name}'")).collect();
                return self.complain(&format!("option '{shown}' is ambiguous; possibilities:{list}"));
            }
        };
        let full = format!("{dashes}{}", String::from_utf8_lossy(&name));
        let attached = text.iter().position(|&byte| byte == b'=').map(|at| text[at + 1..].to_vec());
        let attached = match (value, attached) {
            (No, Some(_)) => return self.complain(&format!("option '{full}' doesn't allow an argument")),
            (No, None) => None,
            (May, attached) => Some(attached.unwrap_or_default()),
            (Needs, Some(value)) => Some(value),
            (Needs, None) => match words.pop_front() {
                Some(word) => Some(word),
                None => return self.complain(&format!("option '{full}' requires an argument")),
            },
        };
        line.extend_from_slice(b" --");
        line.extend_from_slice(&name);
        if let Some(value) = attached {
            line.push(b' ');
            line.extend(quote(&value));
        }
    }
}
