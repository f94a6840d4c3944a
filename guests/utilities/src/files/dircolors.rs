//! `dircolors`: the colours of `ls`. The work is done by uutils.

use crate::options::{No, Spec};
use crate::program::{Args, Outcome};
use crate::uutils;

const SPEC: Spec = Spec {
    short: "bcp",
    long: &[
        ("sh", No, 'b'),
        ("bourne-shell", No, 'b'),
        ("csh", No, 'c'),
        ("c-shell", No, 'c'),
        ("print-database", No, 'p'),
        ("print-ls-colors", No, 'l'),
    ],
    help: "",
};

/// Runs `dircolors`.
pub fn main(args: Args) -> Outcome {
    uutils::run(args, "dircolors", &SPEC, uu_dircolors::uumain)
}
