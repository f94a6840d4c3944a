//! `echo`.

use common::escape::{BASH_ECHO, unescape};

use crate::bytes;
use crate::shell::{Done, Shell};
use crate::state::options::{SetOption, ShoptOption};

pub(super) fn echo(shell: &mut Shell, args: &[String]) -> Done {
    let mut newline = true;
    let mut escapes = shell.shopt(ShoptOption::XpgEcho);
    let mut at = 1;
    let options = !(shell.on(SetOption::Posix) && escapes);
    while options && let Some(letters) = args.get(at).and_then(|arg| arg.strip_prefix('-')) {
        if letters.is_empty() || !letters.bytes().all(|letter| matches!(letter, b'n' | b'e' | b'E')) {
            break;
        }
        for letter in letters.bytes() {
            match letter {
                b'n' => newline = false,
                b'e' => escapes = true,
                _ => escapes = false,
            }
        }
        at += 1;
    }
    let words = args.get(at..).unwrap_or_default();
    let mut line = Vec::with_capacity(64);
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            line.push(b' ');
        }
        if escapes {
            if !unescape(&bytes::encode(word), BASH_ECHO, &mut line) {
                shell.output.write(&line);
                return Ok(0);
            }
        } else {
            line.extend_from_slice(&bytes::encode(word));
        }
    }
    if newline {
        line.push(b'\n');
    }
    shell.output.write(&line);
    Ok(0)
}
