//! `uuencode` and `uudecode`: bytes as lines of text with a name and a mode.

use std::io::Write as _;
use std::path::Path;

use crate::files::mode::umask;
use crate::options::{self, Needs, No, Spec};
use crate::program::{self, Args, Descriptor, Outcome, Output, bytes, extra_operand, fail, os, usage};
use crate::quote;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes in a line of the classic form, and of the base64 form too.
const LINE: usize = 45;

/// Runs `uuencode`.
pub fn uuencode(args: Args) -> Outcome {
    let spec = Spec {
        short: "me",
        long: &[("base64", No, 'm'), ("encode-file-name", No, 'e')],
        help: "[-m] [INFILE] REMOTEFILE\nEncodes INFILE, or standard input, as text for mail.",
    };
    let given = options::parse(args, &spec)?;
    let (input, name) = match given.operands.as_slice() {
        [name] => (None, name),
        [input, name] => (Some(input), name),
        [] => return Err(usage("missing the name that the file shall have")),
        [_, _, extra, ..] => return Err(extra_operand(extra)),
    };
    let trouble = |error: &std::io::Error| {
        fail(format!("{}: {}", input.map_or("-".into(), |name| quote::maybe(name)), sys::message(error)))
    };
    let (content, mode) = match input {
        Some(input) => {
            let stat = sys::stat(Path::new(input), true).map_err(|error| trouble(&error))?;
            (program::read_all(input).map_err(|error| trouble(&error))?, stat.mode & 0o777)
        }
        None => (program::read_all("-".as_ref()).map_err(|error| trouble(&error))?, 0o666 & !umask()),
    };
    let mut out = Output::new();
    let base64 = given.has('m');
    out.text(format!("begin{} {mode:03o} ", if base64 { "-base64" } else { "" }));
    out.line(bytes(name), b'\n');
    for line in content.chunks(LINE) {
        let text = if base64 { encode_base64(line) } else { encode(line) };
        out.line(&text, b'\n');
    }
    out.put(if base64 { b"====\n" } else { b"`\nend\n" });
    Ok(0)
}

/// Returns one of 64 printable characters; zero is a backquote, because blanks get lost on the way.
fn letter(six: u8) -> u8 {
    if six == 0 { b'`' } else { b' ' + six }
}

fn sextets(group: &[u8]) -> [u8; 4] {
    let at = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
    let all = at(0) << 16 | at(1) << 8 | at(2);
    [18, 12, 6, 0].map(|shift| (all >> shift & 63) as u8)
}

fn encode(line: &[u8]) -> Vec<u8> {
    let mut text = vec![letter(line.len() as u8)];
    text.extend(line.chunks(3).flat_map(sextets).map(letter));
    text
}

fn encode_base64(line: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for group in line.chunks(3) {
        let letters = sextets(group).map(|six| BASE64[usize::from(six)]);
        text.extend_from_slice(&letters[..=group.len()]);
        text.resize(text.len() + 3 - group.len(), b'=');
    }
    text
}

/// Runs `uudecode`.
pub fn uudecode(args: Args) -> Outcome {
    let spec = Spec {
        short: "co:",
        long: &[("output-file", Needs, 'o'), ("ignore-chmod", No, 'c')],
        help: "[-o FILE] [FILE]...\nDecodes what uuencode wrote.",
    };
    let given = options::parse(args, &spec)?;
    let target = given.value('o').map(|name| bytes(name).to_vec());
    let mut status = 0;
    for name in program::or_stdin(given.operands) {
        let shown = if name == "-" { "stdin".to_owned() } else { quote::maybe(&name) };
        let done = match program::read_all(&name) {
            Ok(text) => decode_file(&text, target.as_deref()),
            Err(error) => Err(sys::message(&error)),
        };
        if let Err(trouble) = done {
            status = fail(format!("{shown}: {trouble}"));
        }
    }
    Ok(status)
}

fn decode_file(text: &[u8], target: Option<&[u8]>) -> Result<(), String> {
    let mut lines = text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let (base64, head) = lines
        .by_ref()
        .find_map(|line| {
            let base64 = line.strip_prefix(b"begin-base64 ").map(|rest| (true, rest));
            base64.or_else(|| line.strip_prefix(b"begin ").map(|rest| (false, rest)))
        })
        .ok_or("No `begin' line")?;
    let at = head.iter().position(|&byte| byte == b' ').ok_or("malformed `begin' line")?;
    let mode = std::str::from_utf8(&head[..at]).ok().and_then(|octal| u32::from_str_radix(octal, 8).ok());
    let mode = mode.ok_or("malformed `begin' line")?;
    let name = target.unwrap_or(&head[at + 1..]);
    let mut content = Vec::new();
    let mut ended = false;
    while let Some(line) = lines.next() {
        if base64 && line == b"====" || !base64 && matches!(line, b"`" | b" " | b"") {
            ended = base64 || lines.next() == Some(b"end");
            break;
        }
        match base64 {
            true => decode_base64(line, &mut content),
            false => decode(line, &mut content).ok_or("Short file")?,
        }
    }
    write(name, &content, mode)?;
    if ended { Ok(()) } else { Err(if base64 { "Short file" } else { "No `end' line" }.into()) }
}

fn write(name: &[u8], content: &[u8], mode: u32) -> Result<(), String> {
    if matches!(name, b"-" | b"/dev/stdout") {
        Output::new().put(content);
        return Ok(());
    }
    let path = os(name.to_vec());
    let failed = |error: &std::io::Error| format!("{}: {}", quote::maybe(&path), sys::message(error));
    let mut file = Descriptor::create(&path).map_err(|error| failed(&error))?;
    file.write_all(content).map_err(|error| failed(&error))?;
    sys::chmod(Path::new(&path), true, mode & 0o777).map_err(|error| failed(&error))
}

fn join(group: &[u8], into: &mut Vec<u8>, keep: usize) {
    let at = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
    let all = at(0) << 18 | at(1) << 12 | at(2) << 6 | at(3);
    into.extend_from_slice(&all.to_be_bytes()[1..=keep.min(3)]);
}

fn decode(line: &[u8], into: &mut Vec<u8>) -> Option<()> {
    let value = |byte: u8| byte.wrapping_sub(b' ') & 63;
    let (&first, rest) = line.split_first()?;
    let mut left = usize::from(value(first));
    let sixes: Vec<u8> = rest.iter().map(|&byte| value(byte)).collect();
    for group in sixes.chunks(4) {
        join(group, into, left.min(3));
        left = left.saturating_sub(3);
    }
    (left == 0).then_some(())
}

fn decode_base64(line: &[u8], into: &mut Vec<u8>) {
    let value = |byte: u8| BASE64.iter().position(|&known| known == byte).map(|at| at as u8);
    let sixes: Vec<u8> = line.iter().filter_map(|&byte| value(byte)).collect();
    for group in sixes.chunks(4) {
        join(group, into, group.len().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_there_and_back() {
        assert_eq!(encode(b"ABC"), b"#04)#");
        assert_eq!(encode_base64(b"A"), b"QQ==");
        for length in 1..=LINE {
            let line: Vec<u8> = (0..length).map(|at| (at * 41 % 256) as u8).collect();
            let (mut classic, mut base64) = (Vec::new(), Vec::new());
            decode(&encode(&line), &mut classic).unwrap();
            decode_base64(&encode_base64(&line), &mut base64);
            assert_eq!((&classic, &base64), (&line, &line));
        }
    }
}
