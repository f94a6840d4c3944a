//! `echo`: its arguments on a line.

use common::escape;

use crate::program::{Args, Outcome, Output, bytes};

/// Runs `echo`.
pub fn echo(args: Args) -> Outcome {
    let mut words = args.iter().skip(1).map(|arg| bytes(arg)).peekable();
    let (mut newline, mut escapes) = (true, false);
    while let Some(word) = words.peek() {
        let letters = match word.split_first() {
            Some((b'-', letters)) if !letters.is_empty() && letters.iter().all(|letter| b"neE".contains(letter)) => letters,
            _ => break,
        };
        for letter in letters {
            match letter {
                b'n' => newline = false,
                b'e' => escapes = true,
                _ => escapes = false,
            }
        }
        words.next();
    }
    let mut out = Output::new();
    let mut first = true;
    for word in words {
        if !first {
            out.byte(b' ');
        }
        first = false;
        if !escapes {
            out.put(word);
            continue;
        }
        let mut text = Vec::new();
        let more = escape::unescape(word, escape::ECHO, &mut text);
        out.put(&text);
        if !more {
            return Ok(0);
        }
    }
    if newline {
        out.byte(b'\n');
    }
    Ok(0)
}
