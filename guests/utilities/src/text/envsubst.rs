//! `envsubst`: `$NAME` and `${NAME}` replaced by the environment.

use std::ffi::OsString;

use common::getopt::{self};

use crate::io::{self, Out, show};

/// Runs `envsubst`: `$NAME` and `${NAME}` replaced by the environment.
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
            warn!("envsubst: error while reading \"standard input\": {}", sys::message(&error));
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
