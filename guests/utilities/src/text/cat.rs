//! `cat`: plain copies go block by block, decorated ones byte by byte.

use std::io::Read;

use crate::options::{self, No, Spec};
use crate::program::{Args, Outcome, Output, buffer, failure, open, or_stdin, warn, warn_file};
use crate::quote;

const SPEC: Spec = Spec {
    short: "benstuvAET",
    long: &[
        ("number-nonblank", No, 'b'),
        ("number", No, 'n'),
        ("squeeze-blank", No, 's'),
        ("show-nonprinting", No, 'v'),
        ("show-ends", No, 'E'),
        ("show-tabs", No, 'T'),
        ("show-all", No, 'A'),
    ],
    help: "[OPTION]... [FILE]...",
};

#[derive(Default)]
struct Decoration {
    number: bool,
    number_nonblank: bool,
    squeeze: bool,
    nonprinting: bool,
    ends: bool,
    tabs: bool,
    line: u64,
    blanks: u32,
    middle: bool,
}

/// Runs `cat`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let mut style = Decoration::default();
    for (letter, _) in &given.options {
        match letter {
            'b' => style.number_nonblank = true,
            'n' => style.number = true,
            's' => style.squeeze = true,
            'v' => style.nonprinting = true,
            'E' => style.ends = true,
            'T' => style.tabs = true,
            'e' => (style.nonprinting, style.ends) = (true, true),
            't' => (style.nonprinting, style.tabs) = (true, true),
            'A' => (style.nonprinting, style.ends, style.tabs) = (true, true, true),
            _ => {}
        }
    }
    style.number |= style.number_nonblank;
    let plain = !(style.number || style.squeeze || style.nonprinting || style.ends || style.tabs);
    let mut out = Output::new();
    let mut status = 0;
    let target = sys::fstat(1).ok().filter(|stat| stat.kind() == sys::stat::S_IFREG);
    for file in or_stdin(given.operands) {
        let mut input = match open(&file) {
            Ok(input) => input,
            Err(error) => {
                warn_file(&file, &error);
                status = failure();
                continue;
            }
        };
        if let (Some(target), Ok(source)) = (target, input.stat())
            && (target.dev, target.ino) == (source.dev, source.ino)
            && source.size > 0
        {
            warn(format!("{}: input file is output file", quote::maybe(&file)));
            status = failure();
            continue;
        }
        let mut buffer = buffer(&input);
        loop {
            match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) if plain => {
                    out.put(&buffer[..n]);
                    out.send();
                }
                Ok(n) => {
                    style.put(&buffer[..n], &mut out);
                    // The output of a slow writer is shown before waiting for more.
                    if n < buffer.len() {
                        out.send();
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    warn_file(&file, &error);
                    status = failure();
                    break;
                }
            }
        }
    }
    Ok(status)
}

impl Decoration {
    fn put(&mut self, bytes: &[u8], out: &mut Output) {
        for &byte in bytes {
            if !self.middle {
                if byte == b'\n' {
                    self.blanks += 1;
                    if self.squeeze && self.blanks > 1 {
                        continue;
                    }
                } else {
                    self.blanks = 0;
                }
                if self.number && !(self.number_nonblank && byte == b'\n') {
                    self.line += 1;
                    out.text(format!("{:6}\t", self.line));
                }
            }
            self.middle = byte != b'\n';
            match byte {
                b'\n' => out.put(if self.ends { b"$\n" } else { b"\n" }),
                b'\t' if self.tabs => out.put(b"^I"),
                b'\t' => out.byte(b'\t'),
                byte if self.nonprinting => visible(byte, out),
                byte => out.byte(byte),
            }
        }
    }
}

fn visible(byte: u8, out: &mut Output) {
    let low = if byte >= 128 {
        out.put(b"M-");
        byte - 128
    } else {
        byte
    };
    match low {
        0..32 => out.put(&[b'^', low + 64]),
        127 => out.put(b"^?"),
        low => out.byte(low),
    }
}
