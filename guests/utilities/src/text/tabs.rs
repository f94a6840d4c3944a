//! `expand` and `unexpand`: tabs to blanks and back.

use crate::options::{self, Given, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, each_line, fail, os};
use crate::quote;

/// Where tabs lead: a list of stops, and how it continues.
struct Stops {
    list: Vec<usize>,
    /// Every so many columns after the list; 0: none.
    every: usize,
    /// Whether `every` counts from the last stop (`+N`) or from the margin (`/N`).
    from_last: bool,
}

impl Stops {
    fn parse(given: &Given) -> Result<Self, i32> {
        let mut stops = Self { list: Vec::new(), every: 0, from_last: false };
        let mut any = false;
        for (letter, value) in &given.options {
            let text = match letter {
                't' => value.to_string_lossy().into_owned(),
                letter if letter.is_ascii_digit() => format!("{letter}{}", value.to_string_lossy()),
                _ => continue,
            };
            for word in text.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
                any = true;
                // Of several marks the last one counts; without a number they say nothing.
                let digits = word.trim_start_matches(['+', '/']);
                let mark = word.get(..word.len() - digits.len()).and_then(|marks| marks.chars().next_back());
                if digits.is_empty() {
                    continue;
                }
                let number = digits
                    .parse::<usize>()
                    .map_err(|_| fail(format!("tab size contains invalid character(s): {}", quote::plain(word))))?;
                if mark.is_some() {
                    (stops.every, stops.from_last) = (number, mark == Some('+'));
                    continue;
                }
                if number == 0 {
                    return Err(fail("tab size cannot be 0"));
                }
                if stops.list.last().is_some_and(|last| *last >= number) {
                    return Err(fail("tab sizes must be ascending"));
                }
                stops.list.push(number);
            }
        }
        match stops.list.as_slice() {
            [] if !any || stops.every == 0 => stops.every = 8,
            [only] if stops.every == 0 => {
                stops.every = *only;
                stops.list.clear();
            }
            _ => {}
        }
        Ok(stops)
    }

    /// Returns the next stop after a column; `None` past the last one.
    fn next(&self, column: usize) -> Option<usize> {
        if let Some(stop) = self.list.iter().find(|stop| **stop > column) {
            return Some(*stop);
        }
        if self.every == 0 {
            return None;
        }
        let base = if self.from_last { self.list.last().copied().unwrap_or(0) } else { 0 };
        Some(base + ((column - base) / self.every + 1) * self.every)
    }
}

/// `-4` is `-t 4`.
fn modern(args: Args) -> Args {
    args.into_iter()
        .enumerate()
        .map(|(index, arg)| match arg.as_encoded_bytes() {
            [b'-', rest @ ..]
                if index > 0
                    && rest.first().is_some_and(u8::is_ascii_digit)
                    && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b',') =>
            {
                os([b"-t", rest].concat())
            }
            _ => arg,
        })
        .collect()
}

/// Runs `expand`.
pub fn expand(args: Args) -> Outcome {
    let spec = Spec { short: "it:", long: &[("initial", No, 'i'), ("tabs", Needs, 't')], help: "[OPTION]... [FILE]..." };
    let given = options::parse(modern(args), &spec)?;
    let stops = Stops::parse(&given)?;
    let initial = given.has('i');
    Ok(each_line(&given.operands, b'\n', &mut Output::new(), |line, out| {
        let mut column = 0;
        let mut convert = true;
        for &byte in line {
            match byte {
                b'\t' if convert => {
                    let next = stops.next(column).unwrap_or(column + 1);
                    for _ in column..next {
                        out.byte(b' ');
                    }
                    column = next;
                    continue;
                }
                8 => column = column.saturating_sub(1),
                _ => column += 1,
            }
            convert &= !initial || matches!(byte, b' ' | b'\t');
            out.byte(byte);
        }
    }))
}

/// Runs `unexpand`.
pub fn unexpand(args: Args) -> Outcome {
    let spec = Spec {
        short: "at:",
        long: &[("all", No, 'a'), ("first-only", No, 'f'), ("tabs", Needs, 't')],
        help: "[OPTION]... [FILE]...",
    };
    let given = options::parse(modern(args), &spec)?;
    let stops = Stops::parse(&given)?;
    let all = (given.has('a') || given.has('t')) && !given.has('f');
    Ok(each_line(&given.operands, b'\n', &mut Output::new(), |line, out| unexpand_line(line, &stops, all, out)))
}

/// Each run of blanks becomes the tabs that lead as far, and blanks for the rest; a lone blank stays one.
fn unexpand_line(line: &[u8], stops: &Stops, all: bool, out: &mut Output) {
    let mut column = 0;
    let mut at = 0;
    loop {
        let run = line[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let blanks = &line[at..at + run];
        at += run;
        match convert(blanks, column, stops) {
            Some((text, end)) => {
                out.put(&text);
                column = end;
            }
            // Past the last stop everything stays.
            None => {
                out.put(blanks);
                return out.put(&line[at..]);
            }
        }
        if !all || at == line.len() {
            return out.put(&line[at..]);
        }
        let word = line[at..].iter().take_while(|byte| !matches!(byte, b' ' | b'\t')).count();
        for &byte in &line[at..at + word] {
            column = if byte == 8 { column.saturating_sub(1) } else { column + 1 };
        }
        out.put(&line[at..at + word]);
        at += word;
    }
}

fn convert(blanks: &[u8], start: usize, stops: &Stops) -> Option<(Vec<u8>, usize)> {
    let mut end = start;
    for &byte in blanks {
        let next = stops.next(end)?;
        end = if byte == b'\t' { next } else { end + 1 };
    }
    if blanks == b" " && start > 0 {
        return Some((b" ".to_vec(), end));
    }
    let mut text = Vec::new();
    let mut column = start;
    while let Some(stop) = stops.next(column).filter(|stop| *stop <= end) {
        text.push(b'\t');
        column = stop;
    }
    text.resize(text.len() + end - column, b' ');
    Some((text, end))
}
