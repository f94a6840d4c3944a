//! Small utilities, one file each where they are not tiny.

pub mod column;
pub mod dump;
pub mod file;
pub mod strings;
pub mod tree;

use std::ffi::OsString;

use common::getopt::{self, Item, Spec};
use common::number;

use crate::io::{self, Input, Lines, Out, show};
use crate::{process, utf8, warn};

/// `which`: where a command would be found.
pub fn which(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "as", long: &[] };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(_) => {
            warn!("Usage: /usr/bin/which [-as] args");
            return 2;
        }
    };
    let all = items.contains(&Item::Opt('a', None));
    let silent = items.contains(&Item::Opt('s', None));
    let mut out = Out::new("which", 1);
    let mut status = i32::from(!items.iter().any(|item| matches!(item, Item::Operand(_))));
    for item in items {
        let Item::Operand(name) = item else { continue };
        let candidates = if name.contains(&b'/') { vec![name.clone()] } else { process::candidates(&name) };
        let mut found = candidates.into_iter().filter(|path| process::executable(path) == Some(true)).peekable();
        if found.peek().is_none() {
            status = 1;
        }
        for path in found.take(if all { usize::MAX } else { 1 }) {
            if !silent {
                out.put(&path);
                out.byte(b'\n');
            }
        }
    }
    out.flush();
    status
}

