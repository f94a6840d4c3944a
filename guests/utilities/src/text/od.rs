//! `od`: bytes as numbers. The work is done by uutils.

use crate::options::{May, Needs, No, Spec};
use crate::program::{Args, Outcome};
use crate::uutils;

const SPEC: Spec = Spec {
    short: "A:aBbcDdeFfHhIij:LlN:OoS:st:vw::Xx",
    long: &[
        ("skip-bytes", Needs, 'j'),
        ("address-radix", Needs, 'A'),
        ("read-bytes", Needs, 'N'),
        ("format", Needs, 't'),
        ("output-duplicates", No, 'v'),
        ("strings", May, 'S'),
        ("traditional", No, 'T'),
        ("width", May, 'w'),
        ("endian", Needs, 'E'),
    ],
    help: "",
};

/// Runs `od`, with the old name of an option.
pub fn main(mut args: Args) -> Outcome {
    args.iter_mut().skip(1).filter(|word| *word == "-B").for_each(|word| *word = "-o".into());
    uutils::run(args, "od", &SPEC, uu_od::uumain)
}
