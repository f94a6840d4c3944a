//! `look`: the lines that begin with a word.

use crate::options::{self, Needs, No, Spec};
use crate::program::{self, Args, Outcome, Output, bytes, fail, usage};

const SPEC: Spec = Spec {
    short: "abdft:",
    long: &[("alternative", No, 'a'), ("alphanum", No, 'd'), ("ignore-case", No, 'f'), ("terminate", Needs, 't')],
    help: "[OPTION]... STRING [FILE]...",
};

/// Where the words are when no file is named.
const WORDS: &str = "/usr/share/dict/words";

/// Runs `look`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let Some((word, files)) = given.operands.split_first() else { return Err(usage("bad usage")) };
    // The list of words is sorted as a dictionary is.
    let dictionary = files.is_empty();
    let (alphanumeric, fold) = (given.has('d') || dictionary, given.has('f') || dictionary);
    let plain = |text: &[u8]| -> Vec<u8> {
        let kept = text.iter().filter(|byte| !alphanumeric || byte.is_ascii_alphanumeric());
        kept.map(|byte| if fold { byte.to_ascii_lowercase() } else { *byte }).collect()
    };
    let word = bytes(word);
    let last = given.value('t').and_then(|end| bytes(end).first().copied());
    let cut = last.and_then(|end| word.iter().position(|&byte| byte == end)).map_or(word.len(), |at| at + 1);
    let wanted = plain(&word[..cut]);
    let mut out = Output::new();
    let mut found = false;
    let default: [std::ffi::OsString; 1] = [WORDS.into()];
    for file in if dictionary { &default[..] } else { files } {
        let text =
            program::read_all(file).map_err(|error| fail(format!("{}: {}", file.to_string_lossy(), sys::message(&error))))?;
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            if plain(line).starts_with(&wanted) {
                out.line(line, b'\n');
                found = true;
            }
        }
    }
    Ok(i32::from(!found))
}
