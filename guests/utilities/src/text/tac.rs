//! `tac`: the last record first.

use posix_regex::{Regex, Span, Syntax};

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, fail, failure, or_stdin, read_all, utf8, warn};
use crate::quote;

/// Runs `tac`.
pub fn main(args: Args) -> Outcome {
    let spec = Spec {
        short: "brs:",
        long: &[("before", No, 'b'), ("regex", No, 'r'), ("separator", Needs, 's')],
        help: "[OPTION]... [FILE]...",
    };
    let given = options::parse(args, &spec)?;
    let separator =
        given.value('s').map_or_else(|| b"\n".to_vec(), |text| if text.is_empty() { vec![0] } else { bytes(text).to_vec() });
    let regex = match given.has('r') {
        true => {
            let syntax = Syntax { library: true, utf8: utf8(), ..Syntax::default() };
            Some(Regex::new(&posix_regex::from_emacs(&separator), syntax).map_err(fail)?)
        }
        false => None,
    };
    let mut out = Output::new();
    let mut status = 0;
    for file in or_stdin(given.operands.clone()) {
        let all = match read_all(&file) {
            Ok(all) => all,
            Err(error) => {
                out.send();
                let what = if error.raw_os_error() == Some(sys::errno::EISDIR) {
                    format!("{}: read error", quote::maybe(&file))
                } else {
                    format!("failed to open {} for reading", quote::always(&file))
                };
                warn(format!("{what}: {}", sys::message(&error)));
                status = failure();
                continue;
            }
        };
        let spots: Vec<Span> = match &regex {
            Some(regex) => regex.matches(&all),
            None => memchr::memmem::find_iter(&all, &separator).map(|at| (at, at + separator.len())).collect(),
        };
        let mut end = all.len();
        for &(start, stop) in spots.iter().rev() {
            let cut = if given.has('b') { start } else { stop };
            out.put(&all[cut..end]);
            end = cut;
        }
        out.put(&all[..end]);
    }
    Ok(status)
}
