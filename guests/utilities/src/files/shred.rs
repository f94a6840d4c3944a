//! `shred`: a file overwritten. The work is done by uutils.

use crate::options::{May, Needs, No, Spec};
use crate::program::{Args, Outcome};
use crate::uutils;

const SPEC: Spec = Spec {
    short: "fn:s:uvxz",
    long: &[
        ("force", No, 'f'),
        ("iterations", Needs, 'n'),
        ("size", Needs, 's'),
        ("remove", May, 'u'),
        ("verbose", No, 'v'),
        ("exact", No, 'x'),
        ("zero", No, 'z'),
        ("random-source", Needs, 'R'),
    ],
    help: "",
};

/// Runs `shred`.
pub fn main(args: Args) -> Outcome {
    uutils::run(args, "shred", &SPEC, uu_shred::uumain)
}
