//! `tput`, `clear` and `reset`: control sequences for a terminal.

use std::ffi::OsString;

use common::getopt::{self};
use common::number;

use crate::io::{self, Out, show};

/// Runs `clear`: an empty screen.
pub fn clear(_args: Vec<OsString>) -> i32 {
    let mut out = Out::new("clear", 1);
    out.put(b"\x1b[H\x1b[2J\x1b[3J");
    out.flush();
    0
}

/// Runs `reset`: a terminal as it is when it has just been switched on.
pub fn reset(_args: Vec<OsString>) -> i32 {
    let mut out = Out::new("reset", 1);
    out.put(RESET.as_bytes());
    out.flush();
    0
}

/// What `reset` sends: the full reset of an xterm, and its modes one by one.
const RESET: &str = "\x1bc\x1b]104\x07\x1b[!p\x1b[?3;4l\x1b[4l\x1b>";

/// Runs `tput`: the few capabilities that scripts ask for.
pub fn tput(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let mut words = args[1..].iter();
    let mut name = words.next();
    while name.is_some_and(|word| word.starts_with(b"-T")) {
        if name.is_some_and(|word| word.len() == 2) {
            words.next();
        }
        name = words.next();
    }
    let Some(name) = name else {
        warn!("usage: tput [-V] [-S] [-T term] capname");
        return 2;
    };
    let number = |word: Option<&Vec<u8>>| word.and_then(|word| number::parse::<u32>(word)).unwrap_or(0);
    let text = match name.as_slice() {
        b"cols" => format!("{}\n", io::env("COLUMNS").and_then(|text| number::parse::<u32>(&text)).unwrap_or(80)),
        b"lines" => format!("{}\n", io::env("LINES").and_then(|text| number::parse::<u32>(&text)).unwrap_or(24)),
        b"colors" => "256\n".to_string(),
        b"bold" => "\x1b[1m".to_string(),
        b"dim" => "\x1b[2m".to_string(),
        b"smul" => "\x1b[4m".to_string(),
        b"rmul" => "\x1b[24m".to_string(),
        b"rev" | b"smso" => "\x1b[7m".to_string(),
        b"rmso" => "\x1b[27m".to_string(),
        b"sitm" => "\x1b[3m".to_string(),
        b"blink" => "\x1b[5m".to_string(),
        b"sgr0" => "\x1b(B\x1b[m".to_string(),
        b"op" => "\x1b[39;49m".to_string(),
        b"clear" => "\x1b[H\x1b[2J\x1b[3J".to_string(),
        b"el" => "\x1b[K".to_string(),
        b"ed" => "\x1b[J".to_string(),
        b"home" => "\x1b[H".to_string(),
        b"civis" => "\x1b[?25l".to_string(),
        b"cnorm" => "\x1b[?12l\x1b[?25h".to_string(),
        b"smcup" => "\x1b[?1049h\x1b[22;0;0t".to_string(),
        b"rmcup" => "\x1b[?1049l\x1b[23;0;0t".to_string(),
        b"sc" => "\x1b7".to_string(),
        b"rc" => "\x1b8".to_string(),
        b"cuu1" => "\x1b[A".to_string(),
        b"bel" => "\x07".to_string(),
        b"cup" => {
            let (row, column) = (number(words.next()), number(words.next()));
            format!("\x1b[{};{}H", row + 1, column + 1)
        }
        b"setaf" | b"setab" => {
            let color = number(words.next());
            let base = if name == b"setaf" { 3 } else { 4 };
            match color {
                0..8 => format!("\x1b[{base}{color}m"),
                8..16 => format!("\x1b[{}{}m", base + 6, color - 8),
                _ => format!("\x1b[{base}8;5;{color}m"),
            }
        }
        b"longname" => "xterm terminal emulator".to_string(),
        b"reset" | b"init" => String::new(),
        other => {
            warn!("tput: unknown terminfo capability '{}'", show(other));
            return 4;
        }
    };
    // A terminal that can do nothing has no sequences for it.
    if text.starts_with('\x1b') && io::env("TERM").is_some_and(|term| term == b"dumb") {
        return 1;
    }
    let mut out = Out::new("tput", 1);
    out.put(text.as_bytes());
    out.flush();
    0
}
