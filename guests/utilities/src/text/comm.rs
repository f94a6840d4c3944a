//! `comm`: what two sorted files have in common.

use std::cmp::Ordering;

use crate::lines::Lines;
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Descriptor, Outcome, Output, bytes, extra_operand, fail, missing_operand, open, warn};
use crate::quote;

struct Side {
    lines: Lines<Descriptor>,
    current: Option<Vec<u8>>,
    number: &'static str,
    disorder: bool,
}

/// Runs `comm`.
pub fn main(args: Args) -> Outcome {
    let spec = Spec {
        short: "123z",
        long: &[
            ("check-order", No, 'c'),
            ("nocheck-order", No, 'n'),
            ("output-delimiter", Needs, 'o'),
            ("total", No, 't'),
            ("zero-terminated", No, 'z'),
        ],
        help: "[OPTION]... FILE1 FILE2",
    };
    let given = options::parse(args, &spec)?;
    if let Some(extra) = given.operands.get(2) {
        return Err(extra_operand(extra));
    }
    let delimiters = given.options.iter().filter(|(letter, _)| *letter == 'o').map(|(_, value)| value);
    if delimiters.clone().any(|other| delimiters.clone().next() != Some(other)) {
        return Err(fail("multiple output delimiters specified"));
    }
    let [first, second] = given.operands.as_slice() else { return Err(missing_operand(given.operands.last())) };
    let end = if given.has('z') { 0 } else { b'\n' };
    let tab =
        given.value('o').map_or_else(|| b"\t".to_vec(), |text| if text.is_empty() { vec![0] } else { bytes(text).to_vec() });
    let side = |file: &std::ffi::OsString, number| -> Result<Side, i32> {
        let input = open(file).map_err(|error| fail(format!("{}: {}", quote::maybe(file), sys::message(&error))))?;
        Ok(Side { lines: Lines::of_file(input, end), current: None, number, disorder: false })
    };
    let mut sides = [side(first, "1")?, side(second, "2")?];
    let mut out = Output::new();
    let mut totals = [0u64; 3];
    let check = if given.has('n') { None } else { Some(given.has('c')) };
    let read = |side: &mut Side, out: &mut Output, unpaired: bool| -> Result<(), i32> {
        let next = side.lines.next_content().map_err(|error| fail(sys::message(&error)))?.map(<[u8]>::to_vec);
        if let (Some(strict), Some(old), Some(new)) = (check, &side.current, &next)
            && old > new
            && (strict || unpaired)
            && !side.disorder
        {
            out.send();
            warn(format!("file {} is not in sorted order", side.number));
            side.disorder = true;
            if strict {
                return Err(1);
            }
        }
        side.current = next;
        Ok(())
    };
    // A lone wrong pair goes unnoticed until something is unpaired, as GNU has it.
    let mut unpaired = false;
    for side in &mut sides {
        read(side, &mut out, false)?;
    }
    let [left, right] = &mut sides;
    loop {
        let order = match (&left.current, &right.current) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        let (column, line) = match order {
            Ordering::Less => (0, left.current.as_deref()),
            Ordering::Greater => (1, right.current.as_deref()),
            Ordering::Equal => (2, left.current.as_deref()),
        };
        unpaired |= order != Ordering::Equal;
        totals[column] += 1;
        if !given.has(['1', '2', '3'][column]) {
            for earlier in ['1', '2'].iter().take(column) {
                if !given.has(*earlier) {
                    out.put(&tab);
                }
            }
            out.line(line.unwrap_or_default(), end);
        }
        if order != Ordering::Greater {
            read(left, &mut out, unpaired)?;
        }
        if order != Ordering::Less {
            read(right, &mut out, unpaired)?;
        }
    }
    if given.has('t') {
        for total in totals {
            out.text(total.to_string());
            out.put(&tab);
        }
        out.line(b"total", end);
    }
    if left.disorder || right.disorder {
        out.send();
        warn("input is not in sorted order");
        return Err(1);
    }
    Ok(0)
}
