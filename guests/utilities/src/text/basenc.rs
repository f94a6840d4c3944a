//! `basenc`: bytes in any of the usual encodings. The work is done by uutils.

use crate::options::{Needs, No, Spec};
use crate::program::{Args, Outcome};
use crate::uutils;

const SPEC: Spec = Spec {
    short: "diw:",
    long: &[
        ("base64", No, 'A'),
        ("base64url", No, 'B'),
        ("base58", No, 'C'),
        ("base32", No, 'D'),
        ("base32hex", No, 'E'),
        ("base16", No, 'F'),
        ("base2msbf", No, 'G'),
        ("base2lsbf", No, 'H'),
        ("z85", No, 'I'),
        ("decode", No, 'd'),
        ("ignore-garbage", No, 'i'),
        ("wrap", Needs, 'w'),
    ],
    help: "",
};

/// Runs `basenc`.
pub fn main(args: Args) -> Outcome {
    uutils::run(args, "basenc", &SPEC, uu_basenc::uumain)
}
