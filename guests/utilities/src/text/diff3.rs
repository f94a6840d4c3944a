//! `diff3`: three files compared, and two sets of changes merged.

use std::collections::HashMap;
use std::ffi::OsString;
use std::ops::Range;

use common::getopt::{self, Item, Long, Spec, Value};

use crate::io::{self, Out, show};
use crate::text::diff::compare::{self, Change};

const LONG: &[Long] = &[
    ("ed", Value::No, 'e'),
    ("easy-only", Value::No, '3'),
    ("initial-tab", Value::No, 'T'),
    ("label", Value::Needs, 'L'),
    ("merge", Value::No, 'm'),
    ("overlap-only", Value::No, 'x'),
    ("show-all", Value::No, 'A'),
    ("show-overlap", Value::No, 'E'),
    ("strip-trailing-cr", Value::No, '\u{1}'),
    ("text", Value::No, 'a'),
];

/// Lines at the ends of equal stretches into which changes may slide.
const HORIZON: usize = 100;

/// A stretch where the files are not all the same.
struct Block {
    /// Its lines in each file, in the order of the command line.
    lines: [Range<usize>; 3],
    /// The file that differs from the other two; `None` when all do.
    odd: Option<usize>,
}

/// Which changes from the second file to the third are taken over, and how overlaps are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// `-A`.
    All,
    /// `-e`, or `-E` with brackets.
    Changes { brackets: bool },
    /// `-x`, or `-X` with brackets.
    Overlaps { brackets: bool },
    /// `-3`.
    Easy,
}

/// Runs `diff3`.
pub fn diff3(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "3AaEeiL:mTXx", long: LONG };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => return usage(&message),
    };
    let (mut files, mut labels, mut choice, mut merge, mut tab) = (Vec::new(), Vec::new(), None, false, false);
    for item in items {
        match item {
            Item::Operand(file) => files.push(file),
            Item::Opt('L', label) => labels.extend(label),
            Item::Opt('m', _) => merge = true,
            Item::Opt('T', _) => tab = true,
            Item::Opt('A', _) => choice = Some(Choice::All),
            Item::Opt('e', _) => choice = Some(Choice::Changes { brackets: false }),
            Item::Opt('E', _) => choice = Some(Choice::Changes { brackets: true }),
            Item::Opt('x', _) => choice = Some(Choice::Overlaps { brackets: false }),
            Item::Opt('X', _) => choice = Some(Choice::Overlaps { brackets: true }),
            Item::Opt('3', _) => choice = Some(Choice::Easy),
            Item::Opt(..) => {}
        }
    }
    match files.len() {
        3 => {}
        0 => return usage("missing operand after 'diff3'"),
        1 | 2 => return usage(&format!("missing operand after '{}'", show(&files[files.len() - 1]))),
        _ => return usage(&format!("extra operand '{}'", show(&files[3]))),
    }
    let mut texts = Vec::new();
    for file in &files {
        match io::read_all(file) {
            Ok(text) => texts.push(text),
            Err(error) => {
                warn!("diff3: {}: {}", show(file), sys::message(&error));
                return 2;
            }
        }
    }
    let lines: Vec<Vec<&[u8]>> = texts.iter().map(|text| text.split_inclusive(|&byte| byte == b'\n').collect()).collect();
    let editing = merge || choice.is_some();
    let blocks = blocks(&lines, if editing { 1 } else { 2 });
    labels.extend(files.iter().skip(labels.len()).cloned());
    let choice = choice.unwrap_or(Choice::All);
    let mut out = Out::new("diff3", 2);
    let status = match (merge, editing) {
        (true, _) => merged(&mut out, &lines, &blocks, choice, &labels),
        (_, true) => script(&mut out, &lines, &blocks, choice),
        _ => report(&mut out, &lines, &blocks, if tab { b"\t" } else { b"  " }),
    };
    out.flush();
    status
}

fn usage(message: &str) -> i32 {
    warn!("diff3: {message}\ndiff3: Try 'diff3 --help' for more information.");
    2
}

/// Returns where the files differ, found by comparing two of them with the `common` one.
fn blocks<'a>(lines: &[Vec<&'a [u8]>], common: usize) -> Vec<Block> {
    let mut known: HashMap<&[u8], u32> = HashMap::new();
    let numbers: Vec<Vec<u32>> = lines
        .iter()
        .map(|lines| {
            let number = |line: &&'a [u8]| {
                let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
                *known.entry(*line).or_insert(next)
            };
            lines.iter().map(number).collect()
        })
        .collect();
    let others = [0, 3 - common];
    let changes = others.map(|other| compare::between(&numbers[common], &numbers[other], HORIZON));
    let mut at = [0, 0];
    let mut blocks = Vec::new();
    loop {
        let next = |side: usize, at: [usize; 2]| changes[side].get(at[side]).map(|change| change.old.start);
        let Some(start) = next(0, at).into_iter().chain(next(1, at)).min() else { break };
        let (mut end, from) = (start, at);
        // Changes that touch are one.
        while let Some(side) = (0..2).find(|&side| next(side, at).is_some_and(|first| first <= end)) {
            end = end.max(changes[side][at[side]].old.end);
            at[side] += 1;
        }
        let mut ranges = [0..0, 0..0, 0..0];
        ranges[common] = start..end;
        for side in 0..2 {
            ranges[others[side]] = mapped(&changes[side], from[side]..at[side], start..end);
        }
        let touched = [at[0] > from[0], at[1] > from[1]];
        let same = numbers[others[0]][ranges[others[0]].clone()] == numbers[others[1]][ranges[others[1]].clone()];
        let odd = match touched {
            [true, false] => Some(others[0]),
            [false, true] => Some(others[1]),
            _ if same => Some(common),
            _ => None,
        };
        blocks.push(Block { lines: ranges, odd });
    }
    blocks
}

