//! `uniq`: repeated lines next to each other.

use std::ffi::OsString;

use crate::lines::Lines;
use crate::options::{self, May, Needs, No, Spec};
use crate::program::{Args, Descriptor, Outcome, Output, bytes, extra_operand, fail, open, usage};
use crate::quote;

const SPEC: Spec = Spec {
    short: "cdDf:is:uw:z",
    long: &[
        ("count", No, 'c'),
        ("repeated", No, 'd'),
        ("all-repeated", May, 'D'),
        ("skip-fields", Needs, 'f'),
        ("group", May, 'g'),
        ("ignore-case", No, 'i'),
        ("skip-chars", Needs, 's'),
        ("unique", No, 'u'),
        ("check-chars", Needs, 'w'),
        ("zero-terminated", No, 'z'),
    ],
    help: "[OPTION]... [INPUT [OUTPUT]]",
};

struct Key {
    fields: usize,
    chars: usize,
    most: usize,
    fold: bool,
}

impl Key {
    fn of<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let mut at = 0;
        let blank = |byte: u8| byte == b' ' || byte == b'\t' || byte == b'\n';
        for _ in 0..self.fields {
            if at == line.len() {
                break;
            }
            while line.get(at).is_some_and(|&byte| blank(byte)) {
                at += 1;
            }
            while line.get(at).is_some_and(|&byte| !blank(byte)) {
                at += 1;
            }
        }
        let start = at.saturating_add(self.chars).min(line.len());
        &line[start..start.saturating_add(self.most).min(line.len())]
    }

    fn same(&self, a: &[u8], b: &[u8]) -> bool {
        let (a, b) = (self.of(a), self.of(b));
        if self.fold { a.eq_ignore_ascii_case(b) } else { a == b }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Group {
    None,
    Prepend,
    Append,
    Separate,
    Both,
}

/// `-2` and `+2`: the old spelling of `-f 2` and `-s 2`.
fn modern(args: Args) -> Args {
    args.into_iter()
        .enumerate()
        .map(|(index, arg)| match bytes(&arg) {
            [b'-', digits @ ..] if index > 0 && !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
                format!("-f{}", String::from_utf8_lossy(digits)).into()
            }
            _ => arg,
        })
        .collect()
}

/// Runs `uniq`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(modern(args), &SPEC)?;
    if let Some(extra) = given.operands.get(2) {
        return Err(extra_operand(extra));
    }
    let count = |letter: char, what: &str| -> Result<Option<usize>, i32> {
        let Some(value) = given.value(letter) else { return Ok(None) };
        let text = value.to_string_lossy();
        match text.parse::<usize>() {
            Ok(count) => Ok(Some(count)),
            Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Some(usize::MAX)),
            Err(_) => Err(fail(format!("{}: invalid number of {what}", value.to_string_lossy()))),
        }
    };
    let key = Key {
        fields: count('f', "fields to skip")?.unwrap_or(0),
        chars: count('s', "bytes to skip")?.unwrap_or(0),
        most: count('w', "bytes to compare")?.unwrap_or(usize::MAX),
        fold: given.has('i'),
    };
    let mut all_repeated = None;
    let mut group = None;
    for (letter, value) in &given.options {
        match letter {
            'D' => {
                all_repeated = Some(if value.is_empty() {
                    Group::None
                } else {
                    options::choose(
                        "--all-repeated",
                        value,
                        &[("none", Group::None), ("prepend", Group::Prepend), ("separate", Group::Separate)],
                    )?
                })
            }
            'g' => {
                group = Some(if value.is_empty() {
                    Group::Separate
                } else {
                    options::choose(
                        "--group",
                        value,
                        &[
                            ("prepend", Group::Prepend),
                            ("append", Group::Append),
                            ("separate", Group::Separate),
                            ("both", Group::Both),
                        ],
                    )?
                })
            }
            _ => {}
        }
    }
    if group.is_some() && (given.has('c') || given.has('d') || given.has('D') || given.has('u')) {
        return Err(usage("--group is mutually exclusive with -c/-d/-D/-u"));
    }
    if all_repeated.is_some() && given.has('c') {
        return Err(usage("printing all duplicated lines and repeat counts is meaningless"));
    }
    let end = if given.has('z') { 0 } else { b'\n' };
    let source = given.operands.first().cloned().unwrap_or_else(|| OsString::from("-"));
    let trouble = |file: &OsString, error: &std::io::Error| fail(format!("{}: {}", quote::maybe(file), sys::message(error)));
    let input = open(&source).map_err(|error| trouble(&source, &error))?;
    if let Some(target) = given.operands.get(1).filter(|target| *target != "-") {
        let file = Descriptor::create(target).map_err(|error| trouble(target, &error))?;
        let _ = sys::dup2(file.fd(), 1);
    }
    let mut job = Job {
        key,
        counts: given.has('c'),
        repeated: given.has('d') || all_repeated.is_some(),
        unique: given.has('u'),
        all: all_repeated,
        group,
        end,
        groups: 0,
        out: Output::new(),
    };
    job.run(Lines::of_file(input, end))
        .map_err(|error| fail(format!("error reading {}: {}", quote::always(&source), sys::message(&error))))?;
    Ok(0)
}

struct Job {
    key: Key,
    counts: bool,
    repeated: bool,
    unique: bool,
    all: Option<Group>,
    group: Option<Group>,
    end: u8,
    groups: u64,
    out: Output,
}

impl Job {
    fn run(&mut self, mut lines: Lines<Descriptor>) -> std::io::Result<()> {
        let mut first: Vec<u8> = Vec::new();
        // Only a listing of whole groups needs their lines kept.
        let keep = self.all.is_some() || self.group.is_some();
        let mut rest: Vec<Vec<u8>> = Vec::new();
        let mut count = 0u64;
        while let Some(line) = lines.next_content()? {
            if count > 0 && self.key.same(&first, line) {
                count += 1;
                if keep {
                    rest.push(line.to_vec());
                }
                continue;
            }
            if count > 0 {
                self.finish(&first, &rest, count);
            }
            first.clear();
            first.extend_from_slice(line);
            rest.clear();
            count = 1;
        }
        if count > 0 {
            self.finish(&first, &rest, count);
        }
        if matches!(self.group, Some(Group::Append | Group::Both)) && self.groups > 0 {
            self.out.byte(self.end);
        }
        Ok(())
    }

    fn finish(&mut self, first: &[u8], rest: &[Vec<u8>], count: u64) {
        if let Some(method) = self.group.or(self.all) {
            if self.group.is_none() && count < 2 || self.unique && count > 1 {
                return;
            }
            let before = match method {
                Group::Prepend | Group::Both => true,
                Group::Separate | Group::Append => self.groups > 0,
                Group::None => false,
            };
            if before {
                self.out.byte(self.end);
            }
            self.groups += 1;
            self.out.line(first, self.end);
            rest.iter().for_each(|line| self.out.line(line, self.end));
            return;
        }
        if (self.repeated && count < 2) || (self.unique && count > 1) {
            return;
        }
        if self.counts {
            self.out.text(format!("{count:7} "));
        }
        self.out.line(first, self.end);
    }
}
