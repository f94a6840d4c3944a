//! `column`: tables and columns.

use std::ffi::OsString;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;

use crate::io::{self, Out, show};
use crate::utf8;

const LONG: &[Long] = &[
    ("table", Value::No, 't'),
    ("separator", Value::Needs, 's'),
    ("output-separator", Value::Needs, 'o'),
    ("output-width", Value::Needs, 'c'),
    ("table-columns", Value::Needs, 'N'),
    ("table-right", Value::Needs, 'R'),
    ("fillrows", Value::No, 'x'),
    ("table-noheadings", Value::No, 'd'),
    ("json", Value::No, 'J'),
    ("keep-empty-lines", Value::No, 'L'),
];

/// Runs `column`.
pub fn column(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "c:dJLN:no:R:s:tx", long: LONG };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("column: {message}\nTry 'column --help' for more information.");
            return 1;
        }
    };
    let (mut table, mut separators, mut between, mut across) = (false, None, b"  ".to_vec(), false);
    let mut width = io::env("COLUMNS").and_then(|text| number::parse(&text)).unwrap_or(80usize);
    let (mut heads, mut right, mut files): (Vec<Vec<u8>>, Vec<usize>, Vec<Vec<u8>>) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        match item {
            Item::Operand(file) => files.push(file),
            Item::Opt('t', _) => table = true,
            Item::Opt('x', _) => across = true,
            Item::Opt('s', value) => separators = value,
            Item::Opt('o', value) => between = value.unwrap_or_default(),
            Item::Opt('c', value) => match value.as_deref().and_then(number::size) {
                Some(columns) => width = columns,
                None => {
                    warn!("column: invalid columns argument: '{}'", show(&value.unwrap_or_default()));
                    return 1;
                }
            },
            Item::Opt('N', value) => heads = value.unwrap_or_default().split(|&byte| byte == b',').map(<[u8]>::to_vec).collect(),
            Item::Opt('R', value) => {
                right = value.unwrap_or_default().split(|&byte| byte == b',').filter_map(number::parse).collect()
            }
            Item::Opt(..) => {}
        }
    }
    if files.is_empty() {
        files.push(b"-".to_vec());
    }
    let mut text = Vec::new();
    let mut status = 0;
    for file in files {
        match io::read_all(&file) {
            Ok(content) => text.extend_from_slice(&content),
            Err(error) => {
                warn!("column: {}: {}", show(&file), sys::message(&error));
                status = 1;
            }
        }
    }
    let lines: Vec<&[u8]> = crate::text::diff::lines(&text).into_iter().filter(|line| !line.trim_ascii().is_empty()).collect();
    let mut out = Out::new("column", 1);
    if table {
        let mut rows: Vec<Vec<Vec<u8>>> = Vec::new();
        if !heads.is_empty() {
            rows.push(heads);
        }
        rows.extend(lines.iter().map(|line| cells(line, separators.as_deref())));
        write_table(&mut out, &rows, &between, &right);
    } else {
        fill(&mut out, &lines, width, across);
    }
    out.flush();
    status
}

fn cells(line: &[u8], separators: Option<&[u8]>) -> Vec<Vec<u8>> {
    match separators {
        Some(separators) => line.split(|byte| separators.contains(byte)).map(<[u8]>::to_vec).collect(),
        None => line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect(),
    }
}

fn write_table(out: &mut Out, rows: &[Vec<Vec<u8>>], between: &[u8], right: &[usize]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|index| rows.iter().filter_map(|row| row.get(index)).map(|cell| utf8::count(cell)).max().unwrap_or(0))
        .collect();
    for row in rows {
        for (index, width) in widths.iter().enumerate() {
            let empty = Vec::new();
            let cell = row.get(index).unwrap_or(&empty);
            let fill = width - utf8::count(cell);
            let blanks = vec![b' '; fill];
            let last = index + 1 == columns;
            if right.contains(&(index + 1)) {
                out.put(&blanks);
                out.put(cell);
            } else {
                out.put(cell);
                if !last {
                    out.put(&blanks);
                }
            }
            if !last {
                out.put(between);
            }
        }
        out.byte(b'\n');
    }
}

fn fill(out: &mut Out, lines: &[&[u8]], width: usize, across: bool) {
    let longest = lines.iter().map(|line| utf8::count(line)).max().unwrap_or(0);
    let cell = longest / 8 * 8 + 8;
    let columns = (width / cell).max(1);
    if longest >= width || columns == 1 {
        for line in lines {
            out.put(line);
            out.byte(b'\n');
        }
        return;
    }
    let rows = lines.len().div_ceil(columns);
    for row in 0..rows {
        let mut column = 0;
        for index in 0..columns {
            let at = if across { row * columns + index } else { index * rows + row };
            let Some(line) = lines.get(at) else { break };
            out.put(line);
            column += utf8::count(line);
            let next = if across { at + 1 } else { at + rows };
            if index + 1 < columns && next < lines.len() {
                let target = (index + 1) * cell;
                while column < target {
                    out.byte(b'\t');
                    column = column / 8 * 8 + 8;
                }
            }
        }
        out.byte(b'\n');
    }
}
