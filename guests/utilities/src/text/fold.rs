//! `fold`: long lines broken.

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, each_line, fail};
use crate::quote;

/// Runs `fold`.
pub fn main(args: Args) -> Outcome {
    let spec = Spec {
        short: "bsw:0::1::2::3::4::5::6::7::8::9::",
        long: &[("bytes", No, 'b'), ("spaces", No, 's'), ("width", Needs, 'w')],
        help: "[OPTION]... [FILE]...",
    };
    let given = options::parse(args, &spec)?;
    let mut width = 80;
    for (letter, value) in &given.options {
        let text = match letter {
            'w' => value.to_string_lossy().into_owned(),
            letter if letter.is_ascii_digit() => format!("{letter}{}", value.to_string_lossy()),
            _ => continue,
        };
        width = match text.parse::<usize>() {
            Ok(0) => {
                return Err(fail(format!("invalid number of columns: {}: Numerical result out of range", quote::plain(&text))));
            }
            Ok(width) => width,
            Err(_) => return Err(fail(format!("invalid number of columns: {}", quote::plain(&text)))),
        };
    }
    let by_bytes = given.has('b');
    let mut out = Output::new();
    let blanks = given.has('s');
    Ok(each_line(&given.operands, b'\n', &mut out, |line, out| fold(line, width, by_bytes, blanks, out)))
}

fn advance(column: usize, byte: u8, by_bytes: bool) -> usize {
    match byte {
        _ if by_bytes => column + 1,
        8 => column.saturating_sub(1),
        b'\r' => 0,
        b'\t' => column + 8 - column % 8,
        _ => column + 1,
    }
}

fn fold(line: &[u8], width: usize, by_bytes: bool, spaces: bool, out: &mut Output) {
    let (content, end) = match line.strip_suffix(b"\n") {
        Some(content) => (content, &b"\n"[..]),
        None => (line, &b""[..]),
    };
    let (mut start, mut column, mut at) = (0, 0, 0);
    while at < content.len() {
        let next = advance(column, content[at], by_bytes);
        if next <= width || at == start {
            column = next;
            at += 1;
            continue;
        }
        let mut stop = at;
        if spaces && let Some(blank) = content[start..at].iter().rposition(|byte| matches!(byte, b' ' | b'\t')) {
            stop = start + blank + 1;
        }
        out.line(&content[start..stop], b'\n');
        start = stop;
        column = content[start..at].iter().fold(0, |column, &byte| advance(column, byte, by_bytes));
    }
    out.put(&content[start..]);
    out.put(end);
}
