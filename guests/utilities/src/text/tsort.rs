//! `tsort`: an order in which everything comes after what it needs.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;

use crate::options::{self, Spec};
use crate::program::{Args, Outcome, Output, extra_operand, fail, read_all, warn};
use crate::quote;

/// Runs `tsort`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "[OPTION] [FILE]" })?;
    if let Some(extra) = given.operands.get(1) {
        return Err(extra_operand(extra));
    }
    let file = given.operands.first().cloned().unwrap_or_else(|| OsString::from("-"));
    let text = read_all(&file).map_err(|error| fail(format!("{}: {}", quote::maybe(&file), sys::message(&error))))?;
    let words: Vec<&[u8]> = text.split(|byte| matches!(byte, b' ' | b'\t' | b'\n')).filter(|word| !word.is_empty()).collect();
    let shown = if file == "-" { "-".to_owned() } else { quote::maybe(&file) };
    if words.len() % 2 == 1 {
        return Err(fail(format!("{shown}: input contains an odd number of tokens")));
    }
    // GNU walks its nodes in the order of their names.
    let mut names: Vec<&[u8]> = words.clone();
    names.sort_unstable();
    names.dedup();
    let index: HashMap<&[u8], usize> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    let mut before = vec![0usize; names.len()];
    for pair in words.chunks(2) {
        let (from, to) = (index[pair[0]], index[pair[1]]);
        if from != to {
            after[from].insert(0, to);
            before[to] += 1;
        }
    }
    let mut out = Output::new();
    let mut done = vec![false; names.len()];
    let mut left = names.len();
    let mut status = 0;
    let mut ready: VecDeque<usize> = (0..names.len()).filter(|&at| before[at] == 0).collect();
    while left > 0 {
        while let Some(at) = ready.pop_front() {
            out.line(names[at], b'\n');
            done[at] = true;
            left -= 1;
            for &next in &after[at] {
                before[next] -= 1;
                if before[next] == 0 {
                    ready.push_back(next);
                }
            }
        }
        if left == 0 {
            break;
        }
        out.send();
        status = 1;
        warn(format!("{shown}: input contains a loop:"));
        let members = cycle(&after, &done, &before);
        members.iter().for_each(|&at| warn(String::from_utf8_lossy(names[at])));
        // One edge of the loop is removed, and the walk continues.
        let (from, to) = (members[members.len() - 1], members[0]);
        if let Some(at) = after[from].iter().position(|next| *next == to) {
            after[from].remove(at);
            before[to] -= 1;
            if before[to] == 0 {
                ready.push_back(to);
            }
        }
    }
    Ok(status)
}

fn cycle(after: &[Vec<usize>], done: &[bool], before: &[usize]) -> Vec<usize> {
    let Some(start) = (0..after.len()).find(|&at| !done[at] && before[at] > 0) else { return Vec::new() };
    // Walking backwards along unfinished needs must come round.
    let mut path = vec![start];
    loop {
        let last = path[path.len() - 1];
        let Some(previous) = (0..after.len()).find(|&at| !done[at] && after[at].contains(&last)) else { return path };
        if let Some(at) = path.iter().position(|&seen| seen == previous) {
            let mut members = path.split_off(at);
            members.reverse();
            members.rotate_right(1);
            return members;
        }
        path.push(previous);
    }
}