/// Returns the lines that stand for `common` in the other file, given which of its changes lie in it.
fn mapped(changes: &[Change], inside: Range<usize>, common: Range<usize>) -> Range<usize> {
    let shift = |at: usize, change: Option<&Change>| match change {
        Some(change) => at + change.new.end - change.old.end,
        None => at,
    };
    let before = inside.start.checked_sub(1).and_then(|at| changes.get(at));
    let last = inside.end.checked_sub(1).and_then(|at| changes.get(at));
    shift(common.start, before)..shift(common.end, last)
}

/// Returns `1:2,3c`: lines of a file as `ed` would name them.
fn range(file: usize, lines: &Range<usize>) -> String {
    let file = file + 1;
    match lines.len() {
        0 => format!("{file}:{}a\n", lines.start),
        1 => format!("{file}:{}c\n", lines.end),
        _ => format!("{file}:{},{}c\n", lines.start + 1, lines.end),
    }
}

fn report(out: &mut Out, lines: &[Vec<&[u8]>], blocks: &[Block], indent: &[u8]) -> i32 {
    for block in blocks {
        out.put(b"====");
        if let Some(odd) = block.odd {
            out.number(odd as u64 + 1);
        }
        out.byte(b'\n');
        let order = if block.odd == Some(1) { [0, 2, 1] } else { [0, 1, 2] };
        // Of two that are the same, only the later one is shown.
        let silent = block.odd.map(|odd| usize::from(odd == 0));
        for file in order {
            out.put(range(file, &block.lines[file]).as_bytes());
            if silent == Some(file) {
                continue;
            }
            for line in &lines[file][block.lines[file].clone()] {
                out.put(indent);
                out.put(line);
                if !line.ends_with(b"\n") {
                    out.put(b"\n\\ No newline at end of file\n");
                }
            }
        }
    }
    0
}

impl Choice {
    /// Returns whether the third file's lines are taken, and whether in brackets.
    fn of(self, block: &Block) -> (bool, bool) {
        match (self, block.odd) {
            (Self::All, None | Some(1)) => (true, true),
            (Self::All | Self::Changes { .. } | Self::Easy, Some(2)) => (true, false),
            (Self::Changes { brackets } | Self::Overlaps { brackets }, None) => (true, brackets),
            _ => (false, false),
        }
    }
}

fn merged(out: &mut Out, lines: &[Vec<&[u8]>], blocks: &[Block], choice: Choice, labels: &[Vec<u8>]) -> i32 {
    let mut at = 0;
    let mut conflicts = false;
    let put = |out: &mut Out, file: usize, range: Range<usize>| lines[file][range].iter().for_each(|line| out.put(line));
    let mark = |out: &mut Out, sign: &str, file: usize| out.put(&[sign.as_bytes(), b" ", &labels[file], b"\n"].concat());
    for block in blocks {
        let (take, brackets) = choice.of(block);
        let [mine, older, yours] = block.lines.clone();
        if !take {
            continue;
        }
        put(out, 0, at..mine.start);
        at = mine.end;
        if !brackets {
            put(out, 2, yours);
            continue;
        }
        conflicts = true;
        if block.odd == Some(1) {
            mark(out, "<<<<<<<", 1);
            put(out, 1, older);
        } else {
            mark(out, "<<<<<<<", 0);
            put(out, 0, mine);
            if choice == Choice::All {
                mark(out, "|||||||", 1);
                put(out, 1, older);
            }
        }
        out.put(b"=======\n");
        put(out, 2, yours);
        mark(out, ">>>>>>>", 2);
    }
    put(out, 0, at..lines[0].len());
    i32::from(conflicts)
}

/// Prints a script for `ed` that changes the first file into the merged one.
fn script(out: &mut Out, lines: &[Vec<&[u8]>], blocks: &[Block], choice: Choice) -> i32 {
    if matches!(choice, Choice::All | Choice::Changes { brackets: true } | Choice::Overlaps { brackets: true }) {
        warn!("diff3: scripts for ed with brackets are not made here\nhint: add -m for the merged file itself");
        return 2;
    }
    for block in blocks.iter().rev().filter(|block| choice.of(block).0) {
        let [mine, _, yours] = &block.lines;
        let place = match mine.len() {
            0 => format!("{}", mine.start),
            1 => format!("{}", mine.end),
            _ => format!("{},{}", mine.start + 1, mine.end),
        };
        if yours.is_empty() {
            out.put(format!("{place}d\n").as_bytes());
            continue;
        }
        out.put(format!("{place}{}\n", if mine.is_empty() { 'a' } else { 'c' }).as_bytes());
        for line in &lines[2][yours.clone()] {
            out.put(line);
        }
        out.put(b".\n");
    }
    0
}
