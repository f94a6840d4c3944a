//! `factor`: prime factors. The work is done by uutils; what is not a number is reported here, in GNU's words.

use std::ffi::OsString;

use crate::options::{No, Spec};
use crate::program::{self, Args, Outcome};
use crate::{quote, uutils};

const SPEC: Spec = Spec { short: "h", long: &[("exponents", No, 'h')], help: "" };

/// Runs `factor`.
pub fn main(args: Args) -> Outcome {
    let digits = |word: &OsString| {
        let text = program::bytes(word).trim_ascii_start();
        let text = text.strip_prefix(b"+").unwrap_or(text);
        let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        is_number.then(|| crate::io::os(text))
    };
    let (mut kept, mut wrong) = (Vec::new(), false);
    let mut words = args.into_iter();
    kept.extend(words.next());
    for word in words {
        if let Some(digits) = digits(&word) {
            kept.push(digits);
        } else if program::bytes(&word).starts_with(b"-") {
            kept.push(word);
        } else {
            program::warn(format!("{} is not a valid positive integer", quote::plain(&word)));
            wrong = true;
        }
    }
    // Without a number it would read them from standard input.
    if wrong && kept.len() == 1 {
        return Ok(1);
    }
    uutils::run(kept, "factor", &SPEC, uu_factor::uumain).map(|status| status.max(i32::from(wrong)))
}
