//! `rev`: lines backwards.

use std::ffi::OsString;

use common::getopt::{self};

use crate::io::{Input, Out, show};
use crate::lines::Lines;
use crate::utf8;

/// Runs `rev`: lines backwards.
pub fn rev(args: Vec<OsString>) -> i32 {
    let mut files: Vec<Vec<u8>> = getopt::bytes(args).into_iter().skip(1).filter(|arg| arg != b"--").collect();
    if files.is_empty() {
        files.push(b"-".to_vec());
    }
    let mut out = Out::new("rev", 1);
    let mut status = 0;
    for file in files {
        let input = match Input::open(&file) {
            Ok(input) => input,
            Err(error) => {
                out.flush();
                warn!("rev: cannot open {}: {}", show(&file), sys::message(&error));
                status = 1;
                continue;
            }
        };
        let mut lines = Lines::new(input, b'\n');
        loop {
            let (line, ended) = match lines.next_split() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    out.flush();
                    let shown = if file == b"-" { b"stdin" } else { file.as_slice() };
                    warn!("rev: {}: 0: {}", show(shown), sys::message(&error));
                    status = 1;
                    break;
                }
            };
            let mut end = line.len();
            while end > 0 {
                let mut start = end - 1;
                while start > 0 && end - start < 4 && line[start] & 0xc0 == 0x80 {
                    start -= 1;
                }
                if utf8::length(&line[start..end]) != end - start {
                    start = end - 1;
                }
                out.put(&line[start..end]);
                end = start;
            }
            if ended {
                out.byte(b'\n');
            }
        }
    }
    out.flush();
    status
}
