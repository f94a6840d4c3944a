//! `paste`: lines side by side.

use crate::lines::Lines;
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Descriptor, Outcome, Output, bytes, fail, open, or_stdin, warn_file};

/// Returns the delimiters of a `-d` list; an empty entry stands for no delimiter.
fn delimiters(list: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut out = Vec::new();
    let mut rest = list.iter().copied();
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'\\' => match rest.next()? {
                b'0' => Vec::new(),
                b'a' => vec![7],
                b'b' => vec![8],
                b'f' => vec![12],
                b'n' => vec![b'\n'],
                b'r' => vec![b'\r'],
                b't' => vec![b'\t'],
                b'v' => vec![11],
                other => vec![other],
            },
            byte => vec![byte],
        });
    }
    if out.is_empty() {
        out.push(Vec::new());
    }
    Some(out)
}

/// Runs `paste`.
pub fn main(args: Args) -> Outcome {
    let spec = Spec {
        short: "d:sz",
        long: &[("delimiters", Needs, 'd'), ("serial", No, 's'), ("zero-terminated", No, 'z')],
        help: "[OPTION]... [FILE]...",
    };
    let given = options::parse(args, &spec)?;
    let list = given.value('d').map_or_else(|| b"\t".to_vec(), |text| bytes(text).to_vec());
    let delimiters = delimiters(&list)
        .ok_or_else(|| fail(format!("delimiter list ends with an unescaped backslash: {}", String::from_utf8_lossy(&list))))?;
    let end = if given.has('z') { 0 } else { b'\n' };
    let files = or_stdin(given.operands.clone());
    let mut out = Output::new();
    if given.has('s') {
        let mut status = 0;
        for file in &files {
            match open(file) {
                Ok(input) => {
                    if let Err(error) = serial(Lines::of_file(input, end), &delimiters, end, &mut out) {
                        out.send();
                        warn_file(file, &error);
                        status = 1;
                    }
                }
                Err(error) => {
                    out.send();
                    warn_file(file, &error);
                    status = 1;
                }
            }
        }
        return Ok(status);
    }
    let mut inputs = Vec::new();
    let mut stdin = None;
    for file in &files {
        if file == "-" {
            // Several dashes take turns at one input.
            stdin.get_or_insert_with(|| Lines::of_file(Descriptor::inherited(0), end));
            inputs.push(None);
            continue;
        }
        match open(file) {
            Ok(input) => inputs.push(Some(Lines::of_file(input, end))),
            Err(error) => {
                warn_file(file, &error);
                return Err(1);
            }
        }
    }
    let mut status = 0;
    let mut open_now = vec![true; inputs.len()];
    let mut row: Vec<u8> = Vec::new();
    loop {
        row.clear();
        let mut any = false;
        for (index, input) in inputs.iter_mut().enumerate() {
            if index > 0 {
                row.extend_from_slice(&delimiters[(index - 1) % delimiters.len()]);
            }
            if !open_now[index] {
                continue;
            }
            let lines = input.as_mut().or(stdin.as_mut());
            match lines.map(Lines::next_content) {
                Some(Ok(Some(line))) => {
                    any = true;
                    row.extend_from_slice(line);
                }
                Some(Err(error)) => {
                    out.send();
                    warn_file(&files[index], &error);
                    open_now[index] = false;
                    status = 1;
                }
                _ => open_now[index] = false,
            }
        }
        if !any {
            return Ok(status);
        }
        out.line(&row, end);
    }
}

fn serial(mut lines: Lines<Descriptor>, delimiters: &[Vec<u8>], end: u8, out: &mut Output) -> std::io::Result<()> {
    let mut index = 0;
    let mut failed = None;
    loop {
        let line = match lines.next_content() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => {
                failed = Some(error);
                break;
            }
        };
        if index > 0 {
            out.put(&delimiters[(index - 1) % delimiters.len()]);
        }
        out.put(line);
        index += 1;
    }
    out.byte(end);
    failed.map_or(Ok(()), Err)
}
