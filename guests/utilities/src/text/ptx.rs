//! `ptx`: an index of words in their context. The work is done by uutils.

use crate::options::{Needs, No, Spec};
use crate::program::{Args, Outcome};
use crate::uutils;

const SPEC: Spec = Spec {
    short: "AF:GM:ORS:TW:b:i:fg:o:rtw:",
    long: &[
        ("auto-reference", No, 'A'),
        ("traditional", No, 'G'),
        ("flag-truncation", Needs, 'F'),
        ("macro-name", Needs, 'M'),
        ("format", Needs, 'x'),
        ("right-side-refs", No, 'R'),
        ("sentence-regexp", Needs, 'S'),
        ("word-regexp", Needs, 'W'),
        ("break-file", Needs, 'b'),
        ("ignore-case", No, 'f'),
        ("gap-size", Needs, 'g'),
        ("ignore-file", Needs, 'i'),
        ("only-file", Needs, 'o'),
        ("references", No, 'r'),
        ("typeset-mode", No, 't'),
        ("width", Needs, 'w'),
    ],
    help: "",
};

/// Runs `ptx`.
pub fn main(args: Args) -> Outcome {
    uutils::run(args, "ptx", &SPEC, uu_ptx::uumain)
}