/// `rev`: lines backwards.
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
                warn!("rev: cannot open {}: {}", show(&file), io::strerror(&error));
                status = 1;
                continue;
            }
        };
        let mut lines = Lines::new(input, b'\n');
        loop {
            let (line, ended) = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    out.flush();
                    let shown = if file == b"-" { b"stdin" } else { file.as_slice() };
                    warn!("rev: {}: 0: {}", show(shown), io::strerror(&error));
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

/// `envsubst`: `$NAME` and `${NAME}` replaced by the environment.
pub fn envsubst(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let mut variables_only = false;
    let mut format = None;
    for arg in &args[1..] {
        match arg.as_slice() {
            b"-v" | b"--variables" => variables_only = true,
            b"-h" | b"--help" => {
                let mut out = Out::new("envsubst", 1);
                out.put(b"Usage: envsubst [OPTION] [SHELL-FORMAT]\nSubstitutes the values of environment variables.\n");
                out.flush();
                return 0;
            }
            other => format = Some(other.to_vec()),
        }
    }
    let mut out = Out::new("envsubst", 1);
    if variables_only {
        references(&format.unwrap_or_default(), |_, name| {
            if let Some(name) = name {
                out.put(name);
                out.byte(b'\n');
            }
        });
        out.flush();
        return 0;
    }
    let mut allowed: Option<Vec<Vec<u8>>> = None;
    if let Some(format) = &format {
        let names = allowed.get_or_insert_default();
        references(format, |_, name| names.extend(name.map(<[u8]>::to_vec)));
    }
    let text = match io::read_all(b"-") {
        Ok(text) => text,
        Err(error) => {
            warn!("envsubst: error while reading \"standard input\": {}", io::strerror(&error));
            return 1;
        }
    };
    references(&text, |raw, name| match name {
        Some(name) if allowed.as_ref().is_none_or(|names| names.iter().any(|known| known == name)) => {
            out.put(&io::env(&show(name)).unwrap_or_default());
        }
        _ => out.put(raw),
    });
    out.flush();
    0
}

/// Cuts a text into plain pieces and references to variables.
fn references(text: &[u8], mut each: impl FnMut(&[u8], Option<&[u8]>)) {
    let mut at = 0;
    while at < text.len() {
        let Some(dollar) = memchr::memchr(b'$', &text[at..]).map(|length| at + length) else {
            return each(&text[at..], None);
        };
        if dollar > at {
            each(&text[at..dollar], None);
        }
        let braced = text.get(dollar + 1) == Some(&b'{');
        let start = dollar + 1 + usize::from(braced);
        let is_name = |byte: &u8, first: bool| byte.is_ascii_alphabetic() || *byte == b'_' || !first && byte.is_ascii_digit();
        let mut end = start;
        while text.get(end).is_some_and(|byte| is_name(byte, end == start)) {
            end += 1;
        }
        let close = usize::from(braced && text.get(end) == Some(&b'}'));
        if end > start && (!braced || close == 1) {
            each(&text[dollar..end + close], Some(&text[start..end]));
            at = end + close;
        } else {
            each(b"$", None);
            at = dollar + 1;
        }
    }
}

/// `clear`: an empty screen.
pub fn clear(_args: Vec<OsString>) -> i32 {
    let mut out = Out::new("clear", 1);
    out.put(b"\x1b[H\x1b[2J\x1b[3J");
    out.flush();
    0
}

/// `tput`: the few capabilities that scripts ask for.
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

/// `less` and `more`: the text, since nobody pages here.
pub fn pager(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let name: &'static str = if args[0].ends_with(b"more") { "more" } else { "less" };
    let mut files: Vec<Vec<u8>> =
        args[1..].iter().filter(|arg| !arg.starts_with(b"-") && !arg.starts_with(b"+") || *arg == b"-").cloned().collect();
    // Where nobody turns pages, `more` names each file it was given.
    let several = name == "more" && !files.is_empty();
    if files.is_empty() {
        files.push(b"-".to_vec());
    }
    let mut out = Out::new(name, 1);
    let mut status = 0;
    for file in &files {
        let input = match Input::open(file) {
            Ok(input) => input,
            Err(error) => {
                out.flush();
                if name == "more" {
                    warn!("more: cannot open {}: {}", show(file), io::strerror(&error));
                } else {
                    warn!("{}: {}", show(file), io::strerror(&error));
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
                    warn!("{}: {}", show(file), io::strerror(&error));
                    status = 1;
                    break;
                }
            }
        }
    }
    out.flush();
    status
}

/// `time`: runs a command and says how long it took.
pub fn time(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "+pvf:o:aq", long: &[("portability", getopt::Value::No, 'p'), ("verbose", getopt::Value::No, 'v')] };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("time: {message}");
            return 125;
        }
    };
    let (mut portable, mut format, mut command) = (false, None, Vec::new());
    for item in items {
        match item {
            Item::Operand(word) => command.push(word),
            Item::Opt('p', _) => portable = true,
            Item::Opt('f', value) => format = value,
            Item::Opt(..) => {}
        }
    }
    if command.is_empty() {
        warn!("Usage: time [-apvV] [-f format] [-o file] [--append] [--verbose]");
        return 125;
    }
    let start = std::time::Instant::now();
    let status = match process::spawn(&command, Vec::new(), None).and_then(process::wait) {
        Ok(status) => i32::from(status.shell_code()),
        Err(error) => {
            warn!("time: cannot run {}: {}", show(&command[0]), io::strerror(&error));
            return if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        }
    };
    let elapsed = start.elapsed().as_secs_f64();
    if let Some(format) = format {
        let clock = format!("{}:{:05.2}", (elapsed / 60.0) as u64, elapsed % 60.0);
        let text = show(&format)
            .replace("%e", &format!("{elapsed:.2}"))
            .replace("%E", &clock)
            .replace("%U", "0.00")
            .replace("%S", "0.00")
            .replace("%M", "0")
            .replace("%P", "0%")
            .replace("%x", &status.to_string())
            .replace("\\n", "\n");
        warn!("{text}");
    } else if portable {
        warn!("real {elapsed:.2}\nuser 0.00\nsys 0.00");
    } else {
        let clock = format!("{}:{:05.2}", (elapsed / 60.0) as u64, elapsed % 60.0);
        warn!(
            "0.00user 0.00system {clock}elapsed 0%CPU (0avgtext+0avgdata 0maxresident)k\n0inputs+0outputs (0major+0minor)pagefaults 0swaps"
        );
    }
    status
}
