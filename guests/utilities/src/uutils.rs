//! Code shared by the programs from uutils.
//!
//! Their own complaints about options are worded by `clap`; [`run`] looks at the options first and words them as GNU does.

use std::ffi::OsString;

use crate::options::{self, Spec};
use crate::program::{Args, Outcome};

/// Runs a program of uutils, after a look at its options.
pub fn run(args: Args, name: &str, spec: &Spec, main: fn(std::vec::IntoIter<OsString>) -> i32) -> Outcome {
    options::check(&args, spec)?;
    // English is built in: this fails only when it was done before.
    let _ = uucore::locale::setup_localization(name);
    Ok(main(args.into_iter()))
}

/// Returns whether the arguments ask for `--help` or `--version`, which uutils prints.
pub fn asks(args: &Args) -> bool {
    args.iter().skip(1).any(|word| matches!(word.to_str(), Some("--help" | "--version")))
}
