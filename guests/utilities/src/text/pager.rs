//! `less` and `more`: print the text, because the sandbox has no pager.

use std::ffi::OsString;

use common::getopt::{self};

use crate::io::{self, Input, Out, show};

/// Runs `less` and `more`, which print the text.
pub fn pager(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let name: &'static str = if args[0].ends_with(b"more") { "more" } else { "less" };
    let mut files: Vec<Vec<u8>> =
        args[1..].iter().filter(|arg| !arg.starts_with(b"-") && !arg.starts_with(b"+") || *arg == b"-").cloned().collect();
    // Without a terminal, `more` prints the name of each file.
    let several = name == "more" && !files.is_empty();
    if files.is_empty() {
        files.push(b"-".to_vec());
    }
    let mut out = Out::new(name, 1);
    let mut status = 0;
    for file in &files {
        let input = match Input::open(file) {
            Ok(input) => input,
            Err(error) if name == "more" && error.kind() == std::io::ErrorKind::IsADirectory => {
                out.put(format!("\n*** {}: directory ***\n\n", show(file)).as_bytes());
                continue;
            }
            Err(error) => {
                out.flush();
                if name == "more" {
                    warn!("more: cannot open {}: {}", show(file), sys::message(&error));
                } else {
                    warn!("{}: {}", show(file), sys::message(&error));
                }
                status = 1;
                continue;
            }
        };
        if several {
            out.put(format!("::::::::::::::\n{}\n::::::::::::::\n", show(file)).as_bytes());
        }
        let mut input = input;
        let mut buffer = vec![0; io::BLOCK];
        loop {
            match io::read_some(&mut input, &mut buffer) {
                Ok(0) => break,
                Ok(read) => out.put(&buffer[..read]),
                Err(error) => {
                    out.flush();
                    warn!("{}: {}", show(file), sys::message(&error));
                    status = 1;
                    break;
                }
            }
        }
    }
    out.flush();
    status
}
