//! `tac`: the last record first.

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, failure, or_stdin, read_all, usage, warn};
use crate::quote;

/// `tac`.
pub fn main(args: Args) -> Outcome {
    let spec = Spec {
        short: "brs:",
        long: &[("before", No, 'b'), ("regex", No, 'r'), ("separator", Needs, 's')],
        help: "[OPTION]... [FILE]...",
    };
    let given = options::parse(args, &spec)?;
    let separator =
        given.value('s').map_or_else(|| b"\n".to_vec(), |text| if text.is_empty() { vec![0] } else { bytes(text).to_vec() });
    let pattern = if given.has('r') {
        String::from_utf8_lossy(&separator).into_owned()
    } else {
        regex::escape(&String::from_utf8_lossy(&separator))
    };
    let simple = !given.has('r');
    let regex = if simple {
        None
    } else {
        Some(
            regex::bytes::Regex::new(&pattern)
                .map_err(|_| usage(format!("invalid regular expression: {}", quote::plain(&pattern))))?,
        )
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
        let spots: Vec<(usize, usize)> = match &regex {
            Some(regex) => {
                regex.find_iter(&all).filter(|found| !found.is_empty()).map(|found| (found.start(), found.end())).collect()
            }
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
